"""The figure of peers.toml: rows per second and checkpoint bytes over size/slide, a column for each stream."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.drawing import origin, short
from benchmarks.experiment import Experiment
from benchmarks.store import Row

CONTESTANTS = {
    "skyband embedded": ("black", "o"),
    "skyband on Spark": ("#0072B2", "s"),
    "Flink": ("#D55E00", "v"),
    "max_by": ("#009E73", "D"),
    "max_by over panes": ("#CC79A7", "^"),
    "DuckDB": ("#E69F00", "P"),
}


def peers(experiment: Experiment, rows: list[Row]) -> Figure:
    """A cell is called "stream, size/slide"; count windows have no slide, and are in the table only."""
    timed = [row for row in rows if "slide" in row.parameters]
    streams = list(dict.fromkeys(stream(row) for row in timed))
    figure = Figure(figsize=(12.5, 9.5))
    grid = figure.subplots(2, len(streams), squeeze=False, sharey="row")
    for column, name in zip(grid.T, streams, strict=True):
        there = [row for row in timed if stream(row) == name]
        for axes, measure in zip(column, (per_second, checkpoint), strict=True):
            _panel(axes, there, measure)
            axes.set(xscale="log", yscale="log", xticks=sorted({width(row) for row in there}))
            axes.set_xticks([], minor=True)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
            axes.yaxis.set_major_formatter(FuncFormatter(short))
        column[0].set(title=name)
        column[1].set(xlabel="windows that a row is in (size / slide)")
    grid[0, 0].set_ylabel("rows per second")
    grid[1, 0].set_ylabel("bytes of a checkpoint (embedded: of a snapshot)")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6)
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def _panel(axes: Axes, rows: list[Row], measure: Callable[[Row], float | None]) -> None:
    for name, (colour, marker) in CONTESTANTS.items():
        points = sorted((width(row), measure(row)) for row in rows if row.contestant == name)
        known = [(at, value) for at, value in points if value is not None]
        if known:
            axes.plot(*zip(*known, strict=True), color=colour, marker=marker, label=name)


def stream(row: Row) -> str:
    return row.cell.partition(", ")[0]


def width(row: Row) -> int:
    return int(row.cell.partition(", ")[2])


def per_second(row: Row) -> float:
    return statistics.median(rows / seconds for rows, seconds in zip(row.counters["rows"], row.seconds, strict=True))


def per_core_second(row: Row) -> float:
    spent = zip(row.counters["rows"], row.counters["cpu_seconds"], strict=True)
    return statistics.median(rows / seconds for rows, seconds in spent)


def checkpoint(row: Row) -> float | None:
    return statistics.median(row.counters["checkpoint_bytes"]) if "checkpoint_bytes" in row.counters else None
