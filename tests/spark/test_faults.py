"""Crashes between triggers, of a task and of a sink: changes come out as if nothing had happened. Of the driver:
test_kill.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import skyband as sb
import skyband.spark as sbs
from engines.streams import Row, cells, same_rows
from spark import faulty
from spark.frames import QUERIES, flights, read, run, stream, write
from spark.shards import pushed

SECONDS = sb.Last(span=86_400)


def whole_seconds(table: Any) -> Any:
    """The same stream with integers for times."""
    seconds = table["time"].cast(pa.timestamp("s", "UTC")).cast(pa.int64())
    return table.set_column(table.column_names.index("time"), "time", seconds)


def cut(folder: Path, table: Any, files: int) -> list[Any]:
    """The table as so many files of `in`."""
    folder.mkdir(exist_ok=True)
    size = -(-table.num_rows // files)
    pieces = [table.slice(begin, size) for begin in range(0, table.num_rows, size)]
    for number, piece in enumerate(pieces):
        write(folder / "in", number, piece)
    return pieces


def told(pieces: list[Any], window: sb.Last) -> list[list[Row]]:
    """What a Monitor tells of each trigger."""
    monitor = sb.Monitor(faulty.queries(window), **faulty.OPTIONS)
    return [pushed(monitor, [piece], ("time", "flight")) for piece in pieces]


def finish(query: StreamingQuery) -> None:
    try:
        assert query.awaitTermination(240)
    finally:
        query.stop()


# ---- between triggers


def lose(folder: Path, batch: int) -> None:
    """An entry of a log of Spark's, as if the crash had come before it was written."""
    for name in (f"{batch}", f".{batch}.crc"):
        (folder / name).unlink()


def test_a_restart_after_any_trigger(spark: SparkSession, tmp_path: Path) -> None:
    table = flights(450)
    pieces = [table.slice(0, 250), table.slice(250, 50), table.slice(300)]
    options: dict[str, Any] = {"id": "flight", "time": "time", "keep": "note"}
    monitor, expected = sb.Monitor(QUERIES, **options), list[Row]()
    for number, piece in enumerate(pieces):
        write(tmp_path / "in", number, piece)
        expected += pushed(monitor, [piece], ("time", "flight"))
        schema = spark.read.parquet(str(tmp_path / "in")).schema
        run(sbs.monitor(stream(spark, tmp_path / "in", schema), QUERIES, shards=3, **options), tmp_path)
        same_rows(read(spark.read.parquet(str(tmp_path / "out"))), expected, f"files up to {number}")
        if number < 2:  # the sink has the trigger, and Spark does not know it
            lose(tmp_path / "checkpoint" / "commits", number)
        if number == 1:  # nor has the sink: only the state went ahead
            lose(tmp_path / "out" / "_spark_metadata", number)
    write(tmp_path / "in", 3, pieces[0])
    other = sbs.monitor(stream(spark, tmp_path / "in", schema), QUERIES, shards=2, **options)
    with pytest.raises(StreamingQueryException, match=r"StateError.*Run with shards=3, or start from a new checkpoint"):
        run(other, tmp_path)


# ---- a task, a sink


def test_a_task_or_a_sink_that_fails_is_run_again(spark: SparkSession, tmp_path: Path) -> None:
    pieces = cut(tmp_path, whole_seconds(flights(300)), 3)
    traps = [("operator", 0, "die"), ("after", 1, "fail"), ("sink", 1, "fail"), ("mapper", 2, "fail")]
    sprung = [faulty.arm(tmp_path, *trap) for trap in traps]
    with pytest.raises(StreamingQueryException, match="a trap: sink 1"):
        finish(faulty.to_batches(faulty.changes(spark, tmp_path, SECONDS), tmp_path))
    finish(faulty.to_batches(faulty.changes(spark, tmp_path, SECONDS), tmp_path))
    assert [trap.exists() for trap in sprung] == [True] * 4
    found = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in found] == ["0.0", "1.0", "1.1", "2.0"]  # foreachBatch sees a trigger twice
    rows = told(pieces, SECONDS)
    for path in found:
        same_rows(cells(pq.read_table(path)), rows[int(path.stem)], f"batch and attempt {path.name}")
