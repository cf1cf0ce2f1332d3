"""SLA, the sorted list algorithm (haghani2009, section 3.1).

Idea: keep every valid row; a sorted list for each stream (part), and the best objects materialised, some more than k
(k_max). When fewer than k of these are left, the threshold algorithm fills them anew from the tops of the lists.

Cost: O(n) for an arrival in arrays, and all of the window is kept: it is the baseline that the others are held
against. The lists have one entry for an object and a part, by the value that the part counts (section 5: with
`repeat` the aggregated one). Where `k_max` is k + max(k, 16).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.contract import Arrivals, Bools, Ints
from skyband.engines.incomplete.assembly import Parts
from skyband.engines.incomplete.base import Records, within
from skyband.engines.incomplete.kernels.assembly import Columns
from skyband.engines.incomplete.kernels.sla import FULL, Sorted, sort_all, take_sorted


class SLA(Parts):
    """All rows of every group, in sorted lists."""

    name = "SLA"

    def _empty(self) -> None:
        self._clear_lists()
        self.seen, self.listed = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        super()._empty()

    def _clear_lists(self) -> None:
        self.sorted = np.zeros(0, np.int32)
        self.starts, self.rooms, self.sizes = (np.zeros(0, np.int64) for _ in range(3))

    def _more_room(self, rows: int, things: int) -> None:
        super()._more_room(rows, things)
        self.seen = np.concatenate([self.seen, np.zeros(things, np.int64)])
        self.listed = np.concatenate([self.listed, np.zeros(len(self.values) - len(self.listed), np.bool_)])

    def _grow(self, total: int) -> None:
        super()._grow(total)
        more = len(self.fronts) * self.d - len(self.sizes)
        if more > 0:
            self.starts = np.concatenate([self.starts, np.full(more, len(self.sorted))])
            self.rooms, self.sizes = (
                np.concatenate([array, np.zeros(more, np.int64)]) for array in (self.rooms, self.sizes)
            )

    def _make_room(self, reason: int, out: Records) -> Records:
        if reason != FULL:
            return super()._make_room(reason, out)
        rooms = np.where(self.sizes == self.rooms, np.maximum(8, 2 * self.rooms), self.rooms)
        starts, run = np.cumsum(rooms) - rooms, within(self.sizes)
        moved = np.zeros(int(rooms.sum()), np.int32)
        moved[np.repeat(starts, self.sizes) + run] = self.sorted[np.repeat(self.starts, self.sizes) + run]
        self.sorted, self.starts, self.rooms = moved, starts, rooms
        return out

    @property
    def sorting(self) -> Sorted:
        return Sorted(self.sorted, self.starts, self.rooms, self.sizes, self.listed, self.seen, np.zeros(self.d))

    def _kernel(self, columns: Columns, visits: Records, alive: Bools, arrivals: Arrivals, out: Any, step: Any) -> int:
        reason: int = take_sorted(
            self.store,
            self.recipe,
            self.sorting,
            self.views,
            self.queries,
            columns,
            visits,
            alive,
            arrivals.serial,
            not self.timed,
            self.net,
            arrivals.more,
            self.repeat,
            out,
            step,
        )
        return reason

    def _rebuild(self, now: Ints) -> None:
        super()._rebuild(now)
        self._clear_lists()
        self.seen, self.listed = np.zeros(len(self.things), np.int64), np.zeros(len(self.values), np.bool_)
        runs = len(self.fronts) * self.d
        self.rooms = np.repeat(self.packs["size"], len(self.views) * self.d)
        self.starts, self.sizes = np.cumsum(self.rooms) - self.rooms, np.zeros(runs, np.int64)
        self.sorted = np.zeros(int(self.rooms.sum()), np.int32)
        if len(self.packs):
            sort_all(self.store, self.recipe, self.sorting, self.views)

    def check(self) -> None:
        super().check()
        V = len(self.views)
        for run, size in enumerate(self.sizes):
            view, part = run // self.d % V, run % self.d
            things = self.sorted[self.starts[run] : self.starts[run] + size].astype(np.int64)
            values = self.values[(things * V + view) * self.d + part]
            assert (np.diff(values) >= 0).all() and len(set(things.tolist())) == size, "sorted, each once"
            assert self.listed[(things * V + view) * self.d + part].all()
            assert (self.things["group"][things] == run // self.d // V).all()
        live = np.repeat(self.things["group"] >= 0, V * self.d)
        assert self.listed[live].sum() == self.sizes.sum(), "who is listed is in a list"
