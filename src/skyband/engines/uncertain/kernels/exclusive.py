"""Walks down the ranking where tuples may be alternatives (x-tuples): of those with one name at most one exists.

As in prefix.py, but a tuple's chance counts how many of the *groups* of alternatives above it exist, its own left out.
Groups come in order of their best members; one that gets another member is counted again from its place on. The stop
conditions stay sufficient: that a tuple below exists means that none of its alternatives in the prefix does, so its
chance is part of what the condition bounds (u-kranks: that at most j of the prefix exist). Terms and their order are
those of the oracle. choices.py has u-topk.

A prefix after which tuples are dropped must be `firm`: enough by a larger margin, since sums of alternatives may pass
1 by 1e-12, so that a tuple may be more probable than the prefix allows, by as much (docs/engines/uncertain/dom.md).

Cost: O(k) for a tuple alone, O(k d) for one that has alternatives above it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.uncertain.kernels import prefix
from skyband.engines.uncertain.kernels.choices import leave_choice, next_choices, see_choice
from skyband.engines.uncertain.kernels.prefix import ENOUGH, PASSED, PK, PT, TINY, UK, UT, VALID
from skyband.engines.uncertain.kernels.records import Floats, Ints, Records, Rivals, Walk
from skyband.kernels.compile import kernel, part, uncounted
from skyband.kernels.hashes import slot_of

SLACK = 1 + 1e-6  # the probabilities of a group may add up to 1 + 1e-12, in each of several groups
NEARLY_ONE = 1e-3  # that matters for groups which are absent with a smaller probability
LEAST = 1e-9  # the margin then
FIRM = 1 + 1e-3  # the margin of a prefix after which tuples are dropped; and it has k tuples more often than not
EVEN = 0.5


@uncounted
def surely(bound: float, value: float, full: bool) -> bool:
    """Is the value at least the bound, whatever the last bits of both say? full: a group is nearly sure to exist."""
    if full:
        return value >= bound * SLACK + LEAST
    return bound == 0 or (bound > TINY and value >= bound * SLACK)


@uncounted
def group_of(front: Records, head: int, places: Ints, n: int, i: int, groups: int, rivals: Rivals) -> Any:
    """The group of tuple i of the front, the n-th that is passed; `groups`: a new one."""
    one, rivals.used[n] = front[head + i], -1
    if one["named"] == 0:
        return groups
    mask = len(rivals.table) - 1
    slot = slot_of(one["name"], 0, mask)
    while rivals.table[slot] > 0:
        other = rivals.table[slot] - 1
        if front[head + places[other]]["name"] == one["name"]:
            return rivals.of[other]
        slot = (slot + 1) & mask
    rivals.table[slot], rivals.used[n] = n + 1, slot
    return groups


@uncounted
def next_row(source: Floats, begin: int, target: Floats, to: int, width: int, K: int, rivals: Rivals, g: int) -> int:
    """The distribution with one group more, over one that is `width` wide; returns how wide it is."""
    p = rivals.sums[g]
    absent, above, wide = max(0.0, 1.0 - p), 0.0, min(K, width + 1)
    for j in range(wide):
        own = source[begin + j] if j < width else 0.0
        target[to + j] = above * p + own * absent
        above = own
    return wide


@uncounted
def row_without(rivals: Rivals, g: int, groups: int, K: int) -> int:
    """In `own`: how many of the groups but g exist; returns how wide the row is."""
    width = min(K, g + 1)
    for j in range(width):
        rivals.own[j] = rivals.rows[g * K + j]
    for other in range(g + 1, groups):
        width = next_row(rivals.own, 0, rivals.own, 0, width, K, rivals, other)
    return width


@uncounted
def is_enough(rivals: Rivals, groups: int, n: int, k: int, K: int, threshold: float, full: bool, out: Walk) -> bool:
    """pk-topk and pt-k (a threshold from 0 on): a tuple below needs that fewer than k of the prefix exist."""
    few = total(rivals, groups, K)
    if threshold >= 0:
        return surely(few, threshold, full)
    many = 0
    for t in range(n):
        many += surely(few, out.chances[t], full)
    return many >= k


@uncounted
def is_firm(rivals: Rivals, groups: int, n: int, k: int, K: int, threshold: float, semantics: int, out: Walk) -> bool:
    """Is it certain that no tuple below will be in an answer while the prefix is valid, whatever comes?"""
    few = total(rivals, groups, K)
    if semantics == PT:
        return few * FIRM + LEAST <= threshold
    if few > EVEN or n < k:
        return False
    many = 0
    if semantics == PK:
        for t in range(n):
            many += out.chances[t] >= few * FIRM
        return many >= k
    most = 0.0
    for j in range(k):
        most += rivals.rows[groups * K + j] if j <= groups else 0.0
        many += out.best[j] >= most * FIRM
    return many == k


@uncounted
def total(rivals: Rivals, groups: int, K: int) -> float:
    """The probability that fewer than k groups of the prefix exist."""
    few = 0.0
    for j in range(min(K, groups + 1)):
        few += rivals.rows[groups * K + j]
    return few


@uncounted
def is_every_rank(rivals: Rivals, groups: int, k: int, K: int, full: bool, out: Walk) -> bool:
    """u-kranks: a tuple below holds rank j + 1 only if at most j of the prefix exist.

    The most probable number of them says less here, since a group of the prefix may still get members.
    """
    most = 0.0
    for j in range(k):
        most += rivals.rows[groups * K + j] if j <= groups else 0.0
        if not surely(most, out.best[j], full):
            return False
    return True


@uncounted
def is_best_choice(rivals: Rivals, groups: int, K: int, full: bool, top: float) -> bool:
    """u-topk: an answer that goes further down is at most as probable as a choice of fewer than k of the prefix."""
    most = 0.0
    for j in range(min(K, groups + 1)):
        most = max(most, rivals.rows[groups * K + j])
    return surely(most, top, full)


@uncounted
def see_chance(rivals: Rivals, width: int, n: int, p: float, semantics: int, out: Walk) -> None:
    """Note a tuple of this probability; `own` has the distribution of the groups above it without its own."""
    chance = 0.0
    for j in range(width):
        own = p * rivals.own[j]
        chance = chance + own
        if semantics == UK and own > out.best[j]:
            out.best[j] = own
            out.chosen[j] = n
    out.chances[n] = chance


@uncounted
def walk_exclusive(
    rivals: Rivals, firm: bool, front: Records, head: int, size: int, first: int, k: int, semantics: int,
    threshold: float, guess: int, share: int, out: Walk,
) -> None:  # fmt: skip
    """As `prefix.walk`; firm: not enough before tuples below can be dropped."""
    K, n, i, groups, places = min(k, size + 1), 0, 0, 0, out.places
    limit = threshold if semantics == PT else -1.0
    enough, full, look, top = False, False, max(guess, 1 if semantics == PT else k), 0.0
    rivals.rows[0] = 1.0
    if semantics == UK:
        for j in range(K):
            out.best[j], out.chosen[j] = 0.0, 0
    while i < size and not enough:
        one = front[head + i]
        if one["mark"] >= first:
            p, g = one["p"], group_of(front, head, places, n, i, groups, rivals)
            if g == groups:
                rivals.sums[g], rivals.last[g], rivals.beyond[g] = 0.0, -1, n - 1
            places[n] = i
            if semantics == UT:
                top = see_choice(rivals, front, head, places, g, groups, k, K, n, top)
            else:
                see_chance(rivals, row_without(rivals, g, groups, K), n, p, semantics, out)
            rivals.of[n], rivals.before[n], rivals.last[g] = g, rivals.last[g], n
            rivals.sums[g] = rivals.sums[g] + p
            full |= one["named"] != 0 and 1.0 - rivals.sums[g] < NEARLY_ONE
            groups = max(groups, g + 1)
            for other in range(g, groups):
                width = min(K, other + 1)
                if other > g:
                    rivals.beyond[other] = n
                if semantics == UT:
                    next_choices(rivals, front, head, places, other, width, K, -1)
                else:
                    next_row(rivals.rows, other * K, rivals.rows, (other + 1) * K, width, K, rivals, other)
            n += 1
            if n >= look or (n >= k and i == size - 1):
                look = n + 1 + n // share
                if firm:
                    enough = is_firm(rivals, groups, n, k, K, limit, semantics, out)
                elif semantics == UT:
                    enough = is_best_choice(rivals, groups, K, full, top)
                elif semantics == UK:
                    enough = is_every_rank(rivals, groups, k, K, full, out)
                else:
                    enough = is_enough(rivals, groups, n, k, K, limit, full, out)
        i += 1
    for t in range(n):
        if rivals.used[t] >= 0:
            rivals.table[rivals.used[t]] = 0
    out.result[PASSED], out.result[VALID], out.result[ENOUGH] = i, n, enough
    if semantics == UT:
        leave_choice(rivals, k, top, out)
    elif semantics == UK:
        prefix.leave_ranks(out, K)
    else:
        prefix.leave_chances(out, n, k, limit)


@uncounted
def walk_any(
    rivals: Rivals | None, firm: bool, front: Records, head: int, size: int, first: int, k: int, semantics: int,
    threshold: float, guess: int, share: int, out: Walk,
) -> None:  # fmt: skip
    """A walk over tuples that exist independently, or over alternatives; Numba leaves the other branch out."""
    if rivals is None:
        prefix.walk(front, head, size, first, k, semantics, threshold, guess, share, out)
    else:
        walk_exclusive(rivals, firm, front, head, size, first, k, semantics, threshold, guess, share, out)


@part
def memory(size: int, K: int, semantics: int) -> Rivals:
    """Of walks over at most `size` alternatives."""
    slots = 4
    while slots < 2 * size:
        slots *= 2
    choices = (size + 1) * K if semantics == UT else 0
    return Rivals(
        np.zeros(slots, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size + 1, np.int64),
        np.empty(size + 1, np.int64),
        np.empty(size + 1, np.float64),
        np.empty((size + 1) * K, np.float64),
        np.empty(K, np.float64),
        np.empty(choices, np.int64),
        np.empty(choices, np.int64),
        np.empty(K, np.int64),
        np.empty(K, np.int64),
        np.empty(K, np.int64),
    )


@part
def larger(rivals: Rivals | None, size: int, K: int, semantics: int) -> Rivals | None:
    """Memory for longer walks, if they are over alternatives."""
    if rivals is not None:
        return memory(size, K, semantics)
    return rivals


@part
def new_walk(size: int, k: int, semantics: int, rivals: Rivals | None) -> Walk:
    """Memory for walks over at most `size` tuples; rivals: None, unless they are alternatives."""
    at, rank, chance, result, r, best, chances, places, chosen, most, _ = prefix.new_walk(size, k)
    more = larger(rivals, size, min(k, size + 1), semantics)
    return Walk(at, rank, chance, result, r, best, chances, places, chosen, most, more)


@kernel
def read_exclusive(front: Records, k: int, semantics: int, threshold: float) -> tuple[Ints, Ints, Floats, Ints]:
    """As `prefix.read_prefix`, of alternatives."""
    out = new_walk(len(front), k, semantics, memory(0, 1, semantics))
    walk_any(out.rivals, False, front, 0, len(front), -1, k, semantics, threshold, 0, prefix.EACH, out)
    return out.at, out.rank, out.chance, out.result
