"""Many queries of one scoring family in one engine: Nearest or Linear over the same columns, one k and one window.

Every scoring is a lane with a run of its own; kernels/ring.py (BLOCK) and kernels/filtered_lanes.py (PA and buffered)
say how few arrivals reach it. One ring of recent arrivals serves all lanes, and where there are many of them a grid
over blocks (BLOCK) or a query index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skyband.engines.arena import best_of, place, recast, runs, unplaced
from skyband.engines.contract import Answer, Arrivals, Changes, Floats, Ints, Scorings, Spec
from skyband.engines.topk import buffered
from skyband.engines.topk.base import Bands, Records
from skyband.engines.topk.kernels.filtered_lanes import take_filtered
from skyband.engines.topk.kernels.query_index import SIDES
from skyband.engines.topk.kernels.ring import take_ring
from skyband.engines.topk.pa import PA
from skyband.engines.topk.ra import first_limits
from skyband.errors import StateError
from skyband.kernels.records import ARRIVAL, CAP, CHANGE, GROUP, NEVER, OBJECT, RULE, SILENT, STRICT, VISIT
from skyband.kernels.routing import find_rows, unzip

EACH = 100  # places in the ring for each query
SHARED = 50  # places in a buffer that filters share, for each query
FEW = 16  # queries are looked through without an index
COLUMNS = (np.int32, *[np.int64] * 4, np.float64, np.int8, np.bool_)  # of changes, as `unzip` gives them


class Family(Bands):
    """Lanes of one scoring each, over one group."""

    def __init__(self, asked: tuple[Spec, ...], *rest: Any, scorings: Scorings, **options: Any) -> None:
        super().__init__(asked[:1], *rest, **options)
        self.scorings = scorings
        super()._grow(len(scorings.points))
        self._set_buffer(asked[:1])
        if not len(self.caps):
            self.caps = first_limits(len(self.groups), asked[0].k)
        self._set_ring(np.empty((scorings.points.shape[1], 0)), np.empty(0, np.int64), np.empty(0, np.int64))
        self.begun = np.array([-NEVER, 0])
        self.room = np.empty(1024, CHANGE)  # for the changes of a batch, kept for the next: fresh memory is slow
        self.index = self._index()
        self.work = np.zeros(4, np.int64)  # counted: keys computed, objects taken, lanes deepened, lanes indexed

    def _set_buffer(self, asked: tuple[Spec, ...]) -> None:
        most = self.tuning.buffer or max(buffered.BUFFER, EACH * len(self.groups))
        self.most = most if self.timed else min(most, asked[0].length)

    def _index(self) -> tuple[Any, ...]:
        """An empty query index; it holds nothing that the lanes do not know, so it is not stored."""
        lanes, d = self.scorings.points.shape
        wanted = lanes >= FEW if self.tuning.index is None else self.tuning.index
        side = SIDES[d] if wanted and d < len(SIDES) else 0
        cells = side**d if side else 0
        each = min(512, cells // 4)
        return (
            np.full(d, np.nan),
            np.zeros(d),
            side,
            np.zeros((lanes, each), np.int64),
            np.zeros(lanes, np.int64),
            np.full(lanes, np.inf),
            np.zeros(cells + 1, np.int64),
            np.zeros(lanes * each, np.int64),
        )

    def _set_ring(self, data: Floats, stamps: Ints, serials: Ints) -> None:
        room, size = 2 * self.most + 64 if self.most else 0, len(stamps)
        self.ring = np.zeros((len(data), room))
        self.ring_stamps, self.ring_serials = np.zeros(room, np.int64), np.zeros(room, np.int64)
        self.ring[:, :size], self.ring_stamps[:size], self.ring_serials[:size] = data, stamps, serials
        self.span = np.array([0, size])

    def _in_ring(self) -> slice:
        return slice(int(self.span[0]), int(self.span.sum()))

    def _grow(self, total: int) -> None:
        """There is one group, and its lanes are there from the start."""

    def take(self, arrivals: Arrivals) -> Changes:
        assert arrivals.attributes is not None
        chosen = slice(None) if arrivals.eligible is None else np.flatnonzero(arrivals.eligible)
        data = np.stack([column[chosen] for column in arrivals.attributes])
        stamps, now, rows = (a[chosen] for a in (arrivals.stamps, arrivals.now, arrivals.rows))
        last = arrivals.clock if self.timed else int(arrivals.now[-1]) if len(arrivals.now) else int(self.begun[0])
        self.tally[1] = 0
        self.room = self._run((data, stamps, now, rows, last), arrivals)
        return self._told(self.room[: self.tally[1]], arrivals, last)

    def _run(self, stream: tuple[Any, ...], arrivals: Arrivals) -> Records:
        scorings = self.scorings
        self.objects, out = take_ring(  # type: ignore[call-arg]  # several at once
            self.objects,
            self.groups,
            self.views,
            self.queries,
            self.caps,
            self.tally,
            scorings.form,
            scorings.turned,
            scorings.points,
            scorings.weights,
            *stream,
            self.begun,
            self.ring,
            self.ring_stamps,
            self.ring_serials,
            self.span,
            self.most,
            *self.index,
            arrivals.serial,
            not self.timed,
            self.net,
            arrivals.more,
            self.work,
            self.room,
        )
        return out

    def _told(self, out: Records, arrivals: Arrivals, last: int) -> Changes:
        """By query, then by step; within a lane they are in order already."""
        if self.net and (arrivals.more or len(self.held)):
            held = np.concatenate([self.held, out])
            out, self.held = (held[:0], held) if arrivals.more else (held, held[:0])
        visits = np.zeros(len(self.groups), VISIT)
        visits["end"] = len(arrivals.rows)
        if self.net:
            out["instant"], out["row"] = last, arrivals.rows[-1] if len(arrivals.rows) else -1
        elif self.timed:
            find_rows(out, visits, arrivals.now, arrivals.rows, False)
        columns: list[Any] = [np.empty(len(out), type_) for type_ in COLUMNS]
        steady = not self.timed and not self.net and len(arrivals.rows) > 0
        rows, begin = (arrivals.rows, arrivals.now[0]) if steady else (arrivals.rows[:0], 0)
        unzip(out, len(self.groups), rows, begin, *columns)
        query, row, instant, stamp, serial, key, diff, first = columns
        alive = np.zeros(arrivals.size, np.bool_)
        if arrivals.wants_alive:
            for kept in (runs(self.objects, self.groups, self._lanes)["serial"], self.ring_serials[self._in_ring()]):
                alive[kept[kept >= arrivals.serial] - arrivals.serial] = True
        none = np.zeros(len(out), np.int64)
        return Changes(query, none, row, instant, stamp, serial, key, diff, first, alive)

    @property
    def _lanes(self) -> Ints:
        return np.arange(len(self.groups))

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
        lane = np.array([query])
        if groups is not None and not len(groups):
            lane = lane[:0]
        kept = [(runs(self.objects, self.groups, lane), self.groups["size"][lane])]
        if asked.length != self.queries["length"][0] and len(lane):  # of a shorter window the ring may have the best
            ring = np.zeros(int(self.span[1]), OBJECT)
            here = self._in_ring()
            ring["key"] = self.scorings.keys(query, self.ring[:, here])
            ring["stamp"], ring["serial"] = self.ring_stamps[here], self.ring_serials[here]
            kept.append((ring, np.array([len(ring)])))
        ranked = best_of(lane, kept, asked, np.full(len(self.groups), now[0] if len(now) else 0))
        return replace(ranked, group=np.zeros(len(ranked.rank), np.int64))

    def refit(self, asked: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        raise NotImplementedError("a family is split before its queries change")

    def split(self, engines: list[Bands], now: Ints) -> None:
        """Give each lane's run to an engine of its own, which goes on from there."""
        here = self._in_ring()
        for s, engine in enumerate(engines):
            one = np.array([s])
            engine._grow(1)
            run = {"objects": runs(self.objects, self.groups, one), "groups": unplaced(self.groups[one])}
            run |= {"views": self.views[one], "caps": self.caps[one]}
            engine.restore({name: array for name, (array, _) in engine.snapshot(np.array([0])).items()} | run)
            silent = np.empty(int(self.span[1]), ARRIVAL)
            silent["key"], silent["now"] = self.scorings.keys(s, self.ring[:, here]), now[0]
            silent["stamp"], silent["row"] = self.ring_stamps[here], self.ring_serials[here] - SILENT
            engine.admit(silent, np.array([len(silent)]))

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        if groups is not None and not len(groups):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        kept = runs(self.objects, self.groups, self._lanes)["serial"]
        both = np.unique(np.concatenate([kept, self.ring_serials[self._in_ring()]]))
        return both, np.array([len(both)])

    @property
    def kept(self) -> Ints:
        return np.array([self.groups["size"].sum() + self.span[1]])

    @property
    def buffer(self) -> int:
        return int(self.span[1])

    def size_of(self, query: int) -> int:
        return int(self.groups["size"][query])

    @property
    def due(self) -> Ints:
        return np.array([self.groups["due"].min()])

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self.ring.nbytes + self.ring_stamps.nbytes + self.ring_serials.nbytes)

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        there = len(groups)  # the one group, or none for the layout alone
        lanes, here = self._lanes if there else self._lanes[:0], self._in_ring() if there else slice(0, 0)
        arrays = {name: array for name, (array, _) in super().snapshot(lanes).items()}
        arrays |= {
            "caps": self.caps[lanes],
            "begun": self.begun if there else self.begun[:0],
            "ring": np.ascontiguousarray(self.ring[:, here]).reshape(-1),
            "stamps": self.ring_stamps[here],
            "serials": self.ring_serials[here],
        }
        return {name: (array, np.full(there, len(array))) for name, array in arrays.items()}

    def restore(self, state: Mapping[str, Records]) -> None:
        if not len(state["groups"]):
            return
        super().restore(state)
        self.caps, self.begun = recast(state["caps"], CAP).copy(), state["begun"].copy()
        size = len(state["stamps"])
        if len(self.groups) != len(self.scorings.points) or len(state["ring"]) != size * self.scorings.points.shape[1]:
            raise StateError("the snapshot's lanes do not fit together. Take a new snapshot from a running Monitor.")
        self._set_ring(state["ring"].reshape(self.scorings.points.shape[1], size), state["stamps"], state["serials"])

    def check(self) -> None:
        super().check()
        here = self._in_ring()
        assert (np.diff(self.ring_serials[here]) > 0).all() and (np.diff(self.ring_stamps[here]) >= 0).all(), "in order"
        assert self.span[1] <= self.most, "the ring is not too long"
        for s in range(len(self.groups) if self.name == "BLOCK" else 0):
            run = runs(self.objects, self.groups, np.array([s]))
            keys, stamps = self.scorings.keys(s, self.ring[:, here]), self.ring_stamps[here]
            for i in np.flatnonzero(keys >= self.caps["threshold"][s]):
                if self.ring_serials[here][i] not in run["serial"]:
                    above = (run["key"] > keys[i]) | (
                        (run["key"] == keys[i]) & (run["serial"] > self.ring_serials[here][i])
                    )
                    newer = (above & (run["stamp"] >= stamps[i])).sum()
                    assert newer >= self.queries["k"][0], "down to its depth a run has all that is not dominated"


