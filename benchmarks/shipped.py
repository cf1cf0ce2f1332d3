"""python -m benchmarks.shipped [ROUNDS]: kernels compiled ahead against native ones, and first answers of processes.

Prints one row of JSON for each; `make bench-shipped` keeps them in benchmarks/shipped.jsonl. Speeds: core-seconds of
the pushes of some cells of topk-goals and pairs-goals, the two turn by turn in processes of their own; the ratio is
native / shipped (medians), so below 1 shipped kernels are slower. First answers: core-seconds of a whole process,
the second slowest of 5. Of an installed wheel: `cd benchmarks && PYTHON -m shipped first`, where PYTHON is the
environment's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

FIRST = ("one TopK", "400 Nearest", "pairs", "incomplete", "uncertain", "Above", "groups")
SPEED = ("one TopK", "400 Nearest", "400 Nearest, k=81", "pairs, SCASE", "pairs, TA")


def rows_of(count: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(7)
    columns = {name: rng.random(count) for name in ("x", "y", "z", "value")}
    numbers = np.arange(count)
    return {
        **columns,
        "p": 0.05 + 0.9 * columns["y"],
        "id": numbers // 2,
        "part": list("ab") * (count // 2),
        "g": numbers % 20,
    }


def query_of(name: str, n: int, k: int) -> Any:
    import skyband as sb

    window = sb.Last(n)
    sites = [i / 400 for i in range(400)]
    distance = sb.Global({"x": "absdiff", "y": "absdiff", "z": "absdiff"})
    queries: dict[str, Callable[[], Any]] = {
        "one TopK": lambda: sb.TopK(k, by="x", window=window),
        "400 Nearest": lambda: [sb.TopK(k, by=sb.Nearest({"x": i, "y": 1 - i}), window=window) for i in sites],
        "400 Nearest, k=81": lambda: [sb.TopK(81, by=sb.Nearest({"x": i, "y": 1 - i}), window=window) for i in sites],
        "pairs": lambda: sb.TopKPairs(k, by=distance, window=window),
        "pairs, SCASE": lambda: sb.TopKPairs(k, by=distance, window=sb.Last(n // 4), algorithm="SCASE"),
        "pairs, TA": lambda: sb.TopKPairs(k, by=distance, window=sb.Last(n // 4), algorithm="TA"),
        "incomplete": lambda: sb.TopKIncomplete(k, parts=["a", "b"], window=window),
        "uncertain": lambda: sb.TopKUncertain(k, by="x", window=window),
        "Above": lambda: sb.Above(0.9, by="x", window=window),
        "groups": lambda: sb.TopK(k, by="x", window=window, per="g"),
    }
    return queries[name]()


def answer(name: str, count: int, n: int, pieces: int) -> None:
    """Push, answer, and print the core-seconds of the pushes but the first."""
    import skyband as sb

    monitor = sb.Monitor(query_of(name, n, 9), id="id" if name == "incomplete" else None)
    rows, size, seconds = rows_of(count), count // pieces, 0.0
    for begin in range(0, count, size):
        batch = {column: values[begin : begin + size] for column, values in rows.items()}
        started = time.process_time()
        monitor.push(batch)
        seconds += (time.process_time() - started) if begin else 0.0
    monitor.answer(next(iter(monitor.queries)))
    print(seconds)


def process(name: str, *arguments: int, kernels: str = "shipped") -> tuple[float, float]:
    """Answer in a process of its own: core-seconds of its pushes, and of the whole."""
    command = [sys.executable, __file__, "answer", name, *map(str, arguments)]
    started = subprocess.Popen(command, env={**os.environ, "SKYBAND_KERNELS": kernels}, stdout=subprocess.PIPE)
    assert started.stdout is not None
    printed = started.stdout.read()
    _, status, usage = os.wait4(started.pid, 0)
    assert status == 0, f"{name} failed"
    return float(printed), usage.ru_utime + usage.ru_stime


def speeds(rounds: int) -> None:
    for name in SPEED:
        size = (40_000, 2_500, 20) if "pairs" in name else (1_000_000, 40_000, 10)
        process(name, *size, kernels="native")  # compiles
        found: dict[str, list[float]] = {"native": [], "shipped": []}
        for _ in range(rounds):
            for kernels, seconds in found.items():
                seconds.append(process(name, *size, kernels=kernels)[0])
        ratio = median(found["native"]) / median(found["shipped"])
        say({"what": "native / shipped", "cell": name, "ratio": round(ratio, 3), "seconds": found})


def first_answers() -> None:
    for name in FIRST:
        process(name, 2_000, 500, 1)
        seconds = sorted(round(process(name, 2_000, 500, 1)[1], 3) for _ in range(5))
        say({"what": "first answer", "cell": name, "second slowest of 5": seconds[-2], "seconds": seconds})


def say(row: dict[str, Any]) -> None:
    import platform
    from importlib.metadata import version

    versions = {name: version(name) for name in ("skyband", "numba", "numpy", "pyarrow")}
    print(
        json.dumps(row | {"python": platform.python_version(), "versions": versions, "load": os.getloadavg()[0]}),
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["answer"]:
        answer(sys.argv[2], *map(int, sys.argv[3:]))
    elif sys.argv[1:] == ["first"]:
        first_answers()
    else:
        first_answers()
        speeds(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
