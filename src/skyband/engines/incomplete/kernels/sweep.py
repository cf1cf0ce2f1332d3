"""Interval dominance by a lazy sweep from the newest row to the oldest (haghani2009, Definition 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.incomplete.kernels.combine import MEAN, Recipe, combine
from skyband.engines.incomplete.kernels.objects import (
    NOWHERE,
    SWEPT,
    TOUCHED,
    Records,
    Spec,
    Store,
    above_floor,
    appraise,
    assess,
    pull,
    put,
)
from skyband.kernels.compile import close, uncounted

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
def instance_of(store: Store, recipe: Recipe, o: int, stamp: int, others: Floats) -> Any:
    """The score of an object with its rows from this stamp on, and these values for the parts that they lack."""
    d = len(recipe.lows)
    if recipe.form <= MEAN:  # nothing is written down in between
        total = store.values[o * d] if store.stamps[o * d] >= stamp else others[0]
        for p in range(1, d):
            value, other = store.values[o * d + p], others[p]
            total = total + (value if store.stamps[o * d + p] >= stamp else other)
        return total / d if recipe.form == MEAN else total
    for p in range(d):
        value, other = store.values[o * d + p], others[p]
        store.instance[p] = value if store.stamps[o * d + p] >= stamp else other
    return combine(recipe, store.instance, 0)


@close
def sweep(store: Store, recipe: Recipe, asked: Spec, g: int, alive: Records, serial: int) -> None:
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
        row = rows[place]
        o = row["object"]
        reach = store.reach[o]
        if not (reach["best"] >= bound) & (not reach["score"] > bound):  # else no instance of it is lower, or higher
            gone = reach["best"] == -np.inf
            if not gone and not reach["best"] >= bound:
                gone = instance_of(store, recipe, o, row["stamp"], recipe.highs) < bound
            if gone:
                one, at = objects[o], o * d + row["part"]
                newest = one["serial"] == row["serial"]
                # of those who were shown the newest row stays, so that they are not new when they come back
                goes = not newest or (not one["shown"] and not one["told"])
                if reach["best"] > -np.inf:
                    if one["front"]:
                        pull(store, g, o)
                    store.dropped[dropped] = o
                    dropped += 1
                    reach["best"] = -np.inf
                if goes:
                    store.stamps[at], store.values[at] = NOWHERE, recipe.lows[row["part"]]
                    one["stamp"] = NOWHERE if newest else one["stamp"]
                    if row["serial"] >= serial:
                        alive[row["serial"] - serial] = False
                    continue
            elif reach["score"] > bound:
                current = instance_of(store, recipe, o, row["stamp"], recipe.lows)
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
        assess(store, recipe, store.dropped[t], group["now"] - asked.length)
        appraise(store, recipe, store.dropped[t], group["now"] - asked.length)
    for t in range(store.facts[TOUCHED]):  # nobody else was in the front: scores have fallen
        o = store.touched[t]
        if objects[o]["stamp"] > NOWHERE and above_floor(store, g, o):
            put(store, asked, d, g, o)
    store.facts[TOUCHED] = 0
