"""Rows and queries that are rejected, with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skyband import Last, Monitor, TopKIncomplete
from skyband.errors import BatchError, QueryError


def test_bad_rows_are_rejected_with_a_reason() -> None:
    monitor = Monitor(TopKIncomplete(2, {"a": (0, 2), "b": (-1, 1)}, Last(4)), id="i")
    bad = [("p", "c", 0.5), ("p", None, 0.5), ("p", "a", 2.5), ("p", "b", -1.5), ("p", "a", None), (None, "a", 1.0)]
    monitor.push({"i": [i for i, *_ in bad], "part": [p for _, p, _ in bad], "value": [v for *_, v in bad]})
    assert monitor.stats()["arrivals"] == 0
    assert monitor.stats()["rejected"] == {"part: unknown part": 2, "value out of range": 3, "i is null": 1}
    monitor.push({"i": ["p", "p", "p"], "part": ["a", "a", "b"], "value": [1.0, 2.0, 1.0]})
    assert monitor.stats()["rejected"]["part: second row of the same part"] == 1
    assert monitor.answer()["score"].to_pylist() == [2.0]


def test_a_batch_that_raises_changes_nothing() -> None:
    monitor = Monitor(TopKIncomplete(2, ["a", "b"], Last(4)), id="i", invalid="raise")
    monitor.push({"i": ["p"], "part": ["a"], "value": [0.5]})
    before = monitor.snapshot()
    with pytest.raises(BatchError, match="second row of the same part"):
        monitor.push({"i": ["q", "q", "p"], "part": ["a", "b", "a"], "value": [0.5, 0.5, 0.5]})
    assert monitor.snapshot() == before
    monitor.push({"i": ["q", "q"], "part": ["a", "b"], "value": [0.5, 0.5]})
    assert monitor.answer()["id"].to_pylist() == ["q", "p"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Monitor(TopKIncomplete(1, ["a"], Last(1))), "id"),
        (lambda: TopKIncomplete(1, ["a"], Last(1), repeats=3), "repeats"),
        (lambda: TopKIncomplete(1, ["a"], Last(1), algorithm="APPROX", repeats=3), "repeat="),
        (lambda: TopKIncomplete(1, ["a"], Last(1), budget=30), "BUDGET"),
        (lambda: TopKIncomplete(9, ["a"], Last(1), algorithm="BUDGET", budget=8), "budget"),
        (lambda: TopKIncomplete(1, ["a"], Last(1), seed=-1), "seed"),
    ],
)
def test_queries_that_make_no_sense_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(QueryError, match=said):
        make()


def test_parts_have_names() -> None:
    monitor = Monitor(TopKIncomplete(1, ["1", "2"], Last(3)), id="i")
    with pytest.raises(BatchError, match="strings"):
        monitor.push({"i": [1], "part": [1], "value": [0.5]})
    with pytest.raises(BatchError, match="no column 'part'"):
        monitor.push({"i": [1], "value": [0.5]})
