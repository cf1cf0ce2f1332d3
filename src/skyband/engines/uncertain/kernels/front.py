"""The front of a window of uncertain tuples: its best ones in order of rank, all down to a level.

Tuples live in order of age (`past`); the front has copies of those at or above the level, and a sweep from the newest
to the oldest makes it anew. A sweep that drops forgets a tuple once the newer ones that rank above it are enough by
themselves: by self-maintenance that holds for good (papers/README.md, DOM).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.uncertain.kernels.prefix import ENOUGH, PASSED, SHARE, new_desk, walk
from skyband.kernels.compile import part, uncounted
from skyband.kernels.records import make_room

Records = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RUN = np.dtype([("start", "i8"), ("room", "i8"), ("head", "i8"), ("size", "i8")], align=True)
STATE = np.dtype(
    [
        ("base", "i8"),  # the position of the oldest kept tuple
        ("level", "f8"),  # all valid tuples with such a key or a better one are in the front; NaN: there is no front
        ("target", "i8"),  # how many a sweep leaves in the front
        ("since", "i8"),  # steps since the last sweep
        ("kept", "i8"),  # what the last sweep has left in the past
        ("newest", "i8"),  # the largest stamp
        ("now", "i8"),  # of the last step
        ("due", "i8"),  # time takes nothing from the answers before this instant
        ("open", "i8"),  # 1: within a batch that is to be reported later
    ],
    align=True,
)


@uncounted
def rank_of(front: Records, head: int, size: int, key: float, pos: int) -> int:
    """How many of the front rank above."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        one = front[head + middle]
        if one["key"] > key or (one["key"] == key and one["mark"] > pos):
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def is_full(fronts: Records, g: int) -> bool:
    """Is there no free place on one of the sides?"""
    run = fronts[g]
    return bool(run["head"] == run["start"] or run["head"] + run["size"] == run["start"] + run["room"])


@uncounted
def shift(records: Records, begin: int, to: int, size: int) -> None:
    if begin < to:
        for i in range(size - 1, -1, -1):
            records[to + i] = records[begin + i]
    else:
        for i in range(size):
            records[to + i] = records[begin + i]


@uncounted
def put(front: Records, fronts: Records, g: int, key: float, p: float, pos: int, stamp: int, serial: int) -> None:
    """One tuple more, at its rank; there are free places."""
    head, size = fronts[g]["head"], fronts[g]["size"]
    at = rank_of(front, head, size, key, pos)
    if 2 * at < size:
        fronts[g]["head"] = head - 1
        shift(front, head, head - 1, at)
        at += head - 1
    else:
        shift(front, head + at, head + at + 1, size - at)
        at += head
    fronts[g]["size"] = size + 1
    front[at]["key"] = key
    front[at]["p"] = p
    front[at]["mark"] = pos
    front[at]["stamp"] = stamp
    front[at]["serial"] = serial


@uncounted
def take_out(front: Records, fronts: Records, g: int, key: float, pos: int) -> None:
    """The tuple has left the longest window."""
    head, size = fronts[g]["head"], fronts[g]["size"]
    at = rank_of(front, head, size, key, pos)
    if at == size or front[head + at]["mark"] != pos:
        return
    if 2 * at < size:
        fronts[g]["head"] = head + 1
        shift(front, head, head + 1, at)
    else:
        shift(front, head + at + 1, head + at, size - at - 1)
    fronts[g]["size"] = size - 1


@uncounted
def cut(front: Records, fronts: Records, state: Records, g: int, size: int) -> None:
    """About so many stay in the front; equal keys stay together."""
    head, had = fronts[g]["head"], fronts[g]["size"]
    while 0 < size < had and front[head + size - 1]["key"] == front[head + size]["key"]:
        size += 1
    if 0 < size < had:
        fronts[g]["size"] = size
        state[g]["level"] = front[head + size - 1]["key"]


@uncounted
def forget(ticket: int, free: Ints, tally: Ints) -> None:
    """A row of marks is free again."""
    if ticket >= 0:
        free[tally[1]] = ticket
        tally[1] += 1


@uncounted
def let_go(
    past: Records,
    pasts: Records,
    g: int,
    front: Records,
    fronts: Records,
    state: Records,
    first: int,
    free: Ints,
    tally: Ints,
) -> None:
    """Who is older than the position has left the longest window, and is forgotten."""
    while pasts[g]["size"] and state[g]["base"] < first:
        one = past[pasts[g]["head"]]
        if one["key"] >= state[g]["level"]:
            take_out(front, fronts, g, one["key"], state[g]["base"])
        forget(one["mark"], free, tally)
        pasts[g]["head"] += 1
        pasts[g]["size"] -= 1
        state[g]["base"] += 1


