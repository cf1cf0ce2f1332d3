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

`find_hopeful` is the same for arrivals of one group none of which is late: it lists those that stay, and passes the
others several at a time.

Cost: two comparisons an arrival and K·ln(block/K) heap steps a block in random order; O(log K) an arrival at worst.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, kernel, uncounted

Records = NDArray[Any]
Ints = NDArray[np.int64]
STRIDE = 64  # arrivals that are passed at once


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


@kernel
def find_hopeful(keys: NDArray[np.float64], now: Ints, K: int, reach: int, net: bool) -> Ints:
    """What cannot be left out of one group's arrivals, none of which is late; now: empty if it is 0, 1, ..."""
    size, fewest, n = len(keys), K if net else 2 * K, 0
    best, found, newer = np.empty(K), np.empty(size, np.int64), np.empty(size, np.int64)
    low = 0
    while low < size:
        high = size
        if not net:
            high = min(size, low + reach) if len(now) == 0 else first_from(now, low, now[low] + reach)
        if high - low > fewest:
            last = list_newest(keys, low, high, best, newer)
            n = list_shown(keys, low, high, best, newer, last, net, found, n)
        else:
            for i in range(low, high):
                found[n] = i
                n += 1
        low = high
    return found[:n]


@uncounted
def first_from(now: Ints, low: int, instant: int) -> int:
    """The first arrival from `low` on that is not before this instant."""
    high = len(now)
    while low < high:
        middle = (low + high) // 2
        if now[middle] < instant:
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def list_newest(keys: NDArray[np.float64], low: int, high: int, best: NDArray[np.float64], newer: Ints) -> int:
    """List the arrivals with fewer than K newer ones that rank above them, the newest first; returns how many."""
    size, n, i = 0, 0, high
    while i > low:
        if size == len(best):
            while i - STRIDE >= low and none_above(keys, i - STRIDE, best[0]):
                i -= STRIDE
            while i > low and keys[i - 1] <= best[0]:
                i -= 1
            if i == low:
                break
        i -= 1
        size = put_best(best, size, keys[i])
        newer[n] = i
        n += 1
    return n


@uncounted
def list_shown(
    keys: NDArray[np.float64],
    low: int,
    high: int,
    best: NDArray[np.float64],
    newer: Ints,
    last: int,
    net: bool,
    found: Ints,
    n: int,
) -> int:
    """List in order those of `newer`, and unless net those with fewer than K older ones above them, behind `found`."""
    size, i = 0, high if net else low
    while i < high or last > 0:
        if i < high and size == len(best):
            i = skip_below(keys, i, high, best[0])
        while last > 0 and newer[last - 1] < i:
            last -= 1
            found[n] = newer[last]
            n += 1
        if i == high:
            break
        last -= last > 0 and newer[last - 1] == i
        found[n] = i
        n += 1
        if size < len(best) or best[0] < keys[i]:
            size = put_best(best, size, keys[i])
        i += 1
    return n


@close
def skip_below(keys: NDArray[np.float64], i: int, end: int, floor: float) -> int:
    """The first place from i on with a key that is not below the floor, or the end."""
    while i + STRIDE <= end:
        above = False
        for j in range(i, i + STRIDE):  # without a branch: several at a time
            above |= keys[j] >= floor
        if above:
            break
        i += STRIDE
    while i < end and keys[i] < floor:
        i += 1
    return i


@close
def none_above(keys: NDArray[np.float64], i: int, floor: float) -> bool:
    """Whether the keys of a stride are at most the floor."""
    above = False
    for j in range(i, i + STRIDE):
        above |= keys[j] > floor
    return not above


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
