"""The grid over the valid objects of a window, and its search (mouratidis2006, sections 4.1 and 4.2, Figure 6).

A cell holds a list of its objects, linked both ways: any of them leaves in O(1). Slabs are cut where objects were when
the grid was built (edges.py); objects outside that range are in one more cell, which concerns every query. Once cells
have grown lopsided (the sum of their squared sizes, against that at the start), the grid is cut anew. Instead of the
paper's corner, a query sorts the slabs of each axis by the best term they allow: then any scoring whose terms are
separate (sums, products, distances) falls along every axis, whatever its signs, and cells come in descending order of
maxscore from a heap, each reached from one neighbour only. A search costs O(log) per visited cell, and O(d) per object.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.preferences import best_term, join_terms, key_at
from skyband.engines.topk.kernels.window_boxes import all_boxes, bound_of_box, cell_of_box, split_box
from skyband.engines.topk.kernels.window_state import (
    CROWD,
    FREE,
    HEAD,
    LIVE,
    NO_CELL,
    OUTSIDE,
    SCORED,
    SIDE,
    SKEW,
    UNLISTED,
    VISITED,
    WAIT,
    Queries,
    Records,
    Scratch,
    Stream,
    Window,
    above,
    in_box,
)
from skyband.kernels.compile import close, uncounted
from skyband.kernels.records import move_run
from skyband.query.scoring.forms import EXPRESSION, PRODUCT

SOON = 64  # arrivals until it is tested again whether cells have grown lopsided


@uncounted
def locate(edges: Records, side: int, outside: int, data: Records, i: int) -> int:
    """The cell of an object, or `outside`; an edge belongs to the slab above it, the last one to the slab below.

    The search takes as many steps for every object and has no branch that depends on it: those are guessed wrong.
    """
    cell = 0
    for j in range(len(edges)):
        x, slabs = data[i, j], int(edges[j, side + 1])
        if not edges[j, 0] <= x <= edges[j, slabs]:
            return outside
        low = 0
        while slabs > 1:
            half = slabs >> 1
            low += half if edges[j, low + half] <= x else 0
            slabs -= half
        cell = cell * side + low
    return cell


@uncounted
def link(slots: Records, cells: Records, cell: int, i: int) -> None:
    """Append an object to its cell's list."""
    before = cells[cell]["tail"]
    slots[i]["cell"] = cell
    slots[i]["next"] = -1
    slots[i]["before"] = before
    if before < 0:
        cells[cell]["head"] = i
    else:
        slots[before]["next"] = i
    cells[cell]["tail"] = i
    cells[cell]["count"] += 1


@uncounted
def unlink(slots: Records, cells: Records, i: int) -> None:
    """Remove an object from its cell's list: O(1), wherever it stands."""
    cell, before, after = slots[i]["cell"], slots[i]["before"], slots[i]["next"]
    if before < 0:
        cells[cell]["head"] = after
    else:
        slots[before]["next"] = after
    if after < 0:
        cells[cell]["tail"] = before
    else:
        slots[after]["before"] = before
    cells[cell]["count"] -= 1


