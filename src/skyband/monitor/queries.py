"""Queries come and go: which home each one gets, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Standing
from skyband.engines.kinds import home_class
from skyband.engines.registry import MANY, choose
from skyband.engines.topk.scorings import auto_key, family_key, window_key
from skyband.engines.topk.window_adapter import Keeping, donor_of
from skyband.errors import QueryError
from skyband.monitor.state import State
from skyband.query.kinds import Above, Query, TopK, TopKIncomplete
from skyband.query.windows import Last, UntilDeleted
from skyband.tables.changes import Roll, change_names, change_table, column_types, of_pair
from skyband.tables.groups import Groups
from skyband.tables.input import Batch

Ints = NDArray[np.int64]


class Roster:
    """The standing queries of a Monitor."""

    state: State

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
        if not isinstance(asked, TopK | Above):
            raise QueryError(f"{name}: from_window is for TopK and Above. Add {asked.kind} without it.")
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
        return {home.key(home.example): home for home in self.state.standing() if home.is_fresh}

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
            if type(home) is Standing and home.engine is None and not home.family and len(home.queries) == 1
        }
        for names in _alike(alone, lambda home: family_key(cast(TopK, home.example)), 2):
            first = alone[names[0]]
            family = Standing(first.example, first.groups, self.state.options, first.counts[0], family=True)
            self._move_in(family, names)
            alone = {name: home for name, home in alone.items() if name not in family.queries}
        for names in _alike(alone, lambda home: auto_key(cast(TopK, home.example)), MANY):
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
        if isinstance(home, Keeping) and isinstance(asked, TopK | Above):
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
        for home in self.state.standing():
            if home.groups is groups:
                most = home.counts.max(axis=0)
                numbers[: len(most)] = np.maximum(numbers[: len(most)], most)
        return numbers

    def _settle(self, name: str, query: Query, numbers: Ints, fresh: dict[Any, Standing]) -> None:
        """Give the query a home: one that has not started yet, or a new one."""
        groups, kind = self.state.groups[query.per_columns], home_class(query, choose(query))
        if issubclass(kind, Keeping):
            asked = cast(TopK, query)
            self.state.homes[name] = Keeping(asked, groups, self.state.options, numbers, born=self.state.serial)
            self.state.homes[name].queries[name] = query
            return
        key = kind.key(query)
        home = fresh.get(key)
        if home is None or not home.is_fresh:
            home = kind(query, groups, self.state.options, numbers)
            fresh[key] = home
        home.queries[name] = query
        self.state.homes[name] = home

    def _home(self, name: str) -> Standing:
        if name not in self.state.homes:
            raise QueryError(
                f"no query called {name!r} is standing. Standing: {', '.join(self.state.homes) or 'none'}."
            )
        return self.state.homes[name]

    # --- columns

    def _told_types(self) -> dict[str, Any]:
        options = self.state.options
        types = {name: self.state.types.get(name, pa.null()) for name in options.kept}
        for home in self.state.standing():
            types |= {name: self.state.types.get(name, pa.null()) for name in home.groups.names}
        types["id"] = pa.int64() if options.id is None else self.state.types.get(options.id, pa.null())
        for name in ("id", *options.kept):
            types |= dict.fromkeys(of_pair(name), types[name])
        types["time"] = pa.null() if options.time is None else self.state.types.get(options.time, pa.null())
        return types

    def _change_types(self) -> dict[str, Any]:
        names = change_names(self.queries.values(), self.state.options.kept, self.state.options.time is not None)
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
