"""SCSQ, the segmental compact set queue: a few compact sets, and between them whoever may be needed (jin2008, 4.3).

Each segment has a compact set C(S_l) and Lambda, tuples older than it (and newer than the next segment's) that rank
above its lowest: C(S_j) of any suffix that begins between is within both. Only these sets and C(S_W) are updated.

Cost: O(log W) sets in random order, O(k H) each, per arrival; memory O(H (k + log W)).

Errata: the merge of two segments adds the tuple at position l_(i+1), not 'the oldest': here, what the older set has and
the newer has not, which is at most that. H and the invariants (6), (7) matter for cost only: H is the size of the
largest set that is kept. Where section 4.3 says S_l u Lambda it means C(S_l) u Lambda.
"""

from __future__ import annotations

from dataclasses import dataclass

from skyband.engines.uncertain.queues import Queues, Synopsis, Tuple, by_rank, put_in
from skyband.engines.uncertain.semantics import Semantics


@dataclass
class Segment:
    compact: list[Tuple]  # in order of rank
    more: list[Tuple]  # Lambda

    @property
    def begin(self) -> tuple[int, int]:
        return min(t.age for t in self.compact)


class SegmentedQueue(Synopsis):
    def __init__(self, meaning: Semantics) -> None:
        super().__init__(meaning)
        self.segments: list[Segment] = []  # newest first
        self.fresh: list[Tuple] = []  # newer than all segments; in order of rank
        self.oldest: list[Tuple] | None = None  # C(S_W), if the window admits one
        self.low = -(2**63)

    @property
    def largest(self) -> int:
        return max((len(segment.compact) for segment in self.segments), default=self.meaning.k)

    def insert(self, t: Tuple) -> None:
        if not self.segments or t.age > self.segments[0].begin:
            self.fresh = put_in(self.fresh, t)
            self._update([t], 0)
            self._begin()
        else:
            self._slip_in(t)
        self._unite()
        self._merge()
        self._renew(t)

    def _begin(self) -> None:
        """New segments, as long as the newest tuples admit compact sets."""
        while (one := self.compact(self.fresh)) is not None:
            segment = Segment(one, [])
            self.segments.insert(0, segment)
            self.fresh = [x for x in self.fresh if x.age > segment.begin]

    def _slip_in(self, t: Tuple) -> None:
        """A late tuple: part of the suffixes that reach back to it."""
        older = next((i for i, one in enumerate(self.segments) if one.begin < t.age), len(self.segments))
        newer = self.segments[older - 1]
        if t > newer.compact[-1]:
            newer.more.append(t)
        self._update([t], older)

    def _update(self, arrived: list[Tuple], first: int) -> None:
        """Tuples that belong to the suffixes of these segments change their sets; who is below leaves Lambda."""
        for segment in self.segments[first:]:
            known = set(segment.compact)  # no tuple enters twice
            above = [t for t in arrived if t > segment.compact[-1] and t not in known]
            if above:
                one = self.compact(by_rank([*segment.compact, *above]))
                assert one is not None, "compact sets maintain themselves (Theorem 3.2)"
                segment.compact = one
                segment.more = [t for t in segment.more if t > one[-1]]

    def _unite(self) -> None:
        """Equal sets become one."""
        kept: list[Segment] = []
        for segment in self.segments:
            if kept and kept[-1].compact == segment.compact:
                kept[-1].more += segment.more
            else:
                kept.append(segment)
        self.segments = kept

    def _merge(self) -> None:
        """Invariant (7): two neighbours have H tuples between sets, or become one."""
        i = 0
        while i + 1 < len(self.segments):
            one, other = self.segments[i : i + 2]
            if len(one.more) + len(other.more) >= self.largest:
                i += 1
                continue
            known, floor = {*one.compact, *one.more}, one.compact[-1]
            one.more += [t for t in [*other.more, *other.compact] if t > floor and t not in known]
            del self.segments[i + 1]

    def _renew(self, t: Tuple) -> None:
        """C(S_W) with one tuple more."""
        if self.oldest is None:
            self.oldest = self.compact(by_rank(self.tuples()))
        elif t > self.oldest[-1]:
            self.oldest = self.compact(put_in(self.oldest, t))

    def expire(self, low: int) -> None:
        self.low = low
        if any(t.stamp <= low for t in self.fresh):
            self.fresh = [t for t in self.fresh if t.stamp > low]
        while self.segments and self.segments[-1].begin[0] <= low:
            self.segments.pop()
        for segment in reversed(self.segments):
            kept = [t for t in segment.more if t.stamp > low]
            if len(kept) == len(segment.more):
                break
            segment.more = kept
        if self.oldest is not None and any(t.stamp <= low for t in self.oldest):
            self.oldest = self.compact(by_rank(self._supply()))

    def _supply(self) -> set[Tuple]:
        """Where C(S_W) comes from: the oldest segment, and what is not in segments yet."""
        return {*self.segments[-1].compact, *self.segments[-1].more} if self.segments else set(self.fresh)

    def ranking(self, low: int) -> list[Tuple]:
        if self.oldest is not None and all(t.stamp > low for t in self.oldest):
            return self.oldest
        return by_rank(t for t in self.tuples() if t.stamp > low)

    def tuples(self) -> set[Tuple]:
        kept = {t for segment in self.segments for t in (*segment.compact, *segment.more)}
        return kept | set(self.fresh) | set(self.oldest or ())

    @property
    def space(self) -> int:
        stored = sum(len(segment.compact) + len(segment.more) for segment in self.segments)
        return stored + len(self.fresh) + len(self.oldest or ())

    def check(self) -> None:
        known = by_rank(self.tuples())
        begins = [segment.begin for segment in self.segments]
        assert begins == sorted(set(begins), reverse=True), "segments begin one after the other"
        for begin, segment in zip(begins, self.segments, strict=True):
            assert self.compact([t for t in known if t.age >= begin]) == segment.compact, "the set of its suffix"
            assert all(t > segment.compact[-1] for t in segment.more), "Lambda ranks above the lowest"
        assert self.compact(known) == self.oldest, "C(S_W) is there"
        assert self.compact(self.fresh) is None


class SCSQ(Queues):
    name = "SCSQ"
    synopsis = SegmentedQueue
