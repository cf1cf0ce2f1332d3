"""Whole batches of rows put together to objects, and what is made anew or read from all rows that are kept.

Here the steps of assembling.py are taken one after another, until a batch ends or there is no room.
"""

from __future__ import annotations

from typing import Any

from skyband.engines.incomplete.kernels.assembly import (
    ASK,
    DONE,
    GROWN,
    OUT,
    Columns,
    arrive,
    expire,
    lose_row,
    next_view,
    settle,
    short_of_room,
    squeeze,
)
from skyband.engines.incomplete.kernels.combine import Recipe, combine
from skyband.engines.incomplete.kernels.leaders import compare_all, refill, tell
from skyband.engines.incomplete.kernels.rows import (
    ARRIVAL,
    FREE_ROW,
    LIVE,
    TOUCHED,
    VISIT,
    WAITING,
    WRITTEN,
    Records,
    Store,
    assess,
    first_valid,
    forget_thing,
    link,
    make_thing,
    place_of,
    unlink,
    value_of,
)
from skyband.kernels.compile import uncounted_kernel
from skyband.kernels.records import BITS, NEVER


@uncounted_kernel
def take_pieces(
    store: Store,
    recipe: Recipe,
    views: Records,  # from the shortest to the longest
    asked: Records,
    arrivals: Columns,  # sorted by group, in order within a group
    visits: Records,
    alive: Records,  # per row of the batch: is it kept now
    serial: int,  # of the batch's first row
    joint: bool,  # count windows: an arrival and what it pushes out are one step
    net: bool,
    more: bool,
    repeat: int,
    rule: int,
    out: Records,
    step: Records,
) -> Any:
    """Take the arrivals of each visited group, from where the last call stopped; why it stops."""
    V, facts, rows, things, packs = len(views), store.facts, store.rows, store.things, store.packs
    margin = 0
    for q in range(len(asked)):
        margin += 2 * asked[q]["k"] + 2
    while facts[VISIT] < len(visits):
        visit = facts[VISIT]
        g, end, last = visits[visit]["group"], visits[visit]["end"], visits[visit]["last"]
        a = max(visits[visit]["begin"], facts[ARRIVAL])
        step[0]["visit"] = visit
        while a < end:
            facts[ARRIVAL] = a
            reason = short_of_room(store, views, g, out, margin)
            if reason != DONE:
                return reason
            now = arrivals.now[a]
            if not joint and packs[g]["due"] <= now:
                if not expire(store, recipe, views, asked, g, now, repeat, alive, serial, net, out, step, margin):
                    return short_of_room(store, views, g, out, margin)
                reason = short_of_room(store, views, g, out, margin)
                if reason != DONE:
                    return reason
            name = arrivals.names[a]
            place = place_of(store.table, things, name, g)
            o = store.table[place]
            if o < 0:
                o = make_thing(store, place, name, g, recipe.lows)
            r = facts[FREE_ROW]
            facts[FREE_ROW] = rows[r]["older"]
            rows[r]["value"] = arrivals.values[a]
            rows[r]["stamp"] = arrivals.stamps[a]
            rows[r]["serial"] = serial + arrivals.rows[a]
            rows[r]["part"] = arrivals.parts[a]
            alive[arrivals.rows[a]] = True
            step[0]["instant"] = packs[g]["now"] = now
            step[0]["row"] = arrivals.rows[a]
            arrive(store, recipe, views, g, o, r, now, repeat, joint)
            packs[g]["seen"] += 1
            if joint:
                for v in range(V):
                    bound, f = now - views[v]["length"], g * V + v
                    while rows[store.order[packs[g]["head"] + store.fronts[f]["edge"]]]["stamp"] <= bound:
                        lose_row(store, recipe, V, g, v, repeat, o, alive, serial)
            else:
                next_view(store, views, g)
            if facts[TOUCHED]:
                settle(store, views, asked, g, net, out, step)
            a += 1
            if rule == ASK and (
                packs[g]["size"] - packs[g]["dead"] > packs[g]["limit"] or packs[g]["seen"] >= packs[g]["tick"]
            ):
                facts[ARRIVAL] = a
                return GROWN
            if packs[g]["dead"] > 16 + packs[g]["size"] // 4:
                squeeze(store, views, g, alive, serial)
        facts[ARRIVAL] = end
        if not joint and not expire(
            store, recipe, views, asked, g, last, repeat, alive, serial, net, out, step, margin
        ):
            return short_of_room(store, views, g, out, margin)
        packs[g]["open"] = net and more
        facts[VISIT] += 1
        facts[ARRIVAL] = 0
    return DONE


