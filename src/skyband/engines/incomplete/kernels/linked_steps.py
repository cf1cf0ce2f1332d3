"""One step of an engine with linked rows: an arrival, or what time takes.

A count window's step is an arrival and what it pushes out; in time windows all rows of a group that leave a view at
one instant are a step, and each arrival is one. An object that a step changes leaves the fronts it is in, and returns
by its new score when the step ends; then answers are compared.

Cost of an arrival: one lookup of its object, one score for it and one for the object that loses a row, and a comparison
with the floor of the front. Only the few objects that rank above the floor touch a front.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.incomplete.kernels.batches import (
    ALL_TOTAL,
    FREE_ROW,
    LAST,
    LAST_MOST,
    LAST_TOTAL,
    NOWHERE,
    ONCE,
    ROW_COUNT,
    TOUCHED,
    WAITING,
    Batch,
    Output,
    Queries,
)
from skyband.engines.incomplete.kernels.combine import Combination, combine
from skyband.engines.incomplete.kernels.finders import (
    enter_heap,
    enter_queue,
    finds,
    last_before,
    leave_heap,
    looks_up,
    next_newer,
    part_of,
    place_of_last,
    queues,
)
from skyband.engines.incomplete.kernels.fronts import insert, remove
from skyband.engines.incomplete.kernels.linked_fronts import belongs, compare, cut, refill, remember
from skyband.engines.incomplete.kernels.linked_store import (
    Store,
    adds,
    count_in,
    first_valid,
    free_object,
    largest,
    link,
    make_object,
    place_of,
    release,
    total_of,
    unlink,
    value_of,
)
from skyband.kernels.compile import close, uncounted
from skyband.kernels.records import NEVER

# ------------------------------------------------------------------------------ the end of a step


@uncounted
def put_back(store: Store, queries: Queries, g: int, output: Output) -> None:
    """The objects of a step return to the fronts they belong to by their new scores."""
    V = len(queries.views)
    for t in range(store.facts[TOUCHED]):
        o = store.touched[t]
        for v in range(V):
            if belongs(store, g * V + v, o, o * V + v):
                insert(store, g * V + v, v, o)
                cut(store, queries, g, v, queries.net, output)


@close
def is_short(store: Store, queries: Queries, g: int, v: int) -> Any:
    """Whether a front has too few members while there are objects below its floor."""
    front = store.fronts[g * len(queries.views) + v]
    return front["size"] < queries.views[v]["k"] and front["stamp"] > NOWHERE


@uncounted
def end_step(store: Store, queries: Queries, g: int, output: Output) -> None:
    """Report how answers have changed in this step; free objects that have no row left."""
    V, objects, facts = len(queries.views), store.objects, store.facts
    for v in range(V):
        front = store.fronts[g * V + v]
        if not queries.net and front["changed"] < NEVER:
            compare(store, queries, g, v, output)
        front["changed"] = NEVER
    store.groups[g]["stale"] = 1
    for t in range(facts[TOUCHED]):
        o = store.touched[t]
        objects[o]["touched"] = 0
        inside = np.uint32(0)
        for i in range(o * V, o * V + V):
            inside |= store.scores[i]["inside"]
            if store.scores[i]["count"] == 0:
                store.scores[i]["shown"] = 0  # without a valid row in between it is new again
            elif not queries.net and store.scores[i]["inside"]:
                remember(store, o, i, queries.repeat)
        if objects[o]["rows"] == 0:
            if inside == 0:
                free_object(store, o)
            elif not objects[o]["waits"]:
                objects[o]["waits"] = 1
                store.waiting[facts[WAITING]] = o
                facts[WAITING] += 1
    facts[TOUCHED] = 0


@uncounted
def settle(store: Store, queries: Queries, g: int, output: Output) -> None:
    """End a step: fronts are in order again, and answers are compared."""
    put_back(store, queries, g, output)
    for v in range(len(queries.views)):
        if is_short(store, queries, g, v):
            refill(store, queries, g, v, output)
    end_step(store, queries, g, output)


# ------------------------------------------------------------------------- objects that change


@uncounted
def step_aside(store: Store, queries: Queries, g: int, o: int) -> Any:
    """An object that is about to change leaves the fronts it is in; returns whether it was in one."""
    V, found = len(queries.views), False
    for v in range(V):
        if belongs(store, g * V + v, o, o * V + v):
            remove(store, g * V + v, v, o)
            found = True
    return found


@close
def touch(store: Store, o: int) -> None:
    store.objects[o]["touched"] = 1
    store.touched[store.facts[TOUCHED]] = o
    store.facts[TOUCHED] += 1


# ---------------------------------------------------------------------------- rows that leave


@close
def has_expired(store: Store, queries: Queries, g: int, v: int, now: int) -> Any:
    """Whether the oldest row that view v has is too old for it."""
    group, edge = store.groups[g], store.fronts[g * len(queries.views) + v]["edge"]
    if edge == group["size"]:
        return False
    return store.rows[store.order[group["head"] + edge]]["stamp"] <= now - queries.views[v]["length"]


@close
def lose_row(
    store: Store, combination: Combination, queries: Queries, batch: Batch, g: int, v: int, arrives: int
) -> None:
    """The oldest row that view v has leaves it; from the longest view it leaves for good.

    arrives: the object that arrives in the same step; -1: none.
    """
    rows, objects, scores, d = store.rows, store.objects, store.scores, len(combination.lows)
    V, repeat = len(queries.views), queries.repeat
    f = g * V + v
    r = store.order[store.groups[g]["head"] + store.fronts[f]["edge"]]
    o = rows[r]["object"]
    last = v == V - 1
    if o >= 0:
        i = o * V + v
        near = V > 1 or scores[i]["score"] >= store.fronts[f]["score"]
        if near and not objects[o]["touched"] and (step_aside(store, queries, g, o) or V > 1):
            touch(store, o)
        scores[i]["count"] -= 1
        p = rows[r]["part"] if repeat < ALL_TOTAL else 0
        low = combination.lows[p]
        at = i * d + p
        if adds(repeat):
            count_in(store, at, rows[r]["value"], -1)
            store.values[at] = total_of(store, at, low)
        elif finds(repeat):
            if repeat == LAST_MOST:
                leave_heap(store, V, i, r)
            elif store.firsts[at] == r:
                store.firsts[at] = store.links[r]["next"]
            store.values[at] = largest(store, at, low)
        else:
            single = repeat == LAST or (repeat == ONCE and o != arrives)  # it has no other row of this part
            store.values[at] = low if single else value_of(store, rows[r]["newer"], p, repeat, low, at)
        scores[i]["score"] = combine(combination, store.values, i * d)
        if last:
            unlink(store, queries, r)
            store.facts[ROW_COUNT] -= 1
        if not objects[o]["touched"]:
            if scores[i]["count"] == 0 and not scores[i]["inside"]:
                free_object(store, o)
            elif scores[i]["count"] == 0:
                touch(store, o)
            elif scores[i]["score"] >= store.fronts[f]["score"] and belongs(store, f, o, i):
                touch(store, o)  # negative values: a score may rise
    elif last:
        store.groups[g]["dead"] -= 1
    if last:
        release(store, batch, r)
        store.groups[g]["head"] += 1
        store.groups[g]["size"] -= 1
        for w in range(g * V, g * V + V - 1):
            store.fronts[w]["edge"] -= 1
    else:
        store.fronts[f]["edge"] += 1


@uncounted
def bury(store: Store, queries: Queries, g: int, r: int, now: int) -> None:
    """Row r will never count again: a newer one of its part stands for it."""
    V, o, stamp = len(queries.views), store.rows[r]["object"], store.rows[r]["stamp"]
    for v in range(V):
        if stamp > now - queries.views[v]["length"]:
            store.scores[o * V + v]["count"] -= 1
            if queries.repeat == LAST_TOTAL:  # there is one value for all parts
                count_in(store, o * V + v, store.rows[r]["value"], -1)
            elif queries.repeat == LAST_MOST:
                leave_heap(store, V, o * V + v, r)
    unlink(store, queries, r)
    store.groups[g]["dead"] += 1
    store.facts[ROW_COUNT] -= 1


@uncounted
def supersede(store: Store, queries: Queries, g: int, r: int, now: int) -> Any:
    """`last` and `max`: bury the rows that r makes superfluous; False: r itself is superfluous."""
    rows, p, o = store.rows, store.rows[r]["part"], store.rows[r]["object"]
    if queues(queries.repeat):
        return supersede_smaller(store, queries, g, r, now)
    if looks_up(queries.repeat):
        place = place_of_last(store, o, p)
        other = store.lasts[place]
        if other >= 0 and rows[other]["stamp"] > rows[r]["stamp"]:
            bury(store, queries, g, r, now)
            return False
        store.lasts[place] = r
        if other >= 0:
            bury(store, queries, g, other, now)
        return True
    other = rows[r]["newer"]  # named parts: there is one row of each
    while other >= 0:
        if rows[other]["part"] == p:
            bury(store, queries, g, r, now)
            return False
        other = rows[other]["newer"]
    other = rows[r]["older"]
    while other >= 0 and rows[other]["part"] != p:
        other = rows[other]["older"]
    if other >= 0:
        bury(store, queries, g, other, now)
    return True


@uncounted
def supersede_smaller(store: Store, queries: Queries, g: int, r: int, now: int) -> Any:
    """`max`: bury the older rows of its part that r reaches; False: a newer one reaches r."""
    rows, d = store.rows, queries.d
    last = rows[r]["object"] * d + part_of(store, r, d)
    newer = next_newer(store, last, r)
    if newer >= 0 and rows[newer]["value"] >= rows[r]["value"]:
        bury(store, queries, g, r, now)
        return False
    other = last_before(store, last, newer)
    while other >= 0 and rows[other]["value"] <= rows[r]["value"]:
        bury(store, queries, g, other, now)
        other = last_before(store, last, newer)
    enter_queue(store, last, r, newer)
    return True


@uncounted
def compact(store: Store, queries: Queries, batch: Batch, g: int) -> None:
    """Take dead rows out of the order."""
    order, rows, V, group = store.order, store.rows, len(queries.views), store.groups[g]
    head = to = group["head"]
    for f in range(g * V, g * V + V):
        edge, store.fronts[f]["edge"] = store.fronts[f]["edge"], 0
        for place in range(head, head + edge):
            store.fronts[f]["edge"] += rows[order[place]]["object"] >= 0
    for place in range(head, head + group["size"]):
        r = order[place]
        if rows[r]["object"] < 0:
            release(store, batch, r)
        else:
            order[to] = r
            to += 1
    group["size"], group["dead"] = to - head, 0


@uncounted
def compact_backwards(store: Store, batch: Batch, g: int) -> None:
    """Take dead rows out of the order of an engine with one view; the run's end stays in place."""
    order, group = store.order, store.groups[g]
    end = to = group["head"] + group["size"]
    for place in range(end - 1, group["head"] - 1, -1):
        r = order[place]
        if store.rows[r]["object"] < 0:
            release(store, batch, r)
        else:
            to -= 1
            order[to] = r
    store.facts[ROW_COUNT] -= to - group["head"]
    group["head"], group["size"] = to, end - to


