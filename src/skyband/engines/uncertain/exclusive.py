"""BS for mutually exclusive tuples (x-tuples): alternatives of one object, of which at most one exists.

Beyond the paper, whose tuples are independent. The window is kept whole and walked from the best tuple down, as by BS,
but a tuple's chance counts how many of the *groups* above it exist, its own left out; a group that gets a second member
is counted again from its place on. The stop conditions stay sufficient: that a tuple below exists means that none of
its alternatives in the prefix does, so its chance is part of what the condition bounds (for u-kranks: that at most j of
the prefix exist).

For pk-topk, pt-k and u-kranks they maintain themselves too, for u-topk they do not (docs/engines/uncertain/bs.md has
the proof, tests/uncertain/test_alternatives.py the counterexample). No tuple is dropped all the same: which rows are
rejected depends on all valid alternatives of a name, so a synopsis that drops tuples would not be smaller.

Cost: O(k) a tuple alone, O(k d) for one that has alternatives above it; to insert O(W) moves of pointers, and a sum
over the alternatives of its name. Memory: O(W).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from typing import Any, TypeAlias

import numpy as np

from skyband.engines.uncertain.kernels.prefix import TINY
from skyband.engines.uncertain.semantics import PkTopk, Place, PTk, Semantics, UkRanks, UTopk
from skyband.engines.uncertain.synopsis import Synopsis, Tuple
from skyband.engines.uncertain.synopsis_engine import SynopsisEngine

SLACK = 1 + 1e-6  # the probabilities of a group may add up to 1 + 1e-12, in each of several groups
NEARLY_ONE = 1e-3  # that matters for groups which are absent with a smaller probability
Choice: TypeAlias = tuple[float, list[int]]


class WholeWindow(Synopsis):
    """All tuples by age, those of a name too, and the eligible ones by rank."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics)
        self.by_age: list[Tuple] = []
        self.by_rank: list[Tuple] = []
        self.by_name: dict[int, list[Tuple]] = {}

    def insert(self, t: Tuple) -> None:
        insort(self.by_age, t, key=_age)
        if t.name is not None:
            insort(self.by_name.setdefault(t.name, []), t, key=_age)
        if t.eligible:
            insort(self.by_rank, t, key=_falling)

    def expire(self, low: int) -> None:
        gone = bisect_left(self.by_age, (low + 1, -1), key=_age)
        for t in self.by_age[:gone]:
            if t.name is not None:
                del self.by_name[t.name][0]
                if not self.by_name[t.name]:
                    del self.by_name[t.name]
            if t.eligible:
                del self.by_rank[bisect_left(self.by_rank, t.falling, key=_falling)]
        del self.by_age[:gone]

    def ranking(self, low: int) -> list[Tuple]:
        if self.by_age and self.by_age[0].stamp > low:
            return self.by_rank
        return [t for t in self.by_rank if t.stamp > low]

    def read(self, semantics: Semantics, tuples: list[Tuple]) -> tuple[int, bool, list[Place]]:
        prefix: ExclusivePrefix = Choices(semantics.k) if isinstance(semantics, UTopk) else Chances(semantics)
        enough = False
        for t in tuples:
            prefix.add(t)
            enough = prefix.enough()
            if enough:
                break
        self.work += prefix.passed
        return prefix.passed, enough, prefix.answer()

    def alternatives(self, name: int) -> list[Tuple]:
        return self.by_name.get(name, [])

    def needed(self) -> list[Tuple]:
        return list(self.by_age)

    def tuples(self) -> set[Tuple]:
        return set(self.by_age)

    @property
    def space(self) -> int:
        return len(self.by_age)

    def check(self) -> None:
        assert self.by_age == sorted(self.by_age, key=_age)
        assert self.by_rank == sorted((t for t in self.by_age if t.eligible), key=_falling)
        named = [t for t in self.by_age if t.name is not None]
        assert self.by_name == {name: [t for t in named if t.name == name] for name in {t.name for t in named}}


class ExclusivePrefix(ABC):
    """A prefix of the ranking: groups of alternatives, in order of their best members."""

    rows: list[Any]  # the state after each group, beginning with none

    def __init__(self, k: int) -> None:
        self.k = k
        self.passed = 0
        self.places: dict[int, int] = {}  # of named groups
        self.members: list[list[tuple[int, float]]] = []  # of each group: ranks and probabilities
        self.sums: list[float] = []  # of the members' probabilities

    def add(self, t: Tuple) -> None:
        """The next tuple becomes a member of its group; a new group is at the end."""
        at = len(self.members) if t.name is None else self.places.setdefault(t.name, len(self.members))
        if at == len(self.members):
            self.members.append([])
            self.sums.append(0.0)
        groups = len(self.members)
        row = self.rows[at]
        for other in range(at + 1, groups):  # all but its own
            row = self.after(row, other)
        self.see(t.p, row)
        self.members[at].append((self.passed, t.p))
        self.sums[at] = self.sums[at] + t.p
        self.passed += 1
        del self.rows[at + 1 :]
        for other in range(at, groups):
            self.rows.append(self.after(self.rows[-1], other))

    @abstractmethod
    def after(self, row: Any, at: int) -> Any:
        """The state with one group more."""

    @abstractmethod
    def see(self, p: float, row: Any) -> None:
        """Note a tuple of this probability; row: the state of the groups above it without its own."""

    @abstractmethod
    def enough(self) -> bool:
        """Is it certain that no tuple below is in the answer?"""

    @abstractmethod
    def answer(self) -> list[Place]:
        """The answer, in order of rank (u-kranks: of the rank held)."""

    def surely(self, bound: float, value: float) -> bool:
        """Is the value at least the bound, whatever the last bits of both say?"""
        if any(self.absent(at) < NEARLY_ONE for at in self.places.values()):  # sums may pass 1 by 1e-12
            return value >= bound * SLACK + 1e-9
        return bound == 0 or (bound > TINY and value >= bound * SLACK)

    def absent(self, at: int) -> float:
        """The probability that no member of the group exists."""
        return max(0.0, 1 - self.sums[at])


class Chances(ExclusivePrefix):
    """pk-topk, pt-k, u-kranks: the distribution of how many groups exist, after each group in turn."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics.k)
        self.semantics = semantics
        self.rows = [np.array([1.0] + [0.0] * (semantics.k - 1))]
        self.holds: list[np.ndarray] = []

    def see(self, p: float, row: np.ndarray) -> None:
        self.holds.append(p * row)

    def after(self, row: np.ndarray, at: int) -> np.ndarray:
        above = np.concatenate([[0.0], row[:-1]])
        return above * self.sums[at] + row * self.absent(at)

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


class Choices(ExclusivePrefix):
    """u-topk: the best choice of j groups, and of a member of each, after each group in turn.

    A choice is (probability, ranks negated, worst first): of equal ones the larger has the higher worst member.
    """

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self.rows = [{0: (1.0, [])}]
        self.best: Choice | None = None

    def see(self, p: float, row: dict[int, Choice]) -> None:
        if self.k - 1 in row:
            chance, ranks = row[self.k - 1]
            answer = (chance * p, [-self.passed, *ranks])
            self.best = answer if self.best is None else max(answer, self.best)

    def after(self, row: dict[int, Choice], at: int) -> dict[int, Choice]:
        absent = self.absent(at)
        longer: dict[int, Choice] = {}
        for count, (chance, ranks) in row.items():
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


def _age(t: Tuple) -> tuple[int, int]:
    return t.age


def _falling(t: Tuple) -> tuple[float, int, int]:
    return t.falling
