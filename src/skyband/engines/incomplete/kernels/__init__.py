"""Numba kernels of TopKIncomplete."""
