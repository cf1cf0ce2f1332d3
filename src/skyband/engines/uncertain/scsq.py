"""SCSQ, the segmental compact set queue: a few compact sets, and the tuples between that may be needed (jin2008, 4.3).

Each segment has a compact set C(S_l) and Lambda, tuples older than it (and newer than the next segment's) that rank
above its lowest: C(S_j) of any suffix that begins between the two is within C(S_l) u Lambda. Only these sets and
C(S_W) are updated. The steps are in kernels/scsq.py.

Cost: O(log W) sets in random order, O(k H) each, per arrival; memory O(H (k + log W)).

Errata: the merge of two segments adds the tuple at position l_(i+1), not 'the oldest': here, what the older set has and
the newer has not, which is at most that. H and the invariants (6), (7) matter for cost only: H is the size of the
largest set that is kept. Where section 4.3 says S_l u Lambda it means C(S_l) u Lambda.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.uncertain.csq import newer_than, same
from skyband.engines.uncertain.kernels.queue import CURRENT, END, FIRST, FRESH
from skyband.engines.uncertain.kernels.scsq import take_scsq
from skyband.engines.uncertain.queue_engine import QueueEngine
from skyband.engines.uncertain.queue_groups import Group, run_of

Records = NDArray[Any]


class SCSQ(QueueEngine):
    name = "SCSQ"
    kernel = staticmethod(take_scsq)

    def check_sets(self, group: Group) -> None:
        known, stored = self.tuples(group), group.stored
        segments = stored.sets[stored.facts[FIRST] : stored.facts[END]]
        for older, newer in pairwise(segments):
            assert newer_than(newer, older), "segments begin one after the other"
        for segment in segments:
            one, between = run_of(stored, segment["run"]), run_of(stored, segment["between"])
            suffix = known[newer_than(known, segment, equal=True)]
            waiting = np.isin(suffix["serial"], self.waiting(group)["serial"]) & ~np.isin(
                suffix["serial"], one["serial"]
            )
            assert same(one, self.compact(suffix[~waiting])), "each has the compact set of its suffix, but for a buffer"
            assert newer_than(one, segment, equal=True).all(), "its suffix begins at its oldest tuple"
            rank = [(float(t["key"]), int(t["stamp"]), int(t["serial"])) for t in (*between, one[-1])]
            assert min(rank) == rank[-1], "Lambda ranks above the lowest"
        current, answer = run_of(stored, CURRENT), self.compact(known)
        assert same(current, answer) if answer is not None else not len(current), "C(S_W) is there"
        self.check_fresh(run_of(stored, FRESH))

    def waiting(self, group: Group) -> Records:
        """Tuples that the sets do not know yet."""
        return np.empty(0, group.stored.lists.records.dtype)

    def check_fresh(self, fresh: Records) -> None:
        assert self.compact(fresh) is None, "the newest tuples admit no compact set"
