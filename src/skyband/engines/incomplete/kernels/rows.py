"""The store of incomplete objects: rows, the objects they belong to, and the order in which rows expire.

Rows and objects lie in pools, so that they keep their places; a group's rows are a run of places, the oldest first.
The rows of an object are a chain, the oldest first. Objects are found by group and id in an open-addressing table.
A view is one length of window: what an object counts for in it is a sight.

Room is made by the caller: kernels stop when a pool or an arena could be too small for the next step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.incomplete.kernels.combine import Recipe, combine
from skyband.kernels.compile import close, inlined, uncounted
from skyband.kernels.records import NEVER

Records = NDArray[Any]
Floats = NDArray[np.float64]

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
THING = np.dtype(
    [
        ("name", "i8"),
        ("group", "i4"),
        ("oldest", "i4"),  # ends of its chain, -1: none; of free places: the next one
        ("newest", "i4"),
        ("rows", "i4"),
        ("mark", "i4"),  # touched in this step
        ("waits", "i4"),  # without rows, until a net batch ends
    ],
    align=True,
)
SIGHT = np.dtype(
    [
        ("score", "f8"),
        ("count", "i4"),  # its valid rows
        ("inside", "u4"),  # bit q: in the answer of query q
        ("shown", "u4"),  # bit q: has been in an emitted answer of q since it was there
    ],
    align=True,
)
TOLD = np.dtype([("score", "f8"), ("stamp", "i8"), ("serial", "i8")], align=True)  # of a sight, as last shown
PACK = np.dtype(  # of a group
    [
        ("start", "i8"),
        ("room", "i8"),
        ("head", "i8"),  # its run of places in the order
        ("size", "i8"),
        ("dead", "i8"),  # of these
        ("limit", "i8"),  # sweep when more are kept
        ("due", "i8"),  # no window lets go of anything before
        ("open", "i8"),  # 1: within a batch that is to be reported later
        ("dirty", "i8"),  # 1: answers may have changed since they were shown
        ("seen", "i8"),  # arrivals
        ("now", "i8"),  # of the last step
        ("tick", "i8"),  # the caller is asked when so many have arrived
    ],
    align=True,
)
FRONT = np.dtype(  # of a group and a view: the best objects, best first; whoever ranks above the floor is in it
    [
        ("start", "i8"),
        ("room", "i8"),
        ("size", "i8"),
        ("edge", "i8"),  # how many of the group's rows are too old for this view
        ("score", "f8"),  # the floor
        ("stamp", "i8"),
        ("serial", "i8"),
        ("low", "i8"),  # the first place that has changed in this step
    ],
    align=True,
)
VIEW = np.dtype([("length", "i8"), ("k", "i8"), ("most", "i8")], align=True)  # most: a front is cut to it
ASKED = np.dtype([("k", "i8"), ("view", "i8")], align=True)
PIECE = np.dtype(  # a row as it is stored; object: which of its group's
    [("value", "f8"), ("stamp", "i8"), ("serial", "i8"), ("part", "i4"), ("object", "i4")], align=True
)
# facts
FREE_ROW, FREE_THING, THINGS, USED, LISTED, WRITTEN, TOUCHED, WAITING, LIVE, VISIT, ARRIVAL, SWEPT, REFILLED = range(13)
FACTS = 16
NOWHERE = -NEVER


class Store(NamedTuple):
    rows: Records
    things: Records
    sights: Records  # thing by thing, one for each view
    told: Records  # sight by sight; apart, since it is seldom looked at
    values: Floats  # sight by sight, one for each part
    table: Records  # of places of things; -1: free
    order: Records  # arena of the groups' runs
    packs: Records
    fronts: Records  # group by group, one for each view
    lists: Records  # arena of the fronts
    touched: Records  # things of this step
    waiting: Records  # things without rows that answers still show
    facts: Records


# ------------------------------------------------------------------------------ the table


@inlined
def mix(name: np.int64, group: np.int64) -> Any:
    """63 bits of a hash; in halves, so that no product overflows."""
    bits = np.uint64(name)
    mixed = (
        (bits & np.uint64(0xFFFFFFFF)) * np.uint64(0x9E3779B1)
        ^ (bits >> np.uint64(32)) * np.uint64(0x85EBCA77)
        ^ np.uint64(group) * np.uint64(0xC2B2AE3D)
    )
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(0x7FFFFFFFFFFFFFFF))


@inlined
def home_of(name: np.int64, group: np.int64, mask: int) -> Any:
    return mix(name, group) & mask


@close
def place_of(table: Records, things: Records, name: np.int64, group: np.int64) -> Any:
    """Where a thing is in the table, or belongs."""
    mask = len(table) - 1
    place = home_of(name, group, mask)
    while table[place] >= 0 and (things[table[place]]["name"] != name or things[table[place]]["group"] != group):
        place = (place + 1) & mask
    return place


@close
def forget_thing(store: Store, o: int) -> None:
    """A thing without rows: out of the table, its place is free."""
    table, things = store.table, store.things
    mask = len(table) - 1
    hole = place_of(table, things, things[o]["name"], things[o]["group"])
    place = hole
    while True:  # whoever was pushed past the hole moves back
        place = (place + 1) & mask
        if table[place] < 0:
            break
        adapter = home_of(things[table[place]]["name"], things[table[place]]["group"], mask)
        if ((place - adapter) & mask) >= ((place - hole) & mask):
            table[hole] = table[place]
            hole = place
    table[hole] = -1
    things[o]["oldest"] = store.facts[FREE_THING]
    things[o]["group"] = -1
    store.facts[FREE_THING] = o
    store.facts[THINGS] -= 1


@close
def make_thing(store: Store, place: int, name: np.int64, group: np.int64, lows: Floats) -> Any:
    things, V, d = store.things, len(store.sights) // len(store.things), len(lows)
    o = store.facts[FREE_THING]
    store.facts[FREE_THING] = things[o]["oldest"]
    store.facts[THINGS] += 1
    store.table[place] = o
    things[o]["name"] = name
    things[o]["group"] = group
    things[o]["oldest"] = things[o]["newest"] = -1
    things[o]["rows"] = things[o]["mark"] = things[o]["waits"] = 0
    for i in range(o * V, o * V + V):
        store.sights[i]["count"] = 0
        store.sights[i]["inside"] = store.sights[i]["shown"] = 0
        store.sights[i]["score"] = np.nan
        for p in range(d):
            store.values[i * d + p] = lows[p]
    return o


# ---------------------------------------------------------------------------- rows, chains


@close
def link(rows: Records, things: Records, o: int, r: int) -> Any:
    """Row r joins its object's chain; whether it is the newest."""
    stamp = rows[r]["stamp"]
    after = things[o]["newest"]
    newest = after < 0 or rows[after]["stamp"] <= stamp
    while after >= 0 and rows[after]["stamp"] > stamp:
        after = rows[after]["older"]
    rows[r]["older"] = after
    rows[r]["newer"] = things[o]["oldest"] if after < 0 else rows[after]["newer"]
    if after < 0:
        things[o]["oldest"] = r
    else:
        rows[after]["newer"] = r
    if rows[r]["newer"] < 0:
        things[o]["newest"] = r
    else:
        rows[rows[r]["newer"]]["older"] = r
    things[o]["rows"] += 1
    return newest


