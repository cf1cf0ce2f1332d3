"""Estimates of what an instance may still become, from what is known of the stream: for engines that drop more than
is safe.

Always from scratch, by a sweep from the newest row to the oldest: an estimate may rise again, so a counter of
dominators would not stay right.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from skyband.engines.incomplete.kernels.batches import (
    MOST,
    NOWHERE,
    ONCE,
    TOTAL,
    TOUCHED,
    Batch,
    Floats,
    Output,
    Queries,
    Records,
)
from skyband.engines.incomplete.kernels.combine import Combination, combine
from skyband.engines.incomplete.kernels.finders import append_to_queue, queues
from skyband.engines.incomplete.kernels.fronts import insert, remove
from skyband.engines.incomplete.kernels.linked_fronts import belongs, compare, remember
from skyband.engines.incomplete.kernels.linked_steps import compact_backwards, touch
from skyband.engines.incomplete.kernels.linked_store import Store, assess, free_object, link, unlink
from skyband.engines.incomplete.kernels.sweep import raise_top
from skyband.kernels.compile import uncounted, uncounted_kernel
from skyband.kernels.records import NEVER

HOPELESS = 1e-30  # a chance to be an answer


class Estimates(NamedTuple):
    """Estimates of each row of a group, in its order; and arrays to work with."""

    current: Floats
    best: Floats  # expected
    bound: Floats  # the k-th best current score of distinct newer objects
    parts: Records  # how many its object has, with those of older rows
    chance: Floats  # to be an answer; inf: it must stay, NaN: another row leads its instance
    values: Floats  # by object and part
    counts: Records
    masks: Records  # by object: the parts of all its rows
    held: Floats  # by object: its score among the best so far; NaN: not seen yet
    top: Floats  # the best scores so far, rising
    work: Floats  # by part


class Outlook(NamedTuple):
    """What BUDGET knows of a group's stream."""

    K: int
    length: int
    hazards: Records  # by parts that an object has: rows more, added up over a silence
    seen: Records  # by object: when its last row came
    draws: Records  # by rows more, part and future: recent values
    scores: Floats  # of all objects, rising
    recent: Floats  # of those that began in the last quarter of a window: values may have another scale by now
    odds: Floats  # to work with: of 0, 1, 2 ... rows more


@uncounted
def expected_value(
    combination: Combination, estimates: Estimates, o: int, p: int, chances: Records, repeats: Floats, repeat: int
) -> Any:
    """The value that part p of an object may have (section 4: if it comes at all; section 5: how often it comes)."""
    d = len(combination.lows)
    low, high = combination.lows[p], combination.highs[p]
    value, count = estimates.values[o * d + p], estimates.counts[o * d + p]
    if count == 0:
        mask = estimates.masks[o]
        if (mask >> p) & 1 and repeat == ONCE:  # it has come before this instance, and will not come again
            return low
        chance = 0.0
        if len(chances) == d:  # by pairs
            for q in range(d):
                if (mask >> q) & 1:
                    chance = max(chance, chances[q, p])
        else:
            chance = chances[mask, p]
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
    """Whether row r is the first of its instance: rows of one object and stamp are one, they expire together."""
    older = store.rows[r]["older"]
    return older < 0 or store.rows[older]["stamp"] != store.rows[r]["stamp"]


@uncounted
def include(combination: Combination, estimates: Estimates, o: int, p: int, value: float, repeat: int) -> None:
    """Add the next older row of object o to the values of its parts."""
    d, values, counts = len(combination.lows), estimates.values, estimates.counts
    if estimates.held[o] != estimates.held[o]:
        estimates.held[o] = -np.inf
        for j in range(d):
            values[o * d + j] = combination.lows[j]
            counts[o * d + j] = 0
    at = o * d + p
    if counts[at] == 0:
        values[at] = value
    elif repeat == MOST:
        values[at] = max(values[at], value)
    elif repeat == TOTAL:
        values[at] += value
    counts[at] += 1


