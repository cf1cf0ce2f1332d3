"""Checks of the arguments of queries: each returns the checked value, or raises a QueryError with a hint."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from skyband.errors import QueryError
from skyband.query.each import Each
from skyband.query.expressions import parse, ranges
from skyband.query.windows import Ever, UntilDeleted, Window

#: Columns that skyband writes itself; no `per` or `keep` column may take one of these names.
RESERVED = ("query", "subscriber", "at", "time", "id", "id_a", "id_b", "rank", "score", "probability", "diff", "first")


def each_or_whole_number(kind: str, name: str, number: Any, least: int, example: str) -> Any:
    """A whole number, or the `Each` that subscriptions bring one for."""
    return number if isinstance(number, Each) else whole_number(kind, name, number, least, example)


def whole_number(kind: str, name: str, number: object, least: int, example: str) -> int:
    try:
        if isinstance(number, bool):
            raise TypeError
        whole = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise QueryError(
            f"{kind}({name}={number!r}): {name} must be a whole number. Did you mean {name}={example}?"
        ) from None
    if whole < least or whole >= 2**31:
        raise QueryError(
            f"{kind}({name}={whole}): {name} must be at least {least} and below 2^31. Did you mean {name}={example}?"
        )
    return whole


def number_between(what: str, number: object, low: float, high: float, example: str) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not low < number < high:
        raise QueryError(f"{what} must be a number above {low} and below {high}, such as {example}; got {number!r}.")
    return float(number)


def each_or_number(kind: str, number: Any) -> Any:
    """A number, or the `Each` that subscriptions bring one for."""
    return number if isinstance(number, Each) else any_number(kind, number)


def any_number(kind: str, number: object) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or math.isnan(number):
        raise QueryError(f"{kind}: threshold must be a number; got {number!r}.")
    return float(number)


def column_names(what: str, names: object) -> tuple[str, ...]:
    given = () if names is None else (names,) if isinstance(names, str) else names
    listed = tuple(given) if isinstance(given, Iterable) else (given,)
    for name in listed:
        if not isinstance(name, str) or not name:
            raise QueryError(f"{what} names columns by non-empty strings; got {name!r}.")
        if name in RESERVED:
            raise QueryError(
                f"{what}: {name!r} is a column that skyband writes itself ({', '.join(RESERVED)}). "
                "Rename the input's column."
            )
        if listed.count(name) > 1:
            raise QueryError(f"{what} names {name!r} twice. Name each column once.")
    return listed


def direction(kind: str, largest: object) -> None:
    if largest is not None and not isinstance(largest, bool):
        raise QueryError(f"{kind}: largest is True, False or None (largest is best, but for Nearest); got {largest!r}.")


def condition(kind: str, where: object) -> None:
    if where is None:
        return
    if not isinstance(where, str):
        raise QueryError(f'{kind}: where is a condition in SQL, such as "distance > 500"; got {where!r}.')
    for name, (low, high) in ranges(parse(where))[0].items():
        if low > high:
            raise QueryError(
                f"{kind}: where demands a {name!r} from {low:g} up to {high:g}, so nothing can ever be an answer. "
                "Did you mean `between` the other way round, or `or`?"
            )


def moving_window(kind: str, window: Window) -> None:
    if isinstance(window, UntilDeleted):
        raise QueryError(
            f"{kind} needs a window that moves on, such as Last(1000). UntilDeleted is for TopK and Above."
        )


def ending_window(kind: str, window: Window) -> None:
    if isinstance(window, Ever):
        raise QueryError(
            f"{kind} compares each object with all that are valid, and over Ever() that is all that ever arrived. "
            "Use a window that ends, such as Last(1000)."
        )


def part_bounds(parts: object) -> tuple[tuple[str, tuple[float, float]], ...]:
    given: Mapping[Any, Any]
    if isinstance(parts, Mapping):
        given = parts
    elif isinstance(parts, Iterable) and not isinstance(parts, str):
        listed = list(parts)  # a list of names, or what this function returned before
        try:
            given = dict.fromkeys(listed, (0.0, 1.0)) if all(isinstance(p, str) for p in listed) else dict(listed)
        except (TypeError, ValueError):  # neither
            given, listed = {}, []
        if len(given) != len(listed):
            raise QueryError(f"TopKIncomplete: parts names a part twice: {listed!r}.")
    else:
        given = {}
    if not given:
        raise QueryError(
            'TopKIncomplete: parts is a list of names (values in [0, 1]) or {"north": (low, high), ...}; '
            f"got {parts!r}."
        )
    checked = []
    for part, bounds in given.items():
        try:
            low, high = (float(bound) for bound in bounds)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not isinstance(part, str) or not part or not (-math.inf < low < high < math.inf):
            raise QueryError(
                f"TopKIncomplete: part {part!r} needs a name and finite bounds (low, high), low < high; got {bounds!r}."
            )
        checked.append((part, (low, high)))
    return tuple(checked)
