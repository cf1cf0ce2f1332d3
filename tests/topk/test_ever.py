"""Windows without end: TopK keeps exactly its k best and Above what is above, as the oracle says, on any stream."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import (
    CLOCKWORKS,
    Push,
    Restore,
    Scene,
    Taste,
    by_group,
    cells,
    check,
    examples,
    net,
    play,
    queries_of,
    row,
    rows_of,
    same_rows,
    scenes,
)
from engines.suite import FEW, PLAIN
from engines.suite import TASTES as MOVING
from skyband.query.algorithms import algorithms

TASTES = {
    name: dataclasses.replace(taste, ever=True)
    for name, taste in MOVING.items()
    if name not in ("k > n", "n = 1", "families, time")  # of the length of a window
}
TASTES["before 1970"] = dataclasses.replace(
    PLAIN, ever=True, timed=(True,), lateness=(0, 8), clockworks=("int64",), scores=FEW, queries=2, restores=True
)
ABOVE = Taste(
    ever=True, by=("x", "x + y"), above=(True,), thresholds=(0.0, 1.0, 1.0, 2.0, -math.inf, 1.5, math.inf), rows=14
)


@pytest.mark.parametrize("taste", TASTES)
@examples(20)
@given(data=st.data())
def test_topk_equals_the_oracle(taste: str, data: st.DataObject) -> None:
    """Strict: as many objects are kept as the answer of the largest k has, and just those."""
    play(data.draw(scenes("auto", TASTES[taste])), strict=True)


@examples(60)
@given(data=st.data())
def test_above_equals_the_oracle(data: st.DataObject) -> None:
    play(data.draw(scenes("auto", ABOVE)))


@pytest.mark.parametrize("taste", [TASTES["everything"], ABOVE], ids=["TopK", "Above"])
@examples(25)
@given(data=st.data())
def test_restored_between_any_two_events(taste: Taste, data: st.DataObject) -> None:
    scene = data.draw(scenes("auto", dataclasses.replace(taste, restores=False)))
    events = [event for one in scene.events for event in (one, Restore())]
    stored = play(dataclasses.replace(scene, events=events)).snapshot()
    assert sb.Monitor.restore(stored).snapshot() == stored
    assert stored == play(scene).snapshot(), "a snapshot depends on what happened, not on restores"


@pytest.mark.parametrize("taste", [TASTES["everything"], ABOVE], ids=["TopK", "Above"])
@examples(25)
@given(data=st.data())
def test_cuts_do_not_matter(taste: Taste, data: st.DataObject) -> None:
    draw, clockwork = data.draw, CLOCKWORKS["int64"]
    queries = queries_of(draw, taste, "auto", True, draw(st.sampled_from([None, "g"])), clockwork)
    rows, _ = rows_of(draw, taste, draw(st.integers(0, 40)), 0, draw(st.sampled_from([0, 4])), clockwork)
    options: dict[str, Any] = {"time": draw(st.sampled_from(["t", None])), "keep": ("z",)}
    scene = Scene(queries, [], options)
    one, other = sb.Monitor(queries, **options), sb.Monitor(queries, **options)
    expected = cells(one.push(scene.table(rows)))
    got, begin = [], 0
    for end in sorted({*draw(st.lists(st.integers(0, len(rows)), max_size=6)), len(rows)}):
        got += cells(other.push(scene.table(rows[begin:end])))
        other = sb.Monitor.restore(other.snapshot())
        begin = end
    same_rows(got, expected, "all changes")
    assert by_group(got) == by_group(expected)


@examples(25)
@given(data=st.data())
def test_net_changes_are_the_sum_of_all(data: st.DataObject) -> None:
    taste = dataclasses.replace(TASTES["everything"], emit=("arrival",), edits=False, above=(True, False))
    scene = data.draw(scenes("auto", dataclasses.replace(taste, thresholds=(1.0,))))
    each = sb.Monitor(scene.queries, **scene.options)
    whole = sb.Monitor(scene.queries, **{**scene.options, "emit": "batch"})
    for event in scene.events:
        if isinstance(event, Push):
            table = scene.table(event.rows)
            assert net(cells(whole.push(table))) == net(cells(each.push(table)))


@pytest.mark.parametrize("per", [None, "g"])
@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal"])
def test_long_streams(order: str, per: str | None) -> None:
    """Against NumPy: the k best of each group, the newer of equals first; k objects are kept."""
    rng, size, k = np.random.default_rng(7), 20_000, 50
    x = {"random": rng.random(size), "rising": np.arange(size) / 7, "falling": -np.arange(size) / 7}.get(
        order, rng.integers(0, 3, size).astype(float)
    )
    groups = rng.integers(0, 7, size) if per else np.zeros(size, np.int64)
    monitor = sb.Monitor(sb.TopK(k, "x", sb.Ever(), per=per), id="i")
    for begin in range(0, size, 3_000):
        here = slice(begin, begin + 3_000)
        monitor.push({"x": x[here], "g": groups[here], "i": np.arange(size)[here]})
    check(monitor)
    answer = monitor.answer().to_pydict()
    ranked = np.lexsort((-np.arange(size), -x, groups))
    best = np.concatenate([ranked[groups[ranked] == g][:k] for g in np.unique(groups)])
    assert sorted(answer["id"]) == sorted(best.tolist())
    assert answer["id"] == best.tolist() or per
    assert monitor.stats()["queries"]["q0"]["objects"] == len(best)


def test_extreme_times() -> None:
    """No time is so far back or ahead that a window without end would lose it."""
    far = 2**62 - 1
    rows = [row(t=t, x=x, i=str(t)) for t, x in ((far, 1.0), (-far, 3.0), (0, 2.0), (-far, 3.0), (far, 3.0))]
    for emit in ("arrival", "batch"):
        options: dict[str, Any] = {"time": "t", "id": "i", "emit": emit}
        queries: dict[str, Any] = {"a": sb.TopK(2, "x", sb.Ever()), "b": sb.Above(1, "x", sb.Ever())}
        play(Scene(queries, [Push(rows), Restore(), Push(rows)], options))


def test_a_late_row_is_never_too_late_unless_all_are_dropped() -> None:
    rows = {"t": [100, 1], "x": [1.0, 2.0]}
    accepting, dropping = (sb.Monitor(sb.TopK(1, "x", sb.Ever()), time="t", late=late) for late in ("accept", "drop"))
    assert accepting.push(rows).column("time").to_pylist() == [100, 100, 100]  # the step of a late row is at the clock
    assert accepting.answer().column("time").to_pylist() == [1]
    assert dropping.push(rows).num_rows == 1 and dropping.stats()["late"] == 1
    assert accepting.stats()["late"] == 0


@pytest.mark.parametrize("kind", ["TopK", "Above"])
def test_names_that_cannot_list_those_that_can(kind: str) -> None:
    make: Any = sb.TopK if kind == "TopK" else sb.Above
    for one in algorithms(kind):
        by = sb.Nearest({"x": 1}) if one.name in ("CPM/W", "SNN") else "x"
        for window in (sb.Ever(), sb.Last(9)):
            if window.sort in one.windows:
                continue
            with pytest.raises(sb.QueryError) as refused:
                sb.Monitor(make(1, by, window, algorithm=one.name))
            plain = [other for other in algorithms(kind) if "ranks" not in other.takes]
            able = [other.name for other in plain if window.sort in other.windows]
            assert able and all(other in str(refused.value) for other in able)


def test_it_shares_with_no_other_window() -> None:
    queries = {
        "ever": sb.TopK(2, "x", sb.Ever()),
        "last": sb.TopK(2, "x", sb.Last(3)),
        "too": sb.TopK(1, "x", sb.Ever()),
    }
    monitor = sb.Monitor(queries)
    monitor.push({"x": [3.0, 1.0, 2.0, 0.0]})
    adapters = monitor._loop.state.adapters
    assert adapters["ever"] is adapters["too"] is not adapters["last"]
    changes = monitor.replace("last", sb.TopK(2, "x", sb.Ever()))
    assert changes.column("diff").to_pylist() == [-1, -1], "another window begins empty"
