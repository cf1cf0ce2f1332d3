"""The arrays of the kernels of TMA, SMA and TSL: the queries, one group's window, work space, and what grows.

Growth: a function that may replace an array by a larger one returns it, and its caller goes on with what was returned;
kernels take and return all such arrays as one `Growing`. The capacity for objects, the grid and the sorted lists change
only between steps: the kernel returns early, and `Store.extend` (window.py) makes them larger.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import inlined

Records = NDArray[Any]
TMA, SMA, TSL = 0, 1, 2

SLOT = np.dtype(
    [
        ("stamp", "i8"),  # number in the group, or time
        ("serial", "i8"),  # row number in the stream; -1: a free place
        ("next", "i4"),  # in its cell, or of the free places
        ("before", "i4"),  # in its cell; -1: it is the first
        ("cell", "i4"),
    ],
    align=True,
)
CELL = np.dtype(
    [
        ("head", "i4"),  # its objects, oldest first
        ("tail", "i4"),
        ("start", "i4"),  # its place in the influence lists
        ("capacity", "i4"),
        ("size", "i4"),
        ("count", "i4"),  # how many objects it has
    ],
    align=True,
)
SPEC = np.dtype(
    [
        ("k", "i8"),
        ("view", "i8"),  # how many objects a search returns: k, or TSL's k_max
        ("dynamic", "i8"),  # 1: TSL adapts k_max
        ("above", "i8"),  # 1: all above the threshold
        ("threshold", "f8"),
        ("boxed", "i8"),  # 1: only objects of a box are eligible
        ("column", "i8"),  # of an expression: which one; its scores are a column behind the attributes
    ],
    align=True,
)
STATE = np.dtype(
    [
        ("key", "f8"),  # the floor: every object that ranks above it is in the run
        ("stamp", "i8"),
        ("serial", "i8"),
        ("reach", "f8"),  # the query is in the lists of all cells with at least this maxscore; NaN: of none
        ("listed", "i8"),  # how many cells that are
        ("misses", "i8"),  # objects compared without effect since its lists were made
        ("unlisted", "i8"),  # 1 + its place among the queries that are compared with every object; 0: it has lists
        ("before", "i8"),  # where its answer before this step is stored; -1: the step has not touched it
        ("held", "i8"),  # the size of that answer
        ("view", "i8"),  # as in SPEC, and TSL's k_max by the dynamic rule
        ("spent", "i8"),  # records moved in its view since it was filled
    ],
    align=True,
)
REPORTED = np.dtype([("serial", "i8"), ("was", "i8")])  # a reported object outside the run, and its place

# indices of `Window.counters`
LIVE, HEAD, FREE, OUTSIDE, LIMIT, SIDE, USED, UNLISTED, TOUCHED, STALE, BEFORE, RECENT, SORTED = range(13)
VISITED, SCORED, SEARCHES = 13, 14, 15  # work counters
# the sum of the squared sizes of cells, its share at the start (0: a new grid is due), arrivals before the next grid
CROWD, SKEW, WAIT = 16, 17, 18
COUNTERS = 19
NOWHERE = -(2**62)
NO_CELL = -1  # of objects that are not eligible; their attributes are NaN


class Programs(NamedTuple):
    """Programs that bound expressions (bounds.py). Registers are sides of the box, constants, results."""

    code: Records  # by program and step: what, three registers, the register of the result
    steps: Records
    low: Records  # by program and register
    high: Records
    odd: Records  # whether there may be NaN or null


class Queries(NamedTuple):
    """The queries, the same for every group."""

    algorithm: int
    form: int
    turned: bool  # the smallest score is best
    programs: Programs
    specs: Records
    points: Records  # of expressions: 1 if the key rises with the attribute, -1 if it falls, else 0
    weights: Records
    lows: Records  # boxes
    highs: Records


class Window(NamedTuple):
    """The valid objects of one group, and the state of each query over them."""

    slots: Records
    data: Records  # attributes; of expressions, then their keys
    order: Records  # places by age: a ring
    cells: Records
    edges: Records  # of slabs, by axis; then how many slabs it has
    state: Records
    unlisted: Records  # the queries without lists
    counters: Records
    heads: Records  # of the runs, by query
    reported_heads: Records
    tally: Records  # places used by runs, number of changes
    reported_tally: Records


class Scratch(NamedTuple):
    """Work space. Nothing in it outlives a step, except the answers before a net batch."""

    bounds: Records  # a heap of cells, by maxscore
    codes: Records
    slabs: Records  # of each axis, best first
    terms: Records
    many: Records  # slabs of each axis; then: is some factor of a product below zero?
    halves: Records  # the boxes that a box was split into
    half_bounds: Records
    ends: Records  # of each sorted list, what is not read yet
    best: Records  # the result of a search
    touched: Records  # queries whose run has changed in this step
    stale: Records  # queries with too many misses
    before: Records


class Growing(NamedTuple):
    """The arrays that may grow within a step."""

    lists: Records  # influence lists of all cells
    records: Records  # runs of all queries
    reported: Records
    changes: Records


class Stream(NamedTuple):
    """The arrivals of one group in a batch, in order."""

    data: Records
    stamps: Records
    now: Records
    rows: Records
    kinds: Records  # empty: all are inserted; deletions of unknown ids are marked here
    ids: Records  # as codes, where objects are deleted by id
    places: Records  # by code of an id: the place of its object, or -1


class Span(NamedTuple):
    """How far a call goes, and what a step is."""

    begin: int  # the first arrival
    last: int  # the clock, or the number of the last arrival
    length: int  # of the window
    serial: int  # of row 0
    opened: int  # the first serial of the batch
    joint: bool  # count windows: an arrival and the expiry that it causes are one step
    net: bool
    final: bool  # the batch ends here


@inlined
def above(key: float, stamp: int, serial: int, key2: float, stamp2: int, serial2: int) -> bool:
    """Whether the first object ranks above the second: of equal keys the newer."""
    return key > key2 or (key == key2 and (stamp > stamp2 or (stamp == stamp2 and serial > serial2)))


@inlined
def record_above(records: Records, i: int, others: Records, j: int) -> bool:
    """Whether record i ranks above record j of the others."""
    one, other = records[i], others[j]
    return above(one["key"], one["stamp"], one["serial"], other["key"], other["stamp"], other["serial"])


@inlined
def in_box(queries: Queries, s: int, data: Records, i: int) -> bool:
    """Whether object i is in the box of query s."""
    inside = True
    for j in range(queries.lows.shape[1]):
        inside &= queries.lows[s, j] <= data[i, j] <= queries.highs[s, j]
    return inside
