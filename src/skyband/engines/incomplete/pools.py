"""The arrays of linked rows: pools whose free places are chained by one of their fields, sums, and empty fronts."""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Floats, Ints
from skyband.engines.incomplete.base import Records
from skyband.engines.incomplete.kernels.batches import NOWHERE
from skyband.engines.incomplete.kernels.linked_store import FRONT
from skyband.kernels.records import NEVER
from skyband.kernels.sums import fitted, rescale


def with_free(pool: Records, more: int, link: str, free: int) -> tuple[Records, int]:
    """A pool with so many places more, chained to the free ones by `link`; and its first free place."""
    first = len(pool)
    pool = np.concatenate([pool, np.zeros(more, pool.dtype)])
    return (pool, chain(pool[link], first, free)) if more else (pool, free)


def chain(links: Records, first: int, then: int = -1) -> int:
    """Chain the places from `first` on, one after another and then to this one; returns the first."""
    if first == len(links):
        return then
    links[first:] = np.arange(first + 1, len(links) + 1)
    links[-1] = then
    return first


def wide_enough(sums: Ints, lowest: int, high: int, values: Floats, most: int) -> tuple[Ints, int, int]:
    """Sums with the words that they need with these values among them, their lowest bit, and the highest of any value.

    sums: a count of rows, then words. most: rows that a sum has at most.
    """
    words, end = sums.shape[1] - 1, sums.shape[1]
    need, low, high = fitted(words, lowest, high, values, most)
    if (need, low) == (words, lowest):
        return sums, lowest, high
    wide = np.zeros((len(sums), 1 + need), np.int64)
    wide[:, 0] = sums[:, 0]
    rescale(sums, 1, end, wide, 1, 1 + need, lowest - low)
    return wide, low, high


def empty_fronts(size: int) -> Records:
    """Fronts of groups that have no rows."""
    fronts = np.zeros(size, FRONT)
    fronts["score"], fronts["stamp"], fronts["serial"], fronts["changed"] = -np.inf, NOWHERE, NOWHERE, NEVER
    return fronts
