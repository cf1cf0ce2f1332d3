"""What a small trigger costs on Spark, and whose cost it is: `python -m benchmarks.small_triggers [TRIGGERS] [ROWS]`.

Three queries take turns over the same files, one file a trigger: an operator in Python that only counts its calls, the
same with skyband's mappers around it, and `sbs.monitor` (10 best of 20 keys over 24 hours). Each line is one query:
milliseconds of a trigger (median, 99th percentile) by the clock and by Spark's own division of it, and processor time
of all Python workers together. The first trigger of a run, which plans and starts workers, is left out of the clock's.
Ratios in one run count; times are those of the machine at that moment.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

import skyband as sb
import skyband.spark as sbs
from benchmarks.spark import peers
from benchmarks.spark.streaming import read, session, through, write
from benchmarks.spark.workers import processes

PARTS = ("triggerExecution", "addBatch", "queryPlanning", "walCommit", "commitOffsets", "latestOffset", "getBatch")
WARM = 8  # triggers that are not counted: workers start, kernels load, Java compiles
SHARDS = 2


def monitor(df: DataFrame) -> DataFrame:
    query = sb.TopK(10, by="x", window=sb.Last("24 hours"), per="key")
    return sbs.monitor(df, query, id="id", time="time", shards=SHARDS)


def rows(triggers: int, size: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    count = triggers * size
    return {
        "id": np.arange(count),
        "time": np.datetime64("2024-01-01", "us") + np.arange(count) * np.timedelta64(10, "s"),
        "key": rng.integers(0, 20, count),
        "x": rng.random(count),
    }


def main(triggers: int = 60, size: int = 100) -> None:
    """Print a line of JSON per query."""
    queries: dict[str, Callable[[DataFrame], DataFrame]] = {
        "trivial operator": peers.idle_by_group,
        "packed, trivial operator": lambda df: peers.idle_by_shard(df, SHARDS),
        "sbs.monitor": monitor,
    }
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        session()
        stream, turns = rows(triggers + WARM, size), 3
        times: dict[str, list[dict[str, float]]] = {name: [] for name in queries}
        used = dict.fromkeys(queries, 0.0)
        bounds = [0, WARM, *(WARM + triggers * (turn + 1) // turns for turn in range(turns))]
        for number, (begin, end) in enumerate(itertools.pairwise(bounds)):
            write(place / "in", stream, [i * size for i in range(begin, end + 1)])
            for name, query in queries.items():
                before = sum(processes().values())
                progress = through(query(read(place / "in", 1)), place / name)
                if number:
                    used[name] += sum(processes().values()) - before
                    times[name] += [one.durationMs for one in progress[1:] if one.numInputRows]  # the first plans
        for name, mine in times.items():
            line: dict[str, Any] = {"query": name, "triggers": len(mine), "rows": size}
            for part in PARTS:
                found = [one.get(part, 0) for one in mine]
                line[part] = [round(float(np.percentile(found, at))) for at in (50, 99)]
            line["python_ms"] = round(1000 * used[name] / triggers, 1)
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
