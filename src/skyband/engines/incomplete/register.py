"""Who has a valid row of which part: rows that come a second time, where no `repeat` says what that means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Bools, Ints
from skyband.kernels.register import ENTRY, NONE, judge_rows, lay_out, undo

Records = NDArray[Any]
SMALLEST = 1024


class Register:
    """The valid rows of every group, by id and part; all of the queries look at one length of window."""

    def __init__(self, length: int, *, timed: bool) -> None:
        self.length, self.timed = length, timed
        self.table = _empty(SMALLEST)
        self.used = 0
        self._log: Ints | None = None  # how to undo what was judged last, if it was not taken
        self._before: tuple[Records, int] | None = None  # or what there was before

    def judge(
        self,
        names: Ints,
        parts: Ints,
        groups: Ints,
        rows: Ints,
        times: Ints | None,
        clocks: Ints | None,
        counts: Ints,
        limit: int,
    ) -> Bools:
        """Which rows are rejected. It stands once `keep` is called."""
        self.undo()
        rejected = np.zeros(len(names), np.bool_)
        none, counts = np.empty(0, np.int64), counts.copy()
        log = np.empty((0, 2), np.int64)
        times, clocks = (none, none) if times is None or clocks is None or not self.timed else (times, clocks)
        if len(rows) * 8 < len(self.table):
            self._make_room(len(rows), self._bounds(counts, clocks, rows, 0))
            self._log = log = np.empty((len(rows), 2), np.int64)
        else:
            self._before = self.table, self.used
            self.table = self.table.copy()
        done = 0
        while done < len(rows):
            if 2 * self.used >= len(self.table):
                self._make_room(1, self._bounds(counts, clocks, rows, done))
            used = np.array([self.used, len(self.table) // 2])
            done = judge_rows(
                self.table,
                names,
                parts,
                groups,
                rows,
                times,
                clocks,
                counts,
                self.length,
                limit,
                done,
                used,
                rejected,
                log,
            )
            self.used = int(used[0])
        return rejected

    def keep(self) -> None:
        """What was judged is taken."""
        self._log = self._before = None

    def undo(self) -> None:
        if self._before is not None:
            self.table, self.used = self._before
        elif self._log is not None:
            undo(self.table, self._log)
        self.keep()

    def shorten(self, length: int) -> None:
        self.undo()
        self.length = length

    def _bounds(self, counts: Ints, clocks: Ints, rows: Ints, place: int) -> Ints:
        """By group: what is not newer has expired, for rows from this place on."""
        if not self.timed:
            return counts - self.length
        clock = int(clocks[rows[place]]) if len(rows) > place else -(2**62)
        return np.full(len(counts), clock - self.length)

    def _make_room(self, more: int, bounds: Ints) -> None:
        """Places for so many more: what has expired goes, and a table that is still full grows."""
        if 2 * (self.used + more) <= len(self.table):
            return
        old, size = self.table, len(self.table)
        self.table = _empty(size)
        self.used = lay_out(old, bounds, self.table)
        while 4 * (self.used + more) > size:
            size *= 2
        if size > len(self.table):
            old, self.table = self.table, _empty(size)
            self.used = lay_out(old, bounds, self.table)

    # --- by group

    def entries(self, groups: Ints, now: Ints) -> tuple[Records, Ints]:
        """The valid entries of these groups, group by group, and how many of each."""
        self.undo()
        found = self.table[self.table["part"] >= 0]
        found = found[(found["stamp"] > NEW) & (found["group"] < len(now))]
        found = found[found["stamp"] > now[found["group"]] - self.length]
        seats = np.full(int(max(groups.max(initial=-1), found["group"].max(initial=-1))) + 1, -1)
        seats[groups] = np.arange(len(groups))
        found = found[seats[found["group"]] >= 0]
        order = np.lexsort((found["part"], found["name"], found["stamp"], seats[found["group"]]))
        found = found[order]
        return found, np.bincount(seats[found["group"]], minlength=len(groups))

    def restore(self, entries: Records, sizes: Ints) -> None:
        entries = entries.copy()
        entries["group"] = np.repeat(np.arange(len(sizes)), sizes)
        size = SMALLEST
        while 4 * len(entries) > size:
            size *= 2
        self.table = _empty(size)
        self.used = lay_out(entries, np.full(len(sizes), -(2**63)), self.table)

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes)


NEW = np.iinfo(np.int64).min


def _empty(size: int) -> Records:
    table = np.zeros(size, ENTRY)
    table["part"] = NONE
    return table
