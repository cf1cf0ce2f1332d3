"""Snapshots of engines of pairs: arrays of objects and pairs, group after group, and the state of each query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.arena import recast
from skyband.engines.contract import Ints
from skyband.engines.group_states import GroupStates
from skyband.engines.invariants import are_counts, require
from skyband.engines.pairs.group import Group, Records
from skyband.engines.pairs.invariants import check_stored
from skyband.engines.pairs.kernels.records import BASE, BLOCKS, END, NEVER, PAIR, SIZE, TA
from skyband.engines.pairs.kernels.steps import prune_pairs
from skyband.engines.pairs.programs import note_nulls

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs

OBJECT = np.dtype([("stamp", "i8"), ("serial", "i8")])
VIEW = np.dtype([("kth", "f8"), ("due", "i8")])


def stored(engine: Pairs, groups: Ints) -> dict[str, tuple[Records, Ints]]:
    """The state of these groups; pairs that are dominated or expired are dropped first."""
    chosen = engine.groups.read(groups)
    assert not any(group.open for group in chosen), "no batch is open"
    parts: dict[str, list[Records]] = {name: [] for name in ("sizes", "objects", "data", "pairs", "shown", "views")}
    for group in chosen:
        engine._flush(group)
        if engine.timed:
            engine.let_go(group, engine.clock)
        live = group.live
        oldest = int(group.window.stamps[live.start]) if live.start < live.stop else NEVER
        prune_pairs(group.facts, group.band, engine.rules.K, oldest - 1, engine.algorithm)
        objects, views = np.zeros(live.stop - live.start, OBJECT), np.zeros(len(engine.k), VIEW)
        objects["stamp"], objects["serial"] = group.window.stamps[live], group.window.serials[live]
        views["kth"], views["due"] = group.views.kth, group.views.due
        pairs, slots = group.pairs, group.band.slot[: group.facts[SIZE]]
        pairs["place"] -= group.facts[BASE] + live.start
        sizes = np.array([len(objects), len(pairs)], np.int64)
        data, shown = group.window.data[:, live].T.reshape(-1), group.band.bits[slots].reshape(-1)
        for name, array in zip(parts, (sizes, objects, data, pairs, shown, views), strict=True):
            parts[name].append(array)
    empty: tuple[Any, ...] = (np.int64, OBJECT, np.float64, PAIR, np.uint64, VIEW)
    return {
        name: (np.concatenate([np.empty(0, dtype), *arrays]), np.array([len(one) for one in arrays], np.int64))
        for (name, arrays), dtype in zip(parts.items(), empty, strict=True)
    }


def restore(engine: Pairs, state: Mapping[str, Records], *, trusted: bool) -> None:
    objects, pairs, views = (
        recast(state[name], dtype) for name, dtype in (("objects", OBJECT), ("pairs", PAIR), ("views", VIEW))
    )
    width, words, queries = engine.width, (len(engine.k) + 63) // 64, len(engine.k)
    require(len(state["sizes"]) % 2 == 0, "groups have objects and pairs")
    sizes = state["sizes"].reshape(-1, 2)
    fits = are_counts(sizes[:, 0], len(objects)) and are_counts(sizes[:, 1], len(pairs))
    require(fits and len(state["data"]) == width * len(objects), "groups have their objects")
    require(
        len(state["shown"]) == words * len(pairs) and len(views) == queries * len(sizes), "groups have their answers"
    )
    if not trusted:
        check_stored(engine, objects, pairs, sizes)
    engine.groups, ends = GroupStates(engine.empty_group), np.cumsum(sizes, axis=0)
    engine.groups.grow(len(sizes))
    for g, (n, p) in enumerate(sizes.tolist()):
        group = engine.groups[g]
        here, there = slice(ends[g, 0] - n, ends[g, 0]), slice(ends[g, 1] - p, ends[g, 1])
        data = state["data"].reshape(-1, width)[here] if width else np.empty((n, 0))
        group.fill(objects["stamp"][here], objects["serial"][here], data.T, engine.scoring.limit)
        group.fill_band(pairs[there], state["shown"].reshape(-1, words)[there])
        mine = views[g * queries : (g + 1) * queries]
        group.views.kth[:], group.views.due[:] = mine["kth"], mine["due"]
        prune_pairs(group.facts, group.band, engine.rules.K, -NEVER, engine.algorithm)
        if engine.algorithm == TA and n:
            _build_blocks(engine, group)
        engine.note(g, group)
    note_nulls(
        (engine.scoring.program, engine.on), state["data"].reshape(-1, width).T.copy() if width else np.empty((0, 0))
    )


def _build_blocks(engine: Pairs, group: Group) -> None:
    """Divide the objects of the window into blocks."""
    size = int(group.facts[END])
    group.facts[END] = 0
    while group.facts[END] < size:
        group.open_block(engine.scoring.limit)
        group.facts[END] = min(size, group.facts[END] + engine.rules.block_size)
        group.blocks.end[int(group.facts[BLOCKS]) - 1] = group.facts[BASE] + group.facts[END]
