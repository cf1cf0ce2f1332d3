"""Sums over vectors by the contract's rule: terms in the order of the components, from left to right, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import kernel

Floats = NDArray[np.float64]


def sums_of_squares(matrix: NDArray[Any]) -> Floats:
    """The sum of squares of each row."""
    sums = np.empty(len(matrix))
    wide = np.float64 if matrix.dtype == np.float64 else np.float32
    add_squares(np.ascontiguousarray(matrix, wide), sums)
    return sums


@kernel
def add_squares(matrix: NDArray[Any], sums: Floats) -> None:
    """Write the sums of squares of rows: four at a time, whose sums do not wait for each other."""
    for low in range(0, len(matrix), 4):
        high = min(low + 4, len(matrix))
        a, b = matrix[low], matrix[min(low + 1, high - 1)]
        c, e = matrix[min(low + 2, high - 1)], matrix[high - 1]
        x, y, z, w = np.float64(a[0]), np.float64(b[0]), np.float64(c[0]), np.float64(e[0])
        one, two, three, four = x * x, y * y, z * z, w * w
        for j in range(1, matrix.shape[1]):
            x, y, z, w = np.float64(a[j]), np.float64(b[j]), np.float64(c[j]), np.float64(e[j])
            one, two, three, four = one + x * x, two + y * y, three + z * z, four + w * w
        sums[low] = one
        sums[min(low + 1, high - 1)] = two
        sums[min(low + 2, high - 1)] = three
        sums[high - 1] = four
