"""Steps that few random streams would meet: late rows, fronts that run short, objects that return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engines.streams import Advance
from incomplete.scenes import EXACT, IncompleteScene, play, scene_of
from skyband import Last, Monitor, QueryError, TopKIncomplete
from skyband.engines.incomplete.base import IncompleteEngine
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


@pytest.mark.parametrize("window", [Last(50), Last(span=50)])
@pytest.mark.parametrize("algorithm", EXACT)
def test_a_front_is_filled_again_from_below(algorithm: str, window: Last) -> None:
    """The smallest is best, each is larger than all before it; some lack a part, and count as its low."""
    query = TopKIncomplete(1, {"a": (0, 2), "b": (0, 2)}, window, largest=False, algorithm=algorithm)
    rows = [(f"{n // 2 if n % 3 else n}", "ab"[n % 2], 0.5 + n / 200, n) for n in range(140)]
    monitor = play(scene_of(query, rows, 37))
    engine: Any = monitor._loop.state.adapters["p"].engine
    assert engine.facts[REFILLED] > 0


@pytest.mark.parametrize("algorithm", EXACT)
def test_a_front_is_filled_again_from_below_though_few_have_one_part(algorithm: str) -> None:
    """SLA's list of that part ends long before the other, and enough of it is better than most, but not the best."""
    query = TopKIncomplete(1, {"a": (0, 2), "b": (0, 2)}, Last(100), largest=False, algorithm=algorithm)
    play(scene_of(query, [(f"{n}", "a" if 40 <= n < 60 else "b", 0.5 + n / 200, n) for n in range(130)], 65))


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("window", [Last(3), Last(span=3)])
def test_rows_that_fail_where_only_move_the_window(window: Last, algorithm: str) -> None:
    """In one push: the second row of `x` is valid, since the first has left the window."""
    query = TopKIncomplete(2, ["a", "b"], window, where="value > 0.25", algorithm=algorithm)
    rows = [("x", "a", 0.5, 0), ("y", "a", 0.25, 1), ("z", "b", 0.125, 2), ("x", "a", 0.75, 3), ("y", "b", 0.5, 3)]
    play(scene_of(query, rows, len(rows)))


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


NO_NUMBERS = {"a": (0, 4), "b": (-2, 3), "c": (1, 2.5)}


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize(("seed", "combine"), [(27, "sqrt(b) + c"), (65, "sqrt(b) + ln(a)"), (3, "sqrt(b) + c")])
def test_parts_without_a_score(algorithm: str, combine: str, seed: int) -> None:
    """Some values of b make no score (NaN): such objects are no answers, and neither drop nor keep others."""
    rng, values = np.random.default_rng(seed), {"a": (0.0, 0.5, 4.0), "b": (-2.0, -1.0, 1.0), "c": (1.0, 1.5, 2.5)}
    for k, window in ((1, Last(span=6)), (2, Last(6))):
        parts = ["abc"[number] for number in rng.integers(3, size=40)]
        times = np.cumsum(rng.integers(0, 2, 40)).tolist()
        rows = [(f"{rng.integers(5)}", p, float(rng.choice(values[p])), t) for p, t in zip(parts, times, strict=True)]
        play(scene_of(TopKIncomplete(k, NO_NUMBERS, window, combine=combine, algorithm=algorithm), rows, 3))


@pytest.mark.parametrize("algorithm", EXACT)
def test_rows_behind_a_dropped_one_go_with_it(algorithm: str) -> None:
    """Object 2 has no score, for its b; its newest row alone could have one, too low for an answer."""
    rows = [("0", "c", 1.0, 0), ("2", "a", 0.5, 2), ("3", "a", 0.0, 4), ("2", "b", -2.0, 4), ("1", "a", 0.5, 4)]
    rows += [("2", "c", 1.0, 5), ("3", "c", 1.5, 6), ("3", "b", 3.0, 7), ("1", "c", 1.5, 9), ("2", "a", 4.0, 9)]
    for cut in (1, 2, 4):
        query = TopKIncomplete(1, NO_NUMBERS, Last(span=6), combine="sqrt(b) + c", algorithm=algorithm)
        play(scene_of(query, rows, cut))


