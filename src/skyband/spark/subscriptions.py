"""Subscriptions on Spark: tables that come with the plan, and streams whose rows subscribe and unsubscribe.

A query without `per` has its subscriptions spread over the shards, by a hash of their ids, and every shard sees all
rows; with `per` every shard has all subscriptions and its own groups. Rows of subscriptions come first in a trigger.
A static table goes with the mappers (a stateful operator cannot be started with more than a megabyte), and one of them
sends it in each trigger; shards that have taken it, which its digest says, do not look at it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.errors import QueryError
from skyband.monitor.loop import Loop
from skyband.query.kinds import Query
from skyband.tables.columns import as_arrow, plain
from skyband.tables.groups import Groups
from skyband.tables.push import what_rows_do
from skyband.tables.subscriptions import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Ints = NDArray[np.int64]
SUBSCRIBER, OP = "subscriber", "op"
FIRST = -2  # in the place of a query set's number: rows of the first query with `Each`; then -3, ...


@dataclass(frozen=True)
class Source:
    """Where the subscriptions of one query come from."""

    columns: tuple[str, ...]  # of the DataFrame
    order: tuple[str, ...]  # those that say in which order the rows of a trigger come
    sort: str | None  # of windows whose size subscriptions bring
    digest: str | None = None  # of a static DataFrame: equal for equal tables; None: a stream
    table: bytes | None = None  # the static DataFrame, as an Arrow stream; only mappers have it

    def rows(self) -> Any:
        """The static table."""
        return pa.ipc.open_stream(self.table).read_all()


def sources(
    given: Mapping[str, DataFrame] | None, queries: Mapping[str, Query], order: tuple[str, ...], streaming: bool
) -> dict[str, Source]:
    """The sources of all queries with `Each`, checked; static tables are read."""
    frames = dict(given or {})
    each = {name: query for name, query in queries.items() if query.each}
    for name in frames:
        if name not in each:
            raise QueryError(
                f"subscriptions={{{name!r}: ...}}: no query of that name has an Each. They are: {[*each]}."
            )
    found: dict[str, Source] = {}
    types = set()
    for name, query in each.items():
        if name not in frames:
            raise QueryError(
                f"{name} has an Each: give its subscriptions, subscriptions={{{name!r}: DataFrame}} with the columns "
                f"{[SUBSCRIBER, *query.each]}."
            )
        frame = frames[name]
        if missing := [column for column in (SUBSCRIBER, *query.each) if column not in frame.columns]:
            raise QueryError(
                f"subscriptions of {name}: the DataFrame has no column {missing[0]!r}. "
                f"It has: {', '.join(frame.columns)}."
            )
        if frame.isStreaming and not streaming:
            raise QueryError(f"subscriptions of {name} are a stream, and the rows are not. Give a static DataFrame.")
        types.add(frame.schema[SUBSCRIBER].dataType)
        found[name] = _source(query, frame, order)
    if len(types) > 1:
        raise QueryError("the columns `subscriber` of several DataFrames have different types. Cast them to one.")
    return found


def _source(query: Query, frame: DataFrame, order: tuple[str, ...]) -> Source:
    from pyspark.sql.types import IntegralType

    size = next((need.column for need in query.needs if need.role == "size"), None)
    sort = None
    if size is not None:
        sort = "count" if isinstance(frame.schema[size].dataType, IntegralType) else "duration"
    ordered = tuple(column for column in order if column in frame.columns)
    names = tuple(dict.fromkeys((SUBSCRIBER, *query.each, *ordered, *([OP] if OP in frame.columns else []))))
    if frame.isStreaming:
        return Source(names, ordered, sort)
    table = frame.select(*(f"`{name}`" for name in (SUBSCRIBER, *query.each))).toArrow()
    table = table.take(pc.sort_indices(table, sort_keys=[(SUBSCRIBER, "ascending")]))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return Source(names, (), sort, hashlib.blake2b(data, digest_size=16).hexdigest(), data)


# --- in a shard


def shares(table: Any, shards: int, per: tuple[str, ...]) -> Iterator[tuple[int, Any]]:
    """The shards that have any of these subscriptions, each with its own."""
    from skyband.spark.plan import hash_groups, shard_of

    if per or shards == 1:
        yield from ((shard, table) for shard in range(shards if table.num_rows else 0))
        return
    mine = shard_of(hash_groups([plain(table.column(SUBSCRIBER))]), shards)
    order = np.argsort(mine, kind="stable")
    bounds = np.searchsorted(mine[order], np.arange(shards + 1))
    for shard in np.flatnonzero(np.diff(bounds)).tolist():
        yield shard, table.take(as_arrow(order[bounds[shard] : bounds[shard + 1]]))


def reconcile(loop: Loop, name: str, table: Any) -> list[Any]:
    """Let subscriptions be those of a static table: what is gone leaves, what is new or changed joins.

    Returns what changes over their answers, where others ask over them.
    """
    subscribed = loop.queries.subscribed
    known = subscribed.of(name)
    rows = read(table, known, SUBSCRIBER, loop.state.subscriber_type)
    entries = known.find(rows.ids)
    same = entries >= 0
    there = np.where(same, entries, 0)
    for column, values in rows.columns.items():
        if same.any():
            equal = pc.equal(known.columns[column].take(there), values).fill_null(False)
            same &= np.asarray(equal, np.bool_)
    gone = np.setdiff1d(known.entries, entries[entries >= 0])
    left: list[Any] = []
    if len(gone):
        left.append(subscribed.unsubscribe(name, known.subscribers(gone)))
    if not same.all():
        left.append(subscribed.subscribe(name, table.filter(as_arrow(~same)), SUBSCRIBER, False))
    return [changes for changes in left if changes is not None and changes.num_rows]


def follow(loop: Loop, name: str, order: tuple[str, ...], pieces: list[Any]) -> list[Any]:
    """Apply a trigger's rows: for each subscriber one after the other, in order.

    Returns what changes over their answers, where others ask over them.
    """
    from skyband.spark.mappers import in_order

    table = in_order(pa.concat_tables(pieces), order)
    deletes, unknown = np.zeros(table.num_rows, np.bool_), np.zeros(table.num_rows, np.bool_)
    if OP in table.column_names:
        op = plain(table.column(OP))
        deletes, unknown = what_rows_do(op)
        unknown &= np.asarray(op.is_valid(), np.bool_)  # null: an insert
    if unknown.any():
        word = table.column(OP)[int(np.argmax(unknown))].as_py()
        raise QueryError(f"subscriptions of {name}: op {word!r} is unknown. Use insert, update or delete.")
    subscribed, left = loop.queries.subscribed, list[Any]()
    for rows in _rounds(plain(table.column(SUBSCRIBER))):
        if (leaving := rows[deletes[rows]]).size:
            left.append(subscribed.unsubscribe(name, plain(table.column(SUBSCRIBER)).take(as_arrow(leaving))))
        if (joining := rows[~deletes[rows]]).size:
            left.append(subscribed.subscribe(name, table.take(as_arrow(joining)), SUBSCRIBER, False))
    return [changes for changes in left if changes is not None and changes.num_rows]


def _rounds(ids: Any) -> Iterator[Ints]:
    """Rows in rounds, in each of which a subscriber is there once; its rows keep their order."""
    codes = Groups((SUBSCRIBER,)).codes([ids], len(ids))
    order = np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.diff(codes[order], prepend=-1))
    place = np.empty(len(codes), np.int64)
    place[order] = np.arange(len(codes)) - np.repeat(begins, np.diff(np.append(begins, len(codes))))
    for number in range(int(place.max(initial=-1)) + 1):
        yield np.flatnonzero(place == number)