@uncounted_kernel
def estimate(
    store: Store,
    combination: Combination,
    estimates: Estimates,
    g: int,
    K: int,
    chances: Records,  # that a missing part comes
    repeats: Floats,  # how often a part comes
    repeat: int,
) -> None:
    """Estimate all of a group's rows; no dead row is in its order."""
    rows, d, held = store.rows, len(combination.lows), estimates.held
    top = estimates.top[:K]
    head, size = store.groups[g]["head"], store.groups[g]["size"]
    for i in range(size):
        o = rows[store.order[head + i]]["object"]
        estimates.masks[o] = 0
        held[o] = np.nan
    for i in range(size):
        r = store.order[head + i]
        estimates.masks[rows[r]["object"]] |= np.int64(1) << rows[r]["part"]
    full, bound = 0, -np.inf
    for i in range(size - 1, -1, -1):
        r = store.order[head + i]
        o = rows[r]["object"]
        include(combination, estimates, o, rows[r]["part"], rows[r]["value"], repeat)
        seen = 0
        for j in range(d):
            estimates.work[j] = expected_value(combination, estimates, o, j, chances, repeats, repeat)
            seen += (estimates.masks[o] >> j) & 1
        current = combine(combination, estimates.values, o * d)
        estimates.current[i], estimates.best[i] = current, combine(combination, estimates.work, 0)
        estimates.bound[i], estimates.parts[i], estimates.chance[i] = bound, seen, 0.0
        if current > bound:
            full = raise_top(top, full, held[o], current)
            held[o] = current
            bound = top[0] if full == K else bound
    front = store.fronts[g]
    for place in range(front["start"], front["start"] + min(K, front["size"])):  # the answer stays
        held[store.members[place]] = np.inf
    for i in range(size):
        r = store.order[head + i]
        o = rows[r]["object"]
        if not leads(store, r):
            estimates.chance[i] = np.nan
        elif store.objects[o]["oldest"] == r and (held[o] == np.inf or store.scores[o]["inside"]):
            estimates.chance[i] = np.inf


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
def chance_of(score: float, left: float, K: int, top: Floats, full: int, scores: Floats, recent: Floats) -> Any:
    """The chance of an instance of this score to be an answer at the end of its life.

    When it expires, above it are the newer objects that are so now, and a share of those that are still to come.
    """
    newer, above = above_score(top, full, score), above_score(scores, len(scores), score)
    above = min(above, 4 * (above_score(recent, len(recent), score) + 1))
    expected = 1.3 * left * above + 1.0  # some will rise above it
    return 0.5 * math.erfc((newer + expected - K + 0.5) / np.sqrt(2.0 * expected))


@uncounted
def hazard(hazards: Records, m: int, silence: float) -> Any:
    """How many rows more come, on the average, until an object of m parts has been silent for so long."""
    bins = hazards.shape[1] - 1
    at = min(max(silence, 0.0), 1.0) * bins
    b = min(int(at), bins - 1)
    return hazards[m, b] + (at - b) * (hazards[m, b + 1] - hazards[m, b])


@uncounted
def odds_of_rows(hazards: Records, m: int, silent: float, left: float, odds: Floats) -> None:
    """The odds that an object of m parts gets 0, 1, 2 ... rows more while an instance lives."""
    reached, more = 1.0, 1.0 - np.exp(hazard(hazards, m, silent) - hazard(hazards, m, silent + left))
    for n in range(len(odds) - 1):
        odds[n] = reached * (1.0 - more)
        reached *= more
        evenly = left / (n + 2)  # as if they came evenly
        more = 1.0 - np.exp(-hazard(hazards, min(m + n + 1, len(hazards) - 1), evenly))
    odds[len(odds) - 1] = reached


@uncounted_kernel
def weigh(store: Store, combination: Combination, estimates: Estimates, outlook: Outlook, g: int, repeat: int) -> None:
    """Compute the chance of each instance to be an answer at the end of its life."""
    rows, head, now, d = store.rows, store.groups[g]["head"], store.groups[g]["now"], len(combination.lows)
    size, full, top, work = store.groups[g]["size"], 0, estimates.top, estimates.work
    draws, odds, K, scores, recent = outlook.draws, outlook.odds, outlook.K, outlook.scores, outlook.recent
    for i in range(size):
        estimates.held[rows[store.order[head + i]]["object"]] = np.nan
    for i in range(size - 1, -1, -1):
        r = store.order[head + i]
        o = rows[r]["object"]
        include(combination, estimates, o, rows[r]["part"], rows[r]["value"], repeat)
        if estimates.chance[i] == 0.0:
            left = 1.0 - (now - rows[r]["stamp"]) / outlook.length
            silent = (now - outlook.seen[o]) / outlook.length
            low, high = 0, len(scores)  # below which score it is hopeless
            while low < high:
                middle = (low + high) // 2
                if chance_of(scores[middle], left, K, top, full, scores, recent) > HOPELESS:
                    high = middle
                else:
                    low = middle + 1
            floor = scores[low - 1] if low else -np.inf
            odds_of_rows(outlook.hazards, estimates.parts[i], silent, left, odds)
            chance = odds[0] * chance_of(estimates.current[i], left, K, top, full, scores, recent)
            most = min(len(draws), d - estimates.parts[i]) if repeat == ONCE else len(draws)
            for j in range(draws.shape[2]):
                for p in range(d):
                    work[p] = estimates.values[o * d + p]
                p = j % d
                for t in range(most):
                    while repeat == ONCE and (estimates.masks[o] >> p) & 1:
                        p = p + 1 if p + 1 < d else 0
                    value = draws[t, p, j]
                    if repeat == TOTAL and estimates.counts[o * d + p] > 0:
                        value += work[p]
                    work[p] = max(work[p], value) if repeat == MOST else value
                    score = combine(combination, work, 0)
                    if score > floor:
                        chance += odds[t + 1] / draws.shape[2] * chance_of(score, left, K, top, full, scores, recent)
                    p = p + 1 if p + 1 < d else 0
            estimates.chance[i] = chance
        current = estimates.current[i]
        if full < len(top) or current > top[0]:
            full = raise_top(top, full, estimates.held[o], current)
            estimates.held[o] = current


