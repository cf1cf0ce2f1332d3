"""Options: how a Monitor or a Spark pipeline runs, as one checked value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

from skyband.errors import QueryError
from skyband.query.expressions.words import require_text
from skyband.query.kinds import Query
from skyband.query.validation import Named, column_names, input_name, is_reserved, is_word, output_name
from skyband.query.windows import Last, UntilDeleted, Window

ALL = "*"
#: columns of a loop over the answers of a query: its objects by number, their ids and own times
OBJECT, ID, OWN = "# object", "# id", "# own time"


@dataclass(frozen=True)
class Options:
    """Columns by name, and what to do with late and invalid rows; see `Monitor`."""

    id: str | None = None
    time: str | None = None
    part: str = "part"
    value: str = "value"
    keep: str | Iterable[Any] | Mapping[str, str] = ()
    emit: str = "arrival"
    late: str = "accept"
    invalid: str = "reject"
    op: str | None = None
    forget: str | int | timedelta | None = None
    device: str | None = None  # where queries that compare vectors are at work; no part of a snapshot

    def __post_init__(self) -> None:
        for what in ("id", "time", "part", "value", "op"):
            _column(what, getattr(self, what))
        object.__setattr__(self, "keep", _kept(self.keep, inside=self.inner))
        object.__setattr__(self, "forget", self._silence())
        _one_of("emit", self.emit, ("arrival", "batch"))
        _one_of("late", self.late, ("accept", "drop"))
        _one_of("invalid", self.invalid, ("reject", "raise"))

    def _silence(self) -> str | int | None:
        """`forget` as plain data, checked."""
        if self.forget is None:
            return None
        if self.time is None:
            raise QueryError('forget= says how long a group may be silent: name the time column, time="...".')
        try:
            window = Last(span=self.forget) if isinstance(self.forget, int) else Last(self.forget)
        except QueryError as error:
            raise QueryError(f"forget={self.forget!r} must be a time span, written as in Last(...). {error}") from error
        return next(iter(window.to_dict().values()))  # type: ignore[no-any-return]

    def silence(self, unit: int | None) -> int:
        """`forget` in units of the time column."""
        window = Last(span=self.forget) if isinstance(self.forget, int) else Last(self.forget)
        return window.length(unit)

    def timed(self, window: Window) -> bool:
        """Whether objects of the window have a time: of time windows, and of `Ever` where rows have one."""
        return window.sort == "time" or (window.sort == "ever" and self.time is not None)

    @property
    def kept(self) -> tuple[str, ...]:
        """`keep` as a tuple of column names; none as long as keep="*" waits for the first batch."""
        names = () if self.keep == (ALL,) else tuple(map(output_name, self.keep))
        return tuple(name for name in names if name not in (ID, OWN)) if self.inner else names

    @property
    def stored(self) -> dict[str, Any]:
        """What state keeps of the options: not on which device it was."""
        return {name: value for name, value in asdict(self).items() if name != "device"}

    @property
    def inner(self) -> bool:
        """Whether rows are changes of the answers of a query."""
        return self.id == OBJECT

    def settled(self, columns: Iterable[str], queries: Iterable[Query]) -> Options:
        """The options with these columns in place of keep="*": all that have no role and no reserved name."""
        if self.keep != (ALL,):
            return self
        per = [name for query in queries for name in (*query.per_columns, *query.per_inputs)]
        taken = {*per, self.id, self.time, self.op}
        return replace(self, keep=[name for name in columns if name not in taken and not is_reserved(name)])

    @property
    def roles(self) -> dict[str, str]:
        """The columns that are reported of objects: the output's name -> the input's."""
        named = {"id": self.id, "time": self.time}
        return {role: name for role, name in named.items() if name is not None} | {
            output_name(name): input_name(name) for name in self.keep if name != ALL
        }


def named(queries: Query | Iterable[Query] | Mapping[str, Query]) -> dict[str, Query]:
    """Queries by name: one or a list is q0, q1, ..."""
    if isinstance(queries, Query | str):  # a text is refused as a whole, not by its letters
        return {"q0": queries}
    if isinstance(queries, Mapping):
        return dict(queries)
    if isinstance(queries, Iterable):
        return {f"q{i}": query for i, query in enumerate(queries)}
    raise QueryError(f"Monitor takes a query, a list of queries or {{name: query}}; got {queries!r}.")


def check_op(op: str | None, queries: Iterable[Query]) -> None:
    """Refuse an `op` that no query can use, where all queries are known from the beginning."""
    if op is not None and not any(isinstance(query.window, UntilDeleted) for query in queries):
        raise QueryError(
            f"op={op!r} tells which rows delete an object, but no query is over UntilDeleted(): objects of Last(...) "
            "leave by themselves. Leave op= out (and such rows, if there are any), or ask over UntilDeleted()."
        )


def _column(what: str, name: Any) -> Any:
    if name is not None and (not isinstance(name, str) or not name):
        raise QueryError(f"Monitor: {what} names a column; got {name!r}.")
    if name is not None:
        require_text(f"Monitor: {what}", name)
    return name


def _kept(keep: str | Iterable[Any] | Mapping[str, str], *, inside: bool) -> tuple[Named, ...]:
    if not isinstance(keep, Iterable):
        raise QueryError(f"Monitor: keep={keep!r}: give a list of column names.")
    names = column_names("Monitor: keep", keep, inside=inside)
    if ALL in names and len(names) > 1:
        raise QueryError(f'Monitor: keep={list(names)!r}: keep="*" stands for all columns, so it stands alone.')
    return names


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if not is_word(value, allowed):
        raise QueryError(f"Monitor: {what}={value!r} is unknown. Use {' or '.join(map(repr, allowed))}.")
