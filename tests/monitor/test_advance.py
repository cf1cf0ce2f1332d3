"""Time moved by `advance`: backwards, of another type, before the first batch."""

import math
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from monitor.refusals import TIMED, TOP, brief, refused, says
from skyband.errors import BatchError, SkybandWarning


def test_advance() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    monitor.push({"x": [1.0], "t": [5]})
    for to, word in (
        (4, "backwards"),
        (7.5, "int64"),
        ("7", "int64"),
        (datetime(2024, 1, 1), "int64"),
        (None, "no time"),
        (2**62, "range"),
    ):
        before = monitor.snapshot()
        with pytest.raises(BatchError) as caught:
            monitor.advance(to)
        says(caught.value, word)
        assert monitor.snapshot() == before
    assert brief(monitor.advance(5)) == []
    assert brief(monitor.advance(14)) == []
    assert brief(monitor.advance(15)) == ["-1"]
    with pytest.raises(BatchError, match="backwards"):
        monitor.advance(14)
    with pytest.raises(BatchError, match="no time column"):
        sb.Monitor(TOP).advance(5)


def test_advance_in_timestamps() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last("10 s")), time="t")
    monitor.push(pa.table({"x": [1.0], "t": pa.array([datetime(2024, 1, 1)], pa.timestamp("s"))}))
    for to in (5, datetime(2024, 1, 1, 0, 0, 1, 500_000), date(2023, 12, 31)):
        with pytest.raises(BatchError, match="time"):
            monitor.advance(to)
    changes = monitor.advance(datetime(2024, 1, 1, 0, 0, 10))
    assert changes.column("time").to_pylist() == [datetime(2024, 1, 1, 0, 0, 10)]


def test_advance_before_the_first_batch() -> None:
    monitor = sb.Monitor(TIMED, time="t", late="drop")
    monitor.advance(5)
    with pytest.raises(BatchError, match="backwards"):
        monitor.advance(4)
    assert brief(monitor.push({"x": [1.0, 2.0], "t": [4, 5]})) == ["+2"]
    assert monitor.stats()["late"] == 1


def test_advance_to_nonsense_before_the_first_batch() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    for to in ("soon", None, [1], object()):
        with pytest.raises(BatchError, match="time"):
            monitor.advance(to)
    assert brief(monitor.push({"x": [1.0], "t": [5]})) == ["+1"]


def test_advance_of_mixed_types_before_the_first_batch() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    monitor.advance(5)
    with pytest.raises(BatchError, match="time"):
        monitor.advance(datetime(2024, 1, 1))


def test_a_time_that_was_announced_in_another_type() -> None:
    """The batch is refused because of an earlier `advance`; a batch of the right type then goes in."""
    monitor = sb.Monitor(TIMED, time="t")
    monitor.advance(datetime(2024, 1, 1))
    refused(monitor, {"x": [1.0], "t": [5]}, BatchError, "2024", "int64")


def test_advance_backwards_after_a_batch_of_rejected_rows() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    monitor.advance(5)
    monitor.push({"x": [math.nan], "t": [1]})
    with pytest.raises(BatchError, match="backwards"):
        monitor.advance(3)


@pytest.mark.parametrize("end", ["rejected", "to", "advance"])
@pytest.mark.parametrize(
    "query",
    [
        sb.TopK(1, "x", sb.Ever()),
        sb.Above(0, "x", sb.Ever()),
        sb.TopK(1, ("x", "t"), sb.Ever()),
        sb.TopKUncertain(1, "x", sb.Ever()),
        sb.TopKIncomplete(1, ["a"], sb.Ever(), repeat="last"),
    ],
)
def test_a_batch_that_ends_without_an_arrival_reports_what_its_beginning_changed(query: Any, end: str) -> None:
    monitor = sb.Monitor(query, time="t", id="i", emit="batch")
    row = {"t": [1], "x": [1.0], "i": [7], "p": [0.5], "part": ["a"], "value": [0.5]}
    assert monitor.push(row, more=True).num_rows == 0
    if end == "advance":
        changes = monitor.advance(2)
    else:
        with pytest.warns(SkybandWarning, match="time is null"):
            changes = monitor.push(row | {"t": [None]}, to=2 if end == "to" else None)
    found = changes.select(["at", "time", "id", "diff"]).to_pylist()
    assert found == [{"at": 0, "time": 1 if end == "rejected" else 2, "id": 7, "diff": 1}]
    assert monitor.answer()["id"].to_pylist() == [7]
