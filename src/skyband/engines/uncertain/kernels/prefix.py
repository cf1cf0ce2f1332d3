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
FEW = 64  # up to so many chances are compared each with each
LANES = 16  # numbers that a processor compares at once
WORD = 64  # bits of a word; by shifts, since divisions take longer than the rest
SIXTH = 6  # of 2: a word


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
            for j in range(min(K, n + 2)):
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
    if enough and many == k:  # just those
        limit, ties = few, n
    elif threshold < 0 and n:
        limit, ties = kth_best(chances, n, min(k, n), desk.best)
    found = 0
    for t in range(n):  # without branches, which could not be foreseen
        chance = chances[t]
        hit = int(chance > limit) | (int(chance == limit) & int(ties > 0))
        desk.chance[found], desk.at[found], desk.rank[found] = chance, passing[t], 0
        ties -= hit & int(chance == limit)
        found += hit
    desk.told[PASSED], desk.told[VALID], desk.told[ENOUGH], desk.told[FOUND] = i, n, enough, found


@uncounted
def kth_best(chances: Floats, n: int, k: int, best: Floats) -> tuple[float, int]:
    """The k-th largest chance, and how many of its equals count."""
    if n <= FEW:  # for each, how many are larger: without branches, which could not be foreseen
        wide = (n + LANES - 1) // LANES * LANES
        for t in range(n, wide):
            chances[t] = -1.0
        limit, ties = 2.0, 0
        for t in range(n):
            chance, larger = chances[t], 0
            for other in range(wide):
                larger += chances[other] > chance
            lower = int(larger < k) & int(chance < limit)
            limit = chance if lower else limit
            ties = k - larger if lower else ties
        return limit, ties
    held = 0
    for t in range(n):  # the best so far are kept in order
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
    ties = k
    for t in range(n):
        ties -= chances[t] > best[k - 1]
    return best[k - 1], ties


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
            for j in range(min(K, n + 2)):
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
            end = r[k - 1] * p if n >= k - 1 else 0.0
            worst = n if end > top else worst
            top = max(top, end)
            above = -1.0  # nobody chooses -1 of them
            for word in range(words):
                bits, begin = 0, word * WORD
                for j in range(begin, min(K, n + 1, begin + WORD)):
                    own = r[j]
                    stay, take = own * absent, above * p
                    chosen = take > stay  # of equals the one whose worst member ranks higher
                    r[j] = take if chosen else stay
                    bits |= int(chosen) << (j - begin)
                    above = own
                who[n * words + word] = bits
            if n + 1 < K:  # all of them
                r[n + 1] = above * p
                who[n * words + (n + 1 >> SIXTH)] |= 1 << (n + 1 & (WORD - 1))
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
        found, j, t = k, k - 1, worst
        for place in range(k):
            desk.chance[place], desk.rank[place] = top, 0
        desk.at[j] = passing[worst]
        while j:
            t -= 1
            desk.at[j - 1] = passing[t]  # until one is found that was taken
            j -= who[t * words + (j >> SIXTH)] >> (j & (WORD - 1)) & 1
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
        np.empty(size + LANES, np.float64),
        np.empty(size, np.int64),
        np.empty(max(bits, K), np.int64),
    )


@kernel
def walk_down(front: Records, k: int, meaning: int, threshold: float) -> Desk:
    """One walk, for those who are not kernels."""
    desk = new_desk(len(front), k)
    walk(front, 0, len(front), -1, k, meaning, threshold, 0, 1 << 60, desk)
    return desk
