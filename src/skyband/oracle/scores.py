"""Scorings of one row or of a pair of rows: float64, terms in the order given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sqlglot import exp

from skyband.oracle.objects import Row
from skyband.oracle.scalar import evaluate, number, parse, plain
from skyband.query.scoring import Global, Linear, Nearest, Product, Quadratic


def columns_of(by: Any) -> set[str]:
    """The columns that a scoring or a condition reads; nobody knows which ones a callable does."""
    if isinstance(by, str):
        return {column.name for column in parse(by).find_all(exp.Column)}
    return set(by.columns) if isinstance(by, Linear | Product | Quadratic | Nearest | Global) else set()


def key_of(by: Any, row: Row) -> float | None:
    """What the object is ranked by; None when it has no score."""
    if isinstance(by, str):
        return number(evaluate(parse(by), lambda _, column: plain(row.get(column))))
    if not isinstance(by, Linear | Product | Quadratic | Nearest):
        return number(np.asarray(by(_batch(row))).reshape(-1)[0])
    numbers = [number(row.get(column)) for column, _ in by.terms]
    xs = [x for x in numbers if x is not None]
    if len(xs) < len(numbers):
        return None
    constants = [constant for _, constant in by.terms]
    if isinstance(by, Linear):
        return _sum([w * x for w, x in zip(constants, xs, strict=True)])
    if isinstance(by, Quadratic):
        return _sum([w * (x * x) for w, x in zip(constants, xs, strict=True)])
    if isinstance(by, Product):
        return _product([w + x for w, x in zip(constants, xs, strict=True)])
    return _distance(by, [x - at for at, x in zip(constants, xs, strict=True)])


def _distance(by: Nearest, away: list[float]) -> float:
    parts = [d * d if by.metric == "euclidean" else abs(d) for d in away]
    if by.factors is not None:
        parts = [factor * part for factor, part in zip(by.factors, parts, strict=True)]
    if by.metric == "chebyshev":
        return math.nan if any(math.isnan(part) for part in parts) else max(parts)
    return _sum(parts)


def score_of(by: Any, key: float) -> float:
    """What is reported: Euclidean distances are ranked by the sum of squares and reported as its root."""
    return math.sqrt(key) if isinstance(by, Nearest) and by.metric == "euclidean" and key >= 0 else key


def pair_score(by: Any, older: Row, newer: Row) -> float | None:
    """The score of a pair; in expressions `a` is the older member."""
    if isinstance(by, str):
        members = {"a": older, "b": newer}
        return number(evaluate(parse(by), lambda member, column: plain(members[member].get(column))))
    if not isinstance(by, Global):
        return number(np.asarray(by(_batch(older), _batch(newer))).reshape(-1)[0])
    parts = []
    for column, local in by.terms:
        a, b = number(older.get(column)), number(newer.get(column))
        if a is None or b is None:
            return None
        parts.append(abs(a - b) if local == "absdiff" else a + b)
    return _sum(parts) if by.combine == "sum" else _product(parts)


def _batch(row: Row) -> dict[str, Any]:
    return {column: np.array([math.nan if value is None else value]) for column, value in row.items()}


def _sum(parts: list[float]) -> float:
    total = parts[0]
    for part in parts[1:]:  # in the order given; sum() of Python 3.12 would compensate
        total = total + part
    return total


def _product(parts: list[float]) -> float:
    total = parts[0]
    for part in parts[1:]:
        total = total * part
    return total
