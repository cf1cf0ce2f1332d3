"""Snapshot answers: the k best pairs of any window out of the band, by lists of the best pairs of some lengths.

The band in order of rank, with crests over it, is a priority search tree laid flat; a walk for a short window still
looks at ten pairs for each that it takes, and each comes as a surprise to the processor. So a band that many read
before it changes gets lists: of windows whose lengths are sqrt(2) apart, the best pairs of each side by side. Half of
a list's pairs or more lie in the next shorter window, as both members have to: reading k pairs looks at 2k, whatever
the length. Laying the lists costs one look at each pair and up to 28 times 2K entries, as much as 50 walks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.pairs.kernels.band import walk
from skyband.engines.pairs.kernels.records import NEVER, READ, SIZE, Band, Ints, Places
from skyband.kernels.compile import close, kernel, uncounted

LENGTHS = 28  # down to one in 11,585 of the longest
MOST = 256  # entries of a list


class Lists(NamedTuple):
    low: Ints  # rising: the list has pairs whose older member is newer than this
    size: Ints
    end: Ints  # the rank up to which the list has all of them
    old: Ints  # a row for each list
    slot: Places


def empty_lists(K: int) -> Lists:
    room = min(2 * K, MOST)
    low, size, end = np.zeros((3, LENGTHS), np.int64)
    return Lists(low, size, end, np.empty((LENGTHS, room), np.int64), np.empty((LENGTHS, room), np.int32))


@uncounted
def lay_lists(facts: Ints, band: Band, lists: Lists, longest: int) -> None:
    size, room = facts[SIZE], lists.old.shape[1]
    newest = -NEVER
    for i in range(size):
        newest = max(newest, band.old[i])
    for j in range(LENGTHS):
        lists.low[j], lists.size[j], lists.end[j] = newest - np.int64(longest * 2.0 ** (-0.5 * j)), 0, size
    full, i = 0, 0  # a longer window is full first
    while i < size and full < LENGTHS:
        old, j = band.old[i], full
        while j < LENGTHS and old > lists.low[j]:
            at = lists.size[j]
            lists.old[j, at], lists.slot[j, at] = old, band.slot[i]
            lists.size[j] = at + 1
            j += 1
        i += 1
        while full < LENGTHS and lists.size[full] == room:
            lists.end[full] = i
            full += 1


@close
def read(facts: Ints, band: Band, lists: Lists, k: int, low: int, out: Places) -> int:
    """The slots of the k best pairs whose older member is newer than `low`, best first; how many there are."""
    which, found = -1, 0
    for j in range(LENGTHS):
        which += lists.low[j] <= low
    if which < 0:
        return walk(facts, band, 0, 0, k, low, out, 0)
    old, slot = lists.old[which], lists.slot[which]
    for i in range(lists.size[which]):  # without branches, which could not be foreseen
        out[found] = slot[i]
        found += int(old[i] > low)
        if found == k:
            return found
    return walk(facts, band, lists.end[which], found, k, low, out, 0)


@close
def read_slots(
    facts: Ints, band: Band, lists: Lists, longest: int, patience: int, k: int, low: int, out: Places
) -> int:
    """The slots of an answer. Lists are for those who read a band that so many have read since it changed."""
    if facts[READ] < patience:
        facts[READ] += 1
        return walk(facts, band, 0, 0, k, low, out, 0)
    if facts[READ] == patience:
        lay_lists(facts, band, lists, longest)
        facts[READ] += 1
    return read(facts, band, lists, k, low, out)


@kernel
def read_pairs(
    facts: Ints, band: Band, lists: Lists, longest: int, patience: int, k: int, low: int, out: Places
) -> int:
    return read_slots(facts, band, lists, longest, patience, k, low, out)
