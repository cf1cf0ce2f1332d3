"""Slots whose runs live on a device: `Monitor(..., device="cuda")`.

The host keeps what says which slots there are (chunk.py), and of the window's arrivals stamps, serials and numbers; the
device keeps runs, depths and all vectors of the window (torch_device.py). A snapshot is the processor's: runs come
back as the host keeps them (`rest`), and go to the device with the next push (`wake`).

Cost of a push: one product on the device, nothing on the host but its changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Answer, Changes, Ints
from skyband.engines.contract import Vectors as Arrived
from skyband.engines.topk.device import lanes_on
from skyband.engines.topk.device_turns import (
    FREE,
    Block,
    Found,
    Moved,
    Numbers,
    Rows,
    room_for,
    take_block,
    unit_of,
)
from skyband.engines.topk.kernels.state import Report
from skyband.engines.topk.pool import Pool
from skyband.engines.topk.recent_arrivals import Stream
from skyband.engines.topk.similar import SimilarSlots, VectorChunk, VectorPool
from skyband.engines.topk.slot_columns import Shape, SlotColumns
from skyband.kernels.records import CHANGE, NEVER, OBJECT
from skyband.query.tuning import Tuning

Records = NDArray[Any]
BLOCK = 1 << 14  # arrivals of a block, at most
WHOLE = 1 << 62  # arrivals of a history: all of the window
BEGINNING = -(1 << 61)  # before every instant, and windows can be subtracted from it
SIDE = VectorChunk.most  # lane s of chunk c is lane c * SIDE + s of the device


class DevicePool(VectorPool):
    """Slots with one class of window lengths, on a device."""

    def __init__(self, shape: Shape, tuning: Tuning, *, name: str, timed: bool, net: bool) -> None:
        super().__init__(shape, tuning, timed=timed, net=False, whole=True)
        self.chunks: list[VectorChunk]  # type: ignore[assignment]
        self.name, self.nets = name, net
        self.lanes: Any = None  # of the device; None: the host has the runs
        self.offset = 0  # place p of the history is arrival p + offset of the device
        self.held: list[Records] = []  # changes of a batch that goes on
        self.known: tuple[Ints, Ints, Ints] | None = None
        self.first_due = NEVER
        self.resting = False  # the host has the runs too

    def _set_most(self) -> None:
        self.most, self.kept = BLOCK, WHOLE

    @property
    def largest(self) -> int:
        return BLOCK

    # --- slots

    def join(self, columns: SlotColumns, slots: Ints, birth: int, *, placed: bool = False) -> tuple[Ints, Ints]:
        if self.lanes is not None and room_for(int(columns.k.max(initial=1))) > self.lanes.room:
            self.to_host()
        chunks, lanes = super().join(columns, slots, birth, placed=placed)
        self.known = None
        if self.lanes is not None:
            self._write(chunks * SIDE + lanes, None)
        return chunks, lanes

    def leave(self, chunk: int, lanes: Ints) -> None:
        super().leave(chunk, lanes)
        self.known = None
        if self.lanes is not None:
            self.lanes.free(chunk * SIDE + lanes)

    def _write(self, places: Ints, runs: Moved | None) -> None:
        """Let the device have these lanes."""
        lanes = np.concatenate([chunk.in_use for chunk in self.chunks])
        points = np.concatenate([chunk.points[: chunk.used] for chunk in self.chunks])
        norms = np.concatenate([chunk.norms[: chunk.used] for chunk in self.chunks])
        bases = np.cumsum([0, *(chunk.used for chunk in self.chunks)])
        for low in range(0, len(places), SIDE):
            some = places[low : low + SIDE]
            at = bases[some // SIDE] + some % SIDE
            numbers = {name: lanes[name][at].astype(np.int64) for name in ("k", "want", "length", "birth")}
            numbers |= {"depths": np.full(len(at), -np.inf), "dues": np.full(len(at), NEVER)}
            unit = unit_of(points[at], norms[at], self.shape.form, self.shape.turned)
            mine = None if runs is None else Moved(*(one[low : low + SIDE] for one in runs))
            self.lanes.write(some, points[at], unit, norms[at], numbers, mine)

    def _numbers(self) -> tuple[Ints, Ints, Ints]:
        if self.known is None:
            lanes = np.concatenate([chunk.in_use for chunk in self.chunks])
            self.known = lanes["k"].copy(), lanes["want"].copy(), lanes["length"].copy()
        return self.known

    # --- between host and device

    def wake(self) -> None:
        """Let the device have what the host has."""
        if self.lanes is not None:
            return
        here = self.here
        longest = max((int(chunk.in_use["size"].max(initial=0)) for chunk in self.chunks), default=0)
        room = room_for(max((int(chunk.in_use["k"].max(initial=1)) for chunk in self.chunks), default=1))
        while room < 2 * longest:
            room *= 2
        vectors = Arrived(self.history_vectors(here), self.norms[here])
        self.lanes = lanes_on(self.name, self.shape.d, room, self.shape.form, self.shape.turned, self.timed)
        self.ring, self.turned, self.offset = np.empty((0, self.shape.d), np.float32), 0, 0
        for number, chunk in enumerate(self.chunks):
            self._write(number * SIDE + np.arange(chunk.used), _moved(chunk, room))
        self._sleep()
        if here.stop > here.start:
            self._reserve_rows(here.start, here.start, here.stop)
            self._put(here.start, here.stop, vectors)
        self.first_due = self.lanes.due

    def rest(self) -> None:
        """Let the host have what the device has, as the processor's engine keeps it."""
        if self.lanes is None:
            return
        for number, chunk in enumerate(self.chunks):
            runs, low = self.lanes.read_runs(number * SIDE + np.arange(chunk.used)), 0
            pieces = []
            for low in range(0, chunk.used, 512):
                some = slice(low, min(chunk.used, low + 512))
                pieces.append(_runs_of(Moved(*(one[some] for one in runs)), chunk.lanes[some], self.before))
            lanes = chunk.in_use
            chunk.objects = np.concatenate([np.empty(0, OBJECT), *pieces])
            chunk.tally[0] = len(chunk.objects)
            lanes["start"] = lanes["head"] = np.cumsum(lanes["size"]) - lanes["size"]
            lanes["room"] = lanes["size"]
            lanes["fresh"] &= lanes["depth"] == -np.inf
            chunk.disturb(np.arange(chunk.used))
        self.resting = True

    def to_host(self) -> None:
        """Let the host have all; the device has it again with the next push."""
        here = self.here
        vectors = Arrived(self.history_vectors(here), self.norms[here])
        self.rest()
        self.lanes, self.resting = None, False
        VectorPool.keep_vectors(self, here.start, here.start, vectors)

    def _sleep(self) -> None:
        """Forget on the host what the device has."""
        self.resting = False
        for chunk in self.chunks:
            lanes = chunk.in_use
            lanes["size"] = lanes["start"] = lanes["head"] = lanes["room"] = 0
            chunk.objects, chunk.tally[0] = np.empty(0, OBJECT), 0

    def run_of(self, chunk: int, s: int) -> Records:
        if self.lanes is None or self.resting:
            return super().run_of(chunk, s)
        lanes = self.chunks[chunk].lanes[s : s + 1].copy()
        return _runs_of(self.lanes.read_runs(np.array([chunk * SIDE + s])), lanes, self.before)

    # --- the history

    def history_vectors(self, here: slice) -> NDArray[Any]:
        if self.lanes is None:
            return super().history_vectors(here)
        found: NDArray[Any] = self.lanes.vectors(here.start + self.offset, here.stop + self.offset)
        return found

    def begin_anew(self, begin: int) -> None:
        if self.lanes is None:
            super().begin_anew(begin)
        else:
            self.offset += begin

    def keep_vectors(self, begin: int, low: int, vectors: Arrived) -> None:
        if self.lanes is None:
            super().keep_vectors(begin, low, vectors)
            return
        if self.end - begin > self.lanes.rows:
            self._reserve_rows(begin, begin, low)
        self._put(low, self.end, vectors)

    def _reserve_rows(self, first: int, begin: int, end: int) -> None:
        size = max(self.end - first + BLOCK, 2 * self.lanes.rows)
        size = min(size, max(self.longest, self.end - first) + 4 * BLOCK) if not self.timed else size
        self.lanes.reserve_rows(
            size, begin + self.offset, end + self.offset if self.lanes.rows else begin + self.offset
        )

    def _put(self, low: int, high: int, vectors: Arrived) -> None:
        numbers = (one[low:high] for one in (self.stamps, self.serials, self.now))
        self.lanes.put(Rows(low + self.offset, vectors.matrix, vectors.norms, *numbers))

    # --- a batch

    def take(self, stream: Stream, report: Report) -> Records:
        if 4 * self.gone > self.size + 64:
            self.measure_again()
        self.wake()
        youngest = max((int(chunk.in_use["birth"].max(initial=0)) for chunk in self.chunks), default=0)
        seen = max(0, int(stream.serials[0]) - youngest) if len(stream.serials) else self.arrived
        low, count = self.append(stream, self.most), len(self.segments)
        segments = self._plan(low, min(seen, self.arrived), stream.last)
        changes, before = report.changes, max(self.before, BEGINNING)
        for b in range(count, len(segments)):
            first = int(segments["begin"][segments["first"][b]])
            block = Block(
                int(segments["begin"][b]) + self.offset, int(segments["end"][b]) + self.offset, before,
                int(segments["instant"][b]), max(int(segments["left"][b]), FREE),
            )  # fmt: skip
            arrays = (one[first : self.end] for one in (self.stamps, self.serials, self.now))
            known = Numbers(*self._numbers(), first + self.offset, *arrays)
            for found in take_block(self.lanes, known, block, net=self.nets):
                new = self._changes(found, report.serial)
                if self.nets:
                    self.held.append(new)
                else:
                    changes = _added(changes, report.tally, new)
            before = max(before, block.last)
        if self.nets and not report.more:
            changes, self.held = _added(changes, report.tally, _net(self.held)), []
            self.lanes.mark_shown()
        self._settle(segments, count, stream)
        self.first_due = self.lanes.due
        return changes

    def _changes(self, found: Found, serial: int) -> Records:
        slots = np.concatenate([chunk.in_use["slot"] for chunk in self.chunks])
        new = np.zeros(len(found.lanes), CHANGE)
        new["visit"], new["key"], new["stamp"] = slots[found.lanes], found.keys, found.stamps
        new["serial"], new["instant"] = found.serials, found.instants
        new["row"] = np.where(found.at >= 0, found.at - serial, -1)
        enters = (found.bits & 1) > 0
        new["diff"], new["first"] = np.where(enters, 1, -1), enters & (found.bits & 2 == 0)
        return new

    @property
    def due(self) -> int:
        return super().due if self.lanes is None else self.first_due

    @property
    def open(self) -> bool:
        return bool(self.held)

    @property
    def objects(self) -> int:
        return super().objects if self.lanes is None else int(self.lanes.objects)

    @property
    def nbytes(self) -> int:
        return super().nbytes + (0 if self.lanes is None else int(self.lanes.nbytes))


