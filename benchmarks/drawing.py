"""Shared by all charts: colours, lines, axes, and where their rows come from."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.contestants import ON_SPARK, PEERS
from benchmarks.experiment import Experiment
from benchmarks.store import Row

Chart = Callable[[Experiment, list[Row]], Figure]

# Okabe and Ito: distinct for all eyes
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# colour by filter, dashes for the relaxed ones, dots without an index
LINES = {
    "BLOCK": ("black", "-", "o"),
    "PA": ("#E69F00", "-", "o"),
    "SA": ("#0072B2", "-", "s"),
    "RA": ("#0072B2", "--", "D"),
    "SASF": ("#D55E00", "-", "s"),
    "RASF": ("#D55E00", "--", "D"),
    "SARF": ("#009E73", "-", "s"),
    "RARF": ("#009E73", "--", "D"),
    "SAPF": ("#CC79A7", "-", "s"),
    "RAPF": ("#CC79A7", "--", "D"),
    "RAPF2": ("#56B4E9", "--", "D"),
    "auto": ("black", "-", "o"),
    "TSL": ("#009E73", "-", "^"),
    "TMA": ("#D55E00", "-", "v"),
    "SMA": ("#0072B2", "-", "s"),
    "CPM/w": ("#D55E00", ":", "v"),
    "SNN": ("#0072B2", ":", "s"),
    "SCASE": ("#0072B2", "-", "o"),
    "continuous": ("#0072B2", "-", "o"),
    "snapshot": ("#009E73", "-", "s"),
    "TA": ("#009E73", "-", "s"),
    "BASIC": ("#D55E00", "-", "v"),
    "linear": ("#D55E00", "-", "v"),
    "NAIVE": ("#CC79A7", "-", "D"),
    "naive++": ("#CC79A7", "--", "D"),
    "SUPREME": ("black", ":", "^"),
    "supreme++": ("black", "--", "^"),
}
AXES = {
    "asked_n": "n (of the query)",
    "asked_k": "k (of the query)",
    "n": "N (valid objects)",
    "batch": "r (arrivals of a cycle)",
    "queries": "Q (queries)",
    "cells": "cells",
}
#: mouratidis2006, Table 2: TSL's views and SMA's skybands over k
TABLE_2_K = (1, 5, 10, 20, 50, 100)
TABLE_2 = {
    ("IND", "TSL"): (3.3, 8.6, 17.1, 26.7, 63.0, 113.2),
    ("IND", "SMA"): (1.1, 5.9, 11.2, 21.6, 53.3, 104.6),
    ("ANT", "TSL"): (3.1, 8.4, 17.2, 26.9, 64.4, 113.6),
    ("ANT", "SMA"): (1.1, 5.9, 11.5, 22.4, 54.4, 106.5),
}
GREY, MET, MISSED = "#777777", "#0072B2", "#D55E00"
STYLE: Any = {
    "figure.dpi": 130,
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 10,
}


def origin(rows: list[Row]) -> str:
    """Where the rows come from, in a line."""
    row = rows[0]
    made = f"commit {row.commit}{' with changes' if row.dirty else ''}, {row.run[:10]}"
    sizes = ", quick sizes: figures say nothing" if row.quick else ""
    versions = ", ".join(f"{name} {version}" for name, version in row.versions.items() if name != "skyband")
    cores = "two cores" if row.call in ON_SPARK + PEERS else "one core"
    where = f"{row.machine.get('cpu', 'unknown machine')}, {cores}, load {row.load}"
    return f"{made}; {where}; {versions}{sizes}"


def points(
    axes: Axes,
    x: list[int],
    values: list[list[float]],
    colour: str,
    label: str,
    line: str = "none",
    middle: Callable[[list[float]], float] = statistics.fmean,
) -> None:
    """The middle of the repeats, with a bar from the least to the most."""
    y = np.array([middle(some) for some in values])
    below = y - [min(some) for some in values]
    above = np.array([max(some) for some in values]) - y
    axes.errorbar(x, y, [below, above], color=colour, fmt="o", linestyle=line, capsize=2, label=label)


def line_of(
    axes: Axes, x: list[float], values: list[list[float]], name: str, middle: Callable[[list[float]], float]
) -> None:
    """A line of an algorithm, the same in all figures."""
    algorithm, _, without = name.partition(", ")
    colour, dashes, marker = LINES.get(algorithm, (GREY, "-.", "^"))
    y = [middle(some) for some in values]
    axes.plot(x, y, color=colour, linestyle=":" if without else dashes, marker=marker, markersize=5, label=name)


def ticks(axes: Axes, values: list[float]) -> None:
    """The points that were measured, and no others."""
    axes.set_xticks(sorted(set(values)), minor=False)
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(FuncFormatter(short))


def legend(figure: Figure, panels: list[Axes]) -> None:
    """One legend below all panels."""
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=min(6, len(found)))


def axis_of(rows: list[Row]) -> str:
    """The parameter that varies over the cells: not one that follows another, nor one of the contestants' own."""
    first = [row for row in rows if row.contestant == rows[0].contestant]
    varying = [name for name in first[0].parameters if len({row.parameters[name] for row in first}) > 1]
    return next((name for name in varying if name != "fill"), "k" if "k" in first[0].parameters else "K")


def panels_of(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows by cell and data; an experiment of one cell has a panel for each scoring (shen2012)."""
    single, panels = len({row.cell for row in rows}) == 1, dict[tuple[str, str], list[Row]]()
    for row in rows:
        scoring = f"s{row.parameters['s']}" if single and "s" in row.parameters else ""
        panels.setdefault((row.cell, row.parameters.get("data", scoring)), []).append(row)
    return panels


def per_score(row: Row) -> list[float]:
    """Nanoseconds per object and query."""
    each = row.parameters["queries"] * 1e-9
    return [seconds / (rows * each) for seconds, rows in zip(row.seconds, row.counters["rows"], strict=True)]


def per_cycle(row: Row) -> list[float]:
    return [1e3 * seconds / cycles for seconds, cycles in zip(row.seconds, row.counters["cycles"], strict=True)]


def megabytes(row: Row) -> list[float]:
    return [size / 1e6 for size in row.counters.get("bytes", [])]


def per_second(row: Row) -> list[float]:
    return [rows / seconds for rows, seconds in zip(row.counters["rows"], row.seconds, strict=True)]


def per_group(row: Row, counter: str) -> list[float]:
    return [value / groups for value, groups in zip(row.counters[counter], row.counters["groups"], strict=True)]


def short(value: float, _: Any) -> str:
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
