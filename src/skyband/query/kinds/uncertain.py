"""TopKUncertain: the top k among objects that exist with a probability."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from skyband.errors import QueryError
from skyband.query.each import Each
from skyband.query.kinds.query import Query
from skyband.query.scoring import By, check_scoring, scoring_of
from skyband.query.sql.text import name, number, quoted
from skyband.query.validation import (
    RESERVED,
    column_names,
    condition,
    direction,
    each_or_number,
    each_or_whole_number,
    is_word,
    moving_window,
)
from skyband.query.windows import Window

Semantics: TypeAlias = Literal["pk-topk", "pt-k", "u-kranks", "u-topk"]


@dataclass(frozen=True, repr=False)
class TopKUncertain(Query):
    """The top k among objects that exist only with a probability, in one of four meanings.

    Parameters
    ----------
    k : int or Each
        The k of "among the k best that exist", at least 1.
    by : str, scoring or callable
        The score of an object: a column, an expression such as "0.7*x + 0.3*y", `Linear`, `Product`, `Quadratic`,
        `Nearest`, or a function from a batch (a mapping of column to NumPy array) to one float per row.
    window : Last or Ever
        How long objects are valid: `Last(1000)` arrivals, `Last("10 minutes")`, `Last(span=300)`, `Ever()`.
    probability : str, default "p"
        The column of probabilities, 0 < p <= 1.
    semantics : {"pk-topk", "pt-k", "u-kranks", "u-topk"}, default "pk-topk"
        "pk-topk": the k objects most probably among the k best; "pt-k": all that are so with a probability above
        `threshold`; "u-kranks": for each rank the object that most probably holds it; "u-topk": the k objects that are
        most probably the k best, together.
    threshold : float or Each, optional
        For "pt-k", and required there: 0 <= threshold < 1.
    group : str, optional
        The column whose equal values mark alternatives, of which at most one exists. None: objects are independent.
    largest : bool, optional
        Whether the largest score is best. None: it is, except for `Nearest`.
    where : str, optional
        A condition in SQL. An object that fails it still moves the window, but is never an answer.
    per : str or iterable of str, optional
        One answer, and one window, per value of these columns; null is a value too.
    algorithm : str, default "auto"
        The name of an algorithm, in any case, or "auto". `sb.explain(query)` tells which one auto takes, and why.

    Examples
    --------
    >>> from skyband import Last
    >>> TopKUncertain(3, by="speed", window=Last(1000), semantics="u-topk")
    TopKUncertain(k=3, by='speed', window=Last(1000), semantics='u-topk')

    """

    kind: ClassVar[str] = "TopKUncertain"
    has_probability: ClassVar[bool] = True
    scores_move: ClassVar[bool] = True
    k: Any  # int, or Each
    by: By
    window: Window
    _: dataclasses.KW_ONLY
    probability: str = "p"
    semantics: Semantics = "pk-topk"
    threshold: Any = None  # float, or Each
    group: str | None = None
    largest: bool | None = None
    where: str | None = None
    per: str | Iterable[str] | None = None
    algorithm: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        moving_window(self.kind, self.window)
        self._set("k", each_or_whole_number(self.kind, "k", self.k, 1, "10"))
        check_scoring(self.kind, self.by)
        direction(self.kind, self.largest)
        condition(self.kind, self.where)
        for what, column in (("probability", self.probability), ("group", "p" if self.group is None else self.group)):
            if not is_word(column, RESERVED):  # they are read, never written
                column_names(f"TopKUncertain: {what}", column)
            if not isinstance(column, str):
                raise QueryError(f"TopKUncertain: {what} is one column, by its name; got {column!r}.")
        if not is_word(self.semantics, get_args(Semantics)):
            raise QueryError(
                f"TopKUncertain: semantics {self.semantics!r} is unknown. Use one of {', '.join(get_args(Semantics))}."
            )
        if (self.semantics == "pt-k") != (self.threshold is not None):
            raise QueryError(
                "TopKUncertain: pt-k needs threshold= (all objects more probable than it), and only pt-k takes one; "
                f"got semantics={self.semantics!r}, threshold={self.threshold!r}."
            )
        if self.threshold is not None:
            threshold = each_or_number(self.kind, self.threshold)
            if not isinstance(threshold, Each) and not 0 <= threshold < 1:
                raise QueryError(f"TopKUncertain: threshold {threshold} is no probability. Use 0 <= threshold < 1.")
            self._set("threshold", threshold)

    @property
    def descending(self) -> bool:
        return not scoring_of(self.by).smallest_first if self.largest is None else self.largest

    def more_sql(self, values: dict[str, Any]) -> list[str]:
        probability, semantics = name(values.pop("probability")), quoted(values.pop("semantics"))
        clauses = [f"WITH PROBABILITY {probability} SEMANTICS {semantics}"]
        if (threshold := values.pop("threshold")) is not None:
            clauses.append(f"THRESHOLD {number(threshold)}")
        if (group := values.pop("group")) is not None:
            clauses.append(f"GROUP {name(group)}")
        return clauses
