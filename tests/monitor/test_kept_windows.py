"""Engines that keep the window (TMA, SMA, TSL, `UntilDeleted`): refused queries, deletions by id, bad ids."""

import dataclasses
import math
from typing import Any

import pytest

import skyband as sb
from monitor.refusals import TOP, brief, refused, says, scores
from skyband.errors import BatchError, QueryError


@pytest.mark.parametrize("algorithm", ["TMA", "sma", "TSL"])
@pytest.mark.parametrize("kind", ["TopK", "Above"])
def test_grids_refuse_what_they_cannot_bound(kind: str, algorithm: str) -> None:
    query = sb.Above(1, len, sb.Last(3), algorithm=algorithm)
    with pytest.raises(QueryError) as caught:
        sb.Monitor(query if kind == "Above" else sb.TopK(2, len, sb.Last(3), algorithm=algorithm))
    says(caught.value, kind, algorithm.upper(), "cannot", "auto" if kind == "Above" else "BLOCK")


@pytest.mark.parametrize("algorithm", ["TMA", "SMA", "TSL"])
def test_expressions_share_a_window_as_long_as_they_reject_the_same_rows(algorithm: str) -> None:
    texts = ("x * y", "ln(x) - y", "coalesce(x, 0) + y")
    monitor = sb.Monitor([sb.TopK(2, by, sb.Last(4), algorithm=algorithm) for by in texts[:2]])
    monitor.push({"x": [1, 2, 3], "y": [4, 5, 6]})
    assert len(monitor._loop.state.standing()) == 1
    monitor.push({"x": [-1], "y": [0]})  # without a logarithm
    assert len(monitor._loop.state.standing()) == 2
    assert monitor.answer("q0")["score"].to_pylist() == [18, 10]
    assert monitor.answer("q1")["score"].to_pylist() == [math.log(1) - 4, math.log(2) - 5]
    alone = sb.Monitor(sb.TopK(2, texts[2], sb.Last(4), algorithm=algorithm))
    alone.push({"x": [1.0, None], "y": [4.0, 6.0]})  # a score, but not all numbers
    assert alone.answer()["score"].to_pylist() == [6, 5]
    alone._loop.check()


@pytest.mark.parametrize("algorithm", ["TMA", "SMA", "TSL"])
def test_a_column_that_may_hold_no_numbers_leaves_objects_kept_by_score(algorithm: str) -> None:
    by = "case when carrier = 'AA' then x else 0 end"
    monitor = sb.Monitor(sb.TopK(2, by, sb.Last(4), algorithm=algorithm))
    monitor.push({"x": [1, 2, 3], "carrier": ["AA", "AA", "UA"]})
    assert monitor.answer()["score"].to_pylist() == [2, 1]


@pytest.mark.parametrize(("algorithm", "instead"), [("CPM/W", "TMA"), ("snn", "SMA")])
@pytest.mark.parametrize("by", ["x", "abs(x - 1)", sb.Linear({"x": 1})], ids=str)
def test_names_for_nearest_are_for_nearest(algorithm: str, instead: str, by: Any) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(sb.TopK(2, by, sb.Last(3), algorithm=algorithm))
    says(caught.value, algorithm.upper(), "no Nearest", instead, "BLOCK")


@pytest.mark.parametrize("algorithm", ["SMA", "SNN", "SA", "BLOCK", "PA", "ADAPTIVE", "RAPF"])
def test_engines_that_rely_on_expiry_refuse_deletions(algorithm: str) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(sb.TopK(2, sb.Nearest({"x": 1}), sb.UntilDeleted(), algorithm=algorithm), id="i")
    says(caught.value, algorithm, "UntilDeleted()", "forgets", "TMA", "TSL")


def test_until_deleted_needs_ids() -> None:
    for query in (sb.TopK(2, "x", sb.UntilDeleted()), sb.Above(2, "x", sb.UntilDeleted())):
        with pytest.raises(QueryError) as caught:
            sb.Monitor(query)
        says(caught.value, "UntilDeleted()", "id=")


def test_delete_is_for_until_deleted() -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(TOP, id="i").delete(["a"])
    says(caught.value, "delete", "UntilDeleted", "Last(...)")


