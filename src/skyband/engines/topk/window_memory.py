"""Reported objects that have left their query's window, while a longer window may bring them back.

`replace` may give a query the longer window of a related query that stands: objects of that window which were reported
under the query's name are then not `first`. Nothing is kept where no related window is longer; else one entry for each
object reported in the longer window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Ints

Records = NDArray[Any]
ENTRY = np.dtype([("query", "i8"), ("group", "i8"), ("stamp", "i8"), ("serial", "i8")])


class Memory:
    """The objects that each query of an engine has reported, as far back as the longest related window."""

    def __init__(self) -> None:
        self.length = 0  # of that window
        self._entries, self._pieces = np.empty(0, ENTRY), list[Records]()
        self._most = 1024  # entries, before old ones are removed

    @property
    def entries(self) -> Records:
        if self._pieces:
            self._entries, self._pieces = np.concatenate([self._entries, *self._pieces]), []
        return self._entries

    def add(self, query: Any, group: Any, stamp: Ints, serial: Ints) -> None:
        """Note that these objects were reported."""
        new = np.zeros(len(serial), ENTRY)
        new["query"], new["group"], new["stamp"], new["serial"] = query, group, stamp, serial
        self._pieces.append(new)

    def prune(self, clock: int | None) -> None:
        """Remove what no window holds any more, once there is much; clock: of time windows."""
        if sum(map(len, self._pieces), len(self._entries)) <= self._most:
            return
        entries = self.entries
        now = np.full(int(entries["group"].max()) + 1, -(2**62) if clock is None else clock)
        if clock is None:  # the newest reported number of a group is not after its last arrival
            np.maximum.at(now, entries["group"], entries["stamp"])
        self._entries = entries[entries["stamp"] > now[entries["group"]] - self.length]
        self._most = 1024 + 2 * len(self._entries)

    def of(self, query: int, group: int) -> Records:
        """The objects of a group that a query has reported, in order of arrival."""
        entries = self.entries
        mine = np.flatnonzero((entries["query"] == query) & (entries["group"] == group))
        found: Records = entries[mine[np.argsort(entries["serial"][mine])]]
        return found

    def groups(self, query: int) -> list[int]:
        """The groups of which a query has reported objects."""
        found: list[int] = np.unique(self.entries["group"][self.entries["query"] == query]).tolist()
        return found

    def clear(self) -> None:
        """Forget all."""
        self._entries, self._pieces = np.empty(0, ENTRY), []

    def keep_groups(self, kept: Ints, but: Ints | None = None) -> None:
        """Keep only what was reported of these groups, which get the codes 0, 1, ..., and nothing of others."""
        entries = self.entries
        if not len(entries):
            return
        codes = np.full(1 + max(int(entries["group"].max()), int(kept.max(initial=0))), -1)
        codes[kept] = np.arange(len(kept))
        if but is not None:
            codes[but[but < len(codes)]] = -1
        entries["group"] = codes[entries["group"]]
        self._entries = entries[entries["group"] >= 0]

    def keep_queries(self, kept: Ints) -> None:
        """Keep only what these queries have reported."""
        entries = self.entries[np.isin(self.entries["query"], kept)]
        entries["query"] = np.searchsorted(kept, entries["query"])
        self._entries = entries
