"""The steps of windows of uncertain tuples: who expires, who arrives, whose answer is read again, and what is told.

An arrival below the level of the front, and an expiry below the prefix that an answer was read from, change nothing: a
comparison each. Otherwise the answer is read again (prefixes.py) and held against what was told. Arrivals stay in the
batch's own arrays until a block of them is full; then they join the past, swept if the engine drops (fronts.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import kernel, part, uncounted
from skyband.kernels.fronts import append, cut, forget, is_full, put, sweep, take_out
from skyband.kernels.prefixes import ENOUGH, FOUND, PASSED, SHARE, UK, VALID, Desk, new_desk, walk
from skyband.kernels.records import make_room, reserve

Records = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VIEW = np.dtype(
    [
        ("first", "i8"),  # the position of the oldest valid tuple
        ("floor", "f8"),  # what is worse does not touch the answer
        ("guess", "i8"),  # how many tuples the last walk has passed
        ("due", "i8"),  # time takes nothing from the prefix before this instant
        ("low", "i8"),  # the largest stamp that has expired
    ],
    align=True,
)
ASKED = np.dtype([("k", "i8"), ("length", "i8"), ("threshold", "f8"), ("bit", "i8")], align=True)
TOLD = np.dtype(
    [
        ("key", "f8"),
        ("probability", "f8"),
        ("stamp", "i8"),
        ("serial", "i8"),
        ("instant", "i8"),
        ("row", "i8"),  # -1: a step without an arrival of the kernel's own
        ("visit", "i4"),
        ("rank", "i4"),
        ("query", "i2"),
        ("diff", "i1"),
        ("first", "i1"),
    ],
    align=True,
)
NEVER = np.iinfo(np.int64).max
EXPIRE, ARRIVE, READ, CLOSE = 0, 1, 2, 3  # what the loop does next
PASTS, FRONTS, ANSWERS, MARKS, CHANGES = 0, 1, 2, 3, 4  # rows of the tallies


@uncounted
def first_valid(past: Records, head: int, size: int, low: int) -> int:
    """How many tuples of a past are outside of a window: those with such a stamp or an older one."""
    begin, end = 0, size
    while begin < end:
        middle = (begin + end) // 2
        if past[head + middle]["stamp"] <= low:
            begin = middle + 1
        else:
            end = middle
    return begin


@uncounted
def write(
    out: Records, tally: Ints, one: Records, v: int, q: int, instant: int, row: int, diff: int, first: bool
) -> None:
    n = tally[1]
    out[n]["key"] = one["key"]
    out[n]["probability"] = one["p"]
    out[n]["stamp"] = one["stamp"]
    out[n]["serial"] = one["serial"]
    out[n]["instant"] = instant
    out[n]["row"] = row
    out[n]["visit"] = v
    out[n]["rank"] = one["mark"]
    out[n]["query"] = q
    out[n]["diff"] = diff
    out[n]["first"] = first
    tally[1] = n + 1


@part
def more_marks(marks: Records, free: Ints, tally: Ints, n: int) -> tuple[Records, Ints]:
    """Rows of marks for so many objects more."""
    rows = np.zeros((2 * len(marks) + n + 64, marks.shape[1]), np.uint64)
    for i in range(len(marks)):
        for j in range(marks.shape[1]):
            rows[i, j] = marks[i, j]
    places = np.empty(len(rows), np.int64)
    for i in range(tally[1]):
        places[i] = free[i]
    return rows, places


@uncounted
def ticket_for(marks: Records, free: Ints, tally: Ints) -> int:
    """An empty row of marks; there is one."""
    if tally[1]:
        tally[1] -= 1
        ticket = free[tally[1]]
    else:
        ticket = tally[0]
        tally[0] += 1
    for j in range(marks.shape[1]):
        marks[ticket, j] = 0
    return ticket


@uncounted
def stays(old: Records, new: Records, meaning: int) -> int:
    """Of two answers in order: 0 if they are one, else whether the old (-1), the new (1) or both (2) come first."""
    if meaning == UK:
        if old["mark"] != new["mark"]:
            return -1 if old["mark"] < new["mark"] else 1
        return 0 if old["serial"] == new["serial"] else 2
    if old["serial"] == new["serial"]:
        return 0
    if old["key"] != new["key"]:
        return -1 if old["key"] > new["key"] else 1
    if old["stamp"] != new["stamp"]:
        return -1 if old["stamp"] > new["stamp"] else 1
    return -1 if old["serial"] > new["serial"] else 1


@uncounted
def tell(
    past: Records,
    shift: int,  # from positions to places in the past
    beyond: int,  # the first position in the block
    tickets: Ints,
    front: Records,
    head: int,
    desk: Desk,
    n: int,
    answers: Records,
    lanes: Records,
    lane: int,
    found: Records,
    fresh: NDArray[np.bool_],
    marks: NDArray[np.uint64],
    free: Ints,
    mark_tally: Ints,
    out: Records,
    tally: Ints,
    v: int,
    q: int,
    bits: int,
    instant: int,
    row: int,
    meaning: int,
) -> bool:
    """Hold the answer on the desk against what was told, and tell the difference; whether the block got a ticket."""
    ticketed, old, was = False, lanes[lane]["size"], lanes[lane]["head"]
    for j in range(n):
        found[j] = front[head + desk.at[j]]
        found[j]["p"] = desk.chance[j]
        found[j]["mark"] = desk.rank[j]
    at, j = 0, 0
    while at < old or j < n:
        which = 1 if at == old else -1 if j == n else stays(answers[was + at], found[j], meaning)
        if which == -1 or which == 2:
            write(out, tally, answers[was + at], v, q, instant, row, np.int64(-1), bool(0))
        if which != -1:
            fresh[j] = which != 0
            j += 1
        if which != 1:
            at += 1
    for j in range(n):
        if fresh[j]:
            pos = front[head + desk.at[j]]["mark"]
            ticket = past[shift + pos]["mark"] if pos < beyond else tickets[pos - beyond]
            if ticket < 0:
                ticket = ticket_for(marks, free, mark_tally)
                if pos < beyond:
                    past[shift + pos]["mark"] = ticket
                else:
                    tickets[pos - beyond] = ticket
                    ticketed = True
            bit = bits + max(found[j]["mark"] - 1, 0)
            mark = np.uint64(1) << np.uint64(bit % 64)
            write(out, tally, found[j], v, q, instant, row, np.int64(1), marks[ticket, bit // 64] & mark == 0)
            marks[ticket, bit // 64] |= mark
    lanes[lane]["head"], lanes[lane]["size"] = lanes[lane]["start"], n
    for j in range(n):
        answers[lanes[lane]["start"] + j] = found[j]
    return ticketed


@kernel
def take_groups(
    past: Records,
    pasts: Records,  # one run each of past, front, and answers by query
    front: Records,
    fronts: Records,
    answers: Records,
    lanes: Records,
    state: Records,
    views: Records,
    queries: Records,
    marks: NDArray[np.uint64],
    free: Ints,
    tallies: Ints,
    keys: Floats,
    ps: Floats,
    stamps: Ints,
    nows: Ints,
    rows: Ints,
    visits: Records,
    serial: int,
    timed: bool,
    quiet: bool,
    more: bool,
    drop: bool,
    meaning: int,
    block: int,
    least: int,  # tuples in a front, and in a past before it is swept
    out: Records,
) -> tuple[Records, Records, Records, NDArray[np.uint64], Ints, Records]:
    past_tally, front_tally, answer_tally, mark_tally, tally = (
        tallies[PASTS],
        tallies[FRONTS],
        tallies[ANSWERS],
        tallies[MARKS],
        tallies[CHANGES],
    )
    Q = len(queries)
    widest, K = 0, queries[0]["k"]
    for q in range(Q):
        K = max(K, queries[q]["k"])
        if queries[q]["length"] > queries[widest]["length"]:
            widest = q
    affected = np.zeros(Q, np.bool_)
    tickets = np.full(min(block, len(keys)), -1, np.int64)  # of the arrivals of a block
    desk = new_desk(np.int64(64), K)
    said, ticketed = desk.told, K < 0  # none yet; not a literal, which would be compiled for itself
    found, fresh = np.empty(64, answers.dtype), np.empty(64, np.bool_)
    for v in range(len(visits)):
        g, end, last = visits[v]["group"], visits[v]["end"], visits[v]["last"]
        i = b = visits[v]["begin"]
        q, a, reading, sweeping, instant, row = 0, 0, np.int64(-1), False, np.int64(0), np.int64(-1)
        stage = EXPIRE
        while True:
            base, size = state[g]["base"], pasts[g]["size"]
            beyond = base + size  # the first position in the block
            if sweeping or i - b == block:  # --- the block joins the past
                if sweeping or (drop and size + i - b > max(least, min(16 * state[g]["kept"], 2 * state[g]["kept"] + block))):
                    past, front = sweep(
                        past, pasts, g, past_tally, front, fronts, front_tally, state, keys, ps, stamps, rows, serial,
                        b, i, tickets, ticketed, K, meaning, queries[0]["threshold"], free, mark_tally, drop,
                    )  # fmt: skip
                    for o in range(Q):
                        low = views[g * Q + o]["low"]
                        views[g * Q + o]["first"] = state[g]["base"] + first_valid(
                            past, pasts[g]["head"], pasts[g]["size"], low
                        )
                else:
                    past = append(past, pasts, g, past_tally, keys, ps, stamps, rows, serial, b, i, tickets)
                if ticketed:
                    for j in range(i - b):
                        tickets[j] = -1
                b, sweeping, ticketed = i, False, False
                continue
            if reading >= 0:  # --- an answer is read again
                o = reading
                view, lane = g * Q + o, g * Q + o
                head, many = fronts[g]["head"], fronts[g]["size"]
                if len(desk.at) < many:
                    desk = new_desk(2 * many, K)
                    said = desk.told
                walk(
                    front, head, many, views[view]["first"], queries[o]["k"], meaning, queries[o]["threshold"],
                    views[view]["guess"], SHARE, desk,
                )  # fmt: skip
                if not said[ENOUGH] and state[g]["level"] != -np.inf:  # the front is used up
                    soon = 4 * state[g]["since"] < size
                    state[g]["target"] = max(least, state[g]["target"] * 2 if soon else state[g]["target"] // 2)
                    sweeping = True
                    continue
                reading = -1
                passed = said[PASSED]
                views[view]["guess"] = said[VALID] - 2 if said[ENOUGH] else 0
                views[view]["floor"] = front[head + passed - 1]["key"] if said[ENOUGH] else -np.inf
                if timed:
                    oldest = NEVER - queries[o]["length"]
                    for j in range(passed):
                        if front[head + j]["mark"] >= views[view]["first"]:
                            oldest = min(oldest, front[head + j]["stamp"])
                    views[view]["due"] = oldest + queries[o]["length"]
                if quiet and stage != CLOSE:
                    continue
                n = said[FOUND]
                if n > len(found):
                    found, fresh = np.empty(2 * n, answers.dtype), np.empty(2 * n, np.bool_)
                if tally[1] + n + lanes[lane]["size"] > len(out):
                    out = reserve(out, tally, n + lanes[lane]["size"])
                if n > lanes[lane]["room"]:
                    answers = make_room(answers, lanes, lane, answer_tally, n)
                if mark_tally[0] - mark_tally[1] + n > len(marks):
                    marks, free = more_marks(marks, free, mark_tally, n)
                ticketed |= tell(
                    past, pasts[g]["head"] - base, beyond, tickets, front, head, desk, n, answers, lanes, lane, found,
                    fresh, marks, free, mark_tally, out, tally, v, o, queries[o]["bit"], instant, row, meaning,
                )  # fmt: skip
                continue
            if stage == EXPIRE:  # --- each query lets go of what has expired
                now = nows[i] if i < end else last
                if q < Q:
                    view, length = g * Q + q, queries[q]["length"]
                    first = views[view]["first"]
                    if first == beyond + i - b:
                        q += 1
                        continue
                    inside = first < beyond
                    stamp = past[pasts[g]["head"] + first - base]["stamp"] if inside else stamps[b + first - beyond]
                    if stamp + length > now:
                        q += 1
                        continue
                    state[g]["now"] = max(state[g]["now"], stamp + length)
                    hit = False
                    while first < beyond + i - b:
                        inside = first < beyond
                        if inside:
                            at = pasts[g]["head"] + first - base
                            other, key = past[at]["stamp"], past[at]["key"]
                        else:
                            other, key = stamps[b + first - beyond], keys[b + first - beyond]
                        if other != stamp:
                            break
                        hit |= key >= views[view]["floor"]
                        first += 1
                    views[view]["first"], views[view]["low"] = first, stamp
                    if hit and not quiet:
                        if not timed and stamp + length == now and i < end:
                            affected[q] = True  # count windows: one step with the arrival
                        else:
                            reading, instant, row = q, stamp + length, -1
                    continue
                state[g]["now"] = max(state[g]["now"], now)
                while pasts[g]["size"] and state[g]["base"] < views[g * Q + widest]["first"]:
                    at = pasts[g]["head"]
                    if past[at]["key"] >= state[g]["level"]:
                        take_out(front, fronts, g, past[at]["key"], state[g]["base"])
                    forget(past[at]["mark"], free, mark_tally)
                    pasts[g]["head"] += 1
                    pasts[g]["size"] -= 1
                    state[g]["base"] += 1
                stage = ARRIVE if i < end else CLOSE
                a = 0
                continue
            if stage == ARRIVE:
                newest = state[g]["newest"]
                if stamps[i] < newest:  # --- late: it goes to its place in time
                    if i > b:
                        past = append(past, pasts, g, past_tally, keys, ps, stamps, rows, serial, b, i, tickets)
                        if ticketed:
                            for j in range(i - b):
                                tickets[j] = -1
                        b, ticketed = i, False
                        continue
                    past, front = slip_in(
                        past, pasts, g, past_tally, front, fronts, front_tally, state, views, Q, queries,
                        keys[i], ps[i], stamps[i], serial + rows[i], affected,
                    )  # fmt: skip
                    b = i + 1
                else:
                    state[g]["newest"] = stamps[i]
                    pos = beyond + i - b
                    for o in range(Q):  # the clock may have passed a shorter window already
                        if timed and stamps[i] + queries[o]["length"] <= nows[i]:
                            views[g * Q + o]["first"], views[g * Q + o]["low"] = pos + 1, stamps[i]
                        else:
                            affected[o] |= keys[i] >= views[g * Q + o]["floor"]
                    if keys[i] >= state[g]["level"]:
                        if is_full(fronts, g):
                            front = make_room(front, fronts, g, front_tally, np.int64(1))
                        put(front, fronts, g, keys[i], ps[i], pos, stamps[i], serial + rows[i])
                        if fronts[g]["size"] > 8 * state[g]["target"] + 16 * least:
                            cut(front, fronts, state, g, max(state[g]["target"], 2 * views[g * Q + widest]["guess"]))
                state[g]["since"] += 1
                i += 1
                stage, a = READ, 0
                continue
            if stage == READ:
                if quiet:
                    affected[:] = False
                while a < Q and not affected[a]:
                    a += 1
                if a < Q:
                    affected[a] = False
                    reading, instant, row = a, nows[i - 1], rows[i - 1]
                    continue
                stage, q = EXPIRE, 0
                # those who come now, are below the level and let nobody expire, change nothing
                due = NEVER
                for o in range(Q):
                    first = views[g * Q + o]["first"]
                    if first == beyond + i - b:
                        due = -NEVER
                    else:
                        inside = first < beyond
                        at = pasts[g]["head"] + first - base if inside else b + first - beyond
                        due = min(due, (past[at]["stamp"] if inside else stamps[at]) + queries[o]["length"])
                level, to = state[g]["level"], min(end, b + block)
                start, newest = i, state[g]["newest"]
                if timed:
                    while i < to and keys[i] < level and nows[i] < due and stamps[i] >= newest:
                        newest = stamps[i]
                        i += 1
                else:
                    while i < to and keys[i] < level and nows[i] < due:
                        i += 1
                    if i > start:
                        newest = stamps[i - 1]
                state[g]["newest"] = newest
                state[g]["since"] += i - start
                continue
            # --- the end of the visit
            if quiet and not more:
                if a < Q:
                    reading, instant, row = a, last, -1
                    a += 1
                    continue
            if drop and size + i - b > 4 * state[g]["kept"] + least:
                sweeping = True
                continue
            if i > b:
                past = append(past, pasts, g, past_tally, keys, ps, stamps, rows, serial, b, i, tickets)
                if ticketed:
                    for j in range(i - b):
                        tickets[j] = -1
                    ticketed = False
            state[g]["open"] = quiet and more
            state[g]["due"] = NEVER
            for o in range(Q):
                state[g]["due"] = min(state[g]["due"], views[g * Q + o]["due"])
            break
    return past, front, answers, marks, free, out


@part
def slip_in(
    past: Records,
    pasts: Records,
    g: int,
    tally: Ints,
    front: Records,
    fronts: Records,
    front_tally: Ints,
    state: Records,
    views: Records,
    Q: int,
    queries: Records,
    key: float,
    p: float,
    stamp: int,
    serial: int,
    affected: NDArray[np.bool_],
) -> tuple[Records, Records]:
    """A late tuple goes to its place in order of age; those who are newer move on by one."""
    run = pasts[g]
    if run["head"] + run["size"] == run["start"] + run["room"]:
        past = make_room(past, pasts, g, tally, np.int64(1))
    head, size = pasts[g]["head"], pasts[g]["size"]
    place = first_valid(past, head, size, stamp)  # behind those of the same time
    for j in range(head + size, head + place, -1):
        past[j] = past[j - 1]
    one = past[head + place]
    one["key"] = key
    one["p"] = p
    one["stamp"] = stamp
    one["serial"] = serial
    one["mark"] = -1
    pasts[g]["size"] = size + 1
    pos = state[g]["base"] + place
    for j in range(fronts[g]["head"], fronts[g]["head"] + fronts[g]["size"]):
        if front[j]["mark"] >= pos:
            front[j]["mark"] += 1
    for o in range(Q):
        view = views[g * Q + o]
        if stamp > state[g]["now"] - queries[o]["length"]:
            affected[o] |= key >= view["floor"]
            view["first"] = min(view["first"], pos)
        else:
            view["first"] += 1
            view["low"] = max(view["low"], stamp)
    if key >= state[g]["level"]:
        if is_full(fronts, g):
            front = make_room(front, fronts, g, front_tally, np.int64(1))
        put(front, fronts, g, key, p, pos, stamp, serial)
    return past, front
