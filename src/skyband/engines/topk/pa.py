"""PA, the probabilistic candidate pruning algorithm (pripuzic2015, section 4.1): approximate, with a bounded error.

Keeps the k best of the window and `limit + additional` candidates, and ignores arrivals that rank below all of them.
The limit comes from sigma (engines/topk/odds.py): while scores come in random order, less than sigma·N/n of the
answers to N arrivals are missed and less than 1.5·sigma·N/n are false (Lemma 4.6). Falling scores are its worst case:
almost all answers are missed. ADAPTIVE notices; every other engine is exact.

It is for count windows: the limit counts on a fixed n. For time windows it refuses.

Cost: one comparison for an arrival that is ignored, a shift within k + limit + additional objects for one that is not.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Arrivals, Bools, Spec
from skyband.engines.topk.base import Bands, Records
from skyband.engines.topk.odds import candidates
from skyband.kernels.records import CAP, CAPPED, RULE


class PA(Bands):
    """The probabilistic k-skyband of every group."""

    name = "PA"

    @staticmethod
    def needed(arrivals: Arrivals, asked: tuple[Spec, ...], *, net: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)

    def _rule(self, asked: tuple[Spec, ...]) -> Records:
        K = max(one.k for one in asked)
        rule = np.zeros(1, RULE)
        rule["kind"], rule["additional"], rule["growth"] = CAPPED, self.tuning.additional, 0.5  # Alg. 2, line 16
        rule["limit"] = rule["floor"] = (
            max(one.k + candidates(one.length, one.k, self.tuning.sigma) for one in asked) - K
        )
        return rule

    def _new_caps(self, size: int) -> Records:
        caps = np.zeros(size, CAP)
        caps["threshold"] = -np.inf
        return caps
