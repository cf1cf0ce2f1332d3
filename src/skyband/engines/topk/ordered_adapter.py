"""The adapter of orders: keys of any type, ranked as labels that engines take for scores (tables/orders.py).

Labels are made anew with each push, for its rows and for the kept objects of the groups that they are in, whose keys
are kept columns: O(b log b) for a push of b rows and kept objects. In one group most rows are left out before, by
their first keys alone: a row that is worse than K before it and K after it can never be an answer.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.contract import Arrivals, Changes
from skyband.engines.id_codes import IdCodes
from skyband.engines.invariants import require
from skyband.engines.numbering import Numbered, Start
from skyband.engines.session_rows import SessionRows
from skyband.engines.specs import fits, spec_of
from skyband.engines.topk.adapter import TopKAdapter
from skyband.query.kinds import Query
from skyband.query.options import Options
from skyband.query.scoring import Scoring, scoring_of
from skyband.query.windows import Last, Session
from skyband.tables.columns import as_arrow
from skyband.tables.groups import Groups
from skyband.tables.input import Batch, is_number
from skyband.tables.orders import Way, as_score, coarse, conform_key, is_key, key_array, labels, plain_column
from skyband.tables.push import STEP, Push
from skyband.tables.scores import Scored, Validated, reject_beyond

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FEW = 4096  # rows that are ranked without leaving any out


class OrderedAdapter(SessionRows, IdCodes, TopKAdapter):
    """One engine whose queries rank by keys, or by more than a score."""

    def __init__(
        self,
        query: Query,
        groups: Groups,
        options: Options,
        start: Start,
        *,
        algorithm: str | None = None,
        keyed: bool = False,
    ) -> None:
        super().__init__(query, groups, options, start)
        self.reads_more = True
        self.algorithm = algorithm or self.algorithm
        self.ranks = self.algorithm == "SORTED"
        self.most = 1 if self.ranks else Adapter.most  # type: ignore[misc]
        self.labels = keyed or "keys" in query.demands  # keys are ranked; else they are scores
        keys = self.by if isinstance(self.by, tuple) else (self.by,)
        self.parts: tuple[Scoring, ...] = tuple(map(scoring_of, keys)) if self.labels else ()
        self.nulls: str = getattr(query, "nulls", "reject")
        self.oldest = getattr(query, "ties", "newest") == "oldest"
        self.ways = [Way(descending, self.nulls == "first") for descending in query.directions]
        self.key_types: list[pa.DataType] = [pa.null()] * len(self.parts)  # once known
        self.output.keyed = self.key_columns if self.labels else None
        distinct = getattr(query, "distinct", None)
        self.ids = self._no_ids() if self.deletable or distinct is not None else None

    def engine_options(self) -> dict[str, Any]:
        return {"rule": rule_of(self.example, self.unit, keyed=self.deletable)} if self.ranks else {}

    def can_serve(self, query: Query, unit: int | None) -> bool:
        limits = [getattr(one, "k", 0) for one in (query, self.example)]
        same = limits[0] == limits[1] or not any(isinstance(limit, str) for limit in limits)
        alike = query  # one engine of SORTED has one window, which may become shorter
        if isinstance(query.window, Last) and query.window.sort == self.example.window.sort:
            alike = cast(Query, replace(cast(Any, query), window=self.example.window))
        return same and super().can_serve(alike, unit) and fits(spec_of(query, unit), self.specs(unit))

    @property
    def shown_keys(self) -> list[Any]:
        """The types of the keys that are reported besides the score."""
        return self._shown(self.key_types)

    def _shown(self, types: list[Any]) -> list[Any]:
        return types if isinstance(self.by, tuple) or not all(map(is_number, types)) else []

    def needed(
        self, validated: Validated, codes: Ints, total: int, times: Ints, clocks: Ints, unit: int | None
    ) -> Bools:
        """Every row: one score does not tell which can never be an answer."""
        return validated.accepted

    def remembered(self) -> Ints:
        until = super().remembered()
        machine: Any = self.engine
        if machine is not None and isinstance(getattr(self.example, "k", None), str):
            limits = machine.limited()
            until[: len(limits)] = np.maximum(until[: len(limits)], limits)
        return until

    def new_keys(self, validated: Validated) -> list[Any]:
        return self._shown([key.type for key in validated.scored.keys or []])

    # --- rows

    def score(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        """The keys of each row, and the rows that have none."""
        scored = self._score(batch, cache)
        limit = getattr(self.example, "k", None)
        if isinstance(limit, str):
            values, most = batch.numbers(limit).values, self.example.most
            good = (values >= 0) & (values <= most) & (values == np.floor(values))
            scored.reject(f"{limit} is no number from 0 to {most}", ~good)
        return scored

    def _score(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        if not self.labels:
            return super().score(batch, cache)
        scored = Scored(np.zeros(batch.rows))
        scored.keys = []
        for i, part in enumerate(self.parts):
            made = ("key", id(part.function) if part.function is not None else part)
            if made not in cache:
                cache[made] = key_array(batch, part)
            column: Any = cache[made]
            scored.keys.append(conform_key(part.label, column, self.key_types[i]))
            if plain_column(part) is None:
                reject_beyond(scored, batch, part.columns)
            elif not isinstance(self.by, tuple):
                self._reject_beyond_alone(scored, batch, part)
            if self.nulls == "reject" and column.null_count:
                self._reject_nulls(scored, batch, part, column)
        return scored

    def _reject_beyond_alone(self, scored: Scored, batch: Batch, part: Scoring) -> None:
        """A number that is the only key is a score, so float64 must hold it."""
        (name,) = part.columns
        if is_number(batch.array(name).type):
            batch.operand(name)
            reject_beyond(scored, batch, (name,))

    def _reject_nulls(self, scored: Scored, batch: Batch, part: Scoring, column: Any) -> None:
        null = np.asarray(column.is_null())
        for name in part.columns:
            given = batch.array(name)
            if given.null_count:
                there = np.asarray(given.is_null())
                scored.reject(f"{name} is null", null & there)
                null = null & ~there
        whole = plain_column(part)
        scored.reject(f"{part.label} {'has no value' if whole is None else 'is NaN'}", null)

    def learn(self, validated: Validated) -> None:
        for i, column in enumerate(validated.scored.keys or []):
            if pa.types.is_null(self.key_types[i]):
                self.key_types[i] = column.type

    def more_columns(self, push: Push, validated: Validated) -> dict[str, Any]:
        """The keys of the rows of a push, to be kept and reported."""
        if not self.labels:
            return {}
        keys = validated.scored.keys
        if keys is None:  # time moves on alone
            keys = [pa.nulls(push.batch.rows, type_) for type_ in self.key_types]
        return {key_name(i): column for i, column in enumerate(keys)}

    # --- labels

    def arrivals(self, push: Push, validated: Validated, numbered: Numbered) -> Arrivals:
        arrivals = super().arrivals(push, validated, numbered)
        names = self.names_of(arrivals.rows, arrivals.groups, push)
        deletes = None if push.deletes is None or not self.deletable else push.deletes[arrivals.rows]
        arrivals = replace(arrivals, names=names, deletes=deletes)
        return self.labelled(arrivals, validated.scored.keys or []) if self.labels else arrivals

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        limit, more = getattr(self.example, "k", None), {}
        if push.over:
            more = {"steps": np.asarray(push.batch.array(STEP))[rows]}
        if not isinstance(limit, str):
            return more
        if not len(rows):
            return more | {"limits": rows}
        limits = push.batch.numbers(limit).values
        for bad in validated.scored.rejected.values():  # over answers these are taken, too
            limits = np.where(bad, -1, limits)
        return more | {"limits": limits[rows].astype(np.int64)}

    def run(self, arrivals: Arrivals, push: Push) -> Changes:
        changes = super().run(arrivals, push)
        if self.options.inner:
            return self._moved(changes, push)
        if self.deletable:
            self.count_unknown()
        return changes

    def _moved(self, changes: Changes, push: Push) -> Changes:
        """The changes, where an object that leaves and enters in one step has moved within the answer (0)."""
        steps = np.asarray(push.batch.array(STEP))[changes.row] if push.batch.rows else changes.row
        order = np.lexsort((changes.diff, changes.stamp, changes.group, steps))  # the stamp is the object's number
        again = np.ones(max(len(order) - 1, 0), np.bool_)
        for part in (changes.stamp, changes.group, steps):
            again &= part[order[1:]] == part[order[:-1]]
        left, entered = order[:-1][again], order[1:][again]
        diff, stays = changes.diff.copy(), np.ones(len(order), np.bool_)
        diff[entered], stays[left], stays[entered] = 0, False, self.output.sourced
        return replace(changes, diff=diff).only(np.flatnonzero(stays))

    def labelled(self, arrivals: Arrivals, keys: list[Any]) -> Arrivals:
        """The arrivals with labels as keys; the kept objects of their groups get labels anew."""
        engine: Any = self.engine
        if not len(arrivals.rows):
            return arrivals
        arrivals = self._left(arrivals, keys)
        chosen = np.arange(len(arrivals.rows)) if arrivals.eligible is None else np.flatnonzero(arrivals.eligible)
        if self.deletable and arrivals.deletes is not None:
            chosen = chosen[~arrivals.deletes[chosen]]
        rows = arrivals.rows[chosen]
        touched = np.unique(arrivals.groups) if arrivals.total > 1 else np.zeros(1, np.int64)
        touched = touched[touched < len(engine.kept)]
        stamps, serials = engine.ages(touched)
        both = [partial(self._both, i, serials, key, rows) for i, key in enumerate(keys)]
        ages: list[Ints] = []
        if self.oldest and not self.ranks:  # SORTED has the tie rule itself
            ages = [
                np.concatenate([stamps, arrivals.stamps[chosen]]),
                np.concatenate([serials, arrivals.serial + rows]),
            ]
        size = len(serials) + len(rows)
        label = labels(both, self.ways, size, ages)
        engine.relabel(touched, label[: len(serials)])
        found = np.zeros(len(arrivals.rows))
        found[chosen] = label[len(serials) :]
        return replace(arrivals, keys=found)

    def _both(self, i: int, serials: Ints, fresh: Any, rows: Ints) -> Any:
        """One key of kept objects, then of these rows."""
        new = fresh if len(rows) == len(fresh) else fresh.take(as_arrow(rows))
        if not len(serials):
            return new
        old = self.kept_columns.read(key_name(i), serials)
        if old.type != new.type:  # only nulls until now, or in this push
            both = new.type if pa.types.is_null(old.type) else old.type
            old, new = old.cast(both), new.cast(both)
        return pa.concat_arrays([old, new])

    def _left(self, arrivals: Arrivals, keys: list[Any]) -> Arrivals:
        """The arrivals, of which those that can never be an answer by their first keys alone are not eligible."""
        if arrivals.total > 1 or len(arrivals.rows) <= FEW or not keys or self.ranks:
            return arrivals
        from skyband.engines.topk.base import hopeful  # Numba takes its time

        rough = coarse(keys[0], self.ways[0])
        if rough is None:
            return arrivals
        mine = rough if len(rough) == len(arrivals.rows) else rough[arrivals.rows]
        chosen = np.arange(len(mine)) if arrivals.eligible is None else np.flatnonzero(arrivals.eligible)
        specs = self._known
        K, reach = max(spec.k for spec in specs), min(spec.length for spec in specs)
        left = hopeful(replace(arrivals, keys=mine, eligible=None).only(chosen), K, reach)
        eligible = np.zeros(len(mine), np.bool_)
        eligible[chosen[left]] = True
        return replace(arrivals, eligible=eligible)

    def start(self, unit: int | None) -> None:
        self.unit = unit
        super().start(unit)
        self._known = self.specs(unit)

    def refit(self, queries: dict[str, Query], unit: int | None, clock: int) -> dict[str, Any]:
        piece = super().refit(queries, unit, clock)
        self._known = self.specs(unit)
        return piece

    # --- output

    def key_columns(self, read: Any) -> dict[str, Any]:
        """The score and the keys of objects; read: a kept column of theirs."""
        columns = {key_name(i): _reported(part, read(key_name(i))) for i, part in enumerate(self.parts)}
        first = next(iter(columns.values()), None)
        size = 0 if first is None else len(first)
        score = {} if first is None else {"score": as_score(first)}
        return score | (columns if self.shown_keys and size else {})

    # --- snapshots

    def kept_types(self, types: dict[str, Any]) -> dict[str, Any]:
        return super().kept_types(types) | {key_name(i): type_ for i, type_ in enumerate(self.key_types)}

    def extra_facts(self) -> dict[str, Any]:
        if not self.labels:
            return {}
        schema = pa.schema([pa.field(key_name(i), type_) for i, type_ in enumerate(self.key_types)])
        return {"keys": base64.b64encode(schema.serialize().to_pybytes()).decode()}

    def restore_facts(self, facts: dict[str, Any]) -> None:
        if not self.labels:
            return
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(facts["keys"])))
        self.key_types = [field.type for field in schema]
        known = len(self.key_types) == len(self.parts)
        require(known and all(pa.types.is_null(one) or is_key(one) for one in self.key_types), "keys have an order")


def rule_of(query: Any, unit: int | None, *, keyed: bool) -> dict[str, Any]:
    """What SORTED is asked besides k and the window's length."""
    gap = query.window.gap(unit) if isinstance(query.window, Session) else 0
    return {
        "offset": getattr(query, "offset", 0),
        "gap": gap,
        "oldest": getattr(query, "ties", "newest") == "oldest",
        "ties": getattr(query, "with_ties", False),
        "distinct": DISTINCT[getattr(query, "distinct", None)],
        "keyed": keyed,
        "limits": isinstance(getattr(query, "k", None), str),
    }


DISTINCT = {None: 0, "best": 1, "last": 2}


def key_name(i: int) -> str:
    """The column of a key in changes, answers and kept columns."""
    return f"key_{i + 1}"


def _reported(part: Scoring, column: Any) -> Any:
    """A key as it is reported: distances are ranked by their squares."""
    if plain_column(part) is not None or not pa.types.is_float64(column.type):
        return column
    values = np.array(column.fill_null(np.nan).to_numpy(zero_copy_only=False))
    with np.errstate(all="ignore"):
        shown = as_arrow(part.score(values))
    return shown if not column.null_count else pa.compute.if_else(column.is_null(), None, shown)
