"""The base of all kinds of query: a value that is validated when made, equal by value, stored as plain data.

A query can be printed, compared, stored and sent; the engine that answers it is chosen later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from skyband.errors import QueryError
from skyband.query.algorithms import algorithm_name
from skyband.query.each import Each, Need, bound, from_stored
from skyband.query.expressions import bind, member_columns, parse
from skyband.query.html import query_html
from skyband.query.scoring import Scoring, by_from_dict, by_to_dict, scoring_of
from skyband.query.sql.writer import order_by, sentence
from skyband.query.tuning import Tuning
from skyband.query.validation import as_stored, column_names, input_name, output_name
from skyband.query.windows import Ever, Last, Session, Window, bind_window, size_of, window_from_dict

SESSIONS = ("TopK", "Above", "TopKGroups")  # kinds over sessions


class Query:
    """The base of all kinds of query. Use one of the kinds: TopK, Above, TopKGroups, TopKPairs, TopKIncomplete, ..."""

    kind: ClassVar[str] = "Query"
    of_pairs: ClassVar[bool] = False  # whether a row of its answer is a pair of objects
    has_probability: ClassVar[bool] = False  # whether a row of its answer has a probability
    scores_move: ClassVar[bool] = False  # whether an object's score can change while it stays in the answer
    source: str | None = None  # the query over whose answers it asks
    window: Window
    per: str | Iterable[str] | None
    algorithm: str

    @property
    def descending(self) -> bool:
        """Whether the largest score is best."""
        raise NotImplementedError

    @property
    def directions(self) -> tuple[bool, ...]:
        """For each key whether the largest is best."""
        return (self.descending,)

    @property
    def demands(self) -> frozenset[str]:
        """What an algorithm must be able to do for it (`Algorithm.takes`)."""
        return frozenset()

    @property
    def tuning(self) -> Tuning:
        """The options of single algorithms."""
        return Tuning()

    @property
    def needs_id(self) -> str | None:
        """What it does with the Monitor's id column, if it needs one for that."""
        return None

    def smaller(self, k: int | None = None, window: Any = None) -> Self:
        """Return the same query with a smaller k or window, which the same state can answer.

        Parameters
        ----------
        k : int, optional
            At most the query's own; None: the same.
        window : Last, UntilDeleted, int or str, optional
            At most the query's own, and of its sort; None: the same.

        """
        less = {} if k is None else {"k": k}
        query = dataclasses.replace(self, **less, window=self.window if window is None else _window(window))  # type: ignore[type-var]
        most: Any = getattr(self, "k", 0)
        asked: Any = getattr(query, "k", 0)
        if k is not None and not isinstance(asked, int):
            raise QueryError(f"k={k!r}: k must be a whole number. Did you mean k=1?")
        if k is not None and not isinstance(most, int):
            raise QueryError(f"k={k}: the query's own k is {most!r}, not one number. Ask without k.")
        if k is not None and asked > most:
            raise QueryError(f"k={k}: the query keeps only what its own k={most} needs. Ask for at most that.")
        if window is not None:
            _fits(self.window, query.window)
        return query

    def __post_init__(self) -> None:
        if not isinstance(self.window, Window):
            raise QueryError(
                f'{self.kind}: window must say how long objects count, such as Last(1000) or Last("10 minutes"); '
                f"got {self.window!r}."
            )
        if isinstance(self.window, Session) and self.kind not in SESSIONS:
            raise QueryError(f"{self.kind}: {self.window!r} is for {', '.join(SESSIONS)}. Use Last(...) here.")
        self._set("per", column_names(f"{self.kind}: per", self.per))
        self._set("algorithm", algorithm_name(self.kind, self.algorithm))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def per_columns(self) -> tuple[str, ...]:
        """The columns of `per` in changes and answers, empty for one group."""
        return tuple(map(output_name, self.per or ()))

    @property
    def grouping(self) -> tuple[Any, ...]:
        """`per` as it is kept: names, and pairs of the output's name and the column."""
        return tuple(self.per or ())

    # --- values that subscriptions bring

    @property
    def needs(self) -> tuple[Need, ...]:
        """What a table of subscriptions must have: each column with what it is for; none: the query is a plain one."""
        by, where = getattr(self, "by", None), getattr(self, "where", None)
        found = [
            Need(value.column, name, name) for name in _NUMBERS if isinstance(value := getattr(self, name, None), Each)
        ]
        members = ("a", "b") if self.of_pairs else ()
        for key in () if by is None or self.kind == "TopKGroups" else by if isinstance(by, tuple) else (by,):
            if isinstance(key, str):
                found += [Need(name, "literal", "by") for name in parse(key, members=members).each]
            else:
                found += scoring_of(key).needs
        found += [need] if (need := size_of(self.window)) is not None else []
        if (on := getattr(self, "on", None)) is not None:
            found += [Need(name, "literal", "on") for name in parse(on, members=members).each]
        return (*found, *(Need(name, "literal", "where") for name in (parse(where).each if where else ())))

    @cached_property
    def each(self) -> tuple[str, ...]:
        """The columns that a table of subscriptions must have; none: the query is a plain one."""
        return tuple(dict.fromkeys(need.column for need in self.needs))

    def bind(self, values: Mapping[str, Any]) -> Self:
        """Return the plain query of a subscription.

        Parameters
        ----------
        values : mapping
            A value for each column in `each`.

        """
        by = getattr(self, "by", None)
        changed: dict[str, Any] = {"window": bind_window(self.window, values)}
        changed |= {name: bound(getattr(self, name), values) for name in _NUMBERS if hasattr(self, name)}
        if by is not None:
            several = isinstance(by, tuple)
            keys = tuple(_bound_key(key, values) for key in (by if several else (by,)))
            changed["by"] = by if self.kind == "TopKGroups" else keys if several else keys[0]
        conditions = {name: text for name in ("where", "on") if (text := getattr(self, name, None)) is not None}
        changed |= {name: bind(text, values) for name, text in conditions.items()}
        return dataclasses.replace(self, **changed)  # type: ignore[type-var]

    @property
    def per_inputs(self) -> tuple[str, ...]:
        """The columns of `per` in batches."""
        return tuple(map(input_name, self.per or ()))

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """The columns that each argument names. A function has no entry: what it reads is not known."""
        by, where = getattr(self, "by", None), getattr(self, "where", None)
        found: dict[str, tuple[str, ...]] = {}
        if by is not None and (scoring := scoring_of(by)).function is None:
            found["by"] = scoring.pair_columns if self.kind == "TopKPairs" else scoring.columns
        found |= {} if where is None else {"where": parse(where).columns}
        if (on := getattr(self, "on", None)) is not None:
            found["on"] = member_columns(parse(on, members=("a", "b")))
        named = {key: getattr(self, key, None) for key in ("probability", "group")}
        return found | {key: (name,) for key, name in named.items() if name is not None} | {"per": self.per_inputs}

    def __repr__(self) -> str:
        """The call that makes it, without arguments that are at their default."""
        given = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING or value not in (field.default, ()):
                given.append(f"{field.name}={value!r}")
        return f"{self.kind}({', '.join(given)})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: its kind, and the arguments that differ from their defaults.

        A scoring function is named, not stored.
        """
        data: dict[str, Any] = {"kind": self.kind}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.default is not dataclasses.MISSING and field.name != "per" and value == field.default:
                continue
            if field.name == "by":
                value = by_to_dict(value)
            elif field.name == "parts":
                value = {part: list(bounds) for part, bounds in value}
            elif field.name == "per":
                value = as_stored(self.per or ())
            elif isinstance(value, tuple):
                value = list(value)
            elif hasattr(value, "to_dict"):  # a window, a combination
                value = value.to_dict()
            if value not in (None, [], {}) or field.name == "by":
                data[field.name] = value
        return data

    @staticmethod
    def usual_direction(by: Any, descending: bool) -> bool | None:
        """The argument `largest` of a query with this direction: None where it is the scoring's own."""
        return None if descending != scoring_of(by).smallest_first else descending

    def listed_sql(self, values: dict[str, Any]) -> str:
        """What stands after SELECT, for `to_sql`; takes what it says out of the values."""
        return "*"

    def ranking_sql(self, values: dict[str, Any]) -> list[str]:
        """The clauses that say what ranks, for `to_sql`; takes what they say out of the values."""
        return [order_by(self, values)]

    def more_sql(self, values: dict[str, Any]) -> list[str]:
        """More clauses of this kind, for `to_sql`; takes what they say out of the values."""
        return []

    def to_sql(self, stream: str = "stream") -> str:
        """Return the query as a sentence in SQL, which `sb.sql` reads back.

        Parameters
        ----------
        stream : str, default "stream"
            The name after FROM.

        Raises
        ------
        QueryError
            If the scoring is a Python function, which SQL cannot express.

        """
        return sentence(self, stream)

    def _repr_html_(self) -> str:
        """The sentence in SQL, for notebooks."""
        return query_html(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], call: Callable[..., Any] | None = None) -> Self:
        """Make a query from what `to_dict` returned.

        Parameters
        ----------
        data : mapping
            Its "kind", and arguments by name. `Query.from_dict` takes any kind; without a "kind" it is the class's own.
        call : callable, optional
            The scoring function, if the query was scored by one: functions are never stored.

        """
        if not isinstance(data, Mapping):
            raise QueryError(f"a query is stored as a mapping with a 'kind'; got {data!r}.")
        values = dict(data)
        kind = values.pop("kind", cls.kind)
        made = KINDS.get(kind) if isinstance(kind, str) else None
        if made is None or not issubclass(made, cls):
            allowed = [name for name, known in KINDS.items() if issubclass(known, cls)]
            raise QueryError(f"kind {kind!r} is not a query kind here. Use one of {', '.join(allowed)}.")
        known = {field.name for field in dataclasses.fields(made)}  # type: ignore[arg-type]
        if unknown := values.keys() - known:
            raise QueryError(f"{kind} has no {', '.join(sorted(unknown))}. It has: {', '.join(sorted(known))}.")
        if isinstance(values.get("window"), Mapping):
            values["window"] = window_from_dict(values["window"])
        if "by" in values:
            values["by"] = by_from_dict(values["by"], call)
        values |= {name: from_stored(values[name]) for name in _NUMBERS if name in values}
        if isinstance(values.get("combine"), Mapping):
            values["combine"] = by_from_dict(values["combine"])
        try:
            return made(**values)
        except TypeError as error:
            raise QueryError(f"{kind}: {str(error).partition('__init__() ')[2] or error}.") from None


_NUMBERS: tuple[Any, ...] = ("k", "offset", "threshold")  # arguments that subscriptions may bring, each a role too
KINDS: dict[str, type[Query]] = {}  # by name; `skyband.query.kinds` fills it


def _bound_key(key: Any, values: Mapping[str, Any]) -> Any:
    """A scoring or a key with the values of a subscription."""
    if isinstance(key, str):
        return bind(key, values)
    return key.bind(values) if isinstance(key, Scoring) else key


def _window(given: Any) -> Window:
    return given if isinstance(given, Window) else Last(given)


def _fits(mine: Window, theirs: Window) -> None:
    """Refuse a window that the state for this one cannot answer."""
    if isinstance(mine, Last) and isinstance(theirs, Last):
        sizes = [(mine.count, theirs.count), (mine.nanoseconds, theirs.nanoseconds), (mine.span, theirs.span)]
        if any(own is not None and other is not None and other <= own for own, other in sizes):
            return
    elif isinstance(mine, Ever):
        raise QueryError(f"window={theirs!r}: over Ever() nothing is kept of shorter windows. Ask without window=.")
    elif mine == theirs:
        return
    raise QueryError(f"window={theirs!r}: the query's own window is {mine!r}. Ask for at most that, of its kind.")
