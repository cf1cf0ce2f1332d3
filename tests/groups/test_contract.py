"""The exact engine of groups of rows against the oracle: ties, equal times, cuts, restores, late rows, deletions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import examples
from groups.scenes import FEW, HARD, OTHERS, PICKS, SUMS, Taste, play, scenes

TASTES = {
    "sums over moving windows": Taste(windows=("count", "time"), by=SUMS),
    "sums that cancel, overflow and underflow": Taste(windows=("count", "time", "time"), by=SUMS[:5], numbers=HARD),
    "picked rows": Taste(windows=("count", "time"), by=PICKS),
    "picked rows among late ones": Taste(windows=("time",), by=PICKS, lateness=(8,), rows=20),
    "distinct values": Taste(windows=("count", "time"), by=OTHERS),
    "deletions": Taste(windows=("until deleted",), by=(*SUMS, *PICKS), events=12),
    "sums that cancel, and deletions": Taste(windows=("until deleted",), by=SUMS[:5], numbers=HARD),
    "without end": Taste(windows=("ever",), numbers=(*FEW, *HARD)),
    "sessions": Taste(windows=("session",), lateness=(0, 3, 8)),
    "orders of sessions": Taste(windows=("session",), lateness=(0, 3), orders=True),
    "orders": Taste(windows=("count", "time"), orders=True),
    "orders over other windows": Taste(orders=True),
    "everything": Taste(),
}


@pytest.mark.parametrize("taste", TASTES)
@examples(60)
@given(data=st.data())
def test_the_engine_does_as_the_oracle_says(taste: str, data: Any) -> None:
    play(data.draw(scenes(TASTES[taste])))
