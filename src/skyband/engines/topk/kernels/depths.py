"""Depths of lanes: a run is complete down to its lane's depth T, and what lies below can be found in the history again.

A lane's run has every object of its window with a key of at least T that K newer ones do not dominate. Before a block,
let V be the K-th best key among the run's objects that are newer than all that has left the history and that stay valid
through the block. If V >= T

- an arrival below T is no answer within the block: these K rank above it and are valid all the time (pripuzic2015,
  Theorem 5.1);
- an object that leaves the history below T is dominated by these K (Theorem 3.7), so no lane needs to look at it.

So only arrivals at or above T reach the run. If V < T the lane is deepened first: T falls to the 5/4·(K + 5·sqrt(K) +
4)-th best key of the history, and the objects between the old and the new T go into the run, silently: they are no
answers yet. A run that has grown too long is cut again at a higher T. With T = -inf this is the strict skyband.

Late arrivals are in the history too, wherever their times belong: one that is older than all that has left is dominated
as well, if it is below T.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.found import first_place, next_good
from skyband.engines.topk.kernels.lane_state import Lanes
from skyband.engines.topk.kernels.lookahead import put_best
from skyband.engines.topk.kernels.replay import Merge, leaves, open_lane
from skyband.engines.topk.kernels.scores import keys_of
from skyband.engines.topk.kernels.segments import Grid, History, find_ranges, in_box
from skyband.engines.topk.kernels.state import Floats, Ints, Report
from skyband.kernels.compile import close, uncounted
from skyband.kernels.records import Records


class Scratch(NamedTuple):
    """Arrays that an engine keeps for its kernels, since fresh memory is slow."""

    keys: Floats  # of a stretch of the history
    found: Floats  # keys of what was found for lanes
    places: Ints  # in the history, of the same
    bounds: Ints  # lane s has found[bounds[s]]..found[bounds[s + 1]]
    terms: Floats
    corner: Ints
    ranges: Ints
    best: Floats
    picked: Records
    work: Ints  # counted: [keys computed, objects taken, lanes deepened, ranges found]


@close
def count_above(chunk: Lanes, s: int, bound: int) -> int:
    """How many objects of a run are above the lane's depth and newer than `bound`."""
    objects, lanes, depth = chunk.objects, chunk.lanes, chunk.lanes[s]["depth"]
    found, i, stop = 0, lanes[s]["head"], lanes[s]["head"] + lanes[s]["size"]
    while i < stop and objects[i]["key"] >= depth:
        found += objects[i]["stamp"] > bound
        i += 1
    return found


@uncounted
def lift(chunk: Lanes, report: Report, s: int, history: History, b: int, enough: int, bound: int) -> None:
    """Cut a run that is longer than it must be: a larger depth, with enough objects newer than `bound` above it.

    What lies below is dominated if it is not newer than `bound`. Else it is in the history and can be found again, but
    for objects that were there before their slot was moved, or late ones of a snapshot of version 0.1: they stay, and
    so do those that have been shown, since that is not known of an object of the history.
    """
    objects, lanes = chunk.objects, chunk.lanes
    head, size = lanes[s]["head"], lanes[s]["size"]
    found, first = 0, 0
    while first < size and found < enough:
        found += objects[head + first]["stamp"] > bound
        first += 1
    depth = objects[head + first - 1]["key"]
    if found < enough or depth <= lanes[s]["depth"]:
        return
    open_lane(objects, lanes, s, report.net)
    lanes[s]["depth"] = depth
    while first < size and objects[head + first]["key"] == depth:
        first += 1
    serials, begin, end = (
        history.serials,
        history.segments[history.segments[b]["first"]]["begin"],
        history.segments[b]["begin"],
    )
    for i in range(head + first, head + size):
        if objects[i]["stamp"] > bound:
            serial = objects[i]["serial"]
            place = begin + serial - serials[begin] if begin < end else end  # if all rows are in the history
            if place < begin or place >= end or serials[place] != serial:
                place = first_place(serials, begin, end, serial)
            if place == end or serials[place] != serial or objects[i]["shown"]:
                objects[head + first] = objects[i]
                first += 1
                continue
        if objects[i]["was"]:
            report.tally[1] = leaves(objects, i, lanes[s]["slot"], 0, -1, report.changes, report.tally[1])
    lanes[s]["size"] = first


