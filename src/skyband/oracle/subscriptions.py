"""Subscriptions, as the contract says them: each is a plain query, added when it subscribed.

The query with `Each` itself is a stream that answers nothing. It takes rows while nobody subscribes, and its numbers
are never below those of a subscription that has left.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from skyband.errors import QueryError
from skyband.oracle.objects import Arrival, Row, same
from skyband.oracle.rows import Rejected
from skyband.oracle.scalar import number, too_large
from skyband.oracle.scores import columns_of
from skyband.oracle.stream import Stream
from skyband.query.kinds import Query
from skyband.query.windows import size_of


@dataclass
class Subscribers:
    """The subscriptions of one query with `Each`."""

    query: Query
    keys: dict[Any, str] = field(default_factory=dict)  # of streams, by id of the subscriber, in order of subscription
    ids: dict[str, Any] = field(default_factory=dict)  # the inverse
    given: int = 0  # subscriptions so far

    def key(self, name: str, id: Any) -> str:
        """The name of a new stream."""
        self.given += 1
        key = f"{name} of {self.given}"
        self.keys[same(id)], self.ids[key] = key, id
        return key


class Unsubscribed(Stream):
    """The stream of the query itself. It rejects what no subscription could score, as far as a row shows that."""

    def __init__(self, name: str, query: Query, *rest: Any, **more: Any) -> None:
        super().__init__(name, _anyone(query), *rest, **more)
        by, where = getattr(query, "by", None), getattr(query, "where", None)
        own = (isinstance(by, str) and ":" in by) or bool(getattr(by, "needs", ()))
        self.used = (columns_of(by) | columns_of(where or "0")) if by is not None else set()
        self.needed = columns_of(by) if own and by is not None else set()
        self.compares = own and getattr(by, "word", "") == "similar"  # vectors
        self.open = size_of(query.window) is not None  # how long its window is, subscriptions will say
        self.apart = own or ":" in (where or "")  # whether a subscription's values decide more than that

    def expired(self, arrival: Arrival, clock: Any) -> bool:
        return not self.open and super().expired(arrival, clock)

    def read(self, row: Row) -> Arrival:
        if not self.apart:
            return super().read(row)
        any_value = [1.0] if self.compares else 1
        arrival = super().read(row | dict.fromkeys(self.used, 1) | dict.fromkeys(self.needed, any_value))
        for column in sorted(self.used):
            if too_large(row.get(column)):
                raise Rejected("integer beyond 2^53", column)
        query: Any = self.query
        if self.compares:
            _check_vector(row.get(query.by.column), directed=query.by.metric == "cosine")
            arrival.row = row
            return arrival
        scored = self.needed or columns_of(query.by)
        if any(number(row.get(column)) is None or math.isnan(number(row.get(column)) or 0) for column in scored):
            raise Rejected("score is null or NaN", None)
        arrival.row = row
        return arrival


def _check_vector(vector: Any, *, directed: bool) -> None:
    """Reject what no vector can be compared with, whatever its length."""
    usable = vector is not None and all(x is not None and math.isfinite(x) for x in vector)
    if not usable or (directed and not any(x * x for x in vector)):
        raise Rejected("score is null or NaN", None)


def _anyone(query: Query) -> Query:
    """A query with some values."""
    for word in (0.5, "a"):
        values: dict[str, Any] = {need.column: word if need.role == "literal" else 1 for need in query.needs}
        values |= {need.column: [1.0] for need in query.needs if need.role in ("vector", "direction")}
        try:
            return query.bind(values)
        except QueryError:
            continue
    raise QueryError(f"{query!r}: the oracle finds no values for it.")


def checked(rows: Iterable[Mapping[str, Any]], id: str) -> list[Mapping[str, Any]]:
    """The rows of a table of subscriptions, each with an id of its own."""
    table = list(rows)
    ids = [same(row[id]) for row in table]
    if None in ids or len(set(ids)) < len(ids):
        raise QueryError(f"{id}: an id is null or there twice.")
    return table


def take_over(query: Stream, leaving: Stream) -> None:
    """Let the numbers of a query go on from those of a subscription that leaves."""
    mine, theirs = query.next_numbers(), leaving.next_numbers()
    query.go_on({key: max(mine.get(key, 0), theirs.get(key, 0)) for key in mine | theirs})


class Subscribable:
    """What an oracle does with subscriptions."""

    rejected: Counter[str]
    _streams: dict[str, Stream]
    _subscribers: dict[str, Subscribers]
    _start: Callable[[str, Query], Stream]
    _leave_silently: Callable[[str, list[str]], list[Row]]

    def subscribe(self, name: str, rows: Iterable[Mapping[str, Any]], *, id: str = "subscriber") -> list[Row]:
        """Add a plain query for each row; one that has the same id is dropped first."""
        subscribers = self._subscribers[name]
        asked = [(row[id], subscribers.query.bind(row)) for row in checked(rows, id)]
        left = self._end(name, [who for who, _ in asked if same(who) in subscribers.keys])
        for who, query in asked:
            key = subscribers.key(name, who)
            self._streams[key] = self._start(key, query)
        return left

    def unsubscribe(self, name: str, ids: Iterable[Any]) -> list[Row]:
        """Drop the plain queries of these subscribers; unknown ones are counted."""
        known = [who for who in ids if same(who) in self._subscribers[name].keys]
        self.rejected["unknown subscriber"] += len(list(ids)) - len(known)
        return self._end(name, known)

    def _end(self, name: str, ids: list[Any]) -> list[Row]:
        """End subscriptions: nothing is reported of them, but what their members were over the answers leaves."""
        subscribers = self._subscribers[name]
        ending = [key for who, key in subscribers.keys.items() if who in set(map(same, ids))]
        left = self._leave_silently(name, ending)
        for who in ids:
            key = subscribers.keys.pop(same(who))
            del subscribers.ids[key]
            take_over(self._streams[name], self._streams.pop(key))
        return left

    def _taking(self) -> dict[str, Stream]:
        """The streams that take rows: that of a query with `Each` does only while nobody subscribes."""
        idle = {name for name, subscribers in self._subscribers.items() if subscribers.keys}
        return {name: stream for name, stream in self._streams.items() if name not in idle}
