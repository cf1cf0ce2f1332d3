"""Was a goal met? Read from stored rows: ratios within a repeat, their median against the limit."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.experiment import Experiment, Goal
from benchmarks.store import Row


@dataclass(frozen=True)
class Verdict:
    goal: Goal
    values: list[float]  # by repeat

    @property
    def measured(self) -> float:
        return statistics.median(self.values)

    @property
    def met(self) -> bool:
        return self.reach <= 1

    @property
    def reach(self) -> float:
        """How much of the limit is used: up to 1 the goal is met, whichever way it points."""
        if self.goal.at_most is not None:
            return self.measured / self.goal.at_most if self.goal.at_most else float(self.measured > 0) * 2
        assert self.goal.at_least is not None
        return self.goal.at_least / self.measured if self.measured else float("inf")

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


def judge(experiment: Experiment, rows: Iterable[Row]) -> list[Verdict]:
    """A verdict for each goal; a goal of a grid has one for each of its cells."""
    by_cell: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        # a contestant may have parameters of its own: cells are told apart by the order they were stored in
        key = (row.cell, row.contestant)
        place = sum(1 for cell, who in by_cell.items() if cell[0] == row.cell and key[1] in who)
        by_cell.setdefault((row.cell, str(place)), {})[row.contestant] = row
    verdicts = []
    for goal in experiment.goals:
        for (cell, _), there in by_cell.items():
            if cell == goal.cell and goal.of in there and (goal.over is None or goal.over in there):
                values = _values(there[goal.of], goal.measure)
                if goal.over is not None:
                    others = _values(there[goal.over], goal.measure)
                    values = [a / b for a, b in zip(values, others, strict=True)]
                verdicts.append(Verdict(goal, values))
    return verdicts


def _values(row: Row, measure: str) -> list[float]:
    if measure == "seconds":
        return row.seconds
    if measure == "seconds per row":
        return [seconds / rows for seconds, rows in zip(row.seconds, row.counters["rows"], strict=True)]
    if measure == "rows per second":
        return [rows / seconds for seconds, rows in zip(row.seconds, row.counters["rows"], strict=True)]
    return row.counters[measure]