@uncounted
def gather(chunk: Lanes, s: int, depth: float, history: History, b: int, since: int, scratch: Scratch, n: int) -> int:
    """The objects of segments before b and from place `since` on with such a key, in the n // 2 ranges of cells.

    They come from scratch.found[0] on; returns how many these are.
    """
    segments, keys, found, places = history.segments, scratch.keys, scratch.found, scratch.places
    total, boxed = 0, chunk.lows.shape[1] > 0
    for segment in range(segments[b]["first"], b):
        if segments[segment]["end"] <= since:
            continue
        row = segments[segment]["cells"]
        if row < 0:
            low = max(since, segments[segment]["begin"])
            total = gather_all(chunk, s, depth, history, low, segments[segment]["end"], scratch, total)
            continue
        starts = history.starts[row]
        for r in range(0, n, 2):
            low, high = starts[scratch.ranges[r]], starts[scratch.ranges[r + 1] + 1]
            keys_of(chunk.scorings, s, history.by_cell, low, high, keys)
            scratch.work[0] += high - low
            for i in range(high - low):
                place = history.places[low + i]
                if keys[i] >= depth and place >= since and (not boxed or in_box(chunk, s, history.by_cell, low + i)):
                    found[total] = keys[i]
                    places[total] = place
                    total += 1
    return total


@uncounted
def gather_all(
    chunk: Lanes, s: int, depth: float, history: History, low: int, high: int, scratch: Scratch, total: int
) -> int:
    """The objects low..high of the history with such a key, behind `total` others."""
    keys, boxed = scratch.keys, chunk.lows.shape[1] > 0
    keys_of(chunk.scorings, s, history.data, low, high, keys)
    scratch.work[0] += high - low
    i = next_good(keys, depth, 0, high - low)
    while i < high - low:
        if not boxed or in_box(chunk, s, history.data, low + i):
            scratch.found[total] = keys[i]
            scratch.places[total] = low + i
            total += 1
        i = next_good(keys, depth, i + 1, high - low)
    return total


@uncounted
def depth_of_all(chunk: Lanes, s: int, history: History, low: int, high: int, bound: int, scratch: Scratch) -> float:
    """The depth with as many as are wanted of the objects low..high above it; -inf: they are not many more."""
    keys, stamps, want = scratch.keys, history.stamps, chunk.lanes[s]["want"]
    if high - low <= 2 * want:
        return -np.inf
    boxed, best = chunk.lows.shape[1] > 0, scratch.best[:want]
    keys_of(chunk.scorings, s, history.data, low, high, keys)
    scratch.work[0] += high - low
    known, seen, i = 0, 0, 0
    while i < high - low:
        if stamps[low + i] > bound and (not boxed or in_box(chunk, s, history.data, low + i)) and keys[i] == keys[i]:
            seen += 1
            if known < want or keys[i] > best[0]:
                known = put_best(best, known, keys[i])
        i = next_good(keys, best[0], i + 1, high - low) if known == want and not boxed else i + 1
    return best[0] if known == want and (not boxed or seen > 2 * want) else -np.inf


