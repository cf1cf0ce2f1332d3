"""Tables that a request brings: JSON (a list of rows, or an object of columns) or a stream of Arrow.

Nothing of a table is trusted: its bytes, brackets, columns and rows are counted before they are used, Arrow's buffers
are checked, and compressed ones are refused, since a few bytes of those can stand for any number.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from skyband.dashboard.arguments import parsed
from skyband.dashboard.guard import ARROW
from skyband.errors import BatchError, QueryError
from skyband.tables.input import to_table
from skyband.tables.subscription_table import culprit

_LONGEST = 64 * 1024  # bytes of a message's metadata: some 1,000 columns
_COMPRESSION, _DATA, _HEADER = 3, 1, 2  # fields of Arrow's RecordBatch, DictionaryBatch and Message, from 0


def table_of(id: str, data: bytes, kind: str, most: int) -> Any:
    """The table of a body of this content type, with at most so many rows; id: the column of subscribers."""
    table = _from_arrow(data, most) if kind == ARROW else _from_json(data, id)
    if table.num_rows > most:
        raise too_many(table.num_rows, most)
    return table


def too_many(rows: int, most: int) -> QueryError:
    return QueryError(
        f"{rows:,} rows: this server takes {most:,} subscriptions in all. Start it with --subscriptions {rows}."
    )


def ids_of(data: bytes, kind: str, most: int) -> Any:
    """The ids to unsubscribe: a JSON list, an object {"ids": [...]}, or the first column of Arrow."""
    if kind == ARROW:
        table = _from_arrow(data, most)
        if not table.num_columns:
            raise QueryError("the table has no column. Send one with the ids of subscribers.")
        return table.column(0)
    found = parsed(data)
    if isinstance(found, dict) and found.keys() == {"ids"}:
        found = found["ids"]
    if not isinstance(found, list):
        raise QueryError('send a list of ids: ["ann", "bob"], or {"ids": ["ann", "bob"]}.')
    return found


def _from_json(data: bytes, id: str) -> Any:
    found = parsed(data)
    rows = isinstance(found, list) and all(isinstance(row, dict) for row in found)
    columns = isinstance(found, dict) and all(isinstance(column, list) for column in found.values())
    if not rows and not columns:
        raise QueryError(
            'a table is a list of rows, [{"subscriber": "ann", "k": 3}, ...], or an object of columns, '
            '{"subscriber": ["ann", ...], "k": [3, ...]}.'
        )
    try:
        return to_table(found)
    except BatchError as error:
        raise QueryError(f"{culprit(found, id)}{error} Nothing was taken.") from None


# --- Arrow


def _from_arrow(data: bytes, most: int) -> Any:
    try:
        _refuse_wild(data)
        batches, rows = [], 0
        with pa.ipc.open_stream(data) as reader:
            schema = reader.schema
            if strange := [field for field in schema if not _plain(field.type)]:
                raise QueryError(
                    f"column {strange[0].name[:50]!r} holds {str(strange[0].type)[:100]}. A table of subscriptions has "
                    "numbers, texts, booleans, times, durations, and lists of numbers."
                )
            for batch in reader:
                rows += batch.num_rows
                if rows > most:
                    raise too_many(rows, most)
                batch.validate(full=True)
                batches.append(batch)
        return pa.Table.from_batches(batches, schema)
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError, MemoryError) as error:
        if isinstance(error, QueryError):
            raise
        raise QueryError(f"this is no stream of Arrow ({str(error)[:200]}). Send one, or JSON.") from None


def _plain(type_: Any) -> bool:
    """Whether a column of a table of subscriptions may have this type."""
    is_ = pa.types
    if is_.is_dictionary(type_):
        type_ = type_.value_type
        return bool(is_.is_string(type_) or is_.is_large_string(type_))
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        return bool(is_.is_floating(type_.value_type) or is_.is_integer(type_.value_type))
    return bool(is_.is_primitive(type_) or is_.is_string(type_) or is_.is_large_string(type_) or is_.is_decimal(type_))


def _refuse_wild(data: bytes) -> None:
    """Refuse messages with long metadata or compressed buffers, before any column is made of them."""
    reader = pa.ipc.MessageReader.open_stream(data)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        metadata = message.metadata.to_pybytes() if message.metadata.size <= _LONGEST else None
        if metadata is None:
            raise QueryError(f"the description of the table has more than {_LONGEST:,} bytes. Send fewer columns.")
        if message.type == "schema":
            continue
        header = _field(metadata, struct.unpack_from("<I", metadata, 0)[0], _HEADER)
        batch = header if message.type == "record batch" else _field(metadata, header, _DATA)
        if _field(metadata, batch, _COMPRESSION):
            raise QueryError("its buffers are compressed. Send them as they are: IpcWriteOptions(compression=None).")


def _field(data: bytes, table: int, number: int) -> int:
    """Where the table in a field of a flatbuffer's table begins; 0: it has none. (Not used on numbers and lists.)"""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if vtable < 0 or 4 + 2 * number >= struct.unpack_from("<H", data, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0]
    return table + offset + struct.unpack_from("<I", data, table + offset)[0] if offset else 0
