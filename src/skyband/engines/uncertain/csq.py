"""CSQ, the compact set queue: the distinct compact sets C(S_i) of all suffixes of the window (jin2008, Algorithm 1).

C(S_W), the oldest set, has the answer; when a tuple of it expires, the next one takes its place. A suffix that admits
no compact set yet is kept whole, in D. The steps are in kernels/csq.py.

Cost: O(H) sets change with an arrival, O(k H) each; memory O(H^2 log W) for compact sets of H tuples.

Errata: read literally Algorithm 1 is wrong. The loop of lines 7-13 must leave out the set just appended (the new tuple
may be its lowest). D must expire too. Line 6's claim that D admits no compact set afterwards is false in half of the
cases: line 4 is a loop. With time windows lines 14-16 are a loop. Late tuples are ours: a tuple changes the sets of
those suffixes that it belongs to, and may begin one more between them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.uncertain.kernels.csq import take_csq
from skyband.engines.uncertain.kernels.queue import END, FIRST, FRESH
from skyband.engines.uncertain.queue_engine import QueueEngine
from skyband.engines.uncertain.queue_groups import Group, run_of

Records = NDArray[Any]


class CSQ(QueueEngine):
    name = "CSQ"
    kernel = staticmethod(take_csq)

    def sets(self, group: Group) -> list[Records]:
        """The compact sets, the oldest first."""
        facts = group.stored.facts
        return [run_of(group.stored, r) for r in group.stored.sets["run"][facts[FIRST] : facts[END]]]

    def check_sets(self, group: Group) -> None:
        known, facts, D = self.tuples(group), group.stored.facts, run_of(group.stored, FRESH)
        begins = group.stored.sets[facts[FIRST] : facts[END]]
        suffixes = [self.compact(known[i:]) for i in range(len(known))]
        expected = [one for i, one in enumerate(suffixes) if one is not None and known[i] in one]
        assert len(expected) == len(begins), "there are all distinct compact sets of suffixes"
        for begin, one, other in zip(begins, self.sets(group), expected, strict=True):
            assert same(one, other) and begin["serial"] in one["serial"], "each is the compact set of its suffix"
            assert newer_than(one, begin, equal=True).all(), "its suffix begins at its oldest tuple"
        for older, newer in pairwise(begins):
            assert newer_than(newer, older), "each begins at a tuple of its own"
        assert self.compact(D) is None, "D admits no compact set"
        rest = known[newer_than(known, begins[-1])] if len(begins) else known
        assert set(D["serial"].tolist()) == set(rest["serial"].tolist()), "D is newer than all begins"


def newer_than(tuples: Records, one: Any, *, equal: bool = False) -> NDArray[np.bool_]:
    """Which are newer than one, or that one."""
    ties = tuples["serial"] >= one["serial"] if equal else tuples["serial"] > one["serial"]
    found: NDArray[np.bool_] = (tuples["stamp"] > one["stamp"]) | ((tuples["stamp"] == one["stamp"]) & ties)
    return found


def same(one: Records, other: Records | None) -> bool:
    return other is not None and one["serial"].tolist() == other["serial"].tolist()
