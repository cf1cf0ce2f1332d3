"""Standing queries for objects that exist with a probability."""

from __future__ import annotations

from skyband.standing import Standing


class Doubting(Standing):
    """One engine for queries with one scoring, one probability and one meaning."""
