"""The contract (DESIGN.md, section 2) by example: count windows, time windows, late objects.

The notation of the timelines: monitor/timelines.py.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from monitor.timelines import counting, ids, lasting, objects, reported

# -------------------------------------------------------------------------- count windows


# at       0    1    2    3    4            (the last 3, the best 1)
#          A5   B3   C4   D1   E2
# valid    A    AB   ABC  BCD  CDE
# answer   A    A    A    C    C
def test_arrival_and_expiry_are_one_step() -> None:
    monitor = sb.Monitor(counting(1, 3), id="id")
    assert reported(monitor.push(objects("A5 B3 C4 D1 E2"))) == ["0 +A*", "3 -A", "3 +C*"]


# at       0    1    2     D comes as A goes: B would be the best for a moment, but it is one step
#          A5   B3   D4
def test_promoted_and_displaced_within_a_step_never_shows() -> None:
    monitor = sb.Monitor(counting(1, 2), id="id")
    assert reported(monitor.push(objects("A5 B3 D4"))) == ["0 +A*", "2 -A", "2 +D*"]


# at       0    1    2    3    4        (the last 3, the best 2)
#          A9   B3   C5   D2   E0
# answer   A    AB   AC   BC   CD       B is back at 3, when A has expired: it is not new
def test_first_is_true_once() -> None:
    monitor = sb.Monitor(counting(2, 3), id="id")
    assert reported(monitor.push(objects("A9 B3 C5 D2 E0"))) == [
        *("0 +A*", "1 +B*", "2 -B", "2 +C*"),  # A9 C5
        *("3 -A", "3 +B"),  # B is back: A has expired
        *("4 -B", "4 +D*"),
    ]


def test_equal_scores_the_later_arrival_ranks_above() -> None:
    monitor = sb.Monitor(counting(1, 9), id="id")
    assert reported(monitor.push(objects("A5 B5 C5"))) == ["0 +A*", "1 -A", "1 +B*", "2 -B", "2 +C*"]
    monitor = sb.Monitor(counting(3, 9), id="id")
    monitor.push(objects("A5 B5 C6 D5"))
    assert ids(monitor) == ["C", "D", "B"]


def test_time_in_count_windows_is_the_arrivals_own() -> None:
    monitor = sb.Monitor(counting(1, 2), id="id", time="t")
    assert reported(monitor.push(objects("A5@7 B3@2 C4@9"))) == ["0@7 +A*", "2@9 -A", "2@9 +C*"]


def test_fewer_than_k() -> None:
    monitor = sb.Monitor(counting(5, 2), id="id")
    assert reported(monitor.push(objects("A1 B2 C3"))) == ["0 +A*", "1 +B*", "2 -A", "2 +C*"]
    assert monitor.answer().column("rank").to_pylist() == [1, 2]


# --------------------------------------------------------------------------- time windows


# time     0    1    2    3    4    5       (span 3: A is valid in [0, 3), B in [1, 4))
#          A5   B4             C1
# answer   A    A    A    B    C    C
def test_an_object_is_valid_from_t_to_t_plus_span() -> None:
    monitor = sb.Monitor(lasting(1, 3), id="id", time="t")
    assert reported(monitor.push(objects("A5@0 B4@1 C1@4"))) == ["0@0 +A*", "1@3 -A", "1@3 +B*", "1@4 -B", "2@4 +C*"]
    assert reported(monitor.advance(6)) == []
    assert reported(monitor.advance(7)) == ["2@7 -C"]


# time     0        1    2    3        A and B leave together at 3: C and D come in, B never gets A's place
#          A5 B4    C1   D2
def test_objects_that_leave_at_one_instant_leave_in_one_step() -> None:
    monitor = sb.Monitor(lasting(1, 3), id="id", time="t")
    monitor.push(objects("A5@0 B4@0 C1@1 D2@2"))
    assert reported(monitor.advance(3)) == ["3@3 -A", "3@3 +D*"]


def test_expiry_comes_before_the_arrivals_of_its_instant() -> None:
    """At 3 A goes, and B is the answer for no time at all; but C is another step."""
    monitor = sb.Monitor(lasting(1, 3), id="id", time="t")
    assert reported(monitor.push(objects("A5@0 B1@1 C4@3"))) == ["0@0 +A*", "1@3 -A", "1@3 +B*", "2@3 -B", "2@3 +C*"]


# time     0     3            group b's arrival at 3 carries the clock, group a's expiry at 3 comes first
#          aA5   bB1
def test_expiry_comes_before_the_arrivals_of_its_instant_in_any_group() -> None:
    monitor = sb.Monitor(lasting(1, 3, per="g"), id="id", time="t")
    assert reported(monitor.push(objects("aA5@0 bB1@3"))) == ["0@0 +aA*", "0@3 -aA", "0@3 +bB*"]


# time     0     1     7      8      (span 5)
#          aA5   bB1          cC2    A leaves at 5 and B at 6, though nothing arrives in a and b
def test_one_clock_for_all_groups_and_queries() -> None:
    queries = {"each": lasting(1, 5, per="g"), "all": lasting(1, 5)}
    monitor = sb.Monitor(queries, id="id", time="t")
    monitor.push(objects("aA5@0 bB1@1"))
    changes = monitor.push(objects("cC2@8"))
    assert reported(changes) == ["0@5 -aA", "0@6 -bB", "0@8 +cC*", "1@5 -A", "1@5 +B*", "1@6 -B", "2@8 +C*"]
    assert changes.column("query").to_pylist() == ["each"] * 3 + ["all"] * 4


def test_nothing_beyond_the_clock_is_out() -> None:
    monitor = sb.Monitor(lasting(2, 5, per="g"), id="id", time="t")
    assert reported(monitor.push(objects("aA5@0 bB1@4"))) == ["0@0 +aA*", "0@4 +bB*"]
    assert sorted(ids(monitor)) == ["A", "B"]


def test_equal_times_the_later_arrival_ranks_above() -> None:
    monitor = sb.Monitor(lasting(1, 9), id="id", time="t")
    assert reported(monitor.push(objects("A5@3 B5@3"))) == ["0@3 +A*", "1@3 -A", "1@3 +B*"]


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
    assert reported(changes) == ["0@0 +A*", "1@10 -A", "1@10 +B*", "3@10 -B", "3@10 +D*"]
    assert reported(monitor.advance(13)) == ["3@13 -D", "3@13 +B"]


def test_late_objects_that_are_too_late_are_no_arrivals() -> None:
    """Z is of time 0, valid until 10, and comes when the clock is at 10: the next number is still 2."""
    monitor = sb.Monitor(lasting(1, 10), id="id", time="t")
    assert reported(monitor.push(objects("A3@5 B2@10 Z9@0 C4@10"))) == ["0@5 +A*", "2@10 -A", "2@10 +C*"]
    assert monitor.stats()["late"] == 1


def test_late_drop() -> None:
    monitor = sb.Monitor(lasting(2, 10), id="id", time="t", late="drop")
    assert reported(monitor.push(objects("A3@5 B9@4 C2@5"))) == ["0@5 +A*", "1@5 +C*"]
    assert monitor.stats()["late"] == 1


def test_late_by_the_clock_of_another_group() -> None:
    """Object A of group a carries the clock to 5: bB of time 4 is late, though it is the first of its group."""
    late = sb.Monitor(lasting(1, 10, per="g"), id="id", time="t", late="drop")
    assert reported(late.push(objects("aA1@5 bB1@4"))) == ["0@5 +aA*"]
    early = sb.Monitor(lasting(1, 10, per="g"), id="id", time="t")
    assert reported(early.push(objects("aA1@5 bB1@4"))) == ["0@5 +aA*", "0@5 +bB*"]


def test_advance_moves_the_clock_for_late_rows_too() -> None:
    monitor = sb.Monitor(lasting(1, 10), id="id", time="t")
    monitor.push(objects("A1@0"))
    assert reported(monitor.advance(20)) == ["0@10 -A"]
    assert reported(monitor.push(objects("B1@10"))) == []
    assert reported(monitor.push(objects("C1@11"))) == ["1@20 +C*"]
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
    """A tick of one nanosecond, finer than Python's own times."""
    monitor = sb.Monitor(sb.TopK(1, by="x", window=sb.Last("2 ns")), time="t")
    times = np.array([10**18, 10**18 + 1, 10**18 + 2], "M8[ns]")
    changes = monitor.push({"x": [3.0, 2.0, 1.0], "t": times})
    assert changes.column("time").cast(pa.int64()).to_pylist() == [10**18, 10**18 + 2, 10**18 + 2]
    assert changes.column("score").to_pylist() == [3.0, 3.0, 2.0]
