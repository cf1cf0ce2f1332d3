"""A grid over a block of arrivals, so that each lane looks only into the cells it can see (DESIGN, section 5).

It takes the place of the query index of pripuzic2015, section 6.1: there a cell lists the queries, here a query finds
the arrivals. A lane sees the cells that may hold a key at or above its depth. One bound serves every scoring of
`kernels/scores.py`: a cell's ceiling is the key of its best corner, and rounding is monotone, so no object of the cell
has a larger one. The outer cells are open: a grid covers everything. Cells along the last dimension lie one after
another, so what a lane sees is a few ranges of the block sorted by cell; they are found again when its depth changes.
Where thresholds move with each arrival (PA and the filters) the depth is somewhat below the threshold and follows it
only when it must: lazy re-indexing.

Cost: a counting sort of the block; for each lane the keys of the arrivals in its ranges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.found import Found, next_good
from skyband.engines.topk.kernels.scores import LaneScorings, best_term, join_terms, keys_of
from skyband.engines.topk.kernels.state import Floats, Ints, Stream
from skyband.kernels.compile import close, inlined, uncounted
from skyband.kernels.records import ARRIVAL, Records

MANY = 1 << 15  # arrivals found at a time
DENSE, STALE = -1, -2
keys_here = inlined(getattr(keys_of, "py_func", keys_of))  # without a compiler it is the function itself


class Grid(NamedTuple):
    """The grid, and what the lanes see of it. It holds nothing that cannot be found again."""

    origin: Floats  # per dimension; its first number is NaN before the grid is laid
    scale: Floats
    side: int  # cells along each dimension; 0: there is no grid
    terms: Floats  # per lane, dimension and place: the best term; the last place stands for any
    ranges: Ints  # per lane: cells, two numbers a range
    counts: Ints  # per lane: of these numbers; DENSE: it looks at every arrival; STALE: they are to be found
    depths: Floats  # per lane: arrivals with a key from here on are found for it


class Block(NamedTuple):
    """Scratch: a block of arrivals by cell."""

    data: Floats
    places: Ints  # in the stream
    cells: Ints  # of each arrival
    starts: Ints  # cell c has starts[c]..starts[c + 1]
    corner: Ints  # of the cell that `find_ranges` is at
    sums: Floats  # of its terms


class Scratch(NamedTuple):
    """Arrays that an engine keeps for its kernels, since fresh memory is slow."""

    block: Block
    found: Found
    rest: Found  # for one lane
    keys: Floats
    picked: Records
    work: Ints  # counted: [keys computed, objects taken, lanes deepened, ranges found]


def new_scratch(grid: Grid, most: int, waiting: int) -> Scratch:
    """Scratch for blocks of up to `most` arrivals and so many others that wait."""
    (lanes, d, _), ints = grid.terms.shape, np.int64
    block = Block(
        data=np.empty((d, most)),
        places=np.empty(most, ints),
        cells=np.empty(most, ints),
        starts=np.empty(grid.side**d + 1, ints),
        corner=np.empty(d, ints),
        sums=np.empty(d + 1),
    )
    found = Found(np.empty(MANY + most), np.empty(MANY + most, ints), np.zeros(lanes + 1, ints))
    rest = Found(np.empty(most), np.empty(most, ints), np.zeros(2, ints))
    picked = np.empty(most + waiting, ARRIVAL)
    return Scratch(block, found, rest, np.empty(max(most, waiting)), picked, np.zeros(4, ints))


@uncounted
def lay_grid(data: Floats, low: int, high: int, grid: Grid) -> None:
    """A grid over the box of these objects."""
    side = grid.side
    for j in range(data.shape[0]):
        least, most = np.inf, -np.inf
        for i in range(low, high):
            least, most = min(least, data[j, i]), max(most, data[j, i])
        grid.origin[j] = least
        grid.scale[j] = side / (most - least) if most > least and side / (most - least) < 1e300 else 0.0


@uncounted
def edges(grid: Grid, j: int, place: int) -> tuple[float, float]:
    """The sides of a cell in dimension j, a little wider than they are: places are rounded."""
    if grid.scale[j] == 0:
        return -np.inf, np.inf
    width, origin = 1 / grid.scale[j], grid.origin[j]
    slack = 1e-9 * width * grid.side + 1e-15 * abs(origin)
    low = -np.inf if place == 0 else origin + place * width - slack
    high = np.inf if place == grid.side - 1 else origin + (place + 1) * width + slack
    return low, high


@uncounted
def find_terms(scorings: LaneScorings, grid: Grid) -> None:
    """The best term of each lane for each place along each dimension, and for any place: terms[s, j, side]."""
    for s in range(len(scorings.points)):
        for j in range(scorings.points.shape[1]):
            for place in range(grid.side):
                low, high = edges(grid, j, place)
                grid.terms[s, j, place] = best_term(scorings, s, j, low, high)
            grid.terms[s, j, grid.side] = best_term(scorings, s, j, -np.inf, np.inf)


@uncounted
def find_ranges(scorings: LaneScorings, grid: Grid, s: int, block: Block) -> int:
    """The cells of lane s, all that may hold a key of its depth; how many numbers they take, or DENSE if too many."""
    form, side, depth, terms, ranges = scorings.form, grid.side, grid.depths[s], grid.terms[s], grid.ranges[s]
    places, sums = block.corner, block.sums  # sums: of the terms before each dimension
    d, n, j = terms.shape[0], 0, 0
    places[:] = 0
    while j >= 0:
        if places[j] == side:
            places[j] = 0
            j -= 1
            if j >= 0:
                places[j] += 1
            continue
        sums[j + 1] = terms[j, places[j]] if j == 0 else join_terms(form, sums[j], terms[j, places[j]])
        ceiling = sums[j + 1]
        for i in range(j + 1, d):
            ceiling = join_terms(form, ceiling, terms[i, side])
        if (-ceiling if scorings.turned else ceiling) < depth:
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
                return DENSE
            else:
                ranges[n], ranges[n + 1] = cell, cell
                n += 2
            places[j] += 1
    return n


@uncounted
def sort_block(data: Floats, low: int, high: int, grid: Grid, block: Block) -> None:
    """Arrivals low..high by cell, in order within each."""
    side, cells, starts = grid.side, block.cells, block.starts
    for j in range(data.shape[0]):
        column, least, width = data[j, low:high], grid.origin[j], grid.scale[j]
        for i in range(len(column)):
            place = (column[i] - least) * width
            place = 0.0 if not place > 0 else side - 1.0 if place >= side - 1 else place
            cells[i] = (cells[i] * side if j else 0) + np.int64(place)
    starts[:] = 0
    for i in range(high - low):
        starts[cells[i] + 1] += 1
    for cell in range(len(starts) - 1):
        starts[cell + 1] += starts[cell]
    for i in range(high - low - 1, -1, -1):  # backwards, so that starts end where they should
        cell = cells[i] + 1
        starts[cell] -= 1
        block.places[starts[cell]] = low + i
        for j in range(data.shape[0]):
            block.data[j, starts[cell]] = data[j, low + i]
    for cell in range(len(starts) - 1):
        starts[cell] = starts[cell + 1]
    starts[len(starts) - 1] = high - low


@close
def set_depth(grid: Grid, s: int, threshold: float, slack: float) -> None:
    """Find arrivals down to the threshold, or up to so much deeper; ranges stay while they are deep enough."""
    slack = slack if slack < np.inf else 0.0
    if not (threshold - 3 * slack <= grid.depths[s] <= threshold):
        grid.depths[s] = threshold - slack / 2
        grid.counts[s] = STALE


@uncounted
def lay_block(
    scorings: LaneScorings, grid: Grid, stream: Stream, low: int, high: int, late: bool, block: Block, work: Ints
) -> bool:
    """Sort arrivals low..high by cell, and find what lanes see of them; False: they are too few, or some are late."""
    if grid.side == 0 or late or high - low < len(block.starts) - 1:
        return False
    if grid.origin[0] != grid.origin[0]:
        lay_grid(stream.data, low, high, grid)
        find_terms(scorings, grid)
    sort_block(stream.data, low, high, grid, block)
    for s in range(len(grid.counts)):
        if grid.counts[s] == STALE:
            grid.counts[s] = DENSE
            if grid.depths[s] > -np.inf:
                work[3] += 1
                grid.counts[s] = find_ranges(scorings, grid, s, block)
    return True


@uncounted
def find_arrivals(
    scorings: LaneScorings,
    grid: Grid,
    block: Block,
    stream: Stream,
    low: int,
    high: int,
    sorted_: bool,  # by cell
    late: bool,
    found: Found,
    first: int,
    keys: Floats,
    work: Ints,
) -> int:
    """The arrivals low..high that reach the depths of lanes from `first` on, and those that are late.

    Returns the lane before which it stops, since so many are found that they are to be taken first.
    """
    found_keys, places, bounds, starts = found.keys, found.places, found.bounds, block.starts
    n, s = 0, first
    while s < len(bounds) - 1 and n < MANY:
        bounds[s], depth = n, grid.depths[s]
        if not sorted_ or grid.counts[s] < 0:
            n = find_dense(scorings, grid, s, stream, low, high, late, found, n, keys, work)
        else:
            for r in range(0, grid.counts[s], 2):
                begin, end = starts[grid.ranges[s, r]], starts[grid.ranges[s, r + 1] + 1]
                work[0] += end - begin
                keys_here(scorings, s, block.data, begin, end, keys)
                for i in range(end - begin):
                    found_keys[n] = keys[i]
                    places[n] = block.places[begin + i]
                    n += keys[i] >= depth  # no branch that would be guessed wrong
        s += 1
    bounds[s] = n
    work[1] += n
    return s


@close
def find_dense(
    scorings: LaneScorings,
    grid: Grid,
    s: int,
    stream: Stream,
    low: int,
    high: int,
    late: bool,
    found: Found,
    n: int,
    keys: Floats,
    work: Ints,
) -> int:
    """The same for one lane, from the keys of all arrivals, in order; they are appended to n others."""
    depth = grid.depths[s]
    work[0] += high - low
    keys_of(scorings, s, stream.data, low, high, keys)
    i = 0 if late else next_good(keys, depth, 0, high - low)
    while i < high - low:
        found.keys[n] = keys[i]
        found.places[n] = low + i
        n += not late or keys[i] >= depth or stream.stamps[low + i] < stream.now[low + i]
        i = i + 1 if late else next_good(keys, depth, i + 1, high - low)
    return n


@close
def fill(picked: Records, n: int, key: float, a: int, stream: Stream) -> None:
    """Write arrival a as a lane sees it."""
    picked[n]["key"] = key
    picked[n]["stamp"] = stream.stamps[a]
    picked[n]["now"] = stream.now[a]
    picked[n]["row"] = stream.rows[a]
