"""Strings as numbers, for a first comparison: linear in the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import kernel

Ints = NDArray[np.int64]


@kernel
def first_bytes(ends: Ints, data: NDArray[np.uint8], out: NDArray[np.float64]) -> None:
    """The first eight bytes of each string as a number: never the other way round than the strings.

    ends: where each string ends in the data; the first is where the first begins.
    """
    for i in range(len(out)):
        value, begin, end = np.uint64(0), ends[i], ends[i + 1]
        for j in range(8):
            value = value << np.uint64(8)
            if begin + j < end:
                value |= np.uint64(data[begin + j])
        out[i] = np.float64(value)
