"""Tables as bytes between the stages, and the two mappers that write and read them.

The first mapper sends each shard what it needs of a partition's rows, packed into few large values, and the clock:
the largest time of any row that any query accepts. The last mapper turns packed changes back into rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.batch import Batch, time_unit, times
from skyband.columns import lent, plain
from skyband.groups import Groups
from skyband.monitor import Monitor
from skyband.spark.plan import CONTROL, Plan, shard_of

PACKED = "shard string, clock binary, blob binary"
_CHUNK = 1 << 16  # rows that are packed together


def to_bytes(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: bytes) -> Any:
    return pa.ipc.open_stream(data).read_all()


def pack(plan: Plan, batches: Iterator[Any]) -> Iterator[Any]:
    """The mapper before the shuffle."""
    names = list(plan.wanted(plan.queries))
    senders = [Sender(plan, per) for per in plan.families()]
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(_in_utc(pa.Table.from_batches([batch]).rename_columns(names)))
        rows += batch.num_rows
        if rows >= _CHUNK:
            for sender in senders:
                yield from sender.send(pa.concat_tables(waiting))
            waiting, rows = [], 0
    if rows:
        for sender in senders:
            yield from sender.send(pa.concat_tables(waiting))
    clocks = [sender.clock for sender in senders if sender.clock is not None]
    said = to_bytes(max(clocks, key=moment_of)) if clocks else None
    yield _message([CONTROL, *plan.labels()], said, None)  # every shard hears of every trigger


class Sender:
    """One family's part of the mapper: what of a partition's rows its shards must see."""

    def __init__(self, plan: Plan, per: tuple[str, ...]) -> None:
        self.plan, self.per = plan, per
        self.queries = plan.families()[per]
        self.wanted = plan.wanted(self.queries)
        self.labels = [label for label in plan.labels() if plan.place(label)[0] == per]
        self.examiner = Monitor(self.queries, **plan.monitor_options())
        self.timed = all(query.window.timed for query in self.queries.values())
        self.clock: Any = None  # the largest time that any of the queries accepts, as a table of one row

    def send(self, rows: Any) -> Iterator[Any]:
        table = in_order(rows.select(list(self.wanted)), self.plan.order)
        if self.plan.options.time is not None:
            table = self._thinned(table)
        if not self.per:
            blob = to_bytes(table)
            for label in self.labels:
                yield _message([label], None, blob)
            return
        shards = shard_of([plain(table.column(name)) for name in self.per], self.plan.shards)
        for label in self.labels:
            mine = np.flatnonzero(shards == self.plan.place(label)[1])
            if len(mine):
                yield _message([label], None, to_bytes(table.take(lent(mine))))

    def _thinned(self, table: Any) -> Any:
        """Move the clock; in time windows leave out what can never be an answer (kernels/lookahead.py has the proof).

        Other partitions' rows of the trigger may come between these, which only adds objects above and dominators.
        Rejected rows stay: their shard counts them.
        """
        seen = self.examiner.examine(Batch(table))
        if seen.moments is None or not seen.accepted.any():
            return table
        row = int(np.where(seen.accepted, seen.moments, np.iinfo(np.int64).min).argmax())
        latest = table.select([self.plan.options.time]).slice(row, 1).rename_columns(["clock"])
        self.clock = latest if self.clock is None else max(latest, self.clock, key=moment_of)
        if not self.timed:
            return table
        groups = Groups(self.per)
        codes = groups.codes_where(seen.accepted, [seen.per[name] for name in self.per])
        unit = time_unit(table.schema.field(self.plan.options.time).type)
        needed = np.zeros(table.num_rows, np.bool_)
        for home, one in zip(seen.standing, seen.judged, strict=True):
            needed |= ~one.accepted | home.needed(one, codes, groups.total, seen.moments, unit)
        return table.filter(lent(needed))


def moment_of(clock: Any) -> int:
    """A clock, which is a table of one row, as a number."""
    return int(times(plain(clock.column("clock")), 0)[0][0])


def in_order(table: Any, order: tuple[str, ...]) -> Any:
    """Rows in order of arrival; those that `order` does not tell apart, by all else that they carry."""
    ties = [name for name in table.column_names if name not in order and _sortable(table.schema.field(name).type)]
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in (*order, *ties)]))


def _sortable(type_: Any) -> bool:
    return not (pa.types.is_nested(type_) or pa.types.is_null(type_))


def _message(labels: list[str], clock: bytes | None, blob: bytes | None) -> Any:
    columns = [labels, [clock] * len(labels), [blob] * len(labels)]
    types = [pa.string(), pa.binary(), pa.binary()]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["shard", "clock", "blob"])


def unpack(schema: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """The mapper after the operator: packed changes as rows of the output's schema."""
    for batch in batches:
        for blob in batch.column(0):
            table = from_bytes(blob.as_buffer())
            arrays = [
                plain(table.column(field.name)).cast(field.type)
                if field.name in table.column_names
                else pa.nulls(table.num_rows, field.type)
                for field in schema
            ]
            yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=_CHUNK)


def _in_utc(table: Any) -> Any:
    """Times with a zone as UTC, so that state does not depend on the session's zone."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz not in (None, "UTC"):
            utc = pa.timestamp(field.type.unit, "UTC")
            table = table.set_column(i, pa.field(field.name, utc), table.column(i).cast(utc))
    return table
