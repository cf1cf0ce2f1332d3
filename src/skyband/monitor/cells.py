"""Cells: columns and arrays of some groups as bytes, which join by laying them end to end.

A cell holds the state of some groups: a frame (how many streams, and the bytes of each), then the streams. A stream is
one array's share, so that any number of cells is read at the price of one: join the streams, look at them as arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.errors import StateError
from skyband.tables.columns import bits_of, is_fixed, valid_of

Ints: TypeAlias = NDArray[np.int64]
_COUNT = struct.Struct("<q")


class Stream(list[Any]):
    """One buffer per cell; width: the bytes of an entry, where all have as many."""

    width = 1


class Cells(list[bytes]):
    """Cells with the same streams; widths: of these."""

    widths: tuple[int, ...] = ()


def write(streams: Sequence[list[Any]], cells: int) -> Cells:
    """Each cell's frame and streams."""
    sizes = np.array([[len(part) for part in stream] for stream in streams], "<i8").reshape(len(streams), cells)
    frames = np.ascontiguousarray(sizes.T)
    count = _COUNT.pack(len(streams))
    found = Cells(b"".join([count, frames[i].tobytes(), *(stream[i] for stream in streams)]) for i in range(cells))
    found.widths = tuple(stream.width if isinstance(stream, Stream) else 1 for stream in streams)
    return found


def read(cells: Sequence[bytes], count: int) -> list[Stream]:
    """The streams of all cells; each should have `count` of them."""
    streams = [Stream() for _ in range(count)]
    begin = _COUNT.size + 8 * count
    for cell in cells:
        if len(cell) < begin or _COUNT.unpack_from(cell)[0] != count:
            raise StateError("a part of the stored state has another layout than the rest. Use an intact copy.")
        sizes = np.frombuffer(cell, "<i8", count, _COUNT.size)
        ends = [begin, *(begin + np.cumsum(sizes)).tolist()]
        if ends[-1] != len(cell) or (sizes < 0).any() or (sizes > len(cell)).any():
            raise StateError("a part of the stored state is cut short. Use an intact copy.")
        view = memoryview(cell)
        for stream, left, right in zip(streams, ends, ends[1:], strict=False):
            stream.append(view[left:right])
    return streams


def by_bytes(cell: bytes, widths: Sequence[int], *, back: bool = False) -> bytes:
    """A cell with the first bytes of all entries of a stream before the second ones, and so on; back: the inverse.

    The high bytes of times, numbers and ids are nearly the same: so they are together, and compress to nothing.
    """
    begin = _COUNT.size + 8 * len(widths)
    parts = [cell[:begin]]
    for width, size in zip(widths, np.frombuffer(cell, "<i8", len(widths), _COUNT.size).tolist(), strict=True):
        part = np.frombuffer(cell, np.uint8, size, begin)
        parts.append(part.reshape((width, -1) if back else (-1, width)).T.tobytes() if width > 1 else part.tobytes())
        begin += size
    return b"".join(parts)


def array_stream(array: NDArray[Any], bounds: Ints) -> Stream:
    """An array cut before these entries."""
    data = without_gaps(np.ascontiguousarray(array)).reshape(-1).view(np.uint8).data
    width = array.itemsize * int(np.prod(array.shape[1:]))
    places = (bounds * width).tolist()
    stream = Stream(data[left:right] for left, right in pairwise(places))
    stream.width = width
    return stream


def without_gaps(array: NDArray[Any]) -> NDArray[Any]:
    """Records with zeros between their fields, where NumPy leaves whatever the memory held before."""
    fields = array.dtype.names
    if fields is None or sum(array.dtype[name].itemsize for name in fields) == array.dtype.itemsize:
        return array
    found = np.zeros(array.shape, array.dtype)
    for name in fields:
        found[name] = array[name]
    return found


def join_array(stream: Stream, dtype: Any) -> NDArray[Any]:
    return np.frombuffer(b"".join(stream), dtype)


