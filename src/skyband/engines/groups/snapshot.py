"""The state of TALLY as arrays by group: the rows in order of age, and what has been shown of each object.

Everything else follows from the rows. Over Ever() there are none: then the aggregates themselves are stored, exact sums
as numbers whose sum they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.arena import recast
from skyband.engines.contract import Ints
from skyband.engines.groups.kernels.bound import mark_chains
from skyband.engines.groups.kernels.state import CHAIN, ENDLESS, NEWEST, TIMED, USED, Records
from skyband.engines.groups.kernels.state import SESSION as SESSIONS
from skyband.engines.invariants import FAR, are_counts, require
from skyband.kernels.records import BITS, NEVER
from skyband.kernels.sessions import no_sessions

if TYPE_CHECKING:
    from skyband.engines.groups.store import Store
    from skyband.engines.groups.tally import TALLY

BEGINNING = -(2**62)  # before all stamps
STORED_ROW = np.dtype([("stamp", "i8"), ("serial", "i8"), ("object", "i8")], align=True)  # object: within the group
STORED_OBJECT = np.dtype([("shown", "u4"), ("views", "u4")], align=True)
STORED_GROUP = np.dtype([("rows", "i8"), ("objects", "i8"), ("now", "i8")], align=True)


def rows_by_age(store: Store) -> tuple[Ints, Ints, Ints]:
    """The live rows, the oldest first; their slots (-1: they have no object) and groups."""
    rows = np.flatnonzero(store.rows["slot"][: store.facts[USED]] != -1)
    rows = rows[np.lexsort((store.rows["serial"][rows], store.rows["stamp"][rows]))]
    slots = store.rows["slot"][rows].astype(np.int64)
    groups = np.where(slots >= 0, store.slots["group"][np.maximum(slots, 0)] if len(store.slots) else 0, -2 - slots)
    return rows, np.maximum(slots, -1), groups.astype(np.int64)


def last_stamps(store: Store) -> Ints:
    """By group the stamp of its newest row."""
    rows, _, groups = rows_by_age(store)
    last = np.full(len(store.groups), BEGINNING)
    np.maximum.at(last, groups, store.rows["stamp"][rows])
    return last


def due(engine: TALLY) -> Ints:
    """By group: time takes nothing before this instant."""
    found = np.full(engine.groups, NEVER)
    if engine.mode == SESSIONS:
        last = last_stamps(engine.longest.store)
        found[last > BEGINNING] = last[last > BEGINNING] + engine.gap
    for view in engine.views if engine.mode == TIMED else ():
        rows, _, groups = rows_by_age(view.store)
        np.minimum.at(found, groups, view.store.rows["stamp"][rows] + view.length)
    return found


def serials(store: Store, groups: Ints) -> tuple[Ints, Ints]:
    """The rows whose columns are kept, group by group, and how many of each group."""
    if store.window.keeps == NEWEST or store.mode == ENDLESS:
        slots = np.flatnonzero(store.there)
        found, owners = store.read(slots).decider, store.slots["group"][slots].astype(np.int64)
    elif store.window.keeps == CHAIN:
        rows, _, owners = rows_by_age(store)
        inside = in_chain(store, int(store.plan.decides or 0), rows)
        found, owners = store.rows["serial"][rows[inside[rows]]], owners[inside[rows]]
    else:
        rows, _, owners = rows_by_age(store)
        found = store.rows["serial"][rows]
    places = np.full(max(len(store.groups), 1), -1)
    places[groups[groups < len(store.groups)]] = np.flatnonzero(groups < len(store.groups))
    chosen = places[owners] >= 0
    found, owners = found[chosen], places[owners[chosen]]
    order = np.lexsort((found, owners))  # slots are others after a restore
    return found[order], np.bincount(owners, minlength=len(groups))


def objects(store: Store) -> tuple[Ints, Ints, Ints]:
    """The objects that are there: slots, groups, and a row of each whose columns are kept."""
    slots = np.flatnonzero(store.there)
    of, deciders = store.slots[slots], store.read(slots).decider
    return slots, of["group"].astype(np.int64), np.where(of["cold"] != 0, of["serial"], deciders)


def in_chain(store: Store, m: int, rows: Ints) -> Any:
    """By row: is it in the chain of the largest of this aggregate, or would it be without a bound? rows: by age."""
    inside, largest = np.zeros(len(store.rows), np.bool_), np.full(len(store.slots), np.nan)
    column = int(store.measures["column"][m])
    mark_chains(store.rows, store.values, column, np.ascontiguousarray(rows[::-1]), largest, inside)
    return inside


def save(engine: TALLY, groups: Ints) -> dict[str, tuple[Any, Ints]]:
    """The state of these groups: flat arrays in their order, each with its number of entries per group."""
    store = engine.longest.store
    assert not store.open, "no batch is open"
    if engine.mode == ENDLESS:
        from skyband.engines.groups.endless import save as save_endless

        return save_endless(engine, groups)
    places = np.full(max(len(store.groups), 1), -1)
    places[groups[groups < len(store.groups)]] = np.flatnonzero(groups < len(store.groups))
    rows, slots, owners = rows_by_age(store)
    chosen = places[owners] >= 0 if len(rows) else np.zeros(0, np.bool_)
    rows, slots, owners = rows[chosen], slots[chosen], places[owners[chosen]]
    order = np.argsort(owners, kind="stable")
    rows, slots, owners = rows[order], slots[order], owners[order]
    sizes = np.bincount(owners, minlength=len(groups))
    objects, numbers = _numbered(slots, owners)
    counts = np.bincount(places[store.slots["group"][objects]], minlength=len(groups)) if len(objects) else sizes * 0
    stored = np.zeros(len(rows), STORED_ROW)
    stored["stamp"], stored["serial"] = store.rows["stamp"][rows], store.rows["serial"][rows]
    stored["object"] = numbers - np.where(numbers >= 0, (np.cumsum(counts) - counts)[owners], 0)
    kept = np.zeros(len(objects), STORED_OBJECT)
    for q, ranking in enumerate(engine.rankings):
        kept["shown"] |= np.where(ranking.ranks["shown"][objects] > 0, BITS[q], 0).astype(np.uint32)
    packs = np.zeros(len(groups), STORED_GROUP)
    packs["rows"], packs["objects"] = sizes, counts
    now = np.append(store.groups["now"], 0)[np.minimum(groups, len(store.groups))]
    packs["now"] = engine.clock if engine.timed else now
    more = {"ended": (_ended(engine, groups), np.ones(len(groups), np.int64))} if engine.gap else {}
    return more | {
        "rows": (stored, sizes),
        "values": (np.ascontiguousarray(store.values[rows]).reshape(-1), store.values.shape[1] * sizes),
        "objects": (kept, counts),
        "packs": (packs, np.ones(len(groups), np.int64)),
    }


def _ended(engine: TALLY, groups: Ints) -> Ints:
    """When the last session of these groups that is over by now ended; the open ones follow from the rows."""
    kept = np.append(engine.sessions, no_sessions(1))[np.minimum(groups, len(engine.sessions))]
    over = (kept["last"] < NEVER) & (kept["last"] <= engine.clock - engine.gap)
    ended: Ints = np.where(over, kept["last"] + engine.gap, kept["ended"])
    return ended


def _restored(engine: TALLY, ended: Ints, stamps: Ints, owners: Ints) -> Records:
    """Sessions from the stamps of all rows, and the groups of these."""
    require(((np.abs(ended) < FAR) | (ended == -NEVER)).all(), "sessions have ended at a time")
    sessions = no_sessions(engine.groups)
    require(len(ended) == len(sessions), "every group has its sessions")
    sessions["ended"], last = ended, np.full(len(sessions), -NEVER)
    np.minimum.at(sessions["begin"], owners, stamps)
    np.maximum.at(last, owners, stamps)
    sessions["last"] = np.where(last > -NEVER, last, NEVER)
    return sessions


def _numbered(slots: Ints, owners: Ints) -> tuple[Ints, Ints]:
    """Objects by group, in the order of their first rows; and by row its object's number among all, or -1."""
    known = slots >= 0
    distinct, first, inverse = np.unique(slots[known], return_index=True, return_inverse=True)
    order = np.argsort(first)  # rows are by group
    ranks = np.empty(len(distinct), np.int64)
    ranks[order] = np.arange(len(distinct))
    numbers = np.full(len(slots), -1)
    numbers[known] = ranks[inverse.reshape(-1)]
    return distinct[order], numbers


