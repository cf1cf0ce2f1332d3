"""Yardsticks for skyband on Spark: passing rows on, Spark's own top k over sliding windows, an idle operator."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as everyone writes it)
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

WATERMARK = "1 hour"
IN_ORDER = "0 seconds"


def passed_on(df: DataFrame) -> DataFrame:
    """The least that a Python stage costs: every batch goes in and comes out."""

    def identity(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    return df.mapInArrow(identity, df.schema)


def sliding_max_by(df: DataFrame, k: int, size: str, slide: str) -> DataFrame:
    """What users have today: each row in size/slide windows, one answer per window and key, when it has closed."""
    return (
        df.withWatermark("time", WATERMARK)
        .groupBy(F.window("time", size, slide), "key")
        .agg(F.max_by(F.struct("id", "score"), "score", k).alias("best"))
    )


def best_of_windows(df: DataFrame, k: int, size: str, slide: str) -> DataFrame:
    """The same for rows in order, exact to the last tie: the newer of equals first."""
    one = F.struct("score", "id")
    sliding = df.withWatermark("time", IN_ORDER).groupBy(F.window("time", size, slide), "key")
    return sliding.agg(F.max_by(one, one, k).alias("best"))


def best_of_panes(df: DataFrame, k: int, size: str, slide: str) -> DataFrame:
    """Two levels: the k best of each slide and key, then of each window of slides. A row is in one pane only."""
    one = F.struct("score", "id")
    panes = df.withWatermark("time", IN_ORDER).groupBy(F.window("time", slide), "key")
    best = panes.agg(F.max_by(one, one, k).alias("best"))
    each = best.select(F.window_time("window").alias("at"), "key", F.explode("best").alias("one"))
    return each.groupBy(F.window("at", size, slide), "key").agg(F.max_by("one", "one", k).alias("best"))


def hot_items(df: DataFrame, k: int, size: str, slide: str) -> DataFrame:
    """The k keys with the most rows of each sliding window, of equals the one with the newest row."""
    sliding = df.withWatermark("time", IN_ORDER).groupBy(F.window("time", size, slide), "key")
    counted = sliding.agg(F.struct(F.count("*").alias("n"), F.max("id").alias("newest")).alias("rank"))
    best = counted.groupBy("window").agg(F.max_by(F.struct(F.col("key").alias("id")), "rank", k).alias("best"))
    return best.withColumn("key", F.lit(""))


class Idle(StatefulProcessor):
    """Reads its rows and writes one small value."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("calls", "calls long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        for _ in rows:
            pass
        kept = self.state.get()
        self.state.update((1 if kept is None else kept[0] + 1,))
        yield from ()

    def close(self) -> None:
        pass


def idle_by_shard(df: DataFrame, shards: int) -> DataFrame:
    """All columns of a trigger packed into one value per shard, as skyband packs them, to an idle operator."""
    labels = _spread(df, shards)

    def deal(batches: Iterator[Any]) -> Iterator[Any]:
        there = list(batches)
        if not there:  # a large file is read in parts, and one may have no rows
            return
        rows = pa.Table.from_batches(there)
        for number, label in enumerate(labels):
            sink = io.BytesIO()
            share = rows.slice(number * rows.num_rows // shards, -(-rows.num_rows // shards))
            with pa.ipc.new_stream(sink, share.schema) as writer:
                writer.write_table(share)
            yield pa.RecordBatch.from_arrays([pa.array([label]), pa.array([sink.getvalue()])], ["shard", "blob"])

    packed = df.mapInArrow(deal, "shard long, blob binary")
    return packed.groupBy("shard").transformWithStateInPandas(Idle(), "blob binary", "append", "None")


def idle_by_group(df: DataFrame) -> DataFrame:
    """The same operator called once for each group that has rows, as one would first write it."""
    return df.groupBy("key").transformWithStateInPandas(Idle(), "blob binary", "append", "None")


def _spread(df: DataFrame, shards: int) -> list[int]:
    """A label for each shard, dealt out evenly over the shuffle partitions by Spark's own hash."""
    spark = df.sparkSession
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 2)
    hashed = spark.range(64 * shards).select("id", F.expr(f"pmod(hash(id), {partitions})").alias("partition"))
    homes: dict[int, list[int]] = {}
    for row in hashed.collect():
        homes.setdefault(row["partition"], []).append(row["id"])
    return [homes[shard % partitions][shard // partitions] for shard in range(shards)]
