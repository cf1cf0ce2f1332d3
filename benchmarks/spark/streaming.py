"""One session for all contestants; a stream as files; a streaming query run to its end.

A file, or several together, is a trigger. The sink is noop: all rows are computed and none is written.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skyband.spark as sbs
from benchmarks.workloads import Stream
from skyband.spark import metrics

TIMEOUT = 1800  # seconds of one pass
PARTITIONS = "spark.sql.shuffle.partitions"
SETTINGS: dict[str, Any] = {
    PARTITIONS: 2,
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "4g",
}

Trigger = dict[str, float]  # rows, and milliseconds by what they were spent on


def session() -> SparkSession:
    """The one session, made at first use: two cores, state in RocksDB; over Connect where SPARK_REMOTE says so."""
    where = {"remote": os.environ["SPARK_REMOTE"]} if "SPARK_REMOTE" in os.environ else {"master": "local[2]"}
    return SparkSession.getActiveSession() or sbs.session(**where, **SETTINGS)


def write(folder: Path, stream: Stream, cuts: list[int]) -> None:
    """The rows between two cuts are a file: Spark takes them in the order of their times."""
    folder.mkdir(exist_ok=True)
    there = len(list(folder.iterdir()))
    for number, (begin, end) in enumerate(itertools.pairwise(cuts), start=there):
        table = pa.table({name: column[begin:end] for name, column in stream.items()})
        for place, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                table = table.set_column(place, field.name, table.column(place).cast(pa.timestamp("us", "UTC")))
        path = folder / f"{number:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))


def read(folder: Path, together: int) -> DataFrame:
    """So many files are a trigger."""
    spark = session()
    schema = spark.read.parquet(str(folder / "00000.parquet")).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", together).parquet(str(folder))


def through(df: DataFrame, checkpoint: Path, output: Path | None = None) -> list[Any]:
    """Run the query over all files that it has not seen; its progress, trigger by trigger."""
    writer = df.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    if output is not None:
        writer = writer.format("parquet").option("path", str(output))
    query = writer.trigger(availableNow=True).start()
    try:
        if not query.awaitTermination(TIMEOUT):
            raise TimeoutError(f"a pass took more than {TIMEOUT} s.")
        return list(query.recentProgress)
    finally:
        query.stop()


def shuffled() -> int:
    """Bytes that all shuffles of the session have written so far; 0 over Connect, which does not tell."""
    if "SPARK_REMOTE" in os.environ:
        return 0
    there: Any = session().sparkContext._jsc
    executors = there.sc().statusStore().executorList(True)
    return sum(int(executors.apply(i).totalShuffleWrite()) for i in range(executors.size()))


def checkpoint_bytes(checkpoint: Path) -> int:
    """What the state's folder holds: all versions that Spark has not cleaned up."""
    return sum(path.stat().st_size for path in (checkpoint / "state").rglob("*") if path.is_file())


def triggers(progress: list[Any]) -> list[Trigger]:
    return [{"rows": one.numInputRows} | dict(one.durationMs) for one in progress]


def observed(progress: list[Any], name: str) -> dict[str, int]:
    """What `DataFrame.observe(name, sums)` saw, added up over the triggers."""
    total: dict[str, int] = {}
    for one in progress:
        for column, value in metrics.observed(one).get(name, {}).items():
            total[column] = total.get(column, 0) + int(value or 0)
    return total
