"""BLOCK for many scorings of one family over one stream: objects come with their attributes, every scoring is a lane.

The stream is taken by blocks, block by block and lane by lane, so that a lane's state stays in cache (DESIGN, section
5). For each lane the few arrivals of the block that matter to it are found; only these reach its run.

One ring of recent arrivals serves all lanes. A lane's run is complete down to its depth T: it has every object
of the window with a key of at least T that K newer ones do not dominate. Before a block, let V be the K-th best key
among the run's objects that are newer than all that leave the ring and that stay valid through the block. If V >= T

- an arrival below T is no answer within the block: these K rank above it and are valid all the time (Theorem 5.1);
- an object that leaves the ring below T is dominated by these K (Theorem 3.7), so no lane needs to look at it.

So only arrivals at or above T reach the run. If V < T the lane is deepened first: T falls to the 5/4·(K + 5·sqrt(K) +
4)-th best key of the ring, and the ring's objects between the old and the new T go into the run, silently: they are no
answers yet. A run that has grown too long is cut again at a higher T. With T = -inf this is the strict skyband.

When only net changes are reported, rows that have left the window by the end of the batch are skipped, and V >= T must
hold only where an object leaves the ring, and at the end.

Cost of a lane and block: about 2K records to find V, the keys of the arrivals in the cells that it sees
(kernels/block_grid.py), and a merge of the few of them that are at or above T into the run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.block_grid import (
    Found,
    Grid,
    Scratch,
    find_arrivals,
    lay_block,
    next_good,
    pick,
    set_depth,
)
from skyband.engines.topk.kernels.changes import begin_batch, end_batch
from skyband.engines.topk.kernels.lookahead import put_best
from skyband.engines.topk.kernels.replay import leaves, new_merge, take_block, take_lane
from skyband.engines.topk.kernels.scores import LaneScorings, keys_of
from skyband.engines.topk.kernels.state import (
    Floats,
    Ints,
    Report,
    Skybands,
    Stream,
    is_full,
    with_capacity,
    with_places,
)
from skyband.kernels.compile import close, kernel, uncounted
from skyband.kernels.records import SILENT, Records


class Ring(NamedTuple):
    """The most recent arrivals but for late ones, oldest first: one for all lanes."""

    data: Floats  # one row per attribute
    stamps: Ints
    serials: Ints
    span: Ints  # [where it begins, how many are in it]
    begun: Ints  # [the last instant that was handled, arrivals so far]
    most: int  # objects in it
    reach: int  # how long an object may wait in a buffer


@kernel
def take_ring(
    skybands: Skybands,
    report: Report,
    scorings: LaneScorings,
    grid: Grid,
    stream: Stream,
    ring: Ring,
    scratch: Scratch,
) -> tuple[Records, Records]:
    """Take a batch of arrivals into all lanes; returns the arena and the changes."""
    groups, caps, span, begun = skybands.groups, skybands.caps, ring.span, ring.begun
    now, last, net = stream.now, stream.last, report.net
    K, length = skybands.queries[0]["k"], skybands.queries[0]["length"]
    size, lanes, most = len(now), len(groups), max(1, ring.most // 4)
    block, found, keys, picked, work = scratch.block, scratch.found, scratch.keys, scratch.picked, scratch.work
    for s in range(lanes):
        begin_batch(skybands.objects, groups, s, report)
    merge = new_merge(64)
    aim = K + math.ceil(5 * math.sqrt(K)) + 4  # so many of the ring's objects are to be above a lane's depth
    enough = K + math.ceil(K * math.log(aim / K))  # that many of them are in the run: the others are dominated
    best = np.empty(aim + aim // 4)
    low = 0
    while net and low < size and now[low] <= last - length:  # it has left by the end, and only the end is reported
        low += 1
    if low:
        begun[0], span[1] = now[low - 1], 0
    unchecked = False  # lanes of a net batch may have fewer than K above their depths until its end
    while low < size or begun[0] < last or unchecked:
        high = end_of_block(now, low, min(max(64, begun[1] // 2), most), length // 4)
        end = now[high - 1] if high > low else last
        gone, bound = leaving(ring, high - low, end - length), (last if net else end) - length
        if gone:
            bound = max(bound, ring.stamps[span[0] + gone - 1])
        left = bound  # what has left the ring has a stamp up to this
        if span[1] and not gone:
            left = max(left, ring.stamps[span[0]] - report.joint)
        must = gone > 0 or high == low or not net
        s = lift_lanes(skybands, report, ring, 0, bound, left, enough, must)
        while s < lanes:
            if report.tally[1] + groups[s]["size"] > len(report.changes):
                report = with_capacity(report, groups[s]["size"])
            else:
                work[0] += span[1]
                work[2] += 1
                keys_of(scorings, s, ring.data, span[0], span[0] + span[1], keys)
                n = deepen(ring, keys, gone, best, caps, s, report.serial, picked)
                if is_full(groups, s, n):
                    skybands = with_places(skybands, s, n)
                report = with_capacity(report, 4 * (n + groups[s]["size"]) + 4)
                take_lane(skybands, report, s, picked, n)
                s += 1
            s = lift_lanes(skybands, report, ring, s, bound, left, enough, must)
        for s in range(lanes):
            set_depth(grid, s, caps[s]["threshold"], 0.0)
        late = has_late(stream, low, high)
        sorted_ = lay_block(scorings, grid, stream, low, high, late, block, work)
        first = 0 if high > low else lanes
        while first < lanes:
            stop = find_arrivals(scorings, grid, block, stream, low, high, sorted_, late, found, first, keys, work)
            more, longest = most_needed(groups, found, first, stop)
            report = with_capacity(report, more)
            s = next_full(groups, found, first, stop, late)
            while s < stop:
                skybands = with_places(skybands, s, found.bounds[s + 1] - found.bounds[s])
                s = next_full(groups, found, s + 1, stop, late)
            if longest > len(merge.valid):
                merge = new_merge(2 * longest)
            if late:
                for s in range(first, stop):
                    n = pick(stream, found, found.bounds[s], found.bounds[s + 1], picked)
                    take_lane(skybands, report, s, picked, n)
            else:
                take_block(skybands, report, first, stop, found, stream, low, high, merge)
            first = stop
        shift_ring(ring, stream, low, high, gone, report.serial)
        begun[0] = end
        begun[1] += high - low
        unchecked = net and high > low
        low = high
    for s in range(lanes):
        if groups[s]["due"] <= last:
            picked[0]["now"] = last
            picked[0]["row"] = -2 * SILENT  # no arrival: time goes on
            report = with_capacity(report, 4 * (1 + groups[s]["size"]) + 4)
            take_lane(skybands, report, s, picked, 1)
        if net and not report.more:
            report.step[0]["visit"] = s
            report.step[0]["instant"] = last
            report.step[0]["row"] = -1
            report = with_capacity(report, 2 * (groups[s]["size"] + 2))
            end_batch(skybands.objects, groups, s, 1, report)
    return skybands.objects, report.changes


@uncounted
def most_needed(groups: Records, found: Found, first: int, stop: int) -> tuple[int, int]:
    """The most changes that what was found for lanes first..stop can bring, and the longest merged run."""
    changes, longest = 0, 0
    for s in range(first, stop):
        size = found.bounds[s + 1] - found.bounds[s] + groups[s]["size"]
        changes += 4 * size + 4
        longest = max(longest, size)
    return changes, longest


@uncounted
def next_full(groups: Records, found: Found, s: int, stop: int, late: bool) -> int:
    """The next lane whose run lacks places for what was found for it; a block is merged into places behind the run."""
    while s < stop:
        n, end = found.bounds[s + 1] - found.bounds[s], groups[s]["start"] + groups[s]["room"]
        if groups[s]["head"] + groups[s]["size"] + n > end or (late and groups[s]["head"] - groups[s]["start"] < n):
            break
        s += 1
    return s


@uncounted
def end_of_block(now: Ints, low: int, most: int, reach: int) -> int:
    """Where a block that begins at `low` ends: with so many arrivals at most, and no instants further apart."""
    high = low
    while high < len(now) and high - low < most and now[high] - now[low] <= reach:
        high += 1
    return high


@uncounted
def has_late(stream: Stream, low: int, high: int) -> bool:
    """Whether one of the arrivals low..high is late."""
    late = False
    for a in range(low, high):
        late |= stream.stamps[a] < stream.now[a]
    return late


@uncounted
def leaving(ring: Ring, coming: int, last: int) -> int:
    """How many objects must leave the ring for those that come, and since their stamps are `last` or before."""
    begin, size, gone = ring.span[0], ring.span[1], 0
    while gone < size and (size - gone + coming > ring.most or ring.stamps[begin + gone] <= last):
        gone += 1
    return gone


@close
def count_above(skybands: Skybands, s: int, bound: int) -> int:
    """How many objects of a run are above the lane's depth and newer than `bound`."""
    objects, groups, depth = skybands.objects, skybands.groups, skybands.caps[s]["threshold"]
    found, i, stop = 0, groups[s]["head"], groups[s]["head"] + groups[s]["size"]
    while i < stop and objects[i]["key"] >= depth:
        found += objects[i]["stamp"] > bound
        i += 1
    return found


