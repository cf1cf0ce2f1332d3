"""Records and arrays that the kernels of uncertain streams work on.

Arrays grow in one place, the kernel `take_groups` (steps.py): all that it calls makes no arrays, and returns early with
what it needs. So no references are counted on the way (at 5 ns each, 70 a step, they were half of the time).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, part, uncounted
from skyband.kernels.records import make_room

Records = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TUPLE = np.dtype(
    [
        ("key", "f8"),
        ("p", "f8"),  # that it exists; in an answer: the answer's probability
        ("stamp", "i8"),
        ("serial", "i8"),
        ("mark", "i8"),  # in a window: its slot, or -1; in a front: its position by age; in an answer: the rank held
    ],
    align=True,
)
NAMED = np.dtype(  # of alternatives that exclude each other
    [*((name, TUPLE[name]) for name in TUPLE.names or ()), ("name", "i8"), ("named", "i8")], align=True
)
RUN = np.dtype([("start", "i8"), ("room", "i8"), ("head", "i8"), ("size", "i8")], align=True)
GROUP = np.dtype(
    [
        ("base", "i8"),  # the position of the oldest kept tuple; the next newer one has one more
        ("level", "f8"),  # the front has all kept tuples with this key or a better one; NaN: there is no front
        ("target", "i8"),  # how many tuples a sweep leaves in the front
        ("since", "i8"),  # steps since the last sweep
        ("kept", "i8"),  # tuples that the last sweep has left in the window
        ("newest", "i8"),  # the largest stamp
        ("now", "i8"),  # of the last step
        ("due", "i8"),  # no answer changes by time alone before this instant
        ("open", "i8"),  # 1: within a batch that is reported later
    ],
    align=True,
)
VIEW = np.dtype(  # of one group for one query
    [
        ("first", "i8"),  # the position of the oldest valid tuple
        ("floor", "f8"),  # the lowest key of the prefix that the answer was read from: worse ones cannot change it
        ("guess", "i8"),  # tuples that the last walk has passed, but one
        ("due", "i8"),  # no tuple of the prefix expires before this instant
        ("low", "i8"),  # the largest stamp that has expired
    ],
    align=True,
)
QUERY = np.dtype([("k", "i8"), ("length", "i8"), ("threshold", "f8"), ("bit", "i8")], align=True)  # bit: its first
CHANGE = np.dtype(
    [
        ("key", "f8"),
        ("probability", "f8"),
        ("stamp", "i8"),
        ("serial", "i8"),
        ("instant", "i8"),
        ("row", "i8"),  # -1: a step without an arrival of the kernel's own
        ("visit", "i4"),
        ("rank", "i4"),
        ("query", "i2"),
        ("diff", "i1"),
        ("first", "i1"),
    ],
    align=True,
)
LOOP = np.dtype(  # where the loop over steps is
    [
        ("visit", "i8"),
        ("started", "i8"),  # 0: the visit has not begun
        ("stage", "i8"),  # what is next
        ("block", "i8"),  # the first arrival that is not in the window yet
        ("arrival", "i8"),  # the next one
        ("query", "i8"),  # the next one of this stage
        ("reading", "i8"),  # the query whose answer is to be read again, or -1
        ("instant", "i8"),  # of the step that it is read for, and the row of its arrival, or -1
        ("row", "i8"),
        ("slotted", "i8"),  # 1: an arrival of the block has a slot
        ("need", "i8"),  # how much more of what is needed
        ("staying", "i8"),  # arrivals that a sweep has left
    ],
    align=True,
)


class Arena(NamedTuple):
    """Records in runs, each with free places on both sides."""

    records: Records  # TUPLE, or NAMED
    runs: Records  # RUN
    used: Ints  # [places given to runs]


class Kept(NamedTuple):
    """Tuples that can still matter, of all groups."""

    window: Arena  # a group's tuples, oldest first
    front: Arena  # copies of its best ones, best first, complete down to a level
    groups: Records  # GROUP
    views: Records  # VIEW, by group and query
    most: Floats  # by group: no kept tuple is more probable


class Reported(NamedTuple):
    """Answers as they were reported, and the changes to report.

    A tuple that has entered an answer has a slot, a row of bits: one a query (u-kranks: one a rank of each query).
    """

    answers: Arena  # by group and query
    entered: NDArray[np.uint64]  # the rows of bits
    free: Ints  # slots to use again
    slots: Ints  # [slots given out, free ones of them]
    changes: Records  # CHANGE
    written: Ints  # [changes by steps without an arrival, changes]


class Rivals(NamedTuple):
    """Working memory of a walk over alternatives that exclude each other: groups of them, in order of their best."""

    table: Ints  # by hash of a name: a tuple passed, + 1
    used: Ints  # of each tuple passed: its place in the table, or -1
    of: Ints  # of each tuple passed: its group
    before: Ints  # the member of its group that was passed before it, or -1
    last: Ints  # of each group: its last member
    beyond: Ints  # the last member of any group before it
    sums: Floats  # of its members' probabilities
    rows: Floats  # before each group, and after the last one: as Walk.r
    own: Floats  # the same without the group of one tuple: before it, and after each later group
    picked: Ints  # u-topk: the member that the best choice of j has of a group, or -1
    others: Ints  # the same for `own`
    best: Ints  # the best answer so far
    one: Ints  # two choices that are compared
    two: Ints


class Batch(NamedTuple):
    """Arrivals, group by group."""

    keys: Floats
    probabilities: Floats
    stamps: Ints
    now: Ints
    rows: Ints
    visits: Records  # VISIT, each group's slice
    serial: int  # of row 0
    names: Ints | None = None  # of alternatives that exclude each other
    named: NDArray[np.bool_] | None = None  # which of them have a name
    rivals: Rivals | None = None  # memory of walks over them


class Rules(NamedTuple):
    """The queries, and how they are served."""

    queries: Records  # QUERY
    widest: int  # the query with the longest window
    k: int  # the largest one
    semantics: int
    timed: bool
    net: bool
    more: bool  # the batch goes on with the next arrivals
    drops: bool  # sweeps drop tuples
    block: int  # arrivals that are taken before they join the window
    least: int  # tuples in a front, and in a window before it is swept


class Walk(NamedTuple):
    """Working memory of a walk, and its result: the answer in order of rank."""

    at: Ints  # of each answer: its place in the front
    rank: Ints  # the rank held, or 0
    chance: Floats  # its probability
    result: Ints  # PASSED, VALID, ENOUGH, FOUND
    r: Floats  # exactly j of those passed exist (Eq. 2); u-topk: the best choice of j of them
    best: Floats  # u-kranks: the largest chance to hold each rank; pk-topk: the largest chances
    chances: Floats  # pk-topk, pt-k: of each tuple passed, to be among the first k
    places: Ints  # of each valid tuple passed: its place in the front
    chosen: Ints  # u-kranks: the best tuple for each rank; u-topk: bits of each tuple, the choices that it is in
    most: Floats  # [no tuple below is more probable]
    rivals: Rivals | None  # where alternatives exclude each other


class Work(NamedTuple):
    """Working memory of a push."""

    affected: NDArray[np.bool_]  # queries whose answer is to be read again
    slots: Ints  # of the arrivals of a block, or -1
    staying: Ints  # arrivals of a block that a sweep leaves
    front: Arena  # one run, in which a sweep ranks tuples
    fresh: Records  # one record, on its way into a front
    walk: Walk


class Step(NamedTuple):
    """The step that a change belongs to."""

    visit: int
    query: int
    instant: int
    row: int


@part
def grown(arena: Arena, r: int, more: int) -> Arena:
    """The arena with at least `more` free places on both sides of a run."""
    return Arena(make_room(arena.records, arena.runs, r, arena.used, more), arena.runs, arena.used)


@uncounted
def shift(records: Records, begin: int, to: int, size: int) -> None:
    if begin < to:
        for i in range(size - 1, -1, -1):
            records[to + i] = records[begin + i]
    else:
        for i in range(size):
            records[to + i] = records[begin + i]


@close
def write_tuple(records: Records, to: int, batch: Batch, i: int, mark: int) -> None:
    """An arrival as a record."""
    one = records[to]
    one["key"] = batch.keys[i]
    one["p"] = batch.probabilities[i]
    one["stamp"] = batch.stamps[i]
    one["serial"] = batch.serial + batch.rows[i]
    one["mark"] = mark
    write_name(records, to, batch.names, batch.named, i)


@uncounted
def write_name(records: Records, to: int, names: Any, named: Any, i: int) -> None:
    """The name of an alternative; Numba leaves the branch out where records have none."""
    if names is not None:
        records[to]["name"] = names[i]
        records[to]["named"] = named[i]
