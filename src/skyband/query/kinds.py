"""What is asked: queries as values, checked when made, equal by value, stored as plain data.

A query can be printed, compared, stored and sent; the machine that answers it is chosen later.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from skyband.errors import QueryError
from skyband.query.algorithms import algorithm_name
from skyband.query.expressions import is_symmetric, parse, recognise
from skyband.query.html import query_html
from skyband.query.scoring import By, Global, Linear, Nearest, by_from_dict, by_to_dict
from skyband.query.sql.writer import sentence
from skyband.query.tuning import Tuning
from skyband.query.validation import (
    OBJECT_SCORINGS,
    any_number,
    column_names,
    condition,
    direction,
    largest_is_best,
    moving_window,
    number_between,
    object_scoring,
    part_bounds,
    whole_number,
)
from skyband.query.windows import Last, Window, window_from_dict


class Query:
    """What all query kinds share. Use one of the kinds: TopK, Above, TopKPairs, TopKIncomplete, TopKUncertain."""

    kind: ClassVar[str] = "Query"
    window: Window
    per: str | Iterable[str] | None
    algorithm: str

    @property
    def descending(self) -> bool:
        """Whether the largest score is best."""
        raise NotImplementedError

    @property
    def tuning(self) -> Tuning:
        """How it is to be answered."""
        return Tuning()

    def smaller(self, k: int | None = None, window: Any = None) -> Self:
        """The same question with a smaller k or window, which the same state can answer."""
        less = {} if k is None else {"k": k}
        asked = dataclasses.replace(self, **less, window=self.window if window is None else _window(window))  # type: ignore[type-var]
        most = getattr(self, "k", 0)
        if k is not None and k > most:
            raise QueryError(f"k={k}: the query keeps only what its own k={most} needs. Ask for at most that.")
        _fits(self.window, asked.window)
        return asked

    def __post_init__(self) -> None:
        if not isinstance(self.window, Window):
            raise QueryError(
                f'{self.kind}: window must say how long objects count, such as Last(1000) or Last("10 minutes"); '
                f"got {self.window!r}."
            )
        self._set("per", column_names(f"{self.kind}: per", self.per))
        self._set("algorithm", algorithm_name(self.kind, self.algorithm))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def per_columns(self) -> tuple[str, ...]:
        """`per` as it is kept: a tuple of column names, empty for one group."""
        return tuple(self.per or ())

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """The columns that each argument names. What a function reads nobody knows: it has no entry."""
        by, where = getattr(self, "by", None), getattr(self, "where", None)
        found: dict[str, tuple[str, ...]] = {}
        if isinstance(by, str) and self.kind == "TopKPairs":
            found["by"] = tuple(dict.fromkeys(name[2:] for name in parse(by, members=("a", "b")).columns))
        elif isinstance(by, str):
            found["by"] = parse(by).columns
        elif by is not None and not callable(by):
            found["by"] = by.columns
        found |= {} if where is None else {"where": parse(where).columns}
        named = {key: getattr(self, key, None) for key in ("probability", "group")}
        return found | {key: (name,) for key, name in named.items() if name is not None} | {"per": self.per_columns}

    def __repr__(self) -> str:
        """As one would type it: without what is as usual."""
        said = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING or value not in (field.default, ()):
                said.append(f"{field.name}={value!r}")
        return f"{self.kind}({', '.join(said)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; only what differs from the defaults."""
        data: dict[str, Any] = {"kind": self.kind}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name == "window":
                value = self.window.to_dict()
            elif field.name == "by" or isinstance(value, Linear):
                value = by_to_dict(value)
            elif field.name == "parts":
                value = {part: list(bounds) for part, bounds in value}
            elif field.name == "per":
                value = list(self.per_columns)
            elif field.default is not dataclasses.MISSING and value == field.default:
                continue
            if value not in (None, []):
                data[field.name] = value
        return data

    def to_sql(self, stream: str = "stream") -> str:
        """The question as a sentence, which `sb.sql` reads back; a scoring by a Python function cannot be said."""
        return sentence(self, stream)

    def _repr_html_(self) -> str:
        """In a notebook."""
        return query_html(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], call: Callable[..., Any] | None = None) -> Self:
        """The inverse of `to_dict`. `call`: the scoring function, where the query was scored by one."""
        if not isinstance(data, Mapping):
            raise QueryError(f"a query is stored as a mapping with a 'kind'; got {data!r}.")
        values = dict(data)
        kind = values.pop("kind", cls.kind)
        made = _KINDS.get(kind)
        if made is None or not issubclass(made, cls):
            allowed = [name for name, known in _KINDS.items() if issubclass(known, cls)]
            raise QueryError(f"kind {kind!r} is not a query kind here. Use one of {', '.join(allowed)}.")
        known = {field.name for field in dataclasses.fields(made)}  # type: ignore[arg-type]
        if unknown := values.keys() - known:
            raise QueryError(f"{kind} has no {', '.join(sorted(unknown))}. It has: {', '.join(sorted(known))}.")
        if isinstance(values.get("window"), Mapping):
            values["window"] = window_from_dict(values["window"])
        if "by" in values:
            values["by"] = by_from_dict(values["by"], call)
        if isinstance(values.get("combine"), Mapping):
            values["combine"] = by_from_dict(values["combine"])
        try:
            return made(**values)
        except TypeError as error:
            raise QueryError(f"{kind}: {str(error).partition('__init__() ')[2] or error}.") from None


