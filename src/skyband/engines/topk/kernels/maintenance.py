"""The maintenance module: TMA (Figure 9), SMA (Figure 11) and TSL of mouratidis2006, one step at a time.

Each query has a run of objects, best first, and a floor: whoever ranks above the floor is in the run. An arrival above
the floor joins, who goes leaves it, and when fewer than k are left the window is searched again. What differs: TMA's
run is the answer, TSL's is a view of up to k_max, SMA's is a k-skyband, and TSL searches sorted lists.

The influence lists follow a floor that rises later, when a query has looked at too many objects in vain.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.preferences import key_at
from skyband.engines.topk.kernels.runs import SMA, TSL, compare, drop, place_of, put, recall, tell_slot, touch
from skyband.engines.topk.kernels.sorted_lists import Lists, search_lists
from skyband.engines.topk.kernels.window_grid import (
    BEFORE,
    FREE,
    HEAD,
    LIMIT,
    LIVE,
    NOWHERE,
    OUTSIDE,
    RECENT,
    REFILLS,
    SCORED,
    SIDE,
    STALE,
    TOUCHED,
    WIDE,
    Asking,
    Desk,
    Records,
    Window,
    above,
    in_box,
    link,
    locate,
    relist,
    search_grid,
    unlink,
    widen,
)
from skyband.kernels.compile import kernel, part
from skyband.kernels.records import NEVER, make_room, move_run

# what a row does, or did; IDLE: it can be no answer, but has its id until deleted
INSERT, IDLE, DELETE, UNKNOWN, DONE = range(5)
NO_CELL = -1  # of idle objects, whose attributes are NaN


# --- searching again


@part
def refill(
    asking: Asking,
    window: Window,
    desk: Desk,
    sorted_lists: Lists,
    objects: Records,
    groups: Records,
    tally: Records,
    ghosts: Records,
    graves: Records,
    s: int,
    algorithm: int,
) -> Records:
    """Search the window and form the run anew, with its floor and, for SMA, the dominance counters."""
    state, best, lanes, facts = window.state, desk.best, asking.lanes, window.facts
    k, scored = lanes[s]["k"], facts[SCORED]
    facts[REFILLS] += 1
    if algorithm == TSL:
        found = search_lists(asking, window, desk, sorted_lists, s, state[s]["view"])
    else:
        found = search_grid(asking, window, desk, s, state[s]["view"])
    full = found == state[s]["view"]
    if lanes[s]["view"] < 0:  # the dynamic rule: refills and upkeep are to cost the same
        more, most = state[s]["view"] - k, len(best) - k - 1
        more = more + more // 2 + 1 if facts[SCORED] - scored > state[s]["spent"] else more - max(1, more // 4)
        state[s]["view"] = k + min(max(more, 1), most)
    state[s]["spent"] = 0
    old = groups[s]["head"]
    end = old + groups[s]["size"]
    for i in range(found):
        one = best[i]
        while old < end and above(
            objects[old]["key"], objects[old]["stamp"], objects[old]["serial"], one["key"], one["stamp"], one["serial"]
        ):
            old += 1
        if old < end and objects[old]["serial"] == one["serial"]:
            best[i]["shown"] = objects[old]["shown"]
        else:
            best[i]["shown"] = recall(ghosts, graves, s, one["serial"])
        if algorithm == SMA:
            for r in range(i):
                best[i]["dom"] += best[r]["stamp"] >= one["stamp"]
    groups[s]["size"] = 0
    if groups[s]["room"] < found + 2:
        objects = make_room(objects, groups, s, tally, found)
    groups[s]["head"] = groups[s]["start"] + (groups[s]["room"] - found) // 2
    move_run(best, 0, objects, groups[s]["head"], found)
    groups[s]["size"] = found
    state[s]["key"] = best[found - 1]["key"] if full else -np.inf
    state[s]["stamp"] = best[found - 1]["stamp"] if full else NOWHERE
    state[s]["serial"] = best[found - 1]["serial"] if full else -1
    return objects


@part
def mend_lists(
    asking: Asking, window: Window, desk: Desk, lists: Records, objects: Records, groups: Records, s: int
) -> Records:
    """Query s in the lists of all cells that may hold an object above its floor, and of a few more."""
    state = window.state
    to = state[s]["key"]
    if asking.lanes[s]["above"]:
        to = asking.lanes[s]["threshold"]
    elif to > -np.inf and groups[s]["size"]:
        gap = objects[groups[s]["head"]]["key"] - to
        if gap < np.inf:  # scores may be infinite
            to -= 0.125 * gap
    boxed = asking.lanes[s]["boxed"]
    if to > -np.inf or boxed:
        return relist(asking, window, desk, lists, s, to, max(16, len(window.cells) // 4))
    if not state[s]["wide"]:
        lists = relist(asking, window, desk, lists, s, np.inf, len(window.cells))
        widen(window, s)
    state[s]["misses"] = 0
    return lists


@part
def settle(
    asking: Asking,
    window: Window,
    desk: Desk,
    lists: Records,
    sorted_lists: Lists,
    objects: Records,
    groups: Records,
    tally: Records,
    ghosts: Records,
    graves: Records,
    algorithm: int,
    out: Records,
    step: Records,
) -> tuple[Records, Records, Records]:
    """The end of a step: who has lost too many searches again, and all who were touched tell what has changed."""
    facts, state = window.facts, window.state
    for t in range(facts[TOUCHED]):
        s = desk.touched[t]
        k, size = asking.lanes[s]["k"], groups[s]["size"]
        if size < k and (state[s]["key"] > -np.inf or state[s]["stamp"] > NOWHERE):
            objects = refill(asking, window, desk, sorted_lists, objects, groups, tally, ghosts, graves, s, algorithm)
        if algorithm != TSL and state[s]["key"] < state[s]["reach"] and not state[s]["wide"]:
            lists = mend_lists(asking, window, desk, lists, objects, groups, s)
        out = compare(state, desk.before, objects, groups, s, k, out, tally, step)
    facts[TOUCHED] = facts[BEFORE] = 0
    return lists, objects, out


# --- objects come and go


@part
def add(
    asking: Asking,
    window: Window,
    desk: Desk,
    lists: Records,
    objects: Records,
    groups: Records,
    tally: Records,
    ghosts: Records,
    graves: Records,
    ghost_tally: Records,
    algorithm: int,
    i: int,
    out: Records,
    step: Records,
) -> tuple[Records, Records, Records]:
    """Object i comes: it is held against the floor of each query that its cell concerns."""
    facts, state, lanes, slots = window.facts, window.state, asking.lanes, window.slots
    cell = slots[i]["cell"]
    outside = cell == len(window.cells) - 1
    listed = 0 if outside else window.cells[cell]["size"]
    start = 0 if outside else window.cells[cell]["start"]
    total = len(lanes) if outside else listed + facts[WIDE]
    stamp, serial = slots[i]["stamp"], slots[i]["serial"]
    for t in range(total):
        s = t if outside else lists[start + t] if t < listed else window.wide[t - listed]
        key = key_at(asking.form, asking.turned, asking.points, asking.weights, s, window.data, i)
        if lanes[s]["above"]:
            if key > lanes[s]["threshold"] and in_box(asking.lows, asking.highs, s, window.data, i):
                out = tell_slot(out, tally, step, s, window, i, key, 1)
        elif above(key, stamp, serial, state[s]["key"], state[s]["stamp"], state[s]["serial"]) and (
            not lanes[s]["boxed"] or in_box(asking.lows, asking.highs, s, window.data, i)
        ):
            touch(window.state, window.facts, desk.touched, desk.before, objects, groups, s, asking.lanes[s]["k"])
            objects, ghosts = put(
                slots, state, objects, groups, tally, ghosts, graves, ghost_tally, s, i, key, lanes[s]["k"], algorithm
            )
        elif not outside:  # in vain: if that happens too often, the lists are to be made again
            state[s]["misses"] += 1
            most = len(window.cells) // 2 + 64 if state[s]["wide"] else 4 * state[s]["listed"] + 64
            if state[s]["misses"] >= most:
                state[s]["misses"] = NOWHERE  # once is enough
                desk.stale[facts[STALE]] = s
                facts[STALE] += 1
    facts[SCORED] += total
    return objects, ghosts, out


@part
def remove(
    asking: Asking,
    window: Window,
    desk: Desk,
    lists: Records,
    objects: Records,
    groups: Records,
    tally: Records,
    i: int,
    untold: int,
    out: Records,
    step: Records,
) -> Records:
    """Object i goes out of the runs that hold it. `untold`: nobody knows of it yet."""
    facts, state, lanes, slots = window.facts, window.state, asking.lanes, window.slots
    cell = slots[i]["cell"]
    outside = cell == len(window.cells) - 1
    listed = 0 if outside else window.cells[cell]["size"]
    start = 0 if outside else window.cells[cell]["start"]
    total = len(lanes) if outside else listed + facts[WIDE]
    stamp, serial = slots[i]["stamp"], slots[i]["serial"]
    for t in range(total):
        s = t if outside else lists[start + t] if t < listed else window.wide[t - listed]
        key = key_at(asking.form, asking.turned, asking.points, asking.weights, s, window.data, i)
        if lanes[s]["above"]:
            if key > lanes[s]["threshold"] and not untold and in_box(asking.lows, asking.highs, s, window.data, i):
                out = tell_slot(out, tally, step, s, window, i, key, -1)
        elif not above(state[s]["key"], state[s]["stamp"], state[s]["serial"], key, stamp, serial):
            place = place_of(objects, groups, s, key, stamp, serial)
            if place < groups[s]["size"] and objects[groups[s]["head"] + place]["serial"] == serial:
                touch(window.state, window.facts, desk.touched, desk.before, objects, groups, s, asking.lanes[s]["k"])
                drop(objects, groups, s, place)
    facts[SCORED] += total
    return out


@part
def concerns(slots: Records, cells: Records, facts: Records, i: int) -> bool:
    """Does any query look at the cell of object i?"""
    cell = slots[i]["cell"]
    if cell == NO_CELL:
        return False
    return bool(facts[WIDE] > 0 or cells[cell]["size"] > 0 or cell == len(cells) - 1)


@part
def vacate(slots: Records, cells: Records, facts: Records, i: int, listed: bool) -> None:
    """Object i is gone from its cell; its place is free, in lists of TSL at the next merge."""
    idle = slots[i]["cell"] == NO_CELL
    if not listed and not idle:
        facts[OUTSIDE] -= slots[i]["cell"] == len(cells) - 1
        unlink(slots, cells, i)
    if not listed or idle:
        slots[i]["next"] = facts[FREE]
        facts[FREE] = i
    slots[i]["serial"] = -1
    facts[LIVE] -= 1


@part
def enter(
    facts: Records,
    slots: Records,
    data: Records,
    order: Records,
    stream: Records,
    row: int,
    stamp: int,
    serial: int,
    aged: bool,
    idle: bool,
) -> int:
    """Give an object its place, and its place by age: late ones are put among their like."""
    i = int(facts[FREE])
    facts[FREE] = slots[i]["next"]
    for j in range(data.shape[1]):
        data[i, j] = np.nan if idle else stream[row, j]
    slots[i]["cell"] = NO_CELL
    slots[i]["stamp"] = stamp
    slots[i]["serial"] = serial
    if aged:
        at = facts[HEAD] + facts[LIVE]
        while at > facts[HEAD] and slots[order[(at - 1) % len(order)]]["stamp"] > stamp:
            order[at % len(order)] = order[(at - 1) % len(order)]
            at -= 1
        order[at % len(order)] = i
    facts[LIVE] += 1
    return i


@kernel
def take_window(
    asking: Asking,
    window: Window,
    desk: Desk,
    lists: Records,
    sorted_lists: Lists,
    objects: Records,
    groups: Records,
    tally: Records,
    ghosts: Records,
    graves: Records,
    ghost_tally: Records,
    algorithm: int,
    stream: Records,
    stamps: Records,
    now: Records,
    rows: Records,
    kinds: Records,  # empty: all are inserted; deletions of ids that nobody has are marked
    names: Records,  # ids as codes, where objects are deleted by them
    holders: Records,  # by code: the object's place, or -1
    begin: int,
    last: int,  # the clock, or the number of the last arrival
    length: int,
    serial: int,  # of row 0
    opened: int,  # the first serial of the batch
    joint: bool,  # count windows: the oldest goes with the arrival
    net: bool,
    final: bool,  # the batch ends here
    out: Records,
) -> tuple[int, Records, Records, Records, Records]:
    """Take arrivals from `begin` on, as far as there is room; returns how far, and what may have moved.

    A step is an arrival (in count windows with the one that goes), all that leave at one instant, or the batch's end.
    """
    facts, slots, order, data, cells = window.facts, window.slots, window.order, window.data, window.cells
    step, listed = np.zeros(1, out.dtype), algorithm == TSL
    i, ended = begin, False
    while not ended:
        arrives = i < len(stamps)
        if arrives and (
            facts[FREE] < 0
            or (listed and facts[RECENT] == len(sorted_lists.recent))
            or (not listed and facts[OUTSIDE] > facts[LIMIT])
        ):
            break
        until = now[i] if arrives else last
        due = NEVER
        if length < NEVER and facts[LIVE]:
            due = slots[order[facts[HEAD]]]["stamp"] + length
        alone = due < until or (due == until and not (joint and arrives))
        ended = not arrives and not alone
        arrives = arrives and not alone
        kind = kinds[i] if arrives and len(kinds) else INSERT
        step[0]["row"] = rows[i] if arrives else -1
        step[0]["instant"] = due if alone else until
        while not ended:
            if facts[LIVE] and length < NEVER and slots[order[facts[HEAD]]]["stamp"] + length == step[0]["instant"]:
                old = order[facts[HEAD]]
                facts[HEAD] = (facts[HEAD] + 1) % len(order)
            elif arrives and len(names) and holders[names[i]] >= 0:
                old = holders[names[i]]
                holders[names[i]] = -1
                kind = DONE if kind == DELETE else kind
            else:
                break
            if concerns(slots, cells, facts, old):
                untold = net and slots[old]["serial"] >= opened
                out = remove(asking, window, desk, lists, objects, groups, tally, old, untold, out, step)
            vacate(slots, cells, facts, old, listed)
        if arrives and kind == DELETE:
            kinds[i] = UNKNOWN
        elif arrives and kind != DONE:
            aged, idle = length < NEVER, kind == IDLE
            new = enter(facts, slots, data, order, stream, i, stamps[i], serial + rows[i], aged, idle)
            if len(names):
                holders[names[i]] = new
            if idle:
                pass
            elif listed:
                slots[new]["cell"] = 0
                sorted_lists.recent[facts[RECENT]] = new
                facts[RECENT] += 1
            else:
                cell = locate(window.edges, facts[SIDE], len(cells) - 1, data, new)
                link(slots, cells, cell, new)
                facts[OUTSIDE] += cell == len(cells) - 1
            if concerns(slots, cells, facts, new):
                objects, ghosts, out = add(
                    asking, window, desk, lists, objects, groups, tally, ghosts, graves, ghost_tally,
                    algorithm, new, out, step,
                )  # fmt: skip
        if facts[TOUCHED] and (final and ended if net else True):
            lists, objects, out = settle(
                asking, window, desk, lists, sorted_lists, objects, groups, tally, ghosts, graves,
                algorithm, out, step,
            )  # fmt: skip
        for t in range(facts[STALE]):
            lists = mend_lists(asking, window, desk, lists, objects, groups, desk.stale[t])
        facts[STALE] = 0
        i += arrives
    return i, lists, objects, ghosts, out


@kernel
def lay_objects(
    asking: Asking, window: Window, desk: Desk, lists: Records, objects: Records, groups: Records
) -> Records:
    """Put all objects into the cells of a new grid, and all queries into its lists; places have a serial if taken."""
    facts, slots = window.facts, window.slots
    facts[OUTSIDE] = facts[WIDE] = facts[STALE] = 0
    for i in range(len(slots)):
        if slots[i]["serial"] >= 0 and np.isnan(window.data[i, 0]):
            slots[i]["cell"] = NO_CELL
        elif slots[i]["serial"] >= 0:
            cell = locate(window.edges, facts[SIDE], len(window.cells) - 1, window.data, i)
            link(slots, window.cells, cell, i)
            facts[OUTSIDE] += cell == len(window.cells) - 1
    for s in range(len(asking.lanes)):
        window.state[s]["reach"] = np.inf
        window.state[s]["listed"] = window.state[s]["misses"] = window.state[s]["wide"] = 0
        lists = mend_lists(asking, window, desk, lists, objects, groups, s)
    return lists


@kernel
def search_window(
    asking: Asking,
    window: Window,
    desk: Desk,
    lists: Records,
    sorted_lists: Lists,
    objects: Records,
    groups: Records,
    tally: Records,
    ghosts: Records,
    graves: Records,
    algorithm: int,
    s: int,
    out: Records,
    step: Records,
) -> tuple[Records, Records, Records]:
    """A new query's answer at once, from the window; one with a threshold only joins the lists."""
    if asking.lanes[s]["above"]:
        if algorithm != TSL:
            lists = mend_lists(asking, window, desk, lists, objects, groups, s)
        return lists, objects, out
    touch(window.state, window.facts, desk.touched, desk.before, objects, groups, s, asking.lanes[s]["k"])
    window.state[s]["key"], window.state[s]["stamp"] = np.inf, 0  # a floor that nobody is above
    return settle(
        asking, window, desk, lists, sorted_lists, objects, groups, tally, ghosts, graves,
        algorithm, out, step,
    )  # fmt: skip
