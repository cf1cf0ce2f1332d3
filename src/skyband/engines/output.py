"""What an adapter tells: the engine's changes and answers as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import Answer, Changes, Engine, Spec
from skyband.query.options import Options
from skyband.query.scoring import scoring_of
from skyband.tables.changes import of_pair
from skyband.tables.columns import KeptColumns, as_arrow
from skyband.tables.groups import Groups
from skyband.tables.input import from_times
from skyband.tables.push import BEGINNING, Push

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Objects:
    """Some of an engine's objects."""

    serial: Ints
    stamp: Ints


class Reporting:
    """An engine's queries, and what is told of its objects."""

    by: Any
    descending: bool
    timed: bool
    groups: Groups
    options: Options
    queries: dict[str, Any]  # of one kind, in order of registration
    counts: Ints  # the next number, by lane and group
    lengths: list[int]  # of each lane: queries with one window length number arrivals alike
    lanes: Ints  # of each query
    moments: Ints  # count windows: the time of each group's last arrival
    stepped: Ints  # while a batch with deletions goes on: of each group's last step
    kept_columns: KeptColumns
    engine: Engine | None

    @property
    def deletable(self) -> bool:
        """Are its objects deleted by id?"""
        raise NotImplementedError

    def asked(self, unit: int | None) -> tuple[Spec, ...]:
        """The queries as the engine sees them."""
        raise NotImplementedError

    # --- changes

    def _columns(
        self, changes: Changes, push: Push, told: dict[str, Any], numbers: Ints, before: Ints
    ) -> dict[str, Any]:
        lanes = self.lanes[changes.query] if len(self.lengths) > 1 else np.zeros(len(changes.query), np.int64)
        idle = changes.row < 0
        at = changes.instant  # count windows: the number of the step's arrival
        if self.timed or self.deletable or idle.any():
            at = before[lanes, changes.group] - 1
            at[~idle] = numbers[lanes[~idle], changes.row[~idle]]
        when = changes.instant
        if not self.timed and push.times is not None:
            when = self.moments[changes.group]
            if len(self.stepped):
                when = np.where(self.stepped > BEGINNING, self.stepped, self.moments)[changes.group]
            when[~idle] = moments(push)[changes.row[~idle]]
        return self._piece(changes, at, when, lanes, told, push.serial)

    def _piece(
        self, changes: Changes, at: Ints, when: Ints, lanes: Ints, told: dict[str, Any] | None, first: int
    ) -> dict[str, Any]:
        columns = {
            "query": changes.query,
            **self._keys(changes.group),
            "at": as_arrow(at),
            "score": as_arrow(self.reported(changes.key)),
            "diff": as_arrow(changes.diff),
            "first": as_arrow(changes.first),
            **self._doubts(changes),
        }
        if changes.rank is not None:
            columns["rank"] = _but_for(changes.rank, changes.rank == 0)
        if self.options.time is not None:
            type_ = told["time"].type if told else self.kept_columns.columns["time"].type
            columns["time"] = from_times(when, type_)
        return columns | self._members(changes, ("id", *self.options.kept), lanes, told, first)

    def _keys(self, groups: Ints) -> dict[str, Any]:
        """The `per` columns of these groups."""
        return {name: kept.take(groups) for name, kept in zip(self.groups.names, self.groups.columns, strict=False)}

    def _doubts(self, of: Changes | Answer) -> dict[str, Any]:
        return {} if of.probability is None else {"probability": as_arrow(of.probability)}

    def _members(
        self, of: Changes | Answer, names: tuple[str, ...], lanes: Ints, told: dict[str, Any] | None, first: int
    ) -> dict[str, Any]:
        """What is told of these objects, or of both members of these pairs."""
        newer = Objects(of.serial, of.stamp)
        if of.older is None or of.older_stamp is None:
            return {name: self._told(name, newer, lanes, told, first) for name in names}
        columns, older = {}, Objects(of.older, of.older_stamp)
        for name in names:
            a, b = of_pair(name)
            columns[a] = self._told(name, older, lanes, told, first)
            columns[b] = self._told(name, newer, lanes, told, first)
        return columns

    def _told(self, name: str, of: Objects, lanes: Ints, told: dict[str, Any] | None, first: int) -> Any:
        """What is told of these objects; ids that nobody named are their own numbers."""
        fresh = told or {}
        if name != "id" or self.options.id is not None:
            return self.kept_columns.read(name, of.serial, fresh.get(name), first)
        if not self.timed:
            return as_arrow(of.stamp)
        columns = [f"number{lane}" for lane in range(len(self.lengths))]
        found = [
            self.kept_columns.read(column, of.serial, fresh.get(column), first).cast(pa.int64()) for column in columns
        ]
        return as_arrow(np.stack([np.asarray(numbers) for numbers in found])[lanes, np.arange(len(of.serial))])

    def _at_rest(
        self, changes: Changes, clock: int, moments: Ints | None = None, *, deleted: bool = False
    ) -> dict[str, Any]:
        """Changes between two pushes: at the last arrival of each group, or at the clock."""
        lanes = self.lanes[changes.query]
        at = wider(self.counts, self.groups.total)[lanes, changes.group] - 1
        known = self.moments if moments is None else moments
        when = np.full(len(at), clock) if self.timed or deleted or not len(known) else known[changes.group]
        return self._piece(changes, at, when, lanes, None, 0)

    def _turned(self, key: Floats) -> Floats:
        """From scores to engine's keys, where larger is better, and back."""
        return key if self.descending else -key

    def reported(self, key: Floats) -> Floats:
        """The score that belongs to what objects are ranked by."""
        value = self._turned(key)
        return scoring_of(self.by).score(value)

    # --- answers

    def _place(self, name: str) -> int:
        return list(self.queries).index(name)

    def now(self, clock: int) -> Ints:
        """Per group: the clock, or the number of the last arrival."""
        return np.full(self.groups.total, clock) if self.timed else wider(self.counts, self.groups.total)[0] - 1

    def answer(self, name: str, asked: Spec, clock: int, groups: Ints | None) -> dict[str, Any]:
        """The current answers of these groups (None: all) as columns."""
        if self.engine is None:
            return {}
        query = self._place(name)
        ranked = self.engine.answer(query, asked, self.now(clock), groups)
        columns = {
            **self._keys(ranked.group),
            "rank": as_arrow(ranked.rank),
            "score": as_arrow(self.reported(ranked.key)),
            **self._doubts(ranked),
        }
        lanes = np.full(len(ranked.serial), self.lanes[query])
        if self.options.time is not None:
            columns["time"] = self._told("time", Objects(ranked.serial, ranked.stamp), lanes, None, 0)
        return columns | self._members(ranked, ("id", *self.options.kept), lanes, None, 0)

    def retract(
        self, name: str, unit: int | None, clock: int, groups: Ints | None = None, when: Ints | None = None
    ) -> dict[str, Any]:
        """The whole answer of a query leaves, in these groups (None: all), at their moments if they have one."""
        if self.engine is None:
            return {}
        query = self._place(name)
        ranked = self.engine.answer(query, self.asked(unit)[query], self.now(clock), groups)
        size = len(ranked.serial)
        changes = Changes(
            query=np.full(size, query),
            group=ranked.group,
            row=np.full(size, -1),
            instant=np.full(size, clock),
            stamp=ranked.stamp,
            serial=ranked.serial,
            key=ranked.key,
            diff=np.full(size, -1, np.int8),
            first=np.zeros(size, np.bool_),
            alive=np.empty(0, np.bool_),
            older=ranked.older,
            older_stamp=ranked.older_stamp,
            rank=self._held_ranks(query, unit, ranked),
            probability=ranked.probability,
        )
        return self._at_rest(changes, clock, when) if size else {}

    def _held_ranks(self, query: int, unit: int | None, ranked: Answer) -> Ints | None:
        """Where the rank is part of the answer: the ranks held."""
        return ranked.rank if self.asked(unit)[query].semantics == "u-kranks" else None


def _but_for(values: Ints, null: NDArray[np.bool_]) -> Any:
    """Numbers as Arrow, with nulls in these places."""
    valid = pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(values), [valid, pa.py_buffer(np.ascontiguousarray(values))])


def moments(push: Push) -> Ints:
    """The time of each row's step, where windows do not go by time: its own, but the clock of a deletion."""
    assert push.times is not None
    if push.deletes is None or push.clocks is None:
        return push.times
    return np.where(push.deletes, push.clocks, push.times)


def wider(counts: Ints, total: int, fill: int = 0) -> Ints:
    """Room for so many groups, in the last dimension."""
    more = total - counts.shape[-1]
    return counts if more <= 0 else np.concatenate([counts, np.full((*counts.shape[:-1], more), fill)], axis=-1)