class BLOCKFamily(Family):
    """BLOCK over a ring that all lanes share."""

    name = "BLOCK"

    def _index(self) -> tuple[Any, ...]:
        """An empty grid over blocks, and what the lanes see of it."""
        lanes, d = self.scorings.points.shape
        wanted = lanes >= FEW if self.tuning.index is None else self.tuning.index
        side = round((self.most / 32) ** (1 / d)) if wanted else 0  # some 8 arrivals of a block to a cell
        side = side if side > 1 else 0
        return (
            np.full(d, np.nan),
            np.zeros(d),
            side,
            np.zeros((lanes, d, side + 1)),
            np.zeros((lanes, 2 * min(128, side ** (d - 1)) if side else 0), np.int64),
            np.full(lanes, -1),
            np.full(lanes, np.nan),
        )


class FilteredFamily(Family):
    """PA, or a filter for each lane over a buffer that all share."""

    filtered = True
    reach: int
    sieving: Records

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        lanes, K = len(self.groups), int(self.queries["k"][0])
        self.sieve, self.sieves, self.mesh = np.empty(0, OBJECT), np.zeros(lanes, GROUP), first_limits(lanes, K)
        self.places = np.zeros(1, np.int64)

    def _run(self, stream: tuple[Any, ...], arrivals: Arrivals) -> Records:
        scorings = self.scorings
        self.objects, self.sieve, out = take_filtered(  # type: ignore[call-arg]  # several at once
            self.filtered,
            self.objects,
            self.groups,
            self.views,
            self.queries,
            self.rule,
            self.caps,
            self.tally,
            self.sieve,
            self.sieves,
            self.mesh,
            self.sieving,
            self.places,
            scorings.form,
            scorings.turned,
            scorings.points,
            scorings.weights,
            *stream,
            self.begun,
            self.ring,
            self.ring_stamps,
            self.ring_serials,
            self.span,
            self.most,
            self.reach,
            *self.index,
            np.zeros(arrivals.size, np.bool_),
            arrivals.serial,
            not self.timed,
            self.net,
            arrivals.more,
            self.work,
            self.room,
        )
        return out

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        lanes = self._lanes if len(groups) else self._lanes[:0]
        arrays = {
            "sieve": runs(self.sieve, self.sieves, lanes),
            "sieves": unplaced(self.sieves[lanes]),
            "mesh": self.mesh[lanes],
        }
        more = {name: (array, np.full(len(groups), len(array))) for name, array in arrays.items()}
        return super().snapshot(groups) | (more if self.filtered else {})

    def restore(self, state: Mapping[str, Records]) -> None:
        super().restore(state)
        if self.filtered and len(state["groups"]):
            self.sieve, self.sieves = recast(state["sieve"], OBJECT).copy(), recast(state["sieves"], GROUP).copy()
            place(self.sieves)
            self.places[0] = len(self.sieve)
            self.mesh = recast(state["mesh"], CAP).copy()