def _moved(chunk: VectorChunk, room: int) -> Moved:
    """The runs of a chunk, one row each."""
    lanes = chunk.in_use
    sizes = lanes["size"].astype(np.int64)
    owner = np.repeat(np.arange(len(lanes)), sizes)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    objects = chunk.objects[lanes["head"][owner] + within]
    shape = (len(lanes), room)
    runs = Moved(
        lanes["depth"].copy(), lanes["due"].copy(), np.zeros(shape), np.full(shape, FREE), np.zeros(shape, np.int64),
        np.zeros(shape, np.int8),
    )  # fmt: skip
    for name in ("key", "stamp", "serial"):
        getattr(runs, name + "s")[owner, within] = objects[name]
    runs.flags[owner, within] = (objects["inside"] > 0) | 2 * (objects["shown"] > 0)
    return runs


def _runs_of(runs: Moved, lanes: Records, before: int) -> Records:
    """These runs as the host keeps them, best first and without what is dominated; lanes get what goes with them."""
    k, stamps = lanes["k"], runs.stamps
    alive = (stamps > np.maximum(before - lanes["length"], FREE)[:, None]) & (k > 0)[:, None]
    lane, place = np.nonzero(alive)
    order = np.lexsort((-runs.serials[lane, place], -stamps[lane, place], -runs.keys[lane, place], lane))
    lane, place = lane[order], place[order]
    sizes = np.bincount(lane, minlength=len(lanes))
    rank = np.arange(len(lane)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    wide = np.full((len(lanes), int(sizes.max(initial=1))), FREE)
    wide[lane, rank] = stamps[lane, place]
    dom = np.zeros(len(lane), np.int64)
    for j in range(wide.shape[1]):
        dom += (rank > j) & (wide[lane, j] >= stamps[lane, place])
    found = np.zeros(len(lane), OBJECT)
    for name in ("key", "stamp", "serial"):
        found[name] = getattr(runs, name + "s")[lane, place]
    flags = runs.flags[lane, place]
    found["dom"], found["inside"], found["shown"] = dom, rank < k[lane], (flags & 2) > 0
    found["shown"] |= found["inside"]
    kept = dom < k[lane]
    found, lane, rank = found[kept], lane[kept], rank[kept]
    lanes["size"], lanes["depth"], lanes["open"] = np.bincount(lane, minlength=len(lanes)), runs.depths, 0
    newest, oldest = np.full(len(lanes), -NEVER), np.full(len(lanes), NEVER)
    np.maximum.at(newest, lane, found["stamp"])
    members = rank < k[lane]
    np.minimum.at(oldest, lane[members], found["stamp"][members])
    lanes["newest"] = np.maximum(lanes["newest"], newest)
    lanes["due"] = np.where(oldest < NEVER, np.minimum(oldest, NEVER - lanes["length"]) + lanes["length"], NEVER)
    return found


def _added(changes: Records, tally: Ints, new: Records) -> Records:
    """Write changes behind those that are there; returns the array, or a larger one."""
    begin, end = int(tally[1]), int(tally[1]) + len(new)
    if end > len(changes):
        changes = np.concatenate([changes[:begin], np.empty(2 * end - begin, CHANGE)])
    changes[begin:end] = new
    tally[1] = end
    return changes


def _net(held: list[Records]) -> Records:
    """Of the changes of a batch, those that are left at its end; by lane, leaving before entering."""
    every = np.concatenate([np.empty(0, CHANGE), *held])
    every = every[np.lexsort((every["serial"], every["visit"]))]
    if not len(every):
        return every
    begins = np.flatnonzero(np.r_[True, (np.diff(every["visit"]) != 0) | (np.diff(every["serial"]) != 0)])
    diffs = np.add.reduceat(every["diff"].astype(np.int64), begins)
    net = every[begins[diffs != 0]]
    net["diff"] = diffs[diffs != 0]
    net["first"] &= net["diff"] > 0
    net["row"] = -1
    found: Records = net[np.lexsort((net["serial"], net["diff"], net["visit"]))]
    return found


class DeviceSlots(SimilarSlots):
    """Slots that compare vectors on a device."""

    def __init__(self, *given: Any, device: str, **more: Any) -> None:
        self.device = device
        super().__init__(*given, **more)

    def empty_pool(self) -> VectorPool:
        return DevicePool(self.shape, self.tuning, name=self.device, timed=self.timed, net=self.net)

    def in_window(self, pool: Pool, chunk: int, s: int, since: int) -> Records:
        assert isinstance(pool, DevicePool)
        pool.wake()
        here = pool.here
        low, high, place = here.start + pool.offset, here.stop + pool.offset, np.array([chunk * SIDE + s])
        _, arrivals, keys = pool.lanes.near(place, low, high, since, since)
        found = np.zeros(len(keys), OBJECT)
        at = arrivals - pool.offset
        found["key"], found["stamp"], found["serial"] = keys, pool.stamps[at], pool.serials[at]
        return found

    def answers(self, slots: Ints, now: int, k: int | None = None, length: int | None = None) -> Answer:
        many = len(slots) > 64  # their runs come from the device at once
        if many:
            self._rest()
        found = super().answers(slots, now, k, length)
        if many:
            self._sleep()
        return found

    def shrink(self, slot: int, spec: Any, now: int) -> Changes:
        raise NotImplementedError("subscriptions are replaced")

    def _rest(self) -> None:
        for pool in self.pools.values():
            assert isinstance(pool, DevicePool)
            pool.rest()

    def _sleep(self) -> None:
        for pool in self.pools.values():
            assert isinstance(pool, DevicePool)
            if pool.lanes is not None:
                pool._sleep()

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        self._rest()
        found = super().snapshot(groups)
        self._sleep()
        return found

    def reset_groups(self, groups: Ints) -> None:
        self._rest()
        super().reset_groups(groups)

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        self._rest()
        super().check(deep=deep, now=now)
        self._sleep()
