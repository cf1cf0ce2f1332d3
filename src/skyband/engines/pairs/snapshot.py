"""Engines of pairs as arrays to store: objects and pairs of group after group, and where each query stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.arena import recast
from skyband.engines.contract import Ints
from skyband.engines.pairs.kernels.records import BASE, BLOCKS, END, NEVER, SIZE, SLOT, TA
from skyband.engines.pairs.kernels.steps import prune_pairs
from skyband.engines.pairs.window import Records, Store
from skyband.errors import StateError

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs

OBJECT = np.dtype([("stamp", "i8"), ("serial", "i8")])
VIEW = np.dtype([("kth", "f8"), ("due", "i8")])


def stored(engine: Pairs, groups: Ints) -> dict[str, tuple[Records, Ints]]:
    stores = [engine._store(g) for g in groups.tolist()]
    assert not any(store.open for store in stores), "no batch is open"
    parts: dict[str, list[Records]] = {name: [] for name in ("sizes", "objects", "data", "pairs", "shown", "views")}
    for store in stores:
        engine._flush(store)
        if engine.timed:
            engine._settle(store, engine.clock)
        live = store.live
        oldest = int(store.window.stamps[live.start]) if live.start < live.stop else NEVER
        prune_pairs(store.facts, store.band, store.K, oldest - 1, engine.algorithm)
        objects, views = np.zeros(live.stop - live.start, OBJECT), np.zeros(len(engine.k), VIEW)
        objects["stamp"], objects["serial"] = store.window.stamps[live], store.window.serials[live]
        views["kth"], views["due"] = store.views.kth, store.views.due
        pairs, slots = store.pairs, store.band.slot[: store.facts[SIZE]]
        pairs["place"] -= store.facts[BASE] + live.start
        sizes = np.array([len(objects), len(pairs)], np.int64)
        data, shown = store.window.data[:, live].T.reshape(-1), store.band.bits[slots].reshape(-1)
        for name, array in zip(parts, (sizes, objects, data, pairs, shown, views), strict=True):
            parts[name].append(array)
    empty: tuple[Any, ...] = (np.int64, OBJECT, np.float64, SLOT, np.uint64, VIEW)
    return {
        name: (np.concatenate([np.empty(0, dtype), *arrays]), np.array([len(one) for one in arrays], np.int64))
        for (name, arrays), dtype in zip(parts.items(), empty, strict=True)
    }


def restore(engine: Pairs, state: Mapping[str, Records]) -> None:
    objects, pairs, views = (
        recast(state[name], dtype) for name, dtype in (("objects", OBJECT), ("pairs", SLOT), ("views", VIEW))
    )
    width, words, lanes = len(engine.scoring.local), (len(engine.k) + 63) // 64, len(engine.k)
    sizes = state["sizes"].reshape(-1, 2) if len(state["sizes"]) % 2 == 0 else np.full((1, 2), -1)
    if not (
        (sizes >= 0).all()
        and tuple(sizes.sum(axis=0)) == (len(objects), len(pairs))
        and len(state["data"]) == width * len(objects)
        and len(state["shown"]) == words * len(pairs)
        and len(views) == lanes * len(sizes)
    ):
        raise StateError("the snapshot's pairs do not fit together. Take a new snapshot from a running Monitor.")
    engine.stores, ends = [], np.cumsum(sizes, axis=0)
    for g, (n, p) in enumerate(sizes.tolist()):
        store = engine._store(g)
        here, there = slice(ends[g, 0] - n, ends[g, 0]), slice(ends[g, 1] - p, ends[g, 1])
        data = state["data"].reshape(-1, width)[here] if width else np.empty((n, 0))
        store.fill(objects["stamp"][here], objects["serial"][here], data.T, engine.scoring.limit)
        store.fill_band(pairs[there], state["shown"].reshape(-1, words)[there])
        mine = views[g * lanes : (g + 1) * lanes]
        store.views.kth[:], store.views.due[:] = mine["kth"], mine["due"]
        prune_pairs(store.facts, store.band, store.K, -NEVER, engine.algorithm)
        if engine.algorithm == TA and n:
            _lay_blocks(engine, store)


def _lay_blocks(engine: Pairs, store: Store) -> None:
    """Blocks over objects that are there."""
    size = int(store.facts[END])
    store.facts[END] = 0
    while store.facts[END] < size:
        store.open_block(engine.scoring.limit)
        store.facts[END] = min(size, store.facts[END] + engine._block_size())
        newest = int(store.facts[BLOCKS]) - 1
        store.blocks.end[newest] = store.facts[BASE] + store.facts[END]
