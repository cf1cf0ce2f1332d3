"""Above against the oracle: all objects whose score is strictly above a threshold, by every engine that can."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import Push, Replace, Restore, Scene, Taste, check, cuts, examples, joined, play, row, scenes
from skyband import Above, Last, Linear, Monitor, Product, Quadratic, TopK
from skyband.query.algorithms import names

ALGORITHMS = [*names("Above", lambda row: "count" in row.windows and "ranks" not in row.takes), "auto"]
BOUNDED = (
    "x",
    "x + y",
    "x - 0.5*y",
    Linear({"x": 1, "y": 0.5}),
    Product({"x": -1, "y": 2}),
    Quadratic({"x": 1, "y": -1}),
)
TYPED = ("x * y", "abs(x - 1) * y + x", "x + ln(y)", "coalesce(y, 1) - x * x", "case when x > 1 then y else x end")
OPAQUE = ("x * y", "case when y > 0 then x else y end", "abs(x - 1) * y", "x")
MIXED = Taste(
    by=BOUNDED,
    above=(True, True, False),
    thresholds=(0.0, 1.0, 1.0, 2.0, -math.inf, 1.5, math.inf),
    where=(None, None, "y > 0", "x <= 2", "x between 0 and 2 and y >= 0"),
    rows=14,
)
TASTES = {
    "everything": MIXED,
    "alone": dataclasses.replace(MIXED, above=(True,), queries=1, where=(None, "x < 2"), edits=False),
    "ties at the threshold": dataclasses.replace(
        MIXED, above=(True,), by=("x",), thresholds=(1.0, 2.0), scores=(0.0, 1.0, 2.0), rows=20
    ),
    "late rows": dataclasses.replace(MIXED, timed=(True,), lateness=(3, 8), per=(None, "g"), restores=False),
    "net changes": dataclasses.replace(
        MIXED, emit=("batch",), rows=25, n=5, per=(None, "g"), above=(True, True, False)
    ),
    "queries come and go": dataclasses.replace(MIXED, rows=6, events=12, where=(None, "x > 0")),
    "expressions": dataclasses.replace(MIXED, by=TYPED, rows=20),
    "expressions, late rows": dataclasses.replace(
        MIXED, by=(*TYPED[:2], "x - y * y"), timed=(True,), lateness=(3, 8), per=(None, "g"), rows=25
    ),
    "expressions come and go": dataclasses.replace(
        MIXED, by=(*TYPED[:2], "greatest(x, y)"), rows=6, events=12, where=(None, "x > 0")
    ),
}


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@examples(6)
@given(data=st.data())
def test_equals_the_oracle(algorithm: str, taste: str, data: st.DataObject) -> None:
    kind = TASTES[taste]
    if algorithm == "auto":  # any scoring is accepted
        kind = dataclasses.replace(kind, by=(*OPAQUE, BOUNDED[2]))
    play(data.draw(scenes(algorithm, kind)))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@examples(6)
@given(data=st.data())
def test_restored_between_any_two_events(algorithm: str, data: st.DataObject) -> None:
    scene = data.draw(scenes(algorithm, dataclasses.replace(MIXED, restores=False)))
    events = [event for one in scene.events for event in (one, Restore())]
    monitor = play(dataclasses.replace(scene, events=events))
    stored = monitor.snapshot()
    assert Monitor.restore(stored).snapshot() == stored


@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_comes_and_goes_in_one_batch(emit: Any) -> None:
    """X         3  0  2 | 1  4  0
    valid     |-----|   |-----|      n = 2
    above 1   3  3  2 | 2  4  4      with emit="batch" 3 is never reported, and 2 leaves before 4 enters
    """
    events = [Push([row(x=x) for x in part]) for part in ((3.0, 0.0, 2.0), (1.0, 4.0, 0.0))]
    play(Scene({"q": Above(1, "x", Last(2), algorithm="TMA")}, [*events, Restore(), *events], {"emit": emit}))


def test_a_lower_threshold_starts_anew_and_a_higher_one_goes_on() -> None:
    def above(threshold: float) -> Above:
        return Above(threshold, Linear({"x": 1}), Last(4))

    rows = [row(x=float(x)) for x in (3, 1, 2, 0)]
    events = [Push(rows), Replace("q", above(2)), Push(rows[:2]), Replace("q", above(0)), Push(rows[:2])]
    play(Scene({"q": above(1)}, events))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_long_streams_say_what_a_large_top_k_says(algorithm: str, emit: Any) -> None:
    """All above a threshold are the best of a TopK whose k is the window, as far as they are above it."""
    rng = np.random.default_rng(6)
    size, span = 3000, 300
    times = np.cumsum(rng.choice([0, 1, 1], size)) - np.where(rng.random(size) < 0.05, rng.integers(0, span, size), 0)
    columns = {"x": np.round(rng.normal(size=size), 1), "y": rng.random(size), "t": times}
    by, places = Linear({"x": 1, "y": 0.5}), cuts(size, rng, 250)
    above = Monitor({"q": Above(1.5, by, Last(span=span), algorithm=algorithm)}, time="t", emit=emit)
    every = Monitor({"q": TopK(span * 4, by, Last(span=span), where="x + 0.5*y > 1.5")}, time="t", emit=emit)
    found: list[list[object]] = [[], []]
    for i, j in itertools.pairwise(places):
        batch = {name: column[i:j] for name, column in columns.items()}
        for pieces, monitor in zip(found, (above, every), strict=True):
            pieces.append(monitor.push(batch))
        check(above)
    got, expected = (sorted(map(str, joined(pieces).to_pylist())) for pieces in found)
    assert got == expected
    assert above.answer().equals(every.answer())
