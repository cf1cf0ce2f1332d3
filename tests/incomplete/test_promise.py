"""A promise of how often parts repeat (`at_most=`): rows that break it are rejected, rows are dropped because of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from incomplete.scenes import EXACT, play, scene_of
from skyband import Last, Monitor, TopKIncomplete


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("window", [Last(5), Last(span=5)])
def test_a_row_that_breaks_the_promise_is_rejected(window: Last, algorithm: str) -> None:
    query = TopKIncomplete(1, ["a", "b"], window, repeat="sum", at_most=2, algorithm=algorithm)
    rows = [("x", "a", 0.5, 0), ("x", "a", 0.25, 1), ("x", "a", 1.0, 2), ("x", "b", 1.0, 3), ("y", "a", 1.0, 4)]
    rows += [("x", "a", 0.125, 6), ("x", "a", 0.125, 6)]
    monitor = play(scene_of(query, rows, 3))
    assert monitor.stats()["rejected"]["part: more than 2 rows of one part"] >= 1


@pytest.mark.parametrize("repeat", ["max", "sum"])
@pytest.mark.parametrize("algorithm", ["SWEEP", "EAA"])
def test_a_promise_drops_rows(algorithm: str, repeat: Any) -> None:
    """Each object is better than those before it: the oldest rows of complete ones can matter no more."""
    rows = [(f"{n // 4}", "ab"[n % 2], 0.125 + n // 4 / 200 - n % 4 / 1000, n) for n in range(400)]
    kept = []
    for at_most in (None, 2):
        query = TopKIncomplete(2, ["a", "b"], Last(200), repeat=repeat, at_most=at_most, algorithm=algorithm)
        kept.append(play(scene_of(query, rows, 40)).stats()["queries"]["p"]["objects"])
    assert kept[1] < 0.9 * kept[0]


@pytest.mark.parametrize("algorithm", EXACT)
def test_an_instance_may_get_the_rows_that_older_ones_had(algorithm: str) -> None:
    """Erratum of section 5: x's first two rows of a will have expired, and two others come."""
    query = TopKIncomplete(1, ["a", "b"], Last(span=10), repeat="sum", at_most=2, algorithm=algorithm)
    rows = [("x", "a", 0.5, 0), ("x", "a", 0.5, 1), ("x", "b", 0.5, 5), ("y", "a", 1.0, 6), ("y", "a", 0.75, 7)]
    rows += [("x", "a", 1.0, 11), ("x", "a", 1.0, 12), ("w", "a", 0.0, 14)]
    assert play(scene_of(query, rows, 1)).answer()["id"].to_pylist() == ["x"]


@pytest.mark.parametrize("algorithm", EXACT)
def test_an_object_that_was_reported_is_not_new_when_it_returns(algorithm: str) -> None:
    """All rows of x are dominated after 3, and some row of it is valid all the time."""
    query = TopKIncomplete(1, ["a", "b"], Last(4), repeat="max", at_most=1, algorithm=algorithm)
    rows = [("x", "a", 0.0), ("x", "b", 0.0), ("y", "a", 1.0), ("y", "b", 1.0), ("x", "a", 1.0), ("x", "b", 1.0)]
    play(scene_of(query, [(*row, t) for t, row in enumerate(rows)], 1))


def test_sums_in_another_order_are_no_reason_to_drop() -> None:
    """Values whose sums differ in the last bits by their order."""
    rng, values = np.random.default_rng(2), [0.1, 0.2, 0.3, 0.7, 0.4]
    query = TopKIncomplete(1, ["a"], Last(12), repeat="sum", at_most=3)
    rows = [(f"{rng.integers(4)}", "a", float(rng.choice(values)), t) for t in range(150)]
    play(scene_of(query, rows, 3))


def test_a_promise_of_one_says_what_no_repeat_says() -> None:
    rows = {"i": [1, 1, 2], "part": ["a", "a", "a"], "value": [0.5, 0.75, 0.25]}
    monitor = Monitor(TopKIncomplete(1, ["a"], Last(5), repeat="max", at_most=1), id="i")
    monitor.push(rows)
    assert monitor.stats()["rejected"] == {"part: second row of the same part": 1}
