"""The loop in one process: batch -> scores -> engines -> changes. A Monitor belongs to one thread."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.batch import Batch, announce, conform, instant, is_time, time_unit, times, to_table
from skyband.changes import Roll, answer_names, answer_table, change_names, change_table, column_types
from skyband.columns import plain
from skyband.engines.registry import MANY, WINDOWED, choose
from skyband.errors import BatchError, QueryError
from skyband.families import auto_key, family_key, window_key
from skyband.groups import Groups
from skyband.keeping import Keeping, donor_of
from skyband.options import Options, named
from skyband.pushes import Judged, Push, what_rows_do
from skyband.query import Above, Query, TopK
from skyband.scores import Scored
from skyband.standing import BEGINNING, Seen, Standing, State, asked_of
from skyband.storing import load, save
from skyband.windows import Last, UntilDeleted

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Monitor:
    """Standing queries over one stream of batches.

    queries: one query, a list (named q0, q1, ...), or {name: query}. id: the column that labels objects (default: the
    number of the arrival). time: the column of times. keep: columns to report with each object. emit: "arrival"
    reports each step, "batch" the net change of each push. late: "accept" or "drop" objects older than the clock.
    invalid: "reject" and count bad rows, or "raise". op: the column that says what a row does to the objects of
    UntilDeleted queries: "insert" or "update" (the default for all rows), or "delete", by id and `per`.

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
        op: str | None = None,
    ) -> None:
        self.state = State(Options(id, time, part, value, keep, emit, late, invalid, op))
        fresh: dict[Any, Standing] = {}
        for name, query in named(queries).items():
            self._add(name, query, fresh)

    # --- standing queries

    @property
    def queries(self) -> dict[str, Query]:
        """The standing queries by name, in order of registration."""
        return {name: home.queries[name] for name, home in self.state.homes.items()}

    def add(self, name: str, query: Query, *, from_window: bool = False) -> Any:
        """Add a standing query. It sees only later arrivals, and goes on with the numbers.

        from_window: it answers at once from the window that another query keeps (TMA, SMA and TSL do), over the same
        columns and `per`; returns its first answer as changes.
        """
        if not from_window:
            return self._add(name, query, self._fresh())
        self._free(name)
        asked = self._checked(name, query)
        lenders = [home for home in self.state.standing() if isinstance(home, Keeping)]
        able = [home for home in lenders if home.can_lend(asked, self.state.unit)]
        if asked.algorithm != "auto":
            able = [home for home in able if home.algorithm == choose(asked)] or able
        if not able:
            raise QueryError(
                f"{name}: no standing query keeps a window that this one could look at: the same columns, `per` and "
                f"`where` (but for ranges), and at least {asked.window!r}, by TMA, SMA or TSL. Add it without "
                "from_window, or let such a query stand first."
            )
        algorithm = able[0].algorithm if asked.algorithm == "auto" else choose(asked)
        home = self._beside(able[0], name, asked, algorithm)
        piece = home.join(name, asked, self.state.unit, self.state.clock, {})
        self.state.homes[name] = home
        return self._changes([piece], [home])

    def _beside(self, donor: Keeping, name: str, query: TopK | Above, algorithm: str) -> Keeping:
        """The donor's home if the query can live there, else one with a copy of its window."""
        if window_key(query, algorithm) == window_key(donor.example, donor.algorithm):
            return donor
        return donor.offshoot(name, query, algorithm, self.state.unit, self.state.clock)

    def _fresh(self) -> dict[Any, Standing]:
        """The homes where nothing has arrived yet, by what their queries share."""
        self._split(lambda home: home.family and not home.keeps and home.engine is None)
        return {Standing.key(home.example): home for home in self.state.standing() if home.is_fresh}

    def judge_apart(self, but: Container[str] = ()) -> None:
        """Before the first arrival: each query judges rows by its own score, except for these."""
        self._split(lambda home: home.keeps and not any(name in but for name in home.queries))

    def expect(self, batches: Iterable[Any]) -> None:
        """Tables that will come in slices of one batch: what must part because of them parts before."""
        self._gather()
        for table in batches:
            given = Batch(table)
            self._split(lambda home, given=given: home.is_wild(given))  # type: ignore[misc]

    def _split(self, which: Callable[[Standing], bool]) -> None:
        """Families whose queries must go their own ways."""
        for family in filter(which, self.state.standing()):
            homes = family.split(self.state.unit, self.state.clock)
            self.state.homes = {name: homes.get(name, home) for name, home in self.state.homes.items()}

    def _gather(self) -> None:
        """Before the first arrival: queries come together that one engine can serve.

        Those that differ only in the numbers of their scoring become families; those that look at one window share it,
        and auto lets them if there are many.
        """
        if all(home.engine is not None for home in self.state.standing()):
            return
        alone = {
            name: home
            for name, home in self.state.homes.items()
            if home.engine is None and not home.family and len(home.queries) == 1
        }
        for names in _alike(alone, lambda home: family_key(cast(TopK, home.example)), 2):
            first = alone[names[0]]
            family = Standing(first.example, first.groups, self.state.options, first.counts[0], family=True)
            self._move_in(family, names)
            alone = {name: home for name, home in alone.items() if name not in family.queries}
        for names in _alike(alone, lambda home: auto_key(home.example), MANY):
            first = alone[names[0]]
            window = Keeping(
                first.example,
                first.groups,
                self.state.options,
                first.counts[0],
                algorithm="SMA",
                born=self.state.serial,
            )
            self._move_in(window, names)
        windows = {
            name: home for name, home in self.state.homes.items() if isinstance(home, Keeping) and home.engine is None
        }
        for names in _alike(windows, lambda home: cast(Keeping, home).share, 2):
            self._move_in(windows[names[0]], names)

    def _move_in(self, home: Standing, names: list[str]) -> None:
        home.queries = {name: self.state.homes[name].queries[name] for name in names}
        self.state.homes |= dict.fromkeys(names, home)

    def _add(self, name: str, query: Query, fresh: dict[Any, Standing]) -> None:
        self._free(name)
        asked = self._checked(name, query)
        self._settle(name, asked, self._numbers(asked), fresh)

    def _free(self, name: str) -> None:
        if name in self.state.homes:
            raise QueryError(
                f"a query called {name!r} is standing already. Use replace({name!r}, ...) or another name."
            )

    def drop(self, name: str) -> None:
        """Stop a standing query. Nothing is reported."""
        self._split(lambda home: home.family and not home.keeps and name in home.queries)
        home = self._home(name)
        del self.state.homes[name]
        home.leave(name, self.state.unit, self.state.clock)

    def replace(self, name: str, query: Query) -> Any:
        """Ask another question under the same name; returns the changes that turn the old answer into the new one.

        The state is kept when the new query has the same scoring, direction, `where` and `per` and no larger k or
        window than the queries that share the old one's skyband; else it starts empty.
        """
        self._split(lambda home: home.family and not home.keeps and name in home.queries)
        home, asked = self._home(name), self._checked(name, query)
        roll, before, types = Roll(list(self.state.homes)), list(home.queries), self._change_types()
        if isinstance(home, Keeping):
            donor = donor_of(self.state.standing(), home, name, asked, self.state.unit)
            if donor is not None:
                return self._hand_over(name, asked, home, donor)
        if home.can_serve(asked, self.state.unit):
            piece = home.refit({**home.queries, name: asked}, self.state.unit, self.state.clock)
        else:
            piece, numbers = home.farewell(name, self.state.unit, self.state.clock), self._numbers(asked)
            home.leave(name, self.state.unit, self.state.clock)
            self._settle(name, asked, numbers, self._fresh())
        return change_table([piece] if piece else [], roll, [before] if piece else [], types)

    def _hand_over(self, name: str, query: TopK | Above, home: Keeping, donor: Keeping) -> Any:
        """Another question under the same name, over a window that is kept."""
        unit, clock = self.state.unit, self.state.clock
        told, place = home.told_of(name), list(home.queries).index(name)
        was = home.machine.answer(place, home.asked(unit)[place], home.now(clock), None)
        target = self._beside(donor, name, query, home.algorithm if query.algorithm == "auto" else choose(query))
        home.leave(name, unit, clock)
        piece = target.join(name, query, unit, clock, told, was)
        self.state.homes[name] = target
        return self._changes([piece], [target])

    def _checked(self, name: str, query: Query) -> TopK | Above:
        if not isinstance(name, str) or not name:
            raise QueryError(f"a query is named by a non-empty string; got {name!r}.")
        if not isinstance(query, Query):
            raise QueryError(f"{query!r} is no query. Use TopK(...) or another query kind.")
        choose(query)
        assert isinstance(query, TopK | Above)
        if isinstance(query.window, UntilDeleted) and self.state.options.id is None:
            raise QueryError(
                'UntilDeleted() objects are deleted by their ids: name the id column, Monitor(..., id="...").'
            )
        clash = set(query.per_columns) & set(self.state.options.kept)
        if clash:
            raise QueryError(
                f"{clash.pop()!r} is in `per` and in `keep`; every change carries its `per` columns anyway."
            )
        if isinstance(query.window, Last) and query.window.timed:
            if self.state.options.time is None:
                raise QueryError(f'{query.window!r} is a time window: name the time column, Monitor(..., time="...").')
            if self.state.options.time in self.state.types:
                query.window.length(self.state.unit)
        return query

    def _numbers(self, query: TopK | Above) -> Ints:
        """Where a new query goes on: per group the largest number that any query with the same `per` has reached."""
        groups = self.state.groups.setdefault(query.per_columns, Groups(query.per_columns))
        numbers = np.zeros(groups.total, np.int64)
        if not self.state.serial:  # nothing has arrived
            return numbers
        for home in self.state.standing():
            if home.groups is groups:
                most = home.counts.max(axis=0)
                numbers[: len(most)] = np.maximum(numbers[: len(most)], most)
        return numbers

    def _settle(self, name: str, query: TopK | Above, numbers: Ints, fresh: dict[Any, Standing]) -> None:
        """Give the query a home: one that has not started yet, or a new one."""
        if choose(query) in WINDOWED:
            groups = self.state.groups[query.per_columns]
            self.state.homes[name] = Keeping(query, groups, self.state.options, numbers, born=self.state.serial)
            self.state.homes[name].queries[name] = query
            return
        key = Standing.key(query)
        home = fresh.get(key)
        if home is None or not home.is_fresh:
            home = Standing(query, self.state.groups[query.per_columns], self.state.options, numbers)
            fresh[key] = home
        home.queries[name] = query
        self.state.homes[name] = home

    def _home(self, name: str) -> Standing:
        if name not in self.state.homes:
            raise QueryError(
                f"no query called {name!r} is standing. Standing: {', '.join(self.state.homes) or 'none'}."
            )
        return self.state.homes[name]

    # --- the stream

    def push(self, batch: Any, *, to: Any = None, more: bool = False) -> Any:
        """Take a batch of rows, in order of arrival; returns the changes of the answers.

        With `to`, time then moves on to that moment, if the clock has not passed it: one batch, one net change.
        With `more`, the batch goes on with the next push: net changes (emit="batch") wait for its end.
        """
        given = Batch(to_table(batch))
        if not given.table.num_columns and not given.rows:
            return self._reach(to, more)
        self._gather()
        self._split(lambda home: home.is_wild(given))
        seen = self.examine(given)
        clock = self._clock(seen.types)
        goal = clock if to is None else max(clock, self._moment(to, seen.types))
        self.raise_invalid(seen.judged, "row {}".format)

        self.state.types = seen.types  # from here on nothing fails
        self._count_rejected(seen)
        if not seen.accepted.any():
            return self._move(goal, more)
        clocks = None
        if seen.moments is not None:
            clocks = np.maximum(np.maximum.accumulate(np.where(seen.accepted, seen.moments, BEGINNING)), clock)
            clock = max(goal, int(clocks[-1]))
        push = Push(given, self.state.serial, seen.told, seen.moments, clocks, clock, more, seen.deletes)
        with self._first_time(seen.standing):
            for home in seen.standing:
                home.start(self.state.unit)
            pieces = self._take(push, seen)
        self.state.clock, self.state.ahead = clock, None
        self.state.serial += given.rows
        return self._changes(pieces, seen.standing)

    def advance(self, to: Any) -> Any:
        """Time moves on with no arrival; returns what expires."""
        if self.state.options.time is None:
            raise BatchError('advance moves the clock, but no time column is named. Use Monitor(..., time="...").')
        type_ = self.state.types.get(self.state.options.time)
        if type_ is None:
            announce(to, self.state.ahead)
            self.state.ahead = to
            return self._changes([], [])
        clock = instant(to, type_)
        if clock < self._clock(self.state.types):
            raise BatchError(f"advance({to!r}) would move time backwards. The clock never goes back; late rows may.")
        return self._move(clock)

    def _reach(self, to: Any, more: bool) -> Any:
        """As `advance`, but a moment that has passed is no error, and an Arrow scalar tells the type of time."""
        if to is None:
            return self._move(self._clock(self.state.types), more)
        if isinstance(to, pa.Scalar) and self.state.options.time is not None:
            self.state.types.setdefault(self.state.options.time, to.type)
        if self.state.options.time not in self.state.types:
            self.state.ahead = to if self.state.ahead is None else max(to, self.state.ahead)
            return self._changes([], [])
        return self._move(max(self.state.clock, self._moment(to, self.state.types)), more)

    def _move(self, clock: int, more: bool = False) -> Any:
        self.state.clock = clock
        if self.state.options.time in self.state.types:
            self.state.ahead = None
        standing = [home for home in self.state.standing() if home.engine is not None]
        none = None if self.state.options.time is None else np.empty(0, np.int64)
        nothing = {
            role: pa.nulls(0, self.state.types.get(name, pa.null())) for role, name in self.state.options.roles.items()
        }
        empty = Push(Batch(pa.table({})), self.state.serial, nothing, none, none, clock, more)
        return self._changes([home.expire(empty) for home in standing], standing)

    def delete(self, ids: Iterable[Any]) -> Any:
        """Delete objects of UntilDeleted queries by id, one step each; unknown ids are counted."""
        homes = [home for home in self.state.standing() if isinstance(home, Keeping) and home.ids is not None]
        if not homes:
            raise QueryError(
                "delete is for queries over UntilDeleted(), and none is standing: "
                "objects of Last(...) leave by themselves."
            )
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            raise BatchError(f"delete takes a list of ids; got {ids!r}. Nothing was deleted; did you mean [{ids!r}]?")
        given = list(ids)
        column, known = self._ids(given), np.zeros(len(given), np.bool_)
        nothing = Push(Batch(pa.table({})), self.state.serial, {}, None, None, self.state.clock)
        pieces = []
        for home in homes:
            piece, found = home.delete(column, nothing)
            pieces.append(piece)
            known |= found
        if not known.all():
            rejected = self.state.counters["rejected"]
            rejected["unknown id"] = rejected.get("unknown id", 0) + int((~known).sum())
        return self._changes(pieces, homes)

    def _ids(self, ids: list[Any]) -> Any:
        """Ids as a column of the type that they have."""
        type_ = self.state.types.get(str(self.state.options.id), pa.null())
        if pa.types.is_null(type_):
            return pa.nulls(len(ids))
        try:
            return plain(pa.array(ids, type_))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
            raise BatchError(
                f"delete: the ids are of type {type_}, and these are not ({error}). Nothing was deleted."
            ) from None

    def examine(self, given: Batch) -> Seen:
        """What a batch holds for the standing queries: columns, times, scores, who is accepted. Changes nothing."""
        standing = self.state.standing()
        types = dict(self.state.types)

        def read(name: str) -> Any:
            column = conform(name, given.array(name), types.get(name))
            types[name] = column.type
            return column

        told = {role: read(name) for role, name in self.state.options.roles.items()}
        moments: Ints | None = None
        untimely: dict[str, Bools | None] = {}
        if self.state.options.time is not None:
            if pa.types.is_null(told["time"].type):  # nothing but nulls, and no type known yet
                del types[self.state.options.time]
                untimely = {"time is null": np.ones(given.rows, np.bool_)}
            elif not is_time(told["time"].type):
                raise BatchError(
                    f"the time column {self.state.options.time!r} holds {told['time'].type}. "
                    "Time is a timestamp, a date or an integer."
                )
            else:
                unit = time_unit(told["time"].type)
                lengths = [asked.length for home in standing if home.timed for asked in home.asked(unit)]
                moments, null, far = times(told["time"], max(lengths, default=0))
                untimely = {"time is null": null, "time is out of range": far}
        cache: dict[Any, Scored] = {}
        judged = [home.judge(given, cache, untimely) for home in standing]
        deletes = None
        if self.state.options.op is not None:
            deletes, other = what_rows_do(read(self.state.options.op))
            judged = [home.set_apart(one, deletes, other, untimely) for home, one in zip(standing, judged, strict=True)]
        accepted = np.zeros(given.rows, np.bool_)
        for one in judged:
            accepted |= one.accepted
        per = {name: read(name) for home in standing for name in home.groups.names}
        return Seen(standing, judged, accepted, types, told, per, moments, deletes)

    def raise_invalid(self, judged: list[Judged], name: Callable[[int], str]) -> None:
        """With invalid="raise": complain about the first bad row, under the name that it is given here."""
        if self.state.options.invalid != "raise":
            return
        bad = [(int(rows.argmax()), reason) for one in judged for reason, rows in one.scored.rejected.items()]
        if bad:
            row, reason = min(bad)
            raise BatchError(f'{name(row)}: {reason}. Nothing was pushed; mend the row, or use invalid="reject".')

    def _clock(self, types: dict[str, Any]) -> int:
        if self.state.ahead is None:
            return self.state.clock
        return max(self.state.clock, self._moment(self.state.ahead, types))

    def _moment(self, to: Any, types: dict[str, Any]) -> int:
        if self.state.options.time is None:
            raise BatchError('push(to=...) moves the clock, but no time column is named. Use Monitor(..., time="...").')
        type_ = types.get(self.state.options.time)
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
        counted = self.state.counters["rejected"]
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
        self.state.counters["arrivals"] += int(arrived.sum())
        self.state.counters["late"] += int(late.sum())
        if push.deletes is not None:
            self._count_unknown(seen.standing)
        return pieces

    def _count_unknown(self, standing: list[Standing]) -> None:
        """Rows that were to delete an id which no query has."""
        unknown = [set(home.machine.unknown) for home in standing if isinstance(home, Keeping) and home.ids is not None]
        if unknown and (count := len(set.intersection(*unknown))):
            rejected = self.state.counters["rejected"]
            rejected["unknown id"] = rejected.get("unknown id", 0) + count

    # --- what can be asked at any time

    def answer(self, name: str | None = None, *, key: Any = None, k: int | None = None, window: Any = None) -> Any:
        """The current answer, best first; of one group with `key`, of a smaller k or window when asked."""
        if name is None:
            if len(self.state.homes) != 1:
                raise QueryError(f"name the query: {', '.join(self.state.homes) or 'none is standing'}.")
            name = next(iter(self.state.homes))
        home = self._home(name)
        query = home.queries[name].smaller(k, window)
        if home.algorithm == "PA" and query.window != home.queries[name].window:
            raise QueryError(
                f"{name}: PA keeps only what its own window {home.queries[name].window!r} needs, so it cannot "
                f"answer for {query.window!r}. Ask without window=, or use an exact algorithm, such as BLOCK."
            )
        chosen: Ints | None = None
        if key is not None:
            values = key if isinstance(key, tuple) else (key,)
            per = query.per_columns
            if len(values) != len(per):
                raise QueryError(
                    f"{name} has {len(per)} `per` columns {list(per)}, but key={key!r} gives {len(values)} values."
                )
            found = home.groups.find(values)
            chosen = np.empty(0, np.int64) if found is None else np.array([found])
        return self._answer(name, query, chosen)

    def answer_among(self, name: str, groups: Any, but: Ints) -> Any:
        """The current answers of the groups in a table of known values of the `per` columns, but for those codes."""
        home = self._home(name)
        columns = [plain(groups.column(column)) for column in home.groups.names]
        return self._answer(name, home.queries[name], np.setdiff1d(home.groups.codes(columns, groups.num_rows), but))

    def _answer(self, name: str, query: TopK | Above, groups: Ints | None) -> Any:
        home, options = self._home(name), self.state.options
        types = column_types(
            answer_names(query.per_columns, options.kept, options.time is not None), self._told_types()
        )
        if home.engine is None:
            return answer_table({}, types)
        asked = asked_of(query, self.state.unit)
        return answer_table(home.answer(name, asked, self.state.clock, groups), types)

    def stats(self) -> dict[str, Any]:
        """Counts of rows (arrivals of any query, late ones dropped by any, rejected by reason), and per query."""
        return {
            "arrivals": self.state.counters["arrivals"],
            "late": self.state.counters["late"],
            "rejected": dict(self.state.counters["rejected"]),
            "queries": {name: home.stats(name) for name, home in self.state.homes.items()},
        }

    def snapshot(self) -> bytes:
        """The whole state as bytes, for `Monitor.restore`."""
        return save(self.state)

    @classmethod
    def restore(cls, data: bytes, callables: Mapping[str, Callable[..., Any]] | None = None) -> Self:
        """A Monitor that goes on where the snapshot was taken.

        Scoring functions are never stored: `callables` gives them by the query's name, or by their own name.
        """
        return cls.holding(load(data, callables or {}))

    @classmethod
    def holding(cls, state: State) -> Self:
        """A Monitor of this state."""
        monitor = cls.__new__(cls)
        monitor.state = state
        return monitor

    def part_with(self, groups: Ints, when: Ints) -> Any:
        """The whole answers of these groups of count windows leave; `when`: the moment, for each group there is."""
        standing = [(home, name) for home in self.state.standing() for name in home.queries]
        pieces = [home.farewell(name, self.state.unit, self.state.clock, groups, when) for home, name in standing]
        return self._changes(pieces, [home for home, _ in standing])

    def check(self) -> None:
        """Assert every invariant of the engines (tests call it)."""
        for home in self.state.standing():
            home.check()

    def __repr__(self) -> str:
        return f"Monitor({self.queries!r})"

    # --- columns

    def _told_types(self) -> dict[str, Any]:
        options = self.state.options
        types = {name: self.state.types.get(name, pa.null()) for name in options.kept}
        for home in self.state.standing():
            types |= {name: self.state.types.get(name, pa.null()) for name in home.groups.names}
        types["id"] = pa.int64() if options.id is None else self.state.types.get(options.id, pa.null())
        types["time"] = pa.null() if options.time is None else self.state.types.get(options.time, pa.null())
        return types

    def _change_types(self) -> dict[str, Any]:
        per = [name for home in self.state.standing() for name in home.groups.names]
        names = change_names(per, self.state.options.kept, self.state.options.time is not None)
        return column_types(names, self._told_types())

    def _changes(self, pieces: list[dict[str, Any]], standing: Sequence[Standing]) -> Any:
        if self.state.roll is None or self.state.roll.names != list(self.state.homes):
            self.state.roll = Roll(list(self.state.homes))
        return change_table(pieces, self.state.roll, [list(home.queries) for home in standing], self._change_types())


def _alike(homes: Mapping[str, Standing], key: Callable[[Standing], Any], least: int) -> list[list[str]]:
    """The names of homes with equal keys (None: of no others) and numbers, where there are at least so many."""
    found: dict[Any, list[str]] = {}
    for name, home in homes.items():
        if (known := key(home)) is not None:
            found.setdefault((known, home.groups.names, home.counts.tobytes()), []).append(name)
    return [names for names in found.values() if len(names) >= least]
