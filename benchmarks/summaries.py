"""Tables of what the cycles of preference queries cost, from stored rows: what `docs/reproduce.md` quotes."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.charts import TABLE_2, TABLE_2_K, axis_of, megabytes, per_cycle
from benchmarks.store import Row

Measure = Callable[[Row], list[float]]


def cycles(rows: list[Row]) -> list[str]:
    """Milliseconds of a cycle, megabytes, searches of a query in a hundred cycles: medians of the repeats."""
    lines = []
    for (cell, data), some in _panels(rows).items():
        axis = axis_of(some)
        points = sorted({row.parameters[axis] for row in some})
        lines += ["", f"**{data}, {cell}**", ""]
        lines += [f"| | {' | '.join(f'{axis}={point:,}' for point in points)} |", "|---" * (len(points) + 1) + "|"]
        for name in dict.fromkeys(row.contestant for row in some):
            mine = {row.parameters[axis]: row for row in some if row.contestant == name}
            for what, measure in (("ms", per_cycle), ("MB", megabytes), ("searches", _searches)):
                values = [
                    statistics.median(measure(mine[point])) for point in points if "cycles" in mine[point].counters
                ]
                if what != "searches" or "searches" in mine[points[0]].counters:
                    lines.append(f"| {name}, {what} | {' | '.join(f'{value:.3g}' for value in values)} |")
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


def _searches(row: Row) -> list[float]:
    """In a hundred cycles of a query."""
    each = 100 / row.parameters["queries"]
    return [
        each * count / cycles for count, cycles in zip(row.counters["searches"], row.counters["cycles"], strict=True)
    ]


def _panels(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    panels: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        panels.setdefault((row.cell, row.parameters["data"]), []).append(row)
    return panels


SUMMARIES: dict[str, Callable[[list[Row]], list[str]]] = {"cycles": cycles, "cycles_and_space": cycles, "sizes": sizes}
