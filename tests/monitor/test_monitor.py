"""Each rule of the contract (DESIGN.md, section 2), by an example that can be read.

In the timelines a letter is an object and the number after it its score; `changes` writes a change as "at +id" or
"at@time -id", a star marks `first`.
"""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.errors import QueryError

Row = dict[str, Any]


def objects(text: str, **more: Any) -> list[Row]:
    """'A5 B3' as rows with id and x; 'A5@7' with a time too; 'xA5' in group x."""
    rows = []
    for word in text.split():
        name, _, time = word.partition("@")
        group = name[0] if name[0].islower() else None
        name = name[1:] if group else name
        row: Row = {"id": name[0], "x": None if name[1:] == "null" else float(name[1:]), **more}
        row |= {"g": group} if group else {}
        rows.append(row | {"t": int(time)} if time else row)
    return rows


def told(changes: Any) -> list[str]:
    lines = []
    for row in changes.to_pylist():
        time = f"@{row['time']}" if row.get("time") is not None else ""
        group = row.get("g") or ""
        lines.append(
            f"{row['at']}{time} {'+' if row['diff'] > 0 else '-'}{group}{row['id']}{'*' if row['first'] else ''}"
        )
    return lines


def ids(monitor: sb.Monitor, name: str | None = None, **asked: Any) -> list[Any]:
    listed: list[Any] = monitor.answer(name, **asked).column("id").to_pylist()
    return listed


def counting(k: int, n: int, **other: Any) -> sb.TopK:
    return sb.TopK(k, by="x", window=sb.Last(n), **other)


def lasting(k: int, span: int, **other: Any) -> sb.TopK:
    return sb.TopK(k, by="x", window=sb.Last(span=span), **other)


# ------------------------------------------------------------------------------- columns


def test_columns_of_changes_and_answers() -> None:
    query = sb.TopK(1, by="x", window=sb.Last(3), per=("g", "h"))
    monitor = sb.Monitor({"best": query}, id="i", time="when", keep=("z", "y"))
    batch = pa.table(
        {
            "h": ["m"],
            "z": pa.array([[1]], pa.list_(pa.int8())),
            "i": ["a"],
            "y": pa.array([True]),
            "g": pa.array([7], pa.int16()),
            "x": pa.array([2], pa.int32()),
            "when": pa.array([5], pa.timestamp("ms", "UTC")),
        }
    )
    changes = monitor.push(batch)
    assert [(field.name, str(field.type)) for field in changes.schema] == [
        ("query", "dictionary<values=string, indices=int32, ordered=0>"),
        ("g", "int16"),
        ("h", "string"),
        ("at", "int64"),
        ("time", "timestamp[ms, tz=UTC]"),
        ("id", "string"),
        ("score", "double"),
        ("diff", "int8"),
        ("first", "bool"),
        ("z", "list<item: int8>"),
        ("y", "bool"),
    ]
    answer = monitor.answer()
    assert [(field.name, str(field.type)) for field in answer.schema] == [
        ("g", "int16"),
        ("h", "string"),
        ("rank", "int64"),
        ("id", "string"),
        ("time", "timestamp[ms, tz=UTC]"),
        ("score", "double"),
        ("z", "list<item: int8>"),
        ("y", "bool"),
    ]
    assert monitor.push(batch.slice(0, 0)).schema == changes.schema, "also when there is nothing to say"
    assert monitor.advance(datetime(2024, 1, 1, tzinfo=UTC)).schema == changes.schema
    assert monitor.answer(key=(8, "m")).schema == answer.schema


def test_without_id_and_time() -> None:
    monitor = sb.Monitor(counting(1, 3))
    changes = monitor.push({"x": [1.0]})
    assert changes.column_names == ["query", "at", "id", "score", "diff", "first"]
    assert changes.schema.field("id").type == pa.int64()
    assert monitor.answer().column_names == ["rank", "id", "score"]


def test_columns_of_several_queries_are_the_union() -> None:
    monitor = sb.Monitor(
        {"all": counting(1, 9), "each": counting(1, 9, per="g"), "both": counting(1, 9, per=("h", "g"))}
    )
    changes = monitor.push({"x": [1.0], "g": ["a"], "h": [5]}).to_pylist()
    assert list(changes[0]) == ["query", "g", "h", "at", "id", "score", "diff", "first"]
    assert [(row["query"], row["g"], row["h"]) for row in changes] == [
        ("all", None, None),
        ("each", "a", None),
        ("both", "a", 5),
    ]


