"""python -m benchmarks.scale: the costs of skyband.explain.spark_load from scale.toml's rows, and their error.

The cells "fit" give the costs, by hand as docs/scale.md tells; the cells "check", ten times as large, are predicted.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence

import skyband as sb
from benchmarks import store
from skyband.explain import spark_load

CORES = 2  # of the runs


def fitted(rows: Sequence[store.Row]) -> dict[str, float]:
    """One equation for each cost. START, of starting the query, is no cost of a trigger."""
    large, small, long, few = (row for row in rows if row.cell == "fit")
    (queries,) = (row for row in rows if row.cell == "fit, queries")
    again = (_work(long) - _work(small)) / (_count(long) - _count(small))
    start = max(0.0, _work(small) - _count(small) * again)
    of_large, of_small, of_few, of_queries = (_each(row, start) for row in (large, small, few, queries))
    key = max(0.0, (of_large - of_few) / (_touched(large) - _touched(few)))
    grown = of_large - of_small - key * (_touched(large) - _touched(small))
    row = max(0.0, grown / (large.parameters["file"] - small.parameters["file"]))
    trigger = of_small - row * small.parameters["file"] - key * _touched(small)
    return {
        "START": start,
        "TRIGGER": trigger,
        "ROW": row,
        "KEY": key,
        "SHARED": max(0.0, (of_queries - trigger) / queries.parameters["file"] - row),
        "ALONE": max(0.0, _value(small, "trigger_ms") / 1000 - of_small / CORES),
        "SENT": _value(large, "shuffle_bytes") / (_count(large) * _sent(large)),
        "KEPT": _value(large, "state_bytes") / _value(large, "objects"),
    }


def compared(rows: Sequence[store.Row]) -> list[tuple[str, str, float, float]]:
    """Of each run: what, as predicted by the costs that spark_load has, and as measured."""
    found = []
    start = fitted(rows)["START"]
    for row in rows:
        p = row.parameters
        rate = p["per_day"] / 86400 if "per_day" in p else p["per_10_minutes"] / 600
        keys, queries = p.get("keys", 1), p.get("queries", 1)
        said = sb.explain(_query(row), rate=rate, keys=keys, queries=queries, every=p["file"] / rate).load
        assert said is not None
        seconds = spark_load.ALONE + said.work / CORES
        shuffled = _value(row, "shuffle_bytes") / _count(row)
        found += [
            (row.contestant, "core-seconds of a trigger", said.work, _each(row, start)),
            (row.contestant, "seconds of a trigger", seconds, _value(row, "trigger_ms") / 1000),
            (row.contestant, "MB shuffled in a trigger", spark_load.SENT * _sent(row) / 1e6, shuffled / 1e6),
            (row.contestant, "MB of state", said.state_bytes / 1e6, _value(row, "state_bytes") / 1e6),
        ]
    return found


def _each(row: store.Row, start: float) -> float:
    """Core-seconds of a trigger."""
    return (_work(row) - start) / _count(row)


def _work(row: store.Row) -> float:
    """Core-seconds of the whole run."""
    return _value(row, "cpu_seconds")


def _count(row: store.Row) -> int:
    return len([one for one in row.triggers[0] if one["rows"]])


def _touched(row: store.Row) -> float:
    keys, rows = row.parameters["keys"], row.parameters["file"]
    return float(keys * (1 - (1 - 1 / keys) ** rows))


def _query(row: store.Row) -> sb.TopK:
    """The contestant's query: per key by a column, or near a point."""
    p = row.parameters
    if "keys" in p:
        return sb.TopK(p["k"], by="score", window=sb.Last(p["window"]), per="key")
    return sb.TopK(p["k"], by=sb.Nearest({"x1": 0.5, "x2": 0.5}), window=sb.Last(p["window"]))


def _sent(row: store.Row) -> float:
    p = row.parameters
    return spark_load.sent_rows(_query(row), p["file"], p.get("keys", 1), p.get("queries", 1), CORES)


def _value(row: store.Row, counter: str) -> float:
    return float(statistics.median(row.counters[counter]))


def main() -> int:
    rows = store.read("scale")
    if not rows:
        print("scale: no results yet. Run: python -m benchmarks.run scale", file=sys.stderr)
        return 1
    for name, cost in fitted(rows).items():
        print(f"{name} = {cost:.3g}, in spark_load {getattr(spark_load, name, math.nan):.3g}")
    print("\n| run | what | predicted | measured | error |\n|---|---|---|---|---|")
    for run, what, predicted, measured in compared(rows):
        error = f"{predicted / measured - 1:+.0%}" if measured else ""
        print(f"| {run} | {what} | {predicted:.3g} | {measured:.3g} | {error} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
