"""TopKGroups: the k best groups of rows, by their total, count, average, best or latest."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Self

import numpy as np

from skyband.errors import QueryError
from skyband.query.aggregates import ALLOWED, Aggregate, By, Expressions, Id, mentioned, read, weights
from skyband.query.each import Need
from skyband.query.expressions import Expression, bind, each_in, parse
from skyband.query.kinds.query import Query
from skyband.query.sql.grouped import list_text
from skyband.query.sql.text import direction_text, expression, name
from skyband.query.validation import (
    RESERVED,
    column_names,
    condition,
    directions,
    each_or_whole_number,
    is_word,
    order_options,
    source_window,
)
from skyband.query.windows import Ever, Last, UntilDeleted, Window


@dataclass(frozen=True, repr=False)
class TopKGroups(Query):
    """The k best groups of rows: by their total, count, average, best or latest over the window.

    The objects are groups of rows: those with one value of the column `of`, within `per`. In changes and answers that
    value is the `id`.

    Parameters
    ----------
    k : int or Each
        The number of objects in an answer, at least 1.
    by : str or tuple of str
        The score of an object: an expression over aggregates of its valid rows, count(*), count(distinct x), sum(x),
        avg(x), min(x), max(x), first(x) and last(x), where x is an expression of a row. Such as "sum(price * qty)".
        What is no number (last(name), count(*) > 3) is a key in its own order, and so is "id", the object itself; of
        several columns in `of` it ranks by them in their order, and "id.column" is one of them. A tuple of these: the
        first decides first; `()` ranks by the tie rule alone.
    window : Last, Ever, Session or UntilDeleted
        How long rows are valid: `Last(1000)` arrivals, `Last("5 minutes")`, `Last(span=300)`, `Ever()`,
        `Session("30 minutes")`, or `UntilDeleted()` with rows keyed by the Monitor's id column.
    of : str or iterable of str, optional
        The column whose values are the objects; several columns make `id` a struct. None: the Monitor's id column.
    having : str, optional
        A condition over aggregates, such as "count(*) > 3". An object that fails it is no answer.
    largest : bool or tuple of bool, optional
        Whether the largest score is best, for all keys or for each of them. None: it is.
    where : str, optional
        A condition on rows. A row that fails it still moves the window, but counts in no aggregate.
    per : str or iterable of str, optional
        One answer, and one window, per value of these columns; null is a value too.
    decay : str, datetime.timedelta, numpy.timedelta64 or number, optional
        A half-life, over `Ever()` and a time column: a row counts 2^(-age / half-life) times. A duration such as
        "1 hour", or a number of units of an integer time column. `by` is then a sum of multiples of sum(x) and
        count(*).
    algorithm : str, default "auto"
        The name of an algorithm, in any case, or "auto". `sb.explain(query)` tells which one auto takes, and why.
    select : mapping of str to str, or iterable of str, optional
        More expressions over aggregates, which come as kept columns: {"trades": "count(*)"}. Without a name a column
        is called as it is written.
    nulls : {"reject", "first", "last"}, default "reject"
        What an object with a null or NaN key is: no answer, or it ranks before or after all others by that key.
    ties : {"newest", "oldest"}, default "newest"
        Which of equal objects ranks above: that whose newest row (of those that passed `where`) is newer, or older.
    with_ties : bool, default False
        Whether every object equal to the k-th by its keys is an answer too: SQL's RANK() <= k.
    offset : int or Each, default 0
        How many of the best are left out: the answer is ranks offset + 1 to offset + k.
    source : str, optional
        The name of another query: the rows are the members of its answers, and columns are those of its answer. The
        window is then `UntilDeleted()`.

    Examples
    --------
    >>> from skyband import Last
    >>> TopKGroups(10, by="sum(qty)", window=Last("5 minutes"), of="symbol", having="count(*) > 3")
    TopKGroups(k=10, by='sum(qty)', window=Last('5 minutes'), of='symbol', having='count(*) > 3')

    """

    kind: ClassVar[str] = "TopKGroups"
    scores_move: ClassVar[bool] = True
    k: Any  # int, or Each
    by: By
    window: Window = None  # type: ignore[assignment]  # UntilDeleted() with `source`
    _: dataclasses.KW_ONLY
    of: str | Iterable[str] | None = None
    having: str | None = None
    largest: bool | tuple[bool, ...] | None = None
    where: str | None = None
    per: str | Iterable[str] | None = None
    decay: str | timedelta | np.timedelta64 | float | None = None
    algorithm: str = "auto"
    select: Any = ()
    nulls: str = "reject"
    ties: str = "newest"
    with_ties: bool = False
    offset: Any = 0  # int, or Each
    source: str | None = None

    def __post_init__(self) -> None:
        self._set("window", source_window(self.kind, self.source, self.window, self.by))
        super().__post_init__()
        self._set("k", each_or_whole_number(self.kind, "k", self.k, 1, "10"))
        self._set("of", _columns(self.of))
        given: Any = self.by
        self._set("by", tuple(given) if isinstance(given, list) else given)
        keys = self.by if isinstance(self.by, tuple) else (self.by,)
        for what, text in (*(("by", key) for key in keys), ("having", self.having)):
            if not isinstance(text, str) and (what == "by" or text is not None):
                raise QueryError(
                    f"{self.kind}: {what} is an expression over aggregates, a text; got {text!r}. {ALLOWED}"
                )
        self._set("largest", directions(self.kind, self.largest, self.by))
        if isinstance(self.by, tuple):
            self._set("largest", self.directions or None)
        order_options(self)
        self._check_where()
        self._set("select", _selected(self.select, self.per_columns))
        self._check_ids()  # reads all expressions, which may be wrong
        if isinstance(self.window, UntilDeleted) and not self.of_columns:
            raise QueryError(
                f"{self.kind}: over UntilDeleted() the Monitor's id is the key of a row, by which it is replaced and "
                'deleted. Name the column whose values are the objects, of="...".'
            )
        if self.decay is not None:
            self._check_decay()

    def _check_where(self) -> None:
        if isinstance(self.where, str) and (name := mentioned(self.where)) is not None:
            raise QueryError(
                f"{self.kind}: where={self.where!r} is about single rows, and {name} is an aggregate of many. "
                f"Use having={self.where!r} for which objects can be an answer."
            )
        condition(self.kind, self.where)

    def _check_ids(self) -> None:
        """A key that is a column of the id names one of several."""
        parts = self.of_columns if len(self.of_columns) > 1 else ()
        for key in self.expressions.keys:
            if isinstance(key, Id) and key.column is not None and key.column not in parts:
                instead = f"one of {', '.join(f'id.{name}' for name in parts)}" if parts else "id, which is one column"
                raise QueryError(f"{self.kind}: id.{key.column} is no part of the objects' ids. Use {instead}.")

    def _check_decay(self) -> None:
        self._set("decay", _half_life(self.decay))
        if not isinstance(self.window, Ever):
            raise QueryError(
                f"{self.kind}: decay fades rows out instead of a window's end, so it goes with window=Ever(), not with "
                f"{self.window!r}. Use one of the two."
            )
        if self.having is not None or self.select:
            what = "having" if self.having is not None else "select"
            raise QueryError(
                f"{self.kind}: with decay an object has one number, its score, so there is no {what}. Leave it out, or "
                "ask without decay."
            )
        if (
            isinstance(self.by, tuple)
            or self.weights is None
            or any(self.aggregates[at].function not in ("sum", "count") for at, _ in self.weights)
        ):
            raise QueryError(
                f"{self.kind}: with decay `by` is a sum of multiples of sum(x) and count(*) without a constant, such "
                f'as "sum(x)" or "2*sum(x) + count(*)", because only these fade evenly; got {self.by!r}.'
            )

    # --- values that subscriptions bring

    @property
    def needs(self) -> tuple[Need, ...]:
        return (*super().needs, *(Need(name, "literal", what) for what, text in self._texts for name in each_in(text)))

    @property
    def _texts(self) -> list[tuple[str, str]]:
        """The expressions over aggregates, by the arguments that they stand in."""
        by: Any = self.by
        keys = by if isinstance(by, tuple) else (by,)
        having = [] if self.having is None else [("having", self.having)]
        return [*(("by", key) for key in keys), *having, *(("select", text) for _, text in self.select)]

    def bind(self, values: Mapping[str, Any]) -> Self:
        made = super().bind(values)
        if not any(need.where in ("by", "having", "select") for need in self.needs):
            return made
        by: Any = self.by
        by = tuple(bind(key, values) for key in by) if isinstance(by, tuple) else bind(by, values)
        having = None if self.having is None else bind(self.having, values)
        return dataclasses.replace(made, by=by, having=having, select=[(n, bind(t, values)) for n, t in self.select])

    # --- what is computed

    @property
    def expressions(self) -> Expressions:
        """All its expressions over aggregates, with the aggregates."""
        return read(self.by, self.having, tuple(self.select))

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The distinct aggregates of `by`, `having` and `select`, in order of appearance."""
        return self.expressions.aggregates

    @property
    def score(self) -> Expression | None:
        """The first key over pseudo columns #0, #1, ..., one per aggregate; None: it is the id, or there is none."""
        return self.expressions.score

    @property
    def ordered(self) -> bool:
        """Whether it ranks by more than one number and the usual tie rule."""
        plain = isinstance(self.by, str) and self.score is not None
        usual = (self.nulls, self.ties, self.with_ties, self.offset) == ("reject", "newest", False, 0)
        return not (plain and usual)

    @property
    def condition(self) -> Expression | None:
        """`having` over the pseudo columns."""
        return self.expressions.condition

    @property
    def shown(self) -> dict[str, Expression]:
        """`select` by name, over the pseudo columns."""
        return self.expressions.shown

    @property
    def decides(self) -> int | None:
        """The aggregate whose extreme row gives the kept columns: the one min or max in `by`. None: the newest row.

        Of several keys the first says it.
        """
        columns = () if self.score is None else self.score.columns
        if len(columns) != 1 or self.aggregates[int(columns[0][1:])].function not in ("min", "max"):
            return None
        return int(columns[0][1:])

    @property
    def weights(self) -> tuple[tuple[int, float], ...] | None:
        """The aggregates and factors of `by` where it is a sum of multiples without a constant, else None."""
        return None if self.score is None else weights(self.score)

    def half_life(self, unit: int | None) -> float | None:
        """Return the half-life in units of a time column of `unit` nanoseconds (None: integers)."""
        if self.decay is None:
            return None
        if isinstance(self.decay, str) == (unit is None):
            column = "integers, which have no unit" if unit is None else "timestamps or dates"
            instead = "a number of the column's own units" if unit is None else 'a duration, such as "1 hour"'
            raise QueryError(f"{self.kind}: decay={self.decay!r}, but the time column holds {column}. Use {instead}.")
        return float(self.decay) if unit is None else (Last(self.decay).nanoseconds or 0) / unit  # type: ignore[arg-type]

    # --- as other kinds

    @property
    def of_columns(self) -> tuple[str, ...]:
        """`of` as a tuple of column names; empty: the Monitor's id column is the object."""
        return () if self.of is None else (self.of,) if isinstance(self.of, str) else tuple(self.of)

    @property
    def directions(self) -> tuple[bool, ...]:
        keys = len(self.by) if isinstance(self.by, tuple) else 1
        given = self.largest if isinstance(self.largest, tuple) else (self.largest,) * keys
        return tuple(one is not False for one in given)

    @property
    def descending(self) -> bool:
        return self.largest is not False

    @property
    def needs_id(self) -> str | None:
        if isinstance(self.window, UntilDeleted):
            return "over UntilDeleted() knows rows by their ids"
        return None if self.of_columns else "without of= groups rows by their ids"

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        said: dict[str, list[Expression | None]] = {
            "by": [key for key in self.expressions.keys if isinstance(key, Expression)],
            "having": [self.condition],
            "select": list(self.shown.values()),
        }
        found = {
            what: tuple(dict.fromkeys(name for one in self.expressions.of(*trees) for name in one.columns))
            for what, trees in said.items()
        }
        found |= {} if self.where is None else {"where": parse(self.where).columns}
        return {**found, "of": self.of_columns, "per": self.per_inputs}

    def to_dict(self) -> dict[str, Any]:
        data = super().to_dict()
        if "of" in data:
            data["of"] = self.of if isinstance(self.of, str) else list(self.of_columns)
        if "select" in data:
            data["select"] = dict(self.select)
        return data

    def listed_sql(self, values: dict[str, Any]) -> str:
        return list_text(self.of_columns, self.by, dict(values.pop("select")))

    def ranking_sql(self, values: dict[str, Any]) -> list[str]:
        of, having, by = values.pop("of"), values.pop("having"), values.pop("by")
        clauses = [] if of is None else [f"GROUP BY {', '.join(map(name, self.of_columns))}"]
        clauses += [] if having is None else [f"HAVING {expression(having)}"]
        if isinstance(by, tuple) or values["largest"] == self.usual_direction(by, self.descending):
            values.pop("largest")
        nulls = values.pop("nulls") if by else "reject"  # without a key no key says where its nulls go
        keys = [
            expression(key) + direction_text(descending, nulls)
            for key, descending in zip(by if isinstance(by, tuple) else (by,), self.directions, strict=True)
        ]
        bracketed = isinstance(by, tuple) and len(keys) < 2
        return [*clauses, f"ORDER BY ({', '.join(keys)})" if bracketed else f"ORDER BY {', '.join(keys)}"]

    @staticmethod
    def usual_direction(by: Any, descending: bool) -> bool | None:
        return None if descending else False


