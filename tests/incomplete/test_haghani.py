"""haghani2009, Figures 1 and 2: the pictures are lost; the numbers here satisfy every sentence about them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import skyband as sb

WINDOW = sb.Last(span=100)
ROUTERS = ["1", "2", "3"]


@pytest.mark.parametrize("algorithm", ["SWEEP", "EAA", "SLA"])
def test_figure_1_scores_rise_as_attributes_arrive_and_fall_as_they_expire(algorithm: str) -> None:
    """Flows, their sizes at three routers, the sum over the last 100: objects come in another order at each router."""
    query = sb.TopKIncomplete(2, parts=ROUTERS, window=WINDOW, algorithm=algorithm)
    monitor = sb.Monitor(query, id="flow", time="t", part="router", value="size")
    stream = [(1, "1", "p", 0.5), (5, "2", "q", 0.25), (30, "1", "q", 0.5), (40, "2", "p", 0.125), (60, "3", "p", 0.25)]
    scores: list[dict[str, float]] = []
    for time, router, flow, size in stream:
        monitor.push([{"flow": flow, "router": router, "size": size, "t": time}])
        scores.append(_scores(monitor))
    assert scores == [
        {"p": 0.5},
        {"p": 0.5, "q": 0.25},
        {"q": 0.75, "p": 0.5},
        {"q": 0.75, "p": 0.625},
        {"p": 0.875, "q": 0.75},
    ]
    for time, expected in (
        (101, {"q": 0.75, "p": 0.375}),  # the first attribute of p has expired
        (105, {"q": 0.5, "p": 0.375}),
        (130, {"p": 0.375}),  # no attribute of q is valid: q is gone
        (140, {"p": 0.25}),
        (160, {}),
    ):
        monitor.advance(time)
        assert _scores(monitor) == expected, time


def _scores(monitor: sb.Monitor) -> dict[str, float]:
    return {row["id"]: row["score"] for row in monitor.answer().to_pylist()}


def test_figure_2_instances_of_an_object_and_their_intervals() -> None:
    """P's second attribute comes at 1, then its third, then its first: intervals shrink, and p^1's is a point then.

    Erratum: the text counts an attribute that is older than an instance as 0 in its best score. It may return after it
    has expired, so it counts as 1 here (engines/incomplete/eaa.py): the best scores of p^2 and p^3 are larger by that.
    """
    monitor = sb.Monitor(sb.TopKIncomplete(1, parts=ROUTERS, window=WINDOW, algorithm="EAA"), id="id", time="t")
    found: list[Any] = []
    for time, part, value in ((1, "2", 0.5), (20, "3", 0.25), (50, "1", 0.125)):
        monitor.push([{"id": "p", "part": part, "value": value, "t": time}])
        (adapter,) = monitor._loop.state.standing()
        each = adapter.engine.each  # type: ignore[union-attr]
        found.append([(float(one["current"]), float(one["best"])) for one in each[: len(found) + 1]])
    assert found == [
        [(0.5, 2.5)],
        [(0.75, 1.75), (0.25, 1.25 + 1)],
        [(0.875, 0.875), (0.375, 0.375 + 1), (0.125, 0.125 + 2)],
    ]
    for before, after in pairwise(found):
        shrink = np.array(after[: len(before)]) - np.array(before)
        assert (shrink[:, 0] > 0).all() and (shrink[:, 1] < 0).all()
