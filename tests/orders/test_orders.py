"""Orders of keys, ties, offsets, distinct ids, k from a column and sessions: the engines against the oracle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.playback import play
from orders.scenes import scenes


@pytest.mark.parametrize("window", ["count", "time", "until deleted"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_orders_are_the_oracles(window: str, data: Any) -> None:
    play(data.draw(scenes(ranks=False, window=window)))


@pytest.mark.parametrize("window", ["count", "time", "session", "until deleted"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_ranks_are_the_oracles(window: str, data: Any) -> None:
    play(data.draw(scenes(ranks=True, window=window)))
