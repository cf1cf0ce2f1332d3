"""Groups of rows in the oracle, worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from oracle.rows import brief, ids
from skyband.errors import BatchError, QueryError
from skyband.oracle import Oracle
from skyband.query.kinds import TopKGroups
from skyband.query.windows import Ever, Last, UntilDeleted

Row = dict[str, Any]


def rows(text: str, **more: Any) -> list[Row]:
    """'A5 B3' as rows with s (the object) and x; 'A5@7' with a time t too, 'A5#3' with an id i."""
    found = []
    for word in text.split():
        word, _, key = word.partition("#")
        word, _, time = word.partition("@")
        row: Row = {"s": word[0], "x": None if word[1:] == "null" else float(word[1:]), **more}
        row |= {"t": int(time)} if time else {}
        found.append(row | ({"i": int(key)} if key else {}))
    return found


def scores(oracle: Oracle, name: str | None = None, **smaller: Any) -> list[tuple[Any, float]]:
    return [(row["id"], row["score"]) for row in oracle.answer(name, **smaller)]


def top(by: str, window: Any, k: int = 1, **more: Any) -> TopKGroups:
    return TopKGroups(k, by, window, of=more.pop("of", "s"), **more)


def test_a_sum_moves_while_its_object_stays() -> None:
    #  at   0    1    2    3    4        n = 3 rows of all objects
    #       A2   B3   A2   C1   C1
    #  A    2    2    4    2    2
    #  B         3    3    3
    #  C                   1    2   newer than A
    o = Oracle(top("sum(x)", Last(3)))
    changes = o.push(rows("A2 B3 A2 C1 C1"))
    assert brief(changes) == ["0 +A*", "1 -A", "1 +B*", "2 -B", "2 +A", "3 -A", "3 +B", "4 -B", "4 +C*"]
    assert [c["score"] for c in changes] == [2, 2, 3, 3, 4, 4, 3, 3, 2]  # leaving: the last one it had in the answer
    assert scores(o) == [("C", 2.0)]


def test_each_aggregate() -> None:
    expected = {
        "count(*)": 3.0,
        "count(distinct x)": 2.0,
        "sum(x)": 9.0,
        "avg(x)": 3.0,
        "min(x)": 2.0,
        "max(x)": 5.0,
        "first(x)": 2.0,
        "last(x)": 2.0,
        "sum(x * x) / count(*) - avg(x) * avg(x)": 33 / 3 - 9,
        "max(x) - min(x)": 3.0,
        "-max(-x)": 2.0,
    }
    for by, score in expected.items():
        o = Oracle(top(by, Last(9), 2))
        o.push(rows("A2 A5 A2"))
        assert scores(o) == [("A", score)], by


def test_sums_are_rounded_once() -> None:
    o = Oracle(top("sum(x)", Last(9), select={"mean": "avg(x)"}))
    o.push([{"s": "A", "x": x} for x in (1e15, 0.1, -1e15)])
    (row,) = o.answer()
    assert row["score"] == 0.1
    assert row["mean"] == 0.1 / 3
    o.push([{"s": "A", "x": x} for x in (1e308, 1e308)])
    assert scores(o) == [("A", math.inf)]
    o.push([{"s": "A", "x": -1e308}])  # what came out of range comes back
    assert scores(o) == [("A", math.fsum([1e308, 0.1]))]


def test_first_and_last_go_by_time_in_time_windows_and_by_arrival_elsewhere() -> None:
    late = rows("A1@5 A2@3 A3@5")
    for window, first, last in ((Last(span=10), 2.0, 3.0), (Last(10), 1.0, 3.0)):
        o = Oracle([top("first(x)", window), top("last(x)", window)], time="t")
        o.push(late)
        assert scores(o, "q0") == [("A", first)]
        assert scores(o, "q1") == [("A", last)]
    o = Oracle(top("last(x)", Last(span=10)), time="t")
    o.push(rows("A1@5 A2@3"))
    assert scores(o) == [("A", 1.0)]  # the late row is older


def test_ties_go_to_the_object_with_the_newest_row_that_passed_where() -> None:
    o = Oracle(top("sum(x)", Last(9), 2, where="x < 5"))
    o.push(rows("A1 B1 A9"))  # A's newest row fails
    assert ids(o) == ["B", "A"]
    o = Oracle(top("sum(x)", Last(span=9), 2), time="t")
    o.push(rows("A1@4 B1@2"))  # B arrives later, but it is late
    assert ids(o) == ["A", "B"]
    o.push(rows("B0@4"))
    assert ids(o) == ["B", "A"]  # the same time: the later arrival


def test_a_row_that_fails_where_moves_the_window_and_counts_in_no_aggregate() -> None:
    o = Oracle(top("count(*)", Last(2), where="x > 0"))
    assert brief(o.push(rows("A1 A0 A0"))) == ["0 +A*", "2 -A"]
    assert o.arrivals == 3


def test_first_holds_again_once_no_row_was_valid() -> None:
    #  A is outranked, comes back with a row left: not first; then it goes, and comes back: first
    o = Oracle(top("sum(x)", Last(3)))
    assert brief(o.push(rows("A2 B3 A2"))) == ["0 +A*", "1 -A", "1 +B*", "2 -B", "2 +A"]
    assert brief(o.push(rows("B9 B9 B9 A99"))) == ["3 -A", "3 +B", "6 -B", "6 +A*"]


def test_failing_having_does_not_end_an_object() -> None:
    o = Oracle(top("sum(x)", Last(3), having="count(*) < 2"))
    changes = o.push(rows("A1 A5 B1 B1"))
    #  A: 1; A has two; B alone; A alone again (5), B has two
    assert brief(changes) == ["0 +A*", "1 -A", "2 +B*", "3 -B", "3 +A"]
    assert [c["score"] for c in changes] == [1, 1, 1, 1, 5]


def test_having_that_is_null_or_a_score_without_a_value_is_no_answer() -> None:
    o = Oracle(top("sum(x) / sum(x)", Last(9)))
    assert o.push(rows("A0")) == []
    assert brief(o.push(rows("A1"))) == ["1 +A*"]
    o = Oracle(top("sum(x)", Last(9), having="case when sum(x) > 1 then true end"))
    assert brief(o.push(rows("A1 A1"))) == ["1 +A*"]


def test_the_smallest_first() -> None:
    o = Oracle(top("avg(x)", Last(9), 2, largest=False))
    o.push(rows("A4 B3 C1 C9"))
    assert scores(o) == [("B", 3.0), ("A", 4.0)]


def test_kept_columns_are_those_of_the_row_that_decides() -> None:
    table = [{"s": "A", "x": 3.0, "t": 1, "n": "one"}, {"s": "A", "x": 3.0, "t": 2, "n": "two"}]
    table.append({"s": "A", "x": 1.0, "t": 3, "n": "three"})
    for by, kept in {
        "max(x)": ("two", 2),  # the newest of equal ones
        "2 * max(x)": ("two", 2),
        "min(x)": ("three", 3),
        "sum(x)": ("three", 3),
        "max(x) - min(x)": ("three", 3),
        "avg(x)": ("three", 3),
        "first(x)": ("three", 3),
    }.items():
        o = Oracle(top(by, Last(9)), time="t", keep="n")
        o.push(table)
        (row,) = o.answer()
        assert (row["n"], row["time"]) == kept, by
    o = Oracle(top("max(x)", Last(2)), time="t", keep="n")
    changes = o.push([*table, {"s": "B", "x": 4.0, "t": 4, "n": "four"}])
    assert [(c["id"], c["diff"], c["n"], c["score"]) for c in changes] == [
        *(("A", 1, "one", 3.0), ("A", -1, "two", 3.0), ("B", 1, "four", 4.0)),
    ]


def test_selected_columns_come_after_the_kept_ones() -> None:
    select = {"rows": "count(*)", "mean": "avg(x)"}
    o = Oracle(top("sum(x)", Last(3), select=select), keep="x")
    changes = o.push(rows("A2 A4 B9"))
    assert list(changes[0]) == ["query", "at", "id", "score", "diff", "first", "x", "rows", "mean"]
    assert [(c["id"], c["diff"], c["rows"], c["mean"]) for c in changes] == [
        *(("A", 1, 1.0, 2.0), ("A", -1, 2.0, 3.0), ("B", 1, 1.0, 9.0)),
    ]
    assert o.answer() == [{"rank": 1, "id": "B", "score": 9.0, "x": 9.0, "rows": 1.0, "mean": 9.0}]


def test_several_columns_make_the_id_a_struct() -> None:
    o = Oracle(top("count(*)", Last(9), 2, of=("s", "c")))
    o.push([{"s": "A", "c": 1}, {"s": "A", "c": 2}, {"s": "A", "c": 1}, {"s": "A", "c": None}])
    assert scores(o) == [({"s": "A", "c": 1}, 2.0), ({"s": "A", "c": 2}, 1.0)]
    assert o.rejected == {"id is null": 1}


def test_without_of_the_id_column_is_the_object() -> None:
    o = Oracle(TopKGroups(1, "sum(x)", Last(9)), id="s")
    assert brief(o.push(rows("A2 B3 A2"))) == ["0 +A*", "1 -A", "1 +B*", "2 -B", "2 +A"]
    with pytest.raises(QueryError, match="ids are keys"):
        Oracle(TopKGroups(1, "sum(x)", Last(9)))


def test_per_makes_a_window_and_an_answer_of_its_own() -> None:
    o = Oracle(top("sum(x)", Last(2), per="g"))
    o.push([*rows("A2 B3", g=1), *rows("A9", g=2), *rows("A2", g=1)])
    assert [(row["g"], row["id"], row["score"]) for row in o.answer()] == [(1, "B", 3.0), (2, "A", 9.0)]


def test_expiries_of_one_instant_are_one_step() -> None:
    o = Oracle(top("sum(x)", Last(span=5)), time="t")
    assert brief(o.push(rows("A5@0 B4@0 C1@2 D1@9"))) == [
        *("0@0 +A*", "2@5 -A", "2@5 +C*", "2@7 -C", "3@9 +D*"),
    ]


def test_late_rows_come_in_at_their_place_in_time() -> None:
    o = Oracle(top("sum(x)", Last(span=10)), time="t")
    assert brief(o.push(rows("A1@10 B2@5 B9@0"))) == ["0@10 +A*", "1@10 -A", "1@10 +B*"]
    assert o.late == 1  # beyond the window
    assert brief(o.advance(15)) == ["1@15 -B", "1@15 +A"]


def test_rows_until_deleted_are_replaced_and_deleted_by_their_own_id() -> None:
    query = top("sum(x)", UntilDeleted())
    o = Oracle(query, id="i")
    assert brief(o.push(rows("A2#1 B3#2 A2#3"))) == ["0 +A*", "1 -A", "1 +B*", "2 -B", "2 +A"]
    assert brief(o.push(rows("B2#3"))) == ["3 -A", "3 +B"]  # row 3 moves from A to B: 2 and 5
    assert scores(o) == [("B", 5.0)]
    assert brief(o.delete([2, 3])) == ["3 -B", "3 +A"]  # after row 2: 2 and 2, B's row is the newer
    assert brief(o.delete([1, 1])) == ["3 -A"]
    assert o.rejected == {"unknown id": 1}
    assert brief(o.push(rows("B1#7"))) == ["4 +B*"]


def test_net_changes_and_their_scores() -> None:
    o = Oracle(top("sum(x)", Last(4)), emit="batch")
    assert brief(o.push(rows("A1 B5 A7"))) == ["2 +A*"]
    changes = o.push(rows("A1 B9"))  # A is 9 in between; reported were 8 and 14
    assert [(c["id"], c["score"]) for c in changes] == [("A", 8.0), ("B", 14.0)]


@pytest.mark.parametrize("by", ["sum(x)", "avg(x)", "max(x)", "last(x)", "count(distinct x)"])
@pytest.mark.parametrize("bad", [None, math.nan])
def test_a_row_without_a_value_is_rejected_whether_it_passes_where_or_not(by: str, bad: float | None) -> None:
    for query in (top(by, Last(9), where="s = 'B'"), top("count(*)", Last(9), having=f"{by} > -1", where="s = 'B'")):
        o = Oracle(query)
        assert o.push([{"s": "A", "x": bad}, {"s": "B", "x": bad}]) == []
        assert (o.arrivals, sum(o.rejected.values())) == (0, 2)


def test_infinite_values_are_rejected_where_they_are_summed() -> None:
    for by, arrivals in {"sum(x)": 0, "avg(x)": 0, "max(x)": 1, "count(distinct x)": 1, "last(x)": 1}.items():
        o = Oracle(top(by, Last(9)))
        o.push([{"s": "A", "x": math.inf}])
        assert o.arrivals == arrivals, by


def test_large_integers_are_rejected_but_where_they_are_only_told_apart() -> None:
    big = [{"s": "A", "x": 2**60}, {"s": "A", "x": 2**60 + 1}]
    for by, arrivals in {"sum(x)": 0, "count(distinct x)": 2, "count(distinct x + 0)": 0}.items():
        o = Oracle(top(by, Last(9)))
        o.push(big)
        assert o.arrivals == arrivals, by
    o = Oracle(top("count(distinct x)", Last(9)))
    o.push(big)
    assert scores(o) == [("A", 2.0)]


def test_what_is_no_number_cannot_be_summed() -> None:
    with pytest.raises(BatchError, match="no number"):
        Oracle(top("sum(x)", Last(9))).push([{"s": "A", "x": "text"}])


def test_text_can_be_told_apart_and_compared() -> None:
    o = Oracle(top("count(distinct c)", Last(9), having="last(c) = 'b'"))
    assert brief(o.push([{"s": "A", "c": "a"}, {"s": "A", "c": "b"}])) == ["1 +A*"]
    assert scores(o) == [("A", 2.0)]


def test_a_smaller_k_and_window_are_answered_and_replaced_from_the_same_rows() -> None:
    o = Oracle(top("sum(x)", Last(4), 2))
    o.push(rows("A9 B5 B1 A1"))
    assert scores(o) == [("A", 10.0), ("B", 6.0)]
    assert scores(o, k=1) == [("A", 10.0)]
    assert scores(o, window=Last(3)) == [("B", 6.0), ("A", 1.0)]
    assert brief(o.replace("q0", top("sum(x)", Last(3), 1))) == ["3 -A"]
    assert scores(o) == [("B", 6.0)]
    assert brief(o.replace("q0", top("sum(x)", Last(3), 1, having="count(*) > 1"))) == ["3 -B"]  # starts empty
    with pytest.raises(QueryError):
        o.answer(window=Last(9))


# ----------------------------------------------------------------------- Ever and decay


def test_ever_has_ties_and_late_rows_by_time_where_there_is_one() -> None:
    o = Oracle(top("last(x)", Ever(), 2), time="t")
    o.push(rows("A1@50 A2@3 B1@2"))
    assert scores(o) == [("A", 1.0), ("B", 1.0)]
    assert o.late == 0  # never too late
    o = Oracle(top("last(x)", Ever(), 2))
    o.push(rows("A1@50 A2@3 B1@2"))
    assert scores(o) == [("A", 2.0), ("B", 1.0)]
    with pytest.raises(QueryError):
        o.answer(window=Last(1))


def test_a_row_fades_by_half_in_a_half_life() -> None:
    o = Oracle(top("sum(x)", Ever(), 2, decay=10), time="t")
    changes = o.push(rows("A8@0 B3@10 A1@20 B0@30"))
    #  t=10: A 4, B 3;  t=20: A 3, B 1.5;  t=30: A 1.5, B 0.75
    assert [(c["id"], c["score"]) for c in changes] == [("A", 8.0), ("B", 3.0)]
    assert scores(o) == [("A", 1.5), ("B", 0.75)]
    assert o.advance(50) == []
    assert scores(o) == [("A", 0.375), ("B", 0.1875)]
    o.push(rows("B2@30"))  # late: 20 old, half a row
    assert scores(o) == [("B", 0.6875), ("A", 0.375)]


def test_a_leaving_score_has_faded_until_its_step() -> None:
    o = Oracle(top("sum(x)", Ever(), decay=10), time="t")
    changes = o.push(rows("A8@0 B5@10 A4@20"))
    #  t=10: A 4 < B 5;  t=20: A 2 + 4 > B 2.5
    assert brief(changes) == ["0@0 +A*", "1@10 -A", "1@10 +B*", "2@20 -B", "2@20 +A"]
    assert [c["score"] for c in changes] == [8.0, 4.0, 5.0, 2.5, 6.0]
    changes = o.push(rows("A-9@20"))  # A itself sinks: what it had was 6
    assert [(c["id"], c["score"]) for c in changes] == [("A", 6.0), ("B", 2.5)]


def test_multiples_of_sums_and_counts_fade() -> None:
    o = Oracle(top("(2 * sum(x) - count(*)) / 2", Ever(), decay=1), time="t")
    o.push(rows("A3@0 A5@1"))
    assert scores(o) == [("A", (2 * (1.5 + 5) - 1.5) / 2)]


def test_order_outlasts_float64() -> None:
    o = Oracle(top("sum(x)", Ever(), 2, decay=1), time="t")
    o.push(rows("A3@0 B2@0 B0@5000"))
    assert scores(o) == [("A", 0.0), ("B", 0.0)]  # 3 / 2^5000 and 2 / 2^5000, though B's row is the newest
