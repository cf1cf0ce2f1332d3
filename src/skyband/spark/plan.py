"""What runs where: queries in families by their `per`, families in shards. Plain values, sent to workers.

A shard is a label; all rows of a group go to one shard of each family. A family without `per` has one group, so its
shards hold queries instead, and each gets every row; queries that share a skyband stay together.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.columns import distinct, key_bits, valid_of
from skyband.expressions import parse
from skyband.options import Options
from skyband.query import TopK

Ints = NDArray[np.int64]
CONTROL = "plan"  # the label that only watches over what is asked


@dataclass(frozen=True)
class Plan:
    """One call of `monitor`, as workers see it."""

    queries: dict[str, TopK]
    options: Options
    order: tuple[str, ...]
    shards: int
    columns: tuple[str, ...]  # all that a callable might read

    def families(self) -> dict[tuple[str, ...], dict[str, TopK]]:
        families: dict[tuple[str, ...], dict[str, TopK]] = {}
        for name, query in self.queries.items():
            families.setdefault(query.per_columns, {})[name] = query
        return families

    def members(self, label: str) -> dict[str, TopK]:
        """The queries that a shard answers."""
        per, shard = self.place(label)
        family = self.families().get(per, {})
        if per:
            return family
        return {name: query for name, query in family.items() if _home(query, self.shards) == shard}

    def labels(self) -> list[str]:
        """All shards that have queries."""
        labels = [json.dumps([list(per), shard]) for per in self.families() for shard in range(self.shards)]
        return [label for label in labels if self.members(label)]

    @staticmethod
    def place(label: str) -> tuple[tuple[str, ...], int]:
        """The `per` and the number of a shard."""
        per, shard = json.loads(label)
        return tuple(per), shard

    def monitor_options(self) -> dict[str, Any]:
        return asdict(self.options)

    def wanted(self, queries: dict[str, TopK]) -> tuple[str, ...]:
        """The columns that these queries read or report, and those that order rows."""
        names = dict.fromkeys(self.order)
        for role in (self.options.id, self.options.time, *self.options.kept):
            if role is not None:
                names[role] = None
        for query in queries.values():
            names |= dict.fromkeys(query.per_columns)
            if query.where is not None:
                names |= dict.fromkeys(parse(query.where).columns)
            if isinstance(query.by, str):
                names |= dict.fromkeys(parse(query.by).columns)
            elif hasattr(query.by, "columns"):
                names |= dict.fromkeys(query.by.columns)
            else:
                names |= dict.fromkeys(self.columns)
        return tuple(names)

    def fingerprint(self) -> dict[str, Any]:
        """What state belongs to, as it comes back from JSON."""
        queries = {name: query.to_dict() for name, query in self.queries.items()}
        facts = {"shards": self.shards, "options": [asdict(self.options), self.order], "queries": queries}
        told: dict[str, Any] = json.loads(json.dumps(facts))
        return told


def _home(query: TopK, shards: int) -> int:
    """The shard of a query without `per`: the same for all that can share a skyband, whatever else is asked."""
    shared = dict(query.to_dict(), k=0, window=query.window.timed)
    return zlib.crc32(json.dumps(shared, sort_keys=True).encode()) % shards


def shard_of(columns: list[Any], shards: int) -> Ints:
    """The shard of each row, by the values of its group: the same on every machine."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ _hash(column)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(shards)).astype(np.int64)


def _hash(column: Any) -> NDArray[np.uint64]:
    keys = key_bits(column)
    if keys is None:
        values, slots = distinct(column)
        keys = np.array([*(zlib.crc32(repr(word).encode()) for word in values), 0])[slots]
    hashed = keys.view(np.uint64)
    valid = valid_of(column)
    return hashed if valid is None else np.where(valid, hashed, np.uint64(0x5EED))
