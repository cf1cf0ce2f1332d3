"""CCSQ, the compressed compact set queue: of each compact set only its difference to the next newer one (jin2008, 4.2).

C(S_i) has at most one tuple that C(S_(i-1)) has not, its oldest; and a tuple that has disappeared never comes back
(Lemma 4.3), so all differences together have O(H log W) tuples.

Cost: sets are restored one after the other, changed and compressed again: O(k H^2) per arrival; memory
O(H (k + log W)).
"""

from __future__ import annotations

from itertools import pairwise

from skyband.engines.uncertain.csq import CompactSetQueue
from skyband.engines.uncertain.semantics import Semantics
from skyband.engines.uncertain.synopsis import Tuple, inserted
from skyband.engines.uncertain.synopsis_engine import SynopsisEngine


class CompressedQueue(CompactSetQueue):
    """The newest set, and of each older one its difference to the next newer."""

    def __init__(self, semantics: Semantics) -> None:
        self.first: list[Tuple] = []  # the newest set
        self.differences: list[tuple[list[Tuple], set[Tuple]]] = []  # to the next older set: added, removed
        super().__init__(semantics)

    @property
    def sets(self) -> list[list[Tuple]]:
        """All sets, newest first; restored in one pass over the differences."""
        found = [self.first] if self.first else []
        for added, removed in self.differences:
            one = [t for t in found[-1] if t not in removed]
            for t in added:
                one = inserted(one, t)
            found.append(one)
        return found

    @sets.setter
    def sets(self, sets: list[list[Tuple]]) -> None:
        self.first = sets[0] if sets else []
        self.differences = []
        for newer, older in pairwise(sets):
            before, after = set(newer), set(older)
            self.differences.append(([t for t in older if t not in before], before - after))

    @property
    def space(self) -> int:
        return len(self.first) + sum(len(added) + len(removed) for added, removed in self.differences) + len(self.D)

    def check(self) -> None:
        super().check()
        assert all(len(added) == 1 for added, _ in self.differences), "sets differ by their oldest tuple"


class CCSQ(SynopsisEngine):
    name = "CCSQ"
    synopsis = CompressedQueue
