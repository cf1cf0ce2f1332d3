"""Everything that questions over answers do now and then, they do often."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skyband.engines.groups import adapter, view
from skyband.monitor import over


@pytest.fixture(autouse=True, scope="package")
def often() -> Iterator[None]:
    """Events are evaluated a few at a time, and what is kept of objects that are gone is given back soon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view, "PIECE", 4)
        patch.setattr(adapter, "FEWEST", 2)
        patch.setattr(over, "FEWEST", 2)
        yield
