"""A pool: slots whose windows have lengths of one class, in chunks, and the history of arrivals that they share.

Window lengths of a pool differ by less than four times, so that one size of blocks suits all of them. The history
holds the most recent arrivals, in segments (kernels/segments.py); it is what lanes are deepened from (kernels/depths.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Floats, Ints, Spec
from skyband.engines.topk.chunk import MOST, Chunk, new_lanes, set_goals
from skyband.engines.topk.kernels.depths import Scratch
from skyband.engines.topk.kernels.lane_state import STALE
from skyband.engines.topk.kernels.segments import SEGMENT, Grid, History, sort_segments
from skyband.engines.topk.kernels.slots import MANY, TILE, Limits, Plan, lay_blocks, take_slots
from skyband.engines.topk.kernels.state import Report
from skyband.engines.topk.slot_columns import Shape, SlotColumns
from skyband.kernels.records import ARRIVAL, CHANGE, NEVER
from skyband.query.scoring.forms import PRODUCT, TAME
from skyband.query.tuning import Tuning

Records = NDArray[Any]
BUFFER = 2000  # arrivals of a history, at least
EACH = 100  # and for each slot
LONGEST = 1 << 18  # of a history, where windows go by time
FEW = 16  # fewer slots look at every arrival
FRESH = 1 << 15  # rows after which a slot without a depth is fresh no longer


@dataclass
class Stream:
    """The arrivals of a batch that can be answers, and its end."""

    data: Floats  # one row per attribute
    stamps: Ints
    now: Ints
    serials: Ints
    last: int  # the clock, or the number of the last arrival
    next: int  # the serial of the next batch

    def since(self, place: int) -> Stream:
        """Without the first arrivals."""
        tail = slice(place, None)
        return Stream(self.data[:, tail], self.stamps[tail], self.now[tail], self.serials[tail], self.last, self.next)


class Pool:
    """Slots with one class of window lengths, and their history."""

    def __init__(self, shape: Shape, tuning: Tuning, *, timed: bool, net: bool) -> None:
        self.shape, self.tuning, self.timed, self.net = shape, tuning, timed, net
        self.chunks: list[Chunk] = []
        self.roomy: dict[int, None] = {}  # those with room for more lanes
        self.size = self.gone = 0  # slots; how many have left since they were measured
        self.shortest, self.longest, self.want = NEVER, 0, 0  # of their windows; of objects above a depth
        self.left = self.before = -NEVER  # the largest stamp that has left the history; the last instant handled
        self.arrived = 0
        self.data = np.empty((shape.attributes, 0))
        self.stamps, self.now, self.serials = (np.empty(0, np.int64) for _ in range(3))
        self.end = 0  # of the history, in these
        self.by_cell, self.places = np.empty((shape.attributes, 0)), np.empty(0, np.int32)
        self.segments, self.starts = np.empty(0, SEGMENT), np.empty((1, 1), np.int32)
        self.grid = Grid(np.zeros(shape.attributes), np.zeros(shape.attributes), 0, np.empty((0, 0)), np.empty((0, 0)))
        self.laid = 0  # arrivals when the grid was laid
        self.scratch: Scratch | None = None
        self.work = np.zeros(4, np.int64)
        self.shift = 0  # how many arrivals of the stream its slots have rejected: its numbers are so much smaller

    # --- slots

    def join(self, columns: SlotColumns, slots: Ints, birth: int) -> tuple[Ints, Ints]:
        """Take these slots; returns the chunk and the lane of each."""
        lanes, order = new_lanes(columns, slots, birth), self._by_place(columns)
        chunk_of, lane_of = np.empty(len(slots), np.int64), np.empty(len(slots), np.int64)
        low = 0
        while low < len(slots):
            if not self.roomy:
                self.roomy[len(self.chunks)] = None
                self.chunks.append(Chunk(self.shape))
            number = next(iter(self.roomy))
            chunk = self.chunks[number]
            here = order[low : low + chunk.room]
            lane_of[here] = chunk.join(columns.take(here), lanes[here])
            chunk_of[here] = number
            low += len(here)
            if not chunk.room:
                del self.roomy[number]
        self._measure(lanes)
        return chunk_of, lane_of

    def _by_place(self, columns: SlotColumns) -> Ints:
        """An order in which slots with points near each other come together, where there are many."""
        if len(columns) <= MOST or self.shape.d < 2:
            return np.arange(len(columns))
        strips = max(1, round((len(columns) / MOST) ** 0.5))
        first = np.argsort(columns.points[:, 0], kind="stable")
        strip = np.empty(len(columns), np.int64)
        strip[first] = np.arange(len(columns)) * strips // len(columns)
        return np.lexsort((columns.points[:, 1], strip))

    def leave(self, chunk: int, lanes: Ints) -> None:
        """Free these lanes of a chunk."""
        self.chunks[chunk].leave(lanes)
        self.roomy[chunk] = None
        self.size -= len(lanes)
        self.gone += len(lanes)

    def _measure(self, lanes: Records) -> None:
        """What the windows and k of more slots ask of the history."""
        self.size += len(lanes)
        if len(lanes):
            self.shortest = min(self.shortest, int(lanes["length"].min()))
            self.longest = max(self.longest, int(lanes["length"].max()))
            self.want = max(self.want, int(lanes["want"].max()))
        self._set_most()

    def measure_again(self) -> None:
        """The same of those that are left, when many have gone: O(1) for each of these."""
        self.size = self.gone = self.longest = self.want = 0
        self.shortest = NEVER
        for chunk in self.chunks:
            self._measure(chunk.in_use[chunk.in_use["k"] > 0])

    def _set_most(self) -> None:
        """How many arrivals the history holds."""
        most = self.tuning.buffer or max(BUFFER, EACH * self.size)
        self.most = min(most, max(BUFFER, LONGEST)) if self.timed and not self.tuning.buffer else most
        self.most = self.most if self.timed else min(self.most, self.longest)

    @property
    def largest(self) -> int:
        """Arrivals of the largest block."""
        return max(1, self.most // 4)

    # --- what is kept

    @property
    def here(self) -> slice:
        """The history, in its arrays."""
        return slice(int(self.segments["begin"][0]) if len(self.segments) else self.end, self.end)

    @property
    def kept_serials(self) -> Ints:
        """Of the history, rising."""
        found: Ints = self.serials[self.here]
        return found

    @property
    def waiting(self) -> int:
        """Arrivals in the history."""
        return self.here.stop - self.here.start

    @property
    def objects(self) -> int:
        """Objects in runs."""
        return sum(int(chunk.in_use["size"].sum()) for chunk in self.chunks)

    @property
    def due(self) -> int:
        """Time takes nothing from an answer before this instant."""
        return min((int(chunk.in_use["due"].min(initial=NEVER)) for chunk in self.chunks), default=NEVER)

    @property
    def open(self) -> bool:
        """Whether it is within a batch of net changes."""
        return any(chunk.in_use["open"].any() for chunk in self.chunks)

    @property
    def nbytes(self) -> int:
        arrays = (self.data, self.by_cell, self.stamps, self.now, self.serials, self.places, self.starts)
        return sum(chunk.nbytes for chunk in self.chunks) + sum(int(array.nbytes) for array in arrays)

    def set_history(self, data: Floats, stamps: Ints, serials: Ints) -> None:
        """Take over a history."""
        size = len(stamps)
        self.segments, self.end = self.segments[:0], 0
        self._append(Stream(data, stamps, stamps, serials, 0, 0))
        if size:
            segment = np.zeros(1, SEGMENT)
            segment["end"], segment["newest"], segment["cells"] = size, stamps.max(), -1
            segment["instant"] = stamps.max()
            self.segments = segment

    def shrink(self, chunk: int, s: int, spec: Spec, now: int, serial: int = 0) -> Records:
        """Let a lane ask for a smaller k or window; returns the changes."""
        mine = self.chunks[chunk]
        lane, objects = mine.lanes[s : s + 1], mine.objects
        head, size = int(lane["head"][0]), int(lane["size"][0])
        run = objects[head : head + size].copy()
        run["was"] = run["inside"]
        lane["k"], lane["length"] = spec.k, spec.length
        set_goals(lane)
        lost = run[(run["dom"] >= spec.k) & (run["was"] > 0)]
        run = run[run["dom"] < spec.k]
        objects[head : head + len(run)] = run
        lane["size"], lane["open"] = len(run), 1
        oldest = int(run["stamp"][: spec.k].min(initial=NEVER))
        lane["due"] = oldest + spec.length if oldest < NEVER else NEVER
        self.shortest = min(self.shortest, spec.length)
        changes = np.zeros(len(lost) + 64, CHANGE)
        for name in ("key", "stamp", "serial"):
            changes[name][: len(lost)] = lost[name]
        changes["diff"][: len(lost)], changes["visit"][: len(lost)] = -1, lane["slot"]
        segments = np.concatenate([self.segments, self._end(self.segments, len(self.segments), now)])
        segments["left"][-1] = self.left
        mine.tally[1] = len(lost)
        none = np.empty(0, np.bool_)
        report = Report(changes, mine.tally, np.zeros(1, CHANGE), none, serial, not self.timed, True, False)
        fresh = int(lane["fresh"][0])
        plan = Plan(len(self.segments), len(segments), now, now, fresh)
        history, scratch = self._history(segments), self._work_space()
        mine.objects, changes = take_slots(mine.view(), report, history, self.grid, plan, scratch)
        return changes[: mine.tally[1]]

    # --- the grid

    def _side(self) -> int:
        """The cells along each attribute that would suit: some 8 arrivals of a block to a cell, or 2 of many slots."""
        wanted = self.size >= FEW if self.tuning.index is None else self.tuning.index
        if not wanted or self.shape.form == PRODUCT:
            return 0
        each = 2 if self.size > MOST else 8
        side = round((self.largest / each) ** (1 / self.shape.attributes))
        return side if side > 1 else 0

    def _lay_grid(self, low: int) -> None:
        """Another grid if there is none that suits the arrivals from place `low` on."""
        side, fresh = self._side(), self.data[:, low : self.end]
        enough = fresh.shape[1] >= side**self.shape.attributes
        if side == 0 or not (enough or self.grid.side):
            if self.grid.side and side == 0:
                self._set_grid(Grid(self.grid.origin, self.grid.scale, 0, np.empty((0, 0)), np.empty((0, 0))))
            return
        if self.grid.side and enough and self.arrived - self.laid >= self.most:
            place = (fresh - self.grid.origin[:, None]) * self.grid.scale[:, None]
            outside = ((place < 0) | (place > self.grid.side)).any(axis=0).mean()
            resized = max(side, self.grid.side) >= 1.5 * min(side, self.grid.side)
        else:
            outside, resized = 0.0, False
        if self.grid.side and outside <= 0.2 and not resized:
            return
        sample = self.data[:, : self.end][:, :: max(1, self.end // 4096)]
        sample = np.where(np.abs(sample) <= TAME, sample, np.nan)
        known = ~np.isnan(sample).all(axis=1)
        origin, scale = np.zeros(len(sample)), np.zeros(len(sample))
        least, most = np.nanquantile(sample[known], [0.005, 0.995], axis=1)
        origin[known] = least
        with np.errstate(divide="ignore"):
            width = np.where(most > least, side / (most - least), 0.0)
        scale[known] = np.where(width < 1e300, width, 0.0)
        self._set_grid(Grid(origin, scale, side, *cell_edges(origin, scale, side)))
        self.laid = self.arrived

    def _set_grid(self, grid: Grid) -> None:
        self.grid = grid
        self.segments["cells"], self.starts = -1, np.empty((1, grid.side**self.shape.attributes + 1), np.int32)
        for chunk in self.chunks:
            chunk.lanes["counts"] = STALE

    def _sort(self, segments: Records, first: int) -> Records:
        """Sort the segments from `first` on that are long enough; returns all of them as they are then."""
        if self.grid.side:
            cells = self.grid.side**self.shape.attributes
            due = np.flatnonzero(
                (segments["end"] - segments["begin"] >= min(cells, self.largest)) & (segments["cells"] < 0)
            )
            due = due[due >= first]
            rows = np.setdiff1d(np.arange(len(segments)), segments["cells"], assume_unique=False)[: len(due)]
            segments["cells"][due] = rows
            if len(rows) and rows.max() >= len(self.starts):
                more = np.empty((int(rows.max()) + 1 - len(self.starts), cells + 1), np.int32)
                self.starts = np.concatenate([self.starts, more])
            if len(due):
                only = segments.copy()
                only["cells"][np.setdiff1d(np.arange(len(segments)), due)] = -1
                longest = int((segments["end"] - segments["begin"])[due].max())
                sort_segments(self._history(only), self.grid, first, np.empty(longest, np.int64))
        return segments

    # --- a batch

    def take(self, stream: Stream, report: Report) -> Records:
        """Take a batch; the report's changes go on from its tally. Returns the changes."""
        if 4 * self.gone > self.size + 64:
            self.measure_again()
        if self.net:
            stream = self._skip(stream)
        low, size = self._append(stream)
        self._lay_grid(low)
        count = len(self.segments)
        fresh = [bool(chunk.in_use["fresh"].any()) for chunk in self.chunks]
        old = [bool((chunk.in_use["k"] > 0)[chunk.in_use["fresh"] == 0].any()) for chunk in self.chunks]
        changes = report.changes
        plans = []
        if any(fresh):
            youngest = max(int(chunk.in_use["birth"].max(initial=0)) for chunk in self.chunks)
            seen = max(0, int(stream.serials[0]) - youngest) if size else self.arrived
            plans.append((1, fresh, min(seen, self.arrived)))
        if any(old) or not plans:
            plans.append((0, old, self.arrived))
        for which, wanted, seen in plans:
            segments = self._sort(self._plan(low, seen, stream.last), count)
            history, plan = self._history(segments), Plan(count, len(segments), self.before, stream.last, which)
            scratch = self._work_space()
            for chunk, needed in zip(self.chunks, wanted, strict=True):
                if needed:
                    chunk.tally[1] = report.tally[1]
                    mine = report._replace(changes=changes, tally=chunk.tally)
                    chunk.objects, changes = take_slots(chunk.view(), mine, history, self.grid, plan, scratch)
                    report.tally[1] = chunk.tally[1]
        self._age(stream.next, fresh)
        self._settle(segments, count, stream)
        return changes

    def _age(self, serial: int, fresh: list[bool]) -> None:
        """Lanes that have a depth, or have had enough time for one, are fresh no longer."""
        for chunk, some in zip(self.chunks, fresh, strict=True):
            if some:
                lanes = chunk.in_use
                lanes["fresh"] &= (lanes["depth"] == -np.inf) & (serial - lanes["birth"] < FRESH)

    def _skip(self, stream: Stream) -> Stream:
        """Without arrivals that have left every window by the end: only the end is reported."""
        place = int(np.searchsorted(stream.now, stream.last - self.longest, "right"))
        if place:
            newest = [self.left, int(stream.stamps[:place].max()), *self.segments["newest"].tolist()]
            self.left, self.segments, self.end = max(newest), self.segments[:0], 0
            self.arrived += place
            self.before = int(stream.now[place - 1])
            stream = stream.since(place)
        return stream

    def _append(self, stream: Stream) -> tuple[int, int]:
        """Put the arrivals into the history; returns the place of the first, and how many there are."""
        size = len(stream.stamps)
        begin = int(self.segments["begin"][0]) if len(self.segments) else self.end
        if self.end + size > len(self.stamps):
            live, old_room, here = self.end - begin, len(self.stamps), slice(begin, self.end)
            room = live + size + max(self.most, size) if live + size > old_room // 2 else old_room
            for name in ("data", "by_cell", "stamps", "now", "serials", "places"):
                old: Records = getattr(self, name)
                new = old if room == old_room else np.empty((*old.shape[:-1], room), old.dtype)
                new[..., :live] = old[..., here] - (begin if name == "places" else 0)
                setattr(self, name, new)
            self.segments["begin"] -= begin
            self.segments["end"] -= begin
            self.starts -= np.int32(begin)
            self.end = live
        low = self.end
        self.end += size
        new_rows = slice(low, self.end)
        self.data[:, new_rows], self.stamps[new_rows] = stream.data, stream.stamps
        self.now[new_rows], self.serials[new_rows] = stream.now, stream.serials
        return low, size

    def _plan(self, low: int, seen: int, last: int) -> Records:
        """The segments that are there, and the blocks of the arrivals from `low` on."""
        reach = NEVER if self.net else self.shortest // 4
        largest = max(self.largest, 1 << 14) if self.net else self.largest
        limits = Limits(seen, largest, reach, self.most, self.longest, self.net)
        count = len(self.segments)
        segments = np.concatenate([self.segments, np.zeros(max(1, (self.end - low) // largest + 16), SEGMENT)])
        total = lay_blocks(self.stamps, self.now, segments, limits, low, self.end, count, self.left)
        if total > len(segments):
            segments = np.concatenate([segments, np.zeros(total - len(segments), SEGMENT)])
            lay_blocks(self.stamps, self.now, segments, limits, low, self.end, count, self.left)
        segments = segments[:total]
        end = int(segments["instant"][-1]) if total > count else self.before
        if (self.net and total > count) or end < last:
            segments = np.concatenate([segments, self._end(segments, count, last)])
        return segments

    def _end(self, segments: Records, count: int, last: int) -> Records:
        """A block without arrivals: time goes on, and what is too much or too old leaves the history."""
        last_block = np.zeros(1, SEGMENT)
        first = int(segments["first"][-1]) if len(segments) > count else 0
        gone, left = first, int(segments["left"][-1]) if len(segments) > count else self.left
        waiting = int((segments["end"] - segments["begin"])[first:].sum())
        while gone < len(segments):
            size = int(segments["end"][gone] - segments["begin"][gone])
            if waiting - size < self.most and segments["newest"][gone] > last - self.longest:
                break
            waiting, left, gone = waiting - size, max(left, int(segments["newest"][gone])), gone + 1
        last_block["begin"] = last_block["end"] = self.end
        last_block["newest"], last_block["instant"], last_block["cells"] = -NEVER, last, -1
        last_block["first"], last_block["left"] = first, left
        return last_block

    def _settle(self, segments: Records, count: int, stream: Stream) -> None:
        """After a batch: forget what has left the history, and let short segments become longer ones."""
        if len(segments) > count:
            self.left = int(segments["left"][-1])
            self.before = max(self.before, int(segments["instant"][-1]))
        self.arrived += len(stream.stamps)
        kept = segments[(segments["newest"] > self.left) & (segments["end"] > segments["begin"])]
        kept = kept[np.argsort(kept["begin"], kind="stable")]
        begin = int(kept["begin"][0]) if len(kept) else self.end
        whole = segments[(segments["begin"] >= begin) & (segments["end"] > segments["begin"])].copy()
        sizes = (whole["end"] - whole["begin"]).tolist()
        while len(sizes) > 1 and 2 * sizes[-1] >= sizes[-2] and sizes[-1] + sizes[-2] <= self.largest:
            one = whole[-1]
            whole = whole[:-1]
            whole["end"][-1], whole["instant"][-1], whole["cells"][-1] = one["end"], one["instant"], -1
            whole["newest"][-1] = max(whole["newest"][-1], one["newest"])
            sizes[-2:] = [sizes[-2] + sizes[-1]]
        self.segments = self._sort(whole, 0)

    def _history(self, segments: Records) -> History:
        return History(self.data, self.stamps, self.now, self.serials, self.by_cell, self.places, segments, self.starts)

    def _work_space(self) -> Scratch:
        """Scratch arrays of the size that they need now."""
        size, best, a = len(self.stamps), min(self.want, len(self.stamps)) + 1, self.shape.attributes
        old, side = self.scratch, max(self.grid.side, a) + 2
        if old is None or len(old.keys) < size or len(old.best) < best or old.terms.shape[1] < side:
            self.scratch = Scratch(
                keys=np.empty(size),
                found=np.empty(MANY + size),
                places=np.empty(MANY + size, np.int64),
                bounds=np.zeros(TILE + 1, np.int64),
                terms=np.zeros((a + 1, side)),
                corner=np.zeros(a, np.int64),
                ranges=np.zeros(256, np.int64),
                best=np.zeros(best),
                picked=np.empty(size + 1, ARRIVAL),
                work=self.work,
            )
        assert self.scratch is not None
        return self.scratch


def class_of(lengths: Ints) -> Ints:
    """The class of windows of these lengths: those of one class differ by less than four times."""
    return np.floor(np.log2(np.maximum(lengths, 1).astype(np.float64)) / 2).astype(np.int64)


def cell_edges(origin: Floats, scale: Floats, side: int) -> tuple[Floats, Floats]:
    """The sides of cells by attribute and place, a little wider than they are: places are rounded. Outer ones are open."""
    places = np.arange(side)
    with np.errstate(divide="ignore", invalid="ignore"):
        width = 1 / scale[:, None]
        slack = 1e-9 * width * side + 1e-15 * np.abs(origin[:, None])
        lows, highs = origin[:, None] + places * width - slack, origin[:, None] + (places + 1) * width + slack
    lows[:, 0], highs[:, -1] = -np.inf, np.inf
    lows[scale == 0], highs[scale == 0] = -np.inf, np.inf
    return lows, highs
