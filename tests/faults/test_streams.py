"""Streams that behave badly: clocks that jump, bursts, silence, one hot key, groups that come once, malformed rows."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from engines.streams import cells
from faults.ledger import compare, note
from kinds import KINDS, Kind, stream
from skyband.oracle import Oracle

HOUR = 3600


def check(what: str, kind: Kind, pushes: Sequence[list[dict[str, Any]]], schema: Any) -> sb.Monitor:
    """The same pushes to a Monitor and to the oracle: every change, and the answers at the end."""
    monitor, oracle = kind.monitor(), Oracle(kind.queries, **kind.options)
    found: list[dict[str, Any]] = []
    expected: list[dict[str, Any]] = []
    for rows in pushes:
        found += cells(monitor.push(pa.Table.from_pylist(rows, schema)))
        expected += oracle.push(rows)
    compare(what, len(pushes), found, expected)
    for name in kind.queries:
        assert cells(monitor.answer(name)) == oracle.answer(name)
    return monitor


def pieces(table: Any, size: int) -> list[list[dict[str, Any]]]:
    return [table.slice(begin, size).to_pylist() for begin in range(0, table.num_rows, size)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_clock_that_jumps(kind: str) -> None:
    """Ahead by up to 10^15 and back again: what is too late then is dropped, and nothing else."""
    table = stream(400, 1)
    times = table["t"].to_numpy() + 0
    rng = np.random.default_rng(2)
    for place in rng.integers(20, 400, 12):
        times[place] += rng.choice([-(10**6), -50, 50, 100_000])
    times[300:] += 10**15
    times[350:] -= 30
    jumping = table.set_column(1, "t", pa.array(times))
    check(f"clock jumps: {kind}", KINDS[kind], pieces(jumping, 37), table.schema)


@pytest.mark.parametrize("kind", KINDS)
def test_an_hour_of_silence(kind: str) -> None:
    """What has expired meanwhile leaves once, in one bounded batch."""
    table = stream(300, 3)
    times = table["t"].to_numpy() + 0
    times[200:] += HOUR
    paused = table.set_column(1, "t", pa.array(times))
    rows = paused.to_pylist()
    monitor = KINDS[kind].monitor()
    monitor.push(paused.slice(0, 200))
    timed = {name for name, query in monitor.queries.items() if query.window.sort == "time"}
    before = sum(monitor.answer(name).num_rows for name in timed)
    back = monitor.push(paused.slice(200, 1))
    gone = [row for row in cells(back) if row["diff"] < 0 and row["query"] in timed]
    assert len(gone) >= before > 0
    kept = sum(query["objects"] for query in monitor.stats()["queries"].values())
    assert back.num_rows <= before + kept + 400, "a flood"
    check(f"an hour of silence: {kind}", KINDS[kind], [rows[:200], rows[200:201], rows[201:]], table.schema)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hot_key(kind: str) -> None:
    """One group has nine rows of ten."""
    table = stream(200, 4)
    hot = np.where(np.random.default_rng(4).random(200) < 0.9, "a", table["g"].to_numpy(zero_copy_only=False))
    check(f"a hot key: {kind}", KINDS[kind], pieces(table.set_column(4, "g", pa.array(hot)), 100), table.schema)


@pytest.mark.parametrize("kind", KINDS)
def test_malformed_rows(kind: str) -> None:
    """One cell in a hundred is null, NaN, infinite or out of range."""
    rows = stream(400, 5).to_pylist()
    rng = np.random.default_rng(5)
    for row in rows:
        for name in ("t", "x", "y", "p", "part", "value", "g", "who"):
            if rng.random() < 0.01:
                number = name in ("x", "y", "p", "value")
                row[name] = rng.choice([math.nan, math.inf, -1.0, 2.0]) if number and rng.random() < 0.7 else None
    schema = stream(1).schema
    monitor = check(f"malformed rows: {kind}", KINDS[kind], [rows[:250], rows[250:260], rows[260:]], schema)
    assert sum(monitor.stats()["rejected"].values()) > 0


def test_a_million_equal_timestamps() -> None:
    """One instant, ties everywhere; then all of them leave at one instant."""
    size, began = 10**6, time.process_time()
    x = np.random.default_rng(6).integers(0, 1000, size).astype(float)
    queries = {
        "top": sb.TopK(5, by="x", window=sb.Last(span=10)),
        "above": sb.Above(998.5, by="x", window=sb.Last(span=10)),
    }
    monitor = sb.Monitor(queries, id="i", time="t", emit="batch")
    for begin in range(0, size, 250_000):
        part = slice(begin, begin + 250_000)
        monitor.push({"i": np.arange(size)[part], "t": np.full(250_000, 7), "x": x[part]})
    best = np.lexsort((-np.arange(size), -x))
    assert monitor.answer("top")["id"].to_pylist() == best[:5].tolist()
    assert sorted(monitor.answer("above")["id"].to_pylist()) == np.flatnonzero(x > 998.5).tolist()
    above = int((x > 998.5).sum())
    gone = monitor.advance(17)
    assert gone.num_rows == 5 + above
    assert set(gone["time"].to_pylist()) == {17}
    assert monitor.answer("top").num_rows == monitor.answer("above").num_rows == 0
    entry = {"what": "a burst of 10^6 equal timestamps: topk, above", "rounds": 1, "changes": 5 + above}
    note({**entry, "lost": 0, "doubled": 0, "wrong": 0, "seconds": time.process_time() - began})


def test_a_hundred_thousand_groups_that_come_once() -> None:
    """They are gone when their window is over, but for the number of their last arrival: `at` would go on from it."""
    size = 10**5
    query = sb.TopK(3, by="x", window=sb.Last(span=1000), per="g")
    monitor = sb.Monitor(query, id="i", time="t", emit="batch")
    empty = len(monitor.snapshot())
    rows = {"i": np.arange(size), "t": np.arange(size) // 100, "x": np.arange(size) % 7.0, "g": np.arange(size)}
    changes = [
        monitor.push({name: column[b : b + 10_000] for name, column in rows.items()}) for b in range(0, size, 10_000)
    ]
    assert sum(np.count_nonzero(table["diff"].to_numpy() > 0) for table in changes) == size
    assert monitor.answer().num_rows == size
    gone = monitor.advance(10**6)
    assert sorted(gone["id"].to_pylist()) == list(range(size))
    assert monitor.answer().num_rows == 0
    assert sum(one["objects"] for one in monitor.stats()["queries"].values()) == 0
    assert len(monitor.snapshot()) < empty + 120 * size
    note(
        {
            "what": "10^5 groups that come once: topk",
            "rounds": 1,
            "changes": 2 * size,
            "lost": 0,
            "doubled": 0,
            "wrong": 0,
        }
    )
