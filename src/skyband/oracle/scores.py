"""Scores of one row or of a pair of rows, in plain Python: float64, terms in the order given.

It shares no code with the scorings that it checks: it reads the numbers of a value and does its own arithmetic, by
the value's word. A new scoring that the oracle is to check needs an entry in KEYS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sqlglot import exp

from skyband.errors import QueryError
from skyband.oracle.objects import Row
from skyband.oracle.scalar import evaluate, number, parse, plain, truth


def columns_of(by: Any) -> set[str]:
    """The columns that a scoring or a condition reads; none are known of a function."""
    if isinstance(by, str):
        return {column.name for column in parse(by).find_all(exp.Column)}
    if isinstance(by, tuple):
        return set().union(*map(columns_of, by))
    return set() if callable(by) else set(by.columns)


def key_of(by: Any, row: Row) -> float | None:
    """The key by which the object is ranked; None when it has no score."""
    if isinstance(by, str):
        return number(evaluate(parse(by), lambda _, column: plain(row.get(column))))
    if callable(by):
        return number(np.asarray(by(_batch(row))).reshape(-1)[0])
    if by.word not in KEYS:
        raise QueryError(f"the oracle cannot compute {by!r}. Add its arithmetic to KEYS in oracle/scores.py.")
    values = row.get(by.column) if by.word == "similar" else [row.get(column) for column in by.columns]
    numbers = [None] if values is None else [number(value) for value in values]
    xs = [x for x in numbers if x is not None]
    return KEYS[by.word](by, xs) if len(xs) == len(numbers) else None


def _distance(by: Any, xs: list[float]) -> float:
    away = [x - at for (_, at), x in zip(by.terms, xs, strict=True)]
    parts = [d * d if by.metric == "euclidean" else abs(d) for d in away]
    if by.factors is not None:
        parts = [factor * part for factor, part in zip(by.factors, parts, strict=True)]
    if by.metric == "chebyshev":
        return math.nan if any(math.isnan(part) for part in parts) else max(parts)
    return _sum(parts)


def _likeness(by: Any, a: list[float]) -> float:
    """How alike two vectors are; NaN where they cannot be compared."""
    b = list(by.vector)
    if len(a) != len(b) or not all(map(math.isfinite, a)):
        return math.nan
    if by.metric == "euclidean":
        return _sum([(x - y) * (x - y) for x, y in zip(a, b, strict=True)])
    dot = _sum([x * y for x, y in zip(a, b, strict=True)])
    if by.metric == "dot":
        return dot
    norm, other = (math.sqrt(_sum([x * x for x in one])) for one in (a, b))
    if norm == 0:
        return math.nan
    with np.errstate(all="ignore"):
        return float(np.float64(dot) / np.float64(norm * other))  # IEEE, also where the product is 0


KEYS: dict[str, Callable[[Any, list[float]], float]] = {  # by word: the key from the value and the numbers of a row
    "linear": lambda by, xs: _sum([w * x for (_, w), x in zip(by.terms, xs, strict=True)]),
    "quadratic": lambda by, xs: _sum([w * (x * x) for (_, w), x in zip(by.terms, xs, strict=True)]),
    "product": lambda by, xs: _product([w + x for (_, w), x in zip(by.terms, xs, strict=True)]),
    "nearest": _distance,
    "similar": _likeness,  # the numbers are the vector's components
}


def score_of(by: Any, key: float) -> float:
    """The reported score: Euclidean distances are ranked by the sum of squares and reported as its root."""
    metric = {"nearest": "metric", "similar": "metric", "global": "combine"}.get(getattr(by, "word", ""), "word")
    euclidean = getattr(by, metric, "") == "euclidean"
    return math.sqrt(key) if euclidean and key >= 0 else key


def pair_key(by: Any, older: Row, newer: Row) -> float | None:
    """The key by which a pair is ranked; in expressions `a` is the older member."""
    if isinstance(by, str):
        members = {"a": older, "b": newer}
        return number(evaluate(parse(by), lambda member, column: plain(members[member].get(column))))
    if callable(by):
        return number(np.asarray(by(_batch(older), _batch(newer))).reshape(-1)[0])
    if by.word != "global":
        raise QueryError(f"the oracle cannot score pairs by {by!r}. Add its arithmetic to oracle/scores.py.")
    parts = []
    for column, local in by.terms:
        text = parse(by.transform[column]) if column in by.transform else exp.column(column)
        a, b = _number_of(text, older), _number_of(text, newer)
        if a is None or b is None:
            return None
        part = abs(a - b) if local == "absdiff" else a + b
        part = part * part if by.combine == "euclidean" else part
        parts.append(by.weights[column] * part if column in by.weights else part)
    if by.combine == "max":
        return math.nan if any(math.isnan(part) for part in parts) else max(parts)
    return _product(parts) if by.combine == "product" else _sum(parts)


def _number_of(text: exp.Expr, row: Row) -> float | None:
    return number(evaluate(text, lambda _, column: plain(row.get(column))))


def joins(on: str | None, older: Row, newer: Row) -> bool:
    """Whether two objects are a pair: `a` is the older, and null is not true."""
    if on is None:
        return True
    members = {"a": older, "b": newer}
    return truth(evaluate(parse(on), lambda member, column: plain(members[member].get(column)))) is True


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