def test_queries_may_be_one_or_a_list_or_named() -> None:
    query = counting(1, 3)
    assert list(sb.Monitor(query).queries) == ["q0"]
    assert list(sb.Monitor([query, query]).queries) == ["q0", "q1"]
    assert sb.Monitor({"b": query, "a": query}).queries == {"b": query, "a": query}
    assert sb.Monitor({"b": query, "a": query}).push({"x": [1]}).column("query").to_pylist() == ["b", "a"]


# -------------------------------------------------------------------------- count windows


# at       0    1    2    3    4            (the last 3, the best 1)
#          A5   B3   C4   D1   E2
# valid    A    AB   ABC  BCD  CDE
# answer   A    A    A    C    C
def test_arrival_and_expiry_are_one_step() -> None:
    monitor = sb.Monitor(counting(1, 3), id="id")
    assert told(monitor.push(objects("A5 B3 C4 D1 E2"))) == ["0 +A*", "3 -A", "3 +C*"]


# at       0    1    2     D comes as A goes: B would be the best for a moment, but it is one step
#          A5   B3   D4
def test_promoted_and_displaced_within_a_step_never_shows() -> None:
    monitor = sb.Monitor(counting(1, 2), id="id")
    assert told(monitor.push(objects("A5 B3 D4"))) == ["0 +A*", "2 -A", "2 +D*"]


# at       0    1    2    3    4        (the last 3, the best 2)
#          A9   B3   C5   D2   E0
# answer   A    AB   AC   BC   CD       B is back at 3, when A has expired: it is not new
def test_first_is_true_once() -> None:
    monitor = sb.Monitor(counting(2, 3), id="id")
    assert told(monitor.push(objects("A9 B3 C5 D2 E0"))) == [
        *("0 +A*", "1 +B*", "2 -B", "2 +C*"),  # A9 C5
        *("3 -A", "3 +B"),  # B is back: A has expired
        *("4 -B", "4 +D*"),
    ]


def test_equal_scores_the_later_arrival_ranks_above() -> None:
    monitor = sb.Monitor(counting(1, 9), id="id")
    assert told(monitor.push(objects("A5 B5 C5"))) == ["0 +A*", "1 -A", "1 +B*", "2 -B", "2 +C*"]
    monitor = sb.Monitor(counting(3, 9), id="id")
    monitor.push(objects("A5 B5 C6 D5"))
    assert ids(monitor) == ["C", "D", "B"]


def test_time_in_count_windows_is_the_arrivals_own() -> None:
    monitor = sb.Monitor(counting(1, 2), id="id", time="t")
    assert told(monitor.push(objects("A5@7 B3@2 C4@9"))) == ["0@7 +A*", "2@9 -A", "2@9 +C*"]


def test_fewer_than_k() -> None:
    monitor = sb.Monitor(counting(5, 2), id="id")
    assert told(monitor.push(objects("A1 B2 C3"))) == ["0 +A*", "1 +B*", "2 -A", "2 +C*"]
    assert monitor.answer().column("rank").to_pylist() == [1, 2]


# --------------------------------------------------------------------------- time windows


# time     0    1    2    3    4    5       (span 3: A is valid in [0, 3), B in [1, 4))
#          A5   B4             C1
# answer   A    A    A    B    C    C
def test_an_object_is_valid_from_t_to_t_plus_span() -> None:
    monitor = sb.Monitor(lasting(1, 3), id="id", time="t")
    assert told(monitor.push(objects("A5@0 B4@1 C1@4"))) == ["0@0 +A*", "1@3 -A", "1@3 +B*", "1@4 -B", "2@4 +C*"]
    assert told(monitor.advance(6)) == []
    assert told(monitor.advance(7)) == ["2@7 -C"]


# time     0        1    2    3        A and B leave together at 3: C and D come in, B never gets A's place
#          A5 B4    C1   D2
def test_those_who_leave_at_one_instant_leave_in_one_step() -> None:
    monitor = sb.Monitor(lasting(1, 3), id="id", time="t")
    monitor.push(objects("A5@0 B4@0 C1@1 D2@2"))
    assert told(monitor.advance(3)) == ["3@3 -A", "3@3 +D*"]


def test_expiry_comes_before_the_arrivals_of_its_instant() -> None:
    """At 3 A goes, and B is the answer for no time at all; but C is another step."""
    monitor = sb.Monitor(lasting(1, 3), id="id", time="t")
    assert told(monitor.push(objects("A5@0 B1@1 C4@3"))) == ["0@0 +A*", "1@3 -A", "1@3 +B*", "2@3 -B", "2@3 +C*"]


