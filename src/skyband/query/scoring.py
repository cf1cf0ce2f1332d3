"""How an object is scored: values. A score is a float64; terms are taken in the order given.

A scoring names its columns and computes one float64 per row from float64 columns, element by element,
with no fused or reordered arithmetic, so that a score is the same in every engine and on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skyband.errors import QueryError

Floats: TypeAlias = NDArray[np.float64]
Columns: TypeAlias = Mapping[str, Floats]


class Scoring(Protocol):
    """What an engine needs of a scoring value."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def key(self, columns: Columns) -> Floats:
        """What objects are ranked by."""

    def score(self, key: Floats) -> Floats:
        """What is reported, from what objects are ranked by."""

    def to_dict(self) -> dict[str, Any]: ...


def _terms(what: str, terms: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    if not isinstance(terms, Mapping) or not terms:
        raise QueryError(f'{what} takes a mapping of column to number, such as {{"x": 0.7, "y": 0.3}}; got {terms!r}.')
    return tuple((_column(what, name), _number(f"{what}: {name}", number)) for name, number in terms.items())


def _column(what: str, name: object) -> str:
    if not isinstance(name, str) or not name:
        raise QueryError(f"{what}: a column is named by a non-empty string; got {name!r}.")
    return name


def _number(what: str, number: object) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float | np.integer | np.floating):
        raise QueryError(f"{what} must be a number; got {number!r}.")
    value = float(number)
    if not math.isfinite(value):
        raise QueryError(f"{what} must be finite; got {number!r}.")
    return value


@dataclass(frozen=True, init=False, repr=False)
class _Weighted:
    """One number per column; subclasses say how they combine."""

    terms: tuple[tuple[str, float], ...]
    word: ClassVar[str]

    def __init__(self, weights: Mapping[str, float]) -> None:
        object.__setattr__(self, "terms", _terms(type(self).__name__, weights))

    @property
    def weights(self) -> dict[str, float]:
        return dict(self.terms)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    def score(self, key: Floats) -> Floats:
        return key

    def to_dict(self) -> dict[str, Any]:
        return {self.word: self.weights}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weights!r})"


class Linear(_Weighted):
    """The sum of w·x (mouratidis2006, section 8).

    >>> float(Linear({"x": 0.5, "y": 2}).key({"x": np.array([1.0]), "y": np.array([3.0])})[0])
    6.5
    """

    word = "linear"

    def key(self, columns: Columns) -> Floats:
        return _sum([weight * columns[name] for name, weight in self.terms])


class Product(_Weighted):
    """The product of (w + x) (mouratidis2006, section 8)."""

    word = "product"

    def key(self, columns: Columns) -> Floats:
        name, weight = self.terms[0]
        key = weight + columns[name]
        for name, weight in self.terms[1:]:
            key = key * (weight + columns[name])
        return key


class Quadratic(_Weighted):
    """The sum of w·x² (mouratidis2006, section 8)."""

    word = "quadratic"

    def key(self, columns: Columns) -> Floats:
        return _sum([weight * (columns[name] * columns[name]) for name, weight in self.terms])


_METRICS = ("euclidean", "manhattan", "chebyshev")


@dataclass(frozen=True, init=False, repr=False)
class Nearest:
    """The distance to a point; the smallest is best. `weights` multiply each term of the sum.

    Euclidean distances are ranked by the sum of squares and reported as its root.

    >>> Nearest({"x": 0.2, "y": 0.9})
    Nearest({'x': 0.2, 'y': 0.9})
    """

    terms: tuple[tuple[str, float], ...]
    factors: tuple[float, ...] | None
    metric: str

    def __init__(
        self, point: Mapping[str, float], weights: Mapping[str, float] | None = None, metric: str = "euclidean"
    ) -> None:
        terms = _terms("Nearest", point)
        if metric not in _METRICS:
            raise QueryError(f"Nearest: metric {metric!r} is unknown. Use one of {', '.join(_METRICS)}.")
        factors = None
        if weights is not None:
            given = dict(_terms("Nearest: weights", weights))
            if given.keys() != dict(terms).keys():
                raise QueryError(
                    f"Nearest: weights name {sorted(given)}, the point names {sorted(dict(terms))}. "
                    "Give one weight per column."
                )
            if min(given.values()) < 0:
                raise QueryError("Nearest: a weight is negative, so this is no distance. Use weights of 0 or more.")
            factors = tuple(given[name] for name, _ in terms)
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "metric", metric)

    @property
    def point(self) -> dict[str, float]:
        return dict(self.terms)

    @property
    def weights(self) -> dict[str, float] | None:
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
            return _sum(parts)
        key = parts[0]
        for part in parts[1:]:
            key = np.maximum(key, part)
        return key

    def score(self, key: Floats) -> Floats:
        return np.sqrt(key) if self.metric == "euclidean" else key

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"nearest": self.point}
        if self.factors is not None:
            data["weights"] = self.weights
        if self.metric != "euclidean":
            data["metric"] = self.metric
        return data

    def __repr__(self) -> str:
        weights = "" if self.factors is None else f", weights={self.weights!r}"
        metric = "" if self.metric == "euclidean" else f", metric={self.metric!r}"
        return f"Nearest({self.point!r}{weights}{metric})"


