"""Cells as Spark keeps them: compressed, since each byte crosses a socket, RocksDB and a log in every trigger."""

from __future__ import annotations

import struct

import pyarrow as pa

_CODEC = pa.Codec("zstd", compression_level=1)  # 0.47 of the bytes of objects with an id and a time
_HEAD = struct.Struct("<8sq")  # what follows is compressed; the size that it has then
_MAGIC = b"\xffcell\x01\x00\x00"  # no other value begins so
_SMALL = 1 << 12  # bytes that are kept as they are: there a round trip is what costs


def compressed(data: bytes) -> bytes:
    """The bytes to store."""
    if len(data) < _SMALL:
        return data
    return _HEAD.pack(_MAGIC, len(data)) + _CODEC.compress(data, asbytes=True)  # type: ignore[no-any-return]


def plain_bytes(stored: bytes) -> bytes:
    """The inverse; what is not compressed, as older versions stored it, is as it is."""
    if stored[: len(_MAGIC)] != _MAGIC:
        return stored
    _, size = _HEAD.unpack_from(stored)
    return _CODEC.decompress(memoryview(stored)[_HEAD.size :], size, asbytes=True)  # type: ignore[no-any-return]
