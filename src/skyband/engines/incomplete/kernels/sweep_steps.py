"""One step of SWEEP, and its entry points: parts come at most once while they are valid (`repeat=None`).

A count window's step is an arrival and what it pushes out; in time windows the rows that leave at one instant are a
step, and each arrival is one. The kept rows of a group are a run, the oldest first. Only a sweep, and a front that is
filled again, read it; so arrivals join it only then, or when it has no capacity for more of them, or when their visit
ends: those that have expired meanwhile never do.

Cost of an arrival: one lookup of its object, one score, one comparison with the floor of the front; nothing for a row
that expires outside of the front.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.incomplete.kernels.batches import (
    ARRIVAL,
    CHANGES,
    DONE,
    FREE_COUNT,
    JOINED,
    MEMBERS,
    MEMBERS_USED,
    NOWHERE,
    OBJECTS,
    RUNS,
    TOUCHED,
    VISIT,
    WRITTEN,
    Batch,
    Output,
    Queries,
    Records,
)
from skyband.engines.incomplete.kernels.combine import Combination
from skyband.engines.incomplete.kernels.fronts import above_floor, report
from skyband.engines.incomplete.kernels.register import UNKNOWN
from skyband.engines.incomplete.kernels.sweep import sweep
from skyband.engines.incomplete.kernels.sweep_store import Store, assess, assess_best, free_expired, pull, put, refill
from skyband.kernels.compile import close, uncounted, uncounted_kernel
from skyband.kernels.records import BITS, NEVER


@uncounted
def expire_members(store: Store, d: int, g: int, bound: int) -> None:
    """Objects that lose a row leave the front; sets when the next one will."""
    front, due = store.fronts[g], NEVER
    i = front["start"]
    while i < front["start"] + front["size"]:
        o, oldest = store.members[i], NEVER
        for p in range(d):
            if store.stamps[o * d + p] > NOWHERE:
                oldest = min(oldest, store.stamps[o * d + p])
        if oldest <= bound:
            pull(store, g, o)
        else:
            due = min(due, oldest)
            i += 1
    front["next"] = due


@uncounted
def settle(store: Store, combination: Combination, queries: Queries, g: int, bound: int, output: Output) -> None:
    """End a step: touched objects return to the front if they belong there, and answers are compared."""
    front = store.fronts[g]
    for t in range(store.facts[TOUCHED]):
        o = store.touched[t]
        if store.objects[o]["stamp"] > bound:
            assess(store, combination, o, bound)
            if above_floor(store, g, o, o):
                put(store, queries, len(combination.lows), g, o)
    store.facts[TOUCHED] = 0
    if front["size"] < queries.views[0]["k"] and front["stamp"] > NOWHERE:
        refill(store, combination, queries, g, bound)
    if not queries.net:
        compare(store, queries, g, output)


@uncounted
def compare(store: Store, queries: Queries, g: int, output: Output) -> None:
    """Report how the answers differ from those last reported, from the first place on that has changed."""
    front, objects, k = store.fronts[g], store.objects, queries.views[0]["k"]
    start, low, reported, size = front["start"], front["changed"], front["reported"], min(k, front["size"])
    front["changed"] = NEVER
    if low >= k:
        return
    for j in range(low, size):
        objects[store.members[start + j]]["rank"] = j + 1
    for q in range(len(queries.each)):
        k, before, bit = queries.each[q]["k"], queries.each[q]["before"], BITS[q]
        for j in range(low, min(before, reported)):
            was = store.reported[start + j]
            if not 0 < objects[was["object"]]["rank"] <= k:
                report(output, store.facts, q, -1, False, was["score"], was["stamp"], was["serial"])
        for j in range(low, min(k, size)):
            one, score = objects[store.members[start + j]], store.scores[store.members[start + j]]["score"]
            if not 0 < one["reported"] <= before:
                report(output, store.facts, q, 1, not one["shown"] & bit, score, one["stamp"], one["serial"])
            one["shown"] |= bit
    for j in range(low, reported):
        objects[store.reported[start + j]["object"]]["reported"] = 0
    for j in range(low, size):
        o = store.members[start + j]
        objects[o]["rank"], objects[o]["reported"] = 0, j + 1
        now = store.reported[start + j]
        now["score"], now["stamp"], now["serial"] = store.scores[o]["score"], objects[o]["stamp"], objects[o]["serial"]
        now["object"] = o
    front["reported"], front["since"] = size, NEVER
    for j in range(size):
        front["since"] = min(front["since"], objects[store.members[start + j]]["stamp"] - 1)


@uncounted
def expire(
    store: Store,
    combination: Combination,
    queries: Queries,
    batch: Batch,
    g: int,
    a: int,
    until: int,
    output: Output,
) -> Any:
    """Time windows: expire instant by instant what leaves before arrival a; returns why it stops."""
    group, front, length = store.groups[g], store.fronts[g], queries.views[0]["length"]
    while front["next"] <= until - length:
        reason = lacks_capacity(store, queries, output)
        if reason != DONE:
            return reason
        bound = front["next"]
        output.step[0]["instant"] = bound + length
        output.step[0]["row"] = -1
        expire_members(store, len(combination.lows), g, bound)
        if store.facts[TOUCHED]:
            if front["size"] < queries.views[0]["k"]:  # it may be filled again
                join(store, combination, batch, g, a, bound)
            settle(store, combination, queries, g, bound, output)
    group["now"] = until
    return DONE


@uncounted
def join(store: Store, combination: Combination, batch: Batch, g: int, end: int, bound: int) -> None:
    """Arrivals that have waited join the run."""
    group, rows = store.groups[g], store.rows
    drop_expired(store, batch, g, end, bound)
    for a in range(store.facts[JOINED], end):
        stamp, r = batch.stamps[a], batch.rows[a]
        if not batch.brings[a]:
            continue
        place = group["head"] + group["size"]
        while place > group["head"] and rows[place - 1]["stamp"] > stamp:  # late
            rows[place] = rows[place - 1]
            place -= 1
        row, o = rows[place], int(batch.owners[r])
        row["value"], row["stamp"], row["serial"] = batch.values[a], stamp, batch.serial + r
        row["part"], row["object"] = batch.parts[a], o
        group["size"] += 1
        batch.alive[r] = True
        if store.objects[o]["serial"] <= row["serial"]:  # else a later one is among them
            assess_best(store, combination, o, bound)
    store.facts[JOINED] = end
    drop_expired(store, batch, g, end, bound)  # late ones


@uncounted
def drop_expired(store: Store, batch: Batch, g: int, end: int, bound: int) -> None:
    """What has expired leaves the run, or does not wait for it any longer."""
    group, facts = store.groups[g], store.facts
    while group["size"] and store.rows[group["head"]]["stamp"] <= bound:
        number = store.rows[group["head"]]["serial"] - batch.serial
        if number >= 0:
            batch.alive[number] = False
        group["head"] += 1
        group["size"] -= 1
    while facts[JOINED] < end and batch.stamps[facts[JOINED]] <= bound:
        facts[JOINED] += 1


@uncounted
def tidy(store: Store, combination: Combination, queries: Queries, batch: Batch, g: int, end: int) -> None:
    """Between two steps: bring the run up to date, and sweep it if it has grown by a tenth."""
    group = store.groups[g]
    join(store, combination, batch, g, end, group["now"] - queries.views[0]["length"])
    if group["size"] > group["limit"]:
        sweep(store, combination, queries, batch, g)
        group["limit"] = max(queries.least, group["size"] + group["size"] // 10)


@close
def lacks_capacity(store: Store, queries: Queries, output: Output) -> Any:
    """Which array is too small for the next step, or DONE: none is."""
    facts, view = store.facts, queries.views[0]
    if facts[FREE_COUNT] == 0 and 4 * free_expired(store, view["length"]) > 3 * len(store.objects):
        return OBJECTS
    if facts[MEMBERS_USED] + 8 * (view["most"] + 8) > len(store.members):
        return MEMBERS
    return CHANGES if facts[WRITTEN] + queries.margin > len(output.changes) else DONE


@uncounted
def lacks_rows(store: Store, combination: Combination, queries: Queries, batch: Batch, g: int, a: int) -> Any:
    """Whether the run is too small for the arrivals that wait to join it, with nothing left to drop."""
    group, rows = store.groups[g], store.rows
    drop_expired(store, batch, g, a, group["now"] - queries.views[0]["length"])
    if 4 * (group["size"] + a - store.facts[JOINED]) >= 3 * group["capacity"]:
        tidy(store, combination, queries, batch, g, a)
    for i in range(group["size"] if group["head"] > group["start"] else 0):
        rows[group["start"] + i] = rows[group["head"] + i]
    group["head"] = group["start"]
    return 4 * group["size"] >= 3 * group["capacity"]


@close
def find(store: Store, batch: Batch, g: int, bound: int, name: np.int64, link: np.int64) -> Any:
    """The object of an arrival: of a valid row, or one that has expired since it was reported; -1: a new one."""
    objects, front = store.objects, store.fronts[g]
    if link > UNKNOWN:
        o = np.int64(batch.owners[~link]) if link < 0 else link
        if objects[o]["name"] == name and objects[o]["group"] == g:
            return o
    if front["since"] <= bound:
        for j in range(front["start"], front["start"] + front["reported"]):
            o = store.reported[j]["object"]
            if objects[o]["name"] == name:
                return o
    return np.int64(-1)


@close
def make_object(store: Store, d: int, g: int, name: np.int64) -> Any:
    store.facts[FREE_COUNT] -= 1
    o = np.int64(store.free[store.facts[FREE_COUNT]])
    one = store.objects[o]
    one["name"], one["group"], one["stamp"] = name, g, NOWHERE
    one["in_front"] = one["reported"] = one["rank"] = 0
    for j in range(o * d, o * d + d):
        store.stamps[j] = NOWHERE
    return o


@close
def take_part(store: Store, combination: Combination, batch: Batch, g: int, a: int, bound: int, joint: bool) -> Any:
    """The part of arrival a joins its object, which leaves the front; returns the object."""
    objects, d = store.objects, len(combination.lows)
    name, stamp, p, r = batch.names[a], batch.stamps[a], batch.parts[a], batch.rows[a]
    o = find(store, batch, g, bound, name, batch.links[r])
    if o < 0:
        o = make_object(store, d, g, name)
    batch.owners[r] = o
    if objects[o]["stamp"] <= bound - joint:  # without a valid row in between it is new again
        objects[o]["shown"] = 0
        objects[o]["stamp"] = NOWHERE
    if objects[o]["in_front"]:
        pull(store, g, o)
    if stamp >= objects[o]["stamp"]:
        objects[o]["stamp"], objects[o]["serial"] = stamp, batch.serial + r
    store.stamps[o * d + p], store.values[o * d + p] = stamp, batch.values[a]
    return o


@uncounted_kernel
def take_rows(
    store: Store, combination: Combination, queries: Queries, visits: Records, batch: Batch, output: Output
) -> Any:
    """Take the arrivals of each visited group, from where the last call stopped; returns why it stops."""
    facts, d, step = store.facts, len(combination.lows), output.step[0]
    joint, k, length = queries.joint, queries.views[0]["k"], queries.views[0]["length"]
    while facts[VISIT] < len(visits):
        visit = facts[VISIT]
        g, begin, end = visits[visit]["group"], visits[visit]["begin"], visits[visit]["end"]
        group, front = store.groups[g], store.fronts[g]
        step["visit"] = visit
        if facts[ARRIVAL] <= begin:
            facts[ARRIVAL] = facts[JOINED] = begin
        for a in range(facts[ARRIVAL], end):
            facts[ARRIVAL] = a
            now = batch.now[a]
            bound = now - length
            reason = DONE if joint else expire(store, combination, queries, batch, g, a, now, output)
            if reason == DONE:
                reason = lacks_capacity(store, queries, output)
            if reason != DONE:
                return reason
            full = group["head"] + group["size"] + a - facts[JOINED] == group["start"] + group["capacity"]
            if full and lacks_rows(store, combination, queries, batch, g, a):
                return RUNS
            group["now"] = now
            step["instant"], step["row"] = now, batch.rows[a]
            o: Any = np.int64(-1)
            if batch.brings[a]:
                o = take_part(store, combination, batch, g, a, bound, joint)
            touched = facts[TOUCHED] > 0  # it was in the front
            if joint and front["next"] <= bound:
                expire_members(store, d, g, bound)
            if o >= 0 and not touched:
                assess(store, combination, o, bound)
                if above_floor(store, g, o, o):
                    store.touched[facts[TOUCHED]] = o
                    facts[TOUCHED] += 1
            if facts[TOUCHED]:
                if front["size"] < k:  # it may be filled again
                    join(store, combination, batch, g, a + 1, bound)
                settle(store, combination, queries, g, bound, output)
        facts[ARRIVAL] = end
        tidy(store, combination, queries, batch, g, end)
        if not joint:
            reason = expire(store, combination, queries, batch, g, end, visits[visit]["last"], output)
            if reason != DONE:
                return reason
            join(store, combination, batch, g, end, group["now"] - length)
            group["due"] = store.rows[group["head"]]["stamp"] + length if group["size"] else NEVER
        group["open"] = queries.net and batch.more
        facts[VISIT] += 1
        facts[ARRIVAL] = 0
    return DONE


@uncounted_kernel
def flush(store: Store, queries: Queries, visits: Records, output: Output) -> None:
    """End a net batch: report how answers differ from those it began with."""
    step = output.step[0]
    for visit in range(len(visits)):
        step["visit"], step["instant"], step["row"] = visit, visits[visit]["last"], -1
        compare(store, queries, visits[visit]["group"], output)


@uncounted_kernel
def rebuild(store: Store, combination: Combination, queries: Queries) -> None:
    """Compute objects and fronts of all groups from their runs, without expired rows; fronts have capacity."""
    d = len(combination.lows)
    for g in range(len(store.groups)):
        group = store.groups[g]
        for i in range(group["head"], group["head"] + group["size"]):
            row = store.rows[i]
            o = row["object"]
            store.objects[o]["stamp"], store.objects[o]["serial"] = row["stamp"], row["serial"]
            store.stamps[o * d + row["part"]], store.values[o * d + row["part"]] = row["stamp"], row["value"]
            assess_best(store, combination, o, NOWHERE)
        refill(store, combination, queries, g, NOWHERE)
        group["due"] = NEVER
        if group["size"] and not queries.joint:
            group["due"] = store.rows[group["head"]]["stamp"] + queries.views[0]["length"]
