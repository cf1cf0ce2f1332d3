"""Many queries of one scoring family in one engine: Nearest or Linear over the same columns, one k and one window.

Every scoring is a lane with a run of its own. The buffered algorithms have one buffer for all and a filter for each
lane, PA has neither (kernels/filtered_lanes.py). Where there are many lanes, a grid over blocks of arrivals saves most
of the scores (kernels/block_grid.py). The family of BLOCK is slots.py.

Keeps a run for each lane and the ring. Cost: see the kernels; few arrivals reach a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skyband.engines.arena import best_of, recast, runs, unplaced
from skyband.engines.contract import Answer, Arrivals, Changes, Floats, Ints, Scorings, Spec
from skyband.engines.invariants import require
from skyband.engines.topk.base import Records, SkybandEngine
from skyband.engines.topk.buffered import BUFFER, RAPF, RARF, RASF, SAPF, SARF, SASF, Buffered, Filters, buffer_limits
from skyband.engines.topk.invariants import check_filters, check_lanes
from skyband.engines.topk.kernels.block_grid import STALE, Grid, new_scratch
from skyband.engines.topk.kernels.filtered_lanes import LARGEST, take_capped, take_filtered
from skyband.engines.topk.kernels.ring import Ring
from skyband.engines.topk.kernels.scores import LaneScorings
from skyband.engines.topk.kernels.state import Report, Stream
from skyband.engines.topk.pa import PA
from skyband.engines.topk.ra import first_limits
from skyband.kernels.records import ARRIVAL, CAP, CHANGE, NEVER, OBJECT, SILENT, VISIT
from skyband.kernels.routing import empty_columns, find_rows, unzip

EACH = 100  # places in the ring for each query
SHARED = 50  # places in a buffer that filters share, for each query
FEW = 16  # fewer queries are scored without a grid


class Family(SkybandEngine):
    """Lanes of one scoring each, over one group."""

    def __init__(self, specs: tuple[Spec, ...], *rest: Any, scorings: Scorings, **options: Any) -> None:
        super().__init__(specs[:1], *rest, **options)
        self.scorings = scorings
        super()._grow(len(scorings.points))
        self.most, self.reach = self._limits(specs[0].length)
        if not len(self.caps):
            self.caps = first_limits(len(self.groups), specs[0].k)
        self._set_ring(np.empty((scorings.points.shape[1], 0)), np.empty(0, np.int64), np.empty(0, np.int64))
        self.begun = np.array([-NEVER, 0])
        self.changes = np.empty(1024, CHANGE)  # of a batch, kept for the next: fresh memory is slow
        self.grid = self._new_grid()
        self.scratch = new_scratch(self.grid, max(1, self._block), 2 * self.most + 64)

    def _limits(self, length: int) -> tuple[int, int]:
        """How many arrivals are in the ring, and how long one may wait there."""
        most = self.tuning.buffer or max(BUFFER, EACH * len(self.groups))
        return most if self.timed else min(most, length), 0

    @property
    def _block(self) -> int:
        """Arrivals of the largest block."""
        return self.most // 4

    def _new_grid(self) -> Grid:
        """An empty grid over blocks; it holds nothing that the lanes do not know, so it is not stored."""
        lanes, d = self.scorings.points.shape
        wanted = lanes >= FEW if self.tuning.index is None else self.tuning.index
        side = round((self._block / 8) ** (1 / d)) if wanted else 0  # some 8 arrivals of a block to a cell
        side = side if side > 1 else 0
        return Grid(
            origin=np.full(d, np.nan),
            scale=np.zeros(d),
            side=side,
            terms=np.zeros((lanes, d, side + 1)),
            ranges=np.zeros((lanes, 2 * min(128, side ** (d - 1)) if side else 0), np.int64),
            counts=np.full(lanes, STALE),
            depths=np.full(lanes, np.nan),
        )

    def _set_ring(self, data: Floats, stamps: Ints, serials: Ints) -> None:
        capacity, size = 2 * self.most + 64 if self.most else 0, len(stamps)
        self.ring = np.zeros((len(data), capacity))
        self.ring_stamps, self.ring_serials = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
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
        alive = np.zeros(arrivals.size, np.bool_)
        report = self._report(self.changes, alive, arrivals.serial, arrivals.more, net=self.net)
        scorings = self.scorings
        self._run(
            report,
            LaneScorings(scorings.form, scorings.turned, scorings.points, scorings.weights),
            Stream(data, stamps, now, rows, last),
            Ring(self.ring, self.ring_stamps, self.ring_serials, self.span, self.begun, self.most, self.reach),
        )
        return self._ordered(self.changes[: self.tally[1]], arrivals, last)

    def _run(self, report: Report, scorings: LaneScorings, stream: Stream, ring: Ring) -> None:
        """Take the stream; the changes are then in `changes`."""
        raise NotImplementedError

    def _ordered(self, out: Records, arrivals: Arrivals, last: int) -> Changes:
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
        columns = empty_columns(len(out))
        steady = not self.timed and not self.net and len(arrivals.rows) > 0
        rows, begin = (arrivals.rows, arrivals.now[0]) if steady else (arrivals.rows[:0], 0)
        unzip(out, len(self.groups), rows, begin, columns)
        alive = np.zeros(arrivals.size, np.bool_)
        if arrivals.wants_alive:
            for kept in (runs(self.objects, self.groups, self._lanes)["serial"], self.ring_serials[self._in_ring()]):
                alive[kept[kept >= arrivals.serial] - arrivals.serial] = True
        none = np.zeros(len(out), np.int64)
        return Changes(columns[0], none, *columns[1:], alive)

    @property
    def _lanes(self) -> Ints:
        return np.arange(len(self.groups))

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        lane = np.array([query])
        if groups is not None and not len(groups):
            lane = lane[:0]
        kept = [(runs(self.objects, self.groups, lane), self.groups["size"][lane])]
        if spec.length != self.queries["length"][0] and len(lane):  # of a shorter window the ring may have the best
            ring = np.zeros(int(self.span[1]), OBJECT)
            here = self._in_ring()
            ring["key"] = self.scorings.keys(query, self.ring[:, here])
            ring["stamp"], ring["serial"] = self.ring_stamps[here], self.ring_serials[here]
            kept.append((ring, np.array([len(ring)])))
        ranked = best_of(lane, kept, spec, np.full(len(self.groups), now[0] if len(now) else 0))
        return replace(ranked, group=np.zeros(len(ranked.rank), np.int64))

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        raise NotImplementedError("a family is split before its queries change")

    def split(self, engines: list[SkybandEngine], now: Ints) -> None:
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
    def work(self) -> Ints:
        """Counted: [keys computed, objects taken, lanes deepened, ranges of cells found]."""
        return self.scratch.work

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

    def _stored(self, lanes: Ints) -> dict[str, Records]:
        """What is stored of these lanes, besides their runs: all lanes, or none for the layout alone."""
        here = self._in_ring() if len(lanes) else slice(0, 0)
        return {
            "caps": self.caps[lanes],
            "begun": self.begun if len(lanes) else self.begun[:0],
            "ring": np.ascontiguousarray(self.ring[:, here]).reshape(-1),
            "stamps": self.ring_stamps[here],
            "serials": self.ring_serials[here],
        }

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        lanes = self._lanes if len(groups) else self._lanes[:0]
        arrays = {name: array for name, (array, _) in super().snapshot(lanes).items()} | self._stored(lanes)
        return {name: (array, np.full(len(groups), len(array))) for name, array in arrays.items()}

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        if not len(state["groups"]):
            return
        super().restore(state, trusted=trusted)
        self.caps, self.begun, size = recast(state["caps"], CAP).copy(), state["begun"].copy(), len(state["stamps"])
        require(len(self.groups) == len(self.scorings.points) == len(self.caps), "every query has a lane")
        fits = len(state["ring"]) == size * self.scorings.points.shape[1] and len(state["serials"]) == size
        require(fits and size <= self.most and len(self.begun) == 2, "the ring has its objects")
        self._set_ring(state["ring"].reshape(self.scorings.points.shape[1], size), state["stamps"], state["serials"])

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        super().check(deep=deep, now=None if now is None else np.repeat(now, len(self.groups)))
        check_lanes(self, now)


class PAFamily(Family):
    """PA, lane by lane and without a ring."""

    name = "PA"
    _rule = PA._rule
    _new_caps = PA._new_caps
    _block = LARGEST

    def _limits(self, length: int) -> tuple[int, int]:
        return 0, 0

    def _run(self, report: Report, scorings: LaneScorings, stream: Stream, ring: Ring) -> None:
        self.objects, self.changes = take_capped(
            self._skybands, report, scorings, self.grid, stream, ring, self.scratch
        )


class BufferedFamily(Family):
    """A buffered algorithm: a filter for each lane over a buffer that all share."""

    run, filter = Buffered.run, Buffered.filter
    _rule = Buffered._rule
    _new_caps = Buffered._new_caps

    def __init__(self, specs: tuple[Spec, ...], *rest: Any, **options: Any) -> None:
        super().__init__(specs, *rest, **options)
        self.filters = Filters(self.filter, self.tuning, self.most, specs[0].k)
        self.filters.grow(len(self.groups))

    def _limits(self, length: int) -> tuple[int, int]:
        """All lanes share one buffer, so it may be longer."""
        most = self.tuning.buffer or max(BUFFER, SHARED * len(self.groups))
        return buffer_limits(most, length, timed=self.timed)

    def _run(self, report: Report, scorings: LaneScorings, stream: Stream, ring: Ring) -> None:
        self.objects, self.filters.objects, self.changes = take_filtered(
            self._skybands, report, self.filters.skybands, scorings, self.grid, stream, ring, self.scratch
        )

    def _stored(self, lanes: Ints) -> dict[str, Records]:
        return super()._stored(lanes) | self.filters.snapshot(lanes)

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        super().restore(state, trusted=trusted)
        if len(state["groups"]):
            self.filters.restore(state)
            require(len(self.filters.groups) == len(self.groups), "every lane has a filter")

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        super().check(deep=deep, now=now)
        waiting = self.ring_serials[self._in_ring()]
        check_filters(self.filters, len(self.filters.stamps), waiting, np.array([len(waiting)]))


class SASFFamily(BufferedFamily):
    name = SASF.name


class SARFFamily(BufferedFamily):
    name, filter = SARF.name, SARF.filter


class SAPFFamily(BufferedFamily):
    name, filter = SAPF.name, SAPF.filter


class RASFFamily(BufferedFamily):
    name, run = RASF.name, RASF.run


class RARFFamily(BufferedFamily):
    name, run, filter = RARF.name, RARF.run, RARF.filter


class RAPFFamily(BufferedFamily):
    name, run, filter = RAPF.name, RAPF.run, RAPF.filter