def live(**columns: Any) -> sb.Monitor:
    """Objects a, b and c with scores 1, 2 and 3, of which the best two are the answer."""
    monitor = sb.Monitor(sb.TopK(2, "x", sb.UntilDeleted()), id="i")
    monitor.push({"i": ["a", "b", "c"], "x": [1, 2, 3], **columns})
    return monitor


def test_an_unknown_id_is_counted_and_ignored() -> None:
    monitor = live()
    assert brief(monitor.delete(["z", "c", "c", "y"])) == ["-3", "+1"]
    assert monitor.stats()["rejected"] == {"unknown id": 3}
    assert scores(monitor) == [2, 1]
    assert brief(monitor.delete([])) == []
    assert sb.Monitor.restore(monitor.snapshot()).stats()["rejected"] == {"unknown id": 3}


def test_deleting_before_anything_has_arrived() -> None:
    monitor = sb.Monitor(sb.TopK(2, "x", sb.UntilDeleted()), id="i")
    assert brief(monitor.delete(["z", 1, None])) == []
    assert monitor.stats()["rejected"] == {"unknown id": 3}
    assert brief(monitor.push({"i": ["z"], "x": [1]})) == ["+1"]


@pytest.mark.parametrize("ids", [[1], ["a", 2.5], [["a"]], [b"a", 3]], ids=str)
def test_ids_of_a_wrong_type_delete_nothing(ids: list[Any]) -> None:
    monitor = live()
    before = monitor.snapshot()
    with pytest.raises(BatchError) as caught:
        monitor.delete(ids)
    says(caught.value, "delete", "string", "Nothing was deleted")
    assert monitor.snapshot() == before


@pytest.mark.parametrize("ids", [None, 7, "ab", b"ab"], ids=str)
def test_ids_that_are_no_list(ids: Any) -> None:
    """A lone string would be taken for the ids of its letters."""
    monitor = live()
    with pytest.raises(BatchError) as caught:
        monitor.delete(ids)
    says(caught.value, "delete", "list")
    assert scores(monitor) == [3, 2]


def test_a_live_id_replaces_its_object_in_one_step() -> None:
    monitor = live()
    changes = monitor.push({"i": ["c"], "x": [1.5]})
    assert brief(changes) == ["-3", "+1.5"] or brief(changes) == ["-3", "+1"]
    assert changes.column("at").to_pylist() == [3, 3]
    assert scores(monitor) == [2, 1.5]


def test_a_rejected_row_does_not_take_the_place_of_its_id() -> None:
    monitor = live()
    assert brief(monitor.push({"i": ["c", None], "x": [math.nan, 9]})) == []
    assert monitor.stats()["rejected"]["id is null"] == 1
    assert scores(monitor) == [3, 2]


@pytest.mark.parametrize("window", [sb.Last(3), sb.UntilDeleted()], ids=str)
@pytest.mark.parametrize("algorithm", ["auto", "TMA"])
def test_a_constraint_on_a_column_that_is_not_there(algorithm: str, window: Any) -> None:
    query = sb.TopK(2, sb.Linear({"x": 1, "y": 1}), window, where="x > 0 and z < 3", algorithm=algorithm)
    monitor = sb.Monitor(query, id="i")
    refused(monitor, {"i": ["a"], "x": [1], "y": [1]}, BatchError, "z")
    assert brief(monitor.push({"i": ["a"], "x": [1], "y": [1], "z": [0]})) == ["+2"]


@pytest.mark.parametrize(
    "where",
    ["x between 3 and 1", "x > 3 and y > 0 and x < 1", "x = 1 and 2 <= x", "x > 1 and x < 1", "x > 1 and x <= 1"],
)
@pytest.mark.parametrize("kind", ["TopK", "Above"])
def test_a_range_that_nothing_can_be_in(kind: str, where: str) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(1, "x", sb.Last(3), where=where) if kind == "TopK" else sb.Above(1, "x", sb.Last(3), where=where)
    says(caught.value, kind, "where", "'x'", "nothing")
    for good in (
        "x between 1 and 1",
        "x >= 1 and x <= 1",
        "x > 1 or x < 1",
        "not (x > 3 and x < 1)",
        "x < 3 and y > 3",
    ):
        sb.TopK(1, "x", sb.Last(3), where=good)


