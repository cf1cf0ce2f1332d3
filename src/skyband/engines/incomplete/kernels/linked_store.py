"""The store of linked rows: rows in chains by object, and the order in which they expire.

Rows and objects lie in pools, so that they keep their places; a group's rows are a run of places, the oldest first.
The rows of an object are a chain, the oldest first. Objects are found by group and id in an open-addressing table.
A view is one length of window; an object has a score, and values of its parts, in each view.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.batches import (
    ALL_TOTAL,
    FREE_OBJECT,
    FREE_ROW,
    LAST,
    LAST_MOST,
    LAST_TOTAL,
    LOWEST_BIT,
    MOST,
    OBJECT_COUNT,
    TOTAL,
    Batch,
    Floats,
    Queries,
    Records,
)
from skyband.engines.incomplete.kernels.combine import Combination, combine
from skyband.engines.incomplete.kernels.finders import (
    drop_last,
    enter_heap,
    finds,
    first_since,
    leave_queue,
    looks_up,
    queues,
)
from skyband.engines.incomplete.kernels.fronts import FIELDS
from skyband.kernels.compile import close, inlined, uncounted
from skyband.kernels.hashes import slot_of
from skyband.kernels.sums import add, rounded

ROW = np.dtype(
    [
        ("value", "f8"),
        ("stamp", "i8"),  # number in the group, or time
        ("serial", "i8"),
        ("object", "i4"),  # -1: dead, but not out of the order yet
        ("part", "i4"),
        ("older", "i4"),  # in the object's chain; of free places: the next one
        ("newer", "i4"),
    ],
    align=True,
)
OBJECT = np.dtype(
    [
        ("name", "i8"),
        ("stamp", "i8"),  # of its newest row
        ("serial", "i8"),
        ("group", "i4"),
        ("oldest", "i4"),  # ends of its chain, -1: none; of free places: the next one
        ("newest", "i4"),
        ("rows", "i4"),
        ("touched", "i4"),  # in this step
        ("waits", "i4"),  # without rows, until a net batch ends
    ],
    align=True,
)
SCORE = np.dtype(  # of an object in a view; stored
    [
        ("score", "f8"),
        ("count", "i4"),  # its valid rows
        ("inside", "u4"),  # bit q: in the answer of query q
        ("shown", "u4"),  # bit q: has been in a reported answer of q since it has had a valid row
    ],
    align=True,
)
REPORTED = np.dtype([("score", "f8"), ("stamp", "i8"), ("serial", "i8")], align=True)  # as last reported; stored
GROUP = np.dtype(
    [
        ("start", "i8"),
        ("capacity", "i8"),
        ("head", "i8"),  # its run of places in the order
        ("size", "i8"),
        ("dead", "i8"),  # of these
        ("limit", "i8"),  # PRUNE when more are kept
        ("due", "i8"),  # no row leaves a view before
        ("open", "i8"),  # 1: within a batch that is to be reported later
        ("stale", "i8"),  # 1: answers may have changed since they were reported
        ("seen", "i8"),  # arrivals
        ("now", "i8"),  # of the last step
        ("ask_at", "i8"),  # PRUNE when so many have arrived
    ],
    align=True,
)
#: the same record under the names in which snapshots hold it; there `room` counts the group's objects
STORED_GROUP = np.dtype(
    [
        (name, "i8")
        for name in ("start", "room", "head", "size", "dead", "limit", "due", "open", "dirty", "seen", "now", "tick")
    ],
    align=True,
)
FRONT = np.dtype([*FIELDS, ("edge", "i8")], align=True)  # edge: how many of the group's rows are too old for this view


class Store(NamedTuple):
    rows: Records
    objects: Records
    scores: Records  # object by object, one for each view
    reported: Records  # by score; apart, since it is seldom read
    values: Floats  # score by score, one for each part
    sums: Records  # by value: how many rows it is the sum of, and the words of that sum; and one entry to work with
    table: Records  # of places of objects; -1: free
    order: Records  # arena of the groups' runs
    groups: Records
    fronts: Records  # group by group, one for each view
    members: Records  # arena of the fronts
    touched: Records  # objects of this step
    waiting: Records  # objects without rows that are still in a reported answer
    facts: Records
    # what finds rows (finders.py), each empty where it is not needed
    links: Records  # in queues and heaps
    firsts: Records  # by value: the row that it is of, -1: none
    lasts: Records  # the last row of each object and part: one after another, or a table


# ------------------------------------------------------------------------------ the table


@close
def place_of(table: Records, objects: Records, name: np.int64, group: int) -> Any:
    """The place of an object in the table, or the free one where it belongs."""
    mask = len(table) - 1
    place = slot_of(name, group, mask)
    while table[place] >= 0 and (objects[table[place]]["name"] != name or objects[table[place]]["group"] != group):
        place = (place + 1) & mask
    return place


@close
def free_object(store: Store, o: int) -> None:
    """Take an object without rows out of the table, and free its place."""
    table, objects = store.table, store.objects
    mask = len(table) - 1
    hole = place_of(table, objects, objects[o]["name"], objects[o]["group"])
    place = hole
    while True:  # objects that were pushed past the hole move back
        place = (place + 1) & mask
        if table[place] < 0:
            break
        slot = slot_of(objects[table[place]]["name"], objects[table[place]]["group"], mask)
        if ((place - slot) & mask) >= ((place - hole) & mask):
            table[hole] = table[place]
            hole = place
    table[hole] = -1
    objects[o]["oldest"] = store.facts[FREE_OBJECT]
    objects[o]["group"] = -1
    store.facts[FREE_OBJECT] = o
    store.facts[OBJECT_COUNT] -= 1


@close
def make_object(store: Store, place: int, name: np.int64, group: int, lows: Floats) -> Any:
    objects, V, d = store.objects, len(store.scores) // len(store.objects), len(lows)
    o = store.facts[FREE_OBJECT]
    store.facts[FREE_OBJECT] = objects[o]["oldest"]
    store.facts[OBJECT_COUNT] += 1
    store.table[place] = o
    objects[o]["name"] = name
    objects[o]["group"] = group
    objects[o]["oldest"] = objects[o]["newest"] = -1
    objects[o]["rows"] = objects[o]["touched"] = objects[o]["waits"] = 0
    for i in range(o * V, o * V + V):
        store.scores[i]["count"] = 0
        store.scores[i]["inside"] = store.scores[i]["shown"] = 0
        store.scores[i]["score"] = np.nan
        for p in range(d):
            store.values[i * d + p] = lows[p]
            empty(store, i * d + p)
    return o


# ---------------------------------------------------------------------------- rows, chains


@close
def link(store: Store, o: int, r: int) -> Any:
    """Row r joins its object's chain; returns whether it is the newest."""
    rows, one, stamp = store.rows, store.objects[o], store.rows[r]["stamp"]
    after = one["newest"]
    newest = after < 0 or rows[after]["stamp"] <= stamp
    while after >= 0 and rows[after]["stamp"] > stamp:
        after = rows[after]["older"]
    rows[r]["older"] = after
    rows[r]["newer"] = one["oldest"] if after < 0 else rows[after]["newer"]
    if after < 0:
        one["oldest"] = r
    else:
        rows[after]["newer"] = r
    if newest:
        one["newest"], one["stamp"], one["serial"] = r, stamp, rows[r]["serial"]
    else:
        rows[rows[r]["newer"]]["older"] = r
    one["rows"] += 1
    return newest


