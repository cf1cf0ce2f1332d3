"""BEST, the k best of all that has arrived (ours): the engine of TopK over windows without end.

Nothing expires, so every object that ranks above another dominates it, and the k-skyband (pripuzic2015,
Definition 3.8) is the answer itself: k objects are kept in each group, and no other.

Cost: one comparison for an arrival that does not get in; O(log k) comparisons and a shift of at most k/2 objects for
one that does, which are k·(1 + ln(n/k)) of n arrivals in random order, and all of them in rising order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import runs
from skyband.engines.contract import Arrivals, Bools, Ints, Spec
from skyband.engines.grouped import slices_of
from skyband.engines.invariants import require, rising
from skyband.engines.topk.base import grouped
from skyband.engines.topk.ever import EverEngine, Records
from skyband.engines.topk.kernels.ever import Arriving, end_batches, mark_outranked, take_best
from skyband.engines.topk.kernels.state import Report


class BEST(EverEngine):
    """The K best objects of every group, best first; the answer of a query is the first k of them."""

    name = "BEST"

    def _set_queries(self, specs: tuple[Spec, ...]) -> None:
        self.queries = np.array([spec.k for spec in specs], np.float64)
        self.K = max(spec.k for spec in specs)

    def _set_floors(self) -> None:
        self.floors = np.full(len(self.groups), -np.inf)
        full = np.flatnonzero(self.groups["size"] == self.K)
        self.floors[full] = self.objects["key"][self.groups["head"][full] + self.K - 1]

    def _feed(self, arriving: Arriving, report: Report) -> Records:
        self.objects, out = take_best(self._runs(), report, arriving, self.K)
        if self.net and not report.more and self.groups["open"].any():
            out = end_batches(self._runs(), report._replace(changes=out), np.flatnonzero(self.groups["open"]))
        return out[: self.tally[1]]

    def _members(self, run: Records, ranks: Ints, bound: float) -> Bools:
        member: Bools = ranks < bound
        return member

    def _ranked(self, groups: Ints, spec: Spec) -> tuple[Records, Ints]:
        chosen = self.groups.copy()
        chosen["size"] = np.minimum(chosen["size"], spec.k)
        return runs(self.objects, chosen, groups), chosen["size"][groups]

    def _check_runs(self, run: Records, sizes: Ints) -> None:
        require(rising(sizes, -run["key"], -run["stamp"], -run["serial"]), "a run is best first, the newer above")
        require((sizes <= self.K).all(), "no more than K objects are kept")
        full = sizes == self.K
        last = np.cumsum(sizes)[full] - 1
        require((self.floors[full] == run["key"][last]).all() and (self.floors[~full] == -np.inf).all(), "floors hold")

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> NDArray[np.bool_]:
        order, taken = grouped(arrivals)
        outranked = np.zeros(len(taken), np.bool_)
        visits = slices_of(arrivals.groups[order] if len(order) else arrivals.groups)
        mark_outranked(taken, visits, max(spec.k for spec in specs), outranked)
        needed = ~outranked
        if len(order):
            needed[order] = ~outranked
        return needed
