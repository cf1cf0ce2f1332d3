"""Hot loops in Numba. Kernels see flat arrays only: no objects, no strings, no input or output."""
