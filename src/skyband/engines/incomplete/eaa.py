"""EAA, the early aggregation algorithm (haghani2009, section 3.2).

Idea: every row makes an instance of its object (section 3.2.1), which holds what the object will be when all older rows
have expired. Its current score only rises and its best score only falls, so an instance that is dominated once (a newer
instance of another object has a current score above its best one: Definition 1, section 3.2.2) stays dominated.
Instances count the distinct objects that dominate them and are dropped when there are k (Algorithms 1 and 2): what is
kept is exactly the k dominance set (Theorem 1).

Cost: O(n) for an arrival (kernels/eaa.py). Keeps a part of the window that grows linearly with it (Lemma 1).
The answer itself comes from the front that all engines here share, not from a scan of csorted.

Errata. As printed EAA is exact only if an object appears at most once ever in each stream: an attribute older than an
instance counts as 0 in its best score, but it will have expired while the instance lives, and may return; here it
counts as the highest value. Definition 1 should say t >=, or rows of one moment never dominate each other. Algorithm
2's strict < at the old value misses dominations; here the old value is included. The list of dominators' ids is
needed: counting instances instead of objects loses answers. With `repeat` every part may always return with its
highest value, so nothing is dominated and this engine keeps all rows that count. So it does where the smallest score is
best: an object would be better without a row that is dropped.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Ints
from skyband.engines.incomplete.base import NO_BATCH, Records, laid_out
from skyband.engines.incomplete.kernels.batches import ONCE, Batch, Output
from skyband.engines.incomplete.kernels.eaa import INSTANCE, Instances, take_instances, update_all
from skyband.engines.incomplete.linked_rows import LinkedRows


class EAA(LinkedRows):
    """The k dominance set of every group, by counters."""

    name = "EAA"

    def _empty(self) -> None:
        self.each, self.ids = np.zeros(0, INSTANCE), np.zeros(0, np.int32)
        self.by_best, self.by_current = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self.listed = np.zeros(0, np.int64)  # by group: how many instances are in its sorted lists
        super()._empty()

    @property
    def counts(self) -> bool:
        """Whether dominators are counted."""
        return self.repeat == ONCE and not self.combination.turned

    @property
    def k(self) -> int:
        return int(self.views["k"].max())

    def _add_capacity(self, rows: int, objects: int) -> None:
        super()._add_capacity(rows, objects)
        self.each = np.concatenate([self.each, np.zeros(rows, INSTANCE)])
        self.ids = np.concatenate([self.ids, np.zeros(rows * self.k, np.int32)])

    def _add_groups(self, total: int) -> None:
        super()._add_groups(total)
        self.listed = np.concatenate([self.listed, np.zeros(len(self.groups) - len(self.listed), np.int64)])

    def _lay_out_order(self, capacities: Ints) -> None:
        """The sorted lists of a group lie in the places of its order."""
        starts = self.groups["start"].copy()
        super()._lay_out_order(capacities)
        self.by_best, _ = laid_out(self.by_best, starts, self.listed, capacities)
        self.by_current, _ = laid_out(self.by_current, starts, self.listed, capacities)

    @property
    def nbytes(self) -> int:
        lists = (self.each, self.ids, self.by_best, self.by_current, self.listed)
        return super().nbytes + sum(array.nbytes for array in lists)

    @property
    def instances(self) -> Instances:
        return Instances(
            self.each,
            self.ids,
            self.by_best,
            self.by_current,
            self.listed,
            np.zeros(self.d),
            np.zeros(self.d),
            np.zeros(len(self.rows), np.int32),
        )

    def _kernel(self, batch: Batch, visits: Records, output: Output) -> int:
        if not self.counts:
            return super()._kernel(batch, visits, output)
        reason: int = take_instances(
            self.store, self.combination, self.kernel_queries, self.instances, visits, batch, output
        )
        return reason

    def _rebuild(self, now: Ints) -> None:
        """Besides: counters from the rows; what is dominated by now is dropped."""
        super()._rebuild(now)
        if self.counts:
            self.each, self.ids = np.zeros(len(self.rows), INSTANCE), np.zeros(len(self.rows) * self.k, np.int32)
            self.by_best, self.by_current = np.zeros(len(self.order), np.int32), np.zeros(len(self.order), np.int32)
            self.listed = np.zeros(len(self.groups), np.int64)
            update_all(self.store, self.combination, self.kernel_queries, self.instances, NO_BATCH)

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        """Besides: nothing is kept that may be dropped, but the newest rows of reported objects."""
        from skyband.engines.incomplete.invariants import check_dominance

        super().check(deep=deep, now=now)
        if deep and self.counts:
            check_dominance(self)
