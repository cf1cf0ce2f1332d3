"""Kernels to measure against: the least that an engine without an index would have to compute."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

BLOCK = 512  # objects: a block of all attributes stays in the first cache while the queries pass over it


def count_near(data: NDArray[np.float64], points: NDArray[np.float64], limit: float) -> int:
    """How many (object, point) have a squared distance below the limit; d = 2 or 4. One pass of d·u·N float64 terms."""
    kernel: Any = {2: _count_2, 4: _count_4}[len(data)]
    return int(kernel(*data, points, limit))


@numba.njit(cache=True)
def _count_2(x: Any, y: Any, points: Any, limit: float) -> int:
    count = 0
    for begin in range(0, len(x), BLOCK):
        xs, ys = x[begin : begin + BLOCK], y[begin : begin + BLOCK]
        for q in range(len(points)):
            a, b = points[q, 0], points[q, 1]
            for i in range(len(xs)):  # from 0 on, so that it becomes SIMD
                count += (xs[i] - a) * (xs[i] - a) + (ys[i] - b) * (ys[i] - b) < limit
    return count


@numba.njit(cache=True)
def _count_4(x: Any, y: Any, z: Any, w: Any, points: Any, limit: float) -> int:
    count = 0
    for begin in range(0, len(x), BLOCK):
        xs, ys = x[begin : begin + BLOCK], y[begin : begin + BLOCK]
        zs, ws = z[begin : begin + BLOCK], w[begin : begin + BLOCK]
        for q in range(len(points)):
            a, b, c, d = points[q, 0], points[q, 1], points[q, 2], points[q, 3]
            for i in range(len(xs)):
                near = (xs[i] - a) * (xs[i] - a) + (ys[i] - b) * (ys[i] - b)
                count += near + (zs[i] - c) * (zs[i] - c) + (ws[i] - d) * (ws[i] - d) < limit
    return count
