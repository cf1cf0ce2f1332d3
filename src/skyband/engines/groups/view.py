"""A view: one window over the objects, and the rankings of the queries that ask about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.contract import Arrivals, Ints
from skyband.engines.groups.bound import Bound, clear
from skyband.engines.groups.kernels.sessions import take_sessions
from skyband.engines.groups.kernels.state import (
    BEFORE,
    COUNTED,
    DIRTY,
    DONE,
    ENDLESS,
    EVENTS,
    KEYED,
    LATER,
    LIVE,
    MIDDLE,
    NEWEST,
    NEXT,
    SESSION,
    SLOT,
    TIMED,
    UNKNOWN,
    WRITTEN,
    Batch,
    Events,
    Floats,
    Live,
    empty_events,
)
from skyband.engines.groups.kernels.steps import close_batch, take_endless, take_keyed, take_windowed
from skyband.engines.groups.measures import Measures, Scores
from skyband.engines.groups.ranks import Moves, Ranking, joined, no_changes
from skyband.engines.groups.store import Store

PIECE = 16384  # events between two evaluations: what they write stays in the cache
SILENT = 2**62  # the serial of a batch none of whose rows is noted
_KERNELS = {
    COUNTED: take_windowed,
    TIMED: take_windowed,
    KEYED: take_keyed,
    ENDLESS: take_endless,
    SESSION: take_sessions,
}
_NO_RANKING = Ranking(0).live(np.zeros(0, SLOT), no_changes(0))
_NONE, _NO = np.empty(0, np.int64), np.empty(0, np.bool_)


class View:
    """The objects of one window, ranked."""

    def __init__(self, mode: int, length: int, net: bool, measures: Measures, timed: bool, gap: int = 0) -> None:
        self.timed = timed  # whether steps have instants: of Ever() too, where rows have times
        self.length = length
        self.store = Store(mode, gap or length, net, measures)
        self.measures, self.net = measures, net
        self.rankings: list[Ranking] = []
        self.events = empty_events(0, len(measures.names))
        self.pieces = no_changes(len(self.events.slot))
        self.bound = Bound()

    def grow(self, slots: int, groups: int) -> None:
        """Make room for so many objects and groups."""
        self.store.grow(slots, groups)
        for ranking in self.rankings:
            ranking.grow(slots, groups)

    def set_moves(self, moves: bool) -> None:
        """Whether members that stay are reported where they have changed."""
        for ranking in self.rankings:
            ranking.moves = moves

    # --- batches

    def take(self, batch: Batch, more: bool) -> list[Moves]:
        """Take a batch; returns the changes of each ranking, by step."""
        store, facts = self.store, self.store.facts
        late = bool((batch.stamps[1:] < batch.stamps[:-1]).any()) or self._is_late(batch)
        store.prepare(batch.values, late)
        facts[[NEXT, EVENTS, UNKNOWN, WRITTEN]] = 0
        kernel, moves = _KERNELS[store.mode], list[list[Moves]]()
        self._make_room(min(PIECE, 2 * len(batch.rows) + 64))
        self.bound.prepare(self, batch)
        window = store.window
        if window.keeps == NEWEST and 4 * len(batch.rows) >= len(store.slots):
            window = window._replace(keeps=LATER)
        while True:
            live = self._live()
            reason = kernel(store.state, window, batch, self.events, live)
            if reason == MIDDLE:
                self._widen_events()
                continue
            if facts[WRITTEN]:
                moves.append([Moves(live.out[: facts[WRITTEN]].copy(), ())])
                facts[WRITTEN] = 0
            if facts[EVENTS]:
                moves.append(self._rank(self.events, int(facts[EVENTS])))
                facts[EVENTS] = 0
            if reason == DONE:
                break
            if self.bound.open:
                self.bound.move(self, batch, live)
        if window.keeps == LATER:
            newest = store.slots["serial"][store.there]
            batch.alive[newest[newest >= batch.serial] - batch.serial] = True
        if self.net and not more:
            moves.append(self._close(batch))
        return [joined([piece[q] for piece in moves]) for q in range(len(self.rankings))]

    def _live(self) -> Live:
        """The ranking that kernels keep up as rows come and go, where the score is an aggregate itself."""
        plain = self.measures.plain
        if plain is None or self.net or len(self.rankings) != 1:
            return _NO_RANKING
        if len(self.pieces) <= len(self.store.slots):  # one step may change as many objects
            self.pieces = no_changes(len(self.store.slots))
        return self.rankings[0].live(self.store.slots, self.pieces, *plain)

    def _is_late(self, batch: Batch) -> bool:
        """Whether the first row of a batch may come out of order."""
        return self.store.mode in (TIMED, SESSION) and len(batch.rows) > 0 and int(self.store.facts[LIVE]) > 0

    def _rank(self, events: Events, size: int) -> list[Moves]:
        scores = self.measures.evaluated(events.values[:, :size], events.slot[:size])
        if scores.ties is not None:
            events.stamp[:size] = scores.ties
        slots = self.store.slots
        return [ranking.take(slots, events, size, scores, self.pieces) for ranking in self.rankings]

    def _close(self, batch: Batch) -> list[Moves]:
        """End a net batch: rank what has changed in it, in one step."""
        store = self.store
        slots = store.dirty[: store.facts[DIRTY]].astype(np.int64)
        events = store.read(slots, batch.serial, batch.clock if self.timed else BEFORE)
        close_batch(store.state)
        if len(self.pieces) < 3 * len(slots):
            self.pieces = no_changes(len(slots))
        return self._rank(events, len(slots))

    def _make_room(self, size: int) -> None:
        """Room for at least so many events."""
        if not self.net and len(self.events.slot) < size:
            self.events = empty_events(size, len(self.measures.names))
            self.pieces = no_changes(size)
        elif self.net and not len(self.events.slot):
            self.events = empty_events(2, len(self.measures.names))

    def _widen_events(self) -> None:
        """Room for twice as many events, with those that are there."""
        old = self.events
        self.events = empty_events(2 * len(old.slot), len(self.measures.names))
        for was, now in zip(old, self.events, strict=True):
            now[..., : was.shape[-1]] = was
        self.pieces = no_changes(len(self.events.slot))

    # --- objects as they are

    def scores(self, slots: Ints) -> tuple[Events, Scores]:
        """Objects as they are now, and their scores."""
        events = self.store.read(slots)
        scores = self.measures.evaluated(events.values, slots)
        scores.keys[events.decider < 0] = np.nan
        if scores.ties is not None:
            events.stamp[:] = scores.ties
        return events, scores

    def clear_bound(self) -> None:
        """Know the aggregates of all objects; no batch is open."""
        clear(self, _silent(_NONE, _NONE, _NONE, _NONE, np.empty((0, self.measures.columns))))

    def rank_all(self) -> None:
        """Rank all objects by what is kept of them, as if for the first time."""
        slots = np.flatnonzero(self.store.there)
        events, scores = self.scores(slots)
        for ranking in self.rankings:
            ranking.set_keys(slots, events, scores)
            ranking.rebuild(self.store.slots)

    def best(self, ranking: Ranking, k: int, groups: Ints) -> tuple[Ints, Ints, Events, Scores]:
        """The k best objects of these groups, best first: slots, ranks, and the objects as they are now."""
        if self.store.open:
            slots = np.flatnonzero(self.store.there & np.isin(self.store.slots["group"], groups))
        else:
            slots, _ = ranking.members(groups)
        events, scores = self.scores(slots)
        owners = self.store.slots["group"][slots].astype(np.int64)
        order, rank = ranking.best(owners, events, scores, k, whole=self.store.open)
        events, scores = self.scores(slots[order])
        return slots[order], rank, events, scores

    def refill(self, groups: Ints, slots: Ints, stamps: Ints, serials: Ints, values: Floats) -> None:
        """Take rows that are valid, the oldest first, into a new view; slots: -1 for those without an object."""
        store = self.store
        batch = _silent(groups, slots, stamps, serials, values)
        store.prepare(values, late=True)
        if store.mode == KEYED:
            store.places = np.full(len(serials), -1, np.int32)
        store.facts[[NEXT, EVENTS]] = 0
        quiet = store.window._replace(net=True, length=SILENT)  # and nothing expires
        _KERNELS[store.mode](store.state, quiet, batch, empty_events(2, len(self.measures.names)), _NO_RANKING)
        close_batch(store.state)
        store.groups["last"], store.groups["now"] = -1, 0


def batch_of(arrivals: Arrivals, measures: Measures, alive: Any, deletes: Any) -> Batch:
    """Arrivals as kernels read them."""
    assert arrivals.objects is not None
    attributes = arrivals.attributes or ()
    return Batch(
        rows=np.ascontiguousarray(arrivals.rows),
        groups=np.ascontiguousarray(arrivals.groups),
        slots=np.ascontiguousarray(arrivals.objects),
        stamps=np.ascontiguousarray(arrivals.stamps),
        now=np.ascontiguousarray(arrivals.now),
        values=measures.arguments(attributes, len(arrivals.rows)),
        eligible=_NO if arrivals.eligible is None else np.ascontiguousarray(arrivals.eligible),
        ids=_NONE if arrivals.names is None else arrivals.names,
        deletes=deletes,
        joined=_joined(arrivals.steps),
        replaced=_NONE if arrivals.names is None else np.empty(len(arrivals.rows), np.int64),
        weights=_NONE if arrivals.weights is None else np.ascontiguousarray(arrivals.weights),
        alive=alive,
        serial=arrivals.serial,
        clock=arrivals.clock,
    )


def _silent(groups: Ints, slots: Ints, stamps: Ints, serials: Ints, values: Floats) -> Batch:
    """Rows that have been there before."""
    return Batch(
        rows=serials - SILENT,
        groups=groups,
        slots=slots,
        stamps=stamps,
        now=np.zeros(len(serials), np.int64),
        values=values,
        eligible=slots >= 0,
        ids=np.arange(len(serials)),
        deletes=_NO,
        joined=_NO,
        replaced=np.empty(len(serials), np.int64),
        weights=_NONE,
        alive=_NO,
        serial=SILENT,
        clock=0,
    )


def _joined(steps: Ints | None) -> Any:
    """Which arrivals are of the same step as the next one; empty: none is."""
    if steps is None or not len(steps):
        return _NO
    return np.append(steps[1:] == steps[:-1], False)
