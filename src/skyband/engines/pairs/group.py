"""One group of pairs: the objects of its window and the kept pairs, as arrays that kernels work on.

Arrays grow here and nowhere else, to at least twice their size; so an entry is moved O(1) times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Floats, Ints
from skyband.engines.pairs.kernels.programs import CHUNK
from skyband.engines.pairs.kernels.records import (
    BASE,
    BLOCKS,
    END,
    FACTS,
    FAN,
    FIRST_BLOCK,
    FREE,
    HEAD,
    LAST_ROW,
    NEVER,
    PAIR,
    SIZE,
    STAIRS,
    UNSAFE,
    Band,
    Blocks,
    Scratch,
    State,
    Views,
    Window,
)

if TYPE_CHECKING:
    from skyband.engines.pairs.shared_window import Filled

Records = NDArray[Any]
Columns = dict[str, NDArray[Any]]
SMALLEST = 64


class Group:
    """The state of one group."""

    def __init__(
        self, width: int, d: int, K: int, k: Ints, length: Ints, *, lists: bool, near: bool, rough: bool
    ) -> None:
        """width: rows of data, of which the first d are attributes with a local function."""
        self.facts = np.zeros(FACTS, np.int64)
        self.facts[LAST_ROW] = -1
        rows = 3 if rough and d <= 3 else 0
        self.window = Window(
            np.empty(0, np.int64),
            np.empty(0, np.int64),
            np.empty((width, 0)),
            np.empty((rows, 0), np.float32),
            np.zeros(d if rows else 0),
        )
        self.columns: Columns = {}  # by index: what a scoring reads that no kernel computes
        self.lists, self.near = lists, near  # TA: sorted lists are kept, of the first attribute only
        self.blocks = Blocks(
            np.empty(0, np.int64),
            np.empty(0, np.int64),
            np.empty(0, np.int8),
            np.empty((d, 0)),
            np.empty((d, 0), np.int32),
        )
        self.saved = np.empty(0, PAIR)
        self.filled: Filled | None = None  # of arrays of the window that other scorings have too
        self.first = 0  # then: which row of theirs is the first of the data
        self.open = False  # within a batch of net changes
        self.now = -NEVER  # the number of the last arrival, or the clock
        self.band = _empty_band()
        self.set_queries(K, k, length)
        self.grow_band(SMALLEST)

    def set_queries(self, K: int, k: Ints, length: Ints) -> None:
        """Serve other queries, which have reported nothing."""
        size = len(k)
        words = (size + 63) // 64
        self.views = Views(
            k,
            length,
            np.full(size, -np.inf),
            np.full(size, NEVER),
            np.zeros(size, np.int8),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size + 1, np.int64),
            np.zeros(size, np.int64),
        )
        bits = np.zeros((len(self.band.pairs), words), np.uint64)
        self.band = self.band._replace(bits=bits, heap=np.empty(2 * K, np.int64))

    def set_heads(self, now: int) -> None:
        """Find where the window of each view begins (NAIVE)."""
        first = np.searchsorted(self.window.stamps[self.live], now - self.views.length, "right")
        self.views.head[:] = self.facts[BASE] + self.facts[HEAD] + first

    @property
    def state(self) -> State:
        return State(self.facts, self.window, self.band, self.views, self.blocks, self.saved)

    @property
    def live(self) -> slice:
        """The valid objects, in the window's arrays."""
        return slice(int(self.facts[HEAD]), int(self.facts[END]))

    @property
    def due(self) -> int:
        return int(self.views.due.min())

    # --- capacity

    def grow_window(self, more: int) -> None:
        """Make sure that so many objects can follow: move the window to the front, or into larger arrays."""
        head, end = int(self.facts[HEAD]), int(self.facts[END])
        live = end - head
        size = len(self.window.stamps)
        if end + more <= size:
            return
        if live + more > size // 2:
            size = max(SMALLEST, 2 * (live + more))
        self.move_window(size)

    def move_window(self, size: int) -> None:
        """Move the valid objects to the front of new arrays of this size."""
        head, end, base = (int(self.facts[fact]) for fact in (HEAD, END, BASE))
        stamps, serials, data, rough, _ = self.window
        most = np.fmax.reduce(np.abs(data[: len(self.window.most), head:end]), axis=1, initial=0.0)
        self.window = Window(
            _moved(stamps, head, end, size),
            _moved(serials, head, end, size),
            _moved(data, head, end, size),
            _moved(rough, head, end, size),
            most,
        )
        self.window.rough[len(most) :] = 0
        self.columns = {name: _moved(column, head, end, size) for name, column in self.columns.items()}
        if self.lists:
            values, places = self.blocks.values, self.blocks.places
            self.blocks = self.blocks._replace(
                values=_moved(values, head, end, size), places=_moved(places, head, end, size)
            )
        self.facts[HEAD], self.facts[END], self.facts[BASE] = 0, end - head, base + head
        self.filled = None

    def read_from(self, other: Group, data: Floats, *, same: bool) -> None:
        """Read the arrays of another group, which has this one's objects last; data: its rows that are this one's.

        same: rounded numbers are of the same rows.
        """
        head, end = int(self.facts[HEAD]), int(self.facts[END])
        shift, size = int(other.facts[END]) - end, len(other.window.stamps)
        rough, most = self.window.rough, self.window.most
        if len(most) and same and len(most) == len(other.window.most):
            rough, most = other.window.rough, other.window.most
        elif len(most):
            rough = _moved(rough, head, end, size, head + shift)
            rough[len(most) :] = 0
        self.window = Window(other.window.stamps, other.window.serials, data, rough, most)
        if self.lists:
            values, places = (
                _moved(array, head, end, size, head + shift) for array in (self.blocks.values, self.blocks.places)
            )
            self.blocks = self.blocks._replace(values=values, places=places)
        self.facts[HEAD], self.facts[END], self.facts[BASE] = head + shift, end + shift, self.facts[BASE] - shift

    def grow_band(self, need: int) -> None:
        """Make capacity for so many pairs."""
        band, old, unused = self.band, len(self.band.key), int(self.facts[FREE])
        size = max(need, 2 * old)
        free = np.empty(size, np.int32)
        free[:unused] = band.free[:unused]
        free[unused : unused + size - old] = np.arange(size - 1, old - 1, -1)
        self.facts[FREE] += size - old
        self.band = Band(
            key=_moved(band.key, 0, old, size),
            old=_moved(band.old, 0, old, size),
            slot=_moved(band.slot, 0, old, size),
            newest=_moved(band.newest, 0, len(band.newest), size // FAN + 2),
            pairs=_moved(band.pairs, 0, old, size),
            bits=np.concatenate([band.bits, np.zeros((size - old, band.bits.shape[1]), np.uint64)]),
            free=free,
            stair_place=_moved(band.stair_place, 0, old, size),
            stair_key=_moved(band.stair_key, 0, old, size),
            heap=band.heap,
            tick=np.zeros(size, np.int64),
        )

    def grow_saved(self, need: int) -> None:
        if need > len(self.saved):
            self.saved = _moved(self.saved, 0, len(self.saved), max(need, 2 * len(self.saved)))

    # --- TA

    def open_block(self, limit: float) -> None:
        """Begin a block for the next objects; the one before gets its lists."""
        first, last = int(self.facts[FIRST_BLOCK]), int(self.facts[BLOCKS])
        start = int(self.facts[BASE] + self.facts[END])
        if last > first:
            self.sort_block(last - 1, limit)
        if last == len(self.blocks.start):
            starts, ends, done, values, places = self.blocks
            size = max(8, 2 * (last - first + 1))
            starts, ends, done = (_moved(array, first, last, size) for array in (starts, ends, done))
            self.blocks = Blocks(starts, ends, done, values, places)
            first, last = 0, last - first
        self.blocks.start[last] = self.blocks.end[last] = start
        self.blocks.sorted[last] = 0
        self.facts[FIRST_BLOCK], self.facts[BLOCKS] = first, last + 1

    def sort_blocks(self, limit: float) -> None:
        """Sort again the blocks, but for the newest, that late objects have changed."""
        for block in range(int(self.facts[FIRST_BLOCK]), int(self.facts[BLOCKS]) - 1):
            if not self.blocks.sorted[block] and self.blocks.start[block] >= self.facts[BASE]:
                self.sort_block(block, limit)

    def sort_block(self, block: int, limit: float) -> None:
        base = int(self.facts[BASE])
        begin, end = int(self.blocks.start[block]) - base, int(self.blocks.end[block]) - base
        if begin < 0:  # its first objects have expired: its lists are not read again
            return
        data = self.window.data[: len(self.blocks.values), begin:end]
        if self.near:  # whole rows by the first attribute
            order = np.repeat(np.argsort(data[:1], axis=1, kind="stable"), len(data), axis=0)
        else:
            order = np.argsort(data, axis=1, kind="stable")
        self.blocks.places[:, begin:end] = order
        self.blocks.values[:, begin:end] = np.take_along_axis(data, order, axis=1)
        self.blocks.sorted[block] = bool((np.abs(data) <= limit).all())

    # --- restored

    def fill(self, stamps: Ints, serials: Ints, data: Floats, limit: float) -> None:
        """Take these objects, the oldest first."""
        self.grow_window(len(stamps))
        self.facts[HEAD], self.facts[END], self.facts[BASE] = 0, len(stamps), 0
        self.window.stamps[: len(stamps)], self.window.serials[: len(stamps)] = stamps, serials
        self.window.data[:, : len(stamps)] = data
        if len(self.window.rough):
            attributes = data[: len(self.window.most)]
            with np.errstate(over="ignore"):
                self.window.rough[: len(attributes), : len(stamps)] = attributes
            self.window.most[:] = np.fmax.reduce(np.abs(attributes), axis=1, initial=0.0)
        unsafe = np.flatnonzero(~(np.abs(data[: len(self.blocks.values)]) <= limit).all(axis=0))
        self.facts[UNSAFE] = 1 + int(unsafe[-1]) if len(unsafe) else 0
        self.set_heads(int(stamps[-1]) if len(stamps) else 0)

    def fill_band(self, pairs: Records, bits: NDArray[np.uint64]) -> None:
        """Take these pairs, best first."""
        size = len(pairs)
        if size > len(self.band.key):
            self.grow_band(size)
        self.band.pairs[:size], self.band.bits[:size] = pairs, bits
        self.band.key[:size], self.band.old[:size], self.band.slot[:size] = pairs["key"], pairs["old"], np.arange(size)
        unused = len(self.band.pairs) - size
        self.band.free[:unused] = np.arange(size + unused - 1, size - 1, -1)
        self.facts[FREE], self.facts[SIZE], self.facts[STAIRS] = unused, size, 0

    @property
    def pairs(self) -> Records:
        """The kept pairs, best first."""
        kept: Records = self.band.pairs[self.band.slot[: self.facts[SIZE]]]
        return kept

    @property
    def nbytes(self) -> int:
        arrays: tuple[Records, ...] = (*self.window, *self.band, *self.blocks, *self.views)
        arrays += (self.saved, *self.columns.values())
        return sum(int(array.nbytes) for array in arrays)


def _empty_band() -> Band:
    whole, floats, places = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int32)
    bits = np.empty((0, 0), np.uint64)
    return Band(floats, whole, places, whole, np.empty(0, PAIR), bits, places, whole, floats, whole, whole)


