"""Scorings of pairs that fail, are refused or give no score: nothing changes, or what has no score is counted."""

from __future__ import annotations

from typing import Any

import pytest

import skyband as sb

APART = sb.Global({"x": "absdiff"})


def state(monitor: sb.Monitor) -> Any:
    return monitor.snapshot()


def test_a_function_that_fails_on_the_way_changes_nothing() -> None:
    def careful(one: Any, other: Any) -> Any:
        if (one["x"] == 13).any():
            raise ValueError("unlucky")
        return abs(one["x"] - other["x"])

    queries = {
        "first": sb.TopK(2, "x", sb.Last(5)),
        "f": sb.TopKPairs(2, careful, sb.Last(5)),
        "g": sb.TopKPairs(2, lambda a, b: a["x"] + b["x"], sb.Last(5)),
    }
    monitor = sb.Monitor(queries, time="t")
    calls = [{"t": [1, 2, 3], "x": [1.0, 5.0, 2.0]}, {"t": [4, 5], "x": [13.0, 7.0]}]
    for batch in calls[:1]:
        monitor.push(batch)
    before = state(monitor)
    with pytest.raises(sb.BatchError, match=r"careful failed: ValueError: unlucky\. Nothing was pushed"):
        monitor.push(calls[1])
    assert state(monitor) == before
    fresh = sb.Monitor(queries, time="t")
    with pytest.raises(sb.BatchError, match="unlucky"):
        fresh.push({"t": [1, 2], "x": [13.0, 1.0]})
    assert fresh.push(calls[0]).num_rows and fresh.answer("f").equals(monitor.answer("f"))


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (lambda a, b: a["x"] - b["x"], "gives another score when the two objects are exchanged"),
        (lambda a, b: 1.0, r"returned shape \(\) for"),
        (lambda a, b: a["nothing"], "KeyError"),
        (sb.Global({"s": "absdiff"}), "'s' holds string"),
        (sb.Global({"y": "absdiff"}), "no column 'y'"),
        ("case when a.s = b.s then a.s else b.s end", "not a number"),
        ("abs(a.s - b.s)", "needs a number"),
        ("abs(a.y - b.y) * 2", "no column 'y'"),
    ],
)
def test_bad_scorings_are_refused_and_change_nothing(by: Any, said: str) -> None:
    symmetric = not isinstance(by, str) or "case" not in by
    monitor = sb.Monitor([sb.TopK(1, "x", sb.Last(3)), sb.TopKPairs(1, by, sb.Last(3), symmetric=symmetric)])
    before = state(monitor)
    with pytest.raises(sb.BatchError, match=said):
        monitor.push({"x": [1.0, 2.0, 4.0], "s": ["u", "v", "w"]})
    assert state(monitor) == before


def test_an_algorithm_that_cannot_serve_a_query_names_those_that_can() -> None:
    with pytest.raises(sb.QueryError, match="one of SCASE, BASIC, NAIVE"):
        sb.Monitor(sb.TopKPairs(1, "abs(a.x - b.x) / abs(a.y - b.y)", sb.Last(9), algorithm="TA"))
    with pytest.raises(sb.QueryError, match="SCASE"):
        sb.TopKPairs(1, APART, sb.Last(9), algorithm="SMA")
    with pytest.raises(sb.QueryError, match="symmetric=False"):
        sb.TopKPairs(1, "a.x - b.x", sb.Last(9))


def test_a_pair_without_a_score_is_counted_and_its_objects_live() -> None:
    monitor = sb.Monitor(
        {"long": sb.TopKPairs(3, "abs(a.x - b.x) / abs(a.y - b.y)", sb.Last(4)),
         "short": sb.TopKPairs(3, "abs(a.x - b.x) / abs(a.y - b.y)", sb.Last(2))}
    )  # fmt: skip
    monitor.push({"x": [1.0, 1.0, 2.0, None], "y": [0.0, 0.0, 5.0, 1.0]})
    # 0/0 of the first two; all three pairs of the last
    stats = monitor.stats()
    assert stats["queries"]["long"]["rejected"] == {"pair without a score": 4}
    assert stats["queries"]["short"]["rejected"] == {"pair without a score": 2}
    assert stats["rejected"] == {"pair without a score": 6}
    assert monitor.answer("long").num_rows == 2


def test_integers_beyond_2_53_are_rejected_rows() -> None:
    monitor = sb.Monitor(sb.TopKPairs(3, APART, sb.Last(4)))
    monitor.push({"x": [1, 2**60, 3]})
    assert monitor.stats()["rejected"] == {"x is beyond 2^53": 1}
    assert monitor.answer()["score"].to_pylist() == [2.0]


def test_strings_and_booleans_survive_a_restart() -> None:
    by = "case when a.s = b.s and a.on = b.on then abs(a.x - b.x) else 100 end"
    batches = [
        {"x": [1.0, 4.0, 2.0], "s": ["u", None, "u"], "on": [True, True, True]},
        {"x": [2.5, 9.0], "s": ["u", "v"], "on": [True, None]},
    ]
    one = sb.Monitor(sb.TopKPairs(3, by, sb.Last(4)))
    one.push(batches[0])
    other = sb.Monitor.restore(one.snapshot())
    assert one.push(batches[1]).equals(other.push(batches[1]))
    assert one.answer().equals(other.answer())
