"""Arrivals into a lane's run, a strict k-skyband of one query: step by step, or a whole block at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.found import Found
from skyband.engines.topk.kernels.lane_state import Lanes, settle_run, store_some
from skyband.engines.topk.kernels.state import Floats, Ints, Report
from skyband.engines.topk.kernels.strict import insert
from skyband.kernels.compile import close, inlined, part, uncounted
from skyband.kernels.records import NEVER, OBJECT, SILENT, Records


class Merge(NamedTuple):
    """Scratch: a run and what was found for it. A place is a rank among both."""

    objects: Records  # the run, then the arrivals as they rank
    kept: Records  # those that stay
    valid: Records  # by place
    keys: Floats  # of the arrivals
    places: Ints  # rows: what is at each place, and others


@part
def new_merge(size: int) -> Merge:
    """Scratch for a run and arrivals, so many together."""
    objects, kept, valid = np.empty(size, OBJECT), np.empty(size, OBJECT), np.empty(size, np.bool_)
    return Merge(objects, kept, valid, np.empty(size), np.empty((11, size + 1), np.int64))


class Block(NamedTuple):
    """Arrivals of the history that come as one block."""

    stamps: Ints  # of the history
    serials: Ints
    low: int
    high: int
    end: int  # the instant of the last of them


@uncounted
def take_lane(chunk: Lanes, report: Report, s: int, picked: Records, n: int) -> None:
    """What `strict.take_group` does, for one query and a run without anything expired: its members are the K best.

    One function, since handing over the arrays costs more than the work.
    """
    objects, lanes, changes = chunk.objects, chunk.lanes, report.changes
    K, length, slot = lanes[s]["k"], lanes[s]["length"], lanes[s]["slot"]
    serial, joint, net = report.serial, report.joint, report.net
    head, size, due = lanes[s]["head"], lanes[s]["size"], lanes[s]["due"]
    newest, count = lanes[s]["newest"], report.tally[1]
    for a in range(n):
        key, stamp, now, row = picked[a]["key"], picked[a]["stamp"], picked[a]["now"], picked[a]["row"]
        silent, comes = row < 0, row >= -SILENT - SILENT // 2
        left = 0  # members that leave with this arrival
        while due <= now:  # the oldest member leaves
            oldest = NEVER
            for i in range(head, head + min(K, size)):
                oldest = min(oldest, objects[i]["stamp"])
            if oldest == NEVER or oldest + length > now:
                due = oldest + length if oldest < NEVER else NEVER
                break
            same = joint and not silent and oldest + length == now
            w = 0
            for i in range(head + min(K, size) - 1, head - 1, -1):  # backwards: the run moves to the right
                if objects[i]["stamp"] == oldest:
                    if not net or objects[i]["was"]:
                        count = leaves(objects, i, slot, oldest + length, row if same else -1, changes, count)
                    w += 1
                elif w:
                    objects[i + w] = objects[i]
            head += w
            size -= w
            left += w
            if same:
                continue
            for i in range(head + max(0, min(K, size + w) - w), head + min(K, size)):
                if not objects[i]["inside"]:
                    count = enters(objects, i, slot, oldest + length, -1, net, changes, count)
            left = 0
        if not comes:
            continue
        own = serial + row + (SILENT if silent else 0)
        p = size
        while p > 0 and (
            objects[head + p - 1]["key"] < key
            or (
                objects[head + p - 1]["key"] == key
                and (
                    objects[head + p - 1]["stamp"] < stamp
                    or (objects[head + p - 1]["stamp"] == stamp and objects[head + p - 1]["serial"] < own)
                )
            )
        ):
            p -= 1
        if silent and p > 0 and objects[head + p - 1]["serial"] == own:  # it is here already
            continue
        dominators = 0
        if stamp <= newest:  # late, or of an equal time
            for i in range(head, head + p):
                dominators += objects[i]["stamp"] >= stamp
            if dominators >= K:
                continue
        newest = max(newest, stamp)
        w = p
        for i in range(head + p, head + size):  # those it dominates are dropped at K dominators (Theorem 3.7)
            if objects[i]["stamp"] <= stamp:
                objects[i]["dom"] += 1
                if objects[i]["dom"] >= K:
                    if (objects[i]["inside"] and not net) or objects[i]["was"]:
                        count = leaves(objects, i, slot, now, row, changes, count)
                    continue
            if head + w < i:
                objects[head + w] = objects[i]
            w += 1
        head = insert(objects, head, p, w, key, stamp, own, dominators)
        size = w + 1
        if p < K or left:
            if size > K and objects[head + K]["inside"]:
                objects[head + K]["inside"] = 0
                if not net:
                    count = leaves(objects, head + K, slot, now, row, changes, count)
            for i in range(head + min(p, K - left), head + min(K, size)):
                if not objects[i]["inside"]:
                    count = enters(objects, i, slot, now, row, net, changes, count)
            due = min(due, stamp + length)
    lanes[s]["head"], lanes[s]["size"], lanes[s]["newest"] = head, size, newest
    settle_run(objects, lanes, s)
    report.tally[1] = count


@uncounted
def take_block(
    chunk: Lanes,
    report: Report,
    first: int,
    last: int,
    found: Found,  # in any order, none of them late; bounds[0] is of lane `base`
    base: int,
    block: Block,
    merge: Merge,
) -> tuple[int, int]:
    """A block of arrivals for lanes first..last: merged into the run by rank, replayed, swept for the dominated.

    Returns the lane that lacks places, and the size of its run, which is then in merge.kept; or `last`.

    U is the K-th best key of those that stay valid through the block: nothing below it is an answer. Above it, places
    in the merged run stay where they are and become valid or cease to be; the answer is the valid ones before its edge,
    and an event moves that past a place or two. Counters rise in the sweep: what came with the block is newer than
    all that was there before.
    """
    objects, lanes, changes = chunk.objects, chunk.lanes, report.changes
    serial, joint, net, tally = report.serial, report.joint, report.net, report.tally
    keys, arrivals, bounds, (stamps, serials, low, high, end) = found.keys, found.places, found.bounds, block
    merged, kept, valid, ranked, places = merge.objects, merge.kept, merge.valid, merge.keys, merge.places
    order, spare, coming, when, leaving, until = places[0], places[1], places[2], places[3], places[4], places[5]
    recent, what, stays, rows, newer_ones = places[6], places[7], places[8], places[9], places[10]
    even = joint and stamps[high - 1] - stamps[low] == high - 1 - low == serials[high - 1] - serials[low]  # no look
    for s in range(first, last):
        begin, n = bounds[s - base], bounds[s - base + 1] - bounds[s - base]
        if n == 0 or arrivals[begin] < 0:  # none, or they were taken one by one
            continue
        open_lane(objects, lanes, s, net)
        K, length, slot = lanes[s]["k"], lanes[s]["length"], lanes[s]["slot"]
        bound = end - length  # stamps up to here have left the window at the block's end
        head, size, count, newest = lanes[s]["head"], lanes[s]["size"], tally[1], lanes[s]["newest"]
        for i in range(size):
            merged[i] = objects[head + i]
        stay, w = 0, 0
        while w < size and stay < K:
            stay += merged[w]["stamp"] > bound
            w += 1
        U = merged[w - 1]["key"] if stay == K else -np.inf
        while stay == K and w < size and merged[w]["key"] == U:
            w += 1
        for c in range(n):
            a = arrivals[begin + c]
            ranked[c], rows[c], recent[c] = keys[begin + c], a, stamps[low] + a - low if even else stamps[a]
        rank(ranked, rows, n, order, spare)
        count_newer(ranked, rows, recent, n, newer_ones)
        j, i, come, gone, held, newer = 0, 0, 0, 0, min(K, size), newest
        edge = held
        for c in range(n + 1):
            key = ranked[order[c]] if c < n else -np.inf
            while i < size and (c == n or merged[i]["key"] > key):  # so many came that rank above it, and are newer
                merged[i]["dom"] += c
                what[j], leaving[gone], until[gone] = i, j, -merged[i]["stamp"]
                valid[j] = True
                gone += merged[i]["stamp"] <= bound
                i += 1
                j += 1
            if c == n:
                break
            a, stamp, dom = rows[order[c]], recent[order[c]], newer_ones[order[c]]
            if stamp <= newest:  # of an equal time as some that were there
                for other in range(i):
                    dom += merged[other]["stamp"] >= stamp
            merged[size + c]["key"] = key
            merged[size + c]["stamp"] = stamp
            merged[size + c]["serial"] = serials[low] + a - low if even else serials[a]
            merged[size + c]["dom"] = dom
            merged[size + c]["inside"] = merged[size + c]["shown"] = merged[size + c]["was"] = 0
            what[j], coming[c], when[c] = size + c, j, -a
            valid[j] = False
            come += key >= U
            edge += i < held
            newer = max(newer, stamp)
            j += 1
        top = w + come if stay == K else size + n
        if not net:
            rank(when, coming, come, order, spare)
            rank(until, leaving, gone, recent, spare)
        c = e = 0
        coming_at = merged[what[coming[order[0]]]]["stamp"] if come and not net else NEVER  # none of them is late
        leaving_at = length - until[recent[0]] if gone and not net else NEVER
        while coming_at < NEVER or leaving_at < NEVER:
            comes = coming_at < leaving_at or (coming_at == leaving_at and joint)
            p = coming[order[c]] if comes else 0
            instant = coming_at if comes else leaving_at
            row = merged[what[p]]["serial"] - serial if comes else -1
            while leaving_at <= instant:
                j = leaving[recent[e]]
                valid[j] = False
                if j < edge:
                    count = leaves(merged, what[j], slot, instant, row, changes, count)
                    held -= 1
                e += 1
                leaving_at = length - until[recent[e]] if e < gone else NEVER
            if comes:
                valid[p] = True
                c += 1
                coming_at = merged[what[coming[order[c]]]]["stamp"] if c < come else NEVER
                if p < edge:
                    if held == K:
                        edge -= 1
                        held -= 1
                        merged[what[edge]]["inside"] = 0
                        count = leaves(merged, what[edge], slot, instant, row, changes, count)
                    count = enters(merged, what[p], slot, instant, row, net, changes, count)
                    held += 1
            while held < K and edge < top:
                if valid[edge]:
                    count = enters(merged, what[edge], slot, instant, row, net, changes, count)
                    held += 1
                edge += 1
            while edge > 0 and not valid[edge - 1]:
                edge -= 1
        to = 0
        for j in range(size + n):
            i = what[j]
            stays[to] = i
            lasting = (merged[i]["dom"] < K) & (merged[i]["stamp"] > bound)
            if net:
                merged[i]["inside"] = to < K
                if merged[i]["was"] and not lasting:
                    count = leaves(merged, i, slot, end, -1, changes, count)
            to += lasting
        lanes[s]["newest"] = newer
        tally[1] = count
        if to > lanes[s]["room"]:
            for i in range(to):
                kept[i] = merged[stays[i]]
            return s, to
        store_some(objects, lanes, s, merged, stays, to)
    return last, 0


@close
def open_lane(objects: Records, lanes: Records, s: int, net: bool) -> None:
    """Remember the answer of a lane for a batch of net changes, once."""
    if net and not lanes[s]["open"]:
        for i in range(lanes[s]["head"], lanes[s]["head"] + lanes[s]["size"]):
            objects[i]["was"] = objects[i]["inside"]
        lanes[s]["open"] = 1


@inlined
def rank(keys: Records, places: Ints, n: int, order: Ints, spare: Ints) -> None:
    """The order by key, the largest first, at equal keys by place: 64 at a time, then merged in pairs.

    Up to 64, each counts those that rank above it, which compiles to a few instructions and guesses no branch wrong.
    """
    for low in range(0, n, 64):
        some, where = keys[low : min(low + 64, n)], places[low : min(low + 64, n)]
        for a in range(len(some)):
            above = 0
            for b in range(len(some)):
                above += (some[b] > some[a]) | ((some[b] == some[a]) & (where[b] > where[a]))
            order[low + above] = low + a
    width = 64
    while width < n:
        for low in range(0, n, 2 * width):
            left, right = low, min(low + width, n)
            middle, high = right, min(low + 2 * width, n)
            for to in range(low, high):
                x, y = order[left] if left < middle else order[right], order[right] if right < high else order[left]
                if left == middle or (
                    right < high and (keys[x] < keys[y] or (keys[x] == keys[y] and places[x] < places[y]))
                ):
                    spare[to] = order[right]
                    right += 1
                else:
                    spare[to] = order[left]
                    left += 1
        for i in range(n):
            order[i] = spare[i]
        width *= 2


@inlined
def count_newer(keys: Floats, rows: Ints, stamps: Ints, n: int, counts: Ints) -> None:
    """For each arrival, how many of the others rank above it and do not expire before it."""
    some, where, until = keys[:n], rows[:n], stamps[:n]
    for a in range(n):
        found = 0
        for b in range(n):
            found += (some[b] > some[a]) & (until[b] >= until[a]) | (some[b] == some[a]) & (where[b] > where[a])
        counts[a] = found


@inlined
def leaves(objects: Records, i: int, s: int, instant: int, row: int, changes: Records, count: int) -> int:
    """Report that object i leaves the answer of lane s; returns how many changes there are."""
    changes[count]["key"] = objects[i]["key"]
    changes[count]["stamp"] = objects[i]["stamp"]
    changes[count]["serial"] = objects[i]["serial"]
    changes[count]["instant"] = instant
    changes[count]["row"] = row
    changes[count]["visit"] = s
    changes[count]["query"] = 0
    changes[count]["diff"] = -1
    changes[count]["first"] = 0
    return count + 1


@inlined
def enters(objects: Records, i: int, s: int, instant: int, row: int, net: bool, changes: Records, count: int) -> int:
    """Report that object i enters the answer of lane s; returns how many changes there are."""
    objects[i]["inside"] = 1
    if net:
        return count
    count = leaves(objects, i, s, instant, row, changes, count) - 1
    changes[count]["diff"] = 1
    changes[count]["first"] = not objects[i]["shown"]
    objects[i]["shown"] = 1
    return count + 1
