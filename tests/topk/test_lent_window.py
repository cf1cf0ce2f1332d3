"""Whole windows of TMA, SMA and TSL that lend: a query that joins one answers at once, or goes on with what it knew."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import INTEGERS, Add, Drop, Push, Replace, Restore, Scene, Taste, examples, play, row, rows_of
from skyband import Above, Last, Linear, Nearest, Product, TopK, UntilDeleted

ALGORITHMS = ("TMA", "SMA", "TSL")
FAMILY = (Linear({"x": 1, "y": 0.5}), Linear({"x": -1, "y": 2}), Product({"x": 1, "y": 2}), Nearest({"x": 1, "y": 0}))
LENT = Taste(scores=(0.0, 1.0, 2.0, 3.0, 1.5, -1.0, None), ids=("p", "q", "r", "s"))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("window", ["count", "time", "until deleted"])
@examples(5)
@given(data=st.data())
def test_an_answer_at_once(window: str, algorithm: str, data: st.DataObject) -> None:
    """Queries join a window that is there: in its adapter, or with a copy of what they see of it; then all go on."""
    draw = data.draw
    if window == "until deleted" and algorithm == "SMA":
        algorithm = "TMA"

    def asked(n: int, by: Any) -> Any:
        lasts = Last(n) if window == "count" else Last(span=n) if window == "time" else UntilDeleted()
        where = draw(st.sampled_from([None, None, "x < 2", "x >= 1 and y <= 1", "y = 0"]))
        if draw(st.integers(0, 3)) == 0 and not isinstance(by, Nearest):
            return Above(draw(st.sampled_from([0.0, 1.0, 2.0])), by, lasts, where=where, per=per, algorithm=name)
        largest = draw(st.sampled_from([None, None, False]))
        return TopK(draw(st.integers(1, 4)), by, lasts, where=where, per=per, largest=largest, algorithm=name)

    per, name, n = draw(st.sampled_from([None, "g"])), algorithm, draw(st.integers(2, 9))
    queries = {"a": dataclasses.replace(asked(n, FAMILY[0]), where=None)}
    lateness, clock, events = draw(st.sampled_from([0, 3])), 0, list[Any]()
    for number in range(6):
        rows, clock = rows_of(draw, LENT, draw(st.integers(1, 9)), clock, lateness, INTEGERS)
        events.append(Push(rows))
        if number in (1, 2, 3):
            name = draw(st.sampled_from(["auto", algorithm, "TMA", "TSL"])) if window != "until deleted" else "TMA"
            by = draw(st.sampled_from(FAMILY))
            new = asked(draw(st.integers(1, n)), by)
            events.append(Add(f"n{number}", new, "a"))
        events += [Restore()] * (draw(st.integers(0, 2)) == 0)
        if number == 4:
            events += [Drop("a")] if draw(st.booleans()) else [Replace("n1", _less(events[_added(events)].query))]
    options = {
        "id": draw(st.sampled_from(["i"] if window == "until deleted" else ["i", None])),
        "time": "t",
        "keep": ("z",),
    }
    options["emit"] = draw(st.sampled_from(["arrival", "arrival", "batch"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skyband.engines.topk.window.FEW", 0)
        play(Scene(queries, events, options, ids=pa.string()))


def _added(events: list[Any]) -> int:
    return next(place for place, event in enumerate(events) if isinstance(event, Add))


def _less(query: Any) -> Any:
    if isinstance(query, Above):
        return dataclasses.replace(query, threshold=query.threshold + 1)
    return dataclasses.replace(query, k=max(1, query.k - 1))


def test_an_answer_at_once_leaves_the_others_alone() -> None:
    queries = {"a": TopK(2, Linear({"x": 1, "y": 1}), Last(6), algorithm="SMA")}
    rows = [row(x=float(x), y=y) for x, y in ((3, 0), (1, 2), (2, 2), (0, 1), (5, 0), (1, 1), (2, 0), (4, 1))]
    new = {
        "same window": TopK(1, Linear({"x": -1, "y": 1}), Last(6), algorithm="SMA"),
        "box": TopK(2, Linear({"x": 1, "y": 1}), Last(6), where="y between 1 and 2", algorithm="SMA"),
        "shorter": TopK(3, Linear({"x": 1, "y": 1}), Last(3), algorithm="SMA"),
        "other form": TopK(1, Product({"y": 1, "x": 1}), Last(6), algorithm="TSL"),
    }
    events = [
        Push(rows),
        *(Add(name, query, "a") for name, query in new.items()),
        Push(rows[:5]),
        Restore(),
        Push(rows),
    ]
    monitor = play(Scene(queries, events))
    assert len(monitor._loop.state.standing()) == 3


@pytest.mark.parametrize("algorithm", ["TMA", "auto"])
def test_another_question_keeps_the_numbers_and_the_window(algorithm: str) -> None:
    """One row is late for b.

    t        0   5   3          late for b, whose window is 2, not for a, whose window is 9
    a        0   1   2
    b        0   1   .   2      b goes on with its own numbers, whatever a has counted
    """
    queries = {
        name: TopK(2, Linear({"x": 1, "y": 1}), Last(span=span), algorithm="TMA") for name, span in (("a", 9), ("b", 2))
    }
    joined = TopK(3, Linear({"x": 1, "y": 0}), Last(span=2), algorithm=algorithm)
    events = [
        Push([row(t=t, x=1.0) for t in (0, 5, 3)]),
        Add("c", joined, "a"),
        Replace("b", dataclasses.replace(queries["b"], k=1)),
        Replace("c", dataclasses.replace(joined, k=1)),
        Push([row(t=t, x=2.0) for t in (5, 6)]),
    ]
    play(Scene(queries, events, {"time": "t"}))


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("kind", [TopK, Above])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_longer_window_knows_what_was_reported(algorithm: str, kind: Any, restored: bool) -> None:
    """The 5 leaves the window of 1 and comes back with the window of 2, which another query keeps: it is not first.

    So it is after a further query of the window of 2 has taken the window of 1 in between.
    """
    short, long = (kind(1, "x", Last(n), algorithm=algorithm) for n in (1, 2))
    pause = [Restore()] * restored
    events = [Push([row(x=5.0), row(x=0.0)]), *pause, Replace("a", long), Push([row(x=7.0), row(x=6.0)]), *pause]
    events += [Replace("b", short), *pause, Push([row(x=1.0)]), *pause, Replace("b", long)]
    play(Scene({"a": short, "b": long, "c": long}, events))
