"""What finds the row that counts: late rows, ties, windows of several lengths, and snapshots in between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import Push, Restore, examples
from incomplete.scenes import IncompleteScene, play, scene_of
from skyband import Last, TopKIncomplete

ASKED: dict[str, dict[str, Any]] = {
    "max": {"parts": ["a", "b", "c"], "repeat": "max"},
    "max by SLA": {"parts": ["a", "b", "c"], "repeat": "max", "algorithm": "SLA"},
    "last by SLA": {"parts": ["a", "b", "c"], "repeat": "last", "algorithm": "SLA"},
    "promised max": {"parts": ["a", "b", "c"], "repeat": "max", "at_most": 3},
    "any parts, max": {"parts": "*", "combine": "max"},
    "any parts, max of the last": {"parts": "*", "combine": "max", "repeat": "last"},
    "any parts, max of all": {"parts": "*", "combine": "max", "repeat": "max"},
    "any parts, sum of the last": {"parts": "*", "repeat": "last"},
}


@pytest.mark.parametrize("name", ASKED)
@examples(15)
@given(data=st.data())
def test_the_row_that_counts_is_found(name: str, data: Any) -> None:
    """Few ids with many rows each: most of what can come before, between and after has come."""
    asked, timed = ASKED[name], data.draw(st.booleans())
    row = st.tuples(st.sampled_from("uuv"), st.sampled_from("abc"), st.integers(0, 6), st.sampled_from([0, 1, 1, 3]))
    rows, clock = [], 0
    for one, part, value, step in data.draw(st.lists(row, min_size=10, max_size=40)):
        clock += step
        rows.append((one, part, value / 6, max(0, clock - data.draw(st.sampled_from([0, 0, 0, 2, 5])))))
    shared = asked.get("repeat") is not None and "at_most" not in asked
    lengths = data.draw(st.lists(st.integers(2, 25), min_size=1, max_size=3 if shared else 1, unique=True))
    queries = {
        f"{length}": TopKIncomplete(2, window=Last(span=length) if timed else Last(length), **asked)
        for length in lengths
    }
    scene = scene_of(next(iter(queries.values())), rows, data.draw(st.integers(1, 5)))
    events = list(scene.events)
    for n, told in enumerate(one for event in events if isinstance(event, Push) for one in event.rows):
        told["z"] = f"{n}"  # which row the columns are of
    events.insert(data.draw(st.integers(1, len(events))), Restore())
    play(IncompleteScene(queries, events, scene.options | {"keep": ("z",)}))
