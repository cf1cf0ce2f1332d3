"""The best objects of a view, kept in order, and how changes of the answers are told.

A front holds everybody who ranks above its floor, best first: the k best of each query are its first k. When fewer
are left than somebody asks for, it is filled anew from all objects (haghani2009, section 3.1: k_max > k entries).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.incomplete.kernels.rows import LISTED, NOWHERE, REFILLED, TOUCHED, WRITTEN, Records, Store
from skyband.kernels.compile import uncounted
from skyband.kernels.records import BITS

SMALLEST = 4


@uncounted
def above_floor(store: Store, f: int, o: int, i: int) -> Any:
    """Does object o, seen as sight i, belong into the front?"""
    fronts, score = store.fronts, store.sights[i]["score"]
    if store.sights[i]["count"] == 0 or not score >= fronts[f]["score"]:
        return False
    if score > fronts[f]["score"]:
        return True
    newest = store.rows[store.things[o]["newest"]]
    if newest["stamp"] != fronts[f]["stamp"]:
        return newest["stamp"] > fronts[f]["stamp"]
    return newest["serial"] >= fronts[f]["serial"]


@uncounted
def rank_in(store: Store, f: int, v: int, o: int) -> Any:
    """How many of the front rank above object o."""
    V = len(store.sights) // len(store.things)
    score, newest = store.sights[o * V + v]["score"], store.things[o]["newest"]
    stamp, serial = store.rows[newest]["stamp"], store.rows[newest]["serial"]
    low, high = store.fronts[f]["start"], store.fronts[f]["start"] + store.fronts[f]["size"]
    while low < high:
        middle = (low + high) // 2
        other = store.lists[middle]
        theirs, last = store.sights[other * V + v]["score"], store.things[other]["newest"]
        if theirs != score:
            higher = theirs > score
        elif store.rows[last]["stamp"] != stamp:
            higher = store.rows[last]["stamp"] > stamp
        else:
            higher = store.rows[last]["serial"] > serial
        if higher:
            low = middle + 1
        else:
            high = middle
    return low - store.fronts[f]["start"]


@uncounted
def pull(store: Store, f: int, v: int, o: int) -> None:
    """Object o out of the front, where it is by its score."""
    place = rank_in(store, f, v, o)
    start, size = store.fronts[f]["start"], store.fronts[f]["size"]
    for i in range(start + place, start + size - 1):
        store.lists[i] = store.lists[i + 1]
    store.fronts[f]["size"] = size - 1
    store.fronts[f]["low"] = min(store.fronts[f]["low"], place)


@uncounted
def put(store: Store, f: int, v: int, o: int) -> None:
    """Object o into the front."""
    place, fronts = rank_in(store, f, v, o), store.fronts
    if fronts[f]["size"] == fronts[f]["room"]:
        room = max(SMALLEST, 2 * fronts[f]["room"])
        for i in range(fronts[f]["size"]):
            store.lists[store.facts[LISTED] + i] = store.lists[fronts[f]["start"] + i]
        fronts[f]["start"] = store.facts[LISTED]
        fronts[f]["room"] = room
        store.facts[LISTED] += room
    start, size = fronts[f]["start"], fronts[f]["size"]
    for i in range(start + size, start + place, -1):
        store.lists[i] = store.lists[i - 1]
    store.lists[start + place] = o
    fronts[f]["size"] = size + 1
    fronts[f]["low"] = min(fronts[f]["low"], place)


@uncounted
def cut(store: Store, asked: Records, f: int, v: int, most: int, net: bool, out: Records, step: Records) -> None:
    """A front that has grown to twice its length keeps the best, and its floor rises; the others leave for sure."""
    V, fronts = len(store.sights) // len(store.things), store.fronts
    if fronts[f]["size"] < 2 * most:
        return
    for place in range(fronts[f]["start"] + most, fronts[f]["start"] + fronts[f]["size"]):
        o = store.lists[place]
        for q in range(0 if net else len(asked)):
            if asked[q]["view"] == v and store.sights[o * V + v]["inside"] & BITS[q]:
                tell(store, o, o * V + v, q, -1, out, step, True)
    fronts[f]["size"] = most
    o = store.lists[fronts[f]["start"] + most - 1]
    newest = store.rows[store.things[o]["newest"]]
    fronts[f]["score"] = store.sights[o * V + v]["score"]
    fronts[f]["stamp"] = newest["stamp"]
    fronts[f]["serial"] = newest["serial"]


@uncounted
def refill(store: Store, asked: Records, g: int, v: int, most: int, out: Records, step: Records) -> None:
    """The front anew, from all objects of the group. Who is in it now is among the best, so nobody is lost."""
    V = len(store.sights) // len(store.things)
    f, head = g * V + v, store.packs[g]["head"]
    store.facts[REFILLED] += 1
    store.fronts[f]["size"] = 0
    store.fronts[f]["score"] = -np.inf
    store.fronts[f]["stamp"] = store.fronts[f]["serial"] = NOWHERE
    for i in range(head, head + store.packs[g]["size"]):
        r = store.order[i]
        o = store.rows[r]["object"]
        if o >= 0 and store.things[o]["newest"] == r and above_floor(store, f, o, o * V + v):
            put(store, f, v, o)
            cut(store, asked, f, v, most, True, out, step)
    store.fronts[f]["low"] = 0


@uncounted
def tell(store: Store, o: int, i: int, q: int, diff: int, out: Records, step: Records, was: bool) -> None:
    """Object o enters or leaves the answer of query q; `was`: as it was last shown."""
    n = store.facts[WRITTEN]
    out[n] = step[0]
    if was:
        out[n]["key"] = store.told[i]["score"]
        out[n]["stamp"] = store.told[i]["stamp"]
        out[n]["serial"] = store.told[i]["serial"]
    else:
        newest = store.rows[store.things[o]["newest"]]
        out[n]["key"] = store.sights[i]["score"]
        out[n]["stamp"] = newest["stamp"]
        out[n]["serial"] = newest["serial"]
    out[n]["query"] = q
    out[n]["diff"] = diff
    out[n]["first"] = diff > 0 and not store.sights[i]["shown"] & BITS[q]
    if diff > 0:
        store.sights[i]["inside"] |= BITS[q]
        store.sights[i]["shown"] |= BITS[q]
    else:
        store.sights[i]["inside"] &= ~BITS[q]
    store.facts[WRITTEN] = n + 1


@uncounted
def remember(store: Store, o: int, i: int) -> None:
    """What is shown of an object."""
    newest = store.rows[store.things[o]["newest"]]
    store.told[i]["score"] = store.sights[i]["score"]
    store.told[i]["stamp"] = newest["stamp"]
    store.told[i]["serial"] = newest["serial"]


@uncounted
def compare(store: Store, asked: Records, f: int, v: int, out: Records, step: Records) -> None:
    """How the answers differ from those before this step."""
    V = len(store.sights) // len(store.things)
    start, size, low = store.fronts[f]["start"], store.fronts[f]["size"], store.fronts[f]["low"]
    for q in range(len(asked)):
        k = asked[q]["k"]
        if asked[q]["view"] != v or low >= k:
            continue
        for t in range(store.facts[TOUCHED]):
            i = store.touched[t] * V + v
            if store.sights[i]["inside"] & BITS[q] and not above_floor(store, f, store.touched[t], i):
                tell(store, store.touched[t], i, q, -1, out, step, True)
        for place in range(start + min(k, size), start + size):
            o = store.lists[place]
            if store.sights[o * V + v]["inside"] & BITS[q]:
                tell(store, o, o * V + v, q, -1, out, step, True)
        for place in range(start, start + min(k, size)):
            o = store.lists[place]
            if not store.sights[o * V + v]["inside"] & BITS[q]:
                tell(store, o, o * V + v, q, 1, out, step, False)
                remember(store, o, o * V + v)


@uncounted
def compare_all(store: Store, asked: Records, g: int, out: Records, step: Records) -> None:
    """How the answers of a group differ from those last shown, whatever has happened since."""
    V = len(store.sights) // len(store.things)
    head, size = store.packs[g]["head"], store.packs[g]["size"]
    for q in range(len(asked)):
        v, k = asked[q]["view"], asked[q]["k"]
        f = g * V + v
        for place in range(head, head + size):
            o = store.rows[store.order[place]]["object"]
            if o < 0 or store.things[o]["newest"] != store.order[place]:
                continue
            i = o * V + v
            if store.sights[i]["inside"] & BITS[q] and (
                not above_floor(store, f, o, i) or rank_in(store, f, v, o) >= k
            ):
                tell(store, o, i, q, -1, out, step, True)
        for place in range(store.fronts[f]["start"], store.fronts[f]["start"] + min(k, store.fronts[f]["size"])):
            o = store.lists[place]
            if not store.sights[o * V + v]["inside"] & BITS[q]:
                tell(store, o, o * V + v, q, 1, out, step, False)
            store.sights[o * V + v]["shown"] |= BITS[q]
    for f in range(g * V, g * V + V):
        for place in range(store.fronts[f]["start"], store.fronts[f]["start"] + store.fronts[f]["size"]):
            remember(store, store.lists[place], store.lists[place] * V + f - g * V)