# time     0     3            group b's arrival at 3 carries the clock, group a's expiry at 3 comes first
#          aA5   bB1
def test_expiry_comes_before_the_arrivals_of_its_instant_in_any_group() -> None:
    monitor = sb.Monitor(lasting(1, 3, per="g"), id="id", time="t")
    assert told(monitor.push(objects("aA5@0 bB1@3"))) == ["0@0 +aA*", "0@3 -aA", "0@3 +bB*"]


# time     0     1     7      8      (span 5)
#          aA5   bB1          cC2    A leaves at 5 and B at 6, though nothing arrives in a and b
def test_one_clock_for_all_groups_and_queries() -> None:
    queries = {"each": lasting(1, 5, per="g"), "all": lasting(1, 5)}
    monitor = sb.Monitor(queries, id="id", time="t")
    monitor.push(objects("aA5@0 bB1@1"))
    changes = monitor.push(objects("cC2@8"))
    assert told(changes) == ["0@5 -aA", "0@6 -bB", "0@8 +cC*", "1@5 -A", "1@5 +B*", "1@6 -B", "2@8 +C*"]
    assert changes.column("query").to_pylist() == ["each"] * 3 + ["all"] * 4


def test_nothing_beyond_the_clock_is_out() -> None:
    monitor = sb.Monitor(lasting(2, 5, per="g"), id="id", time="t")
    assert told(monitor.push(objects("aA5@0 bB1@4"))) == ["0@0 +aA*", "0@4 +bB*"]
    assert sorted(ids(monitor)) == ["A", "B"]


def test_equal_times_the_later_arrival_ranks_above() -> None:
    monitor = sb.Monitor(lasting(1, 9), id="id", time="t")
    assert told(monitor.push(objects("A5@3 B5@3"))) == ["0@3 +A*", "1@3 -A", "1@3 +B*"]


def test_equal_scores_the_later_time_ranks_above() -> None:
    """C comes last, but is the oldest of the three: it ranks below its equals."""
    monitor = sb.Monitor(lasting(3, 9), id="id", time="t")
    monitor.push(objects("A5@3 B5@4 C5@2"))
    assert ids(monitor) == ["B", "A", "C"]


# time     0     5           10        12    13      (span 10)
#          A3    B2     <- D9 of time 3           D arrives when the clock is at 10, and leaves at 13
#                            C1
def test_a_late_object_goes_to_its_place_in_time() -> None:
    monitor = sb.Monitor(lasting(1, 10), id="id", time="t")
    changes = monitor.push(objects("A3@0 B2@5 C1@10 D9@3"))
    assert told(changes) == ["0@0 +A*", "1@10 -A", "1@10 +B*", "3@10 -B", "3@10 +D*"]
    assert told(monitor.advance(13)) == ["3@13 -D", "3@13 +B"]


def test_late_objects_that_are_too_late_are_no_arrivals() -> None:
    """Z is of time 0, valid until 10, and comes when the clock is at 10: the next number is still 2."""
    monitor = sb.Monitor(lasting(1, 10), id="id", time="t")
    assert told(monitor.push(objects("A3@5 B2@10 Z9@0 C4@10"))) == ["0@5 +A*", "2@10 -A", "2@10 +C*"]
    assert monitor.stats()["late"] == 1


def test_late_drop() -> None:
    monitor = sb.Monitor(lasting(2, 10), id="id", time="t", late="drop")
    assert told(monitor.push(objects("A3@5 B9@4 C2@5"))) == ["0@5 +A*", "1@5 +C*"]
    assert monitor.stats()["late"] == 1


def test_late_by_the_clock_of_another_group() -> None:
    """Object A of group a carries the clock to 5: bB of time 4 is late, though it is the first of its group."""
    late = sb.Monitor(lasting(1, 10, per="g"), id="id", time="t", late="drop")
    assert told(late.push(objects("aA1@5 bB1@4"))) == ["0@5 +aA*"]
    early = sb.Monitor(lasting(1, 10, per="g"), id="id", time="t")
    assert told(early.push(objects("aA1@5 bB1@4"))) == ["0@5 +aA*", "0@5 +bB*"]


def test_advance_moves_the_clock_for_late_rows_too() -> None:
    monitor = sb.Monitor(lasting(1, 10), id="id", time="t")
    monitor.push(objects("A1@0"))
    assert told(monitor.advance(20)) == ["0@10 -A"]
    assert told(monitor.push(objects("B1@10"))) == []
    assert told(monitor.push(objects("C1@11"))) == ["1@20 +C*"]
    assert monitor.stats()["late"] == 1


