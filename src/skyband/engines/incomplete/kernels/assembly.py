"""Objects put together from rows, step by step, for many groups and views at once.

A count window's step is an arrival and what it pushes out; in time windows all rows of a group that leave a view at
one instant are a step, and each arrival is one. An object that a step changes leaves the fronts it is in, and comes
back by its new score when the step ends; then answers are compared.

Cost of an arrival: one look into the table for its object, one score for it and one for the object that loses a row,
and a comparison with the floor of the front. Fronts are touched only by the few that rank above it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.combine import Recipe, combine
from skyband.engines.incomplete.kernels.leaders import above_floor, compare, cut, pull, put, refill, remember
from skyband.engines.incomplete.kernels.rows import (
    FREE_ROW,
    FREE_THING,
    LAST,
    LISTED,
    LIVE,
    MOST,
    NOWHERE,
    ONCE,
    THINGS,
    TOUCHED,
    WAITING,
    WRITTEN,
    Records,
    Store,
    first_valid,
    forget_thing,
    link,
    release,
    unlink,
    value_of,
)
from skyband.kernels.compile import close, uncounted
from skyband.kernels.records import NEVER

KEEP, ASK = range(2)  # what is done when a group has grown: nothing, or the caller is asked
DONE, ROWS, LISTS, ORDER, OUT, GROWN = range(6)  # why a kernel stops


class Columns(NamedTuple):
    """Arrivals."""

    names: Records
    parts: Records
    values: Records
    stamps: Records
    now: Records
    rows: Records


@uncounted
def step_aside(store: Store, V: int, g: int, o: int) -> Any:
    """An object that is about to change leaves the fronts it is in; whether it was in one."""
    found = False
    for v in range(V):
        if above_floor(store, g * V + v, o, o * V + v):
            pull(store, g * V + v, v, o)
            found = True
    return found


@close
def touch(store: Store, o: int) -> None:
    store.things[o]["mark"] = 1
    store.touched[store.facts[TOUCHED]] = o
    store.facts[TOUCHED] += 1


@uncounted
def put_back(store: Store, views: Records, asked: Records, g: int, net: bool, out: Records, step: Records) -> None:
    """The step ends: who was touched finds its place in the fronts again."""
    V = len(views)
    for t in range(store.facts[TOUCHED]):
        o = store.touched[t]
        for v in range(V):
            if above_floor(store, g * V + v, o, o * V + v):
                put(store, g * V + v, v, o)
                cut(store, asked, g * V + v, v, views[v]["most"], net, out, step)


@close
def is_short(store: Store, views: Records, f: int, v: int) -> Any:
    """Has a front too few, while others are below its floor?"""
    return store.fronts[f]["size"] < views[v]["k"] and store.fronts[f]["stamp"] > NOWHERE


@uncounted
def tell_step(store: Store, views: Records, asked: Records, g: int, net: bool, out: Records, step: Records) -> None:
    """How answers have changed in this step; who has no row left is forgotten."""
    V, things, facts = len(views), store.things, store.facts
    for v in range(V):
        f = g * V + v
        if not net and store.fronts[f]["low"] < NEVER:
            compare(store, asked, f, v, out, step)
        store.fronts[f]["low"] = NEVER
    store.packs[g]["dirty"] = 1
    for t in range(facts[TOUCHED]):
        o = store.touched[t]
        things[o]["mark"] = 0
        inside = np.uint32(0)
        for i in range(o * V, o * V + V):
            inside |= store.sights[i]["inside"]
            if store.sights[i]["count"] == 0:
                store.sights[i]["shown"] = 0  # gone and come back is new again
            elif not net and store.sights[i]["inside"]:
                remember(store, o, i)
        if things[o]["rows"] == 0:
            if inside == 0:
                forget_thing(store, o)
            elif not things[o]["waits"]:
                things[o]["waits"] = 1
                store.waiting[facts[WAITING]] = o
                facts[WAITING] += 1
    facts[TOUCHED] = 0


@uncounted
def settle(store: Store, views: Records, asked: Records, g: int, net: bool, out: Records, step: Records) -> None:
    """The step ends: fronts are in order again, and answers are compared."""
    put_back(store, views, asked, g, net, out, step)
    for v in range(len(views)):
        if is_short(store, views, g * len(views) + v, v):
            refill(store, asked, g, v, views[v]["most"], out, step)
    tell_step(store, views, asked, g, net, out, step)


@close
def lose_row(
    store: Store, recipe: Recipe, V: int, g: int, v: int, repeat: int, own: int, alive: Records, serial: int
) -> None:
    """The oldest row that view v has leaves it; the longest view's leave for good. own: who arrives in this step."""
    rows, things, sights, d = store.rows, store.things, store.sights, len(recipe.lows)
    f = g * V + v
    r = store.order[store.packs[g]["head"] + store.fronts[f]["edge"]]
    o = rows[r]["object"]
    last = v == V - 1
    if o >= 0:
        i = o * V + v
        near = V > 1 or sights[i]["score"] >= store.fronts[f]["score"]
        if near and not things[o]["mark"] and (step_aside(store, V, g, o) or V > 1):
            touch(store, o)
        sights[i]["count"] -= 1
        p = rows[r]["part"]
        low = recipe.lows[p]
        single = repeat == LAST or (repeat == ONCE and o != own)  # it has no other row of this part
        store.values[i * d + p] = low if single else value_of(rows, rows[r]["newer"], p, repeat, low)
        sights[i]["score"] = combine(recipe, store.values, i * d)
        if last:
            unlink(rows, things, r)
            store.facts[LIVE] -= 1
        if not things[o]["mark"]:
            if sights[i]["count"] == 0 and not sights[i]["inside"]:
                forget_thing(store, o)
            elif sights[i]["count"] == 0:
                touch(store, o)
            elif sights[i]["score"] >= store.fronts[f]["score"] and above_floor(store, f, o, i):
                touch(store, o)  # negative values: a score may rise
    elif last:
        store.packs[g]["dead"] -= 1
    if last:
        release(rows, store.facts, alive, serial, r)
        store.packs[g]["head"] += 1
        store.packs[g]["size"] -= 1
        for w in range(g * V, g * V + V - 1):
            store.fronts[w]["edge"] -= 1
    else:
        store.fronts[f]["edge"] += 1


