"""Every engine of incomplete streams sweeps often."""

from __future__ import annotations

import pytest

from skyband.engines.incomplete.base import IncompleteEngine


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps from the first rows on."""
    monkeypatch.setattr(IncompleteEngine, "least", 1)
