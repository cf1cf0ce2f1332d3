"""Objects put together from rows that come at most once while they are valid, with no work for what expires unseen.

A count window's step is an arrival and what it pushes out; in time windows the rows that leave at one instant are a
step, and each arrival is one. The kept rows of a group are a run, the oldest first. Only a sweep and a front that is
filled anew read it, so arrivals wait to join it until then, or until it has no room for more of them, or until their
visit ends: those that have expired meanwhile never do.

Cost of an arrival: one look at its object, one score, one comparison with the floor of the front. Room is made by
the caller: kernels stop when there could be too little for the next step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.combine import Recipe
from skyband.engines.incomplete.kernels.objects import (
    ARRIVAL,
    DONE,
    FREE,
    FRONTS,
    JOINED,
    LISTED,
    NOWHERE,
    OBJECTS,
    OUT,
    ROWS,
    TOUCHED,
    VISIT,
    WRITTEN,
    Records,
    Spec,
    Store,
    above_floor,
    appraise,
    assess,
    forget,
    pull,
    put,
    refill,
)
from skyband.engines.incomplete.kernels.register import NOBODY
from skyband.engines.incomplete.kernels.sweep import sweep
from skyband.kernels.compile import close, uncounted, uncounted_kernel
from skyband.kernels.records import BITS, NEVER


class Columns(NamedTuple):
    """Arrivals, sorted by group, in order within a group; and more of them by row of the batch."""

    names: Records
    parts: Records
    values: Records
    stamps: Records
    now: Records
    rows: Records
    links: Records  # by row, as the register has found it: its object
    owners: Records  # and as it is here
    alive: Records  # is it kept now?
    serial: int  # of the batch's first row


@uncounted
def let_expire(store: Store, d: int, g: int, bound: int) -> None:
    """Who loses a row leaves the front; when the next one will."""
    group, due = store.groups[g], NEVER
    i = group["first"]
    while i < group["first"] + group["best"]:
        o, oldest = store.fronts[i], NEVER
        for p in range(d):
            if store.stamps[o * d + p] > NOWHERE:
                oldest = min(oldest, store.stamps[o * d + p])
        if oldest <= bound:
            pull(store, g, o)
        else:
            due = min(due, oldest)
            i += 1
    group["next"] = due


@uncounted
def settle(store: Store, recipe: Recipe, asked: Spec, g: int, bound: int, out: Records, step: Records) -> None:
    """The step ends: who was touched finds its place again, and answers are compared."""
    group = store.groups[g]
    for t in range(store.facts[TOUCHED]):
        o = store.touched[t]
        if store.objects[o]["stamp"] > bound:
            assess(store, recipe, o, bound)
            if above_floor(store, g, o):
                put(store, asked, len(recipe.lows), g, o)
    store.facts[TOUCHED] = 0
    if group["best"] < asked.k and group["stamp"] > NOWHERE:
        refill(store, recipe, asked, g, bound)
    if not asked.net:
        compare(store, asked, g, out, step)


@uncounted
def compare(store: Store, asked: Spec, g: int, out: Records, step: Records) -> None:
    """How the answers differ from those told last, from the first place on that has changed."""
    group, objects = store.groups[g], store.objects
    first, low, told, size = group["first"], group["low"], group["told"], min(asked.k, group["best"])
    group["low"] = NEVER
    if low >= asked.k:
        return
    for j in range(low, size):
        objects[store.fronts[first + j]]["rank"] = j + 1
    for q in range(len(asked.ks)):
        k, before, bit = asked.ks[q], asked.was[q], BITS[q]
        for j in range(low, min(before, told)):
            was = store.told[first + j]
            if not 0 < objects[was["object"]]["rank"] <= k:
                tell(was["score"], was["stamp"], was["serial"], q, -1, False, store.facts, out, step)
        for j in range(low, min(k, size)):
            one, score = objects[store.fronts[first + j]], store.reach[store.fronts[first + j]]["score"]
            if not 0 < one["told"] <= before:
                tell(score, one["stamp"], one["serial"], q, 1, not one["shown"] & bit, store.facts, out, step)
            one["shown"] |= bit
    for j in range(low, told):
        objects[store.told[first + j]["object"]]["told"] = 0
    for j in range(low, size):
        o = store.fronts[first + j]
        objects[o]["rank"], objects[o]["told"] = 0, j + 1
        now = store.told[first + j]
        now["score"], now["stamp"], now["serial"] = store.reach[o]["score"], objects[o]["stamp"], objects[o]["serial"]
        now["object"] = o
    group["told"], group["since"] = size, NEVER
    for j in range(size):
        group["since"] = min(group["since"], objects[store.fronts[first + j]]["stamp"] - 1)


@uncounted
def tell(
    score: float, stamp: int, serial: int, q: int, diff: int, first: bool, facts: Records, out: Records, step: Records
) -> None:
    n = facts[WRITTEN]
    out[n] = step[0]
    out[n]["key"], out[n]["stamp"], out[n]["serial"] = score, stamp, serial
    out[n]["query"], out[n]["diff"], out[n]["first"] = q, diff, first
    facts[WRITTEN] = n + 1


@uncounted
def expire(
    store: Store,
    recipe: Recipe,
    asked: Spec,
    arrivals: Columns,
    g: int,
    a: int,
    until: int,
    out: Records,
    step: Records,
    margin: int,
) -> Any:
    """Time windows: what time takes before arrival a, instant by instant; why it stops."""
    group = store.groups[g]
    while group["next"] <= until - asked.length:
        reason = short_of_room(store, asked, g, out, margin)
        if reason != DONE:
            return reason
        bound = group["next"]
        step[0]["instant"] = bound + asked.length
        step[0]["row"] = -1
        let_expire(store, len(recipe.lows), g, bound)
        if store.facts[TOUCHED]:
            if group["best"] < asked.k:  # it may be filled anew
                join(store, recipe, arrivals, g, a, bound)
            settle(store, recipe, asked, g, bound, out, step)
    group["now"] = until
    return DONE


@uncounted
def join(store: Store, recipe: Recipe, arrivals: Columns, g: int, end: int, bound: int) -> None:
    """Arrivals that have waited join the run."""
    group, rows = store.groups[g], store.rows
    let_go(store, arrivals, g, end, bound)
    for a in range(store.facts[JOINED], end):
        stamp, r = arrivals.stamps[a], arrivals.rows[a]
        place = group["head"] + group["size"]
        while place > group["head"] and rows[place - 1]["stamp"] > stamp:  # late
            rows[place] = rows[place - 1]
            place -= 1
        row, o = rows[place], int(arrivals.owners[r])
        row["value"], row["stamp"], row["serial"] = arrivals.values[a], stamp, arrivals.serial + r
        row["part"], row["object"] = arrivals.parts[a], o
        group["size"] += 1
        arrivals.alive[r] = True
        if store.objects[o]["serial"] <= row["serial"]:  # else a later one is among them
            appraise(store, recipe, o, bound)
    store.facts[JOINED] = end
    let_go(store, arrivals, g, end, bound)  # late ones


@uncounted
def let_go(store: Store, arrivals: Columns, g: int, end: int, bound: int) -> None:
    """What has expired leaves the run, or does not wait for it any longer."""
    group, facts = store.groups[g], store.facts
    while group["size"] and store.rows[group["head"]]["stamp"] <= bound:
        number = store.rows[group["head"]]["serial"] - arrivals.serial
        if number >= 0:
            arrivals.alive[number] = False
        group["head"] += 1
        group["size"] -= 1
    while facts[JOINED] < end and arrivals.stamps[facts[JOINED]] <= bound:
        facts[JOINED] += 1


@uncounted
def tidy(store: Store, recipe: Recipe, asked: Spec, arrivals: Columns, g: int, end: int) -> None:
    """Between two steps: the run is up to date, and without what dominance lets go if it has grown by a tenth."""
    group = store.groups[g]
    join(store, recipe, arrivals, g, end, group["now"] - asked.length)
    if group["size"] > group["limit"]:
        sweep(store, recipe, asked, g, arrivals.alive, arrivals.serial)
        group["limit"] = max(asked.least, group["size"] + group["size"] // 10)


@close
def short_of_room(store: Store, asked: Spec, g: int, out: Records, margin: int) -> Any:
    """Why the next step cannot be taken, or DONE: it can."""
    facts = store.facts
    if facts[FREE] == 0 and 4 * forget(store, asked.length) > 3 * len(store.objects):
        return OBJECTS
    if facts[LISTED] + 8 * (asked.most + 8) > len(store.fronts):
        return FRONTS
    return OUT if facts[WRITTEN] + margin > len(out) else DONE


@uncounted
def lacks_rows(store: Store, recipe: Recipe, asked: Spec, arrivals: Columns, g: int, a: int) -> Any:
    """Is there too little room for the run and those that wait to join it, with nothing left to let go?"""
    group, rows = store.groups[g], store.rows
    let_go(store, arrivals, g, a, group["now"] - asked.length)
    if 4 * (group["size"] + a - store.facts[JOINED]) >= 3 * group["room"]:
        tidy(store, recipe, asked, arrivals, g, a)
    for i in range(group["size"] if group["head"] > group["start"] else 0):
        rows[group["start"] + i] = rows[group["head"] + i]
    group["head"] = group["start"]
    return 4 * group["size"] >= 3 * group["room"]


@close
def find(store: Store, g: int, bound: int, name: np.int64, link: np.int64, owners: Records) -> Any:
    """The object of an arrival: that of a valid row, or one that has gone since answers were told; -1: it is new."""
    objects, group = store.objects, store.groups[g]
    if link > NOBODY:
        o = np.int64(owners[~link]) if link < 0 else link
        if objects[o]["name"] == name and objects[o]["group"] == g:
            return o
    if group["since"] <= bound:
        for j in range(group["first"], group["first"] + group["told"]):
            o = store.told[j]["object"]
            if objects[o]["name"] == name:
                return o
    return np.int64(-1)


@uncounted_kernel
def take_once(
    store: Store,
    recipe: Recipe,
    asked: Spec,
    arrivals: Columns,
    visits: Records,
    more: bool,
    out: Records,
    step: Records,
) -> Any:
    """Take the arrivals of each visited group, from where the last call stopped; why it stops."""
    facts, objects, d = store.facts, store.objects, len(recipe.lows)
    margin, joint, length = 0, asked.joint, asked.length
    for q in range(len(asked.ks)):
        margin += 2 * asked.ks[q]
    while facts[VISIT] < len(visits):
        visit = facts[VISIT]
        g, begin, end = visits[visit]["group"], visits[visit]["begin"], visits[visit]["end"]
        group = store.groups[g]
        step[0]["visit"] = visit
        if facts[ARRIVAL] <= begin:
            facts[ARRIVAL] = facts[JOINED] = begin
        for a in range(facts[ARRIVAL], end):
            facts[ARRIVAL] = a
            now = arrivals.now[a]
            bound = now - length
            reason = DONE if joint else expire(store, recipe, asked, arrivals, g, a, now, out, step, margin)
            if reason == DONE:
                reason = short_of_room(store, asked, g, out, margin)
            if reason != DONE:
                return reason
            full = group["head"] + group["size"] + a - facts[JOINED] == group["start"] + group["room"]
            if full and lacks_rows(store, recipe, asked, arrivals, g, a):
                return ROWS
            name, stamp, p, r = arrivals.names[a], arrivals.stamps[a], arrivals.parts[a], arrivals.rows[a]
            o = find(store, g, bound, name, arrivals.links[r], arrivals.owners)
            if o < 0:
                facts[FREE] -= 1
                o = np.int64(store.free[facts[FREE]])
                objects[o]["name"], objects[o]["group"], objects[o]["stamp"] = name, g, NOWHERE
                objects[o]["front"] = objects[o]["told"] = objects[o]["rank"] = 0
                for j in range(o * d, o * d + d):
                    store.stamps[j] = NOWHERE
            arrivals.owners[r] = o
            if objects[o]["stamp"] <= bound - joint:  # gone and come back is new again
                objects[o]["shown"] = 0
                objects[o]["stamp"] = NOWHERE
            if objects[o]["front"]:
                pull(store, g, o)
            touched = facts[TOUCHED] > 0
            if stamp >= objects[o]["stamp"]:
                objects[o]["stamp"], objects[o]["serial"] = stamp, arrivals.serial + r
            store.stamps[o * d + p], store.values[o * d + p] = stamp, arrivals.values[a]
            group["now"] = now
            step[0]["instant"], step[0]["row"] = now, r
            if joint and group["next"] <= bound:
                let_expire(store, d, g, bound)
            if not touched:
                assess(store, recipe, o, bound)
                if above_floor(store, g, o):
                    store.touched[facts[TOUCHED]] = o
                    facts[TOUCHED] += 1
            if facts[TOUCHED]:
                if group["best"] < asked.k:  # it may be filled anew
                    join(store, recipe, arrivals, g, a + 1, bound)
                settle(store, recipe, asked, g, bound, out, step)
        facts[ARRIVAL] = end
        tidy(store, recipe, asked, arrivals, g, end)
        if not joint:
            reason = expire(store, recipe, asked, arrivals, g, end, visits[visit]["last"], out, step, margin)
            if reason != DONE:
                return reason
            join(store, recipe, arrivals, g, end, group["now"] - length)
            group["due"] = store.rows[group["head"]]["stamp"] + length if group["size"] else NEVER
        group["open"] = asked.net and more
        facts[VISIT] += 1
        facts[ARRIVAL] = 0
    return DONE


@uncounted_kernel
def flush(store: Store, asked: Spec, visits: Records, out: Records, step: Records) -> None:
    """A net batch ends: how answers differ from those it began with."""
    for visit in range(len(visits)):
        step[0]["visit"], step[0]["instant"], step[0]["row"] = visit, visits[visit]["last"], -1
        compare(store, asked, visits[visit]["group"], out, step)


@uncounted_kernel
def rebuild(store: Store, recipe: Recipe, asked: Spec) -> None:
    """What follows from the runs of all groups, whose rows have not expired; fronts have room."""
    d = len(recipe.lows)
    for g in range(len(store.groups)):
        group = store.groups[g]
        for i in range(group["head"], group["head"] + group["size"]):
            row = store.rows[i]
            o = row["object"]
            store.objects[o]["stamp"], store.objects[o]["serial"] = row["stamp"], row["serial"]
            store.stamps[o * d + row["part"]], store.values[o * d + row["part"]] = row["stamp"], row["value"]
            appraise(store, recipe, o, NOWHERE)
        refill(store, recipe, asked, g, NOWHERE)
        group["due"] = NEVER
        if group["size"] and not asked.joint:
            group["due"] = store.rows[group["head"]]["stamp"] + asked.length
