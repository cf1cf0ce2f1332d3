"""SWEEP: interval dominance by a lazy sweep from the newest row to the oldest (haghani2009, Definition 1).

Each row is an instance of its object: the object as it will be when all older rows have expired. `current` takes its
newer rows, `best` adds the highest value for every part that they lack. What cannot reach the k best current scores
of distinct newer objects is no answer for as long as it lives, and goes. An instance that goes takes the older ones
of its object with it: their best is no higher.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.kernels.combine import Recipe, combine
from skyband.kernels.compile import close, uncounted
from skyband.kernels.leaders import above_floor, pull, put
from skyband.kernels.pieces import (
    LIVE,
    NOWHERE,
    ONCE,
    SWEPT,
    Floats,
    Records,
    Store,
    assess,
    forget_thing,
    release,
    unlink,
)
from skyband.kernels.records import NEVER

NOTE = np.dtype(  # of an object, during a sweep
    [
        ("sweep", "i8"),  # the last one that has seen it
        ("current", "f8"),  # of its newer rows
        ("best", "f8"),  # -inf: an instance has gone, and the older ones with it
        ("held", "f8"),  # its current score, if it is among the k best; else -inf
    ],
    align=True,
)


class Bench(NamedTuple):
    """What a sweep works with."""

    notes: Records  # by object
    values: Floats  # by object and part: those of its newer rows, else low; then the same with high
    top: Floats  # the k best current scores, rising


SLACK = 1e-9  # sums from differences are rounded: what is dropped must be lower by so much of the range


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
def advance(recipe: Recipe, bench: Bench, o: int, p: int, value: float, linear: bool) -> None:
    """An instance one row older: its current and its best score. Sums go by differences, with the slack."""
    notes = bench.notes
    if linear:
        weight = recipe.slopes[p]
        notes[o]["current"] += weight * (value - recipe.lows[p])
        notes[o]["best"] -= weight * (recipe.highs[p] - value)
    else:
        d, half = len(recipe.lows), len(bench.values) // 2
        bench.values[o * d + p] = bench.values[half + o * d + p] = value
        notes[o]["current"] = combine(recipe, bench.values, o * d)
        notes[o]["best"] = combine(recipe, bench.values, half + o * d)


@uncounted
def sweep(store: Store, recipe: Recipe, bench: Bench, g: int, alive: Records, serial: int) -> None:
    """Drop the instances of a group that interval dominance allows to drop, and squeeze its order."""
    rows, things, order, notes = store.rows, store.things, store.order, bench.notes
    d, K, linear, half = len(recipe.lows), len(bench.top), recipe.linear, len(bench.values) // 2
    head, size = store.packs[g]["head"], store.packs[g]["size"]
    end = head + size
    store.facts[SWEPT] += 1
    number, slack = store.facts[SWEPT], SLACK * (recipe.most - recipe.least) if linear else 0.0
    to, full, bound, cut = end, 0, -np.inf, 0
    for place in range(end - 1, head - 1, -1):
        r = order[place]
        o = rows[r]["object"]
        if notes[o]["sweep"] != number:
            notes[o]["sweep"] = number
            notes[o]["current"] = recipe.least
            notes[o]["best"] = recipe.most + slack
            notes[o]["held"] = -np.inf
            for j in range(0 if linear else d):
                bench.values[o * d + j] = recipe.lows[j]
                bench.values[half + o * d + j] = recipe.highs[j]
        gone = notes[o]["best"] == -np.inf
        if not gone:
            advance(recipe, bench, o, rows[r]["part"], rows[r]["value"], linear)
            if notes[o]["best"] < bound:
                notes[o]["best"] = -np.inf
                # of those who were shown the newest row stays, so that they are not new when they come back
                gone = things[o]["newest"] != r or (store.sights[o]["shown"] | store.sights[o]["inside"]) == 0
                if store.sights[o]["score"] >= store.fronts[g]["score"] and above_floor(store, g, o, o):
                    pull(store, g, 0, o)
                    store.sights[o]["score"] = np.nan
                cut += 1
            elif notes[o]["current"] > bound:
                full = raise_top(bench.top, full, notes[o]["held"], notes[o]["current"])
                notes[o]["held"] = notes[o]["current"]
                bound = bench.top[0] if full == K else bound
        if gone:
            unlink(rows, things, r)
            release(rows, store.facts, alive, serial, r)
            if things[o]["rows"] == 0:
                forget_thing(store, o)
        else:
            to -= 1
            order[to] = r
    store.facts[LIVE] -= to - head
    store.packs[g]["head"] = to
    store.packs[g]["size"] = end - to
    for place in range(to, end if cut else to):
        r = order[place]
        o = rows[r]["object"]
        if notes[o]["best"] == -np.inf and things[o]["newest"] == r:
            assess(store, recipe, o, 0, NOWHERE, ONCE)
            if above_floor(store, g, o, o):
                put(store, g, 0, o)
    store.fronts[g]["low"] = NEVER
