"""Charts: a function of an experiment and its stored rows that returns a figure. It never measures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.drawing import (
    AXES,
    COLOURS,
    GREY,
    LINES,
    MET,
    MISSED,
    TABLE_2,
    TABLE_2_K,
    Chart,
    axis_of,
    legend,
    line_of,
    megabytes,
    origin,
    panels_of,
    per_cycle,
    per_group,
    per_score,
    per_second,
    points,
    short,
    ticks,
)
from benchmarks.experiment import Experiment
from benchmarks.goals import judge
from benchmarks.kept_charts import items, kept
from benchmarks.peers.chart import peers
from benchmarks.store import Row
from benchmarks.tables import rank_chances
from skyband.engines.topk.odds import false_ones, misses


def kept_and_throughput(experiment: Experiment, rows: list[Row]) -> Figure:
    """Objects kept against what theory expects, and rows per second, over n, for each k."""
    figure = Figure(figsize=(12, 5.2))
    left, right = figure.subplots(1, 2)
    ours = [row for row in rows if row.call == "skyband_push"]
    ks = sorted({row.parameters["k"] for row in ours})
    for colour, k in zip(COLOURS, ks, strict=False):
        of_k = [row for row in ours if row.parameters["k"] == k]
        of_k.sort(key=lambda row: int(row.parameters["n"]))
        n = [row.parameters["n"] for row in of_k]
        points(left, n, [row.counters["objects"] for row in of_k], colour, f"k = {k}, mean of the repeats")
        smooth = np.geomspace(max(min(n), k), max(n), 60)
        left.plot(smooth, [_expected(int(size), k) for size in smooth], color=colour, linewidth=1.2)
        left.plot(smooth, k * (1 + np.log(smooth / k)), color=colour, linewidth=1.2, linestyle=":")
        points(
            right,
            n,
            [per_second(row) for row in of_k],
            colour,
            f"skyband, k = {k}",
            line="-",
            middle=statistics.median,
        )
    left.plot([], [], color=GREY, linewidth=1.2, label="k + k(H$_n$ − H$_k$)")
    left.plot([], [], color=GREY, linewidth=1.2, linestyle=":", label="k(1 + ln(n/k))")
    yardstick = [value for row in rows if row.call == "numpy_argsort" for value in per_second(row)]
    if yardstick:
        middle = statistics.median(yardstick)
        right.axhline(middle, color=GREY, linewidth=1.2, linestyle="--", label="one np.argsort of the column")
    for axes, title, label in (
        (left, "Objects kept at the end of the stream", "objects"),
        (right, "Throughput of push, every change reported", "rows per second"),
    ):
        axes.set(xscale="log", yscale="log", title=title, xlabel="window n (arrivals)", ylabel=label)
    left.set_ylim(top=left.get_ylim()[1] * 8)  # space for the legend
    left.legend(loc="upper left", ncols=2)
    right.set_ylim(bottom=10 ** math.floor(math.log10(min(min(per_second(row)) for row in ours))))
    right.yaxis.set_major_formatter(FuncFormatter(short))
    right.legend(loc="lower right")
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def goals(experiment: Experiment, rows: list[Row]) -> Figure:
    """How much of each limit is used, on a log scale: left of the line the goal is met."""
    verdicts = judge(experiment, rows)[::-1]
    figure = Figure(figsize=(13, 1.4 + 0.42 * len(verdicts)))
    axes = figure.subplots()
    low, high = 0.1, 10.0  # what is off the scale sits at its edge
    for place, one in enumerate(verdicts):
        colour = MET if one.met else MISSED
        reaches = np.clip([one.reach(value) for value in (min(one.values), one.measured, max(one.values))], low, high)
        axes.plot([1, reaches[1]], [place, place], color=colour, linewidth=3, alpha=0.35)
        axes.plot(reaches[[0, 2]], [place, place], color=colour, linewidth=1.2, marker="|", clip_on=False)
        axes.plot(reaches[1], place, "o", color=colour, markersize=8, clip_on=False)
        said = f"{one.said(one.measured)}, {one.limit}" + ("" if one.met else ": MISSED")
        axes.text(high * 1.15, place, said, va="center", fontsize=10, color="black" if one.met else MISSED)
    axes.axvline(1, color="black", linewidth=1.2)
    axes.set(
        xscale="log",
        xlim=(low, high),
        xlabel="share of the limit that is used (median, least and most): met up to the line at 1",
        yticks=range(len(verdicts)),
        yticklabels=[one.says for one in verdicts],
    )
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def slides(experiment: Experiment, rows: list[Row]) -> Figure:
    """Rows per second of each contestant, on a log scale, and how many times slower than the first it is."""
    figure = Figure(figsize=(11, 1.6 + 0.62 * len(rows)))
    axes = figure.subplots()
    first = rows[0]
    for place, row in enumerate(rows):
        speeds = per_second(row)
        middle = statistics.median(speeds)
        bounds = [[middle - min(speeds)], [max(speeds) - middle]]
        axes.barh(place, middle, xerr=bounds, color=MET if row is first else GREY, height=0.6, capsize=3)
        said = f"  {middle:,.0f} rows/s"
        if row is not first:
            paired = zip(per_second(first), speeds, strict=True)
            said += f", {statistics.median(ours / theirs for ours, theirs in paired):.3g} times slower"
        axes.text(max(speeds), place, said, va="center", fontsize=10)
    low = min(min(per_second(row)) for row in rows)
    high = max(max(per_second(row)) for row in rows)
    answers = ["at every arrival" if row is first else "per closed window" for row in rows]
    axes.set(
        xscale="log",
        xlim=(10 ** math.floor(math.log10(low)), high * 12),  # space for the words
        xlabel="rows per second (median, least and most)",
        yticks=range(len(rows)),
        yticklabels=[f"{row.contestant}\nanswers {said}" for row, said in zip(rows, answers, strict=True)],
    )
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def state(experiment: Experiment, rows: list[Row]) -> Figure:
    """Objects and bytes of the state per group over n, for each k, against k(1 + ln(n/k)) objects of 40 bytes."""
    figure = Figure(figsize=(12, 5.2))
    left, right = figure.subplots(1, 2)
    over_n = [row for row in rows if "n" in row.parameters and "objects" in row.counters]
    sizes = sorted({row.parameters["n"] for row in over_n})
    for colour, k in zip(COLOURS, sorted({row.parameters["k"] for row in over_n}), strict=False):
        of_k = sorted((row for row in over_n if row.parameters["k"] == k), key=lambda row: int(row.parameters["n"]))
        n = [row.parameters["n"] for row in of_k]
        smooth = np.geomspace(max(min(n), k), max(n), 60)
        curve = k * (1 + np.log(smooth / k))
        for axes, counter, factors in ((left, "objects", (1,)), (right, "state_bytes", (40, 80))):
            points(axes, n, [per_group(row, counter) for row in of_k], colour, f"k = {k}, mean of the repeats")
            for factor, line in zip(factors, (":", "--"), strict=False):
                axes.plot(smooth, factor * curve, color=colour, linewidth=1.2, linestyle=line)
    left.plot([], [], color=GREY, linewidth=1.2, linestyle=":", label="k(1 + ln(n/k))")
    right.plot([], [], color=GREY, linewidth=1.2, linestyle=":", label="40 bytes × k(1 + ln(n/k))")
    right.plot([], [], color=GREY, linewidth=1.2, linestyle="--", label="80 bytes × k(1 + ln(n/k)): the limit")
    for axes, each, label in ((left, 1, "the whole window: n"), (right, 40, "the whole window: 40 bytes × n")):
        axes.plot(sizes, [each * n for n in sizes], color=GREY, linewidth=1, label=label)
    for axes, title, label in (
        (left, "Objects in the state, per group", "objects"),
        (right, "Value bytes of the state, per group", "bytes"),
    ):
        axes.set(xscale="log", yscale="log", title=title, xlabel="window n (arrivals of the group)", ylabel=label)
        axes.set_ylim(top=axes.get_ylim()[1] * 5)  # space for the legend
        axes.yaxis.set_major_formatter(FuncFormatter(short))
        axes.legend(loc="upper left")
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def costs(experiment: Experiment, rows: list[Row]) -> Figure:
    """Nanoseconds per object and query of each algorithm: a panel for each cell and data, over what varies there."""
    panels: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        panels.setdefault((row.cell, row.parameters.get("data", "")), []).append(row)
    across = 2 if len(panels) in (2, 4) else min(3, len(panels))
    down = math.ceil(len(panels) / across)
    figure = Figure(figsize=(5.6 * across, 4.6 * down + 1))
    grid = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axes, ((cell, data), some) in zip(grid, panels.items(), strict=False):
        axis = axis_of(some)
        for name in dict.fromkeys(row.contestant for row in some):
            of_one = [row for row in some if row.contestant == name]
            x = [row.parameters[axis] for row in of_one]
            line_of(axes, x, [per_score(row) for row in of_one], name, middle=statistics.median)
        axes.set(xscale="log", yscale="log", title=data, xlabel=axis if data else cell)
        ticks(axes, [row.parameters[axis] for row in some])
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    for axes in grid[::across]:
        axes.set_ylabel("ns per object and query")
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    legend(figure, list(grid[: len(panels)]))
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def cycles(experiment: Experiment, rows: list[Row]) -> Figure:
    """Milliseconds of a processing cycle: a panel for each cell and data, over what varies there."""
    return _over(experiment, rows, {"ms per cycle": per_cycle})


def cycles_and_space(experiment: Experiment, rows: list[Row]) -> Figure:
    """The same, and below it the megabytes of the engine."""
    return _over(experiment, rows, {"ms per cycle": per_cycle, "MB": megabytes})


def _over(experiment: Experiment, rows: list[Row], measures: dict[str, Callable[[Row], list[float]]]) -> Figure:
    panels = panels_of(rows)
    beside = len(panels) == 1  # measures side by side, or one below the other
    shape = (1, len(measures)) if beside else (len(measures), len(panels))
    figure = Figure(figsize=(max(12, 1.5 + 5 * shape[1]), 4.2 * shape[0] + 1))
    grid = figure.subplots(*shape, squeeze=False, sharey=False if beside else "row")
    for line, (label, values) in zip(grid.T if beside else grid, measures.items(), strict=True):
        for axes, ((_, data), some) in zip(line, panels.items(), strict=True):
            axis = axis_of(some)
            for name in dict.fromkeys(row.contestant for row in some):
                of_one = [row for row in some if row.contestant == name]
                points: dict[Any, list[float]] = {}  # scorings beside the axis count as repeats
                for row in of_one:
                    points.setdefault(row.parameters[axis], []).extend(values(row))
                line_of(axes, list(points), list(points.values()), name, middle=statistics.median)
            form = some[0].parameters.get("form")
            axes.set(title=f"{data}, {form}" if form else data, xlabel=AXES.get(axis, axis))
            axes.set_xscale("linear" if axis == "d" else "log")
            ticks(axes, [row.parameters[axis] for row in some])
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            if values is per_cycle:
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axes.yaxis.set_minor_formatter(
                    FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
                )
            else:
                axes.set_ylim(bottom=0)
        line[0].set_ylabel(label)
    legend(figure, list(grid[0]))
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def sizes(experiment: Experiment, rows: list[Row]) -> Figure:
    """Objects of a view or skyband beyond k, over k, and the paper's Table 2."""
    figure = Figure(figsize=(12, 5.4))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, data in zip(panels, ("IND", "ANT"), strict=True):
        for name in ("TSL", "SMA"):
            some = [row for row in rows if (row.parameters["data"], row.contestant) == (data, name)]
            k = [row.parameters["k"] for row in some]
            beyond = [[size - row.parameters["k"] for size in row.counters["objects"]] for row in some]
            points(axes, k, beyond, LINES[name][0], f"{name}, mean of the seeds", line="-")
            paper = [size - k for size, k in zip(TABLE_2[data, name], TABLE_2_K, strict=True)]
            axes.plot(TABLE_2_K, paper, "x", color=LINES[name][0], markersize=9, label=f"{name}, Table 2")
        axes.set(xscale="log", title=data, xlabel="k")
        ticks(axes, list(TABLE_2_K))
    panels[0].set_ylabel("objects per query beyond k")
    legend(figure, list(panels))
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def errors(experiment: Experiment, rows: list[Row]) -> Figure:
    """Objects that PA misses and reports falsely, per query, over k, and the bounds of Lemma 4.6."""
    sigmas = sorted({row.parameters["sigma"] for row in rows})
    figure = Figure(figsize=(12, 4.2 * len(sigmas) + 1))
    grid = figure.subplots(len(sigmas), 2, squeeze=False)
    sides: Any = (("missed", misses), ("false", false_ones))
    for line, sigma in zip(grid, sigmas, strict=True):
        for axes, (counter, bound) in zip(line, sides, strict=True):
            of_sigma = [row for row in rows if row.parameters["sigma"] == sigma]
            for colour, data in zip(COLOURS, dict.fromkeys(row.parameters["data"] for row in of_sigma), strict=False):
                some = [row for row in of_sigma if row.parameters["data"] == data]
                k = [row.parameters["k"] for row in some]
                points(axes, k, [row.counters[counter] for row in some], colour, data, line="-")
            p = of_sigma[0].parameters
            axes.axhline(
                bound(sigma, p["rows"], p["n"]), color=GREY, linestyle="--", label="bound: σ·N/n, false 1.5·σ·N/n"
            )
            least = 1 / (p["queries"] * len(of_sigma[0].seconds))  # one object in all queries and repeats
            axes.set_yscale("symlog", linthresh=least)
            axes.set(xscale="log", title=f"{counter}, σ = {sigma:g}", xlabel="k", ylabel="objects per query")
            axes.set_ylim(bottom=-least / 4)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ticks(axes, [row.parameters["k"] for row in of_sigma])
    legend(figure, [grid[0, 0]])
    figure.suptitle(f"{experiment.about}\n{origin(rows)}", fontsize=10, color="#444444")
    return figure


