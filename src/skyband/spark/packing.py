"""Tables as bytes between the stages, and the two mappers that write and read them.

The first mapper sends each shard what it needs of a partition's rows, packed into few large values, and the clock:
the largest time of any row that any query accepts. The last mapper turns packed changes back into rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.batch import Batch
from skyband.columns import lent, plain
from skyband.monitor import Monitor
from skyband.spark.plan import Plan, shard_of

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
    examiner = Monitor(plan.queries, **plan.monitor_options())
    families = [(per, plan.wanted(queries)) for per, queries in plan.families().items()]
    labels = plan.labels()
    clock: Any = None
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        table = _in_utc(pa.Table.from_batches([batch]))
        latest = _latest(examiner, table, plan.options.time)
        clock = latest if clock is None or (latest is not None and latest > clock) else clock
        waiting.append(table)
        rows += table.num_rows
        if rows >= _CHUNK:
            yield from _send(plan, families, labels, pa.concat_tables(waiting))
            waiting, rows = [], 0
    if rows:
        yield from _send(plan, families, labels, pa.concat_tables(waiting))
    if clock is not None:
        said = to_bytes(pa.table({"clock": pa.array([clock])}))
        yield _message(labels, said, None)


def _latest(examiner: Monitor, table: Any, time: str | None) -> Any:
    """The largest time that any query accepts, as a scalar of the column's type; None: there is none."""
    if time is None or not table.num_rows:
        return None
    seen = examiner.examine(Batch(table))
    if seen.moments is None or not seen.accepted.any():
        return None
    row = int(np.where(seen.accepted, seen.moments, np.iinfo(np.int64).min).argmax())
    return table.column(time)[row].as_py()


def _send(plan: Plan, families: list[Any], labels: list[str], table: Any) -> Iterator[Any]:
    for per, wanted in families:
        needed = table.select(list(wanted))
        mine = [label for label in labels if plan.place(label)[0] == per]
        if not per:
            blob = to_bytes(needed)
            for label in mine:
                yield _message([label], None, blob)
            continue
        shards = shard_of([plain(table.column(name)) for name in per], plan.shards)
        for label in mine:
            rows = np.flatnonzero(shards == plan.place(label)[1])
            if len(rows):
                yield _message([label], None, to_bytes(needed.take(lent(rows))))


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
