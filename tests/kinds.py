"""One stream that suits every kind of query, and queries of each kind over it: for suites that break things.

Processes, disks and bytes break in the same way under every query, so all kinds go through all suites. The names of
columns and queries are stored in tests/upgrade: do not rename them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.errors import QueryError
from skyband.query.kinds import Query

Queries = Mapping[str, Query]


@dataclass(frozen=True)
class Kind:
    queries: Queries
    options: dict[str, Any] = field(default_factory=lambda: {"id": "i", "time": "t"})
    order: tuple[str, ...] = ("t", "i")

    def monitor(self, **more: Any) -> sb.Monitor:
        return sb.Monitor(dict(self.queries), **{**self.options, **more})


_HOUR = sb.Last(span=60)
_EVERY: dict[str, Kind] = {
    "topk": Kind(
        {
            "topk timed": sb.TopK(3, by="x", window=_HOUR, per="g"),
            "topk counted": sb.TopK(4, by="0.5*x - y", window=sb.Last(90)),
            "topk near": sb.TopK(2, by=sb.Nearest({"x": 30, "y": 40}), window=_HOUR),
        }
    ),
    "above": Kind(
        {
            "above timed": sb.Above(80, by="x", window=_HOUR, per="g"),
            "above counted": sb.Above(85, by="y", window=sb.Last(70)),
        }
    ),
    "groups": Kind(
        {
            "groups timed": sb.TopKGroups(3, by="sum(x)", window=_HOUR, per="g", select={"rows": "count(*)"}),
            "groups counted": sb.TopKGroups(2, by="avg(y)", window=sb.Last(60), having="count(*) > 1"),
            "groups best": sb.TopKGroups(2, by="max(x)", window=_HOUR),
            "groups ever": sb.TopKGroups(2, by="sum(value) - min(y)", window=sb.Ever()),
        },
        {"id": "who", "time": "t"},
    ),
    "pairs": Kind(
        {
            "pairs timed": sb.TopKPairs(3, by="abs(a.x - b.x) + abs(a.y - b.y)", window=sb.Last(span=30), per="g"),
            "pairs counted": sb.TopKPairs(2, by="abs(a.x - b.x)", window=sb.Last(25)),
        }
    ),
    "incomplete": Kind(
        {
            "incomplete timed": sb.TopKIncomplete(3, ["a", "b"], window=_HOUR),
            "incomplete counted": sb.TopKIncomplete(2, ["a", "b"], window=sb.Last(60), combine="max"),
        },
        {"id": "who", "time": "t"},
    ),
    "uncertain": Kind(
        {
            "uncertain timed": sb.TopKUncertain(2, by="x", window=sb.Last(span=20), per="g"),
            "uncertain counted": sb.TopKUncertain(2, by="y", window=sb.Last(20), semantics="u-kranks"),
        }
    ),
}


def _built(kind: Kind) -> bool:
    try:
        kind.monitor()
    except QueryError as error:
        if "no engine answers" not in str(error):
            raise
        return False
    return True


#: The kinds that this version answers; of them those that SKYBAND_KINDS names, if it is set: topk,pairs.
KINDS = {name: kind for name, kind in _EVERY.items() if _built(kind)}
if "SKYBAND_KINDS" in os.environ:
    KINDS = {name: KINDS[name] for name in os.environ["SKYBAND_KINDS"].split(",")}


def stream(rows: int, seed: int = 0, start: int = 0) -> Any:
    """Rows with rising times, some of them equal; ties in all scores. `start`: the rows before it are left out."""
    rng = np.random.default_rng(seed)
    size = rows + start
    table = pa.table(
        {
            "i": np.arange(size),
            "t": np.cumsum(rng.integers(0, 3, size)),
            "x": rng.integers(0, 100, size).astype(float),
            "y": rng.integers(0, 100, size).astype(float),
            "g": pa.array(np.array(["a", "b", "c"])[rng.integers(0, 3, size)]),
            "p": rng.integers(1, 9, size) / 8,
            "who": rng.integers(0, 12, size),
            "part": pa.array(np.array(["a", "b"])[rng.integers(0, 2, size)]),
            "value": rng.integers(0, 9, size) / 8,
        }
    )
    return table.slice(start)
