"""Many scorings of one family over one stream: objects come with their attributes, and every scoring is a lane.

The stream is taken by blocks, block by block and lane by lane, so that a lane's state stays in cache (DESIGN, section
4). For each lane the few arrivals of the block that matter to it are picked; only these reach its run.

BLOCK: one ring of recent arrivals serves all lanes. A lane's run is complete down to its depth T: it has every object
of the window with a key of at least T that K newer ones do not dominate. Before a block, let V be the K-th best key
among the run's objects that are newer than all that leave the ring and that stay valid through the block. If V >= T

- an arrival below T is no answer within the block: these K rank above it and are valid all the time (Theorem 5.1);
- an object that leaves the ring below T is dominated by these K (Theorem 3.7), so nobody needs to look at it.

So only arrivals at or above T reach the run. If V < T the lane is deepened first: T falls to the 5/4·(K + 5·sqrt(K) +
4)-th best key of the ring, and the ring's objects between the old and the new T go into the run, silently: they are no
answers yet. A run that has grown too long is cut again at a higher T. With T = -inf this is the strict skyband.

When only net changes are told, rows that are gone by the end of the batch are skipped, and V >= T must hold only where
an object leaves the ring, and at the end.

Cost of a lane and block: about 2K records to find V, the keys of the arrivals in the cells that it sees
(kernels/block_grid.py), and a merge of the few of them that are at or above T into the run.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.block_grid import find_ranges, find_terms, scan, sort_block
from skyband.engines.topk.kernels.lanes import longer, next_good, pick
from skyband.engines.topk.kernels.lookahead import put_best
from skyband.engines.topk.kernels.query_index import lay_grid
from skyband.engines.topk.kernels.replay import leaves, take_block, take_lane
from skyband.engines.topk.kernels.scores import keys_of
from skyband.engines.topk.kernels.strict import compare, remember
from skyband.kernels.compile import kernel, part
from skyband.kernels.records import ARRIVAL, SILENT, Records, make_room, reserve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel
def take_ring(
    objects: Records,
    groups: Records,  # one per lane
    views: Records,
    query: Records,  # the same for all lanes
    caps: Records,  # per lane: its depth
    tally: Records,
    form: int,
    turned: bool,
    points: Floats,  # per lane
    weights: Floats,
    data: Floats,  # the arrivals' attributes, one row each
    stamps: Ints,
    now: Ints,
    rows: Ints,
    last: int,  # the clock, or the number of the last arrival
    begun: Ints,  # [the last instant that was handled, arrivals so far]
    ring: Floats,  # the ring's attributes, one row each
    ring_stamps: Ints,
    ring_serials: Ints,
    span: Ints,  # of the ring: [where it begins, how many are in it]
    most: int,  # in the ring
    origin: Floats,  # the grid over blocks; its first number is NaN before it is laid
    scale: Floats,
    side: int,  # 0: there is no grid
    terms: Floats,
    ranges: Ints,
    counts: Ints,  # of the ranges of each lane
    depths: Floats,  # the depth that they are for
    serial: int,
    joint: bool,
    net: bool,
    more: bool,
    work: Ints,  # counted: [keys computed, objects taken, lanes deepened, lanes indexed]
    out: Records,
) -> tuple[Records, Records]:
    """Take a batch of arrivals into all lanes; returns the arena and the changes."""
    K, length = query[0]["k"], query[0]["length"]
    size, lanes = len(rows), len(groups)
    if net:
        for s in range(lanes):
            if not groups[s]["open"]:
                remember(objects, groups, s)
            groups[s]["open"] = more
    keys = np.empty(max(len(ring_stamps), most))
    picked = np.empty(256, ARRIVAL)
    listed_keys, listed, bounds = np.empty(1024), np.empty(1024, np.int64), np.zeros(lanes + 1, np.int64)
    merged, valid = np.empty(64, objects.dtype), np.empty(64, np.bool_)
    room = np.empty((7, 64), np.int64)
    block, places = np.empty((data.shape[0], most)), np.empty(most, np.int64)
    cells, starts = np.empty(most, np.int64), np.zeros(side ** data.shape[0] + 1, np.int64)
    dense = np.full(lanes, -1)
    aim = K + math.ceil(5 * math.sqrt(K)) + 4  # so many of the ring's objects are to be above a lane's depth
    enough = K + math.ceil(K * math.log(aim / K))  # that many of them are in the run: the others are dominated
    low = 0
    while net and low < size and now[low] <= last - length:  # gone by the end, and only the end is told
        low += 1
    if low:
        begun[0], span[1] = now[low - 1], 0
    unchecked = False  # lanes of a net batch may have fewer than K above their depths until its end
    while low < size or begun[0] < last or unchecked:
        high = low
        largest = min(max(64, begun[1] // 2), max(1, most // 4))
        while high < size and high - low < largest and now[high] - now[low] <= length // 4:
            high += 1
        end = now[high - 1] if high > low else last
        gone, bound = 0, (last if net else end) - length
        while gone < span[1] and (span[1] - gone + high - low > most or ring_stamps[span[0] + gone] <= end - length):
            gone += 1
        if gone:
            bound = max(bound, ring_stamps[span[0] + gone - 1])
        left = bound  # who has left the ring has a stamp up to this
        if span[1] and not gone:
            left = max(left, ring_stamps[span[0]] - joint)
        for s in range(lanes):
            found, i, stop = 0, groups[s]["head"], groups[s]["head"] + groups[s]["size"]
            while (
                i < stop and objects[i]["key"] >= caps[s]["threshold"]
            ):  # who is above the depth and newer than `bound`
                found += objects[i]["stamp"] > bound
                i += 1
            if found < K and caps[s]["threshold"] > -np.inf and (gone or high == low or not net):
                work[0] += span[1]
                work[2] += 1
                keys_of(form, turned, points, weights, s, ring, span[0], span[0] + span[1], keys)
                picked, n = deepen(
                    keys, ring_stamps, ring_serials, span, gone, aim + aim // 4, s, begun[0], serial, caps, picked
                )
                objects, out = room_for(objects, groups, s, tally, n, out)
                take_lane(objects, groups, views, s, K, length, picked, n, serial, joint, net, out, tally)
            elif found > enough + K // 8 + 4:
                out = reserve(out, tally, groups[s]["size"])
                lift(objects, groups, s, enough, left, caps, ring_serials, span, net, out, tally)
        late = False
        for a in range(low, high):
            late |= stamps[a] < now[a]
        sorted_ = side > 0 and high - low >= len(starts) - 1 and not late
        if sorted_:
            if origin[0] != origin[0]:
                lay_grid(data, low, high, origin, scale, side)
                find_terms(form, turned, points, weights, origin, scale, side, terms)
            sort_block(data, low, high, origin, scale, side, cells, starts, block, places)
            for s in range(lanes):
                if depths[s] != caps[s]["threshold"]:
                    work[3] += 1
                    depths[s] = caps[s]["threshold"]
                    counts[s] = -1
                    if depths[s] > -np.inf:
                        counts[s] = find_ranges(form, turned, terms, s, depths[s], side, ranges[s])
        if late:
            for s in range(lanes):
                work[0] += high - low
                keys_of(form, turned, points, weights, s, data, low, high, keys)
                picked, n = pick(keys, caps[s]["threshold"], stamps, now, rows, low, high, picked)
                work[1] += n
                objects, out = room_for(objects, groups, s, tally, n, out)
                take_lane(objects, groups, views, s, K, length, picked, n, serial, joint, net, out, tally)
        first = lanes if late or high == low else 0
        while first < lanes:
            listed_keys, listed, stop = scan(
                form, turned, points, weights, block, places, starts, ranges, counts if sorted_ else dense, caps, data,
                low, high, keys, listed_keys, listed, bounds, first, work,
            )  # fmt: skip
            told, longest = 0, 0
            for s in range(first, stop):
                n, held = bounds[s + 1] - bounds[s], groups[s]["size"]
                told += 4 * (n + held) + 4
                longest = max(longest, n + held)
                head, start = groups[s]["head"], groups[s]["start"]
                if head + held + n > start + groups[s]["room"]:
                    objects = make_room(objects, groups, s, tally, n)
            out = reserve(out, tally, told)
            if longest > len(merged):
                merged, valid = np.empty(2 * longest, objects.dtype), np.empty(2 * longest, np.bool_)
                room = np.empty((7, 2 * longest), np.int64)
            take_block(
                objects, groups, views, first, stop, K, length, listed_keys, listed, bounds, stamps, rows, low, high,
                end, serial, joint, net, merged, valid, room, out, tally,
            )  # fmt: skip
            first = stop
        span[0] += gone
        span[1] -= gone
        shift_ring(ring, ring_stamps, ring_serials, span, data, stamps, now, rows, low, high, serial)
        begun[0] = end
        begun[1] += high - low
        unchecked = net and high > low
        low = high
    step = np.zeros(1, out.dtype)
    for s in range(lanes):
        if groups[s]["due"] <= last:
            picked[0]["now"] = last
            picked[0]["row"] = -2 * SILENT  # nobody comes: time goes on
            objects, out = room_for(objects, groups, s, tally, 1, out)
            take_lane(objects, groups, views, s, K, length, picked, 1, serial, joint, net, out, tally)
        if net and not more:
            step[0]["visit"] = s
            step[0]["instant"] = last
            step[0]["row"] = -1
            out = reserve(out, tally, 2 * (groups[s]["size"] + 2))
            compare(objects, groups, s, 1, out, tally, step)
    return objects, out


@part
def room_for(
    objects: Records, groups: Records, s: int, tally: Records, n: int, out: Records
) -> tuple[Records, Records]:
    """Room for n more objects in the lane's run, and for all changes that they can bring."""
    head, start, size = groups[s]["head"], groups[s]["start"], groups[s]["size"]
    if head - start < n or head + size + n > start + groups[s]["room"]:
        objects = make_room(objects, groups, s, tally, n)
    return objects, reserve(out, tally, 4 * (n + size) + 4)


