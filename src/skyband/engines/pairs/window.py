"""One group of pairs: the objects of its window and the K-skyband of their pairs, as arrays that kernels work on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Floats, Ints
from skyband.engines.pairs.kernels.records import (
    BASE,
    BLOCKS,
    CHUNK,
    END,
    FACTS,
    FAN,
    FIRST_BLOCK,
    FREE,
    HEAD,
    LAST_ROW,
    NEVER,
    SIZE,
    SLOT,
    STAIRS,
    WILD,
    Band,
    Blocks,
    Desk,
    Views,
    Window,
)

Records = NDArray[Any]
Columns = dict[str, NDArray[Any]]
SMALLEST = 64


class Store:
    """Arrays that grow here, and only here."""

    def __init__(self, width: int, K: int, k: Ints, length: Ints, *, lists: bool, near: bool, rough: bool) -> None:
        self.facts = np.zeros(FACTS, np.int64)
        self.facts[LAST_ROW] = -1
        rows = 3 if rough and width <= 3 else 0
        self.window = Window(
            np.empty(0, np.int64),
            np.empty(0, np.int64),
            np.empty((width, 0)),
            np.empty((rows, 0), np.float32),
            np.zeros(width),
        )
        self.columns: dict[str, NDArray[Any]] = {}  # what a scoring reads that no kernel can compute, by index
        self.lists, self.near = lists, near  # TA: does it keep lists, of the first attribute only?
        self.blocks = Blocks(
            np.empty(0, np.int64),
            np.empty(0, np.int64),
            np.empty(0, np.int8),
            np.empty((width, 0)),
            np.empty((width, 0), np.int32),
        )
        self.saved = np.empty(0, SLOT)
        self.open = False  # within a net batch
        self.now = -NEVER  # the number of the last arrival, or the clock
        self.band = _empty_band()
        self.ask(K, k, length)
        self.grow_band(SMALLEST)

    def ask(self, K: int, k: Ints, length: Ints) -> None:
        """Queries that have seen nothing."""
        size = len(k)
        words = (size + 63) // 64
        self.views = Views(
            k,
            length,
            np.full(size, -np.inf),
            np.full(size, NEVER),
            np.zeros(size, np.int8),
            np.zeros(size + 1, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
        )
        bits = np.zeros((len(self.band.slots), words), np.uint64)
        self.K = K
        self.band = self.band._replace(bits=bits, heap=np.empty(2 * K, np.int64))

    @property
    def live(self) -> slice:
        """Where the valid objects are."""
        return slice(int(self.facts[HEAD]), int(self.facts[END]))

    @property
    def due(self) -> int:
        return int(self.views.due.min())

    # --- room

    def make_room(self, more: int) -> None:
        """Free places after the window: move it to the front, or into arrays of twice the size."""
        head, end, base = (int(self.facts[fact]) for fact in (HEAD, END, BASE))
        live = end - head
        room = len(self.window.stamps)
        if end + more <= room:
            return
        if live + more > room // 2:
            room = max(SMALLEST, 2 * (live + more))
        stamps, serials, data, rough, _ = self.window
        most = np.fmax.reduce(np.abs(data[:, head:end]), axis=1, initial=0.0)
        self.window = Window(
            _moved(stamps, head, end, room),
            _moved(serials, head, end, room),
            _moved(data, head, end, room),
            _moved(rough, head, end, room),
            most,
        )
        self.window.rough[len(data) :] = 0
        self.columns = {name: _moved(column, head, end, room) for name, column in self.columns.items()}
        if self.lists:
            values, places = self.blocks.values, self.blocks.places
            self.blocks = self.blocks._replace(
                values=_moved(values, head, end, room), places=_moved(places, head, end, room)
            )
        self.facts[HEAD], self.facts[END], self.facts[BASE] = 0, live, base + head

    def grow_band(self, need: int) -> None:
        """Places for so many pairs."""
        old = len(self.band.key)
        room = max(need, 2 * old)
        band = self.band
        free = np.empty(room, np.int32)
        free[: self.facts[FREE]] = band.free[: self.facts[FREE]]
        more = room - len(band.slots)
        free[self.facts[FREE] : self.facts[FREE] + more] = np.arange(room - 1, len(band.slots) - 1, -1)
        self.facts[FREE] += more
        self.band = Band(
            key=_moved(band.key, 0, old, room),
            old=_moved(band.old, 0, old, room),
            slot=_moved(band.slot, 0, old, room),
            crest=_moved(band.crest, 0, len(band.crest), room // FAN + 2),
            slots=_moved(band.slots, 0, len(band.slots), room),
            bits=np.concatenate([band.bits, np.zeros((more, band.bits.shape[1]), np.uint64)]),
            free=free,
            stair_place=_moved(band.stair_place, 0, old, room),
            stair_key=_moved(band.stair_key, 0, old, room),
            heap=band.heap,
            marks=np.zeros(room, np.int64),
        )

    def grow_saved(self, need: int) -> None:
        if need > len(self.saved):
            self.saved = _moved(self.saved, 0, len(self.saved), max(need, 2 * len(self.saved)))

    # --- TA

    def open_block(self, limit: float) -> None:
        """A block for the next objects; the one before gets its lists."""
        first, last = int(self.facts[FIRST_BLOCK]), int(self.facts[BLOCKS])
        start = int(self.facts[BASE] + self.facts[END])
        if last > first:
            self.sort_block(last - 1, limit)
        if last == len(self.blocks.start):
            room = max(8, 2 * (last - first + 1))
            starts, ends, done, values, places = self.blocks
            self.blocks = Blocks(
                _moved(starts, first, last, room), _moved(ends, first, last, room), _moved(done, first, last, room),
                values, places,
            )  # fmt: skip
            first, last = 0, last - first
        self.blocks.start[last] = self.blocks.end[last] = start
        self.blocks.sorted[last] = 0
        self.facts[FIRST_BLOCK], self.facts[BLOCKS] = first, last + 1

    def sort_blocks(self, limit: float) -> None:
        """Lists for all blocks but the newest that late objects have changed."""
        for block in range(int(self.facts[FIRST_BLOCK]), int(self.facts[BLOCKS]) - 1):
            if not self.blocks.sorted[block] and self.blocks.start[block] >= self.facts[BASE]:
                self.sort_block(block, limit)

    def sort_block(self, block: int, limit: float) -> None:
        base = int(self.facts[BASE])
        begin, end = int(self.blocks.start[block]) - base, int(self.blocks.end[block]) - base
        if begin < 0:  # its first objects are gone: it will not be read by lists again
            return
        data = self.window.data[:, begin:end]
        if self.near:  # whole rows by the first attribute
            order = np.repeat(np.argsort(data[:1], axis=1, kind="stable"), len(data), axis=0)
        else:
            order = np.argsort(data, axis=1, kind="stable")
        self.blocks.places[:, begin:end] = order
        self.blocks.values[:, begin:end] = np.take_along_axis(data, order, axis=1)
        self.blocks.sorted[block] = bool((np.abs(data) <= limit).all())

    # --- as it is stored

    def fill(self, stamps: Ints, serials: Ints, data: Floats, limit: float) -> None:
        """These objects, the oldest first."""
        self.make_room(len(stamps))
        self.facts[HEAD], self.facts[END], self.facts[BASE] = 0, len(stamps), 0
        self.window.stamps[: len(stamps)], self.window.serials[: len(stamps)] = stamps, serials
        self.window.data[:, : len(stamps)] = data
        if len(self.window.rough):
            with np.errstate(over="ignore"):
                self.window.rough[: len(data), : len(stamps)] = data
        self.window.most[:] = np.fmax.reduce(np.abs(data), axis=1, initial=0.0)
        wild = np.flatnonzero(~(np.abs(data) <= limit).all(axis=0))
        self.facts[WILD] = 1 + int(wild[-1]) if len(wild) else 0

    def fill_band(self, pairs: Records, bits: NDArray[np.uint64]) -> None:
        """These pairs, best first."""
        size = len(pairs)
        if size > len(self.band.key):
            self.grow_band(size)
        self.band.slots[:size], self.band.bits[:size] = pairs, bits
        self.band.key[:size], self.band.old[:size], self.band.slot[:size] = pairs["key"], pairs["old"], np.arange(size)
        room = len(self.band.slots)
        self.band.free[: room - size] = np.arange(room - 1, size - 1, -1)
        self.facts[FREE], self.facts[SIZE], self.facts[STAIRS] = room - size, size, 0

    @property
    def pairs(self) -> Records:
        """The kept pairs, best first."""
        kept: Records = self.band.slots[self.band.slot[: self.facts[SIZE]]]
        return kept

    @property
    def nbytes(self) -> int:
        arrays: tuple[Records, ...] = (*self.window, *self.band, *self.blocks, *self.views)
        arrays += (self.saved, *self.columns.values())
        return sum(int(array.nbytes) for array in arrays)


def _empty_band() -> Band:
    whole, floats, places = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int32)
    bits = np.empty((0, 0), np.uint64)
    return Band(floats, whole, places, whole, np.empty(0, SLOT), bits, places, whole, floats, whole, whole)


def empty_desk(queries: int, width: int) -> Desk:
    """Room to work for so many queries."""
    return Desk(
        buffer=np.empty(CHUNK),
        other=np.empty(SMALLEST, np.int64),
        key=np.empty(SMALLEST),
        slot=np.empty(SMALLEST, np.int32),
        affected=np.empty(queries, np.int32),
        before=np.empty(SMALLEST + queries, np.int32),
        ends=np.empty(queries, np.int64),
        after=np.empty(SMALLEST + queries, np.int32),
        left=np.empty(width, np.int64),
        right=np.empty(width, np.int64),
    )


def _moved(array: Records, begin: int, end: int, room: int) -> Any:
    """A part of an array (of its last dimension) at the front of one with so much room."""
    made = np.empty((*array.shape[:-1], room), array.dtype)
    made[..., : end - begin] = array[..., begin:end]
    return made


def ids_of(pairs: Records) -> Records:
    ids = np.empty(len(pairs), [("older", "i8"), ("newer", "i8")])
    ids["older"], ids["newer"] = pairs["older"], pairs["newer"]
    return ids


def gathered(columns: dict[str, NDArray[Any]], places: Ints) -> dict[str, NDArray[Any]]:
    return {name: column[places] for name, column in columns.items()}


def with_rows(column: NDArray[Any] | None, rows: NDArray[Any], at: int, room: int) -> NDArray[Any]:
    """The column with these values from index `at` on; it takes another type when they need one."""
    if column is None:
        column = np.empty(room, rows.dtype)
    elif column.dtype != rows.dtype:
        try:
            wider = np.result_type(column.dtype, rows.dtype)
        except TypeError:
            wider = np.dtype(object)
        column = column.astype(wider)
    column[at : at + len(rows)] = rows
    return column
