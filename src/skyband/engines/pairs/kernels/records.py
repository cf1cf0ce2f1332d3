"""What the kernels of pairs work on: the window in order of age, the K-skyband in order of rank, the queries by length.

An object has an *ordinal*: its place in the order of age, counted from the first object that there was. The window is
the slice [head, end) of arrays whose entry 0 has the ordinal `base`. A pair that is kept has a *slot* for as long as it
is; the band is three parallel arrays, best first, of which only the key, the older member's stamp and the slot move.
New pairs that reach no answer wait behind it, in no order, until somebody looks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Records = NDArray[Any]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]
Floats = NDArray[np.float64]

SLOT = np.dtype(
    [
        ("key", "f8"),  # larger is better
        ("old", "i8"),  # the older member: its stamp and serial; the pair expires with it
        ("older", "i8"),
        ("new", "i8"),  # the newer member
        ("newer", "i8"),
        ("place", "i8"),  # the older member's ordinal
        ("dom", "i8"),  # BASIC: how many dominate it
    ],
    align=True,
)
TOLD = np.dtype(
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
CHUNK = 512  # scores are computed and compared so many at a time
FAN = 16  # of the flat search tree

# facts: the numbers of one group
HEAD, END, BASE, SIZE, FREE, STAIRS, ADDED, WILD, TOLDS, NEED = range(10)
SAVED, FIRST_BLOCK, BLOCKS, SCORED, LAST_ROW, FOUND, PENDING, TICK, READ = range(10, 19)
FACTS = 19
# why a kernel stops before it is through
DONE, WINDOW_FULL, BAND_FULL, DESK_FULL, OUT_FULL, BLOCK_FULL = range(6)
# how pairs are scored
SUM, PRODUCT, GIVEN = 0, 1, 2
ABSDIFF, PLUS = 0, 1
# how new pairs are judged
SCASE, TA, BASIC, NAIVE, WHOLE = 0, 1, 2, 3, 4  # the last two prune nothing


class Window(NamedTuple):
    stamps: Ints
    serials: Ints
    data: Floats  # one row for each attribute
    rough: NDArray[np.float32]  # sums of up to three distances: the same, rounded, in three rows; else none
    most: Floats  # then: no |value| of an attribute is larger


class Band(NamedTuple):
    key: Floats
    old: Ints
    slot: Places
    crest: Ints  # the newest `old` of each FAN entries
    slots: Records
    bits: NDArray[np.uint64]  # per slot: which queries have told of it
    free: Places  # slots that nobody has
    stair_place: (
        Ints  # rising: an object below this ordinal needs a key above `stair_key` to make a new pair that lasts
    )
    stair_key: Floats
    heap: Ints
    marks: Ints  # per slot: the step that it came with


class Views(NamedTuple):
    """The queries, the shortest window first."""

    k: Ints
    length: Ints
    kth: Floats  # the key of the last of a full answer
    due: Ints  # when the answer loses a pair
    touched: NDArray[np.int8]  # net: its answer has been saved
    scoreless: Ints  # pairs without a score: differences from one query to the next
    at: Ints  # net: where its answer is saved
    held: Ints  # and how many pairs that were


class Desk(NamedTuple):
    """Room to work, shared by all groups."""

    buffer: Floats  # scores of a chunk
    other: Ints  # candidates: the index of the other member
    key: Floats
    slot: Places
    affected: Places
    before: Places
    ends: Ints
    after: Places
    left: Ints  # TA: how far the list of each attribute has been read
    right: Ints


class Blocks(NamedTuple):
    """TA: the window in blocks of age, each with sorted attributes."""

    start: Ints  # ordinals
    end: Ints
    sorted: NDArray[np.int8]  # 1: its lists are in order and its numbers tame
    values: Floats  # as the window's data, but each block of a row sorted; or all rows in the order of the first
    places: NDArray[np.int32]  # and where in the block each value comes from


class Scoring(NamedTuple):
    form: int  # SUM, PRODUCT or GIVEN
    local: NDArray[np.int8]  # of each attribute
    sign: float  # -1.0: the smallest score is best
    limit: float  # larger numbers may make scores that are none


class Stream(NamedTuple):
    """A group's share of a batch, in order of arrival."""

    stamps: Ints
    now: Ints
    rows: Ints
    eligible: NDArray[np.bool_]  # empty: all are
    values: Floats  # one row for each attribute; GIVEN: none
    given: Floats  # GIVEN: scores with all objects of the window, one arrival after another
    begins: Ints  # GIVEN: of each arrival's, as if the window's arrays began there
    wild: bool  # GIVEN: some of them are none
    serial: int  # of row 0
    scored: NDArray[np.bool_]  # empty: all; else whose pairs with earlier arrivals are scored here
