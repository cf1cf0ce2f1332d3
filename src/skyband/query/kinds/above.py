"""Above: all objects of a window whose score is above a threshold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from skyband.errors import QueryError
from skyband.query.kinds.query import Query
from skyband.query.scoring import By, check_scoring, scoring_of
from skyband.query.sql.text import number
from skyband.query.tuning import Tuning
from skyband.query.validation import condition, each_or_number, source_window, whole_number
from skyband.query.windows import Session, Window


@dataclass(frozen=True, repr=False)
class Above(Query):
    """All objects of the window whose score is strictly above a threshold.

    Parameters
    ----------
    threshold : float or Each
        The score that an answer must exceed; infinities are allowed.
    by : str, scoring or callable
        The score of an object: a column, an expression such as "0.7*x + 0.3*y", `Linear`, `Product`, `Quadratic`,
        or a function from a batch (a mapping of column to NumPy array) to one float per row. Not `Nearest`,
        whose smallest scores are best.
    window : Last, Ever or UntilDeleted
        How long objects are valid: `Last(1000)` arrivals, `Last("10 minutes")`, `Last(span=300)`, `Ever()`,
        `UntilDeleted()`.
    where : str, optional
        A condition in SQL. An object that fails it still moves the window, but is never an answer.
    per : str or iterable of str, optional
        One answer, and one window, per value of these columns; null is a value too.
    algorithm : str, default "auto"
        The name of an algorithm, in any case, or "auto". `sb.explain(query)` tells which one auto takes, and why.
    source : str, optional
        The name of another query: the objects are the members of its answers, and columns are those of its answer.
        The window is then `UntilDeleted()`.

    Other Parameters
    ----------------
    Options of single algorithms; the others ignore them.

    cells : int, optional
        TMA, SMA: cells of the grid. None: as many as mouratidis2006 found best.

    Examples
    --------
    >>> from skyband import Last
    >>> Above(60, by="delay", window=Last(1000))
    Above(threshold=60.0, by='delay', window=Last(1000))

    """

    kind: ClassVar[str] = "Above"
    threshold: Any  # float, or Each
    by: By
    window: Window = None  # type: ignore[assignment]  # UntilDeleted() with `source`
    _: dataclasses.KW_ONLY
    where: str | None = None
    per: str | Iterable[str] | None = None
    algorithm: str = "auto"
    source: str | None = None
    cells: int | None = None

    def __post_init__(self) -> None:
        self._set("window", source_window(self.kind, self.source, self.window, self.by))
        super().__post_init__()
        self._set("threshold", each_or_number(self.kind, self.threshold))
        if self.cells is not None:
            self._set("cells", whole_number(self.kind, "cells", self.cells, 1, "20736"))
        if (scoring := check_scoring(self.kind, self.by)).smallest_first:
            raise QueryError(
                f"Above: {type(self.by).__name__} ranks the smallest first, so 'above' would mean the far ones. "
                f"{scoring.instead_of_above}"
            )
        condition(self.kind, self.where)

    @property
    def descending(self) -> bool:
        return True

    @property
    def demands(self) -> frozenset[str]:
        return frozenset(["ranks"] * (isinstance(self.window, Session) or self.source is not None))

    @property
    def tuning(self) -> Tuning:
        return Tuning(cells=self.cells)

    def smaller(self, k: int | None = None, window: Any = None) -> Self:
        if k is not None:
            raise QueryError(f"k={k}: Above answers with all that are above its threshold. Ask without k.")
        return super().smaller(None, window)

    def ranking_sql(self, values: dict[str, Any]) -> list[str]:
        return [f"ABOVE {number(values.pop('threshold'))} BY {scoring_of(values.pop('by')).to_sql()}"]
