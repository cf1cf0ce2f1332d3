"""RA, the relaxed candidate pruning algorithm (pripuzic2015, section 4.2).

Inserts every arrival and counts nothing: dominated objects stay until the candidates below the K best reach a limit;
then one sweep (Alg. 4, kernels/prune.py) leaves the k-skyband, and the limit becomes (1 + gamma) times what is left.

Keeps about (1 + gamma/2)·n' - gamma/2·k objects, n' the size of the k-skyband (Lemma 4.9 with n' = k + k·(H_n - H_k)).

Cost: O(log) to find an arrival's place and a shift of the shorter side of the run; a sweep is O(log K) an object, once
every gamma·(n' - k) arrivals.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Spec
from skyband.engines.topk.base import Records, SkybandEngine
from skyband.kernels.records import CAP, RELAXED, RULE


class RA(SkybandEngine):
    """The relaxed k-skyband of every group."""

    name = "RA"

    def _rule(self, specs: tuple[Spec, ...]) -> Records:
        return relaxed(self.tuning.gamma)

    def _new_caps(self, size: int) -> Records:
        return first_limits(size, int(self.queries["k"].max()))


def relaxed(gamma: float) -> Records:
    """The rule of a relaxed skyband."""
    rule = np.zeros(1, RULE)
    rule["kind"], rule["gamma"] = RELAXED, gamma
    return rule


def first_limits(size: int, K: int) -> Records:
    """The caps of so many new groups: "a few times larger than k" (section 4.2), 4·k in the example of Table VII."""
    caps = np.zeros(size, CAP)
    caps["limit"], caps["threshold"] = 4 * K, -np.inf
    return caps
