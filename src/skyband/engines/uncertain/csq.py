"""CSQ, the compact set queue: the distinct compact sets C(S_i) of all suffixes of the window (jin2008, Algorithm 1).

C(S_W), the oldest set, has the answer; when a tuple of it expires, the next one takes its place. A suffix that admits
no compact set yet is kept whole, in D.

Cost: O(H) sets change with an arrival, O(k H) each; memory O(H^2 log W) for compact sets of H tuples.

Errata: read literally Algorithm 1 is wrong. The loop of lines 7-13 must leave out the set just appended (the new tuple
may be its lowest). D must expire too. Line 6's claim that D admits no compact set afterwards is false in half of the
cases: line 4 is a loop. With time windows lines 14-16 are a loop. Late tuples are ours: a tuple changes the sets of
those suffixes that it belongs to, and may begin one more between them.
"""

from __future__ import annotations

from skyband.engines.uncertain.semantics import Semantics
from skyband.engines.uncertain.synopsis import Synopsis, Tuple, by_rank, inserted
from skyband.engines.uncertain.synopsis_engine import SynopsisEngine


class CompactSetQueue(Synopsis):
    """Psi, the compact sets, and D, the tuples newer than the newest set's oldest."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics)
        self.sets: list[list[Tuple]] = []  # newest first, each in order of rank
        self.D: list[Tuple] = []  # in order of rank

    def insert(self, t: Tuple) -> None:
        sets = self.sets
        newer = next((i for i, one in enumerate(sets) if _oldest(one).age < t.age), len(sets))  # sets of newer tuples
        added: list[list[Tuple]] = []
        if newer == 0:
            self.D = inserted(self.D, t)  # line 3
            while (one := self.compact(self.D)) is not None:  # line 4, until there is none
                added.append(one)  # line 5
                self.D = [x for x in self.D if x.age > _oldest(one).age]  # line 6
            added.reverse()
        elif t > sets[newer - 1][-1]:  # a late tuple may be the oldest of one more set
            one = self.compact(inserted(sets[newer - 1], t))
            if one is not None and t in one:
                added.append(one)
        older = []
        for i in range(newer, len(sets)):  # lines 7-13, without the sets just appended
            if t < sets[i][-1]:
                older += sets[i:]  # line 13: older sets end at least as high
                break
            one = self.compact(inserted(sets[i], t))  # line 9
            assert one is not None, "compact sets maintain themselves (Theorem 3.2)"
            if _oldest(sets[i]) in one:  # else it is the set before it (lines 10-11)
                older.append(one)
        self.sets = sets[:newer] + added + older

    def expire(self, low: int) -> None:
        sets = self.sets
        while sets and _oldest(sets[-1]).stamp <= low:  # lines 14-16
            sets = sets[:-1]
        if len(sets) < len(self.sets):
            self.sets = sets
        if any(t.stamp <= low for t in self.D):
            self.D = [t for t in self.D if t.stamp > low]

    def ranking(self, low: int) -> list[Tuple]:
        for one in reversed(self.sets):
            if _oldest(one).stamp > low:
                return one
        return [t for t in self.D if t.stamp > low]

    def tuples(self) -> set[Tuple]:
        return {t for one in self.sets for t in one} | set(self.D)

    @property
    def space(self) -> int:
        return sum(map(len, self.sets)) + len(self.D)

    def check(self) -> None:
        sets, known = self.sets, by_rank(self.tuples())
        begins = [_oldest(one).age for one in sets]
        assert begins == sorted(set(begins), reverse=True), "each set has an oldest tuple of its own"
        for begin, one in zip(begins, sets, strict=True):
            assert self.compact([t for t in known if t.age >= begin]) == one, "each is the compact set of its suffix"
        assert self.compact(self.D) is None, "D admits no compact set"
        assert len(self.D) == len([t for t in known if not begins or t.age > begins[0]])


class CSQ(SynopsisEngine):
    name = "CSQ"
    synopsis = CompactSetQueue


def _oldest(tuples: list[Tuple]) -> Tuple:
    return min(tuples, key=lambda t: t.age)
