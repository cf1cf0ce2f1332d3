"""Questions over answers that are refused, and why."""

from __future__ import annotations

from typing import Any

import pytest

from skyband import Each, Ever, Last, Monitor, TopK, TopKGroups, TopKPairs
from skyband.errors import QueryError

ROWS = TopK(3, by="x", window=Last(5))
GROUPS = TopKGroups(3, by="sum(x)", window=Last(5), of="d", select={"n": "count(*)"})


@pytest.mark.parametrize(
    ("source", "asker", "why"),
    [
        (ROWS, lambda: TopK(1, by="z", source="a"), "by reads 'z' .* which it has not"),
        (ROWS, lambda: TopK(1, by="rank", source="a"), "moves with every arrival"),
        (ROWS, lambda: TopK(1, by=("key_2",), source="a"), "reads 'key_2'"),
        (ROWS, lambda: TopKGroups(1, by="sum(n)", of="d", source="a"), "by reads 'n'"),
        (ROWS, lambda: TopKGroups(1, by="count(*)", of="e", source="a"), "of reads 'e'"),
        (ROWS, lambda: TopKGroups(1, by="count(*)", source="a"), "Name the column whose values are the objects"),
        (ROWS, lambda: TopKGroups(1, by="count(*)", of="d", window=Last(3), source="a"), "Leave the window out"),
        (ROWS, lambda: TopK(1, by="x", source="b"), "in a circle"),
        (ROWS, lambda: TopK(1, by="x", source="c"), "no query called 'c'"),
        (TopKPairs(1, by="abs(a.x - b.x)", window=Last(5)), lambda: TopK(1, by="score", source="a"), "is a TopKPairs"),
        (
            TopKGroups(1, by="sum(x)", window=Ever(), of="d", decay=5),
            lambda: TopK(1, by="score", source="a"),
            "fade with every moment",
        ),
        (
            TopKGroups(1, by="count(*)", window=Last(span=5), of="d", algorithm="SKETCH"),
            lambda: TopK(1, by="score", source="a"),
            "SKETCH estimates",
        ),
        (ROWS, lambda: TopK(Each("k"), by="score", source="a"), "without Each"),
    ],
)
def test_refused(source: Any, asker: Any, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        Monitor({"a": source, "b": asker()}, id="i", time="t", keep=["d", "x"])


def test_a_source_keeps_what_is_read_of_it() -> None:
    monitor = Monitor({"a": GROUPS, "b": TopK(1, by="n", source="a")})
    with pytest.raises(QueryError, match="b: by reads 'n'"):
        monitor.replace("a", TopKGroups(3, by="sum(x)", window=Last(5), of="d"))
    with pytest.raises(QueryError, match="drop these first"):
        monitor.drop("a")
    monitor.push({"d": ["u", "v"], "x": [1.0, 2.0]})
    changes = monitor.replace("a", TopKGroups(1, by="sum(x)", window=Last(5), of="d", select={"n": "count(*)"}))
    assert changes.select(["query", "id", "diff"]).to_pylist() == [{"query": "a", "id": "u", "diff": -1}]
    monitor.drop("b")
    monitor.drop("a")


def test_a_refused_question_leaves_its_source_alone() -> None:
    monitor = Monitor({"a": ROWS, "c": ROWS}, keep=["d", "x"])
    before = monitor.snapshot()
    asker = TopK(1, by="score", source="a")
    with pytest.raises(QueryError, match="character 0"):
        monitor.add("b\0", asker)
    assert monitor.snapshot() == before
    with pytest.raises(QueryError, match="its own answers"):
        monitor.replace("a", asker)
    assert monitor.snapshot() == before
    monitor.replace("c", asker)
    monitor.drop("c")
    monitor.drop("a")
    assert not monitor.queries


def test_dropped_questions_leave_their_columns_free() -> None:
    groups = TopKGroups(1, by="count(*)", of="d", source="a", select={"y": "count(*)"})
    monitor = Monitor({"a": ROWS, "b": groups, "c": TopK(1, by="score", source="a")}, keep=["d", "x"])
    monitor.add("e", TopK(2, by="score", source="a"))
    monitor.drop("b")
    monitor.add("f", TopK(2, by="score", source="a", per={"y": "x"}))
    assert list(monitor.queries) == ["a", "c", "e", "f"]
