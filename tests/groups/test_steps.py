"""Single rules of groups of rows, each by a stream of a few rows whose answer is known."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband.errors import BatchError, QueryError

Rows = list[dict[str, Any]]


def rows(*given: tuple[Any, ...]) -> Rows:
    """Rows of time, object and number, with an id that tells them apart."""
    return [{"t": t, "o": o, "x": x, "i": i} for i, (t, o, x) in enumerate(given)]


def monitor(by: str, window: Any, k: int = 1, **more: Any) -> sb.Monitor:
    return sb.Monitor(sb.TopKGroups(k, by=by, window=window, of="o", **more), time="t", keep="i")


def moves(changes: Any) -> list[tuple[Any, ...]]:
    return [(c["time"], c["id"], c["score"], c["diff"]) for c in changes.to_pylist()]


def test_a_row_counts_until_just_before_its_end() -> None:
    m = monitor("sum(x)", sb.Last(span=10))
    assert moves(m.push(rows((0, "a", 5), (1, "b", 3)))) == [(0, "a", 5.0, 1)]
    assert moves(m.advance(9)) == []
    assert moves(m.advance(10)) == [(10, "a", 5.0, -1), (10, "b", 3.0, 1)]
    assert moves(m.advance(11)) == [(11, "b", 3.0, -1)]


def test_a_count_window_holds_just_so_many() -> None:
    m = monitor("count(*)", sb.Last(2))
    changes = moves(m.push(rows((0, "a", 1), (0, "a", 1), (0, "b", 1), (0, "b", 1))))
    assert changes == [(0, "a", 1.0, 1), (0, "a", 2.0, -1), (0, "b", 1.0, 1)]


def test_of_equal_scores_the_newest_row_ranks_above() -> None:
    m = monitor("sum(x)", sb.Last(span=9), k=2)
    m.push(rows((3, "a", 2), (3, "b", 2), (3, "c", 2)))
    assert m.answer().to_pydict()["id"] == ["c", "b"]
    m.push(rows((5, "a", 0)))
    assert m.answer().to_pydict()["id"] == ["a", "c"]
    m.push(rows((4, "b", 0)))  # late, and still newer than that of c
    assert m.answer().to_pydict()["id"] == ["a", "b"]


def test_a_late_row_is_not_the_newest_of_its_object() -> None:
    m = monitor("sum(x)", sb.Last(span=9))
    m.push(rows((4, "b", 2), (5, "a", 1), (3, "a", 1)))
    assert m.answer().to_pydict()["id"] == ["a"]


def test_late_rows_leave_in_their_turn() -> None:
    m, times = monitor("count(*)", sb.Last(span=10)), [10, 7, 3, 5, 4, 8, 6, 3]
    m.push(rows(*((t, "a", 1) for t in times)))
    for now in range(10, 20):
        m.advance(now)
        assert m.answer().to_pydict()["score"] == [float(sum(t + 10 > now for t in times))]


def test_a_row_that_is_too_late_for_one_of_two_windows() -> None:
    short, long = (sb.TopKGroups(1, by="sum(x)", window=sb.Last(span=span), of="o") for span in (3, 10))
    m = sb.Monitor({"short": short, "long": long}, time="t")
    changes = m.push(rows((10, "a", 1), (5, "b", 9))).to_pylist()
    assert [(c["query"], c["id"]) for c in changes] == [("short", "a"), ("long", "a"), ("long", "a"), ("long", "b")]


def test_who_has_risen_can_fall_below_others() -> None:
    """Back to what it entered with, though never below that."""
    m = monitor("sum(x)", sb.Last(span=10))
    m.push(rows((0, "a", 1), (1, "a", 7), (5, "a", 2), (6, "b", 5)))
    assert moves(m.advance(10)) == []
    assert moves(m.advance(11)) == [(11, "a", 9.0, -1), (11, "b", 5.0, 1)]


def test_a_snapshot_knows_what_has_been_shown() -> None:
    m = monitor("sum(x)", sb.Last(span=50))
    m.push(rows((0, "a", 5), (1, "b", 3)))
    m = sb.Monitor.restore(m.snapshot(), trusted=False)
    changes = m.push(rows((2, "b", 9), (3, "a", 9))).to_pylist()
    assert [(c["id"], c["diff"], c["first"]) for c in changes] == [
        ("a", -1, False),
        ("b", 1, True),
        ("b", -1, False),
        ("a", 1, False),
    ]


@pytest.mark.parametrize(
    "numbers",
    [
        [1e15, 0.1, -1e15],
        [1e308, 1e308, -1e308],
        [5e-324, 1.0, -1.0],
        [0.1] * 10,
        [0.1, 0.0, -0.0, 0.2],
        [2.0**53, 1.0, 1.0],
        [2.0**53, 1.0],  # a tie, to even
        [2.0**53 + 2, 1.0],
        [1.0, 2.0**-53, 2.0**-80],  # just above a tie
        [-1.0, -(2.0**-53), -(2.0**-80)],
        [1.0, 2.0**-53, 2.0**-200],
        [-1.0, -(2.0**-53), -(2.0**-200)],
        [2.0**900, 1.0, -(2.0**900)],
        [1.7e308, 1.7e308],
    ],
)
def test_a_sum_is_rounded_once(numbers: list[float]) -> None:
    exact = sum(map(Fraction, numbers), Fraction(0))
    expected = math.inf if exact > Fraction(2) ** 1024 else float(exact)
    for order in (numbers, numbers[::-1]):
        m = monitor("sum(x)", sb.Last(len(order)))
        m.push(rows(*((0, "a", x) for x in [7.25, *order])))  # the first one has come and gone
        assert m.answer().to_pydict()["score"] == [expected]


def test_the_row_that_decides() -> None:
    """Of equal largest ones the newest, and the next largest once that is gone."""
    m = monitor("max(x)", sb.Last(span=10))
    m.push(rows((0, "a", 4), (1, "a", 9), (2, "a", 9), (3, "a", 5), (4, "a", 7)))
    assert m.answer().to_pydict()["i"] == [2]
    m.advance(12)
    assert (m.answer().to_pydict()["i"], m.answer().to_pydict()["score"]) == ([4], [7.0])
    m.push(rows((12, "a", 1), (11, "a", 6)))
    m.advance(14)
    assert (m.answer().to_pydict()["i"], m.answer().to_pydict()["score"]) == ([1], [6.0])
    m.push(rows((20, "a", 9), (19, "a", 4)))  # late, and no larger than a newer one
    assert m.answer().to_pydict()["score"] == [9.0]


def test_first_holds_again_once_an_object_was_gone() -> None:
    m = monitor("sum(x)", sb.Last(span=5), k=1)
    assert m.push(rows((0, "a", 1), (1, "b", 2), (2, "a", 3))).to_pydict()["first"] == [True, False, True, False, False]
    m.advance(20)
    assert m.push(rows((20, "a", 1))).to_pydict()["first"] == [True]


def test_the_score_of_a_leaving_row_is_the_last_that_it_had_in_the_answer() -> None:
    m = monitor("sum(x)", sb.Last(span=10))
    m.push(rows((0, "a", 5), (3, "a", 1), (3, "b", 4)))
    assert moves(m.advance(10)) == [(10, "a", 6.0, -1), (10, "b", 4.0, 1)]


def test_objects_that_are_gone_give_back_their_codes() -> None:
    m = sb.Monitor(sb.TopKGroups(3, by="count(*)", window=sb.Last(span=100), of="o"), time="t")
    size = 1_000
    for start in range(0, 10 * size, size):
        o = pa.array(range(start, start + size))
        m.push(pa.table({"o": o, "t": o}))
    (stats,) = m.stats()["queries"].values()
    assert (stats["objects"], stats["rows"]) == (100, 100)
    adapter: Any = m._loop.state.standing()[0]
    assert adapter.objects.total <= 2 + 2 * 100
    m._loop.check()


def test_late_rows_may_be_dropped() -> None:
    m = sb.Monitor(sb.TopKGroups(1, by="sum(x)", window=sb.Ever(), of="o"), time="t", late="drop")
    m.push(rows((5, "a", 1), (4, "a", 8)))
    assert m.answer().to_pydict()["score"] == [1.0]
    assert m.stats()["late"] == 1


@pytest.mark.parametrize("x", [None, math.nan, math.inf])
def test_a_row_without_a_number_is_rejected_whether_it_passes_where_or_not(x: Any) -> None:
    query = sb.TopKGroups(1, by="sum(x)", window=sb.Last(5), of="o", where="y > 0")
    m = sb.Monitor(query)
    m.push({"o": ["a", "a"], "x": pa.array([x, 1.0], pa.float64()), "y": [0, 1]})
    assert m.stats()["arrivals"] == 1
    assert m.answer().to_pydict()["score"] == [1.0]


def test_ids_of_one_monitor_have_one_type() -> None:
    m = sb.Monitor(
        {
            "words": sb.TopKGroups(1, by="count(*)", window=sb.Last(5), of="o"),
            "numbers": sb.TopKGroups(1, by="count(*)", window=sb.Last(5), of="n"),
        }
    )
    with pytest.raises(QueryError, match="'words' are string and those of 'numbers' are int64"):
        m.push({"o": ["a"], "n": [1]})
    m.drop("numbers")
    assert m.push({"o": ["a"], "n": [1]}).num_rows == 1


def test_another_kind_of_score_is_refused_before_anything_changes() -> None:
    m = sb.Monitor(sb.TopKGroups(1, by="last(x)", window=sb.Last(5), of="o"))
    assert m.push({"o": ["a"], "x": [2.0]}).num_rows == 1
    with pytest.raises(BatchError, match="numbers in earlier batches and holds strings now"):
        m.push({"o": ["a"], "x": ["word"]})
    assert m.answer().to_pydict()["score"] == [2.0]


def test_a_batch_that_goes_on_is_one_batch() -> None:
    m = sb.Monitor(sb.TopKGroups(1, by="sum(x)", window=sb.Last(span=9), of="o"), time="t", emit="batch")
    assert m.push(rows((0, "a", 1)), more=True).num_rows == 0
    assert m.answer().to_pydict()["id"] == ["a"]
    assert [c[1:] for c in moves(m.push(rows((1, "b", 3))))] == [("b", 3.0, 1)]


def test_the_score_of_a_leaving_object_is_from_before_the_step_that_took_its_row() -> None:
    query = sb.TopKGroups(1, by="sum(x)", window=sb.UntilDeleted(), of="o", largest=False)
    m = sb.Monitor(query, id="i")
    m.push([{"i": 1, "o": "q", "x": 1.0}, {"i": 2, "o": "q", "x": 4.0}])
    changes = m.push([{"i": 1, "o": "p", "x": 1.0}]).to_pylist()  # q keeps 4, and p is better
    assert [(c["id"], c["score"], c["diff"]) for c in changes] == [("q", 5.0, -1), ("p", 1.0, 1)]


def test_deleted_and_replaced_rows_leave_their_objects() -> None:
    query = sb.TopKGroups(1, by="max(x)", window=sb.UntilDeleted(), of="o")
    m = sb.Monitor(query, id="i", time="t", keep="i")
    m.push(rows((0, "a", 9), (0, "b", 7), (0, "b", 8), (0, "a", 3)))
    assert m.answer().to_pydict()["score"] == [9.0]
    assert [c[1:] for c in moves(m.delete([0]))] == [("a", 9.0, -1), ("b", 8.0, 1)]
    m.push([{"t": 1, "o": "a", "x": 1, "i": 2}])  # the best row of b is one of a now
    assert m.answer().to_pydict() == {"rank": [1], "id": ["b"], "time": [0], "score": [7.0], "i": [1]}
    m.delete([5])
    assert m.stats()["rejected"]["unknown id"] == 1


@pytest.mark.parametrize("restores", [False, True])
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_columns_of_select_before_a_row_tells_what_they_hold(emit: Any, restores: bool) -> None:
    """The first row is rejected by one query and taken by the other."""
    plain = sb.TopKGroups(1, by="count(*)", window=sb.Last(5), of="o")
    m = sb.Monitor({"plain": plain, "more": dataclasses.replace(plain, select={"l": "last(z)"})}, emit=emit)
    m.push(pa.table({"o": ["a"], "z": pa.array([None], pa.string())}))
    assert m.answer("more").to_pydict() == {"rank": [], "id": [], "score": [], "l": []}
    m = sb.Monitor.restore(m.snapshot()) if restores else m
    m.push({"o": ["a"], "z": ["text"]})
    assert m.answer("more").to_pydict() == {"rank": [1], "id": ["a"], "score": [1.0], "l": ["text"]}


def test_a_shorter_window_in_which_nothing_is_left() -> None:
    query = sb.TopKGroups(2, by="count(*)", window=sb.Last(span=10), of="o", select={"l": "last(z)"})
    m = sb.Monitor(query, time="t")
    m.push({"t": [0, 1], "o": ["a", "b"], "z": ["u", "v"]})
    m.advance(8)
    left = m.replace("q0", dataclasses.replace(query, window=sb.Last(span=2)))
    assert sorted((row["id"], row["diff"], row["l"]) for row in left.to_pylist()) == [("a", -1, "u"), ("b", -1, "v")]
    entered = m.push({"t": [9], "o": ["c"], "z": ["w"]}).to_pylist()
    assert [(row["id"], row["diff"], row["l"]) for row in entered] == [("c", 1, "w")]


def test_a_null_object_is_rejected_where_the_rows_have_another_key() -> None:
    groups = sb.TopKGroups(2, by="count(*)", of="id", window=sb.UntilDeleted())
    monitor = sb.Monitor(groups, id="row")
    monitor.push({"row": [1, 2, 3], "id": [7, None, 7]})
    assert monitor.answer().select(["id", "score"]).to_pylist() == [{"id": 7, "score": 2.0}]
    assert monitor.stats()["rejected"] == {"id is null": 1}


@pytest.mark.parametrize(
    "more",
    [
        {"having": "first(h) <> 'u'"},
        {"select": {"a": "first(h)"}, "having": "length(last(h)) > 0"},
        {"by": ("last(h)", "id"), "having": "first(h) <> 'u'", "select": {"a": "last(h)"}},
    ],
)
def test_a_query_that_has_rejected_all_rows_is_read_and_restored(more: dict[str, Any]) -> None:
    """Whether its arguments are strings is not known yet, and another query has taken rows."""
    plain = sb.TopKGroups(1, by="sum(x)", window=sb.Last(3), of="o")
    asked: dict[str, Any] = {"by": "sum(x)", "window": sb.Last(3), "of": "o"} | more
    monitor = sb.Monitor({"plain": plain, "strings": sb.TopKGroups(1, **asked)}, id="i")
    for number, h in enumerate((None, "z")):
        row = {"i": [number], "x": [1.0], "o": ["m"], "h": pa.array([h], pa.string())}
        changes = [one["diff"] for one in monitor.push(row).to_pylist() if one["query"] == "strings"]
        assert changes == ([] if h is None else [1])
        assert monitor.answer("strings").column("id").to_pylist() == ([] if h is None else ["m"])
        monitor = sb.Monitor.restore(monitor.snapshot())
