"""Interval dominance where parts repeat, by a promise of how often they do (`at_most=`; haghani2009, section 5).

Idea: of a part that came c times since an instance began, at most m - c rows more can be valid while the instance is.
So its best score is bounded, and a sweep from the newest row to the oldest (as SWEEP's, when a group has grown by a
tenth) drops the instances below the current scores of k distinct newer objects.

Cost: that of linked_rows.py, and a sweep of what is kept for each tenth by which it grows.

Errata. With m - m_i as printed, m_i counts rows that are older than the instance; they will have expired while it is
valid, and m others may come. Here only the instance's own rows count. Sums are taken in another order than scores, so
bounds leave a relative slack of 1e-9: more is kept than must be, never less.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.incomplete.kernels.batches import CHANGES, WRITTEN, Batch, Output
from skyband.engines.incomplete.kernels.linked_batches import compact_group
from skyband.engines.incomplete.kernels.promised import Promise, drop_hopeless
from skyband.engines.incomplete.linked_rows import LinkedRows
from skyband.kernels.records import VISIT


class PromisedRows(LinkedRows):
    """The rows that interval dominance did not drop at the last sweep, and those since."""

    prunes = True

    def _prune(self, group: int, batch: Batch, output: Output) -> Output:
        if self.facts[WRITTEN] + self.margin > len(output.changes):
            output = self._grow(CHANGES, batch, np.empty(0, VISIT), output)
        if self.groups["dead"][group]:
            compact_group(self.store, self.kernel_queries, batch, group)
        drop_hopeless(self.store, self.combination, self.kernel_queries, self._promise(), batch, group)
        size = int(self.groups["size"][group])
        self.groups["limit"][group] = max(self.least, size + size // 10)
        return output

    def _promise(self) -> Promise:
        """What is promised, and arrays to work with."""
        size, objects = len(self.rows), len(self.objects)
        return Promise(
            int(self.register.most),
            values=np.empty(objects * self.d),
            counts=np.empty(objects * self.d, np.int32),
            held=np.empty(objects),
            gone=np.zeros(objects, np.bool_),
            dropped=np.empty(size, np.int32),
            top=np.empty(min(int(self.views["k"][0]), objects + 1)),
            work=np.empty(self.d),
        )
