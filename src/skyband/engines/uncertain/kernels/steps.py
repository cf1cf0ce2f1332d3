"""The steps of windows of uncertain tuples: who expires, who arrives, whose answer is read again, and what is told.

An arrival below the level of the front, and an expiry below the prefix that an answer was read from, change nothing: a
comparison each. Otherwise the answer is read again (prefixes.py) and held against what was told. Arrivals stay in the
batch's own arrays until a block of them is full; then they join the past, swept if the engine drops (fronts.py).

`advance` does the steps and makes no arrays: when it needs room it says so, and `take_groups` calls it again. So no
references are counted on the way (at 5 ns each, 70 a step, they were half of the time).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.uncertain.kernels.front import append, cut, is_full, let_go, put, shift, sweep
from skyband.engines.uncertain.kernels.marks import more_marks, tell
from skyband.engines.uncertain.kernels.prefix import ENOUGH, FOUND, PASSED, SHARE, VALID, Desk, new_desk, walk
from skyband.kernels.compile import kernel, uncounted
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
NEVER = np.iinfo(np.int64).max
EXPIRE, ARRIVE, READ, CLOSE = 0, 1, 2, 3  # what the loop does next
PASTS, FRONTS, ANSWERS, MARKS, CHANGES = 0, 1, 2, 3, 4  # rows of the tallies
DONE, SWEEP, PAST_ROOM, FRONT_ROOM, ANSWER_ROOM, MARK_ROOM, CHANGE_ROOM, DESK_ROOM = 0, 1, 2, 3, 4, 5, 6, 7  # needs
# where a loop is: visit, arrival, first arrival of the block, query that expires, query that reads, and so on
VISITING, ARRIVING, BLOCK, EXPIRING, ASKING, READING, STAGE, INSTANT, ROW, TICKETED, NEED, STARTED = range(12)
PLACES = 12


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
def slip_in(
    past: Records,
    pasts: Records,
    g: int,
    front: Records,
    fronts: Records,
    state: Records,
    views: Records,
    queries: Records,
    key: float,
    p: float,
    stamp: int,
    serial: int,
    affected: NDArray[np.bool_],
) -> None:
    """A late tuple goes to its place in order of age; those who are newer move on by one. There is room."""
    head, size, Q = pasts[g]["head"], pasts[g]["size"], len(queries)
    place = first_valid(past, head, size, stamp)  # behind those of the same time
    shift(past, head + place, head + place + 1, size - place)
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
        put(front, fronts, g, key, p, pos, stamp, serial)


@uncounted
def advance(
    past: Records,
    pasts: Records,
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
    net: bool,
    more: bool,
    drop: bool,
    meaning: int,
    block: int,
    least: int,
    out: Records,
    tickets: Ints,
    affected: NDArray[np.bool_],
    desk: Desk,
    loop: Ints,
    K: int,
    widest: int,
    mark_tally: Ints,
    tally: Ints,
) -> int:
    """Steps, until all are done or something is needed that is not there."""
    Q, said = len(queries), desk.told
    v, i, b, q, a = loop[VISITING], loop[ARRIVING], loop[BLOCK], loop[EXPIRING], loop[ASKING]
    reading, stage, instant, row = loop[READING], loop[STAGE], loop[INSTANT], loop[ROW]
    ticketed, need = loop[TICKETED] != 0, DONE
    while v < len(visits):
        g, end, last = visits[v]["group"], visits[v]["end"], visits[v]["last"]
        if not loop[STARTED]:
            i = b = visits[v]["begin"]
            q, a, reading, stage, loop[STARTED] = 0, 0, -1, EXPIRE, 1
        base, size = state[g]["base"], pasts[g]["size"]
        beyond = base + size  # the first position in the block
        free_places = pasts[g]["start"] + pasts[g]["room"] - pasts[g]["head"] - size
        if i - b == block:  # --- the block joins the past
            if drop and size + i - b > max(least, min(16 * state[g]["kept"], 2 * state[g]["kept"] + block)):
                need = SWEEP
                break
            if free_places < i - b:
                need, loop[NEED] = PAST_ROOM, i - b
                break
            append(past, pasts, g, keys, ps, stamps, rows, serial, b, i, tickets, ticketed)
            b, ticketed = i, False
            continue
        if reading >= 0:  # --- an answer is read again
            view = views[g * Q + reading]
            asked = queries[reading]
            head, many = fronts[g]["head"], fronts[g]["size"]
            if len(desk.at) < many:
                need, loop[NEED] = DESK_ROOM, 2 * many
                break
            k, guess = asked["k"], view["guess"]
            walk(front, head, many, view["first"], k, meaning, asked["threshold"], guess, SHARE, desk)
            if not said[ENOUGH] and state[g]["level"] != -np.inf:  # the front is used up
                soon = 4 * state[g]["since"] < size
                state[g]["target"] = max(least, state[g]["target"] * 2 if soon else state[g]["target"] // 2)
                need = SWEEP
                break
            passed, found, lane = said[PASSED], said[FOUND], g * Q + reading
            view["guess"] = said[VALID] - 1 if said[ENOUGH] else 0
            view["floor"] = front[head + passed - 1]["key"] if said[ENOUGH] else -np.inf
            if timed:
                oldest = NEVER - asked["length"]
                for j in range(passed):
                    if front[head + j]["mark"] >= view["first"]:
                        oldest = min(oldest, front[head + j]["stamp"])
                view["due"] = oldest + asked["length"]
            if not net or stage == CLOSE:
                if tally[1] + found + lanes[lane]["size"] > len(out):
                    need, loop[NEED] = CHANGE_ROOM, found + lanes[lane]["size"]
                    break
                if found > lanes[lane]["room"]:
                    need, loop[NEED] = ANSWER_ROOM, found
                    break
                if mark_tally[0] - mark_tally[1] + found > len(marks):
                    need, loop[NEED] = MARK_ROOM, found
                    break
                ticketed |= tell(
                    past, pasts[g]["head"] - base, beyond, tickets, front, head, desk, answers, lanes, lane, marks,
                    free, mark_tally, out, tally, v, reading, asked["bit"], instant, row, meaning,
                )  # fmt: skip
            reading = -1
        if stage == EXPIRE:  # --- each query lets go of what has expired
            now, to = nows[i] if i < end else last, pasts[g]["head"] - base
            while q < Q and reading < 0:
                view, length = views[g * Q + q], queries[q]["length"]
                first = view["first"]
                if first == beyond + i - b:
                    q += 1
                    continue
                stamp = past[to + first]["stamp"] if first < beyond else stamps[b + first - beyond]
                if stamp + length > now:
                    q += 1
                    continue
                state[g]["now"] = max(state[g]["now"], stamp + length)
                hit = False
                while first < beyond + i - b:
                    at = b + first - beyond
                    if (past[to + first]["stamp"] if first < beyond else stamps[at]) != stamp:
                        break
                    hit |= (past[to + first]["key"] if first < beyond else keys[at]) >= view["floor"]
                    first += 1
                view["first"], view["low"] = first, stamp
                if hit and not net:
                    if not timed and stamp + length == now and i < end:
                        affected[q] = True  # count windows: one step with the arrival
                    else:
                        reading, instant, row = q, stamp + length, -1
            if reading >= 0:
                continue
            state[g]["now"] = max(state[g]["now"], now)
            let_go(past, pasts, g, front, fronts, state, views[g * Q + widest]["first"], free, mark_tally)
            stage = ARRIVE if i < end else CLOSE
            a = 0
        if stage == ARRIVE:
            late = stamps[i] < state[g]["newest"]  # --- it goes to its place in time
            if free_places < i - b + late:
                need, loop[NEED] = PAST_ROOM, i - b + 1
                break
            if is_full(fronts, g):
                need = FRONT_ROOM
                break
            if late and i > b:
                append(past, pasts, g, keys, ps, stamps, rows, serial, b, i, tickets, ticketed)
                b, ticketed = i, False
                continue
            key, pos = keys[i], beyond + i - b
            if late:
                slip_in(
                    past,
                    pasts,
                    g,
                    front,
                    fronts,
                    state,
                    views,
                    queries,
                    key,
                    ps[i],
                    stamps[i],
                    serial + rows[i],
                    affected,
                )
                b = i + 1
            else:
                state[g]["newest"] = stamps[i]
                for o in range(Q):  # the clock may have passed a shorter window already
                    view = views[g * Q + o]
                    if timed and stamps[i] + queries[o]["length"] <= nows[i]:
                        view["first"], view["low"] = pos + 1, stamps[i]
                    else:
                        affected[o] |= key >= view["floor"]
                if key >= state[g]["level"]:
                    put(front, fronts, g, key, ps[i], pos, stamps[i], serial + rows[i])
                    if fronts[g]["size"] > 8 * state[g]["target"] + 16 * least:
                        cut(front, fronts, state, g, max(state[g]["target"], 2 * views[g * Q + widest]["guess"]))
            state[g]["since"] += 1
            i += 1
            stage, a = READ, 0
        if stage == READ:
            while a < Q and (net or not affected[a]):
                affected[a] = False
                a += 1
            if a < Q:
                affected[a] = False
                reading, instant, row = a, nows[i - 1], rows[i - 1]
                continue
            # those who come now, are below the level and let nobody expire, change nothing
            due, level, to, base = NEVER, state[g]["level"], min(end, b + block), state[g]["base"]
            for o in range(Q):
                first = views[g * Q + o]["first"]
                if first == beyond + i - b:
                    due = -NEVER
                elif first < beyond:
                    due = min(due, past[pasts[g]["head"] + first - base]["stamp"] + queries[o]["length"])
                else:
                    due = min(due, stamps[b + first - beyond] + queries[o]["length"])
            start, newest = i, state[g]["newest"]
            while i < to and keys[i] < level and nows[i] < due and stamps[i] >= newest:
                newest = stamps[i]
                i += 1
            state[g]["newest"] = newest
            state[g]["since"] += i - start
            stage, q = EXPIRE, 0
        elif net and not more and a < Q:  # --- the end of the visit
            reading, instant, row = a, last, -1
            a += 1
        elif drop and pasts[g]["size"] + i - b > 4 * state[g]["kept"] + least:
            need = SWEEP
            break
        elif i > b:
            if free_places < i - b:
                need, loop[NEED] = PAST_ROOM, i - b
                break
            append(past, pasts, g, keys, ps, stamps, rows, serial, b, i, tickets, ticketed)
            b, ticketed = i, False
        else:
            let_go(past, pasts, g, front, fronts, state, views[g * Q + widest]["first"], free, mark_tally)
            state[g]["open"] = net and more
            state[g]["due"] = NEVER
            for o in range(Q):
                state[g]["due"] = min(state[g]["due"], views[g * Q + o]["due"])
            v += 1
            loop[STARTED] = 0
    loop[VISITING], loop[ARRIVING], loop[BLOCK], loop[EXPIRING], loop[ASKING] = v, i, b, q, a
    loop[READING], loop[STAGE], loop[INSTANT], loop[ROW], loop[TICKETED] = reading, stage, instant, row, ticketed
    return need


@kernel
def take_groups(
    past: Records,  # with one run each of past, front, and answers by query
    pasts: Records,
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
    net: bool,
    more: bool,
    drop: bool,
    meaning: int,
    block: int,
    least: int,  # tuples in a front, and in a past before it is swept
    out: Records,
) -> tuple[Records, Records, Records, NDArray[np.uint64], Ints, Records]:
    past_tally, front_tally, answer_tally = tallies[PASTS], tallies[FRONTS], tallies[ANSWERS]
    mark_tally, tally = tallies[MARKS], tallies[CHANGES]
    Q = len(queries)
    widest, K = 0, queries[0]["k"]
    for q in range(Q):
        K = max(K, queries[q]["k"])
        if queries[q]["length"] > queries[widest]["length"]:
            widest = q
    affected = np.zeros(Q, np.bool_)
    tickets = np.full(min(block, len(keys)), -1, np.int64)  # of the arrivals of a block
    desk = new_desk(64, K)
    loop = np.zeros(PLACES, np.int64)
    while True:
        need = advance(
            past, pasts, front, fronts, answers, lanes, state, views, queries, marks, free, tallies, keys, ps, stamps,
            nows, rows, visits, serial, timed, net, more, drop, meaning, block, least, out, tickets, affected, desk,
            loop, K, widest, mark_tally, tally,
        )  # fmt: skip
        if need == DONE:
            return past, front, answers, marks, free, out
        g = visits[loop[VISITING]]["group"]
        if need == SWEEP:
            past, front = sweep(
                past, pasts, g, past_tally, front, fronts, front_tally, state, keys, ps, stamps, rows, serial,
                loop[BLOCK], loop[ARRIVING], tickets, loop[TICKETED] != 0, K, meaning, queries[0]["threshold"], free,
                mark_tally, drop,
            )  # fmt: skip
            for o in range(Q):
                view = views[g * Q + o]
                gone = first_valid(past, pasts[g]["head"], pasts[g]["size"], view["low"])
                view["first"] = state[g]["base"] + gone
            loop[BLOCK], loop[TICKETED] = loop[ARRIVING], 0
        elif need == PAST_ROOM:
            past = make_room(past, pasts, g, past_tally, loop[NEED])
        elif need == FRONT_ROOM:
            front = make_room(front, fronts, g, front_tally, 1)
        elif need == ANSWER_ROOM:
            answers = make_room(answers, lanes, g * Q + loop[READING], answer_tally, loop[NEED])
        elif need == MARK_ROOM:
            marks, free = more_marks(marks, free, mark_tally, loop[NEED])
        elif need == CHANGE_ROOM:
            out = reserve(out, tally, loop[NEED])
        else:
            desk = new_desk(loop[NEED], K)
