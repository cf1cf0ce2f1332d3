"""Slots that begin with objects: those that join with what their windows hold, and those whose numbers fall behind.

Both look at the whole history once, O(history) each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Changes, Ints
from skyband.engines.invariants import FAR
from skyband.engines.topk.chunk import Chunk
from skyband.engines.topk.kernels.slot_reads import keep_skyband
from skyband.engines.topk.pool import Pool
from skyband.engines.topk.slot_columns import SlotColumns
from skyband.kernels.records import CHANGE, NEVER

if TYPE_CHECKING:
    from skyband.engines.topk.slots import Slots

Records = NDArray[Any]
SHIFTED = 64  # from the number of a pool to that of another whose slots have rejected one row more


def join_from_window(engine: Slots, columns: SlotColumns, serial: int, now: int) -> tuple[Ints, Changes]:
    """Let queries join that see what is in their windows already; returns their slots and what enters their answers."""
    donors = {length: donor_of(engine, length, now) for length in np.unique(columns.length).tolist()}
    if None in donors.values():
        raise ValueError("no history holds the whole window")
    slots = engine.join(columns, serial)
    places, held = engine.slots[slots], np.empty(0, CHANGE)
    for number in np.unique(places["pool"]).tolist():
        pool, mine = engine.pools[number], places["pool"] == number
        for length in np.unique(columns.length[mine]).tolist():
            here = places[mine & (columns.length == length)]
            if pool.left > now - length:  # it is new, so another has the history
                for place in here:
                    _take_over(engine, donors[length], pool.chunks[place["chunk"]], int(place["lane"]), now)
        held = np.concatenate([held, pool.look_back(places[mine], now)])
    return slots, engine.reported(held)


def _take_over(engine: Slots, donor: Pool | None, chunk: Chunk, s: int, now: int) -> None:
    """Give a lane what another pool's history has for it."""
    assert donor is not None
    kept = engine.in_history(donor, chunk, s, birth=0)
    kept = kept[kept["stamp"] > now - int(chunk.lanes["length"][s])]
    kept = kept[np.lexsort((-kept["serial"], -kept["stamp"], -kept["key"]))]
    kept = kept[: keep_skyband(kept, int(chunk.lanes["k"][s]))]
    chunk.lanes["newest"][s] = kept["stamp"].max(initial=-NEVER)
    chunk.put(s, kept)


def donor_of(engine: Slots, length: int, now: int) -> Pool | None:
    """A pool whose history holds the whole of a window of this length, the smallest such history."""
    able = [pool for pool in engine.pools.values() if not pool.shift and pool.left <= now - length]
    return min(able, key=lambda pool: pool.waiting, default=None)


def move_behind(engine: Slots, slot: int, serial: int) -> None:
    """Move a slot to a pool whose numbers are one smaller, since it does not count the row with this serial.

    It takes along whatever of the history may count for it, and sees only later arrivals of the other's.
    """
    place = engine.slots[slot]
    number = int(place["pool"])
    pool, s = engine.pools[number], int(place["lane"])
    chunk = pool.chunks[place["chunk"]]
    lane = chunk.lanes[s : s + 1].copy()
    run = chunk.objects[int(lane["head"][0]) : int(lane["head"][0] + lane["size"][0])]
    kept = np.concatenate([run, engine.in_history(pool, chunk, s)])
    kept = kept[np.unique(kept["serial"], return_index=True)[1]]  # of two the run's: it knows what was shown
    kept = kept[kept["stamp"] > max(pool.before, -FAR) - int(lane["length"][0])]
    kept = kept[np.lexsort((-kept["serial"], -kept["stamp"], -kept["key"]))]
    kept = kept[: keep_skyband(kept, int(lane["k"][0]))]
    _hold(engine, run[(run["was"] > 0) & ~np.isin(run["serial"], kept["serial"])], slot)
    columns = chunk.columns(np.array([s]))
    pool.leave(int(place["chunk"]), np.array([s]))
    if (other := number + SHIFTED) not in engine.pools:
        engine.pools[other] = engine.new_pool(pool.shift + 1)
    lane["depth"], lane["birth"], lane["fresh"] = -np.inf, serial + 1, 0
    moved = engine.pools[other].adopt(columns, lane, kept)
    engine.slots["pool"][slot], engine.slots["chunk"][slot], engine.slots["lane"][slot] = other, *moved
    if not pool.size:
        del engine.pools[number]


def _hold(engine: Slots, gone: Records, slot: int) -> None:
    """Within a batch of net changes, these have left an answer."""
    held = np.zeros(len(gone), CHANGE)
    for name in ("key", "stamp", "serial"):
        held[name] = gone[name]
    held["visit"], held["diff"] = slot, -1
    engine.held = np.concatenate([engine.held, held])