@pytest.mark.parametrize(
    ("type_", "window", "start", "expiry"),
    [
        (pa.timestamp("s"), "2 s", datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 2)),
        (
            pa.timestamp("ms", "UTC"),
            "1500 ms",
            datetime(2024, 1, 1, tzinfo=UTC),
            datetime(2024, 1, 1, 0, 0, 1, 500_000, UTC),
        ),
        (
            pa.timestamp("us", "Europe/Paris"),
            "1 hour",
            datetime(2024, 3, 31, 0, 30, tzinfo=UTC),
            datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
        ),
        (pa.date32(), "48 hours", date(2024, 2, 28), date(2024, 3, 1)),
        (pa.date64(), timedelta(days=2), date(2024, 2, 28), date(2024, 3, 1)),
    ],
    ids=str,
)
def test_types_of_time(type_: Any, window: Any, start: Any, expiry: Any) -> None:
    monitor = sb.Monitor(sb.TopK(1, by="x", window=sb.Last(window)), time="t")
    monitor.push(pa.table({"x": [1.0], "t": pa.array([start], type_)}))
    changes = monitor.advance(expiry)
    assert changes.schema.field("time").type == type_
    assert changes.column("time").to_pylist() == [expiry]
    assert monitor.answer().num_rows == 0


def test_nanoseconds() -> None:
    """A tick of one nanosecond, which Python's own times cannot tell."""
    monitor = sb.Monitor(sb.TopK(1, by="x", window=sb.Last("2 ns")), time="t")
    times = np.array([10**18, 10**18 + 1, 10**18 + 2], "M8[ns]")
    changes = monitor.push({"x": [3.0, 2.0, 1.0], "t": times})
    assert changes.column("time").cast(pa.int64()).to_pylist() == [10**18, 10**18 + 2, 10**18 + 2]
    assert changes.column("score").to_pylist() == [3.0, 3.0, 2.0]


# -------------------------------------------------------------------------------- groups


def test_numbers_count_within_a_group() -> None:
    monitor = sb.Monitor(counting(1, 2, per="g"), id="id")
    assert told(monitor.push(objects("aA1 bB1 aC2 bD0 bE0"))) == [
        *("0 +aA*", "0 +bB*", "1 -aA", "1 +aC*"),
        *("2 -bB", "2 +bE*"),
    ]


def test_ids_are_numbers_within_the_group_when_none_is_named() -> None:
    monitor = sb.Monitor(counting(1, 2, per="g"))
    changes = monitor.push({"x": [1, 1, 2], "g": ["a", "b", "b"]}).to_pylist()
    assert [(row["g"], row["id"]) for row in changes] == [("a", 0), ("b", 0), ("b", 0), ("b", 1)]


