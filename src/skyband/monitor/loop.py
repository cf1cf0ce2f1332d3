"""The loop: batch -> validated rows -> arrivals -> engines -> changes. It belongs to one thread.

A `Monitor` is its public face; Spark runs it over the state of a shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter, Columns, spec_of
from skyband.engines.topk.window_adapter import WindowAdapter, remember_reported
from skyband.errors import BatchError, QueryError
from skyband.monitor.queries import StandingQueries
from skyband.monitor.state import Examined, State
from skyband.query.kinds import Query
from skyband.query.options import Options, named
from skyband.tables.changes import answer_table
from skyband.tables.columns import plain
from skyband.tables.input import Batch, announce, conform, instant, is_time, time_unit, times, to_table
from skyband.tables.push import BEGINNING, Push, what_rows_do
from skyband.tables.scores import Scored, Validated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Loop:
    """Batches in, changes out, over one `State`."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.queries = StandingQueries(state)

    @classmethod
    def of(cls, queries: Query | Iterable[Query] | Mapping[str, Query], **options: Any) -> Loop:
        """A new loop: the queries and options of a Monitor."""
        loop = cls(State(Options(**options)))
        loop.queries.start(named(queries))
        return loop

    # --- a push

    def push(self, given: Any, to: Any = None, more: bool = False) -> pa.Table:
        """Take a batch of rows; time then moves on to `to`; with `more` the batch goes on with the next push."""
        batch = Batch(to_table(given))
        if not batch.table.num_columns and not batch.rows:
            return self._reach(to, more)
        self.queries.gather()
        self.queries.split(lambda adapter: adapter.must_split(batch))
        examined = self.examine(batch)
        clock = self._clock(examined.types)
        goal = clock if to is None else max(clock, self._instant(to, examined.types))
        if batch.rows and any(adapter.revalidates for adapter in examined.standing):
            examined = self._revalidate(batch, examined, clock, goal, more)
        self.raise_invalid(examined.validated, "row {}".format)

        self.state.types = examined.types  # from here on nothing fails
        self._count_rejected(examined)
        if not examined.accepted.any():
            return self._move(goal, more)
        push = self._push(batch, examined, clock, goal, more)
        starting = any(adapter.engine is None for adapter in examined.standing)
        for adapter in examined.standing:
            adapter.start(self.state.unit)
        if starting:
            remember_reported(examined.standing)
        pieces = self._take(push, examined)
        self.state.clock, self.state.ahead = push.clock, None
        self.state.serial += batch.rows
        return self.state.changes(pieces, examined.standing)

    def examine(self, batch: Batch) -> Examined:
        """A batch as the standing queries see it: columns, times, scores, which rows are accepted. Changes nothing."""
        options, standing, types = self.state.options, self.state.standing(), dict(self.state.types)

        def read(name: str) -> Any:
            column = conform(name, batch.array(name), types.get(name))
            types[name] = column.type
            return column

        reported = {role: read(name) for role, name in options.roles.items()}
        instants: Ints | None = None
        bad_times: dict[str, Bools | None] = {}
        if options.time is not None:
            type_ = reported["time"].type
            if pa.types.is_null(type_):  # nothing but nulls, and no type known yet
                del types[options.time]
                bad_times = {"time is null": np.ones(batch.rows, np.bool_)}
            elif not is_time(type_):
                raise BatchError(
                    f"the time column {options.time!r} holds {type_}. Time is a timestamp, a date or an integer."
                )
            else:
                unit = time_unit(type_)
                lengths = [spec.length for adapter in standing if adapter.timed for spec in adapter.specs(unit)]
                instants, null, far = times(reported["time"], max(lengths, default=0))
                bad_times = {"time is null": null, "time is out of range": far}
        cache: dict[Any, Scored] = {}
        validated = [adapter.validate(batch, cache, bad_times) for adapter in standing]
        deletes = None
        if options.op is not None:
            deletes, other = what_rows_do(read(options.op))
            validated = [
                adapter.separate_deletions(one, deletes, other, bad_times)
                for adapter, one in zip(standing, validated, strict=True)
            ]
        per = {name: read(name) for adapter in standing for name in adapter.groups.names}
        inputs = {name: read(name) for adapter in standing for name in adapter.reads(batch)}
        accepted = _any(validated, batch.rows)
        return Examined(standing, validated, accepted, types, reported, per, instants, deletes, inputs)

    def _push(self, batch: Batch, examined: Examined, clock: int, goal: int, more: bool) -> Push:
        clocks = None
        if examined.times is not None and batch.rows:
            known = np.where(examined.accepted, examined.times, BEGINNING)
            clocks = np.maximum(np.maximum.accumulate(known), clock)
            goal = max(goal, int(clocks[-1]))
        serial, reported = self.state.serial, examined.reported
        return Push(batch, serial, reported, examined.times, clocks, goal, more, examined.deletes, examined.inputs)

    def _revalidate(self, batch: Batch, examined: Examined, clock: int, goal: int, more: bool) -> Examined:
        """Reject rows because of earlier ones.

        A row that all reject moves no clock, and the clock decides which earlier rows are still valid: validate until
        nothing changes. That ends, since the first wrong row is right after each round.
        """
        codes, alone = self._codes(batch, examined), examined.validated
        unit = None if examined.times is None else time_unit(examined.reported["time"].type)
        while True:
            push = self._push(batch, examined, clock, goal, more)
            validated = [
                adapter.revalidate(push, one, codes[id(adapter.groups)], unit) if adapter.revalidates else one
                for adapter, one in zip(examined.standing, alone, strict=True)
            ]
            accepted = _any(validated, batch.rows)
            settled = bool((accepted == examined.accepted).all())
            examined = replace(examined, validated=validated, accepted=accepted)
            if settled:
                return examined

    def raise_invalid(self, validated: list[Validated], name: Callable[[int], str]) -> None:
        """With invalid="raise": raise for the first bad row, under the name that it is given here."""
        if self.state.options.invalid != "raise":
            return
        bad = [(int(rows.argmax()), reason) for one in validated for reason, rows in one.scored.rejected.items()]
        if bad:
            row, reason = min(bad)
            raise BatchError(f'{name(row)}: {reason}. Nothing was pushed; fix the row, or use invalid="reject".')

    def _count_rejected(self, examined: Examined) -> None:
        """Per query, and once per row and reason for the whole."""
        rejected: dict[str, Bools] = {}
        for adapter, one in zip(examined.standing, examined.validated, strict=True):
            adapter.count_rejected(one)
            for reason, rows in one.scored.rejected.items():
                rejected[reason] = rejected[reason] | rows if reason in rejected else rows
        self.state.count({reason: int(rows.sum()) for reason, rows in rejected.items()})

    def _codes(self, batch: Batch, examined: Examined) -> dict[int, Ints]:
        """The groups of the accepted rows, by their `per`."""
        codes: dict[int, Ints] = {}
        both = list(zip(examined.standing, examined.validated, strict=True))
        for groups in {id(adapter.groups): adapter.groups for adapter in examined.standing}.values():
            wanted = _any([one for adapter, one in both if adapter.groups is groups], batch.rows)
            codes[id(groups)] = groups.codes_where(wanted, [examined.per[name] for name in groups.names])
        return codes

    def _take(self, push: Push, examined: Examined) -> list[Columns]:
        codes = self._codes(push.batch, examined)
        pieces, arrived, late = [], np.zeros(push.batch.rows, np.bool_), np.zeros(push.batch.rows, np.bool_)
        for adapter, one in zip(examined.standing, examined.validated, strict=True):
            piece, arriving, too_late = adapter.take(push, one, codes[id(adapter.groups)])
            pieces.append(piece)
            arrived |= arriving
            late |= too_late
            self.state.count(adapter.new_rejections())
        self.state.counters["arrivals"] += int(arrived.sum())
        self.state.counters["late"] += int(late.sum())
        if push.deletes is not None:
            self._count_unknown_ids(examined.standing)
        return pieces

    def _count_unknown_ids(self, standing: list[Adapter]) -> None:
        """Count the rows that were to delete an id which no query has."""
        unknown = [set(adapter.machine.unknown) for adapter in self._deletable(standing)]
        if unknown and (count := len(set.intersection(*unknown))):
            self.state.count({"unknown id": count})

    # --- time

    def advance(self, to: Any) -> pa.Table:
        """Move time on with no arrival."""
        if self.state.options.time is None:
            raise BatchError('advance moves the clock, but no time column is named. Use Monitor(..., time="...").')
        type_ = self.state.types.get(self.state.options.time)
        if type_ is None:
            announce(to, self.state.ahead)
            self.state.ahead = to
            return self.state.changes([], [])
        clock = instant(to, type_)
        if clock < self._clock(self.state.types):
            raise BatchError(f"advance({to!r}) would move time backwards. The clock never goes back; late rows may.")
        return self._move(clock)

    def _reach(self, to: Any, more: bool) -> pa.Table:
        """As `advance`, but an instant that has passed is no error, and an Arrow scalar brings the type of time."""
        state = self.state
        if to is None:
            return self._move(self._clock(state.types), more)
        if isinstance(to, pa.Scalar) and state.options.time is not None:
            state.types.setdefault(state.options.time, to.type)
        if state.options.time not in state.types:
            state.ahead = to if state.ahead is None else max(to, state.ahead)
            return state.changes([], [])
        return self._move(max(state.clock, self._instant(to, state.types)), more)

    def _move(self, clock: int, more: bool = False) -> pa.Table:
        """Expire up to this clock."""
        state = self.state
        state.clock = clock
        if state.options.time in state.types:
            state.ahead = None
        standing = [adapter for adapter in state.standing() if adapter.engine is not None]
        none = None if state.options.time is None else np.empty(0, np.int64)
        nothing = {role: pa.nulls(0, state.types.get(name, pa.null())) for role, name in state.options.roles.items()}
        empty = Push(Batch(pa.table({})), state.serial, nothing, none, none, clock, more)
        return state.changes([adapter.expire(empty) for adapter in standing], standing)

    def _clock(self, types: dict[str, Any]) -> int:
        if self.state.ahead is None:
            return self.state.clock
        return max(self.state.clock, self._instant(self.state.ahead, types))

    def _instant(self, to: Any, types: dict[str, Any]) -> int:
        if self.state.options.time is None:
            raise BatchError('push(to=...) moves the clock, but no time column is named. Use Monitor(..., time="...").')
        type_ = types.get(self.state.options.time)
        return BEGINNING if type_ is None else instant(to, type_)

    # --- deletions

    def _deletable(self, standing: list[Adapter]) -> list[WindowAdapter]:
        return [adapter for adapter in standing if isinstance(adapter, WindowAdapter) and adapter.ids is not None]

    def delete(self, ids: Iterable[Any]) -> pa.Table:
        """Delete objects by id, one step each; unknown ids are counted."""
        adapters = self._deletable(self.state.standing())
        if not adapters:
            raise QueryError(
                "delete is for queries over UntilDeleted(), and none is standing: "
                "objects of Last(...) leave by themselves."
            )
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            raise BatchError(f"delete takes a list of ids; got {ids!r}. Nothing was deleted; did you mean [{ids!r}]?")
        given = list(ids)
        column, known = self._id_column(given), np.zeros(len(given), np.bool_)
        nothing = Push(Batch(pa.table({})), self.state.serial, {}, None, None, self.state.clock)
        pieces = []
        for adapter in adapters:
            piece, found = adapter.delete(column, nothing)
            pieces.append(piece)
            known |= found
        if not known.all():
            self.state.count({"unknown id": int((~known).sum())})
        return self.state.changes(pieces, adapters)

    def _id_column(self, ids: list[Any]) -> Any:
        """Ids as a column of the type that the stream's have."""
        type_ = self.state.types.get(str(self.state.options.id), pa.null())
        if pa.types.is_null(type_):
            return pa.nulls(len(ids))
        try:
            return plain(pa.array(ids, type_))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
            raise BatchError(
                f"delete: the ids are of type {type_}, and these are not ({error}). Nothing was deleted."
            ) from None

    # --- answers

    def answer(self, name: str | None, key: Any, k: int | None, window: Any) -> pa.Table:
        """The current answer, best first; of one group with `key`, of a smaller k or window."""
        if name is None:
            if len(self.state.adapters) != 1:
                raise QueryError(f"name the query: {', '.join(self.state.adapters) or 'none is standing'}.")
            name = next(iter(self.state.adapters))
        adapter = self.state.adapter(name)
        query = adapter.queries[name].smaller(k, window)
        if adapter.algorithm == "PA" and query.window != adapter.queries[name].window:
            raise QueryError(
                f"{name}: PA keeps only what its own window {adapter.queries[name].window!r} needs, so it cannot "
                f"answer for {query.window!r}. Ask without window=, or use an exact algorithm, such as BLOCK."
            )
        groups: Ints | None = None
        if key is not None:
            values, per = key if isinstance(key, tuple) else (key,), query.per_columns
            if len(values) != len(per):
                raise QueryError(
                    f"{name} has {len(per)} `per` columns {list(per)}, but key={key!r} gives {len(values)} values."
                )
            found = adapter.groups.find(values)
            groups = np.empty(0, np.int64) if found is None else np.array([found])
        return self._answer(name, query, groups)

    def answers_among(self, name: str, groups: pa.Table, but: Ints) -> pa.Table:
        """The current answers of the groups in a table of known values of the `per` columns, except these codes."""
        adapter = self.state.adapter(name)
        columns = [plain(groups.column(column)) for column in adapter.groups.names]
        chosen = np.setdiff1d(adapter.groups.codes(columns, groups.num_rows), but)
        return self._answer(name, adapter.queries[name], chosen)

    def _answer(self, name: str, query: Query, groups: Ints | None) -> pa.Table:
        adapter, types = self.state.adapter(name), self.state.answer_types(query)
        if adapter.engine is None:
            return answer_table({}, types)
        spec = spec_of(query, self.state.unit)
        return answer_table(adapter.answer(name, spec, self.state.clock, groups), types)

    def retract_groups(self, groups: Ints, times: Ints) -> pa.Table:
        """The changes by which the whole answers of these groups of count windows leave, each at its group's time."""
        standing = [(adapter, name) for adapter in self.state.standing() for name in adapter.queries]
        pieces = [adapter.retract(name, self.state.unit, self.state.clock, groups, times) for adapter, name in standing]
        return self.state.changes(pieces, [adapter for adapter, _ in standing])

    def check(self) -> None:
        """Assert every invariant of the engines (tests call it)."""
        for adapter in self.state.standing():
            adapter.check()


def _any(validated: Iterable[Validated], rows: int) -> Bools:
    """The rows that at least one set of queries accepts."""
    each = [one.accepted for one in validated]
    accepted = each[0] if each else np.zeros(rows, np.bool_)
    for more in each[1:]:
        accepted = accepted | more
    return accepted
