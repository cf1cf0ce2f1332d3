"""Subscriptions of a Monitor's queries with `Each`: they come and go, each as a plain query of its own.

All of a table is validated before anything changes. Those that can be slots of one engine are (monitor/slots.py), at
O(1) each, amortised; the others are plain queries of their own, and cost what these do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter, Columns
from skyband.engines.numbering import Start
from skyband.engines.registry import choose
from skyband.engines.specs import spec_of
from skyband.engines.topk.slots_adapter import SlotsAdapter
from skyband.engines.topk.subscribed_adapter import SubscribedAdapter
from skyband.engines.unsubscribed import UnsubscribedAdapter, example_of
from skyband.errors import QueryError
from skyband.monitor.from_window import begin, check_lenders, must_look_back
from skyband.monitor.slots import Prepared, prepare
from skyband.monitor.sources import ended, in_one
from skyband.monitor.state import State
from skyband.query.kinds import Query
from skyband.query.windows import Last
from skyband.tables.changes import answer_table
from skyband.tables.columns import as_arrow, plain
from skyband.tables.groups import Groups
from skyband.tables.subscription_table import Rows, ids_of
from skyband.tables.subscriptions import Subscriptions, key_of, owner_of, read, slots_key, values_of

if TYPE_CHECKING:
    from skyband.monitor.queries import StandingQueries

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class SubscribedQueries:
    """The subscriptions of all queries of a Monitor."""

    def __init__(self, state: State, queries: StandingQueries) -> None:
        self.state = state
        self.queries = queries
        self._rows: dict[str, tuple[Bools, Bools]] = {}  # of a push, by query: arrived, too late

    def of(self, name: str) -> Subscriptions:
        """The subscriptions of a query with `Each`."""
        self.state.adapter(name)
        if name not in self.state.subscriptions:
            raise QueryError(
                f"{name} is a plain query: nothing in it is an Each, so nobody can subscribe to it. Use sb.Each(...) "
                "for what subscriptions differ in, or add(name, query) for one query."
            )
        return self.state.subscriptions[name]

    # --- come and go

    def subscribe(self, name: str, table: Any, id: str, from_window: bool) -> pa.Table:
        """Take a table of subscriptions, or nothing of it."""
        subscriptions, state = self.of(name), self.state
        rows = read(table, subscriptions, id, state.subscriber_type)
        if not len(rows):
            return state.changes([], [])
        prepared = self._prepared(subscriptions, rows)
        if from_window := from_window and must_look_back(state, subscriptions):
            check_lenders(state, subscriptions, prepared)
        with state.commit:
            state.subscriber_type = rows.ids.type
            here = subscriptions.find(rows.ids)
            begun = begin(state, subscriptions, prepared) if from_window else None
            left = self._remove(subscriptions, here[here >= 0])
            self._add(subscriptions, prepared, begun=from_window)
            changes = state.changes([], []) if begun is None else begun.table(state)
            changes = changes if left is None else in_one(state, [changes, left])
            if subscriptions.is_sparse:  # only now: changes know subscribers by their entries
                compact(state, subscriptions)
            return changes

    def _prepared(self, subscriptions: Subscriptions, rows: Rows, *, anew: bool = False) -> Prepared:
        """Slots and plain queries of a table; a QueryError names the subscriber."""
        prepared = prepare(self.state, subscriptions, rows, anew=anew)
        alone = ~prepared.shared
        return replace(prepared, asked=self._bound(subscriptions, rows.only(alone)) if alone.any() else [])

    def _add(self, subscriptions: Subscriptions, prepared: Prepared, *, begun: bool = False) -> None:
        """Let validated subscriptions stand, whose ids are not there; begun: they are in their adapters already."""
        rows, adapter, columns = prepared.rows, prepared.adapter, prepared.columns
        if rows.sort != subscriptions.sort:
            self._resort(subscriptions, rows.sort)
        numbers = self.queries.numbers(subscriptions.query)
        entries = subscriptions.add(rows)
        subscriptions.shared[entries] = prepared.shared
        if adapter is not None and columns is not None and len(columns):
            self.state.subscribed[slots_key(subscriptions.name)] = adapter
            number = int(numbers.counts.max(initial=0))
            if not begun:
                adapter.join(entries[prepared.shared], columns, number, self.state.serial)
        for key, query in zip(subscriptions.names(entries), () if begun else prepared.asked, strict=not begun):
            start = Start(numbers.counts, numbers.at_rest.of([0]))
            self.queries.place(self.state.subscribed, key, query, start, subscriptions.fresh)
        self._changed(subscriptions)

    def _bound(self, subscriptions: Subscriptions, rows: Rows) -> list[Query]:
        """A plain query for each row; a QueryError names the subscriber."""
        query, found, state = subscriptions.query, [], self.state
        unit = state.unit if state.options.time in state.types else None
        for place, values in enumerate(values_of(rows.columns, query, rows.sort)):
            try:
                one = query.bind(values)
                choose(one)
                if isinstance(one.window, Last) and one.window.timed:
                    if state.options.time is None:
                        raise QueryError(
                            f'{one.window!r} is a time window: name the time column, Monitor(..., time="...").'
                        )
                    if state.options.time in state.types:
                        one.window.length(unit)
            except QueryError as error:
                who = rows.ids[place].as_py()
                raise QueryError(
                    f"subscribe({subscriptions.name!r}): subscriber {who!r}: {error} Nothing was taken."
                ) from None
            found.append(one)
        return found

    def unsubscribe(self, name: str, ids: Iterable[Any]) -> pa.Table | None:
        """End subscriptions; unknown ids are counted. Returns what changes over their answers, if any query asks."""
        subscriptions = self.of(name)
        column = ids_of(name, ids, self.state.subscriber_type)
        entries = subscriptions.find(column)
        with self.state.commit:
            if unknown := int((entries < 0).sum()):
                subscriptions.unknown += unknown
                self.state.count({"unknown subscriber": unknown})
            left = self._remove(subscriptions, np.unique(entries[entries >= 0]))
            self._changed(subscriptions)
            if subscriptions.is_sparse:
                compact(self.state, subscriptions)
            changes = [self.state.changes([], []), *([] if left is None else [left])]
            return in_one(self.state, changes) if name in self.state.over else None

    def replace(self, name: str, query: Query) -> pa.Table:
        """Ask another question under the same name, where the old or the new one has `Each`.

        Subscriptions stay if the new query needs no other columns than the old one: each starts anew, empty. What was
        in an answer leaves it.
        """
        state, old = self.state, self.state.subscriptions.get(name)
        prepared = None
        if old is not None and old.count and query.each and {*query.each} <= {*old.query.each}:
            prepared = self._prepared(Subscriptions(name, query), old.rows(query), anew=True)
        with state.commit:
            pieces, adapters = self._retracted(name)
            changes = state.changes(pieces, adapters)
            numbers = self.queries.numbers(query)
            if old is None:
                self.queries.leave(name)
            else:
                self.end(name)
            self.queries.put(name, query, numbers)
            if prepared is not None:
                self._add(state.subscriptions[name], prepared)
            return changes

    def _retracted(self, name: str) -> tuple[list[Columns], list[Adapter]]:
        """The changes by which all answers of a query leave, and the adapter of each piece."""
        state = self.state
        if name not in state.subscriptions:
            adapter = state.adapters[name]
            return [adapter.retract(name, state.unit, state.clock)], [adapter]
        keys = state.subscriptions[name].names()
        found = [(state.subscribed[key].retract(key, state.unit, state.clock), state.subscribed[key]) for key in keys]
        slots = state.subscribed.get(slots_key(name))
        if isinstance(slots, SubscribedAdapter):
            found.append((slots.retract_all(state.clock), slots))
        found = [(piece, adapter) for piece, adapter in found if piece]
        return [piece for piece, _ in found], [adapter for _, adapter in found]

    def end(self, name: str) -> None:
        """End all subscriptions of a query that is dropped."""
        for key in (*self.state.subscriptions.pop(name).names(), slots_key(name)):
            self.state.subscribed.pop(key, None)
        self.state.query_names = None

    def _changed(self, subscriptions: Subscriptions) -> None:
        self.state.query_names = None
        base = self.state.adapters[subscriptions.name]
        assert isinstance(base, UnsubscribedAdapter)
        base.subscribed = subscriptions.count > 0
        if not subscriptions.count:
            subscriptions.fresh = {}

    def _resort(self, subscriptions: Subscriptions, sort: Any) -> None:
        """Go on as a query over time windows, or over counted ones, now that the first subscription says so."""
        name, query, state = subscriptions.name, subscriptions.query, self.state
        old = state.adapters[name]
        start = old.numbering.start()
        new = UnsubscribedAdapter(query, old.groups, state.options, start, sort=sort)
        new.queries, new.rejected = old.queries, old.rejected
        new.numbering.arrivals, new.numbering.late = old.numbering.arrivals, old.numbering.late
        state.adapters[name], subscriptions.sort = new, sort

    def _remove(self, subscriptions: Subscriptions, entries: Ints) -> pa.Table | None:
        """End subscriptions, whose numbers the query takes over; returns what changes over their answers."""
        if not len(entries):
            return None
        state, book = self.state, self.state.subscribed
        left = ended(state, subscriptions.name, self._retracted, entries)
        leaving: dict[Adapter, list[str]] = {}
        slots = book.get(slots_key(subscriptions.name))
        shared = entries[subscriptions.shared[entries]]
        for key in subscriptions.names(entries):
            leaving.setdefault(book[key], []).append(key)
        base = state.adapters[subscriptions.name]
        assert isinstance(base, UnsubscribedAdapter)
        parts = [*leaving, slots] if slots is not None and len(shared) else [*leaving]
        base.go_on(self.queries.largest(parts, base.groups))
        if isinstance(slots, SubscribedAdapter) and len(shared):
            slots.leave_slots(shared)
            if not slots.count:
                del book[slots_key(subscriptions.name)]
        for adapter, gone in leaving.items():
            rest = len(adapter.queries) > len(gone)
            if rest and adapter.family and not adapter.keeps_window and not isinstance(adapter, SlotsAdapter):
                book |= adapter.split(state.unit, state.clock)
            elif rest:
                for key in gone:
                    adapter.leave(key, state.unit, state.clock)
            else:
                adapter.queries = {}  # it may be known as one where nothing has arrived yet
            for key in gone:
                del book[key]
        subscriptions.remove(entries)
        return left

    # --- answers

    def answer(self, name: str, subscriber: Any, groups: Ints | None, k: int | None, window: Any) -> pa.Table:
        """The answers of one subscriber (a list of one), or of all (None), in the order of subscription."""
        subscriptions = self.of(name)
        entries = subscriptions.entries if subscriber is None else self._entry(subscriptions, subscriber[0])
        return self._answers(subscriptions, entries, groups, k, window)

    def answers_among(self, name: str, changes: pa.Table, groups: Ints) -> pa.Table:
        """The answers of the subscribers in a table of changes, each in the groups in which it has changed."""
        subscriptions = self.of(name)
        names = ("subscriber", *subscriptions.query.per_columns)
        found = subscriptions.find(plain(changes.column("subscriber")).unique())
        answers = self._answers(subscriptions, found[found >= 0], groups, None, None)
        known = Groups(names)
        known.codes([plain(changes.column(one)) for one in names], changes.num_rows)
        changed = known.total
        codes = known.codes([plain(answers.column(one)) for one in names], answers.num_rows)
        return answers.filter(as_arrow(codes < changed))

    def _answers(
        self, subscriptions: Subscriptions, entries: Ints, groups: Ints | None, k: int | None, window: Any
    ) -> pa.Table:
        name, state = subscriptions.name, self.state
        keys = next((state.subscribed[key].shown_keys for key in subscriptions.names(entries[:1])), None)
        types = state.answer_types(subscriptions.query, state.adapters[name].shown_keys if keys is None else keys)
        tables = []
        slots = state.subscribed.get(slots_key(name))
        if isinstance(slots, SubscribedAdapter):
            length = None if window is None else self._length(subscriptions, window)
            shared = entries[subscriptions.shared[entries]]
            if groups is None or len(groups):
                who, columns = slots.answers(shared, state.clock, k, length)
                columns = columns and {**columns, "subscriber": subscriptions.subscribers(who)}
                tables.append(answer_table(columns, types))
        for entry, columns in self._columns(subscriptions, entries, groups, k, window):
            size = len(columns["rank"])
            who = subscriptions.subscribers(np.full(size, entry))
            tables.append(answer_table({**columns, "subscriber": who}, types))
        return pa.concat_tables(tables).combine_chunks() if tables else answer_table({}, types)

    def _columns(
        self, subscriptions: Subscriptions, entries: Ints, groups: Ints | None, k: int | None, window: Any
    ) -> list[tuple[int, Columns]]:
        state, found = self.state, []
        alone = entries[~subscriptions.shared[entries]]
        wanted = {key_of(subscriptions.name, entry): entry for entry in alone.tolist()}
        adapters = dict.fromkeys(state.subscribed[key] for key in wanted)
        with state.reading(adapters):
            for adapter in adapters:
                places = adapter.places
                for key in adapter.queries.keys() & wanted.keys():
                    query = adapter.queries[key]
                    asked = query.smaller(k, window)
                    _refuse_capped(key, adapter, query, asked)
                    if adapter.engine is not None:
                        spec = spec_of(asked, state.unit)
                        found.append((wanted[key], adapter.answer_at(places[key], spec, state.clock, groups)))
        return sorted(found, key=lambda one: one[0])

    def _length(self, subscriptions: Subscriptions, window: Any) -> int:
        """The length of a window that is asked for in place of the subscriptions' own."""
        asked = window if isinstance(window, Last) else Last(window)
        own: Any = example_of(subscriptions.query, subscriptions.sort).window
        if [own.count is None, own.span is None] != [asked.count is None, asked.span is None]:
            raise QueryError(f"window={asked!r}: the subscriptions' own windows are of another kind.")
        return asked.length(self.state.unit)

    def _entry(self, subscriptions: Subscriptions, subscriber: Any) -> Ints:
        """The entry of a subscriber; none, if it is unknown."""
        type_ = self.state.subscriber_type
        try:
            column = pa.array([] if type_ is None else [subscriber], type_)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return np.empty(0, np.int64)
        entries = subscriptions.find(column)
        return entries[entries >= 0]

    # --- counts

    def count(self, adapter: Adapter, arrived: Bools, late: Bools) -> None:
        """Note which rows of a push have arrived at a subscription, and which were too late for it."""
        owner = owner_of(next(iter(adapter.queries)))
        if owner is not None:
            before = self._rows.get(owner)
            self._rows[owner] = (arrived, late) if before is None else (before[0] | arrived, before[1] | late)

    def counted(self) -> None:
        """Count the rows that have arrived at any subscription of a query, and those that were too late for one."""
        for owner, (arrived, late) in self._rows.items():
            numbering = self.state.adapters[owner].numbering
            numbering.arrivals = numbering.arrivals + int(arrived.sum())
            numbering.late = numbering.late + int(late.sum())
        self._rows = {}

    def stats(self, name: str) -> dict[str, Any]:
        """Of a query with `Each`: how many subscriptions, how many of them share an engine with others."""
        subscriptions, state = self.state.subscriptions[name], self.state
        own = state.adapters[name].stats(name)
        adapters = dict.fromkeys(state.subscribed[key] for key in subscriptions.names())
        slots = state.subscribed.get(slots_key(name))
        counted = [adapter.stats(key) for adapter in adapters for key in list(adapter.queries)[:1]]
        started = [(adapter.engine, len(adapter.queries)) for adapter in adapters if adapter.engine is not None]
        rejected = dict(own["rejected"])
        if slots is not None:
            counted.append(slots.stats(name))
        for one in counted:
            for reason, rows in one["rejected"].items():
                rejected[reason] = max(rows, rejected.get(reason, 0))
        if subscriptions.unknown:
            rejected["unknown subscriber"] = subscriptions.unknown
        alone = sum(engine.size_of(place) for engine, size in started for place in range(size))
        return {
            "algorithm": counted[0]["algorithm"] if counted else own["algorithm"],
            "subscriptions": subscriptions.count,
            "shared": int(np.count_nonzero(subscriptions.live & subscriptions.shared)),
            "engines": len(adapters) + (slots is not None),
            "objects": alone + (0 if slots is None else counted[-1]["objects"]),
            "distinct": alone + (0 if slots is None else counted[-1]["distinct"]),
            "buffer": max([one["buffer"] for one in counted], default=0),
            "bytes": subscriptions.nbytes + sum(one["bytes"] for one in counted),
            "arrivals": own["arrivals"],
            "late": own["late"],
            "rejected": rejected,
        }


