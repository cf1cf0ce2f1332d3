"""The loop in one process: batch -> scores -> engines -> changes. A Monitor belongs to one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.batch import Batch, announce, conform, instant, is_time, time_unit, times, to_table
from skyband.changes import answer_names, answer_table, change_names, change_table, column_types
from skyband.engines.contract import Asked
from skyband.engines.registry import choose
from skyband.errors import BatchError, QueryError
from skyband.groups import Groups
from skyband.options import Options, named
from skyband.pushes import Judged, Push
from skyband.query import Query, TopK
from skyband.scores import Scored
from skyband.standing import BEGINNING, Seen, Standing, State, length_of
from skyband.storing import load, save
from skyband.windows import Last

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


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
        self._state = State(Options(id, time, part, value, keep, emit, late, invalid))
        for name, query in named(queries).items():
            self.add(name, query)

    # --- standing queries

    @property
    def queries(self) -> dict[str, Query]:
        """The standing queries by name, in order of registration."""
        return {name: home.queries[name] for name, home in self._state.homes.items()}

    def add(self, name: str, query: Query) -> None:
        """Add a standing query. It sees only later arrivals, and goes on with the numbers."""
        if name in self._state.homes:
            raise QueryError(
                f"a query called {name!r} is standing already. Use replace({name!r}, ...) or another name."
            )
        asked = self._checked(name, query)
        self._settle(name, asked, self._numbers(asked))

    def drop(self, name: str) -> None:
        """Stop a standing query. Nothing is reported."""
        home = self._home(name)
        del self._state.homes[name]
        home.leave(name, self._state.unit, self._state.clock)

    def replace(self, name: str, query: Query) -> Any:
        """Ask another question under the same name; returns the changes that turn the old answer into the new one.

        The state is kept when the new query has the same scoring, direction, `where` and `per` and no larger k or
        window than the queries that share the old one's skyband; else it starts empty.
        """
        home, asked, names = self._home(name), self._checked(name, query), list(self._state.homes)
        label = [names.index(other) for other in home.queries]
        types = self._change_types()
        if home.can_serve(asked, self._state.unit):
            piece = home.refit({**home.queries, name: asked}, self._state.unit, self._state.clock)
        else:
            piece, numbers = home.farewell(name, self._state.unit, self._state.clock), self._numbers(asked)
            home.leave(name, self._state.unit, self._state.clock)
            self._settle(name, asked, numbers)
        return change_table([piece] if piece else [], [label] if piece else [], names, types)

    def _checked(self, name: str, query: Query) -> TopK:
        if not isinstance(name, str) or not name:
            raise QueryError(f"a query is named by a non-empty string; got {name!r}.")
        if not isinstance(query, Query):
            raise QueryError(f"{query!r} is no query. Use TopK(...) or another query kind.")
        choose(query)
        assert isinstance(query, TopK) and isinstance(query.window, Last)
        clash = set(query.per_columns) & set(self._state.options.kept)
        if clash:
            raise QueryError(
                f"{clash.pop()!r} is in `per` and in `keep`; every change carries its `per` columns anyway."
            )
        if query.window.timed:
            if self._state.options.time is None:
                raise QueryError(f'{query.window!r} is a time window: name the time column, Monitor(..., time="...").')
            if self._state.options.time in self._state.types:
                query.window.length(self._state.unit)
        return query

    def _numbers(self, query: TopK) -> Ints:
        """Where a new query goes on: per group the largest number that any query with the same `per` has reached."""
        groups = self._state.groups.setdefault(query.per_columns, Groups(query.per_columns))
        numbers = np.zeros(groups.total, np.int64)
        for home in self._state.standing():
            if home.groups is groups:
                most = home.counts.max(axis=0)
                numbers[: len(most)] = np.maximum(numbers[: len(most)], most)
        return numbers

    def _settle(self, name: str, query: TopK, numbers: Ints) -> None:
        """Give the query a home: an engine that has not started yet, or a new one."""
        home = next((home for home in self._state.standing() if home.can_join(query)), None)
        if home is None:
            home = Standing(query, self._state.groups[query.per_columns], self._state.options, numbers)
        home.queries[name] = query
        self._state.homes[name] = home

    def _home(self, name: str) -> Standing:
        if name not in self._state.homes:
            raise QueryError(
                f"no query called {name!r} is standing. Standing: {', '.join(self._state.homes) or 'none'}."
            )
        return self._state.homes[name]

    # --- the stream

    def push(self, batch: Any, *, to: Any = None) -> Any:
        """Take a batch of rows, in order of arrival; returns the changes of the answers.

        With `to`, time then moves on to that moment, if the clock has not passed it: one batch, one net change.
        """
        given = Batch(to_table(batch))
        if not given.table.num_columns and not given.rows:
            return self._changes([], []) if to is None else self._reach(to)
        seen = self.examine(given)
        clock = self._clock(seen.types)
        goal = clock if to is None else max(clock, self._moment(to, seen.types))
        self._raise_invalid(seen.judged)

        self._state.types = seen.types  # from here on nothing fails
        self._count_rejected(seen)
        if not seen.accepted.any():
            return self._changes([], []) if to is None else self._move(goal)
        clocks = None
        if seen.moments is not None:
            clocks = np.maximum(np.maximum.accumulate(np.where(seen.accepted, seen.moments, BEGINNING)), clock)
            clock = max(goal, int(clocks[-1]))
        push = Push(given, self._state.serial, seen.told, seen.moments, clocks, clock)
        with self._first_time(seen.standing):
            for home in seen.standing:
                home.start(self._state.unit)
            pieces = self._take(push, seen)
        self._state.clock, self._state.ahead = clock, None
        self._state.serial += given.rows
        return self._changes(pieces, seen.standing)

    def advance(self, to: Any) -> Any:
        """Time moves on with no arrival; returns what expires."""
        if self._state.options.time is None:
            raise BatchError('advance moves the clock, but no time column is named. Use Monitor(..., time="...").')
        type_ = self._state.types.get(self._state.options.time)
        if type_ is None:
            announce(to, self._state.ahead)
            self._state.ahead = to
            return self._changes([], [])
        clock = instant(to, type_)
        if clock < self._clock(self._state.types):
            raise BatchError(f"advance({to!r}) would move time backwards. The clock never goes back; late rows may.")
        return self._move(clock)

    def _reach(self, to: Any) -> Any:
        """As `advance`, but a moment that has passed is no error, and an Arrow scalar tells the type of time."""
        if isinstance(to, pa.Scalar) and self._state.options.time is not None:
            self._state.types.setdefault(self._state.options.time, to.type)
        if self._state.options.time not in self._state.types:
            self._state.ahead = to if self._state.ahead is None else max(to, self._state.ahead)
            return self._changes([], [])
        return self._move(max(self._state.clock, self._moment(to, self._state.types)))

    def _move(self, clock: int) -> Any:
        self._state.clock, self._state.ahead = clock, None
        standing = [home for home in self._state.standing() if home.timed and home.engine is not None]
        none = np.empty(0, np.int64)
        nothing = {role: pa.nulls(0, self._state.types.get(name, pa.null())) for role, name in self._roles().items()}
        empty = Push(Batch(pa.table({})), self._state.serial, nothing, none, none, clock)
        return self._changes([home.expire(empty) for home in standing], standing)

    def delete(self, ids: Iterable[Any]) -> Any:
        """Delete objects of UntilDeleted queries by id."""
        raise QueryError(
            "delete is for queries over UntilDeleted(), and none is standing: objects of Last(...) leave by themselves."
        )

    def _roles(self) -> dict[str, str]:
        """What is told of objects: the output's column -> the input's."""
        named = {"id": self._state.options.id, "time": self._state.options.time}
        return {role: name for role, name in named.items() if name is not None} | {
            n: n for n in self._state.options.kept
        }

    def examine(self, given: Batch) -> Seen:
        """What a batch holds for the standing queries: columns, times, scores, who is accepted. Changes nothing."""
        standing = self._state.standing()
        types = dict(self._state.types)

        def read(name: str) -> Any:
            column = conform(name, given.array(name), types.get(name))
            types[name] = column.type
            return column

        told = {role: read(name) for role, name in self._roles().items()}
        moments: Ints | None = None
        untimely: dict[str, Bools | None] = {}
        if self._state.options.time is not None:
            if pa.types.is_null(told["time"].type):  # nothing but nulls, and no type known yet
                del types[self._state.options.time]
                untimely = {"time is null": np.ones(given.rows, np.bool_)}
            elif not is_time(told["time"].type):
                raise BatchError(
                    f"the time column {self._state.options.time!r} holds {told['time'].type}. "
                    "Time is a timestamp, a date or an integer."
                )
            else:
                unit = time_unit(told["time"].type)
                lengths = [asked.length for home in standing if home.timed for asked in home.asked(unit)]
                moments, null, far = times(told["time"], max(lengths, default=0))
                untimely = {"time is null": null, "time is out of range": far}
        cache: dict[Any, Scored] = {}
        judged = [home.judge(given, cache, untimely) for home in standing]
        accepted = np.zeros(given.rows, np.bool_)
        for one in judged:
            accepted |= one.accepted
        per = {name: read(name) for home in standing for name in home.groups.names}
        return Seen(standing, judged, accepted, types, told, per, moments)

    def _raise_invalid(self, judged: list[Judged]) -> None:
        if self._state.options.invalid != "raise":
            return
        bad = [(int(rows.argmax()), reason) for one in judged for reason, rows in one.scored.rejected.items()]
        if bad:
            row, reason = min(bad)
            raise BatchError(f'row {row}: {reason}. Nothing was pushed; mend the row, or use invalid="reject".')

    def _clock(self, types: dict[str, Any]) -> int:
        if self._state.ahead is None:
            return self._state.clock
        return max(self._state.clock, self._moment(self._state.ahead, types))

    def _moment(self, to: Any, types: dict[str, Any]) -> int:
        if self._state.options.time is None:
            raise BatchError('push(to=...) moves the clock, but no time column is named. Use Monitor(..., time="...").')
        type_ = types.get(self._state.options.time)
        return BEGINNING if type_ is None else instant(to, type_)

    def _first_time(self, standing: list[Standing]) -> AbstractContextManager[None]:
        """Engines start with their first arrivals, which say what a unit of time is; kernels may be compiled then."""
        if all(home.engine is not None for home in standing):
            return nullcontext()
        from skyband.kernels.compile import announced

        return announced()

    def _count_rejected(self, seen: Seen) -> None:
        """Per query, and once per row and reason for the whole."""
        rejected: dict[str, Bools] = {}
        for home, one in zip(seen.standing, seen.judged, strict=True):
            home.count_rejected(one)
            for reason, rows in one.scored.rejected.items():
                rejected[reason] = rejected[reason] | rows if reason in rejected else rows
        counted = self._state.counters["rejected"]
        for reason, rows in rejected.items():
            counted[reason] = counted.get(reason, 0) + int(rows.sum())

    def _take(self, push: Push, seen: Seen) -> list[dict[str, Any]]:
        codes: dict[int, Ints] = {}
        for groups in {id(home.groups): home.groups for home in seen.standing}.values():
            wanted = np.zeros(push.batch.rows, np.bool_)
            for home, one in zip(seen.standing, seen.judged, strict=True):
                if home.groups is groups:
                    wanted |= one.accepted
            codes[id(groups)] = groups.codes_where(wanted, [seen.per[name] for name in groups.names])
        pieces, arrived, late = [], np.zeros(push.batch.rows, np.bool_), np.zeros(push.batch.rows, np.bool_)
        for home, one in zip(seen.standing, seen.judged, strict=True):
            piece, came, dropped = home.take(push, one, codes[id(home.groups)])
            pieces.append(piece)
            arrived |= came
            late |= dropped
        self._state.counters["arrivals"] += int(arrived.sum())
        self._state.counters["late"] += int(late.sum())
        return pieces

    # --- what can be asked at any time

    def answer(self, name: str | None = None, *, key: Any = None, k: int | None = None, window: Any = None) -> Any:
        """The current answer, best first; of one group with `key`, of a smaller k or window when asked."""
        if name is None:
            if len(self._state.homes) != 1:
                raise QueryError(f"name the query: {', '.join(self._state.homes) or 'none is standing'}.")
            name = next(iter(self._state.homes))
        home = self._home(name)
        query = home.queries[name]
        smaller = query.smaller(k, window)
        per = query.per_columns
        group = None
        if key is not None:
            values = key if isinstance(key, tuple) else (key,)
            if len(values) != len(per):
                raise QueryError(
                    f"{name} has {len(per)} `per` columns {list(per)}, but key={key!r} gives {len(values)} values."
                )
            group = home.groups.find(values)
        names = answer_names(per, self._state.options.kept, self._state.options.time is not None)
        types = column_types(names, self._told_types())
        if home.engine is None or (key is not None and group is None):
            return answer_table({}, types)
        asked = Asked(smaller.k, length_of(smaller, self._state.unit))
        return answer_table(home.answer(name, asked, self._state.clock, group), types)

    def stats(self) -> dict[str, Any]:
        """Counts of rows (arrivals of any query, late ones dropped by any, rejected by reason), and per query."""
        return {
            "arrivals": self._state.counters["arrivals"],
            "late": self._state.counters["late"],
            "rejected": dict(self._state.counters["rejected"]),
            "queries": {name: home.stats(name) for name, home in self._state.homes.items()},
        }

    def snapshot(self) -> bytes:
        """The whole state as bytes, for `Monitor.restore`."""
        return save(self._state)

    @classmethod
    def restore(cls, data: bytes, callables: Mapping[str, Callable[..., Any]] | None = None) -> Self:
        """A Monitor that goes on where the snapshot was taken.

        Scoring functions are never stored: `callables` gives them by the query's name, or by their own name.
        """
        monitor = cls.__new__(cls)
        monitor._state = load(data, callables or {})
        return monitor

    def check(self) -> None:
        """Assert every invariant of the engines (tests call it)."""
        for home in self._state.standing():
            home.check()

    def __repr__(self) -> str:
        return f"Monitor({self.queries!r})"

    # --- columns

    def _told_types(self) -> dict[str, Any]:
        options = self._state.options
        types = {name: self._state.types.get(name, pa.null()) for name in options.kept}
        for home in self._state.homes.values():
            types |= {name: self._state.types.get(name, pa.null()) for name in home.groups.names}
        types["id"] = pa.int64() if options.id is None else self._state.types.get(options.id, pa.null())
        types["time"] = pa.null() if options.time is None else self._state.types.get(options.time, pa.null())
        return types

    def _change_types(self) -> dict[str, Any]:
        per = [name for home in self._state.homes.values() for name in home.groups.names]
        names = change_names(per, self._state.options.kept, self._state.options.time is not None)
        return column_types(names, self._told_types())

    def _changes(self, pieces: list[dict[str, Any]], standing: list[Standing]) -> Any:
        names = list(self._state.homes)
        place = {name: i for i, name in enumerate(names)}
        labels = [[place[name] for name in home.queries] for home in standing]
        return change_table(pieces, labels, names, self._change_types())
