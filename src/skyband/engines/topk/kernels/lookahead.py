"""Arrivals of a batch that can never be an answer, found before any skyband sees them.

The batch is the buffer of Böhm et al. and pripuzic2015 (section 5). Take a block of one group's arrivals that are
in order and lie less than the shortest window apart. An arrival x with at least K older ones in the block that rank
above it and at least K newer ones that dominate it (Theorem 3.7) can be left out:

- until the K newer ones are there, the K older ones are all valid, so x is no answer (Theorem 5.1);
- from then on x is dominated by K, so it is none either;
- what x dominates is dominated by the same K newer ones, and until these are there it ranks below the same K
  older ones: leaving x out changes no answer, and no counter that is below K when the block has passed.

When only the net changes of the batch are reported, the K newer ones are enough.

Ties: the newer ranks above, so an older one must be strictly better, a newer one at least as good. Late arrivals
(now > stamp) are always kept, and never counted on.

Cost: two comparisons an arrival and K·ln(block/K) heap steps a block in random order; O(log K) an arrival at worst.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import kernel, uncounted

Records = NDArray[Any]


@kernel
def mark_hopeless(
    arrivals: Records, visits: Records, K: int, reach: int, net: bool, hopeless: NDArray[np.bool_]
) -> None:
    """Mark what can be left out of each visited group's arrivals.

    reach: the shortest window. net: only the answers after the batch count, so the K newer ones are enough.
    """
    fewest = K if net else 2 * K  # the others that make an arrival hopeless
    if len(arrivals) <= fewest:
        return
    best = np.empty(K)
    for visit in range(len(visits)):
        low, end = visits[visit]["begin"], visits[visit]["end"]
        while end - low > fewest:
            high = end if net else low + 1
            while high < end and arrivals[high]["now"] - arrivals[low]["now"] < reach:
                high += 1
            if high - low > fewest:
                mark_dominated(arrivals, low, high, best, hopeless)
                if not net:
                    clear_shown(arrivals, low, high, best, hopeless)
            low = high


@uncounted
def mark_dominated(
    arrivals: Records, low: int, high: int, best: NDArray[np.float64], hopeless: NDArray[np.bool_]
) -> None:
    """Mark the arrivals with K newer ones that rank above them."""
    K, size = len(best), 0
    for i in range(high - 1, low - 1, -1):
        if arrivals[i]["stamp"] == arrivals[i]["now"]:
            hopeless[i] = size == K and best[0] >= arrivals[i]["key"]
            if size < K or best[0] < arrivals[i]["key"]:
                size = put_best(best, size, arrivals[i]["key"])


@uncounted
def clear_shown(arrivals: Records, low: int, high: int, best: NDArray[np.float64], hopeless: NDArray[np.bool_]) -> None:
    """Clear the marks of arrivals with fewer than K older ones above them: they may be answers when they arrive."""
    K, size = len(best), 0
    for i in range(low, high):
        if arrivals[i]["stamp"] == arrivals[i]["now"]:
            hopeless[i] &= size == K and best[0] > arrivals[i]["key"]
            if size < K or best[0] < arrivals[i]["key"]:
                size = put_best(best, size, arrivals[i]["key"])


@uncounted
def put_best(best: Records, size: int, key: Any) -> int:
    """Put a key or stamp among the len(best) largest, a heap whose root is the smallest; returns how many there are."""
    if size < len(best):
        i = size
        while i > 0 and best[(i - 1) // 2] > key:
            best[i] = best[(i - 1) // 2]
            i = (i - 1) // 2
        best[i] = key
        return size + 1
    i = 0  # the root is replaced
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and best[child + 1] < best[child]:
            child += 1
        if best[child] >= key:
            break
        best[i] = best[child]
        i = child
    best[i] = key
    return size