def _columns(of: Any) -> str | tuple[str, ...] | None:
    """The columns of objects; one column stands alone. The output calls them `id`, so any name is free."""
    if of is None:
        return None
    names = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, Iterable) else (of,)
    column_names("TopKGroups: of", [one for one in names if not is_word(one, RESERVED)])
    if len(set(names)) < len(names) or not names:
        raise QueryError(f"TopKGroups: of={of!r} must name at least one column, and each once.")
    return names if len(names) > 1 else names[0]


def _selected(select: Any, per: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The further expressions as pairs of name and text."""
    if isinstance(select, str):
        select = (select,)
    if isinstance(select, Mapping):
        select = select.items()
    given: list[Any] = list(select) if isinstance(select, Iterable) else [select]
    pairs = [(one, one) if isinstance(one, str) else one for one in given]
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise QueryError(
                f'TopKGroups: select is a mapping of column to expression, {{"trades": "count(*)"}}, or expressions; '
                f"got {select!r}."
            )
    names = column_names("TopKGroups: select", [name for name, _ in pairs])
    if clash := set(names) & set(per):
        raise QueryError(f"TopKGroups: {clash.pop()!r} is in `select` and in `per`. Give it another name in `select`.")
    return tuple((name, text) for name, text in pairs)


def _half_life(decay: Any) -> str | float:
    """The half-life as plain data: a spelled duration, or a number of units of the time column."""
    if isinstance(decay, str | timedelta | np.timedelta64):
        try:
            return str(Last(decay).to_dict()["last"])
        except QueryError as error:
            raise QueryError(
                f'TopKGroups: decay={decay!r} is no half-life: it must be a duration such as "1 hour". {error.said}'
            ) from None
    number = not isinstance(decay, bool) and isinstance(decay, int | float | np.integer | np.floating)
    try:
        value = float(decay) if number else math.nan
    except OverflowError:
        value = math.inf
    if not 0 < value < math.inf:
        raise QueryError(
            'TopKGroups: decay is a half-life: a duration such as "1 hour", or a positive number of units of an '
            f"integer time column; got {decay!r}."
        )
    return int(value) if value.is_integer() and value < 2**53 else value
