"""The loop in one process: batch -> scores -> engines -> changes. A Monitor belongs to one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.batch import Batch, conform, is_time, time_unit, times, to_table
from skyband.changes import answer_names, answer_table, change_names, change_table, column_types
from skyband.engines.contract import Asked
from skyband.engines.registry import choose
from skyband.errors import BatchError, QueryError
from skyband.groups import Groups
from skyband.query import RESERVED, Query, TopK
from skyband.standing import Judged, Options, Push, Standing
from skyband.windows import Last, Window

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
BEGINNING = -(2**62)  # the clock before any arrival


class Monitor:
    """Standing queries over one stream of batches.

    queries: one query, a list (named q0, q1, ...), or {name: query}. id: the column that labels objects (default: the
    number of the arrival). time: the column of times. keep: columns to report with each object. emit: "arrival"
    reports each step, "batch" the net change of each push. late: "accept" or "drop" objects older than the clock.
    invalid: "reject" and count bad rows, or "raise".

    >>> import skyband as sb
    >>> m = sb.Monitor(sb.TopK(k=1, by="x", window=sb.Last(2)))
    >>> m.push({"x": [3, 1, 2]}).select(["at", "id", "score", "diff"]).to_pylist()
    [{'at': 0, 'id': 0, 'score': 3.0, 'diff': 1},
     {'at': 2, 'id': 0, 'score': 3.0, 'diff': -1},
     {'at': 2, 'id': 2, 'score': 2.0, 'diff': 1}]
    """

    def __init__(
        self,
        queries: Query | Iterable[Query] | Mapping[str, Query],
        *,
        id: str | None = None,
        time: str | None = None,
        part: str = "part",
        value: str = "value",
        keep: str | Iterable[str] = (),
        emit: str = "arrival",
        late: str = "accept",
        invalid: str = "reject",
    ) -> None:
        self._options = Options(
            id=_column("id", id),
            time=_column("time", time),
            part=_column("part", part),
            value=_column("value", value),
            keep=_kept(keep),
            emit=_one_of("emit", emit, ("arrival", "batch")),
            late=_one_of("late", late, ("accept", "drop")),
            invalid=_one_of("invalid", invalid, ("reject", "raise")),
        )
        self._groups: dict[tuple[str, ...], Groups] = {}
        self._homes: dict[str, Standing] = {}  # by query, in order of registration
        self._types: dict[str, Any] = {}  # of the input's columns, once seen
        self._clock = BEGINNING
        self._ahead: Any = None  # `advance` before the type of time was known
        self._serial = 0  # of the next row
        self._counters: dict[str, Any] = {"arrivals": 0, "late": 0, "rejected": {}}
        for name, query in _named(queries).items():
            self.add(name, query)

    # --- standing queries

    @property
    def queries(self) -> dict[str, Query]:
        """The standing queries by name, in order of registration."""
        return {name: home.queries[name] for name, home in self._homes.items()}

    def add(self, name: str, query: Query) -> None:
        """Add a standing query. It sees only later arrivals, and goes on with the numbers."""
        if name in self._homes:
            raise QueryError(f"a query called {name!r} is standing already. Use replace({name!r}, ...) or another name.")
        self._settle(name, self._checked(name, query))

    def drop(self, name: str) -> None:
        """Stop a standing query. Nothing is reported."""
        home = self._home(name)
        del self._homes[name]
        home.refit({other: query for other, query in home.queries.items() if other != name}, self._unit, self._clock)

    def replace(self, name: str, query: Query) -> Any:
        """Ask another question under the same name; returns the changes that turn the old answer into the new one.

        The state is kept when the new query has the same scoring, direction, `where` and `per` and no larger k or
        window than the queries that share the old one's skyband; else it starts empty.
        """
        home, asked, names = self._home(name), self._checked(name, query), list(self._homes)
        label = [names.index(other) for other in home.queries]
        types = self._change_types()
        if home.can_serve(asked, self._unit):
            piece = home.refit({**home.queries, name: asked}, self._unit, self._clock)
        else:
            piece = home.farewell(name, self._unit, self._clock)
            home.refit({other: kept for other, kept in home.queries.items() if other != name}, self._unit, self._clock)
            self._settle(name, asked)
        return change_table([piece] if piece else [], [label] if piece else [], names, types)

    def _checked(self, name: str, query: Query) -> TopK:
        if not isinstance(name, str) or not name:
            raise QueryError(f"a query is named by a non-empty string; got {name!r}.")
        if not isinstance(query, Query):
            raise QueryError(f"{query!r} is no query. Use TopK(...) or another query kind.")
        choose(query)
        assert isinstance(query, TopK) and isinstance(query.window, Last)
        clash = set(query.per_columns) & set(self._options.keep)
        if clash:
            raise QueryError(f"{clash.pop()!r} is in `per` and in `keep`; every change carries its `per` columns anyway.")
        if query.window.timed:
            if self._options.time is None:
                raise QueryError(f'{query.window!r} is a time window: name the time column, Monitor(..., time="...").')
            if self._options.time in self._types:
                query.window.length(self._unit)
        return query

    def _settle(self, name: str, query: TopK) -> None:
        """Give the query a home: an engine that has not started yet, or a new one."""
        groups = self._groups.setdefault(query.per_columns, Groups(query.per_columns))
        standing = self._standing()
        home = next((home for home in standing if home.can_join(query)), None)
        if home is None:
            counts = np.zeros(groups.total, np.int64)
            for other in standing:
                if other.groups is groups:
                    most = other.counts.max(axis=0)
                    counts[: len(most)] = np.maximum(counts[: len(most)], most)
            home = Standing(query, groups, self._options, counts)
        home.queries[name] = query
        self._homes[name] = home

    def _standing(self) -> list[Standing]:
        return list(dict.fromkeys(self._homes.values()))

    def _home(self, name: str) -> Standing:
        if name not in self._homes:
            raise QueryError(f"no query called {name!r} is standing. Standing: {', '.join(self._homes) or 'none'}.")
        return self._homes[name]

    # --- the stream

    def push(self, batch: Any) -> Any:
        """Take a batch of rows, in order of arrival; returns the changes of the answers."""
        given = Batch(to_table(batch))
        if not given.table.num_columns and not given.rows:
            return self._changes([], [])
        standing = self._standing()
        types, told = self._read(given, standing)
        unit = None if self._options.time is None else time_unit(types[self._options.time])
        lengths = [asked.length for home in standing if home.timed for asked in home.asked(unit)]
        moments, untimely = None, {}
        if self._options.time is not None:
            moments, null, far = times(told["time"], max(lengths, default=0))
            untimely = {"time is null": null, "time is out of range": far}
        cache: dict[Any, Any] = {}
        judged = [home.judge(given, cache, untimely) for home in standing]
        self._raise_invalid(judged)

        self._types = types  # from here on nothing fails
        self._count_rejected(standing, judged)
        accepted = np.zeros(given.rows, np.bool_)
        for one in judged:
            accepted |= one.accepted
        if not accepted.any():
            return self._changes([], [])
        clock = self._start(standing, unit)
        clocks = None
        if moments is not None:
            clocks = np.maximum(np.maximum.accumulate(np.where(accepted, moments, BEGINNING)), clock)
            clock = int(clocks[-1])
        push = Push(given, self._serial, told, moments, clocks, clock)
        pieces = self._take(push, standing, judged)
        self._clock = clock
        self._serial += given.rows
        self._counters["arrivals"] += int(accepted.sum())
        return self._changes(pieces, standing)

    def advance(self, to: Any) -> Any:
        """Time moves on with no arrival; returns what expires."""
        if self._options.time is None:
            raise BatchError('advance moves the clock, but no time column is named. Use Monitor(..., time="...").')
        type_ = self._types.get(self._options.time)
        if type_ is None:
            if self._ahead is not None and to < self._ahead:
                raise BatchError(f"advance({to!r}) would move time backwards from {self._ahead!r}.")
            self._ahead = to
            return self._changes([], [])
        clock = _instant(to, type_)
        if clock < self._clock:
            raise BatchError(f"advance({to!r}) would move time backwards. The clock never goes back; late rows may.")
        self._clock = clock
        standing = [home for home in self._standing() if home.timed and home.engine is not None]
        none = np.empty(0, np.int64)
        empty = Push(Batch(pa.table({})), self._serial, self._nothing(), none, none, clock)
        return self._changes([home.expire(empty) for home in standing], standing)

    def delete(self, ids: Iterable[Any]) -> Any:
        """Delete objects of UntilDeleted queries by id."""
        raise QueryError(
            "delete is for queries over UntilDeleted(), and none is standing: objects of Last(...) leave by themselves."
        )

    def _nothing(self) -> dict[str, Any]:
        """No objects, in columns of the right types."""
        wanted = {"id": self._options.id, "time": self._options.time} | {name: name for name in self._options.keep}
        return {role: pa.nulls(0, self._types[name]) for role, name in wanted.items() if name is not None}

    def _read(self, given: Batch, standing: list[Standing]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The columns that are told of objects, in the types they always had; checks all that queries will read."""
        types = dict(self._types)
        told = {}
        options = self._options
        wanted = {"id": options.id, "time": options.time} | {name: name for name in options.keep}
        wanted |= {("per", name): name for home in standing for name in home.groups.names}
        for role, name in wanted.items():
            if name is not None:
                column = conform(name, given.array(name), types.get(name))
                if role == "time" and not is_time(column.type):
                    raise BatchError(
                        f"the time column {name!r} holds {column.type}. Time is a timestamp, a date or an integer."
                    )
                types[name] = column.type
                told[role] = column
        return types, told

    def _raise_invalid(self, judged: list[Judged]) -> None:
        if self._options.invalid != "raise":
            return
        bad = [(int(rows.argmax()), reason) for one in judged for reason, rows in one.scored.rejected.items()]
        if bad:
            row, reason = min(bad)
            raise BatchError(f'row {row}: {reason}. Nothing was pushed; mend the row, or use invalid="reject".')

    def _start(self, standing: list[Standing], unit: int | None) -> int:
        """Engines start with their first arrivals: the batch says what a unit of time is. Returns the clock."""
        clock = self._clock
        if self._ahead is not None:
            clock, self._ahead = max(clock, _instant(self._ahead, self._types[self._options.time])), None
        if any(home.engine is None for home in standing):
            from skyband.kernels.compile import announced

            with announced():
                for home in standing:
                    home.start(unit)
        return clock

    def _count_rejected(self, standing: list[Standing], judged: list[Judged]) -> None:
        """Per query, and once per row and reason for the whole."""
        rejected: dict[str, Bools] = {}
        for home, one in zip(standing, judged, strict=True):
            home.count_rejected(one)
            for reason, rows in one.scored.rejected.items():
                rejected[reason] = rejected[reason] | rows if reason in rejected else rows
        counted = self._counters["rejected"]
        for reason, rows in rejected.items():
            counted[reason] = counted.get(reason, 0) + int(rows.sum())

    def _take(self, push: Push, standing: list[Standing], judged: list[Judged]) -> list[dict[str, Any]]:
        codes: dict[int, Ints] = {}
        for groups in {id(home.groups): home.groups for home in standing}.values():
            wanted = np.zeros(push.batch.rows, np.bool_)
            for home, one in zip(standing, judged, strict=True):
                if home.groups is groups:
                    wanted |= one.accepted
            codes[id(groups)] = _codes(groups, [push.columns["per", name] for name in groups.names], wanted)
        told = Push(
            push.batch,
            push.serial,
            {role: column for role, column in push.columns.items() if isinstance(role, str)},
            push.times,
            push.clocks,
            push.clock,
        )
        pieces, late = [], np.zeros(push.batch.rows, np.bool_)
        for home, one in zip(standing, judged, strict=True):
            piece, dropped = home.take(told, one, codes[id(home.groups)])
            pieces.append(piece)
            late |= dropped
        self._counters["late"] += int(late.sum())
        return pieces

    # --- what can be asked at any time

    def answer(self, name: str | None = None, *, key: Any = None, k: int | None = None, window: Any = None) -> Any:
        """The current answer, best first; of one group with `key`, of a smaller k or window when asked."""
        if name is None:
            if len(self._homes) != 1:
                raise QueryError(f"name the query: {', '.join(self._homes) or 'none is standing'}.")
            name = next(iter(self._homes))
        home = self._home(name)
        query = home.queries[name]
        smaller = _smaller(query, k, window)
        per = query.per_columns
        group = None
        if key is not None:
            values = key if isinstance(key, tuple) else (key,)
            if len(values) != len(per):
                raise QueryError(
                    f"{name} has {len(per)} `per` columns {list(per)}, but key={key!r} gives {len(values)} values."
                )
            group = home.groups.find(values)
        names = answer_names(per, self._options.keep, self._options.time is not None)
        types = column_types(names, self._told_types())
        if home.engine is None or (key is not None and group is None):
            return answer_table({}, types)
        asked = Asked(smaller.k, smaller.window.length(self._unit))  # type: ignore[union-attr]
        return answer_table(home.answer(name, asked, self._clock, group), types)

    def stats(self) -> dict[str, Any]:
        """Counts of rows (arrivals of any query, late ones dropped by any, rejected by reason), and per query."""
        return {
            "arrivals": self._counters["arrivals"],
            "late": self._counters["late"],
            "rejected": dict(self._counters["rejected"]),
            "queries": {name: home.stats() for name, home in self._homes.items()},
        }

    def snapshot(self) -> bytes:
        """The whole state as bytes, for `Monitor.restore`."""
        from skyband.storing import save

        return save(self)

    @classmethod
    def restore(cls, data: bytes, callables: Mapping[str, Callable[..., Any]] | None = None) -> Self:
        """A Monitor that goes on where the snapshot was taken.

        Scoring functions are never stored: `callables` gives them by the query's name, or by their own name.
        """
        from skyband.storing import load

        return load(cls, data, callables or {})

    def __repr__(self) -> str:
        return f"Monitor({self.queries!r})"

    # --- columns

    @property
    def _unit(self) -> int | None:
        type_ = None if self._options.time is None else self._types.get(self._options.time)
        return None if type_ is None else time_unit(type_)

    def _told_types(self) -> dict[str, Any]:
        options = self._options
        types = {name: self._types.get(name, pa.null()) for name in options.keep}
        for home in self._homes.values():
            types |= {name: self._types.get(name, pa.null()) for name in home.groups.names}
        types["id"] = pa.int64() if options.id is None else self._types.get(options.id, pa.null())
        types["time"] = pa.null() if options.time is None else self._types.get(options.time, pa.null())
        return types

    def _change_types(self) -> dict[str, Any]:
        per = [name for home in self._homes.values() for name in home.groups.names]
        names = change_names(per, self._options.keep, self._options.time is not None)
        return column_types(names, self._told_types())

    def _changes(self, pieces: list[dict[str, Any]], standing: list[Standing]) -> Any:
        names = list(self._homes)
        place = {name: i for i, name in enumerate(names)}
        labels = [[place[name] for name in home.queries] for home in standing]
        return change_table(pieces, labels, names, self._change_types())


