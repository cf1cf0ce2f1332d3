"""Snapshot answers (Alg. 2): the k best pairs of any window, from the band or from lists for some window lengths.

Reading a short window from the flat tree looks at ten pairs for each that it takes, and each test is mispredicted. A
band that is read often before it changes therefore gets lists: for windows whose lengths are sqrt(2) apart, the best
pairs of each side by side. At least half of a list's pairs lie in the next shorter window, as both members have to:
reading k pairs looks at 2k, whatever the length. Building the lists costs one look at each pair and up to 28 times 2K
entries, as much as 50 reads from the tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.pairs.kernels.band import walk
from skyband.engines.pairs.kernels.records import NEVER, READS, SIZE, Band, Ints, Places
from skyband.kernels.compile import close, kernel, uncounted

LENGTHS = 28  # down to one in 11,585 of the longest
MOST = 256  # entries of a list, at most


class Lists(NamedTuple):
    low: Ints  # rising: the list has pairs whose older member is newer than this
    size: Ints
    end: Ints  # the rank up to which the list has all of them
    old: Ints  # a row for each list
    slot: Places


def empty_lists(K: int) -> Lists:
    capacity = min(2 * K, MOST)
    low, size, end = np.zeros((3, LENGTHS), np.int64)
    return Lists(low, size, end, np.empty((LENGTHS, capacity), np.int64), np.empty((LENGTHS, capacity), np.int32))


@uncounted
def build_lists(facts: Ints, band: Band, lists: Lists, longest: int) -> None:
    size, capacity = facts[SIZE], lists.old.shape[1]
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
        while full < LENGTHS and lists.size[full] == capacity:
            lists.end[full] = i
            full += 1


@close
def read(facts: Ints, band: Band, lists: Lists, k: int, low: int, out: Places) -> int:
    """Write the slots of the k best pairs whose older member is newer than `low`, best first; return their number."""
    which, found = -1, 0
    for j in range(LENGTHS):
        which += lists.low[j] <= low
    if which < 0:
        return walk(facts, band, 0, 0, k, low, out, 0)
    old, slot = lists.old[which], lists.slot[which]
    for i in range(lists.size[which]):  # without branches: they would be mispredicted
        out[found] = slot[i]
        found += int(old[i] > low)
        if found == k:
            return found
    return walk(facts, band, lists.end[which], found, k, low, out, 0)


@close
def read_slots(
    facts: Ints, band: Band, lists: Lists, longest: int, patience: int, k: int, low: int, out: Places
) -> int:
    """Write the slots of an answer: from lists once the band has been read `patience` times since it changed."""
    if facts[READS] < patience:
        facts[READS] += 1
        return walk(facts, band, 0, 0, k, low, out, 0)
    if facts[READS] == patience:
        build_lists(facts, band, lists, longest)
        facts[READS] += 1
    return read(facts, band, lists, k, low, out)


@kernel
def read_pairs(
    facts: Ints, band: Band, lists: Lists, longest: int, patience: int, k: int, low: int, out: Places
) -> int:
    return read_slots(facts, band, lists, longest, patience, k, low, out)
