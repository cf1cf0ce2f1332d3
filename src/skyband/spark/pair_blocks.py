"""Pairs by blocks: the merged answers of several shards, each of which scores a share of the pairs.

Every shard sees all objects and keeps the window; a pair belongs to the shard of the member that arrived later. At any
moment the k best pairs of all are among the k best of each shard. So a shard reports the changes of its own answer,
which are few, and the k best of the shards' answers are the answer: step by step, since all shards number arrivals
alike.

shen2012 merges K-skybands; those change about 2·sqrt(2K) times with each arrival, answers hardly ever. Cost: a
bisection for each change of a shard's answer, and a comparison of k pairs for each step that has one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from skyband.monitor.archive import pack, unpack
from skyband.query.kinds import TopKPairs
from skyband.query.windows import Last
from skyband.tables.changes import PAIR
from skyband.tables.columns import as_arrow, plain
from skyband.tables.input import time_unit, times

Rank: TypeAlias = tuple[float, int, int, int, int]  # score and ages of the members, negated: smaller is better
Found: TypeAlias = tuple[int, int, int, bool]  # rows of the pair and of the step, diff, first
_STEP = ("at", "time", "diff", "first")  # columns of a change that belong to its step, not to its pair


class MergedAnswer:
    """The answer to one query over all shards."""

    def __init__(self, query: TopKPairs, moment: str | None, stored: bytes | None) -> None:
        """moment: the column, before _a and _b, of the objects' own times; None: the newer has the larger number."""
        self.query, self.moment = query, moment
        self.pairs: Any = None  # columns of the pairs that are in some shard's answer
        self.ranked: list[Rank] = []  # those pairs, best first
        self.row: dict[Rank, int] = {}  # in `pairs`
        self.reported: set[Rank] = set()  # pairs that have been in the answer
        if stored is not None:
            _, parts = unpack(stored)
            self.pairs = parts["pairs"]
            self.ranked = self._ranks(self.pairs)
            self.row = {rank: i for i, rank in enumerate(self.ranked)}
            self.reported = set(zip(parts["keys"].tolist(), *parts["ages"].tolist(), strict=True))

    def snapshot(self) -> bytes:
        reported = sorted(self.reported)
        rows = np.array([self.row[rank] for rank in self.ranked], np.int64)
        ages = np.array([rank[1:] for rank in reported], np.int64).reshape(-1, 4).T
        parts = {
            "pairs": self.pairs.take(as_arrow(rows)),
            "keys": np.array([rank[0] for rank in reported]),
            "ages": ages,
        }
        return pack({}, parts)

    def answer(self) -> pa.Table:
        """The pairs, best first."""
        return self._pairs([self.row[rank] for rank in self._best()])

    def _best(self) -> list[Rank]:
        return self.ranked[: self.query.k]

    def take(self, changes: pa.Table) -> pa.Table:
        """Take a trigger's changes of all shards; returns those of the merged answer."""
        before = 0 if self.pairs is None else self.pairs.num_rows
        pairs = changes.drop_columns([name for name in _STEP if name in changes.column_names])
        self.pairs = pairs if self.pairs is None else pa.concat_tables([self.pairs, pairs])
        ranks, diffs, numbers = self._ranks(pairs), changes.column("diff").to_pylist(), changes.column("at").to_pylist()
        timed = "time" in changes.column_names
        instants = _moments(changes.column("time")) if timed else [0] * len(ranks)
        steps = list(zip(numbers, instants, strict=True))  # an expiry after an arrival has a later time
        found: list[Found] = []
        for _, mine in groupby(sorted(range(len(ranks)), key=lambda i: (steps[i], diffs[i])), key=steps.__getitem__):
            found += self._step([(i, ranks[i], diffs[i], before + i) for i in mine])
        out = self._pairs([row for row, *_ in found])
        step = as_arrow(np.array([step for _, step, *_ in found], np.int64))
        for name in ("at", "time") if timed else ("at",):
            out = out.append_column(name, changes.column(name).take(step))
        out = out.append_column("diff", pa.array([diff for *_, diff, _ in found], pa.int8()))
        self._forget(changes, numbers, instants)
        return out.append_column("first", pa.array([first for *_, first in found], pa.bool_()))

    def _step(self, changes: list[tuple[int, Rank, int, int]]) -> Iterator[Found]:
        """One step of all shards, leaving pairs first."""
        old, step, rows = self._best(), changes[0][0], dict[Rank, int]()
        for _, rank, diff, row in changes:
            if diff < 0:
                del self.ranked[bisect_left(self.ranked, rank)]
                rows[rank] = self.row.pop(rank)
            else:
                insort(self.ranked, rank)
                self.row[rank] = row
        new = self._best()
        if old == new:
            return
        for rank in sorted(set(old) - set(new)):
            yield rows.get(rank, self.row.get(rank, -1)), step, -1, False
        for rank in sorted(set(new) - set(old)):
            yield self.row[rank], step, 1, rank not in self.reported
            self.reported.add(rank)

    def _forget(self, changes: Any, numbers: list[int], instants: list[int]) -> None:
        """Forget the pairs that have expired: they will not be reported again."""
        window = self.query.window
        assert isinstance(window, Last)
        if self.moment is None:
            oldest = max(numbers, default=0) - window.length(None)
            self.reported = {rank for rank in self.reported if -rank[2] > oldest}
        elif instants:
            oldest = max(instants) - window.length(time_unit(changes.schema.field("time").type))
            self.reported = {rank for rank in self.reported if -rank[1] > oldest}

    def _pairs(self, rows: list[int]) -> pa.Table:
        return self.pairs.take(as_arrow(np.array(rows, np.int64)))

    def _ranks(self, pairs: Any) -> list[Rank]:
        """Of equal scores the pair whose older member is newer is better, then the one whose newer member is newer."""
        scores = np.asarray(plain(pairs.column("score")))
        ages: list[list[int]] = []
        for end in PAIR:
            own = [0] * len(scores) if self.moment is None else _moments(pairs.column(f"{self.moment}{end}"))
            ages += [[-time for time in own], [-number for number in pairs.column(f"id{end}").to_pylist()]]
        return list(zip((-scores if self.query.descending else scores).tolist(), *ages, strict=True))


def _moments(column: Any) -> list[int]:
    moments: list[int] = times(plain(column), 0)[0].tolist()
    return moments
