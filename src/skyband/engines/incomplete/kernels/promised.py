"""The sweep of `promised.py`: what an instance can still become where a part comes at most m times."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.batches import MOST, NOWHERE, TOUCHED, Batch, Floats, Queries, Records
from skyband.engines.incomplete.kernels.combine import Combination, combine
from skyband.engines.incomplete.kernels.fronts import insert
from skyband.engines.incomplete.kernels.linked_fronts import belongs
from skyband.engines.incomplete.kernels.linked_steps import compact_backwards, step_aside, touch
from skyband.engines.incomplete.kernels.linked_store import Store, assess, free_object, unlink
from skyband.engines.incomplete.kernels.sweep import raise_top
from skyband.kernels.compile import uncounted, uncounted_kernel
from skyband.kernels.records import NEVER

SLACK = 1e-9  # relative; sums of the same rows in another order differ by less


class Promise(NamedTuple):
    """How often a part comes at most, and arrays to work with."""

    most: int
    values: Floats  # by object and part: of the instance at hand
    counts: Records
    held: Floats  # by object: its score among the best so far; NaN: not seen yet
    gone: Records  # by object: a newer instance of it is dropped
    dropped: Records  # rows
    top: Floats  # the k best current scores so far, rising
    work: Floats  # by part


@uncounted
def include(combination: Combination, promise: Promise, o: int, p: int, value: float, repeat: int) -> None:
    """Add the next older row of object o to the values of its parts."""
    d, values, counts = len(combination.lows), promise.values, promise.counts
    if promise.held[o] != promise.held[o]:
        promise.held[o], promise.gone[o] = -np.inf, False
        for j in range(o * d, o * d + d):
            values[j], counts[j] = combination.lows[j - o * d], 0
    at = o * d + p
    if counts[at] == 0:
        values[at] = value
    elif repeat == MOST:
        values[at] = max(values[at], value)
    else:
        values[at] += value
    counts[at] += 1


@uncounted
def lowest(combination: Combination, promise: Promise, o: int, repeat: int) -> Any:
    """The score that an instance has at least (currentscore)."""
    d = len(combination.lows)
    for p in range(d):
        value = promise.values[o * d + p]
        promise.work[p] = value if repeat == MOST or promise.counts[o * d + p] <= 1 else value * (1 - SLACK)
    return combine(combination, promise.work, 0)


@uncounted
def highest(combination: Combination, promise: Promise, o: int, repeat: int) -> Any:
    """The score that an instance can have at most (bestscore): with as many rows more as the promise allows."""
    d = len(combination.lows)
    for p in range(d):
        value, more = promise.values[o * d + p], promise.most - promise.counts[o * d + p]
        if more > 0 and repeat == MOST:
            value = combination.highs[p]
        elif more > 0:
            before = value if promise.counts[o * d + p] > 0 else 0.0
            value = (before + more * combination.highs[p]) * (1 + SLACK)
        elif repeat != MOST:
            value = value * (1 + SLACK)
        promise.work[p] = value
    return combine(combination, promise.work, 0)


@uncounted
def find_hopeless(store: Store, combination: Combination, queries: Queries, promise: Promise, g: int) -> Any:
    """Find the rows whose instances are dominated; returns how many. No dead row is in the order."""
    rows, repeat, K = store.rows, queries.repeat, queries.views[0]["k"]
    head, size = store.groups[g]["head"], store.groups[g]["size"]
    for place in range(head, head + size):
        promise.held[rows[store.order[place]]["object"]] = np.nan
    full, bound, dropped = 0, -np.inf, 0
    for place in range(head + size - 1, head - 1, -1):
        r = store.order[place]
        o = rows[r]["object"]
        include(combination, promise, o, rows[r]["part"], rows[r]["value"], repeat)
        if not promise.gone[o]:
            promise.gone[o] = highest(combination, promise, o, repeat) < bound
        if promise.gone[o]:  # and so are all older ones: they can become no more
            reported = store.scores[o]["shown"] | store.scores[o]["inside"]
            if store.objects[o]["newest"] != r or not reported:  # else it would be new when it returns
                promise.dropped[dropped] = r
                dropped += 1
            continue
        current = lowest(combination, promise, o, repeat)
        if current > bound:
            full = raise_top(promise.top, full, promise.held[o], current)
            promise.held[o] = current
            bound = promise.top[0] if full == K else bound
    return dropped


@uncounted_kernel
def drop_hopeless(
    store: Store, combination: Combination, queries: Queries, promise: Promise, batch: Batch, g: int
) -> None:
    """Drop the instances of a group that interval dominance allows to drop: none is in an answer."""
    for j in range(find_hopeless(store, combination, queries, promise, g)):
        r = promise.dropped[j]
        o = store.rows[r]["object"]
        if not store.objects[o]["touched"]:
            step_aside(store, queries, g, o)
            touch(store, o)
        unlink(store, queries, r)
    for t in range(store.facts[TOUCHED]):
        o = store.touched[t]
        store.objects[o]["touched"] = 0
        if store.objects[o]["rows"] == 0:
            free_object(store, o)
        else:
            assess(store, combination, queries, o, 0, NOWHERE)
            if belongs(store, g, o, o):
                insert(store, g, 0, o)
    store.facts[TOUCHED] = 0
    compact_backwards(store, batch, g)
    store.fronts[g]["changed"] = NEVER
