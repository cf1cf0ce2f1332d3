"""Improbable tuples: an answer is read from fewer of them; and what an error that is allowed would save (dom.md)."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import cells, check, examples, same_rows
from skyband import Last, Monitor, TopKUncertain
from skyband.engines.uncertain.front_engine import FrontEngine

SEMANTICS = ("pk-topk", "pt-k", "u-kranks", "u-topk")


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("largest", [0.02, 0.2])
def test_answers_are_those_of_the_whole_window(semantics: Any, largest: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities are small, some are large for a while; `check` reads each answer from all tuples of BS."""
    monkeypatch.setattr(FrontEngine, "block", 7)
    monkeypatch.setattr(FrontEngine, "least", 4)
    threshold = largest / 5 if semantics == "pt-k" else None
    query = TopKUncertain(2, "x", Last(80), semantics=semantics, threshold=threshold, algorithm="BS")
    monitors = [Monitor(query), Monitor(dataclasses.replace(query, algorithm="DOM"))]
    rng = np.random.default_rng(9)
    for number in range(60):
        size = int(rng.integers(1, 16))
        p = largest * (1 - rng.random(size))
        if number % 20 > 13:
            p[rng.random(size) < 0.2] = 0.9
        batch = {"x": rng.integers(0, 50, size).astype(float), "p": p}
        changes = [cells(monitor.push(batch)) for monitor in monitors]
        same_rows(changes[1], changes[0], "changes")
        for monitor in monitors:
            check(monitor)
        if number % 9 == 8:
            monitors = [Monitor.restore(monitor.snapshot(), trusted=False) for monitor in monitors]


@pytest.mark.parametrize("size", [20, 150])
@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("algorithm", ["BS", "DOM"])
def test_a_probable_tuple_below_all_enters(
    algorithm: str, semantics: Any, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the second of a push, since the first one is always looked at; of 150 tuples the lowest are in no front."""
    monkeypatch.setattr(FrontEngine, "least", 4)
    threshold = 0.1 if semantics == "pt-k" else None
    monitor = Monitor(
        TopKUncertain(1, "x", Last(400), semantics=semantics, threshold=threshold, algorithm=algorithm), emit="arrival"
    )
    monitor.push({"x": 1000.0 - np.arange(size), "p": np.full(size, 0.01)})
    entered = monitor.push({"x": [3.0, 2.0, 1.0], "p": [0.01, 0.9, 0.01]}).to_pylist()
    check(monitor)
    assert (size + 1, 1) in [(row["id"], row["diff"]) for row in entered]
    assert monitor.answer()["id"].to_pylist()[0] == size + 1


@pytest.mark.parametrize("algorithm", ["BS", "DOM"])
def test_an_answer_is_read_from_fewer_tuples(algorithm: str) -> None:
    monitor = Monitor(TopKUncertain(10, "x", Last(20_000), algorithm=algorithm))
    x, p = np.random.default_rng(7).random((2, 40_000))
    for begin in range(0, 40_000, 5_000):
        monitor.push({"x": x[begin : begin + 5_000], "p": 0.01 * (1 - p[begin : begin + 5_000])})
    engine: Any = monitor._loop.state.standing()[0].engine
    assert 500 < engine.state.views["guess"][0] < 1_200, "some 3,785 without the bound of probabilities"


# ------------------------------------------------------------- what an error would save


def depth(ps: Sequence[float], k: int, epsilon: float, most: float = 1.0) -> int:
    """How many tuples a walk of pk-topk passes that also ends where F <= epsilon."""
    exactly, best = np.eye(1, k)[0], [0.0] * k
    for d, p in enumerate(ps, 1):
        heapq.heappushpop(best, p * exactly.sum())
        exactly[1:], exactly[0] = exactly[1:] * (1 - p) + exactly[:-1] * p, exactly[0] * (1 - p)
        few = exactly.sum()
        if d >= k and (best[0] >= most * few or few <= epsilon):
            return d
    return len(ps)


@pytest.mark.parametrize(
    ("largest", "passed"),
    [
        (1.0, [22, 22, 22, 10, 22, 22]),
        (0.1, [283, 283, 283, 281, 281, 115]),
        (0.01, [3785, 3785, 3785, 3776, 2860, 895]),
    ],
)
def test_an_error_that_is_allowed_saves_few_tuples(largest: float, passed: list[int]) -> None:
    ps = (largest * (1 - np.random.default_rng(7).random(60_000))).tolist()
    found = [depth(ps, 10, largest * share) for share in (0, 0.01, 0.5, 1)]
    assert [*found, depth(ps, 10, 0.1), depth(ps, 10, 0, largest)] == passed


def few(ps: Sequence[float], k: int) -> float:
    """The probability that fewer than k of these exist."""
    exactly = np.eye(1, k)[0]
    for p in ps:
        exactly[1:], exactly[0] = exactly[1:] * (1 - p) + exactly[:-1] * p, exactly[0] * (1 - p)
    return float(exactly.sum())


@examples(100)
@given(st.data())
def test_the_error_of_a_relaxed_drop_does_not_accumulate(data: st.DataObject) -> None:
    """Tuples go once the kept newer ones above them satisfy F <= epsilon; no chance is ever wrong by more."""
    k, n, epsilon = data.draw(st.integers(1, 3)), data.draw(st.integers(3, 12)), data.draw(st.sampled_from([0.05, 0.3]))
    tuples = data.draw(
        st.lists(st.tuples(st.integers(0, 8), st.sampled_from([0.9, 0.6, 0.4, 0.2])), min_size=8, max_size=30)
    )
    kept: list[int] = []
    for now in range(len(tuples)):
        valid = range(max(0, now - n + 1), now + 1)
        remaining: list[int] = []  # from the newest to the oldest
        for i in (now, *(i for i in kept if i in valid)):
            if few([tuples[j][1] for j in remaining if tuples[j][0] >= tuples[i][0]], k) > epsilon:
                remaining.append(i)
        kept = remaining
        for i in valid:
            true = few([tuples[j][1] for j in valid if (tuples[j][0], j) > (tuples[i][0], i)], k)
            found = few([tuples[j][1] for j in kept if (tuples[j][0], j) > (tuples[i][0], i)], k)
            assert found == pytest.approx(true) or true < found <= epsilon + 1e-12
            assert i in kept or found <= epsilon + 1e-12