def empty_scratch(queries: int, d: int, width: int) -> Scratch:
    return Scratch(
        buffer=np.empty(CHUNK),
        gathered=np.empty((width, CHUNK)),
        other=np.empty(SMALLEST, np.int64),
        key=np.empty(SMALLEST),
        slot=np.empty(SMALLEST, np.int32),
        best=np.empty(SMALLEST),
        affected=np.empty(queries, np.int32),
        before=np.empty(SMALLEST + queries, np.int32),
        after=np.empty(SMALLEST + queries, np.int32),
        left=np.empty(d, np.int64),
        right=np.empty(d, np.int64),
    )


def _moved(array: Records, begin: int, end: int, size: int, to: int = 0) -> Any:
    """Copy a part of an array (of its last dimension) to one of this size, to its front or to index `to`."""
    made = np.empty((*array.shape[:-1], size), array.dtype)
    made[..., to : to + end - begin] = array[..., begin:end]
    return made


def ids_of(pairs: Records) -> Records:
    """The serials of both members of each pair."""
    ids = np.empty(len(pairs), [("older", "i8"), ("newer", "i8")])
    ids["older"], ids["newer"] = pairs["older"], pairs["newer"]
    return ids


def gathered(columns: Columns, places: Records) -> Columns:
    return {name: column[places] for name, column in columns.items()}


def with_rows(column: Records | None, rows: Records, at: int, size: int) -> Records:
    """Write values to a column from index `at` on; it takes another type when they need one."""
    if column is None:
        column = np.empty(size, rows.dtype)
    elif column.dtype != rows.dtype:
        try:
            wider = np.result_type(column.dtype, rows.dtype)
        except TypeError:
            wider = np.dtype(object)
        column = column.astype(wider)
    column[at : at + len(rows)] = rows
    return column