def _codes(groups: Groups, columns: list[Any], wanted: Bools) -> Ints:
    """The group of each wanted row."""
    if not groups.names or wanted.all():
        return groups.codes(columns, len(wanted))
    codes = np.zeros(len(wanted), np.int64)
    rows = np.flatnonzero(wanted)
    codes[rows] = groups.codes([column.take(pa.array(rows)) for column in columns], len(rows))
    return codes


def _smaller(query: TopK, k: int | None, window: Any) -> TopK:
    """The query with a smaller k or window."""
    asked = TopK(
        query.k if k is None else k,
        query.by,
        query.window if window is None else window if isinstance(window, Window) else Last(window),
        largest=query.largest,
    )
    if not isinstance(asked.window, Last) or asked.window.timed != query.window.timed:
        raise QueryError(f"answer(window={window!r}): the query's window is {query.window!r}. Use one of the same kind.")
    if asked.k > query.k:
        raise QueryError(f"answer(k={k}): the query keeps only what its own k={query.k} needs. Ask for at most that.")
    assert isinstance(query.window, Last)
    of_one_kind = (asked.window.span is None) == (query.window.span is None)
    if not of_one_kind or _size(asked.window) > _size(query.window):
        raise QueryError(f"answer(window={window!r}): the query's own window is {query.window!r}. Ask for at most that.")
    return asked


