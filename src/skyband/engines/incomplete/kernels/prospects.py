"""What an instance may still become, by what is known of the stream: for engines that drop more than is safe.

Always from scratch, by a sweep from the newest row to the oldest: an estimate may rise again, so a counter of those
that dominate would not stay right.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.combine import Recipe, combine
from skyband.engines.incomplete.kernels.leaders import above_floor, compare, pull, put, remember
from skyband.engines.incomplete.kernels.rows import (
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
    link,
    release,
    unlink,
)
from skyband.engines.incomplete.kernels.sweep import raise_top
from skyband.kernels.compile import uncounted, uncounted_kernel
from skyband.kernels.records import NEVER

HOPELESS = 1e-30  # a chance to be an answer


class Sheet(NamedTuple):
    """What is found out of each row of a group, in its order, and what it is found with."""

    current: Floats
    best: Floats  # expected
    bound: Floats  # the k-th best current score of distinct newer objects
    parts: Records  # how many its object has, with those of older rows
    wanted: Floats  # what the engine thinks of it; inf: it must stay, NaN: another row leads its instance
    values: Floats  # by object and part
    counts: Records
    masks: Records  # by object: the parts of all its rows
    held: Floats
    top: Floats


@uncounted
def hoped(recipe: Recipe, sheet: Sheet, o: int, p: int, odds: Records, repeats: Floats, repeat: int) -> Any:
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


@uncounted
def leads(store: Store, r: int) -> Any:
    """Is row r the first of its instance? Rows of one object and stamp are one: they expire together."""
    older = store.rows[r]["older"]
    return older < 0 or store.rows[older]["stamp"] != store.rows[r]["stamp"]


@uncounted
def include(sheet: Sheet, at: int, value: float, repeat: int) -> None:
    """One row older: what a part counts then."""
    if sheet.counts[at] == 0:
        sheet.values[at] = value
    elif repeat == MOST:
        sheet.values[at] = max(sheet.values[at], value)
    elif repeat == TOTAL:
        sheet.values[at] += value
    sheet.counts[at] += 1


@uncounted_kernel
def appraise(
    store: Store,
    recipe: Recipe,
    sheet: Sheet,
    g: int,
    K: int,
    odds: Records,
    repeats: Floats,
    repeat: int,
    scratch: Floats,
) -> None:
    """All of a group's rows; the dead of its order have been squeezed out."""
    rows, d = store.rows, len(recipe.lows)
    top = sheet.top[:K]
    head, size = store.packs[g]["head"], store.packs[g]["size"]
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
        include(sheet, o * d + p, value, repeat)
        seen = 0
        for j in range(d):
            scratch[j] = hoped(recipe, sheet, o, j, odds, repeats, repeat)
            seen += (sheet.masks[o] >> j) & 1
        current = combine(recipe, sheet.values, o * d)
        sheet.current[i], sheet.best[i], sheet.bound[i] = current, combine(recipe, scratch, 0), bound
        sheet.parts[i] = seen
        sheet.wanted[i] = 0.0
        if current > bound:
            full = raise_top(top, full, sheet.held[o], current)
            sheet.held[o] = current
            bound = top[0] if full == K else bound
    front = store.fronts[g]
    for place in range(front["start"], front["start"] + min(K, front["size"])):  # the answer stays
        sheet.held[store.lists[place]] = np.inf
    for i in range(size):
        r = store.order[head + i]
        o = rows[r]["object"]
        if not leads(store, r):
            sheet.wanted[i] = np.nan
        elif store.things[o]["oldest"] == r and (sheet.held[o] == np.inf or store.sights[o]["inside"]):
            sheet.wanted[i] = np.inf


