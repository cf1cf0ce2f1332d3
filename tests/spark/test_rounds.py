"""kill -9 of a driver at random moments, again and again, all kinds of queries in it: `make faults`.

`make test` kills one in test_kill.py; a round here takes the start of a JVM.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skyband.spark as sbs
from engines.streams import cells
from faults.ledger import ROUNDS, compare, note
from kinds import KINDS, Kind, stream
from spark.cluster import committed, read_out
from spark.quick import SETTINGS
from spark.shards import changes_of

#: What the driver asks, by the column of ids: kinds with the same one in one query, since each costs a start.
STREAMS: dict[str, Kind] = {}
for _kind in KINDS.values():
    _before = STREAMS.get(_kind.options["id"], Kind({}))
    STREAMS[_kind.options["id"]] = Kind({**_before.queries, **_kind.queries}, _kind.options, _kind.order)
AHEAD, ROWS = 10, 80  # files that are there for the next driver, and the rows of each

pytestmark = pytest.mark.skipif("SKYBAND_ROUNDS" not in os.environ, reason="a JVM a round: `make faults` runs this")


def drive(folder: Path) -> None:
    """All streams at once, from where they are to the end; how long their first triggers took goes to `first`."""
    given = {**SETTINGS, "spark.sql.shuffle.partitions": "2", "spark.local.dir": str(folder / "local")}
    given["spark.sql.streaming.minBatchesToRetain"] = "1000"  # `triggers` reads what each has taken
    classes = folder / "classes"  # the first JVM leaves its classes to the others: a start is most of a round
    flag = "SharedArchiveFile" if classes.exists() else "ArchiveClassesAtExit"
    given["spark.driver.extraJavaOptions"] += f" -XX:{flag}={classes}"
    spark = sbs.session("local[2]", **given)
    schema = spark.read.parquet(str(folder / "in")).schema
    running = []
    for name, kind in STREAMS.items():
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


def put_rows(folder: Path, ahead: int = AHEAD) -> None:
    """So many files that none comes to an end in the next round."""
    there = len(list((folder / "in").iterdir()))
    for number in range(there, max(committed(folder, name, "sources/0") for name in STREAMS) + ahead):
        pq.write_table(stream(ROWS, start=number * ROWS), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_700_000_000 + number,) * 2)
        (folder / f"{number}.parquet").rename(folder / "in" / f"{number}.parquet")


def run_to_the_end(folder: Path) -> None:
    while (driver := start(folder)).wait(1800) != 0:
        runs(driver, folder)
    with suppress(ProcessLookupError):  # its JVM goes on for a while
        while True:
            os.killpg(driver.pid, 0)
            time.sleep(0.1)


def runs(driver: subprocess.Popen[bytes], folder: Path) -> bool:
    """Or has it ended because Python took more than the ten seconds that Spark waits? (Any other end is a failure.)"""
    if driver.poll() is not None:
        log = (folder / "log").read_text()
        assert "Python worker failed to connect back" in log, log[-3000:]
        note({"ended by itself": 1})
        return False
    return True


def kill_at_random(folder: Path, dice: random.Random) -> list[str]:
    """After a trigger of any stream has been committed, or before the first. Which were in mid-trigger."""
    put_rows(folder)
    (folder / "begun").unlink(missing_ok=True)
    before = sum(committed(folder, name) for name in STREAMS)
    wanted = before + dice.randrange(len(STREAMS) + 1)
    driver = start(folder)
    deadline = time.monotonic() + 600
    while not (folder / "begun").exists() or sum(committed(folder, name) for name in STREAMS) < wanted:
        assert time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
        if not runs(driver, folder):
            driver = start(folder)
        time.sleep(0.02)
    time.sleep(dice.random() * 1.5)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    return [name for name in STREAMS if committed(folder, name, "offsets") > committed(folder, name)]


def triggers(folder: Path, place: str) -> Iterator[Any]:
    """The rows of each trigger. Mostly a file each; two if a kill fell between the logs of the source and the query."""
    begin, log = 0, folder / place / "checkpoint" / "offsets"
    for number in range(committed(folder, place)):
        end = 1 + json.loads((log / str(number)).read_text().splitlines()[-1])["logOffset"]
        yield pa.concat_tables([stream(ROWS, start=file * ROWS) for file in range(begin, end)])
        begin = end
    assert begin == len(list((folder / "in").iterdir())), "a file was not read"


def test_kill_9_of_the_driver_at_random_moments(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    put_rows(tmp_path, 2)
    run_to_the_end(tmp_path)
    dice = random.Random(9)  # noqa: S311
    struck: Counter[str] = Counter()
    for _ in range(ROUNDS):
        struck.update(kill_at_random(tmp_path, dice))
    note({"in mid-trigger": struck})  # the other kills fell between two triggers of the kind, or before its first
    run_to_the_end(tmp_path)
    note({"recovery": json.loads((tmp_path / "times").read_text())})
    for name, kind in KINDS.items():
        place = kind.options["id"]
        monitor = STREAMS[place].monitor()
        found = [row for table in read_out(tmp_path, place) if table is not None for row in cells(table)]
        expected = [row for batch in triggers(tmp_path, place) for row in changes_of(monitor, batch)]
        mine = ([row for row in rows if row["query"] in kind.queries] for rows in (found, expected))
        compare(f"kill -9 of a driver on Spark: {name}", ROUNDS, *mine)


if __name__ == "__main__":
    drive(Path(sys.argv[1]))