def load(engine: TALLY, state: Mapping[str, Records], *, trusted: bool) -> None:
    """The inverse of `save`, into an engine that knows nothing."""
    if engine.mode == ENDLESS:
        from skyband.engines.groups.endless import load as load_endless

        load_endless(engine, state, trusted=trusted)
        return
    rows, packs = recast(state["rows"], STORED_ROW), recast(state["packs"], STORED_GROUP)
    kept, columns = recast(state["objects"], STORED_OBJECT), engine.measures.columns
    sizes, counts = packs["rows"], packs["objects"]
    values = np.array(state["values"]).reshape(len(rows), columns) if columns else np.zeros((len(rows), 0))
    require(are_counts(sizes, len(rows)) and are_counts(counts, len(kept)), "groups have their rows and objects")
    if not trusted:
        from skyband.engines.groups.invariants import check_stored

        check_stored(engine, rows, values, sizes, counts)
    owners = np.repeat(np.arange(len(packs)), sizes)
    slots = np.where(rows["object"] >= 0, rows["object"] + (np.cumsum(counts) - counts)[owners], -1)
    engine.grow(len(kept), len(packs))
    if engine.gap:
        engine.sessions = _restored(engine, np.asarray(state["ended"], np.int64), rows["stamp"], owners)
    order = np.lexsort((rows["serial"], rows["stamp"]))
    now = packs["now"]
    if engine.timed:
        engine.clock = int(now.max(initial=engine.clock))
    for view in engine.views:
        valid = order
        if view.length < engine.longest.length:
            valid = order[rows["stamp"][order] > now[owners[order]] - view.length]
        view.refill(
            owners[valid],
            slots[valid],
            rows["stamp"][valid].copy(),
            rows["serial"][valid].copy(),
            np.ascontiguousarray(values[valid]),
        )
        view.store.groups["now"] = packs["now"]
        if engine.measures.order is None:  # else they are ranked again, once ids are known
            view.rank_all()
    for q, ranking in enumerate(engine.rankings):
        view = engine.view_of(engine.specs[q].length)
        shown = (kept["shown"] & BITS[q]) != 0
        ranking.ranks["shown"][: len(kept)] = shown & view.store.there[: len(kept)]
