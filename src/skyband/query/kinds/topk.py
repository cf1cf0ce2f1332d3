"""TopK: the k best objects of a window."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from skyband.errors import QueryError
from skyband.query.each import Each
from skyband.query.kinds.query import Query
from skyband.query.scoring import Keys, check_keys, scoring_of
from skyband.query.sql.text import number
from skyband.query.tuning import Tuning
from skyband.query.validation import (
    condition,
    directions,
    each_or_whole_number,
    is_word,
    number_between,
    one_of,
    order_options,
    source_window,
    whole_number,
)
from skyband.query.windows import Session, Window


@dataclass(frozen=True, repr=False)
class TopK(Query):
    """The k best objects of the window.

    Parameters
    ----------
    k : int, Each or str
        The number of objects in an answer, at least 1; or a column that has it: the k of a group is the value in its
        newest row, from 0 to `k_max`.
    by : str, scoring, callable or tuple
        The score of an object: a column, an expression such as "0.7*x + 0.3*y", `Linear`, `Product`, `Quadratic`,
        `Nearest`, or a function from a batch (a mapping of column to NumPy array) to one float per row. A column of
        strings, times, dates or booleans is a key in its own order. A tuple of these: the first decides first; `()`
        ranks by the tie rule alone.
    window : Last, Ever, Session or UntilDeleted
        How long objects are valid: `Last(1000)` arrivals, `Last("10 minutes")`, `Last(span=300)`, `Ever()`,
        `Session("30 minutes")`, `UntilDeleted()`.
    largest : bool or tuple of bool, optional
        Whether the largest score is best, for all keys or for each of them. None: it is, except for `Nearest`.
    where : str, optional
        A condition in SQL. An object that fails it still moves the window, but is never an answer.
    per : str or iterable of str, optional
        One answer, and one window, per value of these columns; null is a value too.
    algorithm : str, default "auto"
        The name of an algorithm, in any case, or "auto". `sb.explain(query)` tells which one auto takes, and why.
    nulls : {"reject", "first", "last"}, default "reject"
        What a null or NaN key does: the row is rejected, or it ranks before or after all others by that key.
    ties : {"newest", "oldest"}, default "newest"
        Which of equal objects ranks above.
    with_ties : bool, default False
        Whether every object equal to the k-th by its keys is an answer too: SQL's RANK() <= k.
    offset : int or Each, default 0
        How many of the best are left out: the answer is ranks offset + 1 to offset + k.
    distinct : {"best", "last"}, optional
        Of the valid objects with one id only the best ranked, or only the newest, counts.
    k_max : int, optional
        The largest k that a column `k` may ask for.
    source : str, optional
        The name of another query: the objects are the members of its answers, and columns are those of its answer.
        The window is then `UntilDeleted()`.

    Other Parameters
    ----------------
    Options of single algorithms; the others ignore them.

    gamma : float, default 0.2
        RA, RASF, RARF, RAPF: how far a relaxed skyband may outgrow the strict one before it is pruned.
    sigma : float, default 0.001
        PA, ADAPTIVE, SAPF, RAPF: the probability of a missed answer, between 0 and 1.
    additional : int, default 10
        PA, ADAPTIVE: candidates beyond those that sigma needs.
    buffer : int, optional
        SASF ... RAPF, and BLOCK for many queries: how many recent arrivals wait. None: 2,000, and
        16,384 for BLOCK, or 100 for each query.
    index : bool, optional
        BLOCK, PA, SASF ... RAPF for many queries: whether to index the queries. None: where it helps.
    cells : int, optional
        TMA, SMA, CPM/W, SNN: cells of the grid. None: as many as mouratidis2006 found best. BLOCK for many queries:
        cells of the index of arrivals (pripuzic2015, Figure 11(b)). None: an eighth of a block's arrivals.
    view : int or "dynamic", optional
        TSL: how many objects a query's view holds at most. None: as tuned in mouratidis2006.

    Examples
    --------
    >>> from skyband import Last
    >>> TopK(10, by="delay", window=Last("24 hours"), per="origin")
    TopK(k=10, by='delay', window=Last('24 hours'), per=('origin',))

    """

    kind: ClassVar[str] = "TopK"
    k: Any  # int, a column, or Each
    by: Keys
    window: Window = None  # type: ignore[assignment]  # UntilDeleted() with `source`
    _: dataclasses.KW_ONLY
    largest: bool | tuple[bool, ...] | None = None
    where: str | None = None
    per: str | Iterable[str] | None = None
    algorithm: str = "auto"
    nulls: str = "reject"
    ties: str = "newest"
    with_ties: bool = False
    offset: Any = 0  # int, or Each
    distinct: str | None = None
    k_max: int | None = None
    source: str | None = None
    gamma: float = 0.2
    sigma: float = 1e-3
    additional: int = 10
    buffer: int | None = None
    index: bool | None = None
    cells: int | None = None
    view: int | Literal["dynamic"] | None = None

    def __post_init__(self) -> None:
        self._set("window", source_window(self.kind, self.source, self.window, self.by))
        super().__post_init__()
        self._check_k()
        self._set("by", check_keys(self.kind, self.by))
        self._set("largest", directions(self.kind, self.largest, self.by))
        if isinstance(self.by, tuple):
            self._set("largest", self.directions or None)
        condition(self.kind, self.where)
        order_options(self)
        one_of(self.kind, "distinct", self.distinct, (None, "best", "last"))
        if self.source is not None and self.distinct is not None:
            raise QueryError(
                f"{self.kind}(source={self.source!r}, distinct={self.distinct!r}): an id is an object in each group "
                "of the source. Let the source be distinct, or ask over the rows themselves."
            )
        self._set("gamma", number_between(f"{self.kind}: gamma", self.gamma, 0, math.inf, "0.2"))
        self._set("sigma", number_between(f"{self.kind}: sigma", self.sigma, 0, 1, "0.001"))
        self._set("additional", whole_number(self.kind, "additional", self.additional, 0, "10"))
        if self.buffer is not None:
            self._set("buffer", whole_number(self.kind, "buffer", self.buffer, 1, "2000"))
        if not (self.index is None or isinstance(self.index, bool | np.bool_)):
            raise QueryError(f"{self.kind}: index must be True, False or None (where it helps); got {self.index!r}.")
        if self.cells is not None:
            self._set("cells", whole_number(self.kind, "cells", self.cells, 1, "20736"))
        if self.view is not None and not is_word(self.view, ("dynamic",)):
            self._set("view", whole_number(self.kind, "view", self.view, self.most, "30"))

    def _check_k(self) -> None:
        """`k` is a number, or a column with `k_max`."""
        if not isinstance(self.k, str):
            self._set("k", each_or_whole_number(self.kind, "k", self.k, 1, "10"))
            if self.k_max is not None:
                raise QueryError(
                    f"{self.kind}(k={self.k}, k_max={self.k_max}): k_max bounds a k that is a column. "
                    'Leave it out, or name the column, such as k="limit".'
                )
            return
        if not self.k or self.k_max is None:
            raise QueryError(
                f"{self.kind}(k={self.k!r}): k must be a whole number, or a column with the largest k that it may ask "
                'for, such as k="limit", k_max=100. Did you mean k=10?'
            )
        self._set("k_max", whole_number(self.kind, "k_max", self.k_max, 1, "100"))

    @property
    def most(self) -> int:
        """The most objects that an answer can have, but for ties."""
        if isinstance(self.k, Each):
            return 1
        return self.k if isinstance(self.k, int) else int(self.k_max or 0)

    @property
    def directions(self) -> tuple[bool, ...]:
        """For each key whether the largest is best."""
        keys = self.by if isinstance(self.by, tuple) else (self.by,)
        given = self.largest if isinstance(self.largest, tuple) else (self.largest,) * len(keys)
        return tuple(
            not scoring_of(key).smallest_first if one is None else one for key, one in zip(keys, given, strict=True)
        )

    @property
    def descending(self) -> bool:
        if isinstance(self.by, tuple):
            return True
        given = self.largest[0] if isinstance(self.largest, tuple) else self.largest
        return not scoring_of(self.by).smallest_first if given is None else given

    @property
    def needs_id(self) -> str | None:
        return None if self.distinct is None else f"with distinct={self.distinct!r} counts each id once"

    @property
    def demands(self) -> frozenset[str]:
        keys = isinstance(self.by, tuple) or self.nulls != "reject" or self.ties != "newest"
        ranks = self.with_ties or self.offset or self.distinct is not None or isinstance(self.k, str)
        ranks = ranks or isinstance(self.window, Session) or self.source is not None
        return frozenset(["keys"] * keys + ["ranks"] * bool(ranks))

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        return super().reads | ({"k": (self.k,)} if isinstance(self.k, str) else {})

    def smaller(self, k: int | None = None, window: Any = None) -> Self:
        if k is None or isinstance(self.k, int):
            return super().smaller(k, window)
        least = min(whole_number(self.kind, "k", k, 1, "10"), self.most)
        return dataclasses.replace(super().smaller(None, window), k_max=least)

    @property
    def tuning(self) -> Tuning:
        return Tuning(self.gamma, self.sigma, self.additional, self.buffer, self.index, self.cells, self.view)

    def more_sql(self, values: dict[str, Any]) -> list[str]:
        if self.algorithm != "PA":
            return []
        del values["algorithm"]
        return [f"APPROXIMATE {number(values.pop('sigma'))}"]
