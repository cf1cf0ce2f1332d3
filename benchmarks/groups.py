"""Contestants over groups of rows: a Monitor with one TopKGroups, and what it is measured against.

Parameters: k, by, window, rows, batch, and those of the workload `trades`. D, the yardstick of issue 24, is
`pandas.factorize` of the ids and one `np.bincount` with weights.
"""

from __future__ import annotations

import collections
import heapq
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import skyband as sb
from benchmarks.contestants import Outcome, Ready
from benchmarks.workloads import Stream


def groups_push(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor that is pushed Arrow batches; every change at its arrival."""
    query = sb.TopKGroups(p["k"], by=p["by"], window=sb.Last(p["window"]))
    monitor = sb.Monitor(query, id="id", time="time")
    table = pa.table({name: pa.array(column) for name, column in stream.items()})
    tables = [table.slice(begin, p["batch"]) for begin in range(0, p["rows"], p["batch"])]

    def work() -> list[Any]:
        return [monitor.push(one) for one in tables]

    def after(changes: list[Any]) -> Outcome:
        stats = monitor.stats()["queries"]["q0"]
        counters = {
            "rows": p["rows"],
            "changes": sum(table.num_rows for table in changes),
            "objects": stats["objects"],
            "bytes": stats["bytes"],
        }
        return Outcome(monitor.answer().to_pydict(), _is_right, counters)

    return Ready(work, after)


def factorize(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """D: the ids as codes, and one weighted count of them."""

    def work() -> Any:
        codes, _ = pd.factorize(stream["id"])
        return np.bincount(codes, weights=stream["qty"])

    def after(totals: Any) -> Outcome:
        return Outcome(totals, lambda stream, p, totals: bool(np.isclose(totals.sum(), stream["qty"].sum())), _rows(p))

    return Ready(work, after)


def plain_python(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A deque of the window, a dict of totals, and heapq.nlargest at each arrival."""
    span = np.timedelta64(pd.Timedelta(p["window"]).value, "ns").astype(np.int64).item()
    rows = list(
        zip(stream["id"].tolist(), stream["qty"].tolist(), stream["time"].astype(np.int64).tolist(), strict=True)
    )

    def work() -> Any:
        window: Any = collections.deque()
        total: dict[Any, float] = {}
        best: list[Any] = []
        for id_, qty, time in rows:
            while window and window[0][2] <= time - span:
                old, gone, _ = window.popleft()
                total[old] -= gone
                if not total[old]:
                    del total[old]
            window.append((id_, qty, time))
            total[id_] = total.get(id_, 0) + qty
            best = heapq.nlargest(p["k"], total.items(), key=lambda item: item[1])
        return best

    def after(best: Any) -> Outcome:
        answer = {"id": [id_ for id_, _ in best], "score": [score for _, score in best]}
        return Outcome(answer, _is_right, _rows(p))

    return Ready(work, after)


def _rows(p: Mapping[str, Any]) -> dict[str, float]:
    return {"rows": p["rows"]}


def _is_right(stream: Stream, p: Mapping[str, Any], answer: Any) -> bool:
    """Whether these are the k best scores at the end, computed from all rows of the window by pandas."""
    valid = stream["time"] > stream["time"][-1] - np.timedelta64(pd.Timedelta(p["window"]).value, "ns")
    by_id = pd.Series(stream["qty"][valid]).groupby(stream["id"][valid])
    values = by_id.max() if p["by"].startswith("max") else by_id.sum()
    right = np.sort(values.to_numpy().astype(float))[::-1][: p["k"]]
    same = np.allclose(answer["score"], right, rtol=1e-12, atol=0)
    return bool(same) and all(np.isclose(values[i], s) for i, s in zip(answer["id"], answer["score"], strict=True))
