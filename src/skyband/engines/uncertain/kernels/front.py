"""The front of a window of uncertain tuples: its best ones in order of rank, complete down to a level.

A window has its tuples in order of age; the front has copies of those at or above the level, and a sweep from the
newest to the oldest rebuilds it. A sweep that drops removes a tuple once the newer ones that rank above it are enough
by themselves: by self-maintenance that holds from then on (papers/README.md, DOM).
"""

from __future__ import annotations

import numpy as np

from skyband.engines.uncertain.kernels.exclusive import walk_any
from skyband.engines.uncertain.kernels.prefix import ENOUGH, PASSED, SHARE
from skyband.engines.uncertain.kernels.records import (
    Arena,
    Batch,
    Ints,
    Kept,
    Records,
    Reported,
    Rules,
    Work,
    shift,
    write_tuple,
)
from skyband.kernels.compile import close, uncounted


@uncounted
def rank_of(front: Arena, r: int, key: float, pos: int) -> int:
    """How many tuples of the front rank above this one."""
    head = front.runs[r]["head"]
    low, high = 0, front.runs[r]["size"]
    while low < high:
        middle = (low + high) // 2
        one = front.records[head + middle]
        if one["key"] > key or (one["key"] == key and one["mark"] > pos):
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def is_full(front: Arena, r: int) -> bool:
    """Is there no free place on one of the sides?"""
    run = front.runs[r]
    return bool(run["head"] == run["start"] or run["head"] + run["size"] == run["start"] + run["room"])


@uncounted
def put(front: Arena, r: int, fresh: Records) -> None:
    """Insert fresh[0] at its rank; there are free places."""
    run, records = front.runs[r], front.records
    head, size = run["head"], run["size"]
    at = rank_of(front, r, fresh[0]["key"], fresh[0]["mark"])
    if 2 * at < size:
        run["head"] = head - 1
        shift(records, head, head - 1, at)
        at += head - 1
    else:
        shift(records, head + at, head + at + 1, size - at)
        at += head
    run["size"] = size + 1
    records[at] = fresh[0]


@uncounted
def take_out(front: Arena, r: int, key: float, pos: int) -> None:
    """Remove a tuple that has left the longest window."""
    run = front.runs[r]
    head, size = run["head"], run["size"]
    at = rank_of(front, r, key, pos)
    if at == size or front.records[head + at]["mark"] != pos:
        return
    if 2 * at < size:
        run["head"] = head + 1
        shift(front.records, head, head + 1, at)
    else:
        shift(front.records, head + at + 1, head + at, size - at - 1)
    run["size"] = size - 1


@uncounted
def cut(front: Arena, r: int, size: int, group: Records) -> None:
    """Leave about `size` tuples in the front; equal keys stay together."""
    head, had = front.runs[r]["head"], front.runs[r]["size"]
    while 0 < size < had and front.records[head + size - 1]["key"] == front.records[head + size]["key"]:
        size += 1
    if 0 < size < had:
        front.runs[r]["size"] = size
        group["level"] = front.records[head + size - 1]["key"]


@close
def free_slot(slot: int, reported: Reported) -> None:
    """The slot of a tuple that is dropped, if it has one, can be used again."""
    if slot >= 0:
        reported.free[reported.slots[1]] = slot
        reported.slots[1] += 1


@close
def let_go(kept: Kept, reported: Reported, g: int, first: int) -> None:
    """Remove the tuples before this position: they have left the longest window."""
    run, group, front = kept.window.runs[g], kept.groups[g], kept.front
    while run["size"] and group["base"] < first:
        one = kept.window.records[run["head"]]
        if one["key"] >= group["level"]:
            take_out(front, g, one["key"], group["base"])
        free_slot(one["mark"], reported)
        run["head"] += 1
        run["size"] -= 1
        group["base"] += 1


@uncounted
def append(kept: Kept, batch: Batch, g: int, begin: int, end: int, slots: Ints, slotted: bool) -> None:
    """All of these arrivals become the newest tuples of the window, with their slots; there are free places."""
    run = kept.window.runs[g]
    to = run["head"] + run["size"] - begin
    for i in range(begin, end):
        write_tuple(kept.window.records, to + i, batch, i, slots[i - begin] if slotted else -1)
    run["size"] += end - begin
    if slotted:
        for j in range(end - begin):
            slots[j] = -1