@pytest.mark.parametrize("algorithm", EXACT)
def test_an_object_of_score_minus_infinity_that_is_dropped_never_returns(algorithm: str) -> None:
    query = TopKIncomplete(1, {"a": (0, 4)}, Last(span=10), combine="ln(a)", algorithm=algorithm)
    rows = [("x", "a", 1.0, 0), ("y", "a", 0.0, 1), *((f"{n}", "a", 2.0, 2 + n) for n in range(4)), ("z", "a", 1.0, 20)]
    scene = scene_of(query, rows, 1)
    events = [*scene.events[:-1], Advance(20), scene.events[-1]]
    play(IncompleteScene(scene.queries, events, scene.options))


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_columns_are_those_of_the_row_with_the_maximum(algorithm: str, emit: str) -> None:
    """Part a of x is largest at 1, then at 3 (equal), b at 6; later rows are smaller, and ties go by them."""
    rows = [("x", "a", 0.5, 0), ("x", "a", 0.75, 1), ("y", "a", 0.75, 2), ("x", "a", 0.75, 3), ("x", "a", 0.25, 5)]
    rows += [("x", "b", 0.5, 6), ("x", "b", 0.25, 7), ("x", "a", 0.0, 8), ("z", "a", 1.0, 9), ("z", "b", 1.0, 10)]
    for k, window in ((1, Last(20)), (2, Last(span=6))):
        query = TopKIncomplete(k, ["a", "b"], window, repeat="max", algorithm=algorithm)
        scene = scene_of(query, rows, 1)
        for event in scene.events:
            event.rows[0]["z"] = str(event.rows[0]["t"])
        monitor = play(IncompleteScene(scene.queries, scene.events, scene.options | {"keep": ("z",), "emit": emit}))
    assert monitor.answer()["z"].to_pylist() == ["10", "6"]


@pytest.mark.parametrize("algorithm", EXACT)
def test_an_infinite_value_is_out_of_range(algorithm: str) -> None:
    query = TopKIncomplete(1, {"a": (0, np.inf)}, Last(9), algorithm=algorithm)
    monitor = Monitor(query, id="i")
    monitor.push({"i": [1, 2, 3], "part": ["a"] * 3, "value": [1e308, np.inf, 5.0]})
    assert monitor.answer()["id"].to_pylist() == [1]
    assert monitor.stats()["rejected"] == {"value out of range": 1}


@pytest.mark.parametrize("algorithm", ["APPROX", "BUDGET"])
@pytest.mark.parametrize(
    ("more", "said"), [({"largest": False}, "better without them"), ({"parts": {"a": (0, np.inf)}}, "has none")]
)
def test_estimates_need_highest_values_and_the_largest_first(algorithm: str, more: Any, said: str) -> None:
    query = TopKIncomplete(1, **{"parts": ["a"], "window": Last(9), "algorithm": algorithm, **more})
    with pytest.raises(QueryError, match=f"{said}.*SWEEP, EAA, SLA"):
        Monitor(query, id="i")


ALL_SORTS: list[dict[str, Any]] = [
    *({"algorithm": algorithm} for algorithm in (*EXACT, "APPROX")),
    {"repeat": "sum"},
    {"repeat": "sum", "at_most": 2},
    {"parts": "*", "repeat": "last"},
]


def _arrays(engine: Any) -> int:
    """Bytes of every array that an engine has or reaches, but the queries' own few."""
    reached = [
        *vars(engine).values(),
        *engine.store,
        *(array for one in engine.learned.values() for array in one.values()),
    ]
    own = {id(array): array.nbytes for array in reached if isinstance(array, np.ndarray)}
    for small in (engine.views, engine.queries, engine.held):
        own.pop(id(small), None)
    return sum(own.values())


@pytest.mark.parametrize("more", ALL_SORTS, ids=repr)
def test_bytes_are_those_of_all_arrays(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IncompleteEngine, "learned", {}, raising=False)
    monitor = Monitor(TopKIncomplete(**{"k": 2, "parts": ["a", "b"], "window": Last(50), **more}), id="i")
    monitor.push({"i": [f"{n}" for n in range(90)], "part": ["a", "b"] * 45, "value": [n % 7 / 7 for n in range(90)]})
    (adapter,) = {id(one): one for one in monitor._loop.state.adapters.values()}.values()
    engine: Any = adapter.engine
    whole = _arrays(engine) + (0 if engine.register is None else engine.register.nbytes)
    whole += engine.codes.keys.nbytes + engine.codes.order.nbytes if hasattr(engine, "codes") else 0
    whole += _arrays(engine.shadow) if hasattr(engine, "shadow") else 0
    assert engine.nbytes == whole
    (told,) = monitor.stats()["queries"].values()
    assert told["bytes"] >= engine.nbytes


def test_a_shorter_window_cannot_begin_with_what_a_longer_one_has_rejected() -> None:
    query = TopKIncomplete(1, parts=["a"], window=Last(4))
    monitor = Monitor(query, id="id")
    monitor.push({"id": [1, 1], "part": ["a", "a"], "value": [0.5, 0.7]})
    monitor.add("same", query, from_window=True)
    assert monitor.answer("same")["score"].to_pylist() == [0.5]
    with pytest.raises(QueryError, match="no standing query"):
        monitor.add("shorter", TopKIncomplete(1, parts=["a"], window=Last(1)), from_window=True)
