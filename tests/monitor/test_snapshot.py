"""State as bytes: what is stored comes back, nothing is executed, and broken bytes say so."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import skyband as sb
from skyband.errors import QueryError, StateError
from skyband.monitor.archive import MAGIC, VERSION, pack, unpack

facts = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)
DTYPES: list[Any] = ["i8", "u4", "f8", "?", "i1", [("key", "f8"), ("dom", "i4")]]
arrays: st.SearchStrategy[Any] = hnp.arrays(
    st.sampled_from([np.dtype(dtype) for dtype in DTYPES]), hnp.array_shapes(min_dims=1, max_dims=2, min_side=0)
)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(stored=facts, parts=st.dictionaries(st.text(max_size=5), arrays, max_size=4))
def test_pack_and_unpack(stored: dict[str, Any], parts: dict[str, Any]) -> None:
    data = pack(stored, parts)
    again, arrays = unpack(data)
    assert again == stored
    assert list(arrays) == list(parts)
    for name, array in parts.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes()
    assert pack(again, arrays) == data


def test_tables_keep_their_types() -> None:
    table = pa.table({"t": pa.array([1, None], pa.timestamp("ns", "UTC")), "l": pa.array([[1], None])})
    _, parts = unpack(pack({}, {"table": table, "empty": pa.table({})}))
    assert parts["table"].equals(table)
    assert parts["empty"].num_columns == 0


def test_layout() -> None:
    """Magic, version, length of the header, header, parts, digest: others may want to read it."""
    data = pack({"a": 1}, {"x": np.arange(3)})
    magic, version, length = struct.unpack_from("<8sHQ", data)
    assert (magic, version) == (MAGIC, VERSION)
    header = json.loads(data[18 : 18 + length])
    assert header["facts"] == {"a": 1}
    assert data[18 + length : -32] == np.arange(3).tobytes()
    assert data[-32:] == hashlib.blake2b(data[:-32], digest_size=32).digest()


def forged(header: Any, body: bytes = b"", version: int = VERSION) -> bytes:
    """Bytes with a right checksum around a wrong content."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    data = struct.pack("<8sHQ", MAGIC, version, len(text)) + text + body
    return data + hashlib.blake2b(data, digest_size=32).digest()


@pytest.mark.parametrize(
    "data",
    [
        forged(b""),
        forged(b"not json"),
        forged(b"\xff\xfe"),
        forged([]),
        forged({}),
        forged({"facts": {}}),
        forged({"facts": {}, "parts": [{}]}),
        forged({"facts": {}, "parts": [{"name": "x", "bytes": 8, "dtype": "<i8", "shape": [1]}]}),
        forged({"facts": {}, "parts": [{"name": "x", "bytes": 8, "dtype": "<i8", "shape": [2]}]}, bytes(8)),
        forged({"facts": {}, "parts": [{"name": "x", "bytes": 8, "dtype": "|O", "shape": [1]}]}, bytes(8)),
        forged({"facts": {}, "parts": [{"name": "x", "bytes": 8, "dtype": "nonsense", "shape": [1]}]}, bytes(8)),
        forged({"facts": {}, "parts": [{"name": "x", "bytes": 8, "arrow": True}]}, bytes(8)),
        forged({"facts": {}, "parts": []}),
        forged({"facts": {"options": {"keep": 7}}, "parts": []}),
    ],
)
def test_forged_bytes(data: bytes) -> None:
    """A right checksum around nonsense is still a StateError, never an error of Python or NumPy."""
    with pytest.raises(StateError, match="snapshot"):
        sb.Monitor.restore(data)


def test_a_part_is_missing() -> None:
    monitor = sb.Monitor(sb.TopK(2, "x", sb.Last(3), per="g"), id="i", time="t", keep="z")
    monitor.push({"x": [1.0, 2.0], "g": [1, 2], "i": ["a", "b"], "t": [1, 2], "z": [None, "z"]})
    stored, parts = unpack(monitor.snapshot())
    for name in parts:
        with pytest.raises(StateError, match="do not fit together"):
            sb.Monitor.restore(pack(stored, {other: part for other, part in parts.items() if other != name}))
    for name in stored:
        with pytest.raises(StateError, match="do not fit together"):
            sb.Monitor.restore(pack({other: fact for other, fact in stored.items() if other != name}, parts))


def test_parts_that_do_not_fit() -> None:
    monitor = sb.Monitor(sb.TopK(2, "x", sb.Last(3)))
    monitor.push({"x": [3.0, 2.0, 1.0]})
    stored, parts = unpack(monitor.snapshot())
    for name, array in parts.items():
        if name.startswith("0.engine."):
            with pytest.raises(StateError, match="do not fit together"):
                sb.Monitor.restore(pack(stored, {**parts, name: array[:-1]}))


def test_a_snapshot_is_a_copy() -> None:
    """What happens after it does not change it, and two Monitors from it go their own ways."""
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3)))
    monitor.push({"x": [5.0]})
    data = monitor.snapshot()
    assert monitor.snapshot() == data, "taking it changes nothing"
    monitor.push({"x": [9.0]})
    one, other = sb.Monitor.restore(data), sb.Monitor.restore(bytes(bytearray(data)))
    one.push({"x": [7.0]})
    assert monitor.answer().column("score").to_pylist() == [9.0]
    assert one.answer().column("score").to_pylist() == [7.0]
    assert other.answer().column("score").to_pylist() == [5.0]


