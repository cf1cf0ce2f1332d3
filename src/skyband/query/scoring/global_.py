"""Global: a score of pairs, combined from one local function per column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from skyband.errors import QueryError
from skyband.query.expressions import parse
from skyband.query.scoring.base import Floats, PairForm, Scoring, checked_column
from skyband.query.validation import is_word

Local: TypeAlias = Literal["absdiff", "sum"]
Combine: TypeAlias = Literal["sum", "product", "max", "euclidean", "manhattan"]
_LOCAL = ("absdiff", "sum")
_COMBINE = ("sum", "product", "max", "euclidean", "manhattan")
_DISTANCES = ("euclidean", "manhattan")


@dataclass(frozen=True, init=False, repr=False)
class Global(Scoring):
    """A score of pairs: one local function per column, combined by a monotone one (shen2012, section 5).

    Parameters
    ----------
    local : mapping of str to {"absdiff", "sum"}
        The local function of each column: "absdiff" is |a.x - b.x|, "sum" is a.x + b.x.
    combine : {"sum", "product", "max", "euclidean", "manhattan"}, default "sum"
        How the local scores are combined, in the order of the columns. "euclidean" and "manhattan" are distances, of
        columns with "absdiff"; "euclidean" ranks by the sum of squares and reports its root.
    weights : mapping of str to float, optional
        A factor of each local score ("euclidean": of its square), else 1. Of distances they are positive.
    transform : mapping of str to str, optional
        An expression over a row in place of a column, such as {"price": "ln(price)"}.

    Examples
    --------
    >>> Global({"x": "absdiff", "y": "absdiff"})
    Global({'x': 'absdiff', 'y': 'absdiff'}, combine='sum')
    >>> Global({"price": "absdiff", "bid": "sum"}, weights={"bid": -0.5}, transform={"price": "ln(price)"})
    Global({'price': 'absdiff', 'bid': 'sum'}, combine='sum', weights={'bid': -0.5}, transform={'price': 'ln(price)'})

    """

    word = "global"
    example = "absdiff"
    options: ClassVar[Mapping[str, Any]] = {"combine": "sum", "weights": {"x": 2}, "transform": {"x": "ln(x)"}}
    scores_objects = False
    scores_pairs = True

    terms: tuple[tuple[str, str], ...]
    combine: str
    factors: tuple[tuple[str, float], ...]
    transforms: tuple[tuple[str, str], ...]

    def __init__(
        self,
        local: Mapping[str, Local],
        combine: Combine = "sum",
        *,
        weights: Mapping[str, float] | None = None,
        transform: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(local, Mapping) or not local:
            raise QueryError(
                f'Global takes a mapping of column to local function, such as {{"x": "absdiff"}}; got {local!r}.'
            )
        for name, function in local.items():
            checked_column("Global", name)
            if not is_word(function, _LOCAL):
                raise QueryError(f"Global: {function!r} (of {name}) is unknown. Use one of {', '.join(_LOCAL)}.")
        if not is_word(combine, _COMBINE):
            raise QueryError(f"Global: combine {combine!r} is unknown. Use one of {', '.join(_COMBINE)}.")
        if combine in _DISTANCES and "sum" in local.values():
            raise QueryError(f'Global: the {combine} distance is of differences. Use "absdiff" for every column.')
        factors, texts = _known("weights", weights, local), _known("transform", transform, local)
        for name, factor in factors.items():
            number = isinstance(factor, int | float) and not isinstance(factor, bool) and -1e308 < factor < 1e308
            if not number or (combine in _DISTANCES and factor <= 0):
                which = "positive " if combine in _DISTANCES else ""
                raise QueryError(f"Global: the weight of {name} must be a {which}number; got {factor!r}.")
        for name, text in texts.items():
            if not isinstance(text, str) or parse(text).kind not in (None, "number") or parse(text).each:
                raise QueryError(f"Global: transform {name} by an expression over a row, such as ln(x); got {text!r}.")
        object.__setattr__(self, "terms", tuple(local.items()))
        object.__setattr__(self, "combine", combine)
        object.__setattr__(self, "factors", tuple((name, float(factor)) for name, factor in factors.items()))
        object.__setattr__(self, "transforms", tuple(texts.items()))

    @property
    def local(self) -> dict[str, str]:
        """The local functions, by column."""
        return dict(self.terms)

    @property
    def weights(self) -> dict[str, float]:
        """The weights, by column, as far as they were given."""
        return dict(self.factors)

    @property
    def transform(self) -> dict[str, str]:
        """The expressions in place of columns, as far as they were given."""
        return dict(self.transforms)

    @property
    def columns(self) -> tuple[str, ...]:
        texts = self.transform
        read = [parse(texts[name]).columns if name in texts else (name,) for name, _ in self.terms]
        return tuple(dict.fromkeys(name for names in read for name in names))

    @property
    def pair_form(self) -> PairForm:
        weights = tuple(self.weights.get(name, 1.0) for name, _ in self.terms) if self.factors else ()
        texts = tuple(self.transform.get(name) for name, _ in self.terms) if self.transforms else ()
        return PairForm(self.terms, "sum" if self.combine == "manhattan" else self.combine, weights, texts)

    def score(self, key: Floats) -> Floats:
        return np.sqrt(key) if self.combine == "euclidean" else key

    def pair_key(self, older: Mapping[str, Any], newer: Mapping[str, Any]) -> Any:
        """From the columns as they are transformed, null as NaN."""
        total: Any = None
        with np.errstate(all="ignore"):
            for name, way in self.terms:
                a, b = older[name], newer[name]
                part = np.abs(a - b) if way == "absdiff" else a + b
                part = part * part if self.combine == "euclidean" else part
                part = self.weights[name] * part if name in self.weights else part
                total = part if total is None else _combined(self.combine, total, part)
        return total

    def to_dict(self) -> dict[str, Any]:
        more = {"weights": self.weights, "transform": self.transform}
        return {"global": self.local, "combine": self.combine, **{name: one for name, one in more.items() if one}}

    def __repr__(self) -> str:
        more = {"weights": self.weights, "transform": self.transform}
        said = "".join(f", {name}={one!r}" for name, one in more.items() if one)
        return f"Global({self.local!r}, combine={self.combine!r}{said})"


def _known(what: str, given: Mapping[str, Any] | None, local: Mapping[str, Any]) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise QueryError(f"Global: {what} is a mapping by column; got {given!r}.")
    for name in given or ():
        if name not in local:
            raise QueryError(f"Global: {what} names {name!r}, which has no local function. Use {', '.join(local)}.")
    return dict(given or {})


def _combined(combine: str, total: Any, part: Any) -> Any:
    if combine == "product":
        return total * part
    if combine == "max":
        return np.where((part > total) | np.isnan(part), part, total)
    return total + part
