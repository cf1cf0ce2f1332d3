"""Influence lists: per cell of the grid, the queries whose influence region meets it (mouratidis2006, section 4.2).

An object is compared only with the queries of its cell. A query whose region would meet too many cells has no lists and
is compared with every object. Lists change by the cells between the old and the new reach of a query; O(1) per cell.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.window_boxes import all_boxes, bound_of_box, cell_of_box, split_box
from skyband.engines.topk.kernels.window_grid import open_cell, sort_slabs
from skyband.engines.topk.kernels.window_state import SIDE, UNLISTED, USED, Queries, Records, Scratch, Window
from skyband.kernels.compile import part, uncounted
from skyband.query.scoring.forms import EXPRESSION


@part
def grow_list(cells: Records, counters: Records, lists: Records, cell: int) -> Records:
    """Move the list of a cell to the end, with twice its capacity; lists that are full grow, and lose their gaps."""
    capacity = max(4, 2 * cells[cell]["capacity"])
    if counters[USED] + capacity > len(lists):
        total = capacity
        for c in range(len(cells)):
            total += cells[c]["capacity"]
        larger = np.empty(total + total // 2, lists.dtype)
        counters[USED] = 0
        for c in range(len(cells)):
            for i in range(cells[c]["size"]):
                larger[counters[USED] + i] = lists[cells[c]["start"] + i]
            cells[c]["start"] = counters[USED]
            counters[USED] += cells[c]["capacity"]
        lists = larger
    for i in range(cells[cell]["size"]):
        lists[counters[USED] + i] = lists[cells[cell]["start"] + i]
    cells[cell]["start"] = counters[USED]
    cells[cell]["capacity"] = capacity
    counters[USED] += capacity
    return lists


@uncounted
def remove_from_cell(cells: Records, lists: Records, cell: int, s: int) -> None:
    """Remove query s from the list of a cell; the last one takes its place."""
    last = cells[cell]["start"] + cells[cell]["size"] - 1
    i = last
    while lists[i] != s:
        i -= 1
    lists[i] = lists[last]
    cells[cell]["size"] -= 1


@uncounted
def use_no_lists(window: Window, s: int) -> None:
    """Compare query s with every object from now on."""
    state, counters = window.state, window.counters
    window.unlisted[counters[UNLISTED]] = s
    counters[UNLISTED] += 1
    state[s]["unlisted"] = counters[UNLISTED]
    state[s]["reach"] = np.nan
    state[s]["listed"] = 0
    state[s]["misses"] = 0


@uncounted
def use_lists(window: Window, s: int) -> None:
    """Compare query s only with objects of cells that list it."""
    state, counters, place = window.state, window.counters, window.state[s]["unlisted"] - 1
    last = window.unlisted[counters[UNLISTED] - 1]
    window.unlisted[place] = last
    state[last]["unlisted"] = place + 1
    state[s]["unlisted"] = 0
    counters[UNLISTED] -= 1


@part
def set_reach(
    queries: Queries, window: Window, scratch: Scratch, lists: Records, s: int, to: float, most: int
) -> Records:
    """List query s in all cells with a maxscore of at least `to` (NaN: in none); if they are more than `most`, in none.

    A maxscore may be infinite, so that no number is beyond all of them.
    """
    state, slabs, terms, many = window.state, scratch.slabs, scratch.terms, scratch.many
    form, turned, side, codes = queries.form, queries.turned, window.counters[SIDE], scratch.codes
    was, cells = state[s]["reach"], window.cells
    lowest = to if np.isnan(was) or to < was else was
    size, count = 0, 0
    if form == EXPRESSION:
        codes[0] = all_boxes(queries, window, s)
        scratch.bounds[0] = bound_of_box(queries, window, s, codes[0]) if codes[0] >= 0 else -np.inf
        size = 1 if codes[0] >= 0 and scratch.bounds[0] >= lowest else 0
    elif sort_slabs(queries, window, scratch, s) and open_cell(slabs, terms, many, 0, side, form, turned)[1] >= lowest:
        codes[0], size = 0, 1
    while size:  # a stack, since the order does not matter
        size -= 1
        code = codes[size]
        if form == EXPRESSION:
            cell, bound, deepest = cell_of_box(code, len(slabs), side), scratch.bounds[size], len(slabs)
            if cell < 0:
                for half in range(split_box(queries, window, scratch, s, code, bound, lowest)):
                    codes[size], scratch.bounds[size] = scratch.halves[half], scratch.half_bounds[half]
                    size += 1
                continue
        else:
            cell, bound, deepest = open_cell(slabs, terms, many, code, side, form, turned)
        if bound >= to:
            count += 1
            if count > most:
                break
            if not bound >= was:
                if cells[cell]["size"] == cells[cell]["capacity"]:
                    lists = grow_list(cells, window.counters, lists, cell)
                lists[cells[cell]["start"] + cells[cell]["size"]] = s
                cells[cell]["size"] += 1
        elif bound >= was:
            remove_from_cell(cells, lists, cell, s)
        base = 1
        for j in range(len(slabs) - 1, deepest - 1, -1):
            if (code // base) % side + 1 < many[j]:
                _, bound, _ = open_cell(slabs, terms, many, code + base, side, form, turned)
                if bound >= lowest:
                    codes[size] = code + base
                    size += 1
            base *= side
    if count > most:  # it may be in the lists of any cells
        for c in range(len(cells)):
            for i in range(cells[c]["start"], cells[c]["start"] + cells[c]["size"]):
                if lists[i] == s:
                    remove_from_cell(cells, lists, c, s)
                    break
        if not state[s]["unlisted"]:
            use_no_lists(window, s)
    else:
        if state[s]["unlisted"]:
            use_lists(window, s)
        state[s]["reach"] = to
        state[s]["listed"] = count
    state[s]["misses"] = 0
    return lists


@part
def update_lists(
    queries: Queries, window: Window, scratch: Scratch, lists: Records, records: Records, s: int
) -> Records:
    """List query s in all cells that may hold an object above its floor, and in a few more."""
    state = window.state
    to, head, size = state[s]["key"], window.heads[s]["head"], window.heads[s]["size"]
    if queries.specs[s]["above"]:
        to = queries.specs[s]["threshold"]
    elif to > -np.inf and size:
        gap = records[head + size // 2]["key"] - to  # from the middle: the best may be far above the others
        if gap < np.inf:  # scores may be infinite
            to -= 0.25 * gap
    if to > -np.inf or queries.specs[s]["boxed"]:
        return set_reach(queries, window, scratch, lists, s, to, max(16, len(window.cells) // 4))
    if not state[s]["unlisted"]:
        lists = set_reach(queries, window, scratch, lists, s, np.nan, len(window.cells))
        use_no_lists(window, s)
    state[s]["misses"] = 0
    return lists
