"""Sorted lists and the threshold algorithm: the search of TSL (mouratidis2006, section 3.2).

Each attribute has a list of all objects, sorted. Arrivals are merged into the lists in batches: recent ones are scored
one by one in a search, and objects that are gone are skipped until the next merge. A merge costs O(d·n), a search reads
the d lists until the threshold is below the worst result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.bounds import best_key, set_axis
from skyband.engines.topk.kernels.preferences import best_term, join_terms, key_at
from skyband.engines.topk.kernels.window_grid import insert_best
from skyband.engines.topk.kernels.window_state import (
    FREE,
    RECENT,
    SCORED,
    SORTED,
    Queries,
    Records,
    Scratch,
    Window,
    above,
    in_box,
)
from skyband.kernels.compile import kernel, part, uncounted
from skyband.query.scoring.forms import EUCLIDEAN, EXPRESSION, PRODUCT, QUADRATIC

BETWEEN = 4  # reads of each list between two bounds of an expression


class SortedLists(NamedTuple):
    """The objects by attribute, rising; the recent ones; and marks of those that a search has seen."""

    sorted: Records
    recent: Records
    marks: Records


@kernel
def merge_lists(window: Window, lists: SortedLists) -> None:
    """Merge the recent objects into the lists; remove those that are gone, and free their places."""
    slots, data, counters = window.slots, window.data, window.counters
    recent, alive = counters[RECENT], 0
    for i in range(recent):
        if slots[lists.recent[i]]["serial"] >= 0:
            lists.recent[alive] = lists.recent[i]
            alive += 1
        else:
            free(window, lists.recent[i])
    size = counters[SORTED]
    for j in range(len(lists.sorted)):
        values = np.empty(alive)
        for i in range(alive):
            values[i] = data[lists.recent[i], j]
        order = np.argsort(values)
        kept = 0
        for r in range(size):
            i = lists.sorted[j, r]
            if slots[i]["serial"] >= 0:
                lists.sorted[j, kept] = i
                kept += 1
            elif j == len(lists.sorted) - 1:
                free(window, i)
        to, r = kept + alive - 1, kept - 1
        for a in range(alive - 1, -1, -1):
            while r >= 0 and data[lists.sorted[j, r], j] > values[order[a]]:
                lists.sorted[j, to] = lists.sorted[j, r]
                to -= 1
                r -= 1
            lists.sorted[j, to] = lists.recent[order[a]]
            to -= 1
        counters[SORTED] = kept + alive
    counters[RECENT] = 0


@uncounted
def free(window: Window, i: int) -> None:
    """Free the place of an object."""
    window.slots[i]["next"] = window.counters[FREE]
    window.counters[FREE] = i


@uncounted
def lower_bound(window: Window, lists: SortedLists, j: int, x: float, strictly: bool) -> int:
    """The place of the first object whose attribute j is at least x (strictly: above x)."""
    low, high = 0, window.counters[SORTED]
    while low < high:
        middle = (low + high) // 2
        value = window.data[lists.sorted[j, middle], j]
        if value < x or (strictly and value == x):
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def consider(queries: Queries, window: Window, best: Records, size: int, wanted: int, s: int, i: int) -> int:
    """Insert object i if it is among the best so far; returns how many there are."""
    slots, data = window.slots, window.data
    key = key_at(queries, s, data, i)
    stamp, serial, last = slots[i]["stamp"], slots[i]["serial"], best[max(size - 1, 0)]
    if size == wanted and not above(key, stamp, serial, last["key"], last["stamp"], last["serial"]):
        return size
    if queries.specs[s]["boxed"] and not in_box(queries, s, data, i):
        return size
    return insert_best(best, size, wanted, key, stamp, serial, i)


@uncounted
def search_box(
    queries: Queries, window: Window, scratch: Scratch, lists: SortedLists, s: int, wanted: int, found: int
) -> int:
    """The threshold algorithm for an expression: the threshold is its bound over the box of what is not read yet.

    A list is read from its better end if the score rises or falls with the attribute, else from both in turn.
    """
    data, slots, best, counters, marks = window.data, window.slots, scratch.best, window.counters, lists.marks
    d, ends = len(lists.sorted), scratch.ends
    for j in range(d):
        ends[j, 0] = lower_bound(window, lists, j, queries.lows[s, j], False)
        ends[j, 1] = lower_bound(window, lists, j, queries.highs[s, j], True) - 1
        if ends[j, 0] > ends[j, 1]:
            return found
    marks[len(marks) - 1] += 1
    epoch, turn = marks[len(marks) - 1], 0
    while True:
        for j in range(d):
            if ends[j, 0] > ends[j, 1]:
                return found  # all of the list was seen
            way = queries.points[s, j]
            end = 1 if way > 0 or (way == 0 and turn % 2) else 0
            i = lists.sorted[j, ends[j, end]]
            ends[j, end] += -1 if end else 1
            if slots[i]["serial"] >= 0 and marks[i] != epoch:
                marks[i] = epoch
                found = consider(queries, window, best, found, wanted, s, i)
                counters[SCORED] += 1
        turn += 1
        if found < wanted or turn % BETWEEN:
            continue
        for j in range(d):
            if ends[j, 0] > ends[j, 1]:
                return found
            low, high = lists.sorted[j, ends[j, 0]], lists.sorted[j, ends[j, 1]]
            set_axis(queries, s, j, data[low, j], data[high, j])
        if best[found - 1]["key"] > best_key(queries, s):
            return found


@part
def search_lists(queries: Queries, window: Window, scratch: Scratch, lists: SortedLists, s: int, wanted: int) -> int:
    """Find the best `wanted` objects of the window by the threshold algorithm; returns how many there are.

    A list is read from its ends inward or, for a term with a peak, from the peak outward, better side first.
    """
    form, turned, data, slots = queries.form, queries.turned, window.data, window.slots
    d, best, counters = data.shape[1], scratch.best, window.counters
    found = 0
    for r in range(counters[RECENT]):
        i = lists.recent[r]
        if slots[i]["serial"] >= 0:
            found = consider(queries, window, best, found, wanted, s, i)
            counters[SCORED] += 1
    if form == EXPRESSION:
        return search_box(queries, window, scratch, lists, s, wanted, found)
    left, right, ends = np.empty(d, np.int64), np.empty(d, np.int64), np.empty((2, d), np.int64)
    inward = np.empty(d, np.bool_)
    signed = False
    for j in range(d):
        at = queries.points[s, j]
        ends[0, j] = lower_bound(window, lists, j, queries.lows[s, j], False)
        ends[1, j] = lower_bound(window, lists, j, queries.highs[s, j], True) - 1
        if ends[0, j] > ends[1, j]:
            return found
        signed |= form == PRODUCT and at + data[lists.sorted[j, ends[0, j]], j] < 0
        peak = at
        if form == QUADRATIC:
            inward[j], peak = (at < 0) == turned, 0.0
        else:
            inward[j] = not (EUCLIDEAN <= form < PRODUCT and turned)
        left[j], right[j] = ends[0, j], ends[1, j]
        if not inward[j]:
            right[j] = lower_bound(window, lists, j, peak, False)
            right[j] = min(max(right[j], ends[0, j]), ends[1, j] + 1)
            left[j] = right[j] - 1
    marks = lists.marks
    marks[len(marks) - 1] += 1
    epoch = marks[len(marks) - 1]
    smaller = turned and not signed
    while True:
        limit = 0.0
        for j in range(d):
            a, b = left[j], right[j]
            if inward[j]:
                if a > b:
                    return found  # all of the list was seen
                with_left, with_right = True, True
            else:
                with_left, with_right = a >= ends[0, j], b <= ends[1, j]
                if not with_left and not with_right:
                    return found
            one = other = 0.0
            if with_left:
                x = data[lists.sorted[j, a], j]
                one = best_term(form, turned, queries.points[s, j], queries.weights[s, j], x, x, signed)
            if with_right:
                x = data[lists.sorted[j, b], j]
                other = best_term(form, turned, queries.points[s, j], queries.weights[s, j], x, x, signed)
            take_left = with_left and (not with_right or (one <= other if smaller else one >= other))
            term = one if take_left else other
            i = lists.sorted[j, a if take_left else b]
            if take_left:
                left[j] += 1 if inward[j] else -1
            else:
                right[j] += -1 if inward[j] else 1
            if slots[i]["serial"] >= 0 and marks[i] != epoch:
                marks[i] = epoch
                found = consider(queries, window, best, found, wanted, s, i)
                counters[SCORED] += 1
            limit = term if j == 0 else join_terms(form, limit, term)
        if smaller:
            limit = -limit
        if found == wanted and best[found - 1]["key"] > limit:
            return found
