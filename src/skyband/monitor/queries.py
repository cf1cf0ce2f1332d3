"""Queries come and go: which adapter each one gets, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.kinds import adapter_class
from skyband.engines.registry import MANY, choose
from skyband.engines.topk.scorings import auto_key, family_key, window_key
from skyband.engines.topk.window_adapter import WindowAdapter, donor_of, remember_reported
from skyband.errors import QueryError
from skyband.monitor.state import State
from skyband.query.kinds import Above, Query, TopK, TopKIncomplete
from skyband.query.windows import Last, UntilDeleted
from skyband.tables.changes import QueryNames, change_names, change_table, column_types, of_pair
from skyband.tables.groups import Groups
from skyband.tables.input import Batch

Ints = NDArray[np.int64]


class Roster:
    """The standing queries of a Monitor."""

    state: State

    @property
    def queries(self) -> dict[str, Query]:
        """The standing queries by name, in order of registration."""
        return {name: adapter.queries[name] for name, adapter in self.state.adapters.items()}

    def add(self, name: str, query: Query, *, from_window: bool = False) -> Any:
        """Add a standing query. It sees only later arrivals, and goes on with the numbers.

        from_window: it answers at once from the window that another query keeps (TMA, SMA and TSL do), over the same
        columns and `per`; returns its first answer as changes.
        """
        if not from_window:
            return self._add(name, query, self._fresh())
        self._free(name)
        asked = self._checked(name, query)
        if not isinstance(asked, TopK | Above):
            raise QueryError(f"{name}: from_window is for TopK and Above. Add {asked.kind} without it.")
        lenders = [adapter for adapter in self.state.standing() if isinstance(adapter, WindowAdapter)]
        able = [adapter for adapter in lenders if adapter.can_lend(asked, self.state.unit)]
        if asked.algorithm != "auto":
            able = [adapter for adapter in able if adapter.algorithm == choose(asked)] or able
        if not able:
            raise QueryError(
                f"{name}: no standing query keeps a window that this one could look at: the same columns, `per` and "
                f"`where` (but for ranges), and at least {asked.window!r}, by TMA, SMA or TSL. Add it without "
                "from_window, or let such a query stand first."
            )
        algorithm = able[0].algorithm if asked.algorithm == "auto" else choose(asked)
        adapter = self._beside(able[0], name, asked, algorithm)
        piece = adapter.join(name, asked, self.state.unit, self.state.clock, {})
        self.state.adapters[name] = adapter
        remember_reported(self.state.standing())
        return self._changes([piece], [adapter])

    def _beside(self, donor: WindowAdapter, name: str, query: TopK | Above, algorithm: str) -> WindowAdapter:
        """The donor's adapter if the query can live there, else one with a copy of its window."""
        if window_key(query, algorithm) == window_key(donor.example, donor.algorithm):
            return donor
        return donor.offshoot(name, query, algorithm, self.state.unit, self.state.clock)

    def _fresh(self) -> dict[Any, Adapter]:
        """The adapters where nothing has arrived yet, by what their queries share."""
        self._split(lambda adapter: adapter.family and not adapter.keeps and adapter.engine is None)
        return {adapter.key(adapter.example): adapter for adapter in self.state.standing() if adapter.is_fresh}

    def validate_apart(self, but: Container[str] = ()) -> None:
        """Before the first arrival: each query judges rows by its own score, except for these."""
        self._split(lambda adapter: adapter.keeps and not any(name in but for name in adapter.queries))

    def expect(self, batches: Iterable[Any]) -> None:
        """Tables that will come in slices of one batch: what must part because of them parts before."""
        self._gather()
        for table in batches:
            given = Batch(table)
            self._split(lambda adapter, given=given: adapter.is_wild(given))  # type: ignore[misc]

    def _split(self, which: Callable[[Adapter], bool]) -> None:
        """Families whose queries must go their own ways."""
        for family in filter(which, self.state.standing()):
            adapters = family.split(self.state.unit, self.state.clock)
            self.state.adapters = {name: adapters.get(name, adapter) for name, adapter in self.state.adapters.items()}

    def _gather(self) -> None:
        """Before the first arrival: queries come together that one engine can serve.

        Those that differ only in the numbers of their scoring become families; those that look at one window share it,
        and auto lets them if there are many.
        """
        if all(adapter.engine is not None for adapter in self.state.standing()):
            return
        alone = {
            name: adapter
            for name, adapter in self.state.adapters.items()
            if type(adapter) is Adapter and adapter.engine is None and not adapter.family and len(adapter.queries) == 1
        }
        for names in _alike(alone, lambda adapter: family_key(cast(TopK, adapter.example)), 2):
            first = alone[names[0]]
            family = Adapter(first.example, first.groups, self.state.options, first.counts[0], family=True)
            self._move_in(family, names)
            alone = {name: adapter for name, adapter in alone.items() if name not in family.queries}
        for names in _alike(alone, lambda adapter: auto_key(cast(TopK, adapter.example)), MANY):
            first = alone[names[0]]
            window = WindowAdapter(
                first.example,
                first.groups,
                self.state.options,
                first.counts[0],
                algorithm="SMA",
                born=self.state.serial,
            )
            self._move_in(window, names)
        windows = {
            name: adapter
            for name, adapter in self.state.adapters.items()
            if isinstance(adapter, WindowAdapter) and adapter.engine is None
        }
        for names in _alike(windows, lambda adapter: cast(WindowAdapter, adapter).share, 2):
            self._move_in(windows[names[0]], names)

    def _move_in(self, adapter: Adapter, names: list[str]) -> None:
        adapter.queries = {name: self.state.adapters[name].queries[name] for name in names}
        self.state.adapters |= dict.fromkeys(names, adapter)

    def _add(self, name: str, query: Query, fresh: dict[Any, Adapter]) -> None:
        self._free(name)
        asked = self._checked(name, query)
        self._settle(name, asked, self._numbers(asked), fresh)

    def _free(self, name: str) -> None:
        if name in self.state.adapters:
            raise QueryError(
                f"a query called {name!r} is standing already. Use replace({name!r}, ...) or another name."
            )

    def drop(self, name: str) -> None:
        """Stop a standing query. Nothing is reported."""
        self._split(lambda adapter: adapter.family and not adapter.keeps and name in adapter.queries)
        adapter = self._adapter(name)
        del self.state.adapters[name]
        adapter.leave(name, self.state.unit, self.state.clock)
        remember_reported(self.state.standing())

    def replace(self, name: str, query: Query) -> Any:
        """Ask another question under the same name; returns the changes that turn the old answer into the new one.

        The state is kept when the new query has the same scoring, direction, `where` and `per` and no larger k or
        window than the queries that share the old one's skyband; else it starts empty.
        """
        self._split(lambda adapter: adapter.family and not adapter.keeps and name in adapter.queries)
        adapter, asked = self._adapter(name), self._checked(name, query)
        query_names, before, types = QueryNames(list(self.state.adapters)), list(adapter.queries), self._change_types()
        if isinstance(adapter, WindowAdapter) and isinstance(asked, TopK | Above):
            donor = donor_of(self.state.standing(), adapter, name, asked, self.state.unit)
            if donor is not None:
                return self._hand_over(name, asked, adapter, donor)
        if adapter.can_serve(asked, self.state.unit):
            piece = adapter.refit({**adapter.queries, name: asked}, self.state.unit, self.state.clock)
        else:
            piece, numbers = adapter.retract(name, self.state.unit, self.state.clock), self._numbers(asked)
            adapter.leave(name, self.state.unit, self.state.clock)
            self._settle(name, asked, numbers, self._fresh())
            remember_reported(self.state.standing())
        return change_table([piece] if piece else [], query_names, [before] if piece else [], types)

    def _hand_over(self, name: str, query: TopK | Above, adapter: WindowAdapter, donor: WindowAdapter) -> Any:
        """Another question under the same name, over a window that is kept."""
        unit, clock = self.state.unit, self.state.clock
        reported, place = adapter.reported_of(name), list(adapter.queries).index(name)
        was = adapter.machine.answer(place, adapter.asked(unit)[place], adapter.now(clock), None)
        target = self._beside(donor, name, query, adapter.algorithm if query.algorithm == "auto" else choose(query))
        adapter.leave(name, unit, clock)
        piece = target.join(name, query, unit, clock, reported, was)
        self.state.adapters[name] = target
        remember_reported(self.state.standing())
        return self._changes([piece], [target])

    def _checked(self, name: str, query: Query) -> Query:
        if not isinstance(name, str) or not name:
            raise QueryError(f"a query is named by a non-empty string; got {name!r}.")
        if not isinstance(query, Query):
            raise QueryError(f"{query!r} is no query. Use TopK(...) or another query kind.")
        choose(query)
        if isinstance(query.window, UntilDeleted) and self.state.options.id is None:
            raise QueryError(
                'UntilDeleted() objects are deleted by their ids: name the id column, Monitor(..., id="...").'
            )
        if isinstance(query, TopKIncomplete) and self.state.options.id is None:
            raise QueryError(
                'TopKIncomplete puts objects together by their ids: name the id column, Monitor(..., id="...").'
            )
        self._check_columns(query)
        if isinstance(query.window, Last) and query.window.timed:
            if self.state.options.time is None:
                raise QueryError(f'{query.window!r} is a time window: name the time column, Monitor(..., time="...").')
            if self.state.options.time in self.state.types:
                query.window.length(self.state.unit)
        return query

    def _check_columns(self, query: Query) -> None:
        """No two columns of changes have one name."""
        kept = self.state.options.kept
        clash = set(query.per_columns) & set(kept)
        if clash:
            raise QueryError(
                f"{clash.pop()!r} is in `per` and in `keep`; every change carries its `per` columns anyway."
            )
        queries = [*self.queries.values(), query]
        names = change_names(queries, kept, timed=False)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise QueryError(
                f"{twice!r} would be told twice: of pairs, each column of `keep` comes as name_a and name_b. Rename it."
            )

    def _numbers(self, query: Query) -> Ints:
        """Where a new query goes on: per group the largest number that any query with the same `per` has reached."""
        groups = self.state.groups.setdefault(query.per_columns, Groups(query.per_columns))
        numbers = np.zeros(groups.total, np.int64)
        if not self.state.serial:  # nothing has arrived
            return numbers
        for adapter in self.state.standing():
            if adapter.groups is groups:
                most = adapter.counts.max(axis=0)
                numbers[: len(most)] = np.maximum(numbers[: len(most)], most)
        return numbers

    def _settle(self, name: str, query: Query, numbers: Ints, fresh: dict[Any, Adapter]) -> None:
        """Give the query an adapter: one that has not started yet, or a new one."""
        groups, kind = self.state.groups[query.per_columns], adapter_class(query, choose(query))
        if issubclass(kind, WindowAdapter):
            asked = cast(TopK, query)
            self.state.adapters[name] = WindowAdapter(
                asked, groups, self.state.options, numbers, born=self.state.serial
            )
            self.state.adapters[name].queries[name] = query
            return
        key = kind.key(query)
        adapter = fresh.get(key)
        if adapter is None or not adapter.is_fresh:
            adapter = kind(query, groups, self.state.options, numbers)
            fresh[key] = adapter
        adapter.queries[name] = query
        self.state.adapters[name] = adapter

    def _adapter(self, name: str) -> Adapter:
        if name not in self.state.adapters:
            raise QueryError(
                f"no query called {name!r} is standing. Standing: {', '.join(self.state.adapters) or 'none'}."
            )
        return self.state.adapters[name]

    # --- columns

    def _told_types(self) -> dict[str, Any]:
        options = self.state.options
        types = {name: self.state.types.get(name, pa.null()) for name in options.kept}
        for adapter in self.state.standing():
            types |= {name: self.state.types.get(name, pa.null()) for name in adapter.groups.names}
        types["id"] = pa.int64() if options.id is None else self.state.types.get(options.id, pa.null())
        for name in ("id", *options.kept):
            types |= dict.fromkeys(of_pair(name), types[name])
        types["time"] = pa.null() if options.time is None else self.state.types.get(options.time, pa.null())
        return types

    def _change_types(self) -> dict[str, Any]:
        names = change_names(self.queries.values(), self.state.options.kept, self.state.options.time is not None)
        return column_types(names, self._told_types())

    def _changes(self, pieces: list[dict[str, Any]], standing: Sequence[Adapter]) -> Any:
        if self.state.query_names is None or self.state.query_names.names != list(self.state.adapters):
            self.state.query_names = QueryNames(list(self.state.adapters))
        return change_table(
            pieces, self.state.query_names, [list(adapter.queries) for adapter in standing], self._change_types()
        )


def _alike(adapters: Mapping[str, Adapter], key: Callable[[Adapter], Any], least: int) -> list[list[str]]:
    """The names of adapters with equal keys (None: of no others) and numbers, where there are at least so many."""
    found: dict[Any, list[str]] = {}
    for name, adapter in adapters.items():
        if (known := key(adapter)) is not None:
            found.setdefault((known, adapter.groups.names, adapter.counts.tobytes()), []).append(name)
    return [names for names in found.values() if len(names) >= least]
