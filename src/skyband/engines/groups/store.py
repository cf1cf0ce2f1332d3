"""The arrays of one window: rows, objects and their aggregates, with room for what a batch brings."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.contract import Bools, Floats, Ints
from skyband.engines.groups.kernels.state import (
    ALL,
    CHAIN,
    DIRTY,
    DISTINCT,
    ENDLESS,
    ENTRIES,
    ENTRY,
    FACTS,
    FADED,
    FIRST,
    FREE,
    GROUP,
    HOT,
    KEYED,
    LAST,
    LATE,
    LIVE,
    MOST,
    MOST_HOT,
    NEWEST,
    OLDEST,
    OPEN,
    PICK,
    ROW,
    SLOT,
    STEP,
    SUM,
    TAIL,
    USED,
    Events,
    Records,
    State,
    Window,
    empty_events,
)
from skyband.engines.groups.kernels.steps import read_slots
from skyband.engines.groups.kernels.values import reindex
from skyband.engines.groups.measures import Measures
from skyband.kernels.records import NEVER
from skyband.kernels.sums import LOWEST, fitted, rescale

GROWTH = 3  # times as many rows are added where there is no room: those not used yet have no memory, copies do
LINE = 64  # bytes of a cache line
SMALLEST = 64  # rows, and entries of the table of distinct values


class Store:
    """What is kept of the rows of one window."""

    def __init__(self, mode: int, length: int, net: bool, measures: Measures) -> None:
        self.mode, self.length, self.plan = mode, length, measures
        self.measures = measures.table(mode == KEYED)
        functions = self.measures["function"]
        ages = 0 if mode == KEYED or FIRST in functions else -1
        keeps = ALL if mode == KEYED or measures.keeps_all else NEWEST if measures.decides is None else CHAIN
        decides = -1 if measures.decides is None else int(self.measures["first"][measures.decides])
        self.window = Window(mode, length, net, decides, ages if mode != ENDLESS else -1, keeps)
        chains = int((functions == MOST).sum()) + (ages >= 0)
        self.links_each = 3 * chains - 1 if mode == KEYED else 2 * chains
        self.picks_each = int(np.isin(functions, (MOST, FIRST, LAST)).sum() + 2 * (functions == FADED).sum())
        self.distinct_each = int((functions == DISTINCT).sum())
        self.facts = np.zeros(FACTS, np.int64)
        self.facts[[FREE, OLDEST, TAIL]] = -1
        self.facts[[OPEN, MOST_HOT]], self.facts[STEP] = NEVER, 1  # 0: no step
        self.rows, self.values = np.zeros(0, ROW), np.zeros((0, measures.columns))
        self.links = np.zeros((0, self.links_each), np.int32)
        self.slots, self.ends = np.zeros(0, SLOT), np.zeros((0, 2 * chains), np.int32)
        self.picks, self.words = np.zeros((0, self.picks_each), PICK), np.zeros((0, 0), np.int64)
        self.distinct = np.zeros((0, self.distinct_each), np.int64)
        self.table, self.groups = np.zeros(SMALLEST, ENTRY), np.zeros(0, GROUP)
        self.late, self.dirty = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self.places, self.bound = np.zeros(0, np.int32), np.full(1, -np.inf)
        self.high = np.full(len(self.measures), LOWEST)  # the highest bit of any number that a sum has seen
        self.volume = 0  # at most so many numbers are in a sum
        self.lay_out_sums(np.where(functions == SUM, 1, 0), np.zeros(len(functions), np.int64))

    @property
    def state(self) -> State:
        return State(
            self.rows,
            self.values,
            self.links,
            self.slots,
            self.ends,
            self.picks,
            self.words,
            self.distinct,
            self.table,
            self.groups,
            self.measures,
            self.late,
            self.dirty,
            self.places,
            self.bound,
            self.facts,
        )

    # --- room

    def grow(self, slots: int, groups: int) -> None:
        """Make room for so many objects and groups."""
        more = slots - len(self.slots)
        if more > 0:
            self.slots, self.picks = longer(self.slots, more), longer(self.picks, more)
            self.ends, self.words = longer(self.ends, more, -1), longer(self.words, more)
            self.distinct, self.dirty = longer(self.distinct, more), longer(self.dirty, more)
        more = groups - len(self.groups)
        if more > 0:
            self.groups = longer(self.groups, more)
            self.groups["oldest"][-more:] = self.groups["newest"][-more:] = self.groups["last"][-more:] = -1

    def prepare(self, values: Floats, late: bool) -> None:
        """Make room for so many rows with these arguments; whether some may come out of order."""
        rows = len(values)
        if self.mode != ENDLESS:
            self._add_rows(int(self.facts[LIVE]) + rows)
            if late and int(self.facts[LATE]) + rows > len(self.late):
                self.late = longer(self.late, max(rows, len(self.late)))
            self.volume = int(self.facts[LIVE]) + rows
        else:
            self.volume += rows
        if self.distinct_each:
            self._widen_table(int(self.facts[ENTRIES]) + rows * self.distinct_each)
        self._fit_sums(values)

    def _add_rows(self, most: int) -> None:
        more = most - len(self.rows)
        if more > 0:
            size, used = len(self.rows) + max(more, GROWTH * len(self.rows), SMALLEST), int(self.facts[USED])
            for name in ("rows", "values", "links"):
                old = getattr(self, name)
                new = np.empty((size, *old.shape[1:]), old.dtype)
                if new.nbytes:
                    bytes_of(new)[: used * (new.nbytes // size)] = bytes_of(old)[: used * (new.nbytes // size)]
                setattr(self, name, new)

    def _widen_table(self, most: int) -> None:
        if 2 * most > len(self.table):
            self.reindex_values(np.arange(len(self.slots)), most)

    def reindex_values(self, owners: Ints, most: int) -> None:
        """Put distinct values into a new table with room for so many; owners: by slot its new number, or -1."""
        old, self.table = self.table, np.zeros(1 << (4 * max(most, 16) - 1).bit_length(), ENTRY)
        if self.distinct_each:
            reindex(old, self.table, owners, self.distinct_each)
            self.facts[ENTRIES] = np.count_nonzero(self.table["count"])

    # --- sums

    def _fit_sums(self, values: Floats) -> None:
        """Fit the words of sums to these numbers."""
        sums = np.flatnonzero(self.measures["function"] == SUM)
        if not len(sums):
            return
        words = np.where(self.measures["function"] == SUM, self.measures["end"] - self.measures["first"], 0)
        lowest, changed = self.measures["lowest"].copy(), False
        for m in sums:
            before, column = (int(words[m]), int(lowest[m])), values[:, self.measures["column"][m]]
            words[m], lowest[m], self.high[m] = fitted(*before, int(self.high[m]), column, self.volume)
            changed |= before != (words[m], lowest[m])
        if changed:
            self.lay_out_sums(words, lowest)

    def lay_out_sums(self, words: Ints, lowest: Ints) -> None:
        """Give sums so many words, the lowest bit of each standing for this power of 2."""
        old, was = self.words, self.measures.copy()
        ends = np.cumsum(words)
        self.words = np.zeros((len(self.slots), int(ends[-1]) if len(ends) else 0), np.int64)
        for m in np.flatnonzero(self.measures["function"] == SUM):
            one, before = self.measures[m], was[m]
            one["first"], one["end"], one["lowest"] = ends[m] - words[m], ends[m], lowest[m]
            if before["end"] > before["first"]:
                shift = int(before["lowest"] - lowest[m])
                rescale(old, before["first"], before["end"], self.words, one["first"], one["end"], shift)

    # --- objects

    def read(self, slots: Ints, serial: int = 0, clock: int = 0) -> Events:
        """These objects as they are now."""
        events = empty_events(len(slots), len(self.measures))
        read_slots(self.state, self.window, slots, events, serial, clock)
        return events

    @property
    def there(self) -> Bools:
        """By slot: has the object a valid row?"""
        there: Bools = self.slots["count"] > 0
        return there

    def keep(self, kept: Ints, codes: Ints) -> None:
        """Know only these slots, under the numbers 0, 1, ...; codes: by group its new code. No batch is open."""
        numbers = np.full(len(self.slots), -1)
        numbers[kept] = np.arange(len(kept))
        of = self.rows["slot"][: self.facts[USED]]
        live, idle = np.flatnonzero(of >= 0), np.flatnonzero(of < -1)
        of[live] = numbers[of[live]]
        of[idle] = -2 - codes[-2 - of[idle]]
        for name in ("slots", "ends", "picks", "words", "distinct"):
            setattr(self, name, chosen(getattr(self, name), kept))
        self.slots["group"] = codes[self.slots["group"]]
        self.facts[HOT] = np.count_nonzero(self.there & (self.slots["cold"] == 0))
        self.dirty = np.zeros(len(kept), np.int32)
        if self.distinct_each:
            self.reindex_values(numbers, int(self.facts[ENTRIES]))
        old, self.groups = self.groups, np.zeros(0, GROUP)
        total = int(codes.max(initial=-1)) + 1
        self.grow(0, total)
        there = np.flatnonzero(codes >= 0)
        self.groups[codes[there]] = old[there]

    @property
    def nbytes(self) -> int:
        unused = 1 - int(self.facts[USED]) / max(len(self.rows), 1)  # which has no memory yet
        rows = sum(int(array.nbytes) for array in (self.rows, self.values, self.links))
        return sum(int(array.nbytes) for array in self.state) - int(unused * rows)

    @property
    def open(self) -> bool:
        """Whether a batch goes on."""
        return bool(self.facts[DIRTY])


def bytes_of(array: Any) -> Any:
    """The bytes of an array: NumPy copies records field by field."""
    return array.reshape(-1).view(np.uint8)


def chosen(array: Any, places: Ints) -> Any:
    """The entries at these places."""
    if not array.nbytes:
        return np.ascontiguousarray(array[places])
    found = bytes_of(array).reshape(len(array), -1).take(places, axis=0)
    return found.reshape(-1).view(array.dtype).reshape(len(places), *array.shape[1:])


def in_lines(shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros that begin with a cache line."""
    size = int(np.prod(shape)) * dtype.itemsize
    room = np.zeros(size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    return room[begin : begin + size].view(dtype).reshape(shape)


def longer(array: Any, more: int, fill: int = 0) -> Any:
    """An array with so many entries more."""
    old = len(array)
    new: Records = in_lines((old + more, *array.shape[1:]), array.dtype)
    if new.nbytes:
        bytes_of(new)[: array.nbytes] = bytes_of(array)
    if fill:
        new[old:] = fill
    return new