@dataclass(frozen=True, repr=False)
class TopK(Query):
    """The k best objects of the window.

    >>> from skyband import Last
    >>> TopK(10, by="delay", window=Last("24 hours"), per="origin").per
    ('origin',)
    """

    kind: ClassVar[str] = "TopK"
    k: int
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
    view: int | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("k", whole_number(self.kind, "k", self.k, 1, "10"))
        object_scoring(self.kind, self.by)
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
            self._set("view", whole_number(self.kind, "view", self.view, self.k, "30"))

    @property
    def descending(self) -> bool:
        return largest_is_best(self.by, self.largest)

    @property
    def tuning(self) -> Tuning:
        return Tuning(self.gamma, self.sigma, self.additional, self.buffer, self.index, self.cells, self.view)


@dataclass(frozen=True, repr=False)
class Above(Query):
    """All objects of the window whose score is strictly above a threshold."""

    kind: ClassVar[str] = "Above"
    threshold: float
    by: By
    window: Window
    _: dataclasses.KW_ONLY
    where: str | None = None
    per: str | Iterable[str] | None = None
    algorithm: str = "auto"
    cells: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("threshold", any_number(self.kind, self.threshold))
        if self.cells is not None:
            self._set("cells", whole_number(self.kind, "cells", self.cells, 1, "20736"))
        if isinstance(self.by, Nearest):
            raise QueryError(
                "Above: Nearest ranks the smallest first, so 'above' would mean the far ones. "
                'Type the distance as an expression, such as by="abs(x - 0.2)", if that is what you want.'
            )
        object_scoring(self.kind, self.by)
        condition(self.kind, self.where)

    @property
    def descending(self) -> bool:
        return True

    @property
    def tuning(self) -> Tuning:
        return Tuning(cells=self.cells)

    def smaller(self, k: int | None = None, window: Any = None) -> Self:
        if k is not None:
            raise QueryError(f"k={k}: Above answers with all that are above its threshold. Ask without k.")
        return super().smaller(None, window)


@dataclass(frozen=True, repr=False)
class TopKPairs(Query):
    """The k best pairs of objects of the window; `by` is over `a.` and `b.`; the smallest is best."""

    kind: ClassVar[str] = "TopKPairs"
    k: int
    by: By
    window: Window
    _: dataclasses.KW_ONLY
    largest: bool = False
    symmetric: bool = True
    where: str | None = None
    per: str | Iterable[str] | None = None
    algorithm: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        moving_window(self.kind, self.window)
        self._set("k", whole_number(self.kind, "k", self.k, 1, "10"))
        if not isinstance(self.largest, bool) or not isinstance(self.symmetric, bool):
            raise QueryError("TopKPairs: largest and symmetric are True or False.")
        if isinstance(self.by, str):
            if not is_symmetric(parse(self.by, members=("a", "b"))) and self.symmetric:
                raise QueryError(
                    f"TopKPairs: {self.by!r} may change when a and b are exchanged, but a pair has no order. "
                    "Use a symmetric form such as abs(a.x - b.x), or symmetric=False: a is then the older."
                )
        elif not isinstance(self.by, Global) and (isinstance(self.by, OBJECT_SCORINGS) or not callable(self.by)):
            raise QueryError(
                f"TopKPairs: {self.by!r} does not score a pair. Use an expression over a. and b., "
                'sb.Global({"x": "absdiff"}), or a function of two batches.'
            )
        condition(self.kind, self.where)

    @property
    def descending(self) -> bool:
        return self.largest


