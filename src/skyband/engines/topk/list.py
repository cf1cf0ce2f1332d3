"""LIST, all that has arrived and is above the threshold (ours): the engine of Above over windows without end.

Nothing leaves such an answer, so every object of it is kept, in order of arrival, and no other.

Cost: one comparison an arrival, and O(1) for one that gets in; an answer is sorted when it is asked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import runs
from skyband.engines.contract import Arrivals, Bools, Ints, Spec
from skyband.engines.invariants import by_run, require, rising
from skyband.engines.topk.ever import EverEngine, Records
from skyband.engines.topk.kernels.ever import Arriving, take_above
from skyband.engines.topk.kernels.state import Report


class LIST(EverEngine):
    """The objects above the lowest threshold, of every group in order of arrival."""

    name = "LIST"

    def _set_queries(self, specs: tuple[Spec, ...]) -> None:
        self.queries = np.array([spec.threshold for spec in specs], np.float64)

    def _set_floors(self) -> None:
        self.floors = self.queries.min(keepdims=True)

    def _feed(self, arriving: Arriving, report: Report) -> Records:
        self.objects, out = take_above(self._runs(), report, arriving)
        return out[: self.tally[1]]

    def _members(self, run: Records, ranks: Ints, bound: float) -> Bools:
        member: Bools = run["key"] > bound
        return member

    def _ranked(self, groups: Ints, spec: Spec) -> tuple[Records, Ints]:
        run, sizes = runs(self.objects, self.groups, groups), self.groups["size"][groups]
        owner = np.repeat(np.arange(len(groups)), sizes)
        assert spec.threshold is not None
        member = run["key"] > spec.threshold
        order = np.lexsort((-run["serial"], -run["stamp"], -run["key"], owner))
        return run[order[member[order]]], by_run(np.add, member.astype(np.int64), sizes, 0)

    def _check_runs(self, run: Records, sizes: Ints) -> None:
        require(rising(sizes, run["serial"]), "a run is in order of arrival")

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> NDArray[np.bool_]:
        return arrivals.keys > min(spec.threshold for spec in specs if spec.threshold is not None)