@part
def deepen(
    keys: Floats,  # of the ring's objects
    ring_stamps: Ints,
    ring_serials: Ints,
    span: Ints,
    gone: int,  # so many of them are about to leave
    aim: int,
    s: int,
    now: int,
    serial: int,
    caps: Records,
    picked: Records,
) -> tuple[Records, int]:
    """A smaller depth for the lane, and the ring's objects that lie between."""
    old, depth = caps[s]["threshold"], -np.inf
    if span[1] - gone > 2 * aim:
        best = np.empty(aim)
        known = 0
        i = gone
        while i < span[1]:
            known = put_best(best, known, keys[i])
            i = next_good(keys, best[0], i + 1, span[1]) if known == aim else i + 1
        depth = best[0]
    n = 0
    i = next_good(keys, depth, 0, span[1])
    while i < span[1]:
        if keys[i] < old:
            if n == len(picked):
                picked = longer(picked, n)
            picked[n]["key"] = keys[i]
            picked[n]["stamp"] = ring_stamps[span[0] + i]
            picked[n]["now"] = now
            picked[n]["row"] = ring_serials[span[0] + i] - serial - SILENT
            n += 1
        i = next_good(keys, depth, i + 1, span[1])
    caps[s]["threshold"] = depth
    return picked, n


@part
def lift(
    objects: Records,
    groups: Records,
    s: int,
    enough: int,
    bound: int,
    caps: Records,
    ring_serials: Ints,
    span: Ints,
    net: bool,
    out: Records,
    tally: Records,
) -> None:
    """Cut a run that is longer than it must be: a larger depth, with enough objects newer than `bound` above it.

    What lies below can be found in the ring again, or is dominated, but for late ones that are newer than `bound`.
    """
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
            place = objects[head + i]["serial"] - ring_serials[span[0]]  # if all rows are in the ring
            if place < 0 or place >= span[1] or ring_serials[span[0] + place] != objects[head + i]["serial"]:
                place = np.searchsorted(ring_serials[span[0] : span[0] + span[1]], objects[head + i]["serial"])
            keep = place == span[1] or ring_serials[span[0] + place] != objects[head + i]["serial"]
        if keep:
            objects[head + w] = objects[head + i]
            w += 1
            continue
        if objects[head + i]["was"]:
            tally[1] = leaves(objects, head + i, s, 0, -1, out, tally[1])
    groups[s]["size"] = w


