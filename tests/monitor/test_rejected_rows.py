"""Rows that are rejected (null, NaN, out of range) or late: counted by reason, and no arrivals."""

import math
import warnings
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from monitor.refusals import TIMED, TOP, Row, brief, refused, scores
from skyband.errors import BatchError, SkybandWarning


def test_bad_scores_are_rejected_and_counted() -> None:
    monitor = sb.Monitor(TOP)
    batch = pa.table({"x": pa.array([1.0, None, math.nan, math.inf, 2.0, -math.inf])})
    changes = monitor.push(batch)
    #  at 0: 1   at 1: inf   at 2: 2   at 3: -inf, and 1 is no longer valid
    assert changes.column("at").to_pylist() == [0, 1, 2, 2]
    assert brief(changes) == ["+1", "+inf", "-1", "+2"]
    assert scores(monitor) == [math.inf, 2.0]
    assert monitor.stats()["rejected"] == {"x is null": 1, "x is NaN": 1}
    assert monitor.stats()["queries"]["q0"]["rejected"] == {"x is null": 1, "x is NaN": 1}
    assert monitor.stats()["arrivals"] == 4


@pytest.mark.parametrize(
    ("type_", "fine", "beyond"),
    [
        (pa.int64(), [2**53, -(2**53), 2**53 - 1], [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]),
        (pa.uint64(), [2**53, 0], [2**53 + 1, 2**64 - 1]),
        (pa.decimal128(38, 0), [2**53, -(2**53), 2**53 - 1], [2**53 + 1, -(2**53) - 1, 10**37]),
        (
            pa.decimal128(38, 20),  # more digits than Python's context holds
            [Decimal(2**53), Decimal("-9007199254740991.5"), Decimal("0.25")],
            [Decimal(f"{2**53}.00000000000000000001"), -Decimal(2**53 + 1)],
        ),
        (pa.decimal256(70, 0), [2**53], [2**53 + 1, 10**69]),
        (pa.decimal64(18, 1), [2**53], [2**53 + 1]),
        (pa.decimal128(20, -2), [2**53 // 100 * 100], [(2**53 // 100 + 1) * 100]),
    ],
)
def test_integers_and_decimals_beyond_float64(type_: Any, fine: list[Any], beyond: list[Any]) -> None:
    monitor = sb.Monitor(sb.TopK(k=9, by="x", window=sb.Last(9)))
    values = [*fine, *beyond, None]
    if pa.types.is_decimal(type_):
        values = [None if value is None else Decimal(value) for value in values]
    monitor.push({"x": pa.array(values, type_)})
    assert sorted(scores(monitor)) == sorted(map(float, fine))
    assert monitor.stats()["rejected"] == {"x is beyond 2^53": len(beyond), "x is null": 1}


def test_integers_beyond_float64_in_other_places() -> None:
    """In `where` they are rejected too; in `per`, `id` and `keep` they are exact."""
    large = 2**53 + 1
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(9), where="y > 0"))
    monitor.push({"x": [1, 2], "y": [large, 1]})
    assert scores(monitor) == [2.0]
    assert monitor.stats()["rejected"] == {"y is beyond 2^53": 1}
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(9), per="g"), id="i", keep="z")
    changes = monitor.push({"x": [1, 2], "g": [large, large - 1], "i": [large, large], "z": [large, -large]})
    reported = [(row["g"], row["id"], row["z"]) for row in changes.to_pylist()]
    assert reported == [(large, large, large), (large - 1, large, -large)]
    assert monitor.answer(key=large).column("score").to_pylist() == [1.0]


def test_rows_that_every_query_rejects_move_no_clock() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    monitor.push({"x": [1.0], "t": [0]})
    assert brief(monitor.push({"x": pa.array([None, math.nan], pa.float64()), "t": [50, 60]})) == []
    assert scores(monitor) == [1.0], "the clock is still at 0"
    assert brief(monitor.push({"x": [2.0], "t": [10]})) == ["-1", "+2"]


def test_null_and_distant_times_are_rejected() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    far = [2**62, -(2**62), 2**63 - 1, -(2**63)]
    monitor.push({"x": [1.0, 2.0, *([9.0] * 4)], "t": pa.array([0, None, *far], pa.int64())})
    assert scores(monitor) == [1.0]
    assert monitor.stats()["rejected"] == {"time is null": 1, "time is out of range": 4}
    near = 2**62 - 1
    assert brief(monitor.push({"x": [3.0], "t": [near]})) == ["-1", "+3"]
    assert monitor.advance(near).num_rows == 0
    assert scores(monitor) == [3.0]


def test_times_whose_expiry_the_type_cannot_hold() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    assert brief(monitor.push({"x": [1.0, 2.0, 3.0], "t": pa.array([0, 117, 118], pa.int8())})) == ["+1", "-1", "+2"]
    assert monitor.stats()["rejected"] == {"time is out of range": 1}
    changes = monitor.advance(127)
    assert changes.schema.field("time").type == pa.int8()
    assert changes.column("time").to_pylist() == [127]


