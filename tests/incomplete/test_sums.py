"""Sums of rows: exact and rounded once, whatever came and went, and at the same cost for any number of rows."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import examples
from incomplete.scenes import EXACT, IncompleteScene, play, scene_of
from skyband import Last, Linear, Monitor, TopKIncomplete

MOST = 1.7976931348623157e308
EVERY = {"a": (-MOST, MOST), "b": (-2.0, MOST)}
NUMBERS = [0.1, -0.1, 0.3, 1e16, -1e16, 3.0, 0.0, -0.0, 5e-324, 1e-300, 2.0**-40, 1 / 3, 1e308, -1e308, MOST]


@pytest.mark.parametrize("algorithm", EXACT)
@examples(40)
@given(data=st.data())
def test_sums_are_rounded_once(algorithm: str, data: Any) -> None:
    """Of numbers of any size, over windows of several lengths, with late rows."""
    timed, named = data.draw(st.booleans()), algorithm == "SLA" or data.draw(st.booleans())
    number = st.sampled_from(NUMBERS) | st.floats(allow_nan=False, allow_infinity=False)
    drawn = st.lists(st.tuples(st.sampled_from("uvw"), st.sampled_from("ab"), number, st.integers(0, 3)), max_size=30)
    rows, clock = [], 0
    for one, part, value, step in data.draw(drawn):
        clock += step
        late = data.draw(st.sampled_from([0, 0, 4]))
        rows.append((one, part, value if named else abs(value), max(0, clock - late)))
    combine = data.draw(st.sampled_from(["sum", "max", Linear({"a": 1.0})])) if named else "sum"
    repeat: Any = "sum" if named else data.draw(st.sampled_from(["sum", "last"]))
    sizes = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True))
    queries = {
        str(size): TopKIncomplete(
            2,
            EVERY if named else {"*": (0.0, MOST)},
            Last(span=size) if timed else Last(size),
            combine=combine,
            repeat=repeat,
            algorithm=algorithm,
        )
        for size in sizes
    }
    scene = scene_of(next(iter(queries.values())), rows, data.draw(st.integers(1, 9)))
    emit = data.draw(st.sampled_from(["arrival", "batch"]))
    play(IncompleteScene(queries, scene.events, scene.options | {"emit": emit}))


@pytest.mark.parametrize("algorithm", EXACT)
def test_equal_values_in_another_order_are_a_tie(algorithm: str) -> None:
    """Added one after another, 0.1 + 0.2 + 0.3 is more than 0.3 + 0.2 + 0.1, so that x would be first."""
    values = [("x", 0.1), ("x", 0.2), ("x", 0.3), ("y", 0.3), ("y", 0.2), ("y", 0.1)]
    query = TopKIncomplete(2, ["a"], Last(6), repeat="sum", algorithm=algorithm)
    answer = play(scene_of(query, [(one, "a", value, t) for t, (one, value) in enumerate(values)], 2)).answer()
    assert answer["id"].to_pylist() == ["y", "x"]
    assert answer["score"].to_pylist() == [math.fsum([0.1, 0.2, 0.3])] * 2


def test_what_has_expired_leaves_nothing_behind() -> None:
    monitor = Monitor(TopKIncomplete(1, EVERY, Last(2), combine=Linear({"a": 1.0}), repeat="sum"), id="i")
    monitor.push({"i": ["x"] * 4, "part": ["a"] * 4, "value": [1e300, 1e-300, 0.1, 0.2]})
    assert monitor.answer()["score"].to_pylist() == [math.fsum([0.1, 0.2])]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"parts": "*"},
        {"parts": "*", "repeat": None},
        {"parts": "*", "repeat": "last"},
        {"parts": "*", "repeat": None, "combine": "max"},
        {"parts": "*", "repeat": "last", "combine": "max"},
        {"repeat": "max"},
        {"repeat": "max", "algorithm": "SLA"},
        {"window": Last(span=10_000)},
        {"window": Last(span=10_000), "repeat": "max"},
    ],
    ids=repr,
)
def test_the_cost_of_a_row_does_not_grow_with_the_rows_of_an_object(more: dict[str, Any]) -> None:
    """It would be ten to hundreds of times as much if rows were read. Its values fall, so none reaches an older one."""
    rows, window = 30_000, 10_000
    values = np.random.default_rng(1).random(rows)
    asked: dict[str, Any] = {"parts": ["a"], "window": Last(window), "repeat": "sum"} | more
    parts = [f"p{t}" if asked["parts"] == "*" else "a" for t in range(rows)]
    seconds = []
    for ids, column in ((np.arange(rows), values), (np.zeros(rows, np.int64), np.sort(values)[::-1])):
        best = math.inf
        for _ in range(2):  # the first may compile
            monitor = Monitor(TopKIncomplete(1, **asked), id="i", time="t")
            table = {"i": ids, "part": parts, "value": column, "t": np.arange(rows)}
            began = time.process_time()
            monitor.push(table)
            best = min(best, time.process_time() - began)
        seconds.append(best)
    assert seconds[1] < 8 * seconds[0]
