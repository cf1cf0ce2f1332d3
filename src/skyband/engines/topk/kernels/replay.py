"""Arrivals into a lane's run, a strict k-skyband of one query: step by step, or a whole block at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.lane_state import Lanes, settle_run, store_run
from skyband.engines.topk.kernels.state import Floats, Ints, Report
from skyband.engines.topk.kernels.strict import insert
from skyband.kernels.compile import close, inlined, part, uncounted
from skyband.kernels.records import NEVER, OBJECT, SILENT, Records


class Merge(NamedTuple):
    """Scratch: a run and what was found for it, merged."""

    objects: Records
    kept: Records  # those that stay
    valid: Records
    places: Ints  # seven rows


@part
def new_merge(size: int) -> Merge:
    """Scratch for a run and arrivals, so many together."""
    return Merge(
        np.empty(size, OBJECT), np.empty(size, OBJECT), np.empty(size, np.bool_), np.empty((7, size), np.int64)
    )


class Found(NamedTuple):
    """Scratch: the arrivals found for lanes; lane s has bounds[s]..bounds[s + 1], from the first lane on."""

    keys: Floats
    places: Ints  # in the history
    bounds: Ints


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
    merged, kept, valid, places = merge.objects, merge.kept, merge.valid, merge.places
    order, spare, coming, when = places[0], places[1], places[2], places[3]
    leaving, until, recent = places[4], places[5], places[6]
    even = joint and stamps[high - 1] - stamps[low] == high - 1 - low == serials[high - 1] - serials[low]  # no look
    for s in range(first, last):
        begin, n = bounds[s - base], bounds[s - base + 1] - bounds[s - base]
        if n == 0 or arrivals[begin] < 0:  # none, or they were taken one by one
            continue
        open_lane(objects, lanes, s, net)
        K, length, slot = lanes[s]["k"], lanes[s]["length"], lanes[s]["slot"]
        bound = end - length  # stamps up to here have left the window at the block's end
        head, size, count = lanes[s]["head"], lanes[s]["size"], tally[1]
        stay, w = 0, 0
        while w < size and stay < K:
            stay += objects[head + w]["stamp"] > bound
            w += 1
        U = objects[head + w - 1]["key"] if stay == K else -np.inf
        rank(keys[begin : begin + n], arrivals[begin : begin + n], n, order, spare)
        i, c, total, top, edge, come, gone = 0, 0, 0, 0, 0, 0, 0
        while i < size or c < n:
            if c < n and (i == size or keys[begin + order[c]] >= objects[head + i]["key"]):
                a = arrivals[begin + order[c]]
                merged[total]["key"] = keys[begin + order[c]]
                merged[total]["stamp"] = stamps[low] + a - low if even else stamps[a]
                merged[total]["serial"] = serials[low] + a - low if even else serials[a]
                merged[total]["dom"] = merged[total]["inside"] = merged[total]["shown"] = merged[total]["was"] = 0
                valid[total] = False
                if keys[begin + order[c]] >= U:
                    coming[come] = total
                    when[come] = -a
                    come += 1
                c += 1
            else:
                merged[total] = objects[head + i]
                valid[total] = True
                i += 1
                if i == min(K, size):
                    edge = total + 1
                if merged[total]["stamp"] <= bound:
                    leaving[gone] = total
                    until[gone] = -merged[total]["stamp"]
                    gone += 1
            top += merged[total]["key"] >= U
            total += 1
        if not net:
            rank(when, coming, come, order, spare)
            rank(until, leaving, gone, recent, spare)
        c, e, held = 0, 0, min(K, size)
        while not net and (c < come or e < gone):
            comes, goes, row = c < come, e < gone, -1
            if goes:
                instant = merged[leaving[recent[e]]]["stamp"] + length
            if comes:
                p = coming[order[c]]
                now = merged[p]["stamp"]  # it is not late
                if goes and (instant < now or (instant == now and not joint)):
                    comes = False
                else:
                    goes, instant, row = goes and instant == now, now, merged[p]["serial"] - serial
            while goes and e < gone and merged[leaving[recent[e]]]["stamp"] <= instant - length:
                j = leaving[recent[e]]
                valid[j] = False
                if j < edge:
                    count = leaves(merged, j, slot, instant, row, changes, count)
                    held -= 1
                e += 1
            if comes:
                valid[p] = True
                c += 1
                if p < edge:
                    if held == K:
                        edge -= 1
                        held -= 1
                        merged[edge]["inside"] = 0
                        count = leaves(merged, edge, slot, instant, row, changes, count)
                    count = enters(merged, p, slot, instant, row, net, changes, count)
                    held += 1
            while held < K and edge < top:
                if valid[edge]:
                    count = enters(merged, edge, slot, instant, row, net, changes, count)
                    held += 1
                edge += 1
            while edge > 0 and not valid[edge - 1]:
                edge -= 1
        newest, since, newer = lanes[s]["newest"], serials[low], lanes[s]["newest"]
        came, to = 0, 0  # came: how many came with this block and rank above
        for j in range(total):
            stamp, dom = merged[j]["stamp"], merged[j]["dom"] + came
            if merged[j]["serial"] >= since:
                dom = 0
                for c in range(came):
                    dom += recent[c] >= stamp
                if stamp <= newest:  # of an equal time as some that were there
                    for c in range(to):
                        dom += kept[c]["serial"] < since and kept[c]["stamp"] >= stamp
                recent[came] = stamp
                came += dom < K
                newer = max(newer, stamp)
            if dom >= K or stamp <= bound:
                if merged[j]["was"]:
                    count = leaves(merged, j, slot, end, -1, changes, count)
                continue
            if net:
                merged[j]["inside"] = to < K
            kept[to] = merged[j]
            kept[to]["dom"] = dom
            to += 1
        lanes[s]["newest"] = newer
        tally[1] = count
        if to > lanes[s]["room"]:
            return s, to
        store_run(objects, lanes, s, kept, to)
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
