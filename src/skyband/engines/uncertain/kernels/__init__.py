"""Numba kernels of TopKUncertain."""
