"""One window for all scorings of a Monitor: the same answers as with windows of their own, and the bytes of one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import INTEGERS, Add, Draw, Push, Replace, Scene, examples, row
from pairs.test_contract import EXACT, TASTE, TYPED, pair_scenes, play
from skyband.engines.pairs.base import Pairs

X, Y, BOTH, TURNED = (sb.Global(dict.fromkeys(names, "absdiff")) for names in (("x",), ("y",), ("x", "y"), ("y", "x")))
FOUR = {
    "s1": sb.TopKPairs(3, BOTH, sb.Last(50)),
    "s2": sb.TopKPairs(3, BOTH, sb.Last(50), largest=True),
    "s3": sb.TopKPairs(3, sb.Global({"x": "absdiff", "y": "absdiff"}, combine="product"), sb.Last(50)),
    "s4": sb.TopKPairs(3, "abs(a.x - b.x) - abs(a.y - b.y)", sb.Last(50), symmetric=True),
}


@pytest.fixture(autouse=True)
def small_blocks() -> Iterator[None]:
    """Let TA sort blocks of a few objects."""
    before, Pairs.least_block = Pairs.least_block, 4
    yield
    Pairs.least_block = before


@st.composite
def many_scorings(draw: Draw) -> Scene:
    """A scene in which each query has a scoring and an algorithm of its own."""
    scene: Scene = draw(pair_scenes("TA", dataclasses.replace(TASTE, lateness=(0, 0, 3)), EXACT))
    known: dict[str, Any] = {}

    def turned(name: str, query: Any) -> Any:
        if name not in known:
            known[name] = (
                draw(st.sampled_from(EXACT + TYPED)),
                draw(st.sampled_from(["SCASE", "SCASE", "TA", "NAIVE"])),
            )
        by, algorithm = known[name]
        typed = by in TYPED  # which TA does not take
        return dataclasses.replace(query, by=by, algorithm="SCASE" if typed else algorithm)

    queries = {name: turned(name, query) for name, query in scene.queries.items()}
    events = [
        dataclasses.replace(event, query=turned(event.name, event.query)) if isinstance(event, Add | Replace) else event
        for event in scene.events
    ]
    return dataclasses.replace(scene, queries=queries, events=events)


@examples(60)
@given(data=st.data())
def test_scorings_with_one_window_answer_as_the_oracle_does(data: st.DataObject) -> None:
    play(data.draw(many_scorings()))


def machines(monitor: sb.Monitor) -> list[Any]:
    return [adapter.machine for adapter in monitor._loop.state.standing()]  # type: ignore[attr-defined]


def shared(monitor: sb.Monitor) -> bool:
    """Whether all windows are in the same arrays, and all kept columns too."""
    groups = [machine.groups[0] for machine in machines(monitor)]
    stores = [adapter.kept_columns for adapter in monitor._loop.state.standing()]
    return all(
        one.window.stamps is other.window.stamps and np.shares_memory(one.window.data, other.window.data)
        for one, other in pairwise(groups)
    ) and all(one is other for one, other in pairwise(stores))


def distinct(monitor: sb.Monitor) -> int:
    """The bytes of all engines and kept columns, each array once."""
    arrays: dict[int, Any] = {}
    for machine in machines(monitor):
        for group in machine.groups.states:
            for one in (*group.window, *group.band, *group.blocks, *group.views, group.saved):
                while one.base is not None:
                    one = one.base
                arrays[id(one)] = one
    stores = {id(adapter.kept_columns): adapter.kept_columns for adapter in monitor._loop.state.standing()}
    groups: int = sum(machine.groups.nbytes for machine in machines(monitor))
    return groups + int(sum(one.nbytes for one in (*arrays.values(), *stores.values())))


def batch(begin: int, rows: int) -> dict[str, Any]:
    numbers = np.arange(begin, begin + rows)
    return {"id": numbers, "x": (numbers * 37 % 101).astype(float), "y": (numbers * 61 % 89).astype(float)}


def test_four_scorings_need_little_more_than_one() -> None:
    sizes = []
    for queries in ({"s1": FOUR["s1"]}, FOUR):
        window = sb.Last(5000)
        queries = {name: dataclasses.replace(query, window=window) for name, query in queries.items()}
        monitor = sb.Monitor(queries, id="id", emit="batch")
        for begin in range(0, 12_000, 400):
            monitor.push(batch(begin, 400))
        assert shared(monitor)
        bands = sum(
            array.nbytes
            for machine in machines(monitor)
            for array in (*machine.groups[0].band, *machine.groups[0].views)
        )
        sizes.append(sum(one["bytes"] for one in monitor.stats()["queries"].values()) - bands)
    assert sizes[1] < 1.3 * sizes[0]


@pytest.mark.parametrize("emit", ["arrival", "batch"])
@pytest.mark.parametrize("size", [1, 7, 200])
def test_windows_stay_one_as_they_grow(emit: Any, size: int) -> None:
    """Whatever a push brings: less than the arrays have room for, or many times the window."""
    monitor = sb.Monitor(FOUR, id="id", emit=emit)
    alone = {name: sb.Monitor({name: query}, id="id", emit=emit) for name, query in FOUR.items()}
    for begin in range(0, 500, size):
        monitor.push(batch(begin, size))
        assert shared(monitor)
        for name, one in alone.items():
            one.push(batch(begin, size))
            assert monitor.answer(name).equals(one.answer())


def test_a_part_of_the_attributes_is_a_part_of_the_window() -> None:
    queries = {str(i): sb.TopKPairs(2, by, sb.Last(20 - (i - 1) ** 2)) for i, by in enumerate((Y, BOTH, X))}
    monitor = sb.Monitor(queries, id="id")
    for begin in range(0, 100, 10):
        monitor.push(batch(begin, 10))
        assert shared(monitor)
    assert sum(one["bytes"] for one in monitor.stats()["queries"].values()) == pytest.approx(distinct(monitor), abs=99)
    monitor.drop("1")  # the one that has both
    monitor.push(batch(100, 10))
    assert sum(one["bytes"] for one in monitor.stats()["queries"].values()) == pytest.approx(distinct(monitor), abs=99)
    for adapter in monitor._loop.state.standing():
        adapter.check()


def test_other_orders_and_other_rows_have_their_own() -> None:
    queries = {"one": sb.TopKPairs(2, BOTH, sb.Last(20)), "other": sb.TopKPairs(2, TURNED, sb.Last(20))}
    monitor = sb.Monitor(queries | {"some": sb.TopKPairs(2, BOTH, sb.Last(20), where="x > 3")}, id="id")
    monitor.push(batch(0, 30))
    one, other, some = (machine.groups[0].window for machine in machines(monitor))
    assert one.data is not other.data
    assert one.stamps is not some.stamps


def test_a_row_that_one_scoring_rejects_parts_the_windows_until_it_is_gone() -> None:
    queries = {"x": sb.TopKPairs(2, X, sb.Last(8)), "both": sb.TopKPairs(2, BOTH, sb.Last(8))}
    rows = [row(i=str(n), x=float(n * 7 % 11), y=n * 5 % 13) for n in range(60)]
    rows[13]["y"] = 2**60  # beyond 2^53
    events: list[Any] = [Push(rows[begin : begin + 5]) for begin in range(0, 60, 5)]
    monitor = play(Scene(queries, events[:3], {"id": "i"}, INTEGERS))
    assert not shared(monitor)
    play(Scene(queries, events, {"id": "i"}, INTEGERS))


@pytest.mark.parametrize("late", ["accept", "drop"])
@pytest.mark.parametrize("algorithm", ["SCASE", "TA"])
def test_late_rows_leave_one_window(algorithm: str, late: str) -> None:
    scorings = [BOTH, X, FOUR["s3"].by]
    queries: dict[str, Any] = {
        str(i): sb.TopKPairs(3, by, sb.Last(span=30 - 8 * (i == 1)), largest=i > 1, algorithm=algorithm)
        for i, by in enumerate(scorings)
    }
    rows = [row(t=n - 9 * (n % 5 == 3), i=str(n), x=float(n * 7 % 11), y=n * 5 % 13) for n in range(80)]
    events: list[Any] = [Push(rows[begin : begin + 8]) for begin in range(0, 80, 8)]
    monitor = play(Scene(queries, events, {"id": "i", "time": "t", "late": late}, INTEGERS))
    assert shared(monitor)


def test_restored_lent_and_dropped_windows_are_one() -> None:
    short = sb.TopKPairs(2, Y, sb.Last(20))  # it takes rows first, and would sweep what the others need
    monitor = sb.Monitor({"short": short, "s1": FOUR["s1"], "s3": FOUR["s3"]}, id="id", keep=["x"])
    for begin in range(0, 120, 12):
        monitor.push(batch(begin, 12))
    monitor = sb.Monitor.restore(monitor.snapshot(), trusted=False)
    assert shared(monitor)
    monitor.add("s2", FOUR["s2"], from_window=True)
    monitor.add("later", sb.TopKPairs(2, Y, sb.Last(50)))
    monitor.push(batch(120, 12))
    assert shared(monitor)
    monitor.drop("s1")
    alone = sb.Monitor(FOUR["s3"], id="id", keep=["x"])
    alone.push(batch(0, 132))
    for begin in range(132, 1500, 20):  # kept columns are swept on the way
        monitor.push(batch(begin, 20))
        alone.push(batch(begin, 20))
        assert monitor.answer("s3").equals(alone.answer())
    assert shared(monitor)
    for adapter in monitor._loop.state.standing():
        adapter.check()
    assert len(monitor._loop.state.standing()[0].kept_columns) <= 1024 + 2 * 50 + 20
