"""Scores of a batch: one float64 per row, and the reason why a row has none. A few NumPy passes over its columns."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.errors import BatchError, SkybandWarning
from skyband.query.expressions import parse
from skyband.query.scoring import By, Scoring, scoring_of
from skyband.tables.function import call
from skyband.tables.input import Batch

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass
class Scored:
    """The key that each row is ranked by, and the rows that have none, by reason."""

    key: Floats
    rejected: dict[str, Bools] = field(default_factory=dict)
    keys: list[Any] | None = None  # of an order, as Arrow arrays

    def reject(self, reason: str, rows: Bools) -> None:
        if rows.any():
            self.rejected[reason] = self.rejected[reason] | rows if reason in self.rejected else rows

    def reject_missing(self, bad: Bools, batch: Batch, scoring: Scoring) -> None:
        """Reject the rows without a key, for the first column that has none."""
        if not bad.any():
            return
        for reason, rows in scoring.faults(batch).items():
            self.reject(reason, bad & rows)
            bad = bad & ~rows
        for name in scoring.number_columns:
            operand = batch.operand(name)
            if operand.valid is not None:
                self.reject(f"{name} is null", bad & ~operand.valid)
                bad = bad & operand.valid
            if operand.values.dtype == np.float64:
                broken = bad & np.isnan(operand.values)
                self.reject(f"{name} is NaN", broken)
                bad = bad & ~broken
        self.reject(f"{scoring.label} has no value", bad)

    def validated(self, eligible: Bools | None) -> Validated:
        """Accept the rows that are not rejected."""
        accepted = np.ones(len(self.key), np.bool_)
        for rows in self.rejected.values():
            accepted &= ~rows
        return Validated(self, accepted, eligible)


@dataclass(frozen=True)
class Validated:
    """Rows of a batch as one set of queries sees them."""

    scored: Scored
    accepted: Bools
    eligible: Bools | None


def score(batch: Batch, by: By) -> Scored:
    """Score every row. NaN and null are rejected, and so are integers beyond 2^53."""
    scoring = scoring_of(by)
    columns = scoring.columns
    key = scoring.keys(batch) if scoring.function is None else call(scoring.function, batch)
    scored = Scored(key)
    reject_beyond(scored, batch, columns)
    if np.isnan(key.min(initial=0)):  # as it is where one is NaN
        scored.reject_missing(np.isnan(key), batch, scoring)
    return scored


def reject_beyond(scored: Scored, batch: Batch, columns: tuple[str, ...]) -> None:
    for name in columns:
        beyond = batch.beyond(name)
        if beyond is not None:
            scored.reject(f"{name} is beyond 2^53", beyond)


def matches(batch: Batch, where: str) -> tuple[Bools, tuple[str, ...]]:
    """The rows that satisfy a condition (null does not), and the columns that it reads."""
    expression = parse(where)
    result = expression.evaluate({name: batch.operand(name) for name in expression.columns}, batch.rows)
    if result.values.dtype != np.bool_:
        raise BatchError(f"where={where!r} is not a condition: it is neither true nor false. Compare something.")
    true: Any = result.values if result.valid is None else result.values & result.valid
    return true, expression.columns


def warn_of_rejected(validated: Iterable[Validated], accepted: Bools, warned: set[str]) -> None:
    """Warn if most rows of a batch are rejected by every query: once for each reason, which `warned` remembers."""
    rows = len(accepted)
    if 2 * np.count_nonzero(accepted) >= rows:
        return
    rejected: dict[str, Bools] = {}
    for one in validated:
        for reason, bad in one.scored.rejected.items():
            rejected[reason] = rejected.get(reason, False) | (bad & ~accepted)
    counts = {reason: np.count_nonzero(bad) for reason, bad in rejected.items()}
    count = np.count_nonzero(np.logical_or.reduce(list(rejected.values()))) if rejected else 0
    if 2 * count <= rows or (most := max(counts, key=counts.__getitem__)) in warned:
        return
    warned.add(most)
    reasons = ", ".join(f"{reason} ({number:,})" for reason, number in counts.items() if number)
    warnings.warn(
        f"{count:,} of the {rows:,} rows of a push were rejected: {reasons}. Rejected rows never change an answer; "
        'stats()["rejected"] counts them, and invalid="raise" refuses such a batch.',
        SkybandWarning,
        stacklevel=_levels_to_caller(),
    )


def _levels_to_caller() -> int:
    """How far up the stack the first line is that is not skyband's own, as `warnings.warn` counts it in a caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("skyband."):
        frame, level = frame.f_back, level + 1
    return level
