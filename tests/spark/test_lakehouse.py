"""Tables of Delta and Iceberg as sinks, with their own jars: changes appended, the answer by MERGE; each trigger once.

PySpark 4.2 runs this with Delta, 4.1 with Iceberg: `make spark-versions`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import skyband as sb
import skyband.spark as sbs
from engines.streams import cells
from lakehouse.jars import require_lakehouse
from spark.frames import flights, stream, write

TOP = {"top": sb.TopK(3, by="delay", window=sb.Last("24 hours"), per="origin")}
OPTIONS: dict[str, Any] = {"id": "flight", "time": "time"}
COLUMNS = "query string, origin string, at long, time timestamp, id long, score double, diff int, first boolean"
MERGE = """
    MERGE INTO {table} AS top USING net ON top.origin <=> net.origin AND top.id = net.id
    WHEN MATCHED AND net.diff < 0 THEN DELETE
    WHEN NOT MATCHED AND net.diff > 0 THEN INSERT (origin, id, score) VALUES (net.origin, net.id, net.score)
"""


class Delta:
    """Delta keeps the trigger's number with the MERGE, and leaves out one that it has."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder

    def name(self, table: str) -> str:
        return f"delta.`{self.folder / table}`"

    def merge(self, changes: DataFrame, batch: int) -> None:
        session = changes.sparkSession
        session.createDataFrame(changes.toArrow()).createOrReplaceTempView("net")
        session.conf.set("spark.databricks.delta.write.txnAppId", "top")
        session.conf.set("spark.databricks.delta.write.txnVersion", batch)
        session.sql(MERGE.format(table=self.name("top")))

    def append(self, writer: Any, table: str) -> Any:
        return writer.format("delta").start(str(self.folder / table))

    def merges(self, spark: SparkSession) -> int:
        history = spark.sql(f"DESCRIBE HISTORY {self.name('top')}").collect()
        return [row["operation"] for row in history].count("MERGE")


class Iceberg:
    """A property of the snapshot that the MERGE makes has the trigger's number."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        spark.conf.set("spark.sql.catalog.lake.warehouse", str(folder.parent))
        self.place = f"lake.{folder.name}"

    def name(self, table: str) -> str:
        return f"{self.place}.{table}"

    def merge(self, changes: DataFrame, batch: int) -> None:
        net, session = changes.toArrow(), changes.sparkSession
        numbers = f"SELECT max(CAST(summary['top-batch'] AS LONG)) FROM {self.name('top')}.snapshots"  # noqa: S608
        done = session.sql(numbers).head()
        assert done is not None
        if done[0] is not None and batch <= done[0]:
            return
        session.createDataFrame(net).createOrReplaceTempView("net")
        session.conf.set("spark.sql.iceberg.snapshot-property.top-batch", batch)
        session.sql(MERGE.format(table=self.name("top")))

    def append(self, writer: Any, table: str) -> Any:
        return writer.format("iceberg").toTable(self.name(table))

    def merges(self, spark: SparkSession) -> int:
        snapshots = f"SELECT * FROM {self.name('top')}.snapshots WHERE summary['top-batch'] IS NOT NULL"  # noqa: S608
        return spark.sql(snapshots).count()


TABLES: dict[str, type[Delta] | type[Iceberg]] = {"delta": Delta, "iceberg": Iceberg}


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Delta | Iceberg:
    return TABLES[require_lakehouse()](spark, tmp_path)


def create(spark: SparkSession, tables: Delta | Iceberg, table: str, columns: str) -> None:
    spark.sql(f"CREATE TABLE IF NOT EXISTS {tables.name(table)} ({columns}) USING {type(tables).__name__.lower()}")


def crashing(merge: Callable[[DataFrame, int], None], after: set[int]) -> Callable[[DataFrame, int], None]:
    """It fails once after each of these triggers has been merged."""

    def call(changes: DataFrame, batch: int) -> None:
        merge(changes, batch)
        if batch in after:
            after.remove(batch)
            raise RuntimeError("the trigger is merged, and Spark does not know it")

    return call


def test_the_answer_by_merge_exactly_once(spark: SparkSession, tables: Delta | Iceberg, tmp_path: Path) -> None:
    table, monitor = flights(90), sb.Monitor(TOP, **OPTIONS)
    for number in range(3):
        write(tmp_path / "in", number, table.slice(30 * number, 30))
        monitor.push(table.slice(30 * number, 30))
    create(spark, tables, "top", "origin string, id long, score double")
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    merge = crashing(tables.merge, {1})
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
    found = {(row["origin"], row["id"], row["score"]) for row in spark.table(tables.name("top")).collect()}
    assert found == {(row["origin"], row["id"], row["score"]) for row in cells(monitor.answer("top"))}
    assert tables.merges(spark) == 3, "the second attempt of a trigger is left out"


def test_changes_are_appended_exactly_once(spark: SparkSession, tables: Delta | Iceberg, tmp_path: Path) -> None:
    """Also those of a trigger that is run again because Spark has lost the note that it was done."""
    table, monitor = flights(60), sb.Monitor(TOP, **OPTIONS)
    expected: list[Any] = []
    for number in range(2):
        write(tmp_path / "in", number, table.slice(30 * number, 30))
        expected += monitor.push(table.slice(30 * number, 30)).to_pylist()
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    create(spark, tables, "changes", COLUMNS)
    for _ in range(2):
        changes = sbs.monitor(rows, TOP, shards=2, **OPTIONS).withColumn("diff", F.col("diff").cast("int"))
        writer = changes.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert tables.append(writer.trigger(availableNow=True), "changes").awaitTermination(400)
        for lost in (tmp_path / "checkpoint" / "commits").glob("*1*"):  # with its checksum, `.1.crc`
            lost.unlink()
    written = spark.table(tables.name("changes")).collect()
    ours, theirs = (sorted((row["id"], row["score"], row["diff"]) for row in many) for many in (written, expected))
    assert ours == theirs and ours
