"""Queues, tables and heaps that find the row that matters among many of one object, without reading the others.

`max`: a queue for each object and part of the rows that no newer one reaches, the oldest first, so falling: its first
valid row has the value. `parts="*"` with `last`: a table of the last row of each object and part; where the largest of
these counts, one that goes may be any of them, so they are in a pairing heap for each object and view.

Cost: a row enters a queue and leaves it once; O(log rows) amortized in a heap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.incomplete.kernels.batches import ALL_MOST, LAST_MOST, LAST_TOTAL, MOST, Queries
from skyband.kernels.compile import close, inlined, uncounted, uncounted_kernel
from skyband.kernels.hashes import slot_of

OUT = -2  # a row that is in no queue, or in no heap; -1: none
#: In a queue (by row): the next newer row and the one before it. In a heap (by row and view): the first child, the next
#: one of the same parent, and the one before it, or the parent of the first
LINK = np.dtype([("down", "i4"), ("next", "i4"), ("before", "i4")], align=True)


@inlined
def queues(repeat: int) -> Any:
    return repeat in (MOST, ALL_MOST)


@inlined
def looks_up(repeat: int) -> Any:
    return repeat in (LAST_TOTAL, LAST_MOST)


@inlined
def finds(repeat: int) -> Any:
    """Whether a queue or a heap has the row that a value is of."""
    return repeat in (MOST, ALL_MOST, LAST_MOST)


# ------------------------------------------------------------------------------------- queues


@close
def part_of(store: Any, r: int, d: int) -> Any:
    """The part that row r counts for: parts without names are one."""
    return store.rows[r]["part"] if d > 1 else 0


@close
def leave_queue(store: Any, queries: Queries, r: int) -> None:
    """Row r leaves its queue, if it is in it."""
    links, before, after = store.links, store.links[r]["before"], store.links[r]["next"]
    if before == OUT:
        return
    V, d, o = len(queries.views), queries.d, store.rows[r]["object"]
    p = part_of(store, r, d)
    for v in range(V):
        at = (o * V + v) * d + p
        if store.firsts[at] == r:
            store.firsts[at] = after
    if before >= 0:
        links[before]["next"] = after
    if after >= 0:
        links[after]["before"] = before
    else:
        store.lasts[o * d + p] = before
    links[r]["before"] = OUT


@close
def next_newer(store: Any, last: int, r: int) -> Any:
    """The row that is next newer than row r in its queue, whose last row is given; -1: none."""
    newer, other = -1, store.lasts[last]
    while other >= 0 and store.rows[other]["stamp"] > store.rows[r]["stamp"]:
        newer, other = other, store.links[other]["before"]
    return newer


@close
def last_before(store: Any, last: int, newer: int) -> Any:
    """The row of a queue before the row `newer`; -1: the last."""
    return store.lasts[last] if newer < 0 else store.links[newer]["before"]


@close
def enter_queue(store: Any, last: int, r: int, newer: int) -> None:
    """Row r enters its queue before the row `newer`, or as the last; rows before it are larger.

    The caller sees to the first rows.
    """
    links, before = store.links, last_before(store, last, newer)
    links[r]["before"], links[r]["next"] = before, newer
    if before >= 0:
        links[before]["next"] = r
    if newer >= 0:
        links[newer]["before"] = r
    else:
        store.lasts[last] = r


@uncounted
def append_to_queue(store: Any, queries: Queries, r: int) -> None:
    """The newest row of its object enters its queue; those that it reaches leave it."""
    rows, d = store.rows, queries.d
    last = rows[r]["object"] * d + part_of(store, r, d)
    other = store.lasts[last]
    while other >= 0 and rows[other]["value"] <= rows[r]["value"]:
        leave_queue(store, queries, other)
        other = store.lasts[last]
    enter_queue(store, last, r, -1)


@uncounted
def first_since(store: Any, last: int, bound: int) -> Any:
    """The first row of a queue that is newer than the bound; -1: none."""
    first, r = -1, store.lasts[last]
    while r >= 0 and store.rows[r]["stamp"] > bound:
        first, r = r, store.links[r]["before"]
    return first


# -------------------------------------------------------------------------- the last row of a part


@close
def place_of_last(store: Any, o: int, part: int) -> Any:
    """The place of the last row of this object and part in the table, or the free one where it belongs."""
    table, rows = store.lasts, store.rows
    mask = len(table) - 1
    place = slot_of(np.int64(part), o, mask)
    while table[place] >= 0 and (rows[table[place]]["object"] != o or rows[table[place]]["part"] != part):
        place = (place + 1) & mask
    return place


@close
def drop_last(store: Any, r: int) -> None:
    """Row r leaves the table, if it is the last row of its part."""
    table, rows = store.lasts, store.rows
    mask = len(table) - 1
    hole = place_of_last(store, rows[r]["object"], rows[r]["part"])
    if table[hole] != r:
        return
    place = hole
    while True:  # rows that were pushed past the hole move back
        place = (place + 1) & mask
        if table[place] < 0:
            break
        other = rows[table[place]]
        slot = slot_of(np.int64(other["part"]), other["object"], mask)
        if ((place - slot) & mask) >= ((place - hole) & mask):
            table[hole] = table[place]
            hole = place
    table[hole] = -1


@uncounted_kernel
def index_lasts(store: Any) -> None:
    """Fill an empty table."""
    for r in range(len(store.rows)):
        o = store.rows[r]["object"]
        if o >= 0:
            store.lasts[place_of_last(store, o, store.rows[r]["part"])] = r


# -------------------------------------------------------------------------------------- heaps


@close
def meld(store: Any, V: int, v: int, one: int, other: int) -> Any:
    """Put two heaps of view v together, given by their largest rows; returns that of both."""
    links = store.links
    if one < 0 or other < 0:
        return max(one, other)
    if store.rows[other]["value"] > store.rows[one]["value"]:
        one, other = other, one
    child = links[one * V + v]["down"]
    links[other * V + v]["next"], links[other * V + v]["before"] = child, one
    if child >= 0:
        links[child * V + v]["before"] = other
    links[one * V + v]["down"], links[one * V + v]["next"], links[one * V + v]["before"] = other, -1, -1
    return one


@close
def enter_heap(store: Any, V: int, i: int, r: int) -> None:
    """Row r enters the heap of the score at place i."""
    v = i % V
    link = store.links[r * V + v]
    link["down"] = link["next"] = link["before"] = -1
    store.firsts[i] = meld(store, V, v, store.firsts[i], r)


@uncounted
def leave_heap(store: Any, V: int, i: int, r: int) -> None:
    """Row r leaves the heap of the score at place i, if it is in it."""
    links, firsts, v = store.links, store.firsts, i % V
    before, after = links[r * V + v]["before"], links[r * V + v]["next"]
    if before == OUT:
        return
    if before >= 0:
        if links[before * V + v]["down"] == r:
            links[before * V + v]["down"] = after
        else:
            links[before * V + v]["next"] = after
        if after >= 0:
            links[after * V + v]["before"] = before
    pairs, child, largest = -1, links[r * V + v]["down"], -1
    while child >= 0:  # its children two by two, then all of these together
        other = links[child * V + v]["next"]
        then = links[other * V + v]["next"] if other >= 0 else -1
        root = meld(store, V, v, child, other)
        links[root * V + v]["next"], pairs, child = pairs, root, then
    while pairs >= 0:
        then = links[pairs * V + v]["next"]
        largest = meld(store, V, v, largest, pairs)
        pairs = then
    if largest >= 0:
        links[largest * V + v]["next"] = links[largest * V + v]["before"] = -1
    firsts[i] = meld(store, V, v, -1 if firsts[i] == r else firsts[i], largest)
    links[r * V + v]["before"] = OUT
