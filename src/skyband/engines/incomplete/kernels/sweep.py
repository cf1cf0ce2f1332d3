"""Interval dominance by a lazy sweep from the newest row to the oldest (haghani2009, Definition 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.incomplete.kernels.batches import NOWHERE, SWEPT, TOUCHED, Batch, Floats, Queries
from skyband.engines.incomplete.kernels.combine import MEAN, Combination, combine
from skyband.engines.incomplete.kernels.fronts import above_floor
from skyband.engines.incomplete.kernels.sweep_store import Store, assess, assess_best, pull, put
from skyband.kernels.compile import close, uncounted


@uncounted
def raise_top(top: Floats, size: int, was: float, score: float) -> Any:
    """Add a score to the k best, or raise one of them from `was`; returns how many there are."""
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
def instance_of(store: Store, combination: Combination, o: int, stamp: int, others: Floats) -> Any:
    """The score of an object with its rows from this stamp on, and these values for the parts that they lack."""
    d = len(combination.lows)
    if combination.form <= MEAN:  # nothing is written down in between
        total = store.values[o * d] if store.stamps[o * d] >= stamp else others[0]
        for p in range(1, d):
            value, other = store.values[o * d + p], others[p]
            total = total + (value if store.stamps[o * d + p] >= stamp else other)
        return total / d if combination.form == MEAN else total
    for p in range(d):
        value, other = store.values[o * d + p], others[p]
        store.instance[p] = value if store.stamps[o * d + p] >= stamp else other
    return combine(combination, store.instance, 0)


@close
def sweep(store: Store, combination: Combination, queries: Queries, batch: Batch, g: int) -> None:
    """Drop the instances of a group that interval dominance allows to drop.

    Each row is an instance of its object (section 3.2.1): the object as it will be when all older rows have expired.
    `current` takes its own and newer rows, `best` adds the highest value for every part that they lack. An instance
    that cannot reach the k best current scores of distinct newer objects is no answer for as long as it lives. With it
    go the older instances of its object: their best is no higher.
    """
    rows, objects, group, d = store.rows, store.objects, store.groups[g], len(combination.lows)
    k, expired = queries.views[0]["k"], group["now"] - queries.views[0]["length"]
    store.facts[SWEPT] += 1
    number, end = store.facts[SWEPT], group["head"] + group["size"]
    to, full, bound, dropped = end, 0, -np.inf, 0
    for place in range(end - 1, group["head"] - 1, -1):
        row = rows[place]
        o = row["object"]
        score = store.scores[o]
        if not (score["best"] >= bound) & (not score["score"] > bound):  # else no instance of it is lower, or higher
            before = store.counted[o]["sweep"] == -number  # a newer instance of it is gone
            gone = before
            if not gone and not score["best"] >= bound:
                gone = instance_of(store, combination, o, row["stamp"], combination.highs) < bound
            if gone:
                one, at = objects[o], o * d + row["part"]
                newest = one["serial"] == row["serial"]
                # an object that was reported keeps its newest row, so that it is not new when it returns
                goes = not newest or (not one["shown"] and not one["reported"])
                if not before:  # best says nothing here: it may be -inf, or NaN
                    if one["in_front"]:
                        pull(store, g, o)
                    store.dropped[dropped] = o
                    dropped += 1
                    score["best"], store.counted[o]["sweep"] = -np.inf, -number
                if goes:
                    store.stamps[at], store.values[at] = NOWHERE, combination.lows[row["part"]]
                    one["stamp"] = NOWHERE if newest else one["stamp"]
                    if row["serial"] >= batch.serial:
                        batch.alive[row["serial"] - batch.serial] = False
                    continue
            elif score["score"] > bound:
                current = instance_of(store, combination, o, row["stamp"], combination.lows)
                if current > bound:
                    mine = store.counted[o]
                    full = raise_top(store.top, full, mine["score"] if mine["sweep"] == number else -np.inf, current)
                    mine["sweep"], mine["score"] = number, current
                    bound = store.top[0] if full == k else bound
        to -= 1
        if to > place:
            rows[to] = rows[place]
    group["head"], group["size"] = to, end - to
    for t in range(dropped):  # none is in an answer
        assess(store, combination, store.dropped[t], expired)
        assess_best(store, combination, store.dropped[t], expired)
    for t in range(store.facts[TOUCHED]):  # no other was in the front: scores have fallen
        o = store.touched[t]
        if objects[o]["stamp"] > NOWHERE and above_floor(store, g, o, o):
            put(store, queries, d, g, o)
    store.facts[TOUCHED] = 0
