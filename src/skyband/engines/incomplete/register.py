"""Who has a valid row of which part: rows that come a second time, where no `repeat` says what that means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Bools, Ints
from skyband.engines.incomplete.kernels.register import LINE, NOBODY, judge_rows, lay_out, own, undo

Records = NDArray[Any]
SMALLEST = 256
ENTRY = np.dtype([("name", "i8"), ("stamp", "i8"), ("group", "i4"), ("part", "i4")], align=True)  # as it is stored


class Register:
    """The valid rows of every group, by id and part; all of the queries look at one length of window."""

    def __init__(self, length: int, *, timed: bool) -> None:
        self.length, self.timed = length, timed
        self.links = np.empty(0, np.int32)  # of the batch judged last
        self._before: tuple[Records, Records, int] | None = None  # what there was before it, until it is taken
        self._judged = 0  # no line before it is of the batch judged last
        self._ended = -1  # where that log ended when another was begun within the batch; -1: none was
        self._begin(SMALLEST)

    def _begin(self, room: int) -> None:
        self.log, self.heads, self.size = np.empty(room, LINE), np.full(room, -1, np.int32), 0

    def validate(
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
        self._before = self.log, self.heads, self.size
        self._ended = -1
        rejected, self.links = np.zeros(len(names), np.bool_), np.full(len(names), NOBODY, np.int32)
        none, counts, size = np.empty(0, np.int64), counts.copy(), np.array([self.size])
        times, clocks = (none, none) if times is None or clocks is None or not self.timed else (times, clocks)
        done = 0
        while True:
            done = judge_rows(
                self.log,
                self.heads,
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
                size,
                rejected,
                self.links,
            )
            self.size = int(size[0])
            if done == len(rows):
                return rejected
            clock = int(clocks[rows[done]]) if self.timed else 0
            bounds = np.full(len(counts), clock - self.length) if self.timed else counts - self.length - 1
            self._ended = self.size if self._ended < 0 else self._ended
            self._lay_out(self.log[: self.size], len(self.log), bounds)
            size[0] = self.size

    def _lay_out(self, lines: Records, room: int, bounds: Ints) -> None:
        """What has not expired, in a log that is at most half full. bounds: by group."""
        self._begin(max(room, 1 << (len(lines) - 1).bit_length()))
        self.size = lay_out(lines, bounds, self.log, self.heads)
        if 2 * self.size > len(self.log):
            self._lay_out(lines, 2 * len(self.log), bounds)

    def keep(self) -> None:
        """What was judged is taken."""
        if self._before is not None:
            self._judged = self._before[2] if self._ended < 0 else 0
        self._before = None

    def own(self, owners: Records) -> None:
        """By row of the batch judged last: what its object is to the engine."""
        own(self.log, self._judged, self.size, owners)

    def undo(self) -> None:
        if self._before is not None:
            end = self.size if self._ended < 0 else self._ended
            self.log, self.heads, self.size = self._before
            undo(self.log, self.heads, self.size, end)
        self._before = None

    def shorten(self, length: int) -> None:
        self.undo()
        self.length = length

    # --- by group

    def entries(self, groups: Ints, now: Ints) -> tuple[Records, Ints]:
        """The valid entries of these groups, group by group, and how many of each."""
        self.undo()
        seats = np.full(len(now), -1)
        seats[groups] = np.arange(len(groups))
        found = self.log[: self.size]
        found = found[found["group"] < len(now)]
        found = found[(found["stamp"] > now[found["group"]] - self.length) & (seats[found["group"]] >= 0)]
        entries = np.zeros(len(found), ENTRY)
        for name in ("name", "stamp", "group", "part"):
            entries[name] = found[name]
        seat = seats[entries["group"]]
        entries = entries[np.lexsort((entries["part"], entries["name"], entries["stamp"], seat))]
        return entries, np.bincount(seat, minlength=len(groups))

    def restore(self, entries: Records, sizes: Ints, names: Ints | None = None, groups: Ints | None = None) -> None:
        """names, groups: of the engine's objects."""
        lines = np.zeros(len(entries), LINE)
        for name in ("name", "stamp", "part"):
            lines[name] = entries[name]
        lines["group"], lines["object"], lines["seen"] = np.repeat(np.arange(len(sizes)), sizes), NOBODY, -1
        if names is not None:
            keys = np.zeros(len(names) + len(lines), [("group", "i8"), ("name", "i8")])
            keys["name"] = np.concatenate([names, lines["name"]])
            keys["group"] = np.concatenate([groups, lines["group"]])
            distinct, which = np.unique(keys, return_inverse=True)
            places = np.full(len(distinct), NOBODY, np.int32)
            places[which[: len(names)]] = np.arange(len(names))
            lines["object"] = places[which[len(names) :]]
        self._before = None
        self._lay_out(lines, SMALLEST, np.full(len(sizes), np.iinfo(np.int64).min))

    @property
    def nbytes(self) -> int:
        return int(self.log.nbytes + self.heads.nbytes)
