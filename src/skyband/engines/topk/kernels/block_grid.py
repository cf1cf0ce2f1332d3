"""A grid over a block of arrivals, so that each query looks only into the cells it can see (DESIGN, section 4).

A query sees the cells that may hold a key at or above its depth. One bound serves every scoring of
`kernels/scores.py`: a cell's ceiling is the key of its best corner, and rounding is monotone, so no object of the cell
has a larger one. The outer cells are open: a grid covers everything. Cells along the last dimension lie one after
another, so what a query sees is a few ranges of the block sorted by cell; they are found again when its depth changes.

Cost: a counting sort of the block; for each query the keys of the objects in its ranges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.lanes import next_good
from skyband.engines.topk.kernels.query_index import edges
from skyband.engines.topk.kernels.scores import best_term, join_terms, keys_of
from skyband.kernels.compile import inlined, part
from skyband.kernels.records import Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MANY = 1 << 15  # found at a time
keys_here = inlined(getattr(keys_of, "py_func", keys_of))  # without a compiler it is the function itself


@part
def find_terms(
    form: int,
    turned: bool,
    points: Floats,
    weights: Floats,
    origin: Floats,
    scale: Floats,
    side: int,
    terms: Floats,
) -> None:
    """The best term of each query for each place along each dimension, and for any place: terms[s, j, side]."""
    for s in range(len(points)):
        for j in range(points.shape[1]):
            for place in range(side):
                low, high = edges(j, place, origin, scale, side)
                terms[s, j, place] = best_term(form, turned, points, weights, s, j, low, high)
            terms[s, j, side] = best_term(form, turned, points, weights, s, j, -np.inf, np.inf)


@part
def find_ranges(form: int, turned: bool, terms: Floats, s: int, depth: float, side: int, ranges: Ints) -> int:
    """Ranges of cells, two numbers each, with all that may hold a key of at least `depth`; -1: too many to list."""
    d, n, j = terms.shape[1], 0, 0
    places = np.zeros(d, np.int64)
    sums = np.zeros(d + 1)  # of the terms before each dimension
    while j >= 0:
        if places[j] == side:
            places[j] = 0
            j -= 1
            if j >= 0:
                places[j] += 1
            continue
        sums[j + 1] = terms[s, j, places[j]] if j == 0 else join_terms(form, sums[j], terms[s, j, places[j]])
        ceiling = sums[j + 1]
        for i in range(j + 1, d):
            ceiling = join_terms(form, ceiling, terms[s, i, side])
        if (-ceiling if turned else ceiling) < depth:
            places[j] += 1
        elif j < d - 1:
            j += 1
        else:
            cell = 0
            for i in range(d):
                cell = cell * side + places[i]
            if n and ranges[n - 1] // side == cell // side:  # further along the same row
                ranges[n - 1] = cell
            elif n + 2 > len(ranges):
                return -1
            else:
                ranges[n], ranges[n + 1] = cell, cell
                n += 2
            places[j] += 1
    return n


@part
def sort_block(
    data: Floats,
    low: int,
    high: int,
    origin: Floats,
    scale: Floats,
    side: int,
    cells: Ints,  # room for the cell of each
    starts: Ints,
    block: Floats,  # the attributes by cell
    places: Ints,  # where each was
) -> None:
    """Arrivals low..high by cell, in order within each; cell c has starts[c]..starts[c + 1]."""
    for j in range(data.shape[0]):
        column, least, width = data[j, low:high], origin[j], scale[j]
        for i in range(len(column)):
            place = (column[i] - least) * width
            place = 0.0 if not place > 0 else side - 1.0 if place >= side - 1 else place
            cells[i] = (cells[i] * side if j else 0) + np.int64(place)
    starts[:] = 0
    for i in range(high - low):
        starts[cells[i] + 1] += 1
    for cell in range(len(starts) - 1):
        starts[cell + 1] += starts[cell]
    for i in range(high - low - 1, -1, -1):  # from behind, so that starts end where they should
        cell = cells[i] + 1
        starts[cell] -= 1
        places[starts[cell]] = low + i
        for j in range(data.shape[0]):
            block[j, starts[cell]] = data[j, low + i]
    for cell in range(len(starts) - 1):
        starts[cell] = starts[cell + 1]
    starts[len(starts) - 1] = high - low


@part
def scan(
    form: int,
    turned: bool,
    points: Floats,
    weights: Floats,
    block: Floats,
    places: Ints,
    starts: Ints,
    ranges: Ints,
    counts: Ints,  # of each query's ranges; -1: it looks at every arrival itself
    caps: Records,  # with each query's depth
    data: Floats,
    low: int,
    high: int,
    keys: Floats,
    found_keys: Floats,
    found: Ints,
    bounds: Ints,
    first: int,
    work: Ints,
) -> tuple[Floats, Ints, int]:
    """The arrivals low..high that reach the depths of queries from `first` on: found[bounds[s]]..found[bounds[s + 1]].

    Returns also the query before which it stops, since so many are found that they are to be taken first.
    """
    n, s = 0, first
    while s < len(points) and n < MANY:
        bounds[s], depth = n, caps[s]["threshold"]
        if n + high - low > len(found):
            found_keys, found = longer_list(found_keys, found, n, high - low)
        if counts[s] < 0:
            work[0] += high - low
            keys_of(form, turned, points, weights, s, data, low, high, keys)
            i = next_good(keys, depth, 0, high - low)
            while i < high - low:
                found_keys[n] = keys[i]
                found[n] = low + i
                n += 1
                i = next_good(keys, depth, i + 1, high - low)
        for r in range(0, counts[s], 2):
            begin, end = starts[ranges[s, r]], starts[ranges[s, r + 1] + 1]
            work[0] += end - begin
            keys_here(form, turned, points, weights, s, block, begin, end, keys)
            for i in range(end - begin):
                found_keys[n] = keys[i]
                found[n] = places[begin + i]
                n += keys[i] >= depth  # no branch that would be guessed wrong
        s += 1
    bounds[s] = n
    work[1] += n
    return found_keys, found, s


@part
def longer_list(found_keys: Floats, found: Ints, n: int, more: int) -> tuple[Floats, Ints]:
    keys, places = np.empty(2 * n + more), np.empty(2 * n + more, np.int64)
    for i in range(n):
        keys[i] = found_keys[i]
        places[i] = found[i]
    return keys, places
