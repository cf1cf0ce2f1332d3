"""Scores that no kernel computes: of a block of new pairs at once, by NumPy or a function, then the usual steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skyband.engines.contract import Bools, Floats, Ints
from skyband.engines.pairs.group import Columns, Group, gathered, with_rows
from skyband.engines.pairs.kernels.records import END, HEAD, NEVER, Stream

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs

Scores = Callable[[Columns, Columns], Floats]


class Given(NamedTuple):
    """How NumPy or a function scores pairs, from the columns of the older and of the newer members."""

    scores: Scores
    joins: Callable[[Columns, Columns], Bools] | None  # which of them are pairs; None: all


PAIRS_AT_ONCE = 1 << 16  # scored by NumPy or a function


def run_given(engine: Pairs, group: Group, stream: Stream, last: int, columns: Columns, mine: Ints) -> None:
    """Take a group's arrivals, block by block: the scores of all new pairs of a block are computed first."""
    size, begin = len(stream.stamps), 0
    while begin < size:
        new = np.flatnonzero(stream.eligible) if len(stream.eligible) else np.arange(size)
        new = new[new >= begin]
        end = _block_end(group, stream, new)
        new = new[new < end]
        group.grow_window(len(new) + 1)
        rows = gathered(columns, mine[new])
        at = place = int(group.facts[END])
        if len(new) and at > group.facts[HEAD]:
            place = int(np.searchsorted(group.window.stamps[group.live], stream.stamps[new[0]], "right"))
            place += int(group.facts[HEAD])
        capacity = len(group.window.stamps)
        group.columns = {name: with_rows(group.columns.get(name), rows[name], at, capacity) for name in rows}
        given, joined, starts = _scores(engine, group, stream, new, at, place)
        part = Stream(
            stamps=stream.stamps[begin:end],
            now=stream.now[begin:end],
            rows=stream.rows[begin:end],
            eligible=stream.eligible[begin:end] if len(stream.eligible) else stream.eligible,
            values=np.empty((0, end - begin)),
            given=given,
            begins=np.zeros(end - begin, np.int64),
            unsafe=bool(np.isnan(given).any()),
            joined=joined,
            serial=stream.serial,
            scored=stream.scored[begin:end],
        )
        part.begins[new - begin] = starts
        engine._run(group, part, int(part.now[-1]))
        if place < at:  # a late one
            for column in group.columns.values():
                late = column[at]
                column[place + 1 : at + 1] = column[place:at].copy()
                column[place] = late
        begin = end
    empty = stream._replace(
        stamps=stream.stamps[:0], now=stream.now[:0], rows=stream.rows[:0], eligible=stream.eligible[:0]
    )
    engine._run(group, empty, last)


def _block_end(group: Group, stream: Stream, new: Ints) -> int:
    """The end of a block of arrivals: as many as make PAIRS_AT_ONCE, or one that is late."""
    size = len(stream.stamps)
    if not len(new):
        return size
    newest = int(group.window.stamps[group.facts[END] - 1]) if group.facts[END] > group.facts[HEAD] else -NEVER
    stamps = stream.stamps[new]
    late = np.flatnonzero(np.diff(stamps, prepend=newest) < 0)
    if len(late) and late[0] == 0:
        return int(new[0]) + 1
    live = int(group.facts[END] - group.facts[HEAD])
    pairs = np.cumsum(live + np.arange(len(new)))
    many = max(1, int(np.searchsorted(pairs, PAIRS_AT_ONCE)))
    stop = min(many, int(late[0]) if len(late) else many)
    return int(new[stop]) if stop < len(new) else size


def _scores(engine: Pairs, group: Group, stream: Stream, new: Ints, at: int, place: int) -> tuple[Floats, Bools, Ints]:
    """Score each of these arrivals with the valid objects before it.

    Returns the scores, which of them are of pairs (empty: all), and where each one's begin.
    The columns of the arrivals stand from index `at` on; the first belongs at `place`, and is the only one if late.
    """
    assert engine.given is not None
    all_join = np.empty(0, np.bool_)
    if not len(new):
        return np.empty(0), all_join, np.empty(0, np.int64)
    head = int(group.facts[HEAD])
    stamps = np.concatenate([group.window.stamps[head:at], stream.stamps[new]])
    late = place < at
    known = stamps[: at - head] if late else stamps
    ends = at + np.arange(len(new))
    low = np.minimum(head + np.searchsorted(known, stream.now[new] - engine.length[-1], "right"), ends)
    if len(stream.scored):
        low = np.where(stream.scored[new], low, ends)
    counts = ends - low
    begins = np.cumsum(counts) - counts
    others, mine = np.arange(int(counts.sum())) - np.repeat(begins - low, counts), np.repeat(ends, counts)
    if not len(others):
        return np.empty(0), all_join, begins - low
    before = others < place if late else np.ones(len(others), np.bool_)
    older, newer = np.where(before, others, mine), np.where(before, mine, others)
    one, other = gathered(group.columns, older), gathered(group.columns, newer)
    if engine.given.joins is None:
        return engine.given.scores(one, other), all_join, begins - low
    joined, scores = engine.given.joins(one, other), np.full(len(others), np.nan)
    if joined.any():  # what is no pair is not scored
        scores[joined] = engine.given.scores(gathered(one, joined), gathered(other, joined))
    return scores, joined, begins - low
