"""Snapshots and invariants of REFILL: live objects, the best pairs, their floor and what has been reported."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.arena import recast
from skyband.engines.contract import Ints
from skyband.engines.invariants import are_counts, require
from skyband.engines.pairs.group import Records, ids_of
from skyband.engines.pairs.kernels.records import NEVER, PAIR
from skyband.engines.pairs.live import Live, best_first

if TYPE_CHECKING:
    from skyband.engines.pairs.refill import REFILL

OBJECT = np.dtype([("stamp", "i8"), ("serial", "i8"), ("eligible", "i8")])
HEAD = np.dtype(
    [
        *((name, "i8") for name in ("objects", "pairs", "shown", "whole")),  # whole: there is no floor
        *(("key", "f8"), ("older", "i8"), ("newer", "i8")),
    ]
)
SHOWN = np.dtype([("older", "i8"), ("newer", "i8")])
CHECKED = 40  # objects: all pairs of so many are scored to check a view


def stored(groups: list[Live], queries: int) -> dict[str, tuple[Records, Ints]]:
    """The state of these groups."""
    words = (queries + 63) // 64
    parts: dict[str, list[Records]] = {name: [] for name in ("heads", "objects", "data", "pairs", "shown", "bits")}
    for group in groups:
        assert group.saved is None, "no batch is open"
        size = group.size
        objects, head = np.zeros(size, OBJECT), np.zeros(1, HEAD)
        objects["stamp"], objects["serial"] = group.stamps[:size], group.serials[:size]
        objects["eligible"] = group.eligible[:size]
        reported = [(a, b, bits) for a, known in group.shown.items() for b, bits in known.items() if a < b]
        shown, bits = np.zeros(len(reported), SHOWN), np.zeros((len(reported), words), np.uint64)
        for i, (a, b, mask) in enumerate(reported):
            shown[i] = (a, b)
            bits[i] = [mask >> 64 * word & (1 << 64) - 1 for word in range(words)]
        floor = (0.0, 0, 0) if group.floor is None else group.floor
        head[0] = (size, len(group.pairs), len(reported), group.floor is None, *floor)
        data = np.ascontiguousarray(group.data[:, :size].T).reshape(-1)
        for name, array in zip(parts, (head, objects, data, group.pairs, shown, bits.reshape(-1)), strict=True):
            parts[name].append(array)
    empty: tuple[Any, ...] = (HEAD, OBJECT, np.float64, PAIR, SHOWN, np.uint64)
    return {
        name: (np.concatenate([np.empty(0, dtype), *arrays]), np.array([len(one) for one in arrays], np.int64))
        for (name, arrays), dtype in zip(parts.items(), empty, strict=True)
    }


def restore(state: Mapping[str, Records], width: int, queries: int, *, trusted: bool) -> list[Live]:
    words = (queries + 63) // 64
    heads, objects, pairs, shown = (
        recast(state[name], dtype)
        for name, dtype in (("heads", HEAD), ("objects", OBJECT), ("pairs", PAIR), ("shown", SHOWN))
    )
    parts = {"objects": objects, "pairs": pairs, "shown": shown}
    fits = all(are_counts(heads[name], len(array)) for name, array in parts.items())
    require(fits and len(state["data"]) == width * len(objects), "groups have their objects")
    require(len(state["bits"]) == words * len(shown), "groups have what they reported")
    data, bits = state["data"].reshape(len(objects), width), state["bits"].reshape(-1, words)
    groups, at = [], np.zeros(3, np.int64)
    for head in heads:
        (o, p, s), at = at, at + np.array([head["objects"], head["pairs"], head["shown"]])
        group, mine = Live(width), objects[o : at[0]]
        size = len(mine)
        room = max(16, 2 * size)
        group.size, group.stamps, group.serials = size, np.resize(mine["stamp"], room), np.resize(mine["serial"], room)
        group.eligible, group.data = np.resize(mine["eligible"] != 0, room), np.empty((width, room))
        group.data[:, :size] = data[o : at[0]].T
        group.pairs = pairs[p : at[1]].copy()
        group.floor = None if head["whole"] else (float(head["key"]), int(head["older"]), int(head["newer"]))
        for (older, newer), mask in zip(shown[s : at[2]].tolist(), bits[s : at[2]].tolist(), strict=True):
            group.show(older, newer, sum(one << 64 * word for word, one in enumerate(mask)))
        if not trusted:
            _check_stored(group)
        groups.append(group)
    return groups


def _check_stored(group: Live) -> None:
    serials, pairs = group.serials[: group.size], group.pairs
    require((np.diff(serials) > 0).all() and (serials >= 0).all(), "objects are in order of arrival")
    require((np.diff(group.stamps[: group.size]) > 0).all(), "objects are in order of arrival")
    require(not np.isnan(pairs["key"]).any(), "pairs have keys")
    require((pairs["older"] < pairs["newer"]).all(), "the newer member of a pair is newer")
    places = [np.searchsorted(serials, pairs[name]) for name in ("older", "newer")]
    known = all((at < group.size).all() for at in places)
    require(known, "members are live objects")
    for name, stamp, at in (("older", "old", places[0]), ("newer", "new", places[1])):
        right = (serials[at] == pairs[name]) & (group.stamps[at] == pairs[stamp]) & group.eligible[at]
        require(right.all(), "members are live objects")
    require((ids_of(best_first(pairs)) == ids_of(pairs)).all(), "pairs are best first")
    require(group.floor is None or group.floor[0] == group.floor[0], "the floor has a key")
    live = set(serials.tolist())
    require(live >= group.shown.keys(), "reported pairs are of live objects")
    require(not any(one in known for one, known in group.shown.items()), "a pair has two objects")


def check_live(engine: REFILL, group: Live, *, deep: bool) -> None:
    _check_stored(group)
    require(len(np.unique(ids_of(group.pairs))) == len(group.pairs), "a pair is there once")
    require(group.size < NEVER, "objects are counted")
    require(group.floor is None or len(group.pairs) >= engine.K or group.saved is not None, "a view has k pairs")
    if deep and group.size <= CHECKED:
        best = _every_pair(engine, group)
        whole = len(best) if group.floor is None else len(group.pairs)
        assert len(group.pairs) == whole, "a view has all pairs, or has a floor"
        assert (ids_of(group.pairs) == ids_of(best[:whole])).all(), "a view has the best pairs"
        assert (group.pairs["key"] == best["key"][:whole]).all(), "a key is what the scoring gives"


def _every_pair(engine: REFILL, group: Live) -> Records:
    """All pairs of a group, best first: what a view is the beginning of."""
    twin = deepcopy(group)
    twin.pairs, twin.floor = np.empty(0, group.pairs.dtype), (np.inf, 0, 0)
    most, engine.most = engine.most, max(1, group.size**2)
    try:
        engine._fill(twin)
    finally:
        engine.most = most
    return best_first(twin.pairs)
