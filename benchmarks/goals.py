"""Goals, checked on stored rows: ratios within a repeat, their median against the limit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.experiment import Experiment, Goal
from benchmarks.store import Row

HEAD = ("goal", "limit", "median", "spread", "met")


@dataclass(frozen=True)
class Verdict:
    goal: Goal
    values: list[float]  # by repeat
    point: str = ""  # of the grid

    @property
    def says(self) -> str:
        return f"{self.goal.says} ({self.point})" if self.point else self.goal.says

    @property
    def measured(self) -> float:
        return statistics.median(self.values)

    @property
    def met(self) -> bool:
        return self.reach(self.measured) <= 1

    def reach(self, value: float) -> float:
        """How much of the limit a value uses: up to 1 the goal is met, whichever way it points."""
        least = self.goal.at_least
        used, limit = (value, self.goal.at_most or 0.0) if least is None else (least, value)
        return used / limit if limit else math.inf if used > 0 else 0.0

    @property
    def limit(self) -> str:
        if self.goal.at_most is not None:
            return f"at most {self.said(self.goal.at_most)}"
        assert self.goal.at_least is not None
        return f"at least {self.said(self.goal.at_least)}"

    def said(self, value: float) -> str:
        """A value of the measure, in its unit."""
        if self.goal.over is not None:
            return f"{value:.3g} ×"
        if self.goal.measure.endswith("bytes"):
            return f"{value / 1e6:.0f} MB"
        if self.goal.measure.endswith("seconds"):
            return f"{value:.3g} s"
        return f"{value:.4g}"

    @property
    def spread(self) -> str:
        return f"{self.said(min(self.values))} to {self.said(max(self.values))}"

    @property
    def cells(self) -> tuple[str, ...]:
        """A line of a table under HEAD."""
        return self.says, self.limit, self.said(self.measured), self.spread, "yes" if self.met else "MISSED"


def judge(experiment: Experiment, rows: Iterable[Row]) -> list[Verdict]:
    """A verdict for each goal; a goal of a grid has one for each of its cells."""
    cells: dict[int, dict[str, Row]] = {}
    for row in rows:
        cells.setdefault(row.number, {})[row.contestant] = row
    verdicts = []
    for goal in experiment.goals:
        there = [cell for cell in cells.values() if goal.of in cell and cell[goal.of].cell == goal.cell]
        for cell in there:
            values = _values(cell[goal.of], goal.measure)
            if goal.over is not None:
                others = _values(cell[goal.over], goal.measure)
                values = [a / b for a, b in zip(values, others, strict=True)]
            verdicts.append(Verdict(goal, values, _point(cell[goal.of], [one[goal.of] for one in there])))
    return verdicts


def _point(row: Row, others: list[Row]) -> str:
    """Where in the grid: the parameters that are not the same in all its cells."""
    return ", ".join(
        f"{name}={value}"
        for name, value in row.parameters.items()
        if any(other.parameters[name] != value for other in others)
    )


def _values(row: Row, measure: str) -> list[float]:
    if measure == "seconds":
        return row.seconds
    if measure == "seconds per row":
        return [seconds / rows for seconds, rows in zip(row.seconds, row.counters["rows"], strict=True)]
    if measure in ("rows per second", "changes per second"):
        counted = row.counters[measure.split()[0]]
        return [count / seconds for seconds, count in zip(row.seconds, counted, strict=True)]
    return row.counters.get(measure, [math.nan] * len(row.seconds))  # what was not measured is not met
