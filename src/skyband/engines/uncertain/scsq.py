"""SCSQ, the segmental compact set queue: a few compact sets, and the tuples between that may be needed (jin2008, 4.3).

Each segment has a compact set C(S_l) and Lambda, tuples older than it (and newer than the next segment's) that rank
above its lowest: C(S_j) of any suffix that begins between the two is within C(S_l) u Lambda. Only these sets and
C(S_W) are updated.

Cost: O(log W) sets in random order, O(k H) each, per arrival; memory O(H (k + log W)).

Errata: the merge of two segments adds the tuple at position l_(i+1), not 'the oldest': here, what the older set has and
the newer has not, which is at most that. H and the invariants (6), (7) matter for cost only: H is the size of the
largest set that is kept. Where section 4.3 says S_l u Lambda it means C(S_l) u Lambda.
"""

from __future__ import annotations

from dataclasses import dataclass

from skyband.engines.uncertain.semantics import Semantics
from skyband.engines.uncertain.synopsis import Synopsis, Tuple, by_rank, inserted
from skyband.engines.uncertain.synopsis_engine import SynopsisEngine


@dataclass
class Segment:
    """A compact set C(S_l), and Lambda."""

    compact: list[Tuple]  # in order of rank
    between: list[Tuple]  # Lambda

    @property
    def begin(self) -> tuple[int, int]:
        """The age of its oldest tuple, where its suffix begins."""
        return min(t.age for t in self.compact)


class SegmentalQueue(Synopsis):
    """Segments, the tuples that are newer than all of them, and C(S_W)."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics)
        self.segments: list[Segment] = []  # newest first
        self.fresh: list[Tuple] = []  # newer than all segments; in order of rank
        self.current: list[Tuple] | None = None  # C(S_W), if the window admits one

    @property
    def largest(self) -> int:
        """H."""
        return max((len(segment.compact) for segment in self.segments), default=self.semantics.k)

    def insert(self, t: Tuple) -> None:
        if not self.segments or t.age > self.segments[0].begin:
            self.fresh = inserted(self.fresh, t)
            self._change([t], 0)
            self._begin()
        else:
            self._insert_late(t)
        self._join_equal()
        self._merge()
        self._renew(t)

    def _begin(self) -> None:
        """Begin segments, as long as the newest tuples admit compact sets."""
        while (one := self.compact(self.fresh)) is not None:
            segment = Segment(one, [])
            self.segments.insert(0, segment)
            self.fresh = [x for x in self.fresh if x.age > segment.begin]

    def _insert_late(self, t: Tuple) -> None:
        """Take a late tuple: it belongs to the suffixes that reach back to it."""
        older = next((i for i, one in enumerate(self.segments) if one.begin < t.age), len(self.segments))
        newer = self.segments[older - 1]
        if t > newer.compact[-1]:
            newer.between.append(t)
        self._change([t], older)

    def _change(self, arrived: list[Tuple], first: int) -> None:
        """Tuples of the suffixes of these segments change their sets; what is below the lowest leaves Lambda."""
        for segment in self.segments[first:]:
            known = set(segment.compact)  # no tuple enters twice
            above = [t for t in arrived if t > segment.compact[-1] and t not in known]
            if above:
                one = self.compact(by_rank([*segment.compact, *above]))
                assert one is not None, "compact sets maintain themselves (Theorem 3.2)"
                segment.compact = one
                segment.between = [t for t in segment.between if t > one[-1]]

    def _join_equal(self) -> None:
        """Segments with equal sets become one."""
        kept: list[Segment] = []
        for segment in self.segments:
            if kept and kept[-1].compact == segment.compact:
                kept[-1].between += segment.between
            else:
                kept.append(segment)
        self.segments = kept

    def _merge(self) -> None:
        """Invariant (7): the Lambdas of two neighbours have H tuples together, or the two become one segment."""
        i = 0
        while i + 1 < len(self.segments):
            one, other = self.segments[i : i + 2]
            if len(one.between) + len(other.between) >= self.largest:
                i += 1
                continue
            known, floor = {*one.compact, *one.between}, one.compact[-1]
            one.between += [t for t in [*other.between, *other.compact] if t > floor and t not in known]
            del self.segments[i + 1]

    def _renew(self, t: Tuple) -> None:
        """Update C(S_W) by one tuple."""
        if self.current is None:
            self.current = self.compact(by_rank(self.tuples()))
        elif t > self.current[-1]:
            self.current = self.compact(inserted(self.current, t))

    def expire(self, low: int) -> None:
        if any(t.stamp <= low for t in self.fresh):
            self.fresh = [t for t in self.fresh if t.stamp > low]
        while self.segments and self.segments[-1].begin[0] <= low:
            self.segments.pop()
        for segment in reversed(self.segments):
            kept = [t for t in segment.between if t.stamp > low]
            if len(kept) == len(segment.between):
                break
            segment.between = kept
        if self.current is not None and any(t.stamp <= low for t in self.current):
            self.current = self.compact(by_rank(self._supply()))

    def _supply(self) -> set[Tuple]:
        """The tuples that have C(S_W) among them: those of the oldest segment, or all that are newer."""
        return {*self.segments[-1].compact, *self.segments[-1].between} if self.segments else set(self.fresh)

    def ranking(self, low: int) -> list[Tuple]:
        if self.current is not None and all(t.stamp > low for t in self.current):
            return self.current
        return by_rank(t for t in self.tuples() if t.stamp > low)

    def tuples(self) -> set[Tuple]:
        kept = {t for segment in self.segments for t in (*segment.compact, *segment.between)}
        return kept | set(self.fresh) | set(self.current or ())

    @property
    def space(self) -> int:
        stored = sum(len(segment.compact) + len(segment.between) for segment in self.segments)
        return stored + len(self.fresh) + len(self.current or ())

    def check(self) -> None:
        known = by_rank(self.tuples())
        begins = [segment.begin for segment in self.segments]
        assert begins == sorted(set(begins), reverse=True), "segments begin one after the other"
        for begin, segment in zip(begins, self.segments, strict=True):
            assert self.compact([t for t in known if t.age >= begin]) == segment.compact, "the set of its suffix"
            assert all(t > segment.compact[-1] for t in segment.between), "Lambda ranks above the lowest"
        assert self.compact(known) == self.current, "C(S_W) is there"
        assert self.compact(self.fresh) is None


class SCSQ(SynopsisEngine):
    name = "SCSQ"
    synopsis = SegmentalQueue
