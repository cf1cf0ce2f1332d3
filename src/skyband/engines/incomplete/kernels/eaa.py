"""EAA: instances with dominance counters (haghani2009, section 3.2.3, Algorithms 1 and 2).

Each row is an instance (section 3.2.1): `current` from its object's rows that are not older, `best` with the highest
value for every other part. Two sorted lists find the instances that a new or risen current score dominates, and those
that dominate one with a fallen best score; each instance knows the objects that dominate it, and is dropped when
there are k of them.

Cost of an arrival: O(n) for the sorted lists and for what it dominates, times the instances of its object.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.batches import NOWHERE, TOUCHED, Batch, Floats, Output, Queries, Records
from skyband.engines.incomplete.kernels.combine import Combination, combine
from skyband.engines.incomplete.kernels.fronts import insert, remove
from skyband.engines.incomplete.kernels.linked_batches import ARRIVES, next_step
from skyband.engines.incomplete.kernels.linked_fronts import belongs
from skyband.engines.incomplete.kernels.linked_steps import (
    arrive,
    compact_backwards,
    has_expired,
    lose_row,
    new_row,
    settle,
)
from skyband.engines.incomplete.kernels.linked_store import Store, assess, free_object, unlink
from skyband.kernels.compile import uncounted, uncounted_kernel
from skyband.kernels.records import NEVER

INSTANCE = np.dtype([("current", "f8"), ("best", "f8"), ("dominators", "i4"), ("listed", "i4")], align=True)


class Instances(NamedTuple):
    """The instances of all rows; `dc` and `dcmds` of the paper are `dominators` and `ids`."""

    each: Records  # by row
    ids: Records  # by row: up to k objects that dominate it
    by_best: Records  # bsorted, by group in the places of its order: rows by rising best score
    by_current: Records  # csorted: rows by rising current score
    sizes: Records  # by group: how many are listed
    lows: Floats  # values of the instance at hand, by part
    highs: Floats
    dropped: Records  # rows with k dominators


@uncounted
def place_in(instances: Instances, start: int, size: int, best: bool, score: float, after: bool) -> Any:
    """The first place of a sorted list whose score is not below this one; after: is above it."""
    low, high = start, start + size
    while low < high:
        middle = (low + high) // 2
        r = instances.by_best[middle] if best else instances.by_current[middle]
        other = instances.each[r]["best"] if best else instances.each[r]["current"]
        if other < score or (after and other == score):
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def add_to(ordered: Records, place: int, end: int, r: int) -> None:
    for i in range(end, place, -1):
        ordered[i] = ordered[i - 1]
    ordered[place] = r


@uncounted
def take_from(ordered: Records, place: int, end: int, r: int) -> None:
    while ordered[place] != r:
        place += 1
    for i in range(place, end - 1):
        ordered[i] = ordered[i + 1]


@uncounted
def add(instances: Instances, g: int, start: int, r: int) -> None:
    """Add row r to both sorted lists."""
    one, size = instances.each[r], instances.sizes[g]
    add_to(instances.by_best, place_in(instances, start, size, True, one["best"], True), start + size, r)
    add_to(instances.by_current, place_in(instances, start, size, False, one["current"], True), start + size, r)
    one["listed"] = 1
    instances.sizes[g] += 1


@uncounted
def take_out(instances: Instances, g: int, start: int, r: int) -> None:
    """Take row r out of both sorted lists."""
    one, size = instances.each[r], instances.sizes[g]
    take_from(instances.by_best, place_in(instances, start, size, True, one["best"], False), start + size, r)
    take_from(instances.by_current, place_in(instances, start, size, False, one["current"], False), start + size, r)
    one["listed"] = 0
    instances.sizes[g] -= 1


@uncounted
def count_dominator(instances: Instances, r: int, o: int, K: int, dropped: int) -> Any:
    """Object o dominates row r: count it once (Alg. 1, lines 13-16); returns how many rows are to be dropped."""
    n = instances.each[r]["dominators"]
    for j in range(n):
        if instances.ids[r * K + j] == o:
            return dropped
    if n < K:
        instances.ids[r * K + n] = o
        instances.each[r]["dominators"] = n + 1
        if n + 1 == K:
            instances.dropped[dropped] = r
            return dropped + 1
    return dropped


@uncounted
def measure(store: Store, combination: Combination, instances: Instances, r: int) -> None:
    """Compute currentscore and bestscore of an instance: its own row and the newer ones (section 3.2.1).

    The sorted lists hold no NaN: an instance without a current score dominates none, one without a best score is
    dominated by none.
    """
    for p in range(len(combination.lows)):
        instances.lows[p], instances.highs[p] = combination.lows[p], combination.highs[p]
    i = r
    while i >= 0:
        p = store.rows[i]["part"]
        instances.lows[p] = instances.highs[p] = store.rows[i]["value"]
        i = store.rows[i]["newer"]
    current, best = combine(combination, instances.lows, 0), combine(combination, instances.highs, 0)
    instances.each[r]["current"] = current if current == current else -np.inf
    instances.each[r]["best"] = best if best == best else np.inf


@uncounted
def update(
    store: Store, combination: Combination, instances: Instances, g: int, r: int, new: bool, K: int, dropped: int
) -> Any:
    """Count dominators after an instance is new (Alg. 1) or its object has a new row (Alg. 2).

    Returns how many rows are to be dropped.
    """
    rows, each, start = store.rows, instances.each, store.groups[g]["start"]
    o, stamp = rows[r]["object"], rows[r]["stamp"]
    old_current, old_best = -np.inf, np.inf
    if new:
        each[r]["dominators"] = 0  # Alg. 1, line 9
    else:
        old_current, old_best = each[r]["current"], each[r]["best"]  # Alg. 2, lines 2-3
        take_out(instances, g, start, r)
    measure(store, combination, instances, r)  # Alg. 1, line 8; Alg. 2, lines 4-5
    size, current, best = instances.sizes[g], each[r]["current"], each[r]["best"]
    # Alg. 1, lines 12-18; Alg. 2, lines 6-14: what it dominates. The old value is included (erratum)
    for place in range(place_in(instances, start, size, True, old_current, False), start + size):
        q = instances.by_best[place]
        if not each[q]["best"] < current:
            break
        if rows[q]["stamp"] <= stamp and rows[q]["object"] != o:
            dropped = count_dominator(instances, q, o, K, dropped)
    # Alg. 2, lines 15-23: what dominates it
    for place in range(place_in(instances, start, size, False, best, True), start + size):
        q = instances.by_current[place]
        if each[q]["current"] > old_best:
            break
        if rows[q]["stamp"] >= stamp and rows[q]["object"] != o:
            dropped = count_dominator(instances, r, rows[q]["object"], K, dropped)
    add(instances, g, start, r)  # Alg. 1, lines 10-11
    return dropped


@uncounted
def drop(
    store: Store,
    combination: Combination,
    queries: Queries,
    instances: Instances,
    batch: Batch,
    g: int,
    dropped: int,
) -> None:
    """Instances with k dominators leave the lists, their object and the order; reported objects keep the newest row."""
    rows, objects = store.rows, store.objects
    for j in range(dropped):
        r = instances.dropped[j]
        o = rows[r]["object"]
        if instances.each[r]["listed"]:
            take_out(instances, g, store.groups[g]["start"], r)
        if objects[o]["newest"] == r and (store.scores[o]["shown"] | store.scores[o]["inside"]):
            continue
        member = belongs(store, g, o, o)
        if member:
            remove(store, g, 0, o)
        unlink(store, queries, r)
        if objects[o]["rows"] == 0:
            free_object(store, o)
        else:
            assess(store, combination, queries, o, 0, NOWHERE)
            if member and belongs(store, g, o, o):
                insert(store, g, 0, o)
    if dropped:
        compact_backwards(store, batch, g)
    store.fronts[g]["changed"] = NEVER


@uncounted_kernel
def take_instances(
    store: Store,
    combination: Combination,
    queries: Queries,
    instances: Instances,
    visits: Records,
    batch: Batch,
    output: Output,
) -> Any:
    """As `linked_batches.take_rows`, with dominance counters; all queries have one window."""
    groups, rows, K = store.groups, store.rows, queries.views[0]["k"]
    while True:
        event, g, a = next_step(store, queries, visits, batch, output)
        if event < ARRIVES:
            return event
        r, arrives = -1, -1
        if event == ARRIVES and batch.brings[a]:
            r = new_row(store, combination, batch, g, a)
            arrives = rows[r]["object"]
            arrive(store, combination, queries, g, r)
        while (queries.joint or r < 0) and has_expired(store, queries, g, 0, groups[g]["now"]):
            oldest = store.order[groups[g]["head"]]
            if instances.each[oldest]["listed"]:
                take_out(instances, g, groups[g]["start"], oldest)
            lose_row(store, combination, queries, batch, g, 0, arrives)
        if store.facts[TOUCHED]:
            settle(store, queries, g, output)
        if r < 0:
            continue
        dropped = update(store, combination, instances, g, r, True, K, 0)
        i = rows[r]["older"]
        while i >= 0:  # Alg. 1, lines 3-6
            if instances.each[i]["listed"]:
                dropped = update(store, combination, instances, g, i, False, K, dropped)
            else:  # it stayed only as the newest row of an object that was reported
                instances.dropped[dropped] = i
                dropped += 1
            i = rows[i]["older"]
        drop(store, combination, queries, instances, batch, g, dropped)


@uncounted_kernel
def update_all(store: Store, combination: Combination, queries: Queries, instances: Instances, batch: Batch) -> None:
    """Compute counters and sorted lists of all groups from the rows; drop what is dominated by now."""
    K = queries.views[0]["k"]
    for g in range(len(store.groups)):
        head, dropped = store.groups[g]["head"], 0
        for place in range(head, head + store.groups[g]["size"]):
            dropped = update(store, combination, instances, g, store.order[place], True, K, dropped)
        drop(store, combination, queries, instances, batch, g, dropped)