@uncounted_kernel
def flush(store: Store, asked: Records, visits: Records, seats: Records, out: Records, step: Records) -> Any:
    """A net batch ends: how answers differ from those it began with. seats: by group, its visit."""
    V, facts = len(store.fronts) // len(store.packs), store.facts
    margin = 0
    for q in range(len(asked)):
        margin += 2 * asked[q]["k"] + 2
    step[0]["row"] = -1
    while facts[WAITING]:  # objects that have no row any more
        if facts[WRITTEN] + margin > len(out):
            return OUT
        facts[WAITING] -= 1
        o = store.waiting[facts[WAITING]]
        store.things[o]["waits"] = 0
        if store.things[o]["rows"]:
            continue
        visit = seats[store.things[o]["group"]]
        step[0]["visit"] = visit
        step[0]["instant"] = visits[visit]["last"]
        for q in range(len(asked)):
            i = o * V + asked[q]["view"]
            if store.sights[i]["inside"] & BITS[q]:
                tell(store, o, i, q, -1, out, step, True)
        forget_thing(store, o)
    while facts[VISIT] < len(visits):
        if facts[WRITTEN] + margin > len(out):
            return OUT
        g = visits[facts[VISIT]]["group"]
        step[0]["visit"] = facts[VISIT]
        step[0]["instant"] = visits[facts[VISIT]]["last"]
        if store.packs[g]["dirty"]:
            compare_all(store, asked, g, out, step)
        store.packs[g]["dirty"] = 0
        facts[VISIT] += 1
    return DONE


@uncounted_kernel
def squeeze_one(store: Store, views: Records, g: int, alive: Records, serial: int) -> None:
    """The order of one group without its dead."""
    squeeze(store, views, g, alive, serial)


@uncounted_kernel
def index_things(table: Records, things: Records) -> None:
    """Fill an empty table."""
    for o in range(len(things)):
        if things[o]["group"] >= 0:
            table[place_of(table, things, things[o]["name"], things[o]["group"])] = o


@uncounted_kernel
def rebuild(
    store: Store,
    recipe: Recipe,
    views: Records,
    asked: Records,
    bounds: Records,  # by group and view: what is not newer has expired
    repeat: int,
    out: Records,
    step: Records,
) -> None:
    """Chains, sights and fronts of all groups, from the order and its rows."""
    V, rows, things = len(views), store.rows, store.things
    for g in range(len(store.packs)):
        head, size = store.packs[g]["head"], store.packs[g]["size"]
        for place in range(head, head + size):
            o = rows[store.order[place]]["object"]
            things[o]["oldest"] = things[o]["newest"] = -1
            things[o]["rows"] = 0
        for place in range(head, head + size):
            link(rows, things, rows[store.order[place]]["object"], store.order[place])
        for f in range(g * V, g * V + V):
            edge = 0
            while edge < size and rows[store.order[head + edge]]["stamp"] <= bounds[f]:
                edge += 1
            store.fronts[f]["edge"] = edge
        for place in range(head, head + size):
            r = store.order[place]
            o = rows[r]["object"]
            for v in range(V if things[o]["newest"] == r else 0):
                assess(store, recipe, o, v, bounds[g * V + v], repeat)
                if store.sights[o * V + v]["count"] == 0:
                    store.sights[o * V + v]["shown"] = 0
        for v in range(V):
            refill(store, asked, g, v, views[v]["most"], out, step)
            store.fronts[g * V + v]["low"] = NEVER
        for _ in range(store.fronts[g * V + V - 1]["edge"]):  # older than any view
            r = store.order[store.packs[g]["head"]]
            o = rows[r]["object"]
            unlink(rows, things, r)
            rows[r]["older"] = store.facts[FREE_ROW]
            store.facts[FREE_ROW] = r
            store.packs[g]["head"] += 1
            store.packs[g]["size"] -= 1
            store.facts[LIVE] -= 1
            if things[o]["rows"] == 0:
                forget_thing(store, o)
        for f in range(g * V, g * V + V):
            store.fronts[f]["edge"] -= store.fronts[g * V + V - 1]["edge"] if f < g * V + V - 1 else 0
        store.fronts[g * V + V - 1]["edge"] = 0
        next_view(store, views, g)


@uncounted_kernel
def survey(
    store: Store, recipe: Recipe, groups: Records, bounds: Records, repeat: int, values: Records, found: Records
) -> Any:
    """The objects of these groups with rows newer than the bounds, their scores and newest rows; how many there are."""
    rows, n = store.rows, 0
    for j in range(len(groups)):
        head = store.packs[groups[j]]["head"]
        for place in range(head, head + store.packs[groups[j]]["size"]):
            r = store.order[place]
            o = rows[r]["object"]
            if o < 0 or store.things[o]["newest"] != r or rows[r]["stamp"] <= bounds[j]:
                continue
            first = first_valid(rows, store.things, o, bounds[j])
            for p in range(len(recipe.lows)):
                values[p] = value_of(rows, first, p, repeat, recipe.lows[p])
            found[n]["key"] = combine(recipe, values, 0)
            found[n]["stamp"] = rows[r]["stamp"]
            found[n]["serial"] = rows[r]["serial"]
            found[n]["visit"] = groups[j]
            n += 1
    return n
