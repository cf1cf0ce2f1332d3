"""Walks down the ranking of uncertain tuples: the prefix that an answer needs (a compact set), and the answer.

A walk goes from the best tuple down, with the distribution of how many of those passed exist (jin2008, Eq. 2), and
ends where the stop condition of the semantics holds: no tuple below can be in the answer. Terms and their order are
those of the oracle, so that equal prefixes give equal floats; a longer prefix than needed changes no answer.

What a condition bounds, it bounds for a tuple that surely exists. One of probability p is in the answer p times as
probably at most, so where `most` bounds the probabilities of all tuples below, so many times the bound is enough
(docs/engines/uncertain/dom.md). That is for reading an answer now: a tuple that comes later may be more probable.

Cost: O(k) a tuple.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.uncertain.kernels.records import Floats, Ints, Records, Walk
from skyband.kernels.compile import kernel, part, uncounted

PK, PT, UK, UT = 0, 1, 2, 3  # pk-topk, pt-k, u-kranks, u-topk
SLACK = 1 + 1e-9  # the margin of a bound: sums of floats differ in their last bits
TINY = 1e-290  # below it floats lose their relative precision: only 0 is a bound
PASSED, VALID, ENOUGH, FOUND = 0, 1, 2, 3  # result: tuples passed, valid ones of them, is it enough, answers
SHARE = 16  # a prefix may be longer than necessary by 1/16
EACH = 1 << 60  # as a share: the stop condition is tested after each tuple
FEW = 64  # up to this number, chances are compared each with each
SIMD = 16  # numbers that a processor compares at once
LEAST = 1e-9  # the smallest bound of probabilities that is made use of
WORD, WORD_SHIFT = 64, 6  # bits of a word; by shifts, since divisions would take longer than all else


@uncounted
def surely(bound: float, value: float) -> bool:
    """Is the value at least the bound, whatever the last bits of both say?"""
    return bound == 0 or (bound > TINY and value >= bound * SLACK)


@uncounted
def times_most(bound: float, out: Walk) -> float:
    """The bound for the tuples that there are below; a tiny one stays, since a smaller one could be 0."""
    return bound * max(out.most[0], LEAST) if bound > TINY else bound


@uncounted
def walk(
    front: Records,  # best first
    head: int,
    size: int,
    first: int,  # older ones are outside of the window
    k: int,
    semantics: int,
    threshold: float,
    guess: int,  # the stop condition is not tested before this place, where an earlier walk ended
    share: int,  # the stop condition is tested each time that the prefix has grown by 1/share
    out: Walk,
) -> None:
    """Walk down a front until its prefix is enough, and leave the answer in `out`."""
    r = out.r
    for j in range(min(k, size + 1)):  # more than there are cannot exist
        r[j] = 0.0
    r[0] = 1.0
    if semantics == UK:
        walk_ranks(front, head, size, first, k, guess, share, out)
    elif semantics == UT:
        walk_choices(front, head, size, first, k, guess, share, out)
    else:
        walk_chances(front, head, size, first, k, threshold if semantics == PT else -1.0, guess, share, out)


@uncounted
def walk_chances(
    front: Records, head: int, size: int, first: int, k: int, threshold: float, guess: int, share: int, out: Walk
) -> None:
    """pk-topk and pt-k: a tuple below is among the first k only if fewer than k of the prefix exist."""
    r, chances, places = out.r, out.chances, out.places
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
            places[n] = i
            n += 1
            if n >= look or (n >= k and i == size - 1):
                look = n + 1 + n // share
                few = 0.0
                for j in range(min(K, n + 1)):
                    few += r[j]
                if threshold >= 0:
                    enough = surely(times_most(few, out), threshold)
                elif few == 0 or few > TINY:
                    few, many = times_most(few, out) * SLACK, 0
                    for t in range(n):
                        many += chances[t] >= few
                    enough = many >= k
        i += 1
    limit, ties = threshold, 0
    if enough and many == k:  # just those
        limit, ties = few, n
    elif threshold < 0 and n:
        limit, ties = kth_best(chances, n, min(k, n), out.best)
    write_chances(out, n, limit, ties)
    out.result[PASSED], out.result[VALID], out.result[ENOUGH] = i, n, enough


@uncounted
def write_chances(out: Walk, n: int, limit: float, ties: int) -> None:
    """The answer: chances above a limit, and so many that are equal to it."""
    found = 0
    for t in range(n):  # without branches, which could not be foreseen
        chance = out.chances[t]
        hit = int(chance > limit) | (int(chance == limit) & int(ties > 0))
        out.chance[found], out.at[found], out.rank[found] = chance, out.places[t], 0
        ties -= hit & int(chance == limit)
        found += hit
    out.result[FOUND] = found


@uncounted
def leave_chances(out: Walk, n: int, k: int, threshold: float) -> None:
    """The answer of n tuples: the k best chances; from a threshold of 0 on, those above it."""
    limit, ties = threshold, 0
    if threshold < 0 and n:
        limit, ties = kth_best(out.chances, n, min(k, n), out.best)
    write_chances(out, n, limit, ties)


@uncounted
def kth_best(chances: Floats, n: int, k: int, best: Floats) -> tuple[float, int]:
    """The k-th largest chance, and how many of its equals count."""
    if n <= FEW:  # for each, how many are larger: without branches, which could not be foreseen
        wide = (n + SIMD - 1) // SIMD * SIMD
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
def walk_ranks(front: Records, head: int, size: int, first: int, k: int, guess: int, share: int, out: Walk) -> None:
    """u-kranks: a tuple below holds a rank at most as probably as the likeliest number of the prefix exists (Eq. 9)."""
    r, best, holder, places = out.r, out.best, out.chosen, out.places
    K, n, i, enough, look = min(k, size + 1), 0, 0, False, max(guess, k)
    for j in range(K):
        best[j] = 0.0
        holder[j] = 0
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
                holder[j] = n if better else holder[j]
                r[j] = above * p + own * absent
                above = own
            places[n] = i
            n += 1
            if n >= look or (n >= k and i == size - 1):
                look = n + 1 + n // share
                most = 0.0
                for j in range(k):
                    most = max(most, r[j])
                enough = surely(times_most(most, out), best[k - 1])
        i += 1
    leave_ranks(out, K)
    out.result[PASSED], out.result[VALID], out.result[ENOUGH] = i, n, enough


@uncounted
def leave_ranks(out: Walk, K: int) -> None:
    """The answer: for each rank the tuple most probable to hold it, if any can."""
    found = 0
    for j in range(K):
        if out.best[j] > 0:
            out.chance[found], out.at[found], out.rank[found] = out.best[j], out.places[out.chosen[j]], j + 1
            found += 1
    out.result[FOUND] = found


@uncounted
def walk_choices(front: Records, head: int, size: int, first: int, k: int, guess: int, share: int, out: Walk) -> None:
    """u-topk: an answer that goes further down is at most as probable as a choice of fewer than k of the prefix."""
    r, taken, places = out.r, out.chosen, out.places
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
            above = -1.0  # there is no choice of -1 tuples
            for word in range(words):
                bits, begin = 0, word * WORD
                for j in range(begin, min(K, n + 1, begin + WORD)):
                    own = r[j]
                    stay, take = own * absent, above * p
                    chosen = take > stay  # of equals the one whose worst member ranks higher
                    r[j] = take if chosen else stay
                    bits |= int(chosen) << (j - begin)
                    above = own
                taken[n * words + word] = bits
            if n + 1 < K:  # all of them
                r[n + 1] = above * p
                taken[n * words + (n + 1 >> WORD_SHIFT)] |= 1 << (n + 1 & (WORD - 1))
            places[n] = i
            n += 1
            if n >= look or (n >= k and i == size - 1):
                look = n + 1 + n // share
                most = 0.0
                for j in range(k):
                    most = max(most, r[j])
                enough = surely(times_most(most, out), top)
        i += 1
    found = 0
    if top > 0:
        found, j, t = k, k - 1, worst
        for place in range(k):
            out.chance[place], out.rank[place] = top, 0
        out.at[j] = places[worst]
        while j:
            t -= 1
            out.at[j - 1] = places[t]  # until it is one that was taken
            j -= taken[t * words + (j >> WORD_SHIFT)] >> (j & (WORD - 1)) & 1
    out.result[PASSED], out.result[VALID], out.result[ENOUGH], out.result[FOUND] = i, n, enough, found


@part
def new_walk(size: int, k: int) -> Walk:
    """Memory for walks over at most `size` tuples."""
    K = min(k, size + 1)
    bits = size * ((K + WORD - 1) // WORD)
    return Walk(
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.float64),
        np.zeros(4, np.int64),
        np.empty(K, np.float64),
        np.empty(K, np.float64),
        np.empty(size + SIMD, np.float64),
        np.empty(size, np.int64),
        np.empty(max(bits, K), np.int64),
        np.ones(1),
        None,
    )


@kernel
def read_prefix(front: Records, k: int, semantics: int, threshold: float) -> tuple[Ints, Ints, Floats, Ints]:
    """One walk over tuples in order of rank, that goes no further than necessary; its result."""
    out = new_walk(len(front), k)
    walk(front, 0, len(front), -1, k, semantics, threshold, 0, EACH, out)
    return out.at, out.rank, out.chance, out.result
