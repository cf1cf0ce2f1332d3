"""BLOCK, the strict k-skyband fed by blocks of arrivals (ours; the buffer is that of pripuzic2015, section 5).

Keeps exactly the k-skyband, as SA does, but most arrivals never reach it: a batch is a buffer, and an arrival with K
better ones before it and K better ones after it in the batch can never be an answer (kernels/lookahead.py).

Cost: two comparisons for an arrival that is left out, O(K) amortised for one that is not; in random order
2K·(1 + ln(b/2K)) of a block of b are not.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Bools
from skyband.engines.topk.base import Records, SkybandEngine, thin
from skyband.engines.topk.kernels.lookahead import mark_hopeless


class BLOCK(SkybandEngine):
    """The strict k-skyband of every group, fed with what the look-ahead leaves of a batch."""

    name = "BLOCK"

    def _feed(self, chosen: Records, slices: Records, alive: Bools, serial: int, more: bool) -> Records:
        hopeless = np.zeros(len(chosen), np.bool_)
        K, reach = int(self.queries["k"].max()), int(self.queries["length"].min())
        mark_hopeless(chosen, slices, K, reach, self.net, hopeless)
        return super()._feed(*thin(chosen, slices, ~hopeless), alive, serial, more)
