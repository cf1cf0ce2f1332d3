"""The four semantics of 'the top k' of objects that exist only with a probability (jin2008, sections 1 and 5).

Each is one class with two methods: is this prefix of the ranking enough (the stop condition: no tuple below can be in
the answer), and the answer from it. A prefix that is enough, and no longer than that, is the compact set. The condition
must be *sufficient* and *self-maintaining*: once it holds, it holds with any tuple more, so that a tuple below may be
dropped as long as those above stay (section 3). A bound must hold by a margin (`SLACK`), so that floats do not decide.

Errata (papers/README.md): Eq. 8's right side must be the maximum over l <= j; Eq. 9 reads with r_d; Eq. 11 must say
j <= i. For u-topk we ask for less than Eq. 12: the best answer so far need only beat the best choice of fewer than k
tuples of the prefix. An answer that goes further down has such a choice as its part, so the condition is sufficient. It
is self-maintaining: with a new tuple of probability q the best choices become at most max(q, 1 - q) times as probable,
and so does an answer at least: the old one without the new tuple, or with it instead of its worst member.

Kernels compute the same (`code`, kernels/prefix.py); a test holds the two against each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skyband.engines.contract import Spec
from skyband.engines.uncertain.kernels.prefix import PK, PT, SLACK, TINY, UK, UT, read_prefix
from skyband.engines.uncertain.kernels.records import TUPLE


@dataclass(frozen=True)
class Place:
    """One row of an answer: the place of the tuple in the prefix, the rank held (u-kranks; else 0), its probability."""

    at: int
    rank: int
    probability: float


class Prefix:
    """The best tuples of a window, from the best down, with the distributions that the semantics read."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.probabilities: list[float] = []
        self.exactly = [1.0] + [0.0] * (k - 1)  # r: exactly j of them exist (Eq. 2)
        self.holds: list[list[float]] = []  # of each tuple: it exists, and exactly 0, 1, ... k-1 above it
        self.chosen = [1.0]  # the most probable choice of j of them, the others absent
        self.taken: list[list[bool]] = []  # of each tuple: is it in the best choice of j of those so far
        self.ends: list[float] = []  # of each tuple: the best answer of which it is the worst member

    def add(self, p: float) -> None:
        k, absent = self.k, 1 - p
        self.holds.append([p * chance for chance in self.exactly])
        above = [0.0, *self.exactly[:-1]]
        self.exactly = [above[j] * p + self.exactly[j] * absent for j in range(k)]
        self.ends.append(self.chosen[k - 1] * p if len(self.chosen) == k else 0.0)
        stay = [chance * absent for chance in self.chosen]
        take = [-1.0, *(chance * p for chance in self.chosen)]
        stay = [*stay, -1.0] if len(stay) < k else stay
        self.taken.append([take[j] > stay[j] for j in range(len(stay))])
        self.chosen = [max(stay[j], take[j]) for j in range(len(stay))]
        self.probabilities.append(p)

    def __len__(self) -> int:
        return len(self.probabilities)


def surely(bound: float, value: float) -> bool:
    """Is the value at least the bound, whatever the last bits of both say?"""
    return bound == 0 or (bound > TINY and value >= bound * SLACK)


class Semantics(ABC):
    """One of the semantics, for one k."""

    code: ClassVar[int]  # of its kernel

    def __init__(self, k: int, threshold: float | None = None) -> None:
        self.k = k
        self.threshold = 0.0 if threshold is None else threshold

    @abstractmethod
    def enough(self, prefix: Prefix) -> bool:
        """Is it certain that no tuple below is in the answer?"""

    @abstractmethod
    def answer(self, prefix: Prefix) -> list[Place]:
        """The answer, in order of rank (u-kranks: of the rank held)."""

    def read(self, probabilities: Sequence[float]) -> tuple[int, bool, list[Place]]:
        """The length of the prefix that is enough (or of all), whether it is enough, and the answer."""
        front = np.zeros(len(probabilities), TUPLE)
        front["p"] = probabilities
        at, rank, chance, result = read_prefix(front, self.k, self.code, self.threshold)
        passed, _, enough, many = result.tolist()
        places = zip(at[:many].tolist(), rank[:many].tolist(), chance[:many].tolist(), strict=True)
        return passed, bool(enough), [Place(*one) for one in places]


class PkTopk(Semantics):
    """The k tuples most probable to be among the first k (Definition 3.1)."""

    code = PK

    def enough(self, prefix: Prefix) -> bool:
        few = sum(prefix.exactly)  # F_d: fewer than k of the prefix exist; else no tuple below is among the first k
        if 0 < few <= TINY:
            return False
        return sum(sum(holds) >= few * SLACK for holds in prefix.holds) >= self.k

    def answer(self, prefix: Prefix) -> list[Place]:
        chances = [_sum(holds) for holds in prefix.holds]
        best = sorted(range(len(chances)), key=lambda i: -chances[i])[: self.k]  # stable: ties go to the higher rank
        return [Place(i, 0, chances[i]) for i in sorted(best)]


class PTk(Semantics):
    """All tuples that are among the first k with a probability above the threshold (Definition 5.1)."""

    code = PT

    def enough(self, prefix: Prefix) -> bool:
        few = sum(prefix.exactly)
        return surely(few, self.threshold)

    def answer(self, prefix: Prefix) -> list[Place]:
        chances = [_sum(holds) for holds in prefix.holds]
        return [Place(i, 0, chance) for i, chance in enumerate(chances) if chance > self.threshold]


class UkRanks(Semantics):
    """For each rank the tuple most probable to hold it (Eq. 9, which implies the corrected Eq. 8 for every rank)."""

    code = UK

    def enough(self, prefix: Prefix) -> bool:
        if len(prefix) < self.k:
            return False
        return surely(max(prefix.exactly), max(holds[-1] for holds in prefix.holds))

    def answer(self, prefix: Prefix) -> list[Place]:
        found = []
        for j in range(self.k):
            at = max(range(len(prefix)), key=lambda i: prefix.holds[i][j], default=-1)  # the first of equals
            if at >= 0 and prefix.holds[at][j] > 0:
                found.append(Place(at, j + 1, prefix.holds[at][j]))
        return found


class UTopk(Semantics):
    """The k tuples most probable to be the first k together (Eq. 12, asking for less)."""

    code = UT

    def enough(self, prefix: Prefix) -> bool:
        return len(prefix) >= self.k and surely(max(prefix.chosen), max(prefix.ends))

    def answer(self, prefix: Prefix) -> list[Place]:
        best = max(prefix.ends, default=0.0)
        if best <= 0:
            return []
        worst = prefix.ends.index(best)
        members, j = [worst], self.k - 1
        for i in range(worst - 1, -1, -1):
            if j and prefix.taken[i][j]:
                members.append(i)
                j -= 1
        return [Place(i, 0, best) for i in reversed(members)]


SEMANTICS: dict[str, type[Semantics]] = {"pk-topk": PkTopk, "pt-k": PTk, "u-kranks": UkRanks, "u-topk": UTopk}


def semantics_of(spec: Spec) -> Semantics:
    assert spec.semantics is not None
    return SEMANTICS[spec.semantics](spec.k, spec.threshold)


def _sum(numbers: Sequence[float]) -> float:
    total = 0.0
    for x in numbers:
        total = total + x
    return total
