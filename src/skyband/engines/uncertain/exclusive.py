"""BS for mutually exclusive tuples (x-tuples): alternatives of one object, of which at most one exists.

Beyond the paper, whose tuples are independent. The window is kept whole and walked from the best tuple down, as by BS,
but a tuple's chance counts how many of the *groups* above it exist, its own left out; a group that gets a second member
is counted anew from its place on. The stop conditions stay sufficient: that a tuple below exists means that none of its
alternatives in the prefix does, so its chance is part of what the condition bounds (for u-kranks: that at most j of the
prefix exist). Whether they maintain themselves is not known, so no tuple is dropped, and synopses that drop
refuse `group=`.

Cost: O(k) a tuple alone, O(k d) for one that has alternatives above it; O(W) to insert. Memory: O(W).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

import numpy as np

from skyband.engines.uncertain.kernels.prefix import TINY
from skyband.engines.uncertain.semantics import PkTopk, Place, PTk, Semantics, UkRanks, UTopk
from skyband.engines.uncertain.synopsis import Synopsis, Tuple
from skyband.engines.uncertain.synopsis_engine import SynopsisEngine

SLACK = 1 + 1e-6  # the probabilities of a group may add up to 1 + 1e-12, in each of several groups
NEARLY_ONE = 1e-3  # that matters for groups which are absent with a smaller probability


class WholeWindow(Synopsis):
    """All tuples by age, and the eligible ones by rank."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics)
        self.ages: list[tuple[tuple[int, int], Tuple]] = []
        self.ranks: list[tuple[tuple[float, int, int], Tuple]] = []  # best first

    def insert(self, t: Tuple) -> None:
        insort(self.ages, (t.age, t), key=_first)
        if t.eligible:
            insort(self.ranks, (t.falling, t), key=_first)

    def expire(self, low: int) -> None:
        gone = bisect_left(self.ages, (low + 1, -1), key=_first)
        for _, t in self.ages[:gone]:
            if t.eligible:
                del self.ranks[bisect_left(self.ranks, t.falling, key=_first)]
        del self.ages[:gone]

    def ranking(self, low: int) -> list[Tuple]:
        return [t for _, t in self.ranks if t.stamp > low]

    def read(self, semantics: Semantics, tuples: list[Tuple]) -> tuple[int, bool, list[Place]]:
        walk = Choices(semantics.k) if isinstance(semantics, UTopk) else Chances(semantics)
        passed, enough = 0, False
        for t in tuples:
            walk.add(t)
            passed += 1
            enough = walk.enough()
            if enough:
                break
        self.work += passed
        return passed, enough, walk.answer()

    def alternatives(self, name: int) -> list[Tuple]:
        return [t for _, t in self.ages if t.name == name]

    def needed(self) -> list[Tuple]:
        return [t for _, t in self.ages]

    def tuples(self) -> set[Tuple]:
        return set(self.needed())

    @property
    def space(self) -> int:
        return len(self.ages)

    def check(self) -> None:
        assert self.ages == sorted(self.ages, key=_first)
        assert self.ranks == sorted(self.ranks, key=_first)
        assert {t for _, t in self.ranks} == {t for _, t in self.ages if t.eligible}


class Walk:
    """A prefix of the ranking: groups of alternatives, in order of their best members."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.passed = 0
        self.places: dict[int, int] = {}  # of named groups
        self.members: list[list[tuple[int, float]]] = []  # of each group: ranks and probabilities
        self.sums: list[float] = []  # of the members' probabilities

    def place(self, t: Tuple) -> int:
        """The place of the tuple's group; a new one is at the end."""
        if t.name is None or t.name not in self.places:
            if t.name is not None:
                self.places[t.name] = len(self.members)
            self.members.append([])
            self.sums.append(0.0)
            return len(self.members) - 1
        return self.places[t.name]

    def join(self, at: int, p: float) -> None:
        """The next tuple becomes a member of a group."""
        self.members[at].append((self.passed, p))
        self.sums[at] = self.sums[at] + p
        self.passed += 1

    def add(self, t: Tuple) -> None:
        raise NotImplementedError

    def enough(self) -> bool:
        raise NotImplementedError

    def answer(self) -> list[Place]:
        raise NotImplementedError

    def surely(self, bound: float, value: float) -> bool:
        """Is the value at least the bound, whatever the last bits of both say?"""
        if any(self.absent(at) < NEARLY_ONE for at in self.places.values()):  # sums may pass 1 by 1e-12
            return value >= bound * SLACK + 1e-9
        return bound == 0 or (bound > TINY and value >= bound * SLACK)

    def absent(self, at: int) -> float:
        """The probability that no member of the group exists."""
        return max(0.0, 1 - self.sums[at])


