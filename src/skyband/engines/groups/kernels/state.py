"""Arrays of the kernels of groups of rows: what is kept of rows and of objects, a batch, and the events it makes.

An object has a slot; its valid rows are in a pool, chained in the order in which they expire. Aggregates are columns of
numbers by slot: exact sums (`words`), rows that were picked (`picks`: the largest, the first, the last) and counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.records import NEVER

Records = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ROW = np.dtype([("stamp", "i8"), ("serial", "i8"), ("slot", "i4"), ("next", "i4")], align=True)
SLOT = np.dtype(  # stamp, serial: of its newest row; dirty: it has changed within an open batch, and was gone
    [
        ("stamp", "i8"),
        ("serial", "i8"),
        ("count", "i8"),
        ("group", "i4"),
        ("dirty", "i1"),
        ("gone", "i1"),
        ("cold", "i1"),  # whether all of its rows are below the bound, so that none is in its chain
    ],
    align=True,
)
PICK = np.dtype([("value", "f8"), ("stamp", "i8"), ("serial", "i8")], align=True)
#: oldest, newest: of its rows, in count windows; last: the serial of its last arrival, and its number; of a session,
#: waiting: its rows that have not been silent for the gap, oldest: the chain of the others
GROUP = np.dtype(
    [("rows", "i8"), ("last", "i8"), ("now", "i8"), ("waiting", "i8"), ("oldest", "i4"), ("newest", "i4")], align=True
)
MEASURE = np.dtype(  # an aggregate. column: of `values`; first, end: of `words`, or first: of `picks` and `distinct`
    [("function", "i8"), ("column", "i8"), ("first", "i8"), ("end", "i8"), ("lowest", "i8"), ("chain", "i8")],
    align=True,
)
ENTRY = np.dtype([("bits", "i8"), ("owner", "i8"), ("count", "i8")], align=True)  # a distinct value of an object
COUNT, SUM, MOST, FIRST, LAST, DISTINCT, FADED, LEVEL = range(8)  # the smallest is the largest of the negated
COUNTED, TIMED, KEYED, ENDLESS, SESSION = range(5)  # windows: Last(n), Last(t), UntilDeleted(), Ever(), Session(gap)
DONE, FULL, MIDDLE = range(3)  # why a kernel stops: it is done, events are full, and that in the middle of a step
#: whose columns are kept: of each object's newest row, of rows that may decide, of all; or it is found out afterwards
NEWEST, CHAIN, ALL, LATER = range(4)
#: single numbers that outlive a call
NEXT, STEP, EVENTS, FREE, OLDEST, TAIL, LATE, DIRTY, ENTRIES, LIVE, OPEN, UNKNOWN, OBJECTS, USED, WRITTEN = range(15)
HOT, MOST_HOT = 15, 16  # how many objects are not cold, and with how many the bound is raised
FACTS = 17
BEFORE = -NEVER  # a stamp before all others


class State(NamedTuple):
    """What is kept."""

    rows: Records  # from USED on they have never been used
    values: Floats  # by row and column: arguments of aggregates
    links: Records  # by row: two for each chain, three over UntilDeleted()
    slots: Records
    ends: Records  # by slot: the oldest and the newest of each chain; of a heap its top
    picks: Records
    words: Ints
    distinct: Ints
    table: Records  # of distinct values
    groups: Records
    measures: Records
    late: Records  # rows that came out of order, as a heap by their stamps
    dirty: Records  # slots that have changed within an open batch
    places: Records  # over UntilDeleted(), by code of an id: its row
    bound: Floats  # one number: rows below it are in no chain of the largest (kernels/bound.py)
    facts: Ints


class Window(NamedTuple):
    """How rows leave, and what is noted of them."""

    mode: int
    length: int
    net: bool
    decides: int  # the pick whose row decides kept columns; -1: the newest row
    ages: int  # the chain of an object's rows by age; -1: there is none
    keeps: int  # whose columns are kept


class Batch(NamedTuple):
    """Arrivals in order, and the clock after them."""

    rows: Ints  # of the batch
    groups: Ints
    slots: Ints
    stamps: Ints
    now: Ints
    values: Floats  # by arrival and column
    eligible: Records  # empty: all are
    ids: Ints  # over UntilDeleted(): codes
    deletes: Records  # which rows delete an id; empty: none does
    joined: Records  # over UntilDeleted(): does the step go on with the next arrival? empty: each is a step
    replaced: Ints  # room: over UntilDeleted(), by arrival, the row that it takes the place of
    weights: Ints  # over Ever(): how many rows each stands for; empty: one
    alive: Records  # by row of the batch: are its columns kept?
    serial: int  # of row 0
    clock: int


class Events(NamedTuple):
    """Objects after steps that changed them, in order of steps."""

    slot: Records
    step: Ints
    row: Ints  # the step's arrival, or the last one of the group before it; -1: none in this batch
    instant: Ints
    stamp: Ints  # of the newest row
    serial: Ints
    decider: Ints  # the row that decides kept columns; -1: no row is valid
    gone: Records  # whether it was without rows since it was ranked last
    values: Floats  # by aggregate


class Event(NamedTuple):
    """One event, besides the object as it is after it."""

    row: int
    instant: int
    gone: bool
    several: bool  # whether its step may have several events of one object
    place: int


class Live(NamedTuple):
    """A ranking, as one is kept up."""

    ranks: Records
    heads: Records  # by group
    slots: Records
    log: Ints  # how many objects were noted in a step, then which
    out: Records  # changes
    k: int
    measure: int  # the aggregate that is the score itself; -1: objects are ranked by events, after their evaluation
    sign: float  # of the key
    moves: bool  # whether members that stay are reported where they have changed


def empty_events(size: int, measures: int) -> Events:
    """Room for so many events."""
    whole: Any = [np.empty(size, np.int64) for _ in range(6)]
    step, row, instant, stamp, serial, decider = whole
    gone, values = np.zeros(size, np.bool_), np.empty((measures, size))
    return Events(np.empty(size, np.int32), step, row, instant, stamp, serial, decider, gone, values)
