"""Sums of rows that a mapper leaves out, as the few float64 whose sum is exactly theirs."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compile import uncounted_kernel
from skyband.kernels.sums import Floats, Ints, add, rounded


@uncounted_kernel
def exact_parts(objects: Ints, values: Floats, words: Ints, lowest: int, parts: Floats, counts: Ints) -> None:
    """Add values by object, in words that are 0 and have room, and take each sum apart from its highest bits on.

    counts: how many parts an object has; -1: it has more than there is room for, or its sum is beyond float64.
    """
    width, room = words.shape[1], parts.shape[1]
    for i in range(len(objects)):
        add(words, objects[i], 0, width, lowest, values[i])
    for s in range(len(words)):
        n, rest = 0, rounded(words, s, 0, width, lowest)
        while rest != 0.0 and n < room and not np.isinf(rest):
            parts[s, n] = rest
            add(words, s, 0, width, lowest, -rest)
            rest = rounded(words, s, 0, width, lowest)
            n += 1
        counts[s] = n if rest == 0.0 else -1
