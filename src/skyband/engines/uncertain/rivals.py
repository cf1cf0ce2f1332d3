"""The valid alternatives of each name, and which rows are rejected because of them (kernels/rivals.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Bools, Floats, Ints
from skyband.engines.uncertain.kernels.rivals import (
    AHEAD,
    BEGIN,
    END,
    LINE,
    NEXT,
    PARTIALS,
    SLOT,
    Ring,
    Rows,
    copy_lines,
    undo,
    validate_alternatives,
)

Records = NDArray[Any]
ENTRY = np.dtype([("name", "i8"), ("stamp", "i8"), ("p", "f8")])  # as it is stored
SMALLEST = 256
LAST = 2**31 - 1  # positions are numbers of 32 bits


class Rivals:
    """The valid rows of every group that have a name; all queries have one length of window."""

    def __init__(self, length: int, *, timed: bool) -> None:
        self.length, self.timed = length, timed
        self.ring = _empty_ring(SMALLEST)
        self._before: tuple[Ring, int, int] | None = None  # the ring before a batch and its lines, until it is taken

    def validate(
        self,
        names: Ints,
        named: Bools,
        probabilities: Floats,
        groups: Ints,
        rows: Ints,
        times: Ints | None,
        clocks: Ints | None,
        counts: Ints,
        limit: int,
    ) -> Bools:
        """Which rows are rejected. It stands once `keep` is called."""
        self.undo()
        begin, end = self.ring.facts[:NEXT].tolist()
        if end + len(rows) > LAST:
            self._move(self.lines, len(self.ring.lines))
            begin, end = self.ring.facts[:NEXT].tolist()
        self._before = self.ring, begin, end
        none, counts = np.empty(0, np.int64), counts.copy()
        times, clocks = (none, none) if times is None or clocks is None or not self.timed else (times, clocks)
        rejected, partials = np.zeros(len(names), np.bool_), np.empty(PARTIALS)
        ahead = np.empty(AHEAD, np.int64)
        batch = Rows(names, named, probabilities, groups, rows, times, clocks, counts, rejected, partials, ahead)
        self.ring.facts[NEXT] = 0
        while not validate_alternatives(self.ring, batch, self.length, limit, begin):
            done, begin = self.ring.facts[NEXT], 0  # the lines that are undone are in the ring before
            self._move(self.lines, len(self.ring.lines))
            self.ring.facts[NEXT] = done
        return rejected

    @property
    def lines(self) -> Records:
        """Those that are in the ring, in order of arrival."""
        begin, end = self.ring.facts[:NEXT].tolist()
        found: Records = self.ring.lines[np.arange(begin, end) & (len(self.ring.lines) - 1)]
        return found

    def _move(self, lines: Records, capacity: int) -> None:
        """Begin a ring with these lines."""
        while capacity < 2 * len(lines):
            capacity *= 2
        ring = _empty_ring(capacity)
        copy_lines(lines, ring)
        self.ring = ring  # at the end: without memory the lines stay where they were

    def keep(self) -> None:
        """What was validated is taken."""
        self._before = None

    def undo(self) -> None:
        """Forget what was validated and not taken."""
        if self._before is not None:
            self.ring, begin, end = self._before
            undo(self.ring, begin, end)
        self._before = None

    # --- by group

    def drop(self, groups: Ints) -> None:
        """Nothing of these groups is valid."""
        self.undo()
        lines = self.lines
        gone = np.isin(lines["group"], groups)
        if gone.any():
            self._move(lines[~gone], SMALLEST)

    def entries(self, groups: Ints, now: Ints) -> tuple[Records, Ints]:
        """The valid entries of these groups, group by group, and how many of each."""
        self.undo()
        places, found = np.full(len(now), -1), self.lines
        places[groups] = np.arange(len(groups))
        found = found[(found["stamp"] > now[found["group"]] - self.length) & (places[found["group"]] >= 0)]
        place = places[found["group"]]
        found = found[np.lexsort((found["p"], found["name"], found["stamp"], place))]
        entries = np.zeros(len(found), ENTRY)
        for name in ENTRY.names or ():
            entries[name] = found[name]
        return entries, np.bincount(place, minlength=len(groups))

    def restore(self, entries: Records, sizes: Ints) -> None:
        """Take stored entries."""
        lines = np.zeros(len(entries), LINE)
        for name in ENTRY.names or ():
            lines[name] = entries[name]
        lines["group"] = np.repeat(np.arange(len(sizes)), sizes)
        self._before = None
        self._move(lines, SMALLEST)

    @property
    def nbytes(self) -> int:
        return int(self.ring.lines.nbytes + self.ring.slots.nbytes)


def _empty_ring(capacity: int) -> Ring:
    slots = np.zeros(capacity, SLOT)
    slots["last"] = -1
    facts = np.zeros(3, np.int64)
    assert (BEGIN, END) == (0, 1)
    return Ring(np.empty(capacity, LINE), slots, facts)
