"""How many tuples synopses of uncertain streams are expected to keep, in random order."""

from __future__ import annotations

import math


def compact_set(k: int, probability: float) -> float:
    """The size of a compact set: so many tuples that k of them are expected to exist.

    Measured for pk-topk at p uniform: 2.4, 20, 40, 100, 199 and 403 for k = 1, 10, 20, 50, 100 and 200 (Figure 3).
    """
    return (k + 0.2) / probability


def union(k: int, probability: float, n: int) -> float:
    """The union of the compact sets of all suffixes of a window of n: DOM keeps it."""
    H = min(float(n), compact_set(k, probability))
    return H * (1 + math.log(n / H))
