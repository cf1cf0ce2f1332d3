"""Numba kernels of TopKPairs."""