@uncounted
def append(
    past: Records,
    pasts: Records,
    g: int,
    keys: Floats,
    ps: Floats,
    stamps: Ints,
    rows: Ints,
    serial: int,
    begin: int,
    end: int,
    tickets: Ints,
    ticketed: bool,
) -> None:
    """These arrivals become the newest of the past, all of them, with their tickets; there is room."""
    to = pasts[g]["head"] + pasts[g]["size"] - begin
    for i in range(begin, end):
        past[to + i]["key"] = keys[i]
        past[to + i]["p"] = ps[i]
        past[to + i]["stamp"] = stamps[i]
        past[to + i]["serial"] = serial + rows[i]
        past[to + i]["mark"] = tickets[i - begin] if ticketed else -1
    pasts[g]["size"] += end - begin
    if ticketed:
        for j in range(end - begin):
            tickets[j] = -1


@part
def sweep(
    past: Records,
    pasts: Records,
    g: int,
    tally: Ints,
    front: Records,
    fronts: Records,
    front_tally: Ints,
    state: Records,
    keys: Floats,
    ps: Floats,
    stamps: Ints,
    rows: Ints,
    serial: int,
    begin: int,
    end: int,
    tickets: Ints,
    ticketed: bool,
    k: int,
    meaning: int,
    threshold: float,
    free: Ints,
    mark_tally: Ints,
    drop: bool,
) -> tuple[Records, Records]:
    """Make the front anew, from the arrivals and the past behind them; what is dropped is gone, the rest is past."""
    fronts[g]["size"] = 0
    fronts[g]["head"] = fronts[g]["start"] + fronts[g]["room"] // 2
    size = pasts[g]["size"]
    head, last = pasts[g]["head"], state[g]["base"] + size + end - begin - 1
    to, kept, fresh = head + size, 0, 0
    recent = np.empty(64, np.int64)  # arrivals that stay
    desk = new_desk(0, k)
    floor, depth, waiting = np.nan, 0, 0  # nobody is below NaN
    state[g]["level"] = -np.inf
    i, at = end - 1, head + size - 1
    while True:
        if i >= begin:  # the arrivals, newest first; then the past. Those above are newer
            if ticketed:
                while i >= begin and keys[i] <= floor:
                    forget(tickets[i - begin], free, mark_tally)
                    i -= 1
            else:
                while i >= begin and keys[i] <= floor:
                    i -= 1
        if i >= begin:
            if fresh == len(recent):
                longer = np.empty(4 * fresh, np.int64)
                for j in range(fresh):
                    longer[j] = recent[j]
                recent = longer
            recent[fresh] = i
            fresh += 1
            key, p, stamp, which = keys[i], ps[i], stamps[i], serial + rows[i]
            i -= 1
        elif at >= head:
            key = past[at]["key"]
            if key <= floor:
                forget(past[at]["mark"], free, mark_tally)
                at -= 1
                continue
            to -= 1
            past[to] = past[at]
            p, stamp, which = past[to]["p"], past[to]["stamp"], past[to]["serial"]
            at -= 1
        else:
            break
        pos = last - kept
        kept += 1
        if key < state[g]["level"]:
            continue
        if is_full(fronts, g):
            front = make_room(front, fronts, g, front_tally, 1)
        put(front, fronts, g, key, p, pos, stamp, which)
        waiting += 1
        many = fronts[g]["size"]
        if drop and 4 * waiting >= many and waiting >= 4:
            if len(desk.at) < many or len(desk.r) < min(k, many + 1):
                desk = new_desk(2 * many, k)
            walk(front, fronts[g]["head"], many, -1, k, meaning, threshold, depth - depth // 4, SHARE, desk)
            waiting = 0
            if desk.told[ENOUGH]:
                depth = desk.told[PASSED]
                floor = front[fronts[g]["head"] + depth - 1]["key"]
        if many > 2 * max(state[g]["target"], depth) and (depth > 0 or not drop):
            cut(front, fronts, state, g, max(state[g]["target"], depth))
    for j in range(to, head + size):  # the past that stays moves up to its head
        past[head + j - to] = past[j]
    pasts[g]["size"] = head + size - to
    run = pasts[g]
    if run["head"] + run["size"] + fresh > run["start"] + run["room"]:
        past = make_room(past, pasts, g, tally, fresh)
    to = pasts[g]["head"] + pasts[g]["size"]
    for j in range(fresh - 1, -1, -1):
        i = recent[j]
        past[to]["key"] = keys[i]
        past[to]["p"] = ps[i]
        past[to]["stamp"] = stamps[i]
        past[to]["serial"] = serial + rows[i]
        past[to]["mark"] = tickets[i - begin]
        to += 1
    pasts[g]["size"] += fresh
    state[g]["base"] = last - kept + 1
    state[g]["since"] = 0
    state[g]["kept"] = kept
    if ticketed:
        for j in range(end - begin):
            tickets[j] = -1
    return past, front
