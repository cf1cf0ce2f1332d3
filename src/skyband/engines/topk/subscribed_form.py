"""Subscriptions as columns of slots: which queries with `Each` have such a form, and the columns from the values.

All subscriptions of such a query are slots of one engine, and none is a Python object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.registry import choose
from skyband.engines.topk.scorings import BLOCK, MOST_ATTRIBUTES, form_of, plain_scoring
from skyband.engines.topk.slot_columns import Shape, SlotColumns
from skyband.engines.topk.vector_rows import CODES
from skyband.query.each import Each
from skyband.query.expressions import Demand, columns_in, demands, parse, ranges_of
from skyband.query.expressions.tree import Node
from skyband.query.kinds import Query, TopK
from skyband.query.scoring import Scoring, Similar, scoring_of
from skyband.query.scoring.forms import DISTANCE, TAME
from skyband.query.scoring.similar import squares
from skyband.query.windows import Last
from skyband.tables.input import is_number, is_string

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class SlotForm:
    """How the values of subscriptions become columns of slots."""

    scoring: Scoring  # of the query, `Each` in place of numbers
    code: int  # of the kernel form
    limit: float  # numbers beyond it overflow somewhere
    points: tuple[float | Each, ...]
    weights: tuple[float | Each, ...]
    k: int | Each
    descending: bool
    attributes: tuple[str, ...]  # columns of the scoring, then those that only boxes read
    demands: tuple[Demand, ...]
    fixed: tuple[Node, ...]  # parts of `where` that are the same for all
    fixed_box: Mapping[str, tuple[float, float]]  # the ranges that these demand

    @property
    def shape(self) -> Shape:
        d, a = len(self.points), len(self.attributes)
        return Shape(self.code, not self.descending, d, a, bool(self.weights), bool(self.demands))

    @property
    def where_columns(self) -> tuple[str, ...]:
        """The columns that `where` reads."""
        return tuple(dict.fromkeys((*(one.column for one in self.demands), *columns_in(self.fixed))))

    def kinds(self, types: Mapping[str, Any]) -> dict[str, str] | None:
        """What the attributes that boxes read hold, by the types of the values; None: they cannot be boxes."""
        found: dict[str, str] = dict.fromkeys(self.attributes[: len(self.points)], "number")
        for one in self.demands:
            kind = "number" if one.each is None or is_number(types[one.each]) else "other"
            if one.each is not None and one.op == "=":
                type_ = types[one.each]
                kind = "string" if is_string(type_) else "boolean" if pa.types.is_boolean(type_) else kind
            if kind == "other" or found.setdefault(one.column, kind) != kind:
                return None
        return found

    def columns(self, values: Mapping[str, Any], codes: Mapping[str, Floats], lengths: Ints) -> SlotColumns:
        """The columns of these subscriptions; codes: the values of `Each` that are no numbers, as numbers."""
        rows = len(lengths)

        def numbers(given: float | Each) -> Floats:
            if not isinstance(given, Each):
                return np.full(rows, given, np.float64)
            return codes[given.column] if given.column in codes else _numbers(values[given.column])

        lows = np.full((rows, len(self.attributes) if self.demands else 0), -np.inf)
        highs = np.full_like(lows, np.inf)
        for one in self.demands:
            j, bound = self.attributes.index(one.column), numbers(Each(one.each) if one.each else one.bound or 0.0)
            if one.op in ("=", ">", ">="):
                low = np.nextafter(bound, np.inf) if one.op == ">" else bound
                lows[:, j] = np.maximum(lows[:, j], low)
            if one.op in ("=", "<", "<="):
                high = np.nextafter(bound, -np.inf) if one.op == "<" else bound
                highs[:, j] = np.minimum(highs[:, j], high)
        k = numbers(self.k).astype(np.int64) if isinstance(self.k, Each) else np.broadcast_to(np.int64(self.k), rows)
        points = [numbers(one) for one in self.points]
        weights = [numbers(one) for one in self.weights]
        return SlotColumns(
            points=np.stack(points, axis=1) if points else np.empty((rows, 0)),
            weights=np.stack(weights, axis=1) if weights else np.empty((rows, 0)),
            k=k,
            length=lengths,
            lows=lows,
            highs=highs,
        )

    def tame(self, columns: SlotColumns) -> Bools:
        """Which of them have numbers that overflow nowhere."""
        largest: Bools = np.abs(columns.points).max(axis=1, initial=0) <= self.limit
        found: Bools = largest & (np.abs(columns.weights).max(axis=1, initial=0) <= self.limit)
        return found


def _numbers(column: Any) -> Floats:
    numbers: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def slot_form(query: Query, example: Query) -> SlotForm | str:
    """The form of a query with `Each` whose subscriptions can be slots; else why they cannot.

    example: a plain query of a subscription.
    """
    if not isinstance(query, TopK) or not isinstance(example, TopK):
        return f"{query.kind} has no engine of slots"
    usual = {"nulls": "reject", "ties": "newest", "with_ties": False, "offset": 0, "distinct": None, "source": None}
    odd = [name for name, value in usual.items() if getattr(query, name) != value]
    if odd or isinstance(query.by, tuple) or isinstance(query.k, str):
        return f"slots rank by one score, newest first among equals ({', '.join(odd) or 'by or k'} ask for more)"
    if query.per_columns:
        return "there is an answer for each value of `per`"
    if not isinstance(query.window, Last):
        return f"{query.window!r} is not Last(...)"
    if choose(example) != BLOCK:
        return f"algorithm={query.algorithm!r} was asked for, and slots are BLOCK's"
    by = scoring_of(query.by)
    if isinstance(by, Similar):
        return vector_form(query, by)
    plain = plain_scoring(example.by, most=MOST_ATTRIBUTES)
    if plain is None or (isinstance(query.by, str) and parse(query.by).each):
        return f"the scoring {by.label} is none of Linear, Product, Quadratic, Nearest or a plain sum of columns"
    found: tuple[list[Demand], list[Node]] | None = ([], []) if query.where is None else demands(parse(query.where))
    if found is None:
        return f"where={query.where!r} asks more of subscriptions' values than how columns compare with them"
    form = form_of(plain)
    own: Any = by if by.needs else plain  # the numbers as they are given, and `Each`
    points = tuple(number for _, number in own.terms)
    weights = tuple(getattr(own, "factors", None) or ())
    others = dict.fromkeys(one.column for one in found[0] if one.column not in plain.columns)
    attributes = (*plain.columns, *others)
    if len(attributes) > MOST_ATTRIBUTES:
        return f"there are more than {MOST_ATTRIBUTES} columns"
    return SlotForm(
        by, form.code, form.limit, points, weights, query.k, query.descending, attributes, tuple(found[0]),
        tuple(found[1]), ranges_of(found[1]),
    )  # fmt: skip


class VectorForm(SlotForm):
    """Slots that compare vectors; their points are the vectors, which the adapter adds (similar_adapter.py)."""

    def tame(self, columns: SlotColumns) -> Bools:
        """Which of them have as many components as the others, and norms that overflow nowhere."""
        largest: Bools = np.abs(columns.points).max(axis=1, initial=0) <= self.limit  # NaN: another length
        return largest & (
            (largest.astype(np.float64) * _norms(columns.points) >= 1 / self.limit) | (self.code == DISTANCE)
        )


def vector_form(query: TopK, by: Similar) -> VectorForm | str:
    """The form of a query that compares vectors."""
    found: tuple[list[Demand], list[Node]] | None = ([], []) if query.where is None else demands(parse(query.where))
    if found is None:
        return f"where={query.where!r} asks more of subscriptions' values than how columns compare with them"
    attributes = tuple(dict.fromkeys(one.column for one in found[0]))
    return VectorForm(
        by, CODES[by.metric], TAME, (), (), query.k, query.descending, attributes, tuple(found[0]), tuple(found[1]),
        ranges_of(found[1]),
    )  # fmt: skip


def _norms(points: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.sqrt(np.nan_to_num(squares(points))) if len(points) else np.empty(0)