def test_an_answer_at_once_wants_a_window_that_is_kept() -> None:
    monitor = sb.Monitor({"top": TOP, "grid": sb.TopK(2, sb.Linear({"x": 1, "y": 1}), sb.Last(5), algorithm="TMA")})
    monitor.push({"x": [1, 2, 3], "y": [1, 1, 1]})
    before = monitor.snapshot()
    for query in (
        dataclasses.replace(TOP, k=TOP.k + 1),  # BLOCK keeps no window, and of the same question too little
        sb.TopK(1, sb.Linear({"x": 1, "z": 1}), sb.Last(5)),  # other columns
        sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(6)),  # a longer window
        sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(span=5)),
        sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(5), per="g"),
        sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(5), where="z > 1"),
    ):
        with pytest.raises(QueryError) as caught:
            monitor.add("new", query, from_window=True)
        if query.window.sort != "time":
            says(caught.value, "new", "window", "TMA, SMA or TSL", "from_window")
    with pytest.raises(QueryError, match="standing already"):
        monitor.add("top", sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(5)), from_window=True)
    assert monitor.snapshot() == before
    assert brief(monitor.add("new", sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(5)), from_window=True)) == ["+5"]
    restored = sb.Monitor.restore(monitor.snapshot())
    for one in (monitor, restored):
        one.drop("new")
        assert "new" not in one.queries


def test_more_answers_than_a_kept_window_has_places_for() -> None:
    with pytest.raises(QueryError, match="at most 1,000,000 answers"):
        sb.Monitor(sb.TopK(2**31 - 1, by="x", window=sb.UntilDeleted()), id="i")
    sb.Monitor(sb.TopK(2**31 - 1, by="x", window=sb.Last(5), algorithm="TMA"))


@pytest.mark.parametrize("algorithm", ["TMA", "TSL"])
@pytest.mark.parametrize(
    "options",
    [
        {"offset": 1},
        {"with_ties": True},
        {"ties": "oldest"},
        {"distinct": "last"},
        {"nulls": "last"},
        {"k": "kk", "k_max": 2},
    ],
)
def test_a_window_lends_nothing_to_an_order_that_it_cannot_rank_by(algorithm: str, options: dict[str, Any]) -> None:
    """`replace` starts empty, and nothing begins with the window."""
    rows = {"id": [1, 2, 3, 4, 4], "x": [1.0, 2.0, 4.0, 4.0, 1.0], "kk": [1, 1, 1, 1, 1]}
    chosen: dict[str, Any] = {"k": 2, "by": "x", "window": sb.Last(5)} | options
    asked = sb.TopK(**chosen)
    monitor = sb.Monitor({"a": sb.TopK(2, "x", sb.Last(5), algorithm=algorithm)}, id="id")
    monitor.push(rows)
    with pytest.raises(QueryError, match=r"SORTED answers|no standing query keeps a window"):
        monitor.add("b", asked, from_window=True)
    assert monitor.replace("a", asked)["diff"].to_pylist() == [-1, -1]
    monitor.push(rows)
    alone = sb.Monitor(asked, id="id")
    alone.push(rows)
    assert monitor.answer()["score"].to_pylist() == alone.answer()["score"].to_pylist()
    assert monitor.answer()["rank"].to_pylist() == alone.answer()["rank"].to_pylist()


def test_a_subscription_with_an_offset_begins_with_no_window_of_one_without() -> None:
    query = sb.TopK(2, "x", sb.UntilDeleted(), offset=sb.Each("off"))
    monitor = sb.Monitor({"e": query}, id="id")
    monitor.subscribe("e", {"subscriber": [0], "off": [0]})
    monitor.push({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]})
    with pytest.raises(QueryError, match="SORTED answers"):
        monitor.subscribe("e", {"subscriber": [1], "off": [1]}, from_window=True)
    monitor.subscribe("e", {"subscriber": [1], "off": [1]})
    monitor.push({"id": [4, 5], "x": [1.0, 2.0]})
    assert monitor.answer("e", subscriber=1)["id"].to_pylist() == [4]