_LOCAL = ("absdiff", "sum")


@dataclass(frozen=True, init=False, repr=False)
class Global:
    """A scoring of pairs: one local function per attribute, combined by a monotone one (shen2012, section 5).

    Local functions: "absdiff" is |a.x - b.x|, "sum" is a.x + b.x.
    """

    terms: tuple[tuple[str, str], ...]
    combine: str

    def __init__(self, local: Mapping[str, str], combine: str = "sum") -> None:
        if not isinstance(local, Mapping) or not local:
            raise QueryError(
                f'Global takes a mapping of column to local function, such as {{"x": "absdiff"}}; got {local!r}.'
            )
        for name, function in local.items():
            _column("Global", name)
            if function not in _LOCAL:
                raise QueryError(f"Global: {function!r} (of {name}) is unknown. Use one of {', '.join(_LOCAL)}.")
        if combine not in ("sum", "product"):
            raise QueryError(f'Global: combine {combine!r} is unknown. Use "sum" or "product".')
        object.__setattr__(self, "terms", tuple(local.items()))
        object.__setattr__(self, "combine", combine)

    @property
    def local(self) -> dict[str, str]:
        return dict(self.terms)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    def to_dict(self) -> dict[str, Any]:
        return {"global": self.local, "combine": self.combine}

    def __repr__(self) -> str:
        return f"Global({self.local!r}, combine={self.combine!r})"


By: TypeAlias = str | Linear | Product | Quadratic | Nearest | Global | Callable[..., Any]


_SCORINGS: dict[str, Callable[..., Any]] = {
    "linear": Linear,
    "product": Product,
    "quadratic": Quadratic,
    "nearest": Nearest,
    "global": Global,
}
_FIELDS: dict[str, frozenset[str]] = {
    "linear": frozenset(),
    "product": frozenset(),
    "quadratic": frozenset(),
    "nearest": frozenset({"weights", "metric"}),
    "global": frozenset({"combine"}),
    "callable": frozenset(),
}


def by_to_dict(by: By) -> Any:
    """A scoring as JSON-ready data; a callable is named, not stored."""
    if isinstance(by, str):
        return by
    if isinstance(by, _Weighted | Nearest | Global):
        return by.to_dict()
    return {"callable": getattr(by, "__qualname__", type(by).__qualname__)}


def by_from_dict(data: Any, call: Callable[..., Any] | None = None) -> By:
    """The inverse of `by_to_dict`; `call` is the function itself where a callable was stored."""
    if isinstance(data, str):
        return data
    stored: dict[str, Any] = dict(data) if isinstance(data, Mapping) else {}
    word = next(iter(stored), None)
    if isinstance(word, str) and stored.keys() - {word} <= _FIELDS.get(word, frozenset()) and word in _FIELDS:
        value = stored.pop(word)
        if word != "callable":
            made: By = _SCORINGS[word](value, **stored)
            return made
        if call is None:
            raise QueryError(
                f"this query scores by the Python function {value!r}, which is never stored. "
                "Give the function itself, for example callables={'q0': my_function} by the query's name."
            )
        return call
    raise QueryError(
        f"{data!r} is not a scoring. Use a column or expression, or one of "
        '{"linear": {...}}, {"product": {...}}, {"quadratic": {...}}, {"nearest": {...}}, {"global": {...}}.'
    )


def _sum(parts: Sequence[Floats]) -> Floats:
    total = parts[0]
    for part in parts[1:]:  # in the order given: np.sum would pair terms up
        total = total + part
    return total