def ranks(experiment: Experiment, rows: list[Row]) -> Figure:
    """The chance of each rank l' at some steps, and of some ranks over the steps: computed, not measured."""
    l, n = 35, 1000  # noqa: E741, the paper's name
    figure = Figure(figsize=(15, 4.8))
    left, *others = figure.subplots(1, 3)
    for colour, s in zip(COLOURS, (1, 10, 100, 300, 600, 999), strict=True):
        left.plot(range(1, 81), rank_chances(l, n, s)[1:81], color=colour, label=f"s = {s}")
    left.set(title="(a) at step s", xlabel="rank l'", ylabel="chance", yscale="log", ylim=(1e-5, 1))
    steps = [*range(0, n, 9), n - 1]
    over_time = np.array([rank_chances(l, n, s) for s in steps])
    assert np.allclose(over_time.sum(axis=1), 1), "it has some rank"
    for axes, title, shown in zip(others, ("(b)", "(c)"), ((35, 34, 27), (20, 18, 16)), strict=True):
        for colour, rank in zip(COLOURS, shown, strict=False):
            axes.plot(steps, over_time[:, rank], color=colour, label=f"l' = {rank}")
        axes.set(title=f"{title} of rank l'", xlabel="step s", ylabel="chance")
    others[0].set_ylim(0, 0.15)  # rank 35 begins at 1
    for axes in (left, *others):
        axes.legend()
    figure.suptitle(experiment.about, fontsize=10, color="#444444")
    return figure


def _expected(n: int, k: int) -> float:
    """The mean size of the k-skyband in random order."""
    return k + k * float((1 / np.arange(k + 1, n + 1)).sum())


CHARTS: dict[str, Chart] = {
    chart.__name__: chart
    for chart in (
        kept_and_throughput,
        items,
        goals,
        slides,
        state,
        costs,
        cycles,
        cycles_and_space,
        sizes,
        errors,
        kept,
        ranks,
        peers,
    )
}
