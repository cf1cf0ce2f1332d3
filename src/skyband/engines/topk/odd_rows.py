"""Odd rows: those that some queries of a family reject and others do not.

Rows with infinite or very large numbers may have no score for some scorings (0 times infinity), and an integer beyond
2^53 is rejected by the queries whose `where` reads it. Few rows are odd, and each costs a look at every query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Arrivals, Changes, Ints
from skyband.engines.topk.scorings import MOST_ATTRIBUTES, form_of, plain_scoring, where_box
from skyband.query.kinds import TopK
from skyband.query.scoring import Scoring, scoring_of
from skyband.query.scoring.forms import CHEBYSHEV, EUCLIDEAN, MANHATTAN, PRODUCT, QUADRATIC
from skyband.tables.input import Batch
from skyband.tables.scores import Scored

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OddRow:
    """A row that some queries reject, each with its reason."""

    row: int
    reasons: dict[str, str]

    @property
    def names(self) -> list[str]:
        """The queries."""
        return list(self.reasons)


def find_odd_rows(
    batch: Batch,
    scored: Scored,
    queries: Mapping[str, TopK],
    boxed: Iterable[str],
    wild: Bools,
    unscored: Callable[[int], Iterable[str]],
) -> list[OddRow]:
    """The odd rows of a batch, in order.

    boxed: the columns that only boxes read; wild: rows that may have no score for some; unscored: those for which a row
    has none.
    """
    odd, beyond = wild.copy(), {}
    for name in boxed if batch.rows else ():
        batch.numbers(name)
        if (rows := batch.beyond(name)) is not None:
            beyond[name] = rows
            odd |= rows
    for rows in scored.rejected.values():
        odd &= ~rows
    found = []
    for row in np.flatnonzero(odd).tolist():
        reasons = {name: f"{scoring_of(queries[name].by).label} has no value" for name in unscored(row)}
        for column_name, rows in beyond.items():
            if rows[row]:
                asking = [name for name, query in queries.items() if column_name in where_box(query)[0]]
                reasons = dict.fromkeys(asking, f"{column_name} is beyond 2^53") | reasons
        if reasons:
            found.append(OddRow(row, reasons))
    return found


def wild_rows(batch: Batch, plain: Scoring) -> Bools:
    """The rows with numbers for which something may overflow."""
    limit, wild = form_of(plain).limit, np.zeros(batch.rows, np.bool_)
    for name in plain.columns if batch.rows else ():
        least, largest = batch.extremes(name)
        if not max(largest, -least) <= limit:  # NaN too
            wild |= np.abs(batch.numbers(name).values) > limit
    return wild


def unscored_by(batch: Batch, columns: Iterable[str], queries: Mapping[str, TopK], row: int) -> list[str]:
    """The queries for which a row has no score."""
    scorings = [plain_scoring(query.by, most=MOST_ATTRIBUTES) for query in queries.values()]
    forms = [form_of(by) for by in scorings if by is not None]
    points, weights = np.array([form.point for form in forms]), np.array([form.weights for form in forms])
    given, names = [float(batch.numbers(name).values[row]) for name in columns], list(queries)
    keys = lane_keys(forms[0].code, points, weights, given)
    return [names[i] for i in np.flatnonzero(np.isnan(keys)).tolist()]


def lane_keys(form: int, points: Floats, weights: Floats, row: list[float]) -> Floats:
    """The keys of one row for many scorings of a form, as kernels/scores.py has them."""
    keys = np.zeros(len(points))
    with np.errstate(all="ignore"):
        for j, x in enumerate(row):
            term = x + points[:, j] if form == PRODUCT else points[:, j] * (x * x if form == QUADRATIC else x)
            if form in (EUCLIDEAN, MANHATTAN, CHEBYSHEV):
                away = x - points[:, j]
                term = away * away if form == EUCLIDEAN else np.abs(away)
                term = weights[:, j] * term if weights.shape[1] else term
            if j == 0:
                keys = term
            else:
                keys = np.maximum(keys, term) if form == CHEBYSHEV else keys * term if form == PRODUCT else keys + term
    return keys


def with_own_rows(changes: Changes, arrivals: Arrivals, refused: list[tuple[int, Ints]]) -> Changes:
    """Net changes of a batch: those of slots that have rejected rows are at the last row that they have not."""
    for slot in np.unique(np.concatenate([slots for _, slots in refused])).tolist() if refused else ():
        own = np.setdiff1d(arrivals.rows, [row for row, slots in refused if slot in slots])
        changes.row[changes.query == slot] = own[-1] if len(own) else -1
    return changes
