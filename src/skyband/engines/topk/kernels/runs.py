"""What a query knows of a window: a run of objects, best first, above a floor; and who was told before.

A run that grows past its size raises the floor. Objects that were told and have left the run are remembered while they
are valid, so that `first` is said once. What a step has changed is told by holding the answer against the one that
the step began with.
"""

from __future__ import annotations

from skyband.engines.topk.kernels.window_grid import BEFORE, TOUCHED, Records, Window, above
from skyband.kernels.compile import part
from skyband.kernels.records import make_room, move_run, reserve

TMA, SMA, TSL = 0, 1, 2


@part
def place_of(objects: Records, groups: Records, s: int, key: float, stamp: int, serial: int) -> int:
    """How many objects of the run rank above this one."""
    head = groups[s]["head"]
    low, high = 0, groups[s]["size"]
    while low < high:
        middle = (low + high) // 2
        one = objects[head + middle]
        if above(one["key"], one["stamp"], one["serial"], key, stamp, serial):
            low = middle + 1
        else:
            high = middle
    return low


@part
def remember(slots: Records, ghosts: Records, graves: Records, tally: Records, s: int, serial: int, i: int) -> Records:
    """An object that was told leaves the run while it is valid."""
    if graves[s]["head"] + graves[s]["size"] == graves[s]["start"] + graves[s]["room"]:
        head, kept = graves[s]["head"], 0
        for g in range(head, head + graves[s]["size"]):
            if slots[ghosts[g]["was"]]["serial"] == ghosts[g]["serial"]:
                ghosts[head + kept] = ghosts[g]
                kept += 1
        graves[s]["size"] = kept
        ghosts = make_room(ghosts, graves, s, tally, 1 + kept // 2)
    at = graves[s]["head"] + graves[s]["size"]
    ghosts[at]["serial"] = serial
    ghosts[at]["was"] = i
    graves[s]["size"] += 1
    return ghosts


@part
def recall(ghosts: Records, graves: Records, s: int, serial: int) -> bool:
    """Was this object told before? It is no longer remembered here."""
    head, size = graves[s]["head"], graves[s]["size"]
    for i in range(head, head + size):
        if ghosts[i]["serial"] == serial:
            move_run(ghosts, i + 1, ghosts, i, head + size - i - 1)
            graves[s]["size"] = size - 1
            return True
    return False


@part
def cut(
    slots: Records,
    state: Records,
    objects: Records,
    groups: Records,
    ghosts: Records,
    graves: Records,
    ghost_tally: Records,
    s: int,
    size: int,
) -> Records:
    """Keep the best `size` of the run; the last of them is the floor."""
    head = groups[s]["head"]
    for i in range(head + size, head + groups[s]["size"]):
        if objects[i]["shown"]:
            ghosts = remember(slots, ghosts, graves, ghost_tally, s, objects[i]["serial"], objects[i]["was"])
    groups[s]["size"] = size
    state[s]["key"] = objects[head + size - 1]["key"]
    state[s]["stamp"] = objects[head + size - 1]["stamp"]
    state[s]["serial"] = objects[head + size - 1]["serial"]
    return ghosts


@part
def touch(
    state: Records,
    facts: Records,
    touched: Records,
    before: Records,
    objects: Records,
    groups: Records,
    s: int,
    k: int,
) -> None:
    """Something happens to query s: what was its answer?"""
    if state[s]["open"] < 0:
        held = min(groups[s]["size"], k)
        state[s]["open"] = facts[BEFORE]
        state[s]["held"] = held
        move_run(objects, groups[s]["head"], before, facts[BEFORE], held)
        facts[BEFORE] += held
        touched[facts[TOUCHED]] = s
        facts[TOUCHED] += 1


@part
def put(
    slots: Records,
    state: Records,
    objects: Records,
    groups: Records,
    tally: Records,
    ghosts: Records,
    graves: Records,
    ghost_tally: Records,
    s: int,
    i: int,
    key: float,
    k: int,
    algorithm: int,
) -> tuple[Records, Records]:
    """An object above the floor joins the run; SMA counts who dominates whom."""
    stamp, serial = slots[i]["stamp"], slots[i]["serial"]
    place, dominators = place_of(objects, groups, s, key, stamp, serial), 0
    if algorithm == SMA:
        for r in range(groups[s]["head"], groups[s]["head"] + place):
            dominators += objects[r]["stamp"] >= stamp
        if dominators >= k:
            return objects, ghosts
    if groups[s]["head"] + groups[s]["size"] == groups[s]["start"] + groups[s]["room"]:
        objects = make_room(objects, groups, s, tally, 1)
    at, size = groups[s]["head"] + place, groups[s]["size"]
    move_run(objects, at, objects, at + 1, size - place)
    objects[at]["key"] = key
    objects[at]["stamp"] = stamp
    objects[at]["serial"] = serial
    objects[at]["dom"] = dominators
    objects[at]["inside"] = 0
    objects[at]["shown"] = 0
    objects[at]["was"] = i
    groups[s]["size"] = size + 1
    state[s]["spent"] += size + 1 - place
    if algorithm == SMA:
        kept = at + 1
        for r in range(at + 1, at + 1 + size - place):
            objects[r]["dom"] += objects[r]["stamp"] <= stamp
            if objects[r]["dom"] < k:
                objects[kept] = objects[r]
                kept += 1
            elif objects[r]["shown"]:
                ghosts = remember(slots, ghosts, graves, ghost_tally, s, objects[r]["serial"], objects[r]["was"])
        groups[s]["size"] = kept - groups[s]["head"]
    most = 2 * k + 8 if algorithm == SMA else state[s]["view"]
    if groups[s]["size"] > most:  # a new floor, as a search would give it
        ghosts = cut(slots, state, objects, groups, ghosts, graves, ghost_tally, s, state[s]["view"])
    return objects, ghosts


@part
def drop(objects: Records, groups: Records, s: int, place: int) -> None:
    """An object leaves the run for good. Nobody it dominates is below it: who goes is the oldest, or was deleted."""
    head, size = groups[s]["head"], groups[s]["size"]
    if place < size // 2:
        move_run(objects, head, objects, head + 1, place)
        groups[s]["head"] = head + 1
    else:
        move_run(objects, head + place + 1, objects, head + place, size - place - 1)
    groups[s]["size"] = size - 1


# --- telling


@part
def tell(out: Records, tally: Records, step: Records, s: int, one: Records, i: int, diff: int, first: bool) -> Records:
    out = reserve(out, tally, 1)
    n = tally[1]
    out[n] = step[0]
    out[n]["visit"] = s
    out[n]["key"] = one[i]["key"]
    out[n]["stamp"] = one[i]["stamp"]
    out[n]["serial"] = one[i]["serial"]
    out[n]["diff"] = diff
    out[n]["first"] = first
    tally[1] = n + 1
    return out


@part
def tell_slot(
    out: Records, tally: Records, step: Records, s: int, window: Window, i: int, key: float, diff: int
) -> Records:
    """An object passes a threshold, or goes."""
    out = reserve(out, tally, 1)
    n = tally[1]
    out[n] = step[0]
    out[n]["visit"] = s
    out[n]["key"] = key
    out[n]["stamp"] = window.slots[i]["stamp"]
    out[n]["serial"] = window.slots[i]["serial"]
    out[n]["diff"] = diff
    out[n]["first"] = diff > 0
    tally[1] = n + 1
    return out


@part
def compare(
    state: Records,
    before: Records,
    objects: Records,
    groups: Records,
    s: int,
    k: int,
    out: Records,
    tally: Records,
    step: Records,
) -> Records:
    """Who has left the answer since the step began, and who has entered it. Both answers are in order of rank."""
    begin, end = state[s]["open"], state[s]["open"] + state[s]["held"]
    head = groups[s]["head"]
    now = head + min(groups[s]["size"], k)
    j = head
    for i in range(begin, end):
        one = before[i]
        while j < now and above(
            objects[j]["key"], objects[j]["stamp"], objects[j]["serial"], one["key"], one["stamp"], one["serial"]
        ):
            j += 1
        if j == now or objects[j]["serial"] != one["serial"]:
            out = tell(out, tally, step, s, before, i, -1, False)
    i = begin
    for j in range(head, now):
        one = objects[j]
        while i < end and above(
            before[i]["key"], before[i]["stamp"], before[i]["serial"], one["key"], one["stamp"], one["serial"]
        ):
            i += 1
        if i == end or before[i]["serial"] != one["serial"]:
            out = tell(out, tally, step, s, objects, j, 1, objects[j]["shown"] == 0)
            objects[j]["shown"] = 1
    state[s]["open"] = -1
    return out
