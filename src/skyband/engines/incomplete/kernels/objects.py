"""Objects of an incomplete stream, and the best of each group.

An object is one record with the value and the stamp of each part: what has expired shows by its stamp. A score can
only fall while nothing arrives, so nobody has to look at an object when its rows expire, but for those of the front:
all that rank above a floor, best first, the k best among them. When fewer than k are left it is filled anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.incomplete.kernels.combine import Recipe, combine
from skyband.engines.incomplete.kernels.rows import PIECE
from skyband.kernels.compile import close, uncounted, uncounted_kernel
from skyband.kernels.records import NEVER

Records = NDArray[Any]
Floats = NDArray[np.float64]
NOWHERE = -NEVER
ROW = PIECE
OBJECT = np.dtype(
    [
        ("name", "i8"),
        ("stamp", "i8"),  # of its newest row; NOWHERE: none is kept
        ("serial", "i8"),
        ("group", "i4"),  # -1: a free place
        ("front", "i4"),  # 1: in its group's front
        ("told", "i4"),  # its rank in the answer that was told last; 0: not in it
        ("rank", "i4"),  # while answers are compared
        ("shown", "u4"),  # bit q: has been in an emitted answer of query q since it was there
    ],
    align=True,
)
REACH = np.dtype(  # of an object, when it was looked at last; apart from the rest, since a sweep sees no more of most
    [
        ("score", "f8"),  # it has not risen since
        ("best", "f8"),  # it would have with the highest value of every part that it lacked then
    ],
    align=True,
)
NOTE = np.dtype([("sweep", "i8"), ("held", "f8")], align=True)  # the last sweep that has seen an object among the best
TOLD = np.dtype([("score", "f8"), ("stamp", "i8"), ("serial", "i8"), ("object", "i8")], align=True)
GROUP = np.dtype(
    [
        ("start", "i8"),
        ("room", "i8"),
        ("head", "i8"),  # its run of rows
        ("size", "i8"),
        ("limit", "i8"),  # sweep when more are kept
        ("due", "i8"),  # no row expires before
        ("open", "i8"),  # 1: within a batch that is to be reported later
        ("now", "i8"),  # of the last step
        ("first", "i8"),
        ("space", "i8"),  # its front, and as many places for what was told
        ("best", "i8"),  # how many are in the front: all that rank above the floor, best first
        ("told", "i8"),
        ("since", "i8"),  # who is told has a row that is newer
        ("low", "i8"),  # the first place of the front that has changed since answers were told
        ("next", "i8"),  # no row of an object in the front is older
        ("score", "f8"),  # the floor
        ("stamp", "i8"),
        ("serial", "i8"),
    ],
    align=True,
)
DONE, OBJECTS, FRONTS, ROWS, OUT = range(5)  # why a kernel stops
VISIT, ARRIVAL, WRITTEN, FREE, LISTED, TOUCHED, SWEPT, REFILLED, JOINED = range(9)  # facts
FACTS = 9


class Store(NamedTuple):
    rows: Records  # arena of the groups' runs
    objects: Records
    reach: Records  # of these
    values: Floats  # object by object, one for each part; low: not there
    stamps: Records  # of these; NOWHERE: not there
    free: Records  # places of objects, the next one last
    groups: Records
    fronts: Records  # arena of the best objects
    told: Records  # and of answers, in the same places
    touched: Records  # objects that a step has taken out of the front
    notes: Records  # of objects, during a sweep
    dropped: Records  # objects that a sweep has taken something of
    instance: Floats  # by part: values of one
    top: Floats  # the k best current scores in a sweep, rising
    facts: Records


class Spec(NamedTuple):
    """What is asked of all groups."""

    ks: Records  # by query
    was: Records  # the same in the answers that were told last
    k: int  # the largest
    most: int  # a front is cut to it
    length: int  # of the window
    joint: bool  # count windows: an arrival and what it pushes out are one step
    net: bool
    least: int  # rows that a group may have without a sweep


@close
def assess(store: Store, recipe: Recipe, o: int, bound: int) -> None:
    """The score of an object as it is now; what is not newer than the bound has expired."""
    d = len(recipe.lows)
    for i in range(d):  # written always: which parts are there cannot be foreseen
        stamp, value, low = store.stamps[o * d + i], store.values[o * d + i], recipe.lows[i]
        store.stamps[o * d + i] = stamp if stamp > bound else NOWHERE
        store.values[o * d + i] = value if stamp > bound else low
    store.reach[o]["score"] = combine(recipe, store.values, o * d)


@close
def appraise(store: Store, recipe: Recipe, o: int, bound: int) -> None:
    """The score that an object would have with the highest value of every part that it lacks."""
    d = len(recipe.lows)
    for p in range(d):
        value, high = store.values[o * d + p], recipe.highs[p]
        store.instance[p] = value if store.stamps[o * d + p] > bound else high
    store.reach[o]["best"] = combine(recipe, store.instance, 0)


@close
def above_floor(store: Store, g: int, o: int) -> Any:
    """Does an object that has been assessed belong into the front?"""
    score, one, group = store.reach[o]["score"], store.objects[o], store.groups[g]
    if not score >= group["score"]:
        return False
    if score > group["score"]:
        return True
    if one["stamp"] != group["stamp"]:
        return one["stamp"] > group["stamp"]
    return one["serial"] >= group["serial"]


@uncounted
def rank_in(store: Store, g: int, o: int) -> Any:
    """How many of the front rank above object o."""
    one, score = store.objects[o], store.reach[o]["score"]
    first = store.groups[g]["first"]
    low, high = first, first + store.groups[g]["best"]
    while low < high:
        middle = (low + high) // 2
        other, its = store.objects[store.fronts[middle]], store.reach[store.fronts[middle]]["score"]
        if its != score:
            higher = its > score
        elif other["stamp"] != one["stamp"]:
            higher = other["stamp"] > one["stamp"]
        else:
            higher = other["serial"] > one["serial"]
        if higher:
            low = middle + 1
        else:
            high = middle
    return low - first


@uncounted
def pull(store: Store, g: int, o: int) -> None:
    """An object that is about to change leaves the front, where it is by its score."""
    place, first, size = rank_in(store, g, o), store.groups[g]["first"], store.groups[g]["best"]
    for i in range(first + place, first + size - 1):
        store.fronts[i] = store.fronts[i + 1]
    store.groups[g]["best"] = size - 1
    store.groups[g]["low"] = min(store.groups[g]["low"], place)
    store.objects[o]["front"] = 0
    store.touched[store.facts[TOUCHED]] = o
    store.facts[TOUCHED] += 1


@uncounted
def put(store: Store, asked: Spec, d: int, g: int, o: int) -> None:
    """An object that ranks above the floor into the front; one that has grown too long keeps its best."""
    group, place = store.groups[g], rank_in(store, g, o)
    if group["best"] == group["space"]:
        to, space = store.facts[LISTED], max(4, 2 * group["space"])
        for i in range(group["best"]):
            store.fronts[to + i] = store.fronts[group["first"] + i]
            store.told[to + i] = store.told[group["first"] + i]
        group["first"], group["space"] = to, space
        store.facts[LISTED] += space
    first = group["first"]
    for i in range(first + group["best"], first + place, -1):
        store.fronts[i] = store.fronts[i - 1]
    store.fronts[first + place] = o
    store.objects[o]["front"] = 1
    group["best"] += 1
    group["low"] = min(group["low"], place)
    for p in range(d):
        if store.stamps[o * d + p] > NOWHERE:
            group["next"] = min(group["next"], store.stamps[o * d + p])
    if group["best"] == 2 * asked.most:
        for i in range(first + asked.most, first + group["best"]):
            store.objects[store.fronts[i]]["front"] = 0
        group["best"] = asked.most
        worst = store.fronts[first + asked.most - 1]
        last = store.objects[worst]
        group["score"], group["stamp"], group["serial"] = store.reach[worst]["score"], last["stamp"], last["serial"]


@uncounted
def refill(store: Store, recipe: Recipe, asked: Spec, g: int, bound: int) -> None:
    """The front anew, from all objects of the group."""
    rows, group, d = store.rows, store.groups[g], len(recipe.lows)
    store.facts[REFILLED] += 1
    for i in range(group["first"], group["first"] + group["best"]):
        store.objects[store.fronts[i]]["front"] = 0
    group["best"] = group["low"] = 0
    group["score"], group["stamp"], group["serial"], group["next"] = -np.inf, NOWHERE, NOWHERE, NEVER
    for i in range(group["head"], group["head"] + group["size"]):
        o = rows[i]["object"]
        if rows[i]["stamp"] > bound and rows[i]["serial"] == store.objects[o]["serial"]:
            assess(store, recipe, o, bound)
            if above_floor(store, g, o):
                put(store, asked, d, g, o)


@uncounted_kernel
def forget(store: Store, length: int) -> Any:
    """Places of objects whose rows have all expired are free; how many are not."""
    objects, begun, n = store.objects, len(store.groups) > 0, 0
    for o in range(len(objects) - 1, -1, -1):
        one = objects[o]
        g = int(one["group"])
        bound = store.groups[max(g, 0)]["now"] - length if begun else 0
        gone = (g < 0) | ((one["told"] == 0) & (one["stamp"] <= bound))
        one["group"] = -1 if gone else g
        store.free[n] = o  # written always: who has gone cannot be foreseen
        n += gone
    store.facts[FREE] = n
    return len(objects) - n


@uncounted_kernel
def scores_of(recipe: Recipe, values: Floats, scores: Floats) -> None:
    """The scores of many objects."""
    for i in range(len(scores)):
        scores[i] = combine(recipe, values, i * len(recipe.lows))
