"""TopK: the k best objects of a window."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from skyband.errors import QueryError
from skyband.query.each import Each
from skyband.query.kinds.query import Query
from skyband.query.scoring import By, check_scoring, scoring_of
from skyband.query.sql.text import number
from skyband.query.tuning import Tuning
from skyband.query.validation import condition, direction, each_or_whole_number, number_between, whole_number
from skyband.query.windows import Window


@dataclass(frozen=True, repr=False)
class TopK(Query):
    """The k best objects of the window.

    Parameters
    ----------
    k : int or Each
        The number of objects in an answer, at least 1.
    by : str, scoring or callable
        The score of an object: a column, an expression such as "0.7*x + 0.3*y", `Linear`, `Product`, `Quadratic`,
        `Nearest`, or a function from a batch (a mapping of column to NumPy array) to one float per row.
    window : Last or UntilDeleted
        How long objects are valid: `Last(1000)` arrivals, `Last("10 minutes")`, `Last(span=300)`, `UntilDeleted()`.
    largest : bool, optional
        Whether the largest score is best. None: it is, except for `Nearest`.
    where : str, optional
        A condition in SQL. An object that fails it still moves the window, but is never an answer.
    per : str or iterable of str, optional
        One answer, and one window, per value of these columns; null is a value too.
    algorithm : str, default "auto"
        The name of an algorithm, in any case, or "auto". `sb.explain(query)` tells which one auto takes, and why.

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
        SASF ... RAPF, and BLOCK for many queries: how many recent arrivals wait. None: about 2,000.
    index : bool, optional
        BLOCK, PA, SASF ... RAPF for many queries: whether to index the queries. None: where it helps.
    cells : int, optional
        TMA, SMA, CPM/W, SNN: cells of the grid. None: as many as mouratidis2006 found best.
    view : int or "dynamic", optional
        TSL: how many objects a query's view holds at most. None: as tuned in mouratidis2006.

    Examples
    --------
    >>> from skyband import Last
    >>> TopK(10, by="delay", window=Last("24 hours"), per="origin")
    TopK(k=10, by='delay', window=Last('24 hours'), per=('origin',))

    """

    kind: ClassVar[str] = "TopK"
    k: Any  # int, or Each
    by: By
    window: Window
    _: dataclasses.KW_ONLY
    largest: bool | None = None
    where: str | None = None
    per: str | Iterable[str] | None = None
    algorithm: str = "auto"
    gamma: float = 0.2
    sigma: float = 1e-3
    additional: int = 10
    buffer: int | None = None
    index: bool | None = None
    cells: int | None = None
    view: int | Literal["dynamic"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("k", each_or_whole_number(self.kind, "k", self.k, 1, "10"))
        check_scoring(self.kind, self.by)
        direction(self.kind, self.largest)
        condition(self.kind, self.where)
        self._set("gamma", number_between(f"{self.kind}: gamma", self.gamma, 0, math.inf, "0.2"))
        self._set("sigma", number_between(f"{self.kind}: sigma", self.sigma, 0, 1, "0.001"))
        self._set("additional", whole_number(self.kind, "additional", self.additional, 0, "10"))
        if self.buffer is not None:
            self._set("buffer", whole_number(self.kind, "buffer", self.buffer, 1, "2000"))
        if self.index not in (None, True, False):
            raise QueryError(f"{self.kind}: index must be True, False or None (where it helps); got {self.index!r}.")
        if self.cells is not None:
            self._set("cells", whole_number(self.kind, "cells", self.cells, 1, "20736"))
        if self.view is not None and self.view != "dynamic":
            least = 1 if isinstance(self.k, Each) else self.k
            self._set("view", whole_number(self.kind, "view", self.view, least, "30"))

    @property
    def descending(self) -> bool:
        return not scoring_of(self.by).smallest_first if self.largest is None else self.largest

    @property
    def tuning(self) -> Tuning:
        return Tuning(self.gamma, self.sigma, self.additional, self.buffer, self.index, self.cells, self.view)

    def more_sql(self, values: dict[str, Any]) -> list[str]:
        if self.algorithm != "PA":
            return []
        del values["algorithm"]
        return [f"APPROXIMATE {number(values.pop('sigma'))}"]
