"""Engines for groups of rows, ranked by aggregates: TopKGroups."""
