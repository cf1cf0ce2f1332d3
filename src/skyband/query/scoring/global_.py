"""Global: a score of pairs, combined from one local function per column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from skyband.errors import QueryError
from skyband.query.scoring.base import PairForm, Scoring, checked_column

Local: TypeAlias = Literal["absdiff", "sum"]
Combine: TypeAlias = Literal["sum", "product"]
_LOCAL = ("absdiff", "sum")


@dataclass(frozen=True, init=False, repr=False)
class Global(Scoring):
    """A score of pairs: one local function per column, combined by a monotone one (shen2012, section 5).

    Parameters
    ----------
    local : mapping of str to {"absdiff", "sum"}
        The local function of each column: "absdiff" is |a.x - b.x|, "sum" is a.x + b.x.
    combine : {"sum", "product"}, default "sum"
        How the local scores are combined, in the order of the columns.

    Examples
    --------
    >>> Global({"x": "absdiff", "y": "absdiff"})
    Global({'x': 'absdiff', 'y': 'absdiff'}, combine='sum')

    """

    word = "global"
    example = "absdiff"
    options: ClassVar[Mapping[str, Any]] = {"combine": "sum"}
    scores_objects = False
    scores_pairs = True

    terms: tuple[tuple[str, str], ...]
    combine: str

    def __init__(self, local: Mapping[str, Local], combine: Combine = "sum") -> None:
        if not isinstance(local, Mapping) or not local:
            raise QueryError(
                f'Global takes a mapping of column to local function, such as {{"x": "absdiff"}}; got {local!r}.'
            )
        for name, function in local.items():
            checked_column("Global", name)
            if function not in _LOCAL:
                raise QueryError(f"Global: {function!r} (of {name}) is unknown. Use one of {', '.join(_LOCAL)}.")
        if combine not in ("sum", "product"):
            raise QueryError(f'Global: combine {combine!r} is unknown. Use "sum" or "product".')
        object.__setattr__(self, "terms", tuple(local.items()))
        object.__setattr__(self, "combine", combine)

    @property
    def local(self) -> dict[str, str]:
        """The local functions, by column."""
        return dict(self.terms)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    @property
    def pair_form(self) -> PairForm:
        return self.terms, self.combine

    def pair_key(self, older: Mapping[str, Any], newer: Mapping[str, Any]) -> Any:
        total: Any = None
        with np.errstate(all="ignore"):
            for name, way in self.terms:
                a, b = np.asarray(older[name], np.float64), np.asarray(newer[name], np.float64)
                part = np.abs(a - b) if way == "absdiff" else a + b
                total = part if total is None else total + part if self.combine == "sum" else total * part
        return total

    def to_dict(self) -> dict[str, Any]:
        return {"global": self.local, "combine": self.combine}

    def __repr__(self) -> str:
        return f"Global({self.local!r}, combine={self.combine!r})"
