"""Engines for certain, complete objects: TopK."""
