"""PA, the probabilistic candidate pruning algorithm (pripuzic2015, section 4.1): approximate, with a bounded error.

Keeps the k best of the window and `limit + additional` candidates, and ignores arrivals that rank below all of them.
The limit comes from sigma (engines/topk/odds.py): while scores come in random order, less than sigma·N/n of the
answers to N arrivals are missed and less than 1.5·sigma·N/n are false (Lemma 4.6). Falling scores are its worst case:
almost all answers are missed. ADAPTIVE notices; every other engine is exact.

Count windows only, since the limit relies on a fixed n: a time window is a QueryError.

Cost: one comparison for an arrival that is ignored, a shift within k + limit + additional objects for one that is not.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Arrivals, Bools, Spec
from skyband.engines.topk.base import Records, SkybandEngine
from skyband.engines.topk.odds import candidates
from skyband.kernels.records import CAP, CAPPED, RULE


class PA(SkybandEngine):
    """The probabilistic k-skyband of every group."""

    name = "PA"

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)

    def _rule(self, specs: tuple[Spec, ...]) -> Records:
        K = max(spec.k for spec in specs)
        rule = np.zeros(1, RULE)
        rule["kind"], rule["additional"], rule["growth"] = CAPPED, self.tuning.additional, 0.5  # Alg. 2, line 16
        rule["limit"] = rule["floor"] = (
            max(spec.k + candidates(spec.length, spec.k, self.tuning.sigma) for spec in specs) - K
        )
        return rule

    def _new_caps(self, size: int) -> Records:
        caps = np.zeros(size, CAP)
        caps["threshold"] = -np.inf
        return caps
