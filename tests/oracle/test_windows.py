"""The oracle worked out by hand: count windows, time windows and late rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from oracle.rows import brief, ids, objects
from skyband.errors import BatchError, QueryError
from skyband.oracle import Oracle
from skyband.query.kinds import TopK
from skyband.query.windows import Last

Row = dict[str, Any]


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
