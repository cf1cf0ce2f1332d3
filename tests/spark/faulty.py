"""A streaming query that fails, or comes to a standstill, where a file says so; and a driver to be killed meanwhile.

A trap is a file `<place> <batch>` in a folder. Who gets there first in that trigger renames it, then fails, dies or
sleeps as its text says. Places: `mapper`, where rows are scored; `operator`, inside of a stateful task, where they are
scored again; `after`, when a stateful task has told all changes, and Spark has committed its state;
`sink`, on the driver, when the trigger's rows are written.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import skyband as sb
import skyband.spark as sbs
from broker.server import connector
from skyband.cli.app import app
from spark.quick import SETTINGS

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # workers lack it

DAY = sb.Last("24 hours")
OPTIONS: dict[str, Any] = {"id": "flight", "time": "time"}


def arm(folder: Path, place: str, batch: int, action: str) -> Path:
    """Set a trap; returns what it is called once it has been sprung."""
    trap = folder / f"{place} {batch}"
    trap.write_text(action)
    return trap.with_name(f"{trap.name} sprung")


def spring(folder: Path, place: str, batch: int) -> None:
    trap = folder / f"{place} {batch}"
    sprung = trap.with_name(f"{trap.name} sprung")
    try:
        action = trap.read_text()
        trap.rename(sprung)
    except FileNotFoundError:
        return
    if action == "sleep":
        time.sleep(600)
    if action == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    raise RuntimeError(f"a trap: {trap.name}")


def batch_of_task() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.getLocalProperty("streaming.sql.batchId") or -1)


@dataclass(frozen=True)
class Delay:
    """A scoring with traps: the mapper calls it, and so does the operator."""

    traps: Path

    def __call__(self, batch: Any) -> Any:
        frame: Any = sys._getframe()
        while frame is not None and frame.f_code.co_name != "handleInputRows":
            frame = frame.f_back
        spring(self.traps, "mapper" if frame is None else "operator", batch_of_task())
        return batch["delay"]


def passing(traps: Path, batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches
    spring(traps, "after", batch_of_task())


def queries(window: sb.Last, by: Any = "delay") -> dict[str, sb.TopK]:
    """`by`: where a Monitor is asked the same, there is nothing to fall into."""
    return {
        "timed": sb.TopK(3, by=by, window=window, per="origin"),
        "all": sb.TopK(3, by=by, window=sb.Last(100)),
    }


NEAR = sb.TopK(sb.Each("k"), by=sb.Nearest({"delay": sb.Each("d")}), window=sb.Last(30))


def changes(spark: SparkSession, folder: Path, window: sb.Last) -> DataFrame:
    """Of the files of `in`, each a trigger; traps are in the folder itself. Files of `people` subscribe to `NEAR`."""
    subscribed = (folder / "people").exists()
    found = sbs.monitor(
        _files(spark, folder / "in"),
        queries(window, Delay(folder)) | ({"near": NEAR} if subscribed else {}),
        subscriptions={"near": _files(spark, folder / "people")} if subscribed else None,
        shards=2,
        **OPTIONS,
    )
    return found.mapInArrow(partial(passing, folder), found.schema)


def _files(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def to_parquet(found: DataFrame, folder: Path) -> StreamingQuery:
    writer = found.writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


def to_batches(found: DataFrame, folder: Path) -> StreamingQuery:
    """Each attempt at a batch is a file `out/<batch>.<attempt>`."""

    def put(rows: DataFrame, batch: int) -> None:
        (folder / "out").mkdir(exist_ok=True)
        attempt = len(list((folder / "out").glob(f"{batch}.*")))
        pq.write_table(rows.toArrow(), folder / "out" / f"{batch}.{attempt}")
        spring(folder, "sink", batch)

    writer = found.writeStream.foreachBatch(put).option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start()


def drive(folder: Path) -> None:
    """The driver to be killed: files to files; once a task of it sits in a trap, the command runs `run.toml` beside it.

    (That task holds one core of three.)
    """
    spark = sbs.session("local[3]", **SETTINGS, **connector(), **{"spark.local.dir": str(folder / "local")})
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    query = to_parquet(changes(spark, folder, DAY), folder)
    if (folder / "run.toml").exists():
        while not list(folder.glob("* sprung")):
            time.sleep(0.05)
        app(["run", str(folder / "run.toml")])
    query.awaitTermination()


if __name__ == "__main__":
    drive(Path(sys.argv[1]))
