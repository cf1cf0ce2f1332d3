"""Measurements, goals and stored rows of the benchmark harness."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import contestants, machine, store
from benchmarks.contestants import Outcome, Ready
from benchmarks.experiment import Cell, Entrant, Experiment, Goal
from benchmarks.goals import judge
from benchmarks.measure import measure
from benchmarks.workloads import WORKLOADS, Stream


def test_contestants_take_turns_on_the_same_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, float]] = []

    def witness(name: str) -> Any:
        def enter(stream: Stream, p: Mapping[str, Any]) -> Ready:
            seen.append((name, float(stream["score"][0])))
            return Ready(lambda: None, lambda _: Outcome(None, lambda *_: True, {"rows": p["rows"]}))

        return enter

    for name in "AB":
        monkeypatch.setitem(contestants.CONTESTANTS, name, witness(name))
    entrants = tuple(Entrant(name, name, {"rows": 10}) for name in "AB")
    measured = measure(Cell("c", "random_order", {}, entrants, repeats=2, warmups=1), seed=7)
    first, second = (float(WORKLOADS["random_order"](10, seed, {})["score"][0]) for seed in (7, 8))
    assert seen == [("A", first), ("B", first), ("A", first), ("B", first), ("A", second), ("B", second)]
    assert [len(one.seconds) for one in measured] == [2, 2]
    spent = measured[0].counters.pop("cpu_seconds")
    assert len(spent) == 2 and all(0 <= one < 60 for one in spent)
    assert measured[0].counters == {"rows": [10, 10]}


def test_goals_are_medians_of_ratios_within_a_repeat() -> None:
    goal = Goal("ratio", "c", "A", over="B", at_most=2)
    experiment = Experiment("e", "about", (), (goal, replace(goal, says="own", over=None, at_most=3)))
    row = store.Row("e", "c", 0, "A", "f", "w", {}, 0, [1.0, 4.0, 9.0], True)
    rows = [row, replace(row, contestant="B", seconds=[1.0, 1.0, 9.0])]
    ratio, own = judge(experiment, rows)
    assert ratio.values == [1, 4, 1]
    assert ratio.measured == 1
    assert ratio.met
    assert ratio.cells == ("ratio", "at most 2 ×", "1 ×", "1 × to 4 ×", "yes")
    assert own.measured == 4
    assert not own.met
    assert own.cells == ("own", "at most 3 s", "4 s", "1 s to 9 s", "MISSED")


def test_what_was_not_measured_is_not_met() -> None:
    experiment = Experiment("e", "about", (), (Goal("counted", "c", "A", measure="objects", at_most=2),))
    (verdict,) = judge(experiment, [store.Row("e", "c", 0, "A", "f", "w", {}, 0, [1.0, 4.0], True)])
    assert not verdict.met
    assert verdict.cells[-1] == "MISSED"


def test_rows_survive_the_file(tmp_path: Path) -> None:
    row = store.Row("e", "c", 0, "A", "f", "w", {"n": 1}, 0, [0.5], True, {"rows": [3]}, versions={"a": "1"})
    with store.writing("e", tmp_path) as file:
        store.write(file, row)
    assert store.read("e", tmp_path) == [row]
    assert asdict(row)["parameters"] == {"n": 1}


def test_the_machine_has_no_name() -> None:
    assert set(machine.machine()) == {"cpu", "cores", "memory_gib"}
    assert len(machine.commit()[0]) >= 7


def test_work_in_steps_is_timed_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(stream: Stream, p: Mapping[str, Any]) -> Ready:
        def after(found: list[int]) -> Outcome:
            return Outcome(found, lambda _s, _p, found: found == [0, 1, 2, 3], {"rows": p["rows"]})

        return Ready(lambda: iter(range(4)), after)

    monkeypatch.setitem(contestants.CONTESTANTS, "steps", steps)
    (one,) = measure(Cell("c", "random_order", {}, (Entrant("steps", "steps", {"rows": 4}),), repeats=1, warmups=0), 1)
    counters = {name: values[0] for name, values in one.counters.items()}
    assert one.right and counters["steps"] == 4
    assert 0 <= counters["p50"] <= counters["p99"] <= counters["slowest"] <= one.seconds[0]
