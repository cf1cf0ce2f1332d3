"""The figure of peers.toml: rows per second and checkpoint bytes over size/slide, a column for each stream."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.experiment import Experiment
from benchmarks.store import Row

OURS = {"skyband embedded": ("black", "-"), "skyband on Spark": ("#0072B2", "-")}  # no slide: the same everywhere
PEERS = {
    "Flink": ("#D55E00", "o"),
    "max_by": ("#009E73", "s"),
    "max_by over panes": ("#CC79A7", "D"),
    "DuckDB": ("#E69F00", "^"),
}
WIDTHS = (4, 24, 144)
OVER = ", 24 hours"  # cells


def peers(experiment: Experiment, rows: list[Row]) -> Figure:
    """Who does not depend on the slide is a line across."""
    from benchmarks.charts import origin, short  # it has this chart in its list

    streams = list(dict.fromkeys(row.cell for row in rows if row.cell.endswith(OVER)))
    figure = Figure(figsize=(12.5, 9.5))
    grid = figure.subplots(2, len(streams), squeeze=False, sharey="row")
    for column, stream in zip(grid.T, streams, strict=True):
        there = {row.contestant: row for row in rows if row.cell == stream}
        _panel(column[0], there, per_second)
        _panel(column[1], there, checkpoint)
        column[0].set(title=stream.removesuffix(OVER))
        column[1].set(xlabel="windows that a row is in (size / slide)")
        for axes in column:
            axes.set(xscale="log", yscale="log", xticks=WIDTHS)
            axes.set_xticks([], minor=True)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
            axes.yaxis.set_major_formatter(FuncFormatter(short))
    grid[0, 0].set_ylabel("rows per second")
    grid[1, 0].set_ylabel("bytes of a checkpoint (embedded: a snapshot)")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6)
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def _panel(axes: Axes, there: dict[str, Row], measure: Callable[[Row], float | None]) -> None:
    for name, (colour, line) in OURS.items():
        if (value := measure(there[name])) is not None:
            axes.axhline(value, color=colour, linestyle=line, linewidth=2, label=name)
    for name, (colour, marker) in PEERS.items():
        points = [(width, measure(there[f"{name}, {width}"])) for width in WIDTHS]
        known = [(width, value) for width, value in points if value is not None]
        if known:
            axes.plot(*zip(*known, strict=True), color=colour, marker=marker, label=name)


def per_second(row: Row) -> float:
    return statistics.median(rows / seconds for rows, seconds in zip(row.counters["rows"], row.seconds, strict=True))


def per_core_second(row: Row) -> float:
    spent = zip(row.counters["rows"], row.counters["cpu_seconds"], strict=True)
    return statistics.median(rows / seconds for rows, seconds in spent)


def checkpoint(row: Row) -> float | None:
    return statistics.median(row.counters["checkpoint_bytes"]) if "checkpoint_bytes" in row.counters else None
