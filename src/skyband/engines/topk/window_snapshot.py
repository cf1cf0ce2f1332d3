"""Windows as flat arrays for a snapshot, and back.

The names of arrays and fields are stored, so they stay as they are: `held` are the objects by age, `floors` the states
of queries, `ghosts` the reported objects outside the runs (with their stamp in `was`, if they have left the window).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import recast
from skyband.engines.contract import Ints
from skyband.engines.invariants import are_counts, near, require, within
from skyband.engines.topk.invariants import check_store, check_windows
from skyband.engines.topk.kernels.window_state import REPORTED
from skyband.engines.topk.window import Store
from skyband.engines.topk.window_memory import Memory
from skyband.engines.topk.window_queries import WindowQueries
from skyband.kernels.records import NEVER, OBJECT

Records = NDArray[Any]
STAMPED = np.dtype([("stamp", "i8"), ("serial", "i8")])  # an object as it is stored
FLOOR = np.dtype([("key", "f8"), ("stamp", "i8"), ("serial", "i8"), ("view", "i8"), ("spent", "i8")])
ARRAYS: dict[str, Any] = {
    "held": STAMPED, "data": np.float64, "floors": FLOOR, "sizes": np.int64, "runs": OBJECT, "ghosts": REPORTED,
}  # fmt: skip


def save(stores: list[Store], groups: list[int], memory: Memory) -> dict[str, tuple[Records, Ints]]:
    """The windows of these groups: arrays in their order, each with its number of entries per group."""
    parts: dict[str, list[Records]] = {name: [] for name in ARRAYS}
    for g, store in zip(groups, stores, strict=True):
        taken = store.by_age()
        held, floors = np.zeros(len(taken), STAMPED), np.zeros(len(store.state), FLOOR)
        held["stamp"], held["serial"] = store.slots["stamp"][taken], store.slots["serial"][taken]
        for name in FLOOR.names or ():
            floors[name] = store.state[name]
        found, reported = store.runs()
        for s, inside in enumerate(reported):
            inside["was"] = 0
            earlier = memory.of(s, g)
            earlier = earlier[~np.isin(earlier["serial"], held["serial"])]
            outside = np.zeros(len(earlier), REPORTED)
            outside["serial"], outside["was"] = earlier["serial"], earlier["stamp"]
            both = np.concatenate([inside, outside])
            reported[s] = both[np.argsort(both["serial"])]  # places, by which they may lie, are others after a restore
        sizes = np.array([len(taken), *map(len, found), *map(len, reported)], np.int64)
        runs = np.concatenate([np.empty(0, OBJECT), *found])
        runs["was"] = 0
        arrays = (held, store.data[taken].reshape(-1), floors, sizes, runs, np.concatenate(reported))
        for name, array in zip(parts, arrays, strict=True):
            parts[name].append(array)
    return {
        name: (np.concatenate([np.empty(0, ARRAYS[name]), *arrays]), np.array([len(one) for one in arrays], np.int64))
        for name, arrays in parts.items()
    }


def load(state: Mapping[str, Records], queries: WindowQueries, memory: Memory, *, trusted: bool = True) -> list[Store]:
    """The inverse of `save`; objects that have left their window go into the memory."""
    count, d = len(queries), queries.width
    width = 1 + 2 * count
    held, floors = recast(state["held"], STAMPED), recast(state["floors"], FLOOR)
    entries, reported = recast(state["runs"], OBJECT), recast(state["ghosts"], REPORTED)
    shaped = len(state["sizes"]) % width == 0 and len(floors) * width == len(state["sizes"]) * count
    require(shaped, "every window has its queries")
    sizes = state["sizes"].reshape(-1, width)
    parts = (sizes[:, :1], held), (sizes[:, 1 : 1 + count], entries), (sizes[:, 1 + count :], reported)
    require(all(are_counts(some.reshape(-1), len(records)) for some, records in parts), "windows have their objects")
    require(len(state["data"]) == d * len(held), "every object has its numbers")
    data, stores, taken = state["data"].reshape(-1, d), list[Store](), [0, 0, 0]
    if not trusted:
        check_windows(held, data, sizes[:, 0], queries)
        require(near(reported["was"]) and within(reported["serial"], 0, NEVER - 1), "reported objects have serials")

    def next_of(which: int, records: Records, counts: list[int]) -> list[Records]:
        begin, taken[which] = taken[which], taken[which] + sum(counts)
        return np.split(records[begin : taken[which]].copy(), np.cumsum(counts)[:-1])

    for g, row in enumerate(sizes.tolist()):
        store = Store(queries)
        begin, taken[0] = taken[0], taken[0] + row[0]
        mine = held[begin : taken[0]]
        store.fill(data[begin : taken[0]], mine["stamp"], mine["serial"])
        for name in FLOOR.names or ():
            store.state[name] = floors[name][g * count : (g + 1) * count]
        found, others = next_of(1, entries, row[1 : 1 + count]), next_of(2, reported, row[1 + count :])
        order = np.argsort(mine["serial"])
        for s in range(count):
            valid = np.isin(others[s]["serial"], mine["serial"])
            memory.add(s, g, others[s]["was"][~valid], others[s]["serial"][~valid])
            others[s] = others[s][valid]
            require(np.isin(found[s]["serial"], mine["serial"]).all(), "a run has valid objects")
            for run in (found[s], others[s]):
                run["was"] = order[np.searchsorted(mine["serial"], run["serial"], sorter=order)]
        store.set_runs(found, others)
        if not trusted:
            check_store(store)  # lists of the grid follow from it
        store.build_grid()
        stores.append(store)
    return stores
