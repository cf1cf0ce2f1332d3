"""Pairs of live objects (UntilDeleted) against the oracle: replaced and deleted ids, views that are filled up again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import (
    CLOCKWORKS,
    Add,
    Delete,
    Draw,
    Drop,
    Push,
    Replace,
    Restore,
    Scene,
    cells,
    examples,
    row,
    same_changes,
    same_rows,
)
from pairs.test_contract import BY_ORDER, CALLABLES, apart
from skyband.engines.pairs.refill import REFILL
from skyband.oracle import Oracle

BYS: list[Any] = [
    sb.Global({"x": "absdiff"}),
    sb.Global({"x": "sum", "y": "sum"}),
    "least(a.x, b.x) / abs(a.y - b.y)",
    "a.x - 2 * b.x",
    apart,
]
ONS = [None, "a.z <> b.z", "a.x <= b.y or a.z is null", BY_ORDER]
WINDOW = sb.UntilDeleted()


@pytest.fixture(autouse=True, scope="module")
def short_views() -> Iterator[None]:
    before, REFILL.slack = REFILL.slack, -2
    yield
    REFILL.slack = before


@st.composite
def scenes(draw: Draw) -> Scene:
    ids, few = st.sampled_from("pqrstuvw"), st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.5, float("nan"), None])
    shared: dict[str, Any] = {
        "window": WINDOW,
        "largest": draw(st.booleans()),
        "where": draw(st.sampled_from([None, None, "y > 0"])),
        "per": draw(st.sampled_from([None, "g"])),
        "on": draw(st.sampled_from(ONS)),
        "by": draw(st.sampled_from(BYS)),
        "symmetric": False,
    }
    queries = {name: sb.TopKPairs(draw(st.integers(1, 3)), **shared) for name in "ab"[: draw(st.integers(1, 2))]}
    standing, events = dict(queries), list[Any]()
    rows = st.builds(row, i=ids, x=few, y=st.integers(-1, 2), z=st.sampled_from([None, "b", "c"]), g=st.integers(1, 2))
    for number in range(draw(st.integers(1, 8))):
        kind = (
            draw(st.sampled_from(["push"] * 4 + ["delete"] * 3 + ["restore", "replace", "add"])) if number else "push"
        )
        if kind == "push":
            events.append(Push([one | {"t": number} for one in draw(st.lists(rows, max_size=10))]))
        elif kind == "delete":
            events.append(Delete(draw(st.lists(ids, max_size=4))))
        elif kind == "restore":
            events.append(Restore())
        else:
            name = draw(st.sampled_from(sorted(standing)))
            like = dataclasses.replace(standing[name], k=draw(st.integers(1, 3)))
            name = name if kind == "replace" else f"n{number}"
            standing[name] = like
            events.append(Replace(name, like) if kind == "replace" else Add(name, like))  # type: ignore[arg-type]
    options = {"id": "i", "time": draw(st.sampled_from([None, "t"])), "keep": ("z",)}
    return Scene(queries, events, {**options, "emit": draw(st.sampled_from(["arrival", "batch"]))}, CLOCKWORKS["int64"])


def play(scene: Scene) -> sb.Monitor:
    monitor, oracle = sb.Monitor(scene.queries, **scene.options), Oracle(scene.queries, **scene.options)
    for place, event in enumerate(scene.events):
        where = f"event {place}, {type(event).__name__}"
        match event:
            case Push(rows):
                changes, expected = monitor.push(scene.table(rows)), oracle.push(rows)
                same_changes(cells(changes), expected, where, net_changes=scene.net_changes)
            case Delete(ids):
                same_rows(cells(monitor.delete(ids)), oracle.delete(ids), where)
            case Restore():
                monitor = sb.Monitor.restore(monitor.snapshot(), CALLABLES, trusted=False)
            case Add(name, query, _):
                monitor.add(name, query)
                oracle.add(name, query)
            case Replace(name, query):
                same_rows(cells(monitor.replace(name, query)), oracle.replace(name, query), where)
            case Drop(name):
                monitor.drop(name)
                oracle.drop(name)
        for reason in ("pair without a score", "unknown id"):
            assert monitor.stats()["rejected"].get(reason, 0) == oracle.rejected[reason], where
        for adapter in monitor._loop.state.standing():
            adapter.check()
        for name in oracle.queries:
            same_rows(cells(monitor.answer(name)), oracle.answer(name), f"{where}, answer of {name}")
            same_rows(cells(monitor.answer(name, k=1)), oracle.answer(name, k=1), f"{where}, best of {name}")
    return monitor


@examples(60)
@given(scene=scenes())
def test_live_pairs_are_the_oracles(scene: Scene) -> None:
    play(scene)


@pytest.mark.parametrize("by", BYS)
@pytest.mark.parametrize("on", [None, "a.z <> b.z"])
def test_a_view_is_filled_up_as_often_as_it_must_be(by: Any, on: str | None) -> None:
    rng = np.random.default_rng(3)
    query = sb.TopKPairs(2, by, WINDOW, on=on, symmetric=False, largest=True)
    queries = {"other": dataclasses.replace(query, k=1), "q": query}
    monitor, oracle = sb.Monitor(queries, id="i"), Oracle(queries, id="i")
    scene, refilled = Scene(queries, [], {"id": "i"}, CLOCKWORKS["int64"]), 0
    for step in range(25):
        if step == 9:  # the other goes on with its own marks
            monitor.drop("other")
            oracle.drop("other")
        if step % 6 == 5:
            refilled += monitor._loop.state.standing()[0].machine.work["refilled"]  # type: ignore[attr-defined]
            monitor = sb.Monitor.restore(monitor.snapshot(), CALLABLES, trusted=False)
        names = rng.choice(18, 4 if step < 6 else 2, replace=False)
        rows = [
            row(i=f"{name}", x=float(rng.integers(0, 9)), y=int(rng.integers(1, 4)), z="bc"[rng.integers(2)])
            for name in names
        ]
        same_changes(cells(monitor.push(scene.table(rows))), oracle.push(rows), f"push {step}", net_changes=False)
        best = [one for pair in cells(monitor.answer("q")) for one in (pair["id_a"], pair["id_b"])][:1]
        same_rows(cells(monitor.delete(best)), oracle.delete(best), f"delete {step}")
        for adapter in monitor._loop.state.standing():
            adapter.check()
    assert refilled > 3


def test_algorithms_of_windows_that_move_refuse_deletions_and_the_other_way_round() -> None:
    for algorithm in ("SCASE", "TA", "BASIC", "NAIVE"):
        with pytest.raises(sb.QueryError, match="use auto or one of REFILL"):
            sb.Monitor(sb.TopKPairs(1, sb.Global({"x": "absdiff"}), WINDOW, algorithm=algorithm), id="i")
    with pytest.raises(sb.QueryError, match=r"UntilDeleted\(\) only.*SCASE, TA, BASIC, NAIVE"):
        sb.Monitor(sb.TopKPairs(1, sb.Global({"x": "absdiff"}), sb.Last(3), algorithm="REFILL"))
    with pytest.raises(sb.QueryError, match="id column"):
        sb.Monitor(sb.TopKPairs(1, "abs(a.x - b.x)", WINDOW))
    assert "REFILL" in str(sb.explain(sb.TopKPairs(1, "abs(a.x - b.x)", WINDOW)))
