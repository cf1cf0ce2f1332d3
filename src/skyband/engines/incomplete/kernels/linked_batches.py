"""Entry points over linked rows: a batch of arrivals, the end of a net batch, and what is computed from all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.incomplete.kernels.batches import (
    ARRIVAL,
    CHANGES,
    DONE,
    FREE_OBJECT,
    FREE_ROW,
    MEMBERS,
    MEMBERS_USED,
    OBJECT_COUNT,
    OBJECTS,
    PRUNE,
    ROW_COUNT,
    RUNS,
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
from skyband.engines.incomplete.kernels.finders import append_to_queue, queues
from skyband.engines.incomplete.kernels.linked_fronts import compare_all, refill, report_leave
from skyband.engines.incomplete.kernels.linked_steps import arrive, compact, has_expired, lose_row, new_row, settle
from skyband.engines.incomplete.kernels.linked_store import (
    Store,
    assess,
    decisive,
    decisive_row,
    first_valid,
    free_object,
    link,
    place_of,
    unlink,
    value_of,
)
from skyband.kernels.compile import close, uncounted, uncounted_kernel
from skyband.kernels.records import BITS, NEVER

ARRIVES, EXPIRES = 100, 101  # what the next step is; smaller: why there is none


@close
def next_step(store: Store, queries: Queries, visits: Records, batch: Batch, output: Output) -> Any:
    """Find the next step: what it is, its group, and the arrival or the view that rows leave."""
    facts, groups, step = store.facts, store.groups, output.step[0]
    while facts[VISIT] < len(visits):
        visit = visits[facts[VISIT]]
        g, a, v, expires = visit["group"], max(facts[ARRIVAL], visit["begin"]), 0, False
        arrives = a < visit["end"]
        now = batch.now[a] if arrives else visit["last"]
        if not queries.joint:
            v = next_view(store, queries, g)
            expires = groups[g]["due"] <= now
        if expires or arrives:
            facts[ARRIVAL] = a
            reason = lacks_capacity(store, queries, g, output)
            if reason != DONE:
                return reason, g, a
            step["visit"] = facts[VISIT]
            if expires:
                step["instant"] = groups[g]["now"] = groups[g]["due"]
                step["row"] = -1
                return EXPIRES, g, np.int64(v)
            facts[ARRIVAL] = a + 1
            step["instant"] = groups[g]["now"] = now
            step["row"] = batch.rows[a]
            return ARRIVES, g, a
        groups[g]["open"] = queries.net and batch.more
        facts[VISIT] += 1
        facts[ARRIVAL] = 0
    return DONE, np.int64(0), np.int64(0)


@uncounted
def next_view(store: Store, queries: Queries, g: int) -> Any:
    """The view that a row leaves first; sets the group's `due`."""
    V, due, found = len(queries.views), NEVER, 0
    head, size = store.groups[g]["head"], store.groups[g]["size"]
    for v in range(V):
        edge = store.fronts[g * V + v]["edge"]
        if edge < size:
            instant = store.rows[store.order[head + edge]]["stamp"] + queries.views[v]["length"]
            if instant < due:
                due, found = instant, v
    store.groups[g]["due"] = due
    return found


@close
def lacks_capacity(store: Store, queries: Queries, g: int, output: Output) -> Any:
    """Which array is too small for the next step, or DONE: none is. A run at its end moves back to its start."""
    facts, group, V = store.facts, store.groups[g], len(queries.views)
    if facts[FREE_ROW] < 0 or facts[FREE_OBJECT] < 0 or 2 * facts[OBJECT_COUNT] >= len(store.table) - 2:
        return OBJECTS
    for v in range(V):
        if facts[MEMBERS_USED] + V * 8 * (queries.views[v]["most"] + 8) > len(store.members):
            return MEMBERS
    if facts[WRITTEN] + queries.margin > len(output.changes):
        return CHANGES
    if group["head"] + group["size"] == group["start"] + group["capacity"]:
        if group["head"] - group["start"] <= group["capacity"] // 4:
            return RUNS
        for i in range(group["size"]):
            store.order[group["start"] + i] = store.order[group["head"] + i]
        group["head"] = group["start"]
    return DONE


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
            first, last = 0, V if queries.joint else 0
            groups[g]["seen"] += 1
        if event == ARRIVES and batch.brings[n]:
            r = new_row(store, combination, batch, g, n)
            arrives = store.rows[r]["object"]
            arrive(store, combination, queries, g, r)
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
            if queues(queries.repeat):
                append_to_queue(store, queries, store.order[place])
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
            unlink(store, queries, r)
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
def decide(store: Store, objects: Records, v: int, repeat: int, found: Records) -> None:
    """The serials of the rows that decide the scores of these objects in a view."""
    V = len(store.scores) // len(store.objects)
    for j in range(len(objects)):
        found[j] = decisive(store, objects[j], objects[j] * V + v, repeat)


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
    """The objects of these groups with rows newer than the bounds; returns how many.

    Their scores, newest rows, and as `instant` the serials of the rows that decide.
    """
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
                values[p] = value_of(store, first, p, repeat, combination.lows[p], len(store.sums) - 1)
            found[n]["key"] = combine(combination, values, 0)
            found[n]["stamp"] = rows[r]["stamp"]
            found[n]["serial"] = rows[r]["serial"]
            found[n]["instant"] = rows[decisive_row(store, o, repeat, values, 0)]["serial"]
            found[n]["visit"] = groups[j]
            n += 1
    return n
