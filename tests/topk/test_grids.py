"""The grid and the sorted lists at work: small and large cells, drift, signs, boxes.

Differential tests: TMA, SMA and TSL over whole windows report what SA reports, which keeps skybands. In the contract
suite windows are so small that nearly all objects lie outside of the grid; here a new one is built at once.
"""

from __future__ import annotations

import dataclasses
import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest

from engines.streams import (
    KILL,
    check,
    cuts,
)
from skyband import Above, Last, Linear, Monitor, Nearest, Product, Quadratic, TopK
from skyband.engines.topk.kernels.window_state import OUTSIDE

ROWS = 240 if KILL else 500
ALGORITHMS = ("TMA", "SMA", "TSL")


@pytest.fixture
def grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new grid is built as soon as anything lies outside of the old one."""
    monkeypatch.setattr("skyband.engines.topk.window.FEW", 0)


def attributes(d: int, shape: str, rng: np.random.Generator) -> dict[str, Any]:
    data = rng.normal(size=(d, ROWS))
    if shape == "coarse":
        data = np.round(data * 2) / 2  # many ties
    elif shape == "signs":
        data = np.clip(np.round(data), -1, 1)  # nothing but ties
    elif shape == "positive":
        data = np.abs(data)
    elif shape == "negative":
        data = -np.abs(data) - 1
    elif shape == "drift":
        data = data / 4 + np.linspace(-3, 3, ROWS)
    elif shape == "constant":
        data[0] = 1.5
    elif shape == "outliers":
        data = np.where(rng.random((d, ROWS)) < 0.02, data * 1e4, data)
    elif shape == "tiny":
        data = data * 1e-310
    return {f"x{j}": data[j] for j in range(d)}


TYPED = {
    "typed": ("x0 * x1", "x1 - x0 * x0", "greatest(x0, -x1)", "case when x1 > 0 then x0 else x1 * x1 end"),
    "typed monotone": ("exp(x0) + x1", "x1 + 2 * x0 + 0", "least(x0, x1)", "0.5 * x1 + power(x0, 3)"),
    "typed of three": ("abs(x0) * x1 - x2", "x2 / (abs(x1) + 1) + x0", "x0 - floor(x1 * x2)", "x0 * x1 * x2"),
    "typed conditions": (
        "case when x0 < x1 then 1 else 0 end + 0 * x1",
        "x0 + coalesce(case when x1 > 0 then x1 end, 0)",
    ),
}


def scorings(form: str, d: int, rng: np.random.Generator, count: int = 4) -> list[Any]:
    if form in TYPED:
        return list(TYPED[form])
    names = [f"x{j}" for j in range(d)]
    found: list[Any] = []
    for _ in range(count):
        numbers = dict(zip(names, np.round(rng.normal(size=d), 2).tolist(), strict=True))
        word, _, weighted = form.partition(", ")
        if word in ("linear", "product", "quadratic"):
            found.append({"linear": Linear, "product": Product, "quadratic": Quadratic}[word](numbers))
        elif word == "expression":
            found.append(" ".join(f"{w:+}*{name}" for name, w in numbers.items()).lstrip("+"))
        else:
            weights = dict(zip(names, np.round(rng.random(d) * 2, 1).tolist(), strict=True)) if weighted else None
            metric: Any = word
            found.append(Nearest(numbers, weights=weights, metric=metric))
    return found


CASES = {
    "linear, 1": ("linear", 1, "coarse", 3, None, None, None),
    "ties": ("linear", 1, "signs", 1, None, None, 9),
    "ties of many": ("linear", 2, "signs", 12, None, None, 30),
    "linear, 2": ("linear", 2, "drift", 4, None, None, 40),
    "linear, 4": ("linear", 4, "random", 2, None, None, 500),
    "linear, 6": ("linear", 6, "outliers", 5, None, None, None),
    "the least": ("linear", 2, "coarse", 3, False, None, 7),
    "constant": ("linear", 2, "constant", 3, None, None, None),
    "tiny": ("linear", 2, "tiny", 3, None, None, 30),
    "expression": ("expression", 2, "coarse", 4, None, "x0 > -1", None),
    "product": ("product", 2, "random", 3, None, None, 60),
    "product of three": ("product", 3, "coarse", 3, None, "x0 > -1 and x1 <= 1", 100),
    "least product": ("product", 2, "negative", 3, False, None, 30),
    "least product of few signs": ("product", 2, "positive", 3, False, None, 60),
    "quadratic": ("quadratic", 2, "random", 3, None, None, 50),
    "least quadratic": ("quadratic", 3, "drift", 2, False, "x0 between -1 and 0.5", None),
    "euclidean": ("euclidean", 2, "drift", 3, None, None, None),
    "euclidean, weighted": ("euclidean, weighted", 3, "coarse", 4, None, None, 80),
    "manhattan": ("manhattan", 2, "outliers", 3, None, "x1 >= 0", 90),
    "chebyshev": ("chebyshev, weighted", 2, "coarse", 3, None, None, 30),
    "the farthest": ("euclidean", 2, "random", 3, True, None, 50),
    "the farthest by city blocks": ("manhattan", 2, "drift", 3, True, "x0 < 1 and x0 >= -1", None),
    "a point of a box": ("linear", 2, "coarse", 2, None, "x0 = 0.5 and x1 < 1", 20),
    "an empty box": ("linear", 2, "coarse", 2, None, "x0 > 100", 20),
    "a box and more": ("linear", 2, "random", 3, None, "x0 < 0.5 and x1 > x0 and x1 < 2", 60),
    "lists that are too long": ("linear", 2, "random", 40, None, None, 100),
    "typed": ("typed", 2, "random", 3, None, None, 300),
    "typed, ties": ("typed", 2, "coarse", 4, None, None, 60),
    "typed, the least": ("typed", 2, "signs", 3, False, None, None),
    "typed, a box": ("typed", 2, "outliers", 3, None, "x0 > -1 and x1 <= 0.5", 100),
    "typed, a box and more": ("typed", 2, "drift", 3, None, "x0 > -1 and x1 <= x0", 50),
    "typed, monotone": ("typed monotone", 2, "drift", 3, None, None, 100),
    "typed, monotone, the least": ("typed monotone", 2, "coarse", 5, False, "x1 between -1 and 0.5", None),
    "typed, of three": ("typed of three", 3, "random", 3, None, None, 200),
    "typed, of three, the least": ("typed of three", 3, "coarse", 3, False, "x2 >= 0", 60),
    "typed conditions": ("typed conditions", 2, "signs", 3, None, None, 30),
    "k > n": ("linear", 2, "coarse", 90, None, None, 20),
}


@cache
def case(name: str) -> tuple[dict[str, Any], list[TopK], list[Any]]:
    """A stream, queries over it and, by SA, their changes."""
    form, d, shape, k, largest, where, cells = CASES[name]
    rng = np.random.default_rng(list(CASES).index(name))
    queries = [TopK(k, by, Last(80), largest=largest, where=where, algorithm="SA") for by in scorings(form, d, rng)]
    columns = attributes(d, shape, rng)
    expected = Monitor(queries).push(columns).to_pylist()
    return columns, [dataclasses.replace(query, cells=cells) for query in queries], expected


def changes_of(monitor: Monitor, columns: dict[str, Any], places: Any) -> list[Any]:
    pieces = []
    for i, j in itertools.pairwise(places):
        pieces += monitor.push({name: column[i:j] for name, column in columns.items()}).to_pylist()
        check(monitor)
    return sorted(pieces, key=lambda change: change["query"])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_says_what_the_skyband_says(algorithm: str, name: str, grids: None) -> None:
    columns, queries, expected = case(name)
    monitor = Monitor([dataclasses.replace(query, algorithm=algorithm) for query in queries])
    assert changes_of(monitor, columns, cuts(ROWS, np.random.default_rng(1), 60)) == expected
    adapters = monitor._loop.state.standing()
    assert len(adapters) == 1, "they look at one window"
    store = adapters[0].engine.stores[0]  # type: ignore[union-attr]
    assert len(store.slots) <= 81 + 64
    if algorithm != "TSL":
        assert len(store.cells) > 2
        assert store.counters[OUTSIDE] < 40, "most objects are in cells"


@pytest.mark.parametrize("form", ["linear", "product", "euclidean"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_time_windows_with_late_rows(emit: Any, algorithm: str, form: str, grids: None) -> None:
    rng = np.random.default_rng(5)
    columns = attributes(2, "coarse", rng)
    times = np.cumsum(rng.choice([0, 0, 1, 2], ROWS))
    columns["t"] = times - np.where(rng.random(ROWS) < 0.15, rng.integers(0, 40, ROWS), 0)
    columns["g"] = rng.integers(0, 2, ROWS)
    asked = [
        TopK(3, by, Last(span=35), per=per, where="x0 < 1", algorithm="SA")
        for by in scorings(form, 2, rng, 2)
        for per in (None, "g")
    ]
    places = cuts(ROWS, rng, 40)
    expected = changes_of(Monitor(asked, time="t", emit=emit), columns, places)
    monitor = Monitor([dataclasses.replace(one, algorithm=algorithm, cells=50) for one in asked], time="t", emit=emit)
    assert sorted(map(str, changes_of(monitor, columns, places))) == sorted(map(str, expected))


@pytest.mark.parametrize("view", [0, 5, "dynamic"])
@pytest.mark.parametrize("name", ["ties", "product", "euclidean, weighted", "a box and more"])
def test_views_of_any_size(name: str, view: Any) -> None:
    columns, queries, expected = case(name)
    k = queries[0].k
    view = view if isinstance(view, str) else k + view
    monitor = Monitor([dataclasses.replace(query, algorithm="TSL", view=view) for query in queries])
    assert changes_of(monitor, columns, [0, 100, 101, 200, ROWS]) == expected


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_newer_of_equals_wherever_it_lies(
    algorithm: str, sign: int, grids: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When 2 is gone 1 and -1 are the best: their cells have maxscores 4 and 1, in a list they are at the two ends."""

    def even(values: Any, side: int) -> Any:
        return np.linspace(values.min(), values.max(), side + 1)

    monkeypatch.setattr("skyband.engines.topk.window.slab_edges", even)
    x = sign * np.array([0.0] * 16 + [-2, 2, 2, 2, 0, 1, -1] + [0] * 130)
    tuning = {"view": 1} if algorithm == "TSL" else {"cells": 4}
    query = TopK(1, Quadratic({"x": 1}), Last(100), algorithm=algorithm, **tuning)  # type: ignore[arg-type]
    expected = changes_of(
        Monitor(dataclasses.replace(query, algorithm="SA", cells=None, view=None)), {"x": x}, [0, len(x)]
    )
    assert changes_of(Monitor(query), {"x": x}, [0, len(x)]) == expected
    assert 1.0 in [change["score"] for change in expected]


