"""The query index: a grid over the attributes whose cells list the queries that care (pripuzic2015, section 6.1).

A query cares for the keys at or above its threshold, so for the cells whose best possible key is not below it. It is
indexed somewhat deeper than it needs, and again only when its threshold falls below that or rises far above: lazy
re-indexing. One bound serves every scoring of `kernels/scores.py`: a cell's ceiling is the key of its best corner, and
rounding is monotone, so no object of the cell has a larger one. The outer cells are open: a grid covers everything.

Cost: an arrival computes its cell and one key for each query listed there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.scores import best_term, join_terms
from skyband.kernels.compile import part
from skyband.kernels.records import Records
from skyband.query.scoring.forms import CHEBYSHEV, EUCLIDEAN, LINEAR

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FOUND = np.dtype([("query", "i8"), ("place", "i8"), ("key", "f8")], align=True)
SIDES = (0, 1024, 90, 20, 9, 6, 4)  # cells along each of d dimensions


@part
def lay_grid(data: Floats, low: int, high: int, origin: Floats, scale: Floats, side: int) -> None:
    """A grid over the box of these objects."""
    for j in range(data.shape[0]):
        least, most = np.inf, -np.inf
        for i in range(low, high):
            least, most = min(least, data[j, i]), max(most, data[j, i])
        origin[j] = least
        scale[j] = side / (most - least) if most > least and side / (most - least) < 1e300 else 0.0


@part
def edges(j: int, place: int, origin: Floats, scale: Floats, side: int) -> tuple[float, float]:
    """The sides of a cell in dimension j, a little wider than they are: places are rounded."""
    if scale[j] == 0:
        return -np.inf, np.inf
    width = 1 / scale[j]
    slack = 1e-9 * width * side + 1e-15 * abs(origin[j])
    low = -np.inf if place == 0 else origin[j] + place * width - slack
    high = np.inf if place == side - 1 else origin[j] + (place + 1) * width + slack
    return low, high


@part
def find_cells(
    form: int,
    turned: bool,
    points: Floats,
    weights: Floats,
    s: int,
    depth: float,
    origin: Floats,
    scale: Floats,
    side: int,
    terms: Floats,  # room for the best term of each place in each dimension
    cells: Ints,
) -> int:
    """The cells that may hold a key of at least `depth`; how many there are, or -1 if they are more than fit."""
    d = points.shape[1]
    for j in range(d):
        for place in range(side):
            low, high = edges(j, place, origin, scale, side)
            terms[j, place] = best_term(form, turned, points, weights, s, j, low, high)
    n, j = 0, 0
    places = np.zeros(d, np.int64)
    sums = np.empty(d)  # of the terms up to each dimension
    while j >= 0:
        if places[j] == side:
            places[j] = 0
            j -= 1
            if j >= 0:
                places[j] += 1
            continue
        term = terms[j, places[j]]
        sums[j] = term if j == 0 else join_terms(form, sums[j - 1], term)
        key = -sums[j] if turned else sums[j]
        if j == d - 1:
            if key >= depth:
                if n == len(cells):
                    return -1
                cell = 0
                for i in range(d):
                    cell = cell * side + places[i]
                cells[n] = cell
                n += 1
            places[j] += 1
        elif form > 0 and turned and key < depth:  # a distance only grows with further terms
            places[j] += 1
        else:
            j += 1
    return n


@part
def list_queries(lists: Ints, counts: Ints, starts: Ints, queries: Ints) -> None:
    """From the cells of each query to the queries of each cell."""
    starts[:] = 0
    for s in range(len(counts)):
        for i in range(counts[s]):
            starts[lists[s, i] + 1] += 1
    for cell in range(len(starts) - 1):
        starts[cell + 1] += starts[cell]
    for s in range(len(counts) - 1, -1, -1):  # from behind, so that starts end where they should
        for i in range(counts[s]):
            cell = lists[s, i] + 1
            starts[cell] -= 1
            queries[starts[cell]] = s
    for cell in range(len(starts) - 1):
        starts[cell] = starts[cell + 1]
    total = 0
    for s in range(len(counts)):
        total += counts[s]
    starts[len(starts) - 1] = total


@part
def match(
    form: int,
    turned: bool,
    points: Floats,
    weights: Floats,
    data: Floats,
    low: int,
    high: int,
    depths: Floats,
    origin: Floats,
    scale: Floats,
    side: int,
    starts: Ints,
    queries: Ints,
    work: Ints,
    found: Records,
) -> tuple[Records, int]:
    """Objects low..high with the queries whose depth they reach, in order of objects."""
    n, d, weighted = 0, data.shape[0], weights.shape[1] > 0
    for i in range(low, high):
        cell = 0
        for j in range(d):
            place = (data[j, i] - origin[j]) * scale[j]
            cell = cell * side + (0 if not place > 0 else side - 1 if place >= side - 1 else int(place))
        work[0] += starts[cell + 1] - starts[cell]
        if n + starts[cell + 1] - starts[cell] > len(found):
            larger = np.empty(2 * len(found) + starts[cell + 1] - starts[cell], found.dtype)
            for m in range(n):
                larger[m] = found[m]
            found = larger
        for q in range(starts[cell], starts[cell + 1]):
            s = queries[q]
            key = 0.0
            for j in range(d):  # `key_of`, written out: a call would cost ten times as much
                x = points[s, j] * data[j, i] if form == LINEAR else data[j, i] - points[s, j]
                if form != LINEAR:
                    x = x * x if form == EUCLIDEAN else abs(x)
                    if weighted:
                        x = weights[s, j] * x
                if j == 0:
                    key = x
                else:
                    key = max(key, x) if form == CHEBYSHEV else key + x
            if turned:
                key = -key
            found[n]["query"] = s
            found[n]["place"] = i
            found[n]["key"] = key
            n += key >= depths[s]  # no branch that would be guessed wrong
    return found, n


@part
def by_query(found: Records, n: int, order: Ints, bounds: Ints) -> None:
    """The places in `found` sorted by query, in order within each; bounds[s]..bounds[s + 1] are those of query s."""
    bounds[:] = 0
    for i in range(n):
        bounds[found[i]["query"] + 1] += 1
    for s in range(len(bounds) - 1):
        bounds[s + 1] += bounds[s]
    for i in range(n - 1, -1, -1):
        s = found[i]["query"] + 1
        bounds[s] -= 1
        order[bounds[s]] = i
    for s in range(len(bounds) - 1):
        bounds[s] = bounds[s + 1]
    bounds[len(bounds) - 1] = n
