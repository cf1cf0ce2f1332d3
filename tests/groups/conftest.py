"""Everything that an engine of groups does now and then, it does often."""

from __future__ import annotations

import pytest

from skyband.engines.groups import adapter, bound, view


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are evaluated a few at a time, codes of objects that are gone are given back soon, and bounds move."""
    monkeypatch.setattr(view, "PIECE", 4)
    monkeypatch.setattr(adapter, "FEWEST", 2)
    for name, number in {"LEAST": 1, "EACH": 1, "ROOM": 2, "MORE": 2, "RESTS": 1}.items():
        monkeypatch.setattr(bound, name, number)