# ----------------------------------------------------------------------------- rows that arrive


@close
def new_row(store: Store, combination: Combination, batch: Batch, g: int, a: int) -> Any:
    """Take a place for the row of arrival a, of a known object or a new one."""
    place = place_of(store.table, store.objects, batch.names[a], g)
    o = store.table[place]
    if o < 0:
        o = make_object(store, place, batch.names[a], g, combination.lows)
    r = store.facts[FREE_ROW]
    row = store.rows[r]
    store.facts[FREE_ROW] = row["older"]
    row["value"], row["stamp"], row["serial"] = batch.values[a], batch.stamps[a], batch.serial + batch.rows[a]
    row["part"], row["object"] = batch.parts[a], o
    batch.alive[batch.rows[a]] = True
    return r


@close
def insert_row(store: Store, queries: Queries, g: int, r: int, now: int) -> None:
    """Row r at its place in the order: late rows are not the last."""
    order, rows, V = store.order, store.rows, len(queries.views)
    head, stamp = store.groups[g]["head"], store.rows[r]["stamp"]
    place = head + store.groups[g]["size"]
    while place > head and rows[order[place - 1]]["stamp"] > stamp:
        order[place] = order[place - 1]
        place -= 1
    order[place] = r
    store.groups[g]["size"] += 1
    for v in range(V):
        store.fronts[g * V + v]["edge"] += stamp <= now - queries.views[v]["length"]


