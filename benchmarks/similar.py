"""Many vectors standing against the bare matrix product: `python benchmarks/similar.py [--queries 10000] [--one]`.

One core. Prints the process time of pushes over that of the same products by BLAS alone, once the window is full and
while it fills; with --clusters vectors are near some of the queries; with --one pushes are of one document.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

import skyband as sb  # noqa: E402


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--d", type=int, default=384)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=2_000, help="of a push")
    parser.add_argument("--pushes", type=int, default=20, help="that are measured, once the window is full")
    parser.add_argument("--clusters", type=int, default=0)
    parser.add_argument("--one", action="store_true", help="measure pushes of one document")
    parser.add_argument("--metric", default="cosine")
    asked = parser.parse_args()
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(max(1, asked.clusters), asked.d)) * (asked.clusters > 0)
    spread = 0.3 if asked.clusters else 1.0

    def vectors(size: int) -> Any:
        found = centres[rng.integers(len(centres), size=size)] + spread * rng.normal(size=(size, asked.d))
        return (found / np.linalg.norm(found, axis=1)[:, None]).astype(np.float32)

    queries = vectors(asked.queries)
    query = sb.TopK(asked.k, sb.Similar("embedding", sb.Each("vector"), asked.metric), sb.Last(asked.n))
    monitor = sb.Monitor({"alerts": query}, id="id")
    before = peak()
    monitor.subscribe("alerts", {"subscriber": np.arange(asked.queries), "vector": queries})
    serial, filling, bare_filling, changes = 0, 0.0, 0.0, 0
    warm(monitor, queries)

    def push(rows: int) -> tuple[float, float]:
        nonlocal serial, changes
        batch = vectors(rows)
        table = pa.table({"id": np.arange(serial, serial + rows), "embedding": as_column(batch)})
        serial += rows
        began = time.process_time()
        changes += monitor.push(table).num_rows
        mine = time.process_time() - began
        out = np.empty((asked.queries, rows), np.float32)
        out[:] = 0
        began = time.process_time()
        np.matmul(queries, batch.T, out=out) if rows > 1 else np.dot(queries, batch[0])
        return mine, time.process_time() - began

    while serial < asked.n:
        mine, bare = push(min(asked.rows, asked.n - serial))
        filling, bare_filling = filling + mine, bare_filling + bare
    rows = 1 if asked.one else asked.rows
    times = np.array([push(rows) for _ in range(asked.pushes)])
    engine: Any = next(iter(monitor._loop.state.subscribed.values())).engine
    print(
        f"queries={asked.queries} d={asked.d} k={asked.k} n={asked.n} rows={rows} clusters={asked.clusters}: "
        f"filling {filling / bare_filling:.2f}x, full {times[:, 0].sum() / times[:, 1].sum():.2f}x of the bare product "
        f"({np.median(times[:, 0]) * 1e3:.2f} ms of {np.median(times[:, 1]) * 1e3:.2f} ms a push), "
        f"{changes:,} changes, lanes deepened {engine.work[2]:,}, rescored {engine.work[0]:,}, "
        f"peak memory {(peak() - before) / 2**20:.0f} MiB beside the queries"
    )


def warm(monitor: sb.Monitor, queries: Any) -> None:
    """Compile kernels and load BLAS before anything is measured."""
    other = sb.Monitor({"alerts": monitor.queries["alerts"]}, id="id")
    other.subscribe("alerts", {"subscriber": [0, 1], "vector": queries[:2]})
    for _ in range(3):
        other.push({"id": np.arange(300), "embedding": np.resize(queries, (300, queries.shape[1]))})


def as_column(batch: Any) -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(batch.reshape(-1)), batch.shape[1])


def peak() -> int:
    """The largest memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
