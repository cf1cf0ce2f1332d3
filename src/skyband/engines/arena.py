"""Runs of records in one array: read several at once, store them without their free places, place them again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Answer, Ints, Spec
from skyband.errors import StateError

Records = NDArray[Any]


def runs(objects: Records, groups: Records, chosen: Ints) -> Records:
    """The records of these groups, one run after another."""
    plain = objects.view(f"V{objects.itemsize}")  # NumPy gathers records field by field, and opaque bytes at once
    found: Records = plain[run_places(groups, chosen)].view(objects.dtype)
    return found


def run_places(groups: Records, chosen: Ints) -> Ints:
    """Where the records of these groups are, one run after another."""
    sizes = groups["size"][chosen]
    ends = np.cumsum(sizes)
    places: Ints = np.arange(sizes.sum()) + np.repeat(groups["head"][chosen] - (ends - sizes), sizes)
    return places


def best_of(groups: Ints, kept: list[tuple[Records, Ints]], asked: Spec, now: Ints) -> Answer:
    """The answers of these groups from several sets of records, each by group with its sizes; some may be in two."""
    codes = np.concatenate([np.repeat(groups, sizes) for _, sizes in kept])
    key, stamp, serial = (np.concatenate([records[name] for records, _ in kept]) for name in ("key", "stamp", "serial"))
    order = np.lexsort((-serial, -stamp, -key, codes))
    order = order[stamp[order] > now[codes[order]] - asked.length]
    twice = (np.diff(serial[order], prepend=-1) == 0) & (np.diff(codes[order], prepend=-1) == 0)
    order = order[~twice]
    starts = np.searchsorted(codes[order], codes[order])
    rank = np.arange(1, len(order) + 1) - starts
    order, rank = order[rank <= asked.k], rank[rank <= asked.k]
    return Answer(group=codes[order], rank=rank, stamp=stamp[order], serial=serial[order], key=key[order])


def unplaced(groups: Records) -> Records:
    """Groups as they are stored: runs without free places, which are given anew when they come back."""
    groups["start"] = groups["head"] = 0
    groups["room"] = groups["size"]
    return groups


def place(groups: Records) -> None:
    """Lay the runs one after another."""
    groups["start"] = groups["head"] = np.cumsum(groups["size"]) - groups["size"]


def recast(records: Records, dtype: np.dtype[Any]) -> Records:
    """Records in the dtype that kernels are compiled for; stored ones have lost their alignment."""
    if records.dtype is not dtype and (_fields(records.dtype) != _fields(dtype) or records.ndim != 1):
        raise StateError("the snapshot's skybands have fields that this version does not know. Take a new snapshot.")
    return records.view(dtype)


def _fields(dtype: np.dtype[Any]) -> Any:
    return np.lib.format.dtype_to_descr(dtype)
