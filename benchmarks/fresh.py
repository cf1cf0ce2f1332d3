"""A fresh Python process: the time of the import and of the first push, and the memory of both.

`start` runs this very file in a new process; that part imports nothing heavy before the clock runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

TIMEOUT = 300  # seconds
SITES = "sites.of.queries"  # where Nearest queries stand; np.save adds .npy


def start(stream: Mapping[str, Any], p: Mapping[str, Any]) -> dict[str, Any]:
    """Push the stream in a new process. Gives its answer, and counters."""
    import numpy as np

    from benchmarks.workloads import sites

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        environment = dict(os.environ)
        if p.get("cold"):
            environment |= {"NUMBA_CACHE_DIR": str(folder / "compiled"), "SKYBAND_KERNELS": "native"}
        for name, column in stream.items():
            np.save(folder / f"{name}.npy", column)
        if "queries" in p:
            np.save(folder / SITES, sites(stream, p))
        done = subprocess.run(
            [sys.executable, __file__, str(folder), str(p["n"]), str(p["k"]), str(p["batch"])],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"the new process failed:\n{done.stderr}")
    printed: dict[str, Any] = json.loads(done.stdout)
    printed["counters"]["said_compiling"] = int("kernels are compiled" in done.stderr)
    return printed


def main(folder: Path, n: int, k: int, size: int) -> None:
    """In the new process: time the import and the first push, push the rest, tell."""
    began = time.perf_counter()
    import skyband as sb

    _ = sb.Monitor, sb.TopK  # names are loaded when they are first used
    imported = time.perf_counter()
    pyspark = "pyspark" in sys.modules

    import numpy as np
    import pyarrow as pa

    pa.set_cpu_count(1)
    stream = {path.stem: np.load(path, mmap_mode="r") for path in sorted(folder.glob("*.npy"))}
    points = stream.pop(SITES, None)
    rows, keyed = len(next(iter(stream.values()))), "key" in stream
    batches = [
        {name: np.array(column[at : at + size]) for name, column in stream.items()} for at in range(0, rows, size)
    ]
    queries = {"q0": sb.TopK(k, by="score", window=sb.Last(n), per="key" if keyed else None)}
    if points is not None:
        scorings = [sb.Nearest(dict(zip(stream, point, strict=True))) for point in points.tolist()]
        queries = {f"q{number}": sb.TopK(k, by=by, window=sb.Last(n)) for number, by in enumerate(scorings)}
    monitor = sb.Monitor(queries)
    ready, worked = time.perf_counter(), time.process_time()
    changes = [monitor.push(batches[0])]
    pushed, done = time.perf_counter(), time.process_time()
    changes += [monitor.push(batch) for batch in batches[1:]]

    answers = [monitor.answer(name) for name in queries]
    counters = {
        "import_seconds": imported - began,
        "first_push_seconds": pushed - ready,
        "first_push_cpu_seconds": done - worked,  # apart from other processes
        "peak_bytes": peak_bytes(),
        "pyspark_loaded": int(pyspark),
        "changes": sum(table.num_rows for table in changes),
        "objects": monitor.stats()["queries"]["q0"]["objects"],
        "bytes": monitor.stats()["queries"]["q0"]["bytes"],
    }
    group = [number for number, table in enumerate(answers) for _ in range(table.num_rows)]
    answer = pa.concat_tables(answers)
    if keyed:
        group = answer["key"].to_pylist()
    best = {"group": group, "id": answer["id"].to_pylist(), "score": answer["score"].to_pylist()}
    json.dump({"answer": best, "counters": counters}, sys.stdout)


def peak_bytes() -> int:
    """The most memory this process ever held. On Linux ru_maxrss also counts the parent's, before exec."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
