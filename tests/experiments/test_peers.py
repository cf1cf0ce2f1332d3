"""Peers that run in this process, and how answers of peers are judged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import run, store
from benchmarks.contestants import CONTESTANTS
from benchmarks.peers import answers
from benchmarks.peers.whole import WholeWindow
from benchmarks.workloads import WORKLOADS, Stream

import skyband as sb

P = {"k": 3, "window": "1 hour", "slide": "10 minutes", "late": 0.3, "minutes": 40, "rows": 400, "check": 400}


def stream(seed: int = 1, rows: int = 400) -> Stream:
    return WORKLOADS["late_flights"](rows, seed, P)


@pytest.mark.parametrize("seed", range(5))
def test_a_whole_window_has_the_changes_of_a_monitor(seed: int) -> None:
    rng = np.random.default_rng(seed)
    minutes = np.cumsum(rng.integers(0, 3, 600)) - rng.integers(0, 2, 600) * rng.integers(0, 80, 600)
    rows = {
        "id": np.arange(600),
        "key": np.array(list("abc"))[rng.integers(0, 3, 600)],
        "time": np.datetime64("2026-01-01", "us") + minutes.astype("m8[m]"),
        "score": rng.integers(0, 4, 600),
    }
    view, monitor = WholeWindow(3, answers.micros("1 hour")), sb.Monitor(answers.query(P), id="id", time="time")
    table, listed = pa.table(rows), answers.rows_of(rows)
    for begin in range(0, 600, 7):
        told = monitor.push(table.slice(begin, 7))
        theirs = zip(told["key"].to_pylist(), told["id"].to_pylist(), told["diff"].to_pylist(), strict=True)
        assert sorted(view.push(listed[begin : begin + 7])) == sorted(theirs)
    assert view.late == monitor.stats()["queries"]["q0"]["late"] > 0
    assert [row["id"] for row in view.answer() if row["key"] == "a"] == monitor.answer(key="a")["id"].to_pylist()


def test_peers_of_one_process_run_and_are_right(tmp_path: Path) -> None:
    assert run.main(["peers-frames", "--quick", "--results", str(tmp_path)]) == 0
    assert len(store.read("peers-frames", tmp_path)) == 22


@pytest.mark.parametrize("name", ["push", "whole", "polars", "pandas", "duckdb"])
@pytest.mark.parametrize("batch", [1, 40])
def test_steps_are_those_of_a_monitor(name: str, batch: int) -> None:
    p = {"k": 3, "window": "24 hours", "fill": 200, "rows": 200, "batch": batch}
    rows = WORKLOADS["flights"](400, 3, p)
    ready = CONTESTANTS[f"{name}_steps"](rows, p)
    found: list[Any] = list(ready.work())
    outcome = ready.after(found)
    assert len(found) == 200 / batch
    assert outcome.check(rows, p, found)
    assert not outcome.check(rows, p, [[*found[0], (10**6, 1)], *found[1:]])


def test_answers_that_lack_late_rows_only_are_told_from_wrong_ones() -> None:
    rows = stream()
    full = answers.expected(answers.in_time(rows), P)
    assert answers.judged(full, rows, P) == (True, {"answers": len(full), "late_rows": 122, "apart": 0, "absent": 0})
    at_ends = answers.monitored(rows, P)
    right, counters = answers.judged(at_ends, rows, P)
    assert right and counters["apart"] > 0
    minutes = rows["time"].astype("M8[us]").astype(np.int64)
    in_order = set(rows["id"][minutes >= np.maximum.accumulate(minutes)].tolist())
    place = next(place for place, ids in full.items() if set(ids) & in_order)
    wrong = full | {place: [one for one in full[place] if one not in in_order]}
    assert answers.judged(wrong, rows, P)[0] is False
    del wrong[place]
    assert answers.judged(wrong, rows, P)[1]["absent"] == 1


@pytest.mark.parametrize("name", ["polars_dynamic", "pandas_windows"])
def test_a_frame_that_is_wrong_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    p = {"k": 3, "window": "24 hours", "slide": "6 hours", "rows": 400, "check": 100}
    rows = WORKLOADS["flights"](400, 3, p)

    def is_right() -> bool:
        ready = CONTESTANTS[name](rows, p)
        return ready.after(ready.work()).check(rows, p, None)

    assert is_right()
    fewer = dict(p, k=2)
    monkeypatch.setattr(answers, "expected", lambda stream, _: answers.monitored(stream, fewer))
    assert not is_right()
