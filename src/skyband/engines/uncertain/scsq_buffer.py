"""SCSQ-Buffer: the newest tuples wait in a buffer; segments are updated by k H of them at once (jin2008, Algorithm 2).

Only C(S_W) follows each arrival. When the buffer is full, its tuples change the segments' sets, and segments of its own
are built from the newest tuple that admits a compact set on.

Cost: O(log W) per arrival on average, and O(k H) for each change of C(S_W); memory O(H (k + log W)), the buffer not
counted, which has k H tuples.

Errata: `B = empty` (line 8) loses tuples: those newer than the first set, which admit no compact set, stay in the
buffer. C(S_W) is rebuilt from the oldest segment and the buffer together, without expired tuples. A tuple that is kept
must not enter a set twice.
"""

from __future__ import annotations

from skyband.engines.uncertain.scsq import Segment, SegmentalQueue
from skyband.engines.uncertain.semantics import Semantics
from skyband.engines.uncertain.synopsis import Tuple, by_age, by_rank, inserted
from skyband.engines.uncertain.synopsis_engine import SynopsisEngine


class BufferedQueue(SegmentalQueue):
    """As SegmentalQueue; `fresh` is the buffer B."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics)
        self.wait = 0  # tuples that the buffer held when it could not be emptied

    def insert(self, t: Tuple) -> None:
        if self.segments and t.age < self.segments[0].begin:
            self._insert_late(t)
            self._join_equal()
            self._merge()
        else:
            self.fresh = inserted(self.fresh, t)  # line 3: B
            if len(self.fresh) >= max(self.semantics.k * self.largest, 2 * self.wait):
                self._empty()
        self._renew(t)

    def _empty(self) -> None:
        """Update the segments by the buffer, and build those of its own (lines 5 to 8)."""
        buffer = by_age(self.fresh)
        low, high = 0, len(buffer) + 1  # the newest `low` admit no compact set, the newest `high` do
        while high - low > 1:  # line 5
            middle = (low + high) // 2
            admits = self.compact(by_rank(buffer[len(buffer) - middle :])) is not None
            low, high = (low, middle) if admits else (middle, high)
        if high > len(buffer):
            self.wait = len(buffer)
            return
        self.wait = 0
        self._change(self.fresh, 0)  # line 7
        built: list[Segment] = []  # line 6
        newest = buffer[len(buffer) - high :]
        one = self.compact(by_rank(newest))
        assert one is not None
        segment = Segment(one, [])
        for t in reversed(buffer[: len(buffer) - high]):
            if t > segment.compact[-1]:
                segment.between.append(t)
            if len(segment.between) == self.largest:
                built.append(segment)
                again = self.compact(by_rank([*segment.compact, *segment.between]))
                assert again is not None
                segment = Segment(again, [])
        self.segments = [*built, segment, *self.segments]
        self._join_equal()
        self.fresh = by_rank(newest[1:])  # B_(i-1) stays
        self._merge()

    def _supply(self) -> set[Tuple]:
        return super()._supply() | set(self.fresh)

    def check(self) -> None:
        known = by_rank(self.tuples())
        assert self.compact(known) == self.current, "C(S_W) is there"
        begins = [segment.begin for segment in self.segments]
        assert begins == sorted(set(begins), reverse=True), "segments begin one after the other"
        for begin, segment in zip(begins, self.segments, strict=True):
            waiting = {t for t in self.fresh if t not in segment.compact}
            suffix = [t for t in known if t.age >= begin and t not in waiting]
            assert self.compact(suffix) == segment.compact, "the set of its suffix, but for the buffer"
            assert all(t > segment.compact[-1] for t in segment.between), "Lambda ranks above the lowest"


class SCSQBUFFER(SynopsisEngine):
    name = "SCSQ-BUFFER"
    synopsis = BufferedQueue