@uncounted
def lift_lanes(
    skybands: Skybands, report: Report, ring: Ring, s: int, bound: int, left: int, enough: int, must: bool
) -> int:
    """Lift lanes from s on whose runs are too long, up to one that must be deepened or for want of capacity."""
    groups, caps, K = skybands.groups, skybands.caps, skybands.queries[0]["k"]
    while s < len(groups):
        above = count_above(skybands, s, bound)
        if above < K and caps[s]["threshold"] > -np.inf and must:
            break
        if above > enough + K // 8 + 4:
            if report.tally[1] + groups[s]["size"] > len(report.changes):
                break
            lift(skybands, report, ring, s, enough, left)
        s += 1
    return s


@uncounted
def deepen(
    ring: Ring,
    keys: Floats,  # of the ring's objects
    gone: int,  # so many of them are about to leave
    best: Floats,  # scratch: as many as are to be above the depth
    caps: Records,
    s: int,
    serial: int,
    picked: Records,
) -> int:
    """A smaller depth for the lane, and the ring's objects that lie between; returns how many these are."""
    old, depth, size = caps[s]["threshold"], -np.inf, ring.span[1]
    if size - gone > 2 * len(best):
        known, i = 0, gone
        while i < size:
            known = put_best(best, known, keys[i])
            i = next_good(keys, best[0], i + 1, size) if known == len(best) else i + 1
        depth = best[0]
    n = 0
    i = next_good(keys, depth, 0, size)
    while i < size:
        if keys[i] < old:
            picked[n]["key"] = keys[i]
            picked[n]["stamp"] = ring.stamps[ring.span[0] + i]
            picked[n]["now"] = ring.begun[0]
            picked[n]["row"] = ring.serials[ring.span[0] + i] - serial - SILENT
            n += 1
        i = next_good(keys, depth, i + 1, size)
    caps[s]["threshold"] = depth
    return n


