"""Distinct values of objects: a table of (object, value) with counts, open addressing. O(1) for a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.groups.kernels.state import ENTRIES, Ints, Records, State
from skyband.kernels.compile import close, uncounted, uncounted_kernel


@close
def _home(bits: Any, owner: Any, mask: Any) -> Any:
    mixed = (np.uint64(bits) ^ (np.uint64(owner) * np.uint64(0xD6E8FEB86659FD93))) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(mask))


@uncounted
def _place(table: Records, bits: Any, owner: int) -> Any:
    """Where an entry is, or belongs."""
    mask = len(table) - 1
    place = _home(bits, owner, mask)
    while table[place]["count"] > 0 and (table[place]["bits"] != bits or table[place]["owner"] != owner):
        place = (place + 1) & mask
    return place


@uncounted
def add_value(state: State, m: int, s: int, value: float) -> None:
    """Count a value of an object once more."""
    which = state.measures[m]["first"]
    bits, owner = np.float64(value).view(np.int64), s * state.distinct.shape[1] + which
    place = _place(state.table, bits, owner)
    entry = state.table[place]
    if entry["count"] == 0:
        entry["bits"], entry["owner"] = bits, owner
        state.distinct[s, which] += 1
        state.facts[ENTRIES] += 1
    entry["count"] += 1


@uncounted
def leave_value(state: State, m: int, s: int, value: float) -> None:
    """Count a value of an object once less; entries behind one that goes move up."""
    table, which = state.table, state.measures[m]["first"]
    mask = len(table) - 1
    bits, owner = np.float64(value).view(np.int64), s * state.distinct.shape[1] + which
    place = _place(table, bits, owner)
    table[place]["count"] -= 1
    if table[place]["count"] > 0:
        return
    state.distinct[s, which] -= 1
    state.facts[ENTRIES] -= 1
    free, place = place, (place + 1) & mask
    while table[place]["count"] > 0:
        home = _home(table[place]["bits"], table[place]["owner"], mask)
        if ((place - home) & mask) >= ((place - free) & mask):
            table[free] = table[place]
            table[place]["count"] = 0
            free = place
        place = (place + 1) & mask


@uncounted_kernel
def reindex(old: Records, table: Records, owners: Ints, each: int) -> None:
    """Fill an empty table with the entries of another. owners: by slot, its new one; -1: it is gone. each: values."""
    for i in range(len(old)):
        if old[i]["count"] > 0:
            s = owners[old[i]["owner"] // each]
            if s >= 0:
                owner = s * each + old[i]["owner"] % each
                place = _place(table, old[i]["bits"], owner)
                table[place]["bits"], table[place]["owner"] = old[i]["bits"], owner
                table[place]["count"] = old[i]["count"]
