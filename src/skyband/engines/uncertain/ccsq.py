"""CCSQ, the compressed compact set queue: of each compact set only its difference to the next newer one (jin2008, 4.2).

C(S_i) has at most one tuple that C(S_(i-1)) has not, its oldest; and a tuple that has disappeared never comes back
(Lemma 4.3), so all differences together have O(H log W) tuples.

Cost: sets are restored one after the other, changed and compressed again: O(k H^2) per arrival; memory
O(H (k + log W)).
"""

from __future__ import annotations

from itertools import pairwise

from skyband.engines.uncertain.csq import CompactSetQueue
from skyband.engines.uncertain.queues import Queues, Tuple, put_in
from skyband.engines.uncertain.semantics import Semantics


class CompressedQueue(CompactSetQueue):
    def __init__(self, meaning: Semantics) -> None:
        self.first: list[Tuple] = []  # the newest set, whole
        self.differences: list[tuple[list[Tuple], set[Tuple]]] = []  # then who comes in, and who goes out
        super().__init__(meaning)

    @property
    def sets(self) -> list[list[Tuple]]:
        """Restored in one pass over the differences."""
        found = [self.first] if self.first else []
        for more, less in self.differences:
            one = [t for t in found[-1] if t not in less]
            for t in more:
                one = put_in(one, t)
            found.append(one)
        return found

    @sets.setter
    def sets(self, sets: list[list[Tuple]]) -> None:
        self.first = sets[0] if sets else []
        self.differences = []
        for newer, older in pairwise(sets):
            had, has = set(newer), set(older)
            self.differences.append(([t for t in older if t not in had], had - has))

    @property
    def space(self) -> int:
        return len(self.first) + sum(len(more) + len(less) for more, less in self.differences) + len(self.fresh)

    def check(self) -> None:
        super().check()
        assert all(len(more) == 1 for more, _ in self.differences), "sets differ by their oldest tuple"


class CCSQ(Queues):
    name = "CCSQ"
    synopsis = CompressedQueue