@uncounted
def bury(store: Store, views: Records, g: int, r: int, now: int) -> None:
    """Row r will never count again: a newer one of its part stands for it."""
    V, o, stamp = len(views), store.rows[r]["object"], store.rows[r]["stamp"]
    for v in range(V):
        if stamp > now - views[v]["length"]:
            store.sights[o * V + v]["count"] -= 1
    unlink(store.rows, store.things, r)
    store.packs[g]["dead"] += 1
    store.facts[LIVE] -= 1


@uncounted
def supersede(store: Store, views: Records, g: int, r: int, now: int, repeat: int) -> Any:
    """`last` and `max`: rows that r makes superfluous are buried; False: r itself is superfluous."""
    rows, p, value = store.rows, store.rows[r]["part"], store.rows[r]["value"]
    other = rows[r]["newer"]
    while other >= 0:
        if rows[other]["part"] == p and (repeat == LAST or rows[other]["value"] >= value):
            bury(store, views, g, r, now)
            return False
        other = rows[other]["newer"]
    other = rows[r]["older"]
    while other >= 0:
        older = rows[other]["older"]
        if rows[other]["part"] == p and (repeat == LAST or rows[other]["value"] <= value):
            bury(store, views, g, other, now)
        other = older
    return True


@close
def insert(store: Store, views: Records, g: int, r: int, now: int) -> None:
    """Row r at its place in the order: late rows are not the last."""
    order, rows, V = store.order, store.rows, len(views)
    head, stamp = store.packs[g]["head"], store.rows[r]["stamp"]
    place = head + store.packs[g]["size"]
    while place > head and rows[order[place - 1]]["stamp"] > stamp:
        order[place] = order[place - 1]
        place -= 1
    order[place] = r
    store.packs[g]["size"] += 1
    for v in range(V):
        store.fronts[g * V + v]["edge"] += stamp <= now - views[v]["length"]


