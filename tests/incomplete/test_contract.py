"""Exact engines of incomplete streams against the oracle: one suite for all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import (
    examples,
)
from incomplete.scenes import EXACT, play, scenes, streams


@pytest.mark.parametrize("algorithm", EXACT)
@examples(25)
@given(data=st.data())
def test_what_is_dominated_is_never_missed(algorithm: str, data: Any) -> None:
    play(data.draw(streams(algorithm)))


@pytest.mark.parametrize("algorithm", EXACT)
@examples(60)
@given(data=st.data())
def test_engines_do_as_the_oracle_says(algorithm: str, data: Any) -> None:
    play(data.draw(scenes(algorithm)))