@close
def unlink(store: Store, queries: Queries, r: int) -> None:
    """Row r leaves its object's chain: it is dead."""
    rows, older, newer = store.rows, store.rows[r]["older"], store.rows[r]["newer"]
    one = store.objects[rows[r]["object"]]
    if queues(queries.repeat):
        leave_queue(store, queries, r)
    elif looks_up(queries.repeat):
        drop_last(store, r)
    if older < 0:
        one["oldest"] = newer
    else:
        rows[older]["newer"] = newer
    if newer >= 0:
        rows[newer]["older"] = older
    else:
        one["newest"] = older
        if older >= 0:
            one["stamp"], one["serial"] = rows[older]["stamp"], rows[older]["serial"]
    one["rows"] -= 1
    rows[r]["object"] = -1


@inlined
def release(store: Store, batch: Batch, r: int) -> None:
    """Free the place of a row that is out of the order."""
    row = store.rows[r]["serial"] - batch.serial
    if row >= 0:
        batch.alive[row] = False
    store.rows[r]["object"] = -1
    store.rows[r]["older"] = store.facts[FREE_ROW]
    store.facts[FREE_ROW] = r


# ------------------------------------------------------------------------------- values


@inlined
def adds(repeat: int) -> Any:
    """Whether the value of a part is a sum of rows."""
    return repeat in (TOTAL, ALL_TOTAL, LAST_TOTAL)


