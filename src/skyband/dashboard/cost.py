"""The work that a query may cause on a server: checked before it is added, by its numbers and by `explain`'s models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyband.dashboard import limits
from skyband.engines.unsubscribed import example_of
from skyband.errors import QueryError
from skyband.explain import explain
from skyband.query.kinds import Query
from skyband.query.windows import Last


def affordable(query: Query) -> None:
    """Refuse a query that would take too much of the server, with what to change."""
    if query.each:  # what subscriptions bring is checked when they do
        query = example_of(query)
    _limit("k", getattr(query, "k", 0), most_of(query, "k") or 0, "Ask for fewer.")
    window = query.window
    if isinstance(window, Last):
        _limit("the window", window.count or 0, most_of(query, "count") or 0, "Use fewer ROWS.")
        days = limits.SPAN // 86_400 // 10**9
        if (window.nanoseconds or 0) > limits.SPAN:
            raise QueryError(f"a window of this server is at most {days:,} days long. Use a shorter one.")
    for name, value in _numbers(query.to_dict()):
        _limit(name, value, limits.NUMBER, "Use a smaller one.")
    for name, size in _sizes(query):
        _limit(f"the number of {name}", size, limits.COLUMNS, "Use fewer.")
    expected = explain(query)
    if (expected.bytes or 0) > limits.BYTES:
        raise QueryError(
            f"{expected.algorithm} would keep about {expected.bytes:,} bytes in each group; this server takes queries "
            f"up to {limits.BYTES:,}. Use a smaller k or window, or another algorithm."
        )


def most_of(query: Query, role: str) -> int | None:
    """The largest value of a query's k, of its window as a count, a size in nanoseconds or a span; None: any."""
    if role == "k":  # an arrival costs work that grows with it
        return limits.K_PAIRS if query.kind in ("TopKPairs", "TopKUncertain") else limits.K
    if role == "count":
        return limits.WINDOW_PAIRS if query.kind == "TopKPairs" else limits.WINDOW
    return limits.SPAN if role in ("size", "span") else None


def _limit(what: str, value: int, most: int, instead: str) -> None:
    if value > most:
        raise QueryError(f"{what}={value:,}: this server takes {what} up to {most:,}. {instead}")


def _numbers(given: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Whole numbers that tune an algorithm."""
    return [
        (name, value)
        for name, value in given.items()
        if isinstance(value, int) and not isinstance(value, bool) and name not in ("k", "seed", "threshold")
    ]


def _sizes(query: Query) -> list[tuple[str, int]]:
    found = [("columns of per", len(query.per_columns)), ("parts", len(getattr(query, "parts", ())))]
    found.append(("aggregates", len(getattr(query, "aggregates", ()))))
    by = getattr(query, "by", None)
    return [*found, ("columns of the scoring", len(getattr(by, "columns", ()) or ()))]
