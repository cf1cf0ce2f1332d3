"""The state of TALLY over Ever(), by group: aggregates of each object, since no row is kept.

Sums are stored as their words, with the scale of each group's; distinct values one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.arena import recast
from skyband.engines.contract import Ints
from skyband.engines.groups.kernels.state import ENTRIES, ENTRY, LIVE, OBJECTS, PICK, SUM, Records
from skyband.engines.invariants import FAR, are_counts, distinct, near, owners, require, within
from skyband.kernels.records import BITS
from skyband.kernels.sums import LOWEST, MOST_WORDS, rescale

if TYPE_CHECKING:
    from skyband.engines.groups.store import Store
    from skyband.engines.groups.tally import TALLY

STORED_OBJECT = np.dtype(
    [("stamp", "i8"), ("serial", "i8"), ("count", "i8"), ("values", "i8"), ("shown", "i8")], align=True
)
STORED_GROUP = np.dtype([("objects", "i8"), ("words", "i8"), ("values", "i8"), ("now", "i8")], align=True)
SCALE = np.dtype([("words", "i8"), ("lowest", "i8"), ("high", "i8")], align=True)  # of a sum, in a group
STORED_VALUE = np.dtype([("bits", "i8"), ("object", "i8"), ("which", "i8")], align=True)


STORED_NUMBER = np.dtype([("value", "f8"), ("level", "i8"), ("none", "i8")], align=True)  # with decay: no stamp


def _stored(store: Store) -> np.dtype[Any]:
    """What is stored of picked rows."""
    return STORED_NUMBER if "faded" in store.plan.names else PICK


def save(engine: TALLY, groups: Ints) -> dict[str, tuple[Any, Ints]]:
    """The state of these groups."""
    store = engine.longest.store
    places = np.full(max(len(store.groups), 1), -1)
    places[groups[groups < len(store.groups)]] = np.flatnonzero(groups < len(store.groups))
    slots = np.flatnonzero(store.there)
    where = places[store.slots["group"][slots]] if len(slots) else slots
    slots, where = slots[where >= 0], where[where >= 0]
    order = np.lexsort((store.slots["serial"][slots], where))
    slots, where = slots[order], where[order]
    counts = np.bincount(where, minlength=len(groups))
    objects = np.zeros(len(slots), STORED_OBJECT)
    for name in ("stamp", "serial", "count"):
        objects[name] = store.slots[name][slots]
    for q, ranking in enumerate(engine.rankings):
        objects["shown"] |= np.where(ranking.ranks["shown"][slots] > 0, int(BITS[q]), 0)
    sums = store.measures[store.measures["function"] == SUM]
    scales = np.zeros((len(groups), len(sums)), SCALE)
    scales["words"], scales["lowest"] = sums["end"] - sums["first"], sums["lowest"]
    scales["high"] = store.high[store.measures["function"] == SUM]
    values, sizes = _values(store, slots, where, len(groups))
    packs = np.zeros(len(groups), STORED_GROUP)
    packs["objects"], packs["words"], packs["values"] = counts, store.words.shape[1], sizes
    packs["now"] = engine.clock if engine.timed else 0
    ones = np.ones(len(groups), np.int64)
    return {
        "objects": (objects, counts),
        "picks": (np.ascontiguousarray(store.picks[slots]).reshape(-1).view(_stored(store)), store.picks_each * counts),
        "words": (np.ascontiguousarray(store.words[slots]).reshape(-1), store.words.shape[1] * counts),
        "values": (values, sizes),
        "scales": (scales.reshape(-1), len(sums) * ones),
        "packs": (packs, ones),
    }


def _values(store: Store, slots: Ints, where: Ints, groups: int) -> tuple[Records, Ints]:
    """The distinct values of these objects, by group; objects as their numbers there."""
    found = store.table[store.table["count"] > 0]
    numbers = np.full(len(store.slots), -1)
    numbers[slots] = np.arange(len(slots))
    of, which = np.divmod(found["owner"], max(store.distinct_each, 1))
    chosen = numbers[of] >= 0 if len(found) else np.zeros(0, np.bool_)
    found, of, which = found[chosen], numbers[of[chosen]], which[chosen]
    order = np.lexsort((found["bits"], which, of))
    values = np.zeros(len(order), STORED_VALUE)
    values["bits"], values["which"] = found["bits"][order], which[order]
    counts = np.bincount(where, minlength=groups)
    values["object"] = of[order] - (np.cumsum(counts) - counts)[where[of[order]]]
    return values, np.bincount(where[of], minlength=groups)


def load(engine: TALLY, state: Mapping[str, Any], *, trusted: bool) -> None:
    """The inverse of `save`, into an engine that knows nothing."""
    packs, objects = recast(state["packs"], STORED_GROUP), recast(state["objects"], STORED_OBJECT)
    store, values = engine.longest.store, recast(state["values"], STORED_VALUE)
    counts, sums = packs["objects"], int((store.measures["function"] == SUM).sum())
    require(are_counts(counts, len(objects)), "groups have their objects")
    require(are_counts(packs["values"], len(values)), "groups have their distinct values")
    scales = recast(state["scales"], SCALE)
    require(len(scales) == len(packs) * sums, "sums have scales")
    scales = scales.reshape(len(packs), sums)
    picks = recast(state["picks"], _stored(store)).view(PICK)
    require(len(picks) == len(objects) * store.picks_each, "objects have their picked rows")
    picks = picks.reshape(len(objects), store.picks_each)
    if not trusted:
        _check(store, objects, picks, values, scales, packs)
    require(len(state["words"]) == int((packs["words"] * counts).sum()), "objects have their sums")
    require((scales["words"].sum(axis=1) == packs["words"]).all(), "sums have their words")
    groups = owners(counts)
    engine.grow(len(objects), len(packs))
    used = slice(0, len(objects))
    for name in ("stamp", "serial", "count"):
        store.slots[name][used] = objects[name]
    store.slots["group"][used] = groups
    store.picks[used] = picks
    store.facts[LIVE] = store.facts[OBJECTS] = len(objects)
    store.groups["rows"] = counts
    store.volume = int(objects["count"].max(initial=0)) if trusted else int(objects["count"].sum())
    _load_sums(store, np.asarray(state["words"], np.int64), scales, packs, groups)
    _load_values(store, values, counts, packs["values"])
    if engine.timed:
        engine.clock = int(packs["now"].max(initial=engine.clock))
    for view in engine.views if engine.measures.order is None else ():  # else ids must be known first
        view.rank_all()
    for q, ranking in enumerate(engine.rankings):
        ranking.ranks["shown"][used] = (objects["shown"] & int(BITS[q])) != 0


def _load_sums(store: Store, words: Ints, scales: Records, packs: Records, groups: Ints) -> None:
    """Words of all groups in one scale."""
    if not scales.size:
        return
    which = np.flatnonzero(store.measures["function"] == SUM)
    lowest, wanted = store.measures["lowest"].copy(), np.zeros(len(store.measures), np.int64)
    lowest[which] = scales["lowest"].min(axis=0)
    top = (scales["lowest"] + 64 * scales["words"]).max(axis=0)
    wanted[which] = -(-(top - lowest[which]) // 64)
    store.high[which] = scales["high"].max(axis=0)
    store.lay_out_sums(wanted, lowest)
    ends = np.cumsum(packs["words"][groups])
    forms = np.unique(scales.view(np.int64).reshape(len(packs), -1), axis=0, return_inverse=True)[1].reshape(-1)
    for form in np.unique(forms):  # most often all groups have one
        example = scales[int(np.argmax(forms == form))]
        chosen = np.flatnonzero(forms[groups] == form)
        each = int(example["words"].sum())
        old = words[(ends[chosen] - each)[:, None] + np.arange(each)]
        new, first = np.zeros((len(chosen), store.words.shape[1]), np.int64), 0
        for m, scale in zip(which, example, strict=True):
            one = store.measures[m]
            shift = int(scale["lowest"] - one["lowest"])
            rescale(old, first, first + int(scale["words"]), new, one["first"], one["end"], shift)
            first += int(scale["words"])
        store.words[chosen] = new


def _load_values(store: Store, values: Records, counts: Ints, sizes: Ints) -> None:
    """Distinct values into the table, and their numbers to the objects."""
    if not store.distinct_each:
        return
    of = values["object"] + np.repeat(np.cumsum(counts) - counts, sizes)
    entries = np.zeros(len(values), ENTRY)
    entries["bits"], entries["owner"], entries["count"] = values["bits"], of * store.distinct_each + values["which"], 1
    store.table = entries
    store.facts[ENTRIES] = len(entries)
    store.reindex_values(np.arange(len(store.slots)), len(entries))
    np.add.at(store.distinct, (of, values["which"]), 1)


def _check(store: Store, objects: Records, picks: Records, values: Records, scales: Records, packs: Records) -> None:
    """What a stranger has stored, before kernels see it."""
    require(near(objects["stamp"]) and within(objects["serial"], 0, FAR - 1), "objects have stamps and serials")
    require(within(objects["count"], 1, 2**40), "objects have rows")
    require(within(objects["shown"], 0, 2**32 - 1), "what was shown is known by query")
    require(distinct(objects["serial"]), "every object has its own newest row")
    flat = picks.reshape(-1)
    require(
        within(flat["stamp"], -(2**53), 2**53) or (near(flat["stamp"]) and "faded" not in store.plan.names), "levels"
    )
    require(within(flat["serial"], 0, FAR - 1), "picked rows have stamps and serials")
    require(not np.isnan(flat["value"]).any(), "picked rows have numbers")
    require("faded" not in store.plan.names or within(flat["value"], -1, 1), "fading numbers are normal")
    lows = scales["lowest"].reshape(-1)
    require(within(lows, LOWEST, 1100) and within(scales["words"].reshape(-1), 1, MOST_WORDS + 1), "sums have scales")
    require(within(scales["high"].reshape(-1), LOWEST, 1100), "sums have bounds")
    require(within(values["which"], 0, store.distinct_each - 1), "distinct values belong to an aggregate")
    counts = np.repeat(packs["objects"], packs["values"])
    require(within(values["object"], 0, 2**40) and (values["object"] < counts).all(), "distinct values have an object")
    require(distinct(values["bits"], values["which"], values["object"], owners(packs["values"])), "values are distinct")
