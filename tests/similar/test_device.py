"""Subscriptions on a device against the processor's engine and plain queries: a stand-in of NumPy, or a GPU.

On a machine with a GPU: `SKYBAND_GPU=1 python -m pytest tests/similar/test_device.py`.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np
import pytest

import skyband as sb
from similar.stand_in import NumPyLanes
from skyband.engines.topk import device
from skyband.errors import BatchError, QueryError

GPU = bool(os.environ.get("SKYBAND_GPU"))
METRICS = ("cosine", "dot", "euclidean")


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    if not GPU:
        monkeypatch.setitem(device.DOORS, "cuda", lambda: NumPyLanes)


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    names = [name for name in table.column_names if name != "query"]
    return sorted((tuple(row[name] for name in names) for row in table.to_pylist()), key=repr)


class Stream:
    """Random documents and subscriptions, in one style by seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.d, self.metric = int(self.random.integers(1, 7)), METRICS[seed % 3]
        self.timed, self.emit = bool(seed // 3 % 2), ("arrival", "batch")[seed // 6 % 2]
        self.largest = (None, True, False)[int(self.random.integers(3))]
        self.style = ("ties", "near", "random", "falling", "rising")[int(self.random.integers(5))]
        self.base = self.random.normal(size=self.d) + 0.1
        self.serial, self.now, self.known = 0, 0, 0

    def vectors(self, size: int) -> Any:
        ramp = (self.serial + np.arange(size))[:, None] / 50
        away = self.random.normal(size=(size, self.d))
        if self.style == "ties":
            found = np.where(self.random.random((size, self.d)) < 0.5, 1.0, -1.0)
        elif self.style == "near":
            found = self.base + 1e-7 * away
        elif self.style == "random":
            found = away
        else:
            found = self.base * np.exp(ramp if self.style == "rising" else -ramp) + 1e-3 * ramp * away
        return found.astype(np.float64 if self.random.random() < 0.3 else np.float32)

    def query(self) -> Any:
        by = sb.Similar("e", sb.Each("v"), self.metric)  # type: ignore[arg-type]
        window = sb.Last(span=sb.Each("n")) if self.timed else sb.Last(sb.Each("n"))
        return sb.TopK(sb.Each("k"), by, window, largest=self.largest)

    def subscriptions(self, size: int) -> dict[str, Any]:
        self.known += size
        vectors = self.random.normal(size=(size, self.d)) if self.random.random() < 0.7 else np.ones((size, self.d))
        return {
            "subscriber": np.arange(self.known - size, self.known), "v": vectors,
            "k": self.random.integers(1, 4, size), "n": self.random.integers(1, 60, size),
        }  # fmt: skip

    def rows(self, size: int) -> dict[str, Any]:
        times = self.now + np.cumsum(self.random.integers(0, 3, size))
        self.now = int(times.max(initial=self.now))
        late = np.where(self.random.random(size) < 0.15, self.random.integers(0, 20, size), 0)
        found = {"id": np.arange(self.serial, self.serial + size), "t": times - late, "e": self.vectors(size)}
        self.serial += size
        return found


def monitors(stream: Stream, devices: tuple[Any, ...]) -> list[sb.Monitor]:
    options: dict[str, Any] = {"id": "id", "emit": stream.emit} | ({"time": "t"} if stream.timed else {})
    return [sb.Monitor({"alerts": stream.query()}, **options, device=one) for one in devices]


@pytest.mark.parametrize("seed", range(24))
def test_a_device_gives_the_changes_and_answers_of_the_processor(seed: int) -> None:
    stream = Stream(seed)
    mine, theirs = monitors(stream, ("cuda", None))
    NumPyLanes.made = 0
    for turn in range(14):
        if turn in (0, 5) or stream.random.random() < 0.2:
            table = stream.subscriptions(int(stream.random.integers(1, 4)))
            for one in (mine, theirs):
                one.subscribe("alerts", table)
        if turn > 6 and stream.random.random() < 0.3:
            gone = [int(stream.random.integers(stream.known))]
            for one in (mine, theirs):
                one.unsubscribe("alerts", gone)
        rows = stream.rows(int(stream.random.integers(1, 50)))
        assert rows_of(mine.push(rows)) == rows_of(theirs.push(rows))
        if stream.timed and stream.random.random() < 0.3:
            stream.now += int(stream.random.integers(0, 70))
            assert rows_of(mine.advance(stream.now)) == rows_of(theirs.advance(stream.now))
        assert rows_of(mine.answer("alerts")) == rows_of(theirs.answer("alerts"))
        if stream.random.random() < 0.3:  # from the device to the processor, and the other way round
            a, b = mine.snapshot(), theirs.snapshot()
            if stream.random.random() < 0.5:
                a, b = b, a
            mine = sb.Monitor.restore(a, device="cuda", trusted=False)
            theirs = sb.Monitor.restore(b, trusted=False)
    assert GPU or NumPyLanes.made > 0


@pytest.mark.parametrize("seed", range(6))
def test_a_device_gives_the_changes_of_plain_queries(seed: int) -> None:
    stream = Stream(seed)
    stream.emit = "arrival"
    (mine,) = monitors(stream, ("cuda",))
    table = stream.subscriptions(5)
    mine.subscribe("alerts", table)
    plain = {}
    for i in range(5):
        n = int(table["n"][i])
        by = sb.Similar("e", table["v"][i], stream.metric)  # type: ignore[arg-type]
        window = sb.Last(span=n) if stream.timed else sb.Last(n)
        plain[str(i)] = sb.TopK(int(table["k"][i]), by, window, largest=stream.largest)
    theirs = sb.Monitor(plain, id="id", time="t" if stream.timed else None)
    for _ in range(8):
        rows = stream.rows(int(stream.random.integers(1, 60)))
        found = mine.push(rows).drop_columns("query").to_pylist()
        wanted = theirs.push(rows).to_pylist()
        for row in wanted:
            row["subscriber"] = int(row.pop("query"))
        assert sorted(map(repr, map(sorted, (one.items() for one in found)))) == sorted(
            map(repr, map(sorted, (one.items() for one in wanted)))
        )


def test_a_member_that_returns_in_a_later_net_batch_is_not_new() -> None:
    """A late row ranks above it for a while."""
    query = sb.TopK(1, sb.Similar("e", sb.Each("v"), "dot"), sb.Last(span=8))
    monitor = sb.Monitor({"alerts": query}, id="id", time="t", emit="batch", device="cuda")
    monitor.subscribe("alerts", {"subscriber": [1], "v": [[1.0]]})
    said = []
    for id_, time, similarity in ((0, 10, 1.0), (1, 5, 2.0), (2, 13, 0.5)):
        changes = monitor.push({"id": [id_], "t": [time], "e": [[similarity]]}).to_pylist()
        said.append({(row["id"], row["diff"], row["first"]) for row in changes})
    assert said == [{(0, 1, True)}, {(0, -1, False), (1, 1, True)}, {(1, -1, False), (0, 1, False)}]


def test_long_runs_are_lifted_and_depths_fall_when_a_window_loses_its_best() -> None:
    random = np.random.default_rng(3)
    query = sb.TopK(2, sb.Similar("e", sb.Each("v"), "dot"), sb.Last(400))
    mine, theirs = (sb.Monitor({"alerts": query}, id="id", device=one) for one in ("cuda", None))
    for one in (mine, theirs):
        one.subscribe("alerts", {"subscriber": [0, 1], "v": np.array([[1.0, 0.1], [-1.0, 0.2]])})
    serial = 0
    for level in [1.0] * 4 + [5.0] * 2 + [0.1] * 12:
        size = 60
        rows = {"id": np.arange(serial, serial + size), "e": level * random.random((size, 2)).astype(np.float32)}
        serial += size
        assert rows_of(mine.push(rows)) == rows_of(theirs.push(rows))
    engine: Any = next(iter(mine._loop.state.subscribed.values())).engine
    lanes = next(iter(engine.pools.values())).lanes
    assert GPU or lanes.deepened > 0
    assert (lanes.read_runs(np.arange(2)).depths > -np.inf).all()
    engine.check(now=np.array([serial - 1]))


def test_answers_over_shorter_windows_and_of_many_subscribers() -> None:
    random = np.random.default_rng(4)
    query = sb.TopK(3, sb.Similar("e", sb.Each("v")), sb.Last(300))
    mine, theirs = (sb.Monitor({"alerts": query}, id="id", device=one) for one in ("cuda", None))
    rows = {"id": np.arange(500), "e": random.normal(size=(500, 4)).astype(np.float32)}
    for one in (mine, theirs):
        one.subscribe("alerts", {"subscriber": np.arange(100), "v": random.permuted(np.eye(100, 4) + 0.1, axis=0)})
    theirs.unsubscribe("alerts", range(100))
    table = {"subscriber": np.arange(100), "v": random.normal(size=(100, 4))}
    for one in (mine, theirs):
        one.subscribe("alerts", table)
        one.push(rows)
    assert rows_of(mine.answer("alerts")) == rows_of(theirs.answer("alerts"))
    short = sb.Last(40)
    for who in (0, 7):
        found = mine.answer("alerts", subscriber=who, window=short)
        assert rows_of(found) == rows_of(theirs.answer("alerts", subscriber=who, window=short))
    assert mine.stats()["queries"]["alerts"]["objects"] > 0


def test_what_a_device_does_not_serve_is_said() -> None:
    pytest.importorskip("sqlglot")
    with pytest.raises(QueryError, match="device='tpu' is unknown"):
        sb.Monitor({}, device="tpu")
    by = sb.Similar("e", sb.Each("v"))
    table = {"subscriber": [1], "v": [[1.0, 2.0]], "low": [1.0]}
    for query, why in (
        (sb.TopK(1, by, sb.Last(9), per="p"), "for each value of `per`"),
        (sb.TopK(1, by, sb.Last(9), where="x > :low"), "compares with subscriptions' values"),
        (sb.TopK(1, by, sb.Ever()), "is not Last"),
    ):
        monitor = sb.Monitor({"alerts": query}, id="id", device="cuda")
        with pytest.raises(QueryError, match=why):
            monitor.subscribe("alerts", table)
    monitor = sb.Monitor({"alerts": sb.TopK(1, by, sb.Last(9))}, id="id", device="cuda")
    monitor.subscribe("alerts", table)
    monitor.push({"id": [1], "e": [[1.0, 1.0]]})
    with pytest.raises(QueryError, match="Subscribe without from_window"):
        monitor.subscribe("alerts", {"subscriber": [2], "v": [[1.0, 2.0]]}, from_window=True)
    with pytest.raises(BatchError, match="takes none such"):
        monitor.push({"id": [2], "e": [[1e200, 1.0]]})
    assert monitor.answer("alerts").num_rows == 1


def test_no_library_and_no_gpu_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(device.DOORS, "cuda", device.open_cuda)

    usual = importlib.import_module

    def without_torch(name: str) -> Any:
        if name == "torch":
            raise ImportError(name=name)
        return usual(name)

    monkeypatch.setattr(importlib, "import_module", without_torch)
    with pytest.raises(QueryError, match=r"needs PyTorch and Triton, and torch is not installed.*skyband\[gpu\]"):
        sb.Monitor({}, device="cuda")

    class Torch:
        __version__ = "2.0"

        class cuda:  # noqa: N801
            @staticmethod
            def is_available() -> bool:
                return False

    monkeypatch.setattr(importlib, "import_module", lambda name: Torch if name in ("torch", "triton") else usual(name))
    with pytest.raises(QueryError, match="finds no GPU"):
        sb.Monitor({}, device="cuda")
