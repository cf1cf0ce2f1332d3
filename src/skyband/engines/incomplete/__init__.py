"""Engines for objects whose parts arrive in separate rows: TopKIncomplete."""