@uncounted
def is_lopsided(cells: Records, counters: Records) -> bool:
    """Whether cells are so much fuller than when the grid was built that another one is due; it is then marked so."""
    live = counters[LIVE]
    if counters[WAIT] <= 0:
        counters[WAIT] = SOON
        if counters[CROWD] > 4 * counters[SKEW] * (live + live * live // len(cells)):
            counters[SKEW] = 0
    return bool(counters[SKEW] == 0)


@uncounted
def is_listed(slots: Records, cells: Records, counters: Records, i: int) -> bool:
    """Whether any query must be compared with object i."""
    cell = slots[i]["cell"]
    if cell == NO_CELL:
        return False
    return bool(counters[UNLISTED] > 0 or cells[cell]["size"] > 0 or cell == len(cells) - 1)


@uncounted
def release(slots: Records, cells: Records, counters: Records, i: int, in_lists: bool) -> None:
    """Remove object i from its cell and free its place; in sorted lists the next merge does."""
    idle = slots[i]["cell"] == NO_CELL
    if not in_lists and not idle:
        cell = slots[i]["cell"]
        unlink(slots, cells, i)
        if cell == len(cells) - 1:
            counters[OUTSIDE] -= 1
        else:
            counters[CROWD] -= 2 * cells[cell]["count"] + 1
    if not in_lists or idle:
        slots[i]["next"] = counters[FREE]
        counters[FREE] = i
    slots[i]["serial"] = -1
    counters[LIVE] -= 1


@close
def occupy(window: Window, stream: Stream, a: int, serial: int, aged: bool, idle: bool) -> int:
    """Give arrival a a free place, and its place by age: late ones before newer ones."""
    counters, slots, order = window.counters, window.slots, window.order
    i, stamp = int(counters[FREE]), stream.stamps[a]
    counters[FREE] = slots[i]["next"]
    for j in range(window.data.shape[1]):
        window.data[i, j] = np.nan if idle else stream.data[a, j]
    slots[i]["cell"] = NO_CELL
    slots[i]["stamp"] = stamp
    slots[i]["serial"] = serial
    if aged:
        at = counters[HEAD] + counters[LIVE]
        while at > counters[HEAD] and slots[order[(at - 1) % len(order)]]["stamp"] > stamp:
            order[at % len(order)] = order[(at - 1) % len(order)]
            at -= 1
        order[at % len(order)] = i
    counters[LIVE] += 1
    return i


@uncounted
def put_into_cell(window: Window, i: int) -> None:
    """Find the cell of object i and append it there."""
    cells, counters = window.cells, window.counters
    cell = locate(window.edges, counters[SIDE], len(cells) - 1, window.data, i)
    if cell == len(cells) - 1:
        counters[OUTSIDE] += 1
    else:
        counters[CROWD] += 2 * cells[cell]["count"] + 1
    link(window.slots, cells, cell, i)
    counters[WAIT] -= 1


# --- cells in order of maxscore


@uncounted
def sort_slabs(queries: Queries, window: Window, scratch: Scratch, s: int) -> bool:
    """Sort the slabs of each axis that meet the query's box, best first, with their best terms; False: none do."""
    form, turned, edges, side = queries.form, queries.turned, window.edges, window.counters[SIDE]
    d = queries.points.shape[1]
    signed = False
    for j in range(d):
        signed |= form == PRODUCT and queries.points[s, j] + edges[j, 0] < 0
    for j in range(d):
        low, high = queries.lows[s, j], queries.highs[s, j]
        first, last = 0, int(edges[j, side + 1]) - 1
        while first <= last and edges[j, first + 1] < low:
            first += 1
        while last >= first and edges[j, last] > high:
            last -= 1
        if first > last:
            return False
        terms, slabs = scratch.terms[j], scratch.slabs[j]
        smaller = turned and not signed  # the better term is the smaller one
        best = first
        for c in range(first, last + 1):
            ends = max(edges[j, c], low), min(edges[j, c + 1], high)
            terms[c] = best_term(form, turned, queries.points[s, j], queries.weights[s, j], ends[0], ends[1], signed)
            if terms[c] < terms[best] if smaller else terms[c] > terms[best]:
                best = c
        inward = best == first or best == last  # terms fall from an end, or from both; else from a peak
        left, right = (first, last) if inward else (best, best + 1)
        for r in range(last - first + 1):
            if left < first or right > last:  # a side of the peak is done
                take_left = left >= first
            else:
                take_left = terms[left] <= terms[right] if smaller else terms[left] >= terms[right]
            if take_left:
                slabs[r] = left
                left += 1 if inward else -1
            else:
                slabs[r] = right
                right += -1 if inward else 1
        scratch.many[j] = last - first + 1
    scratch.many[d] = signed
    return True


@uncounted
def open_cell(
    slabs: Records, terms: Records, many: Records, code: int, side: int, form: int, turned: bool
) -> tuple[int, float, int]:
    """The cell at these places in the order of slabs, its maxscore, and the last axis that is not at its best."""
    d = len(slabs)
    cell, bound, deepest, rest = 0, 0.0, 0, code
    base = 1
    for j in range(d - 1, -1, -1):
        r = rest % side
        rest //= side
        if r and deepest == 0:
            deepest = j
        cell += base * slabs[j, r]
        base *= side
    rest = cell
    for j in range(d):  # in order, since sums are rounded
        base //= side
        c = rest // base
        rest -= c * base
        bound = terms[j, c] if j == 0 else join_terms(form, bound, terms[j, c])
    return cell, -bound if turned and not many[d] else bound, deepest


@uncounted
def push_cell(bounds: Records, codes: Records, size: int, bound: float, code: int) -> int:
    """Push a cell on the heap."""
    i = size
    while i and bounds[(i - 1) // 2] < bound:
        bounds[i], codes[i] = bounds[(i - 1) // 2], codes[(i - 1) // 2]
        i = (i - 1) // 2
    bounds[i], codes[i] = bound, code
    return size + 1


@uncounted
def pop_cell(bounds: Records, codes: Records, size: int) -> int:
    """Pop the cell with the largest maxscore."""
    size -= 1
    bound, code = bounds[size], codes[size]
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and bounds[child + 1] > bounds[child]:
            child += 1
        if bounds[child] <= bound:
            break
        bounds[i], codes[i] = bounds[child], codes[child]
        i = child
    bounds[i], codes[i] = bound, code
    return size


# --- the top-k computation module (Figure 6)


@uncounted
def insert_best(best: Records, size: int, wanted: int, key: float, stamp: int, serial: int, i: int) -> int:
    """Insert an object that ranks above the last of the best so far, in order of rank; returns how many there are."""
    size = min(size, wanted - 1)
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if above(key, stamp, serial, best[middle]["key"], best[middle]["stamp"], best[middle]["serial"]):
            high = middle
        else:
            low = middle + 1
    move_run(best, low, best, low + 1, size - low)
    best[low]["key"] = key
    best[low]["stamp"] = stamp
    best[low]["serial"] = serial
    best[low]["dom"] = 0
    best[low]["inside"] = 0
    best[low]["shown"] = 0
    best[low]["was"] = i
    return size + 1


@uncounted
def search_grid(queries: Queries, window: Window, scratch: Scratch, s: int, wanted: int) -> int:
    """Find the best `wanted` objects of the window, from the cells that may hold one; returns how many there are.

    The heap is of cells, which lead to their neighbours; of expressions, of boxes (window_boxes.py).
    """
    slots, data, cells, best = window.slots, window.data, window.cells, scratch.best
    slabs, terms, many = scratch.slabs, scratch.terms, scratch.many
    bounds, codes = scratch.bounds, scratch.codes
    form, turned, side, boxed = queries.form, queries.turned, window.counters[SIDE], queries.specs[s]["boxed"]
    found, size, cell, visited, scored = 0, 0, len(cells) - 1, 0, 0
    if form == EXPRESSION:
        box = all_boxes(queries, window, s)
        if box >= 0:
            size = push_cell(bounds, codes, 0, bound_of_box(queries, window, s, box), box)
    elif sort_slabs(queries, window, scratch, s):
        size = push_cell(bounds, codes, 0, open_cell(slabs, terms, many, 0, side, form, turned)[1], 0)
    while True:  # first the objects outside the grid, then cell by cell
        i = cells[cell]["head"] if cell >= 0 else -1
        while i >= 0:
            key = key_at(queries, s, data, i)
            scored += 1
            if found < wanted or key >= best[found - 1]["key"]:
                stamp, serial = slots[i]["stamp"], slots[i]["serial"]
                last = best[max(found - 1, 0)]
                if (found < wanted or above(key, stamp, serial, last["key"], last["stamp"], last["serial"])) and (
                    not boxed or in_box(queries, s, data, i)
                ):
                    found = insert_best(best, found, wanted, key, stamp, serial, i)
            i = slots[i]["next"]
        if size == 0 or (found == wanted and bounds[0] < best[found - 1]["key"]):
            break
        code, limit = codes[0], bounds[0]
        size = pop_cell(bounds, codes, size)
        floor = best[found - 1]["key"] if found == wanted else -np.inf
        if form == EXPRESSION:
            cell = cell_of_box(code, len(slabs), side)
            visited += cell >= 0
            for half in range(split_box(queries, window, scratch, s, code, limit, floor) if cell < 0 else 0):
                size = push_cell(bounds, codes, size, scratch.half_bounds[half], scratch.halves[half])
            continue
        visited += 1
        cell, _, deepest = open_cell(slabs, terms, many, code, side, form, turned)
        base = 1
        for j in range(len(slabs) - 1, deepest - 1, -1):
            if (code // base) % side + 1 < many[j]:
                _, bound, _ = open_cell(slabs, terms, many, code + base, side, form, turned)
                if bound >= floor:
                    size = push_cell(bounds, codes, size, bound, code + base)
            base *= side
    window.counters[VISITED] += visited
    window.counters[SCORED] += scored
    return found
