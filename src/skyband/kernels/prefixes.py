"""How far down the ranking of uncertain tuples one must look, and the answer that is found there.

A walk goes from the best tuple down, with the distribution of how many of those passed exist (jin2008, Eq. 2), and
ends where the meaning's stop condition holds: no tuple below can be in the answer any more. Terms and their order are
those of the oracle, so that equal prefixes give equal floats; a longer prefix than needed changes no answer.
O(k) a tuple.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import kernel, part

Records = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FRONT = np.dtype(
    [
        ("key", "f8"),
        ("p", "f8"),
        ("pos", "i8"),  # its age: larger is newer
        ("stamp", "i8"),
        ("serial", "i8"),
    ],
    align=True,
)
PK, PT, UK, UT = 0, 1, 2, 3  # pk-topk, pt-k, u-kranks, u-topk
SLACK = 1 + 1e-9  # a bound must hold by so much: sums of floats differ in their last bits
TINY = 1e-290  # below it floats lose their relative precision: only 0 is a bound
PASSED, VALID, ENOUGH, FOUND = 0, 1, 2, 3  # what a walk tells: entries, valid ones of them, is it enough, answers
WORD = 62  # bits of a word that are used


@part
def below(bound: float, value: float) -> bool:
    """Is a value surely at least what nobody below can pass?"""
    return bound == 0 or (bound > TINY and value >= bound * SLACK)


@part
def walk(
    front: Records,  # best first
    head: int,
    size: int,
    first: int,  # older positions are outside of the window
    k: int,
    meaning: int,
    threshold: float,
    guess: int,  # no need to ask before so many: an earlier walk has gone so far
    f: Floats,  # desk: see `floats_for`
    w: Ints,  # desk: see `ints_for`
    told: Ints,
) -> None:
    """Fill the desk with the answer, in order of rank: w[:found] entries, w[size:] the ranks held; f[:found] chances."""
    K = min(k, size + 1)  # more than there are cannot exist
    r, best, chances = size, size + K + 1, size + 2 * K + 1  # places on the desk
    passing, ranks, who = 2 * size, size, 3 * size
    words = (K + WORD - 1) // WORD
    for j in range(2 * K + 1):
        f[r + j] = 0.0
    f[r] = 1.0
    n, i, enough, top, at = 0, 0, False, 0.0, 0
    look = max(guess, 1 if meaning == PT else k)
    while i < size and not enough:
        if front[head + i]["pos"] < first:
            i += 1
            continue
        p = front[head + i]["p"]
        absent = 1.0 - p
        w[passing + n] = i
        m = min(K, n + 2)  # more than n cannot exist above
        if meaning == UT:
            if n >= k - 1:
                chance = f[r + k - 1] * p
                if chance > top:
                    top, at = chance, n
            for word in range(words):
                w[who + n * words + word] = 0
            for j in range(m - 1, 0, -1):
                stay, take = f[r + j] * absent, f[r + j - 1] * p
                if take > stay:  # of equals the one whose worst member ranks higher
                    f[r + j] = take
                    w[who + n * words + j // WORD] |= 1 << (j % WORD)
                else:
                    f[r + j] = stay
            f[r] = f[r] * absent
        else:
            if meaning == UK:
                for j in range(m):
                    chance = p * f[r + j]
                    if chance > f[best + j]:
                        f[best + j] = chance
                        w[who + j] = n
            else:
                chance = 0.0
                for j in range(m):
                    chance = chance + p * f[r + j]
                f[chances + n] = chance
            above = 0.0
            for j in range(m):
                own = f[r + j]
                f[r + j] = above * p + own * absent
                above = own
        n += 1
        i += 1
        if n >= look:
            enough = is_enough(f, r, best, chances, n, k, meaning, threshold, top)
            look = n + 1 + n // 16
    found = 0
    if meaning == UK:
        for j in range(K):
            if f[best + j] > 0:
                f[found], w[found], w[ranks + found] = f[best + j], w[passing + w[who + j]], j + 1
                found += 1
    elif meaning == UT:
        if top > 0:
            found = k
            j = k - 1
            f[j], w[j], w[ranks + j] = top, w[passing + at], 0
            for t in range(at - 1, -1, -1):
                if j and w[who + t * words + j // WORD] >> (j % WORD) & 1:
                    j -= 1
                    f[j], w[j], w[ranks + j] = top, w[passing + t], 0
    else:
        limit, ties = threshold, 0
        if meaning == PK:
            limit = kth_best(f, chances, n, min(k, n), best)
            ties = min(k, n)
            for t in range(n):
                ties -= f[chances + t] > limit
        for t in range(n):
            chance = f[chances + t]
            if chance > limit or (ties > 0 and chance == limit):
                ties -= chance == limit
                f[found], w[found], w[ranks + found] = chance, w[passing + t], 0
                found += 1
    told[PASSED], told[VALID], told[ENOUGH], told[FOUND] = i, n, enough, found


@part
def is_enough(
    f: Floats, r: int, best: int, chances: int, n: int, k: int, meaning: int, threshold: float, top: float
) -> bool:
    """The stop conditions, with r after the n-th tuple (semantics.py says them in words)."""
    if meaning != PT and n < k:
        return False
    if meaning == UK or meaning == UT:
        most = 0.0
        for j in range(k):
            most = max(most, f[r + j])
        return below(most, f[best + k - 1] if meaning == UK else top)
    few = 0.0
    for j in range(min(k, n + 1)):
        few += f[r + j]
    if meaning == PT:
        return below(few, threshold)
    if few > 0 and few <= TINY:
        return False
    count, few = 0, few * SLACK
    for t in range(n):
        count += f[chances + t] >= few
    return count >= k


@part
def kth_best(f: Floats, chances: int, n: int, k: int, best: int) -> float:
    """The k-th largest chance: the best so far are kept in order."""
    held = 0
    for t in range(n):
        chance = f[chances + t]
        if held == k and chance <= f[best + k - 1]:
            continue
        if held < k:
            held += 1
        j = held - 1
        while j > 0 and f[best + j - 1] < chance:
            f[best + j] = f[best + j - 1]
            j -= 1
        f[best + j] = chance
    return f[best + k - 1] if k else 0.0


@part
def floats_for(size: int, k: int) -> int:
    """Answers; the distribution; the best of each rank, or the best so far; a chance for each tuple."""
    return size + 2 * min(k, size + 1) + 2 + size


@part
def ints_for(size: int, k: int) -> int:
    """Answers, their ranks, tuples passed; then who is best at a rank, or who was chosen among how many (bits)."""
    return 3 * size + max(size * ((min(k, size + 1) + WORD - 1) // WORD), min(k, size + 1)) + 1


@kernel
def walk_down(front: Records, k: int, meaning: int, threshold: float, f: Floats, w: Ints, told: Ints) -> None:
    """One walk, for those who are not kernels."""
    walk(front, 0, len(front), -1, k, meaning, threshold, 0, f, w, told)