class PAFamily(FilteredFamily, PA):
    """PA, lane by lane."""

    name, filtered = "PA", False

    def _set_buffer(self, asked: tuple[Spec, ...]) -> None:
        self.most, self.reach, self.sieving = 0, 0, np.zeros(1, RULE)


class SASFFamily(FilteredFamily):
    """A buffered algorithm; its name says what the run and the filter are."""

    name, run, filter = "SASF", STRICT, STRICT
    _rule = buffered.Buffered._rule
    _new_caps = buffered.Buffered._new_caps
    _set_buffer = buffered.Buffered._set_buffer

    @property
    def _usual(self) -> int:
        """All lanes share one buffer, so it may be longer."""
        return max(buffered.BUFFER, SHARED * len(self.groups))


class SARFFamily(SASFFamily):
    name, filter = "SARF", buffered.SARF.filter


class SAPFFamily(SASFFamily):
    name, filter = "SAPF", buffered.SAPF.filter


class RASFFamily(SASFFamily):
    name, run = "RASF", buffered.RASF.run


class RARFFamily(SASFFamily):
    name, run, filter = "RARF", buffered.RARF.run, buffered.RARF.filter


class RAPFFamily(SASFFamily):
    name, run, filter = "RAPF", buffered.RAPF.run, buffered.RAPF.filter
