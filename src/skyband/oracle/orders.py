"""Orders of keys: each key keeps its type; the first decides, the next among its equals, then age."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cmp_to_key
from typing import Any, TypeVar

import numpy as np

from skyband.oracle.objects import Arrival, Member, Row
from skyband.oracle.scalar import evaluate, parse, plain
from skyband.oracle.scores import columns_of, key_of, score_of
from skyband.query.kinds import TopK, TopKGroups

Ranked = TopK | TopKGroups
T = TypeVar("T", Arrival, Member)


def keys_of(query: Ranked) -> tuple[Any, ...]:
    return query.by if isinstance(query.by, tuple) else (query.by,)


def is_plain(by: Any) -> bool:
    """Whether a key is a column as it is."""
    return isinstance(by, str) and columns_of(by) == {by.strip("`")}


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal | np.number) and not isinstance(value, bool | np.bool_)


def key_value(by: Any, row: Row) -> Any:
    """The value of one key; None for null and NaN."""
    if is_plain(by):
        value = row.get(by.strip("`"))
    elif isinstance(by, str):
        value = evaluate(parse(by), lambda _, column: plain(row.get(column)))
    else:
        value = key_of(by, row)
    return None if isinstance(value, float) and math.isnan(value) else value


def compare_keys(query: Ranked, one: T, other: T) -> int:
    """Positive: one ranks above the other by the keys alone; 0: all are equal."""
    both = zip(one.keys, other.keys, query.directions, strict=True)
    for x, y, descending in [part for a, b, way in both for part in parts(a, b, way)]:
        if x is None or y is None:
            if x is y:
                continue
            null_first = query.nulls == "first"
            return 1 if (x is None) == null_first else -1
        if x == y:
            continue
        if isinstance(x, str):
            x, y = x.encode(), y.encode()
        return 1 if (x > y) == descending else -1
    return 0


def parts(x: Any, y: Any, descending: bool) -> list[tuple[Any, Any, bool]]:
    """What is compared of two keys: a struct is compared field by field."""
    if isinstance(x, dict):
        return [(x[name], y[name], descending) for name in x]
    return [(x, y, descending)]


def answer_of(query: Ranked, ranked: list[T], k: int) -> list[tuple[T, int]]:
    """Ranks offset + 1 to offset + k; with ties all that fewer than k others rank above by their keys."""
    if query.with_ties:
        better = [sum(compare_keys(query, other, o) > 0 for other in ranked) for o in ranked]
        return [(o, above + 1) for o, above in zip(ranked, better, strict=True) if above < k]
    return [(o, i + 1) for i, o in enumerate(ranked)][query.offset : query.offset + k]


def ranking(query: Ranked, objects: list[T]) -> list[T]:
    """All eligible objects, best first: by the keys, then by age."""

    def above(one: T, other: T) -> int:
        by_keys = compare_keys(query, one, other)
        if by_keys:
            return -by_keys
        newer = 1 if one.age > other.age else -1
        return newer if query.ties == "oldest" else -newer

    return sorted((o for o in objects if o.eligible), key=cmp_to_key(above))


def score_of_keys(query: Ranked, keys: tuple[Any, ...]) -> float | None:
    """The first key if it is a number, as it is reported."""
    if not keys or not is_number(keys[0]):
        return None
    return float(keys[0]) if isinstance(query, TopKGroups) else score_of(keys_of(query)[0], float(keys[0]))