@close
def unlink(rows: Records, things: Records, r: int) -> None:
    """Row r leaves its object's chain: it is dead."""
    o, older, newer = rows[r]["object"], rows[r]["older"], rows[r]["newer"]
    if older < 0:
        things[o]["oldest"] = newer
    else:
        rows[older]["newer"] = newer
    if newer < 0:
        things[o]["newest"] = older
    else:
        rows[newer]["older"] = older
    things[o]["rows"] -= 1
    rows[r]["object"] = -1


@inlined
def release(rows: Records, facts: Records, alive: Records, serial: int, r: int) -> None:
    """The place of a row that is out of the order is free."""
    row = rows[r]["serial"] - serial
    if row >= 0:
        alive[row] = False
    rows[r]["object"] = -1
    rows[r]["older"] = facts[FREE_ROW]
    facts[FREE_ROW] = r


@close
def value_of(rows: Records, first: int, p: int, repeat: int, low: float) -> Any:
    """What part p counts, from row `first` of a chain on."""
    total, found = low, False
    r = first
    while r >= 0:
        if rows[r]["part"] == p:
            value = rows[r]["value"]
            if not found or repeat <= LAST:
                total = value
            elif repeat == MOST:
                total = value if value > total else total
            else:
                total = total + value
            found = True
        r = rows[r]["newer"]
    return total


ONCE, LAST, MOST, TOTAL = range(4)  # repeats


@uncounted
def first_valid(rows: Records, things: Records, o: int, bound: int) -> Any:
    """The oldest row of an object that is newer than the bound."""
    r = things[o]["oldest"]
    while r >= 0 and rows[r]["stamp"] <= bound:
        r = rows[r]["newer"]
    return r


@uncounted
def assess(store: Store, recipe: Recipe, o: int, v: int, bound: int, repeat: int) -> None:
    """What an object counts in a view, all anew."""
    V, d = len(store.sights) // len(store.things), len(recipe.lows)
    i = o * V + v
    first = first_valid(store.rows, store.things, o, bound)
    count = 0
    r = first
    while r >= 0:
        count += 1
        r = store.rows[r]["newer"]
    for p in range(d):
        store.values[i * d + p] = value_of(store.rows, first, p, repeat, recipe.lows[p])
    store.sights[i]["count"] = count
    store.sights[i]["score"] = combine(recipe, store.values, i * d)