@uncounted
def deepen(
    chunk: Lanes, s: int, grid: Grid, history: History, b: int, bound: int, expired: int, scratch: Scratch
) -> int:
    """A smaller depth for the lane, and the valid objects of the history that lie between; returns how many these are.

    bound: objects with a larger stamp stay valid through segment b, and in the history. expired: up to this stamp.
    """
    lanes, segments, best = chunk.lanes, history.segments, scratch.best
    old, want, high = lanes[s]["depth"], lanes[s]["want"], segments[b]["begin"]
    since = first_place(history.serials, segments[segments[b]["first"]]["begin"], high, lanes[s]["birth"])
    scratch.work[2] += 1
    top, gap = old, chunk.objects[lanes[s]["head"]]["key"] - old if lanes[s]["size"] else 0.0
    if old == np.inf and s > 0 and lanes[s - 1]["k"]:  # a new lane: slots are in order of place, so try its neighbour's
        top, gap = lanes[s - 1]["depth"], abs(lanes[s - 1]["depth"]) / 4
    n, total, staying, depth = 0, 0, 0, old
    while grid.side and 0 < gap < np.inf and n >= 0 and staying < want:
        depth = top - gap
        scratch.work[3] += 1
        n = find_ranges(chunk, s, depth, grid, scratch.terms, scratch.corner, scratch.ranges)
        if n >= 0:
            total = gather(chunk, s, depth, history, b, since, scratch, n)
            staying = count_staying(history, scratch, total, bound)
            gap = 2 * gap if depth > -np.inf else np.inf
    if staying < want:
        depth = depth_of_all(chunk, s, history, since, high, bound, scratch)
        total = gather_all(chunk, s, depth, history, since, high, scratch, 0)
    else:
        known = 0
        for i in range(total):
            if history.stamps[scratch.places[i]] > bound and (known < want or best[0] < scratch.found[i]):
                known = put_best(best[:want], known, scratch.found[i])
        depth = best[0]
    lanes[s]["depth"] = depth
    n = 0
    for i in range(total):
        scratch.found[n] = scratch.found[i]
        scratch.places[n] = scratch.places[i]
        n += (
            depth <= scratch.found[i]
            and (scratch.found[i] < old or old == np.inf)  # of a new lane, and `admit` knows what is there
            and history.stamps[scratch.places[i]] > expired
        )
    return n


@close
def count_staying(history: History, scratch: Scratch, total: int, bound: int) -> int:
    """How many of those found have a stamp above `bound`."""
    staying = 0
    for i in range(total):
        staying += history.stamps[scratch.places[i]] > bound
    return staying


@uncounted
def admit(chunk: Lanes, report: Report, s: int, history: History, total: int, scratch: Scratch, merge: Merge) -> int:
    """Merge what `deepen` has found into the run, as candidates; returns how many objects are now in merge.kept."""
    objects, lanes, merged, kept = chunk.objects, chunk.lanes, merge.objects, merge.kept
    open_lane(objects, lanes, s, report.net)
    K, head, n = lanes[s]["k"], lanes[s]["head"], lanes[s]["size"]
    for i in range(n):
        merged[i] = objects[head + i]
    for i in range(total):
        key, stamp, serial = scratch.found[i], history.stamps[scratch.places[i]], history.serials[scratch.places[i]]
        j = n  # from the end: most rank below all that is there
        while j > 0 and (
            merged[j - 1]["key"] < key
            or (
                merged[j - 1]["key"] == key
                and (
                    merged[j - 1]["stamp"] < stamp
                    or (merged[j - 1]["stamp"] == stamp and merged[j - 1]["serial"] < serial)
                )
            )
        ):
            j -= 1
        if j > 0 and merged[j - 1]["serial"] == serial:  # it is here already
            continue
        for m in range(n, j, -1):
            merged[m] = merged[m - 1]
        merged[j]["key"] = key
        merged[j]["stamp"] = stamp
        merged[j]["serial"] = serial
        merged[j]["inside"] = merged[j]["shown"] = merged[j]["was"] = 0
        n += 1
    size = 0
    for j in range(n):
        stamp, dom, i = merged[j]["stamp"], 0, 0
        while i < size and dom < K:
            dom += kept[i]["stamp"] >= stamp
            i += 1
        if dom >= K:
            if merged[j]["was"]:
                report.tally[1] = leaves(merged, j, lanes[s]["slot"], 0, -1, report.changes, report.tally[1])
            continue
        kept[size] = merged[j]
        kept[size]["dom"] = dom
        lanes[s]["newest"] = max(lanes[s]["newest"], stamp)
        size += 1
    return size
