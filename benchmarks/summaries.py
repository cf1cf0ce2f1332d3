"""Tables of the cost of cycles of preference queries, from stored rows; `docs/reproduce.md` quotes them."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.drawing import TABLE_2, TABLE_2_K, axis_of, megabytes, panels_of, per_cycle
from benchmarks.store import Row

Measure = Callable[[Row], list[float]]


def cycles(rows: list[Row]) -> list[str]:
    """Milliseconds, scores and visited cells of a cycle, megabytes, a query's searches in a hundred cycles: medians."""
    lines = []
    for (cell, data), some in panels_of(rows).items():
        axis = axis_of(some)
        points = sorted({row.parameters[axis] for row in some})
        lines += ["", f"**{data}, {cell}**", ""]
        lines += [f"| | {' | '.join(f'{axis}={point:,}' for point in points)} |", "|---" * (len(points) + 1) + "|"]
        for name in dict.fromkeys(row.contestant for row in some):
            mine = [row for point in points for row in some if (row.contestant, row.parameters[axis]) == (name, point)]
            for what, measure in MEASURES.items():
                if all(measure(row) for row in mine):
                    values = [f"{statistics.median(measure(row)):.3g}" for row in mine]
                    lines.append(f"| {name}, {what} | {' | '.join(values)} |")
    return lines


def sizes(rows: list[Row]) -> list[str]:
    """Objects per query, mean of the seeds, and the paper's Table 2."""
    lines = ["", f"| | {' | '.join(f'k={k}' for k in TABLE_2_K)} |", "|---" * (len(TABLE_2_K) + 1) + "|"]
    for (data, name), paper in TABLE_2.items():
        mine = {
            row.parameters["k"]: statistics.fmean(row.counters["objects"])
            for row in rows
            if (row.parameters["data"], row.contestant) == (data, name)
        }
        lines.append(f"| {data}, {name} | {' | '.join(f'{mine[k]:.1f}' if k in mine else '' for k in TABLE_2_K)} |")
        lines.append(f"| {data}, {name}, Table 2 | {' | '.join(f'{size:.1f}' for size in paper)} |")
    return lines


def _counted(counter: str, per: Callable[[Row], float]) -> Measure:
    def measure(row: Row) -> list[float]:
        counts = zip(row.counters.get(counter, []), row.counters["cycles"], strict=False)
        return [count / cycles * per(row) for count, cycles in counts]

    return measure


MEASURES: dict[str, Measure] = {
    "ms": per_cycle,
    "MB": megabytes,
    "searches": _counted("searches", lambda row: 100 / row.parameters["queries"]),
    "thousand scores": _counted("scored", lambda _: 1e-3),
    "cells visited": _counted("visited", lambda _: 1.0),
}
SUMMARIES: dict[str, Callable[[list[Row]], list[str]]] = {"cycles": cycles, "cycles_and_space": cycles, "sizes": sizes}
