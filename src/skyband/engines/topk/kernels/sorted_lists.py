"""Sorted lists and the threshold algorithm: the search of TSL (mouratidis2006, section 3.2).

Each attribute has a list of all objects, sorted. Objects are merged into the lists in groups: the recent ones wait and
are looked at one by one, and who has gone is passed over until the next merge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.preferences import best_term, join_terms, key_at
from skyband.engines.topk.kernels.window_grid import (
    FREE,
    RECENT,
    SCORED,
    SORTED,
    Asking,
    Desk,
    Records,
    Window,
    above,
    in_box,
    insert,
)
from skyband.kernels.compile import kernel, part
from skyband.query.scoring.forms import EUCLIDEAN, PRODUCT, QUADRATIC


class Lists(NamedTuple):
    """The objects by attribute, rising; the recent ones; and marks of those that a search has seen."""

    sorted: Records
    recent: Records
    marks: Records


@kernel
def merge_lists(window: Window, lists: Lists) -> None:
    """The recent objects join the lists, those who have gone leave them, and their places are free."""
    slots, data, facts = window.slots, window.data, window.facts
    recent, alive = facts[RECENT], 0
    for i in range(recent):
        if slots[lists.recent[i]]["serial"] >= 0:
            lists.recent[alive] = lists.recent[i]
            alive += 1
        else:
            free(window, lists.recent[i])
    size = facts[SORTED]
    for j in range(data.shape[1]):
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
            elif j == data.shape[1] - 1:
                free(window, i)
        to, r = kept + alive - 1, kept - 1
        for a in range(alive - 1, -1, -1):
            while r >= 0 and data[lists.sorted[j, r], j] > values[order[a]]:
                lists.sorted[j, to] = lists.sorted[j, r]
                to -= 1
                r -= 1
            lists.sorted[j, to] = lists.recent[order[a]]
            to -= 1
        facts[SORTED] = kept + alive
    facts[RECENT] = 0


@part
def free(window: Window, i: int) -> None:
    """A place for a new object."""
    window.slots[i]["next"] = window.facts[FREE]
    window.facts[FREE] = i


@part
def first_above(window: Window, lists: Lists, j: int, x: float, strictly: bool) -> int:
    """The place of the first object whose attribute j is at least x (strictly: above x)."""
    low, high = 0, window.facts[SORTED]
    while low < high:
        middle = (low + high) // 2
        value = window.data[lists.sorted[j, middle], j]
        if value < x or (strictly and value == x):
            low = middle + 1
        else:
            high = middle
    return low


@part
def offer(asking: Asking, slots: Records, data: Records, best: Records, size: int, room: int, s: int, i: int) -> int:
    """Object i for the best so far."""
    key = key_at(asking.form, asking.turned, asking.points, asking.weights, s, data, i)
    stamp, serial, last = slots[i]["stamp"], slots[i]["serial"], best[max(size - 1, 0)]
    if size == room and not above(key, stamp, serial, last["key"], last["stamp"], last["serial"]):
        return size
    if asking.lanes[s]["boxed"] and not in_box(asking.lows, asking.highs, s, data, i):
        return size
    return insert(best, size, room, key, stamp, serial, i)


@part
def search_lists(asking: Asking, window: Window, desk: Desk, lists: Lists, s: int, room: int) -> int:
    """The best `room` objects of the window by the threshold algorithm; returns how many there are.

    A list is read from its ends inward or, for a term with a peak, from the peak outward, better side first.
    """
    form, turned, data, slots = asking.form, asking.turned, window.data, window.slots
    d, best, facts = data.shape[1], desk.best, window.facts
    found = 0
    for r in range(facts[RECENT]):
        i = lists.recent[r]
        if slots[i]["serial"] >= 0:
            found = offer(asking, slots, data, best, found, room, s, i)
            facts[SCORED] += 1
    left, right, ends = np.empty(d, np.int64), np.empty(d, np.int64), np.empty((2, d), np.int64)
    inward = np.empty(d, np.bool_)
    signed = False
    for j in range(d):
        at = asking.points[s, j]
        ends[0, j] = first_above(window, lists, j, asking.lows[s, j], False)
        ends[1, j] = first_above(window, lists, j, asking.highs[s, j], True) - 1
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
            right[j] = first_above(window, lists, j, peak, False)
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
                    return found  # all of the list has been seen
                with_left, with_right = True, True
            else:
                with_left, with_right = a >= ends[0, j], b <= ends[1, j]
                if not with_left and not with_right:
                    return found
            one = other = 0.0
            if with_left:
                x = data[lists.sorted[j, a], j]
                one = best_term(form, turned, asking.points[s, j], asking.weights[s, j], x, x, signed)
            if with_right:
                x = data[lists.sorted[j, b], j]
                other = best_term(form, turned, asking.points[s, j], asking.weights[s, j], x, x, signed)
            take_left = with_left and (not with_right or (one <= other if smaller else one >= other))
            term = one if take_left else other
            i = lists.sorted[j, a if take_left else b]
            if take_left:
                left[j] += 1 if inward[j] else -1
            else:
                right[j] += -1 if inward[j] else 1
            if slots[i]["serial"] >= 0 and marks[i] != epoch:
                marks[i] = epoch
                found = offer(asking, slots, data, best, found, room, s, i)
                facts[SCORED] += 1
            limit = term if j == 0 else join_terms(form, limit, term)
        if smaller:
            limit = -limit
        if found == room and best[found - 1]["key"] > limit:
            return found
