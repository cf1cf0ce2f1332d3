"""BLOCK for many queries of one form over one stream: a batch into a chunk of lanes, block by block.

For each lane the few arrivals of a block that matter to it are found (kernels/segments.py), and only these reach its
run (kernels/replay.py). Lanes are taken some at a time, so that their state stays in cache from the first look at their
depth to the last change (DESIGN, section 5).

When only net changes are reported nothing leaves the history before the end of the batch, and V >= T
(kernels/depths.py) must hold only there.

Cost of a lane and block: about 2K records to find V, the keys of the arrivals in the cells that it sees, and a merge of
the few of them that are at or above T into the run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.depths import Scratch, admit, count_above, deepen, lift
from skyband.engines.topk.kernels.found import Found, next_good, sort_found
from skyband.engines.topk.kernels.lane_state import DENSE, LOOKING, WIDE, Lanes, fits, store_run, with_room
from skyband.engines.topk.kernels.replay import (
    Block,
    enters,
    leaves,
    new_merge,
    open_lane,
    take_block,
    take_lane,
)
from skyband.engines.topk.kernels.scores import keys_of
from skyband.engines.topk.kernels.segments import Grid, History, find_ranges, in_box
from skyband.engines.topk.kernels.state import Ints, Report, with_capacity
from skyband.kernels.compile import kernel, uncounted
from skyband.kernels.records import NEVER, SILENT, Records

TILE = 256  # lanes at a time
MANY = 1 << 15  # arrivals found at a time


class Plan(NamedTuple):
    """The blocks of a batch: segments of the history."""

    base: int  # the first block
    stop: int  # one past the last; the last may have no arrivals, then only time goes on
    before: int  # the instant up to which everything is done
    last: int  # the clock, or the number of the last arrival
    fresh: int  # 1: of lanes without a depth; LOOKING: of those that look into the history; 0: of the others


class Limits(NamedTuple):
    """What limits the blocks of a batch."""

    seen: int  # arrivals before it: the first blocks are short
    largest: int  # arrivals of a block
    reach: int  # instants of a block
    kept: int  # arrivals in the history
    length: int  # of the longest window
    net: bool  # nothing leaves the history before the end of the batch


@kernel
def take_slots(
    chunk: Lanes, report: Report, history: History, grid: Grid, plan: Plan, scratch: Scratch
) -> tuple[Records, Records]:
    """Take a batch of arrivals into the lanes of a chunk; returns the arena and the changes."""
    lanes, segments, tally = chunk.lanes, history.segments, report.tally
    merge, found = new_merge(64), Found(scratch.found, scratch.places, scratch.bounds)
    before = plan.before
    for b in range(plan.base, plan.stop):
        low, high, end = segments[b]["begin"], segments[b]["end"], segments[b]["instant"]
        block = Block(history.stamps, history.serials, low, high, end)
        first = 0
        while first < len(lanes):
            stop, s = min(len(lanes), first + TILE), first
            while s < stop:
                s, n = settle_lanes(chunk, report, history, grid, plan, b, before, s, stop, scratch)
                if s < stop:
                    if lanes[s]["size"] + max(n, 0) > len(merge.kept):
                        merge = new_merge(2 * (lanes[s]["size"] + n))
                    if tally[1] + lanes[s]["size"] > len(report.changes):
                        report = with_capacity(report, lanes[s]["size"])
                    if n >= 0:
                        size = admit(chunk, report, s, history, n, scratch, merge)
                        if size > lanes[s]["room"]:
                            chunk = with_room(chunk, s, size)
                        store_run(chunk.objects, lanes, s, merge.kept, size)
                        s += 1
            at = first if high > low else stop
            while at < stop:
                to = find_lanes(chunk, grid, history, b, plan.fresh, at, stop, scratch)
                more, longest = most_needed(lanes, found, at, to)
                if tally[1] + more > len(report.changes):
                    report = with_capacity(report, more)
                if longest > len(merge.valid):
                    merge = new_merge(2 * longest)
                if segments[b]["late"]:
                    for s in range(at, to):
                        n = pick_late(history, found, lanes, at, s, report.serial, scratch.picked)
                        if n and not fits(lanes, s, n):
                            chunk = with_room(chunk, s, lanes[s]["size"] + 2 * n)
                        if n:
                            open_lane(chunk.objects, lanes, s, report.net)
                            take_lane(chunk, report, s, scratch.picked, n)
                s = at
                while s < to:
                    s, size = take_block(chunk, report, s, to, found, at, block, merge)
                    if s < to:
                        chunk = with_room(chunk, s, size)
                        store_run(chunk.objects, lanes, s, merge.kept, size)
                        s += 1
                at = to
            first = stop
        before = max(before, end)
    for s in range(len(lanes)):
        if (
            lanes[s]["k"] == 0
            or lanes[s]["fresh"] != plan.fresh
            or (lanes[s]["due"] > plan.last and not lanes[s]["open"])
        ):
            continue
        if tally[1] + 4 * (2 + lanes[s]["size"]) > len(report.changes):
            report = with_capacity(report, 4 * (2 + lanes[s]["size"]))
        finish_lane(chunk, report, s, plan.last, scratch.picked)
    return chunk.objects, report.changes


@uncounted
def settle_lanes(
    chunk: Lanes,
    report: Report,
    history: History,
    grid: Grid,
    plan: Plan,
    b: int,
    before: int,
    s: int,
    stop: int,
    scratch: Scratch,
) -> tuple[int, int]:
    """Before block b: lift lanes from s on whose runs are too long, up to one that was deepened.

    Returns that lane and how many objects were found for it; -1: none, it lacks capacity for changes.
    """
    lanes, block, net = chunk.lanes, history.segments[b], report.net
    must = not net or block["begin"] == block["end"]
    while s < stop:
        K, depth = lanes[s]["k"], lanes[s]["depth"]
        if K and lanes[s]["fresh"] == plan.fresh and (depth > -np.inf or lanes[s]["size"] > lanes[s]["enough"]):
            bound = max(block["left"], (plan.last if net else block["instant"]) - lanes[s]["length"])
            above = count_above(chunk, s, bound)
            if (above < K or plan.fresh == LOOKING) and depth > -np.inf and must:
                expired = (plan.last if net else before) - lanes[s]["length"]
                return s, deepen(chunk, s, grid, history, b, bound, expired, scratch)
            if above > lanes[s]["enough"] + K // 8 + 4:
                if report.tally[1] + lanes[s]["size"] > len(report.changes):
                    return s, -1
                lift(chunk, report, s, history, b, lanes[s]["enough"], bound)
        s += 1
    return s, 0


@uncounted
def find_lanes(
    chunk: Lanes, grid: Grid, history: History, b: int, fresh: int, at: int, stop: int, scratch: Scratch
) -> int:
    """The arrivals of block b that reach the depths of lanes at..stop, and lie in their boxes.

    Returns the lane before which it stops, since so many are found that they are to be taken first.
    """
    lanes, found, places, bounds, keys = chunk.lanes, scratch.found, scratch.places, scratch.bounds, scratch.keys
    low, high, row = history.segments[b]["begin"], history.segments[b]["end"], history.segments[b]["cells"]
    starts, boxed, n, s = history.starts[max(row, 0)], chunk.lows.shape[1] > 0, 0, at
    while s < stop and n < MANY:
        begin = bounds[s - at] = n
        if lanes[s]["k"] == 0 or lanes[s]["fresh"] != fresh:
            s += 1
            continue
        depth, count = lanes[s]["depth"], lanes[s]["counts"] if row >= 0 else DENSE
        if count < DENSE or (row >= 0 and lanes[s]["seen"] != depth):
            count = see(chunk, grid, s, scratch)
        if count == DENSE:
            scratch.work[0] += high - low
            keys_of(chunk.scorings, s, history.data, low, high, keys)
            i = next_good(keys, depth, 0, high - low)
            while i < high - low:
                if not boxed or in_box(chunk, s, history.data, low + i):
                    found[n] = keys[i]
                    places[n] = low + i
                    n += 1
                i = next_good(keys, depth, i + 1, high - low)
        else:
            for r in range(0, count, 2):
                if lanes[s]["counts"] == WIDE:
                    first, last = starts[scratch.ranges[r]], starts[scratch.ranges[r + 1] + 1]
                else:
                    first, last = starts[chunk.ranges[s, r]], starts[chunk.ranges[s, r + 1] + 1]
                scratch.work[0] += last - first
                keys_of(chunk.scorings, s, history.by_cell, first, last, keys)
                for i in range(last - first):
                    found[n] = keys[i]
                    places[n] = history.places[first + i]
                    n += keys[i] >= depth  # no branch that would be guessed wrong
            if boxed:
                total = n
                n = begin
                for i in range(begin, total):
                    found[n] = found[i]
                    places[n] = places[i]
                    n += in_box(chunk, s, history.data, places[i])
        s += 1
    bounds[s - at] = n
    scratch.work[1] += n
    return s


@uncounted
def see(chunk: Lanes, grid: Grid, s: int, scratch: Scratch) -> int:
    """Find the cells that a lane sees; how many numbers they take: in its own ranges, or where these are too few."""
    lanes, depth = chunk.lanes, chunk.lanes[s]["depth"]
    lanes[s]["seen"] = depth
    count = DENSE
    if depth > -np.inf or chunk.lows.shape[1] > 0:
        scratch.work[3] += 1
        count = find_ranges(chunk, s, depth, grid, scratch.terms, scratch.corner, scratch.ranges)
    lanes[s]["counts"] = count if count <= chunk.ranges.shape[1] else WIDE
    for r in range(count if count <= chunk.ranges.shape[1] else 0):
        chunk.ranges[s, r] = scratch.ranges[r]
    return count


@uncounted
def most_needed(lanes: Records, found: Found, first: int, stop: int) -> tuple[int, int]:
    """The most changes that what was found for lanes first..stop can bring, and the longest merged run."""
    changes, longest = 0, 0
    for s in range(first, stop):
        size = found.bounds[s - first + 1] - found.bounds[s - first] + lanes[s]["size"]
        changes += 4 * size + 4
        longest = max(longest, size)
    return changes, longest


@uncounted
def pick_late(history: History, found: Found, lanes: Records, at: int, s: int, serial: int, picked: Records) -> int:
    """What was found for a lane, as arrivals in order, if one of them is late; none of it is then left in `found`."""
    begin, end, late = found.bounds[s - at], found.bounds[s - at + 1], False
    for i in range(begin, end):
        late |= history.stamps[found.places[i]] < history.now[found.places[i]]
    if not late:
        return 0
    sort_found(found, begin, end)
    n, length = 0, lanes[s]["length"]
    for i in range(begin, end):
        p = found.places[i]
        picked[n]["key"] = found.keys[i]
        picked[n]["stamp"] = history.stamps[p]
        picked[n]["now"] = history.now[p]
        picked[n]["row"] = history.serials[p] - serial
        n += history.stamps[p] > history.now[p] - length  # else it is too late for this lane
        found.places[i] = -1
    return n


@uncounted
def finish_lane(chunk: Lanes, report: Report, s: int, last: int, picked: Records) -> None:
    """Time goes on to `last`; then a lane's net changes are reported, unless the batch goes on."""
    objects, lanes, changes = chunk.objects, chunk.lanes, report.changes
    if lanes[s]["due"] <= last:
        open_lane(objects, lanes, s, report.net)
        picked[0]["now"] = last
        picked[0]["row"] = -2 * SILENT  # no arrival: time goes on
        take_lane(chunk, report, s, picked, 1)
    if not lanes[s]["open"] or report.more:
        return
    head, size, slot, count = lanes[s]["head"], lanes[s]["size"], lanes[s]["slot"], report.tally[1]
    stay = min(lanes[s]["k"], size)
    for i in range(head + stay, head + size):
        objects[i]["inside"] = 0
        if objects[i]["was"]:
            count = leaves(objects, i, slot, last, -1, changes, count)
    for i in range(head, head + stay):
        if not objects[i]["was"]:
            count = enters(objects, i, slot, last, -1, False, changes, count)
    for i in range(head, head + size):
        objects[i]["was"] = 0
    lanes[s]["open"] = 0
    report.tally[1] = count


