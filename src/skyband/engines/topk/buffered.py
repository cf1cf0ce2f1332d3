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
from skyband.engines.topk.base import Bands, Records
from skyband.engines.topk.kernels.filters import sift_lanes
from skyband.engines.topk.odds import candidates
from skyband.engines.topk.ra import first_limits, relaxed
from skyband.errors import StateError
from skyband.kernels.records import ARRIVAL, CAP, CAPPED, GROUP, OBJECT, RELAXED, RULE, SILENT, STRICT, WAITING

BUFFER = 2000  # arrivals (Table IX)


class Buffered(Bands):
    """A run of the window behind a filter of the buffer, for every group."""

    run = STRICT
    filter = STRICT

    def __init__(self, asked: tuple[Spec, ...], *rest: Any, **options: Any) -> None:
        super().__init__(asked, *rest, **options)
        self._set_buffer(asked)
        self.sieve = np.empty(0, OBJECT)
        self.sieves = np.empty(0, GROUP)
        self.mesh = np.empty(0, CAP)
        self.waiting = np.empty(0, WAITING)
        self.queues = np.empty(0, GROUP)
        self.places = np.zeros((2, 1), np.int64)  # in use: of the filters, of the buffers

    def _rule(self, asked: tuple[Spec, ...]) -> Records:
        return relaxed(self.tuning.gamma) if self.run == RELAXED else np.zeros(1, RULE)

    def _new_caps(self, size: int) -> Records:
        return first_limits(size if self.run == RELAXED else 0, int(self.queries["k"].max()))

    @property
    def _usual(self) -> int:
        """How many wait unless the query says."""
        return BUFFER

    def _set_buffer(self, asked: tuple[Spec, ...]) -> None:
        """How many may wait, and how long: 2·reach < length (Theorem 5.1)."""
        reach = (min(one.length for one in asked) - 1) // 2
        most = self.tuning.buffer or self._usual
        self.most = most if self.timed else min(most, reach + 1)
        self.reach = reach if self.timed else self.most - 1
        K = max(one.k for one in asked)
        self.sieving = relaxed(self.tuning.gamma) if self.filter == RELAXED else np.zeros(1, RULE)
        if self.filter == CAPPED:
            self.sieving["kind"], self.sieving["growth"] = CAPPED, 1  # section 6.1: the whole gap, none additional, and
            self.sieving["floor"] = 1  # it "is not reset"
            self.sieving["limit"] = candidates(self.most, K, self.tuning.sigma)

    def _grow(self, total: int) -> None:
        more = total - len(self.groups)
        super()._grow(total)
        if more > 0:
            self.sieves = np.concatenate([self.sieves, np.zeros(more, GROUP)])
            self.queues = np.concatenate([self.queues, np.zeros(more, GROUP)])
            self.mesh = np.concatenate([self.mesh, first_limits(more, int(self.queries["k"].max()))])

    def _feed(self, chosen: Records, slices: Records, alive: Bools, serial: int, more: bool) -> Records:
        room = 2 * len(chosen) + int(self.queues["size"][slices["group"]].sum())
        passed, through = np.empty(room, ARRIVAL), slices.copy()
        self.sieve, self.waiting, count = sift_lanes(
            self.sieve,
            self.sieves,
            self.mesh,
            self.sieving,
            self.places[0],
            self.waiting,
            self.queues,
            self.places[1],
            chosen,
            slices,
            int(self.queries["k"].max()),
            self.most,
            self.reach,
            serial,
            passed,
            through,
        )
        out = super()._feed(passed[:count], through, alive, serial, more)
        waiting = runs(self.waiting, self.queues, slices["group"])["serial"]
        alive[waiting[waiting >= serial] - serial] = True
        return out

    def refit(self, asked: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        """All who wait leave the buffer first: another window wants another one."""
        self._grow(len(now))
        everyone = np.arange(len(self.groups))
        waiting, sizes = runs(self.waiting, self.queues, everyone), self.queues["size"]
        silent = np.empty(len(waiting), ARRIVAL)
        silent["key"], silent["stamp"], silent["row"] = waiting["key"], waiting["stamp"], waiting["serial"] - SILENT
        silent["now"] = np.repeat(now, sizes)
        self.admit(silent, sizes)
        self._set_buffer(asked)
        self.sieves, self.queues = np.zeros(len(sizes), GROUP), np.zeros(len(sizes), GROUP)
        self.mesh = first_limits(len(sizes), max(one.k for one in asked))
        self.places[:] = 0
        return super().refit(asked, predecessors, now)

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
        if asked.length == self.queries["length"][query]:
            return super().answer(query, asked, now, groups)
        chosen = np.arange(len(self.groups)) if groups is None else groups
        return best_of(  # of a shorter window those who wait may be the best
            chosen,
            [(runs(*arena, chosen), arena[1]["size"][chosen]) for arena in self._arenas],
            asked,
            now,
        )

    @property
    def _arenas(self) -> tuple[tuple[Records, Records], ...]:
        return (self.objects, self.groups), (self.waiting, self.queues)

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        kept, sizes = super().serials(groups)
        waiting = runs(self.waiting, self.queues, chosen)["serial"]
        places = np.concatenate(
            [np.repeat(np.arange(len(chosen)), sizes), np.repeat(np.arange(len(chosen)), self.queues["size"][chosen])]
        )
        both = np.unique(np.stack([places, np.concatenate([kept, waiting])]), axis=1)  # those let through wait as well
        return both[1], np.bincount(both[0], minlength=len(chosen))

    @property
    def kept(self) -> Ints:
        return np.asarray(self.groups["size"] + self.queues["size"])

    @property
    def buffer(self) -> int:
        return int(self.queues["size"].sum())

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self.sieve.nbytes + self.sieves.nbytes + self.waiting.nbytes + self.queues.nbytes)

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        ones = np.ones(len(groups), np.int64)
        return super().snapshot(groups) | {
            "sieve": (runs(self.sieve, self.sieves, groups), self.sieves["size"][groups]),
            "sieves": (unplaced(self.sieves[groups]), ones),
            "mesh": (self.mesh[groups], ones),
            "waiting": (runs(self.waiting, self.queues, groups), self.queues["size"][groups]),
            "queues": (unplaced(self.queues[groups]), ones),
        }

    def restore(self, state: Mapping[str, Records]) -> None:
        super().restore(state)
        for runs_, places, objects in (("sieve", "sieves", OBJECT), ("waiting", "queues", WAITING)):
            found, groups = recast(state[runs_], objects).copy(), recast(state[places], GROUP).copy()
            if len(groups) != len(self.groups) or groups["size"].sum() != len(found) or (groups["size"] < 0).any():
                raise StateError("the snapshot's buffers do not fit together. Take a new one from a running Monitor.")
            place(groups)
            setattr(self, runs_, found)
            setattr(self, places, groups)
        self.mesh = recast(state["mesh"], CAP).copy()
        self.places[:, 0] = len(self.sieve), len(self.waiting)

    def check(self) -> None:
        super().check()
        K = int(self.queries["k"].max())
        for g in range(len(self.groups)):
            waiting = runs(self.waiting, self.queues, np.array([g]))
            sieve = runs(self.sieve, self.sieves, np.array([g]))
            assert len(waiting) <= self.most, "the buffer is not too long"
            assert (np.diff(waiting["serial"]) > 0).all() and (np.diff(waiting["stamp"]) >= 0).all(), "in order"
            assert (sieve["key"][:-1] >= sieve["key"][1:]).all(), "a filter is best first"
            assert np.isin(sieve["serial"], waiting["serial"]).all(), "a filter holds objects of the buffer"
            if self.filter == CAPPED:
                assert len(sieve) <= K + self.sieving[0]["limit"], "a probabilistic filter is small"


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
