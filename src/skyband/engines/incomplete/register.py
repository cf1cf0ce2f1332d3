"""The register of valid rows by id and part: rejects a part's second row, where no `repeat` says what it means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Bools, Ints
from skyband.engines.incomplete.kernels.register import (
    BY_PART,
    LINE,
    NEXT,
    SIZE,
    UNKNOWN,
    Log,
    Rows,
    copy_valid,
    set_owners,
    undo,
    validate_rows,
)

Records = NDArray[Any]
SMALLEST = 256
ENTRY = np.dtype([("name", "i8"), ("stamp", "i8"), ("group", "i4"), ("part", "i4")], align=True)  # as it is stored


class Register:
    """The valid rows of every group, by id and part; all queries have one length of window.

    by_part: an id may have any number of parts, and nobody asks for the object of its last row.
    """

    def __init__(self, length: int, *, timed: bool, most: int = 1, by_part: bool = False) -> None:
        self.length, self.timed, self.most = length, timed, most
        self.links = np.empty(0, np.int32)  # of the batch validated last
        self._before: tuple[Log, int] | None = None  # the log before that batch and its size, until the batch is taken
        self._last = 0  # no line before it is of the batch validated last
        self._ended = -1  # where that log ended when another was begun within the batch; -1: none was
        self.by_part = by_part
        self.log = self._empty_log(SMALLEST)

    @property
    def size(self) -> int:
        return int(self.log.facts[SIZE])

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
        brings: Bools,
    ) -> Bools:
        """Which rows are rejected. It stands once `keep` is called."""
        self.undo()
        self._before, self._ended = (self.log, self.size), -1
        none, counts = np.empty(0, np.int64), counts.copy()
        times, clocks = (none, none) if times is None or clocks is None or not self.timed else (times, clocks)
        rejected, self.links = np.zeros(len(names), np.bool_), np.full(len(names), UNKNOWN, np.int32)
        batch = Rows(names, parts, groups, rows, times, clocks, counts, brings, rejected, self.most, self.links)
        self.log.facts[NEXT] = 0
        while not validate_rows(self.log, batch, self.length, limit):
            done = int(self.log.facts[NEXT])
            clock = int(clocks[rows[done]]) if self.timed else 0
            bounds = np.full(len(counts), clock - self.length) if self.timed else counts - self.length - 1
            self._ended = self.size if self._ended < 0 else self._ended
            self._renew(self.log.lines[: self.size], len(self.log.lines), bounds)
            self.log.facts[NEXT] = done
        return rejected

    def _renew(self, lines: Records, capacity: int, bounds: Ints) -> None:
        """Begin a log with what has not expired, at most half full. bounds: by group."""
        self.log = self._empty_log(max(capacity, 1 << (len(lines) - 1).bit_length()))
        copy_valid(lines, bounds, self.log)
        if 2 * self.size > len(self.log.lines):
            self._renew(lines, 2 * len(self.log.lines), bounds)

    def _empty_log(self, capacity: int) -> Log:
        facts = np.zeros(3, np.int64)
        facts[BY_PART] = self.by_part
        return Log(np.empty(capacity, LINE), np.full(capacity, -1, np.int32), facts)

    def rename_parts(self, moved: Ints) -> None:
        """Parts have other numbers; moved: by old number. What was validated has been taken."""
        lines = self.log.lines[: self.size]
        lines["part"], lines["seen"] = moved[lines["part"]], -1
        groups = 1 + int(lines["group"].max(initial=-1))
        self._renew(lines, len(self.log.lines), np.full(groups, np.iinfo(np.int64).min))

    def keep(self) -> None:
        """What was validated is taken."""
        if self._before is not None:
            self._last = self._before[1] if self._ended < 0 else 0
        self._before = None

    def set_owners(self, owners: Records) -> None:
        """By row of the batch validated last: the engine's object."""
        set_owners(self.log, self._last, owners)

    def undo(self) -> None:
        """Forget what was validated and not taken. If it fails, the next call does it again, from the same end."""
        if self._before is not None:
            log, size = self._before
            self._ended = self.size if self._ended < 0 else self._ended
            undo(log, size, self._ended)
            self.log = log
        self._before = None

    def shorten(self, length: int) -> None:
        self.undo()
        self.length = length

    # --- by group

    def entries(self, groups: Ints, now: Ints) -> tuple[Records, Ints]:
        """The valid entries of these groups, group by group, and how many of each."""
        self.undo()
        places = np.full(len(now), -1)
        places[groups] = np.arange(len(groups))
        found = self.log.lines[: self.size]
        found = found[found["group"] < len(now)]
        found = found[(found["stamp"] > now[found["group"]] - self.length) & (places[found["group"]] >= 0)]
        entries = np.zeros(len(found), ENTRY)
        for name in ("name", "stamp", "group", "part"):
            entries[name] = found[name]
        place = places[entries["group"]]
        entries = entries[np.lexsort((entries["part"], entries["name"], entries["stamp"], place))]
        return entries, np.bincount(place, minlength=len(groups))

    def restore(self, entries: Records, sizes: Ints, names: Ints | None = None, groups: Ints | None = None) -> None:
        """Take stored entries. names, groups: of the engine's objects."""
        lines = np.zeros(len(entries), LINE)
        for name in ("name", "stamp", "part"):
            lines[name] = entries[name]
        lines["group"], lines["object"], lines["seen"] = np.repeat(np.arange(len(sizes)), sizes), UNKNOWN, -1
        if names is not None:
            keys = np.zeros(len(names) + len(lines), [("group", "i8"), ("name", "i8")])
            keys["name"] = np.concatenate([names, lines["name"]])
            keys["group"] = np.concatenate([groups, lines["group"]])
            distinct, which = np.unique(keys, return_inverse=True)
            places = np.full(len(distinct), UNKNOWN, np.int32)
            places[which[: len(names)]] = np.arange(len(names))
            lines["object"] = places[which[len(names) :]]
        self._before = None
        self._renew(lines, SMALLEST, np.full(len(sizes), np.iinfo(np.int64).min))

    @property
    def nbytes(self) -> int:
        return int(self.log.lines.nbytes + self.log.heads.nbytes)