def _size(window: Last) -> int:
    return window.count or window.nanoseconds or window.span or 0


def _instant(to: Any, type_: Any) -> int:
    """A moment given by a user, in the units of the time column."""
    try:
        value = pa.array([to])
        if pa.types.is_integer(value.type) != pa.types.is_integer(type_):
            raise TypeError(f"the time column holds {type_}")
        moment, null, far = times(value.cast(type_), 0)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise BatchError(f"advance({to!r}) is no time of the time column ({type_}): {error}.") from error
    if null is not None or far is not None:
        raise BatchError(f"advance({to!r}) is no time, or out of range.")
    return int(moment[0])


def _named(queries: Query | Iterable[Query] | Mapping[str, Query]) -> dict[str, Query]:
    if isinstance(queries, Query):
        return {"q0": queries}
    if isinstance(queries, Mapping):
        return dict(queries)
    if isinstance(queries, Iterable):
        return {f"q{i}": query for i, query in enumerate(queries)}
    raise QueryError(f"Monitor takes a query, a list of queries or {{name: query}}; got {queries!r}.")


def _column(what: str, name: Any) -> Any:
    if name is not None and (not isinstance(name, str) or not name):
        raise QueryError(f"Monitor: {what} names a column; got {name!r}.")
    return name


def _kept(keep: str | Iterable[str]) -> tuple[str, ...]:
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in names:
        if _column("keep", name) in RESERVED:
            raise QueryError(f"Monitor: keep={name!r} is a column that skyband writes itself ({', '.join(RESERVED)}). Rename it.")
        if names.count(name) > 1:
            raise QueryError(f"Monitor: keep names {name!r} twice.")
    return names


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise QueryError(f"Monitor: {what}={value!r} is unknown. Use {' or '.join(map(repr, allowed))}.")
    return value
