"""BLOCK, the strict k-skyband fed by blocks of arrivals (ours; the buffer is that of pripuzic2015, section 5).

Keeps exactly the k-skyband, as SA does, but most arrivals never reach it: a batch is a buffer, and an arrival with K
better ones before it and K better ones after it in the batch can never be an answer (kernels/lookahead.py).

Cost: two comparisons for an arrival that is left out, O(K) amortised for one that is not; in random order
2K·(1 + ln(b/2K)) of a block of b are not.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Arrivals, Bools, Changes
from skyband.engines.grouped import ordered_changes_of_one, visit_of_one
from skyband.engines.topk.base import Records, SkybandEngine, hopeful_of_one, thin
from skyband.engines.topk.kernels.lookahead import mark_hopeless
from skyband.kernels.records import ARRIVAL


class BLOCK(SkybandEngine):
    """The strict k-skyband of every group, fed with what the look-ahead leaves of a batch."""

    name = "BLOCK"

    def take(self, arrivals: Arrivals) -> Changes:
        if arrivals.total > 1 or not len(arrivals.keys) or not arrivals.in_time:
            return super().take(arrivals)
        self._grow(1)  # one group: only what stays is laid out
        chosen = hopeful_of_one(arrivals, *self._limits, self.net)
        taken = np.empty(len(chosen), ARRIVAL)
        taken["key"], taken["row"] = arrivals.keys[chosen], arrivals.rows_at(chosen)
        taken["stamp"] = taken["now"] = arrivals.stamps_at(chosen)
        visit, alive = visit_of_one(self, len(taken), arrivals), np.zeros(arrivals.size, np.bool_)
        out = self._take(taken, visit, alive, arrivals.serial, arrivals.more, net=self.net)
        out = self._due_now(out[: self.tally[1]], visit, arrivals.more)
        return ordered_changes_of_one(self, out, visit, arrivals, alive)

    def _feed(self, chosen: Records, slices: Records, alive: Bools, serial: int, more: bool) -> Records:
        hopeless = np.zeros(len(chosen), np.bool_)
        mark_hopeless(chosen, slices, *self._limits, self.net, hopeless)
        return super()._feed(*thin(chosen, slices, ~hopeless), alive, serial, more)

    @property
    def _limits(self) -> tuple[int, int]:
        """The K of the skyband, and the shortest window."""
        return int(self.queries["k"].max()), int(self.queries["length"].min())
