"""The loop in one process: batch -> scores -> engines -> changes. A Monitor belongs to one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter, spec_of
from skyband.engines.topk.window_adapter import WindowAdapter, remember_reported
from skyband.errors import BatchError, QueryError
from skyband.monitor.queries import Roster
from skyband.monitor.snapshot import load, save
from skyband.monitor.state import Seen, State
from skyband.query.html import monitor_html
from skyband.query.kinds import Query
from skyband.query.options import Options, named
from skyband.tables.changes import answer_names, answer_table, column_types
from skyband.tables.columns import plain
from skyband.tables.input import Batch, announce, conform, instant, is_time, time_unit, times, to_table
from skyband.tables.push import BEGINNING, Push, what_rows_do
from skyband.tables.scores import Scored, Validated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Monitor(Roster):
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
        fresh: dict[Any, Adapter] = {}
        for name, query in named(queries).items():
            self._add(name, query, fresh)

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
        self._split(lambda adapter: adapter.is_wild(given))
        seen = self.examine(given)
        clock = self._clock(seen.types)
        goal = clock if to is None else max(clock, self._moment(to, seen.types))
        if given.rows and any(adapter.revalidates for adapter in seen.standing):
            seen = self._judge_again(given, seen, clock, goal, more)
        self.raise_invalid(seen.validated, "row {}".format)

        self.state.types = seen.types  # from here on nothing fails
        self._count_rejected(seen)
        if not seen.accepted.any():
            return self._move(goal, more)
        push = self._push(given, seen, clock, goal, more)
        with self._first_time(seen.standing):
            starting = any(adapter.engine is None for adapter in seen.standing)
            for adapter in seen.standing:
                adapter.start(self.state.unit)
            if starting:
                remember_reported(seen.standing)
            pieces = self._take(push, seen)
        self.state.clock, self.state.ahead = push.clock, None
        self.state.serial += given.rows
        return self._changes(pieces, seen.standing)

    def _push(self, given: Batch, seen: Seen, clock: int, goal: int, more: bool = False) -> Push:
        clocks = None
        if seen.moments is not None and given.rows:
            clocks = np.maximum(np.maximum.accumulate(np.where(seen.accepted, seen.moments, BEGINNING)), clock)
            goal = max(goal, int(clocks[-1]))
        serial = self.state.serial
        return Push(given, serial, seen.told, seen.moments, clocks, goal, more, seen.deletes, seen.inputs)

    def _judge_again(self, given: Batch, seen: Seen, clock: int, goal: int, more: bool) -> Seen:
        """Rows that are rejected because of earlier ones.

        A row that all reject moves no clock, and the clock tells which earlier rows are still valid: judge until
        nothing changes, which is sooner with each round, as the first wrong row is right after it.
        """
        codes, alone = self._codes(given, seen), seen.validated
        unit = None if seen.moments is None else time_unit(seen.told["time"].type)
        while True:
            push = self._push(given, seen, clock, goal, more)
            validated = [
                adapter.revalidate(push, one, codes[id(adapter.groups)], unit) if adapter.revalidates else one
                for adapter, one in zip(seen.standing, alone, strict=True)
            ]
            accepted = _any(validated, given.rows)
            settled = bool((accepted == seen.accepted).all())
            seen = replace(seen, validated=validated, accepted=accepted)
            if settled:
                return seen

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
        standing = [adapter for adapter in self.state.standing() if adapter.engine is not None]
        none = None if self.state.options.time is None else np.empty(0, np.int64)
        nothing = {
            role: pa.nulls(0, self.state.types.get(name, pa.null())) for role, name in self.state.options.roles.items()
        }
        empty = Push(Batch(pa.table({})), self.state.serial, nothing, none, none, clock, more)
        return self._changes([adapter.expire(empty) for adapter in standing], standing)

    def delete(self, ids: Iterable[Any]) -> Any:
        """Delete objects of UntilDeleted queries by id, one step each; unknown ids are counted."""
        adapters = [
            adapter
            for adapter in self.state.standing()
            if isinstance(adapter, WindowAdapter) and adapter.ids is not None
        ]
        if not adapters:
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
        for adapter in adapters:
            piece, found = adapter.delete(column, nothing)
            pieces.append(piece)
            known |= found
        if not known.all():
            self._count({"unknown id": int((~known).sum())})
        return self._changes(pieces, adapters)

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
                lengths = [asked.length for adapter in standing if adapter.timed for asked in adapter.asked(unit)]
                moments, null, far = times(told["time"], max(lengths, default=0))
                untimely = {"time is null": null, "time is out of range": far}
        cache: dict[Any, Scored] = {}
        validated = [adapter.validate(given, cache, untimely) for adapter in standing]
        deletes = None
        if self.state.options.op is not None:
            deletes, other = what_rows_do(read(self.state.options.op))
            validated = [
                adapter.set_apart(one, deletes, other, untimely)
                for adapter, one in zip(standing, validated, strict=True)
            ]
        per = {name: read(name) for adapter in standing for name in adapter.groups.names}
        inputs = {name: read(name) for adapter in standing for name in adapter.reads(given)}
        return Seen(standing, validated, _any(validated, given.rows), types, told, per, moments, deletes, inputs)

    def raise_invalid(self, validated: list[Validated], name: Callable[[int], str]) -> None:
        """With invalid="raise": complain about the first bad row, under the name that it is given here."""
        if self.state.options.invalid != "raise":
            return
        bad = [(int(rows.argmax()), reason) for one in validated for reason, rows in one.scored.rejected.items()]
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

    def _first_time(self, standing: list[Adapter]) -> AbstractContextManager[None]:
        """Engines start with their first arrivals, which say what a unit of time is; kernels may be compiled then."""
        if all(adapter.engine is not None for adapter in standing):
            return nullcontext()
        from skyband.kernels.compile import announced

        return announced()

    def _count_rejected(self, seen: Seen) -> None:
        """Per query, and once per row and reason for the whole."""
        rejected: dict[str, Bools] = {}
        for adapter, one in zip(seen.standing, seen.validated, strict=True):
            adapter.count_rejected(one)
            for reason, rows in one.scored.rejected.items():
                rejected[reason] = rejected[reason] | rows if reason in rejected else rows
        self._count({reason: int(rows.sum()) for reason, rows in rejected.items()})

    def _codes(self, given: Batch, seen: Seen) -> dict[int, Ints]:
        """The groups of the rows that are accepted, by their `per`."""
        codes: dict[int, Ints] = {}
        for groups in {id(adapter.groups): adapter.groups for adapter in seen.standing}.values():
            mine = [one for adapter, one in zip(seen.standing, seen.validated, strict=True) if adapter.groups is groups]
            wanted = _any(mine, given.rows)
            codes[id(groups)] = groups.codes_where(wanted, [seen.per[name] for name in groups.names])
        return codes

    def _take(self, push: Push, seen: Seen) -> list[dict[str, Any]]:
        codes = self._codes(push.batch, seen)
        pieces, arrived, late = [], np.zeros(push.batch.rows, np.bool_), np.zeros(push.batch.rows, np.bool_)
        for adapter, one in zip(seen.standing, seen.validated, strict=True):
            piece, came, dropped = adapter.take(push, one, codes[id(adapter.groups)])
            pieces.append(piece)
            arrived |= came
            late |= dropped
            self._count(adapter.new_rejections())
        self.state.counters["arrivals"] += int(arrived.sum())
        self.state.counters["late"] += int(late.sum())
        if push.deletes is not None:
            self._count_unknown(seen.standing)
        return pieces

    def _count_unknown(self, standing: list[Adapter]) -> None:
        """Rows that were to delete an id which no query has."""
        unknown = [
            set(adapter.machine.unknown)
            for adapter in standing
            if isinstance(adapter, WindowAdapter) and adapter.ids is not None
        ]
        if unknown and (count := len(set.intersection(*unknown))):
            self._count({"unknown id": count})

    def _count(self, rejected: Mapping[str, int]) -> None:
        counted = self.state.counters["rejected"]
        for reason, count in rejected.items():
            counted[reason] = counted.get(reason, 0) + count

    # --- what can be asked at any time

    def answer(self, name: str | None = None, *, key: Any = None, k: int | None = None, window: Any = None) -> Any:
        """The current answer, best first; of one group with `key`, of a smaller k or window when asked."""
        if name is None:
            if len(self.state.adapters) != 1:
                raise QueryError(f"name the query: {', '.join(self.state.adapters) or 'none is standing'}.")
            name = next(iter(self.state.adapters))
        adapter = self._adapter(name)
        query = adapter.queries[name].smaller(k, window)
        if adapter.algorithm == "PA" and query.window != adapter.queries[name].window:
            raise QueryError(
                f"{name}: PA keeps only what its own window {adapter.queries[name].window!r} needs, so it cannot "
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
            found = adapter.groups.find(values)
            chosen = np.empty(0, np.int64) if found is None else np.array([found])
        return self._answer(name, query, chosen)

    def answer_among(self, name: str, groups: Any, but: Ints) -> Any:
        """The current answers of the groups in a table of known values of the `per` columns, but for those codes."""
        adapter = self._adapter(name)
        columns = [plain(groups.column(column)) for column in adapter.groups.names]
        return self._answer(
            name, adapter.queries[name], np.setdiff1d(adapter.groups.codes(columns, groups.num_rows), but)
        )

    def _answer(self, name: str, query: Query, groups: Ints | None) -> Any:
        adapter, options = self._adapter(name), self.state.options
        types = column_types(answer_names([query], options.kept, options.time is not None), self._told_types())
        if adapter.engine is None:
            return answer_table({}, types)
        asked = spec_of(query, self.state.unit)
        return answer_table(adapter.answer(name, asked, self.state.clock, groups), types)

    def stats(self) -> dict[str, Any]:
        """Counts of rows (arrivals of any query, late ones dropped by any, rejected by reason), and per query."""
        return {
            "arrivals": self.state.counters["arrivals"],
            "late": self.state.counters["late"],
            "rejected": dict(self.state.counters["rejected"]),
            "queries": {name: adapter.stats(name) for name, adapter in self.state.adapters.items()},
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

    def retract_groups(self, groups: Ints, when: Ints) -> Any:
        """The whole answers of these groups of count windows leave; `when`: the moment, for each group there is."""
        standing = [(adapter, name) for adapter in self.state.standing() for name in adapter.queries]
        pieces = [adapter.retract(name, self.state.unit, self.state.clock, groups, when) for adapter, name in standing]
        return self._changes(pieces, [adapter for adapter, _ in standing])

    def check(self) -> None:
        """Assert every invariant of the engines (tests call it)."""
        for adapter in self.state.standing():
            adapter.check()

    def __repr__(self) -> str:
        return f"Monitor({self.queries!r})"

    def _repr_html_(self) -> str:
        return monitor_html(self)


def _any(validated: Iterable[Validated], rows: int) -> Bools:
    """The rows that at least one set of queries accepts."""
    each = [one.accepted for one in validated]
    accepted = each[0] if each else np.zeros(rows, np.bool_)
    for more in each[1:]:
        accepted = accepted | more
    return accepted
