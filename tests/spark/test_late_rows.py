"""`sbs.late`: the rows that are dropped because they are too late. The first tests need no JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skyband as sb
import skyband.spark as sbs
from skyband.errors import QueryError
from skyband.query.options import Options
from skyband.spark.late_rows import LateRows, send
from skyband.spark.mappers import from_bytes, in_order
from skyband.spark.plan import Plan
from spark.frames import stream, write
from spark.shards import cut, many_rows

QUERIES: dict[str, Any] = {
    "short": sb.TopK(2, by="x", window=sb.Last(span=5), per="g"),
    "long": sb.Above(3, by="x", window=sb.Last(span=40), where="y > 5"),
    "other": sb.TopK(1, by="2 * y", window=sb.Last(span=5)),
    "counted": sb.TopK(2, by="x", window=sb.Last(10), per="g"),
    "ever": sb.TopK(2, by="x", window=sb.Ever(), per="g"),
}


def found(triggers: list[list[Any]], late: str, shards: int, queries: dict[str, Any] = QUERIES) -> list[Any]:
    """The late rows of each trigger."""
    from pyspark.sql.streaming.tws_tester import TwsTester

    columns = tuple(triggers[0][0].column_names)
    plan = Plan(queries, Options(id="i", time="t", late=late), ("t",), shards, columns)
    tester, each = TwsTester(LateRows(plan)), []
    for partitions in triggers:
        messages = [
            message
            for partition in partitions
            for batch in send(plan, iter(partition.to_batches(max_chunksize=7)))
            for message in batch.to_pylist()
        ]
        out: list[Any] = []
        for label in dict.fromkeys(message["shard"] for message in messages):
            frame = pd.DataFrame([message for message in messages if message["shard"] == label])
            made: Any = tester.testInPandas(label, frame)
            out += [row for blob in (made["blob"] if len(made) else ()) for row in from_bytes(blob).to_pylist()]
        each.append(sorted(out, key=lambda row: row["i"]))
    return each


@pytest.mark.parametrize(("late", "shards", "seed"), [("accept", 1, 1), ("accept", 3, 2), ("drop", 2, 3)])
def test_the_rows_that_monitors_count_as_late(late: Any, shards: int, seed: int) -> None:
    triggers = cut(many_rows(seed, 400, 3, late=60), 8)
    monitors = {name: sb.Monitor({name: query}, id="i", time="t", late=late) for name, query in QUERIES.items()}
    whole = sb.Monitor(QUERIES, id="i", time="t", late=late)
    clock = None  # the largest time: "other" accepts every row
    for partitions, rows in zip(triggers, found(triggers, late, shards), strict=True):
        table = in_order(pa.concat_tables(partitions), ("t", "i"))
        before = {name: one.stats()["late"] for name, one in {**monitors, "": whole}.items()}
        for monitor in (whole, *monitors.values()):
            if clock is not None:
                monitor.advance(clock)
            monitor.push(table)
        clock = max([*table["t"].to_pylist(), *([] if clock is None else [clock])])
        for name, monitor in monitors.items():
            mine = [row for row in rows if name in row["queries"]]
            assert len(mine) == monitor.stats()["late"] - before[name], name
        assert len(rows) == whole.stats()["late"] - before[""]
    assert whole.stats()["late"] > 20
    assert monitors["counted"].stats()["late"] == 0
    assert (monitors["ever"].stats()["late"] > 0) == (late == "drop")


def test_what_is_said_of_a_late_row() -> None:
    """The clock is that of the triggers before; a row as old as the window is late; rejected rows are not."""
    first = pa.table({"i": [1, 2], "t": [10, 20], "x": [1.0, 2.0]})
    second = pa.table({"i": [3, 4, 5, 6], "t": [15, 16, 14, 99], "x": [1.0, 1.0, None, 1.0]})
    queries = {"five": sb.TopK(1, by="x", window=sb.Last(span=5)), "six": sb.TopK(1, by="x", window=sb.Last(span=6))}
    assert found([[first], [second], [second]], "accept", 1, queries) == [
        [],
        [{"clock": 20, "queries": ["five"], "i": 3, "t": 15, "x": 1.0}],
        [
            {"clock": 99, "queries": ["five", "six"], "i": 3, "t": 15, "x": 1.0},
            {"clock": 99, "queries": ["five", "six"], "i": 4, "t": 16, "x": 1.0},
        ],
    ]


def test_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Two triggers, a restart, a third; columns keep their names and types."""
    table = many_rows(5, 300, 3, late=60)
    stamps = pa.array([1_700_000_000 + t for t in table["t"].to_pylist()], pa.int64()).cast(pa.timestamp("s"))
    table = table.set_column(1, "t", stamps.cast(pa.timestamp("us", "UTC"))).rename_columns(
        ["i", "the time", *table.column_names[2:]]
    )
    query = sb.TopK(2, by="x", window=sb.Last("5 seconds"), per="g")
    monitor, expected = sb.Monitor(query, id="i", time="the time"), []
    for number in range(3):
        piece = table.slice(100 * number, 100)
        before = monitor.stats()["late"]
        monitor.push(in_order(piece, ("the time", "i")))
        expected.append(monitor.stats()["late"] - before)
    for files in ((0, 1), (2,)):
        for number in files:
            write(tmp_path / "in", number, table.slice(100 * number, 100))
        schema = spark.read.parquet(str(tmp_path / "in")).schema
        rows = sbs.late(stream(spark, tmp_path / "in", schema), query, time="the time")
        assert rows.columns == ["clock", "queries", *table.column_names]
        assert rows.schema["clock"].dataType == schema["the time"].dataType
        writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "c")).option(
            "path", str(tmp_path / "out")
        )
        assert writer.trigger(availableNow=True).start().awaitTermination(240)
    out = spark.read.parquet(str(tmp_path / "out")).collect()
    assert len(out) == sum(expected) and expected[2] > 0
    assert all((row["clock"] - row["the time"]).total_seconds() >= 5 and row["queries"] == ["q0"] for row in out)


def test_what_it_refuses(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, many_rows(1, 5, 1))
    schema = spark.read.parquet(str(tmp_path / "in")).schema
    rows = stream(spark, tmp_path / "in", schema)
    query = sb.TopK(1, by="x", window=sb.Last(span=5))
    with pytest.raises(QueryError, match="a table is one trigger"):
        sbs.late(spark.read.parquet(str(tmp_path / "in")), query, time="t")
    with pytest.raises(QueryError, match="late\\(\\) adds a column 'clock'"):
        sbs.late(rows.withColumnRenamed("h", "clock"), query, time="t")
    with pytest.raises(QueryError, match="whether a session has ended"):
        sbs.late(rows, sb.TopK(1, by="x", window=sb.Session(span=5), per="g"), time="t")
    with pytest.raises(QueryError, match="each subscription has a window of its own"):
        sbs.late(rows, sb.TopK(1, by="x", window=sb.Last(span=sb.Each("s"))), time="t")
    with pytest.raises(QueryError, match="no column 'when'"):
        sbs.late(rows, query, time="when")
