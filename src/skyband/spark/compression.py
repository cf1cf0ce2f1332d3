"""Cells as Spark keeps them: compressed, since each byte crosses a socket, RocksDB and a log in every trigger."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from skyband.monitor.cells import by_bytes

_CODEC = pa.Codec("zstd", compression_level=1)  # 0.47 of the bytes of objects with an id and a time
_FAST = pa.Codec("zstd", compression_level=-3)  # 0.34 of them by bytes
_HEAD = struct.Struct("<8sq")  # what follows is compressed; the size that it has then
_MAGIC = b"\xffcell\x01\x00\x00"  # no other value begins so
_BY_BYTES = b"\xffcell\x02"  # so does a cell by bytes: after the head come the widths of its streams
_COUNT = struct.Struct("<8sqH")
_SMALL = 1 << 12  # bytes that are kept as they are: there a round trip is what costs
_LARGE = 1 << 14  # and from where on it is worth the while to order them


def compressed(data: bytes, widths: Sequence[int] = ()) -> bytes:
    """The bytes to store; widths: of the streams of a cell, if it is one."""
    if len(data) < _SMALL:
        return data
    if not widths or len(data) < _LARGE:
        return _HEAD.pack(_MAGIC, len(data)) + _CODEC.compress(data, asbytes=True)  # type: ignore[no-any-return]
    head = _COUNT.pack(_BY_BYTES, len(data), len(widths)) + struct.pack(f"<{len(widths)}I", *widths)
    return head + _FAST.compress(by_bytes(data, widths), asbytes=True)  # type: ignore[no-any-return]


def plain_bytes(stored: bytes) -> bytes:
    """The inverse; what is not compressed, as older versions stored it, is as it is."""
    if stored[: len(_BY_BYTES)] == _BY_BYTES:
        _, size, count = _COUNT.unpack_from(stored)
        widths = struct.unpack_from(f"<{count}I", stored, _COUNT.size)
        begin = _COUNT.size + 4 * count
        return by_bytes(_FAST.decompress(memoryview(stored)[begin:], size, asbytes=True), widths, back=True)
    if stored[: len(_MAGIC)] != _MAGIC:
        return stored
    _, size = _HEAD.unpack_from(stored)
    return _CODEC.decompress(memoryview(stored)[_HEAD.size :], size, asbytes=True)  # type: ignore[no-any-return]
