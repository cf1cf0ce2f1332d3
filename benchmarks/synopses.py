"""Charts of uncertain streams, from stored rows: the compact set, and the size and cost of synopses (jin2008)."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.drawing import COLOURS, GREY, Chart, legend, origin, per_cycle, points, short, ticks
from benchmarks.experiment import Experiment
from benchmarks.store import Row

#: colour and marker; ours are black and grey
LINES = {
    "BS": (GREY, "o"),
    "CSQ": ("#D55E00", "v"),
    "CCSQ": ("#E69F00", "^"),
    "SCSQ": ("#0072B2", "s"),
    "SCSQ-BUFFER": ("#009E73", "D"),
    "DOM": ("black", "o"),
}


def compact(experiment: Experiment, rows: list[Row]) -> Figure:
    """Tuples of a compact set over k, for each meaning (Figure 3)."""
    figure = Figure(figsize=(12, 5.6))
    axes = figure.subplots()
    for colour, name in zip(COLOURS, dict.fromkeys(row.contestant for row in rows), strict=False):
        some = [row for row in rows if row.contestant == name]
        k = [row.parameters["k"] for row in some]
        points(axes, k, [row.counters["objects"] for row in some], colour, name, line="-")
    ks = sorted({row.parameters["k"] for row in rows})
    axes.plot(ks, [2 * k for k in ks], color=GREY, linestyle=":", label="2k")
    axes.set(xlabel="k", ylabel="tuples of the compact set", xlim=(0, None), ylim=(0, None))
    axes.legend(loc="upper left")
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def synopses(experiment: Experiment, rows: list[Row]) -> Figure:
    """A line of panels for each meaning: tuples stored and time per tuple, over what varies."""
    meanings = list(dict.fromkeys(row.parameters["semantics"] for row in rows))
    over = list(dict.fromkeys(row.cell.rpartition(" ")[2] for row in rows))
    figure = Figure(figsize=(max(12, 9.2 * len(over)), 3.4 * len(meanings) + 1.2))
    grid = figure.subplots(len(meanings), 2 * len(over), squeeze=False, sharey="col")
    for line, meaning in zip(grid, meanings, strict=True):
        for at, axis in enumerate(over):
            here = [row for row in rows if row.cell == f"{meaning} over {axis}"]
            _panel(line[2 * at], here, axis, f"{meaning}: tuples stored", lambda row: row.counters["stored"])
            _panel(line[2 * at + 1], here, axis, f"{meaning}: µs per tuple", _per_tuple)
    legend(figure, list(grid[0]))
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def _panel(axes: Axes, rows: list[Row], axis: str, title: str, values: Callable[[Row], list[float]]) -> None:
    name_of = {"k": "k", "W": "n"}[axis]
    for name in dict.fromkeys(row.contestant for row in rows):
        some = [row for row in rows if row.contestant == name]
        colour, marker = LINES[name]
        x = [row.parameters[name_of] for row in some]
        y = [statistics.median(values(row)) for row in some]
        axes.plot(x, y, color=colour, marker=marker, markersize=5, label=name)
    axes.set(xscale="log", yscale="log", title=title, xlabel=axis)
    ticks(axes, [row.parameters[name_of] for row in rows])
    axes.yaxis.set_major_formatter(FuncFormatter(short))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: short(value, _) if f"{value:e}"[0] in "25" else ""))


def _per_tuple(row: Row) -> list[float]:
    return [1e3 * ms for ms in per_cycle(row)]


CHARTS: dict[str, Chart] = {chart.__name__: chart for chart in (compact, synopses)}
