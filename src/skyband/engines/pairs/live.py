"""The live objects of a group over UntilDeleted(), in order of arrival, and the best of their pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Bools, Floats, Ints
from skyband.engines.pairs.group import Columns, Records, with_rows
from skyband.engines.pairs.kernels.records import PAIR

Rank = tuple[float, int, int]  # key, older, newer: the larger ranks above


class Live:
    """One group. `pairs` is never changed in place: whoever holds it holds an answer as it was."""

    def __init__(self, width: int) -> None:
        self.size = 0
        self.stamps: Ints = np.empty(16, np.int64)
        self.serials: Ints = np.empty(16, np.int64)
        self.eligible: Bools = np.empty(16, np.bool_)
        self.data: Floats = np.empty((width, 16))
        self.columns: Columns = {}  # what a scoring reads that no kernel computes
        self.pairs: Records = np.empty(0, PAIR)  # best first: all that rank no lower than the floor
        self.floor: Rank | None = None  # None: all pairs there are
        self.shown: dict[int, dict[int, int]] = {}  # by either member, the other: bits of queries that have reported it
        self.saved: Records | None = None  # of a batch of net changes: the best pairs before it

    def add(self, stamp: int, serial: int, eligible: bool, values: Floats, columns: Columns) -> None:
        if self.size == len(self.stamps):
            self.stamps, self.serials, self.eligible, self.data = (
                np.concatenate([array, np.empty_like(array)], axis=-1)
                for array in (self.stamps, self.serials, self.eligible, self.data)
            )
            self.columns = {name: np.concatenate([one, one]) for name, one in self.columns.items()}
        at = self.size
        self.stamps[at], self.serials[at], self.eligible[at], self.data[:, at] = stamp, serial, eligible, values
        capacity = len(self.stamps)
        self.columns = {name: with_rows(self.columns.get(name), one, at, capacity) for name, one in columns.items()}
        self.size += 1

    def remove(self, serial: int) -> None:
        """Remove an object, its pairs and what is remembered of them."""
        at, end = int(np.searchsorted(self.serials[: self.size], serial)), self.size
        for array in (self.stamps, self.serials, self.eligible, self.data, *self.columns.values()):
            array[..., at : end - 1] = array[..., at + 1 : end].copy()
        self.size -= 1
        gone = (self.pairs["older"] == serial) | (self.pairs["newer"] == serial)
        if gone.any():
            self.pairs = self.pairs[~gone]
        for other in self.shown.pop(serial, {}):
            del self.shown[other][serial]

    def others(self) -> Ints:
        """The indices of objects that can be members, but for the newest object."""
        return np.flatnonzero(self.eligible[: self.size - 1])

    def records(self, keys: Floats, older: Ints, newer: Ints | int) -> Records:
        """Pairs of the objects at these indices."""
        made = np.zeros(len(keys), PAIR)
        made["key"], made["old"], made["older"] = keys, self.stamps[older], self.serials[older]
        made["new"], made["newer"] = self.stamps[newer], self.serials[newer]
        return made

    def above_floor(self, keys: Floats, older: Ints, newer: int) -> Bools:
        """Which pairs of these older objects (by index) and one newer object rank no lower than the floor."""
        if self.floor is None:
            found: Bools = keys == keys
            return found
        key, first, second = self.floor
        serials = self.serials[older]
        tied = (serials > first) | ((serials == first) & (newer >= second))
        above: Bools = (keys > key) | ((keys == key) & tied)
        return above

    def insert(self, fresh: Records) -> None:
        if len(fresh):
            self.pairs = best_first(np.concatenate([self.pairs, fresh]))

    def cut(self, most: int) -> None:
        """Keep so many pairs."""
        if len(self.pairs) > most:
            self.pairs = self.pairs[:most].copy()
            last = self.pairs[-1]
            self.floor = (float(last["key"]), int(last["older"]), int(last["newer"]))

    # --- what has been reported

    def is_shown(self, pair: Any, query: int) -> bool:
        return bool(self.shown.get(int(pair["older"]), {}).get(int(pair["newer"]), 0) >> query & 1)

    def show(self, older: int, newer: int, bits: int) -> None:
        known = self.shown.setdefault(older, {})
        known[newer] = known.get(newer, 0) | bits
        self.shown.setdefault(newer, {})[older] = known[newer]

    @property
    def nbytes(self) -> int:
        arrays: list[NDArray[Any]] = [self.stamps, self.serials, self.eligible, self.data, self.pairs]
        shown = 100 * sum(map(len, self.shown.values()))  # bytes of an entry, about
        return shown + sum(int(array.nbytes) for array in (*arrays, *self.columns.values()))


def best_first(pairs: Records) -> Records:
    """Pairs by rank: of equal keys the one whose older member is newer, then whose newer member is newer."""
    ordered: Records = pairs[np.lexsort((-pairs["newer"], -pairs["older"], -pairs["key"]))]
    return ordered