@inlined
def empty(store: Store, at: int) -> None:
    """The sum at this place has no rows."""
    for i in range(store.sums.shape[1]):
        store.sums[at, i] = 0


@close
def count_in(store: Store, at: int, value: float, by: int) -> None:
    """A row comes to the sum at this place, or leaves it (by: 1 or -1). Exact, so the order makes no difference."""
    store.sums[at, 0] += by
    add(store.sums, at, 1, store.sums.shape[1], store.facts[LOWEST_BIT], by * value)


@close
def total_of(store: Store, at: int, low: float) -> Any:
    """The value of a part whose rows are summed at this place, rounded once; low: it has none."""
    if store.sums[at, 0] == 0:
        return low
    return rounded(store.sums, at, 1, store.sums.shape[1], store.facts[LOWEST_BIT])


@close
def value_of(store: Store, first: int, p: int, repeat: int, low: float, at: int) -> Any:
    """The value of part p from row `first` of a chain on (haghani2009, section 5); of all parts if none has a name.

    at: where a sum is kept.
    """
    rows, value, found = store.rows, low, False
    if adds(repeat):
        empty(store, at)
    r = first
    while r >= 0:
        if rows[r]["part"] == p or repeat >= ALL_TOTAL:
            if adds(repeat):
                count_in(store, at, rows[r]["value"], 1)
            elif not found or repeat <= LAST or rows[r]["value"] >= value:
                value = rows[r]["value"]
            found = True
        r = rows[r]["newer"]
    return total_of(store, at, low) if adds(repeat) else value


@close
def largest(store: Store, at: int, low: float) -> Any:
    """The value of a part whose row a queue or a heap has."""
    return store.rows[store.firsts[at]]["value"] if store.firsts[at] >= 0 else low


@uncounted
def decisive(store: Store, o: int, i: int, repeat: int) -> Any:
    """The serial of the row that decides an object's score at place i: the newest that a part takes its value from.

    That is the newest row, unless a part counts as the largest of its rows: that is the first of its queue.
    """
    if repeat != MOST:
        return store.objects[o]["serial"]
    rows, d, found = store.rows, len(store.values) // len(store.scores), -1
    for at in range(i * d, i * d + d):
        r = store.firsts[at]
        if r >= 0 and (found < 0 or is_newer(rows, r, found)):
            found = r
    return rows[found]["serial"]


@inlined
def is_newer(rows: Records, one: int, other: int) -> Any:
    if rows[one]["stamp"] != rows[other]["stamp"]:
        return rows[one]["stamp"] > rows[other]["stamp"]
    return rows[one]["serial"] > rows[other]["serial"]


@uncounted
def decisive_row(store: Store, o: int, repeat: int, values: Floats, at: int) -> Any:
    """The same as a place in any window, by the values of the parts from `at` on."""
    rows, r = store.rows, store.objects[o]["newest"]
    while repeat == MOST and rows[r]["older"] >= 0 and rows[r]["value"] < values[at + rows[r]["part"]]:
        r = rows[r]["older"]
    return r


@uncounted
def first_valid(store: Store, o: int, bound: int) -> Any:
    """The oldest row of an object that is newer than the bound."""
    r = store.objects[o]["oldest"]
    while r >= 0 and store.rows[r]["stamp"] <= bound:
        r = store.rows[r]["newer"]
    return r


@uncounted
def assess(store: Store, combination: Combination, queries: Queries, o: int, v: int, bound: int) -> None:
    """Compute an object's values and score in a view from its rows."""
    d, rows = len(combination.lows), store.rows
    i = o * len(queries.views) + v
    first, count = first_valid(store, o, bound), 0
    r = first
    if queries.repeat == LAST_MOST:
        store.firsts[i] = -1
    while r >= 0:
        count += 1
        if queries.repeat == LAST_MOST:
            enter_heap(store, len(queries.views), i, r)
        r = rows[r]["newer"]
    for p in range(d):
        at, low = i * d + p, combination.lows[p]
        if queues(queries.repeat):
            store.firsts[at] = first_since(store, o * d + p, bound)
        if finds(queries.repeat):
            store.values[at] = largest(store, at, low)
        else:
            store.values[at] = value_of(store, first, p, queries.repeat, low, at)
    store.scores[i]["count"] = count
    store.scores[i]["score"] = combine(combination, store.values, i * d)
