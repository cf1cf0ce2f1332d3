"""Engines of top-k over objects that exist with a probability (jin2008)."""
