"""SASF, SARF, SAPF, RASF, RARF and RAPF: a buffer and a filter before a skyband (pripuzic2015, section 5).

The name says both parts: SA or RA keeps the run of the window (strict or relaxed), SF, RF or PF is the filter over the
buffer (strict, relaxed or probabilistic); kernels/filters.py has the algorithm. All six are exact, whatever the order
of the stream: a filter only decides when an object reaches the run.

The buffer holds `buffer` arrivals (default 2,000), at most (n + 1) // 2 of a count window, and in a time window only
those of less than half its span. RAPF2 of the paper is RAPF with the largest buffer.

Keeps k·(1 + ln(n/b)) objects in a run in random order, a filter of the size of a skyband (or of PA's) of b, and b
arrivals of the buffer. Cost: see kernels/filters.py; k/b of the arrivals reach the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines.arena import best_of, place, recast, runs, unplaced
from skyband.engines.contract import Answer, Bools, Changes, Ints, Spec
from skyband.engines.invariants import are_counts, require
from skyband.engines.topk.base import Records, SkybandEngine
from skyband.engines.topk.invariants import check_buffers
from skyband.engines.topk.kernels.filters import Buffers, sift
from skyband.engines.topk.kernels.state import Skybands
from skyband.engines.topk.odds import candidates
from skyband.engines.topk.ra import first_limits, relaxed
from skyband.kernels.records import (
    ARRIVAL,
    CAP,
    CAPPED,
    GROUP,
    OBJECT,
    QUERY,
    RELAXED,
    RULE,
    SILENT,
    STRICT,
    VIEW,
    WAITING,
)
from skyband.query.tuning import Tuning

BUFFER = 2000  # arrivals (Table IX)


class Filters:
    """The filters of all groups of an engine, or of all lanes: small skybands of the objects in their buffers."""

    def __init__(self, kind: int, tuning: Tuning, most: int, K: int) -> None:
        self.objects, self.groups, self.caps = np.empty(0, OBJECT), np.empty(0, GROUP), np.empty(0, CAP)
        self.tally = np.zeros(1, np.int64)  # places of the arena in use
        self.stamps = np.empty(K, np.int64)  # scratch of kernels
        self.rule = relaxed(tuning.gamma) if kind == RELAXED else np.zeros(1, RULE)
        if kind == CAPPED:
            self.rule["kind"], self.rule["growth"] = CAPPED, 1  # section 6.1: the whole gap, none additional, and
            self.rule["floor"] = 1  # it "is not reset"
            self.rule["limit"] = candidates(most, K, tuning.sigma)

    def grow(self, more: int) -> None:
        """Empty filters for so many more groups."""
        self.groups = np.concatenate([self.groups, np.zeros(more, GROUP)])
        self.caps = np.concatenate([self.caps, first_limits(more, len(self.stamps))])

    @property
    def skybands(self) -> Skybands:
        """The filters as kernels see them."""
        views, queries = np.empty(0, VIEW), np.empty(0, QUERY)
        return Skybands(self.objects, self.groups, views, queries, self.rule, self.caps, self.tally, self.stamps)

    @property
    def nbytes(self) -> int:
        return int(self.objects.nbytes + self.groups.nbytes)

    def snapshot(self, groups: Ints) -> dict[str, Records]:
        """The filters of these groups."""
        return {
            "sieve": runs(self.objects, self.groups, groups),
            "sieves": unplaced(self.groups[groups]),
            "mesh": self.caps[groups],
        }

    def restore(self, state: Mapping[str, Records]) -> None:
        self.objects, self.groups = placed(state, "sieve", "sieves", OBJECT)
        self.caps = recast(state["mesh"], CAP).copy()
        require(len(self.caps) == len(self.groups), "every filter has its caps")
        self.tally[0] = len(self.objects)


def placed(state: Mapping[str, Records], objects: str, groups: str, dtype: Any) -> tuple[Records, Records]:
    """An arena and its groups, as they are stored under these names."""
    found, places = recast(state[objects], dtype).copy(), recast(state[groups], GROUP).copy()
    require(
        are_counts(places["size"], len(found)) and (places["size"] == places["room"]).all(),
        "buffers have their objects",
    )
    place(places)
    return found, places


def buffer_limits(most: int, length: int, *, timed: bool) -> tuple[int, int]:
    """How many objects may wait, and how long: 2·reach < length (Theorem 5.1)."""
    reach = (length - 1) // 2
    return (most, reach) if timed else (min(most, reach + 1), min(most, reach + 1) - 1)


class Buffered(SkybandEngine):
    """A run of the window behind a filter of the buffer, for every group."""

    run = STRICT
    filter = STRICT

    def __init__(self, specs: tuple[Spec, ...], *rest: Any, **options: Any) -> None:
        super().__init__(specs, *rest, **options)
        self._set_buffer(specs)

    def _rule(self, specs: tuple[Spec, ...]) -> Records:
        return relaxed(self.tuning.gamma) if self.run == RELAXED else np.zeros(1, RULE)

    def _new_caps(self, size: int) -> Records:
        return first_limits(size if self.run == RELAXED else 0, int(self.queries["k"].max()))

    def _set_buffer(self, specs: tuple[Spec, ...]) -> None:
        """Empty buffers and filters."""
        length = min(spec.length for spec in specs)
        self.most, self.reach = buffer_limits(self.tuning.buffer or BUFFER, length, timed=self.timed)
        self.filters = Filters(self.filter, self.tuning, self.most, max(spec.k for spec in specs))
        self.waiting, self.queues = np.empty(0, WAITING), np.zeros(len(self.groups), GROUP)
        self.waiting_tally = np.zeros(1, np.int64)  # places of the buffers in use
        self.filters.grow(len(self.groups))

    def _grow(self, total: int) -> None:
        more = total - len(self.groups)
        super()._grow(total)
        if more > 0:
            self.filters.grow(more)
            self.queues = np.concatenate([self.queues, np.zeros(more, GROUP)])

    def _feed(self, chosen: Records, slices: Records, alive: Bools, serial: int, more: bool) -> Records:
        passed = np.empty(2 * len(chosen) + int(self.queues["size"][slices["group"]].sum()), ARRIVAL)
        buffers = Buffers(self.waiting, self.queues, self.waiting_tally, self.most, self.reach)
        report, slices = self._report(self.held[:0], alive, serial, more, net=self.net), slices.copy()
        self.filters.objects, self.waiting, count = sift(
            self.filters.skybands, buffers, report, chosen, slices, passed, len(self.filters.stamps)
        )
        out = super()._feed(passed[:count], slices, alive, serial, more)
        waiting = runs(self.waiting, self.queues, slices["group"])["serial"]
        alive[waiting[waiting >= serial] - serial] = True
        return out

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        """All objects leave their buffers first: another window needs another one."""
        self._grow(len(now))
        waiting, sizes = runs(self.waiting, self.queues, np.arange(len(self.groups))), self.queues["size"]
        silent = np.empty(len(waiting), ARRIVAL)
        silent["key"], silent["stamp"], silent["row"] = waiting["key"], waiting["stamp"], waiting["serial"] - SILENT
        silent["now"] = np.repeat(now, sizes)
        self.admit(silent, sizes)
        self._set_buffer(specs)
        return super().refit(specs, predecessors, now)

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        if spec.length == self.queries["length"][query]:
            return super().answer(query, spec, now, groups)
        chosen = np.arange(len(self.groups)) if groups is None else groups
        arenas = ((self.objects, self.groups), (self.waiting, self.queues))
        kept = [(runs(*arena, chosen), arena[1]["size"][chosen]) for arena in arenas]
        return best_of(chosen, kept, spec, now)  # of a shorter window the best may be in the buffer

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        kept, sizes = super().serials(groups)
        waiting = runs(self.waiting, self.queues, chosen)["serial"]
        places = np.concatenate(
            [np.repeat(np.arange(len(chosen)), sizes), np.repeat(np.arange(len(chosen)), self.queues["size"][chosen])]
        )
        both = np.unique(np.stack([places, np.concatenate([kept, waiting])]), axis=1)  # what was let through waits too
        return both[1], np.bincount(both[0], minlength=len(chosen))

    @property
    def kept(self) -> Ints:
        return np.asarray(self.groups["size"] + self.queues["size"])

    @property
    def buffer(self) -> int:
        return int(self.queues["size"].sum())

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.filters.nbytes + int(self.waiting.nbytes + self.queues.nbytes)

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        ones, filters = np.ones(len(groups), np.int64), self.filters.snapshot(groups)
        return super().snapshot(groups) | {
            "sieve": (filters["sieve"], filters["sieves"]["size"]),
            "sieves": (filters["sieves"], ones),
            "mesh": (filters["mesh"], ones),
            "waiting": (runs(self.waiting, self.queues, groups), self.queues["size"][groups]),
            "queues": (unplaced(self.queues[groups]), ones),
        }

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        super().restore(state, trusted=trusted)
        self.filters.restore(state)
        self.waiting, self.queues = placed(state, "waiting", "queues", WAITING)
        require(len(self.filters.groups) == len(self.queues) == len(self.groups), "every group has a buffer")
        self.waiting_tally[0] = len(self.waiting)

    def reset_groups(self, groups: Ints) -> None:
        super().reset_groups(groups)
        for runs_of in (self.queues, self.filters.groups):
            runs_of["head"][groups], runs_of["size"][groups] = runs_of["start"][groups], 0
        self.filters.caps[groups] = first_limits(1, len(self.filters.stamps))

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        super().check(deep=deep, now=now)
        check_buffers(self, now)


class SASF(Buffered):
    name = "SASF"


class SARF(Buffered):
    name, filter = "SARF", RELAXED


class SAPF(Buffered):
    name, filter = "SAPF", CAPPED


class RASF(Buffered):
    name, run = "RASF", RELAXED


class RARF(Buffered):
    name, run, filter = "RARF", RELAXED, RELAXED


class RAPF(Buffered):
    name, run, filter = "RAPF", RELAXED, CAPPED
