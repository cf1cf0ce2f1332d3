"""The store of SWEEP: objects with the value and stamp of each part, and the rows of each group.

An object is one record for each part: what has expired shows by its stamp. A score can only fall while nothing
arrives, so an object needs no attention when its rows expire, unless it is in the front (fronts.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.batches import (
    FREE_COUNT,
    NOWHERE,
    STORED_ROW,
    TOUCHED,
    Floats,
    Queries,
    Records,
)
from skyband.engines.incomplete.kernels.combine import Combination, combine
from skyband.engines.incomplete.kernels.fronts import FIELDS, above_floor, clear, insert, raise_floor, remove
from skyband.kernels.compile import close, uncounted, uncounted_kernel
from skyband.kernels.records import NEVER

ROW = STORED_ROW  # object: its place
OBJECT = np.dtype(
    [
        ("name", "i8"),
        ("stamp", "i8"),  # of its newest row; NOWHERE: none is kept
        ("serial", "i8"),
        ("group", "i4"),  # -1: a free place
        ("in_front", "i4"),
        ("reported", "i4"),  # its rank in the answer that was last reported; 0: not in it
        ("rank", "i4"),  # while answers are compared
        ("shown", "u4"),  # bit q: has been in a reported answer of query q since it has had a valid row
    ],
    align=True,
)
SCORE = np.dtype(  # of an object, when it was last assessed; apart, since a sweep reads no more of most objects
    [
        ("score", "f8"),  # it has not risen since
        ("best", "f8"),  # with the highest value of every part that it lacked then
    ],
    align=True,
)
COUNTED = np.dtype([("sweep", "i8"), ("score", "f8")], align=True)  # the last sweep that has an object among the k best
REPORTED = np.dtype([("score", "f8"), ("stamp", "i8"), ("serial", "i8"), ("object", "i8")], align=True)  # stored
GROUP = np.dtype(
    [
        ("start", "i8"),
        ("capacity", "i8"),
        ("head", "i8"),  # its run of rows
        ("size", "i8"),
        ("limit", "i8"),  # sweep when more are kept
        ("due", "i8"),  # no row expires before
        ("open", "i8"),  # 1: within a batch that is to be reported later
        ("now", "i8"),  # of the last step
    ],
    align=True,
)
FRONT = np.dtype(
    [
        *FIELDS,
        ("reported", "i8"),  # how many objects were last reported: in the same places as the members
        ("since", "i8"),  # reported objects have a newer row
        ("next", "i8"),  # no row of a member is older
    ],
    align=True,
)


class Store(NamedTuple):
    rows: Records  # arena of the groups' runs
    objects: Records
    scores: Records  # of these
    values: Floats  # object by object, one for each part; low: not there
    stamps: Records  # of these; NOWHERE: not there
    free: Records  # places of objects, the next one last
    groups: Records
    fronts: Records  # of these
    members: Records  # arena of the fronts
    reported: Records  # and of answers, in the same places
    touched: Records  # objects that a step has taken out of the front
    counted: Records  # of objects, during a sweep
    dropped: Records  # objects that a sweep has taken rows of
    instance: Floats  # by part: values of one
    top: Floats  # the k best current scores in a sweep, rising
    facts: Records


@close
def assess(store: Store, combination: Combination, o: int, bound: int) -> None:
    """Compute the score of an object as it is now; what is not newer than the bound has expired."""
    d = len(combination.lows)
    for i in range(d):  # written always: which parts are there cannot be predicted
        stamp, value, low = store.stamps[o * d + i], store.values[o * d + i], combination.lows[i]
        store.stamps[o * d + i] = stamp if stamp > bound else NOWHERE
        store.values[o * d + i] = value if stamp > bound else low
    store.scores[o]["score"] = combine(combination, store.values, o * d)


@close
def assess_best(store: Store, combination: Combination, o: int, bound: int) -> None:
    """Compute the score that an object would have with the highest value of every part that it lacks."""
    d = len(combination.lows)
    for p in range(d):
        value, high = store.values[o * d + p], combination.highs[p]
        store.instance[p] = value if store.stamps[o * d + p] > bound else high
    store.scores[o]["best"] = combine(combination, store.instance, 0)


@uncounted
def pull(store: Store, g: int, o: int) -> None:
    """An object that is about to change leaves the front."""
    remove(store, g, 0, o)
    store.objects[o]["in_front"] = 0
    store.touched[store.facts[TOUCHED]] = o
    store.facts[TOUCHED] += 1


@uncounted
def put(store: Store, queries: Queries, d: int, g: int, o: int) -> None:
    """An object that ranks above the floor enters the front; one that has grown too long keeps its best."""
    front, most = store.fronts[g], queries.views[0]["most"]
    start = front["start"]
    insert(store, g, 0, o)
    for i in range(front["reported"] if front["start"] != start else 0):  # the front has moved
        store.reported[front["start"] + i] = store.reported[start + i]
    store.objects[o]["in_front"] = 1
    for p in range(d):
        if store.stamps[o * d + p] > NOWHERE:
            front["next"] = min(front["next"], store.stamps[o * d + p])
    if front["size"] == 2 * most:
        for i in range(front["start"] + most, front["start"] + front["size"]):
            store.objects[store.members[i]]["in_front"] = 0
        raise_floor(store, g, 0, most)


@uncounted
def refill(store: Store, combination: Combination, queries: Queries, g: int, bound: int) -> None:
    """Fill the front from all objects of the group."""
    rows, group, front, d = store.rows, store.groups[g], store.fronts[g], len(combination.lows)
    for i in range(front["start"], front["start"] + front["size"]):
        store.objects[store.members[i]]["in_front"] = 0
    clear(store, g)
    front["next"] = NEVER
    for i in range(group["head"], group["head"] + group["size"]):
        o = rows[i]["object"]
        if rows[i]["stamp"] > bound and rows[i]["serial"] == store.objects[o]["serial"]:
            assess(store, combination, o, bound)
            if above_floor(store, g, o, o):
                put(store, queries, d, g, o)


@uncounted
def free_expired(store: Store, length: int) -> Any:
    """Free the places of objects without valid rows; returns how many are not free."""
    objects, begun, n = store.objects, len(store.groups) > 0, 0
    for o in range(len(objects) - 1, -1, -1):
        one = objects[o]
        g = int(one["group"])
        bound = store.groups[max(g, 0)]["now"] - length if begun else 0
        gone = (g < 0) | ((one["reported"] == 0) & (one["stamp"] <= bound))
        one["group"] = -1 if gone else g
        store.free[n] = o  # written always: which have gone cannot be predicted
        n += gone
    store.facts[FREE_COUNT] = n
    return len(objects) - n


@uncounted_kernel
def free_objects(store: Store, length: int) -> Any:
    """As `free_expired`, an entry point: code that was compiled ahead cannot be called by kernels."""
    return free_expired(store, length)
