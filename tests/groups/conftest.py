"""Everything that an engine of groups does now and then, it does often."""

from __future__ import annotations

import pytest

from skyband.engines.groups import adapter, view


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are evaluated a few at a time, and codes of objects that are gone are given back soon."""
    monkeypatch.setattr(view, "PIECE", 4)
    monkeypatch.setattr(adapter, "FEWEST", 2)
