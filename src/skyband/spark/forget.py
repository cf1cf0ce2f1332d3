"""`forget`: groups of count windows that have been silent for a time are dropped.

A group is silent from its last arrival on (a deletion is none). When the clock, or its own next row, is `forget` or
more later, the group is forgotten: its answer leaves, at the moment when that time was up, and whatever arrives
afterwards begins anew, from number 0. So it does not matter how a stream in order is cut into triggers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.monitor.loop import Loop
from skyband.monitor.snapshot import cut, describe, join, restore
from skyband.query.windows import Last
from skyband.spark.plan import Family
from skyband.tables.columns import as_arrow, plain
from skyband.tables.input import times
from skyband.tables.push import BEGINNING, what_rows_do

Ints = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max


class Forgetting:
    """Pushes to a family's Loop, and forgets in between."""

    def __init__(self, monitor: Loop, family: Family, forget: str | int | None) -> None:
        self.monitor, self.family, self.per = monitor, family, family.per
        self.forget = None if family.timed or not family.per else forget
        self.gone: Ints = np.empty(0, np.int64)  # groups that are forgotten at the end

    def push(self, rows: Any, to: Any, *, more: bool) -> Iterator[Any]:
        """The changes of a push, some at a time."""
        if self.forget is None:
            yield self.monitor.push(rows, to=to, more=more)
            return
        lives = self._lives(rows)
        begin = latest = self.monitor.state.clock
        for number, life in enumerate(lives):
            last = number == len(lives) - 1
            if number:
                returning = np.unique(self._codes(life))
                yield self.monitor.retract_groups(returning, self.dues())
                self._drop(returning)
            self.monitor.state.clock = begin  # which deletions tell: rounds know nothing of each other
            yield self.monitor.push(life, to=to if last else None, more=last and more)
            latest = max(latest, self.monitor.state.clock)
        self.monitor.state.clock = latest
        if not more:
            dues = self.dues()
            self.gone = np.flatnonzero(dues <= self.monitor.state.clock)
            if len(self.gone):
                yield self.monitor.retract_groups(self.gone, dues)

    def dues(self) -> Ints:
        """Per group: when it will be forgotten; at once, if queries that are gone have seen all its arrivals."""
        last = self._last()
        return np.full(len(last), NEVER) if self.forget is None or not len(last) else last + self._length()

    def _length(self) -> int:
        window = Last(span=self.forget) if isinstance(self.forget, int) else Last(self.forget)
        return window.length(self.monitor.state.unit)

    def _last(self) -> Ints:
        """Per group: the time of its last arrival."""
        (groups,) = self.monitor.state.groups.values()
        last = np.full(groups.total, BEGINNING)
        for adapter in self.monitor.state.standing():
            last[: len(adapter.numbering.last_times)] = np.maximum(
                adapter.numbering.last_times, last[: len(adapter.numbering.last_times)]
            )
        return last

    def _lives(self, rows: Any) -> list[Any]:
        """The rows, in rounds between which their groups must be forgotten."""
        state = self.monitor.state
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
        earlier = np.append(0, gaps[begins[1:] - 1])  # in groups that come first
        life = np.empty(len(codes), np.int64)
        life[order] = gaps - np.repeat(earlier, np.diff(np.append(begins, len(codes))))
        return (
            [rows.filter(as_arrow(life == number)) for number in range(int(life.max()) + 1)] if life.any() else [rows]
        )

    def _before(self, rows: Any, moments: Ints, order: Ints, begins: Ints, last: Ints) -> Ints:
        """Of each row, in this order by group, the time of its group's arrival before it; a deletion is none."""
        before = np.roll(moments[order], 1)
        before[begins] = last
        if (op := self.monitor.state.options.op) is not None:
            deletes, _ = what_rows_do(plain(rows.column(op)))
            told = np.roll(~deletes[order], 1)  # does the row before it say more than the one before that?
            told[begins] = True
            before = before[np.maximum.accumulate(np.where(told, np.arange(len(told)), 0))]
        return before

    def _codes(self, rows: Any) -> Ints:
        (groups,) = self.monitor.state.groups.values()
        return groups.codes([plain(rows.column(name)) for name in self.per], len(rows))

    def _drop(self, codes: Ints) -> None:
        state = self.monitor.state
        (groups,) = state.groups.values()
        kept = np.setdiff1d(np.arange(groups.total), codes)
        cells = cut(state, groups, kept, np.array([0, len(kept)]))
        queries = {name: adapter.queries[name] for name, adapter in state.adapters.items()}
        self.monitor.state = restore(*describe(state), lambda name, _: queries[name])
        (fresh,) = self.monitor.state.groups.values()
        join(self.monitor.state, fresh, cells)
