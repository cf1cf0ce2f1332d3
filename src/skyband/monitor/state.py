"""State: everything a Monitor knows, and a batch as its queries see it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter, Columns
from skyband.engines.pairs.shared_window import share_windows
from skyband.engines.topk.device import check_device
from skyband.engines.topk.subscribed_adapter import SubscribedAdapter
from skyband.errors import BatchError, QueryError
from skyband.monitor.book import Book
from skyband.monitor.commit import Commit
from skyband.monitor.over import Over
from skyband.monitor.sources import of_members, with_over
from skyband.query.kinds import Query
from skyband.query.options import ALL, Options
from skyband.tables.changes import (
    Labels,
    QueryNames,
    answer_names,
    change_names,
    change_table,
    column_types,
    common_type,
    key_names,
    of_pair,
)
from skyband.tables.groups import Groups
from skyband.tables.input import time_unit
from skyband.tables.push import BEGINNING, Push
from skyband.tables.subscriptions import Subscriptions, owner_of, slots_key

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass
class State:
    """Everything a Monitor knows."""

    options: Options
    groups: dict[tuple[Any, ...], Groups] = field(default_factory=dict)
    adapters: Book = field(default_factory=Book)  # by query, in order of registration
    subscriptions: dict[str, Subscriptions] = field(default_factory=dict)  # of the queries with `Each`
    subscribed: Book = field(default_factory=Book)  # by subscription (tables.subscriptions.key_of)
    subscriber_type: pa.DataType | None = None  # of the ids of subscribers, once seen
    types: dict[str, pa.DataType] = field(default_factory=dict)  # of the input's columns, once seen
    clock: int = BEGINNING
    ahead: Any = None  # `advance` before the type of time was known
    serial: int = 0  # of the next row
    counters: dict[str, Any] = field(default_factory=lambda: {"arrivals": 0, "late": 0, "rejected": {}})
    traits: dict[Any, Query] | None = None  # queries with different columns of changes; None: not known
    query_names: QueryNames | None = None  # as changes name the queries; None: they have changed
    output_types: tuple[Any, Any, Any] = (None, None, None)  # of changes, with what they were derived from
    commit: Commit = field(default_factory=Commit)  # what changes any of this runs in it
    over: dict[str, Over] = field(default_factory=dict)  # loops over the answers of these queries
    source: str | None = None  # the query over whose answers this is
    entered: int = 0  # and how many objects have entered them
    order: list[str] = field(default_factory=list)  # all queries, those over answers too, as they were registered

    def __post_init__(self) -> None:
        check_device(self.options.device)

    def standing(self) -> list[Adapter]:
        """The adapters, each once, in order of registration; then those of subscriptions."""
        return [*self.adapters.each_once(), *self.subscribed.each_once()]

    def taking(self) -> list[Adapter]:
        """The adapters that take rows: a query with `Each` does only while it has no subscription."""
        if not self.subscriptions:
            return self.standing()
        return [adapter for adapter in self.standing() if not getattr(adapter, "subscribed", False)]

    def book(self, adapter: Adapter) -> Book:
        """Where an adapter is listed: with those of queries, or of subscriptions."""
        owned = next(iter(adapter.queries), "") in self.subscribed
        return self.subscribed if owned else self.adapters

    def adapter(self, name: str) -> Adapter:
        """The adapter of a query."""
        if not isinstance(name, str) or name not in self.adapters:
            standing = ", ".join(self.adapters) or "none"
            raise QueryError(f"no query called {name!r} is standing. Standing: {standing}.")
        return self.adapters[name]

    @property
    def queries(self) -> dict[str, Query]:
        """The standing queries by name, in order of registration."""
        return {name: adapter.queries[name] for name, adapter in self.adapters.items()}

    @property
    def unit(self) -> int | None:
        """Nanoseconds of a unit of time; None: integers, or not known yet."""
        type_ = None if self.options.time is None else self.types.get(self.options.time)
        return None if type_ is None else time_unit(type_)

    def settled(self, columns: Iterable[str]) -> Options:
        """The options, with columns of a first batch in place of keep="*"."""
        if self.options.keep != (ALL,):
            return self.options
        options = self.options.settled(columns, self.queries.values())
        names = change_names(self.queries.values(), options.kept, timed=False)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise BatchError(f'keep="*": {twice!r} would be two columns of a change. Rename it, or name what to keep.')
        return options

    def settle(self, columns: Iterable[str]) -> None:
        """Keep the columns of the first batch, where keep="*" stood for them."""
        options = self.settled(columns)
        if options is not self.options:
            self.options, self.query_names = options, None
            for adapter in self.standing():
                adapter.options = adapter.output.options = options

    def count(self, rejected: Mapping[str, int]) -> None:
        """Count rejected rows by reason."""
        counted = self.counters["rejected"]
        for reason, count in rejected.items():
            counted[reason] = counted.get(reason, 0) + count

    def took(self, push: Push) -> None:
        """All adapters have taken a push."""
        self.clock, self.ahead = push.clock, None
        self.serial += push.batch.rows
        self.share_windows()

    def share_windows(self, *, everything: bool = False) -> None:
        """Let scorings of pairs have one window, in the groups of the last push or in all."""
        share_windows(self.standing(), everything=everything)

    def reading(self, adapters: Iterable[Adapter]) -> AbstractContextManager[None]:
        """The context to read what these adapters keep: a commit where that tidies it up."""
        return self.commit if any(adapter.reads_change for adapter in adapters) else nullcontext()

    def new_groups(self) -> AbstractContextManager[None]:
        """Groups that are new in a batch; they are forgotten if it is refused."""
        return self._reverting() if any(self.groups) else nullcontext()

    @contextmanager
    def _reverting(self) -> Iterator[None]:
        number, marks = self.commit.number, [(groups, groups.mark()) for groups in self.groups.values()]
        try:
            yield
        except BaseException:
            if self.commit.broken is None and self.commit.number == number:  # else they are part of the state
                with self.commit:
                    for groups, mark in marks:
                        groups.revert(mark)
            raise

    # --- columns out

    def change_types(self) -> dict[str, pa.DataType]:
        """The columns of changes with their types."""
        names = self.known_names()
        inputs = (self.types, self.shown_types(), self.key_types())
        if self.output_types[0] is not names or self.output_types[1] != inputs:
            timed = self.options.time is not None
            columns = change_names(self.queries.values(), self.options.kept, timed, len(inputs[2]))
            self.output_types = (names, inputs, column_types(columns, self._reported_types()))
        return self.output_types[2]  # type: ignore[no-any-return]

    def known_names(self) -> QueryNames:
        """The standing queries, as changes name them."""
        if self.query_names is None or self.query_names.names != list(self.adapters):
            self.query_names = QueryNames(list(self.adapters), self.subscriptions)
        return self.query_names

    def answer_types(self, query: Query, keys: Sequence[Any] = ()) -> dict[str, pa.DataType]:
        """The columns of an answer with their types; keys: those of the keys that are reported."""
        names = answer_names([query], self.options.kept, self.options.time is not None, len(keys))
        own = dict(zip(key_names(len(keys)), keys, strict=True))
        return column_types(names, self._reported_types() | own)

    def changes(self, pieces: list[Columns], adapters: Sequence[Adapter]) -> pa.Table:
        """One table from the changes of several adapters."""
        names, known = [adapter.names_in_order for adapter in adapters], self.known_names()
        shown = [of_members(piece) for piece in pieces] if self.over else pieces
        labels = [self.labels(adapter, known) for adapter in adapters]
        table = change_table(shown, known, labels, self.change_types())
        return with_over(self, table, pieces, names, labels) if self.over or self.options.inner else table

    def labels(self, adapter: Adapter, names: QueryNames) -> Labels:
        """How changes name the queries of an adapter."""
        if isinstance(adapter, SubscribedAdapter):
            return names.of_slots(adapter.owner, adapter.table.entry)
        return names.labels(adapter.names_in_order)

    def mark_sources(self) -> None:
        """Let the adapters of queries over whose answers others ask report what these need."""
        for source in self.over:
            for adapter in (self.adapters[source], *self.subscribed_to(source)):
                adapter.output.sourced = True

    def forget_over(self, source: str) -> None:
        """Nobody asks over the answers of this query any more; `mark_sources` marks what serves other sources again."""
        del self.over[source]
        for adapter in (self.adapters[source], *self.subscribed_to(source)):
            adapter.output.sourced = False

    def asked_of(self, adapter: Adapter) -> set[str]:
        """The sources of questions over answers that an adapter serves, itself or by subscriptions."""
        if isinstance(adapter, SubscribedAdapter):
            return self.over.keys() & {adapter.owner}
        return self.over.keys() & {owner_of(name) or name for name in adapter.queries}

    def subscribed_to(self, name: str) -> list[Adapter]:
        """The adapters of the subscriptions of a query."""
        if name not in self.subscriptions:
            return []
        keys = [*self.subscriptions[name].names(), slots_key(name)]
        return list(dict.fromkeys(self.subscribed[key] for key in keys if key in self.subscribed))

    def shown_types(self, *, seen: Iterable[Adapter] = ()) -> dict[str, Any]:
        """The types of the columns of `select`; a QueryError where two of one name differ.

        seen: adapters that have validated a batch which is not taken yet.
        """
        found: dict[str, Any] = {}
        new = {id(adapter) for adapter in seen}
        for adapter in self.standing():
            types = adapter.seen_types() if id(adapter) in new else adapter.output.shown_types()
            for name, type_ in types.items():
                known = found.setdefault(name, type_)
                if pa.types.is_null(known):
                    found[name] = type_
                elif known != type_ and not pa.types.is_null(type_):
                    raise QueryError(f"select: {name!r} is {known} in one query and {type_} in another. Rename one.")
        return found

    def id_type(self, types: Mapping[str, Any], name: str | None = None, query: Query | None = None) -> Any:
        """The type of the ids of all queries' objects; a QueryError where they differ.

        With a name: of all others, and of this query, which is to stand under it.
        """
        found: dict[Any, str] = {}
        for adapter in self.adapters.each_once():
            who = next((one for one in adapter.queries if one != name), None)
            type_ = pa.null() if who is None else adapter.output.id_type(dict(types))
            if who is not None and not pa.types.is_null(type_):
                found.setdefault(type_, who)
        if name is not None and query is not None:
            type_ = self._id_type_of(query, types)
            if not pa.types.is_null(type_):
                found.setdefault(type_, name)
        if len(found) > 1 and not self.options.inner:
            (one, first), (other, second) = list(found.items())[:2]
            raise QueryError(
                f"the ids of {first!r} are {one} and those of {second!r} are {other}, but `id` is one column. "
                "Give them Monitors of their own, or convert a column."
            )
        if not found and self.options.id is None and not self.adapters:
            return pa.int64()
        return common_type(found)

    def _id_type_of(self, query: Query, types: Mapping[str, Any]) -> Any:
        """The type of the ids of a query's objects; null: not known yet."""
        of = getattr(query, "of_columns", ())
        if of:
            fields = [(name, types.get(name, pa.null())) for name in of]
            known = all(name in types for name in of)
            return fields[0][1] if len(fields) == 1 else pa.struct(fields) if known else pa.null()
        return pa.int64() if self.options.id is None else types.get(self.options.id, pa.null())

    def own_id_type(self, name: str) -> dict[str, Any]:
        """The type of the ids of one query over answers, which may be others than those of the rest."""
        return {"id": self.adapter(name).output.id_type(self.types)} if self.options.inner else {}

    def _reported_types(self) -> dict[str, pa.DataType]:
        options = self.options
        sources = {name: options.roles[name] for name in options.kept}
        for adapter in self.standing():
            sources |= dict(zip(adapter.groups.names, adapter.groups.inputs, strict=True))
        types = {name: self.types.get(source, pa.null()) for name, source in sources.items()}
        types["id"] = self.id_type(self.types)
        for name in ("id", *options.kept):
            types |= dict.fromkeys(of_pair(name), types[name])
        types["subscriber"] = self.subscriber_type or pa.null()
        types |= self.shown_types()
        types["time"] = pa.null() if options.time is None else self.types.get(options.time, pa.null())
        return types | self.key_types()

    def key_types(self) -> dict[str, pa.DataType]:
        """The types of the keys that are reported: a union of types where those of queries differ."""
        types: dict[str, list[pa.DataType]] = {}
        for adapter in self.standing():
            for name, type_ in zip(key_names(len(adapter.shown_keys)), adapter.shown_keys, strict=True):
                types.setdefault(name, []).append(type_)
        return {name: common_type(found) for name, found in types.items()}
