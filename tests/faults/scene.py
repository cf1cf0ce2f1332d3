"""Scenes of Monitors to be forged: their queries and options, the rows that they have seen, their subscriptions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.errors import SkybandWarning
from skyband.query.kinds import Query


@dataclass(frozen=True)
class Scene:
    """Queries and options of a Monitor, and how many rows it has seen."""

    queries: Mapping[str, Query]
    options: dict[str, Any] = field(default_factory=dict)
    rows: int = 60
    subscribers: int = 0  # of each query with `Each`, half of them from the first row on

    def start(self) -> sb.Monitor:
        return sb.Monitor(self.queries, **self.options)

    def monitor(self, later: int = 0) -> sb.Monitor:
        """A Monitor that has seen these rows, and so many later ones."""
        monitor = self.start()
        each = [name for name, query in self.queries.items() if query.each]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SkybandWarning)  # of rows that are rejected
            for size, start in ((self.rows * 2 // 3, 0), (self.rows - self.rows * 2 // 3 + later, self.rows * 2 // 3)):
                for name in each if self.subscribers else ():
                    monitor.subscribe(name, subscribers(self.subscribers // 2, start))
                    monitor.unsubscribe(name, [start + 1])
                if self.rows:
                    monitor.push(rows(size, start))
        return monitor


def subscribers(size: int, start: int = 0) -> dict[str, Any]:
    """Subscriptions that suit every scene with `Each`."""
    i = np.arange(start, start + size)
    return {
        "subscriber": i,
        "k": 1 + i % 3,
        "n": 5 + i % 20,
        "px": i % 40,
        "w": i % 3,
        "word": [f"w{n % 5}" for n in i],
        "v": [[float(n % 3 - 1), 1.0, float(n % 2)] for n in i],
        "limit": 10.0 + i % 30,
    }


@cache
def rows(size: int, start: int = 0) -> pa.Table:
    """Rows that suit every scene; groups come and go, times rise with some equal ones, and some are late."""
    rng = np.random.default_rng(start)
    i = np.arange(start, start + size)
    return pa.table(
        {
            "i": i,
            "word": pa.array([f"w{n % 23}" for n in i]),
            "t": i // 2 - rng.integers(0, 3, size),
            "x": rng.integers(0, 40, size).astype(float),
            "y": rng.integers(0, 40, size).astype(float),
            "g": pa.array(np.array(["a", "b", None, "c", "d"])[rng.integers(0, 4 + (start > 100), size)]),
            "b": i // 2,
            "h": pa.array(rng.integers(0, 2, size)),
            "p": rng.integers(1, 9, size) / 8,
            "e": rng.integers(0, 6, size),
            "who": rng.integers(0, 12, size),
            "part": pa.array(np.array(["a", "b"])[rng.integers(0, 2, size)]),
            "value": rng.integers(0, 9, size) / 8,
            "bag": pa.array([[1, None], [], None, [3]] * size)[:size],
            "op": pa.array([["insert", "delete", "update"][n % 3] if n % 5 == 0 else "insert" for n in i]),
            "l": i % 4,
            "m": pa.array([None if n % 9 == 4 else Decimal(int(n) % 7) / 4 for n in i], pa.decimal128(9, 2)),
            "v": pa.array([[int(n) % 5 - 2.0, 1.0, int(n) % 3] for n in i], pa.list_(pa.float32(), 3)),
            "moment": pa.array(1_700_000_000 + i // 2, pa.timestamp("s", "UTC")),
            "kind": pa.array([["one", "two", None][n % 3] for n in i]).dictionary_encode(),
        }
    )
