"""A synopsis in Python: what is kept of one group's window. BS for alternatives (exclusive.py) is the only one.

It takes tuples in, lets them expire, and gives the best tuples of a window, as many as an answer needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Iterable
from typing import NamedTuple

from skyband.engines.uncertain.semantics import Place, Semantics


class Tuple(NamedTuple):
    """Compared by rank: the better key, of equal keys the newer one, is larger."""

    key: float
    stamp: int
    serial: int
    p: float
    name: int | None = None  # of the alternatives that it excludes
    eligible: bool = True

    @property
    def age(self) -> tuple[int, int]:
        """Larger is newer."""
        return self.stamp, self.serial

    @property
    def falling(self) -> tuple[float, int, int]:
        """Smaller ranks above."""
        return -self.key, -self.stamp, -self.serial


def by_rank(tuples: Iterable[Tuple]) -> list[Tuple]:
    return sorted(tuples, key=lambda t: t.falling)


def by_age(tuples: Iterable[Tuple]) -> list[Tuple]:
    return sorted(tuples, key=lambda t: t.age)


def inserted(tuples: list[Tuple], t: Tuple) -> list[Tuple]:
    """Tuples in order of rank, with one more."""
    found = list(tuples)
    insort(found, t, key=lambda one: one.falling)
    return found


class Synopsis(ABC):
    """What is kept of one group's window."""

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.work = 0  # tuples that walks have passed

    def compact(self, tuples: list[Tuple]) -> list[Tuple] | None:
        """C(D) of tuples in order of rank, if they admit one (Definition 3.1)."""
        if len(tuples) < (1 if self.semantics.threshold else self.semantics.k):
            return None
        passed, enough, _ = self.semantics.read([t.p for t in tuples])
        self.work += passed
        return tuples[:passed] if enough else None

    def read(self, semantics: Semantics, tuples: list[Tuple]) -> tuple[int, bool, list[Place]]:
        """The answer from tuples in order of rank (Semantics.read)."""
        passed, enough, places = semantics.read([t.p for t in tuples])
        self.work += passed
        return passed, enough, places

    @abstractmethod
    def insert(self, t: Tuple) -> None:
        """Take an arrival, or a late one."""

    @abstractmethod
    def expire(self, low: int) -> None:
        """Remove what has left the longest window: tuples with this stamp or an older one."""

    @abstractmethod
    def ranking(self, low: int) -> list[Tuple]:
        """The best tuples with newer stamps, as many as an answer needs; in order of rank."""

    @abstractmethod
    def tuples(self) -> set[Tuple]:
        """All that are kept."""

    @property
    @abstractmethod
    def space(self) -> int:
        """How many tuples are stored, each as often as it is."""

    def needed(self) -> list[Tuple]:
        """The tuples that can still matter, by age: the union of the compact sets of all suffixes (dom.py)."""
        kept: list[Tuple] = []
        best: list[Tuple] = []
        full = False
        for t in reversed(by_age(self.tuples())):
            if full and t[:3] < best[-1][:3]:
                continue
            kept.append(t)
            best = inserted(best, t)
            prefix = self.compact(best)
            if prefix is not None:
                best, full = prefix, True
        kept.reverse()
        return kept

    @abstractmethod
    def check(self) -> None:
        """Assert every invariant."""
