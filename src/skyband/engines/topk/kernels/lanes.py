"""Which arrivals of a block a lane must see: those at or above its threshold, one by one or by the query index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.query_index import find_cells, lay_grid, list_queries
from skyband.kernels.compile import inlined, part
from skyband.kernels.records import Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@part
def pick(
    keys: Floats, depth: float, stamps: Ints, now: Ints, rows: Ints, low: int, high: int, picked: Records
) -> tuple[Records, int]:
    """The arrivals low..high with a key of at least `depth`, and those that are late."""
    n = 0
    for i in range(high - low):
        if keys[i] >= depth or stamps[low + i] < now[low + i]:
            if n == len(picked):
                picked = longer(picked, n)
            fill(picked, n, keys[i], low + i, stamps, now, rows)
            n += 1
    return picked, n


@inlined
def fill(picked: Records, n: int, key: float, a: int, stamps: Ints, now: Ints, rows: Ints) -> None:
    picked[n]["key"] = key
    picked[n]["stamp"] = stamps[a]
    picked[n]["now"] = now[a]
    picked[n]["row"] = rows[a]


@part
def next_good(keys: Floats, depth: float, i: int, end: int) -> int:
    """The next key of at least `depth`: 64 at a time, which compiles to a few instructions."""
    while i + 64 <= end:
        good = 0
        for j in range(i, i + 64):
            good += keys[j] >= depth
        if good:
            break
        i += 64
    while i < end and keys[i] < depth:
        i += 1
    return i


@part
def longer(picked: Records, n: int) -> Records:
    larger = np.empty(2 * n, picked.dtype)
    for i in range(n):
        larger[i] = picked[i]
    return larger


@part
def index_lanes(
    form: int,
    turned: bool,
    points: Floats,
    weights: Floats,
    objects: Records,
    groups: Records,
    depths: Floats,
    data: Floats,
    low: int,
    high: int,
    origin: Floats,
    scale: Floats,
    side: int,
    cells: Ints,  # of each lane
    counts: Ints,
    indexes: Floats,  # the depth to which each lane is listed; inf: it is not
    starts: Ints,
    listed: Ints,
    work: Ints,
) -> None:
    """Re-index the lanes whose threshold has fallen below their depth in the index, or risen far above it.

    A few of them can wait: a lane whose threshold is below its depth in the index looks at every arrival itself.
    """
    if origin[0] != origin[0]:
        lay_grid(data, low, high, origin, scale, side)
    stale = 0
    for s in range(len(groups)):
        stale += depths[s] > -np.inf and not indexes[s] <= depths[s]
    if stale * (high - low) <= 2 * len(starts):
        return
    terms = np.empty((points.shape[1], side))
    for s in range(len(groups)):
        gap = objects[groups[s]["head"]]["key"] - depths[s] if groups[s]["size"] else np.inf
        if not gap < np.inf:
            indexes[s], counts[s] = np.inf, 0
        elif not (indexes[s] <= depths[s] and indexes[s] >= depths[s] - 3 * gap):
            work[3] += 1
            indexes[s] = depths[s] - gap / 2
            counts[s] = find_cells(form, turned, points, weights, s, indexes[s], origin, scale, side, terms, cells[s])
            if counts[s] < 0:  # a large part of the grid: looking at all is as good
                indexes[s], counts[s] = np.inf, 0
    list_queries(cells, counts, starts, listed)
