"""skyband in a session of its own process: classic, or a Spark Connect client of a server on the same machine.

A process has either kind of session, never both, so each contestant is a child process. It gets ready as the others do
(files, the same query over the first rows), waits for a line, runs, answers with a line: what is timed lies between.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import checks
from benchmarks.contestants import Outcome, Ready
from benchmarks.workloads import Stream


def spark_session(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """`spark_monitor` in a child process, over Connect with `connect`."""
    folder = tempfile.TemporaryDirectory()
    plain: dict[str, Any] = {name: one.astype(str) if one.dtype == object else one for name, one in stream.items()}
    np.savez(Path(folder.name, "stream.npz"), **plain)
    Path(folder.name, "parameters.json").write_text(json.dumps(p))
    env = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    child = subprocess.Popen(
        [sys.executable, "-m", __name__, folder.name],
        env=env | {"SPARK_REMOTE": "local[2]"} if p["connect"] else env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def line() -> Any:
        assert child.stdout is not None
        return json.loads(child.stdout.readline() or f'"the process ended: {child.wait()}"')

    said = line()
    if said != "ready":
        raise RuntimeError(f"{p['connect']=}: {said}")

    def work() -> Any:
        assert child.stdin is not None
        print("run", file=child.stdin, flush=True)
        return line()

    def after(said: Any) -> Outcome:
        with folder, child:
            found = line()
        return Outcome(found["answer"], checks.sums_to_best, found["counters"], found["triggers"])

    return Ready(work, after)


def main(folder: Path) -> None:
    """The child."""
    from benchmarks.spark.contestants import spark_monitor

    with np.load(folder / "stream.npz") as stored:
        stream = dict(stored)
    ready = spark_monitor(stream, json.loads((folder / "parameters.json").read_text()))
    print(json.dumps("ready"), flush=True)
    sys.stdin.readline()
    result = ready.work()
    print(json.dumps("done"), flush=True)
    outcome = ready.after(result)
    found = {"answer": outcome.answer, "counters": outcome.counters, "triggers": outcome.triggers}
    print(json.dumps(found, default=float), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