def test_null_is_a_group_and_nan_is_one() -> None:
    groups = pa.array([None, math.nan, 0.0, -0.0, None, math.nan])
    monitor = sb.Monitor(counting(9, 9, per="g"))
    monitor.push(pa.table({"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "g": groups}))
    assert monitor.answer(key=(None,)).column("score").to_pylist() == [5.0, 1.0]
    assert monitor.answer(key=math.nan).column("score").to_pylist() == [6.0, 2.0]
    assert monitor.answer(key=0).column("score").to_pylist() == [4.0, 3.0]
    assert monitor.answer().num_rows == 6


def test_answers_of_all_groups_and_of_one() -> None:
    monitor = sb.Monitor(counting(2, 9, per=("g", "h")))
    monitor.push({"x": [1, 5, 3, 4], "g": ["a", "a", "b", "a"], "h": [1, 1, 1, 2]})
    assert [(row["g"], row["h"], row["rank"], row["score"]) for row in monitor.answer().to_pylist()] == [
        ("a", 1, 1, 5.0),
        ("a", 1, 2, 1.0),
        ("b", 1, 1, 3.0),
        ("a", 2, 1, 4.0),
    ]
    assert monitor.answer(key=("a", 2)).to_pylist() == [{"g": "a", "h": 2, "rank": 1, "id": 0, "score": 4.0}]
    assert monitor.answer(key=("b", 2)).num_rows == 0


def test_ids_are_labels() -> None:
    """The same id is valid twice, and is told twice."""
    monitor = sb.Monitor(counting(2, 9), id="id")
    assert told(monitor.push(objects("A1 A2 A3"))) == ["0 +A*", "1 +A*", "2 -A", "2 +A*"]
    assert ids(monitor) == ["A", "A"]


# --------------------------------------------------------------------- where, keep, scores


# at       0    1    2         (the last 2; w: may be an answer)
#          A5w  B9   C1
# valid    A    AB   BC        B is no answer, but pushes A out
def test_where_restricts_the_answer_not_the_window() -> None:
    rows = [{"id": "A", "x": 5, "w": True}, {"id": "B", "x": 9, "w": False}, {"id": "C", "x": 1, "w": None}]
    monitor = sb.Monitor(counting(1, 2, where="w"), id="id")
    assert told(monitor.push(rows)) == ["0 +A*", "2 -A"]
    assert ids(monitor) == []


def test_where_moves_the_clock() -> None:
    monitor = sb.Monitor(lasting(1, 5, where="x < 9"), id="id", time="t")
    assert told(monitor.push(objects("A5@0 B9@7"))) == ["0@0 +A*", "0@5 -A"]


def test_kept_columns_are_the_objects_own() -> None:
    monitor = sb.Monitor(counting(1, 2), keep=("z", "x"))
    changes = monitor.push({"x": [5, 1, 2], "z": ["first", None, "third"]})
    assert [(row["diff"], row["z"], row["x"]) for row in changes.to_pylist()] == [
        (1, "first", 5),
        (-1, "first", 5),
        (1, "third", 2),
    ]
    monitor.push({"x": [0], "z": ["fourth"]})
    assert monitor.answer().column("z").to_pylist() == ["third"]


def test_direction() -> None:
    batch = {"x": [3.0, 1.0, 2.0]}
    for query, best in (
        (sb.TopK(1, "x", sb.Last(9)), 3.0),
        (sb.TopK(1, "x", sb.Last(9), largest=False), 1.0),
        (sb.TopK(1, sb.Nearest({"x": 2.2}), sb.Last(9)), 2.0),
        (sb.TopK(1, sb.Nearest({"x": 2.2}), sb.Last(9), largest=True), 1.0),
        (sb.TopK(1, "abs(x - 2.2)", sb.Last(9)), 1.0),
    ):
        monitor = sb.Monitor(query, id="x")
        monitor.push(batch)
        assert ids(monitor) == [best], query


def test_nearest_ranks_by_squares_and_reports_roots() -> None:
    monitor = sb.Monitor(sb.TopK(2, sb.Nearest({"x": 0, "y": 0}), sb.Last(9)))
    changes = monitor.push({"x": [3.0, 0.0], "y": [4.0, 2.0]})
    assert changes.column("score").to_pylist() == [5.0, 2.0]
    assert monitor.answer().column("score").to_pylist() == [2.0, 5.0]


def test_scores_are_float64_and_follow_ieee() -> None:
    monitor = sb.Monitor(sb.TopK(3, "x / y", sb.Last(9)))
    monitor.push({"x": [1, -1, 0, 1], "y": [0, 0, 0, 4]})
    assert monitor.answer().column("score").to_pylist() == [math.inf, 0.25, -math.inf]
    assert sum(monitor.stats()["rejected"].values()) == 1, "0 / 0 has no value"


# -------------------------------------------------------------------- emit, order, sharing


# at       0    1    2    3      (the last 2, the best 1)
#          A5   B7   C1   D2     A came and went, B as well; only D is new
def test_emit_batch_is_the_net_change() -> None:
    monitor = sb.Monitor(counting(1, 2), id="id", emit="batch")
    assert told(monitor.push(objects("A5 B7 C1 D2"))) == ["3 +D*"]
    assert told(monitor.push(objects("E1"))) == []
    assert told(monitor.push(objects("F9 G9"))) == ["6 -D", "6 +G*"]


def test_emit_batch_tells_the_last_step() -> None:
    monitor = sb.Monitor(lasting(1, 5, per="g"), id="id", time="t", emit="batch")
    assert told(monitor.push(objects("aA1@0 bB1@1 aC2@3"))) == ["1@3 +aC*", "0@3 +bB*"]
    assert told(monitor.push(objects("bD3@9"))) == ["1@9 -aC", "1@9 -bB", "1@9 +bD*"]


def test_order_by_query_then_by_step_leaving_first() -> None:
    queries = {"two": counting(2, 2), "one": counting(1, 2)}
    monitor = sb.Monitor(queries, id="id")
    changes = monitor.push(objects("A1 B2 C3"))
    assert told(changes) == [*("0 +A*", "1 +B*", "2 -A", "2 +C*"), *("0 +A*", "1 -A", "1 +B*", "2 -B", "2 +C*")]
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
    assert told(changes) == ["2 +C*"], "A, the best, came before the new query"
    assert changes.column("query").to_pylist() == ["new"]
    assert ids(monitor, "old") == ["A"]


def test_replace_keeps_what_fits() -> None:
    monitor = sb.Monitor({"a": counting(3, 5), "b": counting(1, 2)}, id="id")
    monitor.push(objects("A9 B8 C7 D6 E5"))
    assert told(monitor.replace("b", counting(2, 5))) == ["4 -D", "4 +A", "4 +B"]
    assert ids(monitor, "b") == ["A", "B"]
    assert told(monitor.push(objects("F1"))) == ["5 -A", "5 +D*", "5 -A", "5 +C"]


def test_replace_starts_empty_when_it_does_not_fit() -> None:
    for other in (counting(3, 9), counting(1, 10), counting(1, 9, largest=False), counting(1, 9, per="g")):
        monitor = sb.Monitor({"a": counting(2, 9), "b": counting(1, 3)}, id="id")
        monitor.push(objects("xA9 xB8"))
        assert [line[:4] for line in told(monitor.replace("a", other))] == ["1 -A", "1 -B"]
        assert monitor.answer("a").num_rows == 0
        assert monitor.queries == {"a": other, "b": counting(1, 3)}, "it keeps its place"
        assert sorted(monitor.push(objects("xC1")).column("query").to_pylist()) == ["a"]


def test_drop_keeps_what_the_others_need() -> None:
    monitor = sb.Monitor({"wide": counting(3, 9), "slim": counting(1, 2)}, id="id")
    monitor.push(objects("A9 B8 C7 D6"))
    monitor.drop("wide")
    assert list(monitor.queries) == ["slim"]
    assert monitor.stats()["queries"]["slim"]["objects"] == 2, "C and D, the last two"
    assert told(monitor.push(objects("E1 F2"))) == ["4 -C", "4 +D*", "5 -D", "5 +F*"]
    monitor.drop("slim")
    assert monitor.push(objects("G1")).num_rows == 0
    with pytest.raises(QueryError):
        monitor.answer("slim")


# ----------------------------------------------------------------------------- the rest


def test_stats() -> None:
    monitor = sb.Monitor({"a": counting(2, 9), "b": sb.TopK(1, "y", sb.Last(9))})
    monitor.push({"x": [1.0, 2.0, math.nan], "y": [1.0, math.nan, math.nan]})
    stats = monitor.stats()
    assert stats["arrivals"] == 2
    assert stats["late"] == 0
    assert stats["rejected"] == {"x is NaN": 1, "y is NaN": 2}
    assert stats["queries"]["a"]["algorithm"] == "BLOCK"
    assert stats["queries"]["a"]["objects"] == 2
    assert stats["queries"]["b"]["objects"] == 1
    assert 0 < stats["queries"]["b"]["bytes"] < 10_000
    assert repr(monitor).startswith("Monitor({'a': TopK(")


def test_state_stays_small() -> None:
    """A long stream leaves a skyband behind, not the stream."""
    monitor = sb.Monitor(counting(5, 1000), keep="z")
    rng = np.random.default_rng(0)
    for _ in range(60):
        monitor.push({"x": rng.random(2000), "z": [f"word {i}" for i in range(2000)]})
    query = monitor.stats()["queries"]["q0"]
    assert query["objects"] < 60
    assert query["bytes"] < 60_000
    assert len(monitor.snapshot()) < 20_000


def test_the_batch_is_not_touched() -> None:
    x = np.array([3.0, np.nan, 1.0])
    t = np.array([1, 2, 3])
    monitor = sb.Monitor(lasting(1, 5), time="t")
    monitor.push({"x": x, "t": t})
    assert np.array_equal(x, [3.0, np.nan, 1.0], equal_nan=True)
    assert t.tolist() == [1, 2, 3]
    x[:] = 0.0
    assert monitor.answer().column("score").to_pylist() == [3.0], "nothing of the batch is borrowed"


def test_import_is_light() -> None:
    """`import skyband` loads neither PySpark nor a web framework, nor the compiler before it is needed."""
    code = (
        "import sys, skyband; heavy = {'pyspark', 'starlette', 'uvicorn', 'numba', 'pandas', 'matplotlib'};"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
