"""Boxes of cells in descending order of what their objects can score, for expressions (mouratidis2006, Figure 6).

An expression need not fall along the axes of the grid, nor have terms of its own for each, so cells cannot be reached
from their neighbours. A search begins with all cells and splits the box with the best bound in two, along the axis with
most slabs, until it is one cell; a box with a bound below the floor is never split. O(log cells) bounds for each cell
that is visited. A cell's bound is never above that of a box around it, so that lists can rely on it.

A box is the first and the last slab of each axis, in one number.
"""

from __future__ import annotations

from skyband.engines.topk.kernels.bounds import best_key, set_axis
from skyband.engines.topk.kernels.window_state import SIDE, Queries, Records, Scratch, Window
from skyband.kernels.compile import uncounted

SIDE_BITS = 31  # of a box, for the first slabs of all axes; as many are for the last ones


@uncounted
def bits_of(d: int) -> int:
    """The bits of one slab's number in a box."""
    return SIDE_BITS // d


@uncounted
def first_slab(code: int, j: int, bits: int) -> int:
    return (code >> (2 * j * bits)) & ((1 << bits) - 1)


@uncounted
def last_slab(code: int, j: int, bits: int) -> int:
    return (code >> ((2 * j + 1) * bits)) & ((1 << bits) - 1)


@uncounted
def set_box(queries: Queries, edges: Records, s: int, code: int) -> None:
    """Let the program see this box."""
    bits = bits_of(len(edges))
    for j in range(len(edges)):
        set_axis(queries, s, j, edges[j, first_slab(code, j, bits)], edges[j, last_slab(code, j, bits) + 1])


@uncounted
def all_boxes(queries: Queries, window: Window, s: int) -> int:
    """The box of all cells that meet the query's own; -1: there are none."""
    edges, side, code = window.edges, window.counters[SIDE], 0
    bits = bits_of(len(edges))
    for j in range(len(edges)):
        low, high = queries.lows[s, j], queries.highs[s, j]
        first, last = 0, int(edges[j, side + 1]) - 1
        while first <= last and edges[j, first + 1] < low:
            first += 1
        while last >= first and edges[j, last] > high:
            last -= 1
        if first > last:
            return -1
        code |= (first | (last << bits)) << (2 * j * bits)
    return code


@uncounted
def bound_of_box(queries: Queries, window: Window, s: int, code: int) -> float:
    """The largest key of an object in a box."""
    set_box(queries, window.edges, s, code)
    return best_key(queries, s)


@uncounted
def cell_of_box(code: int, d: int, side: int) -> int:
    """The cell that a box is; -1: it is several."""
    bits, cell = bits_of(d), 0
    for j in range(d):
        first = first_slab(code, j, bits)
        if first < last_slab(code, j, bits):
            return -1
        cell = cell * side + first
    return cell


@uncounted
def split_box(queries: Queries, window: Window, scratch: Scratch, s: int, code: int, bound: float, floor: float) -> int:
    """Split a box of several cells in two; those whose bound is not below the floor go to scratch.halves."""
    d, widest, most, count = len(window.edges), 0, 0, 0
    bits = bits_of(d)
    for j in range(d):
        slabs = last_slab(code, j, bits) - first_slab(code, j, bits)
        if slabs > most:
            widest, most = j, slabs
    first, last, at = first_slab(code, widest, bits), last_slab(code, widest, bits), 2 * widest * bits
    middle = (first + last) // 2
    rest = code & ~(((1 << (2 * bits)) - 1) << at)
    for half in range(2):
        low, high = (first, middle) if half == 0 else (middle + 1, last)
        part = rest | ((low | (high << bits)) << at)
        best = min(bound, bound_of_box(queries, window, s, part))
        if best >= floor:
            scratch.halves[count] = part
            scratch.half_bounds[count] = best
            count += 1
    return count