@pytest.mark.parametrize("wild", [1e200, -1e200, 1e308, np.inf])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("begin", [0, 7])
def test_wild_numbers_send_queries_their_own_ways(begin: int, algorithm: str, wild: float) -> None:
    """From there on each is kept by its score; what it knows, it goes on with."""
    rng = np.random.default_rng(2)
    columns = attributes(2, "coarse", rng)
    columns["x0"][[begin, begin + 1, 220]] = wild, -wild, wild
    queries = [
        TopK(3, by, Last(20), where="x1 < 1", algorithm="SA")
        for by in (Linear({"x0": 0.0, "x1": 1.0}), Linear({"x0": 1.0, "x1": 2.0}), Linear({"x0": -1e9, "x1": 1.0}))
    ]
    places = [0, begin + 1, begin + 2, 30, 200, ROWS] if begin else [0, 1, 2, 30, 200, ROWS]
    expected = changes_of(Monitor(queries), columns, places)
    monitor = Monitor([dataclasses.replace(query, algorithm=algorithm) for query in queries])
    assert changes_of(monitor, columns, places) == expected
    assert len(monitor._loop.state.standing()) == 3


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_scores_that_span_all_numbers(algorithm: str) -> None:
    """The range of a grid over them would overflow."""
    x = np.array([1e308, -1e308, 1.0, np.inf, -np.inf, -1.7e308, 1.7e308, 5e-324, 0.0, 2.0] * 12)
    queries = [TopK(3, "x", Last(9), algorithm="SA"), TopK(2, "x", Last(4), algorithm="SA", largest=False)]
    expected = changes_of(Monitor(queries), {"x": x}, [0, len(x)])
    monitor = Monitor([dataclasses.replace(query, algorithm=algorithm) for query in queries])
    assert changes_of(monitor, {"x": x}, [0, 5, 60, len(x)]) == expected


