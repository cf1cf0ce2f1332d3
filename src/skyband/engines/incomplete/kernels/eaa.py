"""EAA: instances with dominance counters (haghani2009, section 3.2.3, Algorithms 1 and 2).

Each row is an instance: `current` from its object's rows that are not older, `best` with the highest value for every
other part. Two sorted lists find whom a new or risen current score dominates, and who dominates one whose best score
has fallen; each instance knows the objects that dominate it, and goes when there are k of them.

Cost of an arrival: O(n) for the sorted lists and for those it dominates, times the instances of its object.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.assembly import (
    DONE,
    Columns,
    arrive,
    lose_row,
    next_view,
    settle,
    short_of_room,
)
from skyband.engines.incomplete.kernels.combine import Recipe, combine
from skyband.engines.incomplete.kernels.leaders import above_floor, pull, put
from skyband.engines.incomplete.kernels.rows import (
    ARRIVAL,
    FREE_ROW,
    LIVE,
    NOWHERE,
    ONCE,
    TOUCHED,
    VISIT,
    Floats,
    Records,
    Store,
    assess,
    forget_thing,
    make_thing,
    place_of,
    release,
    unlink,
)
from skyband.kernels.compile import uncounted, uncounted_kernel
from skyband.kernels.records import NEVER

COUNTER = np.dtype([("current", "f8"), ("best", "f8"), ("dominators", "i4"), ("listed", "i4")], align=True)


class Ledger(NamedTuple):
    counters: Records  # by row
    ids: Records  # by row: the objects that dominate it (dcmds)
    bests: Records  # by group, in the room of its order: rows by rising best score (bsorted)
    currents: Records  # and by rising current score (csorted)
    sizes: Records  # by group: how many are listed
    lows: Floats  # of the object at hand, by part
    highs: Floats
    doomed: Records  # rows whose counter has reached k


@uncounted
def seek(ledger: Ledger, start: int, size: int, best: bool, score: float, after: bool) -> Any:
    """The first place of a sorted list whose score is not below this one; after: is above it."""
    low, high = start, start + size
    while low < high:
        middle = (low + high) // 2
        r = ledger.bests[middle] if best else ledger.currents[middle]
        other = ledger.counters[r]["best"] if best else ledger.counters[r]["current"]
        if other < score or (after and other == score):
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def enlist(ledger: Ledger, start: int, size: int, r: int) -> None:
    """Row r into both sorted lists."""
    place = seek(ledger, start, size, True, ledger.counters[r]["best"], True)
    for i in range(start + size, place, -1):
        ledger.bests[i] = ledger.bests[i - 1]
    ledger.bests[place] = r
    place = seek(ledger, start, size, False, ledger.counters[r]["current"], True)
    for i in range(start + size, place, -1):
        ledger.currents[i] = ledger.currents[i - 1]
    ledger.currents[place] = r
    ledger.counters[r]["listed"] = 1


@uncounted
def strike(ledger: Ledger, start: int, size: int, r: int) -> None:
    """Row r out of both sorted lists."""
    place = seek(ledger, start, size, True, ledger.counters[r]["best"], False)
    while ledger.bests[place] != r:
        place += 1
    for i in range(place, start + size - 1):
        ledger.bests[i] = ledger.bests[i + 1]
    place = seek(ledger, start, size, False, ledger.counters[r]["current"], False)
    while ledger.currents[place] != r:
        place += 1
    for i in range(place, start + size - 1):
        ledger.currents[i] = ledger.currents[i + 1]
    ledger.counters[r]["listed"] = 0


@uncounted
def count_in(ledger: Ledger, r: int, o: int, K: int, doomed: int) -> Any:
    """Object o dominates row r, unless that is known; how many rows are doomed now."""
    n = ledger.counters[r]["dominators"]
    for j in range(n):
        if ledger.ids[r * K + j] == o:
            return doomed
    if n < K:
        ledger.ids[r * K + n] = o
        ledger.counters[r]["dominators"] = n + 1
        if n + 1 == K:
            ledger.doomed[doomed] = r
            return doomed + 1
    return doomed


@uncounted
def measure(store: Store, recipe: Recipe, ledger: Ledger, r: int) -> None:
    """The scores of an instance: its own row and the newer ones."""
    for p in range(len(recipe.lows)):
        ledger.lows[p], ledger.highs[p] = recipe.lows[p], recipe.highs[p]
    i = r
    while i >= 0:
        p = store.rows[i]["part"]
        ledger.lows[p] = ledger.highs[p] = store.rows[i]["value"]
        i = store.rows[i]["newer"]
    ledger.counters[r]["current"] = combine(recipe, ledger.lows, 0)
    ledger.counters[r]["best"] = combine(recipe, ledger.highs, 0)


@uncounted
def update(store: Store, recipe: Recipe, ledger: Ledger, g: int, r: int, new: bool, K: int, doomed: int) -> Any:
    """An instance that is new (Algorithm 1), or whose object has a new row (Algorithm 2)."""
    rows, counters, start = store.rows, ledger.counters, store.packs[g]["start"]
    o, stamp = rows[r]["object"], rows[r]["stamp"]
    risen, fallen = -np.inf, np.inf
    if not new:
        risen, fallen = counters[r]["current"], counters[r]["best"]
        strike(ledger, start, ledger.sizes[g], r)
        ledger.sizes[g] -= 1
    measure(store, recipe, ledger, r)
    if new:
        counters[r]["dominators"] = 0
    size, current, best = ledger.sizes[g], counters[r]["current"], counters[r]["best"]
    for place in range(seek(ledger, start, size, True, risen, False), start + size):
        q = ledger.bests[place]
        if not counters[q]["best"] < current:
            break
        if rows[q]["stamp"] <= stamp and rows[q]["object"] != o:
            doomed = count_in(ledger, q, o, K, doomed)
    for place in range(seek(ledger, start, size, False, best, True), start + size):
        q = ledger.currents[place]
        if counters[q]["current"] > fallen:
            break
        if rows[q]["stamp"] >= stamp and rows[q]["object"] != o:
            doomed = count_in(ledger, r, rows[q]["object"], K, doomed)
    enlist(ledger, start, size, r)
    ledger.sizes[g] += 1
    return doomed


@uncounted
def discard(store: Store, recipe: Recipe, ledger: Ledger, g: int, doomed: int, alive: Records, serial: int) -> None:
    """The doomed leave the lists, their object, and the order; of those shown the newest row stays."""
    rows, things, order = store.rows, store.things, store.order
    for j in range(doomed):
        r = ledger.doomed[j]
        o = rows[r]["object"]
        if ledger.counters[r]["listed"]:
            strike(ledger, store.packs[g]["start"], ledger.sizes[g], r)
            ledger.sizes[g] -= 1
        if things[o]["newest"] == r and (store.sights[o]["shown"] | store.sights[o]["inside"]):
            continue
        listed = above_floor(store, g, o, o)
        if listed:
            pull(store, g, 0, o)
        unlink(rows, things, r)
        if things[o]["rows"] == 0:
            forget_thing(store, o)
        else:
            assess(store, recipe, o, 0, NOWHERE, ONCE)
            if listed and above_floor(store, g, o, o):
                put(store, g, 0, o)
    if doomed:
        head, end = store.packs[g]["head"], store.packs[g]["head"] + store.packs[g]["size"]
        to = end
        for place in range(end - 1, head - 1, -1):
            r = order[place]
            if rows[r]["object"] < 0:
                release(rows, store.facts, alive, serial, r)
            else:
                to -= 1
                order[to] = r
        store.packs[g]["head"] = to
        store.packs[g]["size"] = end - to
        store.facts[LIVE] -= to - head
    store.fronts[g]["low"] = NEVER


@uncounted
def lose_instance(store: Store, recipe: Recipe, ledger: Ledger, g: int, own: int, alive: Records, serial: int) -> None:
    """The oldest row expires."""
    r = store.order[store.packs[g]["head"]]
    if ledger.counters[r]["listed"]:
        strike(ledger, store.packs[g]["start"], ledger.sizes[g], r)
        ledger.sizes[g] -= 1
    lose_row(store, recipe, 1, g, 0, ONCE, own, alive, serial)


@uncounted_kernel
def take_counted(
    store: Store,
    recipe: Recipe,
    ledger: Ledger,
    views: Records,
    asked: Records,
    arrivals: Columns,
    visits: Records,
    alive: Records,
    serial: int,
    joint: bool,
    net: bool,
    more: bool,
    out: Records,
    step: Records,
) -> Any:
    """As `take_pieces`, with counters; all queries have one window."""
    facts, rows, packs, length = store.facts, store.rows, store.packs, views[0]["length"]
    margin, K = 0, views[0]["k"]
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
            next_view(store, views, g)
            while not joint and packs[g]["due"] <= now:
                reason = short_of_room(store, views, g, out, margin)
                if reason != DONE:
                    return reason
                step[0]["instant"] = instant = packs[g]["now"] = packs[g]["due"]
                step[0]["row"] = -1
                while packs[g]["size"] and rows[store.order[packs[g]["head"]]]["stamp"] + length == instant:
                    lose_instance(store, recipe, ledger, g, -1, alive, serial)
                if facts[TOUCHED]:
                    settle(store, views, asked, g, net, out, step)
                next_view(store, views, g)
            if a == end:
                break
            reason = short_of_room(store, views, g, out, margin)
            if reason != DONE:
                return reason
            place = place_of(store.table, store.things, arrivals.names[a], g)
            o = store.table[place]
            if o < 0:
                o = make_thing(store, place, arrivals.names[a], g, recipe.lows)
            r = facts[FREE_ROW]
            facts[FREE_ROW] = rows[r]["older"]
            rows[r]["value"] = arrivals.values[a]
            rows[r]["stamp"] = arrivals.stamps[a]
            rows[r]["serial"] = serial + arrivals.rows[a]
            rows[r]["part"] = arrivals.parts[a]
            alive[arrivals.rows[a]] = True
            step[0]["instant"] = packs[g]["now"] = now
            step[0]["row"] = arrivals.rows[a]
            arrive(store, recipe, views, g, o, r, now, ONCE, joint)
            while joint and rows[store.order[packs[g]["head"]]]["stamp"] <= now - length:
                lose_instance(store, recipe, ledger, g, o, alive, serial)
            if facts[TOUCHED]:
                settle(store, views, asked, g, net, out, step)
            doomed = update(store, recipe, ledger, g, r, True, K, 0)
            i = rows[r]["older"]
            while i >= 0:
                if ledger.counters[i]["listed"]:
                    doomed = update(store, recipe, ledger, g, i, False, K, doomed)
                else:  # it stayed only as the newest row of an object that was shown
                    ledger.doomed[doomed] = i
                    doomed += 1
                i = rows[i]["older"]
            discard(store, recipe, ledger, g, doomed, alive, serial)
            a += 1
        packs[g]["open"] = net and more
        facts[VISIT] += 1
        facts[ARRIVAL] = 0
    return DONE


@uncounted_kernel
def update_all(store: Store, recipe: Recipe, ledger: Ledger, K: int, alive: Records, serial: int) -> None:
    """Counters and sorted lists of all groups, from the rows; what is dominated by now goes."""
    for g in range(len(store.packs)):
        head, doomed = store.packs[g]["head"], 0
        for place in range(head, head + store.packs[g]["size"]):
            doomed = update(store, recipe, ledger, g, store.order[place], True, K, doomed)
        discard(store, recipe, ledger, g, doomed, alive, serial)