def column_streams(column: Any, bounds: Ints) -> list[Stream]:
    """An Arrow array cut before these entries; `column_width` streams."""
    valid = valid_of(column)
    mask = np.ones(len(column), np.bool_) if valid is None else valid
    if is_fixed(column.type):
        return [array_stream(mask, bounds), array_stream(bits_of(column), bounds)]
    if _is_text(column.type):
        plain = column.cast(pa.large_binary()) if valid is None else column.cast(pa.large_binary()).fill_null(b"")
        _, ends, data = plain.buffers()
        offsets = (
            np.frombuffer(ends, np.int64)[plain.offset : plain.offset + len(plain) + 1] if ends else np.zeros(1, int)
        )
        held = memoryview(b"" if data is None else data)
        places = offsets[bounds].tolist()
        text = Stream(held[left:right] for left, right in pairwise(places))
        return [array_stream(mask, bounds), array_stream(np.diff(offsets), bounds), text]
    pieces = [
        column.slice(left, right - left) for left, right in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]
    return [Stream(map(_ipc, pieces))]


def column_width(type_: Any) -> int:
    return 2 if is_fixed(type_) else 3 if _is_text(type_) else 1


def join_column(streams: Sequence[Stream], type_: Any, *, trusted: bool = True) -> Any:
    if len(streams) == 1:
        if not trusted:
            check_uncompressed(streams[0])
        pieces = [pa.ipc.open_stream(pa.py_buffer(piece)).read_all().column(0) for piece in streams[0]]
        chunks = [chunk for piece in pieces for chunk in piece.chunks]
        column = pa.concat_arrays(chunks) if chunks else pa.nulls(0, type_)
        if not trusted:
            if column.type != type_:
                raise StateError("a stored column has another type than its stream. Use an intact copy.")
            column.validate(full=True)
        return column
    mask = join_array(streams[0], np.bool_)
    nulls = None if mask.all() else pa.py_buffer(np.packbits(mask, bitorder="little"))
    if is_fixed(type_):
        boolean = pa.types.is_boolean(type_)
        bits = join_array(streams[1], np.uint8)
        data = np.packbits(bits.astype(np.bool_), bitorder="little") if boolean else bits
        if len(bits) != len(mask) * (1 if boolean else type_.bit_width // 8):
            raise StateError("a stored column is cut short. Use an intact copy.")
        return pa.Array.from_buffers(type_, len(mask), [nulls, pa.py_buffer(data)])
    lengths, text = join_array(streams[1], np.int64), b"".join(streams[2])
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if len(lengths) != len(mask) or ends[-1] != len(text) or (lengths < 0).any() or (lengths > len(text)).any():
        raise StateError("a stored column is cut short. Use an intact copy.")
    return pa.Array.from_buffers(pa.large_binary(), len(mask), [nulls, pa.py_buffer(ends), pa.py_buffer(text)]).cast(
        type_
    )


def _is_text(type_: Any) -> bool:
    kinds = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    return any(kind(type_) for kind in kinds)


def check_uncompressed(pieces: Sequence[Any]) -> None:
    """Refuse Arrow streams whose buffers grow when they are read; ours are not compressed."""
    for piece in pieces:
        for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(piece)):
            if message.type != "schema" and _is_compressed(message.metadata.to_pybytes(), message.type):
                raise StateError("a stored column is compressed. Use what Monitor.snapshot() returned.")


def _is_compressed(metadata: bytes, kind: str) -> bool:
    """Whether the field `compression` (the fourth) of a RecordBatch is set, in the flatbuffer of its message."""

    def number(form: str, place: int) -> int:
        value: int = struct.unpack_from(form, metadata, place)[0]
        return value

    def field(table: int, which: int) -> int:
        vtable = table - number("<i", table)
        offset = number("<H", vtable + 4 + 2 * which) if 4 + 2 * which < number("<H", vtable) else 0
        return table + offset if offset else 0

    batch = field(number("<I", 0), 2)
    batch += number("<I", batch)
    if kind == "dictionary":  # its second field is the RecordBatch
        batch = field(batch, 1)
        batch += number("<I", batch)
    return field(batch, 3) > 0


def _ipc(array: Any) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table([array], names=["c"])
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
