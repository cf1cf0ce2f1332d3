"""What the checks of `Monitor.restore(data, trusted=False)` cost: processor time, the best of seven, turn by turn.

python -m benchmarks.restore
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.query.kinds import Query

TURNS = 7
CASES: dict[str, tuple[Query, int, int]] = {  # a query, rows, groups
    "topk, 1 group": (sb.TopK(100, "x", sb.Last(100_000)), 200_000, 1),
    "topk, 20,000 groups": (sb.TopK(5, "x", sb.Last(1000), per="g"), 400_000, 20_000),
    "topk SASF, 2,000 groups": (sb.TopK(10, "x", sb.Last(1000), per="g", algorithm="SASF"), 200_000, 2000),
    "topk TMA, 1 group": (sb.TopK(10, "x + y", sb.Last(50_000), algorithm="TMA"), 100_000, 1),
    "pairs, 1 group": (sb.TopKPairs(50, sb.Global({"x": "absdiff"}), sb.Last(2000)), 6000, 1),
    "pairs, 500 groups": (sb.TopKPairs(5, sb.Global({"x": "absdiff"}), sb.Last(20), per="g"), 20_000, 500),
    "incomplete, 1 group": (sb.TopKIncomplete(10, ["a", "b"], sb.Last(20_000)), 100_000, 1),
    "incomplete, 1,000 groups": (sb.TopKIncomplete(3, ["a", "b"], sb.Last(100), per="g"), 100_000, 1000),
    "uncertain, 1,000 groups": (sb.TopKUncertain(3, "x", sb.Last(100), per="g"), 100_000, 1000),
}


def rows(size: int, groups: int) -> pa.Table:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {"i": np.arange(size), "t": np.arange(size) // 4, "g": rng.integers(0, groups, size)}
    columns |= {"x": rng.random(size), "y": rng.random(size), "p": rng.uniform(0.05, 0.95, size)}
    columns |= {"who": rng.integers(0, size, size), "value": rng.random(size)}
    return pa.table(columns | {"part": pa.array(np.array(["a", "b"])[rng.integers(0, 2, size)])})


def main() -> None:
    print("| snapshot of | MB | trusted, ms | checked, ms | times |\n|---|---:|---:|---:|---:|")
    for name, (query, size, groups) in CASES.items():
        monitor = sb.Monitor(query, id="who" if query.kind == "TopKIncomplete" else "i", time="t")
        monitor.push(rows(size, groups))
        data, best = monitor.snapshot(), {True: np.inf, False: np.inf}
        for _ in range(TURNS):
            for trusted in best:
                begun = time.process_time()
                sb.Monitor.restore(data, trusted=trusted)
                best[trusted] = min(best[trusted], time.process_time() - begun)
        ms = [1000 * best[True], 1000 * best[False]]
        print(f"| {name} | {len(data) / 1e6:.2f} | {ms[0]:.1f} | {ms[1]:.1f} | {ms[1] / ms[0]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
