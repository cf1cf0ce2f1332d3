"""The run of a query: objects in order of rank, best first, down to a floor; and the objects reported before.

Every object above the floor is in the run. A run that outgrows its limit raises the floor. Reported objects that have
left the run are kept in a list while they are valid, so that `first` is true once per object. The changes of a step
come from comparing the answer with the one before the step. O(log) to find a place, O(length of the run) to insert.
"""

from __future__ import annotations

from skyband.engines.topk.kernels.window_state import (
    BEFORE,
    SMA,
    TOUCHED,
    Records,
    Scratch,
    Window,
    above,
    record_above,
)
from skyband.kernels.compile import part, uncounted
from skyband.kernels.records import make_room, move_run


@uncounted
def rank_of(records: Records, heads: Records, s: int, key: float, stamp: int, serial: int) -> int:
    """The number of objects in the run that rank above this one."""
    head = heads[s]["head"]
    low, high = 0, heads[s]["size"]
    while low < high:
        middle = (low + high) // 2
        one = records[head + middle]
        if above(one["key"], one["stamp"], one["serial"], key, stamp, serial):
            low = middle + 1
        else:
            high = middle
    return low


@part
def add_reported(window: Window, reported: Records, s: int, serial: int, place: int) -> Records:
    """Note that an object which leaves the run while it is valid has been reported."""
    heads, slots = window.reported_heads, window.slots
    if heads[s]["head"] + heads[s]["size"] == heads[s]["start"] + heads[s]["room"]:
        head, kept = heads[s]["head"], 0
        for i in range(head, head + heads[s]["size"]):
            if slots[reported[i]["was"]]["serial"] == reported[i]["serial"]:  # it is still valid
                reported[head + kept] = reported[i]
                kept += 1
        heads[s]["size"] = kept
        reported = make_room(reported, heads, s, window.reported_tally, 1 + kept // 2)
    at = heads[s]["head"] + heads[s]["size"]
    reported[at]["serial"] = serial
    reported[at]["was"] = place
    heads[s]["size"] += 1
    return reported


@uncounted
def pop_reported(reported: Records, heads: Records, s: int, serial: int) -> bool:
    """Whether an object that comes back into the run has been reported; its note is removed."""
    head, size = heads[s]["head"], heads[s]["size"]
    for i in range(head, head + size):
        if reported[i]["serial"] == serial:
            move_run(reported, i + 1, reported, i, head + size - i - 1)
            heads[s]["size"] = size - 1
            return True
    return False


@part
def raise_floor(window: Window, records: Records, reported: Records, s: int, size: int) -> Records:
    """Keep the best `size` objects of the run; the last of them is the floor."""
    heads, state = window.heads, window.state
    head = heads[s]["head"]
    for i in range(head + size, head + heads[s]["size"]):
        if records[i]["shown"]:
            reported = add_reported(window, reported, s, records[i]["serial"], records[i]["was"])
    heads[s]["size"] = size
    state[s]["key"] = records[head + size - 1]["key"]
    state[s]["stamp"] = records[head + size - 1]["stamp"]
    state[s]["serial"] = records[head + size - 1]["serial"]
    return reported


@uncounted
def touch(window: Window, scratch: Scratch, records: Records, s: int, k: int) -> None:
    """Store the answer of query s before its run changes, once per step."""
    state, counters, heads = window.state, window.counters, window.heads
    if state[s]["before"] < 0:
        held = min(heads[s]["size"], k)
        state[s]["before"] = counters[BEFORE]
        state[s]["held"] = held
        move_run(records, heads[s]["head"], scratch.before, counters[BEFORE], held)
        counters[BEFORE] += held
        scratch.touched[counters[TOUCHED]] = s
        counters[TOUCHED] += 1


@part
def insert(
    window: Window, records: Records, reported: Records, s: int, i: int, key: float, k: int, algorithm: int
) -> tuple[Records, Records]:
    """Insert an object above the floor into the run; SMA updates dominance counters (Figure 11, lines 8 to 11)."""
    heads, state = window.heads, window.state
    stamp, serial = window.slots[i]["stamp"], window.slots[i]["serial"]
    rank, dominators = rank_of(records, heads, s, key, stamp, serial), 0
    if algorithm == SMA:
        for r in range(heads[s]["head"], heads[s]["head"] + rank):
            dominators += records[r]["stamp"] >= stamp
        if dominators >= k:
            return records, reported
    if heads[s]["head"] + heads[s]["size"] == heads[s]["start"] + heads[s]["room"]:
        records = make_room(records, heads, s, window.tally, 1)
    at, size = heads[s]["head"] + rank, heads[s]["size"]
    move_run(records, at, records, at + 1, size - rank)
    records[at]["key"] = key
    records[at]["stamp"] = stamp
    records[at]["serial"] = serial
    records[at]["dom"] = dominators
    records[at]["inside"] = 0
    records[at]["shown"] = 0
    records[at]["was"] = i
    heads[s]["size"] = size + 1
    state[s]["spent"] += size + 1 - rank
    if algorithm == SMA:
        kept = at + 1
        for r in range(at + 1, at + 1 + size - rank):
            records[r]["dom"] += records[r]["stamp"] <= stamp
            if records[r]["dom"] < k:
                records[kept] = records[r]
                kept += 1
            elif records[r]["shown"]:
                reported = add_reported(window, reported, s, records[r]["serial"], records[r]["was"])
        heads[s]["size"] = kept - heads[s]["head"]
    most = 2 * k + 8 if algorithm == SMA else state[s]["view"]
    if heads[s]["size"] > most:  # a new floor, as a search would give it
        reported = raise_floor(window, records, reported, s, state[s]["view"])
    return records, reported


@uncounted
def remove_at(records: Records, heads: Records, s: int, rank: int) -> None:
    """Remove an object that is no longer valid from the run.

    No dominance counter changes: an object that expires is the oldest and dominates none below it, and SMA has no
    deletions.
    """
    head, size = heads[s]["head"], heads[s]["size"]
    if rank < size // 2:
        move_run(records, head, records, head + 1, rank)
        heads[s]["head"] = head + 1
    else:
        move_run(records, head + rank + 1, records, head + rank, size - rank - 1)
    heads[s]["size"] = size - 1


# --- changes


@uncounted
def report(
    changes: Records, tally: Records, step: Records, s: int, key: float, stamp: int, serial: int, diff: int, first: bool
) -> None:
    """Write one change of query s; there is capacity for it."""
    n = tally[1]
    changes[n] = step[0]
    changes[n]["visit"] = s
    changes[n]["key"] = key
    changes[n]["stamp"] = stamp
    changes[n]["serial"] = serial
    changes[n]["diff"] = diff
    changes[n]["first"] = first
    tally[1] = n + 1


@uncounted
def report_changes(
    window: Window, scratch: Scratch, records: Records, changes: Records, s: int, k: int, step: Records
) -> None:
    """Report the objects that have left the answer since `touch`, then those that have entered it.

    Both answers are in order of rank; there is capacity for all of both.
    """
    state, before, tally = window.state, scratch.before, window.tally
    begin, end = state[s]["before"], state[s]["before"] + state[s]["held"]
    head = window.heads[s]["head"]
    now = head + min(window.heads[s]["size"], k)
    j = head
    for i in range(begin, end):
        one = before[i]
        while j < now and record_above(records, j, before, i):
            j += 1
        if j == now or records[j]["serial"] != one["serial"]:
            report(changes, tally, step, s, one["key"], one["stamp"], one["serial"], -1, False)
    i = begin
    for j in range(head, now):
        one = records[j]
        while i < end and record_above(before, i, records, j):
            i += 1
        if i == end or before[i]["serial"] != one["serial"]:
            report(changes, tally, step, s, one["key"], one["stamp"], one["serial"], 1, one["shown"] == 0)
            records[j]["shown"] = 1
    state[s]["before"] = -1
