"""Contestants of SKETCH: the objects with the largest count or sum over a time window, of very many.

Parameters: ids, exponent (of the Zipf distribution), n (rows in the window: one unit of time each), k, by, rows, fill,
batch. After each timed push the answer is held against NumPy over the window itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import skyband as sb
from benchmarks.contestants import Outcome, Ready
from benchmarks.workloads import Stream


def sketch_push(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor with TopKGroups by SKETCH; its precision is measured apart, on the same stream."""
    fill, end = p["fill"], p["fill"] + p["rows"]
    tables = [
        pa.table({name: column[b : b + p["batch"]] for name, column in stream.items()})
        for b in range(0, end, p["batch"])
    ]
    monitor = _monitor(p)
    before = fill // p["batch"]
    for table in tables[:before]:
        monitor.push(table)

    def work() -> None:
        for table in tables[before:]:
            monitor.push(table)

    def after(_: None) -> Outcome:
        other, hits = _monitor(p), []
        for number, table in enumerate(tables):
            other.push(table)
            if number >= before:
                found = other.answer().column("id").to_numpy()
                hits.append(len(np.intersect1d(found, best(stream, p, (number + 1) * p["batch"]))) / p["k"])
        stats = other.stats()["queries"]["q0"]
        counters = {
            "rows": p["rows"],
            "objects": stats["objects"],
            "bytes": stats["bytes"],
            "precision": float(np.mean(hits)),
            "answers": len(hits),
            "sure": stats["precision"],
        }
        same = monitor.answer().equals(other.answer())
        return Outcome(None, lambda *_: same, counters)

    return Ready(work, after)


def _monitor(p: Mapping[str, Any]) -> sb.Monitor:
    query = sb.TopKGroups(p["k"], p["by"], sb.Last(span=p["n"]), of="key", algorithm="SKETCH")
    return sb.Monitor(query, time="time")


def best(stream: Stream, p: Mapping[str, Any], end: int) -> NDArray[np.int64]:
    """The k objects with the largest count or sum of the last n rows."""
    begin = max(0, end - p["n"])
    ids, place = np.unique(stream["key"][begin:end], return_inverse=True)
    totals = np.bincount(place, None if p["by"] == "count(*)" else stream["x"][begin:end])
    found: NDArray[np.int64] = ids[np.argsort(-totals, kind="stable")[: p["k"]]]
    return found
