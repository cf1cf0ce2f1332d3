"""Queries as engines see them: specs, and which queries can share an engine."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from skyband.engines.contract import EVER, NEVER, Spec
from skyband.query.kinds import Query, TopK
from skyband.query.tuning import Tuning
from skyband.query.windows import Ever, Last, Session

_OWN = ("k", "k_max", "window", "largest", "algorithm", *(field.name for field in fields(Tuning)))


def length_of(query: Query, unit: int | None) -> int:
    """The length of a query's window, in arrivals or units of time."""
    if isinstance(query.window, Last | Session):
        return query.window.length(unit)
    return EVER if isinstance(query.window, Ever) else NEVER


def spec_of(query: Query, unit: int | None) -> Spec:
    """The query as engines see it."""
    if isinstance(query, TopK):
        return Spec(query.most, length_of(query, unit))
    threshold, semantics = getattr(query, "threshold", None), getattr(query, "semantics", None)
    k = getattr(query, "most", getattr(query, "k", 0))
    return Spec(k, length_of(query, unit), threshold, semantics)


def fits(spec: Spec, specs: tuple[Spec, ...]) -> bool:
    """Whether a state for these queries is enough for another."""
    if spec.threshold is not None and spec.semantics is None:  # of Above
        return spec.threshold >= min(one.threshold for one in specs if one.threshold is not None)
    return spec.k <= max(one.k for one in specs) and spec.length <= max(one.length for one in specs)


def shared_key(query: Query) -> tuple[Any, ...]:
    """Equal for queries that differ only in k, in their window and in how they are answered."""
    values = {field.name: getattr(query, field.name) for field in fields(query) if field.name not in _OWN}  # type: ignore[arg-type]
    by = values.pop("by", None)
    return (query.kind, _hashable(by), query.directions, *values.values())


def _hashable(by: Any) -> Any:
    """Functions are equal only to themselves."""
    return tuple(map(_hashable, by)) if isinstance(by, tuple) else id(by) if callable(by) else by
