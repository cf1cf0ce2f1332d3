"""kill -9 of drivers while a query begins with another checkpoint's windows, over Connect too: `make faults`.

Round after round a new checkpoint begins with the state of one old one (`start_from`), its driver is killed at a random
moment of that, and the next driver finishes it, before its own round begins. `SKYBAND_ROUNDS` says how many rounds.
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

import pytest

import skyband as sb
import skyband.spark as sbs
from engines.streams import Row, cells
from faults.ledger import ROUNDS, compare, note
from spark.cluster import read_out
from spark.frames import flights, stream, write
from spark.quick import SETTINGS
from spark.test_start_from import NEW, OLD, OPTIONS

pytestmark = pytest.mark.skipif("SKYBAND_ROUNDS" not in os.environ, reason="a JVM a round: `make faults` runs this")

BEFORE, AFTER = flights(90).slice(0, 60), [flights(90).slice(begin, 15) for begin in (60, 75)]


def run(spark: Any, folder: Path, place: str, rows: str, queries: dict[str, Any], **more: Any) -> Any:
    """A query over the files of a folder, a file a trigger, to files."""
    schema = spark.read.parquet(str(folder / rows)).schema
    changes = sbs.monitor(stream(spark, folder / rows, schema), queries, **OPTIONS, **more)
    writer = changes.writeStream.format("parquet").option("path", str(folder / place / "out"))
    return writer.option("checkpointLocation", str(folder / place / "checkpoint")).trigger(availableNow=True).start()


def drive(folder: Path, number: int, how: str) -> None:
    """Finish the round before this one, then begin this one; the file `begun` says when that is."""
    where: dict[str, Any] = {"remote": "local[2]"} if how == "connect" else {"master": "local[2]"}
    settings: dict[str, Any] = {**SETTINGS, "spark.sql.shuffle.partitions": 2}
    spark = sbs.session(**where, **settings)
    if not (folder / "old").exists():
        assert run(spark, folder, "old", "before", OLD, shards=3).awaitTermination(600)
    old = str(folder / "old" / "checkpoint")
    for place in (number - 1, number):
        if place < 0:
            continue
        if place == number:
            (folder / "begun").touch()
        assert run(spark, folder, str(place), "after", NEW, shards=2, start_from=old).awaitTermination(600)


def start(folder: Path, number: int, how: str) -> subprocess.Popen[bytes]:
    (folder / "begun").unlink(missing_ok=True)
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    if how == "connect":
        env["SPARK_TESTING"] = "1"  # a port of its own: that of a server that was just killed may still be taken
    command = [sys.executable, "-m", "spark.test_start_rounds", str(folder), str(number), how]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)


def kill(driver: subprocess.Popen[bytes]) -> None:
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def state_of(folder: Path, place: str) -> str:
    """How far the round's checkpoint has come."""
    logs = [len(list((folder / place / "checkpoint" / log).glob("[0-9]*"))) for log in ("offsets", "commits")]
    return "before its first trigger" if not logs[0] else f"{logs[1]} triggers ended, {logs[0]} begun"


def shown(row: Row, number: int) -> Row:
    """What of a change is compared; the session's zone is in its times."""
    return {name: row[name] for name in ("query", "origin", "id", "score", "diff", "first")} | {"round": number}


@pytest.mark.parametrize("how", ["classic", "connect"])
def test_kill_9_while_a_checkpoint_begins_with_another(tmp_path: Path, how: str) -> None:
    write(tmp_path / "before", 0, BEFORE)
    for number, table in enumerate(AFTER):
        write(tmp_path / "after", number, table)
    dice, struck = random.Random(7), Counter[str]()  # noqa: S311
    for number in range(ROUNDS):
        driver = start(tmp_path, number, how)
        deadline = time.monotonic() + 900
        while not (tmp_path / "begun").exists():
            assert driver.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()[-3000:]
            time.sleep(0.02)
        time.sleep(dice.random() * 6)
        kill(driver)
        struck[state_of(tmp_path, str(number))] += 1
    last = start(tmp_path, ROUNDS, how)
    assert last.wait(900) == 0, (tmp_path / "log").read_text()[-3000:]
    note({"struck": struck})
    monitor = sb.Monitor({"top": OLD["top"], "old": OLD["all"]}, **OPTIONS)
    monitor.push(BEFORE)
    expected = [monitor.add("best", NEW["best"], from_window=True), monitor.add("all", NEW["all"], from_window=True)]
    for name in ("top", "old"):
        monitor.drop(name)
    monitor.add("new", NEW["new"])
    tables = [*expected, *(monitor.push(table) for table in AFTER)]
    wanted = [row for one in tables for row in cells(one)]
    found, all_wanted = [], []
    for number in range(ROUNDS + 1):
        out = [table for table in read_out(tmp_path, str(number)) if table is not None]
        found += [shown(row, number) for table in out for row in cells(table)]
        all_wanted += [shown(row, number) for row in wanted]
    compare(f"kill -9 of a driver while start_from begins, {how}", ROUNDS, found, all_wanted)


if __name__ == "__main__":
    drive(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