def test_null_times_in_count_windows() -> None:
    monitor = sb.Monitor(TOP, time="t")
    monitor.push({"x": [1.0, 2.0], "t": pa.array([None, 5], pa.int64())})
    assert scores(monitor) == [2.0]
    assert monitor.stats()["rejected"] == {"time is null": 1}


def test_all_times_null_in_the_first_batch() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    assert monitor.push([{"x": 1.0, "t": None}]).num_rows == 0
    assert monitor.stats()["rejected"] == {"time is null": 1}
    assert brief(monitor.push([{"x": 1.0, "t": 5}])) == ["+1"]


def test_late_rows() -> None:
    """Time   0     5    12                 (window: 10)
    a3    b2   c1   d9@4 e8@2
    """
    batch = {"x": [3.0, 2.0, 1.0, 9.0, 8.0], "t": [0, 5, 12, 4, 2]}
    accepting, dropping = sb.Monitor(TIMED, time="t"), sb.Monitor(TIMED, time="t", late="drop")
    assert brief(accepting.push(batch)) == ["+3", "+2", "-3", "+1", "-1", "+9"]
    assert brief(dropping.push(batch)) == ["+3", "+2", "-3", "+1"]
    assert accepting.stats()["late"] == 1
    assert dropping.stats()["late"] == 2
    assert scores(accepting) == [9.0, 2.0]
    assert scores(dropping) == [2.0, 1.0]


def test_late_rows_are_no_arrivals() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    monitor.push({"x": [1.0, 2.0, 3.0], "t": [0, 20, 5]})
    assert monitor.stats()["late"] == 1
    assert monitor.stats()["arrivals"] == 2


def test_late_rows_are_counted_if_any_query_drops_them() -> None:
    queries = {"short": sb.TopK(1, "x", sb.Last(span=2)), "long": sb.TopK(1, "x", sb.Last(span=9))}
    monitor = sb.Monitor(queries, time="t")
    monitor.push({"x": [1.0, 2.0], "t": [5, 0]})
    assert monitor.stats()["late"] == 1


@pytest.mark.parametrize("bad", [{"x": None}, {"x": math.nan}, {"x": 2**53 + 1}, {"t": None}, {"t": 2**62}])
def test_invalid_raise_changes_nothing(bad: Row) -> None:
    monitor = sb.Monitor(TIMED, time="t", invalid="raise")
    column, value = next(iter(bad.items()))
    rows: list[Row] = [{"x": 3, "t": 4}, {"x": 5, "t": 30}, {"x": 1, "t": 31}]
    rows[1][column] = value
    refused(monitor, rows, BatchError, "row 1", "time" if column == "t" else "x", "Nothing was pushed")
    good = [{"x": 3, "t": 4}, {"x": 1, "t": 6}]
    assert brief(monitor.push(good)) == ["+3", "+1"]
    refused(monitor, rows, BatchError, "row 1")
    assert monitor.stats()["rejected"] == {}
    assert brief(monitor.push([{"x": 2, "t": 7}])) == ["-1", "+2"]


def test_invalid_raise_names_the_first_bad_row() -> None:
    queries = {"a": sb.TopK(1, "x", sb.Last(3)), "b": sb.TopK(1, "y", sb.Last(3))}
    monitor = sb.Monitor(queries, invalid="raise")
    refused(monitor, {"x": [1.0, 2.0, math.nan], "y": [1.0, math.nan, 3.0]}, BatchError, "row 1", "y is NaN")


def test_a_row_that_one_query_rejects_is_an_arrival_of_the_other() -> None:
    queries = {"a": sb.TopK(1, "x", sb.Last(2)), "b": sb.TopK(1, "y", sb.Last(2))}
    monitor = sb.Monitor(queries)
    monitor.push([{"x": 1.0, "y": 5.0}, {"x": None, "y": 4.0}, {"x": 0.0, "y": None}, {"x": None, "y": 3.0}])
    assert scores(monitor, "a") == [1.0], "x=0 is only the second arrival of a"
    assert scores(monitor, "b") == [4.0], "y=3 is the third arrival of b"


def test_a_warning_when_most_rows_are_rejected() -> None:
    """Once for each reason, at the caller's line, before anything changes; not for a few rows."""
    monitor = sb.Monitor({"x": sb.TopK(1, "x", sb.Last(9)), "y": sb.TopK(1, "y", sb.Last(9))})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.push({"x": [1.0, None], "y": [1.0, None]})
        monitor.push({"x": [None, None], "y": [1.0, 2.0]})
    with pytest.warns(
        SkybandWarning, match=r"2 of the 3 rows of a push were rejected: x is null \(2\), y is NaN"
    ) as got:
        monitor.push({"x": [1.0, None, None], "y": [1.0, math.nan, math.nan]})
    assert [warning.filename for warning in got] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.push({"x": [1.0, None, None], "y": [1.0, math.nan, math.nan]})
        before = monitor.snapshot()
        with pytest.raises(SkybandWarning, match="x is beyond"):
            monitor.push({"x": [2**60], "y": [2**60]})
        assert monitor.snapshot() == before