@close
def arrive(store: Store, combination: Combination, queries: Queries, g: int, r: int) -> None:
    """Row r joins its object, and the object's scores follow. In count windows what has just expired is still there."""
    rows, objects, V, d = store.rows, store.objects, len(queries.views), len(combination.lows)
    o, now, repeat = rows[r]["object"], store.groups[g]["now"], queries.repeat
    if not objects[o]["touched"]:
        for v in range(V):
            near = store.scores[o * V + v]["score"] >= store.fronts[g * V + v]["score"]
            if near and step_aside(store, queries, g, o):
                touch(store, o)
                break
    newest = link(store, o, r)
    insert_row(store, queries, g, r, now)
    stamp, p, value = rows[r]["stamp"], rows[r]["part"] if repeat < ALL_TOTAL else 0, rows[r]["value"]
    for v in range(V):
        if stamp > now - queries.views[v]["length"]:
            store.scores[o * V + v]["count"] += 1
            if adds(repeat):
                count_in(store, (o * V + v) * d + p, value, 1)
    store.facts[ROW_COUNT] += 1
    replaces = repeat == LAST or queues(repeat) or looks_up(repeat)
    if replaces and not supersede(store, queries, g, r, now - queries.joint):
        return
    for v in range(V):
        bound, i = now - queries.views[v]["length"], o * V + v
        if stamp <= bound:
            continue
        at = i * d + p
        if adds(repeat):
            store.values[at] = total_of(store, at, combination.lows[p])
        elif finds(repeat):
            if repeat == LAST_MOST:
                enter_heap(store, V, i, r)
            elif store.firsts[at] == store.links[r]["next"]:
                store.firsts[at] = r
            store.values[at] = largest(store, at, combination.lows[p])
        elif newest:
            store.values[at] = value
        else:
            store.values[at] = value_of(store, first_valid(store, o, bound), p, repeat, combination.lows[p], at)
        store.scores[i]["score"] = combine(combination, store.values, i * d)
        near = store.scores[i]["score"] >= store.fronts[g * V + v]["score"]
        if near and not objects[o]["touched"] and belongs(store, g * V + v, o, i):
            touch(store, o)
