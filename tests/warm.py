"""Compiles what the tests will run, in two processes, each kernel in one: `python -m tests.warm`.

Workers of pytest that meet a kernel at the same time would each compile it. A kernel that no task here meets is
compiled when it is met; nothing depends on this file but time.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import skyband as sb

ROWS = 3000
EACH = "each"  # four groups, in turn
DATA: dict[str, Any] = {
    "t": np.arange(ROWS),
    "x": np.linspace(0, 1, ROWS) ** 2 % 0.1,
    "y": np.linspace(0, 1, ROWS) ** 3 % 0.1,
    "p": 0.05 + np.linspace(0, 1, ROWS) ** 2 % 0.9,
    "id": np.arange(ROWS) % 700,
    "part": ["n", "s", "w"] * (ROWS // 3),
    "value": np.linspace(0, 1, ROWS) ** 3 % 1,
    EACH: np.arange(ROWS) % 4,
}
PIECES = [{name: column[begin:end] for name, column in DATA.items()} for begin, end in ((0, 2000), (2000, ROWS))]
STREAMS = (sb.Last(50), sb.Last(span=50))


def play(queries: Any, **options: Any) -> None:
    """Call the methods of a Monitor that run kernels."""
    monitor = sb.Monitor(queries, time="t", **options)
    for piece in PIECES:
        monitor.push(piece)
    monitor = sb.Monitor.restore(monitor.snapshot())
    monitor.advance(ROWS + 10)
    for name, query in monitor.queries.items():
        monitor.answer(name)
        monitor.replace(name, query)


def both(*algorithms: str, windows: tuple[Any, ...] = STREAMS, by: Any = "x") -> None:
    for algorithm in algorithms:
        for window in windows:
            query = sb.TopK(3, by=by, window=window, algorithm=algorithm)
            play(query)
            play([query, sb.TopK(3, by=by, window=window, algorithm=algorithm, where="y > 0.01")], emit="batch")
            if algorithm != "ADAPTIVE":
                play(sb.TopK(3, by=by, window=window, algorithm=algorithm, per=EACH))


def families(algorithm: str) -> None:
    for by in (sb.Nearest, sb.Linear):
        for window in STREAMS[: 1 if algorithm == "PA" else 2]:
            for emit in ("arrival", "batch"):
                some = [
                    sb.TopK(2, by=by({"x": i / 50, "y": 0.5}), window=window, algorithm=algorithm) for i in range(50)
                ]
                play(some, emit=emit)


def grids(algorithm: str) -> None:
    for by in (sb.Linear({"x": 1, "y": 2}), sb.Nearest({"x": 0.2, "y": 0.1})):
        both(algorithm, by=by)


def kept() -> None:
    query = sb.TopK(2, by=sb.Linear({"x": 1, "y": 2}), window=sb.UntilDeleted())
    monitor = sb.Monitor([query, sb.Above(0.1, by="x + y", window=sb.UntilDeleted())], id="t")
    monitor.push(DATA)
    monitor.delete([1, 2, 3])


def pairs() -> None:
    for algorithm in ("SCASE", "TA", "BASIC", "NAIVE"):
        for window in STREAMS:
            play(sb.TopKPairs(3, by=sb.Global({"x": "absdiff"}), window=window, algorithm=algorithm))
    play(sb.TopKPairs(3, by="abs(a.x - b.x) * abs(a.y + b.y)", window=STREAMS[0]), emit="batch")


def parts() -> None:
    for algorithm in ("SWEEP", "EAA", "SLA", "APPROX", "BUDGET"):
        for window in STREAMS:
            play(sb.TopKIncomplete(3, parts=["n", "s", "w"], window=window, algorithm=algorithm), id="id")
    play(sb.TopKIncomplete(3, parts=["n", "s", "w"], window=STREAMS[0], repeat="last"), id="id", emit="batch")


def doubts() -> None:
    for algorithm in ("DOM", "BS"):
        for window in STREAMS:
            play(sb.TopKUncertain(3, by="x", window=window, algorithm=algorithm, semantics="u-topk"))
    play(sb.TopKUncertain(3, by="x", window=STREAMS[0], group=EACH, semantics="u-kranks"))


#: Two lists of tasks of about the same length; tasks that share kernels are in one list.
TASKS: tuple[list[Callable[[], None]], list[Callable[[], None]]] = (
    [
        lambda: both("BLOCK", "SA"),
        lambda: families("BLOCK"),
        lambda: both("PA", "ADAPTIVE", windows=STREAMS[:1]),
        lambda: families("PA"),
        pairs,
        doubts,
    ],
    [
        lambda: both("RA", "SASF", "SARF", "SAPF", "RASF", "RARF", "RAPF"),
        lambda: families("RAPF"),
        lambda: grids("TMA"),
        lambda: grids("SMA"),
        lambda: grids("TSL"),
        kept,
        parts,
    ],
)


def main() -> None:
    if len(sys.argv) == 1:
        # the colours of error messages that nothing shows take a twentieth of the compiler's time
        plain = {**os.environ, "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1"}
        commands = [[sys.executable, "-m", "tests.warm", str(which)] for which in range(len(TASKS))]
        runs = [subprocess.Popen(command, env=plain) for command in commands]
        sys.exit(max(run.wait() for run in runs))
    warnings.simplefilter("error")
    gc.disable()  # the compiler makes many objects and keeps them: a tenth of its time
    for task in TASKS[int(sys.argv[1])]:
        task()


if __name__ == "__main__":
    main()
