"""Flights as files, and streaming DataFrames over them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skyband as sb
from engines.streams import Row, cells

QUERIES = {
    "day": sb.TopK(3, by="delay", window=sb.Last("24 hours"), per="origin"),
    "all": sb.TopK(3, by="delay", window=sb.Last(100)),
    "two": sb.TopK(2, by="delay + 0.5 * late", window=sb.Last(9), per=("origin", "carrier"), where="late > 1"),
}


def flights(size: int = 600, *, zone: str | None = "UTC", seed: int = 7) -> Any:
    """Rows in order, with ties, equal times, null scores and null groups."""
    rng = np.random.default_rng(seed)
    minutes = np.cumsum(rng.integers(0, 30, size) * (rng.random(size) < 0.8))
    start = datetime(2024, 3, 9, 20, tzinfo=UTC if zone else None)  # the clocks of New York change on the 10th
    origins = [None, "EWR", "JFK", "LGA"]
    return pa.table(
        {
            "flight": pa.array(range(size), pa.int64()),
            "time": pa.array([start + timedelta(minutes=int(m)) for m in minutes], pa.timestamp("us", zone)),
            "delay": pa.array(rng.integers(0, 40, size).astype(float), mask=rng.random(size) < 0.05),
            "late": pa.array(rng.integers(0, 4, size), pa.int32()),
            "origin": pa.array([origins[i] for i in rng.integers(0, 4, size)], pa.string()),
            "carrier": pa.array([["AA", "UA"][i] for i in rng.integers(0, 2, size)], pa.string()),
            "note": pa.array([[f"n{i}"] for i in range(size)], pa.list_(pa.string())),
        }
    )


def write(folder: Path, number: int, table: Any) -> None:
    """A file that is the next trigger: Spark takes files in the order of their times."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1_000_000 + number, 1_000_000 + number))


def read(df: DataFrame) -> list[Row]:
    table = df.toArrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            table = table.set_column(place, field.name, table.column(place).cast(pa.timestamp("us", "UTC")))
    return cells(table)


def stream(spark: SparkSession, folder: Path, schema: Any) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(changes: DataFrame, folder: Path) -> list[Any]:
    """All files that are there, then stop; a second time: from the checkpoint. Returns the triggers' progress."""
    writer = changes.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(240)
        return [json.loads(one.json) for one in query.recentProgress]
    finally:
        query.stop()