@kernel
def lay_blocks(
    stamps: Ints, now: Ints, segments: Records, limits: Limits, low: int, high: int, count: int, left: int
) -> int:
    """Cut the arrivals low..high of the history into blocks: segments from `count` on, behind those that are there.

    left: the largest stamp that has left the history so far. Returns how many segments there are; where there is no
    place for more, they are only counted.
    """
    first, waiting, begin, seen = 0, 0, low, limits.seen
    for b in range(min(count, len(segments))):
        waiting += segments[b]["end"] - segments[b]["begin"]
    while begin < high:
        most, end = min(max(64, seen // 2), limits.largest), begin
        while end < high and end - begin < most and now[end] - now[begin] <= limits.reach:
            end += 1
        seen += end - begin
        if count < len(segments):
            newest, late = -NEVER, 0
            for i in range(begin, end):
                newest = max(newest, stamps[i])
                late |= stamps[i] < now[i]
            waiting += end - begin
            segments[count]["begin"], segments[count]["end"], segments[count]["cells"] = begin, end, -1
            segments[count]["instant"], segments[count]["newest"] = now[end - 1], newest
            segments[count]["late"], segments[count]["first"] = late, first
            while first < count and not limits.net:
                size = segments[first]["end"] - segments[first]["begin"]
                if waiting - size < limits.kept and segments[first]["newest"] > now[end - 1] - limits.length:
                    break
                waiting -= size
                left = max(left, segments[first]["newest"])
                first += 1
            segments[count]["left"] = left
        count += 1
        begin = end
    return count
