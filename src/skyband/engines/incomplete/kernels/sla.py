"""SLA: every valid value in sorted lists, and the threshold algorithm (haghani2009, section 3.1).

One list for each part and view of a group, of the objects that have the part, by rising value. When the front has
fewer than k objects, TA goes down the lists in turn: it takes each object that it meets, whose score is known, until
no object below could rank above those it has.

Cost of an arrival: O(n) for the place in a list; of a call of TA: as deep as the threshold demands.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.assembly import (
    DONE,
    Columns,
    arrive,
    is_short,
    lose_row,
    next_view,
    put_back,
    short_of_room,
    squeeze,
    tell_step,
)
from skyband.engines.incomplete.kernels.combine import Recipe, combine
from skyband.engines.incomplete.kernels.leaders import above_floor, cut, put
from skyband.engines.incomplete.kernels.rows import (
    ARRIVAL,
    FREE_ROW,
    NOWHERE,
    REFILLED,
    TOUCHED,
    VISIT,
    Floats,
    Records,
    Store,
    first_valid,
    make_thing,
    place_of,
)
from skyband.kernels.compile import uncounted, uncounted_kernel
from skyband.kernels.records import NEVER

FULL = 100  # a sorted list is: the caller makes room


class Sorted(NamedTuple):
    lists: Records  # arena of things
    starts: Records  # by group, view and part
    rooms: Records
    sizes: Records
    listed: Records  # by sight and part: is the object in the list
    seen: Records  # by object: the last call of TA that met it
    depth: Floats  # by part: the values that TA has come to


@uncounted
def seat_of(store: Store, sorting: Sorted, f: int, v: int, V: int, p: int, o: int) -> Any:
    """Where an object is, or belongs, in the list of part p: below those that have at least its value."""
    d = len(sorting.depth)
    run = f * d + p
    value = store.values[(o * V + v) * d + p]
    low, high = sorting.starts[run], sorting.starts[run] + sorting.sizes[run]
    while low < high:
        middle = (low + high) // 2
        if store.values[(sorting.lists[middle] * V + v) * d + p] < value:
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def strike_part(store: Store, sorting: Sorted, g: int, V: int, o: int, p: int) -> None:
    """Before a part changes, its object leaves the lists."""
    d = len(sorting.depth)
    for v in range(V):
        at, run = (o * V + v) * d + p, (g * V + v) * d + p
        if sorting.listed[at]:
            place = seat_of(store, sorting, g * V + v, v, V, p, o)
            while sorting.lists[place] != o:
                place += 1
            sorting.sizes[run] -= 1
            for i in range(place, sorting.starts[run] + sorting.sizes[run]):
                sorting.lists[i] = sorting.lists[i + 1]
            sorting.listed[at] = False


@uncounted
def list_part(store: Store, sorting: Sorted, views: Records, g: int, o: int, p: int, since: int) -> None:
    """After a part has changed, its object is listed by the new value, in the views that have a row of it."""
    d, V, rows = len(sorting.depth), len(views), store.rows
    if store.things[o]["group"] != g or store.things[o]["rows"] == 0:
        return
    for v in range(V):
        r = first_valid(rows, store.things, o, since - views[v]["length"])
        while r >= 0 and rows[r]["part"] != p:
            r = rows[r]["newer"]
        if r >= 0:
            place, run = seat_of(store, sorting, g * V + v, v, V, p, o), (g * V + v) * d + p
            for i in range(sorting.starts[run] + sorting.sizes[run], place, -1):
                sorting.lists[i] = sorting.lists[i - 1]
            sorting.lists[place] = o
            sorting.sizes[run] += 1
            sorting.listed[(o * V + v) * d + p] = True


@uncounted
def search(
    store: Store,
    recipe: Recipe,
    sorting: Sorted,
    asked: Records,
    g: int,
    V: int,
    v: int,
    most: int,
    out: Records,
    step: Records,
) -> None:
    """TA: the front anew, from the tops of the sorted lists."""
    d, f, depth = len(sorting.depth), g * V + v, sorting.depth
    front = store.fronts
    store.facts[REFILLED] += 1
    number = store.facts[REFILLED]
    front[f]["size"] = 0
    front[f]["score"] = -np.inf
    front[f]["stamp"] = front[f]["serial"] = NOWHERE
    down, left = 0, True
    while left:
        left = False
        for p in range(d):
            run = f * d + p
            depth[p] = recipe.lows[p]
            if down < sorting.sizes[run]:
                left = True
                o = sorting.lists[sorting.starts[run] + sorting.sizes[run] - 1 - down]
                depth[p] = store.values[(o * V + v) * d + p]
                if sorting.seen[o] != number:
                    sorting.seen[o] = number
                    if above_floor(store, f, o, o * V + v):
                        put(store, f, v, o)
                        cut(store, asked, f, v, most, True, out, step)
        down += 1
        threshold = combine(recipe, depth, 0)
        if left and front[f]["size"] >= most:
            o = store.lists[front[f]["start"] + most - 1]
            if store.sights[o * V + v]["score"] > threshold:  # nobody below can rank above it
                front[f]["size"] = most
                while front[f]["size"] > 0 and not above(store, f, V, v, threshold):
                    front[f]["size"] -= 1
                if not front[f]["score"] > threshold:
                    front[f]["score"] = threshold
                    front[f]["stamp"] = front[f]["serial"] = NEVER
                break
    front[f]["low"] = 0


@uncounted
def above(store: Store, f: int, V: int, v: int, threshold: float) -> Any:
    """Is the last of the front above the threshold?"""
    o = store.lists[store.fronts[f]["start"] + store.fronts[f]["size"] - 1]
    return store.sights[o * V + v]["score"] > threshold


@uncounted
def settle_sorted(
    store: Store,
    recipe: Recipe,
    sorting: Sorted,
    views: Records,
    asked: Records,
    g: int,
    net: bool,
    out: Records,
    step: Records,
) -> None:
    V = len(views)
    put_back(store, views, asked, g, net, out, step)
    for v in range(V):
        if is_short(store, views, g * V + v, v):
            search(store, recipe, sorting, asked, g, V, v, views[v]["most"], out, step)
    tell_step(store, views, asked, g, net, out, step)


@uncounted
def lose_sorted(
    store: Store,
    recipe: Recipe,
    sorting: Sorted,
    views: Records,
    g: int,
    v: int,
    repeat: int,
    own: int,
    since: int,
    alive: Records,
    serial: int,
) -> None:
    """The oldest row of a view leaves it."""
    V = len(views)
    r = store.order[store.packs[g]["head"] + store.fronts[g * V + v]["edge"]]
    o, p = store.rows[r]["object"], store.rows[r]["part"]
    if o >= 0:
        strike_part(store, sorting, g, V, o, p)
    lose_row(store, recipe, V, g, v, repeat, own, alive, serial)
    if o >= 0:
        list_part(store, sorting, views, g, o, p, since)


@uncounted_kernel
def take_sorted(
    store: Store,
    recipe: Recipe,
    sorting: Sorted,
    views: Records,
    asked: Records,
    arrivals: Columns,
    visits: Records,
    alive: Records,
    serial: int,
    joint: bool,
    net: bool,
    more: bool,
    repeat: int,
    out: Records,
    step: Records,
) -> Any:
    """As `take_pieces`, with sorted lists."""
    facts, rows, packs, V, d = store.facts, store.rows, store.packs, len(views), len(recipe.lows)
    margin = 0
    for q in range(len(asked)):
        margin += 2 * asked[q]["k"] + 2
    while facts[VISIT] < len(visits):
        visit = facts[VISIT]
        g, end, last = visits[visit]["group"], visits[visit]["end"], visits[visit]["last"]
        a = max(visits[visit]["begin"], facts[ARRIVAL])
        step[0]["visit"] = visit
        while True:
            facts[ARRIVAL] = a
            now = arrivals.now[a] if a < end else last
            v = next_view(store, views, g)
            while not joint and packs[g]["due"] <= now:
                reason = short_of_room(store, views, g, out, margin)
                if reason != DONE:
                    return reason
                step[0]["instant"] = instant = packs[g]["now"] = packs[g]["due"]
                step[0]["row"] = -1
                f = g * V + v
                while store.fronts[f]["edge"] < packs[g]["size"]:
                    r = store.order[packs[g]["head"] + store.fronts[f]["edge"]]
                    if rows[r]["stamp"] + views[v]["length"] != instant:
                        break
                    lose_sorted(store, recipe, sorting, views, g, v, repeat, -1, instant, alive, serial)
                if facts[TOUCHED]:
                    settle_sorted(store, recipe, sorting, views, asked, g, net, out, step)
                v = next_view(store, views, g)
            if a == end:
                break
            reason = short_of_room(store, views, g, out, margin)
            if reason != DONE:
                return reason
            p = arrivals.parts[a]
            for v in range(V):
                run = (g * V + v) * d + p
                if sorting.sizes[run] == sorting.rooms[run]:
                    return FULL
            place = place_of(store.table, store.things, arrivals.names[a], g)
            o = store.table[place]
            if o < 0:
                o = make_thing(store, place, arrivals.names[a], g, recipe.lows)
                for i in range(o * V * d, (o + 1) * V * d):
                    sorting.listed[i] = False
            r = facts[FREE_ROW]
            facts[FREE_ROW] = rows[r]["older"]
            rows[r]["value"] = arrivals.values[a]
            rows[r]["stamp"] = arrivals.stamps[a]
            rows[r]["serial"] = serial + arrivals.rows[a]
            rows[r]["part"] = p
            alive[arrivals.rows[a]] = True
            step[0]["instant"] = packs[g]["now"] = now
            step[0]["row"] = arrivals.rows[a]
            strike_part(store, sorting, g, V, o, p)
            arrive(store, recipe, views, g, o, r, now, repeat, joint)
            list_part(store, sorting, views, g, o, p, now - joint)
            for v in range(V if joint else 0):
                bound, f = now - views[v]["length"], g * V + v
                while rows[store.order[packs[g]["head"] + store.fronts[f]["edge"]]]["stamp"] <= bound:
                    lose_sorted(store, recipe, sorting, views, g, v, repeat, o, now, alive, serial)
            if facts[TOUCHED]:
                settle_sorted(store, recipe, sorting, views, asked, g, net, out, step)
            a += 1
            if packs[g]["dead"] > 16 + packs[g]["size"] // 4:
                squeeze(store, views, g, alive, serial)
        packs[g]["open"] = net and more
        facts[VISIT] += 1
        facts[ARRIVAL] = 0
    return DONE


@uncounted_kernel
def sort_all(store: Store, recipe: Recipe, sorting: Sorted, views: Records) -> None:
    """The sorted lists of all groups, from the rows."""
    for g in range(len(store.packs)):
        head = store.packs[g]["head"]
        for place in range(head, head + store.packs[g]["size"]):
            r = store.order[place]
            o, p = store.rows[r]["object"], store.rows[r]["part"]
            strike_part(store, sorting, g, len(views), o, p)
            list_part(store, sorting, views, g, o, p, store.packs[g]["now"])
