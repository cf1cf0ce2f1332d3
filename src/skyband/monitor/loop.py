"""The loop: batch -> validated rows -> arrivals -> engines -> changes. It belongs to one thread.

A `Monitor` is its public face; Spark runs it over the state of a shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter, Columns
from skyband.engines.specs import spec_of
from skyband.engines.topk.window_adapter import remember_reported
from skyband.errors import BatchError, QueryError, StateError
from skyband.monitor.dormancy import Dormancy
from skyband.monitor.examination import Examined, any_of, examine
from skyband.monitor.forget import Forget
from skyband.monitor.queries import StandingQueries
from skyband.monitor.sources import names_of, owner_of, seen_types
from skyband.monitor.state import State
from skyband.query.kinds import Query
from skyband.query.options import Options, named
from skyband.tables.changes import answer_table
from skyband.tables.columns import ARROW_ERRORS, plain
from skyband.tables.input import Batch, announce, instant, moment, to_table
from skyband.tables.push import BEGINNING, Push
from skyband.tables.scores import warn_of_rejected

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_NO_CLOCK = 'push(to=...) moves the clock, but no time column is named. Use Monitor(..., time="...").'


class Loop:
    """Batches in, changes out, over one `State`."""

    def __init__(self, state: State, *, settles: bool = False) -> None:
        self.state = state
        self.queries = StandingQueries(state)
        self.dormancy = Dormancy(state) if settles else None  # groups without objects are put to rest
        self.forget = None if state.options.forget is None else Forget(self)
        self.warned: set[str] = set()  # reasons of rejections

    @classmethod
    def of(
        cls, queries: Query | Iterable[Query] | Mapping[str, Query], *, settles: bool = False, **options: Any
    ) -> Loop:
        """A new loop: the queries and options of a Monitor."""
        loop = cls(State(Options(**options)), settles=settles)
        if loop.state.options.inner:
            raise QueryError(f"id={options['id']!r} is a name that skyband needs itself. Rename the column.")
        loop.queries.start(named(queries))
        return loop

    # --- a push

    def push(self, given: Any, to: Any = None, more: bool = False) -> pa.Table:
        """Take a batch of rows; time then moves on to `to`; with `more` the batch goes on with the next push."""
        batch, to = Batch(to_table(given), inside=self.dormancy is None), moment(to)  # on Spark some are our own
        return self.push_whole(batch, to, more) if self.forget is None else self.forget.push(batch, to, more)

    def push_whole(self, batch: Batch, to: Any, more: bool) -> pa.Table:
        """Take a batch at once, whether or not groups return in it."""
        if not batch.table.num_columns and not batch.rows:
            return self._reach(to, more)
        self.queries.prepare([batch])
        number = self.state.commit.number
        examined = examine(self.state, batch)
        if number != self.state.commit.number:
            raise StateError(
                "this Monitor was changed while it examined a batch, by a scoring function or signal handler that "
                "called it. Nothing of the batch was taken; a scoring function may read answers, no more."
            )
        self._check_over(examined)
        clock = self._clock(examined.types)
        goal = clock if to is None else max(clock, self._instant(to, examined.types))
        with self.state.new_groups():
            push = self._push(batch, examined, clock, goal, more)
            examined.codes = self._codes(push, examined, clock)
            if batch.rows and any(adapter.revalidates for adapter in examined.standing):
                examined = self._revalidate(batch, examined, clock, goal, more)
                push = self._push(batch, examined, clock, goal, more)
            if self.state.options.invalid == "raise":
                examined.raise_invalid("row {}".format)
            if self.state.source is None:
                warn_of_rejected(examined.validated, examined.accepted, self.warned)
            with self.state.commit:
                self.state.types = examined.types
                self.state.settle(batch.names)
                self._count_rejected(examined)
                if not examined.accepted.any():
                    return self._move(goal, more)
                return self._commit(push, examined)

    def examine_whole(self, batch: Batch) -> None:
        """Refuse a batch that cannot be taken; nothing of it is."""
        self.queries.prepare([batch])
        self._check_over(examine(self.state, batch))

    def _check_over(self, examined: Examined) -> None:
        """Refuse what queries over answers cannot read, before anything is changed."""
        if not self.state.over:
            return
        before, self.state.types = self.state.types, examined.types
        try:
            for adapter, one in zip(examined.standing, examined.validated, strict=True):
                for source in self.state.asked_of(adapter):
                    self.state.over[source].check(seen_types(self.state, source, adapter, one))
        finally:
            self.state.types = before

    def _commit(self, push: Push, examined: Examined) -> pa.Table:
        """Let the engines take a validated batch."""
        self.state.mark_sources()
        starting = any(adapter.engine is None for adapter in examined.standing)
        for adapter in examined.standing:
            adapter.start(self.state.unit)
        if starting:
            remember_reported(examined.standing)
        pieces = self._take(push, examined)
        self.state.took(push)
        changes = self.state.changes(pieces, examined.standing)
        self._settle(push.batch.rows, push.more)
        return changes

    def _settle(self, rows: int | None, more: bool = False) -> None:
        """Put groups to rest, unless a batch goes on."""
        if self.dormancy is not None and not more:
            self.dormancy.settle(rows)

    def _push(self, batch: Batch, examined: Examined, clock: int, goal: int, more: bool) -> Push:
        clocks = None
        if examined.times is not None and batch.rows:
            known, accepted = examined.times, examined.accepted
            known = known if accepted.all() else np.where(accepted, known, BEGINNING)
            in_order = (known[1:] >= known[:-1]).all()  # four times as fast as to accumulate
            clocks = known if in_order else np.maximum.accumulate(known)
            if clocks[0] < clock:
                clocks = np.maximum(clocks, clock)
            goal = max(goal, int(clocks[-1]))
        serial, reported = self.state.serial, examined.reported
        own = examined.deletes, examined.inputs, self.state.options.inner
        return Push(batch, serial, reported, examined.times, clocks, goal, more, *own)

    def _revalidate(self, batch: Batch, examined: Examined, clock: int, goal: int, more: bool) -> Examined:
        """Reject rows because of earlier ones.

        A row that all reject moves no clock, and in time windows the clock decides which earlier rows are still valid:
        validate until nothing changes. That ends, since the first wrong row is right after each round.
        """
        codes, alone = examined.codes, examined.validated
        by_clock = any(adapter.revalidates and adapter.timed for adapter in examined.standing)
        unit = examined.unit
        while True:
            push = self._push(batch, examined, clock, goal, more)
            validated = [
                adapter.revalidate(push, one, codes[id(adapter.groups)], unit) if adapter.revalidates else one
                for adapter, one in zip(examined.standing, alone, strict=True)
            ]
            accepted = any_of([one.accepted for one in validated], batch.rows)
            settled = bool((accepted == examined.accepted).all())
            examined = replace(examined, validated=validated, accepted=accepted)
            if settled or not by_clock:
                return examined

    def _count_rejected(self, examined: Examined) -> None:
        """Per query, and once per row and reason for the whole."""
        rejected: dict[str, Bools] = {}
        for adapter, one in zip(examined.standing, examined.validated, strict=True):
            adapter.count_rejected(one)
            adapter.learn(one)
            for reason, rows in one.scored.rejected.items():
                rejected[reason] = rejected[reason] | rows if reason in rejected else rows
        self.state.count({reason: int(rows.sum()) for reason, rows in rejected.items()})

    def _codes(self, push: Push, examined: Examined, clock: int) -> dict[int, Ints]:
        """The groups of the rows that may arrive, by their `per`: those that are too late for all make no group."""
        codes: dict[int, Ints] = {}
        both = list(zip(examined.standing, examined.validated, strict=True))
        for groups in {id(adapter.groups): adapter.groups for adapter in examined.standing}.values():
            arriving = [one.accepted for adapter, one in both if adapter.groups is groups]
            if groups.names and push.times is not None and push.clocks is not None and push.batch.rows:
                final = not any(adapter.revalidates for adapter in examined.standing)  # else clocks may be earlier ones
                ages, unit = (push.clocks if final else clock) - push.times, examined.unit
                mine = [(adapter, one.accepted) for adapter, one in both if adapter.groups is groups]
                arriving = [adapter.timely(rows, ages, unit) for adapter, rows in mine] if ages.max() > 0 else arriving
            wanted = any_of(arriving, push.batch.rows)
            codes[id(groups)] = groups.codes_where(wanted, [examined.per[name] for name in groups.inputs])
        return codes

    def _take(self, push: Push, examined: Examined) -> list[Columns]:
        codes = examined.codes
        pieces, arrived, late = [], [], []
        for adapter, one in zip(examined.standing, examined.validated, strict=True):
            piece, arriving, too_late = adapter.take(push, one, codes[id(adapter.groups)])
            pieces.append(piece)
            arrived.append(arriving)
            late.append(too_late)
            if self.state.subscriptions:
                self.queries.subscribed.count(adapter, arriving, too_late)
            self.state.count(adapter.new_rejections())
        self.queries.subscribed.counted()
        self.state.counters["arrivals"] += int(np.count_nonzero(any_of(arrived, push.batch.rows)))
        self.state.counters["late"] += int(np.count_nonzero(any_of(late, push.batch.rows)))
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
        to = moment(to)
        if self.state.options.time is None:
            raise BatchError('advance moves the clock, but no time column is named. Use Monitor(..., time="...").')
        type_ = self.state.types.get(self.state.options.time)
        if type_ is None:
            if not announce(to, self.state.ahead):
                raise BatchError(f"advance({to!r}) would move time backwards from {self.state.ahead!r}.")
            self.state.ahead = to
            return self.state.changes([], [])
        clock = instant(to, type_)
        if clock < self._clock(self.state.types):
            raise BatchError(f"advance({to!r}) would move time backwards. The clock never goes back; late rows may.")
        with self.state.commit:
            changes = self._move(clock)
            return changes if self.forget is None else self.forget.joined([changes, *self.forget.silent()])

    def _reach(self, to: Any, more: bool) -> pa.Table:
        """As `advance`, but an instant that has passed is no error, and an Arrow scalar brings the type of time."""
        state = self.state
        if to is None:
            return self._move(self._clock(state.types), more)
        if state.options.time is None:
            raise BatchError(_NO_CLOCK)
        if state.options.time not in state.types:
            later = announce(to, None if isinstance(to, pa.Scalar) else state.ahead)
            if not isinstance(to, pa.Scalar):
                state.ahead = to if later else state.ahead
                return state.changes([], [])
            state.types[state.options.time] = to.type
        return self._move(max(state.clock, self._instant(to, state.types)), more)

    def _move(self, clock: int, more: bool = False) -> pa.Table:
        """Expire up to this clock."""
        state = self.state
        standing = [adapter for adapter in state.taking() if adapter.engine is not None]
        none = None if state.options.time is None else np.empty(0, np.int64)
        nothing = {role: pa.nulls(0, state.types.get(name, pa.null())) for role, name in state.options.roles.items()}
        empty = Push(Batch(pa.table({})), state.serial, nothing, none, none, clock, more)
        state.mark_sources()
        with state.commit:
            state.clock = clock
            if state.options.time in state.types:
                state.ahead = None
            changes = state.changes([adapter.expire(empty) for adapter in standing], standing)
            self._settle(None, more)
            return changes

    def _clock(self, types: dict[str, Any]) -> int:
        if self.state.ahead is None:
            return self.state.clock
        return max(self.state.clock, self._instant(self.state.ahead, types))

    def _instant(self, to: Any, types: dict[str, Any]) -> int:
        if self.state.options.time is None:
            raise BatchError(_NO_CLOCK)
        type_ = types.get(self.state.options.time)
        return BEGINNING if type_ is None else instant(to, type_)

    # --- deletions

    def _deletable(self, standing: list[Adapter]) -> list[Any]:
        return [adapter for adapter in standing if adapter.deletable and adapter.ids is not None]

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
        given = ids if isinstance(ids, pa.Array) else list(ids)
        column, known = self._id_column(given), np.zeros(len(given), np.bool_)
        nothing = Push(Batch(pa.table({})), self.state.serial, {}, None, None, self.state.clock)
        pieces = []
        self.state.mark_sources()
        with self.state.commit:
            for adapter in adapters:
                piece, found = adapter.delete(column, nothing)
                pieces.append(piece)
                known |= found
            if not known.all():
                self.state.count({"unknown id": int((~known).sum())})
            changes = self.state.changes(pieces, adapters)
            self._settle(len(given))
            return changes

    def _id_column(self, ids: Any) -> Any:
        """Ids as a column of the type that the stream's have."""
        type_ = self.state.types.get(str(self.state.options.id), pa.null())
        if pa.types.is_null(type_):
            return pa.nulls(len(ids))
        try:
            return plain(ids if getattr(ids, "type", None) == type_ else pa.array(list(ids), type_))
        except (*ARROW_ERRORS, TypeError, ValueError, OverflowError) as error:
            said = f"delete: the ids are of type {type_}, and these are not ({error}). Nothing was deleted."
            raise BatchError(said) from None

    # --- answers

    def answer(
        self, name: str | None, keys: list[Any] | None, k: int | None, window: Any, subscriber: list[Any] | None = None
    ) -> pa.Table:
        """The current answer, best first; of these keys and this subscriber (None: all), of a smaller k or window."""
        standing = names_of(self.state)
        if name is None and len(standing) != 1:
            raise QueryError(f"name the query: {', '.join(standing) or 'none is standing'}.")
        name = standing[0] if name is None else name
        if (owner := owner_of(self.state, name)) is not self.state:
            _refuse(subscriber, name)
            return Loop(owner).answer(name, keys, k, window)
        adapter = self.state.adapter(name)
        groups = None if keys is None else self.groups_of(name, keys)
        if name in self.state.subscriptions:
            return self.queries.subscribed.answer(name, subscriber, groups, k, window)
        _refuse(subscriber, name)
        query = adapter.queries[name].smaller(k, window)
        if adapter.algorithm in ("PA", "SKETCH") and query.window != adapter.queries[name].window:
            exact = "TALLY" if adapter.algorithm == "SKETCH" else "BLOCK"
            raise QueryError(
                f"{name}: {adapter.algorithm} keeps only what its own window {adapter.queries[name].window!r} needs, "
                f"so it cannot answer for {query.window!r}. Ask without window=, or use an exact algorithm: {exact}."
            )
        return self._answer(name, query, groups)

    def groups_of(self, name: str, keys: list[Any]) -> Ints:
        """The groups of a query with these values of its `per` columns (tuples, if there are several)."""
        groups, values = self.state.adapter(name).groups, []
        for key in keys:
            values.append(key if isinstance(key, tuple) else (key,))
            if len(values[-1]) != len(groups.names):
                has = f"has {len(groups.names)} `per` columns, but key={key!r} gives {len(values[-1])} values"
                raise QueryError(f"{name} {has}. Give {', '.join(groups.names) or 'no key'}.")
        try:
            return groups.find(values)
        except TypeError as error:
            raise QueryError(f"{name}: {error}. Several keys are given as keys=[...].") from None

    def answers_among(self, name: str, groups: pa.Table, but: Ints) -> pa.Table:
        """The current answers of the groups in a table of known values of the `per` columns, except these codes."""
        if (owner := owner_of(self.state, name)) is not self.state:
            return Loop(owner).answers_among(name, groups, but)
        adapter = self.state.adapter(name)
        columns = [plain(groups.column(column)) for column in adapter.groups.names]
        chosen = np.setdiff1d(adapter.groups.codes(columns, groups.num_rows), but)
        if name in self.state.subscriptions:
            return self.queries.subscribed.answers_among(name, groups, chosen)
        return self._answer(name, adapter.queries[name], chosen)

    def _answer(self, name: str, query: Query, groups: Ints | None) -> pa.Table:
        adapter = self.state.adapter(name)
        types = self.state.answer_types(query, adapter.shown_keys) | self.state.own_id_type(name)
        if adapter.engine is None:
            return answer_table({}, types)
        spec = spec_of(query, self.state.unit)
        with self.state.reading([adapter]):
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


def _refuse(subscriber: Any, name: str) -> None:
    if subscriber is not None:
        raise QueryError(f"{name} is a plain query: it has no subscriptions. Ask without subscriber=.")