@uncounted
def lift(skybands: Skybands, report: Report, ring: Ring, s: int, enough: int, bound: int) -> None:
    """Cut a run that is longer than it must be: a larger depth, with enough objects newer than `bound` above it.

    What lies below can be found in the ring again, or is dominated, but for late ones that are newer than `bound`.
    """
    objects, groups, caps, tally = skybands.objects, skybands.groups, skybands.caps, skybands.tally
    serials, begin, count = ring.serials, ring.span[0], ring.span[1]
    found, first = 0, 0
    head, size = groups[s]["head"], groups[s]["size"]
    while first < size and found < enough:
        found += objects[head + first]["stamp"] > bound
        first += 1
    if found < enough or objects[head + first - 1]["key"] <= caps[s]["threshold"]:
        return
    depth = objects[head + first - 1]["key"]
    caps[s]["threshold"] = depth
    w = first
    for i in range(first, size):
        keep = objects[head + i]["key"] == depth
        if not keep and objects[head + i]["stamp"] > bound:
            serial = objects[head + i]["serial"]
            place = serial - serials[begin]  # if all rows are in the ring
            if place < 0 or place >= count or serials[begin + place] != serial:
                place = first_from(serials, begin, begin + count, serial) - begin
            keep = place == count or serials[begin + place] != serial
        if keep:
            objects[head + w] = objects[head + i]
            w += 1
            continue
        if objects[head + i]["was"]:
            tally[1] = leaves(objects, head + i, s, 0, -1, report.changes, tally[1])
    groups[s]["size"] = w


@uncounted
def first_from(numbers: Ints, low: int, high: int, bound: int) -> int:
    """The place of the first of the sorted numbers low..high that is at least `bound`; high: there is none."""
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def shift_ring(ring: Ring, stream: Stream, low: int, high: int, gone: int, serial: int) -> None:
    """The oldest `gone` leave the ring, and arrivals low..high enter it, but for late ones."""
    data, stamps, serials, span = ring.data, ring.stamps, ring.serials, ring.span
    span[0] += gone
    span[1] -= gone
    if span[0] + span[1] + high - low > len(stamps):
        for i in range(span[1]):
            stamps[i] = stamps[span[0] + i]
            serials[i] = serials[span[0] + i]
        for j in range(data.shape[0]):
            for i in range(span[1]):
                data[j, i] = data[j, span[0] + i]
        span[0] = 0
    end = span[0] + span[1]
    for a in range(low, high):
        stamps[end] = stream.stamps[a]
        serials[end] = serial + stream.rows[a]
        end += stream.stamps[a] == stream.now[a]
    if end == span[0] + span[1] + high - low:  # none is late
        for j in range(data.shape[0]):
            column, fresh = data[j, end - (high - low) : end], stream.data[j, low:high]
            for i in range(len(fresh)):
                column[i] = fresh[i]
    else:
        i = span[0] + span[1]
        for a in range(low, high):
            for j in range(data.shape[0]):
                data[j, i] = stream.data[j, a]
            i += stream.stamps[a] == stream.now[a]
    span[1] = end - span[0]
