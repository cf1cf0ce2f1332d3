"""Scores that no kernel computes: those of a block of new pairs by NumPy or a function, then the steps as always."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skyband.engines.contract import Floats, Ints
from skyband.engines.pairs.kernels.records import END, HEAD, NEVER, Stream
from skyband.engines.pairs.window import Columns, Store, gathered, with_rows

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs

PAIRS_AT_ONCE = 1 << 16  # that NumPy or a function scores


def run_given(engine: Pairs, store: Store, stream: Stream, last: int, columns: Columns, mine: Ints) -> None:
    """The same, with the scores of blocks of new pairs computed first."""
    size, begin = len(stream.stamps), 0
    while begin < size:
        comes = np.flatnonzero(stream.eligible) if len(stream.eligible) else np.arange(size)
        comes = comes[comes >= begin]
        end = _block(store, stream, begin, comes)
        comes = comes[comes < end]
        store.make_room(len(comes) + 1)
        rows = gathered(columns, mine[comes])
        at = int(store.facts[END])
        place = at
        if len(comes) and at > store.facts[HEAD]:
            place = int(np.searchsorted(store.window.stamps[store.live], stream.stamps[comes[0]], "right"))
            place += int(store.facts[HEAD])
        room = len(store.window.stamps)
        store.columns = {name: with_rows(store.columns.get(name), rows[name], at, room) for name in rows}
        given, starts = _scores(engine, store, stream, comes, at, place)
        part = Stream(
            stamps=stream.stamps[begin:end],
            now=stream.now[begin:end],
            rows=stream.rows[begin:end],
            eligible=stream.eligible[begin:end] if len(stream.eligible) else stream.eligible,
            values=np.empty((0, end - begin)),
            given=given,
            begins=np.zeros(end - begin, np.int64),
            wild=bool(np.isnan(given).any()),
            serial=stream.serial,
            scored=stream.scored[begin:end],
        )
        part.begins[comes - begin] = starts
        engine._run(store, part, int(part.now[-1]))
        if place < at:  # a late one
            for column in store.columns.values():
                new = column[at]
                column[place + 1 : at + 1] = column[place:at].copy()
                column[place] = new
        begin = end
    empty = stream._replace(
        stamps=stream.stamps[:0], now=stream.now[:0], rows=stream.rows[:0], eligible=stream.eligible[:0]
    )
    engine._run(store, empty, last)


def _block(store: Store, stream: Stream, begin: int, comes: Ints) -> int:
    """How far one block of arrivals goes: some thousand pairs, or one that is late."""
    size = len(stream.stamps)
    if not len(comes):
        return size
    newest = int(store.window.stamps[store.facts[END] - 1]) if store.facts[END] > store.facts[HEAD] else -NEVER
    stamps = stream.stamps[comes]
    late = np.flatnonzero(np.diff(stamps, prepend=newest) < 0)
    if len(late) and late[0] == 0:
        return int(comes[0]) + 1
    live = int(store.facts[END] - store.facts[HEAD])
    pairs = np.cumsum(live + np.arange(len(comes)))
    many = max(1, int(np.searchsorted(pairs, PAIRS_AT_ONCE)))
    stop = min(many, int(late[0]) if len(late) else many)
    return int(comes[stop]) if stop < len(comes) else size


def _scores(engine: Pairs, store: Store, stream: Stream, comes: Ints, at: int, place: int) -> tuple[Floats, Ints]:
    """Scores of each of these arrivals with the valid objects before it; the new ones are kept from `at` on."""
    assert engine.scores is not None
    if not len(comes):
        return np.empty(0), np.empty(0, np.int64)
    head = int(store.facts[HEAD])
    stamps = np.concatenate([store.window.stamps[head:at], stream.stamps[comes]])
    late = place < at
    known = stamps[: at - head] if late else stamps
    ends = at + np.arange(len(comes))
    low = np.minimum(head + np.searchsorted(known, stream.now[comes] - engine.length[-1], "right"), ends)
    if len(stream.scored):
        low = np.where(stream.scored[comes], low, ends)
    counts = ends - low
    begins = np.cumsum(counts) - counts
    others, new = np.arange(int(counts.sum())) - np.repeat(begins - low, counts), np.repeat(ends, counts)
    if not len(others):
        return np.empty(0), begins - low
    before = others < place if late else np.ones(len(others), np.bool_)
    older, newer = np.where(before, others, new), np.where(before, new, others)
    return engine.scores(gathered(store.columns, older), gathered(store.columns, newer)), begins - low
