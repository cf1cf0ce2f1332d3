"""Subscriptions of one query with `Each`: their ids and values by column, as they come and go.

A table of them is validated column by column (subscription_table.py). An entry is one subscription, numbered in the
order of subscription. Memory is that of the columns, O(1) amortised each; ids that are texts have a Python object each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.query.kinds import Query
from skyband.query.windows import Session
from skyband.tables.columns import Column, grown
from skyband.tables.groups import Groups
from skyband.tables.subscription_table import Known, Rows, Sort, read_table
from skyband.tables.vectors import as_lists

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
MARK = "\0"  # between the name of a query and the entry of a subscription
SLOTS = "slots"  # in the place of an entry: all subscriptions that share an engine as columns


def key_of(name: str, entry: int) -> str:
    """The name of one subscription among all queries."""
    return f"{name}{MARK}{entry}"


def slots_key(name: str) -> str:
    """The name of all subscriptions of a query that share an engine as columns."""
    return f"{name}{MARK}{SLOTS}"


def owner_of(key: str) -> str | None:
    """The query whose subscription has this name; None: it is the name of a query."""
    owner, mark, _ = key.rpartition(MARK)
    return owner if mark else None


def entry_of(key: str) -> int:
    """The entry of the subscription with this name."""
    return int(key.rpartition(MARK)[2])


class Subscriptions:
    """The subscriptions of one query."""

    def __init__(self, name: str, query: Query) -> None:
        self.name = name
        self.query = query
        self.sort: Sort | None = "duration" if isinstance(query.window, Session) and query.window.silence.each else None
        self.count = 0  # subscriptions now
        self.size = 0  # entries
        self.live: Bools = np.empty(0, np.bool_)  # by entry
        self.shared: Bools = np.empty(0, np.bool_)  # by entry: whether it is a slot of the query's engine
        self.ids: Column | None = None  # by entry
        self.columns: dict[str, Column] = {}
        self.apart: str | None = None  # why they do not share an engine as columns; None: they do, or none has come
        self.unknown = 0  # ids that were to be unsubscribed and were not there
        self.fresh: dict[Any, Any] = {}  # adapters where nothing has arrived yet, by what their queries share
        self._known = Groups(("subscriber",))
        self._mark = self._known.mark()  # of the ids that have ever been there; `find` may be interrupted
        self._entry: Ints = np.empty(0, np.int64)  # by code of an id; -1: none

    @property
    def entries(self) -> Ints:
        """Of the present subscriptions, in the order of subscription."""
        return np.flatnonzero(self.live)

    def names(self, entries: Ints | None = None) -> list[str]:
        """The names among all queries of those of these subscriptions (None: all) that are plain queries."""
        there = self.entries if entries is None else entries
        return [key_of(self.name, entry) for entry in there[~self.shared[there]].tolist()]

    def subscribers(self, entries: Ints) -> Any:
        """The ids of these entries."""
        return pa.nulls(len(entries)) if self.ids is None else self.ids.take(entries)

    def find(self, ids: Any) -> Ints:
        """The entries of these ids; -1: there is none."""
        if not self.count or not len(ids):
            return np.full(len(ids), -1)
        self._known.revert(self._mark)
        codes = self._known.codes([ids], len(ids))
        self._known.revert(self._mark)
        known = codes < self._known.total
        return np.where(known, self._entry[np.where(known, codes, 0)], -1)

    def add(self, rows: Rows) -> Ints:
        """Take new subscriptions, whose ids are not there; returns their entries."""
        entries = np.arange(self.size, self.size + len(rows))
        self.size += len(rows)
        self._known.revert(self._mark)
        codes = self._known.codes([rows.ids], len(rows))
        self._mark = self._known.mark()
        self._entry = grown(self._entry, self._known.total)
        self._entry[codes] = entries
        self.live, self.shared = (grown(one, self.size) for one in (self.live, self.shared))
        self.live[entries] = True
        self.count += len(rows)
        self.sort = rows.sort or self.sort
        if self.ids is None or pa.types.is_null(self.ids.type):
            self.ids = Column(rows.ids.type)
        self.ids.append(rows.ids)
        for name, column in rows.columns.items():
            self.columns.setdefault(name, Column(column.type)).append(column)
        return entries

    def remove(self, entries: Ints) -> None:
        """End these subscriptions."""
        if not len(entries):
            return
        self.live[entries] = self.shared[entries] = False
        self.count -= len(entries)
        self._known.revert(self._mark)
        codes = self._known.codes([self.subscribers(entries)], len(entries))
        self._entry[codes] = -1

    @property
    def has_gaps(self) -> bool:
        """Whether there are entries of subscriptions that have ended."""
        return self.count < self.size

    def table(self) -> Any:
        """All that subscriptions brought, for `restored`; there must be no gaps."""
        columns = {name: column.all() for name, column in self.columns.items()}
        if self.sort == "duration":
            columns |= {
                need.column: columns[need.column].cast(pa.duration("ns"))
                for need in self.query.needs
                if need.role == "size"
            }
        vectors = {need.column for need in self.query.needs if need.role in ("vector", "direction")}
        columns |= {name: as_lists(columns[name]) for name in vectors & columns.keys()}
        ids = pa.nulls(0) if self.ids is None else self.ids.all()
        return pa.Table.from_arrays([ids, *columns.values()], names=["", *columns])

    def restored(self, table: Any) -> None:
        """Take the subscriptions of a snapshot, validated like any others."""
        if table.num_rows:
            self.add(read(table, self, "", None))
        else:  # nobody is there now
            named = {field.name: field.type for field in table.schema if field.name in self.query.each}
            self.columns = {name: Column(pa.int64() if pa.types.is_duration(t) else t) for name, t in named.items()}

    @property
    def is_sparse(self) -> bool:
        """Whether most entries are of subscriptions that have ended, so that `compact` pays."""
        return self.size > 1024 + 2 * self.count

    def compact(self) -> Ints:
        """Number the present subscriptions anew, in their order; returns their old entries."""
        kept = self.entries
        ids = self.subscribers(kept)
        for column in (*([] if self.ids is None else [self.ids]), *self.columns.values()):
            column.thin(kept)
        self.live, self.shared, self.size = np.ones(len(kept), np.bool_), self.shared[kept], len(kept)
        self._known, self._entry = Groups(("subscriber",)), np.arange(len(kept))
        if len(kept):
            self._known.codes([ids], len(kept))
        self._mark = self._known.mark()
        return kept

    def taken(self, entries: Ints) -> dict[str, Any]:
        """The values of these subscriptions by column."""
        return {name: column.take(entries) for name, column in self.columns.items()}

    def values(self, entries: Ints) -> list[dict[str, Any]]:
        """The values of these subscriptions, as a query binds them."""
        return values_of(self.taken(entries), self.query, self.sort)

    def rows(self, query: Query) -> Rows:
        """The present subscriptions as a table for another query that needs no other columns."""
        there = self.entries
        columns = {name: self.columns[name].take(there) for name in query.each}
        return Rows(
            self.subscribers(there), columns, self.sort if any(need.role == "size" for need in query.needs) else None
        )

    @property
    def nbytes(self) -> int:
        columns = [*self.columns.values(), *([] if self.ids is None else [self.ids])]
        return sum(column.nbytes for column in columns) + self.live.nbytes + self._entry.nbytes


def values_of(columns: Mapping[str, Any], query: Query, sort: Sort | None) -> list[dict[str, Any]]:
    """Columns of values as one mapping for each subscription."""
    each = {name: column.to_pylist() for name, column in columns.items()}
    for size in {need.column for need in query.needs if need.role == "size" and sort == "duration"}:
        each[size] = [np.timedelta64(length, "ns") for length in each[size]]
    return [dict(zip(each, row, strict=True)) for row in zip(*each.values(), strict=True)]


def read(given: Any, subscriptions: Subscriptions, id: str, id_type: Any) -> Rows:
    """Validate a table for these subscriptions; id_type: of the ids of subscribers so far, None: there are none."""
    types = {name: column.type for name, column in subscriptions.columns.items()}
    return read_table(given, Known(subscriptions.name, subscriptions.query, subscriptions.sort, types, id_type), id)
