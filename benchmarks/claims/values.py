"""Values of stored rows, cell by cell: what rules of claims compute with.

`runs["PA"]` is what PA cost per row in each cell, `runs["PA", "objects"]` one of its counters. Values divide cell by
cell and repeat by repeat, compare with a limit as one truth per cell, and print as least to most of the medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import store

Point = tuple[tuple[str, Any], ...]  # the parameters of a cell


@dataclass(frozen=True)
class Values:
    """By cell, all repeats."""

    cells: Mapping[Point, list[float]]

    def at(self, **parameters: Any) -> Values:
        """Only cells with these parameters; a list has any of them."""
        return Values({point: some for point, some in self.cells.items() if fits(dict(point), parameters)})

    def each(self, name: str) -> list[Values]:
        """One for each value of a parameter, in the order of the cells."""
        return [self.at(**{name: value}) for value in dict.fromkeys(dict(point).get(name) for point in self.cells)]

    def growth(self, name: str) -> Values:
        """The last value of a parameter over the first."""
        parts = self.each(name)
        return parts[-1] / parts[0]

    @property
    def medians(self) -> list[float]:
        assert self.cells, "no such rows are stored"
        return [statistics.median(some) for some in self.cells.values()]

    @property
    def means(self) -> list[float]:
        return [statistics.fmean(some) for some in self.cells.values()]

    @property
    def least(self) -> float:
        return min(self.medians)

    @property
    def most(self) -> float:
        return max(self.medians)

    def __truediv__(self, other: Values | float) -> Values:
        if not isinstance(other, Values):
            return Values({point: [one / other for one in some] for point, some in self.cells.items()})
        ours, theirs = _by_what_varies(self.cells), _by_what_varies(other.cells)
        if ours.keys() != theirs.keys():
            raise ValueError(f"cells differ: {sorted(map(str, ours.keys() ^ theirs.keys()))}")
        return Values({point: _ratios(some, theirs[point]) for point, some in ours.items()})

    def __mul__(self, factor: float) -> Values:
        return self / (1 / factor)

    def __gt__(self, limit: float) -> list[bool]:
        return [one > limit for one in self.medians]

    def __lt__(self, limit: float) -> list[bool]:
        return [one < limit for one in self.medians]

    def __ge__(self, limit: float) -> list[bool]:
        return [one >= limit for one in self.medians]

    def __le__(self, limit: float) -> list[bool]:
        return [one <= limit for one in self.medians]

    def between(self, least: float, most: float) -> list[bool]:
        return [least <= one <= most for one in self.medians]

    def __format__(self, form: str) -> str:
        """The least to the most; `{values:list}`: of every cell, in order."""
        if form == "list":
            return ", ".join(said(one) for one in self.medians)
        least, most = said(self.least), said(self.most)
        return least if least == most else f"{least} to {most}"


@dataclass(frozen=True)
class Runs:
    """Rows of an experiment, or some of them."""

    rows: list[store.Row]

    def cell(self, name: str) -> Runs:
        return Runs([row for row in self.rows if row.cell == name])

    def at(self, **parameters: Any) -> Runs:
        return Runs([row for row in self.rows if fits(row.parameters, parameters)])

    def __getitem__(self, what: str | tuple[str, str]) -> Values:
        """A contestant's seconds per row; (contestant, counter): that counter; (contestant, "seconds"): seconds."""
        contestant, counter = (what, "") if isinstance(what, str) else what
        rows = [row for row in self.rows if row.contestant == contestant]
        cells = {(*row.parameters.items(), ("cell", row.cell)): _measured(row, counter) for row in rows}
        if not rows or len(cells) < len(rows):
            raise KeyError(f"{contestant}: {len(rows)} rows of {len(cells)} cells")
        return Values(cells)


def said(value: float) -> str:
    """Two digits, three above a hundred: what a shared machine can tell."""
    if abs(value) >= 99.5:
        return f"{value:,.0f}"
    return f"{value:.2g}" if abs(value) < 0.995 else f"{value:.0f}" if abs(value) >= 9.95 else f"{value:.1f}"


def fits(parameters: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(parameters.get(name) in (one if isinstance(one, list) else [one]) for name, one in wanted.items())


def _measured(row: store.Row, counter: str) -> list[float]:
    if counter == "seconds":
        return row.seconds
    if counter:
        return row.counters[counter]
    return [seconds / rows for seconds, rows in zip(row.seconds, row.counters["rows"], strict=True)]


def _by_what_varies(cells: Mapping[Point, list[float]]) -> dict[Point, list[float]]:
    """Cells named by the parameters that are not the same in all: those of two contestants, or of two k, then agree."""
    points = [dict(point) for point in cells]
    varying = [name for name in points[0] if any(one.get(name) != points[0][name] for one in points)] if points else []
    named = {tuple((name, dict(point).get(name)) for name in varying): some for point, some in cells.items()}
    assert len(named) == len(cells)
    return named


def _ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Within a repeat, where both have as many."""
    if len(ours) == len(theirs):
        return [a / b for a, b in zip(ours, theirs, strict=True)]
    return [statistics.median(ours) / statistics.median(theirs)]


Finding = tuple[str, list[bool]]  # what was measured, and a truth for each cell or part of the claim
Rule = Callable[[Runs], Finding]
