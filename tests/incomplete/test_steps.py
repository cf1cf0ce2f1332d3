"""Steps that few random streams would meet: late rows, fronts that run short, objects that return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from incomplete.scenes import EXACT, IncompleteScene, play, scene_of
from skyband import Last, Monitor, TopKIncomplete
from skyband.engines.incomplete.kernels.batches import REFILLED


@pytest.mark.parametrize("algorithm", EXACT)
def test_late_rows_take_their_place(algorithm: str) -> None:
    rng, query = np.random.default_rng(4), TopKIncomplete(2, ["a", "b"], Last(span=12), algorithm=algorithm)
    times = np.arange(60) - rng.integers(0, 9, 60) * (np.arange(60) > 9)
    rows = [(f"{rng.integers(9)}", "ab"[n % 2], int(rng.integers(3)) / 2, int(t)) for n, t in enumerate(times)]
    play(scene_of(query, rows, 20))


@pytest.mark.parametrize("window", [Last(50), Last(span=50)])
@pytest.mark.parametrize("algorithm", EXACT)
def test_a_front_is_filled_again(algorithm: str, window: Last) -> None:
    """Each object is worse than all before it: the best few leave one after another, and others are to be found."""
    query = TopKIncomplete(1, ["a", "b"], window, algorithm=algorithm)
    monitor = play(scene_of(query, [(f"{n}", "a", 1 - n / 200, n) for n in range(110)], 37))
    engine: Any = monitor._loop.state.adapters["p"].engine
    assert engine.facts[REFILLED] > 0 or algorithm == "SLA"


@pytest.mark.parametrize("algorithm", EXACT)
def test_an_object_back_in_the_step_of_its_expiry_is_not_new(algorithm: str) -> None:
    query = TopKIncomplete(1, ["a"], Last(2), algorithm=algorithm)
    play(scene_of(query, [("x", "a", 0.5, 0), ("y", "a", 0.75, 1), ("x", "a", 1.0, 2)], 1))


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("window", [Last(2), Last(span=2)])
def test_an_object_that_returns_within_a_batch_has_not_left_its_answer(window: Last, algorithm: str) -> None:
    query = TopKIncomplete(1, ["a"], window, algorithm=algorithm)
    rows = [(one, "a", value, t) for t, (one, value) in enumerate([("v", 0.25), ("w", 0.25), ("x", 1.0)])]
    rows += [("y", "a", 0.5, 3), ("z", "a", 0.5, 4), ("x", "a", 0.75, 5)]
    scene = scene_of(query, rows, 3)
    play(IncompleteScene(scene.queries, scene.events, scene.options | {"emit": "batch"}))


@pytest.mark.parametrize("algorithm", EXACT)
def test_an_object_that_takes_the_place_of_an_expired_one_is_new(algorithm: str) -> None:
    query = TopKIncomplete(1, ["a"], Last(2), algorithm=algorithm)
    play(scene_of(query, [(f"{t}", "a", 0.5, t) for t in range(150)], 50))


def test_a_large_push_forgets_no_valid_row() -> None:
    """The register begins a new log; rows that are valid for one step more are still in it."""
    monitor = Monitor(TopKIncomplete(1, ["a"], Last(5)), id="i")
    ids = [one for number in range(600) for one in (number, max(0, number - 3))]
    monitor.push({"i": ids, "part": ["a"] * len(ids), "value": [0.5] * len(ids)})
    assert monitor.stats()["rejected"] == {"part: second row of the same part": 600}
