"""Grids, so that an arrival meets only the queries that it can matter to."""
