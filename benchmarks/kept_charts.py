"""Charts of what is kept: distinct objects and those of a query (pripuzic2015), items of incomplete streams."""

from __future__ import annotations

import statistics

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.drawing import GREY, axis_of, legend, line_of, origin, points, short, ticks
from benchmarks.experiment import Experiment
from benchmarks.store import Row
from skyband.engines.topk.odds import strict_size


def kept(experiment: Experiment, rows: list[Row]) -> Figure:
    """Objects over k: distinct ones by the number of queries, and those of a query beside the mean k-skyband."""
    figure = Figure(figsize=(14, 6))
    for axes, cell, counter in zip(
        figure.subplots(1, 2), ("distinct", "kept"), ("distinct_objects", "objects"), strict=True
    ):
        of_cell = [row for row in rows if row.cell == cell]
        if not of_cell:
            continue
        for name in dict.fromkeys(row.contestant for row in of_cell):
            some = [row for row in of_cell if row.contestant == name]
            k = [row.parameters["k"] for row in some]
            line_of(axes, k, [row.counters[counter] for row in some], name, middle=statistics.fmean)
        ks, n = sorted({row.parameters["k"] for row in of_cell}), of_cell[0].parameters["n"]
        if cell == "kept":
            axes.plot(ks, [strict_size(n, k) for k in ks], color=GREY, linestyle=":", label="k + k(H$_n$ − H$_k$)")
            axes.plot(ks, ks, color=GREY, linewidth=1, label="k")
        else:
            u = of_cell[0].parameters["queries"]
            axes.plot(ks, [n / u] * len(ks), color=GREY, linestyle=":", label="n / u")
        title = "(a) distinct objects over queries" if cell == "distinct" else "(b) objects per query"
        axes.set(xscale="log", yscale="log", xlabel="k", ylabel="at the end", title=f"{title}, n = {n:,}")
        ticks(axes, ks)
        axes.yaxis.set_major_formatter(FuncFormatter(short))
        axes.set_ylim(top=10 * axes.get_ylim()[1])  # the legend's place
        axes.legend(loc="upper left", ncols=2)
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def items(experiment: Experiment, rows: list[Row]) -> Figure:
    """Items kept and precision of engines of incomplete streams; axes are linear, since growth is to be seen."""
    cells, names = (list(dict.fromkeys(getattr(row, of) for row in rows)) for of in ("cell", "contestant"))
    measures = [name for name in ("objects", "precision") if name in rows[0].counters]
    wide = min(len(cells), 5)
    lines = -(-len(cells) // wide)
    figure = Figure(figsize=(max(12.5, 3.6 * wide), 3.6 * len(measures) * lines + 1))
    panels = figure.subplots(lines * len(measures), wide, squeeze=False, sharey="row")
    grid = np.hstack([panels[line * len(measures) : (line + 1) * len(measures)] for line in range(lines)])
    for axes in grid[:, len(cells) :].flat:
        axes.set_axis_off()
    for column, cell in enumerate(cells):
        some = [row for row in rows if row.cell == cell]
        axis = axis_of(some)
        for axes, measure in zip(grid[:, column], measures, strict=True):
            for name in dict.fromkeys(row.contestant for row in some):
                mine = [row for row in some if row.contestant == name]
                x, colour = [row.parameters[axis] for row in mine], f"C{names.index(name)}"
                points(axes, x, [row.counters[measure] for row in mine], colour, name, line="-")
            axes.set(xlabel=axis, title=cell if axes is grid[0, column] else "")
    for place, axes in enumerate(panels[:, 0]):
        measure = measures[place % len(measures)]
        axes.set_ylim(bottom=0)
        axes.set_ylabel("items kept" if measure == "objects" else measure)
    legend(figure, list(grid[0, : len(cells)]))
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure
