"""The slots of subscriptions beside the engine: for each its entry, its numbers, its columns.

Arrays have room for more slots than there are: O(1) amortised for one that joins.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.slot_columns import SlotColumns, stretch_of
from skyband.tables.columns import grown

Ints = NDArray[np.int64]


class SlotTable:
    """Slots by number: those that are free have the entry -1."""

    def __init__(self) -> None:
        self.size = 0
        self.entry: Ints = np.empty(0, np.int64)  # of the subscription; -1: it is free
        self.offset: Ints = np.empty(0, np.int64)  # its numbers of arrivals less the engine's
        self.shift: Ints = np.empty(0, np.int64)  # count windows: how many rows it has rejected
        self.k: Ints = np.empty(0, np.int64)
        self.length: Ints = np.empty(0, np.int64)  # of its window; the other columns are in the engine's chunks
        self.slot: Ints = np.empty(0, np.int64)  # by entry
        self.count = 0  # slots that are taken
        self.longest = 0  # the longest window of a slot that is taken
        self._ahead: Counter[int] | None = Counter()  # slots by how far their numbers are ahead; None: not known
        self._lengths: Counter[int] = Counter()  # slots by the length of their windows

    @property
    def taken(self) -> Ints:
        """The slots that are taken."""
        return np.flatnonzero(self.entry[: self.size] >= 0)

    def join(self, slots: Ints, entries: Ints, columns: SlotColumns, offset: int) -> None:
        """Subscriptions have these slots now."""
        self.size = max(self.size, int(slots.max(initial=-1)) + 1)
        self.entry = grown(self.entry, self.size)
        self.offset, self.shift = (grown(one, self.size) for one in (self.offset, self.shift))
        to = stretch_of(slots)
        self.entry[to], self.offset[to], self.shift[to] = entries, offset, 0
        self._set_columns(to, columns)
        self._set_slots(entries, slots)
        self.count += len(slots)
        self._lengths.update(_counted(columns.length))
        self.longest = max(self.longest, int(columns.length.max(initial=0)))
        if self._ahead is not None:
            self._ahead[offset] += len(slots)

    def _set_columns(self, slots: Any, columns: SlotColumns) -> None:
        self.k, self.length = grown(self.k, self.size), grown(self.length, self.size)
        self.k[slots], self.length[slots] = columns.k, columns.length

    def leave(self, slots: Ints) -> None:
        """These slots are free."""
        if self._ahead is not None:
            _subtract(self._ahead, self.offset[slots] - self.shift[slots])
        _subtract(self._lengths, self.length[slots])
        if self.longest not in self._lengths:
            self.longest = max(self._lengths, default=0)
        self.entry[slots] = -1
        self.count -= len(slots)

    def renumber(self, old: Ints) -> None:
        """Entries have new numbers: their places in `old`."""
        there = self.taken
        self.entry[there] = np.searchsorted(old, self.entry[there])
        self._set_slots(self.entry[there], there)

    def restore(self, entries: Ints, offset: Ints, shift: Ints, columns: SlotColumns) -> None:
        """Take what a snapshot has, by slot; columns of those that are taken."""
        self.size, self.entry, self.offset, self.shift = len(entries), entries, offset, shift
        there = self.taken
        self._set_columns(there, columns)
        self._set_slots(self.entry[there], there)
        self.count, self._ahead = len(there), None
        self._lengths = _counted(columns.length)
        self.longest = max(self._lengths, default=0)

    def _set_slots(self, entries: Ints, slots: Ints) -> None:
        self.slot = grown(self.slot, int(entries.max(initial=-1)) + 1)
        self.slot[entries] = slots

    def fall_behind(self, which: NDArray[np.bool_] | Ints) -> None:
        """These slots do not count a row that the engine counts."""
        self.offset[: self.size][which] -= 1
        self._ahead = None

    def reject(self, slots: Ints) -> None:
        """These slots have rejected a row of count windows."""
        self.shift[slots] += 1
        self._ahead = None

    def ahead(self) -> int:
        """By how much the largest numbers of any slot differ from the engine's."""
        if self._ahead is None:
            there = self.taken
            self._ahead = _counted(self.offset[there] - self.shift[there])
        return max((offset for offset, count in self._ahead.items() if count), default=0)

    @property
    def nbytes(self) -> int:
        return sum(int(one.nbytes) for one in (self.entry, self.offset, self.shift, self.k, self.length, self.slot))


def _counted(values: Ints) -> Counter[int]:
    """How often each value is there."""
    if len(values) and values.min() == values.max():
        return Counter({int(values[0]): len(values)})
    found, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))


def _subtract(counter: Counter[int], values: Ints) -> None:
    """Count each of these values once less."""
    for value, count in _counted(values).items():
        counter[value] -= count
        if not counter[value]:
            del counter[value]
