"""Slots as arrays of a snapshot, those of version 0.1 (a family of BLOCK) too; and the invariants of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import recast, runs
from skyband.engines.invariants import FAR, are_counts, by_run, near, owners, require, rising, within
from skyband.engines.topk.chunk import Chunk, set_goals
from skyband.engines.topk.kernels.lane_state import LANE, STALE
from skyband.engines.topk.pool import Pool
from skyband.engines.topk.slot_columns import SlotColumns
from skyband.kernels.records import CAP, GROUP, NEVER, OBJECT, VIEW

if TYPE_CHECKING:
    from skyband.engines.topk.slots import Slots

Records = NDArray[Any]
POOL = np.dtype(
    [("number", "i8"), ("shift", "i8"), ("left", "i8"), ("before", "i8"), ("arrived", "i8"), ("waiting", "i8")]
)
COLUMNS = ("points", "weights", "lows", "highs")

#: The arrays of a family of version 0.1.
FIRST_VERSION: dict[str, Records] = {
    "objects": np.empty(0, OBJECT),
    "groups": np.empty(0, GROUP),
    "views": np.empty(0, VIEW),
    "caps": np.empty(0, CAP),
    "begun": np.empty(0, np.int64),
    "ring": np.empty(0),
    "stamps": np.empty(0, np.int64),
    "serials": np.empty(0, np.int64),
}


def store(engine: Slots, *, empty: bool = False) -> dict[str, Records]:
    """All slots, in order; the layout alone if empty."""
    pools = [] if empty else list(engine.pools.items())
    chunks = [
        (i, chunk, np.flatnonzero(chunk.in_use["k"])) for i, (_, pool) in enumerate(pools) for chunk in pool.chunks
    ]
    lanes = np.concatenate([np.empty(0, LANE), *(chunk.lanes[some] for _, chunk, some in chunks)])
    objects = np.concatenate(
        [np.empty(0, OBJECT), *(runs(chunk.objects, chunk.lanes, some) for _, chunk, some in chunks)]
    )
    pool_of = np.repeat([i for i, _, _ in chunks], [len(some) for _, _, some in chunks]).astype(np.int64)
    lanes["head"], lanes["start"], lanes["room"] = np.cumsum(lanes["size"]) - lanes["size"], 0, lanes["size"]
    lanes["seen"], lanes["counts"] = 0, STALE
    order = np.argsort(lanes["slot"])
    objects, lanes = runs(objects, lanes, order), lanes[order]
    lanes["head"] = 0
    known = np.zeros(len(pools), POOL)
    for i, (number, pool) in enumerate(pools):
        known[i] = number, pool.shift, pool.left, pool.before, pool.arrived, pool.waiting
    none = np.empty(0, np.int64)
    arrays = {
        "facts": none if empty else np.array([engine.count, engine.before]),
        "lanes": lanes,
        "objects": objects,
        "pools": known,
        "pool": pool_of[order],
        "history": np.concatenate([np.empty(0), *(pool.data[:, pool.here].reshape(-1) for _, pool in pools)]),
        "stamps": np.concatenate([none, *(pool.stamps[pool.here] for _, pool in pools)]),
        "serials": np.concatenate([none, *(pool.serials[pool.here] for _, pool in pools)]),
    }
    arrays |= engine.more_arrays([pool for _, pool in pools])
    for name in COLUMNS:
        columns = [getattr(chunk, name)[some] for _, chunk, some in chunks]
        arrays[name] = np.concatenate(columns)[order].reshape(-1) if columns else np.empty(0)
    return arrays


def load(engine: Slots, state: Mapping[str, Records]) -> None:
    """The inverse of `store`."""
    shape, lanes, pools = engine.shape, recast(state["lanes"], LANE).copy(), recast(state["pools"], POOL)
    objects, size = recast(state["objects"], OBJECT).copy(), len(lanes)
    boxes = shape.attributes if shape.boxed else 0
    widths = (shape.d, shape.d if shape.weighted else 0, boxes, boxes)
    require(all(len(state[name]) == size * w for name, w in zip(COLUMNS, widths, strict=True)), "slots have columns")
    points, weights, lows, highs = (state[name].reshape(size, w) for name, w in zip(COLUMNS, widths, strict=True))
    columns = SlotColumns(points, weights, lanes["k"], lanes["length"], lows, highs)
    count, before = (int(one) for one in state["facts"])
    slots, waiting = lanes["slot"].astype(np.int64), pools["waiting"]
    require(are_counts(lanes["size"], len(objects)) and (lanes["size"] == lanes["room"]).all(), "runs have objects")
    require(within(slots, 0, count - 1) and (np.diff(slots) > 0).all(), "a slot is there once")
    require(count <= 4 * size + (1 << 20), "there are not many more slots than queries")
    require(len(state["pool"]) == size and within(state["pool"], 0, len(pools) - 1), "slots have pools")
    require(are_counts(waiting, len(state["stamps"])), "histories have arrivals")
    require(len(state["serials"]) == len(state["stamps"]), "arrivals have serials")
    require(len(state["history"]) == shape.attributes * len(state["stamps"]), "arrivals have attributes")
    require(len(np.unique(pools["number"])) == len(pools), "a pool is there once")
    engine.pools, engine.count, engine.before = {}, count, before
    engine.slots = np.zeros(count, engine.slots.dtype)
    engine.slots["pool"] = -1
    engine.free = np.setdiff1d(np.arange(count), slots).tolist()
    ends, run_ends = np.cumsum(waiting), np.cumsum(lanes["size"])
    for i, known in enumerate(pools):
        pool = engine.empty_pool()
        pool.shift, pool.left, pool.before = int(known["shift"]), int(known["left"]), int(known["before"])
        pool.arrived, number = int(known["arrived"]), int(known["number"])
        here = slice(int(ends[i] - waiting[i]), int(ends[i]))
        mine = np.flatnonzero(state["pool"] == i)
        for low in range(0, len(mine), pool.new_chunk().most):
            chunk = pool.new_chunk()
            some = mine[low : low + chunk.most]
            chunk_lanes = lanes[some]
            sizes = chunk_lanes["size"]
            chunk_lanes["start"] = chunk_lanes["head"] = np.cumsum(sizes) - sizes
            chunk.join(columns.take(some), chunk_lanes)
            places = np.repeat(run_ends[some] - sizes - chunk_lanes["start"], sizes) + np.arange(int(sizes.sum()))
            chunk.objects, chunk.tally[0] = objects[places], int(sizes.sum())
            engine.slots["pool"][slots[some]], engine.slots["chunk"][slots[some]] = number, len(pool.chunks)
            engine.slots["lane"][slots[some]] = np.arange(len(some))
            if chunk.room:
                pool.roomy[len(pool.chunks)] = None
            pool.chunks.append(chunk)
        pool.measure_again()
        data = state["history"][shape.attributes * here.start : shape.attributes * here.stop]
        stamps, serials = state["stamps"][here], state["serials"][here]
        pool.set_history(data.reshape(shape.attributes, len(stamps)), stamps, serials, engine.vectors_of(state, here))
        engine.pools[number] = pool


def of_first_version(engine: Slots, state: Mapping[str, Records]) -> dict[str, Records]:
    """The arrays of a family of version 0.1 as those of slots: its queries are in the slots 0, 1, ..."""
    fresh = store(engine)
    groups, caps = recast(state["groups"], GROUP), recast(state["caps"], CAP)
    lanes, begun, size = fresh["lanes"], state["begun"], len(state["stamps"])
    require(len(groups) == len(caps) == len(lanes), "every query has a lane")
    require(len(begun) == 2 and len(fresh["pools"]) == 1, "the queries have one window")
    lanes["size"] = lanes["room"] = groups["size"]
    lanes["depth"], lanes["newest"], lanes["due"], lanes["fresh"] = (
        caps["threshold"],
        groups["newest"],
        groups["due"],
        0,
    )
    left = int(state["stamps"][0]) - (not engine.timed) if size else int(begun[0])
    fresh["pools"]["left"], fresh["pools"]["before"], fresh["pools"]["arrived"] = left, begun[0], begun[1]
    fresh["pools"]["waiting"], fresh["facts"][1] = size, begun[0]
    return fresh | {
        "objects": state["objects"],
        "history": state["ring"],
        "stamps": state["stamps"],
        "serials": state["serials"],
    }


def check_pool(pool: Pool, now: int | None, *, deep: bool) -> None:
    """Everything that kernels rely on; deep: every other invariant too."""
    here = pool.here
    stamps, serials = pool.stamps[here], pool.serials[here]
    require(near(stamps) and within(serials, 0, NEVER - 1), "arrivals have stamps and serials")
    require((np.diff(serials) > 0).all(), "the history is in order of arrival")
    require(pool.left == -NEVER or abs(pool.left) < FAR, "what has left is known by a stamp")
    require(pool.before == -NEVER or abs(pool.before) < FAR, "the pool's clock is a number")
    require(now is None or pool.before <= now, "the pool's clock has not passed")
    require(0 <= pool.arrived < FAR and 0 <= pool.shift < FAR, "arrivals are counted")
    require(now is None or not len(stamps) or int(stamps.max()) <= now, "no arrival is in the future")
    for chunk in pool.chunks:
        lanes = chunk.in_use[chunk.in_use["k"] > 0]
        _check_lanes(lanes, chunk, now)
        if deep:
            _check_deep(pool, chunk, lanes)


def _check_lanes(lanes: Records, chunk: Chunk, now: int | None) -> None:
    start, room, head, sizes = (lanes[name].astype(np.int64) for name in ("start", "room", "head", "size"))
    require((start <= head).all() and (sizes >= 0).all(), "a run lies in its place")
    require(
        (head + sizes <= start + room).all() and (start + room <= len(chunk.objects)).all(), "a place is in the arena"
    )
    order = np.argsort(start[room > 0])
    require(((start + room)[room > 0][order][:-1] <= start[room > 0][order][1:]).all(), "places do not overlap")
    run = runs(chunk.objects, lanes, np.arange(len(lanes)))
    owner = owners(sizes)
    place, k = np.arange(len(run)) - np.repeat(np.cumsum(sizes) - sizes, sizes), lanes["k"][owner]
    require(within(lanes["k"], 1, FAR) and within(lanes["length"], 1, FAR), "k and windows are counts")
    goals = lanes.copy()
    set_goals(goals)
    require((goals["want"] == lanes["want"]).all() and (goals["enough"] == lanes["enough"]).all(), "goals go by k")
    require(near(run["stamp"]) and within(run["serial"], 0, NEVER - 1), "objects have stamps and serials")
    require(not np.isnan(run["key"]).any() and not np.isnan(lanes["depth"]).any(), "objects and depths have keys")
    require(rising(sizes, -run["key"], -run["stamp"], -run["serial"]), "a run is best first, the newer above")
    require(((run["dom"] >= 0) & (run["dom"] < k)).all(), "no object has k dominators")
    require(not run["was"].any() and not lanes["open"].any(), "no batch is open")
    require((run["inside"] == (place < k)).all(), "the members are the k best")
    require((run["shown"] <= 1).all() and not (run["inside"] & ~run["shown"]).any(), "a member has been shown")
    require((lanes["newest"] >= by_run(np.maximum, run["stamp"], sizes, -NEVER)).all(), "no object is newer")
    oldest = by_run(np.minimum, np.where(place < k, run["stamp"], NEVER), sizes, NEVER)
    due = np.where(oldest < NEVER, np.minimum(oldest, FAR) + lanes["length"], NEVER)
    require((lanes["due"] == due).all(), "the oldest member is due")
    if now is not None:
        require(
            (run["stamp"] > now - lanes["length"][owner]).all() and (run["stamp"] <= now).all(), "objects are valid"
        )
    require(within(lanes["fresh"], 0, 1) and within(chunk.lanes["slot"], 0, FAR), "lanes know their slots")


def _check_deep(pool: Pool, chunk: Chunk, lanes: Records) -> None:
    here = pool.here
    for s in np.flatnonzero(chunk.in_use["k"]).tolist():
        lane = chunk.lanes[s]
        run = chunk.objects[lane["head"] : lane["head"] + lane["size"]]
        for i, one in enumerate(run):
            assert one["dom"] == (run["stamp"][:i] >= one["stamp"]).sum(), "the counter counts the dominators"
        keys, inside = pool.keys(chunk, s, here)
        end = max(pool.before - int(lane["length"]), -NEVER)  # nothing has arrived: before everything
        valid = inside & (pool.serials[here] >= lane["birth"]) & (pool.stamps[here] > end)
        for i in np.flatnonzero(valid & (keys >= lane["depth"])).tolist():
            serial, stamp = pool.serials[here][i], pool.stamps[here][i]
            if serial not in run["serial"]:
                above = (run["key"] > keys[i]) | (
                    (run["key"] == keys[i])
                    & ((run["stamp"] > stamp) | ((run["stamp"] == stamp) & (run["serial"] > serial)))
                )
                newer = (above & (run["stamp"] >= stamp)).sum()
                assert newer >= lane["k"], "down to its depth a run has all that is not dominated"
