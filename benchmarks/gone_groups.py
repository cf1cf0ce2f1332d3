"""`python -m benchmarks.gone_groups`: the memory of groups that come and go, for each kind of query and algorithm.

A stream in which every group has some rows at one time and never returns. A line for each case: rows a second, the
bytes that a group costs for ever (resident memory that was added per group, after the first tenth), and the median of
the last third of the samples over that of the middle third. Every case runs in a process of its own.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.query.algorithms import algorithms

SPAN = sb.Last(span=10)
TIMED = {"id": "i", "time": "t", "emit": "batch"}


def cases() -> dict[str, tuple[Any, dict[str, Any]]]:
    """A query for each kind and algorithm, with options of its Monitor."""
    made: dict[str, tuple[Any, dict[str, Any]]] = {}
    for row in algorithms():
        if "time" not in row.windows or not row.grouped:
            continue
        kind, own = row.kinds[0], {"per": "g", "algorithm": row.name}
        by: Any = sb.Nearest({"x": 0.5, "y": 0.5}) if row.scorings == "nearest" else "x"
        by = ("x", "y") if "ranks" in row.takes else by
        queries: dict[str, Any] = {
            "TopK": (sb.TopK, (2, by, SPAN)),
            "TopKPairs": (sb.TopKPairs, (2, "abs(a.x - b.x)", SPAN)),
            "TopKIncomplete": (sb.TopKIncomplete, (2, ["a", "b"], SPAN)),
            "TopKUncertain": (sb.TopKUncertain, (2, by, SPAN)),
            "TopKGroups": (partial(sb.TopKGroups, of="y"), (2, "count(*)", SPAN)),
        }
        make, values = queries[kind]
        query = make(*values, **own)
        made[f"{kind} {row.name}"] = (query, TIMED)
    made["Above"] = (sb.Above(0.5, "x", SPAN, per="g"), TIMED)
    made["TopKIncomplete repeat"] = (sb.TopKIncomplete(2, ["a", "b"], SPAN, per="g", repeat="last"), TIMED)
    made["TopKUncertain group"] = (sb.TopKUncertain(2, "x", SPAN, per="g", group="y"), TIMED)
    made["TopKPairs NumPy"] = (sb.TopKPairs(2, "a.x / (1 + b.x)", SPAN, per="g", symmetric=False), TIMED)
    deletable = {"id": "i", "time": "t", "op": "op", "emit": "batch"}
    made["UntilDeleted"] = (sb.TopK(2, "x", sb.UntilDeleted(), per="g"), deletable)
    made["Above UntilDeleted"] = (sb.Above(0.5, "x", sb.UntilDeleted(), per="g"), deletable)
    made["TopK forgotten"] = (sb.TopK(2, "x", sb.Last(5), per="g"), {**TIMED, "forget": 10})
    made["TopKPairs forgotten"] = (sb.TopKPairs(2, "abs(a.x - b.x)", sb.Last(5), per="g"), {**TIMED, "forget": 10})
    return made


def rows(batch: int, groups: int, each: int, *, deletes: bool) -> pa.Table:
    """The rows of one batch: so many groups that have not been there before."""
    size = groups * each
    rng = np.random.default_rng(batch)
    first, number = batch * size, np.arange(size)
    table = {
        "t": np.full(size, 10 * batch),
        "g": [f"group {batch * groups + g}" for g in range(groups)] * each,
        "i": [f"id {first + n}" for n in range(size)],
        "x": rng.random(size),
        "y": rng.integers(0, 4, size),
        "p": np.full(size, 0.25),
        "part": np.where(number // groups % 2 == 0, "a", "b"),
        "value": rng.random(size),
        "op": np.full(size, "insert"),
    }
    made = pa.table(table)
    if not deletes:
        return made
    return pa.concat_tables([made, made.set_column(made.column_names.index("op"), "op", pa.array(["delete"] * size))])


def resident() -> int:
    """Resident bytes of this process, without what the allocator holds back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(name: str, groups: int, each: int, at_once: int) -> dict[str, Any]:
    query, options = cases()[name]
    monitor = sb.Monitor(query, **options)
    samples, took, batches = [], 0.0, groups // at_once
    stride = max(1, batches // 300)
    for batch in range(batches):
        table = rows(batch, at_once, each, deletes="op" in options)
        begin = time.process_time()
        monitor.push(table)
        took += time.process_time() - begin
        if batch % stride == 0:
            samples.append(resident())
    third = len(samples) // 3
    tenth = len(samples) // 10
    middle, last = (float(np.median(part)) for part in (samples[third : 2 * third], samples[2 * third :]))
    return {
        "case": name,
        "groups": groups,
        "rows": groups * each,
        "rows_per_s": round(groups * each / took),
        "bytes_per_group": round((samples[-1] - samples[tenth]) / (stride * at_once * (len(samples) - 1 - tenth)), 1),
        "resident_mb": round(last / 1e6),
        "last_over_middle": round(last / middle, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--each", type=int, default=4, help="rows of a group")
    parser.add_argument("--at-once", type=int, default=500, help="groups of a push")
    parser.add_argument("--only", action="append", help="cases whose names begin so")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(given.case, given.groups, given.each, given.at_once)))
        return
    sizes = [f"--groups={given.groups}", f"--each={given.each}", f"--at-once={given.at_once}"]
    for name in cases():
        if not given.only or any(name.startswith(only) for only in given.only):
            command = [sys.executable, "-m", "benchmarks.gone_groups", *sizes, "--case", name]
            print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
