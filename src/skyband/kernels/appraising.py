"""What an instance may still become, by what is known of the stream: for engines that drop more than is safe.

Always from scratch, by a sweep from the newest row to the oldest: an estimate may rise again, so a counter of those
that dominate would not stay right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.combine import Recipe, combine
from skyband.kernels.compile import uncounted, uncounted_kernel
from skyband.kernels.leaders import above_floor, pull, put
from skyband.kernels.pieces import (
    LIVE,
    MOST,
    NOWHERE,
    ONCE,
    TOTAL,
    TOUCHED,
    Floats,
    Records,
    Store,
    assess,
    forget_thing,
    release,
    unlink,
)
from skyband.kernels.records import NEVER
from skyband.kernels.sweeping import raise_top


class Sheet(NamedTuple):
    """What is found out of each row of a group, in its order, and what it is found with."""

    current: Floats
    best: Floats  # expected
    bound: Floats  # the k-th best current score of distinct newer objects
    share: Floats  # of the k best, as many as the row's share of the window has newer rows for: the worst of them
    parts: Records  # how many it has
    wanted: Floats  # what the engine thinks of it; inf: it must stay
    values: Floats  # by object and part
    counts: Records
    masks: Records  # by object: the parts of all its rows
    held: Floats
    top: Floats


@uncounted
def hoped(recipe: Recipe, sheet: Sheet, o: int, p: int, odds: Records, repeats: Floats, repeat: int) -> float:
    """What part p of an object may count (section 4: the chance of its coming; section 5: how often it comes)."""
    d = len(recipe.lows)
    low, high, value, count = recipe.lows[p], recipe.highs[p], sheet.values[o * d + p], sheet.counts[o * d + p]
    if count == 0:
        mask = sheet.masks[o]
        if (mask >> p) & 1 and repeat == ONCE:  # it has come before this instance, and will not come again
            return low
        chance = 0.0
        if len(odds) == d:  # by pairs
            for q in range(d):
                if (mask >> q) & 1:
                    chance = max(chance, odds[q, p])
        else:
            chance = odds[mask, p]
        if repeat == TOTAL:
            high = max(high, repeats[p] * high)
        return low + chance * (high - low)
    if repeat == ONCE:
        return value
    more = max(0.0, repeats[p] - count)
    if repeat == TOTAL:
        return value + more * max(0.0, high)
    return max(value, low + min(1.0, more) * (high - low))


@uncounted_kernel
def appraise(
    store: Store,
    recipe: Recipe,
    sheet: Sheet,
    g: int,
    length: int,
    odds: Records,
    repeats: Floats,
    repeat: int,
    scratch: Floats,
) -> None:
    """All of a group's rows; the dead of its order have been squeezed out."""
    rows, d, K = store.rows, len(recipe.lows), len(sheet.top)
    head, size, now = store.packs[g]["head"], store.packs[g]["size"], store.packs[g]["now"]
    for i in range(size):
        o = rows[store.order[head + i]]["object"]
        sheet.masks[o] = 0
        sheet.held[o] = np.nan
    for i in range(size):
        r = store.order[head + i]
        sheet.masks[rows[r]["object"]] |= np.int64(1) << rows[r]["part"]
    full, bound = 0, -np.inf
    for i in range(size - 1, -1, -1):
        r = store.order[head + i]
        o, p, value = rows[r]["object"], rows[r]["part"], rows[r]["value"]
        if sheet.held[o] != sheet.held[o]:
            sheet.held[o] = -np.inf
            for j in range(d):
                sheet.values[o * d + j] = recipe.lows[j]
                sheet.counts[o * d + j] = 0
        at = o * d + p
        if sheet.counts[at] == 0:
            sheet.values[at] = value
        elif repeat == MOST:
            sheet.values[at] = max(sheet.values[at], value)
        elif repeat == TOTAL:
            sheet.values[at] += value
        sheet.counts[at] += 1
        seen = 0
        for j in range(d):
            scratch[j] = hoped(recipe, sheet, o, j, odds, repeats, repeat)
            seen += sheet.counts[o * d + j] > 0
        current = combine(recipe, sheet.values, o * d)
        sheet.current[i], sheet.best[i], sheet.bound[i] = current, combine(recipe, scratch, 0), bound
        sheet.parts[i] = seen
        share = (now - rows[r]["stamp"]) / length * K
        place = full - 1 - np.int64(share)
        sheet.share[i] = sheet.top[place] if place >= 0 else -np.inf
        sheet.wanted[i] = 0.0
        if current > bound:
            full = raise_top(sheet.top, full, sheet.held[o], current)
            sheet.held[o] = current
            bound = sheet.top[0] if full == K else bound
    front = store.fronts[g]
    for place in range(front["start"], front["start"] + min(K, front["size"])):  # the answer stays
        sheet.held[store.lists[place]] = np.inf
    for i in range(size):
        o = rows[store.order[head + i]]["object"]
        if sheet.held[o] == np.inf or store.sights[o]["inside"]:
            sheet.wanted[i] = np.inf


