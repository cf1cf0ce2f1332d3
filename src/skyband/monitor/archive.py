"""State as bytes: a small versioned header, raw arrays, a checksum. No pickle, nothing is ever executed.

Layout: magic, version (2 bytes), length of the header (8 bytes), the header as JSON (facts, and for each part its
name, kind and length), the parts one after another, and a 32-byte BLAKE2 digest of all that.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.errors import StateError
from skyband.monitor.cells import check_uncompressed

MAGIC = b"SKYBAND\n"
VERSION = 2
_PREFIX = struct.Struct("<8sHQ")
_DIGEST = 32


def pack(facts: Mapping[str, Any], parts: Mapping[str, Any]) -> bytes:
    """Facts (ready for JSON) and parts (NumPy arrays or Arrow tables) as bytes."""
    listed, blobs = [], []
    for name, part in parts.items():
        if isinstance(part, pa.Table):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.schema) as writer:
                writer.write_table(part)
            kind: dict[str, Any] = {"arrow": True}
            blob = sink.getvalue().to_pybytes()
        else:
            kind = {"dtype": np.lib.format.dtype_to_descr(part.dtype), "shape": list(part.shape)}
            blob = np.ascontiguousarray(part).tobytes()
        listed.append({"name": name, "bytes": len(blob), **kind})
        blobs.append(blob)
    header = json.dumps({"facts": facts, "parts": listed}).encode()
    body = b"".join([_PREFIX.pack(MAGIC, VERSION, len(header)), header, *blobs])
    return body + _digest(body)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inverse of `pack`; a StateError says what is wrong with the bytes."""
    data = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b""
    if len(data) < _PREFIX.size + _DIGEST or not data.startswith(MAGIC):
        raise StateError(
            "these bytes are no skyband snapshot, or only its beginning. Use what Monitor.snapshot() returned."
        )
    _, version, length = _PREFIX.unpack_from(data)
    if version > VERSION:
        raise StateError(
            f"the snapshot has format {version}, written by a newer skyband; this one reads up to {VERSION}. "
            "Upgrade skyband to restore it."
        )
    if version < VERSION:
        raise StateError(
            f"the snapshot has format {version}, written by an older skyband; this one reads {VERSION}. "
            "Restore it with that version, or start anew."
        )
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if _digest(body) != digest:
        raise StateError("the snapshot is damaged: cut short or changed. Use an intact copy, or start anew.")
    try:
        header = json.loads(body[_PREFIX.size : _PREFIX.size + length])
        parts: dict[str, Any] = {}
        place = _PREFIX.size + length
        for part in header["parts"]:
            blob = memoryview(body)[place : place + part["bytes"]]
            place += part["bytes"]
            parts[part["name"]] = _read(part, blob)
        return header["facts"], parts
    except Exception as error:  # whatever a forged header leads to
        raise StateError(f"the snapshot's contents do not fit together ({error}). Use an intact copy.") from error


def _read(part: Mapping[str, Any], blob: memoryview) -> Any:
    if part.get("arrow"):
        check_uncompressed([blob])
        table = pa.ipc.open_stream(pa.py_buffer(blob)).read_all()
        table.validate(full=True)
        return table
    descr = part["dtype"]
    fields: Any = descr if isinstance(descr, str) else [tuple(field) for field in descr]
    dtype = np.lib.format.descr_to_dtype(fields)
    if dtype.hasobject:
        raise ValueError("an array of objects")
    return np.frombuffer(blob, dtype).reshape(part["shape"]).copy()


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()
