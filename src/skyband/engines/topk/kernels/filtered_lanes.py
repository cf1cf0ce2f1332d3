"""PA and the buffered algorithms for many scorings of one family: every scoring is a lane, fed block by block.

PA (pripuzic2015, section 4.1): a lane takes the arrivals at or above its threshold, and those at which an object
expires, since the threshold falls with it. The order of events is that of the paper, object by object.

Filters (section 5): the buffer is one ring for all lanes; kernels/filters.py says what a filter lets through. With a
grid (section 6.1) a strict or relaxed filter is given only arrivals down to its (2K + 8)-th best: any subset of the
buffer can be the filter.

Cost of a lane and block: the keys of the arrivals in the cells that it sees (kernels/block_grid.py), and of those that
leave the buffer; then as for one query.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.block_grid import (
    Grid,
    Scratch,
    fill,
    find_arrivals,
    find_dense,
    lay_block,
    set_depth,
)
from skyband.engines.topk.kernels.changes import begin_batch
from skyband.engines.topk.kernels.filters import bar_of, forget, put, unreported
from skyband.engines.topk.kernels.found import Found, first_place, next_good, sort_found
from skyband.engines.topk.kernels.ring import Ring, end_of_block, has_late, leaving, shift_ring
from skyband.engines.topk.kernels.scores import LaneScorings, key_of, keys_of
from skyband.engines.topk.kernels.state import (
    Floats,
    Report,
    Skybands,
    Stream,
    is_full,
    with_capacity,
    with_places,
)
from skyband.engines.topk.kernels.strict import finish_group, most_changes, take_group
from skyband.kernels.compile import kernel, uncounted
from skyband.kernels.records import CAPPED, NEVER, SILENT, Records

LARGEST = 4096  # arrivals of a block of PA


@kernel
def take_capped(
    skybands: Skybands,
    report: Report,
    scorings: LaneScorings,
    grid: Grid,
    stream: Stream,
    ring: Ring,
    scratch: Scratch,
) -> tuple[Records, Records]:
    """PA: take a batch of arrivals into all lanes; returns the arena and the changes."""
    groups, caps, tally, now = skybands.groups, skybands.caps, skybands.tally, stream.now
    K, size, lanes = skybands.queries[0]["k"], len(now), len(groups)
    block, found, rest, keys, picked, work = scratch
    for s in range(lanes):
        begin_batch(skybands.objects, groups, s, report)
    low = 0
    while low < size:
        high = min(size, low + LARGEST)
        for s in range(lanes):
            set_depth(grid, s, caps[s]["threshold"], best_of(skybands, s) - caps[s]["threshold"])
        sorted_ = lay_block(scorings, grid, stream, low, high, False, block, work)
        first = 0
        while first < lanes:
            stop = find_arrivals(scorings, grid, block, stream, low, high, sorted_, False, found, first, keys, work)
            for s in range(first, stop):
                report.step[0]["visit"] = s
                listed, begin, end, a = found, found.bounds[s], found.bounds[s + 1], low
                if sorted_ and grid.counts[s] >= 0:
                    sort_found(found, begin, end)
                while a < high:
                    more = most_changes(groups, s, K, 1)
                    if tally[1] + more > len(report.changes):
                        report = with_capacity(report, more)
                    if is_full(groups, s, 1):
                        skybands = with_places(skybands, s, 1)
                    depth = grid.depths[s]
                    a = take_good(skybands, report, scorings, stream, s, listed, begin, end, a, high, depth, picked)
                    if a < high and caps[s]["threshold"] < depth:  # the threshold has fallen: what is left, again
                        set_depth(grid, s, caps[s]["threshold"], best_of(skybands, s) - caps[s]["threshold"])
                        end = find_dense(scorings, grid, s, stream, a, high, False, rest, 0, keys, work)
                        listed, begin = rest, 0
            first = stop
        ring.begun[0] = now[high - 1]
        ring.begun[1] += high - low
        low = high
    for s in range(lanes):
        report.step[0]["visit"] = s
        while not finish_group(skybands, report, K, s, stream.last):
            report = with_capacity(report, most_changes(groups, s, K, 1))
    return skybands.objects, report.changes


@uncounted
def take_good(
    skybands: Skybands,
    report: Report,
    scorings: LaneScorings,
    stream: Stream,
    s: int,
    found: Found,
    begin: int,
    end: int,
    a: int,
    high: int,
    depth: float,
    picked: Records,
) -> int:
    """Arrivals a..high at or above the threshold, which rises with each of them and falls when an object expires.

    Those down to `depth` are found[begin]..found[end]. Returns the arrival before which it stops: for want of places,
    or since the threshold has fallen below the depth.
    """
    groups, caps, K = skybands.groups, skybands.caps, skybands.queries[0]["k"]
    while a < high and caps[s]["threshold"] >= depth:
        stop = first_place(stream.now, a, high, groups[s]["due"])
        while begin < end and (
            found.places[begin] < a or (found.places[begin] < stop and found.keys[begin] < caps[s]["threshold"])
        ):
            begin += 1
        if begin < end and found.places[begin] < stop:
            a = found.places[begin]
            key = found.keys[begin]
        elif stop < high:
            a = stop
            key = key_of(scorings, s, stream.data, a)
        else:
            return high
        fill(picked, 0, key, a, stream)
        if not take_group(skybands, report, K, s, picked, 0, 1):
            return a
        a += 1
    return a


@kernel
def take_filtered(
    skybands: Skybands,
    report: Report,
    filters: Skybands,
    scorings: LaneScorings,
    grid: Grid,
    stream: Stream,
    ring: Ring,
    scratch: Scratch,
) -> tuple[Records, Records, Records]:
    """Take a batch of arrivals into all lanes through their filters; returns the arenas of both and the changes."""
    groups, tally, span, begun, reach = skybands.groups, skybands.tally, ring.span, ring.begun, ring.reach
    now, last, silent = stream.now, stream.last, unreported(report)
    K, size, lanes, most = skybands.queries[0]["k"], len(now), len(groups), max(1, ring.most // 4)
    block, found, keys, picked, work = scratch.block, scratch.found, scratch.keys, scratch.picked, scratch.work
    for s in range(lanes):
        begin_batch(skybands.objects, groups, s, report)
    low = 0
    while low < size or begun[0] < last:
        high = end_of_block(now, low, most, reach)
        end = now[high - 1] if high > low else last
        before = now[low] - 1 if high > low else NEVER
        gone, late = leaving(ring, high - low, end - reach - 1), has_late(stream, low, high)
        for s in range(lanes):
            if gone:
                forget(filters, K, s, ring.serials[span[0] + gone - 1])
            threshold = threshold_of(filters, K, s, grid.side > 0)
            set_depth(grid, s, threshold, best_of(skybands, s) - threshold)
        sorted_ = lay_block(scorings, grid, stream, low, high, late, block, work)
        first = 0
        while first < lanes:
            stop = find_arrivals(scorings, grid, block, stream, low, high, sorted_, late, found, first, keys, work)
            for s in range(first, stop):
                report.step[0]["visit"] = s
                a, n, i = 0, 0, found.bounds[s]
                if gone:
                    work[0] += gone
                    keys_of(scorings, s, ring.data, span[0], span[0] + gone, keys)
                    n = attempt_again(ring, keys, gone, bar_of(filters, K, s), before, report.serial, picked)
                if sorted_ and grid.counts[s] >= 0:
                    sort_found(found, i, found.bounds[s + 1])
                while i < found.bounds[s + 1]:
                    if is_full(filters.groups, s, 1):
                        filters = with_places(filters, s, 1)
                    i, n = attempt(filters, silent, stream, s, found, i, report.serial, picked, n)
                while a < n:
                    more = most_changes(groups, s, K, 1)
                    if tally[1] + more > len(report.changes):
                        report = with_capacity(report, more)
                    if is_full(groups, s, 1):
                        skybands = with_places(skybands, s, 1)
                    a = take_group(skybands, report, K, s, picked, a, n)
            first = stop
        shift_ring(ring, stream, low, high, gone, report.serial)
        begun[0] = end
        begun[1] += high - low
        low = high
    for s in range(lanes):
        report.step[0]["visit"] = s
        while not finish_group(skybands, report, K, s, last):
            report = with_capacity(report, most_changes(groups, s, K, 1))
    return skybands.objects, filters.objects, report.changes


@uncounted
def threshold_of(filters: Skybands, K: int, s: int, indexed: bool) -> float:
    """The key from which on a filter is given arrivals."""
    groups, threshold = filters.groups, filters.caps[s]["threshold"]
    if indexed and filters.rule[0]["kind"] != CAPPED and groups[s]["size"] > 2 * K + 8:
        threshold = filters.objects[groups[s]["head"] + 2 * K + 7]["key"]
    return float(threshold)


@uncounted
def best_of(skybands: Skybands, s: int) -> float:
    """The best key of a run; inf: it is empty."""
    best: float = skybands.objects[skybands.groups[s]["head"]]["key"] if skybands.groups[s]["size"] else np.inf
    return best


@uncounted
def attempt_again(ring: Ring, keys: Floats, gone: int, bar: float, before: int, serial: int, picked: Records) -> int:
    """The second attempts of the oldest `gone` of the buffer (kernels/filters.py); returns how many are let through."""
    n, begin = 0, ring.span[0]
    i = next_good(keys, bar, 0, gone)
    while i < gone:
        if keys[i] > bar or bar == -np.inf:
            picked[n]["key"] = keys[i]
            picked[n]["stamp"] = ring.stamps[begin + i]
            picked[n]["now"] = min(before, ring.stamps[begin + i] + ring.reach)
            picked[n]["row"] = ring.serials[begin + i] - serial - SILENT
            n += 1
        i = next_good(keys, bar, i + 1, gone)
    return n


@uncounted
def attempt(
    filters: Skybands,
    silent: Report,
    stream: Stream,
    s: int,
    found: Found,
    i: int,
    serial: int,
    picked: Records,
    n: int,
) -> tuple[int, int]:
    """The first attempts of what was found for a lane, from i on (kernels/filters.py).

    Returns where it stops, at the end or for want of places in the filter, and how many are let through.
    """
    K = len(filters.stamps)
    while i < found.bounds[s + 1] and not is_full(filters.groups, s, 1):
        a, key = found.places[i], found.keys[i]
        late = stream.stamps[a] < stream.now[a]
        if late or put(filters, silent, K, s, key, stream.stamps[a], serial + stream.rows[a]) < K:
            fill(picked, n, key, a, stream)
            n += 1
        i += 1
    return i, n