@uncounted
def sweep(kept: Kept, reported: Reported, batch: Batch, rules: Rules, work: Work, loop: Records, g: int) -> None:
    """Rebuild the front in `work.front`, from a block of arrivals and the window behind it, newest first.

    Tuples that are dropped leave the window; the arrivals that stay are listed in `work.staying`, the newest first.
    """
    group, run, at, fresh = kept.groups[g], kept.window.runs[g], loop[0], work.fresh
    tuples, keys, slots, staying, front = kept.window.records, batch.keys, work.slots, work.staying, work.front
    ranked = front.runs[0]
    ranked["size"] = 0
    ranked["head"] = len(front.records) // 2
    begin, i, slotted = at["block"], at["arrival"] - 1, at["slotted"] != 0
    head, size = run["head"], run["size"]
    old, to, last = head + size - 1, head + size, group["base"] + size + i - begin
    count, new = 0, 0
    floor, depth, waiting = np.nan, 0, 0  # no key is below NaN
    most, work.walk.most[0] = 0.0, 1.0  # what is dropped is not needed whatever comes
    group["level"] = -np.inf
    while True:
        if slotted:  # the arrivals first, then the window; tuples above the floor are newer
            while i >= begin and keys[i] <= floor:
                free_slot(slots[i - begin], reported)
                i -= 1
        else:
            while i >= begin and keys[i] <= floor:
                i -= 1
        if i >= begin:
            staying[new] = i
            new += 1
            if keys[i] >= group["level"]:
                write_tuple(fresh, 0, batch, i, -1)
            key, p = keys[i], batch.probabilities[i]
            i -= 1
        elif old >= head:
            key = tuples[old]["key"]
            if key <= floor:
                free_slot(tuples[old]["mark"], reported)
                old -= 1
                continue
            to -= 1
            tuples[to] = tuples[old]
            p = tuples[to]["p"]
            if key >= group["level"]:
                fresh[0] = tuples[to]
            old -= 1
        else:
            break
        pos = last - count
        count += 1
        most = max(most, p)
        if key < group["level"]:
            continue
        fresh[0]["mark"] = pos
        put(front, 0, fresh)
        waiting += 1
        many = ranked["size"]
        if rules.drops and 4 * waiting >= many and waiting >= 4:
            threshold = rules.queries[0]["threshold"]
            walk_any(
                work.walk.rivals, True, front.records, ranked["head"], many, -1, rules.k, rules.semantics, threshold,
                depth - depth // 4, SHARE, work.walk,
            )  # fmt: skip
            waiting = 0
            if work.walk.result[ENOUGH]:
                depth = work.walk.result[PASSED]
                floor = front.records[ranked["head"] + depth - 1]["key"]
        if many > 2 * max(group["target"], depth) and (depth > 0 or not rules.drops):
            cut(front, 0, max(group["target"], depth), group)
    shift(tuples, to, head, head + size - to)
    run["size"] = head + size - to
    group["base"] = last - count + 1
    group["since"] = 0
    group["kept"] = count
    kept.most[g] = most
    at["staying"] = new


@uncounted
def settle(kept: Kept, batch: Batch, rules: Rules, work: Work, loop: Records, g: int) -> None:
    """After a sweep: its arrivals join the window, its front becomes the group's; there are free places."""
    group, run, at = kept.groups[g], kept.window.runs[g], loop[0]
    to = run["head"] + run["size"] + at["staying"] - 1
    for j in range(at["staying"]):
        i = work.staying[j]
        write_tuple(kept.window.records, to - j, batch, i, work.slots[i - at["block"]])
    run["size"] += at["staying"]
    swept, front = work.front.runs[0], kept.front.runs[g]
    front["size"] = swept["size"]
    front["head"] = front["start"] + (front["room"] - front["size"]) // 2
    for j in range(front["size"]):
        kept.front.records[front["head"] + j] = work.front.records[swept["head"] + j]
    if at["slotted"]:
        for j in range(at["arrival"] - at["block"]):
            work.slots[j] = -1
    at["block"], at["slotted"] = at["arrival"], 0
    Q = len(rules.queries)
    for q in range(Q):
        view = kept.views[g * Q + q]
        view["first"] = group["base"] + expired(kept.window, g, view["low"])


@uncounted
def expired(window: Arena, g: int, low: int) -> int:
    """How many tuples of a window have this stamp or an older one."""
    head = window.runs[g]["head"]
    begin, end = 0, window.runs[g]["size"]
    while begin < end:
        middle = (begin + end) // 2
        if window.records[head + middle]["stamp"] <= low:
            begin = middle + 1
        else:
            end = middle
    return begin
