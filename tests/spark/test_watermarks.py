"""The watermark moves the clock of a quiet stream, by one timer for each shard; rows that come behind it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from engines.streams import Row
from skyband import Last, TopK
from skyband.spark.plan import QuerySet
from spark.shards import CLOCKWORKS, Shards, Sizes, table_of
from spark.test_forgetting import groups_in

SECONDS = CLOCKWORKS["TIMESTAMP"]


def seconds(*listed: tuple[Any, ...]) -> Any:
    """(id, second, score, group) as a table."""
    made = [{"i": i, "t": None if t is None else SECONDS.value(t), "x": x, "g": g} for i, t, x, g in listed]
    return table_of([{**row, "y": 1, "z": "z", "h": "m"} for row in made], SECONDS)


def at(second: int) -> int:
    return int(SECONDS.value(second).timestamp() * 1000)


def who(changes: list[Row]) -> list[str]:
    start = SECONDS.value(0)
    return sorted(
        f"{round((row['time'] - start).total_seconds())} {'+' if row['diff'] > 0 else '-'}{row['id']}"
        for row in changes
    )


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_the_watermark_moves_the_clock(shards: int, emit: str) -> None:
    queries = {
        "time": TopK(1, by="x", window=Last("10 seconds"), per="g"),
        "count": TopK(1, by="x", window=Last(5), per="g"),
    }
    options = {"id": "i", "time": "t", "emit": emit}
    sizes = Sizes(cell=100)
    pipeline = Shards(queries, options, shards, watermarked=True, forget="20 seconds", sizes=sizes)
    assert len(pipeline.trigger([seconds(*[(g, g // 4, 1.0, g) for g in range(8)])])) == 16
    assert pipeline.watermark(at(9)) == []
    assert who(pipeline.watermark(at(10))) == sorted(f"10 -{g}" for g in range(4))
    assert pipeline.watermark(at(10) + 999) == []
    when = {"arrival": 11, "batch": 12}[emit]
    assert who(pipeline.watermark(at(12))) == sorted(f"{when} -{g}" for g in range(4, 8))
    assert groups_in(pipeline, QuerySet(("g",), timed=True)) == 0
    # the silence of count windows: from their last arrivals on, whoever moves the clock
    assert who(pipeline.watermark(at(20))) == sorted(f"20 -{g}" for g in range(4))
    assert who(pipeline.watermark(at(50))) == sorted(f"21 -{g}" for g in range(4, 8))
    assert groups_in(pipeline, QuerySet(("g",), timed=False)) == 0
    assert pipeline.watermark(at(5000)) == []


def test_one_timer_for_each_shard_and_never_too_early() -> None:
    """Timers are of milliseconds, times of microseconds."""
    query = {"q": TopK(1, by="x", window=Last("10 seconds"), per="g")}
    pipeline = Shards(query, {"id": "i", "time": "t"}, 3, watermarked=True)
    for i in (0, 20):
        table = seconds(*[(10 * i + g, i, 1.0, g) for g in range(9)])
        when = pa.array([moment + timedelta(microseconds=1) for moment in table.column("t").to_pylist()], SECONDS.type)
        pipeline.trigger([table.set_column(table.column_names.index("t"), "t", when)])
        timers = pipeline.tester.handle._timers._key_to_timers
        assert [len(held) for held in timers.values()] == [1, 1, 1]
    assert pipeline.watermark(at(30)) == []
    assert len(pipeline.watermark(at(30) + 1)) == 9


def test_rejected_rows_carry_the_watermark_and_no_clock() -> None:
    query = {"q": TopK(1, by="x", window=Last("10 seconds"), per="g")}
    pipeline = Shards(query, {"id": "i", "time": "t"}, 3, watermarked=True)
    assert who(pipeline.trigger([seconds((1, 0, 1.0, 1))])) == ["0 +1"]
    assert pipeline.trigger([seconds((2, 30, None, 1), (3, None, 1.0, 1))]) == []
    assert who(pipeline.watermark(at(25))) == ["10 -1"]


def test_rows_behind_the_watermark_are_no_failure() -> None:
    """Rejected rows have moved it past them; where no timer has moved the clock they are valid still."""
    query = {"q": TopK(1, by="x", window=Last("10 seconds"), per="g")}
    pipeline = Shards(query, {"id": "i", "time": "t"}, 3, watermarked=True)
    pipeline.trigger([seconds((1, 0, 1.0, 1), (2, 100, None, 1))])
    assert who(pipeline.watermark(at(90))) == ["10 -1"]
    entered = pipeline.trigger([seconds(*[(10 + g, 5, 1.0, g) for g in range(9)])])
    assert {row["id"] for row in entered if row["diff"] > 0} <= set(range(10, 19))
    pipeline.watermark(at(91))
    assert pipeline.answer("q") == []


def test_a_timer_tells_the_metrics_once() -> None:
    """After rows of the same trigger it tells the difference, else the whole."""
    pipeline = Shards(
        {"q": TopK(1, by="x", window=Last("10 seconds"), per="g")}, {"id": "i", "time": "t"}, 1, watermarked=True
    )
    pipeline.trigger([seconds((1, 0, 1.0, 1), (2, 5, 1.0, 2), (3, 5, None, 3))])
    pipeline.restart()  # each trigger has an operator of its own
    out: Any = pipeline.tester.setWatermark(at(12))
    assert [int(out[name].sum()) for name in ("arrivals", "rejected", "groups", "objects")] == [2, 1, 1, 1]
    assert [int(out[name].sum()) for name in ("reports", "shards")] == [1, 1]


def test_metrics_are_known_only_when_all_shards_report(caplog: pytest.LogCaptureFixture) -> None:
    """A timer's row adds to the report of its shard, and is one only where the shard has not reported."""
    query = TopK(1, by="x", window=Last("10 seconds"), per="g")
    pipeline = Shards({"q": query}, {"id": "i", "time": "t"}, 2, watermarked=True)
    with caplog.at_level("WARNING", "skyband.spark"):
        pipeline.trigger([seconds((1, 0, 1.0, 1), (2, 5, None, 2), (3, 5, None, 3)), seconds((4, 5, 2.0, 4))])
        pipeline.trigger([seconds((5, 5, 2.0, 4))])
    assert caplog.messages == ["trigger -: 2 rows were rejected: x is null (2)"]
    out: Any = pipeline.tester.setWatermark(at(11))
    assert out["reports"].sum() == 0, "both shards have reported to this operator"
    pipeline.restart()
    pipeline.trigger([seconds((6, 6, 1.0, 1))])
    pipeline.restart()
    out = pipeline.tester.setWatermark(at(15))
    assert 1 <= out["reports"].sum() < 2 == out["shards"].max(), "one shard has nothing that expires by then"
