"""TopKIncomplete: the k best objects whose parts arrive in separate rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from skyband.errors import QueryError
from skyband.query.each import Each
from skyband.query.expressions import parse, recognise
from skyband.query.kinds.query import Query
from skyband.query.scoring import Linear, scoring_of
from skyband.query.sql.text import name, number
from skyband.query.tuning import Tuning
from skyband.query.validation import (
    condition,
    direction,
    each_or_whole_number,
    is_word,
    moving_window,
    part_bounds,
    whole_number,
)
from skyband.query.windows import Window


@dataclass(frozen=True, repr=False)
class TopKIncomplete(Query):
    """The k best objects whose score is combined from parts that arrive in separate rows (haghani2009).

    Parameters
    ----------
    k : int or Each
        The number of objects in an answer, at least 1.
    parts : iterable of str, mapping of str to (low, high), or "*"
        The parts of an object. Values of a part lie in [low, high], [0, 1] where only names are given; a part with no
        valid row counts as its low. A high may be infinite (values are finite all the same); a low may not.
        "*", or {"*": (low, high)}, are any parts, named by the stream: for the "sum", where low is 0, and the "max".
    window : Last or Ever
        How long objects are valid: `Last(1000)` arrivals, `Last("10 minutes")`, `Last(span=300)`, `Ever()`. Rows of
        all parts count together.
    combine : {"sum", "mean", "min", "max"}, Linear or str, default "sum"
        How an object's score comes from its parts: one of these words, `Linear({part: weight})` with weights of 0 or
        more, or an expression over the parts that rises with each of them.
    repeat : {"last", "max", "sum"}, optional
        What counts of several valid rows of one part of an object. None: a second one is rejected.
    at_most : int, optional
        With repeat="max" or "sum": a promise that at most so many rows of one part of an object are valid together. A
        row that breaks it is rejected, and rows that can then not matter are dropped.
    largest : bool, optional
        Whether the largest score is best, which None means too. False: the smallest is, and a part with no valid row
        counts as its low there too.
    where : str, optional
        A condition in SQL. A row that fails it counts for the window, but brings no part.
    per : str or iterable of str, optional
        One answer, and one window, per value of these columns; null is a value too.
    algorithm : str, default "auto"
        The name of an algorithm, in any case, or "auto". `sb.explain(query)` tells which one auto takes, and why.

    Other Parameters
    ----------------
    Options of single algorithms; the others ignore them.

    repeats : int, optional
        APPROX, BUDGET: how often one part of an object comes within a window. None: estimated.
    budget : int, optional
        BUDGET: how many rows are kept, those of its sample among them.
    seed : int, default 0
        APPROX, BUDGET: the seed of sketches and samples.

    Examples
    --------
    >>> from skyband import Last
    >>> TopKIncomplete(5, parts=["north", "south"], window=Last("1 hour")).combine
    'sum'

    """

    kind: ClassVar[str] = "TopKIncomplete"
    scores_move: ClassVar[bool] = True
    k: Any  # int, or Each
    parts: Any
    window: Window
    _: dataclasses.KW_ONLY
    combine: Literal["sum", "mean", "min", "max"] | str | Linear = "sum"
    repeat: Literal["last", "max", "sum"] | None = None
    at_most: int | None = None
    largest: bool | None = None
    where: str | None = None
    per: str | Iterable[str] | None = None
    algorithm: str = "auto"
    repeats: int | None = None
    budget: int | None = None
    seed: int = 0

    @property
    def descending(self) -> bool:
        return self.largest is not False

    @property
    def any_parts(self) -> bool:
        """Whether parts are not named in advance."""
        return bool(self.parts[0][0] == "*")

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The parts that have no highest value."""
        return tuple(part for part, (_, high) in self.parts if high == math.inf)

    @property
    def needs_id(self) -> str:
        return "puts objects together by their ids"

    def __post_init__(self) -> None:
        super().__post_init__()
        moving_window(self.kind, self.window)
        self._set("k", each_or_whole_number(self.kind, "k", self.k, 1, "10"))
        self._set("parts", part_bounds(self.parts))
        direction(self.kind, self.largest)
        condition(self.kind, self.where)
        if self.any_parts:
            self._check_any_parts()
        self._check_combine([part for part, _ in self.parts])
        if self.repeat is not None and not is_word(self.repeat, ("last", "max", "sum")):
            raise QueryError(f'TopKIncomplete: repeat {self.repeat!r} is unknown. Use None, "last", "max" or "sum".')
        if self.at_most is not None:
            self._check_promise()
        if self.repeats is not None:
            if self.repeat is None or self.algorithm not in ("APPROX", "BUDGET"):
                raise QueryError(
                    f"TopKIncomplete(repeats={self.repeats!r}): it tells APPROX and BUDGET how often a part repeats, "
                    'with repeat="last", "max" or "sum". The exact algorithms need no such guess: leave it out.'
                )
            self._set("repeats", whole_number(self.kind, "repeats", self.repeats, 1, "3"))
        if self.budget is not None:
            if self.algorithm != "BUDGET":
                raise QueryError(
                    f"TopKIncomplete(budget={self.budget!r}): only BUDGET keeps a given number of rows. Use "
                    'algorithm="BUDGET", or leave budget out.'
                )
            least = 1 if isinstance(self.k, Each) else self.k
            self._set("budget", whole_number(self.kind, "budget", self.budget, least, str(20 * least)))
        self._set("seed", whole_number(self.kind, "seed", self.seed, 0, "0"))

    @property
    def most_rows(self) -> int | None:
        """How many rows of one part of an object can be valid together; None: any number."""
        return 1 if self.repeat is None else self.at_most

    def _check_promise(self) -> None:
        self._set("at_most", whole_number(self.kind, "at_most", self.at_most, 1, "3"))
        if self.repeat not in ("max", "sum") or self.any_parts:
            raise QueryError(
                f"TopKIncomplete(at_most={self.at_most!r}): it says how often named parts repeat, with "
                'repeat="max" or "sum". Of "last" only one row counts, whose value may always be replaced, so nothing '
                "could be dropped. Leave it out."
            )
        if self.repeat == "sum" and (below := [part for part, (low, _) in self.parts if low < 0]):
            raise QueryError(
                f'TopKIncomplete: at_most with repeat="sum" needs lows of 0 or more, and that of {below[0]!r} is less: '
                "a row that is dropped could have lowered a sum. Leave at_most out, or move the values up."
            )

    def _check_any_parts(self) -> None:
        """How many parts are missing is not known where none is named."""
        if not is_word(self.combine, ("sum", "max")):
            raise QueryError(
                f'TopKIncomplete: parts="*" go with combine="sum" or "max"; got combine={self.combine!r}. How many '
                "parts an object lacks, each of which would count as its low, is not known. Name the parts."
            )
        if self.combine == "sum" and self.parts[0][1][0] != 0:
            raise QueryError(
                'TopKIncomplete: the sum of parts="*" needs the low 0: a part with no valid row counts as its low, and '
                f"how many there are is not known; got {self.parts[0][1]!r}. Use (0, high), or name the parts."
            )
        if (self.combine, self.repeat) in (("sum", "max"), ("max", "sum")):
            raise QueryError(
                f'TopKIncomplete: parts="*" with combine={self.combine!r} and repeat={self.repeat!r} needs a number '
                'for each part that an object ever had. Name the parts, or use repeat="last".'
            )

    def _check_combine(self, names: list[str]) -> None:
        """A combination names parts only, and rises with each: an unseen part can then only raise the score."""
        if isinstance(self.combine, Linear):
            if self.combine.needs:
                raise QueryError(f"TopKIncomplete: combine={self.combine!r}: Each is for k and the window here.")
            used, falling = self.combine.columns, [part for part, weight in self.combine.terms if weight < 0]
        elif is_word(self.combine, ("sum", "mean", "min", "max")):
            used, falling = (), []
        elif isinstance(self.combine, str):
            expression = parse(self.combine)
            if expression.each:
                raise QueryError(f"TopKIncomplete: combine={self.combine!r}: Each is for k and the window here.")
            if expression.kind not in (None, "number"):
                raise QueryError(f"TopKIncomplete: combine={self.combine!r} is a {expression.kind}, not a number.")
            rising = dict(recognise(expression).directions)
            used, falling = expression.columns, [part for part in expression.columns if rising.get(part) != 1]
        else:
            raise QueryError(
                f'TopKIncomplete: combine {self.combine!r} is unknown. Use "sum", "mean", "min", "max", '
                "sb.Linear({part: weight}) or a rising expression over the parts."
            )
        if unknown := [part for part in used if part not in names]:
            raise QueryError(f"TopKIncomplete: combine uses {unknown[0]!r}, which is not a part. Parts: {names}.")
        if falling:
            raise QueryError(
                f"TopKIncomplete: combine does not rise with {falling[0]!r}, so an unseen part could lower the score. "
                "Use a combination that rises in every part."
            )

    @property
    def tuning(self) -> Tuning:
        return Tuning(
            repeats=self.at_most if self.repeats is None else self.repeats, budget=self.budget, seed=self.seed
        )

    def ranking_sql(self, values: dict[str, Any]) -> list[str]:
        parts = ", ".join(_part_sql(part, *bounds) for part, bounds in values.pop("parts"))
        way = {None: "", True: " DESC", False: " ASC"}[values.pop("largest")]
        clauses = [f"PARTS ({parts})", f"COMBINE {scoring_of(values.pop('combine')).to_sql()}{way}"]
        repeat = values.pop("repeat")
        return clauses if repeat is None else [*clauses, f"REPEAT {repeat}"]


def _part_sql(part: str, low: float, high: float) -> str:
    said = part if part == "*" else name(part)
    return said if (low, high) == (0, 1) else f"{said} {number(low)} TO {number(high)}"
