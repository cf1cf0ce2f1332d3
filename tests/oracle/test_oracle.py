"""The oracle against answers worked out by hand.

In the timelines a letter is an object, the number after it its score. `brief` writes a change as
"at +id" or "at@time -id"; a star marks `first`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.errors import BatchError, QueryError
from skyband.oracle import Oracle
from skyband.oracle.objects import Arrival
from skyband.oracle.uncertain import (
    most_probable_top_k,
    rank_probabilities,
    rank_probabilities_by_worlds,
    top_k_probabilities_by_worlds,
)
from skyband.query.kinds import Above, Query, TopK, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.query.scoring import Global, Linear, Nearest, Product, Quadratic
from skyband.query.windows import Last, UntilDeleted

Row = dict[str, Any]


def brief(changes: list[Row]) -> list[str]:
    lines = []
    for c in changes:
        time = f"@{c['time']}" if c.get("time") is not None else ""
        who = c["id"] if c.get("id_a") is None else f"{c['id_a']}{c['id_b']}"
        rank = f"#{c['rank']}" if c.get("rank") is not None else ""
        lines.append(f"{c['at']}{time} {'+' if c['diff'] > 0 else '-'}{who}{rank}{'*' if c['first'] else ''}")
    return lines


def objects(text: str, **more: Any) -> list[Row]:
    """'A5 B3' as rows with id and s; 'A5@7' with a time too."""
    rows = []
    for word in text.split():
        name, _, time = word.partition("@")
        row = {"id": name[0], "s": None if name[1:] == "null" else float(name[1:]), **more}
        rows.append(row | {"t": int(time)} if time else row)
    return rows


def ids(oracle: Oracle, name: str | None = None, **asked: Any) -> list[Any]:
    return [row["id"] for row in oracle.answer(name, **asked)]


# ------------------------------------------------------------------ count windows


def test_count_window() -> None:
    #  at      0   1   2   3   4
    #          A5  B3  C4  D1  E2      k = 2, n = 3
    #  window  A   AB  ABC BCD CDE
    #  answer  A   AB  AC  CB  CE
    o = Oracle(TopK(2, by="s", window=Last(3)), id="id")
    changes = o.push(objects("A5 B3 C4 D1 E2"))
    assert brief(changes) == ["0 +A*", "1 +B*", "2 -B", "2 +C*", "3 -A", "3 +B", "4 -B", "4 +E*"]
    assert list(changes[0]) == ["query", "at", "id", "score", "diff", "first"]
    assert changes[0] == {"query": "q0", "at": 0, "id": "A", "score": 5.0, "diff": 1, "first": True}
    assert o.answer() == [{"rank": 1, "id": "C", "score": 4.0}, {"rank": 2, "id": "E", "score": 2.0}]
    assert o.arrivals == 5


def test_an_arrival_and_the_expiry_it_causes_are_one_step() -> None:
    #  A9 expires when C8 comes: B7 would be promoted and displaced within the step, so it never shows.
    o = Oracle(TopK(1, by="s", window=Last(2)), id="id")
    assert brief(o.push(objects("A9 B7 C8"))) == ["0 +A*", "2 -A", "2 +C*"]


def test_fewer_objects_than_k_and_a_window_of_one() -> None:
    o = Oracle([TopK(5, by="s", window=Last(2)), TopK(1, by="s", window=Last(1))], id="id")
    o.push(objects("A1 B2 C0"))
    assert ids(o, "q0") == ["B", "C"]
    assert ids(o, "q1") == ["C"]


def test_ties_go_to_the_later_arrival() -> None:
    o = Oracle(TopK(1, by="s", window=Last(5)), id="id")
    assert brief(o.push(objects("A1 B1 C1"))) == ["0 +A*", "1 -A", "1 +B*", "2 -B", "2 +C*"]
    o = Oracle(TopK(2, by="s", window=Last(5), largest=False), id="id")
    o.push([{"id": "A", "s": 0.0}, {"id": "B", "s": -0.0}])  # equal scores
    assert ids(o) == ["B", "A"]


def test_ids_are_labels_and_without_a_name_they_are_arrival_numbers() -> None:
    o = Oracle(TopK(3, by="s", window=Last(3)), id="id")
    assert brief(o.push(objects("A1 A2"))) == ["0 +A*", "1 +A*"]
    o = Oracle(TopK(1, by="s", window=Last(2), per="g"))
    changes = o.push([{"g": "x", "s": 1}, {"g": "y", "s": 2}, {"g": "x", "s": 3}])
    assert [(c["g"], c["at"], c["id"], c["diff"]) for c in changes] == [
        ("x", 0, 0, 1),
        ("y", 0, 0, 1),
        ("x", 1, 0, -1),
        ("x", 1, 1, 1),
    ]


def test_worked_example_of_pripuzic2015() -> None:
    order = ["o2", "o3", "o1", "o7", "o5", "o9", "o4", "o8", "o6", "o11", "o10"]  # best first; k = 1, n = 6
    #  An object stays in the 1-skyband until a newer, better one comes or its sixth successor does.
    skybands = [
        "o1",
        "o2",  # better than o1
        "o2 o3",
        "o2 o3 o4",
        "o2 o3 o5",  # better than o4
        "o2 o3 o5 o6",
        "o2 o3 o7",  # better than o5 and o6; o1 expires
        "o3 o7 o8",  # o2 expires
        "o7 o9",  # better than o8; o3 expires
        "o7 o9 o10",
        "o7 o9 o11",  # better than o10
    ]
    o = Oracle(TopK(1, by="s", window=Last(6), largest=False), id="id")
    tops, results = [], []
    for i in range(1, 12):
        changes = o.push([{"id": f"o{i}", "s": order.index(f"o{i}")}])
        results += [c["id"] for c in changes if c["first"]]
        tops += ids(o)
        assert o.skyband("q0") == skybands[i - 1].split()
    assert tops == ["o1", "o2", "o2", "o2", "o2", "o2", "o2", "o3", "o7", "o7", "o7"]
    assert results == ["o1", "o2", "o3", "o7"]  # the result stream, Definition 3.6


# ------------------------------------------------------------------- time windows


def test_time_window_expires_at_exactly_t_plus_span() -> None:
    #  t  0   1   2   3   4   5        span = 3, k = 1
    #     A9  B5          C1
    #     A-----------)
    #         B-----------)
    #                     C----
    o = Oracle(TopK(1, by="s", window=Last(span=3)), id="id", time="t")
    assert brief(o.push(objects("A9@0 B5@1"))) == ["0@0 +A*"]
    assert brief(o.push(objects("C1@4"))) == ["1@3 -A", "1@3 +B*", "1@4 -B", "2@4 +C*"]
    assert o.answer() == [{"rank": 1, "id": "C", "time": 4, "score": 1.0}]
    assert brief(o.advance(6)) == []
    assert brief(o.advance(7)) == ["2@7 -C"]
    assert o.answer() == []
    with pytest.raises(BatchError, match="cannot go back"):
        o.advance(6)


def test_objects_that_leave_at_one_instant_leave_in_one_step_before_its_arrivals() -> None:
    #  A and B leave at 5 together: of C and D only the two best show, then E comes at the same instant.
    o = Oracle(TopK(2, by="s", window=Last(span=5)), id="id", time="t")
    o.push(objects("A9@0 B8@0 C7@1 D6@2"))
    assert brief(o.push(objects("E9@5"))) == ["3@5 -A", "3@5 -B", "3@5 +C*", "3@5 +D*", "4@5 -D", "4@5 +E*"]


def test_equal_times_each_arrival_is_a_step_and_the_later_arrival_ranks_above() -> None:
    o = Oracle(TopK(1, by="s", window=Last(span=2)), id="id", time="t")
    assert brief(o.push(objects("A1@0 B1@0"))) == ["0@0 +A*", "1@0 -A", "1@0 +B*"]


def test_ties_in_time_windows_go_to_the_later_time_first() -> None:
    o = Oracle(TopK(2, by="s", window=Last(span=10)), id="id", time="t")
    o.push(objects("A1@5 B1@3"))  # B is late: a later arrival with an earlier time
    assert ids(o) == ["A", "B"]
    assert o.skyband("q0") == ["A", "B"]
    o = Oracle(TopK(1, by="s", window=Last(span=10)), id="id", time="t")
    o.push(objects("A1@5 B1@3 C2@5 D1@5"))
    assert o.skyband("q0") == ["C"]  # A and D expire with C, not after it


def test_late_objects() -> None:
    #  the clock is at 10 when D@6 comes: 6 + 5 > 10, so it is inserted, in a step at 10;
    #  E@5 is expired already: dropped and counted, no arrival.
    o = Oracle({"short": TopK(1, by="s", window=Last(span=5)), "long": TopK(1, by="s", window=Last(span=9))},
               id="id", time="t")  # fmt: skip
    o.push(objects("A5@10"))
    changes = o.push(objects("D7@6 E9@5 F8@10"))
    assert [c["query"] for c in changes] == ["short"] * 4 + ["long"] * 4
    assert brief(changes) == [
        *("1@10 -A", "1@10 +D*", "2@10 -D", "2@10 +F*"),  # E is no arrival here: F is number 2
        *("1@10 -A", "1@10 +D*", "2@10 -D", "2@10 +E*"),  # each query decides by its own span
    ]
    assert (o.late, o.arrivals) == (1, 4)


def test_late_drop_and_count_windows() -> None:
    queries = {"time": TopK(3, by="s", window=Last(span=5)), "count": TopK(3, by="s", window=Last(3))}
    o = Oracle(queries, id="id", time="t", late="drop")
    changes = o.push(objects("A1@10 B2@9 C3@10"))
    #  a count window ignores lateness, its `time` is the arrival's own
    assert brief(changes) == ["0@10 +A*", "1@10 +C*", "0@10 +A*", "1@9 +B*", "2@10 +C*"]
    assert o.late == 1


def test_one_clock_for_all_groups_and_queries() -> None:
    #  g=x is silent after A; the clock that y carries expires A, in the order of instants across groups.
    o = Oracle(TopK(1, by="s", window=Last(span=3), per="g"), id="id", time="t")
    o.push(objects("A1@0", g="x") + objects("B1@1", g="y"))
    changes = o.push(objects("C1@9", g="y"))
    assert [(c["g"], *brief([c])) for c in changes] == [("x", "0@3 -A"), ("y", "0@4 -B"), ("y", "1@9 +C*")]


def test_a_row_that_every_query_rejects_moves_no_clock() -> None:
    o = Oracle(TopK(1, by="s", window=Last(span=3)), id="id", time="t")
    o.push(objects("A1@0"))
    assert o.push(objects("Bnull@9")) == []
    assert ids(o) == ["A"]
    o.add("other", TopK(1, by="u", window=Last(span=3)))
    assert brief(o.push([{"id": "C", "t": 9, "s": None, "u": 1}])) == ["0@3 -A", "1@9 +C*"]


def test_times_may_be_dates_and_datetimes() -> None:
    o = Oracle(TopK(1, by="s", window=Last("2 days")), id="id", time="t")
    o.push([{"id": "A", "s": 2, "t": date(2024, 2, 28)}])
    assert brief(o.push([{"id": "B", "s": 1, "t": date(2024, 3, 1)}])) == [
        "0@2024-03-01 -A",
        "1@2024-03-01 +B*",
    ]
    start = datetime(2024, 1, 1, tzinfo=UTC)
    o = Oracle(TopK(1, by="s", window=Last("500 ms")), id="id", time="t")
    o.push([{"id": "A", "s": 2, "t": start}])
    o.advance(start + timedelta(milliseconds=499))
    assert ids(o) == ["A"]
    assert [c["time"] for c in o.advance(start + timedelta(seconds=5))] == [start + timedelta(milliseconds=500)]
    with pytest.raises(QueryError, match="integers"):
        Oracle(TopK(1, by="s", window=Last("1 s")), time="t").push([{"s": 1, "t": 1}])
    with pytest.raises(QueryError, match="time window"):
        Oracle(TopK(1, by="s", window=Last("1 s")))


# ---------------------------------------------------------- where, per, emit, first


def test_where_restricts_answers_not_the_window() -> None:
    #  at 0 A5 yes, 1 B9 no, 2 C1 yes: B counts in the window of 2, so A is out when C comes.
    o = Oracle(TopK(1, by="s", window=Last(2), where="ok"), id="id")
    rows = objects("A5", ok=True) + objects("B9", ok=False) + objects("C1", ok=True) + objects("D1", ok=None)
    assert brief(o.push(rows)) == ["0 +A*", "2 -A", "2 +C*"]
    assert o.skyband("q0") == ["C"]
    assert o.push(objects("Enull", ok=False)) == []
    assert o.rejected == {"score is null or NaN": 1}  # rejection comes before `where`


def test_groups_number_their_arrivals_and_null_is_a_group() -> None:
    o = Oracle(TopK(1, by="s", window=Last(9), per=("g", "h")), id="id")
    keys = [(1.0, None), (None, None), (math.nan, 0.0), (math.nan, -0.0), (1.0, None)]
    changes = o.push([{"id": i, "s": i, "g": g, "h": h} for i, (g, h) in enumerate(keys)])
    assert list(changes[0])[:4] == ["query", "g", "h", "at"]
    assert brief(changes) == ["0 +0*", "0 +1*", "0 +2*", "1 -2", "1 +3*", "1 -0", "1 +4*"]
    assert ids(o) == [4, 1, 3]  # groups in order of first appearance
    assert ids(o, key=(math.nan, 0)) == [3]
    assert ids(o, key=(2.0, 0)) == []
    with pytest.raises(QueryError, match="one value for each"):
        o.answer(key=1.0)


def test_emit_batch_is_one_difference_per_group() -> None:
    o = Oracle(TopK(1, by="s", window=Last(2), per="g"), id="id", time="t", emit="batch")
    #  x: A5 comes and goes within the push, so it never enters; `first` is of emitted changes
    rows = objects("A5@1 B1@2 C2@3", g="x") + objects("D1@2", g="y") + objects("E0@4", g="x")
    changes = o.push(rows)
    assert [(c["g"], *brief([c])) for c in changes] == [("x", "3@4 +C*"), ("y", "0@2 +D*")]
    assert o.push([]) == []
    assert brief(o.push(objects("F9@5 G1@5 H0@5", g="x"))) == ["6@5 -C", "6@5 +G*"]


def test_emit_batch_in_time_windows_is_at_the_clock() -> None:
    o = Oracle(TopK(1, by="s", window=Last(span=3), per="g"), id="id", time="t", emit="batch")
    o.push(objects("A5@1", g="x"))
    changes = o.push(objects("B5@1 C7@9", g="y"))
    assert [(c["g"], *brief([c])) for c in changes] == [("x", "0@9 -A"), ("y", "1@9 +C*")]
    assert brief(o.advance(12)) == ["1@12 -C"]


def test_first_is_once_per_object() -> None:
    o = Oracle(TopK(1, by="s", window=Last(3)), id="id")
    assert brief(o.push(objects("A5 B9 C1 D2 E1"))) == ["0 +A*", "1 -A", "1 +B*", "4 -B", "4 +D*"]
    o = Oracle(TopK(1, by="s", window=Last(span=4)), id="id", time="t")  # A and B enter a second time
    assert brief(o.push(objects("A5@3 B9@1")) + o.advance(5)) == [
        "0@3 +A*",
        "1@3 -A",
        "1@3 +B*",
        "1@5 -B",
        "1@5 +A",
    ]


def test_keep_columns_and_the_union_of_columns() -> None:
    queries: list[Query] = [
        TopK(1, by="s", window=Last(2), per="g"),
        TopKPairs(1, by="abs(a.s - b.s)", window=Last(2)),
        TopKUncertain(1, by="s", window=Last(2)),
    ]
    o = Oracle(queries, id="id", time="t", keep="c")
    changes = o.push(objects("A1@0 B2@1", g="x", c="k", p=0.5))
    assert list(changes[0]) == [
        *("query", "g", "at", "time", "id", "id_a", "id_b", "score", "rank", "probability"),
        *("diff", "first", "c", "c_a", "c_b"),
    ]
    assert [c["query"] for c in changes] == ["q0"] * 3 + ["q1"] + ["q2"] * 3
    pair = changes[3]
    assert (pair["id"], pair["id_a"], pair["id_b"], pair["c"], pair["c_a"], pair["g"]) == (
        *(None, "A", "B", None, "k", None),
    )
    assert o.answer("q1") == [{"rank": 1, "id_a": "A", "id_b": "B", "time": 1, "score": 1.0, "c_a": "k", "c_b": "k"}]
    with pytest.raises(QueryError, match="writes itself"):
        Oracle(queries, keep=("score",))


# ------------------------------------------------------------------------ rejection


@pytest.mark.parametrize(
    ("query", "row", "reason"),
    [
        (TopK(1, by="s", window=Last(2)), {"s": None}, "score is null or NaN"),
        (TopK(1, by="s", window=Last(2)), {"s": math.nan}, "score is null or NaN"),
        (TopK(1, by="s", window=Last(2)), {"s": 1, "t": None}, "time is null"),
        (TopK(1, by="s", window=Last(2)), {"s": 2**53 + 1}, "integer beyond 2^53"),
        (TopK(1, by="s", window=Last(2), where="u > 0"), {"s": 1, "u": -(2**53) - 1}, "integer beyond 2^53"),
        (TopK(1, by=Linear({"s": 1, "u": 1}), window=Last(2)), {"s": 1, "u": None}, "score is null or NaN"),
        (TopK(1, by="s", window=UntilDeleted()), {"id": None, "s": 1}, "id is null"),
        (TopKUncertain(1, by="s", window=Last(2)), {"s": 1, "p": 0}, "probability is not in (0, 1]"),
        (TopKUncertain(1, by="s", window=Last(2)), {"s": 1, "p": 1.1}, "probability is not in (0, 1]"),
        (TopKUncertain(1, by="s", window=Last(2)), {"s": 1, "p": None}, "probability is not in (0, 1]"),
        (TopKIncomplete(1, ["a"], Last(2)), {"part": "b", "value": 0.5}, "unknown part"),
        (TopKIncomplete(1, ["a"], Last(2)), {"part": "a", "value": 1.5}, "value out of range"),
        (TopKIncomplete(1, ["a"], Last(2)), {"part": "a", "value": math.nan}, "value out of range"),
        (TopKIncomplete(1, ["a"], Last(2)), {"id": None, "part": "a", "value": 1}, "id is null"),
    ],
)
def test_rejected_rows(query: Query, row: Row, reason: str) -> None:
    row = {"id": "X", "t": 7} | row
    o = Oracle(query, id="id", time="t")
    assert o.push([row]) == []
    assert (o.rejected, o.arrivals, o.clock) == ({reason: 1}, 0, None)
    strict = Oracle(query, id="id", time="t", invalid="raise")
    with pytest.raises(BatchError, match="row 0"):
        strict.push([row])


def test_what_is_not_rejected() -> None:
    o = Oracle(TopK(9, by="s", window=Last(9)), id="id")
    o.push(
        [
            {"id": "A", "s": 2**53},
            {"id": "B", "s": math.inf},
            {"id": "C", "s": -math.inf},
            {"id": None, "s": 0},
        ]
    )
    assert ids(o) == ["B", "A", None, "C"]
    assert not o.rejected


def test_a_rejected_row_is_no_arrival_of_the_query_that_rejects_it() -> None:
    o = Oracle([TopK(1, by="s", window=Last(1)), TopK(1, by="u", window=Last(1))], id="id")
    changes = o.push([{"id": "A", "s": 1, "u": 1}, {"id": "B", "s": None, "u": 2}, {"id": "C", "s": 0, "u": 0}])
    assert brief(changes) == ["0 +A*", "1 -A", "1 +C*", "0 +A*", "1 -A", "1 +B*", "2 -B", "2 +C*"]


def test_invalid_raise_changes_nothing() -> None:
    o = Oracle(TopK(1, by="s", window=Last(2)), id="id", invalid="raise")
    o.push(objects("A1"))
    with pytest.raises(BatchError, match="row 1, column 's': score is null or NaN"):
        o.push(objects("B2 Cnull"))
    assert ids(o) == ["A"]
    assert (o.arrivals, o.rejected) == (1, {})
    assert brief(o.push(objects("B2"))) == ["1 -A", "1 +B*"]


# ---------------------------------------------------------------- above, UntilDeleted


def test_above_is_strict() -> None:
    o = Oracle(Above(3, by="s", window=Last(3)), id="id")
    assert brief(o.push(objects("A3 B4 C9 D1 E1"))) == ["1 +B*", "2 +C*", "4 -B"]
    assert o.answer() == [{"rank": 1, "id": "C", "score": 9.0}]


def test_until_deleted() -> None:
    #      A5  B3  A1 (replaces A5 in one step: A leaves, the new A is another object)  delete B
    o = Oracle(TopK(1, by="s", window=UntilDeleted()), id="id", time="t")
    assert brief(o.push(objects("A5@1 B3@2"))) == ["0@1 +A*"]
    assert brief(o.push(objects("A1@1"))) == ["2@1 -A", "2@1 +B*"]
    assert brief(o.delete(["Z", "B"])) == ["2@2 -B", "2@2 +A*"]  # the clock is at 2
    assert o.rejected == {"unknown id": 1}
    assert ids(o) == ["A"]
    assert brief(o.delete(["A", "A"])) == ["2@2 -A"]
    assert o.rejected == {"unknown id": 2}
    assert brief(o.push(objects("A1@5"))) == ["3@5 +A*"]


def test_until_deleted_above_and_groups() -> None:
    o = Oracle(Above(0, by="s", window=UntilDeleted(), per="g"), id="id")
    o.push(objects("A1 B1", g="x") + objects("A1", g="y"))
    changes = o.delete(["B", "A"])  # an id is a key within its group; deletion names it in all of them
    assert [(c["g"], *brief([c])) for c in changes] == [("x", "1 -B"), ("x", "1 -A"), ("y", "0 -A")]
    assert brief(o.push(objects("B2 B3", g="x"))) == ["2 +B*", "3 -B", "3 +B*"]
    with pytest.raises(QueryError, match="ids are keys"):
        Oracle(TopK(1, by="s", window=UntilDeleted()))


def test_until_deleted_keeps_everything_and_batches() -> None:
    o = Oracle(TopK(2, by="s", window=UntilDeleted()), id="id", time="t", emit="batch")
    assert brief(o.push(objects("A1@3 B2@1 C3@2"))) == ["2@2 +C*", "2@2 +B*"]
    assert o.skyband("q0") == ["C", "B", "A"]
    assert brief(o.delete(["C", "B"])) == ["2@3 -C", "2@3 -B", "2@3 +A*"]


# ------------------------------------------------------------------- scores, expressions


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (Linear({"x": 0.1, "y": 0.2, "z": 0.3}), ((0.1 * 3) + (0.2 * 4)) + 0.3 * 0.7),
        (Product({"x": 1, "y": 2}), 24),
        (Quadratic({"x": 1, "y": 2}), 9 + 2 * 16),
        (Nearest({"x": 0, "y": 0}), 5),
        (Nearest({"x": 0, "y": 0}, weights={"y": 2, "x": 0}), math.sqrt(32)),
        (Nearest({"x": 4, "y": 0}, metric="manhattan"), 5),
        (Nearest({"x": 4, "y": 0}, metric="chebyshev"), 4),
        (Nearest({"x": 4, "y": 0}, weights={"x": 9, "y": 1}, metric="chebyshev"), 9),
        (lambda batch: batch["x"] * 2 + batch["y"], 10),
        ("x", 3),
        ("0.1*x + 0.2*y + 0.3*z", ((0.1 * 3) + (0.2 * 4)) + 0.3 * 0.7),
        ("-x + y % 3 - 2 * (x - 1)", -3 + 1 - 4),
        ("x / zero", math.inf),
        ("-x / zero", -math.inf),
        ("abs(x - y) + sqrt(y) + power(x, 2) + exp(zero) + ln(1)", 1 + 2 + 9 + 1),
        ("least(x, nothing, y) + greatest(x, nothing, y)", 7),
        ("coalesce(nothing, x)", 3),
        ("case when x > y then 1 when name = 'n' then 2 else 3 end", 2),
        ("case x when 4 then 1 when 3 then 2 end", 2),
        ("power(zero, -1)", math.inf),
        ("exp(1000)", math.inf),
        ("ln(zero)", -math.inf),
        ("greatest(x, nan)", None),
        ("case when x > y then 1 end", None),
        ("zero / zero", None),
        ("sqrt(-x)", None),
        ("nothing + x", None),
        ("power(-x, 0.5)", None),
    ],
)
def test_scores(by: Any, expected: float | None) -> None:
    row = {"id": "A", "x": 3, "y": 4.0, "z": 0.7, "zero": 0, "nothing": None, "nan": math.nan, "name": "n"}
    o = Oracle(TopK(1, by=by, window=Last(1)), id="id")
    o.push([row])
    assert [r["score"] for r in o.answer()] == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("x = 3 and name = 'n'", True),
        ("x <> 3 or nothing > 1", False),
        ("x = 3 or nothing > 1", True),
        ("not (nothing > 1)", False),
        ("nothing is null and x is not null", True),
        ("x between 3 and 4", True),
        ("x not between 3 and 4", False),
        ("x in (1, 3)", True),
        ("x not in (1, nothing)", False),
        ("flag", True),
        ("not flag", False),
        ("nan = nan and nan > 1e308", True),  # as in Spark
        ("x < nan and not x > nan", True),
        ("name in ('m', 'n')", True),
    ],
)
def test_conditions(where: str, expected: bool) -> None:
    row = {"id": "A", "x": 3, "nothing": None, "nan": math.nan, "name": "n", "flag": True}
    o = Oracle(TopK(1, by="x", window=Last(1), where=where), id="id")
    o.push([row])
    assert bool(o.answer()) is expected


def test_nearest_ranks_by_the_sum_of_squares() -> None:
    a, b = 1.0, math.nextafter(1.0, 2.0)  # the squares differ, their roots may not
    o = Oracle(TopK(2, by=Nearest({"x": 0, "y": 0}), window=Last(2)), id="id")
    o.push([{"id": "far", "x": b, "y": a}, {"id": "near", "x": a, "y": a}])
    assert ids(o) == ["near", "far"]


# ----------------------------------------------------------------------------- pairs


def test_pairs() -> None:
    #  at      0   1   2   3
    #          A1  B4  C5  D9     smallest |a - b|, n = 3, k = 2
    #  pairs   -   AB3 BC1 BC1
    #                  AB3 CD4      (A expires: AB and AC go with it)
    o = Oracle(TopKPairs(2, by="abs(a.s - b.s)", window=Last(3)), id="id")
    changes = o.push(objects("A1 B4 C5 D9"))
    assert brief(changes) == ["1 +AB*", "2 +BC*", "3 -AB", "3 +CD*"]
    assert list(changes[0]) == ["query", "at", "id_a", "id_b", "score", "diff", "first"]
    assert o.answer() == [
        {"rank": 1, "id_a": "B", "id_b": "C", "score": 1.0},
        {"rank": 2, "id_a": "C", "id_b": "D", "score": 4.0},
    ]


def test_ties_of_pairs() -> None:
    #  all pairs score 0: the pair whose older member is newer, then whose newer member is newer
    o = Oracle(TopKPairs(6, by=Global({"s": "absdiff"}), window=Last(4)), id="id")
    o.push(objects("A1 B1 C1 D1"))
    assert [r["id_a"] + r["id_b"] for r in o.answer()] == ["CD", "BD", "BC", "AD", "AC", "AB"]


def test_pairs_in_time_windows_and_late_members() -> None:
    #  t  0 1 2 3        B@1 comes last, so its number is 2, but it is older than C
    #     A B C          span = 3: all pairs with A go at 3
    o = Oracle(TopKPairs(3, by="b.s - a.s", window=Last(span=3), symmetric=False), id="id", time="t")
    assert brief(o.push(objects("A1@0 C4@2 B2@1"))) == ["1@2 +AC*", "2@2 +AB*", "2@2 +BC*"]
    assert [(r["id_a"], r["id_b"], r["time"], r["score"]) for r in o.answer()] == [
        ("A", "B", 1, 1.0),
        ("B", "C", 2, 2.0),
        ("A", "C", 2, 3.0),
    ]
    assert brief(o.advance(3)) == ["2@3 -AB", "2@3 -AC"]


def test_pairs_where_groups_and_pairs_without_a_score() -> None:
    o = Oracle(TopKPairs(9, by="a.s / b.s", window=Last(3), where="ok", per="g", symmetric=False), id="id")
    x = [{"g": "x", "ok": True} | row for row in objects("A0 B0 C2")]
    x[2]["ok"] = True
    changes = o.push([x[0], x[1], {"id": "N", "s": 1.0, "g": "y", "ok": True}, x[2]])
    assert brief(changes) == ["2 +BC*", "2 +AC*"]  # 0/0 is NaN: AB is no answer, A and B stay
    assert o.rejected == {"pair without a score": 1}
    assert brief(o.push([{"id": "D", "s": 1.0, "g": "x", "ok": False}])) == ["3 -AC"]
    assert brief(o.push([{"id": "E", "s": None, "g": "x", "ok": True}])) == ["4 -BC"]
    assert o.rejected == {"pair without a score": 2}
    o.push([{"id": "F", "s": 2**53 + 1, "g": "x", "ok": True}])
    assert o.rejected["integer beyond 2^53"] == 1


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (Global({"s": "absdiff", "u": "sum"}), 3 + 7),
        (Global({"s": "absdiff", "u": "sum"}, combine="product"), 3 * 7),
        (lambda a, b: a["s"] - b["s"], -3),
    ],
)
def test_scores_of_pairs(by: Any, expected: float) -> None:
    o = Oracle(TopKPairs(1, by=by, window=Last(2), symmetric=False), id="id")
    o.push([{"id": "A", "s": 1, "u": 3}, {"id": "B", "s": 4, "u": 4}])
    assert [r["score"] for r in o.answer()] == [expected]


# ------------------------------------------------------------------------ incomplete


def parts(text: str) -> list[Row]:
    """'A.a.5' as id A, part a, value 0.5; 'A.a.5@7' with a time too."""
    rows = []
    for word in text.split():
        name, part, value = word.partition("@")[0].split(".")
        row: Row = {"id": name, "part": part, "value": float("0." + value) if value != "X" else 1.0}
        rows.append(row | {"t": int(word.partition("@")[2])} if "@" in word else row)
    return rows


def test_incomplete_objects() -> None:
    #  at    0       1       2       3            n = 3 rows of all parts
    #        A.a .5  B.a .4  B.b .4  C.a .1
    #  A     .5      .5      .5      gone
    #  B             .4      .8      .8
    #  C                             .1
    o = Oracle(TopKIncomplete(1, ["a", "b"], Last(3)), id="id")
    assert brief(o.push(parts("A.a.5 B.a.4 B.b.4 C.a.1"))) == ["0 +A*", "2 -A", "2 +B*"]
    assert o.answer() == [{"rank": 1, "id": "B", "score": 0.8}]
    #  B loses a, then b: its score moves while it stays, then C takes over
    changes = o.push(parts("D.a.0 D.b.0"))
    assert brief(changes) == ["5 -B", "5 +C*"]
    assert changes[0]["score"] == 0.4  # the last one it had in the answer: part a went out one step before


def test_incomplete_first_again_once_no_row_was_valid() -> None:
    o = Oracle(TopKIncomplete(1, ["a", "b"], Last(span=2)), id="id", time="t")
    assert brief(o.push(parts("A.a.5@0 A.b.1@1 B.a.9@1 C.a.X@4"))) == [
        *("0@0 +A*", "2@1 -A", "2@1 +B*", "2@3 -B", "3@4 +C*"),
    ]
    assert brief(o.push(parts("A.b.5@5")) + o.advance(6)) == ["4@6 -C", "4@6 +A*"]


def test_incomplete_ties_go_to_the_newest_row() -> None:
    o = Oracle(TopKIncomplete(2, ["a", "b"], Last(9), combine="max"), id="id")
    o.push(parts("A.a.5 B.a.5 A.b.1"))
    assert [(r["id"], r["score"]) for r in o.answer()] == [("A", 0.5), ("B", 0.5)]


def test_incomplete_repeats() -> None:
    rows = parts("A.a.5 A.a.4 A.a.3")
    expected: dict[Any, float] = {None: 0.5, "last": 0.3, "max": 0.5, "sum": (0.5 + 0.4) + 0.3}
    for repeat, score in expected.items():
        o = Oracle(TopKIncomplete(1, ["a"], Last(9), repeat=repeat), id="id")
        o.push(rows)
        assert [r["score"] for r in o.answer()] == [score]
        assert o.rejected == ({"second row of the same part": 2} if repeat is None else {})
    #  in a window of 2 the third row comes as the first goes: the two are never valid together
    o = Oracle(TopKIncomplete(1, ["a"], Last(2)), id="id")
    o.push(parts("A.a.5 B.a.1 A.a.2"))
    assert [(r["id"], r["score"]) for r in o.answer()] == [("A", 0.2)]
    o = Oracle(TopKIncomplete(1, ["a"], Last(span=2)), id="id", time="t")
    o.push(parts("A.a.5@0 A.a.2@2"))
    assert [(r["id"], r["score"], r["time"]) for r in o.answer()] == [("A", 0.2, 2)]


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        ("sum", 2 + 10),
        ("mean", 6.0),
        ("min", 2.0),
        ("max", 10.0),
        (Linear({"b": 0.5, "a": 3}), 0.5 * 10 + 3 * 2),
        ("a + 2*b", 22.0),
    ],
)
def test_incomplete_combinations(combine: Any, expected: float) -> None:
    #  part b never comes: it counts as its low, 10
    o = Oracle(TopKIncomplete(1, {"a": (0, 5), "b": (10, 20)}, Last(9), combine=combine), id="id")
    o.push([{"id": "A", "part": "a", "value": 2}])
    assert [r["score"] for r in o.answer()] == [expected]


# ------------------------------------------------------------------------- uncertain

RADAR = [(5, 0.8), (6, 0.5), (8, 0.4), (2, 0.4)]  # jin2008, Table 1: speed, probability


@pytest.mark.parametrize(
    ("semantics", "threshold", "expected"),
    [
        ("u-topk", None, [(1, 6, 0.24), (2, 5, 0.24)]),
        ("u-kranks", None, [(1, 8, 0.4), (2, 5, 0.6 * 0.5 * 0.8 + 0.4 * 0.5 * 0.8)]),
        ("pt-k", 0.3, [(1, 5, 0.64), (2, 6, 0.5), (3, 8, 0.4)]),
        ("pk-topk", None, [(1, 5, 0.64), (2, 6, 0.5)]),
    ],
)
def test_worked_example_of_jin2008(semantics: Any, threshold: float | None, expected: list[Any]) -> None:
    query = TopKUncertain(2, by="s", window=Last(4), semantics=semantics, threshold=threshold)
    o = Oracle(query, id="s")
    changes = o.push([{"s": s, "p": p} for s, p in RADAR])
    assert list(changes[0]) == ["query", "at", "id", "score", "rank", "probability", "diff", "first"]
    answer = o.answer()
    assert [(r["rank"], r["id"]) for r in answer] == [(rank, id) for rank, id, _ in expected]
    assert [r["probability"] for r in answer] == pytest.approx([p for *_, p in expected])


def test_worked_example_of_jin2008_slides() -> None:
    o = Oracle(TopKUncertain(2, by="s", window=Last(3)), id="s")
    o.push([{"s": s, "p": p} for s, p in RADAR[:3]])
    assert set(ids(o)) == {6, 5}
    changes = o.push([{"s": 2, "p": 0.4}])  # 5 expires
    assert brief(changes) == ["3 -5", "3 +8*"]
    assert [c["probability"] for c in changes] == pytest.approx([0.64, 0.4])  # of 5 the last it had
    assert ids(o) == [6, 8]


def test_u_kranks_changes_are_of_object_and_rank() -> None:
    #  A alone holds rank 1. B on top: B is most probable at rank 1, A keeps .5 for rank 2.
    o = Oracle(TopKUncertain(2, by="s", window=Last(2), semantics="u-kranks"), id="id")
    assert brief(o.push(objects("A1", p=1.0))) == ["0 +A#1*"]  # nobody can hold rank 2
    assert brief(o.push(objects("B2", p=0.75))) == ["1 -A#1", "1 +B#1*", "1 +A#2*"]
    assert [(r["rank"], r["id"], r["probability"]) for r in o.answer()] == [(1, "B", 0.75), (2, "A", 0.75)]


def test_u_topk_ties_and_too_few_objects() -> None:
    o = Oracle(TopKUncertain(2, by="s", window=Last(2), semantics="u-topk", where="s < 9"), id="id")
    assert o.push(objects("A3", p=0.5) + objects("Z9", p=0.5)) == []
    assert o.push(objects("B3", p=0.5)) == []  # A expires
    assert brief(o.push(objects("C4", p=0.5))) == ["3 +C*", "3 +B*"]
    o = Oracle(TopKUncertain(1, by="s", window=Last(4), semantics="u-topk"), id="id")
    o.push(objects("A3", p=0.5) + objects("B2", p=1.0))  # A first: .5; B first: .5
    assert ids(o) == ["A"]


def test_alternatives_exclude_each_other() -> None:
    #  A9 .5 and B8 .5 are alternatives: exactly one exists. C7 exists always, so it is second for sure.
    o = Oracle(TopKUncertain(2, by="s", window=Last(3), group="x"), id="id")
    rows = objects("A9 B8", x=1, p=0.5) + objects("C7", x=None, p=1.0)
    o.push(rows)
    assert [(r["id"], r["probability"]) for r in o.answer()] == [("C", 1.0), ("A", 0.5)]
    o.push(objects("D9", x=1, p=0.5))  # A goes as D comes: their sum is never above 1
    assert [(r["id"], r["probability"]) for r in o.answer()] == [("C", 1.0), ("D", 0.5)]
    o.push(objects("E9", x=1, p=0.75))
    assert o.rejected == {"probabilities of a group pass 1": 1}
    o = Oracle(TopKUncertain(2, by="s", window=Last(3), group="x", semantics="u-topk"), id="id")
    o.push(rows)
    assert [(r["id"], r["probability"]) for r in o.answer()] == [("A", 0.5), ("C", 0.5)]


probable = st.tuples(st.sampled_from([0.125, 0.25, 0.5, 0.75, 1.0, 0.1, 0.9]), st.sampled_from([None, None, "x", "y"]))


@settings(deadline=None, max_examples=60)
@given(st.lists(probable, max_size=7), st.integers(1, 4))
def test_probabilities_equal_those_over_all_possible_worlds(drawn: list[tuple[float, str | None]], k: int) -> None:
    ranking: list[Arrival] = []
    for i, (p, rival) in enumerate(drawn):
        taken = sum(o.probability for o in ranking if rival is not None and o.rival == rival)
        if p + taken <= 1:
            ranking.append(Arrival({}, i, None, number=i, probability=p, rival=rival))
    by_worlds = rank_probabilities_by_worlds(ranking, k)
    for o, held in rank_probabilities(ranking, k).items():
        assert held == pytest.approx(by_worlds[o], abs=1e-12)
    answers = {first: p for first, p in top_k_probabilities_by_worlds(ranking, k).items() if p > 0}
    best = most_probable_top_k(ranking, k)
    if not answers:
        assert best == []
        return
    chosen = tuple(member.objects[0] for member in best)
    most = max(answers.values())
    assert answers[chosen] == pytest.approx(most, abs=1e-12)
    assert best[0].probability == pytest.approx(most, abs=1e-12)
    if all(p in (0.125, 0.25, 0.5, 0.75, 1.0) for p, _ in drawn):  # exact in floats: ties are ties

        def worst_first(first: tuple[Arrival, ...]) -> list[int]:
            return [o.number for o in reversed(first)]

        assert chosen == min((first for first, p in answers.items() if p == most), key=worst_first)


# ---------------------------------------------------------------- add, replace, drop


def test_a_query_added_later_goes_on_with_the_numbers() -> None:
    o = Oracle({"one": TopK(1, by="s", window=Last(9), per="g"), "all": TopK(1, by="s", window=Last(9))}, id="id")
    o.push(objects("A1 B2", g="x"))
    o.add("late", TopK(2, by="s", window=Last(9), per="g"))
    changes = o.push(objects("C0", g="x") + objects("D1", g="y"))
    assert [(c["query"], c["g"], *brief([c])) for c in changes if c["query"] == "late"] == [
        ("late", "x", "2 +C*"),
        ("late", "y", "0 +D*"),
    ]
    o.drop("one")
    assert list(o.queries) == ["all", "late"]
    with pytest.raises(QueryError, match="Running: all, late"):
        o.answer("one")
    with pytest.raises(QueryError, match="is running"):
        o.add("all", TopK(1, by="s", window=Last(9)))


def test_replace_keeps_the_state_when_the_new_query_fits() -> None:
    queries = {"small": TopK(1, by="s", window=Last(2)), "large": TopK(3, by="s", window=Last(4))}
    o = Oracle(queries, id="id", time="t")
    o.push(objects("A9@1 B8@2 C7@3 D6@4"))
    assert ids(o, "small") == ["C"]  # which was A and B before
    changes = o.replace("small", TopK(2, by="s", window=Last(4)))
    assert brief(changes) == ["3@4 -C", "3@4 +A", "3@4 +B"]  # shown before: not first again
    assert ids(o, "small") == ["A", "B"]
    assert list(o.queries) == ["small", "large"]


def test_replace_starts_empty_when_the_new_query_does_not_fit() -> None:
    o = Oracle({"q": TopK(1, by="s", window=Last(2)), "r": TopK(1, by="s", window=Last(2))}, id="id")
    o.push(objects("A9 B8"))
    assert brief(o.replace("q", TopK(2, by="s", window=Last(2)))) == ["1 -A"]
    assert o.answer("q") == []
    changes = o.push(objects("C7"))
    assert [(c["query"], *brief([c])) for c in changes] == [("q", "2 +C*"), ("r", "2 -A"), ("r", "2 +B*")]
    #  r fits in q's k now, but q came later and has not seen what r has
    assert brief(o.replace("r", TopK(2, by="s", window=Last(2)))) == ["2 -B"]
    assert brief(o.replace("q", TopK(1, by="s", window=Last(2), where="s > 0"))) == ["2 -C"]


def test_replace_in_time_windows_is_at_the_clock() -> None:
    o = Oracle(Above(5, by="s", window=Last(span=9)), id="id", time="t")
    o.push(objects("A9@1 B6@2 C1@5"))
    assert brief(o.replace("q0", Above(8, by="s", window=Last(span=9)))) == ["2@5 -B"]
    assert brief(o.replace("q0", Above(8, by="s", window=Last(span=4)))) == ["2@5 -A"]


def test_answers_with_a_smaller_k_or_window() -> None:
    o = Oracle(TopK(2, by="s", window=Last(3)), id="id")
    o.push(objects("A9 B8 C7"))
    assert ids(o, k=1) == ["A"]
    assert ids(o, window=Last(2)) == ["B", "C"]
    with pytest.raises(QueryError, match="larger"):
        o.answer(k=3)
    with pytest.raises(QueryError, match="inside"):
        o.answer(window=Last(4))
    o = Oracle(TopK(2, by="s", window=Last(span=9)), id="id", time="t")
    o.push(objects("A9@1 B8@5 C7@6"))
    assert ids(o, k=2, window=Last(span=2)) == ["B", "C"]
    assert ids(o, window=Last(span=1)) == ["C"]


# ------------------------------------------------------------------------ properties

row = st.fixed_dictionaries(
    {
        "id": st.sampled_from("AB"),
        "s": st.sampled_from([0.0, 1.0, 2.0, None]),
        "u": st.sampled_from([0.5, 1.5]),
        "p": st.sampled_from([0.5, 1.0]),
        "g": st.sampled_from(["x", None]),
        "t": st.integers(0, 9),
        "part": st.sampled_from("ab"),
        "value": st.sampled_from([0.0, 1.0]),
    }
)
MAKERS: list[Callable[[Any], Query]] = [
    lambda window: TopK(2, by="s", window=window, per="g"),
    lambda window: Above(0, by="s", window=window, where="u > 1"),
    lambda window: TopKPairs(2, by="abs(a.u - b.u)", window=window),
    lambda window: TopKIncomplete(2, ["a", "b"], window),
    lambda window: TopKUncertain(2, by="s", window=window, semantics="u-kranks"),
]


@settings(deadline=None, max_examples=40)
@given(st.lists(row, max_size=14), st.lists(st.integers(0, 2), min_size=14, max_size=14))
def test_changes_do_not_depend_on_who_carries_the_clock(rows: list[Row], steps: list[int]) -> None:
    queries = [make(Last(span=3)) for make in MAKERS]
    quiet, ticking = (Oracle(queries, id="id", time="t") for _ in range(2))
    rows = [r | {"s": r["s"] or 0.0} for r in sorted(rows, key=lambda r: int(r["t"]))]
    changes: dict[Oracle, list[Row]] = {quiet: [], ticking: []}
    for r, before in zip(rows, steps, strict=False):
        if ticking.clock is not None and ticking.clock <= r["t"] - before:
            changes[ticking] += ticking.advance(r["t"] - before)
        changes[ticking] += ticking.push([r])
        changes[quiet] += quiet.push([r])
    for name in quiet.queries:
        assert [c for c in changes[quiet] if c["query"] == name] == [c for c in changes[ticking] if c["query"] == name]


@settings(deadline=None, max_examples=40)
@given(st.lists(row, max_size=20), st.sampled_from([Last(4), Last(span=4)]), st.integers(1, 3))
def test_the_skyband_begins_with_the_answer(rows: list[Row], window: Last, k: int) -> None:
    o = Oracle(TopK(k, by="s", window=window, where="u > 1"), time="t")
    for r in rows:
        o.push([r])
        assert o.skyband("q0")[:k] == ids(o)


@settings(deadline=None, max_examples=40)
@given(st.lists(row, max_size=14), st.sets(st.integers(0, 14)), st.sampled_from(["arrival", "batch"]))
def test_changes_do_not_depend_on_cuts_and_add_up_to_the_answer(rows: list[Row], cuts: set[int], emit: str) -> None:
    queries = [make(window) for make in MAKERS for window in (Last(3), Last(span=3))]
    whole, cut = (Oracle(queries, id="id", time="t", emit=emit) for _ in range(2))
    together = whole.push(rows)
    edges = sorted({0, len(rows)} | {c for c in cuts if c < len(rows)})
    apart = [c for a, b in pairwise(edges) for c in cut.push(rows[a:b])]
    for name in whole.queries:
        assert whole.answer(name) == cut.answer(name)
        if emit == "arrival":
            assert [c for c in together if c["query"] == name] == [c for c in apart if c["query"] == name]
        for changes in (together, apart):
            count: dict[Any, int] = {}
            for c in changes:
                if c["query"] == name:
                    who = (c["g"], c["id"], c["id_a"], c["id_b"], c["rank"])
                    count[who] = count.get(who, 0) + c["diff"]
            assert all(n >= 0 for n in count.values())
            assert sum(count.values()) == len(whole.answer(name))
