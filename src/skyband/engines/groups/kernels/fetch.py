"""Hints to the processor: the rows and objects that a kernel is about to read, where its caches cannot hold all."""

from __future__ import annotations

from typing import Any

from skyband.engines.groups.kernels.state import Batch, Live, State
from skyband.kernels.compile import close
from skyband.kernels.prefetch import prefetch

FAR, MIDWAY, NEAR = 24, 16, 8  # how many rows ahead memory is fetched
CACHED = 4096  # so many objects are in the cache anyway


@close
def fetch_object(state: State, live: Live, s: Any) -> None:
    """Fetch what is kept of an object."""
    prefetch(state.slots, s, 0)
    prefetch(state.words, s, 0)
    prefetch(state.ends, s, 0)
    prefetch(live.ranks, s, 0)  # and not the second line, which few events read


@close
def fetch_slot(state: State, s: Any) -> None:
    """Fetch the little that rows of a cold object read."""
    prefetch(state.slots, s, 0)


@close
def fetch_row(state: State, r: Any) -> None:
    """Fetch what is kept of a row."""
    prefetch(state.rows, r, 0)
    prefetch(state.values, r, 0)
    prefetch(state.links, r, 0)


@close
def fetch_ahead(state: State, batch: Batch, live: Live, i: Any) -> None:
    """Fetch what the arrivals after this one are about to read: objects, and the newest rows of their chains."""
    fetch_object(state, live, batch.slots[i + FAR])
    if state.ends.shape[1] > 0:
        newest = state.ends[batch.slots[i + MIDWAY], 1]
        if newest >= 0:
            fetch_row(state, newest)
        newest = state.ends[batch.slots[i + NEAR], 1]
        if newest >= 0:
            older = state.links[newest, 0]
            if older >= 0:
                fetch_row(state, older)
