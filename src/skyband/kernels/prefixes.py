"""How far down the ranking of uncertain tuples one must look, and the answer that is found there.

A walk goes from the best tuple down, with the distribution of how many of those passed exist (jin2008, Eq. 2), and
ends where the meaning's stop condition holds: no tuple below can be in the answer any more. Terms and their order are
those of the oracle, so that equal prefixes give equal floats; a longer prefix than needed changes no answer.
O(k) a tuple.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import kernel, part, uncounted

Records = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TUPLE = np.dtype(
    [
        ("key", "f8"),
        ("p", "f8"),  # that it exists; of an answer: the answer's probability
        ("stamp", "i8"),
        ("serial", "i8"),
        ("mark", "i8"),  # in a front: its age, larger is newer; in a past: its ticket; of an answer: the rank held
    ],
    align=True,
)
PK, PT, UK, UT = 0, 1, 2, 3  # pk-topk, pt-k, u-kranks, u-topk
SLACK = 1 + 1e-9  # a bound must hold by so much: sums of floats differ in their last bits
TINY = 1e-290  # below it floats lose their relative precision: only 0 is a bound
PASSED, VALID, ENOUGH, FOUND = 0, 1, 2, 3  # what a walk tells: entries, valid ones of them, is it enough, answers
SHARE = 16  # a prefix may be longer than need be by one in so many
STEADY = 16  # up to so large a k all of the distribution is computed from the start: a loop of one length is foreseen
WORD = 62  # bits of a word that are used
ZERO: Any = np.int64(0)  # plain numbers would be literals, for which Numba compiles a function once more each
ONE: Any = np.int64(1)
LESS: Any = np.int64(-1)


class Desk(NamedTuple):
    """What a walk works on; at the end the answer, in order of rank."""

    at: Ints  # of each answer: where in the front
    rank: Ints  # the rank held, or 0
    chance: Floats  # its probability
    told: Ints
    r: Floats  # exactly j of those passed exist; u-topk: the best choice of j of them
    best: Floats  # of each rank; or the largest chances so far
    chances: Floats  # of each tuple passed
    passing: Ints  # where these are
    who: Ints  # is best at each rank; u-topk: bits of each tuple, in which choices it was taken


@uncounted
def surely(bound: float, value: float) -> bool:
    """Is a value at least what nobody below can pass, whatever the last bits say?"""
    return bound == 0 or (bound > TINY and value >= bound * SLACK)


@uncounted
def walk(
    front: Records,  # best first
    head: int,
    size: int,
    first: int,  # older ones are outside of the window
    k: int,
    meaning: int,
    threshold: float,
    guess: int,  # no need to ask before so many: an earlier walk has gone so far
    share: int,  # ask again after one more in so many; 1 << 60: after each
    desk: Desk,
) -> None:
    r = desk.r
    for j in range(min(k, size + 1)):  # more than there are cannot exist
        r[j] = 0.0
    r[0] = 1.0
    if meaning == UK:
        walk_ranks(front, head, size, first, k, guess, share, desk)
    elif meaning == UT:
        walk_choices(front, head, size, first, k, guess, share, desk)
    else:
        walk_chances(front, head, size, first, k, threshold if meaning == PT else -1.0, guess, share, desk)


@uncounted
def walk_chances(
    front: Records, head: int, size: int, first: int, k: int, threshold: float, guess: int, share: int, desk: Desk
) -> None:
    """pk-topk and pt-k: nobody below is among the first k unless fewer than k of the prefix exist."""
    r, chances, passing = desk.r, desk.chances, desk.passing
    K, n, i, enough = min(k, size + 1), 0, 0, False
    look, few, many = max(guess, 1 if threshold >= 0 else k), 0.0, 0
    while i < size and not enough:
        one = front[head + i]
        if one["mark"] >= first:
            p = one["p"]
            absent, above, chance = 1.0 - p, 0.0, 0.0
            for j in range(K if K <= STEADY else min(K, n + 2)):
                own = r[j]
                chance = chance + p * own
                r[j] = above * p + own * absent
                above = own
            chances[n] = chance
            passing[n] = i
            n += 1
            if n >= look or (n >= k and i == size - 1):
                look = n + 1 + n // share
                few = 0.0
                for j in range(min(K, n + 1)):
                    few += r[j]
                if threshold >= 0:
                    enough = surely(few, threshold)
                elif few == 0 or few > TINY:
                    few, many = few * SLACK, 0
                    for t in range(n):
                        many += chances[t] >= few
                    enough = many >= k
        i += 1
    limit, ties = threshold, 0
    if threshold < 0 and n:
        if enough and many <= k + 4:
            limit, ties = least_of(chances, n, k, many, few)
        else:
            limit = kth_best(chances, n, min(k, n), desk.best)
            ties = min(k, n)
            for t in range(n):
                ties -= chances[t] > limit
    found = 0
    for t in range(n):  # without branches, which could not be foreseen
        chance = chances[t]
        hit = int(chance > limit) | (int(chance == limit) & int(ties > 0))
        desk.chance[found], desk.at[found], desk.rank[found] = chance, passing[t], 0
        ties -= hit & int(chance == limit)
        found += hit
    desk.told[PASSED], desk.told[VALID], desk.told[ENOUGH], desk.told[FOUND] = i, n, enough, found


@uncounted
def least_of(chances: Floats, n: int, k: int, many: int, few: float) -> tuple[float, int]:
    """The k-th largest chance, where `many`, few more than k, are at least `few`; and how many of its equals count."""
    limit = few
    while True:
        least = np.inf
        for t in range(n):
            least = min(least, chances[t] if chances[t] >= limit else np.inf)
        equal = 0
        for t in range(n):
            equal += chances[t] == least
        if many - equal < k:
            return least, k - (many - equal)
        many -= equal
        limit = np.nextafter(least, np.inf)


@uncounted
def kth_best(chances: Floats, n: int, k: int, best: Floats) -> float:
    """The k-th largest chance: the best so far are kept in order."""
    held = 0
    for t in range(n):
        chance = chances[t]
        if held == k and chance <= best[k - 1]:
            continue
        if held < k:
            held += 1
        j = held - 1
        while j > 0 and best[j - 1] < chance:
            best[j] = best[j - 1]
            j -= 1
        best[j] = chance
    return best[k - 1] if k else 0.0


@uncounted
def walk_ranks(front: Records, head: int, size: int, first: int, k: int, guess: int, share: int, desk: Desk) -> None:
    """u-kranks: nobody below holds a rank more probably than the most probable number of those above (Eq. 9)."""
    r, best, who, passing = desk.r, desk.best, desk.who, desk.passing
    K, n, i, enough, look = min(k, size + 1), 0, 0, False, max(guess, k)
    for j in range(K):
        best[j] = 0.0
        who[j] = 0
    while i < size and not enough:
        one = front[head + i]
        if one["mark"] >= first:
            p = one["p"]
            absent, above = 1.0 - p, 0.0
            for j in range(K if K <= STEADY else min(K, n + 2)):
                own = r[j]
                chance = p * own
                better = chance > best[j]
                best[j] = chance if better else best[j]
                who[j] = n if better else who[j]
                r[j] = above * p + own * absent
                above = own
            passing[n] = i
            n += 1
            if n >= look or (n >= k and i == size - 1):
                look = n + 1 + n // share
                most = 0.0
                for j in range(k):
                    most = max(most, r[j])
                enough = surely(most, best[k - 1])
        i += 1
    found = 0
    for j in range(K):
        if best[j] > 0:
            desk.chance[found], desk.at[found], desk.rank[found] = best[j], passing[who[j]], j + 1
            found += 1
    desk.told[PASSED], desk.told[VALID], desk.told[ENOUGH], desk.told[FOUND] = i, n, enough, found


@uncounted
def walk_choices(front: Records, head: int, size: int, first: int, k: int, guess: int, share: int, desk: Desk) -> None:
    """u-topk: an answer that goes further down is at most as probable as a choice of fewer than k of the prefix."""
    r, who, passing = desk.r, desk.who, desk.passing
    K, n, i, enough, look = min(k, size + 1), 0, 0, False, max(guess, k)
    words, top, worst = (K + WORD - 1) // WORD, 0.0, 0
    while i < size and not enough:
        one = front[head + i]
        if one["mark"] >= first:
            p = one["p"]
            absent = 1.0 - p
            if n >= k - 1 and r[k - 1] * p > top:
                top, worst = r[k - 1] * p, n
            m, above = min(K, n + 2), -1.0  # nobody chooses -1 of them
            for word in range(words):
                bits = 0
                for j in range(word * WORD, min(m, (word + 1) * WORD)):
                    own = r[j] if j <= n else -1.0  # nor more than there are
                    stay, take = own * absent, above * p
                    chosen = take > stay or j > n  # of equals the one whose worst member ranks higher
                    r[j] = take if chosen else stay
                    bits |= int(chosen) << (j - word * WORD)
                    above = own
                who[n * words + word] = bits
            passing[n] = i
            n += 1
            if n >= look or (n >= k and i == size - 1):
                look = n + 1 + n // share
                most = 0.0
                for j in range(k):
                    most = max(most, r[j])
                enough = surely(most, top)
        i += 1
    found = 0
    if top > 0:
        found, j = k, k - 1
        desk.chance[j], desk.at[j], desk.rank[j] = top, passing[worst], 0
        for t in range(worst - 1, -1, -1):
            if j and who[t * words + j // WORD] >> (j % WORD) & 1:
                j -= 1
                desk.chance[j], desk.at[j], desk.rank[j] = top, passing[t], 0
    desk.told[PASSED], desk.told[VALID], desk.told[ENOUGH], desk.told[FOUND] = i, n, enough, found


@part
def new_desk(size: int, k: int) -> Desk:
    """For walks over at most so many tuples."""
    K = min(k, size + 1)
    bits = size * ((K + WORD - 1) // WORD)
    return Desk(
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.float64),
        np.zeros(4, np.int64),
        np.empty(K, np.float64),
        np.empty(K, np.float64),
        np.empty(size, np.float64),
        np.empty(size, np.int64),
        np.empty(max(bits, K), np.int64),
    )


@kernel
def walk_down(front: Records, k: int, meaning: int, threshold: float) -> Desk:
    """One walk, for those who are not kernels."""
    desk = new_desk(ZERO + len(front), k)
    walk(front, ZERO, ZERO + len(front), LESS, k, meaning, threshold, ZERO, ONE << 60, desk)
    return desk