@uncounted
def above_score(scores: Floats, size: int, score: float) -> Any:
    """How many of these rising scores are above this one."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if scores[middle] > score:
            high = middle
        else:
            low = middle + 1
    return size - low


@uncounted
def likely(score: float, left: float, K: int, top: Floats, full: int, every: Floats, lately: Floats) -> Any:
    """How likely an instance of this score is to be an answer at the end of its life.

    When it expires, those above it are the newer ones that are so now, and the share of a window that is still to
    come.
    """
    newer, above = above_score(top, full, score), above_score(every, len(every), score)
    above = min(above, 4 * (above_score(lately, len(lately), score) + 1))
    expected = 1.3 * left * above + 1.0  # some will rise above it
    return 0.5 * math.erfc((newer + expected - K + 0.5) / np.sqrt(2.0 * expected))


@uncounted
def risk(risks: Records, m: int, silence: float) -> Any:
    """How many rows more come, on the average, until an object of m parts has been silent for so long."""
    bins = risks.shape[1] - 1
    at = min(max(silence, 0.0), 1.0) * bins
    b = min(int(at), bins - 1)
    return risks[m, b] + (at - b) * (risks[m, b + 1] - risks[m, b])


@uncounted
def foresee(risks: Records, m: int, silent: float, left: float, odds: Floats) -> None:
    """How likely an object of m parts is to get so many rows more: 0, 1, 2 ..., while an instance lives."""
    reached, more = 1.0, 1.0 - np.exp(risk(risks, m, silent) - risk(risks, m, silent + left))
    for n in range(len(odds) - 1):
        odds[n] = reached * (1.0 - more)
        reached *= more
        more = 1.0 - np.exp(-risk(risks, min(m + n + 1, len(risks) - 1), left / (n + 2)))  # as if they came evenly
    odds[len(odds) - 1] = reached


@uncounted_kernel
def weigh(
    store: Store,
    recipe: Recipe,
    sheet: Sheet,
    g: int,
    K: int,
    length: int,
    risks: Records,  # by parts: of a row more, added up over a silence
    seen: Records,  # by object: when its last row came
    drawn: Records,  # by rows more, part and future: values that have come lately
    every: Floats,  # the scores of all objects, rising
    lately: Floats,  # of those that began in the last quarter of a window: values may have another scale by now
    repeat: int,
    scratch: Floats,
    odds: Floats,
) -> None:
    """How likely each instance is to be an answer at the end of its life."""
    rows, head, now, d = store.rows, store.packs[g]["head"], store.packs[g]["now"], len(recipe.lows)
    size, full, top = store.packs[g]["size"], 0, sheet.top
    for i in range(size):
        sheet.held[rows[store.order[head + i]]["object"]] = np.nan
    for i in range(size - 1, -1, -1):
        r = store.order[head + i]
        o = rows[r]["object"]
        if sheet.held[o] != sheet.held[o]:
            sheet.held[o] = -np.inf
            for j in range(d):
                sheet.values[o * d + j] = recipe.lows[j]
                sheet.counts[o * d + j] = 0
        include(sheet, o * d + rows[r]["part"], rows[r]["value"], repeat)
        if sheet.wanted[i] == 0.0:
            left = 1.0 - (now - rows[r]["stamp"]) / length
            silent = (now - seen[o]) / length
            low, high = 0, len(every)  # below which score it is hopeless
            while low < high:
                middle = (low + high) // 2
                if likely(every[middle], left, K, top, full, every, lately) > HOPELESS:
                    high = middle
                else:
                    low = middle + 1
            floor = every[low - 1] if low else -np.inf
            foresee(risks, sheet.parts[i], silent, left, odds)
            chance = odds[0] * likely(sheet.current[i], left, K, top, full, every, lately)
            most = min(len(drawn), d - sheet.parts[i]) if repeat == ONCE else len(drawn)
            for j in range(drawn.shape[2]):
                for p in range(d):
                    scratch[p] = sheet.values[o * d + p]
                p = j % d
                for t in range(most):
                    while repeat == ONCE and (sheet.masks[o] >> p) & 1:
                        p = p + 1 if p + 1 < d else 0
                    value = drawn[t, p, j]
                    if repeat == TOTAL and sheet.counts[o * d + p] > 0:
                        value += scratch[p]
                    scratch[p] = max(scratch[p], value) if repeat == MOST else value
                    score = combine(recipe, scratch, 0)
                    if score > floor:
                        chance += odds[t + 1] / drawn.shape[2] * likely(score, left, K, top, full, every, lately)
                    p = p + 1 if p + 1 < d else 0
            sheet.wanted[i] = chance
        current = sheet.current[i]
        if full < len(top) or current > top[0]:
            full = raise_top(top, full, sheet.held[o], current)
            sheet.held[o] = current


@uncounted
def add_up(store: Store, r: int) -> Any:
    """`sum`: a row that has become part of an older instance is added to its row of the same part, if it has one."""
    rows = store.rows
    other = rows[r]["older"]
    while other >= 0 and rows[other]["stamp"] == rows[r]["stamp"]:
        if rows[other]["part"] == rows[r]["part"]:
            rows[other]["value"] += rows[r]["value"]
            return rows[r]["newer"] >= 0
        other = rows[other]["older"]
    return False


@uncounted_kernel
def fold(store: Store, g: int, stays: Records, repeat: int, alive: Records, serial: int) -> None:
    """Instances that are not to stay go; what they hold stays for as long as an older instance needs it.

    stays: by place of the row that leads an instance. The order is to be sorted anew, and `relink` to follow.
    """
    rows, things, order, facts = store.rows, store.things, store.order, store.facts
    head, size = store.packs[g]["head"], store.packs[g]["size"]
    for i in range(head, head + size):
        o = rows[order[i]]["object"]
        if not things[o]["mark"] and leads(store, order[i]) and not stays[order[i]]:
            if above_floor(store, g, o, o):
                pull(store, g, 0, o)
            things[o]["mark"] = 1
            store.touched[facts[TOUCHED]] = o
            facts[TOUCHED] += 1
    for t in range(facts[TOUCHED]):
        r, stay, stamp, last = things[store.touched[t]]["oldest"], False, NOWHERE, NOWHERE
        while r >= 0:
            newer = rows[r]["newer"]
            if rows[r]["stamp"] != last:
                last, stay = rows[r]["stamp"], stays[r]
                stamp = last if stay else stamp
            if not stay:
                if stamp > NOWHERE:
                    rows[r]["stamp"] = stamp
                if stamp == NOWHERE or (repeat == TOTAL and add_up(store, r)):
                    unlink(rows, things, r)
            r = newer
    end = to = head + size
    for place in range(end - 1, head - 1, -1):
        r = order[place]
        if rows[r]["object"] < 0:
            release(rows, facts, alive, serial, r)
        else:
            to -= 1
            order[to] = r
    store.packs[g]["head"] = to
    store.packs[g]["size"] = end - to
    facts[LIVE] -= to - head


@uncounted_kernel
def relink(
    store: Store, recipe: Recipe, asked: Records, g: int, repeat: int, net: bool, out: Records, step: Records
) -> None:
    """After `fold`: chains, scores and fronts of those who have lost something.

    Of the answer nobody loses a part, but sums are added up in another order: equal ones may change places.
    """
    rows, things, facts = store.rows, store.things, store.facts
    for t in range(facts[TOUCHED]):
        o = store.touched[t]
        things[o]["oldest"] = things[o]["newest"] = -1
        things[o]["rows"] = 0
    head = store.packs[g]["head"]
    for place in range(head, head + store.packs[g]["size"]):
        r = store.order[place]
        if things[rows[r]["object"]]["mark"]:
            link(rows, things, rows[r]["object"], r)
    for t in range(facts[TOUCHED]):
        o = store.touched[t]
        things[o]["mark"] = 0
        if things[o]["rows"] == 0:
            forget_thing(store, o)
        else:
            assess(store, recipe, o, 0, NOWHERE, repeat)
            if above_floor(store, g, o, o):
                put(store, g, 0, o)
            if not net and store.sights[o]["inside"]:
                remember(store, o, o)
    facts[TOUCHED] = 0
    if not net and store.fronts[g]["low"] < NEVER:
        compare(store, asked, g, 0, out, step)
    store.packs[g]["dirty"] = 1
    store.fronts[g]["low"] = NEVER
