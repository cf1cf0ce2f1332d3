"""SCSQ-Buffer: the newest tuples wait, and the segments are updated by k H of them at once (jin2008, Algorithm 2).

Only C(S_W) follows each arrival. When the buffer is full, its tuples change the segments' sets, and segments of its own
are built from the newest tuple that admits a compact set on.

Cost: O(log W) per arrival on average, and O(k H) for each change of C(S_W); memory O(H (k + log W)), the buffer not
counted, which has k H tuples.

Errata: `B = empty` (line 8) loses tuples: those newer than the first set, which admit no compact set, stay in the
buffer. C(S_W) is rebuilt from the oldest segment and the buffer together, without the expired. A tuple that is kept
must not enter a set twice.
"""

from __future__ import annotations

from skyband.engines.uncertain.queues import Queues, Tuple, by_age, by_rank, put_in
from skyband.engines.uncertain.scsq import Segment, SegmentedQueue
from skyband.engines.uncertain.semantics import Semantics


class BufferedQueue(SegmentedQueue):
    def __init__(self, meaning: Semantics) -> None:
        super().__init__(meaning)
        self.wait = 0  # tuples that the buffer held when it could not be emptied

    def insert(self, t: Tuple) -> None:
        if self.segments and t.age < self.segments[0].begin:
            self._slip_in(t)
            self._unite()
            self._merge()
        else:
            self.fresh = put_in(self.fresh, t)  # line 3: B
            if len(self.fresh) >= max(self.meaning.k * self.largest, 2 * self.wait):
                self._empty()
        self._renew(t)

    def _empty(self) -> None:
        """Lines 5 to 8."""
        buffer = by_age(self.fresh)
        low, high = 0, len(buffer) + 1  # so many of the newest do not, and do admit a compact set
        while high - low > 1:  # line 5
            middle = (low + high) // 2
            admits = self.compact(by_rank(buffer[len(buffer) - middle :])) is not None
            low, high = (low, middle) if admits else (middle, high)
        if high > len(buffer):
            self.wait = len(buffer)
            return
        self.wait = 0
        self._update(self.fresh, 0)  # line 7
        built: list[Segment] = []  # line 6
        newest = buffer[len(buffer) - high :]
        one = self.compact(by_rank(newest))
        assert one is not None
        segment = Segment(one, [])
        for t in reversed(buffer[: len(buffer) - high]):
            if t > segment.compact[-1]:
                segment.more.append(t)
            if len(segment.more) == self.largest:
                built.append(segment)
                again = self.compact(by_rank([*segment.compact, *segment.more]))
                assert again is not None
                segment = Segment(again, [])
        self.segments = [*built, segment, *self.segments]
        self._unite()
        self.fresh = by_rank(newest[1:])  # B_(i-1) stays
        self._merge()

    def _supply(self) -> set[Tuple]:
        return super()._supply() | set(self.fresh)

    def check(self) -> None:
        known = by_rank(self.tuples())
        assert self.compact(known) == self.oldest, "C(S_W) is there"
        begins = [segment.begin for segment in self.segments]
        assert begins == sorted(set(begins), reverse=True), "segments begin one after the other"
        for begin, segment in zip(begins, self.segments, strict=True):
            waiting = {t for t in self.fresh if t not in segment.compact}
            suffix = [t for t in known if t.age >= begin and t not in waiting]
            assert self.compact(suffix) == segment.compact, "the set of its suffix, but for the buffer"
            assert all(t > segment.compact[-1] for t in segment.more), "Lambda ranks above the lowest"


class SCSQBUFFER(Queues):
    name = "SCSQ-BUFFER"
    synopsis = BufferedQueue
