"""TopKPairs: the k best pairs of objects of a window."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from skyband.errors import QueryError
from skyband.query.kinds.query import Query
from skyband.query.scoring import By, check_pair_scoring
from skyband.query.sql.text import expression
from skyband.query.validation import condition, each_or_whole_number, ending_window, pair_condition
from skyband.query.windows import Window


@dataclass(frozen=True, repr=False)
class TopKPairs(Query):
    """The k best pairs of objects of the window (shen2012).

    Parameters
    ----------
    k : int or Each
        The number of pairs in an answer, at least 1.
    by : str, Global or callable
        The score of a pair: an expression over `a.` (the older member) and `b.`, such as "abs(a.x - b.x)", `Global`,
        or a function from two batches of members to one float per row.
    window : Last or UntilDeleted
        How long objects are valid: `Last(1000)` arrivals, `Last("10 minutes")`, `Last(span=300)`; `UntilDeleted()`:
        each id's newest row is the object, so pairs are of what is there now.
    largest : bool, default False
        Whether the largest score is best.
    symmetric : bool, default True
        Promises that the score stays when a and b are exchanged. False: a is the older.
    where : str, optional
        A condition in SQL that both members must satisfy. An object that fails it still moves the window.
    on : str, optional
        A condition over `a.` (the older member) and `b.`, such as "a.symbol <> b.symbol". Two objects that fail it, or
        get null, are no pair, and are not counted. It need not be symmetric.
    per : str or iterable of str, optional
        One answer, and one window, per value of these columns; null is a value too.
    algorithm : str, default "auto"
        The name of an algorithm, in any case, or "auto". `sb.explain(query)` tells which one auto takes, and why.

    Examples
    --------
    >>> from skyband import Last
    >>> TopKPairs(3, by="abs(a.x - b.x)", window=Last(1000))
    TopKPairs(k=3, by='abs(a.x - b.x)', window=Last(1000))

    """

    kind: ClassVar[str] = "TopKPairs"
    of_pairs: ClassVar[bool] = True
    k: Any  # int, or Each
    by: By
    window: Window
    _: dataclasses.KW_ONLY
    largest: bool = False
    symmetric: bool = True
    where: str | None = None
    on: str | None = None
    per: str | Iterable[str] | None = None
    algorithm: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        ending_window(self.kind, self.window)
        self._set("k", each_or_whole_number(self.kind, "k", self.k, 1, "10"))
        if not isinstance(self.largest, bool) or not isinstance(self.symmetric, bool):
            raise QueryError("TopKPairs: largest and symmetric are True or False.")
        if not check_pair_scoring(self.kind, self.by).symmetric and self.symmetric:
            raise QueryError(
                f"TopKPairs: {self.by!r} may change when a and b are exchanged, but a pair has no order. "
                "Use a symmetric form such as abs(a.x - b.x), or symmetric=False: a is then the older."
            )
        condition(self.kind, self.where)
        pair_condition(self.kind, self.on)

    def more_sql(self, values: dict[str, Any]) -> list[str]:
        on = values.pop("on")
        return [] if on is None else [f"ON {expression(on)}"]

    @property
    def descending(self) -> bool:
        return self.largest

    @staticmethod
    def usual_direction(by: Any, descending: bool) -> bool | None:
        return descending
