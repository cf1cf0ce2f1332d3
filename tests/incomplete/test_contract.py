"""Exact engines of incomplete streams against the oracle: one suite for all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import (
    examples,
)
from incomplete.scenes import EXACT, endless, play, scene_of, scenes, streams
from skyband import Ever, Monitor, QueryError, TopKIncomplete


@pytest.mark.parametrize("algorithm", EXACT)
@examples(25)
@given(data=st.data())
def test_what_is_dominated_is_never_missed(algorithm: str, data: Any) -> None:
    play(data.draw(streams(algorithm, turns=True)))


@pytest.mark.parametrize("algorithm", EXACT)
@examples(60)
@given(data=st.data())
def test_engines_do_as_the_oracle_says(algorithm: str, data: Any) -> None:
    play(data.draw(scenes(algorithm)))


@pytest.mark.parametrize("algorithm", EXACT)
@examples(25)
@given(data=st.data())
def test_windows_without_end(algorithm: str, data: Any) -> None:
    play(endless(data.draw(scenes(algorithm))))
    play(endless(data.draw(streams(algorithm))))


def test_times_are_never_too_far_apart_for_a_window_without_end() -> None:
    """The first is 2^63 - 2 before the second."""
    far = 2**62 - 1
    rows = [("u", "a", 0.5, -far), ("v", "a", 0.75, far), ("u", "b", 0.5, -far), ("u", "a", 1.0, 0), ("v", "a", 0.5, 0)]
    for repeat in (None, "last", "max", "sum"):
        for algorithm in EXACT:
            query = TopKIncomplete(1, ["a", "b"], Ever(), repeat=repeat, algorithm=algorithm)
            play(scene_of(query, rows, 2))


@pytest.mark.parametrize("algorithm", ["APPROX", "BUDGET"])
def test_estimates_need_a_window_that_moves(algorithm: str) -> None:
    with pytest.raises(QueryError, match="SWEEP, EAA, SLA"):
        Monitor(TopKIncomplete(1, ["a", "b"], Ever(), algorithm=algorithm), id="i")
