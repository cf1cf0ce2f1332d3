"""Cells in which a score may be infinite: a query is in their lists too, whatever its floor."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from engines.comparison import cells, same_changes
from engines.playback import check
from skyband import Above, Last, Monitor, TopK
from skyband.oracle import Oracle

ROWS = [
    (-1.0, 0.0, 6),
    (1.0, -1.0, 12),
    (-2.0, 1.0, 17),
    (3.0, 1.5, 21),
    (-1.6, -2.0, 26),
    (0.5, 2.0, 30),
    (2.0, 0.5, 40),
]
TEXTS = (
    "y / x",
    "y - x / y",
    "power(x, y) + x",
    "y * 1e200 * 1e200 * (x + 4)",
    "case when x > 0 then x * 1e308 * 10 else y end",
)


@pytest.mark.parametrize("by", TEXTS)
@pytest.mark.parametrize("algorithm", ["TMA", "SMA"])
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_cells_whose_bound_is_infinite_list_their_queries(
    by: str, algorithm: Any, emit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skyband.engines.topk.window.FEW", 0)
    queries: dict[str, Any] = {
        "two": TopK(2, by=by, window=Last(span=14), algorithm=algorithm, cells=9),
        "box": TopK(2, by=by, window=Last(span=14), where="y between -1 and 2", algorithm=algorithm, cells=9),
    }
    if algorithm == "TMA":
        queries["above"] = Above(-1.0, by=by, window=Last(span=14), algorithm=algorithm)
    monitor, oracle = Monitor(queries, time="t", emit=emit), Oracle(queries, time="t", emit=emit)
    rows = [{"x": x, "y": y, "t": t} for x, y, t in ROWS]
    for begin in (0, 1, 4):
        part = rows[begin : {0: 1, 1: 4, 4: 7}[begin]]
        expected = oracle.push(part)
        same_changes(cells(monitor.push(pa.Table.from_pylist(part))), expected, by, net_changes=emit == "batch")
        check(monitor)
