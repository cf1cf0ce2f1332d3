"""Windows whose first query has left: a snapshot brings each back to its own queries."""

from __future__ import annotations

from typing import Any

import pytest

from skyband import Last, Monitor, TopK


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("algorithm", ["SA", "SMA", "TSL"])
def test_the_first_query_of_a_shared_window_has_left(algorithm: Any, trusted: bool) -> None:
    queries = {
        "a": TopK(2, by="x", window=Last(4), algorithm=algorithm),
        "b": TopK(3, by="y", window=Last(5), algorithm=algorithm),
        "c": TopK(1, by="x", window=Last(4), algorithm=algorithm),
    }
    monitor = Monitor(queries)
    monitor.push({"x": [3.0, 1.0, 2.0, 5.0], "y": [7.0, 9.0, 8.0, 6.0]})
    monitor.drop("a")
    back = Monitor.restore(monitor.snapshot(), trusted=trusted)
    for name, scores in (("b", [9.0, 8.0, 7.0]), ("c", [5.0])):
        assert back.answer(name).column("score").to_pylist() == scores
        assert back.answer(name).equals(monitor.answer(name))
    more = {"x": [4.0, 6.0], "y": [10.0, 1.0]}
    assert back.push(more).equals(monitor.push(more))
