"""A pool: slots whose windows have lengths of one class, in chunks, and the history of arrivals that they share.

Window lengths of a pool differ by less than four times, so that one size of blocks suits all of them. The history
(recent_arrivals.py) holds the most recent arrivals; it is what lanes are deepened from (kernels/depths.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Ints, Spec
from skyband.engines.topk.chunk import MOST, Chunk, new_lanes, set_goals, share_memory
from skyband.engines.topk.kernels.depths import Scratch
from skyband.engines.topk.kernels.lane_state import LOOKING, STALE
from skyband.engines.topk.kernels.segments import SEGMENT, Grid
from skyband.engines.topk.kernels.slot_reads import score_lane
from skyband.engines.topk.kernels.slots import MANY, TILE, Limits, Plan, lay_blocks, take_slots
from skyband.engines.topk.kernels.state import Report
from skyband.engines.topk.recent_arrivals import RecentArrivals, Stream
from skyband.engines.topk.slot_columns import Shape, SlotColumns, by_place
from skyband.kernels.records import ARRIVAL, CHANGE, NEVER
from skyband.query.scoring.forms import PRODUCT
from skyband.query.tuning import Tuning

Records = NDArray[Any]
BUFFER = 1 << 14  # arrivals of a history, at least: where a stream drifts, what a slot lacks is then found in it
EACH = 100  # and for each slot
LONGEST = 1 << 18  # of a history, where windows go by time, or subscriptions may begin with their windows
FEW = 16  # fewer slots look at every arrival
FRESH = 1 << 15  # rows after which a slot without a depth is fresh no longer


class Pool(RecentArrivals):
    """Slots with one class of window lengths, and their history."""

    def __init__(self, shape: Shape, tuning: Tuning, *, timed: bool, net: bool, whole: bool = False) -> None:
        super().__init__(shape)
        self.tuning, self.timed, self.net = tuning, timed, net
        self.whole = whole and not tuning.buffer
        self.chunks: list[Chunk] = []
        self.roomy: dict[int, None] = {}  # those with room for more lanes
        self.size = self.gone = 0  # slots; how many have left since they were measured
        self.shortest, self.longest, self.want = NEVER, 0, 0  # of their windows; of objects above a depth
        self.scratch: Scratch | None = None
        self.work = np.zeros(4, np.int64)
        self.shift = 0  # how many arrivals of the stream its slots have rejected: its numbers are so much smaller

    # --- slots

    def join(self, columns: SlotColumns, slots: Ints, birth: int, *, placed: bool = False) -> tuple[Ints, Ints]:
        """Take these slots; returns the chunk and the lane of each. placed: they come by place already."""
        order = None if placed else self.by_place(columns)
        if order is not None:
            columns, slots = columns.take(order), slots[order]
        chunks, lanes = np.empty(len(slots), np.int64), np.empty(len(slots), np.int64)
        low = 0
        while low < len(slots):
            if not self.roomy:
                self._add_chunks(len(slots) - low)
            number = next(iter(self.roomy))
            chunk = self.chunks[number]
            here = slice(low, low + chunk.room)
            mine = columns.take(here)
            fresh = new_lanes(mine, slots[here], birth)  # of a chunk, so that a cache holds them
            chunks[here], lanes[here] = number, chunk.join(mine, fresh)
            self._measure(fresh)
            low += len(fresh)
            if not chunk.room:
                del self.roomy[number]
        if order is None:
            return chunks, lanes
        found = np.empty((2, len(slots)), np.int64)
        found[0, order], found[1, order] = chunks, lanes
        return found[0], found[1]

    def _add_chunks(self, lanes: int) -> None:
        """Chunks for so many lanes: those that will be full get all of their memory at once, in large pages."""
        first = len(self.chunks)
        full = [self.new_chunk() for _ in range(lanes // self.new_chunk().most)]
        if full:
            share_memory(full)
        self.chunks += full or [self.new_chunk()]
        self.roomy |= dict.fromkeys(range(first, len(self.chunks)))

    def adopt(self, columns: SlotColumns, lane: Records, kept: Records) -> tuple[int, int]:
        """Take one slot with the objects of its run; returns its chunk and lane."""
        slots = lane["slot"].astype(np.int64)
        (number,), (s,) = self.join(columns, slots, int(lane["birth"][0]))
        chunk = self.chunks[number]
        placed = chunk.lanes[s]
        for name in ("depth", "newest", "due", "open", "fresh"):
            placed[name] = lane[name][0]
        chunk.put(int(s), kept)
        return int(number), int(s)

    def by_place(self, columns: SlotColumns) -> Ints | None:
        """An order in which slots that are worked on together are neighbours; None: any."""
        return by_place(columns.points)

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
        """How many arrivals the history holds, and how many of them decide on blocks and cells."""
        most = self.tuning.buffer or max(BUFFER, EACH * self.size)
        if self.whole:
            most = max(most, min(self.waiting if self.timed else self.longest, LONGEST))
        self.most = min(most, max(BUFFER, LONGEST)) if self.timed and not self.tuning.buffer else most
        self.most = self.most if self.timed else min(self.most, self.longest)
        self.kept = LONGEST if self.whole and self.timed else self.most

    @property
    def largest(self) -> int:
        """Arrivals of the largest block."""
        return max(1, self.most // 4)

    @property
    def largest_net(self) -> int:
        """The same where only the end of a batch is reported."""
        return max(self.largest, 1 << 14)

    # --- what is kept

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

    def run_of(self, chunk: int, s: int) -> Records:
        """The objects of a lane."""
        mine = self.chunks[chunk]
        head = int(mine.lanes["head"][s])
        return mine.objects[head : head + int(mine.lanes["size"][s])]

    def shrink(self, chunk: int, s: int, spec: Spec, now: int) -> Records:
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
        mine.tally[1] = len(lost)
        return self._settle_now(mine, changes, now, int(lane["fresh"][0]))

    def look_back(self, places: Records, now: int) -> Records:
        """Let new lanes see what their windows hold already; returns what enters their answers.

        Those for which the history here is too short have objects already, from another pool.
        """
        pieces = []
        for number in np.unique(places["chunk"]).tolist():
            chunk, some = self.chunks[number], places["lane"][places["chunk"] == number]
            lanes = chunk.lanes
            lanes["depth"][some], lanes["birth"][some] = np.inf, 0
            lanes["fresh"][some], lanes["open"][some] = LOOKING, 1
            chunk.tally[1] = 0
            pieces.append(self._settle_now(chunk, np.zeros(64, CHANGE), now, LOOKING))
            lanes["fresh"][some] = lanes["depth"][some] == -np.inf
        return np.concatenate([np.empty(0, CHANGE), *pieces])

    def _settle_now(self, chunk: Chunk, changes: Records, now: int, fresh: int) -> Records:
        """Let the lanes of one sort find what their answers lack, between two batches; returns all changes."""
        segments = np.concatenate([self.segments, self._end(self.segments, len(self.segments), now)])
        segments["left"][-1] = self.left
        step, none = np.zeros(1, CHANGE), np.empty(0, np.bool_)
        report = Report(changes, chunk.tally, step, none, 0, not self.timed, True, False)
        plan = Plan(len(self.segments), len(segments), now, now, fresh)
        changes = self.run(chunk, report, segments, plan)
        return changes[: chunk.tally[1]]

    def new_chunk(self) -> Chunk:
        return Chunk(self.shape)

    def run(self, chunk: Chunk, report: Report, segments: Records, plan: Plan) -> Records:
        """Take the blocks of a batch into a chunk; returns the changes."""
        history = self.history(segments)
        chunk.objects, changes = take_slots(chunk.view(), report, history, self.grid, plan, self._work_space())
        return changes

    def keys(self, chunk: Chunk, s: int, here: slice) -> tuple[Records, Records]:
        """The keys of arrivals of the history for a lane, and whether they are in its box."""
        keys, inside = np.empty(here.stop - here.start), np.empty(here.stop - here.start, np.bool_)
        score_lane(chunk.view(), s, np.ascontiguousarray(self.data[:, here]), keys, inside)
        return keys, inside

    def _side(self) -> int:
        """The cells along each attribute: as asked for, else with 8 arrivals of a block to a cell, 2 of many slots."""
        wanted = self.size >= FEW if self.tuning.index is None else self.tuning.index
        if not wanted or self.shape.form == PRODUCT:
            return 0
        cells = self.tuning.cells or self.largest / (2 if self.size > MOST else 8)
        side = round(cells ** (1 / self.shape.attributes))
        return side if side > 1 else 0

    def set_grid(self, grid: Grid) -> None:
        super().set_grid(grid)
        for chunk in self.chunks:
            chunk.lanes["counts"] = STALE

    # --- a batch

    def take(self, stream: Stream, report: Report) -> Records:
        """Take a batch; the report's changes go on from its tally. Returns the changes."""
        if 4 * self.gone > self.size + 64:
            self.measure_again()
        elif self.whole and self.timed:
            self._set_most()
        if self.net:
            stream = self._skip(stream)
        low, size = self.append(stream, self.most), len(stream.stamps)
        self.lay_grid(low, self._side(), self.most)
        count = len(self.segments)
        looking = self._look(stream) if self.net and size else []
        fresh = [bool((chunk.in_use["fresh"] == 1).any()) for chunk in self.chunks]
        old = [bool((chunk.in_use["k"] > 0)[chunk.in_use["fresh"] == 0].any()) for chunk in self.chunks]
        changes = report.changes
        plans = []
        if any(fresh):
            youngest = max(int(chunk.in_use["birth"].max(initial=0)) for chunk in self.chunks)
            seen = max(0, int(stream.serials[0]) - youngest) if size else self.arrived
            plans.append((1, fresh, min(seen, self.arrived)))
        if any(old) or not plans:
            plans.append((0, old, LONGEST if self.net else self.arrived))  # of net changes no block need be short
        for which, wanted, seen in plans:
            segments = self.sort(self._plan(low, seen, stream.last), count, self.largest)
            plan = Plan(count, len(segments), self.before, stream.last, which)
            for chunk, needed in zip(self.chunks, wanted, strict=True):
                if needed:
                    chunk.tally[1] = report.tally[1]
                    mine = report._replace(changes=changes, tally=chunk.tally)
                    changes = self.run(chunk, mine, segments, plan)
                    report.tally[1] = chunk.tally[1]
        for chunk in looking:
            chunk.tally[1] = report.tally[1]
            mine = report._replace(changes=changes, tally=chunk.tally)
            last = Plan(len(segments) - 1, len(segments), self.before, stream.last, LOOKING)
            changes = self.run(chunk, mine, segments, last)
            report.tally[1] = chunk.tally[1]
            chunk.in_use["fresh"][chunk.in_use["fresh"] == LOOKING] = 1
        self._age(stream.next)
        self._settle(segments, count, stream)
        return changes

    def _look(self, stream: Stream) -> list[Chunk]:
        """Let fresh lanes find their objects in the history after a batch of net changes, instead of taking it.

        Not where they have seen much more than this batch: they would look at all of it again.
        """
        found = []
        for chunk in self.chunks:
            lanes = chunk.in_use
            young = (lanes["fresh"] == 1) & (lanes["k"] > 0) & (stream.next - lanes["birth"] <= 4 * len(stream.stamps))
            if young.any():
                lanes["depth"][young], lanes["fresh"][young] = np.inf, LOOKING
                found.append(chunk)
        return found

    def _age(self, serial: int) -> None:
        """Lanes that have a depth, or have had enough time for one, are fresh no longer."""
        for chunk in self.chunks:
            lanes = chunk.in_use
            if lanes["fresh"].any():
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

    def _plan(self, low: int, seen: int, last: int) -> Records:
        """The segments that are there, and the blocks of the arrivals from `low` on."""
        reach = NEVER if self.net else self.shortest // 4
        largest = self.largest_net if self.net else self.largest
        limits = Limits(seen, largest, reach, self.kept, self.longest, self.net)
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
            if waiting - size < self.kept and segments["newest"][gone] > last - self.longest:
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
        self.segments = self.sort(whole, 0, self.largest)

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
