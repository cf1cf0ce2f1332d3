"""Standing queries: which adapter each one gets, and which of them share one."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.kinds import adapter_class
from skyband.engines.numbering import Start
from skyband.engines.pairs import lent_window
from skyband.engines.pairs.adapter import PairsAdapter
from skyband.engines.registry import choose
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.scorings import family_key
from skyband.engines.topk.slots_adapter import SlotsAdapter
from skyband.engines.topk.window_adapter import WindowAdapter, donor_of, remember_reported
from skyband.engines.unsubscribed import UnsubscribedAdapter, example_of
from skyband.errors import QueryError, StateError
from skyband.monitor.families import begin_family, check_columns, note_columns, stands_apart
from skyband.monitor.from_window import adapter_over, lend, lender_of, no_lender
from skyband.monitor.placement import Fresh, Placement
from skyband.monitor.sources import (
    check_askers,
    forget_unused,
    in_one,
    in_order,
    names_of,
    of_members,
    over_for,
    owner_of,
    register,
    stands,
    with_over,
)
from skyband.monitor.state import State
from skyband.monitor.subscriptions import SubscribedQueries
from skyband.query.expressions.words import require_text
from skyband.query.kinds import Above, Query, TopK, TopKPairs
from skyband.query.windows import Last, Session, UntilDeleted, size_of
from skyband.tables.changes import QueryNames, change_table
from skyband.tables.input import Batch
from skyband.tables.subscriptions import MARK, Subscriptions

Ints = NDArray[np.int64]


class StandingQueries(Placement):
    """The queries of a Monitor, as they come and go."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.subscribed = SubscribedQueries(state, self)

    # --- add, replace, drop

    def start(self, queries: Mapping[str, Query]) -> None:
        """The queries of a new Monitor."""
        fresh: Fresh = {}
        for name in in_order(queries):
            self.add(name, queries[name], fresh)
        self.state.order[:] = queries

    def add(self, name: str, query: Query, fresh: Fresh | None = None) -> None:
        """Add a query, which sees only later arrivals and goes on with the numbers."""
        self._check_name_is_free(name)
        _check_query(query)
        if getattr(query, "source", None) not in (None, self.state.source):
            over = over_for(self.state, name, query)
            over.loop.queries.checked(name, query)
            with self.state.commit:
                register(self.state, over).loop.queries.add(name, query)
            return
        checked = self.checked(name, query)
        with self.state.commit:
            self.state.order.append(name)
            self._place(name, checked, self.numbers(checked), fresh)

    def add_from_window(self, name: str, query: Query) -> pa.Table:
        """Add a query that is answered at once from the window that another query keeps; returns its answer."""
        self._check_name_is_free(name)
        checked = self.checked(name, query)
        if checked.each:
            raise QueryError(
                f"{name}: a query with Each has no answer of its own. Use subscribe(..., from_window=True)."
            )
        family = self._family_for(checked) if isinstance(checked, TopK) and self.state.serial else None
        if family is not None and family.holds(cast(TopK, checked), self.state.unit, self.state.clock):
            with self.state.commit:
                asked, numbers, state = cast(TopK, checked), self.numbers(checked), self.state
                note_columns(self.state, checked)
                piece = family.join_from_window(name, asked, state.unit, state.serial, numbers, state.clock)
                state.adapters[name], state.query_names = family, None
                state.order.append(name)
                return state.changes([piece], [family])
        lender = lender_of(self._plain(), checked, self.state.unit)
        if lender is None and isinstance(checked, TopKPairs):
            return self._pairs_from_window(name, checked)
        if lender is None:
            raise no_lender(name, checked)
        with self.state.commit:
            note_columns(self.state, checked)
            adapter, piece = lend(lender, name, checked, self.state.unit, self.state.clock)
            self.state.adapters[name], self.state.query_names = adapter, None
            self.state.order.append(name)
            remember_reported(self.state.standing())
            return self.state.changes([piece] if piece else [], [adapter] if piece else [])

    def add_from(self, lender: str, name: str, query: Query) -> pa.Table:
        """Add a query that goes on from what this other one keeps, which is enough for it; returns what enters."""
        self._check_name_is_free(name)
        checked, state = self.checked(name, query), self.state
        with state.commit:
            adapter: Adapter = state.adapters[lender]
            if adapter.engine is None:  # nothing has arrived
                state.order.append(name)
                self._place(name, checked, self.numbers(checked))
                return state.changes([], [])
            if not adapter.can_lend(checked, state.unit):
                raise StateError(f"{name}: {lender!r} does not keep what this query needs. Start it under a new name.")
            note_columns(self.state, checked)
            adapter, piece = lend(adapter, name, checked, state.unit, state.clock)
            state.adapters[name], state.query_names = adapter, None
            state.order.append(name)
            remember_reported(state.standing())
            return state.changes([piece] if piece else [], [adapter] if piece else [])

    def _pairs_from_window(self, name: str, query: TopKPairs) -> pa.Table:
        """Add a query of pairs that begins with the objects of another one's window."""
        for donor in [one for one in self.state.standing() if isinstance(one, PairsAdapter)]:
            adapter = lent_window.borrower(donor, name, query, self.state.unit)
            if adapter is not None:
                with self.state.commit:
                    note_columns(self.state, query)
                    piece = lent_window.begin(adapter, donor, self.state.unit, self.state.clock)
                    self.state.adapters[name] = adapter
                    self.state.order.append(name)
                    self.state.share_windows(everything=True)
                    return self.state.changes([piece], [adapter])
        raise QueryError(
            f"{name}: no standing query of pairs keeps a window that this one could look at: the same `per` and "
            f"`where`, in its kernels all columns that this one reads, and at least {query.window!r}. Add it without "
            "from_window."
        )

    def drop(self, name: str) -> None:
        """Stop a query. Nothing is reported."""
        if (owner := owner_of(self.state, name)) is not self.state:
            StandingQueries(owner)._check_no_source(name, "drop")
            with self.state.commit:
                StandingQueries(owner).drop(name)
                forget_unused(self.state)
            return
        self.state.adapter(name)
        self._check_no_source(name, "drop")
        with self.state.commit:
            self.state.order.remove(name)
            if name in self.state.subscriptions:
                self.subscribed.end(name)
                del self.state.adapters[name]
                self.state.traits = None
                return
            adapter = self._alone(name)
            del self.state.adapters[name]
            self.state.traits = None
            adapter.leave(name, self.state.unit, self.state.clock)
            remember_reported(self.state.standing())

    def replace(self, name: str, query: Query) -> pa.Table:
        """Ask another question under the same name; returns the changes from the old answer to the new one."""
        _check_query(query)
        owner = owner_of(self.state, name)
        old = owner.adapter(name).queries[name]
        if getattr(query, "source", None) != owner.source:
            return self._move(name, query, owner)
        if owner is not self.state:
            changes = StandingQueries(owner).replace(name, query)
            return in_one(self.state, [self.state.changes([], []), changes])
        if name in self.state.over and query.per != old.per:
            self._check_no_source(name, "change the `per` of")
        checked = self.checked(name, query)
        if name in self.state.over:
            check_askers(self.state, name, checked)
        self.state.mark_sources()
        if checked.each or name in self.state.subscriptions:
            self.state.traits = None
            return self.subscribed.replace(name, checked)
        with self.state.commit:
            return self._replace(name, checked)

    def _move(self, name: str, query: Query, owner: State) -> pa.Table:
        """Ask over rows or other answers from now on: the old answer leaves."""
        self._check_no_source(name, "ask elsewhere under the name of")
        if getattr(query, "source", None) == name:
            raise QueryError(f"{name} cannot ask over its own answers. Name another query as its source.")
        source, place = getattr(query, "source", None), self.state.order.index(name)
        over = None if source is None else over_for(self.state, name, query)
        target = self if over is None else over.loop.queries
        target.checked(name, query)
        adapter = owner.adapter(name)
        with self.state.commit:
            piece = adapter.retract(name, owner.unit, owner.clock)
            left = owner.changes([piece] if piece else [], [adapter] if piece else [])
            if over is not None:
                register(self.state, over)
            StandingQueries(owner).drop(name)
            target.add(name, query)
            self.state.order.remove(name)
            self.state.order.insert(place, name)
            forget_unused(self.state)
            return in_one(self.state, [self.state.changes([], []), left])

    def _check_no_source(self, name: str, what: str) -> None:
        """Refuse to change a query over whose answers others ask."""
        over = owner_of(self.state, name).over.get(name)
        if over is not None:
            others = ", ".join(names_of(over.loop.state))
            raise QueryError(f"{others} ask over the answers of {name}: to {what} it, drop these first.")

    def _replace(self, name: str, checked: Query) -> pa.Table:
        unit, clock, adapter = self.state.unit, self.state.clock, self._alone(name)
        query_names = QueryNames(list(self.state.adapters), self.state.subscriptions)
        before = adapter.names_in_order
        self.state.traits = None
        types = self.state.change_types()
        if isinstance(adapter, WindowAdapter) and isinstance(checked, TopK | Above):
            donor = donor_of(self._plain(), adapter, name, checked, unit)
            if donor is not None:
                return self._move_over(name, checked, adapter, donor)
        if isinstance(adapter, SlotsAdapter) and adapter.can_shrink(name, checked, unit):
            piece = adapter.shrink(name, cast(TopK, checked), unit, clock)
        elif adapter.can_serve(checked, unit):
            piece = adapter.refit({**adapter.queries, name: checked}, unit, clock)
        else:
            piece, numbers = adapter.retract(name, unit, clock), self.numbers(checked)
            adapter.leave(name, unit, clock)
            self._place(name, checked, numbers)
            remember_reported(self.state.standing())
        pieces, engines = ([piece], [before]) if piece else ([], [])
        shown = [of_members(piece) for piece in pieces]
        table = change_table(shown, query_names, [query_names.labels(names) for names in engines], types)
        if self.state.over or self.state.source is not None:
            return with_over(self.state, table, pieces, engines)
        return table

    def leave(self, name: str) -> None:
        """Let a plain query leave its adapter."""
        self._alone(name).leave(name, self.state.unit, self.state.clock)

    def put(self, name: str, query: Query, numbers: Start) -> None:
        """Let a query stand, in the place of the name if that is there."""
        self._place(name, query, numbers, self._fresh())
        remember_reported(self.state.standing())

    def _plain(self) -> list[Adapter]:
        """The adapters of queries, without those of subscriptions."""
        return self.state.adapters.each_once()

    def _alone(self, name: str) -> Adapter:
        """The adapter of a query, which it can leave."""
        adapter = self.state.adapter(name)
        if adapter.family and not adapter.keeps_window and not isinstance(adapter, SlotsAdapter):
            self.split(lambda other: other is adapter)
        return self.state.adapter(name)

    def _move_over(self, name: str, query: TopK | Above, adapter: WindowAdapter, donor: WindowAdapter) -> pa.Table:
        """Ask another question under the same name, over a window that is kept."""
        unit, clock = self.state.unit, self.state.clock
        reported, place = adapter.reported_of(name), adapter.place(name)
        was = adapter.machine.answer(place, adapter.specs(unit)[place], adapter.numbering.now(clock), None)
        algorithm = adapter.algorithm if query.algorithm == "auto" else choose(query)
        target = adapter_over(donor, name, query, algorithm, unit, clock)
        adapter.leave(name, unit, clock)
        piece = target.join(name, query, unit, clock, reported, was)
        self.state.adapters[name], self.state.query_names = target, None
        remember_reported(self.state.standing())
        return self.state.changes([piece], [target])

    # --- queries that share an engine

    def prepare(self, batches: Iterable[Batch]) -> None:
        """Before a batch, which may come in several pieces, is examined: let the right queries share engines."""
        batches = list(batches)
        for batch in batches:
            self.find_keys(batch)
        if any(adapter.engine is None for adapter in self.state.taking()):
            with self.state.commit:
                self._gather(self.state.adapters)
                self._gather(self.state.subscribed)
                for subscriptions in self.state.subscriptions.values():
                    subscriptions.fresh = {}
        for batch in batches:
            if splits := [adapter for adapter in self.state.taking() if adapter.must_split(batch)]:
                with self.state.commit:
                    self.split(splits.__contains__)

    def split(self, which: Callable[[Adapter], bool]) -> None:
        """Give each query of such families an adapter of its own."""
        for family in filter(which, self.state.standing()):
            book = self.state.book(family)
            book |= family.split(self.state.unit, self.state.clock)

    def validate_apart(self, but: Container[str] = ()) -> None:
        """Before the first arrival: let each query validate rows by its own score, except these."""
        self.split(lambda adapter: adapter.keeps_window and not any(name in but for name in adapter.queries))

    def _fresh(self) -> Fresh:
        """The adapters where nothing has arrived yet, by what their queries share."""
        mine = self._plain()
        if not any(adapter.engine is None for adapter in mine):
            return {}
        self.split(
            lambda adapter: adapter in mine and adapter.family and not adapter.keeps_window and adapter.engine is None
        )
        return {adapter.key(adapter.example): adapter for adapter in self._plain() if adapter.is_fresh}

    def _place(self, name: str, query: Query, numbers: Start, fresh: Fresh | None = None) -> None:
        """Give the query an adapter: a family that it can join, one that has not started yet, or a new one."""
        self.state.query_names = None
        note_columns(self.state, query)
        if query.each:
            groups = self.state.groups[query.grouping]
            adapter: Adapter = UnsubscribedAdapter(query, groups, self.state.options, numbers)
            adapter.queries[name] = query
            self.state.adapters[name], self.state.subscriptions[name] = adapter, Subscriptions(name, query)
            return
        if fresh is None and isinstance(query, TopK) and (key := self._family_key(query)) is not None:
            family = self._family_for(query)
            if family is not None:
                family.join(name, query, self.state.unit, self.state.serial, numbers)
            elif stands_apart(self._plain(), query, key):
                family = begin_family(self.state, name, query, numbers)
            if family is not None:
                self.state.adapters[name] = family
                return
        self.place(self.state.adapters, name, query, numbers, self._fresh() if fresh is None else fresh)

    @staticmethod
    def _family_key(query: TopK) -> Any:
        """What the queries of a family have in common; None: the query is of no family."""
        return family_key(query) if adapter_class(query, choose(query)) is TopKAdapter else None

    def _family_for(self, query: TopK) -> SlotsAdapter | None:
        """A family of slots that has one for the query."""
        if self._family_key(query) is None:
            return None
        slots = (adapter for adapter in self._plain() if isinstance(adapter, SlotsAdapter))
        return next((adapter for adapter in slots if adapter.can_join(query)), None)

    # --- checks

    def _check_name_is_free(self, name: str) -> None:
        if not isinstance(name, str):
            raise QueryError(f"a query's name is a string; got {name!r}.")
        if stands(self.state, name):
            raise QueryError(
                f"a query called {name!r} is standing already. Use replace({name!r}, ...) or another name."
            )

    def checked(self, name: str, query: Query) -> Query:
        """The query, if this Monitor can take it under this name."""
        options = self.state.options
        if not isinstance(name, str) or not name:
            raise QueryError(f"a query is named by a non-empty string; got {name!r}.")
        _check_query(query)
        require_text("the name of a query", name)
        if MARK in name:
            raise QueryError(f"a query's name has no character 0; got {name!r}.")
        choose(example_of(query) if query.each else query)
        if isinstance(query.window, UntilDeleted) and options.id is None:
            raise QueryError(
                'UntilDeleted() objects are deleted by their ids: name the id column, Monitor(..., id="...").'
            )
        if query.needs_id is not None and options.id is None:
            raise QueryError(f'{query.kind} {query.needs_id}: name the id column, Monitor(..., id="...").')
        if getattr(query, "decay", None) is not None and options.time is None:
            raise QueryError(f'{query.kind}: rows fade by their times: name the time column, Monitor(..., time="...").')
        check_columns(self.state, name, query)
        if isinstance(query.window, Last | Session) and query.window.timed:
            if options.time is None:
                raise QueryError(f'{query.window!r} is a time window: name the time column, Monitor(..., time="...").')
            if options.time in self.state.types and size_of(query.window) is None:
                query.window.length(self.state.unit)
        return query


def _check_query(query: object) -> None:
    if not isinstance(query, Query):
        hint = ", or sb.sql(...) of a question in SQL" if isinstance(query, str) else ""
        raise QueryError(f"{query!r} is no query. Use TopK(...) or another query kind{hint}.")
