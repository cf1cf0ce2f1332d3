"""Numba kernels of TopKGroups."""
