"""The index of a shard's state: the cell of each group, and when a cell must be read again.

A cell is a bucket of groups, stored as one value. Cells grow by linear hashing: when they hold too many bytes on
average, one more is opened and takes its half of an older one's groups. A trigger reads and writes only the cells of
its groups, those with expiries that are due, and those that are being split; this index is a few bytes per cell. A
round trip for a cell costs as much as its first 16 KB: where triggers have rows for most cells, fewer and larger ones
are cheaper, and where they have rows for few, small ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.session_rows import SessionRows
from skyband.monitor.state import State
from skyband.spark.plan import QuerySet
from skyband.tables.groups import Groups

Ints = NDArray[np.int64]

CELL = 1 << 12  # bytes that a cell should hold, in a large state
_WHOLE = 1 << 36  # cells of a smaller state are larger: this over its size, for each costs a round trip
_DENSE = 16  # times as large may cells be while triggers have rows for most of them
_AT_ONCE = 256  # cells that a trigger opens at most, or a quarter of its groups
PORTION = 1 << 21  # bytes of cells that are unpacked together: what a trigger does takes several times as many
NEVER = np.iinfo(np.int64).max
# how the reasons end that only the state can give; some begin with a column
_BY_STATE = ("unknown id", "second row of the same part", "probabilities of a group pass 1", "pair without a score")


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
        """The cells with something that expires by then."""
        return np.flatnonzero(self.due <= clock)

    def portions(self, touched: Ints, before: int) -> list[Ints]:
        """Touched cells in portions of so many bytes, so that memory does not grow with the state.

        before: how many cells there were before `grow`; a new one is with that whose groups move there.
        """
        sources, of = np.unique(_fold(touched, before), return_inverse=True)
        size = self.bytes[sources]
        number = ((np.cumsum(size) - size) // PORTION)[of]
        return [touched[number == one] for one in np.unique(number)] or [touched]

    def grow(self, groups: int) -> Ints:
        """Open cells until they are small enough; returns the new ones, and those whose groups move there.

        groups: of which the trigger has rows.
        """
        size, old = int(self.bytes.sum()), len(self)
        small = max(CELL, _WHOLE // max(size, 1))
        if 4 * groups > size // small:
            small = max(small, _DENSE * CELL)
        new = max(old, min(size // small, old + max(_AT_ONCE, groups // 4)))
        opened = np.arange(old, new)
        none = np.zeros(new - old, np.int64)
        self.due = np.concatenate([self.due, none + NEVER])
        self.groups = np.concatenate([self.groups, none])
        self.objects = np.concatenate([self.objects, none])
        self.bytes = np.concatenate([self.bytes, none])
        return np.union1d(opened, _fold(opened, old))


def _address(hashes: NDArray[np.uint64], cells: int) -> Ints:
    mixed = (hashes * np.uint64(0xD6E8FEB86659FD93)) >> np.uint64(24)
    return _fold((mixed % np.uint64(1 << cells.bit_length())).astype(np.int64), cells)


def _fold(places: Ints, cells: int) -> Ints:
    """The cell of each place while there are only so many: without its highest bit, repeatedly if need be."""
    while (places >= cells).any():
        highest = np.left_shift(1, np.frexp(places)[1].astype(np.int64) - 1)
        places = np.where(places >= cells, places - highest, places)
    return places


def inventory(state: State, groups: Groups, query_set: QuerySet) -> tuple[NDArray[np.bool_], Ints, Ints]:
    """Per group: whether it must be stored, its next expiry, the number of objects that it keeps.

    One without objects is stored as long as its session, or its k, decides about a late row.
    """
    sizes = np.zeros(groups.total, np.int64)
    dues = np.full(groups.total, NEVER)
    until = np.full(groups.total, -NEVER)
    for adapter in state.standing():
        if adapter.engine is not None and len(adapter.engine.kept):
            sizes += adapter.engine.kept
            if adapter.timed:
                dues = np.minimum(dues, np.where(adapter.engine.kept > 0, adapter.engine.due, NEVER))
        if adapter.timed and isinstance(adapter, SessionRows):
            until = np.maximum(until, adapter.remembered())
    known = until > state.clock
    dues = np.where(known & (sizes == 0), np.minimum(dues, until), dues)
    dead = (
        (sizes == 0) & ~known & query_set.timed & bool(query_set.per)
    )  # on Spark the arrivals of time windows have no number
    return ~dead, dues, sizes


def refusals(described: dict[str, Any]) -> dict[str, int]:
    """Rejections by reason that only the state could decide; mappers have counted all others."""
    rejected: dict[str, int] = described["counters"]["rejected"]
    return {reason: count for reason, count in rejected.items() if reason.endswith(_BY_STATE)}
