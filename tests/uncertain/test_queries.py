"""Uncertain queries in a Monitor: possible worlds, restored state, rejected rows, errors, and what `explain` says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import examples
from skyband import Ever, Last, Monitor, TopKUncertain, explain
from skyband.errors import BatchError, QueryError
from skyband.oracle.objects import Arrival
from skyband.oracle.uncertain import rank_probabilities_by_worlds, top_k_probabilities_by_worlds

SYNOPSES = ("DOM", "BS", "CSQ", "CCSQ", "SCSQ", "SCSQ-BUFFER")
SEMANTICS = ("pk-topk", "pt-k", "u-kranks", "u-topk")


# ------------------------------------------------------------------ possible worlds


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("semantics", SEMANTICS)
@examples(25)
@given(data=st.data())
def test_possible_worlds_agree(semantics: Any, grouped: bool, data: st.DataObject) -> None:
    """Windows up to 12, straight from the definition: every world is looked at."""
    size, k = data.draw(st.integers(1, 12 if not grouped else 8)), data.draw(st.integers(1, 3))
    ps = data.draw(st.lists(st.sampled_from([1.0, 0.5, 0.3, 1e-12, 0.9, 0.25]), min_size=size, max_size=size))
    names = data.draw(st.lists(st.sampled_from([1, 2, None]), min_size=size, max_size=size))
    query = TopKUncertain(
        k,
        "x",
        Last(12),
        semantics=semantics,
        threshold=0.2 if semantics == "pt-k" else None,
        group="r" if grouped else None,
        algorithm="auto" if grouped else "DOM",
    )
    monitor = Monitor(query)
    monitor.push({"x": list(range(size)), "p": ps, "r": names})
    came: list[Arrival] = []
    for i in range(size):
        rival = names[i] if grouped else None
        if rival is not None and math.fsum([ps[i], *(o.probability for o in came if o.rival == rival)]) > 1 + 1e-12:
            continue
        came.append(Arrival({}, None, None, number=len(came), probability=ps[i], rival=rival, key=float(i)))
    ranking = came[::-1]
    found = monitor.answer().to_pylist()
    if semantics == "u-topk":
        answers = top_k_probabilities_by_worlds(ranking, k)
        best = max(answers.values(), default=0.0)
        assert not found or found[0]["probability"] == pytest.approx(best, abs=1e-9)
        assert found or best <= 1e-9
        return
    holds = rank_probabilities_by_worlds(ranking, k)
    for row in found:
        mine = holds[came[row["id"]]]
        expected = mine[row["rank"] - 1] if semantics == "u-kranks" else sum(mine)
        assert row["probability"] == pytest.approx(expected, abs=1e-9)


# -------------------------------------------------------------------- restored state


def test_an_object_that_comes_back_after_a_restore_is_not_first() -> None:
    """It was reported, a late object that expires sooner pushed it out, and it enters again: not for the first time."""
    for algorithm in SYNOPSES:
        late = Monitor(TopKUncertain(1, "x", Last(span=5), algorithm=algorithm), time="t")
        late.push({"x": [1.0], "p": [0.6], "t": [3]})
        late.push({"x": [2.0], "p": [0.9], "t": [1]})  # late, and gone before the first
        late = Monitor.restore(late.snapshot())
        back = late.advance(6).to_pylist()
        assert [(row["id"], row["diff"], row["first"]) for row in back] == [(1, -1, False), (0, 1, False)]


@pytest.mark.parametrize("algorithm", [*SYNOPSES, "COMPACT", "BS alternatives", "DOM alternatives"])
@pytest.mark.parametrize("restored", [False, True])
def test_a_rank_that_a_query_gives_up_and_asks_for_again_is_not_first(algorithm: str, restored: bool) -> None:
    """Another query of the engine has the larger k meanwhile, so the object was there all the time."""
    window = Ever() if algorithm == "COMPACT" else Last(9)
    name, _, rest = algorithm.partition(" ")
    more: dict[str, Any] = {"algorithm": name} if name in SYNOPSES else {}
    group = "r" if rest else None
    one, two = (TopKUncertain(k, "x", window, semantics="u-kranks", group=group, **more) for k in (1, 2))
    monitor = Monitor({"a": two, "b": two})
    monitor.push({"x": [0.0, 0.0], "p": [1.0, 1.0], "r": ["m", "n"]})
    assert monitor.replace("b", one)["diff"].to_pylist() == [-1]
    if restored:
        monitor = Monitor.restore(monitor.snapshot(), trusted=False)
    back = monitor.replace("b", two).to_pylist()
    assert [(row["id"], row["rank"], row["diff"], row["first"]) for row in back] == [(0, 2, 1, False)]


# --------------------------------------------------------------------------- bad input


def test_improbable_rows_are_counted() -> None:
    monitor = Monitor(TopKUncertain(2, "x", Last(5)))
    monitor.push({"x": [1, 2, 3, 4, 5, 6.0], "p": [0.0, -0.1, 1.1, math.nan, None, 1.0]})
    assert monitor.stats()["rejected"] == {"probability is not in (0, 1]": 5}
    assert monitor.answer().to_pylist() == [{"rank": 1, "id": 0, "score": 6.0, "probability": 1.0}]


def test_alternatives_above_one_are_counted() -> None:
    monitor = Monitor(TopKUncertain(1, "x", Last(2), group="r"))
    monitor.push({"x": [1, 2, 3, 4, 5], "p": [0.6, 0.5, 0.4, 0.9, 0.5], "r": ["a", "a", "a", None, "a"]})
    assert monitor.stats()["rejected"] == {"probabilities of a group pass 1": 1}
    assert monitor.stats()["arrivals"] == 4


def test_errors_say_what_instead() -> None:
    with pytest.raises(QueryError, match="threshold"):
        TopKUncertain(2, "x", Last(5), semantics="pt-k")
    for name in ("CSQ", "CCSQ", "SCSQ", "SCSQ-BUFFER"):
        with pytest.raises(QueryError, match="Use auto or DOM, BS"):
            Monitor(TopKUncertain(2, "x", Last(5), group="r", algorithm=name))
    with pytest.raises(QueryError, match="Use auto or BS"):
        Monitor(TopKUncertain(2, "x", Last(5), group="r", algorithm="DOM", semantics="u-topk"))
    monitor = Monitor(TopKUncertain(2, "x", Last(5)), invalid="raise")
    with pytest.raises(BatchError, match="row 1: probability"):
        monitor.push({"x": [1, 2], "p": [0.5, 2.0]})
    with pytest.raises(BatchError, match="'p' holds"):
        monitor.push({"x": [1, 2], "p": ["a", "b"]})
    with pytest.raises(QueryError, match="k=3"):
        monitor.answer(k=3)


def test_auto_keeps_small_windows_whole() -> None:
    chosen = {n: explain(TopKUncertain(2, "x", Last(n))).algorithm for n in (100, 1024, 1025, 10**6)}
    assert chosen == {100: "BS", 1024: "BS", 1025: "DOM", 10**6: "DOM"}
    assert explain(TopKUncertain(2, "x", Last(10**6), group="r")).algorithm == "DOM"
    assert explain(TopKUncertain(2, "x", Last(10**6), group="r", semantics="u-topk")).algorithm == "BS"
    assert explain(TopKUncertain(2, "x", Last(9), group="r")).algorithm == "BS"


@pytest.mark.parametrize("algorithm", ["BS", "DOM"])
def test_a_push_longer_than_the_window_leaves_no_more_than_the_window(algorithm: str) -> None:
    score = np.arange(500.0)[::-1]  # no object is dominated
    query = TopKUncertain(2, by="score", window=Last(50), algorithm=algorithm)
    timed = TopKUncertain(2, by="score", window=Last(span=50), algorithm=algorithm)
    monitor = Monitor({"count": query, "time": timed}, time="t")
    monitor.push({"score": score, "p": np.full(500, 0.5), "t": np.arange(500)})
    for one in monitor.stats()["queries"].values():
        assert one["objects"] + one["buffer"] == 50


def test_explain_tells_the_compact_set() -> None:
    query = TopKUncertain(10, "x", Last(100_000))
    usual, rare = explain(query), explain(query, probability=0.005)
    assert usual.objects is not None and rare.objects is not None
    assert 100 < usual.objects < 300, "192 are needed at p uniform, in random order"
    assert rare.objects > 30 * usual.objects
    assert any("compact set" in line for line in usual.why)


def test_explain_counts_the_alternatives_that_are_remembered() -> None:
    alone, rivals = (explain(TopKUncertain(10, "x", Last(100_000), group=group)) for group in (None, "r"))
    assert alone.objects == rivals.objects
    monitor = Monitor(TopKUncertain(10, "x", Last(100_000), group="r"))
    rng = np.random.default_rng(5)
    for _ in range(4):
        x, p = rng.random((2, 50_000))
        monitor.push({"x": x, "p": p / 2, "r": np.arange(50_000)})
    adapter: Any = monitor._loop.state.standing()[0]
    found = adapter.engine.rivals.nbytes
    assert alone.bytes is not None and rivals.bytes is not None
    assert 0.5 < found / (rivals.bytes - alone.bytes) < 2
    assert monitor.stats()["queries"]["q0"]["bytes"] > found


@pytest.mark.parametrize("algorithm", ["BS", "DOM"])
def test_a_front_is_cut_between_different_keys_only(algorithm: str) -> None:
    """Scores rise in steps of seven equal ones: fronts grow and are cut, and `check` compares them with the window."""
    monitor = Monitor(TopKUncertain(2, by="x", window=Last(4000), algorithm=algorithm))
    scores = np.arange(3000) // 7
    for begin in range(0, 3000, 100):
        monitor.push({"x": scores[begin : begin + 100], "p": np.full(100, 0.5)})
        monitor._loop.check()
