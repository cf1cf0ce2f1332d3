"""The maintenance modules of TMA (Figure 9), SMA (Figure 11) and TSL (section 3.2) of mouratidis2006, step by step.

Each query has a run of objects, best first, and a floor: every object that ranks above the floor is in the run. An
arrival above the floor is inserted, an object that is no longer valid is removed, and when fewer than k are left the
window is searched again. The algorithms differ in the run (TMA: the answer; SMA: a k-skyband; TSL: a view of up to
k_max objects) and in the search (TSL: of sorted lists). An arrival costs O(d) for each query that its cell lists, and
O(length of the run) for each query whose run it joins.

Lists follow a rising floor lazily: once a query has been compared with too many objects without effect.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.influence import update_lists
from skyband.engines.topk.kernels.preferences import key_at
from skyband.engines.topk.kernels.runs import insert, pop_reported, rank_of, remove_at, report, report_changes, touch
from skyband.engines.topk.kernels.sorted_lists import SortedLists, search_lists
from skyband.engines.topk.kernels.window_grid import is_listed, is_lopsided, occupy, put_into_cell, release, search_grid
from skyband.engines.topk.kernels.window_state import (
    BEFORE,
    CROWD,
    FREE,
    HEAD,
    LIMIT,
    LIVE,
    NO_CELL,
    NOWHERE,
    OUTSIDE,
    RECENT,
    SCORED,
    SEARCHES,
    SMA,
    STALE,
    TOUCHED,
    TSL,
    UNLISTED,
    Growing,
    Queries,
    Records,
    Scratch,
    Span,
    Stream,
    Window,
    above,
    in_box,
    record_above,
)
from skyband.kernels.compile import close, kernel, part, uncounted
from skyband.kernels.records import NEVER, make_room, move_run, reserve

# what a row does; IDLE: its object is not eligible, but has its id until it is deleted
INSERT, IDLE, DELETE, UNKNOWN, DONE = range(5)


# --- queries with too few objects, and the end of a step


@part
def refill(
    queries: Queries, window: Window, scratch: Scratch, sorted_lists: SortedLists, growing: Growing, s: int
) -> Records:
    """Search the window and build the run anew, with its floor and, for SMA, the dominance counters."""
    state, heads, best, counters = window.state, window.heads, scratch.best, window.counters
    k, scored, records = queries.specs[s]["k"], counters[SCORED], growing.records
    counters[SEARCHES] += 1
    if queries.algorithm == TSL:
        found = search_lists(queries, window, scratch, sorted_lists, s, state[s]["view"])
    else:
        found = search_grid(queries, window, scratch, s, state[s]["view"])
    full = found == state[s]["view"]
    if queries.specs[s]["dynamic"]:  # searches and maintenance are to cost the same
        more, most = state[s]["view"] - k, len(best) - k - 1
        more = more + more // 2 + 1 if counters[SCORED] - scored > state[s]["spent"] else more - max(1, more // 4)
        state[s]["view"] = k + min(max(more, 1), most)
    state[s]["spent"] = 0
    old = heads[s]["head"]
    end = old + heads[s]["size"]
    for i in range(found):
        while old < end and record_above(records, old, best, i):
            old += 1
        if old < end and records[old]["serial"] == best[i]["serial"]:
            best[i]["shown"] = records[old]["shown"]
        else:
            best[i]["shown"] = pop_reported(growing.reported, window.reported_heads, s, best[i]["serial"])
        if queries.algorithm == SMA:
            for r in range(i):
                best[i]["dom"] += best[r]["stamp"] >= best[i]["stamp"]
    heads[s]["size"] = 0
    if heads[s]["room"] < found + 2:
        records = make_room(records, heads, s, window.tally, found)
    heads[s]["head"] = heads[s]["start"] + (heads[s]["room"] - found) // 2
    move_run(best, 0, records, heads[s]["head"], found)
    heads[s]["size"] = found
    state[s]["key"] = best[found - 1]["key"] if full else -np.inf
    state[s]["stamp"] = best[found - 1]["stamp"] if full else NOWHERE
    state[s]["serial"] = best[found - 1]["serial"] if full else -1
    return records


@part
def finish_step(
    queries: Queries,
    window: Window,
    scratch: Scratch,
    sorted_lists: SortedLists,
    growing: Growing,
    step: Records,
) -> Growing:
    """Search for the queries that have fewer than k objects, and report the changes of all that were touched.

    TMA: Figure 9, lines 12 to 22; SMA: Figure 11, lines 17 to 23.
    """
    counters, state, specs = window.counters, window.state, queries.specs
    lists, records, changes = growing.lists, growing.records, growing.changes
    for t in range(counters[TOUCHED]):
        s = scratch.touched[t]
        k, size = specs[s]["k"], window.heads[s]["size"]
        if size < k and (state[s]["key"] > -np.inf or state[s]["stamp"] > NOWHERE):
            now = Growing(lists, records, growing.reported, changes)
            records = refill(queries, window, scratch, sorted_lists, now, s)
        if queries.algorithm != TSL and not (state[s]["key"] >= state[s]["reach"] or state[s]["unlisted"]):
            lists = update_lists(queries, window, scratch, lists, records, s)
        changes = reserve(changes, window.tally, state[s]["held"] + min(window.heads[s]["size"], k))
        report_changes(window, scratch, records, changes, s, k, step)
    counters[TOUCHED] = counters[BEFORE] = 0
    return Growing(lists, records, growing.reported, changes)


# --- objects arrive and leave


@close
def next_query(
    queries: Queries, window: Window, stale: Records, lists: Records, i: int, t: int, arrives: bool
) -> tuple[int, int, float]:
    """From place t of its cell's list on, the next query whose floor or threshold object i passes, and its key.

    Returns the place in the list, the query (-1: no more) and the key. TMA: Figure 9, lines 5, 6, 10 and 11; SMA:
    Figure 11, lines 6, 7, 14 and 15; with sorted lists, and outside the grid, every query is listed.
    """
    counters, state, specs, slots, cells = window.counters, window.state, queries.specs, window.slots, window.cells
    cell, stamp, serial = slots[i]["cell"], slots[i]["stamp"], slots[i]["serial"]
    outside = cell == len(cells) - 1
    listed = 0 if outside else cells[cell]["size"]
    start = 0 if outside else cells[cell]["start"]
    total = len(specs) if outside else listed + counters[UNLISTED]
    while t < total:
        s = t if outside else lists[start + t] if t < listed else window.unlisted[t - listed]
        key = key_at(queries, s, window.data, i)
        if specs[s]["above"]:
            if key > specs[s]["threshold"] and in_box(queries, s, window.data, i):
                return t, s, key
        elif (
            above(key, stamp, serial, state[s]["key"], state[s]["stamp"], state[s]["serial"])
            or (serial == state[s]["serial"] and not arrives)
        ) and (not specs[s]["boxed"] or in_box(queries, s, window.data, i)):
            return t, s, key
        elif arrives and not outside:  # without effect: after too many of these the lists are made anew
            state[s]["misses"] += 1
            most = len(cells) // 2 + 64 if state[s]["unlisted"] else 4 * state[s]["listed"] + 64
            if state[s]["misses"] >= most:
                state[s]["misses"] = NOWHERE  # it is marked as stale once
                stale[counters[STALE]] = s
                counters[STALE] += 1
        t += 1
    counters[SCORED] += total
    return t, -1, 0.0


@part
def add(
    queries: Queries,
    window: Window,
    scratch: Scratch,
    growing: Growing,
    i: int,
    first: tuple[int, int, float],
    step: Records,
) -> tuple[Records, Records]:
    """Insert object i into the runs of the queries that it concerns; there is capacity for a change of each.

    first: what `next_query` has found from the beginning of its cell's list.
    """
    specs, slots, lists = queries.specs, window.slots, growing.lists
    records, reported = growing.records, growing.reported
    t, s, key = first
    while s >= 0:
        if specs[s]["above"]:
            report(growing.changes, window.tally, step, s, key, slots[i]["stamp"], slots[i]["serial"], 1, True)
        else:
            touch(window, scratch, records, s, specs[s]["k"])
            records, reported = insert(window, records, reported, s, i, key, specs[s]["k"], queries.algorithm)
        t, s, key = next_query(queries, window, scratch.stale, lists, i, t + 1, True)
    return records, reported


@uncounted
def remove(
    queries: Queries,
    window: Window,
    scratch: Scratch,
    lists: Records,
    records: Records,
    changes: Records,
    i: int,
    first: tuple[int, int, float],
    unreported: int,
    step: Records,
) -> None:
    """Remove object i from the runs that hold it; there is capacity for a change of each query.

    first: as in `add`; unreported: it came in the net batch that goes on.
    """
    specs, slots, heads = queries.specs, window.slots, window.heads
    stamp, serial = slots[i]["stamp"], slots[i]["serial"]
    t, s, key = first
    while s >= 0:
        if specs[s]["above"]:
            if not unreported:
                report(changes, window.tally, step, s, key, stamp, serial, -1, False)
        else:
            rank = rank_of(records, heads, s, key, stamp, serial)
            if rank < heads[s]["size"] and records[heads[s]["head"] + rank]["serial"] == serial:
                touch(window, scratch, records, s, specs[s]["k"])
                remove_at(records, heads, s, rank)
        t, s, key = next_query(queries, window, scratch.stale, lists, i, t + 1, False)


@kernel
def take_arrivals(
    queries: Queries,
    window: Window,
    scratch: Scratch,
    sorted_lists: SortedLists,
    growing: Growing,
    stream: Stream,
    span: Span,
) -> tuple[int, Records, Records, Records, Records]:
    """Take arrivals from `span.begin` on, while capacity lasts; returns the first one not taken, and what grew.

    A step is an arrival (in count windows with the expiry that it causes), all that expire at one instant, or the
    batch's end.
    """
    counters, slots, order, cells = window.counters, window.slots, window.order, window.cells
    kinds, ids, places, length = stream.kinds, stream.ids, stream.places, span.length
    step, in_lists = np.zeros(1, growing.changes.dtype), queries.algorithm == TSL
    lists, records, reported, changes = growing.lists, growing.records, growing.reported, growing.changes
    a, ended = span.begin, False
    while not ended:
        arrives = a < len(stream.stamps)
        if arrives and (
            counters[FREE] < 0
            or (in_lists and counters[RECENT] == len(sorted_lists.recent))
            or (not in_lists and (counters[OUTSIDE] > counters[LIMIT] or is_lopsided(cells, counters)))
        ):
            break
        until = stream.now[a] if arrives else span.last
        due = NEVER
        if length < NEVER and counters[LIVE]:
            due = slots[order[counters[HEAD]]]["stamp"] + length
        alone = due < until or (due == until and not (span.joint and arrives))
        ended = not arrives and not alone
        arrives = arrives and not alone
        kind = kinds[a] if arrives and len(kinds) else INSERT
        step[0]["row"] = stream.rows[a] if arrives else -1
        step[0]["instant"] = due if alone else until
        while not ended:
            oldest = order[counters[HEAD]] if counters[LIVE] and length < NEVER else -1
            if oldest >= 0 and slots[oldest]["stamp"] + length == step[0]["instant"]:
                old = oldest
                counters[HEAD] = (counters[HEAD] + 1) % len(order)
            elif arrives and len(ids) and places[ids[a]] >= 0:
                old = places[ids[a]]
                places[ids[a]] = -1
                kind = DONE if kind == DELETE else kind
            else:
                break
            if is_listed(slots, cells, counters, old):
                first = next_query(queries, window, scratch.stale, lists, old, 0, False)
                if first[1] >= 0:  # most concern none, and calls with many arrays cost more than the search
                    unreported = span.net and slots[old]["serial"] >= span.opened
                    changes = reserve(changes, window.tally, len(queries.specs))
                    remove(queries, window, scratch, lists, records, changes, old, first, unreported, step)
            release(slots, cells, counters, old, in_lists)
        if arrives and kind == DELETE:
            kinds[a] = UNKNOWN
        elif arrives and kind != DONE:
            new = occupy(window, stream, a, span.serial + stream.rows[a], length < NEVER, kind == IDLE)
            if len(ids):
                places[ids[a]] = new
            if kind != IDLE:
                if in_lists:
                    slots[new]["cell"] = 0
                    sorted_lists.recent[counters[RECENT]] = new
                    counters[RECENT] += 1
                else:
                    put_into_cell(window, new)
                if is_listed(slots, cells, counters, new):
                    first = next_query(queries, window, scratch.stale, lists, new, 0, True)
                    if first[1] >= 0:
                        changes = reserve(changes, window.tally, len(queries.specs))
                        growing = Growing(lists, records, reported, changes)
                        records, reported = add(queries, window, scratch, growing, new, first, step)
        if counters[TOUCHED] and (span.final and ended if span.net else True):
            growing = Growing(lists, records, reported, changes)
            lists, records, reported, changes = finish_step(queries, window, scratch, sorted_lists, growing, step)
        for t in range(counters[STALE]):
            lists = update_lists(queries, window, scratch, lists, records, scratch.stale[t])
        counters[STALE] = 0
        a += arrives
    return a, lists, records, reported, changes


@kernel
def fill_grid(queries: Queries, window: Window, scratch: Scratch, lists: Records, records: Records) -> Records:
    """Put all objects into the cells of a new grid, and all queries into its lists, which are returned."""
    counters, slots, state = window.counters, window.slots, window.state
    counters[OUTSIDE] = counters[UNLISTED] = counters[STALE] = counters[CROWD] = 0
    for i in range(len(slots)):
        if slots[i]["serial"] >= 0 and np.isnan(window.data[i, 0]):
            slots[i]["cell"] = NO_CELL
        elif slots[i]["serial"] >= 0:
            put_into_cell(window, i)
    for s in range(len(queries.specs)):
        state[s]["reach"] = np.nan
        state[s]["listed"] = state[s]["misses"] = state[s]["unlisted"] = 0
        lists = update_lists(queries, window, scratch, lists, records, s)
    return lists


@kernel
def start_query(
    queries: Queries,
    window: Window,
    scratch: Scratch,
    sorted_lists: SortedLists,
    growing: Growing,
    s: int,
    step: Records,
) -> tuple[Records, Records, Records]:
    """The first answer of a new query, by a search; a query with a threshold is only listed.

    Returns the lists, records and changes.
    """
    if queries.specs[s]["above"]:
        lists = growing.lists
        if queries.algorithm != TSL:
            lists = update_lists(queries, window, scratch, lists, growing.records, s)
        return lists, growing.records, growing.changes
    touch(window, scratch, growing.records, s, queries.specs[s]["k"])
    window.state[s]["key"], window.state[s]["stamp"] = np.inf, 0  # a floor that no object is above
    grown = finish_step(queries, window, scratch, sorted_lists, growing, step)
    return grown.lists, grown.records, grown.changes
