"""The loop of one query set in one shard; and `forget`: silent groups of windows that do not go by time are dropped.

A group is silent from its last arrival on (a deletion is none). When the clock, or its own next row, is `forget` or
more later, the group is forgotten: its answer leaves, at the moment when that time was up, and whatever arrives
afterwards begins anew, from number 0. So it does not matter how a stream in order is cut into triggers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.monitor.loop import Loop
from skyband.monitor.snapshot import cut, describe, join, restore
from skyband.monitor.sources import all_queries, in_order
from skyband.monitor.state import State
from skyband.monitor.subscriptions import close_gaps
from skyband.query.kinds import Query
from skyband.query.windows import Last
from skyband.spark.plan import QuerySet, old_name
from skyband.tables.columns import as_arrow, plain
from skyband.tables.input import Batch, times
from skyband.tables.push import BEGINNING, what_rows_do

Ints = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max


class SetLoop:
    """The loop of a query set during a trigger: pushes rows, and forgets groups in between."""

    def __init__(self, loop: Loop, query_set: QuerySet, forget: str | int | None) -> None:
        self.loop, self.query_set, self.per = loop, query_set, query_set.per
        self.forget = forget if query_set.can_forget else None
        self.gone: Ints = np.empty(0, np.int64)  # groups that are forgotten at the end

    @classmethod
    def of(cls, state: State, query_set: QuerySet, forget: str | int | None) -> Self:
        """Resume from stored state."""
        return cls(Loop(state, settles=bool(query_set.root)), query_set, forget)

    @classmethod
    def begin(
        cls,
        query_set: QuerySet,
        forget: str | int | None,
        queries: dict[str, Query],
        options: dict[str, Any],
        clock: Any,
    ) -> Self:
        """Start with queries that have seen nothing, at the stream's clock (None: no row has come yet)."""
        loop = Loop.of(queries, settles=bool(query_set.root), **options)
        if clock is not None:
            loop.push({}, to=clock)
        return cls(loop, query_set, forget)

    @property
    def state(self) -> State:
        return self.loop.state

    @property
    def queries(self) -> dict[str, Query]:
        return all_queries(self.loop.state)

    def set_queries(self, queries: dict[str, Query], carried: Mapping[str, str]) -> list[pa.Table]:
        """Drop and add queries; those with the same name and value stay. Returns what enters with the carried.

        carried: new name -> the old query with whose state it begins, which is here under `old_name`.
        """
        lent = {name: old_name(old) for name, old in carried.items() if old_name(old) in self.queries}
        entering = [self.loop.queries.add_from(lent[name], name, queries[name]) for name in queries if name in lent]
        standing = self.queries
        gone = {name: query for name, query in standing.items() if name not in queries}
        for name in reversed(in_order(gone)):  # who asks over answers goes first
            self.loop.queries.drop(name)
        for name in in_order({name: query for name, query in queries.items() if name not in self.queries}):
            self.loop.queries.add(name, queries[name])
        if self.query_set.root:
            self.state.order[:] = queries
        return entering

    def set_block(self, shard: int, shards: int) -> None:
        """Score only this shard's share of the pairs."""
        for adapter in self.state.standing():
            adapter.block = (shard, shards)

    def expect(self, pieces: list[pa.Table]) -> None:
        """Prepare for rows that will be pushed in several slices of one batch."""
        self.loop.queries.prepare(map(Batch, pieces))

    def answers_among(self, name: str, changes: pa.Table) -> pa.Table:
        """The answers of a query in the groups that changed and are not forgotten."""
        return self.loop.answers_among(name, changes, but=self.gone)

    def answers(self, pieces: list[pa.Table]) -> Iterator[pa.Table]:
        """The answers, at the end, of the groups that changed and are not forgotten; query by query."""
        whole = pa.concat_tables(pieces, promote_options="default") if pieces else None
        for name, mine in () if whole is None else by_query(whole, self.queries):
            answer = self.answers_among(name, mine)
            yield answer.add_column(0, "query", pa.array([name] * answer.num_rows, pa.string()))

    def push(self, rows: Any, to: Any, *, more: bool) -> Iterator[pa.Table]:
        """Push rows and move the clock to `to`; yields the changes, some at a time. more: the batch goes on."""
        if self.forget is None:
            yield self.loop.push(rows, to=to, more=more)
            return
        rounds = self._rounds(rows)
        begin = latest = self.state.clock
        for number, part in enumerate(rounds):
            last = number == len(rounds) - 1
            if number:
                returning = np.unique(self._codes(part))
                yield self.loop.retract_groups(returning, self.dues())
                self._drop(returning)
            self.state.clock = begin  # deletions report it: rounds are independent of each other
            yield self.loop.push(part, to=to if last else None, more=last and more)
            latest = max(latest, self.state.clock)
        self.state.clock = latest
        if not more:
            dues = self.dues()
            self.gone = np.flatnonzero(dues <= self.state.clock)
            if len(self.gone):
                yield self.loop.retract_groups(self.gone, dues)

    def dues(self) -> Ints:
        """Per group: when it will be forgotten; at once, if only dropped queries have seen its arrivals."""
        last = self._last()
        return np.full(len(last), NEVER) if self.forget is None or not len(last) else last + self._length()

    def _length(self) -> int:
        window = Last(span=self.forget) if isinstance(self.forget, int) else Last(self.forget)
        return window.length(self.state.unit)

    def _last(self) -> Ints:
        """Per group: the time of its last arrival."""
        (groups,) = self.state.groups.values()
        last = np.full(groups.total, BEGINNING)
        for adapter in self.state.standing():
            known = adapter.numbering.last_times
            last[: len(known)] = np.maximum(known, last[: len(known)])
        return last

    def _rounds(self, rows: Any) -> list[Any]:
        """The rows in rounds between which their groups must be forgotten."""
        state = self.state
        if not len(rows):
            return [rows]
        time = state.options.time
        assert time is not None
        state.types.setdefault(time, rows.schema.field(time).type)
        moments = times(plain(rows.column(time)), 0)[0]
        codes = self._codes(rows)
        order = np.argsort(codes, kind="stable")
        begins = np.flatnonzero(np.diff(codes[order], prepend=-1))
        before = self._before(rows, moments, order, begins, self._last()[codes[order][begins]])
        gaps = np.cumsum((before != BEGINNING) & (moments[order] - before >= self._length()))
        earlier = np.append(0, gaps[begins[1:] - 1])  # gaps of the groups before it
        rounds = np.empty(len(codes), np.int64)
        rounds[order] = gaps - np.repeat(earlier, np.diff(np.append(begins, len(codes))))
        if not rounds.any():
            return [rows]
        return [rows.filter(as_arrow(rounds == number)) for number in range(int(rounds.max()) + 1)]

    def _before(self, rows: Any, moments: Ints, order: Ints, begins: Ints, last: Ints) -> Ints:
        """Per row, in this order by group: the time of its group's arrival before it; a deletion is none."""
        before = np.roll(moments[order], 1)
        before[begins] = last
        if (op := self.state.options.op) is not None:
            deletes, _ = what_rows_do(plain(rows.column(op)))
            arrives = np.roll(~deletes[order], 1)  # whether the row before it is an arrival
            arrives[begins] = True
            before = before[np.maximum.accumulate(np.where(arrives, np.arange(len(arrives)), 0))]
        return before

    def _codes(self, rows: Any) -> Ints:
        (groups,) = self.state.groups.values()
        return groups.codes([plain(rows.column(name)) for name in self.per], len(rows))

    def _drop(self, codes: Ints) -> None:
        state = self.state
        (groups,) = state.groups.values()
        kept = np.setdiff1d(np.arange(groups.total), codes)
        close_gaps(state)
        cells = cut(state, groups, kept, np.array([0, len(kept)]))
        queries = {name: adapter.queries[name] for name, adapter in state.adapters.items()}
        self.loop = Loop(restore(*describe(state), lambda name, saved: queries.get(name, saved)))
        (fresh,) = self.state.groups.values()
        join(self.state, fresh, cells)


def by_query(changes: pa.Table, names: Iterable[str]) -> Iterator[tuple[str, pa.Table]]:
    """The changes of each query that has some."""
    for name in names:
        mine = changes.filter(pc.equal(changes.column("query").cast(pa.string()), name))
        if mine.num_rows:
            yield name, mine
