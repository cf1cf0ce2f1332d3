"""Pools of records that keep their places: free ones are chained by one of their fields."""

from __future__ import annotations

import numpy as np

from skyband.engines.incomplete.base import Records


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
