"""Segments: the recent arrivals of slots, in order and by cell of a grid, so that a lane looks only where it must.

A segment is a block of arrivals. Long ones are sorted by cell besides: cells along the last dimension lie one after
another, so what a lane sees is a few ranges of each segment. A cell's ceiling is the key of its best corner, and
rounding is monotone, so no object of the cell has a larger one; a cell outside a lane's box is not looked at. The outer
cells are open: a grid covers everything, NaN and infinities included.

It takes the place of the query index of pripuzic2015, section 6.1: there a cell lists the queries, here a query finds
the arrivals. Cost: a counting sort of each segment; for each lane the keys of the arrivals in its ranges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.lane_state import DENSE, Lanes
from skyband.engines.topk.kernels.scores import best_term, join_terms
from skyband.engines.topk.kernels.state import Floats, Ints
from skyband.kernels.compile import close, kernel, uncounted
from skyband.kernels.records import Records

SEGMENT = np.dtype(
    [
        ("begin", "i8"),  # places in the history
        ("end", "i8"),
        ("newest", "i8"),  # the largest stamp
        ("instant", "i8"),  # of its last arrival
        ("cells", "i8"),  # its row of `starts`; -1: it is not sorted
        ("late", "i8"),  # whether one of its arrivals was late
        ("first", "i8"),  # when it comes: the first segment that is still there
        ("left", "i8"),  # all that leaves up to then has a stamp up to this
    ],
    align=True,
)


class History(NamedTuple):
    """Recent arrivals in order, and the same by segment and cell."""

    data: Floats  # one row per attribute
    stamps: Ints
    now: Ints
    serials: Ints
    by_cell: Floats  # `data` of sorted segments
    places: NDArray[np.int32]  # in the history, of each of these
    segments: Records
    starts: NDArray[np.int32]  # cell c of a sorted segment has starts[c]..starts[c + 1]


class Grid(NamedTuple):
    """A grid over the attributes."""

    origin: Floats  # per attribute
    scale: Floats
    side: int  # cells along each attribute; 0: there is no grid
    lows: Floats  # the sides of cells, by attribute and place
    highs: Floats


@kernel
def sort_segments(history: History, grid: Grid, first: int, cells: Floats) -> None:
    """Sort the segments from `first` on that have a row of `starts`; cells: scratch."""
    segments, side, data = history.segments, float(grid.side), history.data
    for b in range(first, len(segments)):
        if segments[b]["cells"] < 0:
            continue
        starts, low, high = history.starts[segments[b]["cells"]], segments[b]["begin"], segments[b]["end"]
        mine = cells[: high - low]
        mine[:] = 0.0
        for j in range(data.shape[0]):
            add_places(mine, data[j, low:high], grid.origin[j], grid.scale[j], side)
        starts[:] = 0
        for i in range(high - low):
            starts[int(mine[i]) + 1] += 1
        starts[0] = low
        for cell in range(len(starts) - 1):
            starts[cell + 1] += starts[cell]
        for i in range(high - low - 1, -1, -1):  # backwards: arrivals of a cell stay in order
            cell = int(mine[i]) + 1
            starts[cell] -= 1
            history.places[starts[cell]] = low + i
            for j in range(data.shape[0]):
                history.by_cell[j, starts[cell]] = data[j, low + i]
        for cell in range(len(starts) - 1):
            starts[cell] = starts[cell + 1]
        starts[len(starts) - 1] = high


@close
def add_places(cells: Floats, column: Floats, least: float, width: float, side: float) -> None:
    """Add one more digit to the numbers of cells; in floats, which a processor handles several at once."""
    for i in range(len(column)):
        place = (column[i] - least) * width
        place = place if place > 0.0 else 0.0  # NaN too
        place = place if place < side - 1.0 else side - 1.0
        cells[i] = cells[i] * side + np.floor(place)


@uncounted
def find_ranges(chunk: Lanes, s: int, depth: float, grid: Grid, terms: Floats, places: Ints, ranges: Ints) -> int:
    """The cells that may hold a key of this depth for lane s; how many numbers they take, or DENSE if too many.

    terms: scratch for the best term by attribute and place, `side` for any; places and ranges: scratch.
    """
    scorings, side, d = chunk.scorings, grid.side, chunk.scorings.points.shape[1]
    attributes, form, turned = len(grid.origin), chunk.scorings.form, chunk.scorings.turned
    boxed = chunk.lows.shape[1] > 0
    for j in range(attributes):
        for place in range(side):
            low, high = grid.lows[j, place], grid.highs[j, place]
            terms[j, place] = best_term(scorings, s, j, low, high) if j < d else 0.0
            if boxed and (high < chunk.lows[s, j] or low > chunk.highs[s, j]):
                terms[j, place] = np.nan  # no object there is in the box
        terms[j, side] = best_term(scorings, s, j, -np.inf, np.inf) if j < d else 0.0
    sums = terms[attributes]  # of the terms before each dimension
    n, j = 0, 0
    places[:attributes] = 0
    while j >= 0:
        if places[j] == side:
            places[j] = 0
            j -= 1
            if j >= 0:
                places[j] += 1
            continue
        term = terms[j, places[j]]
        if term != term:
            places[j] += 1
            continue
        sums[j + 1] = term if j == 0 else join_terms(form, sums[j], term)
        ceiling = sums[j + 1]
        for i in range(j + 1, d):
            ceiling = join_terms(form, ceiling, terms[i, side])
        if (-ceiling if turned else ceiling) < depth:
            places[j] += 1
        elif j < attributes - 1:
            j += 1
        else:
            cell = 0
            for i in range(attributes):
                cell = cell * side + places[i]
            if n and ranges[n - 1] == cell - 1 and cell % side:  # further along the same row
                ranges[n - 1] = cell
            elif n + 2 > len(ranges):
                return DENSE
            else:
                ranges[n], ranges[n + 1] = cell, cell
                n += 2
            places[j] += 1
    return n


@close
def in_box(chunk: Lanes, s: int, data: Floats, i: int) -> bool:
    """Whether object i is in the box of lane s."""
    for j in range(chunk.lows.shape[1]):
        low, high = chunk.lows[s, j], chunk.highs[s, j]
        if not ((low == -np.inf and high == np.inf) or low <= data[j, i] <= high):
            return False
    return True