class Chances(Walk):
    """pk-topk, pt-k, u-kranks: the distribution of how many groups exist, after each group in turn."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics.k)
        self.semantics = semantics
        self.rows = [np.array([1.0] + [0.0] * (semantics.k - 1))]
        self.holds: list[np.ndarray] = []

    def add(self, t: Tuple) -> None:
        at = self.place(t)
        last = len(self.members) - 1
        exactly = self.rows[at]
        for other in range(at + 1, last + 1):  # all but its own
            exactly = self._after(exactly, other)
        self.holds.append(t.p * exactly)
        self.join(at, t.p)
        del self.rows[at + 1 :]
        for other in range(at, last + 1):
            self.rows.append(self._after(self.rows[-1], other))

    def _after(self, exactly: np.ndarray, at: int) -> np.ndarray:
        p = self.sums[at]
        above = np.concatenate([[0.0], exactly[:-1]])
        return above * p + exactly * self.absent(at)

    def chances(self) -> list[float]:
        return [float(np.cumsum(holds)[-1]) for holds in self.holds]  # one after the other, as the oracle adds

    def enough(self) -> bool:
        exactly, k = self.rows[-1], self.k
        if isinstance(self.semantics, UkRanks):
            return len(self.holds) >= k and self._every_rank()
        few = float(exactly.sum())
        if isinstance(self.semantics, PTk):
            return self.surely(few, self.semantics.threshold)
        assert isinstance(self.semantics, PkTopk)
        chances = sorted(self.chances(), reverse=True)
        return len(chances) >= k and self.surely(few, chances[k - 1])

    def _every_rank(self) -> bool:
        """Is every rank decided: a tuple below holds rank j + 1 only if at most j of the prefix exist.

        The most probable number of them says less here, since a group of the prefix may still get members.
        """
        most = np.cumsum(self.rows[-1])
        best = np.max(self.holds, axis=0)
        return all(self.surely(float(most[j]), float(best[j])) for j in range(self.k))

    def answer(self) -> list[Place]:
        if isinstance(self.semantics, UkRanks):
            found = []
            for j in range(self.k if self.holds else 0):
                column = [float(holds[j]) for holds in self.holds]
                best = max(column)
                if best > 0:
                    found.append(Place(column.index(best), j + 1, best))
            return found
        chances = self.chances()
        if isinstance(self.semantics, PTk):
            return [Place(i, 0, chance) for i, chance in enumerate(chances) if chance > self.semantics.threshold]
        order = sorted(range(len(chances)), key=lambda i: -chances[i])[: self.k]  # stable: ties go to the higher rank
        return [Place(i, 0, chances[i]) for i in sorted(order)]


class Choices(Walk):
    """u-topk: the best choice of j groups, and of a member of each, after each group in turn.

    A choice is (probability, ranks negated, worst first): of equal ones the larger is the one whose worst is higher.
    """

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self.rows: list[dict[int, tuple[float, list[int]]]] = [{0: (1.0, [])}]
        self.best: tuple[float, list[int]] | None = None

    def add(self, t: Tuple) -> None:
        at = self.place(t)
        last = len(self.members) - 1
        chosen = self.rows[at]
        for other in range(at + 1, last + 1):
            chosen = self._after(chosen, other)
        if self.k - 1 in chosen:
            chance, ranks = chosen[self.k - 1]
            answer = (chance * t.p, [-self.passed, *ranks])
            self.best = answer if self.best is None else max(answer, self.best)
        self.join(at, t.p)
        del self.rows[at + 1 :]
        for other in range(at, last + 1):
            self.rows.append(self._after(self.rows[-1], other))

    def _after(self, chosen: dict[int, tuple[float, list[int]]], at: int) -> dict[int, tuple[float, list[int]]]:
        absent = self.absent(at)
        longer: dict[int, tuple[float, list[int]]] = {}
        for count, (chance, ranks) in chosen.items():
            choices = [(count, (chance * absent, ranks))]
            if count + 1 < self.k:
                choices += [(count + 1, (chance * p, sorted([-rank, *ranks]))) for rank, p in self.members[at]]
            for size, choice in choices:
                longer[size] = max(choice, longer.get(size, choice))
        return longer

    def enough(self) -> bool:
        top = 0.0 if self.best is None else self.best[0]
        return self.surely(max(chance for chance, _ in self.rows[-1].values()), top)

    def answer(self) -> list[Place]:
        if self.best is None or self.best[0] <= 0:
            return []
        return [Place(-rank, 0, self.best[0]) for rank in reversed(self.best[1])]


class ExclusiveBS(SynopsisEngine):
    """BS for queries with `group=`."""

    name = "BS"
    synopsis = WholeWindow
    whole = True

    def alternatives(self, group: int, name: int) -> list[Tuple]:
        """The kept tuples that one of this name excludes."""
        if group >= len(self.groups):
            return []
        synopsis = self.groups[group].synopsis
        assert isinstance(synopsis, WholeWindow)
        return synopsis.alternatives(name)


def _first(pair: tuple[Any, Tuple]) -> Any:
    return pair[0]
