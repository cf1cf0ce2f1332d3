"""What is told of uncertain answers: who leaves, who enters, and who has entered before.

An object that was told of has a ticket, its row of marks: a bit for each query (u-kranks: for each rank of each query).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.uncertain.kernels.prefix import FOUND, UK, Desk
from skyband.kernels.compile import kernel, part, uncounted

Records = NDArray[Any]
Ints = NDArray[np.int64]

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


@uncounted
def write(
    out: Records,
    tally: Ints,
    one: Records,
    chance: float,
    rank: int,
    v: int,
    q: int,
    instant: int,
    row: int,
    diff: int,
    first: bool,
) -> None:
    n = tally[1]
    to = out[n]
    to["key"] = one["key"]
    to["probability"] = chance
    to["stamp"] = one["stamp"]
    to["serial"] = one["serial"]
    to["instant"] = instant
    to["row"] = row
    to["visit"] = v
    to["rank"] = rank
    to["query"] = q
    to["diff"] = diff
    to["first"] = first
    tally[0] += row < 0
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
def ticket_for(marks: Records, free: Ints, tally: Ints) -> Any:
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
def order_of(old: Records, new: Records, rank: int, meaning: int) -> int:
    """Of two answers in order: 0 if they are one, else whether the old (-1), the new (1) or both (2) come first."""
    same = old["serial"] == new["serial"]
    if meaning == UK:
        if old["mark"] != rank:
            return -1 if old["mark"] < rank else 1
        return 0 if same else 2
    if same:
        return 0
    if old["key"] != new["key"]:
        return -1 if old["key"] > new["key"] else 1
    if old["stamp"] != new["stamp"]:
        return -1 if old["stamp"] > new["stamp"] else 1
    return -1 if old["serial"] > new["serial"] else 1


@uncounted
def tell(
    past: Records,
    to_place: int,  # from positions to places in the past
    beyond: int,  # the first position in the block
    tickets: Ints,
    front: Records,
    head: int,
    desk: Desk,
    answers: Records,
    lanes: Records,
    lane: int,
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
    n, ticketed, old, was = desk.told[FOUND], False, lanes[lane]["size"], lanes[lane]["head"]
    at, j = 0, 0
    while j < n and n == old and answers[was + j]["serial"] == front[head + desk.at[j]]["serial"]:
        if answers[was + j]["mark"] != desk.rank[j]:
            break
        j += 1
    if n == old and j == n:  # the same answer: only its probabilities have moved
        for j in range(n):
            answers[was + j]["p"] = desk.chance[j]
        return False
    j = 0
    while at < old or j < n:
        which = 1
        if j == n:
            which = -1
        elif at < old:
            which = order_of(answers[was + at], front[head + desk.at[j]], desk.rank[j], meaning)
        if which == -1 or which == 2:
            one = answers[was + at]
            write(out, tally, one, one["p"], one["mark"], v, q, instant, row, -1, False)
        if which != -1:
            desk.who[j] = which != 0  # is it new
            j += 1
        if which != 1:
            at += 1
    for j in range(n):
        if desk.who[j]:
            one = front[head + desk.at[j]]
            pos, rank = one["mark"], desk.rank[j]
            ticket = past[to_place + pos]["mark"] if pos < beyond else tickets[pos - beyond]
            if ticket < 0:
                ticket = ticket_for(marks, free, mark_tally)
                if pos < beyond:
                    past[to_place + pos]["mark"] = ticket
                else:
                    tickets[pos - beyond] = ticket
                    ticketed = True
            bit = bits + max(rank - 1, 0)
            mark = np.uint64(1) << np.uint64(bit % 64)
            new = marks[ticket, bit // 64] & mark == 0
            write(out, tally, one, desk.chance[j], rank, v, q, instant, row, 1, new)
            marks[ticket, bit // 64] |= mark
    start = lanes[lane]["start"]
    lanes[lane]["head"], lanes[lane]["size"] = start, n
    for j in range(n):
        answers[start + j] = front[head + desk.at[j]]
        answers[start + j]["p"] = desk.chance[j]
        answers[start + j]["mark"] = desk.rank[j]
    return ticketed


@kernel
def columns_of(
    told: Records,
    probability: Records,
    stamp: Ints,
    serial: Ints,
    instant: Ints,
    row: Ints,
    key: Records,
    rank: Ints,
    diff: NDArray[np.int8],
    first: NDArray[np.bool_],
) -> None:
    """The fields of changes as columns, in one pass: each pass brings all of them from memory."""
    for i in range(len(told)):
        one = told[i]
        key[i] = one["key"]
        probability[i] = one["probability"]
        stamp[i] = one["stamp"]
        serial[i] = one["serial"]
        instant[i] = one["instant"]
        row[i] = one["row"]
        rank[i] = one["rank"]
        diff[i] = one["diff"]
        first[i] = one["first"] != 0
