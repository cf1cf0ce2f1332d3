"""Contestants over orders of keys: a Monitor that ranks by several keys or a string, and pyarrow's rank of the column.

Parameters: by ("score DESC, name ASC"), k, n, rows, batch; of the workload `named_scores`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import skyband as sb
from benchmarks.contestants import Outcome, Ready
from benchmarks.workloads import Stream


def ordered_push(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor that is pushed Arrow batches; every change at its arrival."""
    by = _keys(p)
    query = sb.TopK(p["k"], by=tuple(by), largest=tuple(by.values()), window=sb.Last(p["n"]))
    monitor, table = sb.Monitor(query), _table(stream)
    tables = [table.slice(begin, p["batch"]) for begin in range(0, p["rows"], p["batch"])]

    def work() -> list[Any]:
        return [monitor.push(one) for one in tables]

    def after(changes: list[Any]) -> Outcome:
        counters = {"rows": p["rows"], "changes": sum(table.num_rows for table in changes)}
        return Outcome(monitor.answer()["id"].to_pylist(), _is_right, counters)

    return Ready(work, after)


def arrow_rank(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A yardstick: pyarrow's rank of the first key, all rows at once."""
    column = _table(stream)[next(iter(_keys(p)))].combine_chunks()

    def after(ranks: Any) -> Outcome:
        return Outcome(ranks, lambda stream, p, ranks: len(ranks) == p["rows"], {"rows": p["rows"]})

    return Ready(lambda: pc.rank(column, sort_keys="descending", tiebreaker="dense"), after)


def _keys(p: Mapping[str, Any]) -> dict[str, bool]:
    """The columns, and whether the largest is best."""
    keys = (key.split() for key in p["by"].split(", "))
    return {column: way == "DESC" for column, way in keys}


def _table(stream: Stream) -> pa.Table:
    return pa.table({name: pa.array(column) for name, column in stream.items()})


def _is_right(stream: Stream, p: Mapping[str, Any], answer: list[int]) -> bool:
    """Whether these are the k best rows of the last n, the newest of equals first, by a sort of them all."""
    first = max(p["rows"] - p["n"], 0)
    rows = list(range(p["rows"] - 1, first - 1, -1))
    for column, largest in reversed(_keys(p).items()):
        rows.sort(key=stream[column].__getitem__, reverse=largest)  # stable in both directions
    return rows[: p["k"]] == answer
