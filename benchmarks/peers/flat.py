"""FAISS's flat index of inner products, in an environment of its own (.peers/faiss): a process that waits for a signal.

Argument: JSON with folder (rows.npy, queries.npy), k, n, fill, batch, shown. The last n of the first `fill` rows are in
the index before it says "ready". At a line on stdin every push is added, what is older than n goes, and all queries
search again: a flat index has no other way to know who is concerned.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import faiss
import numpy as np


def main() -> None:
    p: dict[str, Any] = json.loads(sys.argv[1])
    faiss.omp_set_num_threads(1)
    folder = Path(p["folder"])
    rows, queries = np.load(folder / "rows.npy"), np.load(folder / "queries.npy")
    index = faiss.IndexFlatIP(rows.shape[1])
    oldest = max(0, p["fill"] - p["n"])
    index.add(rows[oldest : p["fill"]])
    found = np.empty((len(queries), 0), np.int64)
    print("ready", flush=True)
    sys.stdin.readline()
    for low in range(p["fill"], len(rows), p["batch"]):
        index.add(rows[low : low + p["batch"]])
        gone = index.ntotal - p["n"]
        if gone > 0:
            index.remove_ids(np.arange(gone))  # the places of the others move up
            oldest += gone
        found = index.search(queries, p["k"])[1]
    answers = (found[: p["shown"]] + oldest).tolist()
    print(json.dumps({"rows": len(rows) - p["fill"], "answers": answers}), flush=True)


if __name__ == "__main__":
    main()
