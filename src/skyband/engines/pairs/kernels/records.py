"""Arrays that the kernels of pairs work on: the window by age, the kept pairs by rank, the queries by window length.

An object has an *ordinal*: its place in the order of age, counted from the first object of the group. The window is the
slice [head, end) of arrays whose entry 0 has the ordinal `base`. A kept pair has a *slot* as long as it is kept. The
band is three parallel arrays, best first: key, stamp of the older member and slot. New pairs that enter no answer are
pending: they stand behind the band in no order until it is read. A *view* is a query in the order of window lengths.

No kernel grows an array. It stops before it changes anything, returns how far it came and which array is full (the
number of entries it needs in facts[NEED]); the engine grows that array and calls again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.pairs.kernels.programs import Program

Records = NDArray[Any]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]
Floats = NDArray[np.float64]

PAIR = np.dtype(
    [
        ("key", "f8"),  # larger is better
        ("old", "i8"),  # the older member: its stamp and serial; the pair expires with it
        ("older", "i8"),
        ("new", "i8"),  # the newer member
        ("newer", "i8"),
        ("place", "i8"),  # the older member's ordinal
        ("dom", "i8"),  # BASIC: number of dominators
    ],
    align=True,
)
CHANGE = np.dtype(
    [
        ("key", "f8"),
        ("old", "i8"),
        ("older", "i8"),
        ("new", "i8"),
        ("newer", "i8"),
        ("instant", "i8"),  # of the step: the number of its arrival, or a time
        ("row", "i8"),  # of the step's arrival, or of the group's last one before it; -1: none in this batch
        ("query", "i4"),
        ("diff", "i1"),
        ("first", "i1"),
        ("alone", "i1"),  # a step of time, with no arrival
    ],
    align=True,
)
NEVER = np.iinfo(np.int64).max
FAN = 16  # entries of the band below a node of the flat search tree

# facts: the numbers of one group
HEAD, END, BASE = 0, 1, 2  # the window
SIZE, PENDING, FREE, ADDED, STAIRS = 3, 4, 5, 6, 7  # the band; ADDED: pairs since it was pruned
UNSAFE = 8  # 1 + the ordinal of the newest object with numbers whose pairs may have no score
REPORTED, SAVED, NEED = 9, 10, 11  # entries written to `out` and `saved`; entries needed where one was full
FIRST_BLOCK, BLOCKS = 12, 13  # TA
FOUND = 14  # 1 + the candidates of the arrival at which a kernel stopped; 0: not searched
TICK, LAST_ROW = 15, 16  # the number of the step, the row of the last arrival
SCORED, READS = 17, 18  # scores computed; answers read since the band changed
FACTS = 19
# why a kernel stops
DONE, WINDOW_FULL, BAND_FULL, SCRATCH_FULL, OUT_FULL, BLOCK_FULL = range(6)
# how pairs are scored
SUM, PRODUCT, GIVEN, TYPED, LARGEST, SQUARES = range(6)  # TYPED: by a program; SQUARES: their sum
ABSDIFF, PLUS = 0, 1
# how new pairs are tested
SCASE, TA, BASIC, NAIVE, WHOLE = 0, 1, 2, 3, 4  # WHOLE: all pairs are kept


class Window(NamedTuple):
    stamps: Ints
    serials: Ints
    data: Floats  # one row for each attribute, then what the condition on pairs reads
    rough: NDArray[np.float32]  # sums of up to three distances: the same, rounded, in three rows; else none
    most: Floats  # then: no |value| of an attribute is larger


class Band(NamedTuple):
    key: Floats
    old: Ints
    slot: Places
    newest: Ints  # the newest `old` of each FAN entries
    pairs: Records  # by slot
    bits: NDArray[np.uint64]  # by slot: the views that have reported the pair
    free: Places  # free slots
    stair_place: Ints  # the K-staircase: rising ordinals; a new pair of an object below one needs a key above its
    stair_key: Floats
    heap: Ints
    tick: Ints  # by slot: the step that made the pair


class Views(NamedTuple):
    """The queries, the shortest window first."""

    k: Ints
    length: Ints
    kth: Floats  # the key of the last of a full answer
    due: Ints  # when the answer loses a pair
    touched: NDArray[np.int8]  # net changes: its reported answer has been saved
    saved_at: Ints  # then: where, and its number of pairs
    saved_size: Ints
    scoreless: Ints  # pairs without a score: differences from one view to the next
    head: Ints  # NAIVE: the ordinal of the first valid object


class Blocks(NamedTuple):
    """TA: the window in blocks of age, each with sorted attributes."""

    start: Ints  # ordinals
    end: Ints
    sorted: NDArray[np.int8]  # 1: its lists are in order and all its pairs have scores
    values: Floats  # as the window's data, but each block of a row sorted; or all rows in the order of the first
    places: NDArray[np.int32]  # where in the block each value comes from


class State(NamedTuple):
    """One group."""

    facts: Ints
    window: Window
    band: Band
    views: Views
    blocks: Blocks
    saved: Records  # net changes: reported answers of the views that the batch has touched


class Scratch(NamedTuple):
    """Working memory, shared by all groups."""

    buffer: Floats  # scores of a chunk
    gathered: Floats  # data of a chunk of candidates
    other: Ints  # candidates: the index of the other member
    key: Floats
    slot: Places
    best: Floats  # NAIVE: the K best keys
    affected: Places  # views whose answer may change
    before: Places  # slots that leave an answer, or all of a reported one
    after: Places
    left: Ints  # TA: how far the list of each attribute has been read
    right: Ints


class Scoring(NamedTuple):
    form: int  # SUM, PRODUCT, GIVEN, TYPED, LARGEST or SQUARES
    local: NDArray[np.int8]  # of each attribute; none: a program or NumPy computes it
    sign: float  # -1.0: the smallest score is best
    limit: float  # numbers beyond it may make pairs without a score
    program: Program
    weights: Floats  # of the local functions, or of their squares; none: all are 1


class Rules(NamedTuple):
    """What all groups of an engine have in common."""

    scoring: Scoring
    on: Program  # the condition on a pair
    algorithm: int
    K: int  # the largest k
    block_size: int  # TA: objects
    timed: bool
    net: bool


class Stream(NamedTuple):
    """A group's arrivals of a batch, in order."""

    stamps: Ints
    now: Ints
    rows: Ints
    eligible: NDArray[np.bool_]  # empty: all are
    values: Floats  # as the window's data
    given: Floats  # GIVEN: scores with all objects of the window, one arrival after another
    begins: Ints  # GIVEN: where each arrival's scores would begin if entry 0 of the window had one
    unsafe: bool  # GIVEN: some scores are NaN
    joined: NDArray[np.bool_]  # GIVEN: which of them are pairs; empty: all
    serial: int  # of row 0
    scored: NDArray[np.bool_]  # empty: all; else the arrivals whose pairs with earlier ones are scored here


class Arrival(NamedTuple):
    """One arrival and its place in the window."""

    values: Floats
    given: Floats
    begin: int  # as in Stream
    unsafe: bool
    joined: NDArray[np.bool_]  # as in Stream
    at: int  # it belongs before this index
    stamp: int
    serial: int
    now: int
