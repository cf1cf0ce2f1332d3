"""`forget`: groups of count windows, `UntilDeleted()` and `Ever()` that have been silent for so long are dropped.

A group is silent from its last arrival on (a deletion is none). When the clock, or its own next row, is `forget` or
more later, the group is forgotten: its answer leaves, at the moment when that time was up, and whatever arrives
afterwards begins anew, from number 0. A batch in which a group is silent for so long between two of its rows is taken
in parts, so it does not matter how a stream in order is cut into batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.monitor.examination import Examined, examine
from skyband.monitor.state import State
from skyband.tables.columns import as_arrow
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import BEGINNING

if TYPE_CHECKING:
    from skyband.monitor.loop import Loop

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Forget:
    """Pushes the batches of a loop, and forgets groups in between."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self._due: dict[tuple[str, ...], int] = {}  # by `per`: no group is forgotten before this instant

    @property
    def state(self) -> State:
        return self.loop.state

    def push(self, batch: Batch, to: Any, more: bool) -> pa.Table:
        """Take a batch; more: it goes on with the next one."""
        if batch.rows:
            self.loop.queries.prepare([batch])
        with self.state.new_groups():
            ahead = self._ahead(batch)  # whatever is wrong with the batch is found before anything changes
            if ahead is not None and self.state.options.invalid == "raise":
                ahead[0].raise_invalid("row {}".format)
                if any(adapter.revalidates for adapter in ahead[0].standing):
                    twin = type(self.loop)(deepcopy(self.state))  # a part may be refused because of an earlier one
                    assert twin.forget is not None
                    twin.forget._take(batch, ahead, to, more)
        with self.state.commit:
            return self._take(batch, ahead, to, more)

    def _ahead(self, batch: Batch) -> tuple[Examined, int] | None:
        """The batch as the queries see it, and how many of its rows to take at once; None: it has none."""
        if not batch.rows:
            return None
        examined = examine(self.state, batch)
        return examined, self._end(examined)

    def _take(self, left: Batch, ahead: tuple[Examined, int] | None, to: Any, more: bool) -> pa.Table:
        tables: list[pa.Table] = []
        while ahead is not None:
            examined, end = ahead
            if end == left.rows:
                tables += self._returning(examined)
                break
            part, left = Batch(left.table.slice(0, end)), Batch(left.table.slice(end))
            tables += self._returning(examine(self.state, part))
            tables.append(self.loop.push_whole(part, None, False))
            ahead = self._ahead(left)
        tables.append(self.loop.push_whole(left, to, more))
        return self.joined(tables if more else [*tables, *self.silent()])

    def joined(self, tables: list[pa.Table]) -> pa.Table:
        """One table of changes, by query in order of registration."""
        tables = [table for table in tables if table.num_rows] or tables[-1:]
        if len(tables) == 1:
            return tables[0]
        places = np.concatenate([np.asarray(chunk.indices) for one in tables for chunk in one.column("query").chunks])
        whole = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
        return whole.take(as_arrow(np.argsort(places, kind="stable"))).combine_chunks()

    def silent(self) -> Iterator[pa.Table]:
        """Forget the groups that have been silent for too long by the clock."""
        state, unit = self.state, self.state.unit
        if state.options.time not in state.types:
            return
        length = state.options.silence(unit)
        for groups, adapters in self._groups():
            if self._due.get(groups.names, BEGINNING) > state.clock:
                continue
            last = self._last(groups, adapters)
            there = last > BEGINNING
            gone = np.flatnonzero(there & (last + length <= state.clock))
            if len(gone):
                yield self._forget(adapters, gone, last + length)
                there[gone] = False
            self._due[groups.names] = int((last[there] + length).min(initial=np.iinfo(np.int64).max))

    def _groups(self) -> list[tuple[Groups, list[Adapter]]]:
        """The groups of each `per` with the adapters of windows that do not go by time."""
        untimed = [adapter for adapter in self.state.standing() if adapter.numbering.dated and adapter.groups.names]
        each = {id(adapter.groups): adapter.groups for adapter in untimed}.values()
        return [(groups, [adapter for adapter in untimed if adapter.groups is groups]) for groups in each]

    def _last(self, groups: Groups, adapters: list[Adapter]) -> Ints:
        """By group: the time of its last arrival."""
        last = np.full(groups.total, BEGINNING)
        for adapter in adapters:
            known = adapter.numbering.last_times
            last[: len(known)] = np.maximum(known, last[: len(known)])
        return last

    def _forget(self, adapters: list[Adapter], codes: Ints, dues: Ints) -> pa.Table:
        """Drop groups; returns the changes by which their answers leave, each when it was due."""
        state = self.state
        codes = codes[np.argsort(dues[codes], kind="stable")]
        each = [(adapter, name) for adapter in adapters for name in adapter.queries]
        pieces = [adapter.retract(name, state.unit, state.clock, codes, dues) for adapter, name in each]
        changes = state.changes(pieces, [adapter for adapter, _ in each])
        for adapter in adapters:
            adapter.forget_groups(codes)
        return changes

    # --- groups that return within a batch

    def _gaps(self, examined: Examined, groups: Groups, adapters: list[Adapter]) -> tuple[Ints, Ints, Ints]:
        """The rows before which their group was silent for too long, its row before each (-1: none), and its code."""
        none = np.empty(0, np.int64)
        if examined.times is None:
            return none, none, none
        length = self.state.options.silence(examined.unit)
        both = list(zip(examined.standing, examined.validated, strict=True))
        mine = [self._arriving(adapter, one.accepted, examined) for adapter, one in both if adapter in adapters]
        rows = np.flatnonzero(np.logical_or.reduce(mine))
        if not len(rows):
            return none, none, none
        mark, known = groups.mark(), self._last(groups, adapters)
        columns = [examined.per[name].take(as_arrow(rows)) for name in groups.inputs]
        codes = groups.codes(columns, len(rows))
        groups.revert(mark)
        order = np.argsort(codes, kind="stable")
        rows, codes = rows[order], codes[order]
        begins = np.diff(codes, prepend=-1) != 0
        before = np.where(begins, -1, np.append(-1, rows[:-1]))
        known = np.append(known, BEGINNING)[np.minimum(codes, len(known))]
        times = examined.times[rows]
        if any(adapter.revalidates for adapter in adapters):  # any row but the first of a group may yet be rejected
            first = np.maximum.accumulate(np.where(begins, np.arange(len(rows)), 0))
            returns = (known > BEGINNING) & (times[first] - known >= length)
            last = np.where((known > BEGINNING) & (~returns | begins), known, np.where(begins, BEGINNING, times[first]))
        else:
            if examined.deletes is not None:  # of the rows before it, the last that is no deletion, or none
                holds = begins | np.append(True, ~examined.deletes[rows[:-1]])
                before = before[np.maximum.accumulate(np.where(holds, np.arange(len(rows)), 0))]
            last = np.where(before < 0, known, examined.times[before])
        gap = (last > BEGINNING) & (times - last >= length)
        self._note(groups, examined.times[rows], length)
        return rows[gap], before[gap], codes[gap]

    def _arriving(self, adapter: Adapter, accepted: Bools, examined: Examined) -> Bools:
        """The accepted rows that are not dropped as late."""
        assert examined.times is not None
        if not adapter.timed or self.state.options.late == "accept" or not len(accepted):
            return accepted
        clocks = np.maximum.accumulate(np.where(examined.accepted, examined.times, BEGINNING))
        return adapter.timely(accepted, np.maximum(clocks, self.state.clock) - examined.times, examined.unit)

    def _note(self, groups: Groups, times: Ints, length: int) -> None:
        """Arrivals with these times come."""
        if groups.names in self._due and len(times):
            self._due[groups.names] = min(self._due[groups.names], int(times.min()) + length)

    def _end(self, examined: Examined) -> int:
        """How many rows to take at once, so that no group is silent for too long between two of them."""
        end = len(examined.accepted)
        for groups, adapters in self._groups():
            rows, before, _ = self._gaps(examined, groups, adapters)
            end = min(end, int(rows[before >= 0].min(initial=end)))
        return end

    def _returning(self, examined: Examined) -> list[pa.Table]:
        """Forget the groups of a part that return after they have been silent for too long."""
        tables = []
        for groups, adapters in self._groups():
            _, _, codes = self._gaps(examined, groups, adapters)
            if len(codes := np.unique(codes)):
                dues = self._last(groups, adapters) + self.state.options.silence(self.state.unit)
                tables.append(self._forget(adapters, codes, dues))
        return tables
