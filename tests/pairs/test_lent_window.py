"""Queries of pairs that begin with the window of another one: other scorings, smaller windows, conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import skyband as sb
from engines.streams import INTEGERS, Scene, cells, row, same_changes, same_rows
from skyband.oracle import Oracle

NEAR = sb.Global({"x": "absdiff", "y": "absdiff"})
NEW: list[Any] = [NEAR, sb.Global({"y": "absdiff"}), "(a.x - b.x) * (a.x - b.x) / abs(a.y - b.y)"]


@pytest.mark.parametrize(("by", "emit"), [(NEW[0], "arrival"), (NEW[1], "batch"), (NEW[2], "arrival")])
@pytest.mark.parametrize("per", [None, "g"])
@pytest.mark.parametrize("window", [sb.Last(12), sb.Last(span=14)])
def test_a_query_from_the_window_of_another(window: sb.Last, per: str | None, by: Any, emit: Any) -> None:
    rng = np.random.default_rng(11)
    times = np.arange(60) - 6 * (rng.random(60) < 0.2)
    rows = [
        row(i=str(n), t=int(t), x=float(rng.integers(0, 7)), y=int(rng.integers(0, 5)), g=int(rng.integers(2)))
        for n, t in enumerate(times)
    ]
    first = sb.TopKPairs(2, NEAR, window, where="x < 6", per=per)
    smaller = sb.Last(7) if window.count else sb.Last(span=9)
    options: dict[str, Any] = {"id": "i", "time": "t", "emit": emit}
    monitor, oracle = sb.Monitor({"old": first}, **options), Oracle({"old": first}, **options)
    scene = Scene({"old": first}, [], options, INTEGERS)
    monitor.push(scene.table(rows[:30]))
    oracle.push(rows[:30])
    for name, length in (("same", window), ("smaller", smaller)):
        query = sb.TopKPairs(3, by, length, where="x < 6", per=per)
        same_rows(cells(monitor.add(name, query, from_window=True)), oracle.add(name, query, donor="old"), name)
    for begin in range(30, 60, 6):
        part = rows[begin : begin + 6]
        same_changes(cells(monitor.push(scene.table(part))), oracle.push(part), f"{begin}", net_changes=emit == "batch")
        for name in oracle.queries:
            same_rows(cells(monitor.answer(name)), oracle.answer(name), f"{begin}, {name}")
        for adapter in monitor._loop.state.standing():
            adapter.check()
        monitor = sb.Monitor.restore(monitor.snapshot(), trusted=False)


def test_a_window_that_has_not_all_that_is_read() -> None:
    monitor = sb.Monitor(sb.TopKPairs(2, NEAR, sb.Last(9)))
    monitor.push({"x": [1.0, 2.0], "y": [3.0, 5.0]})
    for query in (
        sb.TopKPairs(2, NEAR, sb.Last(10)),
        sb.TopKPairs(2, NEAR, sb.Last(9), where="x > 1"),
        sb.TopKPairs(2, sb.Global({"z": "absdiff"}), sb.Last(9)),
        sb.TopKPairs(2, NEAR, sb.Last(9), on="a.s <> b.s"),
    ):
        with pytest.raises(sb.QueryError, match="no standing query of pairs keeps a window"):
            monitor.add("new", query, from_window=True)


@pytest.mark.parametrize("emit", ["arrival", "batch"])
@pytest.mark.parametrize("per", [None, "g"])
def test_a_query_from_the_live_objects_of_another(per: str | None, emit: Any) -> None:
    """Over UntilDeleted(): it enters as a new query, whatever the last of the others had answered."""
    rng = np.random.default_rng(12)
    rows = [row(i=str(n % 20), x=float(rng.integers(0, 7)), g=int(rng.integers(2))) for n in range(50)]
    by = sb.Global({"x": "absdiff"})
    first = {f"old{k}": sb.TopKPairs(k, by, sb.UntilDeleted(), per=per) for k in (3, 2)}
    options: dict[str, Any] = {"id": "i", "emit": emit}
    monitor, oracle = sb.Monitor(first, **options), Oracle(first, **options)
    scene = Scene(first, [], options, INTEGERS)
    monitor.push(scene.table(rows[:30]))
    oracle.push(rows[:30])
    for k in (1, 3):
        query = sb.TopKPairs(k, by, sb.UntilDeleted(), per=per)
        entered = cells(monitor.add(f"new{k}", query, from_window=True))
        same_rows(entered, oracle.add(f"new{k}", query, donor="old3"), f"{k}")
        assert len(entered) == k * (1 + (per is not None))
    for begin in range(30, 50, 5):
        part = rows[begin : begin + 5]
        same_changes(cells(monitor.push(scene.table(part))), oracle.push(part), f"{begin}", net_changes=emit == "batch")
        gone = [str(begin % 20)]
        same_changes(cells(monitor.delete(gone)), oracle.delete(gone), f"{begin}", net_changes=emit == "batch")
        monitor = sb.Monitor.restore(monitor.snapshot(), trusted=False)
