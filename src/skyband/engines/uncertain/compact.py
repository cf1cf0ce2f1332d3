"""COMPACT, the compact set of all that has arrived: the engine of windows without end (jin2008, section 3).

The compact set C(D) is the shortest prefix of the ranking for which the stop condition of the semantics holds
(semantics.py). It is *self-maintaining*: with any tuple more the condition still holds, so that a tuple which ranks
below the set can never be in an answer. Where nothing expires ("landmark windows", section 1) the set is all that is
kept: a tuple below it is dropped when it arrives, and what an insertion pushes below it for good.

Cost: one comparison for an arrival below the set, O(k H) for one that gets into a set of H tuples: in random order
H·(1 + ln(n/H)) of n do. Small probabilities make the set large, and while tuples admit none all are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.contract import Arrivals
from skyband.engines.uncertain.changes import Taken
from skyband.engines.uncertain.semantics import Semantics
from skyband.engines.uncertain.synopsis import Synopsis, Tuple, by_age, by_rank, inserted
from skyband.engines.uncertain.synopsis_engine import Group, SynopsisEngine

BLOCK = 64  # arrivals that are compared with the floor at once, at first


class CompactSet(Synopsis):
    """C(D), or all tuples as long as they admit no compact set; in order of rank."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics)
        self.best: list[Tuple] = []
        self.full = False

    @property
    def floor(self) -> float:
        """Arrivals with a smaller key rank below the set."""
        return self.best[-1].key if self.full else -np.inf

    def insert(self, t: Tuple) -> None:
        if self.full and t[:3] < self.best[-1][:3]:
            return
        self.best = inserted(self.best, t)
        if (prefix := self.compact(self.best)) is not None:
            self.best, self.full = prefix, True

    def expire(self, low: int) -> None:
        """Nothing expires."""

    def ranking(self, low: int) -> list[Tuple]:
        return self.best

    def tuples(self) -> set[Tuple]:
        return set(self.best)

    def needed(self) -> list[Tuple]:
        return by_age(self.best)

    @property
    def space(self) -> int:
        return len(self.best)

    def check(self) -> None:
        assert self.best == by_rank(self.best), "tuples are in order of rank"
        assert self.compact(self.best) == (self.best if self.full else None), "the set is as long as it must be"


class COMPACT(SynopsisEngine):
    """The compact set of every group."""

    name = "COMPACT"
    synopsis = CompactSet

    def _visit(self, group: Group, visit: Any, batch: Taken, arrivals: Arrivals) -> None:
        """As for every synopsis, but arrivals below the set are passed over many at a time."""
        assert isinstance(group.synopsis, CompactSet)
        begin, end, size = int(visit["begin"]), int(visit["end"]), BLOCK
        while begin < end:
            some = np.flatnonzero(batch.keys[begin : min(begin + size, end)] >= group.synopsis.floor)
            if len(some):
                begin, size = begin + int(some[0]), BLOCK
                self._arrive(group, batch, begin, arrivals.serial)
                begin += 1
            else:
                begin, size = begin + size, 2 * size
        self._close(group, visit, arrivals)
