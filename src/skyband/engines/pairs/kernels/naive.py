"""NAIVE: the K best pairs of each object with older ones, all of them sorted (shen2012, section VI-B).

The kept pairs contain, for each window length of a query and each object in it, the K best pairs of that object with
older objects in the window; more are harmless. When an object expires, every object that had a pair with it computes
its K best again among all objects older than it: about K ln(n/K) objects an arrival, each O(n) scores and O(K n) moves.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.pairs.kernels.band import draft, flush, is_same, merge, ranks_above, sort_slots
from skyband.engines.pairs.kernels.programs import CHUNK, prepare
from skyband.engines.pairs.kernels.records import (
    ADDED,
    BAND_FULL,
    BASE,
    DONE,
    END,
    FREE,
    HEAD,
    NEED,
    PENDING,
    SCORED,
    SCRATCH_FULL,
    SIZE,
    TYPED,
    Arrival,
    Band,
    Ints,
    Rules,
    Scratch,
    State,
    Views,
    Window,
)
from skyband.engines.pairs.kernels.search import keep_joined, scan
from skyband.kernels.compile import kernel, uncounted


@uncounted
def keep_best(facts: Ints, views: Views, scratch: Scratch, K: int, found: int, at: int) -> int:
    """Of an object's pairs, the newest older member first, keep the K best of each view's window; return their number.

    A longer window has no other of the K best within a shorter one, so each view adds older members than the last. Of
    pairs that tie with the last of the K best there may be K more. Pairs with objects from index `at` on, which are
    newer, all stay: only a late object has such.
    """
    others, keys, best, kept, size = scratch.other, scratch.key, scratch.best, 0, 0
    while kept < found and others[kept] >= at:
        kept += 1
    end = kept
    for view in range(len(views.k)):
        above = kept  # pairs that are among the K best with newer members
        while end < found and facts[BASE] + others[end] >= views.head[view]:
            key, place = keys[end], min(size, K - 1)
            if size < K or key > best[place]:
                while place > 0 and best[place - 1] < key:
                    best[place] = best[place - 1]
                    place -= 1
                best[place] = key
                size = min(size + 1, K)
                others[above], keys[above] = others[end], key
                above += 1
            end += 1
        bound = best[K - 1] if size == K else -np.inf
        for i in range(kept, above):
            if keys[i] >= bound:
                others[kept], keys[kept] = others[i], keys[i]
                kept += 1
    return kept


@uncounted
def replace_expired(state: State, rules: Rules, scratch: Scratch, now: int) -> int:
    """Let objects leave the windows, one after another, and replace the pairs that others had with them.

    Returns DONE or what is full. Pairs that have expired stay until the next prune.
    """
    facts, window, views = state.facts, state.window, state.views
    for view in range(len(views.k)):
        low = now - views.length[view]
        while views.head[view] < facts[BASE] + facts[END] and window.stamps[views.head[view] - facts[BASE]] <= low:
            if view and views.length[view] == views.length[view - 1]:
                views.head[view] = views.head[view - 1]
                break
            why = _replace_pairs(state, rules, scratch, views.head[view] - facts[BASE])
            if why != DONE:
                return why
            views.head[view] += 1
    facts[HEAD] = views.head[-1] - facts[BASE]
    return DONE


@uncounted
def _replace_pairs(state: State, rules: Rules, scratch: Scratch, gone: int) -> int:
    """Renew the pairs of each object that has one with the object at index `gone`.

    What is added ranks below the pair that is lost: it lies ahead of the loop.
    """
    facts, window, band = state.facts, state.window, state.band
    if facts[END] - facts[HEAD] + facts[PENDING] + 1 > len(scratch.other):
        return SCRATCH_FULL
    flush(facts, band, scratch)
    rank = 0
    while rank < facts[SIZE]:
        if band.old[rank] == window.stamps[gone]:
            pair = band.pairs[band.slot[rank]]
            if pair["older"] == window.serials[gone]:
                if not _has_capacity(facts, band, state.views, rules.K):
                    return BAND_FULL
                _renew(state, rules, scratch, gone + 1, _index(facts, window, pair["new"], pair["newer"]))
        rank += 1
    return DONE


@uncounted
def _has_capacity(facts: Ints, band: Band, views: Views, K: int) -> bool:
    """The band has capacity for all pairs that an object may keep."""
    facts[NEED] = facts[SIZE] + min(2 * K * len(views.k), facts[END] - facts[HEAD])
    return bool(facts[NEED] <= len(band.key))


@uncounted
def _renew(state: State, rules: Rules, scratch: Scratch, begin: int, owner: int) -> None:
    """Add those of an object's K best pairs with older ones from index `begin` on that are not kept yet."""
    facts, window, band = state.facts, state.window, state.band
    values, none, stamp, serial = window.data[:, owner], rules.on.valid[0, :0], window.stamps[owner], 0
    if rules.scoring.form == TYPED:
        prepare(rules.scoring.program, values, min(CHUNK, owner - begin))
    found = scan(window, scratch, rules.scoring, values, begin, owner, -np.inf, 0)
    facts[SCORED] += owner - begin
    arrival = Arrival(values, scratch.buffer[:0], 0, False, none, owner, stamp, serial, stamp)
    found = keep_joined(facts, window, state.views, rules.on, scratch, arrival, found)
    found = keep_best(facts, state.views, scratch, rules.K, found, owner)
    draft(facts, window, band, scratch, found, owner, window.stamps[owner], window.serials[owner])
    fresh = 0
    for i in range(found):
        slot = scratch.slot[i]
        if _is_kept(facts, band, slot):
            band.free[facts[FREE]] = slot
            facts[FREE] += 1
        else:
            scratch.slot[fresh] = slot
            fresh += 1
    sort_slots(band.pairs, scratch, fresh)
    merge(facts, band, scratch.slot, fresh)
    facts[ADDED] += fresh


@uncounted
def _is_kept(facts: Ints, band: Band, slot: int) -> bool:
    """The band has this pair, maybe in another slot."""
    low, high, pairs, key = 0, facts[SIZE], band.pairs, band.pairs[slot]["key"]
    while low < high:
        middle = (low + high) >> 1
        if band.key[middle] > key or (band.key[middle] == key and ranks_above(pairs, band.slot[middle], pairs, slot)):
            low = middle + 1
        else:
            high = middle
    return low < facts[SIZE] and is_same(pairs, band.slot[low], pairs, slot)


@uncounted
def _index(facts: Ints, window: Window, stamp: int, serial: int) -> int:
    """The index of an object in the window."""
    low, high = facts[HEAD], facts[END]
    while low < high:
        middle = (low + high) >> 1
        if window.stamps[middle] < stamp or (window.stamps[middle] == stamp and window.serials[middle] < serial):
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def complete_pairs(state: State, rules: Rules, scratch: Scratch, begin: int) -> int:
    """Add the K best pairs of all objects from index `begin` on; return how far it came before the band was full."""
    facts, first = state.facts, state.views.head[-1] - state.facts[BASE]
    for owner in range(max(begin, first), facts[END]):
        if not _has_capacity(facts, state.band, state.views, rules.K):
            return owner
        _renew(state, rules, scratch, first, owner)
    return int(facts[END])
