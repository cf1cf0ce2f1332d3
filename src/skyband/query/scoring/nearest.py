"""Nearest: the distance to a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from skyband.errors import QueryError
from skyband.query.each import Each, Need, bound
from skyband.query.scoring.base import (
    EVERYTHING,
    Box,
    Columns,
    Floats,
    Scoring,
    checked_terms,
    interval,
    needs_of,
    scaled,
    squared,
    stored_terms,
    total,
)
from skyband.query.scoring.forms import CHEBYSHEV, EUCLIDEAN, MANHATTAN, KernelForm

Metric: TypeAlias = Literal["euclidean", "manhattan", "chebyshev"]
_CODES = {"euclidean": EUCLIDEAN, "manhattan": MANHATTAN, "chebyshev": CHEBYSHEV}


@dataclass(frozen=True, init=False, repr=False)
class Nearest(Scoring):
    """The distance to a point; the smallest is best.

    Parameters
    ----------
    point : mapping of str to float
        The point, by column.
    weights : mapping of str to float, optional
        One factor of 0 or more per column, for its term of the distance: w·(x - c)² or w·|x - c|. None: 1 each.
    metric : {"euclidean", "manhattan", "chebyshev"}, default "euclidean"
        The root of the sum of squares, the sum of absolute differences, or the largest of them. Euclidean distances
        are ranked by the sum of squares, and reported as its root.

    Examples
    --------
    >>> Nearest({"x": 0.2, "y": 0.9})
    Nearest({'x': 0.2, 'y': 0.9})

    """

    word = "nearest"
    options: ClassVar[Mapping[str, Any]] = {"metric": "manhattan", "weights": {"x": 1}}

    terms: tuple[tuple[str, float], ...]
    factors: tuple[float, ...] | None
    metric: Metric

    def __init__(
        self,
        point: Mapping[str, float | Each],
        weights: Mapping[str, float | Each] | None = None,
        metric: Metric = "euclidean",
    ) -> None:
        terms = checked_terms("Nearest", point)
        if metric not in _CODES:
            raise QueryError(f"Nearest: metric {metric!r} is unknown. Use one of {', '.join(_CODES)}.")
        factors = None
        if weights is not None:
            given = dict(checked_terms("Nearest: weights", weights))
            if given.keys() != dict(terms).keys():
                raise QueryError(
                    f"Nearest: weights name {sorted(given)}, the point names {sorted(dict(terms))}. "
                    "Give one weight per column."
                )
            if any(weight < 0 for weight in given.values() if not isinstance(weight, Each)):
                raise QueryError("Nearest: a weight is negative, so this is no distance. Use weights of 0 or more.")
            factors = tuple(given[name] for name, _ in terms)
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "metric", metric)

    @property
    def smallest_first(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[Need, ...]:
        weights = () if self.factors is None else tuple(zip(self.point, self.factors, strict=True))
        return needs_of(self.terms, "number", "Nearest") + needs_of(weights, "weight", "Nearest: weights")

    def bind(self, values: Mapping[str, Any]) -> Nearest:
        weights = None if self.weights is None else {name: bound(one, values) for name, one in self.weights.items()}
        return Nearest({name: bound(at, values) for name, at in self.terms}, weights, self.metric)

    @property
    def point(self) -> dict[str, float]:
        """The point, by column."""
        return dict(self.terms)

    @property
    def weights(self) -> dict[str, float] | None:
        """The factors of the terms, by column; None: 1 each."""
        return None if self.factors is None else dict(zip(self.point, self.factors, strict=True))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    def key(self, columns: Columns) -> Floats:
        away = [columns[name] - at for name, at in self.terms]
        parts = [part * part for part in away] if self.metric == "euclidean" else [np.abs(part) for part in away]
        if self.factors is not None:
            parts = [factor * part for factor, part in zip(self.factors, parts, strict=True)]
        if self.metric != "chebyshev":
            return total(parts)
        key = parts[0]
        for part in parts[1:]:
            key = np.maximum(key, part)
        return key

    def score(self, key: Floats) -> Floats:
        return np.sqrt(key) if self.metric == "euclidean" else key

    @cached_property
    def form(self) -> KernelForm:
        return KernelForm(_CODES[self.metric], tuple(at for _, at in self.terms), self.factors or ())

    def bound(self, box: Box) -> tuple[float, float]:
        terms = []
        for factor, (name, at) in zip(self.factors or [1.0] * len(self.terms), self.terms, strict=True):
            low, high = (end - at for end in box.get(name, EVERYTHING))
            if self.metric == "euclidean":
                near, far = squared(low, high)
            else:
                near, far = 0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))
            terms.append(scaled(factor, near, far))
        join: Any = max if self.metric == "chebyshev" else total
        return interval(terms, join)

    def recognised(self) -> tuple[str, str]:
        return "distance", super().recognised()[1]

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"nearest": stored_terms(self.point)}
        if self.weights is not None:
            data["weights"] = stored_terms(self.weights)
        if self.metric != "euclidean":
            data["metric"] = self.metric
        return data

    def __repr__(self) -> str:
        weights = "" if self.factors is None else f", weights={self.weights!r}"
        metric = "" if self.metric == "euclidean" else f", metric={self.metric!r}"
        return f"Nearest({self.point!r}{weights}{metric})"
