"""Families: queries that differ only in the numbers of their scoring, so that one engine can serve them all.

Nearest or Linear over the same columns, with the same direction, `where`, k, window and algorithm, and no `per`. An
engine of a family reads the attributes of objects and scores them itself, a block at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.batch import Batch
from skyband.engines.contract import Scorings
from skyband.engines.registry import choose, has_family
from skyband.query import TopK
from skyband.scores import Scored, reject_beyond, score
from skyband.scoring import Linear, Nearest

Floats = NDArray[np.float64]
TAME = 1e100  # numbers up to here overflow in no scoring: a row has a score for all of a family or for none
_FORMS = {"euclidean": 1, "manhattan": 2, "chebyshev": 3}


def family_key(query: TopK) -> tuple[Any, ...] | None:
    """Queries with equal keys are one family; None: of no family."""
    by, algorithm = query.by, choose(query)
    if query.per_columns or not isinstance(by, Linear | Nearest) or not has_family(algorithm):
        return None
    numbers = [number for _, number in by.terms]
    form: tuple[Any, ...] = ("linear",)
    if isinstance(by, Nearest):
        numbers += by.factors or ()
        form = ("nearest", by.metric, by.factors is None)
    if max(map(abs, numbers)) > TAME:
        return None
    return (*form, by.columns, query.descending, query.where, query.k, query.window, algorithm, query.tuning)


def scorings_of(queries: list[TopK]) -> Scorings:
    """The scorings of a family, as its engine sees them."""
    by = queries[0].by
    assert isinstance(by, Linear | Nearest)
    points = np.array([[number for _, number in query.by.terms] for query in queries])  # type: ignore[union-attr]
    weights = np.empty((len(queries), 0))
    form = 0
    if isinstance(by, Nearest):
        form = _FORMS[by.metric]
        if by.factors is not None:
            weights = np.array([query.by.factors for query in queries])  # type: ignore[union-attr]
    turned = not queries[0].descending

    def keys(which: int, data: Floats) -> Floats:
        key = queries[which].by.key(dict(zip(by.columns, data, strict=True)))  # type: ignore[union-attr]
        return -key if turned else key

    return Scorings(form, turned, points, weights, keys)


def judge_family(batch: Batch, by: Any) -> Scored | None:
    """Who is rejected by all of a family alike, with no scores; None: a number is so large that they may differ."""
    if by.columns not in batch.memo:
        batch.memo[by.columns] = _judge(batch, by)
    judged: Scored | None = batch.memo[by.columns]
    return judged


def _judge(batch: Batch, by: Any) -> Scored | None:
    columns = [batch.numbers(name).values for name in by.columns]
    most = [max(column.max(), -column.min()) for column in columns if len(column)]
    if np.isnan(most).any():
        wild = [(np.abs(column) > TAME).any() for column in columns]
        return None if any(wild) else score(batch, by)
    if any(one > TAME for one in most):
        return None
    scored = Scored(columns[0])  # an engine of a family scores by itself
    reject_beyond(scored, batch, by.columns)
    return scored
