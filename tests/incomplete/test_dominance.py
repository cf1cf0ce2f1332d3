"""Interval dominance: what must stay, and what EAA keeps (haghani2009, section 3.2)."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import (
    Push,
    cells,
    examples,
    same_changes,
)
from incomplete.scenes import EXACT, play, scene_of, streams
from skyband import Last, Monitor, TopKIncomplete
from skyband.oracle import Oracle


@examples(120)
@given(data=st.data())
def test_what_is_not_dominated_is_kept(data: Any) -> None:
    """EAA keeps just those rows; a sweep may leave more, or fewer of an object where two of them expire together."""
    scene = data.draw(streams("SWEEP", counted=True))
    lazy = Monitor(scene.queries, **scene.options)
    exact = Monitor(dataclasses.replace(scene.queries["p"], algorithm="EAA"), **scene.options)
    for event in scene.events:
        if isinstance(event, Push):
            kept = []
            for monitor in (lazy, exact):
                monitor.push(scene.table(event.rows))
                (adapter,) = monitor._loop.state.adapters.values()
                kept.append(set(cast("Any", adapter.engine).serials()[0].tolist()))
            assert kept[1] <= kept[0]


@examples(15)
@given(data=st.data())
def test_eaa_keeps_exactly_the_k_dominance_set(data: Any) -> None:
    """Theorem 1, with Definition 1's t >=: the instances of all valid rows that fewer than k objects dominate."""
    scene = data.draw(streams("EAA"))
    (query,) = scene.queries.values()
    monitor, oracle = Monitor(query, **scene.options), Oracle([query], **scene.options)
    for event in scene.events:
        if isinstance(event, Push):
            monitor.push(scene.table(event.rows))
            oracle.push(event.rows)
    stream = oracle._streams["q0"]
    (group,) = stream.groups.values()
    valid = [o for o in stream.valid(group.arrivals, oracle.clock) if o.eligible]
    instances = []
    for row in valid:
        own = [o for o in valid if o.id == row.id and o.age >= row.age]
        full = {part: [o for o in own if o.part == part] for part in ("a", "b")}
        lows = [found[-1].value if found else 0.0 for found in full.values()]
        highs = [found[-1].value if found else 1.0 for found in full.values()]
        instances.append((row, _combined(query, lows), _combined(query, highs)))
    wanted = set()
    for row, _, best in instances:
        stamp = row.age[0]
        rivals = {o.id for o, current, _ in instances if o.age[0] >= stamp and o.id != row.id and current > best}
        if len(rivals) < query.k:
            wanted.add(row.number)
    adapter = monitor._loop.state.adapters["q0"]
    engine: Any = adapter.engine
    places, _ = engine._places(np.array([0]))
    listed = engine.each["listed"][places] == 1
    kept = engine.rows["serial"][places][listed]
    assert len(kept) == len(wanted)


def _combined(query: Any, values: list[float]) -> float:
    a, b = values
    return {"sum": a + b, "max": max(a, b), "min": min(a, b)}.get(query.combine, a**3 + b)


def _push(monitor: Monitor, rows: Any) -> Any:
    names, values = ("i", "part", "value", "t"), zip(*rows, strict=True)
    return monitor.push(dict(zip(names, map(list, values), strict=True)))


@pytest.mark.parametrize("algorithm", EXACT)
def test_a_part_that_has_expired_may_return(algorithm: str) -> None:
    """Erratum of section 3.2.1: x's part a is older than its instance of b, and comes back with its highest value."""
    query = TopKIncomplete(1, ["a", "b"], Last(span=10), algorithm=algorithm)
    monitor, oracle = Monitor(query, id="i", time="t"), Oracle([query], id="i", time="t")
    rows = [("x", "a", 0.1, 0), ("x", "b", 0.6, 5), ("y", "a", 0.7, 6), ("x", "a", 1.0, 11), ("w", "a", 0.1, 14)]
    for row in rows:
        changes = cells(_push(monitor, [row]))
        same_changes(changes, oracle.push([dict(zip(("i", "part", "value", "t"), row, strict=True))]), str(row))
    assert monitor.answer()["id"].to_pylist() == ["x"]
    assert monitor.answer()["score"].to_pylist() == [1.6]


@pytest.mark.parametrize("algorithm", EXACT)
def test_an_object_that_can_reach_a_tie_stays(algorithm: str) -> None:
    """One of two can come to the score of the other when its b has expired, and would then be the newer one."""
    query = TopKIncomplete(1, ["a", "b"], Last(6), algorithm=algorithm)
    rows = [("v", "a", 1.0), ("v", "b", 1.0), ("x", "b", 0.1), ("x", "a", 0.5), ("y", "b", 0.5), ("y", "a", 1.0)]
    rows += [("w", "a", 0.0), ("w", "b", 0.0), ("x", "b", 1.0)]
    monitor = play(scene_of(query, [(*row, t) for t, row in enumerate(rows)], 1))
    assert monitor.answer()["id"].to_pylist() == ["x"]


@pytest.mark.parametrize("algorithm", EXACT)
def test_two_rows_of_one_object_are_not_two_that_dominate(algorithm: str) -> None:
    query = TopKIncomplete(2, ["a", "b"], Last(10), algorithm=algorithm)
    rows = [("y", "a", 0.25), ("y", "b", 0.25), ("x", "a", 1.0), ("x", "b", 1.0), ("w", "a", 0.0)]
    monitor = play(scene_of(query, [(*row, t) for t, row in enumerate(rows)], 1))
    assert monitor.answer()["score"].to_pylist() == [2.0, 0.5]
