"""Standing queries for pairs of objects."""

from __future__ import annotations

from skyband.standing import Standing


class Pairing(Standing):
    """One engine for queries with one scoring of pairs."""
