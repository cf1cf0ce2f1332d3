"""Algorithms 1 and 2 of jin2008 to the letter, and corrected: small and slow, to show what the printed lines do.

The engines have kernels (kernels/csq.py, kernels/scsq_buffer.py); nothing of them is used here but the semantics.
"""

from __future__ import annotations

from typing import NamedTuple

from skyband.engines.uncertain.semantics import Semantics


class Tuple(NamedTuple):
    """Compared by rank: the better key, of equal keys the newer one, is larger."""

    key: float
    number: int
    p: float


class Queue:
    """Algorithm 1: the compact sets of suffixes, newest first, and D; all in order of rank."""

    literal = True

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.sets: list[list[Tuple]] = []
        self.D: list[Tuple] = []

    def compact(self, tuples: list[Tuple]) -> list[Tuple] | None:
        ranking = sorted(tuples, reverse=True)
        passed, enough, _ = self.semantics.read([t.p for t in ranking])
        return ranking[:passed] if enough else None

    def insert(self, t: Tuple) -> None:
        known = len(self.sets)
        self.D.append(t)  # line 3
        while (one := self.compact(self.D)) is not None:  # line 4: printed as 'if'
            self.sets.insert(0, one)  # line 5
            oldest = min(x.number for x in one)
            self.D = [x for x in self.D if x.number > oldest]  # line 6
            if self.literal:
                break
        i = 0 if self.literal else len(self.sets) - known  # the sets just appended are left out
        while i < len(self.sets) and t > self.sets[i][-1]:  # lines 7 and 8
            new = self.compact(list({*self.sets[i], t}))  # line 9
            assert new is not None
            if i and new == self.sets[i - 1]:  # line 10
                del self.sets[i]  # line 11
            else:
                self.sets[i] = new
                i += 1

    def expire(self, number: int) -> None:
        if self.sets and any(t.number == number for t in self.sets[-1]):  # lines 14 and 15
            del self.sets[-1]
        if not self.literal:
            self.D = [t for t in self.D if t.number > number]

    def ranking(self) -> list[Tuple]:
        return self.sets[-1] if self.sets else sorted(self.D, reverse=True)


class CorrectedQueue(Queue):
    literal = False


class Buffer:
    """Algorithm 2 with a buffer of k tuples, and segments without Lambda: enough to see what `B = empty` loses."""

    literal = True

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.B: list[Tuple] = []
        self.segments: list[list[Tuple]] = []

    def insert(self, t: Tuple) -> None:
        self.B.append(t)
        admitted = [i for i in range(1, len(self.B) + 1) if self._enough(self.B[-i:])]
        if len(self.B) >= self.semantics.k and admitted:  # lines 4 and 5
            ranking = sorted(self.B[-admitted[0] :], reverse=True)
            self.segments.append(ranking[: self.semantics.read([x.p for x in ranking])[0]])  # line 6
            self.B = [] if self.literal else self.B[len(self.B) - admitted[0] + 1 :]  # line 8

    def _enough(self, tuples: list[Tuple]) -> bool:
        return self.semantics.read([x.p for x in sorted(tuples, reverse=True)])[1]

    def expire(self, number: int) -> None:
        self.B = [t for t in self.B if t.number > number]
        self.segments = [one for one in self.segments if min(t.number for t in one) > number]  # line 11

    def ranking(self) -> list[Tuple]:
        return sorted({t for one in self.segments for t in one} | set(self.B), reverse=True)


class CorrectedBuffer(Buffer):
    literal = False


def first_wrong(queue: Queue | Buffer, window: int, stream: list[tuple[float, float]]) -> int | None:
    """The first step at which it gives another answer than the whole window."""
    tuples: list[Tuple] = []
    for i, (x, p) in enumerate(stream):
        queue.expire(i - window)
        tuples.append(Tuple(x, i, p))
        queue.insert(tuples[-1])
        answers = []
        for ranking in (queue.ranking(), sorted(tuples[max(0, i + 1 - window) :], reverse=True)):
            places = queue.semantics.read([t.p for t in ranking])[2]
            answers.append([(ranking[place.at].number, place.probability) for place in places])
        if answers[0] != answers[1]:
            return i
    return None