def close_gaps(state: State) -> None:
    """Number entries anew where subscriptions have ended, before the state is stored."""
    if gaps := [one for one in state.subscriptions.values() if one.has_gaps]:
        with state.commit:
            for subscriptions in gaps:
                compact(state, subscriptions)


def compact(state: State, subscriptions: Subscriptions) -> None:
    """Number entries anew: O(1) amortised, if most have ended."""
    book, name = state.subscribed, subscriptions.name
    old = subscriptions.compact()
    alone = np.flatnonzero(~subscriptions.shared[: len(old)]).tolist()
    renamed = {key_of(name, int(old[new])): key_of(name, new) for new in alone}
    if name in state.over:
        state.over[name].renumber(old)
    slots = book.get(slots_key(name))
    if isinstance(slots, SubscribedAdapter):
        slots.renumber(old)
    adapters = {key: book.pop(key) for key in renamed}
    for adapter in dict.fromkeys(adapters.values()):
        adapter.rename(renamed)
    book |= {renamed[key]: adapter for key, adapter in adapters.items()}
    state.query_names = None


def _refuse_capped(key: str, adapter: Adapter, query: Query, asked: Query) -> None:
    if adapter.algorithm == "PA" and asked.window != query.window:
        raise QueryError(
            f"PA keeps only what its own window {query.window!r} needs, so it cannot answer for {asked.window!r}. "
            "Ask without window=, or use an exact algorithm, such as BLOCK."
        )