@pytest.mark.parametrize("algorithm", ["TMA", "SMA"])
def test_infinite_scores_come_and_go(algorithm: str) -> None:
    """While they are the answer no cell can matter to the query; then cells matter again."""
    x = np.random.default_rng(4).random(400)
    x[[120, 121, 250]] = np.inf
    query = TopK(2, by="x", window=Last(50), algorithm=algorithm)
    found = []
    for one in (query, dataclasses.replace(query, algorithm="SA")):
        monitor = Monitor(one)
        found.append([row for i in range(0, 400, 7) for row in monitor.push({"x": x[i : i + 7]}).to_pylist()])
        monitor._loop.check()
    assert found[0] == found[1]


def test_the_first_wild_rows_are_all_rejected() -> None:
    """Queries that have gone their own ways stay apart: a score is not another's."""
    queries = [TopK(1, Linear({"x": w, "y": 1.0}), Last(9), algorithm="TMA") for w in (1.0, -1.0)]
    monitor = Monitor(queries)
    monitor.push({"x": [np.inf], "y": [np.nan]})
    monitor.push({"x": [1.0, 2.0], "y": [0.0, 0.0]})
    assert [monitor.answer(name).column("score").to_pylist() for name in monitor.queries] == [[2.0], [-1.0]]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_very_large_k_costs_no_memory(algorithm: str) -> None:
    monitor = Monitor(TopK(2**31 - 1, "x", Last(1000), algorithm=algorithm))
    monitor.push({"x": np.arange(100.0)})
    assert monitor.answer().num_rows == 100
    assert monitor.stats()["queries"]["q0"]["bytes"] < 2**20


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_batch_that_goes_on_over_several_groups(algorithm: str) -> None:
    """With emit="batch" and more=True groups take turns before any of them reports its changes."""
    rng = np.random.default_rng(3)
    queries = [TopK(k, Linear({"x": w}), Last(4), per="g", algorithm=algorithm) for k, w in ((1, 1), (2, -1), (3, 1))]
    queries += [Above(1, Linear({"x": 1}), Last(4), per="g", algorithm=algorithm)]  # type: ignore[list-item]
    one, parts = (Monitor(queries, emit="batch") for _ in range(2))
    for _ in range(6):
        columns = {"x": np.round(rng.normal(size=30) * 2), "g": rng.integers(0, 3, 30)}
        expected = one.push(columns).to_pylist()
        for i, j in itertools.pairwise([0, 3, 9, 15]):
            assert not parts.push({name: column[i:j] for name, column in columns.items()}, more=True).num_rows
        got = parts.push({name: column[15:] for name, column in columns.items()}).to_pylist()
        check(parts)
        assert sorted(map(str, got)) == sorted(map(str, expected))