@dataclass(frozen=True, repr=False)
class TopKIncomplete(Query):
    """The k best objects whose score is combined from parts that arrive in separate rows."""

    kind: ClassVar[str] = "TopKIncomplete"
    k: int
    parts: Any
    window: Window
    _: dataclasses.KW_ONLY
    combine: str | Linear = "sum"
    repeat: str | None = None
    per: str | Iterable[str] | None = None
    algorithm: str = "auto"
    repeats: int | None = None
    budget: int | None = None
    seed: int = 0

    @property
    def descending(self) -> bool:
        return True

    def __post_init__(self) -> None:
        super().__post_init__()
        moving_window(self.kind, self.window)
        self._set("k", whole_number(self.kind, "k", self.k, 1, "10"))
        self._set("parts", part_bounds(self.parts))
        names = [part for part, _ in self.parts]
        if isinstance(self.combine, Linear):
            used, falling = self.combine.columns, [part for part, weight in self.combine.terms if weight < 0]
        elif self.combine in ("sum", "mean", "min", "max"):
            used, falling = (), []
        elif isinstance(self.combine, str):
            expression = parse(self.combine)
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
        if self.repeat not in (None, "last", "max", "sum"):
            raise QueryError(f'TopKIncomplete: repeat {self.repeat!r} is unknown. Use None, "last", "max" or "sum".')
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
            self._set("budget", whole_number(self.kind, "budget", self.budget, self.k, str(20 * self.k)))
        self._set("seed", whole_number(self.kind, "seed", self.seed, 0, "0"))

    @property
    def tuning(self) -> Tuning:
        return Tuning(repeats=self.repeats, budget=self.budget, seed=self.seed)


@dataclass(frozen=True, repr=False)
class TopKUncertain(Query):
    """The top k among objects that exist only with a probability, in one of four meanings."""

    kind: ClassVar[str] = "TopKUncertain"
    k: int
    by: By
    window: Window
    _: dataclasses.KW_ONLY
    probability: str = "p"
    semantics: str = "pk-topk"
    threshold: float | None = None
    group: str | None = None
    largest: bool | None = None
    where: str | None = None
    per: str | Iterable[str] | None = None
    algorithm: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        moving_window(self.kind, self.window)
        self._set("k", whole_number(self.kind, "k", self.k, 1, "10"))
        object_scoring(self.kind, self.by)
        direction(self.kind, self.largest)
        condition(self.kind, self.where)
        column_names("TopKUncertain: probability", self.probability)
        if self.group is not None:
            column_names("TopKUncertain: group", self.group)
        meanings = ("pk-topk", "pt-k", "u-kranks", "u-topk")
        if self.semantics not in meanings:
            raise QueryError(
                f"TopKUncertain: semantics {self.semantics!r} is unknown. Use one of {', '.join(meanings)}."
            )
        if (self.semantics == "pt-k") != (self.threshold is not None):
            raise QueryError(
                "TopKUncertain: pt-k needs threshold= (all objects more probable than it), and only pt-k takes one; "
                f"got semantics={self.semantics!r}, threshold={self.threshold!r}."
            )
        if self.threshold is not None:
            threshold = any_number(self.kind, self.threshold)
            if not 0 <= threshold < 1:
                raise QueryError(f"TopKUncertain: threshold {threshold} is no probability. Use 0 <= threshold < 1.")
            self._set("threshold", threshold)

    @property
    def descending(self) -> bool:
        return largest_is_best(self.by, self.largest)


_KINDS: dict[str, type[Query]] = {kind.kind: kind for kind in (TopK, Above, TopKPairs, TopKIncomplete, TopKUncertain)}


def _window(given: Any) -> Window:
    return given if isinstance(given, Window) else Last(given)


def _fits(mine: Window, theirs: Window) -> None:
    """Can a state for one window answer for the other?"""
    if isinstance(mine, Last) and isinstance(theirs, Last):
        sizes = [(mine.count, theirs.count), (mine.nanoseconds, theirs.nanoseconds), (mine.span, theirs.span)]
        if any(own is not None and other is not None and other <= own for own, other in sizes):
            return
    elif mine == theirs:
        return
    raise QueryError(f"window={theirs!r}: the query's own window is {mine!r}. Ask for at most that, of its kind.")
