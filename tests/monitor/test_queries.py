"""The contract (DESIGN.md, section 2) by example: net changes, order, sharing; queries added, replaced, dropped.

The notation of the timelines: monitor/timelines.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import skyband as sb
from monitor.timelines import counting, ids, lasting, objects, reported
from skyband.errors import QueryError

# -------------------------------------------------------------------- emit, order, sharing


# at       0    1    2    3      (the last 2, the best 1)
#          A5   B7   C1   D2     A came and went, B as well; only D is new
def test_emit_batch_is_the_net_change() -> None:
    monitor = sb.Monitor(counting(1, 2), id="id", emit="batch")
    assert reported(monitor.push(objects("A5 B7 C1 D2"))) == ["3 +D*"]
    assert reported(monitor.push(objects("E1"))) == []
    assert reported(monitor.push(objects("F9 G9"))) == ["6 -D", "6 +G*"]


def test_emit_batch_reports_the_last_step() -> None:
    monitor = sb.Monitor(lasting(1, 5, per="g"), id="id", time="t", emit="batch")
    assert reported(monitor.push(objects("aA1@0 bB1@1 aC2@3"))) == ["1@3 +aC*", "0@3 +bB*"]
    assert reported(monitor.push(objects("bD3@9"))) == ["1@9 -aC", "1@9 -bB", "1@9 +bD*"]


def test_order_by_query_then_by_step_leaving_first() -> None:
    queries = {"two": counting(2, 2), "one": counting(1, 2)}
    monitor = sb.Monitor(queries, id="id")
    changes = monitor.push(objects("A1 B2 C3"))
    assert reported(changes) == [*("0 +A*", "1 +B*", "2 -A", "2 +C*"), *("0 +A*", "1 -A", "1 +B*", "2 -B", "2 +C*")]
    assert changes.column("query").to_pylist() == ["two"] * 4 + ["one"] * 5


def test_smaller_answers_from_one_skyband() -> None:
    monitor = sb.Monitor(counting(3, 5), id="id")
    monitor.push(objects("A9 B8 C7 D6 E5"))
    assert ids(monitor) == ["A", "B", "C"]
    assert ids(monitor, k=1) == ["A"]
    assert ids(monitor, window=3) == ["C", "D", "E"]
    assert ids(monitor, window=sb.Last(2), k=1) == ["D"]
    timed = sb.Monitor(lasting(3, 9), id="id", time="t")
    timed.push(objects("A9@0 B8@4 C7@8"))
    assert ids(timed, window=sb.Last(span=5)) == ["B", "C"]
    assert ids(timed, window=sb.Last(span=4)) == ["C"]


def test_queries_that_ask_alike_share_one_skyband() -> None:
    queries = {"a": counting(3, 50), "b": counting(1, 9), "c": counting(2, 50, largest=True)}
    monitor = sb.Monitor(queries)
    monitor.push({"x": np.random.default_rng(0).random(100)})
    assert len(monitor._loop.state.standing()) == 1
    for other in (
        counting(3, 50, largest=False),
        counting(3, 50, where="x > 0"),
        counting(3, 50, per="g"),
        sb.TopK(3, "x + 0", sb.Last(50)),
    ):
        assert len(sb.Monitor([counting(3, 50), other])._loop.state.standing()) == 2


# -------------------------------------------------------------------- add, replace, drop


def test_a_query_added_later_goes_on_with_the_numbers() -> None:
    monitor = sb.Monitor({"old": counting(1, 9)}, id="id")
    monitor.push(objects("A5 B3"))
    monitor.add("new", counting(1, 9))
    changes = monitor.push(objects("C4"))
    assert reported(changes) == ["2 +C*"], "A, the best, came before the new query"
    assert changes.column("query").to_pylist() == ["new"]
    assert ids(monitor, "old") == ["A"]


def test_replace_keeps_what_fits() -> None:
    monitor = sb.Monitor({"a": counting(3, 5), "b": counting(1, 2)}, id="id")
    monitor.push(objects("A9 B8 C7 D6 E5"))
    assert reported(monitor.replace("b", counting(2, 5))) == ["4 -D", "4 +A", "4 +B"]
    assert ids(monitor, "b") == ["A", "B"]
    assert reported(monitor.push(objects("F1"))) == ["5 -A", "5 +D*", "5 -A", "5 +C"]


def test_replace_starts_empty_when_it_does_not_fit() -> None:
    for other in (counting(3, 9), counting(1, 10), counting(1, 9, largest=False), counting(1, 9, per="g")):
        monitor = sb.Monitor({"a": counting(2, 9), "b": counting(1, 3)}, id="id")
        monitor.push(objects("xA9 xB8"))
        assert [line[:4] for line in reported(monitor.replace("a", other))] == ["1 -A", "1 -B"]
        assert monitor.answer("a").num_rows == 0
        assert monitor.queries == {"a": other, "b": counting(1, 3)}, "it keeps its place"
        assert sorted(monitor.push(objects("xC1")).column("query").to_pylist()) == ["a"]


def test_drop_keeps_what_the_others_need() -> None:
    monitor = sb.Monitor({"wide": counting(3, 9), "slim": counting(1, 2)}, id="id")
    monitor.push(objects("A9 B8 C7 D6"))
    monitor.drop("wide")
    assert list(monitor.queries) == ["slim"]
    assert monitor.stats()["queries"]["slim"]["objects"] == 2, "C and D, the last two"
    assert reported(monitor.push(objects("E1 F2"))) == ["4 -C", "4 +D*", "5 -D", "5 +F*"]
    monitor.drop("slim")
    assert monitor.push(objects("G1")).num_rows == 0
    with pytest.raises(QueryError):
        monitor.answer("slim")


def test_refused_queries_leave_their_columns_free() -> None:
    """What a query that never stood would have been called is no clash with later ones."""
    monitor = sb.Monitor(counting(1, 9), id="id", time="t")
    monitor.push({"id": ["A"], "t": [1], "x": [1.0], "g": [1], "h": [1]})
    with pytest.raises(QueryError, match="Last"):
        monitor.add("a", sb.TopK(1, "x", sb.Last("5 minutes"), per={"y": "g"}))
    with pytest.raises(QueryError, match="no standing query keeps"):
        monitor.add("a", sb.TopK(1, "x", sb.Last(5), per={"z": "g"}), from_window=True)
    monitor.add("b", sb.TopK(1, "x", sb.Last(5), per={"y": "h", "z": "h"}))
    with pytest.raises(QueryError, match="'y' would be"):
        monitor.add("c", sb.TopK(1, "x", sb.Last(5), per={"y": "g"}))
