"""Numba kernels of TopK and Above."""
