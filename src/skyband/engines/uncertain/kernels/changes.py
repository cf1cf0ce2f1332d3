"""Changes of uncertain answers: what leaves, what enters, and whether it has entered before."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.uncertain.kernels.prefix import FOUND, UK
from skyband.engines.uncertain.kernels.records import Floats, Ints, Kept, Records, Reported, Step, Walk
from skyband.kernels.compile import kernel, part, uncounted


@uncounted
def write(
    reported: Reported, records: Records, i: int, chance: float, rank: int, step: Step, diff: int, first: bool
) -> None:
    """One change more, of record i; there is capacity."""
    n = reported.written[1]
    to, one = reported.changes[n], records[i]
    to["key"] = one["key"]
    to["probability"] = chance
    to["stamp"] = one["stamp"]
    to["serial"] = one["serial"]
    to["instant"] = step.instant
    to["row"] = step.row
    to["visit"] = step.visit
    to["rank"] = rank
    to["query"] = step.query
    to["diff"] = diff
    to["first"] = first
    reported.written[0] += step.row < 0
    reported.written[1] = n + 1


@part
def more_slots(reported: Reported, n: int) -> Reported:
    """Capacity for n slots more."""
    old = reported.entered
    entered = np.zeros((2 * len(old) + n + 64, old.shape[1]), np.uint64)
    for i in range(len(old)):
        for j in range(old.shape[1]):
            entered[i, j] = old[i, j]
    free = np.empty(len(entered), np.int64)
    for i in range(reported.slots[1]):
        free[i] = reported.free[i]
    return Reported(reported.answers, entered, free, reported.slots, reported.changes, reported.written)


@uncounted
def new_slot(reported: Reported) -> Any:
    """A slot without bits; there is one."""
    slots = reported.slots
    if slots[1]:
        slots[1] -= 1
        slot = reported.free[slots[1]]
    else:
        slot = slots[0]
        slots[0] += 1
    for j in range(reported.entered.shape[1]):
        reported.entered[slot, j] = 0
    return slot


@uncounted
def order_of(answers: Records, i: int, records: Records, j: int, rank: int, semantics: int) -> int:
    """Of two answers in order: 0 if they are one, else whether the old (-1), the new (1) or both (2) come first."""
    same = answers[i]["serial"] == records[j]["serial"]
    if semantics == UK:
        if answers[i]["mark"] != rank:
            return -1 if answers[i]["mark"] < rank else 1
        return 0 if same else 2
    if same:
        return 0
    if answers[i]["key"] != records[j]["key"]:
        return -1 if answers[i]["key"] > records[j]["key"] else 1
    if answers[i]["stamp"] != records[j]["stamp"]:
        return -1 if answers[i]["stamp"] > records[j]["stamp"] else 1
    return -1 if answers[i]["serial"] > records[j]["serial"] else 1


@uncounted
def report(
    kept: Kept, reported: Reported, found: Walk, slots: Ints, g: int, a: int, step: Step, bit: int, semantics: int
) -> bool:
    """Report how the answer that a walk has found differs from the last one; did an arrival of the block get a slot?

    a: the run of the answer; bit: the first one of the query.
    """
    front, head = kept.front.records, kept.front.runs[g]["head"]
    run, answers, n = reported.answers.runs[a], reported.answers.records, found.result[FOUND]
    old, was, j = run["size"], run["head"], 0
    while j < n and n == old and answers[was + j]["serial"] == front[head + found.at[j]]["serial"]:
        if answers[was + j]["mark"] != found.rank[j]:
            break
        j += 1
    if n == old and j == n:  # the same answer: only its probabilities have moved
        for j in range(n):
            answers[was + j]["p"] = found.chance[j]
        return False
    at, j = 0, 0
    while at < old or j < n:
        order = 1
        if j == n:
            order = -1
        elif at < old:
            order = order_of(answers, was + at, front, head + found.at[j], found.rank[j], semantics)
        if order == -1 or order == 2:
            i = was + at
            write(reported, answers, i, answers[i]["p"], answers[i]["mark"], step, -1, False)
        if order != -1:
            found.chosen[j] = order != 0  # does it enter
            j += 1
        if order != 1:
            at += 1
    slotted = False
    beyond = kept.groups[g]["base"] + kept.window.runs[g]["size"]  # the first position in the block
    tuples, to = kept.window.records, kept.window.runs[g]["head"] - kept.groups[g]["base"]
    for j in range(n):
        if found.chosen[j]:
            pos, rank = front[head + found.at[j]]["mark"], found.rank[j]
            slot = tuples[to + pos]["mark"] if pos < beyond else slots[pos - beyond]
            if slot < 0:
                slot = new_slot(reported)
                if pos < beyond:
                    tuples[to + pos]["mark"] = slot
                else:
                    slots[pos - beyond] = slot
                    slotted = True
            place = bit + max(rank - 1, 0)
            mask = np.uint64(1) << np.uint64(place % 64)
            first = reported.entered[slot, place // 64] & mask == 0
            write(reported, front, head + found.at[j], found.chance[j], rank, step, 1, first)
            reported.entered[slot, place // 64] |= mask
    run["head"], run["size"] = run["start"], n
    for j in range(n):
        one = answers[run["start"] + j]
        answers[run["start"] + j] = front[head + found.at[j]]
        one["p"] = found.chance[j]
        one["mark"] = found.rank[j]
    return slotted


class Columns(NamedTuple):
    """The fields of changes."""

    stamp: Ints
    serial: Ints
    instant: Ints
    row: Ints
    rank: Ints
    key: Floats
    probability: Floats
    diff: NDArray[np.int8]
    first: NDArray[np.bool_]


@kernel
def write_columns(changes: Records, to: Columns) -> None:
    """Changes as columns, in one pass: each pass would bring all of them from memory."""
    stamp, serial, instant, row, rank, key, probability, diff, first = to
    for i in range(len(changes)):
        one = changes[i]
        key[i] = one["key"]
        probability[i] = one["probability"]
        stamp[i] = one["stamp"]
        serial[i] = one["serial"]
        instant[i] = one["instant"]
        row[i] = one["row"]
        rank[i] = one["rank"]
        diff[i] = one["diff"]
        first[i] = one["first"] != 0