def counts(monitor: sb.Monitor) -> dict[str, Any]:
    """All of stats() but the bytes: a restored Monitor has no spare capacity yet."""
    stats = monitor.stats()
    for query in stats["queries"].values():
        del query["bytes"]
    return stats


@pytest.mark.parametrize("stage", ["made", "advanced", "no rows", "rejected", "pushed", "replaced", "added", "dropped"])
def test_at_every_stage_of_life(stage: str) -> None:
    """Before the first batch too, when not even the type of time is known."""
    queries = {"a": sb.TopK(2, "x", sb.Last("5 s"), per="g"), "b": sb.TopK(1, "x", sb.Last("3 s"), per="g")}
    batch = pa.table(
        {
            "x": [1.0, 2.0, 3.0],
            "g": ["u", None, "u"],
            "t": pa.array([1, 2, 3], pa.timestamp("s")),
            "z": [[1], None, [2, 3]],
        }
    )
    monitor = sb.Monitor(queries, time="t", keep="z")
    if stage == "advanced":
        monitor.advance(datetime(1970, 1, 1, 0, 0, 2))
    if stage == "no rows":
        monitor.push(batch.slice(0, 0))
    if stage == "rejected":
        monitor.push(batch.set_column(0, "x", pa.nulls(3, pa.float64())))
    if stage in ("pushed", "replaced", "added", "dropped"):
        monitor.push(batch)
    if stage == "replaced":
        monitor.replace("b", sb.TopK(2, "x", sb.Last("4 s"), per="g"))
    if stage == "added":
        monitor.add("c", sb.TopK(1, "x", sb.Last(3)))
    if stage == "dropped":
        monitor.drop("a")
    restored = sb.Monitor.restore(monitor.snapshot())
    assert restored.queries == monitor.queries
    assert counts(restored) == counts(monitor)
    assert restored.snapshot() == monitor.snapshot()
    for one in (monitor, restored):
        one._loop.check()
    assert restored.push(batch).equals(monitor.push(batch))
    later = datetime(1970, 1, 1, 0, 0, 6)
    assert restored.advance(later).equals(monitor.advance(later))
    for name in monitor.queries:
        assert restored.answer(name).equals(monitor.answer(name))
    assert counts(restored) == counts(monitor)


def test_options_come_back() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(span=5)), time="t", late="drop", invalid="raise", emit="batch")
    monitor.push({"x": [1.0, 2.0], "t": [3, 9]})
    restored = sb.Monitor.restore(monitor.snapshot())
    assert restored.push({"x": [5.0], "t": [8]}).num_rows == 0
    assert restored.stats()["late"] == 1
    with pytest.raises(sb.BatchError, match="row 0"):
        restored.push({"x": [np.nan], "t": [10]})
    assert restored.push({"x": [3.0, 4.0], "t": [10, 10]}).column("diff").to_pylist() == [-1, 1]


def speed(batch: Mapping[str, Any]) -> Any:
    return batch["x"]


def test_functions_by_the_querys_name_or_their_own() -> None:
    monitor = sb.Monitor({"fast": sb.TopK(1, speed, sb.Last(3)), "plain": sb.TopK(1, "x", sb.Last(3))})
    monitor.push({"x": [1.0, 2.0]})
    data = monitor.snapshot()
    assert b"return" not in data
    for callables in ({"fast": speed}, {"speed": speed}):
        restored = sb.Monitor.restore(data, callables=callables)
        assert restored.queries == monitor.queries
        assert restored.push({"x": [3.0]}).num_rows == 4
    with pytest.raises(QueryError, match=r"speed.*callables"):
        sb.Monitor.restore(data, callables={"other": speed})


def test_another_process_goes_on(tmp_path: Path) -> None:
    monitor = sb.Monitor(sb.TopK(2, "x", sb.Last(span=10), per="g"), id="i", time="t", keep="z")
    columns = {"x": [3.0, 1.0, 2.0], "g": ["a", "b", None], "i": [7, 8, 9], "t": [1, 2, 3], "z": [[1], [], None]}
    monitor.push(columns)
    (tmp_path / "state").write_bytes(monitor.snapshot())
    code = (
        "import sys, skyband as sb\n"
        f"m = sb.Monitor.restore(open({str(tmp_path / 'state')!r}, 'rb').read())\n"
        "assert m.answer(key='a').num_rows == 1\n"
        "print(m.advance(12).to_pylist())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr(monitor.advance(12).to_pylist())
    assert "numba" not in done.stderr


def test_an_older_format_says_so() -> None:
    with pytest.raises(StateError, match="older skyband"):
        unpack(forged({"parts": []}, version=VERSION - 1))


def test_only_queries_over_answers_begin_with_an_object() -> None:
    facts, parts = unpack(sb.Monitor(sb.TopK(1, by="x", window=sb.Last(3))).snapshot())
    facts["homes"][0]["since"] = 1
    with pytest.raises(StateError, match="over answers"):
        sb.Monitor.restore(pack(facts, parts))
