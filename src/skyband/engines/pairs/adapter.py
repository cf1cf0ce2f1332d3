"""Adapter of TopKPairs: one engine for all queries that share a scoring of two objects.

Three ways to score: `Global` and expressions of its form run in the kernels; other expressions over a. and b. are run
by NumPy over blocks of new pairs; functions get two batches with a row for each pair. What NumPy and functions read is
in the kept columns of each object, and so in snapshots whatever its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.contract import Arrivals, Changes
from skyband.engines.specs import shared_key
from skyband.errors import BatchError
from skyband.query.expressions import Expression, Operand, parse
from skyband.query.kinds import Query, TopKPairs
from skyband.query.scoring import scoring_of
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated, reject_beyond

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]
SCORELESS = "pair without a score"
VALID = "\0valid"  # beside the values of a column: which are not null
SAMPLE = 32  # pairs of each push that a symmetric function must score the same both ways round


class PairsAdapter(Adapter):
    """One engine for queries with one scoring of pairs."""

    most = 1 << 30
    scored = False  # pairs are, not rows
    reads_change = True  # pending pairs are sorted in

    def __init__(self, query: TopKPairs, *args: Any, **more: Any) -> None:
        super().__init__(query, *args, **more)
        self.expression: Expression | None = None
        scoring = scoring_of(query.by)
        self.form = scoring.pair_form
        if isinstance(query.by, str):
            self.expression = parse(query.by, members=("a", "b"))
        scores = scoring.function or scoring.pair_key
        self.function: Callable[..., Any] | None = None if self.expression or self.form else scores
        self.like: dict[str, Operand] = {}  # what an expression reads, by column, as it was seen last
        self.known: tuple[str, ...] = ()  # what a function may read: the columns of the first batch
        self.scoreless: dict[str, int] = {}  # by query
        self.fresh_scoreless = 0
        self.unsampled = True
        self.rehearsed: tuple[Batch, Any, Changes] | None = None

    @staticmethod
    def key(query: Query) -> tuple[Any, ...]:
        assert isinstance(query, TopKPairs)
        any_way = replace(query, symmetric=False)  # a promise: it changes no score
        return (*shared_key(any_way), query.window.sort, query.algorithm)

    @property
    def revalidates(self) -> bool:
        """True where a function scores: it may fail, so it runs before anything changes."""
        return self.function is not None

    @property
    def machine(self) -> Pairs:
        return cast("Pairs", self.engine)

    def rename(self, names: Mapping[str, str]) -> None:
        super().rename(names)
        self.scoreless = {names.get(name, name): count for name, count in self.scoreless.items()}

    # --- rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the scoring is known to read."""
        if self.form is not None:
            return tuple(name for name, _ in self.form[0])
        names = () if self.expression is None else (name.partition(".")[2] for name in self.expression.columns)
        return tuple(dict.fromkeys(names))

    def reads(self, batch: Batch | None) -> tuple[str, ...]:
        if self.form is not None:
            return ()
        if self.function is None:
            return self.columns
        if batch is not None and self.engine is None:
            self.known = tuple(batch.table.column_names)
        return self.known

    def score(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        """Check the columns that the scoring reads; a row has no score of its own."""
        scored = Scored(np.zeros(batch.rows))
        for name in self.columns:
            if self.form is not None:
                batch.numbers(name)
            else:
                batch.operand(name)
        if self.expression is not None:
            self._check_kind(batch)
        reject_beyond(scored, batch, self.columns)
        return scored

    def _check_kind(self, batch: Batch) -> None:
        assert self.expression is not None
        given = {name: batch.operand(name.partition(".")[2]) for name in self.expression.columns}
        none = {name: replace(one, values=one.values[:0], valid=None) for name, one in given.items()}
        if self.expression.evaluate(none, 0).values.dtype != np.float64:
            raise BatchError(
                f"{self.by!r} is not a number for every pair, so it cannot be a score. Score pairs by a number."
            )

    def revalidate(self, push: Push, validated: Validated, codes: Ints, unit: int | None) -> Validated:
        """Let a copy of the engine take the batch: if the function fails, nothing has changed."""
        if not validated.accepted.any():
            return validated
        twin = copy(self)
        twin.numbering = self.numbering.copy()
        if twin.engine is None:
            twin.start(unit)
        arrivals = twin.arrivals(push, validated, twin.number(push, validated, codes))
        engine = twin.machine.copy()
        engine.scores = self._scores()
        self.unsampled = True
        self.rehearsed = (push.batch, engine, engine.take(arrivals))
        return validated

    def run(self, arrivals: Arrivals, push: Push) -> Changes:
        if self.rehearsed is not None and self.rehearsed[0] is push.batch:
            _, self.engine, changes = self.rehearsed
        else:
            changes = self.machine.take(arrivals)
        self.rehearsed = None
        for name, count in zip(self.queries, self.machine.scoreless.tolist(), strict=True):
            self.scoreless[name] = self.scoreless.get(name, 0) + count
            self.fresh_scoreless += count
        return changes

    def new_rejections(self) -> dict[str, int]:
        count, self.fresh_scoreless = self.fresh_scoreless, 0
        return {SCORELESS: count} if count else {}

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if self.block is not None:
            mine, shares = self.block
            more["scored"] = (push.serial + rows) % shares == mine
        if self.form is not None:
            values = [
                push.batch.numbers(name).values[rows] if push.batch.rows else np.empty(0) for name in self.columns
            ]
            return {**more, "attributes": tuple(values)}
        if not len(rows):
            return {**more, "columns": {}}
        read = {name: push.inputs[name] for name in self.reads(None)}
        return {**more, "columns": {name: values[rows] for name, values in self._arrays(read).items()}}

    def _arrays(self, columns: dict[str, Any]) -> Columns:
        """Arrays of Arrow columns, as the scoring reads them."""
        if self.function is not None:
            return {name: column.to_numpy(zero_copy_only=False) for name, column in columns.items()}
        batch, arrays = Batch(pa.table(columns)), {}
        for name in columns:
            self.like[name] = operand = batch.operand(name)
            arrays[name] = operand.values
            valid = operand.valid
            arrays[f"{name}{VALID}"] = np.ones(batch.rows, np.bool_) if valid is None else valid
        return arrays

    # --- the engine

    def engine_options(self) -> dict[str, Any]:
        from skyband.engines.pairs.kernels.records import ABSDIFF, GIVEN, PLUS, PRODUCT, SUM, Scoring

        sign = 1.0 if self.descending else -1.0
        if self.form is None:
            return {"scoring": Scoring(GIVEN, np.empty(0, np.int8), sign, np.inf), "scores": self._scores()}
        local = np.array([ABSDIFF if way == "absdiff" else PLUS for _, way in self.form[0]], np.int8)
        form = SUM if self.form[1] == "sum" else PRODUCT
        return {"scoring": Scoring(form, local, sign, 1e300 ** (1 / len(local)) / 4)}  # no sum, no product overflows

    def _scores(self) -> Callable[[Columns, Columns], Floats]:
        return self._evaluated if self.function is None else self._called

    def _evaluated(self, older: Columns, newer: Columns) -> Floats:
        assert self.expression is not None
        operands, rows = {}, 0
        for name in self.expression.columns:
            member, _, column = name.partition(".")
            of = older if member == "a" else newer
            operands[name] = replace(self.like[column], values=of[column], valid=of[f"{column}{VALID}"])
            rows = len(of[column])
        result = self.expression.evaluate(operands, rows)
        return result.values if result.valid is None else np.where(result.valid, result.values, np.nan)

    def _called(self, older: Columns, newer: Columns) -> Floats:
        assert self.function is not None
        rows = len(next(iter(older.values())))
        scores = self._call(older, newer, rows)
        if self.unsampled and any(query.symmetric for query in self.queries.values()):
            self.unsampled, some = False, slice(0, SAMPLE)
            one, other = ({name: column[some] for name, column in batch.items()} for batch in (older, newer))
            turned = self._call(other, one, min(rows, SAMPLE))
            if not np.array_equal(scores[some], turned, equal_nan=True):
                raise BatchError(
                    f"the scoring function {self._name} gives another score when the two objects are exchanged, but a "
                    "pair has no order. Nothing was pushed; make it symmetric, or use symmetric=False: the first batch "
                    "then holds the older objects."
                )
        return scores

    def _call(self, one: Columns, other: Columns, rows: int) -> Floats:
        try:
            scores = np.array(self.function(dict(one), dict(other)), dtype=np.float64)  # type: ignore[misc]
        except Exception as error:
            raise BatchError(
                f"the scoring function {self._name} failed: {type(error).__name__}: {error}. Nothing was pushed."
            ) from error
        if scores.shape != (rows,):
            raise BatchError(
                f"the scoring function {self._name} returned shape {scores.shape} for {rows} pairs. "
                "Return one float per row of the two batches."
            )
        return scores

    @property
    def _name(self) -> str:
        return str(getattr(self.function, "__qualname__", repr(self.function)))

    # --- snapshots

    def extra_facts(self) -> dict[str, Any]:
        known = [] if self.engine is None else list(self.known)
        return {"known": known, "scoreless": dict(self.scoreless)}

    def restore_facts(self, facts: dict[str, Any]) -> None:
        self.known, self.scoreless = tuple(facts["known"]), dict(facts["scoreless"])

    def after_restore(self) -> None:
        if self.form is None and self.engine is not None and self.kept_columns.columns:
            serials = np.sort(self.machine.serials()[0])
            columns = {name: self.kept_columns.read(f"={name}", serials) for name in self.reads(None)}
            self.machine.set_columns(serials, self._arrays(columns))

    def stats(self, name: str) -> dict[str, Any]:
        stats = super().stats(name)
        stats["pairs"] = 0 if self.engine is None else self.machine.pairs
        if self.scoreless.get(name):
            stats["rejected"] = stats["rejected"] | {SCORELESS: self.scoreless[name]}
        return stats
