"""Who has a valid row of which part: rows that come a second time, where no `repeat` says what that means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Bools, Ints
from skyband.kernels.register import FREE, GROUP, NAME, NEW, STAMPS, judge_rows, lay_out, undo

Records = NDArray[Any]
SMALLEST = 256
FULL = 0.625  # of the places, in use
ENTRY = np.dtype([("name", "i8"), ("stamp", "i8"), ("group", "i4"), ("part", "i4")], align=True)  # as it is stored


class Register:
    """The valid rows of every group, by id and part; all of the queries look at one length of window."""

    def __init__(self, length: int, d: int, *, timed: bool) -> None:
        self.length, self.d, self.timed = length, d, timed
        self.table = self._empty(SMALLEST)
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
            self._lay_out(len(self.table), 0, self._bounds(counts, clocks, rows, 0))
        done = 0
        while done < len(rows):
            self._make_room(1, self._bounds(counts, clocks, rows, done))
            used = np.array([self.used, FULL * len(self.table)], np.int64)
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
            undo(self.table.reshape(-1), self._log)
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
        if self.used + more <= FULL * len(self.table):
            return
        self._lay_out(len(self.table), more, bounds)

    def _lay_out(self, size: int, more: int, bounds: Ints) -> None:
        old, self.table = self.table, self._empty(size)
        self.used = lay_out(old, bounds, self.table)
        while 3 * (self.used + more) > size:
            size *= 2
        if size > len(self.table):
            self._lay_out(size, more, bounds)

    def _empty(self, size: int) -> Ints:
        table = np.empty((size, STAMPS + self.d), np.int64)
        table[:, GROUP] = FREE
        return table

    # --- by group

    def entries(self, groups: Ints, now: Ints) -> tuple[Records, Ints]:
        """The valid entries of these groups, group by group, and how many of each."""
        self.undo()
        found = self.table[(self.table[:, GROUP] >= 0) & (self.table[:, GROUP] < len(now))]
        stamps = found[:, STAMPS:]
        valid = (stamps > NEW) & (stamps > (now[found[:, GROUP]] - self.length)[:, None])
        row, part = np.nonzero(valid)
        seats = np.full(int(max(groups.max(initial=-1), found[:, GROUP].max(initial=-1))) + 1, -1)
        seats[groups] = np.arange(len(groups))
        entries = np.zeros(len(row), ENTRY)
        entries["name"], entries["group"] = found[row, NAME], found[row, GROUP]
        entries["stamp"], entries["part"] = stamps[valid], part
        entries = entries[seats[entries["group"]] >= 0]
        seat = seats[entries["group"]]
        entries = entries[np.lexsort((entries["part"], entries["name"], entries["stamp"], seat))]
        return entries, np.bincount(seat, minlength=len(groups))

    def restore(self, entries: Records, sizes: Ints) -> None:
        group = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((entries["name"], group))
        name, group, entries = entries["name"][order], group[order], entries[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (name[1:] != name[:-1]) | (group[1:] != group[:-1])
        found = np.full((int(fresh.sum()), STAMPS + self.d), NEW)
        found[:, NAME], found[:, GROUP] = name[fresh], group[fresh]
        found[np.cumsum(fresh) - 1, STAMPS + entries["part"]] = entries["stamp"]
        self.table = found
        self._lay_out(SMALLEST, 0, np.full(len(sizes), NEW))

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes)
