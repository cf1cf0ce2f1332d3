"""Vectors that subscriptions bring: refused ones, and columns of every list type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.errors import QueryError


def alerts(metric: Any = "cosine") -> sb.Monitor:
    return sb.Monitor({"alerts": sb.TopK(1, sb.Similar("e", sb.Each("v"), metric), sb.Last(3))}, id="i")


@pytest.mark.parametrize(
    ("vectors", "match"),
    [
        ([[1.0, 2.0], None], "'b'.*'v' is null"),
        ([[1.0, 2.0], [1.0, None]], "'b'.*null component"),
        ([[1.0, 2.0], [1.0, float("inf")]], "'b'.*not finite"),
        ([[1.0, 2.0], [0.0, 0.0]], "'b'.*norm 0"),
        ([[1.0], []], "'b'.*without components"),
        ([1.0, 2.0], "holds double.*lists of numbers"),
        ([["x"], ["y"]], "lists of numbers"),
    ],
)
def test_what_is_no_vector_is_refused_with_its_subscriber(vectors: Any, match: str) -> None:
    monitor = alerts()
    with pytest.raises(QueryError, match=match):
        monitor.subscribe("alerts", {"subscriber": ["a", "b"], "v": pa.array(vectors)})
    assert monitor.stats()["queries"]["alerts"]["subscriptions"] == 0
    assert alerts("dot").subscribe("alerts", {"subscriber": ["a"], "v": [[0.0, 0.0]]}).num_rows == 0


def test_tables_of_every_list_type_and_of_several_lengths() -> None:
    monitor = alerts("euclidean")
    monitor.subscribe("alerts", {"subscriber": ["a", "b"], "v": np.eye(2, dtype=np.float16)})
    monitor.subscribe("alerts", {"subscriber": ["c"], "v": [[1, 1]]})
    monitor.subscribe("alerts", {"subscriber": ["d"], "v": pa.array([[5.0, 5.0, 5.0]], pa.large_list(pa.float32()))})
    monitor.push({"i": ["x", "y", "z"], "e": [[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]})
    monitor.push({"i": ["w"], "e": [[5.0, 5.0, 4.0]]})
    monitor = sb.Monitor.restore(monitor.snapshot(), trusted=False)
    found = monitor.answer("alerts").select(["subscriber", "id", "score"]).to_pylist()
    assert {row["subscriber"]: (row["id"], row["score"]) for row in found} == {
        "a": ("z", 1.0),
        "b": ("z", 1.0),
        "c": ("z", 0.0),
        "d": ("w", 1.0),
    }
