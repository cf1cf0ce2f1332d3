"""The load on Spark that `explain` estimates: cores, shuffled bytes, state bytes, the time of a trigger.

A model of seven measured costs, fitted at 5,000 keys and triggers of up to 100,000 rows; docs/scale.md tells how, and
how far it is off at ten times as much. It is for TopK per key, or many over the same rows, scores in random order.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from skyband.engines.topk.odds import strict_size
from skyband.errors import QueryError
from skyband.query.kinds import TopK

EVERY = 10.0  # seconds between triggers, unless every= says
FREE = 0.3  # of the cores, for what the model does not know

# `python -m benchmarks.scale` prints these from the stored rows of benchmarks/experiments/scale.toml
TRIGGER = 0.543  # core-seconds of a trigger without rows
ROW = 4.67e-06  # of a row: read, scored, packed, sorted
KEY = 1.3e-04  # of a key that has rows in a trigger: unpacked, updated, packed
SHARED = 1.46e-06  # of a row where there are several queries: every shard takes it, into what they share
ALONE = 0.248  # seconds of a trigger in which the cores wait: planning, commits
SENT = 20.6  # bytes of a row in the shuffle
KEPT = 61.7  # bytes of an object in the state


@dataclass(frozen=True)
class Load:
    """Expected on Spark for so many rows per second."""

    cores: int
    shuffle_bytes: float  # per second
    state_bytes: float
    trigger_seconds: float
    rows: float  # of a trigger
    work: float  # core-seconds of a trigger

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.cores:,} core{'' if self.cores == 1 else 's'}, a trigger of {self.rows:,.0f} rows "
            f"in {self.trigger_seconds:,.1f} s ({self.work:,.1f} core-seconds), "
            f"{_bytes(self.shuffle_bytes)} a second through the shuffle, {_bytes(self.state_bytes)} of state; "
            "how far off: docs/scale.md"
        )


def load(query: TopK, objects: float | None, size: int | None, expected: dict[str, float]) -> Load:
    """For rate rows per second over `keys` keys and `queries` queries, a trigger `every` so many seconds.

    Objects are those of one key, `size` the bytes of all of them in one process: an engine may keep more than these.
    """
    if "rate" not in expected:
        raise QueryError("explain: keys= asks for the load on Spark, which needs rate= (arrivals per second) too.")
    if query.kind != "TopK":
        raise QueryError(f"explain: the load on Spark is known for TopK, not for {query.kind}. Leave keys= out.")
    if not query.per_columns and expected["keys"] != 1:
        raise QueryError("explain: the query has no `per`, so one key for all rows. Give keys=1.")
    keys, queries, every = expected["keys"], expected.get("queries", 1), expected.get("every", EVERY)
    rows = expected["rate"] * every
    work = core_seconds(rows, keys, queries)
    cores = max(1, math.ceil(work / every / (1 - FREE)))
    if objects is None or size is None:
        raise QueryError("explain: how many objects are there at a time is not known. Give rows= too.")
    state = max(keys * queries * objects * KEPT, size)
    shuffled = SENT * sent_rows(query, rows, keys, queries, cores)
    return Load(cores, shuffled / every, state, ALONE + work / cores, rows, work)


def core_seconds(rows: float, keys: float, queries: float = 1) -> float:
    """Of a trigger with so many rows: a key with none costs nothing, nor does one query more over the same rows."""
    touched = keys * -math.expm1(-rows / keys)
    return TRIGGER + rows * (ROW + (SHARED if queries > 1 else 0)) + touched * KEY


def sent_rows(query: TopK, rows: float, keys: float, queries: float, shards: int) -> float:
    """Of the rows of a trigger, those that a mapper cannot drop.

    Of a key these have fewer than k better ones before them or after them. In count windows every row moves the
    window. Without `per`, each shard has a part of the queries, and sees all rows.
    """
    if not query.per_columns and queries > 1:
        return rows * shards
    each = max(1, round(rows / keys))
    if query.window.sort != "time" or each <= query.most:
        return rows
    return min(rows, keys * 2 * strict_size(each, query.most))


def _bytes(size: float) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size:,.0f} bytes"