@part
def shift_ring(
    ring: Floats,
    ring_stamps: Ints,
    ring_serials: Ints,
    span: Ints,
    data: Floats,
    stamps: Ints,
    now: Ints,
    rows: Ints,
    low: int,
    high: int,
    serial: int,
) -> None:
    """Put arrivals low..high into the ring, but for late ones."""
    if span[0] + span[1] + high - low > len(ring_stamps):
        for i in range(span[1]):
            ring_stamps[i] = ring_stamps[span[0] + i]
            ring_serials[i] = ring_serials[span[0] + i]
        for j in range(ring.shape[0]):
            for i in range(span[1]):
                ring[j, i] = ring[j, span[0] + i]
        span[0] = 0
    end = span[0] + span[1]
    for a in range(low, high):
        ring_stamps[end] = stamps[a]
        ring_serials[end] = serial + rows[a]
        end += stamps[a] == now[a]
    if end == span[0] + span[1] + high - low:  # none is late
        for j in range(ring.shape[0]):
            column, fresh = ring[j, end - (high - low) : end], data[j, low:high]
            for i in range(len(fresh)):
                column[i] = fresh[i]
    else:
        i = span[0] + span[1]
        for a in range(low, high):
            for j in range(ring.shape[0]):
                ring[j, i] = data[j, a]
            i += stamps[a] == now[a]
    span[1] = end - span[0]
