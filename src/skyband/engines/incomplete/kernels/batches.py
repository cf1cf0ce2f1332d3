"""Arguments of the kernels of incomplete streams, and the reasons for which they stop.

Growing arrays: a kernel never allocates. Before each step it makes sure that every array has capacity for the whole
step; if one has not, it returns which (`CHANGES` ... `LISTS`), the caller enlarges that array and calls again, and the
kernel goes on from `facts[VISIT]` and `facts[ARRIVAL]`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.records import NEVER

Records = NDArray[Any]
Floats = NDArray[np.float64]

VIEW = np.dtype([("length", "i8"), ("k", "i8"), ("most", "i8")], align=True)  # most: a front is cut to it
QUERY = np.dtype([("k", "i8"), ("view", "i8"), ("before", "i8")], align=True)  # before: its k when last reported
STORED_ROW = np.dtype(  # object: its number within the group
    [("value", "f8"), ("stamp", "i8"), ("serial", "i8"), ("part", "i4"), ("object", "i4")], align=True
)
ONCE, LAST, MOST, TOTAL = range(4)  # repeat: None, "last", "max", "sum"
#: of parts that are not named in advance, which have one value together: the sum or the largest of all rows of an
#: object, or of the last ones of each part
ALL_TOTAL, ALL_MOST, LAST_TOTAL, LAST_MOST = range(4, 8)
TOTALS = (TOTAL, ALL_TOTAL, LAST_TOTAL)
# why a kernel stops: it is done, an array is full, or the caller has to choose which rows of a group stay
DONE, CHANGES, MEMBERS, RUNS, OBJECTS, LISTS, PRUNE = range(7)
# facts: single numbers that outlive a call. First those of all engines, then those of linked rows and of SWEEP
VISIT, ARRIVAL, WRITTEN, TOUCHED, MEMBERS_USED, REFILLED = range(6)
FREE_ROW, FREE_OBJECT, OBJECT_COUNT, ROW_COUNT, WAITING, LOWEST_BIT = range(6, 12)  # the last: of sums
FREE_COUNT, SWEPT, JOINED = range(6, 9)
FACTS = 16
NOWHERE = -NEVER  # a stamp before all others


class Queries(NamedTuple):
    """The queries of an engine, and the options that they share."""

    views: Records  # the lengths of their windows, from the shortest to the longest
    each: Records
    joint: bool  # count windows: an arrival and what it pushes out are one step
    net: bool
    repeat: int
    d: int  # parts
    prunes: bool  # stop with PRUNE when a group has outgrown its limit
    least: int  # rows that a group may have without a sweep
    margin: int  # a step makes at most so many changes


class Batch(NamedTuple):
    """Arrivals, sorted by group and in order within a group; and columns by row of the batch."""

    names: Records
    parts: Records
    values: Records
    stamps: Records
    now: Records
    rows: Records
    brings: Records  # whether it brings a part; else it only moves the window
    links: Records  # by row: the object as the register has found it (SWEEP)
    owners: Records  # by row: the object as the engine knows it (SWEEP)
    alive: Records  # by row: is it kept now?
    serial: int  # of row 0
    more: bool  # the batch goes on with the next call


class Output(NamedTuple):
    changes: Records
    step: Records  # one record: what the changes of a step have in common
