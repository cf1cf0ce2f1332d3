"""`start_from` on Spark: another checkpoint's windows, with other shards, names and k; and a restart after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import skyband as sb
import skyband.spark as sbs
from engines.streams import cells
from skyband.errors import QueryError, StateError
from spark.frames import flights, stream, write

OPTIONS: dict[str, Any] = {"id": "flight", "time": "time", "emit": "batch"}
TOP = sb.TopK(3, by="delay", window=sb.Last("24 hours"), per="origin")
OLD = {
    "top": TOP,
    "all": sb.TopK(5, by="delay", window=sb.Last(50)),
    "gone": sb.TopK(1, by="flight", window=sb.Last(9)),
}
NEW = {
    "best": TOP,
    "all": sb.TopK(2, by="delay", window=sb.Last(20)),
    "new": sb.TopK(1, by="delay", window=sb.Last(99)),
}


def run(spark: SparkSession, rows: Path, checkpoint: Path, queries: dict[str, Any], **more: Any) -> list[Any]:
    """All that waits in a folder, as changes."""
    found: list[Any] = []
    schema = spark.read.parquet(str(rows)).schema
    changes = sbs.monitor(stream(spark, rows, schema), queries, **OPTIONS, **more)
    writer = changes.writeStream.foreachBatch(lambda df, batch: found.extend(cells(df.toArrow())))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(240)
    return found


def plainly(rows: list[Any]) -> list[Any]:
    return sorted((row["query"], row["id"], row["diff"], row["score"]) for row in rows)


def test_windows_of_another_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    table, old = flights(90), str(tmp_path / "old")
    write(tmp_path / "before", 0, table.slice(0, 30))
    run(spark, tmp_path / "before", tmp_path / "old", OLD, shards=3)
    assert sbs.check(old, NEW, start_from=True, **OPTIONS) == {
        "best": "is carried over from 'top'",
        "all": "is carried over",
        "new": "starts empty: nothing in the checkpoint keeps what it needs",
        "gone": "is discarded",
    }
    monitor = sb.Monitor({"top": OLD["top"], "old": OLD["all"]}, **OPTIONS)
    monitor.push(table.slice(0, 30))
    expected = [monitor.add(name, NEW[name], from_window=True) for name in ("best", "all")]
    for name in ("top", "old"):
        monitor.drop(name)
    monitor.add("new", NEW["new"])
    for number in (1, 2):  # the second time it is a restart, and nothing is carried over again
        write(tmp_path / "after", number, table.slice(30 * number, 30))
        found = run(spark, tmp_path / "after", tmp_path / "new", NEW, shards=2, start_from=old)
        expected.append(monitor.push(table.slice(30 * number, 30)))
        assert plainly(found) == plainly([row for one in expected for row in cells(one)]) and found
        expected = []


def test_refusals_before_any_job(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, flights(3))
    frame = spark.read.parquet(str(tmp_path / "in"))
    with pytest.raises(QueryError, match="start_from= is for a stream"):
        sbs.monitor(frame, TOP, start_from="old", **OPTIONS)
    (tmp_path / "empty").mkdir()
    rows = stream(spark, tmp_path / "in", frame.schema)
    with pytest.raises(StateError, match="no trigger of a skyband query has ended there"):
        sbs.monitor(rows, TOP, start_from=str(tmp_path / "empty"), **OPTIONS)
