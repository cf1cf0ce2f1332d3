"""SLA, the sorted list algorithm (haghani2009, section 3.1).

Idea: keep every valid row; a sorted list for each stream (part), and the best objects materialised, some more than k
(k_max, here k + max(k, 16): the front). When fewer than k of these are left, the threshold algorithm fills them again
from the tops of the lists.

Cost: O(n) for an arrival in arrays, and all of the window is kept: it is the baseline for the others. The lists have
one entry for an object and a part, by the value that the part counts (section 5: with `repeat` the aggregated one).
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Ints
from skyband.engines.incomplete.base import Records, laid_out
from skyband.engines.incomplete.kernels.batches import LISTS, Batch, Output
from skyband.engines.incomplete.kernels.sla import SortedLists, sort_all, take_sorted
from skyband.engines.incomplete.linked_rows import LinkedRows


class SLA(LinkedRows):
    """All rows of every group, in sorted lists."""

    name = "SLA"

    def _empty(self) -> None:
        self.sorted, self.seen, self.listed = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.bool_)
        self.starts, self.capacities, self.sizes = (np.zeros(0, np.int64) for _ in range(3))
        super()._empty()

    def _add_capacity(self, rows: int, objects: int) -> None:
        super()._add_capacity(rows, objects)
        self.seen = np.concatenate([self.seen, np.zeros(objects, np.int64)])
        self.listed = np.concatenate([self.listed, np.zeros(len(self.values) - len(self.listed), np.bool_)])

    def _add_groups(self, total: int) -> None:
        super()._add_groups(total)
        none = np.zeros(len(self.fronts) * self.d - len(self.sizes), np.int64)
        self.starts = np.concatenate([self.starts, none + len(self.sorted)])
        self.capacities, self.sizes = np.concatenate([self.capacities, none]), np.concatenate([self.sizes, none])

    def _grow(self, reason: int, batch: Batch, visits: Records, output: Output) -> Output:
        if reason == LISTS:
            full = self.sizes == self.capacities
            self.capacities = np.where(full, np.maximum(8, 2 * self.capacities), self.capacities)
            self.sorted, self.starts = laid_out(self.sorted, self.starts, self.sizes, self.capacities)
        return super()._grow(reason, batch, visits, output)

    @property
    def nbytes(self) -> int:
        lists = (self.sorted, self.seen, self.listed, self.starts, self.capacities, self.sizes)
        return super().nbytes + sum(array.nbytes for array in lists)

    @property
    def lists(self) -> SortedLists:
        return SortedLists(
            self.sorted,
            self.starts,
            self.capacities,
            self.sizes,
            self.listed,
            self.seen,
            np.zeros(self.d),
            np.zeros(self.d),
        )

    def _kernel(self, batch: Batch, visits: Records, output: Output) -> int:
        reason: int = take_sorted(self.store, self.combination, self.kernel_queries, self.lists, visits, batch, output)
        return reason

    def _rebuild(self, now: Ints) -> None:
        super()._rebuild(now)
        self.seen, self.listed = np.zeros(len(self.objects), np.int64), np.zeros(len(self.values), np.bool_)
        self.capacities = np.repeat(self.groups["size"], len(self.views) * self.d)
        self.starts, self.sizes = np.cumsum(self.capacities) - self.capacities, np.zeros_like(self.capacities)
        self.sorted = np.zeros(int(self.capacities.sum()), np.int32)
        if len(self.groups):
            sort_all(self.store, self.kernel_queries, self.lists)

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        from skyband.engines.incomplete.invariants import check_sorted_lists

        super().check(deep=deep, now=now)
        if deep:
            check_sorted_lists(self)
