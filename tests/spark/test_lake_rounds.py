"""kill -9 of a driver while it writes to Delta or Iceberg: changes appended, and the answer by MERGE.

`make lake-rounds` runs it with the PySpark that each is built for; `SKYBAND_ROUNDS` says how many rounds.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

import skyband as sb
import skyband.spark as sbs
from engines.streams import Row, cells
from faults.ledger import ROUNDS, compare, note
from lakehouse.jars import FORMATS, VERSION, lakehouse, require_lakehouse
from spark.cluster import committed
from spark.frames import flights, stream, write
from spark.quick import SETTINGS
from spark.test_lakehouse import COLUMNS, OPTIONS, TABLES, TOP, create

pytestmark = pytest.mark.skipif("SKYBAND_ROUNDS" not in os.environ, reason="a JVM a round: `make lake-rounds`")

STREAMS = ("changes", "top")
ROWS, AHEAD = 30, 6  # of a file, which is a trigger; files that are there for the next driver


def drive(folder: Path, end: bool) -> None:
    """Both streams at once, from where they are; the file `begun` says when. end: then write down what tables hold."""
    spark = sbs.session("local[2]", **{**SETTINGS, **lakehouse(), "spark.sql.shuffle.partitions": "2"})
    tables = TABLES[FORMATS[VERSION]](spark, folder / "lake")
    create(spark, tables, "changes", COLUMNS)
    create(spark, tables, "top", "origin string, id long, score double")
    schema = spark.read.parquet(str(folder / "in")).schema
    running: list[Any] = []
    for name in STREAMS:
        emit: Any = "arrival" if name == "changes" else "batch"
        changes = sbs.monitor(stream(spark, folder / "in", schema), TOP, emit=emit, shards=2, **OPTIONS)
        to = (
            changes.withColumn("diff", F.col("diff").cast("int"))
            .writeStream.option("checkpointLocation", str(folder / name / "checkpoint"))
            .trigger(availableNow=True)
        )
        running.append(tables.append(to, "changes") if name == "changes" else to.foreachBatch(tables.merge).start())
    (folder / "begun").touch()
    for query in running:
        query.awaitTermination()
    for name in STREAMS if end else ():
        pq.write_table(spark.table(tables.name(name)).toArrow(), folder / f"{name}.parquet")


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    (folder / "begun").unlink(missing_ok=True)
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "spark.test_lake_rounds", str(folder), *more],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def put_rows(folder: Path, table: Any) -> int:
    """Files for the next driver; returns how many there are."""
    there = len(list((folder / "in").glob("*.parquet"))) if (folder / "in").exists() else 0
    for number in range(there, max(committed(folder, name) for name in STREAMS) + AHEAD):
        write(folder / "new", number, table.slice(number * ROWS, ROWS))
        (folder / "in").mkdir(exist_ok=True)
        (folder / "new" / f"{number}.parquet").rename(folder / "in" / f"{number}.parquet")
        there = number + 1
    return there


def ended_triggers(folder: Path) -> int:
    return sum(committed(folder, name) for name in STREAMS)


def shown(row: Row) -> Row:
    """What of a change is compared; the session's zone is in its times."""
    return {name: row[name] for name in ("origin", "id", "score", "diff", "first")}


def test_kill_9_of_a_driver_that_writes_tables(tmp_path: Path) -> None:
    what = require_lakehouse()
    table = flights(ROWS * AHEAD * (ROUNDS + 2))
    dice, struck = random.Random(5), Counter[str]()  # noqa: S311
    for _ in range(ROUNDS):
        put_rows(tmp_path, table)
        until = ended_triggers(tmp_path) + dice.randrange(AHEAD)  # else a slow machine never comes to a second one
        driver = start(tmp_path)
        deadline = time.monotonic() + 600
        while not (tmp_path / "begun").exists() or ended_triggers(tmp_path) < until:
            assert driver.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()[-3000:]
            time.sleep(0.02)
        time.sleep(dice.random() * 2)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        begun, ended = ([committed(tmp_path, name, log) for name in STREAMS] for log in ("offsets", "commits"))
        middle = [name for name, more, less in zip(STREAMS, begun, ended, strict=True) if more > less]
        struck.update(middle or ["between triggers"])
    files = put_rows(tmp_path, table)
    assert start(tmp_path, "end").wait(900) == 0, (tmp_path / "log").read_text()[-3000:]
    note({"in mid-trigger": struck})
    monitor = sb.Monitor(TOP, **OPTIONS)
    wanted = [shown(row) for row in cells(monitor.push(table.slice(0, files * ROWS)))]
    found = [shown(row) for row in cells(pq.read_table(tmp_path / "changes.parquet"))]
    compare(f"kill -9 of a driver that appends changes, {what}", ROUNDS, found, wanted)
    best = [{name: row[name] for name in ("origin", "id", "score")} for row in cells(monitor.answer("top"))]
    merged = cells(pq.read_table(tmp_path / "top.parquet"))
    compare(f"kill -9 of a driver that merges the answer, {what}", ROUNDS, merged, best)


if __name__ == "__main__":
    drive(Path(sys.argv[1]), sys.argv[2:] == ["end"])
