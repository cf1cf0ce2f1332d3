"""kill -9 of a driver at random moments, again and again, all kinds of queries in it: `make faults`.

`make test` kills drivers in test_faults.py and test_kafka.py, once each; a round here takes the start of a JVM.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import skyband.spark as sbs
from contract.streams import cells
from faults.ledger import ROUNDS, compare, note
from kinds import KINDS, stream
from spark.cluster import committed, read_out
from spark.quick import SETTINGS
from spark.shards import told_by

TRIGGERS, ROWS = 3 * ROUNDS + 4, 80

pytestmark = pytest.mark.skipif("SKYBAND_ROUNDS" not in os.environ, reason="a JVM a round: `make faults` runs this")


def drive(folder: Path) -> None:
    """All kinds at once, from where they are to the end; how long their first triggers took goes to `first`."""
    given = {**SETTINGS, "spark.sql.shuffle.partitions": "2", "spark.local.dir": str(folder / "local")}
    spark = sbs.session("local[2]", **given)
    schema = spark.read.parquet(str(folder / "in")).schema
    running = []
    for name, kind in KINDS.items():
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        changes = sbs.monitor(rows, dict(kind.queries), shards=2, order=kind.order, metrics="skyband", **kind.options)
        writer = changes.writeStream.format("parquet").option("path", str(folder / name / "out"))
        writer = writer.option("checkpointLocation", str(folder / name / "checkpoint")).trigger(availableNow=True)
        running.append(writer.start())
    (folder / "begun").touch()
    for query in running:
        query.awaitTermination()
    times = [[one["durationMs"]["triggerExecution"] for one in query.recentProgress] for query in running]
    (folder / "times").write_text(json.dumps(times))


def start(folder: Path) -> subprocess.Popen[bytes]:
    tests = Path(__file__).parents[1]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "spark.test_rounds", str(folder)],
            env={**os.environ, "PYTHONPATH": str(tests)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill_at_random(folder: Path, dice: random.Random) -> None:
    """Some time after a trigger of any kind has been committed, or before the first."""
    (folder / "begun").unlink(missing_ok=True)
    before = sum(committed(folder, name) for name in KINDS)
    wanted = before + dice.randrange(2 * len(KINDS))
    driver = start(folder)
    deadline = time.monotonic() + 300
    while not (folder / "begun").exists() or sum(committed(folder, name) for name in KINDS) < wanted:
        assert driver.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
        time.sleep(0.005)
    time.sleep(dice.random() * 1.5)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def test_kill_9_of_the_driver_at_random_moments(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(TRIGGERS):
        file = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(stream(ROWS, start=number * ROWS), file)
        os.utime(file, (1_700_000_000 + number,) * 2)
    dice = random.Random(9)  # noqa: S311
    for _ in range(ROUNDS):
        kill_at_random(tmp_path, dice)
    driver = start(tmp_path)
    assert driver.wait(600) == 0, (tmp_path / "log").read_text()[-3000:]
    note({"recovery": json.loads((tmp_path / "times").read_text())})
    for name, kind in KINDS.items():
        monitor = kind.monitor()
        tables = read_out(tmp_path, name)
        assert len(tables) == TRIGGERS
        found = [row for table in tables if table is not None for row in cells(table)]
        batches = [stream(ROWS, start=number * ROWS) for number in range(TRIGGERS)]
        expected = [row for batch in batches for row in told_by(monitor, batch)]
        compare(f"kill -9 of a driver on Spark: {name}", ROUNDS, found, expected)


if __name__ == "__main__":
    drive(Path(sys.argv[1]))
