"""What arrivals do to one lane's run, a strict k-skyband of one query: step by step, or a whole block at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import inlined, part
from skyband.kernels.records import NEVER, SILENT, Records

Ints = NDArray[np.int64]


@part
def take_lane(
    objects: Records,
    groups: Records,
    views: Records,
    s: int,
    K: int,
    length: int,
    picked: Records,
    n: int,
    serial: int,
    joint: bool,
    quiet: bool,
    out: Records,
    tally: Records,
) -> None:
    """What `strict.take_group` does, for one query and a run without anything expired: its members are the K best.

    One function, since handing over the arrays costs more than the work.
    """
    head, size, due = groups[s]["head"], groups[s]["size"], groups[s]["due"]
    newest, told = groups[s]["newest"], tally[1]
    for a in range(n):
        key, stamp, now, row = picked[a]["key"], picked[a]["stamp"], picked[a]["now"], picked[a]["row"]
        silent, comes = row < 0, row >= -SILENT - SILENT // 2
        left = 0  # members that leave with this arrival
        while due <= now:  # the oldest member goes
            oldest = NEVER
            for i in range(head, head + min(K, size)):
                oldest = min(oldest, objects[i]["stamp"])
            if oldest == NEVER or oldest + length > now:
                due = oldest + length if oldest < NEVER else NEVER
                break
            same = joint and not silent and oldest + length == now
            w = 0
            for i in range(head + min(K, size) - 1, head - 1, -1):  # from behind, so that the run moves to the right
                if objects[i]["stamp"] == oldest:
                    if not quiet or objects[i]["was"]:
                        out[told]["key"] = objects[i]["key"]
                        out[told]["stamp"] = oldest
                        out[told]["serial"] = objects[i]["serial"]
                        out[told]["instant"] = oldest + length
                        out[told]["row"] = row if same else -1
                        out[told]["visit"] = s
                        out[told]["query"] = 0
                        out[told]["diff"] = -1
                        out[told]["first"] = 0
                        told += 1
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
                    told = enters(objects, i, s, oldest + length, -1, quiet, out, told)
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
        for i in range(head + p, head + size):  # whom it dominates: they go when their counters reach K (Theorem 3.7)
            if objects[i]["stamp"] <= stamp:
                objects[i]["dom"] += 1
                if objects[i]["dom"] >= K:
                    if (objects[i]["inside"] and not quiet) or objects[i]["was"]:
                        told = leaves(objects, i, s, now, row, out, told)
                    continue
            if head + w < i:
                objects[head + w] = objects[i]
            w += 1
        if w - p <= p:
            for i in range(head + w, head + p, -1):
                objects[i] = objects[i - 1]
        else:
            head -= 1
            for i in range(head, head + p):
                objects[i] = objects[i + 1]
        size = w + 1
        objects[head + p]["key"] = key
        objects[head + p]["stamp"] = stamp
        objects[head + p]["serial"] = own
        objects[head + p]["dom"] = dominators
        objects[head + p]["inside"] = objects[head + p]["shown"] = objects[head + p]["was"] = 0
        if p < K or left:
            if size > K and objects[head + K]["inside"]:
                objects[head + K]["inside"] = 0
                if not quiet:
                    told = leaves(objects, head + K, s, now, row, out, told)
            for i in range(head + min(p, K - left), head + min(K, size)):
                if not objects[i]["inside"]:
                    told = enters(objects, i, s, now, row, quiet, out, told)
            due = min(due, stamp + length)
    oldest = NEVER
    for i in range(head, head + min(K, size)):
        oldest = min(oldest, objects[i]["stamp"])
    groups[s]["head"], groups[s]["size"], groups[s]["newest"], groups[s]["oldest"] = head, size, newest, oldest
    groups[s]["due"] = oldest + length if oldest < NEVER else NEVER
    views[s]["held"] = min(K, size)
    views[s]["edge"] = min(K, size)
    views[s]["oldest"] = oldest
    tally[1] = told


@part
def take_block(
    objects: Records,
    groups: Records,
    views: Records,
    first_lane: int,
    last_lane: int,
    K: int,
    length: int,
    picked: Records,  # of all lanes, each in order, none of them late
    bounds: Ints,  # bounds[s]..bounds[s + 1] are those of lane s
    left_out: Records,  # lanes that are not to be taken
    end: int,  # of the block
    serial: int,
    joint: bool,
    quiet: bool,
    top: Records,  # room for a run and all who are picked for it
    merged: Records,
    recent: Ints,
    out: Records,
    tally: Records,
) -> None:
    """A block of arrivals for these lanes: those that may be answers are replayed, the rest is merged in one sweep.

    U, the K-th best key of those that stay valid through the block, divides them. Counters rise in the sweep: whoever
    came with the block is newer than all that were there before.
    """
    for s in range(first_lane, last_lane):
        begin, n = bounds[s], bounds[s + 1]
        if begin == n or left_out[s]:
            continue
        head, size, told = groups[s]["head"], groups[s]["size"], tally[1]
        found, w, U = 0, 0, -np.inf
        while w < size and (found < K or objects[head + w]["key"] == U):
            if objects[head + w]["stamp"] > end - length:
                found += 1
                if found == K:
                    U = objects[head + w]["key"]
            top[w] = objects[head + w]
            w += 1
        rest = w  # the replay is over `top`, the run goes on here
        due, a, m = groups[s]["due"], begin, 0
        while True:
            while a < n and picked[a]["key"] < U:  # a candidate: it waits for the sweep, sorted
                i = m
                while i > 0 and merged[i - 1]["key"] <= picked[a]["key"]:
                    merged[i] = merged[i - 1]
                    i -= 1
                merged[i]["key"] = picked[a]["key"]
                merged[i]["stamp"] = picked[a]["stamp"]
                merged[i]["serial"] = serial + picked[a]["row"]
                m += 1
                a += 1
            now, row = (picked[a]["now"], picked[a]["row"]) if a < n else (end, -1)
            left = 0
            while due <= now:
                oldest = NEVER
                for i in range(min(K, w)):
                    oldest = min(oldest, top[i]["stamp"])
                if oldest == NEVER or oldest + length > now:
                    due = oldest + length if oldest < NEVER else NEVER
                    break
                same = joint and a < n and oldest + length == now
                gone, to = 0, 0
                for i in range(w):
                    if top[i]["stamp"] <= oldest:
                        if top[i]["was"] if quiet else top[i]["inside"]:
                            told = leaves(top, i, s, oldest + length, row if same else -1, out, told)
                        gone += i < K
                        continue
                    if to < i:
                        top[to] = top[i]
                    to += 1
                before, w = min(K, w), to
                left += gone
                if not same:
                    for i in range(max(0, before - gone), min(K, w)):
                        if not top[i]["inside"]:
                            told = enters(top, i, s, oldest + length, -1, quiet, out, told)
                    left = 0
            if a == n:
                break
            p = w
            while p > 0 and top[p - 1]["key"] <= picked[a]["key"]:
                top[p] = top[p - 1]
                p -= 1
            top[p]["key"] = picked[a]["key"]
            top[p]["stamp"] = picked[a]["stamp"]
            top[p]["serial"] = serial + row
            top[p]["dom"] = top[p]["inside"] = top[p]["shown"] = top[p]["was"] = 0
            w += 1
            if p < K or left:
                if w > K and top[K]["inside"]:
                    top[K]["inside"] = 0
                    if not quiet:
                        told = leaves(top, K, s, now, row, out, told)
                for i in range(min(p, K - left), min(K, w)):
                    if not top[i]["inside"]:
                        told = enters(top, i, s, now, row, quiet, out, told)
                due = min(due, picked[a]["stamp"] + length)
            a += 1
        newest, first = groups[s]["newest"], serial + picked[begin]["row"]
        tail = size - rest  # what is left of the run moves out of the way, to the end of its place
        far = groups[s]["start"] + groups[s]["room"] - tail
        for i in range(tail - 1, -1, -1):
            objects[far + i] = objects[head + rest + i]
        came = 0  # who came with this block and ranks above
        b, c, r, to = 0, 0, 0, head
        while b < w or c < m or r < tail:
            if b < w:
                objects[to] = top[b]
                b += 1
            elif c < m and (r == tail or merged[c]["key"] >= objects[far + r]["key"]):
                objects[to] = merged[c]
                objects[to]["dom"] = objects[to]["inside"] = objects[to]["shown"] = objects[to]["was"] = 0
                c += 1
            else:
                objects[to] = objects[far + r]
                r += 1
            stamp, dom = objects[to]["stamp"], objects[to]["dom"] + came
            if objects[to]["serial"] >= first:
                i = came
                while i > 0 and recent[i - 1] >= stamp:
                    recent[i] = recent[i - 1]
                    i -= 1
                recent[i] = stamp
                dom = came - i
                came += 1
                if stamp <= newest:  # of an equal time as some that were there
                    for i in range(head, to):
                        dom += objects[i]["serial"] < first and objects[i]["stamp"] >= stamp
            if dom >= K:
                if objects[to]["was"]:
                    told = leaves(objects, to, s, end, -1, out, told)
                continue
            objects[to]["dom"] = dom
            to += 1
        to -= head
        groups[s]["head"], groups[s]["size"] = head, to
        oldest = NEVER
        for i in range(head, head + min(K, to)):
            oldest = min(oldest, objects[i]["stamp"])
        groups[s]["newest"] = max(newest, picked[n - 1]["stamp"])
        groups[s]["oldest"] = oldest
        groups[s]["due"] = oldest + length if oldest < NEVER else NEVER
        views[s]["held"] = min(K, to)
        views[s]["edge"] = min(K, to)
        views[s]["oldest"] = oldest
        tally[1] = told


@inlined
def leaves(objects: Records, i: int, s: int, instant: int, row: int, out: Records, told: int) -> int:
    out[told]["key"] = objects[i]["key"]
    out[told]["stamp"] = objects[i]["stamp"]
    out[told]["serial"] = objects[i]["serial"]
    out[told]["instant"] = instant
    out[told]["row"] = row
    out[told]["visit"] = s
    out[told]["query"] = 0
    out[told]["diff"] = -1
    out[told]["first"] = 0
    return told + 1


@inlined
def enters(objects: Records, i: int, s: int, instant: int, row: int, quiet: bool, out: Records, told: int) -> int:
    objects[i]["inside"] = 1
    if quiet:
        return told
    told = leaves(objects, i, s, instant, row, out, told) - 1
    out[told]["diff"] = 1
    out[told]["first"] = not objects[i]["shown"]
    objects[i]["shown"] = 1
    return told + 1
