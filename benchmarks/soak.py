"""`make soak`: a stream without end through a Monitor and through `skyband run` on local Spark, for half an hour.

Every few seconds the memory of the processes (all their resident pages, the JVM's and the Python workers' too), the
bytes of state and the time of a push or trigger are written to results/soak.jsonl; figures/soak.png shows them. After
warm-up nothing may grow: the median of the last third is held against the median of the third before it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from benchmarks.machine import commit, machine
from skyband.datasets import endless

HERE = Path(__file__).parent
RESULTS, FIGURE = HERE / "results" / "soak.jsonl", HERE / "figures" / "soak.png"
ROWS = 20_000  # a second, for the Monitor; a quarter of it for Spark
NOISE = 1.1

Row = dict[str, Any]


def memory(process: int, *, below: bool) -> int:
    """Resident bytes of a process, and of all below it."""
    children: dict[int, list[int]] = {}
    resident: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        children.setdefault(int(fields[1]), []).append(int(folder.name))
        resident[int(folder.name)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    found, left = 0, [process]
    while left:
        one = left.pop()
        found += resident.get(one, 0)
        left += children.get(one, []) if below else []
    return found


def monitors() -> list[sb.Monitor]:
    """All kinds of questions. Of a score in parts the objects come again and again, so it has an id of its own."""
    day = sb.Last("24 hours")
    queries = {
        "late": sb.TopK(10, by="delay", window=day, per="origin"),
        "last": sb.TopK(100, by="delay", window=sb.Last(50_000)),
        "alarm": sb.Above(120, by="delay", window=sb.Last("1 hour"), per="origin"),
        "alike": sb.TopKPairs(5, by="abs(a.delay - b.delay)", window=sb.Last(200)),
        "doubtful": sb.TopKUncertain(5, by="delay", window=sb.Last(1000), probability="p"),
    }
    trips = sb.TopKIncomplete(10, ["out", "back"], window=sb.Last("1 hour"), repeat="last")
    return [
        sb.Monitor(queries, id="flight", time="time", emit="batch"),
        sb.Monitor(trips, id="plane", time="time", emit="batch"),
    ]


def rows(begin: int, end: int) -> Any:
    table = endless("flights_like", begin, end, seed=1, keys=50, per_day=100_000)
    numbers = np.arange(begin, end)
    more = {
        "p": (numbers % 8 + 1) / 8,
        "plane": numbers * 7919 % 3001,
        "part": np.where(numbers % 2, "out", "back"),
        "value": numbers * 31 % 97 / 97,
    }
    for name, column in more.items():
        table = table.append_column(name, pa.array(column))
    return table


def soak_monitor(seconds: float, note: Any) -> None:
    running = monitors()
    for monitor in running:
        monitor.push(rows(0, ROWS))  # compiles
    began, at = time.monotonic(), ROWS
    while (now := time.monotonic()) - began < seconds:
        batch = rows(at, at + ROWS)
        start = time.process_time()
        for monitor in running:
            monitor.push(batch)
        took = time.process_time() - start
        at += ROWS
        state = sum(one["bytes"] for monitor in running for one in monitor.stats()["queries"].values())
        note(
            {
                "where": "monitor",
                "after": now - began,
                "rows": at,
                "memory": memory(os.getpid(), below=False),
                "state": state,
                "ms": took * 1000,
            }
        )
        time.sleep(max(0.0, began + at / ROWS - 1 - time.monotonic()))


def soak_spark(seconds: float, note: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = f"""
[source]
format = "synthetic"
dataset = "flights_like"
seed = 1
rows_per_second = {ROWS // 4}
options = {{ keys = 50, per_day = 100_000 }}
[queries.late]
k = 10
by = "delay"
window = "24 hours"
per = "origin"
[queries.last]
k = 100
by = "delay"
window = 50000
[queries.alarm]
kind = "above"
threshold = 120
by = "delay"
window = "1 hour"
per = "origin"
[queries.alike]
kind = "topkpairs"
k = 5
by = "abs(a.delay - b.delay)"
window = 200
[stream]
id = "flight"
time = "time"
shards = 2
[sink]
format = "noop"
[run]
master = "local[2]"
checkpoint = "{folder}/checkpoint"
trigger = "2 seconds"
"""
        file = Path(folder, "soak.toml")
        file.write_text(made)
        command = [sys.executable, "-c", "from skyband.cli import app; app()", "run", str(file)]
        began, at = time.monotonic(), 0
        while not at:  # on a busy machine Python may take more than the ten seconds that Spark waits for it: once more
            with subprocess.Popen(command, stdout=-1, text=True) as run:
                assert run.stdout is not None
                for line in run.stdout:
                    printed = json.loads(line)
                    at += printed["rows"]
                    after = time.monotonic() - began
                    if printed["rows"]:
                        row = {"where": "spark", "after": after, "rows": at, "memory": memory(run.pid, below=True)}
                        note({**row, "state": printed.get("bytes"), "ms": printed["trigger_ms"]})
                    if after > seconds:
                        run.terminate()
                        break
                run.stdout.read()


def soak(minutes: float) -> None:
    """Both at once; every tenth second of each is kept."""
    found: list[Row] = []
    last: dict[str, float] = {}

    def note(row: Row) -> None:
        if row["after"] - last.get(row["where"], -100) >= 10:
            last[row["where"]] = row["after"]
            found.append({key: round(value, 1) if isinstance(value, float) else value for key, value in row.items()})

    beside = threading.Thread(target=soak_spark, args=(minutes * 60, note))
    beside.start()
    soak_monitor(minutes * 60, note)
    beside.join()
    if min(last.values()) < 0.9 * minutes * 60:
        sys.exit(f"one of them ended early: {last}")
    about = {"minutes": minutes, "commit": commit()[0], **machine()}
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in [about, *found]))


def growth(found: list[Row], where: str, what: str) -> float:
    """The last third over the one before."""
    mine = [row[what] for row in found if row.get("where") == where and row[what] is not None]
    third = len(mine) // 3
    return float(statistics.median(mine[-third:]) / statistics.median(mine[third:-third]))


def plot() -> int:
    import matplotlib.pyplot as plt

    found = [json.loads(line) for line in RESULTS.read_text().splitlines()][1:]
    figure, axes = plt.subplots(3, 2, figsize=(9, 6), sharex="col", layout="constrained")
    bad = 0
    for column, where in enumerate(("monitor", "spark")):
        mine = [row for row in found if row["where"] == where]
        minutes = [row["after"] / 60 for row in mine]
        for line, (what, name, unit) in enumerate(
            (("memory", "memory, MB", 1e6), ("state", "state, kB", 1e3), ("ms", "push or trigger, ms", 1))
        ):
            place = axes[line][column]
            place.plot(minutes, [row[what] / unit for row in mine], linewidth=1)
            place.set_ylim(0, 1.1 * max(row[what] / unit for row in mine[len(mine) // 10 :]))  # a start may be higher
            ratio = growth(found, where, what)
            place.set_title(f"{where}: last third / middle third = {ratio:.2f}", fontsize=8)
            place.set_ylabel(name, fontsize=8)
            print(f"{where} {what}: {ratio:.3f}")
            bad += what != "ms" and ratio > NOISE
        axes[2][column].set_xlabel("minutes")
    figure.savefig(FIGURE, dpi=80)
    return bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--plot", action="store_true", help="only draw what is stored")
    given = parser.parse_args()
    if not given.plot:
        soak(given.minutes)
    if plot():
        sys.exit("memory or state has grown by more than a tenth from the middle third to the last")
