"""PA and the buffered algorithms for many scorings of one family: every scoring is a lane, fed block by block.

PA (pripuzic2015, section 4.1): the arrivals at or above the lane's threshold, and the one whose arrival pushes an
object out, since the threshold falls with it. The order of events is that of the paper, object by object.

Filters (section 5): the buffer is one ring for all lanes; `kernels/filters.py` says what a filter lets through. With
an index (section 6.1) a filter hears only of arrivals that the index lists for it, down to its threshold
(probabilistic) or to its (2K + 8)-th best (strict, relaxed): any subset of the buffer can be the filter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.filters import forget, put
from skyband.engines.topk.kernels.lanes import fill, index_lanes, longer, next_good
from skyband.engines.topk.kernels.query_index import FOUND, by_query, match
from skyband.engines.topk.kernels.ring import shift_ring
from skyband.engines.topk.kernels.scores import key_of, keys_of
from skyband.engines.topk.kernels.strict import compare, expire, remember, take_group
from skyband.kernels.compile import kernel, part
from skyband.kernels.records import ARRIVAL, CAPPED, NEVER, SILENT, Records, make_room, reserve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel
def take_filtered(
    filtered: bool,  # a buffer and filters; else PA
    objects: Records,
    groups: Records,  # one per lane
    views: Records,
    queries: Records,  # one, the same for all lanes
    rule: Records,
    caps: Records,  # of the runs
    tally: Records,
    sieve: Records,
    sieves: Records,
    mesh: Records,  # of the filters
    sieving: Records,  # their rule
    places: Records,
    form: int,
    turned: bool,
    points: Floats,
    weights: Floats,
    data: Floats,  # the arrivals' attributes, one row each
    stamps: Ints,
    now: Ints,
    rows: Ints,
    last: int,
    begun: Ints,  # [the last instant that was handled, arrivals so far]
    ring: Floats,
    ring_stamps: Ints,
    ring_serials: Ints,
    span: Ints,
    most: int,  # in the buffer
    reach: int,  # how long one may wait
    origin: Floats,
    scale: Floats,
    side: int,
    cells: Ints,
    counts: Ints,
    indexes: Floats,
    starts: Ints,
    listed: Ints,
    alive: Records,
    serial: int,
    joint: bool,
    net: bool,
    more: bool,
    work: Ints,
    out: Records,
) -> tuple[Records, Records, Records]:
    """Take a batch of arrivals into all lanes; returns both arenas and the changes."""
    step = np.zeros(1, out.dtype)
    K, size, lanes = queries[0]["k"], len(rows), len(groups)
    if net:
        for s in range(lanes):
            if not groups[s]["open"]:
                remember(objects, groups, s)
            groups[s]["open"] = more
    largest = max(1, most // 4) if filtered else 4096
    keys = np.empty(max(len(ring_stamps), largest))
    picked = np.empty(256, ARRIVAL)
    matched, order = np.empty(1024, FOUND), np.empty(1024, np.int64)
    bounds, depths = np.zeros(lanes + 1, np.int64), np.empty(lanes)
    low = 0
    while low < size or (filtered and begun[0] < last):
        high = low
        while high < size and high - low < largest and (not filtered or now[high] - now[low] <= reach):
            high += 1
        end = now[high - 1] if high > low else last
        gone = 0
        while (
            filtered
            and gone < span[1]
            and (span[1] - gone + high - low > most or ring_stamps[span[0] + gone] <= end - reach - 1)
        ):
            gone += 1
        late = False
        for a in range(low, high):
            late |= stamps[a] < now[a]
        indexed = len(starts) > 1 and high - low >= 64 and not late
        if filtered:
            for s in range(lanes if gone else 0):
                forget(sieve, sieves, mesh, sieving, K, s, ring_serials[span[0] + gone - 1])
            for s in range(lanes):
                depths[s] = mesh[s]["threshold"]
                if sieving[0]["kind"] != CAPPED:
                    depths[s] = -np.inf
                    if indexed and sieves[s]["size"] > 2 * K + 8:
                        depths[s] = sieve[sieves[s]["head"] + 2 * K + 7]["key"]
        else:
            for s in range(lanes):
                depths[s] = caps[s]["threshold"]
        if indexed:
            index_lanes(
                form, turned, points, weights, objects, groups, depths, data, low, high, origin, scale, side, cells,
                counts, indexes, starts, listed, work,
            )  # fmt: skip
            for s in range(lanes if not filtered else 0):
                depths[s] = indexes[s]
            matched, n = match(
                form, turned, points, weights, data, low, high, depths, origin, scale, side, starts, listed, work,
                matched,
            )  # fmt: skip
            if n > len(order):
                order = np.empty(len(matched), np.int64)
            by_query(matched, n, order, bounds)
        for s in range(lanes):
            step[0]["visit"] = s
            here = indexed and indexes[s] <= (depths[s] if filtered else caps[s]["threshold"])
            if not filtered:
                a = low
                if here:
                    objects, out, a = feed_listed(
                        form, turned, points, weights, data, matched, order, bounds[s], bounds[s + 1], indexes[s],
                        objects, groups, views, queries, K, s, stamps, now, rows, low, high, picked,
                        alive, serial, joint, net, out, tally, step, rule, caps,
                    )  # fmt: skip
                if a < high:
                    work[0] += high - a
                    keys_of(form, turned, points, weights, s, data, a, high, keys)
                    objects, out = feed_good(
                        objects, groups, views, queries, K, s, keys, stamps, now, rows, a, high, picked,
                        alive, serial, joint, net, out, tally, step, rule, caps,
                    )  # fmt: skip
                continue
            n = 0
            if gone:  # the second attempt
                work[0] += gone
                keys_of(form, turned, points, weights, s, ring, span[0], span[0] + gone, keys)
                few = sieves[s]["size"] < K
                bar = -np.inf if few else sieve[sieves[s]["head"] + K - 1]["key"]
                before = now[low] - 1 if high > low else NEVER
                i = next_good(keys, bar, 0, gone)
                while i < gone:
                    if few or keys[i] > bar:
                        if n == len(picked):
                            picked = longer(picked, n)
                        picked[n]["key"] = keys[i]
                        picked[n]["stamp"] = ring_stamps[span[0] + i]
                        picked[n]["now"] = min(before, ring_stamps[span[0] + i] + reach)
                        picked[n]["row"] = ring_serials[span[0] + i] - serial - SILENT
                        n += 1
                    i = next_good(keys, bar, i + 1, gone)
            if high > low:
                count = bounds[s + 1] - bounds[s]
                if not here:
                    work[0] += high - low
                    keys_of(form, turned, points, weights, s, data, low, high, keys)
                    count = high - low
                i = -1
                while True:
                    if here:
                        i += 1
                        if i == count:
                            break
                        one = matched[order[bounds[s] + i]]
                        a, key = one["place"], one["key"]
                    else:
                        i = i + 1 if late else next_good(keys, mesh[s]["threshold"], i + 1, count)
                        if i == count:
                            break
                        a, key = low + i, keys[i]
                    passes = stamps[a] < now[a]
                    if not passes:
                        head, start = sieves[s]["head"], sieves[s]["start"]
                        if head == start or head + sieves[s]["size"] == start + sieves[s]["room"]:
                            sieve = make_room(sieve, sieves, s, places, 1)
                        passes = put(sieve, sieves, mesh, sieving, K, s, key, stamps[a], serial + rows[a]) < K
                    if passes:
                        if n == len(picked):
                            picked = longer(picked, n)
                        fill(picked, n, key, a, stamps, now, rows)
                        n += 1
            work[1] += n
            objects, out = feed(
                objects,
                groups,
                views,
                queries,
                K,
                s,
                picked,
                n,
                alive,
                serial,
                joint,
                net,
                out,
                tally,
                step,
                rule,
                caps,
            )
        if filtered:
            span[0] += gone
            span[1] -= gone
            shift_ring(ring, ring_stamps, ring_serials, span, data, stamps, now, rows, low, high, serial)
        begun[0] = end
        begun[1] += high - low
        low = high
        if high == size and end >= last:
            break
    for s in range(lanes):
        step[0]["visit"] = s
        if groups[s]["due"] <= last:
            out = reserve(out, tally, 2 * (groups[s]["size"] + 2))
            while not expire(
                objects, groups, views, queries, K, s, last, alive, serial, out, tally, step, net, rule, caps
            ):
                out = reserve(out, tally, 2 * (groups[s]["size"] + 2))
        if net and not more:
            step[0]["instant"] = last
            step[0]["row"] = -1
            out = reserve(out, tally, 2 * (groups[s]["size"] + 2))
            compare(objects, groups, s, 1, out, tally, step)
    return objects, sieve, out


@part
def feed(
    objects: Records,
    groups: Records,
    views: Records,
    queries: Records,
    K: int,
    s: int,
    picked: Records,
    n: int,
    alive: Records,
    serial: int,
    joint: bool,
    net: bool,
    out: Records,
    tally: Records,
    step: Records,
    rule: Records,
    caps: Records,
) -> tuple[Records, Records]:
    a = 0
    while a < n:
        head, start = groups[s]["head"], groups[s]["start"]
        if head == start or head + groups[s]["size"] == start + groups[s]["room"]:
            objects = make_room(objects, groups, s, tally, 1)
        out = reserve(out, tally, 2 * min(K + 2, groups[s]["size"] + 2))
        a = take_group(
            objects,
            groups,
            views,
            queries,
            K,
            s,
            picked,
            a,
            n,
            alive,
            serial,
            joint,
            net,
            out,
            tally,
            step,
            rule,
            caps,
        )
    return objects, out


@part
def feed_good(
    objects: Records,
    groups: Records,
    views: Records,
    queries: Records,
    K: int,
    s: int,
    keys: Floats,
    stamps: Ints,
    now: Ints,
    rows: Ints,
    low: int,
    high: int,
    picked: Records,
    alive: Records,
    serial: int,
    joint: bool,
    net: bool,
    out: Records,
    tally: Records,
    step: Records,
    rule: Records,
    caps: Records,
) -> tuple[Records, Records]:
    """PA: the arrivals at or above the threshold, which rises with each of them and falls when an object expires."""
    a = low
    while a < high:
        stop = a + np.searchsorted(now[a:high], groups[s]["due"])
        a = low + next_good(keys, caps[s]["threshold"], a - low, stop - low)
        if a == high:
            break
        fill(picked, 0, keys[a - low], a, stamps, now, rows)
        objects, out = feed(
            objects, groups, views, queries, K, s, picked, 1, alive, serial, joint, net, out, tally, step, rule, caps
        )
        a += 1
    return objects, out


@part
def feed_listed(
    form: int,
    turned: bool,
    points: Floats,
    weights: Floats,
    data: Floats,
    listed: Records,
    order: Ints,
    begin: int,
    end: int,
    depth: float,  # down to which they are listed
    objects: Records,
    groups: Records,
    views: Records,
    queries: Records,
    K: int,
    s: int,
    stamps: Ints,
    now: Ints,
    rows: Ints,
    low: int,
    high: int,
    picked: Records,
    alive: Records,
    serial: int,
    joint: bool,
    net: bool,
    out: Records,
    tally: Records,
    step: Records,
    rule: Records,
    caps: Records,
) -> tuple[Records, Records, int]:
    """As `feed_good`, from a list; returns also where the threshold has fallen below what is listed."""
    a = low
    while a < high and caps[s]["threshold"] >= depth:
        stop = a + np.searchsorted(now[a:high], groups[s]["due"])
        while begin < end and (
            listed[order[begin]]["place"] < a
            or (listed[order[begin]]["place"] < stop and listed[order[begin]]["key"] < caps[s]["threshold"])
        ):
            begin += 1
        if begin < end and listed[order[begin]]["place"] < stop:
            a = listed[order[begin]]["place"]
            key = listed[order[begin]]["key"]
        elif stop < high:
            a = stop
            key = key_of(form, turned, points, weights, s, data, a)
        else:
            return objects, out, high
        fill(picked, 0, key, a, stamps, now, rows)
        objects, out = feed(
            objects, groups, views, queries, K, s, picked, 1, alive, serial, joint, net, out, tally, step, rule, caps
        )
        a += 1
    return objects, out, a
