"""Entry points over linked rows: a batch of arrivals, the end of a net batch, and what is computed from all rows."""

from __future__ import annotations

from typing import Any

from skyband.engines.incomplete.kernels.batches import (
    CHANGES,
    DONE,
    FREE_ROW,
    PRUNE,
    ROW_COUNT,
    TOUCHED,
    VISIT,
    WAITING,
    WRITTEN,
    Batch,
    Floats,
    Output,
    Queries,
    Records,
)
from skyband.engines.incomplete.kernels.combine import Combination, combine
from skyband.engines.incomplete.kernels.linked_fronts import compare_all, refill, report_leave
from skyband.engines.incomplete.kernels.linked_steps import (
    ARRIVES,
    EXPIRES,
    arrive,
    compact,
    has_expired,
    lose_row,
    new_row,
    next_step,
    next_view,
    settle,
)
from skyband.engines.incomplete.kernels.linked_store import (
    Store,
    assess,
    first_valid,
    free_object,
    link,
    place_of,
    unlink,
    value_of,
)
from skyband.kernels.compile import uncounted_kernel
from skyband.kernels.records import BITS, NEVER


@uncounted_kernel
def take_rows(
    store: Store, combination: Combination, queries: Queries, visits: Records, batch: Batch, output: Output
) -> Any:
    """Take the arrivals of each visited group, from where the last call stopped; returns why it stops."""
    V, facts, groups = len(queries.views), store.facts, store.groups
    while True:
        event, g, n = next_step(store, queries, visits, batch, output)
        if event < ARRIVES:
            return event
        arrives, first, last = -1, n, n + 1
        if event == ARRIVES:
            r = new_row(store, combination, batch, g, n)
            arrives, first, last = store.rows[r]["object"], 0, V if queries.joint else 0
            arrive(store, combination, queries, g, r)
            groups[g]["seen"] += 1
        for v in range(first, last):
            while has_expired(store, queries, g, v, groups[g]["now"]):
                lose_row(store, combination, queries, batch, g, v, arrives)
        if facts[TOUCHED]:
            settle(store, queries, g, output)
        if event == EXPIRES:
            continue
        live = groups[g]["size"] - groups[g]["dead"]
        if queries.prunes and (live > groups[g]["limit"] or groups[g]["seen"] >= groups[g]["ask_at"]):
            return PRUNE
        if groups[g]["dead"] > 16 + groups[g]["size"] // 4:
            compact(store, queries, batch, g)


@uncounted_kernel
def flush(store: Store, queries: Queries, visits: Records, places: Records, output: Output) -> Any:
    """End a net batch: report how answers differ from those it began with. places: by group, its visit."""
    V, facts, step = len(queries.views), store.facts, output.step[0]
    step["row"] = -1
    while facts[WAITING]:  # objects that have no row any more
        if facts[WRITTEN] + queries.margin > len(output.changes):
            return CHANGES
        facts[WAITING] -= 1
        o = store.waiting[facts[WAITING]]
        store.objects[o]["waits"] = 0
        if store.objects[o]["rows"]:
            continue
        visit = places[store.objects[o]["group"]]
        step["visit"], step["instant"] = visit, visits[visit]["last"]
        for q in range(len(queries.each)):
            i = o * V + queries.each[q]["view"]
            if store.scores[i]["inside"] & BITS[q]:
                report_leave(store, q, i, output)
        free_object(store, o)
    while facts[VISIT] < len(visits):
        if facts[WRITTEN] + queries.margin > len(output.changes):
            return CHANGES
        g = visits[facts[VISIT]]["group"]
        step["visit"], step["instant"] = facts[VISIT], visits[facts[VISIT]]["last"]
        if store.groups[g]["stale"]:
            compare_all(store, queries, g, output)
        store.groups[g]["stale"] = 0
        facts[VISIT] += 1
    return DONE


@uncounted_kernel
def compact_group(store: Store, queries: Queries, batch: Batch, g: int) -> None:
    """Take the dead rows of one group out of the order."""
    compact(store, queries, batch, g)


@uncounted_kernel
def index_objects(table: Records, objects: Records) -> None:
    """Fill an empty table."""
    for o in range(len(objects)):
        if objects[o]["group"] >= 0:
            table[place_of(table, objects, objects[o]["name"], objects[o]["group"])] = o


@uncounted_kernel
def rebuild(store: Store, combination: Combination, queries: Queries, bounds: Records, output: Output) -> None:
    """Compute chains, scores and fronts of all groups from the order and its rows.

    bounds: by group and view; what is not newer has expired.
    """
    V, rows, objects = len(queries.views), store.rows, store.objects
    for g in range(len(store.groups)):
        group = store.groups[g]
        head, size = group["head"], group["size"]
        for place in range(head, head + size):
            o = rows[store.order[place]]["object"]
            objects[o]["oldest"] = objects[o]["newest"] = -1
            objects[o]["rows"] = 0
        for place in range(head, head + size):
            link(store, rows[store.order[place]]["object"], store.order[place])
        for f in range(g * V, g * V + V):
            edge = 0
            while edge < size and rows[store.order[head + edge]]["stamp"] <= bounds[f]:
                edge += 1
            store.fronts[f]["edge"] = edge
        for place in range(head, head + size):
            r = store.order[place]
            o = rows[r]["object"]
            for v in range(V if objects[o]["newest"] == r else 0):
                assess(store, combination, queries, o, v, bounds[g * V + v])
                if store.scores[o * V + v]["count"] == 0:
                    store.scores[o * V + v]["shown"] = 0
        for v in range(V):
            refill(store, queries, g, v, output)
            store.fronts[g * V + v]["changed"] = NEVER
        gone = store.fronts[g * V + V - 1]["edge"]  # older than the longest view
        for place in range(head, head + gone):
            r = store.order[place]
            o = rows[r]["object"]
            unlink(store, r)
            rows[r]["older"] = store.facts[FREE_ROW]
            store.facts[FREE_ROW] = r
            if objects[o]["rows"] == 0:
                free_object(store, o)
        group["head"], group["size"] = head + gone, size - gone
        store.facts[ROW_COUNT] -= gone
        for f in range(g * V, g * V + V):
            store.fronts[f]["edge"] -= gone
        next_view(store, queries, g)


@uncounted_kernel
def survey(
    store: Store,
    combination: Combination,
    groups: Records,
    bounds: Records,  # by group of these
    repeat: int,
    values: Floats,
    found: Records,
) -> Any:
    """The objects of these groups with rows newer than the bounds: scores and newest rows; returns how many."""
    rows, n = store.rows, 0
    for j in range(len(groups)):
        head = store.groups[groups[j]]["head"]
        for place in range(head, head + store.groups[groups[j]]["size"]):
            r = store.order[place]
            o = rows[r]["object"]
            if o < 0 or store.objects[o]["newest"] != r or rows[r]["stamp"] <= bounds[j]:
                continue
            first = first_valid(store, o, bounds[j])
            for p in range(len(combination.lows)):
                values[p] = value_of(rows, first, p, repeat, combination.lows[p])
            found[n]["key"] = combine(combination, values, 0)
            found[n]["stamp"] = rows[r]["stamp"]
            found[n]["serial"] = rows[r]["serial"]
            found[n]["visit"] = groups[j]
            n += 1
    return n
