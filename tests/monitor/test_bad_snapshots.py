"""Damaged, foreign and newer snapshots are refused with a StateError, and functions are never stored."""

from collections.abc import Mapping
from typing import Any

import pytest

import skyband as sb
from monitor.refusals import TOP, brief, says
from skyband.errors import QueryError, StateError


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
