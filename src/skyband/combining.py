"""Standing queries for objects whose parts arrive in separate rows."""

from __future__ import annotations

from skyband.standing import Standing


class Combining(Standing):
    """One engine for queries that combine the same parts."""