@uncounted_kernel
def weigh(store: Store, sheet: Sheet, g: int, length: int, gains: Records, many: Records, ages: Floats, scale: float) -> None:
    """How likely each row is to become an answer: by what objects like it have gained. gains[parts, age, ...]"""
    rows, head, now = store.rows, store.packs[g]["head"], store.packs[g]["now"]
    for i in range(store.packs[g]["size"]):
        if sheet.wanted[i] == np.inf:
            continue
        r = store.order[head + i]
        age = (now - rows[r]["stamp"]) / length
        b = 0
        while b + 1 < len(ages) and ages[b + 1] <= age:
            b += 1
        lacks = sheet.share[i] - sheet.current[i]
        m = sheet.parts[i]
        n = min(many[m, b], gains.shape[2])
        if n == 0:  # nothing is known yet: the more hope, the better
            x = (sheet.best[i] - sheet.share[i]) / scale
            sheet.wanted[i] = 0.5 + 0.5 * x / (1.0 + abs(x)) if lacks > -np.inf else 1.0
            continue
        total = 0.0
        for j in range(n):
            x = (gains[m, b, j] - lacks) / scale
            total += 0.5 + 0.5 * x / (1.0 + abs(x)) if lacks > -np.inf else 1.0
        sheet.wanted[i] = total / n * (1.0 - 0.5 * age)


@uncounted_kernel
def follow(store: Store, sheet: Sheet, g: int) -> None:
    """A row is wanted as much as the older ones of its object are, which need it."""
    rows, head = store.rows, store.packs[g]["head"]
    size = store.packs[g]["size"]
    for i in range(size):
        sheet.held[rows[store.order[head + i]]["object"]] = -np.inf
    for i in range(size):
        o = rows[store.order[head + i]]["object"]
        sheet.held[o] = max(sheet.held[o], sheet.wanted[i])
        sheet.wanted[i] = sheet.held[o]


@uncounted_kernel
def drop_rows(
    store: Store, recipe: Recipe, g: int, keep: Records, repeat: int, alive: Records, serial: int
) -> None:
    """Rows that are not to be kept go. They are in no answer, and their objects lose none that is kept."""
    rows, things, order, facts = store.rows, store.things, store.order, store.facts
    head, size = store.packs[g]["head"], store.packs[g]["size"]
    end = to = head + size
    for i in range(size):
        o = rows[order[head + i]]["object"]
        if not keep[i] and not things[o]["mark"]:
            if above_floor(store, g, o, o):
                pull(store, g, 0, o)
            things[o]["mark"] = 1
            store.touched[facts[TOUCHED]] = o
            facts[TOUCHED] += 1
    for place in range(end - 1, head - 1, -1):
        r = order[place]
        if keep[place - head]:
            to -= 1
            order[to] = r
        else:
            unlink(rows, things, r)
            release(rows, facts, alive, serial, r)
    store.packs[g]["head"] = to
    store.packs[g]["size"] = end - to
    facts[LIVE] -= to - head
    for t in range(facts[TOUCHED]):
        o = store.touched[t]
        things[o]["mark"] = 0
        if things[o]["rows"] == 0:
            forget_thing(store, o)
        else:
            assess(store, recipe, o, 0, NOWHERE, repeat)
            if above_floor(store, g, o, o):
                put(store, g, 0, o)
    facts[TOUCHED] = 0
    store.fronts[g]["low"] = NEVER
