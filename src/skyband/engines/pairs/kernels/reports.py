"""Reports: how the answers of the queries change from step to step, or over a batch of net changes.

A view's answer is not stored: it is the k best pairs of the band that are valid, and `due` tells which were valid when
it was last reported. So a change costs one walk over the band (section IV-B of shen2012 keeps two sorted lists for each
query instead). For net changes the reported answer is saved when a step first touches it, and compared at the end.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.pairs.kernels.band import flush, is_same, ranks_above, walk
from skyband.engines.pairs.kernels.records import (
    FAN,
    LAST_ROW,
    NEED,
    NEVER,
    REPORTED,
    SAVED,
    SIZE,
    TICK,
    Band,
    Ints,
    Places,
    Records,
    Scratch,
    State,
    Views,
)
from skyband.kernels.compile import kernel, uncounted


@uncounted
def save_reported(facts: Ints, band: Band, views: Views, scratch: Scratch, view: int, saved: Records) -> None:
    """Save the answer of a view as it was last reported; the view is not looked at before the batch ends."""
    size, due = 0, views.due[view]
    if due != NEVER:  # its oldest members expire at `due`
        size = walk(facts, band, 0, 0, views.k[view], due - views.length[view] - 1, scratch.before, 0)
    views.saved_at[view], views.saved_size[view] = facts[SAVED], size
    for i in range(size):
        saved[facts[SAVED]] = band.pairs[scratch.before[i]]
        facts[SAVED] += 1
    views.touched[view] = 1
    views.due[view] = NEVER
    views.kth[view] = np.inf


@uncounted
def has_capacity(facts: Ints, pairs: int, scratch: Scratch, out: Records, net: bool, saved: Records) -> bool:
    """Test whether changes of answers with so many pairs can be written."""
    facts[NEED] = pairs
    return not (
        pairs > len(scratch.before) or pairs > len(out) - facts[REPORTED] or (net and pairs > len(saved) - facts[SAVED])
    )


@uncounted
def report_view(
    facts: Ints, band: Band, views: Views, scratch: Scratch, view: int, now: int, row: int, alone: int, out: Records
) -> None:
    """Report the changes of an answer, in one walk over the band.

    The answer before had none of the pairs made in this step, and as valid those since the oldest member it reported.
    """
    k, length, due, size, tick = views.k[view], views.length[view], views.due[view], facts[SIZE], facts[TICK]
    low, was = now - length, due - length - 1
    held, found, left, entered = k if due == NEVER else 0, 0, 0, 0
    oldest, last, least = NEVER, -np.inf, min(low, was)
    newest, ticks = band.newest, band.tick
    for node in range((size + FAN - 1) // FAN):
        if newest[node] <= least:
            continue
        if held >= k and found >= k:
            break
        begin, end = node * FAN, min(size, (node + 1) * FAN)
        old, slots, keys = band.old[begin:end], band.slot[begin:end], band.key[begin:end]
        for i in range(end - begin):
            if old[i] <= least:
                continue
            slot = slots[i]
            before = held < k and old[i] > was and ticks[slot] != tick
            after = found < k and old[i] > low
            held += before
            if after:
                oldest = min(oldest, old[i])
                found += 1
                if found == k:
                    last = keys[i]
            if before and not after:
                scratch.before[left] = slot
                left += 1
            elif after and not before:
                scratch.after[entered] = slot
                entered += 1
    for i in range(left):
        _report(facts, band.pairs, scratch.before[i], view, -1, 0, now, row, alone, out)
    for i in range(entered):
        _report_entry(facts, band, scratch.after[i], view, now, row, alone, out)
    views.due[view] = oldest + length if found else NEVER
    views.kth[view] = last


@uncounted
def _report_entry(
    facts: Ints, band: Band, slot: int, view: int, instant: int, row: int, alone: int, out: Records
) -> None:
    word, bit = view >> 6, np.uint64(1) << np.uint64(view & 63)
    first = band.bits[slot, word] & bit == 0
    band.bits[slot, word] |= bit
    _report(facts, band.pairs, slot, view, 1, first, instant, row, alone, out)


@uncounted
def _report(
    facts: Ints,
    pairs: Records,
    i: int,
    view: int,
    diff: int,
    first: int,
    instant: int,
    row: int,
    alone: int,
    out: Records,
) -> None:
    change, pair = out[facts[REPORTED]], pairs[i]
    facts[REPORTED] += 1
    change["key"], change["old"], change["older"] = pair["key"], pair["old"], pair["older"]
    change["new"], change["newer"] = pair["new"], pair["newer"]
    change["instant"], change["row"], change["query"] = instant, row, view
    change["diff"], change["first"], change["alone"] = diff, first, alone


@uncounted
def expire(
    facts: Ints, band: Band, views: Views, scratch: Scratch, to: int, net: bool, saved: Records, out: Records
) -> bool:
    """Time windows: report each instant at which an answer loses pairs, a step of its own. False: `out` is full."""
    for view in range(len(views.k)):
        while views.due[view] <= to:
            flush(facts, band, scratch)
            if not has_capacity(facts, 2 * min(views.k[view], facts[SIZE]) + len(views.k), scratch, out, net, saved):
                return False
            if net:
                save_reported(facts, band, views, scratch, view, saved)
                break
            facts[TICK] += 1  # no pair is made in this step
            report_view(facts, band, views, scratch, view, views.due[view], facts[LAST_ROW], 1, out)
    return True


@kernel
def close_batch(state: State, scratch: Scratch, now: int, row: int, out: Records) -> None:
    """End a batch of net changes: report how the answers of the touched views differ from the saved ones."""
    facts, band, views = state.facts, state.band, state.views
    for view in range(len(views.k)):
        if views.touched[view]:
            size = find_answer(facts, band, views, view, now, scratch.after)
            for diff in (-1, 1):
                _report_difference(state, scratch.after, size, view, diff, now, row, out)
            views.touched[view] = 0
    facts[SAVED] = 0


@uncounted
def _report_difference(
    state: State, after: Places, size: int, view: int, diff: int, now: int, row: int, out: Records
) -> None:
    """Compare two answers by rank: pairs of the saved one only leave (-1), pairs of the present one only enter (+1)."""
    facts, band, saved = state.facts, state.band, state.saved
    i, j, pairs = state.views.saved_at[view], 0, band.pairs
    end = i + state.views.saved_size[view]
    while i < end or j < size:
        if i < end and j < size and is_same(saved, i, pairs, after[j]):
            i += 1
            j += 1
        elif j == size or (i < end and ranks_above(saved, i, pairs, after[j])):
            if diff < 0:
                _report(facts, saved, i, view, diff, 0, now, row, 0, out)
            i += 1
        else:
            if diff > 0:
                _report_entry(facts, band, after[j], view, now, row, 0, out)
            j += 1


@uncounted
def find_answer(facts: Ints, band: Band, views: Views, view: int, now: int, out: Places) -> int:
    """Write the slots of an answer as it is now; note its last key and when it loses a pair."""
    k, low, size = views.k[view], now - views.length[view], facts[SIZE]
    found, oldest, last = 0, NEVER, -np.inf
    old, slot, newest = band.old, band.slot, band.newest
    for node in range((size + FAN - 1) // FAN):
        if newest[node] <= low:
            continue
        for i in range(node * FAN, min(size, (node + 1) * FAN)):
            if old[i] > low:
                out[found] = slot[i]
                oldest = min(oldest, old[i])
                found += 1
                if found == k:
                    last = band.key[i]
                    break
        if found == k:
            break
    views.due[view] = oldest + views.length[view] if found else NEVER
    views.kth[view] = last
    return found


@kernel
def find_answers(facts: Ints, band: Band, views: Views, after: Places, now: int) -> None:
    """Note the last key and the next expiry of every view, after the queries have changed."""
    for view in range(len(views.k)):
        find_answer(facts, band, views, view, now, after)
