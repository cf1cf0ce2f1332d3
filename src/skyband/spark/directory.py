"""Which cell of a shard's state a group is in, and when a cell must be looked at again.

Cells grow by linear hashing: when they hold more than CELL bytes on average, one more is opened and takes its half of
an older one's groups. A trigger reads and writes only the cells of its groups, those in which time is due, and those
that are being split; the index of all this is a few bytes per cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

CELL = 1 << 14  # bytes that a cell should hold
NEVER = np.iinfo(np.int64).max


def _no_entries() -> Ints:
    return np.zeros(1, np.int64)


@dataclass
class Directory:
    """One entry per cell."""

    due: Ints = field(default_factory=lambda: np.full(1, NEVER))  # nothing expires before this
    groups: Ints = field(default_factory=_no_entries)
    objects: Ints = field(default_factory=_no_entries)
    bytes: Ints = field(default_factory=_no_entries)

    @classmethod
    def of(cls, columns: dict[str, Any]) -> Directory:
        return cls(**{name: np.array(columns[name]) for name in ("due", "groups", "objects", "bytes")})

    def columns(self) -> dict[str, Ints]:
        return {"due": self.due, "groups": self.groups, "objects": self.objects, "bytes": self.bytes}

    def __len__(self) -> int:
        return len(self.due)

    def address(self, hashes: NDArray[np.uint64]) -> Ints:
        """The cell of each group, by the bits of its hash that did not choose the shard."""
        return _address(hashes, len(self))

    def due_by(self, clock: int) -> Ints:
        return np.flatnonzero(self.due <= clock)

    def grow(self) -> Ints:
        """Open cells until they are small enough, at most twice as many; returns those whose groups must move."""
        old = len(self)
        new = min(2 * old, max(old, int(self.bytes.sum()) // CELL))
        opened = np.arange(old, new)
        more = np.zeros(new - old, np.int64)
        self.due = np.concatenate([self.due, np.full(new - old, NEVER)])
        self.groups, self.objects, self.bytes = (
            np.concatenate([column, more]) for column in (self.groups, self.objects, self.bytes)
        )
        return opened - _half(opened)


def _address(hashes: NDArray[np.uint64], cells: int) -> Ints:
    mixed = (hashes * np.uint64(0xD6E8FEB86659FD93)) >> np.uint64(24)
    wide = 1 << cells.bit_length()
    place = (mixed % np.uint64(wide)).astype(np.int64)
    while (place >= cells).any():
        place = np.where(place >= cells, place - _half(place), place)
    return place


def _half(cells: Ints) -> Ints:
    """The highest power of two in each number: what a cell's number has over that of the cell it was split from."""
    return np.left_shift(1, np.frexp(np.maximum(cells, 1))[1].astype(np.int64) - 1)
