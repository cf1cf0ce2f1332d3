"""Interval dominance by a lazy sweep from the newest row to the oldest (haghani2009, Definition 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.combine import Recipe, combine
from skyband.kernels.compile import close, uncounted
from skyband.kernels.objects import (
    NOWHERE,
    SWEPT,
    TOUCHED,
    Asked,
    Records,
    Store,
    above_floor,
    assess,
    pull,
    put,
)

Floats = NDArray[np.float64]


@uncounted
def raise_top(top: Floats, size: int, was: float, score: float) -> Any:
    """The k best scores with one more, or with one that has risen from `was`; how many there are."""
    place = 0
    if was > -np.inf:  # it is among them
        low, high = 0, size - 1
        while low < high:
            middle = (low + high) // 2
            if top[middle] < was:
                low = middle + 1
            else:
                high = middle
        place = low
    elif size < len(top):
        place = size
        while place > 0 and top[place - 1] > score:
            top[place] = top[place - 1]
            place -= 1
        top[place] = score
        return size + 1
    while place + 1 < size and top[place + 1] < score:
        top[place] = top[place + 1]
        place += 1
    top[place] = score
    return size


@close
def sweep(store: Store, recipe: Recipe, asked: Asked, g: int, alive: Records, serial: int) -> None:
    """Drop the instances of a group that interval dominance allows to drop.

    Each row is an instance of its object: the object as it will be when all older rows have expired. `current` takes
    its newer rows, `best` adds the highest value for every part that they lack. What cannot reach the k best current
    scores of distinct newer objects is no answer for as long as it lives. An instance that goes takes the older ones
    of its object with it: their best is no higher.
    """
    rows, objects, group, d = store.rows, store.objects, store.groups[g], len(recipe.lows)
    store.facts[SWEPT] += 1
    number, end = store.facts[SWEPT], group["head"] + group["size"]
    to, full, bound, dropped = end, 0, -np.inf, 0
    for place in range(end - 1, group["head"] - 1, -1):
        o, stamp = rows[place]["object"], rows[place]["stamp"]
        one = objects[o]
        if one["best"] >= bound and not one["score"] > bound:  # nor is any instance of it lower, or higher
            to -= 1
            if to > place:
                rows[to] = rows[place]
            continue
        gone = one["best"] == -np.inf
        if not gone and not one["best"] >= bound:
            for p in range(d):
                value, high = store.values[o * d + p], recipe.highs[p]
                store.instance[p] = value if store.stamps[o * d + p] >= stamp else high
            gone = combine(recipe, store.instance, 0) < bound
        if gone:
            if one["best"] > -np.inf:
                if one["front"]:
                    pull(store, g, o)
                one["best"] = -np.inf
                store.dropped[dropped] = o
                dropped += 1
            # of those who were shown the newest row stays, so that they are not new when they come back
            if one["serial"] != rows[place]["serial"] or (not one["shown"] and not one["told"]):
                store.stamps[o * d + rows[place]["part"]] = NOWHERE
                store.values[o * d + rows[place]["part"]] = recipe.lows[rows[place]["part"]]
                if one["serial"] == rows[place]["serial"]:
                    one["stamp"] = NOWHERE
                if rows[place]["serial"] >= serial:
                    alive[rows[place]["serial"] - serial] = False
                continue
        elif one["score"] > bound:
            for p in range(d):
                value, low = store.values[o * d + p], recipe.lows[p]
                store.instance[p] = value if store.stamps[o * d + p] >= stamp else low
            current = combine(recipe, store.instance, 0)
            if current > bound:
                note = store.notes[o]
                full = raise_top(store.top, full, note["held"] if note["sweep"] == number else -np.inf, current)
                note["sweep"], note["held"] = number, current
                bound = store.top[0] if full == asked.k else bound
        to -= 1
        if to > place:
            rows[to] = rows[place]
    group["head"], group["size"] = to, end - to
    for t in range(dropped):  # none is in an answer
        o = store.dropped[t]
        if objects[o]["stamp"] > NOWHERE:
            assess(store, recipe, o, group["now"] - asked.length)
            if above_floor(store, g, o):
                put(store, asked, d, g, o)
    store.facts[TOUCHED] = 0
