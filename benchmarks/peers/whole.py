"""A model of an incremental view: the whole window is kept, in order, and every change of the k best comes out.

So do Materialize (a TopK keeps its input arranged, a temporal filter takes rows out again) and RisingWave (its TopN
keeps all rows of a group in a state table): what leaves the window may promote any row that is still in it, so every
valid row stays. This is the shape of their work in Python, not their speed. Ties and late rows as in a Monitor's TopK.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import numpy as np
import sortedcontainers

Entry = tuple[float, int, int, int]  # score, time and number, all negative, and id: the best come first
Change = tuple[str, int, int]  # key, id, +1 or -1


class WholeWindow:
    """The k best of each key among the rows of the last `span` microseconds."""

    def __init__(self, k: int, span: int) -> None:
        self.k, self.span = k, span
        self.clock = -(2**62)
        self.late = 0  # rows that came too late for their window
        self._numbers = itertools.count()
        self._groups: defaultdict[str, Any] = defaultdict(sortedcontainers.SortedList)
        self._leaving: list[tuple[int, int, str, Entry]] = []  # a heap by the instant at which a row leaves

    def push(self, rows: Iterable[Mapping[str, Any]]) -> list[Change]:
        changes: list[Change] = []
        for row in rows:
            time = row["time"] if isinstance(row["time"], int) else _micros(row["time"])
            if time > self.clock:
                changes += self._pass_to(time)
            if time + self.span <= self.clock:
                self.late += 1
                continue
            number, key = next(self._numbers), row["key"]
            entry = (-row["score"], -time, -number, row["id"])
            heapq.heappush(self._leaving, (time + self.span, number, key, entry))
            changes += self._step(key, (), entry)
        return changes

    def advance(self, to: datetime) -> list[Change]:
        return self._pass_to(_micros(to))

    def answer(self) -> list[dict[str, Any]]:
        return [{"key": key, "id": entry[3]} for key in self._groups for entry in self._groups[key][: self.k]]

    @property
    def rows(self) -> int:
        return len(self._leaving)

    def _pass_to(self, time: int) -> list[Change]:
        """Time moves on: rows of a key that leave at one instant leave in one step."""
        changes: list[Change] = []
        self.clock = time
        while self._leaving and self._leaving[0][0] <= time:
            instant, gone = self._leaving[0][0], defaultdict(list)
            while self._leaving and self._leaving[0][0] == instant:
                _, _, key, entry = heapq.heappop(self._leaving)
                gone[key].append(entry)
            for key, entries in gone.items():
                changes += self._step(key, entries, None)
        return changes

    def _step(self, key: str, gone: Iterable[Entry], come: Entry | None) -> list[Change]:
        ranked = self._groups[key]
        before = ranked[: self.k]
        for entry in gone:
            ranked.remove(entry)
        if come is not None:
            ranked.add(come)
        after = ranked[: self.k]
        if before == after:
            return []
        left, entered = set(before).difference(after), set(after).difference(before)
        return [(key, entry[3], -1) for entry in left] + [(key, entry[3], +1) for entry in entered]


def _micros(time: Any) -> int:
    return int(np.datetime64(time, "us").astype(np.int64))
