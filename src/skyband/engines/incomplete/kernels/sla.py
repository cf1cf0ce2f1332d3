"""SLA: every valid value in sorted lists, and the threshold algorithm (haghani2009, section 3.1).

One list for each part and view of a group, of the objects that have the part, by rising value. When the front has
fewer than k objects, TA goes down the lists in turn: it takes each object that it meets (its score is known), until
no object below could rank above those it has.

Cost of an arrival: O(n) for the place in a list; of a call of TA: as deep as the threshold demands.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.batches import (
    ARRIVAL,
    LISTS,
    REFILLED,
    TOUCHED,
    Batch,
    Floats,
    Output,
    Queries,
    Records,
)
from skyband.engines.incomplete.kernels.combine import Combination, combine
from skyband.engines.incomplete.kernels.finders import queues
from skyband.engines.incomplete.kernels.fronts import clear, insert
from skyband.engines.incomplete.kernels.linked_batches import ARRIVES, EXPIRES, next_step
from skyband.engines.incomplete.kernels.linked_fronts import belongs, cut
from skyband.engines.incomplete.kernels.linked_steps import (
    arrive,
    compact,
    end_step,
    has_expired,
    is_short,
    lose_row,
    new_row,
    put_back,
)
from skyband.engines.incomplete.kernels.linked_store import Store, adds, first_valid
from skyband.kernels.compile import close, uncounted, uncounted_kernel
from skyband.kernels.records import NEVER


class SortedLists(NamedTuple):
    objects: Records  # arena of the lists
    starts: Records  # by group, view and part
    capacities: Records
    sizes: Records
    listed: Records  # by score and part: is the object in the list?
    seen: Records  # by object: the last call of TA that met it
    depth: Floats  # by part: the values that TA has come to
    lacking: Floats  # by part: the values of an object that lacks all but one


@uncounted
def place_in(store: Store, lists: SortedLists, V: int, f: int, p: int, o: int) -> Any:
    """The place where an object is, or belongs, in the list of part p: before those that have at least its value."""
    d, v = len(lists.depth), f % V
    run = f * d + p
    value = store.values[(o * V + v) * d + p]
    low, high = lists.starts[run], lists.starts[run] + lists.sizes[run]
    while low < high:
        middle = (low + high) // 2
        if store.values[(lists.objects[middle] * V + v) * d + p] < value:
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def take_out(store: Store, lists: SortedLists, V: int, g: int, o: int, p: int) -> None:
    """Before a part of it changes, an object leaves the lists of that part."""
    d = len(lists.depth)
    for v in range(V):
        at, run = (o * V + v) * d + p, (g * V + v) * d + p
        if lists.listed[at]:
            place = place_in(store, lists, V, g * V + v, p, o)
            while lists.objects[place] != o:
                place += 1
            lists.sizes[run] -= 1
            for i in range(place, lists.starts[run] + lists.sizes[run]):
                lists.objects[i] = lists.objects[i + 1]
            lists.listed[at] = False


@close
def has_part(store: Store, queries: Queries, o: int, v: int, p: int, bound: int) -> Any:
    """Whether an object has a row of part p in view v, where what is not newer than the bound has expired."""
    at = (o * len(queries.views) + v) * (len(store.values) // len(store.scores)) + p
    if adds(queries.repeat):
        return store.sums[at, 0] > 0
    if queues(queries.repeat):
        return store.firsts[at] >= 0
    r = first_valid(store, o, bound)  # there is one row of each part
    while r >= 0 and store.rows[r]["part"] != p:
        r = store.rows[r]["newer"]
    return r >= 0


@uncounted
def add(store: Store, lists: SortedLists, queries: Queries, g: int, o: int, p: int, now: int) -> None:
    """After a part has changed, its object is listed by the new value, in the views that have a row of it."""
    d, V = len(lists.depth), len(queries.views)
    if store.objects[o]["group"] != g or store.objects[o]["rows"] == 0:
        return
    for v in range(V):
        if has_part(store, queries, o, v, p, now - queries.views[v]["length"]):
            place, run = place_in(store, lists, V, g * V + v, p, o), (g * V + v) * d + p
            for i in range(lists.starts[run] + lists.sizes[run], place, -1):
                lists.objects[i] = lists.objects[i - 1]
            lists.objects[place] = o
            lists.sizes[run] += 1
            lists.listed[(o * V + v) * d + p] = True


@uncounted
def is_full(lists: SortedLists, V: int, g: int, p: int) -> Any:
    """Whether a list of part p has no capacity for one more object."""
    for f in range(g * V, g * V + V):
        run = f * len(lists.depth) + p
        if lists.sizes[run] == lists.capacities[run]:
            return True
    return False


@uncounted
def search(
    store: Store, combination: Combination, queries: Queries, lists: SortedLists, g: int, v: int, output: Output
) -> None:
    """TA: fill the front from the tops of the sorted lists."""
    V, d, depth, most = len(queries.views), len(lists.depth), lists.depth, queries.views[v]["most"]
    f = g * V + v
    front = store.fronts[f]
    clear(store, f)
    number, down, left = store.facts[REFILLED], 0, True
    while left:
        left = False
        for p in range(d):
            run = f * d + p
            depth[p] = combination.lows[p]
            if down < lists.sizes[run]:
                left = True
                place = down if combination.turned else lists.sizes[run] - 1 - down
                o = lists.objects[lists.starts[run] + place]
                depth[p] = store.values[(o * V + v) * d + p]
                if lists.seen[o] != number:
                    lists.seen[o] = number
                    if belongs(store, f, o, o * V + v):
                        insert(store, f, v, o)
                        cut(store, queries, g, v, True, output)
        down += 1
        threshold = highest_below(combination, lists, f, down)
        if left and front["size"] >= most:
            o = store.members[front["start"] + most - 1]
            if store.scores[o * V + v]["score"] > threshold:  # no object below can rank above it
                while front["size"] > 0 and not last_above(store, V, f, threshold):
                    front["size"] -= 1
                if not front["score"] > threshold:
                    front["score"] = threshold
                    front["stamp"] = front["serial"] = NEVER
                break


@uncounted
def highest_below(combination: Combination, lists: SortedLists, f: int, down: int) -> Any:
    """The highest key of an object that TA has not met, so many places down the lists of front f.

    Where the smallest score is best, such an object is in one of the lists that go on, and may lack all other parts.
    """
    depth = lists.depth
    if not combination.turned:
        return combine(combination, depth, 0)
    highest, d = -np.inf, len(depth)
    for p in range(d):
        if down < lists.sizes[f * d + p]:
            value, other = depth[p], lists.lacking
            for q in range(d):
                other[q] = combination.lows[q]
            other[p] = value
            score = combine(combination, other, 0)
            if score != score:  # without the other parts there is none, with them there may be any
                return np.inf
            highest = max(highest, score)
    return highest


@uncounted
def last_above(store: Store, V: int, f: int, threshold: float) -> Any:
    """Whether the last member of the front is above the threshold."""
    o = store.members[store.fronts[f]["start"] + store.fronts[f]["size"] - 1]
    return store.scores[o * V + f % V]["score"] > threshold


@uncounted
def settle_by_search(
    store: Store, combination: Combination, queries: Queries, lists: SortedLists, g: int, output: Output
) -> None:
    """End a step as `linked_steps.settle` does; TA fills a front that is short."""
    put_back(store, queries, g, output)
    for v in range(len(queries.views)):
        if is_short(store, queries, g, v):
            search(store, combination, queries, lists, g, v, output)
    end_step(store, queries, g, output)


@uncounted_kernel
def take_sorted(
    store: Store,
    combination: Combination,
    queries: Queries,
    lists: SortedLists,
    visits: Records,
    batch: Batch,
    output: Output,
) -> Any:
    """As `linked_batches.take_rows`, with sorted lists."""
    V, facts, groups, rows = len(queries.views), store.facts, store.groups, store.rows
    while True:
        event, g, n = next_step(store, queries, visits, batch, output)
        if event < ARRIVES:
            return event
        now, arrives, first, last = groups[g]["now"], -1, n, n + 1
        if event == ARRIVES:
            first, last = 0, V if queries.joint else 0
        if event == ARRIVES and batch.brings[n]:
            p = batch.parts[n]
            if is_full(lists, V, g, p):
                facts[ARRIVAL] = n
                return LISTS
            r = new_row(store, combination, batch, g, n)
            arrives = rows[r]["object"]
            take_out(store, lists, V, g, arrives, p)
            arrive(store, combination, queries, g, r)
            add(store, lists, queries, g, arrives, p, now - queries.joint)
        for v in range(first, last):
            while has_expired(store, queries, g, v, now):
                oldest = rows[store.order[groups[g]["head"] + store.fronts[g * V + v]["edge"]]]
                o, part = oldest["object"], oldest["part"]
                if o >= 0:
                    take_out(store, lists, V, g, o, part)
                lose_row(store, combination, queries, batch, g, v, arrives)
                if o >= 0:
                    add(store, lists, queries, g, o, part, now)
        if facts[TOUCHED]:
            settle_by_search(store, combination, queries, lists, g, output)
        if event != EXPIRES and groups[g]["dead"] > 16 + groups[g]["size"] // 4:
            compact(store, queries, batch, g)


@uncounted_kernel
def sort_all(store: Store, queries: Queries, lists: SortedLists) -> None:
    """Fill the sorted lists of all groups from the rows."""
    V = len(queries.views)
    for g in range(len(store.groups)):
        head = store.groups[g]["head"]
        for place in range(head, head + store.groups[g]["size"]):
            r = store.order[place]
            o, p = store.rows[r]["object"], store.rows[r]["part"]
            take_out(store, lists, V, g, o, p)
            add(store, lists, queries, g, o, p, store.groups[g]["now"])
