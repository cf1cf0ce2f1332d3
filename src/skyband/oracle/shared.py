"""Queries that are the same but for k and the length of the window."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from skyband.errors import QueryError
from skyband.query.kinds import Above, Query, TopKGroups
from skyband.query.windows import Ever, Last, Session, UntilDeleted, Window

#: The arguments that may differ between relatives: the size of the answer, and how it is computed.
_FREE = ("k", "k_max", "window", "largest", "symmetric", "algorithm", "gamma", "sigma", "additional", "buffer")


def related(one: Query, other: Query) -> bool:
    """The same kind, scoring, direction, `where` and `per`, and windows of one type."""
    return type(one) is type(other) and _common(one) == _common(other) and _type(one.window) == _type(other.window)


def shares(query: Query) -> bool:
    """Whether its relatives keep for it what they keep; TopK and Above over answers keep their own."""
    return isinstance(query, TopKGroups) or getattr(query, "source", None) is None


def fits(query: Query, relatives: list[Query]) -> bool:
    """Whether neither its k nor its window is larger than the largest of its relatives."""
    larger_k = _most(query) > max(map(_most, relatives))
    larger_window = size(query.window) > max(size(relative.window) for relative in relatives)
    lower = isinstance(query, Above) and query.threshold < min(
        relative.threshold for relative in relatives if isinstance(relative, Above)
    )
    return not (larger_k or larger_window or lower)


def _most(query: Query) -> int:
    """The k of a query, or the largest that a column may ask for."""
    found: int = getattr(query, "most", getattr(query, "k", 0))
    return found


def narrowed(query: Query, k: int | None, window: Window | None) -> Query:
    """The query with a smaller k or window."""
    if k is not None:
        if not hasattr(query, "k") or k > _most(query):
            raise QueryError(f"answer(k={k}): larger than the k of {query!r}.")
        name = "k_max" if isinstance(query.k, str) else "k"
        query = replace(query, **{name: k})  # type: ignore[type-var]
    if window is not None:
        if isinstance(query.window, Ever) or _type(window) != _type(query.window) or size(window) > size(query.window):
            raise QueryError(f"answer(window={window!r}): not inside {query.window!r}.")
        query = replace(query, window=window)  # type: ignore[type-var]
    return query


def size(window: Window) -> int:
    """The length of a window, for comparing windows of one type."""
    if isinstance(window, Session):
        return size(window.silence)
    return (window.count or window.nanoseconds or window.span or 0) if isinstance(window, Last) else 0


def _type(window: Window) -> str:
    if isinstance(window, UntilDeleted):
        return "until deleted"
    if isinstance(window, Session):
        return repr(window)
    if isinstance(window, Ever):
        return "ever"
    return "count" if window.count is not None else "duration" if window.nanoseconds is not None else "span"


def _common(query: Query) -> dict[str, Any]:
    free = (*_FREE, "threshold") if isinstance(query, Above) else _FREE
    common = {field.name: getattr(query, field.name) for field in fields(query) if field.name not in free}  # type: ignore[arg-type]
    return common | {"directions": query.directions}
