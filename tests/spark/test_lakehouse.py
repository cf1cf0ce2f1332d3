"""Delta tables as sinks, with Delta's own jars: changes appended, the answer by MERGE; each trigger exactly once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import skyband as sb
import skyband.spark as sbs
from engines.streams import cells
from lakehouse.jars import require_delta
from spark.frames import flights, stream, write

TOP = {"top": sb.TopK(3, by="delay", window=sb.Last("24 hours"), per="origin")}
OPTIONS: dict[str, Any] = {"id": "flight", "time": "time"}


@pytest.fixture(autouse=True, scope="module")
def jars() -> None:
    require_delta()


def merge_into(path: Path, *, crash_after: set[int]) -> Callable[[DataFrame, int], None]:
    """The recipe: Delta keeps the trigger's number with the MERGE, and leaves out one that it has."""

    def merge(changes: DataFrame, batch: int) -> None:
        session = changes.sparkSession
        session.createDataFrame(changes.toArrow()).createOrReplaceTempView("net")
        session.conf.set("spark.databricks.delta.write.txnAppId", "top")
        session.conf.set("spark.databricks.delta.write.txnVersion", batch)
        session.sql(f"""
            MERGE INTO delta.`{path}` AS top USING net ON top.origin <=> net.origin AND top.id = net.id
            WHEN MATCHED AND net.diff < 0 THEN DELETE
            WHEN NOT MATCHED AND net.diff > 0 THEN INSERT (origin, id, score) VALUES (net.origin, net.id, net.score)
        """)  # noqa: S608
        if batch in crash_after:
            crash_after.remove(batch)
            raise RuntimeError("the trigger is merged, and Spark does not know it")

    return merge


def test_the_answer_by_merge_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    table, monitor = flights(90), sb.Monitor(TOP, **OPTIONS)
    for number in range(3):
        write(tmp_path / "in", number, table.slice(30 * number, 30))
        monitor.push(table.slice(30 * number, 30))
    place = tmp_path / "top"
    spark.createDataFrame([], "origin string, id long, score double").write.format("delta").save(str(place))
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    merge = merge_into(place, crash_after={1})
    failures = 0
    for _ in range(2):
        changes = sbs.monitor(rows, TOP, emit="batch", shards=2, **OPTIONS)
        writer = changes.writeStream.foreachBatch(merge).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(400)
        except Exception as error:
            failures += "Spark does not know it" in str(error)
    assert failures == 1
    found = {(row["origin"], row["id"], row["score"]) for row in spark.read.format("delta").load(str(place)).collect()}
    assert found == {(row["origin"], row["id"], row["score"]) for row in cells(monitor.answer("top"))}
    history = spark.sql(f"DESCRIBE HISTORY delta.`{place}`").collect()
    assert [row["operation"] for row in history].count("MERGE") == 3, "the second attempt of a trigger is left out"


def test_changes_are_appended_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    """Also those of a trigger that is run again because Spark has lost the note that it was done."""
    table, monitor = flights(60), sb.Monitor(TOP, **OPTIONS)
    expected: list[Any] = []
    for number in range(2):
        write(tmp_path / "in", number, table.slice(30 * number, 30))
        expected += monitor.push(table.slice(30 * number, 30)).to_pylist()
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    for _ in range(2):
        changes = sbs.monitor(rows, TOP, shards=2, **OPTIONS)
        writer = changes.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert writer.trigger(availableNow=True).start(str(tmp_path / "changes")).awaitTermination(400)
        for lost in (tmp_path / "checkpoint" / "commits").glob("*1*"):  # with its checksum, `.1.crc`
            lost.unlink()
    written = spark.read.format("delta").load(str(tmp_path / "changes")).collect()
    ours, theirs = (sorted((row["id"], row["score"], row["diff"]) for row in many) for many in (written, expected))
    assert ours == theirs and ours