@close
def arrive(
    store: Store, recipe: Recipe, views: Records, g: int, o: int, r: int, now: int, repeat: int, joint: bool
) -> None:
    """The sights of an object with a new row. joint: what has expired now is still there."""
    rows, things, V, d = store.rows, store.things, len(views), len(recipe.lows)
    if not things[o]["mark"]:
        for v in range(V):
            if store.sights[o * V + v]["score"] >= store.fronts[g * V + v]["score"] and step_aside(store, V, g, o):
                touch(store, o)
                break
    rows[r]["object"] = o
    newest = link(rows, things, o, r)
    insert(store, views, g, r, now)
    stamp, p, value = rows[r]["stamp"], rows[r]["part"], rows[r]["value"]
    for v in range(V):
        if stamp > now - views[v]["length"]:
            store.sights[o * V + v]["count"] += 1
    store.facts[LIVE] += 1
    if repeat in (LAST, MOST) and not supersede(store, views, g, r, now - joint, repeat):
        return
    for v in range(V):
        bound, i = now - views[v]["length"], o * V + v
        if stamp <= bound:
            continue
        at = i * d + p
        if newest and repeat <= LAST:
            store.values[at] = value
        elif newest and repeat == MOST:
            store.values[at] = max(store.values[at], value)
        else:
            store.values[at] = value_of(rows, first_valid(rows, things, o, bound), p, repeat, recipe.lows[p])
        store.sights[i]["score"] = combine(recipe, store.values, i * d)
        near = store.sights[i]["score"] >= store.fronts[g * V + v]["score"]
        if near and not things[o]["mark"] and above_floor(store, g * V + v, o, i):
            touch(store, o)


@uncounted
def squeeze(store: Store, views: Records, g: int, alive: Records, serial: int) -> None:
    """The order without its dead."""
    order, rows, V = store.order, store.rows, len(views)
    head, to = store.packs[g]["head"], store.packs[g]["head"]
    for f in range(g * V, g * V + V):
        edge, store.fronts[f]["edge"] = store.fronts[f]["edge"], 0
        for place in range(head, head + edge):
            store.fronts[f]["edge"] += rows[order[place]]["object"] >= 0
    for place in range(head, head + store.packs[g]["size"]):
        r = order[place]
        if rows[r]["object"] < 0:
            release(rows, store.facts, alive, serial, r)
        else:
            order[to] = r
            to += 1
    store.packs[g]["size"] = to - head
    store.packs[g]["dead"] = 0


@uncounted
def next_view(store: Store, views: Records, g: int) -> Any:
    """Which view lets go of something first; sets the group's `due`."""
    V, due, found = len(views), NEVER, 0
    head, size = store.packs[g]["head"], store.packs[g]["size"]
    for v in range(V):
        edge = store.fronts[g * V + v]["edge"]
        if edge < size:
            instant = store.rows[store.order[head + edge]]["stamp"] + views[v]["length"]
            if instant < due:
                due, found = instant, v
    store.packs[g]["due"] = due
    return found


@uncounted
def expire(
    store: Store,
    recipe: Recipe,
    views: Records,
    asked: Records,
    g: int,
    until: int,
    repeat: int,
    alive: Records,
    serial: int,
    net: bool,
    out: Records,
    step: Records,
    margin: int,
) -> Any:
    """What time takes, instant by instant; False: there is no room to tell it."""
    while store.packs[g]["due"] <= until:
        if short_of_room(store, views, g, out, margin) != DONE:
            return False
        v = next_view(store, views, g)
        V, instant, f = len(views), store.packs[g]["due"], g * len(views) + v
        if instant > until:
            break
        step[0]["instant"] = store.packs[g]["now"] = instant
        step[0]["row"] = -1
        while store.fronts[f]["edge"] < store.packs[g]["size"]:
            r = store.order[store.packs[g]["head"] + store.fronts[f]["edge"]]
            if store.rows[r]["stamp"] + views[v]["length"] != instant:
                break
            lose_row(store, recipe, V, g, v, repeat, -1, alive, serial)
        if store.facts[TOUCHED]:
            settle(store, views, asked, g, net, out, step)
    return True


@close
def short_of_room(store: Store, views: Records, g: int, out: Records, margin: int) -> Any:
    """Why the next step cannot be taken, or DONE: it can."""
    facts, packs = store.facts, store.packs
    if facts[FREE_ROW] < 0 or facts[FREE_THING] < 0 or 2 * facts[THINGS] >= len(store.table) - 2:
        return ROWS
    for v in range(len(views)):
        if facts[LISTED] + len(views) * 8 * (views[v]["most"] + 8) > len(store.lists):
            return LISTS
    if facts[WRITTEN] + margin > len(out):
        return OUT
    if packs[g]["head"] + packs[g]["size"] == packs[g]["start"] + packs[g]["room"]:
        if packs[g]["head"] - packs[g]["start"] <= packs[g]["room"] // 4:
            return ORDER
        for i in range(packs[g]["size"]):
            store.order[packs[g]["start"] + i] = store.order[packs[g]["head"] + i]
        packs[g]["head"] = packs[g]["start"]
    return DONE
