"""Contestants over vectors: a Monitor with many standing, BLAS's bare products of all scores, FAISS's flat index.

Parameters: queries, d, k, n, fill, rows, batch; of the workload `vectors` (clusters). `pause`: what a yardstick adds to
each push, in seconds. Let BLAS have as many threads for all: OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import skyband as sb
from benchmarks.contestants import Outcome, Ready
from benchmarks.peers.processes import Peer
from benchmarks.workloads import Stream, unit_vectors

CHECKED = 5  # queries whose answers are compared with a sort of all scores


def similar_push(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor whose subscriptions bring vectors; every change at its arrival."""
    query = sb.TopK(p["k"], sb.Similar("e", sb.Each("v"), "dot"), sb.Last(p["n"]))
    monitor = sb.Monitor({"alerts": query}, id="id")
    monitor.subscribe("alerts", {"subscriber": np.arange(p["queries"]), "v": _queries(p)})
    for table in _tables(stream, 0, p["fill"], 2000):
        monitor.push(table)
    tables = list(_tables(stream, p["fill"], len(stream["e"]), p["batch"]))

    def after(changes: list[int]) -> Outcome:
        found = [monitor.answer("alerts", subscriber=i)["id"].to_pylist() for i in range(min(CHECKED, p["queries"]))]
        return Outcome(found, _is_right, {"rows": p["rows"], "changes": sum(changes)})

    return Ready(lambda: [monitor.push(table).num_rows for table in tables], after)


def bare_products(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A yardstick: all scores by single-precision products, which nobody looks at; after each push `pause` seconds."""
    queries, pause = _queries(p), p.get("pause", 0.0)
    pieces = [stream["e"][low : low + p["batch"]] for low in range(p["fill"], len(stream["e"]), p["batch"])]
    out = np.zeros((len(queries), p["batch"]), np.float32)
    alone = np.zeros(len(queries), np.float32)

    def work() -> float:
        for piece in pieces:
            if len(piece) == 1:
                np.dot(queries, piece[0], out=alone)
            else:
                np.matmul(queries, piece.T, out=out[:, : len(piece)])
            end = time.process_time() + pause
            while pause and time.process_time() < end:
                pass
        return float(alone[0] + out[0, 0])

    return Ready(work, lambda sum_: Outcome(sum_, lambda stream, p, given: given == given, {"rows": p["rows"]}))


def faiss_flat(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """FAISS's IndexFlatIP in a process of its own: each push is added, the oldest are removed, all queries search."""
    folder = Path(tempfile.mkdtemp())
    np.save(folder / "rows.npy", stream["e"])
    np.save(folder / "queries.npy", _queries(p))
    sizes = {name: p[name] for name in ("k", "n", "fill", "batch")}
    peer = Peer("faiss", "flat.py", {"folder": str(folder), "shown": CHECKED} | sizes, folder / "log")

    def after(said: dict[str, Any]) -> Outcome:
        peer.close()
        return Outcome(said["answers"], _is_right, {"rows": said["rows"]})

    return Ready(peer.go, after)


def _queries(p: Mapping[str, Any]) -> NDArray[np.float32]:
    """The vectors that stand: others than those of rows, around the same centres."""
    return unit_vectors(p["queries"], 10_007, p)


def _tables(stream: Stream, begin: int, end: int, size: int) -> Iterator[Any]:
    for low in range(begin, end, size):
        piece = stream["e"][low : min(low + size, end)]
        column = pa.FixedSizeListArray.from_arrays(pa.array(piece.reshape(-1)), piece.shape[1])
        yield pa.table({"id": np.arange(low, low + len(piece)), "e": column})


def _is_right(stream: Stream, p: Mapping[str, Any], answers: list[list[int]]) -> bool:
    """Whether these are the best of the last n rows, by a sort of all scores; of equal ones by single precision any."""
    first = max(len(stream["e"]) - p["n"], 0)
    scores = _queries(p)[: len(answers)].astype(np.float64) @ stream["e"][first:].T.astype(np.float64)
    for own, answer in zip(scores, answers, strict=True):
        best = np.sort(own)[::-1][: p["k"]]
        if len(set(answer)) != len(best) or not np.allclose(own[np.array(answer) - first], best, rtol=0, atol=1e-6):
            return False
    return True
