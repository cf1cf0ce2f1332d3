"""SWEEP: interval dominance by a lazy sweep from the newest row to the oldest (haghani2009, Definition 1).

Each row is an instance of its object: the object as it will be when all older rows have expired. `current` takes its
newer rows, `best` adds the highest value for every part that they lack. What cannot reach the k best current scores
of distinct newer objects is no answer for as long as it lives, and goes. An instance that goes takes the older ones
of its object with it: their best is no higher.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.combine import Recipe, combine
from skyband.kernels.compile import part
from skyband.kernels.leaders import above_floor, pull, put
from skyband.kernels.pieces import LIVE, SWEPT, Floats, Records, Store, forget_thing, release, unlink
from skyband.kernels.records import NEVER


class Bench(NamedTuple):
    """What a sweep works with."""

    lows: Floats  # by object and part: the values of its newer rows, else low
    highs: Floats  # else high
    held: Floats  # by object: its current score, if it is among the k best, else -inf; NaN: not seen yet
    cut: Records  # by object: an instance has gone, and the older ones with it
    top: Floats  # the k best, rising


@part
def raise_top(top: Floats, size: int, was: float, score: float) -> int:
    """The k best scores with one more, or with one that has risen from `was`; how many there are."""
    place = 0
    if was > -np.inf:  # it is in there
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


@part
def sweep(store: Store, recipe: Recipe, bench: Bench, g: int, alive: Records, serial: int) -> None:
    """Drop the instances of a group that interval dominance allows to drop, and squeeze its order."""
    rows, things, order, sights = store.rows, store.things, store.order, store.sights
    lows, highs = bench.lows, bench.highs
    d, K = len(recipe.lows), len(bench.top)
    head, size = store.packs[g]["head"], store.packs[g]["size"]
    end = head + size
    store.facts[SWEPT] += 1
    for place in range(head, end):
        bench.held[rows[order[place]]["object"]] = np.nan
    to, full, bound = end, 0, -np.inf
    for place in range(end - 1, head - 1, -1):
        r = order[place]
        o = rows[r]["object"]
        base, p, held = o * d, rows[r]["part"], bench.held[o]
        if held != held:
            for j in range(d):
                lows[base + j] = recipe.lows[j]
                highs[base + j] = recipe.highs[j]
            bench.held[o] = held = -np.inf
            bench.cut[o] = False
        gone = bench.cut[o]
        if not gone:
            highs[base + p] = rows[r]["value"]
            if full == K and combine(recipe, highs, base) < bound:
                bench.cut[o] = True
                if above_floor(store, g, o, o):
                    pull(store, g, 0, o)
                # of those who were shown the newest row stays, so that they are not new when they come back
                gone = things[o]["newest"] != r or (sights[o]["shown"] | sights[o]["inside"]) == 0
            else:
                lows[base + p] = rows[r]["value"]
                current = combine(recipe, lows, base)
                if current > bound:
                    full = raise_top(bench.top, full, held, current)
                    bench.held[o] = current
                    if full == K:
                        bound = bench.top[0]
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
    for place in range(to, end):
        r = order[place]
        o = rows[r]["object"]
        if bench.cut[o] and things[o]["newest"] == r:
            for j in range(d):
                store.values[o * d + j] = lows[o * d + j] if things[o]["oldest"] != r else recipe.lows[j]
            if things[o]["oldest"] == r:
                store.values[o * d + rows[r]["part"]] = rows[r]["value"]
            sights[o]["count"] = things[o]["rows"]
            sights[o]["score"] = combine(recipe, store.values, o * d)
            if above_floor(store, g, o, o):
                put(store, g, 0, o)
    store.fronts[g]["low"] = NEVER
