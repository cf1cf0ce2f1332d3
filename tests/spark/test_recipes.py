"""The recipes of docs/spark.md: the answer in a database, what comes before a monitor, foreachBatch."""

from __future__ import annotations

import contextlib
import io
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import skyband as sb
import skyband.spark as sbs
from engines.streams import cells
from spark.frames import flights, stream, write

TOP = {"top": sb.TopK(3, by="delay", window=sb.Last("24 hours"), per="origin")}
OPTIONS: dict[str, Any] = {"id": "flight", "time": "time"}


def upsert_into(path: Path, *, crash_after: set[int]) -> Callable[[DataFrame, int], None]:
    """The recipe: net changes of a trigger and its number in one transaction; a second time, it changes nothing."""

    def upsert(changes: DataFrame, batch: int) -> None:
        rows = changes.toArrow().to_pylist()
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS top (origin, id, score, PRIMARY KEY (origin, id))")
            database.execute("CREATE TABLE IF NOT EXISTS done (batch INTEGER PRIMARY KEY)")
            if database.execute("SELECT 1 FROM done WHERE batch = ?", (batch,)).fetchone():
                return
            left = [(row["origin"], row["id"]) for row in rows if row["diff"] < 0]
            entered = [(row["origin"], row["id"], row["score"]) for row in rows if row["diff"] > 0]
            database.executemany("DELETE FROM top WHERE origin IS ? AND id = ?", left)
            database.executemany("INSERT INTO top VALUES (?, ?, ?)", entered)
            database.execute("INSERT INTO done VALUES (?)", (batch,))
        if batch in crash_after:
            crash_after.remove(batch)
            raise RuntimeError("the trigger is written, and Spark does not know it")

    return upsert


def test_the_answer_in_a_database_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    table, monitor = flights(90), sb.Monitor(TOP, **OPTIONS)
    for number in range(3):
        write(tmp_path / "in", number, table.slice(30 * number, 30))
        monitor.push(table.slice(30 * number, 30))
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    upsert = upsert_into(tmp_path / "top.db", crash_after={1})
    failures = 0
    for _ in range(2):
        changes = sbs.monitor(rows, TOP, emit="batch", shards=2, **OPTIONS)
        writer = changes.writeStream.foreachBatch(upsert).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(240)
        except Exception as error:
            failures += "Spark does not know it" in str(error)
    assert failures == 1
    with contextlib.closing(sqlite3.connect(tmp_path / "top.db")) as database:
        found = set(database.execute("SELECT origin, id, score FROM top"))
        assert [batch for (batch,) in database.execute("SELECT batch FROM done ORDER BY batch")] == [0, 1, 2]
    assert found == {(row["origin"], row["id"], row["score"]) for row in cells(monitor.answer("top"))}


def test_a_join_and_deduplication_before_and_two_monitors(spark: SparkSession, tmp_path: Path) -> None:
    """Names come from a table; each row comes twice, in different files; two monitors share the rows."""
    table = flights(40)
    for number, piece in enumerate((table, table)):
        write(tmp_path / "in", number, piece)
    names = spark.createDataFrame(pa.table({"carrier": ["AA", "UA"], "name": ["American", "United"]}))
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    once = rows.withWatermark("time", "7 days").dropDuplicatesWithinWatermark(["flight"])
    named = once.join(names, "carrier")
    queries = {"name": sb.TopK(2, by="delay", window=sb.Last("24 hours"), per="name")}
    found: dict[str, list[Any]] = {"day": [], "all": []}

    def keep(name: str) -> Callable[[DataFrame, int], None]:
        return lambda changes, batch: found[name].extend(changes.toArrow().to_pylist())

    all_time = {"all": sb.TopK(2, by="delay", window=sb.Last(1000))}
    for name, asked in (("day", queries), ("all", all_time)):
        changes = sbs.monitor(named, asked, shards=2, **OPTIONS)
        place = str(tmp_path / name)
        writer = changes.writeStream.foreachBatch(keep(name)).option("checkpointLocation", place)
        assert writer.trigger(availableNow=True).start().awaitTermination(240)
    joined = table.append_column(
        "name", pa.array([{"AA": "American", "UA": "United"}[c] for c in table["carrier"].to_pylist()])
    )
    for name, asked in (("day", queries), ("all", all_time)):
        expected = sb.Monitor(asked, **OPTIONS).push(joined).to_pylist()
        ours, theirs = (
            sorted((row["id"], row["diff"], row["score"]) for row in many) for many in (found[name], expected)
        )
        assert ours == theirs and ours


def test_rows_of_a_trigger_are_read_whole_before_a_part_of_them(spark: SparkSession, tmp_path: Path) -> None:
    """`show()` alone reads some partitions, and the stream fails; after `persist()` and `count()` it does not."""
    write(tmp_path / "in", 0, flights(30))
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    shown: list[int] = []

    def show(changes: DataFrame, batch: int) -> None:
        changes.persist()
        shown.append(changes.count())
        with contextlib.redirect_stdout(io.StringIO()):
            changes.show(1)
        changes.unpersist()

    changes = sbs.monitor(rows, TOP, shards=2, **OPTIONS)
    writer = changes.writeStream.foreachBatch(show).option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(240)
    assert shown == [sb.Monitor(TOP, **OPTIONS).push(flights(30)).num_rows]


def test_a_part_alone_fails_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    """If this passes no more, Spark has changed, and docs/spark.md may say less."""
    write(tmp_path / "in", 0, flights(30))
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)

    def show(changes: DataFrame, batch: int) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            changes.show(1)

    changes = sbs.monitor(rows, TOP, shards=2, **OPTIONS)
    writer = changes.writeStream.foreachBatch(show).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    with pytest.raises(Exception, match="terminated with exception"):
        query.awaitTermination(240)
