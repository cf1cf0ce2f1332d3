"""Damaged, foreign, newer and forged snapshots are refused with a StateError, and functions are never stored."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from monitor.refusals import TOP, brief, says
from skyband.errors import QueryError, StateError
from skyband.kernels.records import OBJECT
from skyband.monitor import cells
from skyband.monitor.archive import pack, unpack


def small() -> bytes:
    monitor = sb.Monitor(TOP, id="i")
    monitor.push({"x": [3.0, 1.0, 2.0], "i": ["a", "b", "c"]})
    return monitor.snapshot()


def test_a_snapshot_cut_short() -> None:
    data = small()
    for length in {*range(64), *range(0, len(data), 7), *range(len(data) - 64, len(data))}:
        with pytest.raises(StateError) as caught:
            sb.Monitor.restore(data[:length])
        says(caught.value, "snapshot")


def test_a_snapshot_changed_in_one_byte() -> None:
    data = small()
    for place in range(len(data)):
        for flip in (1, 0x80):
            changed = bytearray(data)
            changed[place] ^= flip
            with pytest.raises(StateError) as caught:
                sb.Monitor.restore(bytes(changed))
            says(caught.value, "snapshot")


def test_a_snapshot_with_more_at_its_end() -> None:
    with pytest.raises(StateError, match="damaged"):
        sb.Monitor.restore(small() + b"\0")


def test_a_snapshot_of_a_newer_version() -> None:
    data = small()
    newer = data[:8] + (int.from_bytes(data[8:10], "little") + 1).to_bytes(2, "little") + data[10:]
    with pytest.raises(StateError) as caught:
        sb.Monitor.restore(newer)
    says(caught.value, "newer", "Upgrade skyband")


@pytest.mark.parametrize("data", [b"", b"SKYBAND\n", b"hello", b"\x80\x04pickle", bytes(1000)])
def test_what_is_no_snapshot(data: bytes) -> None:
    with pytest.raises(StateError, match="no skyband snapshot"):
        sb.Monitor.restore(data)


@pytest.mark.parametrize("data", ["text", None, 100, [1, 2]])
def test_what_is_not_even_bytes(data: Any) -> None:
    with pytest.raises(StateError, match="snapshot"):
        sb.Monitor.restore(data)


def test_a_function_is_never_stored() -> None:
    def speed(batch: Mapping[str, Any]) -> Any:
        return batch["x"]

    monitor = sb.Monitor({"fast": sb.TopK(1, speed, sb.Last(3))})
    monitor.push({"x": [1.0]})
    data = monitor.snapshot()
    with pytest.raises(QueryError) as caught:
        sb.Monitor.restore(data)
    says(caught.value, "speed", "never stored", "callables")
    with pytest.raises(QueryError):
        sb.Monitor.restore(data, callables={"slow": speed})
    restored = sb.Monitor.restore(data, callables={"fast": speed})
    assert brief(restored.push({"x": [2.0]})) == ["-1", "+2"]


# ---- snapshots of strangers: restore(trusted=False). The forger (tests/faults/forge.py) does this at random


def refused(data: bytes, *words: str) -> None:
    with pytest.raises((StateError, QueryError)) as caught:
        sb.Monitor.restore(data, trusted=False)
    says(caught.value, *words)


def test_a_right_snapshot_of_a_stranger() -> None:
    data = small()
    assert sb.Monitor.restore(data, trusted=False).snapshot() == data


@pytest.mark.parametrize(("field", "value"), [("key", np.nan), ("stamp", 2**62), ("inside", 2), ("dom", 9)])
def test_an_array_that_does_not_fit(field: str, value: float) -> None:
    """Objects with no key, of the far future, in the answer of a query that is not there, dominated by too many."""
    stored, parts = unpack(small())
    cell = parts["cell0"].copy()
    place = cell.tobytes().index(np.array([3.0, 0.0]).tobytes())  # the first object: key 3, stamp 0
    first = cell[place : place + OBJECT.itemsize].view(OBJECT)
    assert first["key"] == 3 and first["serial"] == 0
    first[field] = value
    refused(pack(stored, {**parts, "cell0": cell}), "Use an intact copy")


def test_queries_that_ask_for_too_much_memory() -> None:
    stored, parts = unpack(small())
    stored["homes"][0]["queries"]["q0"]["k"] = 2**30
    refused(pack(stored, parts), "keeps no more than 1,048,576")


def test_more_queries_than_an_engine_has_bits_for() -> None:
    monitor = sb.Monitor({f"q{i}": sb.TopK(1 + i, "x", sb.Last(9)) for i in range(32)})
    monitor.push({"x": [1.0]})
    stored, parts = unpack(monitor.snapshot())
    home = stored["homes"][0]
    assert len(home["queries"]) == 32
    home["queries"]["one more"] = home["queries"]["q0"]
    home["lanes"].append(0)
    stored["order"].append("one more")
    refused(pack(stored, parts), "an engine serves so many queries")


def test_queries_that_cannot_share_an_engine() -> None:
    monitor = sb.Monitor([sb.TopK(1, "x", sb.Last(9)), sb.TopK(2, "x", sb.Last(5))])
    monitor.push({"x": [1.0]})
    stored, parts = unpack(monitor.snapshot())
    stored["homes"][0]["queries"]["q1"]["by"] = "y"
    refused(pack(stored, parts), "can share it")


def test_a_time_window_without_a_time_column() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(span=9)), time="t")
    monitor.push({"x": [1.0], "t": [1]})
    stored, parts = unpack(monitor.snapshot())
    stored["options"]["time"] = None
    refused(pack(stored, parts))


def test_facts_that_are_nested_too_deep() -> None:
    data = small()
    length = int.from_bytes(data[10:18], "little")
    header = data[18 : 18 + length].replace(
        b'"clock": ', b'"deep": ' + b"[" * 100_000 + b"]" * 100_000 + b', "clock": '
    )
    body = data[:10] + len(header).to_bytes(8, "little") + header + data[18 + length : -32]
    refused(body + hashlib.blake2b(body, digest_size=32).digest(), "Use an intact copy")


def test_nulls_that_take_no_bytes() -> None:
    """A `per` column of 2^31 nulls has as many bytes as one of 2."""
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(9), per="g"))
    monitor.push({"x": [1.0], "g": pa.nulls(1)})
    stored, parts = unpack(monitor.snapshot())
    cell = parts["cell0"].tobytes()
    one, many = (cells._ipc(pa.Array.from_buffers(pa.null(), size, [None])) for size in (1, 2**31 - 1))
    assert len(one) == len(many) and cell.count(one) == 1
    refused(pack(stored, {**parts, "cell0": np.frombuffer(cell.replace(one, many), np.uint8)}), "more stored groups")


@pytest.mark.parametrize("kind", ["lz4", "zstd"])
def test_columns_that_grow_when_they_are_read(kind: str) -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(9)), keep="l")
    monitor.push({"x": [1.0], "l": [[0] * 9999]})
    stored, parts = unpack(monitor.snapshot())
    column = pa.array([[0] * 9999])
    sink = pa.BufferOutputStream()
    table = pa.table([column], names=["c"])
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=kind)) as writer:
        writer.write_table(table)
    streams = [[bytes(part[0])] for part in cells.read([parts["cell0"].tobytes()], 5)]
    at = next(i for i, (part,) in enumerate(streams) if part == cells._ipc(column))
    streams[at] = [sink.getvalue().to_pybytes()]
    (cell,) = cells.write(streams, 1)
    refused(pack(stored, {**parts, "cell0": np.frombuffer(cell, np.uint8)}), "compressed")
