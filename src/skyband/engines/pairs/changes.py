"""Changes as the contract has them, from records that kernels wrote: by query, then by step across groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Ints
from skyband.engines.invariants import require
from skyband.engines.pairs.group import Group, Records, ids_of
from skyband.engines.pairs.kernels.records import CHANGE, PAIR, SIZE
from skyband.kernels.routing import stable_order

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs


def in_order(engine: Pairs, pieces: list[Records], groups: list[int], arrivals: Arrivals, alive: Bools) -> Changes:
    """Join the changes of these groups, each in order of steps."""
    if len(pieces) == 1 and not engine.timed:  # one group's steps are in order
        (out,) = pieces
        query = engine.order[out["query"]]
        order = stable_order(query, len(engine.specs)) if len(engine.specs) > 1 else np.arange(len(out))
        return changes_of(_rows(out, order), query[order], np.full(len(out), groups[0]), alive)
    out = np.concatenate([np.empty(0, CHANGE), *pieces])
    codes = np.repeat(np.array(groups, np.int64), [len(piece) for piece in pieces])
    place = np.maximum(2 * out["row"] + 1, 0)
    order = np.arange(len(out))
    if engine.timed:
        clocks = np.empty(0, np.int64) if arrivals.clocks is None else arrivals.clocks
        early = 2 * np.searchsorted(clocks, out["instant"], "left")
        place = np.zeros(len(out), np.int64) if engine.net else np.where(out["alone"] == 1, early, place)
        order = np.argsort(out["instant"], kind="stable")
    order = order[np.argsort(place[order], kind="stable")]
    query = engine.order[out["query"]]
    order = order[np.argsort(query[order], kind="stable")]
    return changes_of(_rows(out, order), query[order], codes[order], alive)


def difference(engine: Pairs, group: Group, was: Records, query: int, view: int, g: int, now: int) -> Records:
    """Changes of one query from the answer it has reported to the present one; `instant` is the group."""
    best = engine._read(group, engine.specs[query], now)
    one, other = ids_of(was), ids_of(best)
    leaving, entering = was[~np.isin(one, other)], best[~np.isin(other, one)]
    slots = group.band.slot[: group.facts[SIZE]][np.isin(ids_of(group.pairs), ids_of(entering))]
    require(len(slots) == len(entering), "a pair is kept once")  # a stranger's keys need not be what the scoring gives
    out = np.zeros(len(leaving) + len(entering), CHANGE)
    for name in ("key", "old", "older", "new", "newer"):
        out[name] = np.concatenate([leaving[name], entering[name]])
    out["instant"], out["query"], out["row"] = g, query, -1
    out["diff"] = np.repeat([-1, 1], [len(leaving), len(entering)])
    word, bit = view >> 6, np.uint64(1) << np.uint64(view & 63)
    out["first"][len(leaving) :] = (group.band.bits[slots, word] & bit) == 0
    group.band.bits[slots, word] |= bit
    return out


def answer_of(groups: Ints, found: list[Records]) -> Answer:
    """The pairs of each group, best first, as the contract has them."""
    sizes = np.array([len(best) for best in found], np.int64)
    ranked = np.concatenate([np.empty(0, PAIR), *found])
    ends = np.cumsum(sizes)
    return Answer(
        group=np.repeat(groups, sizes),
        rank=np.arange(1, len(ranked) + 1) - np.repeat(ends - sizes, sizes),
        stamp=ranked["new"],
        serial=ranked["newer"],
        key=ranked["key"],
        older=ranked["older"],
        older_stamp=ranked["old"],
    )


def _rows(out: Records, order: Ints) -> Records:
    """Take records in this order as bytes: field by field NumPy needs ten times as long."""
    return out.view(f"V{out.itemsize}")[order].view(out.dtype)


def changes_of(out: Records, queries: Ints, groups: Ints, alive: Bools) -> Changes:
    return Changes(
        query=queries,
        group=groups,
        row=out["row"],
        instant=out["instant"],
        stamp=out["new"],
        serial=out["newer"],
        key=out["key"],
        diff=out["diff"],
        first=out["first"].astype(np.bool_),
        alive=alive,
        older=out["older"],
        older_stamp=out["old"],
    )