# ------------------------------------------------------------------------------ instances that go


@uncounted
def add_up(store: Store, r: int) -> Any:
    """`sum`: add a row that joins an older instance to the instance's row of the same part; False: it stays."""
    rows = store.rows
    other = rows[r]["older"]
    while other >= 0 and rows[other]["stamp"] == rows[r]["stamp"]:
        if rows[other]["part"] == rows[r]["part"]:
            total = rows[other]["value"] + rows[r]["value"]
            if np.isinf(total):
                return False
            rows[other]["value"] = total
            return rows[r]["newer"] >= 0
        other = rows[other]["older"]
    return False


@uncounted_kernel
def fold(store: Store, queries: Queries, batch: Batch, g: int, stays: Records) -> None:
    """Drop instances; what they hold stays for as long as an older instance of their object needs it.

    stays: by place of the row that leads an instance. Then the order is to be sorted, and `relink` to be called.
    """
    rows, objects, order, facts = store.rows, store.objects, store.order, store.facts
    head = store.groups[g]["head"]
    for i in range(head, head + store.groups[g]["size"]):
        o = rows[order[i]]["object"]
        if not objects[o]["touched"] and leads(store, order[i]) and not stays[order[i]]:
            if belongs(store, g, o, o):
                remove(store, g, 0, o)
            touch(store, o)
    for t in range(facts[TOUCHED]):
        r, stay, stamp, last = objects[store.touched[t]]["oldest"], False, NOWHERE, NOWHERE
        while r >= 0:
            newer = rows[r]["newer"]
            if rows[r]["stamp"] != last:
                last, stay = rows[r]["stamp"], stays[r]
                stamp = last if stay else stamp
            if not stay:
                if stamp > NOWHERE:
                    rows[r]["stamp"] = stamp
                if stamp == NOWHERE or (queries.repeat == TOTAL and add_up(store, r)):
                    unlink(store, queries, r)
            r = newer
    compact_backwards(store, batch, g)


@uncounted_kernel
def relink(store: Store, combination: Combination, queries: Queries, g: int, output: Output) -> None:
    """After `fold`: chains, scores and fronts of the objects that have lost something.

    Objects of the answer lose no part, but sums are added up in another order: equal ones may change places.
    """
    rows, objects, facts, d = store.rows, store.objects, store.facts, len(combination.lows)
    for t in range(facts[TOUCHED]):
        o = store.touched[t]
        objects[o]["oldest"] = objects[o]["newest"] = -1
        objects[o]["rows"] = 0
        for p in range(o * d, o * d + d if queues(queries.repeat) else o * d):
            store.firsts[p] = store.lasts[p] = -1
    head = store.groups[g]["head"]
    for place in range(head, head + store.groups[g]["size"]):
        r = store.order[place]
        if objects[rows[r]["object"]]["touched"]:
            link(store, rows[r]["object"], r)
            if queues(queries.repeat):
                append_to_queue(store, queries, r)
    for t in range(facts[TOUCHED]):
        o = store.touched[t]
        objects[o]["touched"] = 0
        if objects[o]["rows"] == 0:
            free_object(store, o)
        else:
            assess(store, combination, queries, o, 0, NOWHERE)
            if belongs(store, g, o, o):
                insert(store, g, 0, o)
            if not queries.net and store.scores[o]["inside"]:
                remember(store, o, o, queries.repeat)
    facts[TOUCHED] = 0
    if not queries.net and store.fronts[g]["changed"] < NEVER:
        compare(store, queries, g, 0, output)
    store.groups[g]["stale"] = 1
    store.fronts[g]["changed"] = NEVER
