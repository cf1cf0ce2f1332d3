"""Adapters for plain queries: a new one or one that they share, and the numbers with which a new query goes on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from skyband.engines.adapter import Adapter
from skyband.engines.kinds import adapter_class
from skyband.engines.numbering import Start
from skyband.engines.numbers_at_rest import NumbersAtRest
from skyband.engines.registry import MANY, choose, choose_for_keys
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.ordered_adapter import OrderedAdapter
from skyband.engines.topk.scorings import BLOCK, auto_key
from skyband.engines.topk.similar_adapter import slots_kind
from skyband.engines.topk.subscribed_adapter import SubscribedAdapter
from skyband.engines.topk.window_adapter import WindowAdapter
from skyband.monitor.book import Book
from skyband.monitor.families import alike, families_of
from skyband.monitor.state import State
from skyband.query.kinds import Query, TopK
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.orders import ranks_by_key
from skyband.tables.subscriptions import owner_of as key_owner

Fresh = dict[Any, Adapter]  # adapters where nothing has arrived yet, by what their queries share


class Placement:
    """How plain queries and subscriptions find their adapters."""

    state: State

    def place(self, book: Book, name: str, query: Query, numbers: Start, fresh: Fresh) -> None:
        """Give a plain query an adapter, in this book: one that has not started yet, or a new one."""
        state = self.state
        groups, kind = state.groups[query.grouping], adapter_class(query, choose(query))
        if issubclass(kind, WindowAdapter):
            window = WindowAdapter(
                cast(TopK, query), groups, state.options, numbers, born=state.serial
            )  # they come together at the first arrival
            window.queries[name] = query
            book[name] = window
            return
        key = kind.key(query)
        adapter = fresh.get(key)
        if adapter is None or not adapter.is_fresh:
            adapter = kind(query, groups, state.options, numbers)
            fresh[key] = adapter
        adapter.queries[name] = query
        book[name] = adapter

    def numbers(self, query: Query) -> Start:
        """The next numbers of a new query: per group the largest that any query with the same `per` has reached."""
        groups = self.state.groups.setdefault(query.grouping, Groups(query.per_columns, query.per_inputs))
        numbers = self.largest(self.state.standing() if self.state.serial else (), groups)
        return numbers._replace(since=self.state.entered)

    def largest(self, adapters: Iterable[Adapter], groups: Groups) -> Start:
        """Per group the largest of the next numbers of these adapters."""
        numbers = Start(np.zeros(groups.total, np.int64), NumbersAtRest(1))
        for adapter in adapters:
            if adapter.groups is groups:
                np.maximum(numbers.counts, adapter.largest(), out=numbers.counts)
                numbers.at_rest.add(adapter.numbering.at_rest)
        return numbers

    def find_keys(self, batch: Batch) -> None:
        """Before their first arrival: queries whose only key is no number, in this batch, rank by it as an order."""
        found: Fresh = {}
        if all(adapter.engine is not None for adapter in self.state.standing()):
            return
        both = [(book, name) for book in (self.state.adapters, self.state.subscribed) for name in list(book)]
        for book, name in both:
            adapter = book[name]
            query = adapter.queries[name]
            slots = isinstance(adapter, SubscribedAdapter)
            if adapter.engine is not None or not isinstance(query, TopK) or query.each or slots:
                continue
            if isinstance(adapter, OrderedAdapter) and adapter.labels:
                continue
            if not ranks_by_key(batch, query.by) or (algorithm := choose_for_keys(query)) is None:
                continue
            key = name if algorithm == "SORTED" else (key_owner(name), *OrderedAdapter.key(query), adapter.groups.names)
            with self.state.commit:
                del adapter.queries[name]
                if key not in found or len(found[key].queries) == found[key].most:
                    start = adapter.numbering.start()
                    found[key] = OrderedAdapter(
                        query, adapter.groups, adapter.options, start, algorithm=algorithm, keyed=True
                    )
                found[key].queries[name] = query
                book[name] = found[key]

    def _gather(self, adapters: Book) -> None:
        """Bring queries together, or subscriptions of one query, before their first arrival, that one engine can serve.

        Those that differ only in the numbers of their scoring become families; those that look at one window share it,
        and auto lets them if there are many.
        """
        options = self.state.options
        alone = {
            name: adapter
            for name, adapter in adapters.items()
            if type(adapter) is TopKAdapter and adapter.engine is None and adapter.scored and not adapter.crowded
        }
        for names in families_of(alone):
            first = alone[names[0]]
            start, slots = first.numbering.start(), first.algorithm == BLOCK
            kind = slots_kind(first.example) if slots else TopKAdapter
            family = kind(first.example, first.groups, options, start, **({} if slots else {"family": True}))
            _share(adapters, family, names)
            for name in names:
                del alone[name]
        alone = {name: adapter for name, adapter in alone.items() if len(adapter.queries) == 1}
        for names in alike(alone, lambda adapter: auto_key(cast(TopK, adapter.example)), MANY):
            first, born = alone[names[0]], self.state.serial
            start = first.numbering.start()
            window = WindowAdapter(first.example, first.groups, options, start, algorithm="SMA", born=born)
            _share(adapters, window, names)
        windows = {
            name: adapter
            for name, adapter in adapters.items()
            if isinstance(adapter, WindowAdapter) and adapter.engine is None
        }
        for names in alike(windows, lambda adapter: cast(WindowAdapter, adapter).share, 2):
            _share(adapters, windows[names[0]], names)


def _share(book: Book, adapter: Adapter, names: list[str]) -> None:
    """Let an adapter serve these queries, each of which has one of its own."""
    adapter.queries = {name: book[name].queries[name] for name in names}
    book |= dict.fromkeys(names, adapter)
