"""What engines of uncertain streams have in common: arrivals by group, and changes in the order of the contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import NEVER, Arrivals, Bools, Changes, Floats, Ints
from skyband.engines.uncertain.kernels.marks import columns_of
from skyband.kernels.records import VISIT
from skyband.kernels.routing import find_rows, reorder, stable_order

Records = NDArray[Any]


@dataclass(frozen=True)
class Taken:
    """The arrivals of a batch, group by group."""

    keys: Floats
    probabilities: Floats
    stamps: Ints
    now: Ints
    rows: Ints
    names: Ints
    named: Bools
    eligible: Bools  # empty: all are
    visits: Records  # each group's slice
    all_now: Ints  # of all arrivals, those among them that are no answers
    all_rows: Ints
    all_visits: Records


def taken(arrivals: Arrivals, due: Ints, is_open: Bools, *, timed: bool, net: bool, whole: bool = False) -> Taken:
    """The groups with arrivals, and those from which time takes something; in the order of their codes.

    Those who cannot be answers are left out, unless the whole is asked for.
    """
    one = arrivals.total == 1
    order = slice(None) if one else stable_order(arrivals.groups, arrivals.total)
    assert arrivals.probabilities is not None
    now, rows, groups = arrivals.now[order], arrivals.rows[order], arrivals.groups[order]
    columns: list[Any] = [arrivals.keys[order], arrivals.probabilities[order], arrivals.stamps[order], now, rows]
    names = np.empty(0, np.int64) if arrivals.names is None else arrivals.names[order]
    named = np.empty(0, np.bool_)
    if arrivals.names is not None:
        named = np.ones(len(rows), np.bool_) if arrivals.named is None else arrivals.named[order]
    visits = everyone = _visits(groups, now, arrivals, due, is_open, timed, net)
    eligible = np.empty(0, np.bool_)
    if arrivals.eligible is not None and whole:
        eligible = arrivals.eligible[order]
    elif arrivals.eligible is not None:
        kept = arrivals.eligible[order]
        before = np.concatenate([[0], np.cumsum(kept)])
        visits = everyone.copy()
        visits["begin"], visits["end"] = before[everyone["begin"]], before[everyone["end"]]
        columns = [column[kept] for column in columns]
        if len(names):
            names, named = names[kept], named[kept]
    keys, ps, stamps, when, which = (np.ascontiguousarray(column) for column in columns)
    return Taken(keys, ps, stamps, when, which, names, named, eligible, visits, now, rows, everyone)


def _visits(groups: Ints, now: Ints, arrivals: Arrivals, due: Ints, is_open: Bools, timed: bool, net: bool) -> Records:
    single = len(groups) and groups[0] == groups[-1]
    starts = np.zeros(1, np.int64) if single else np.flatnonzero(np.diff(groups, prepend=-1))
    touched = np.zeros(len(starts), VISIT)
    touched["group"] = groups[starts]
    touched["begin"] = starts
    touched["end"] = np.append(starts[1:], len(groups)) if len(starts) else starts
    touched["last"] = arrivals.clock if timed else now[touched["end"] - 1]
    waiting = np.flatnonzero(due <= arrivals.clock) if timed else np.empty(0, np.int64)
    if net and not arrivals.more:
        waiting = np.union1d(waiting, np.flatnonzero(is_open))
    if not len(waiting):
        return touched
    visited = np.union1d(touched["group"], waiting)
    visits = np.zeros(len(visited), VISIT)
    visits["group"] = visited
    visits["last"] = arrivals.clock if timed else -NEVER
    visits[np.searchsorted(visited, touched["group"])] = touched
    return visits


def ordered(
    out: Records,
    batch: Taken,
    arrivals: Arrivals,
    alive: Bools,
    queries: int,
    *,
    timed: bool,
    net: bool,
    held: bool,
    idle: bool = True,
) -> Changes:
    """By query, then by step: what happens before row r goes to place 2r, the arrival itself to 2r + 1.

    idle: there may be steps without an arrival.
    """
    visits = batch.all_visits
    alone = out["row"] < 0 if idle else np.zeros(len(out), np.bool_)
    if net:
        out["instant"] = visits["last"][out["visit"]]
        ends = visits["end"][out["visit"]]
        rows = np.append(batch.all_rows, -1)[ends - 1]
        out["row"] = np.where(ends > visits["begin"][out["visit"]], rows, -1)
    elif idle and alone.any():
        find_rows(out, visits, np.ascontiguousarray(batch.all_now), np.ascontiguousarray(batch.all_rows), not timed)
    if len(visits) > 1 or queries > 1:
        order = np.arange(len(out))
        place = np.maximum(2 * out["row"] + 1, 0)  # -1: a group whose last arrival was in an earlier push
        if timed:
            clocks = np.empty(0, np.int64) if arrivals.clocks is None else arrivals.clocks
            early = 2 * np.searchsorted(clocks, out["instant"], "left")
            place = np.full(len(out), 2 * arrivals.size) if net else np.where(alone, early, place)
            order = np.argsort(out["instant"], kind="stable")
        order = order[stable_order(place[order], 2 * arrivals.size + 2)]
        if queries > 1:
            order = order[stable_order(out["query"][order].astype(np.int64), queries)]
        out = reorder(out, order)
    groups = np.zeros(len(out), np.int64) if arrivals.total == 1 else visits["group"][out["visit"]]
    return changes_of(out, groups, alive, queries, held)


def changes_of(out: Records, groups: Ints, alive: Bools, queries: int, held: bool) -> Changes:
    """Changes as columns; held: ranks are part of the answer."""
    size = len(out)
    stamp, serial, instant, row, rank = (np.empty(size, np.int64) for _ in range(5))
    key, probability, diff, first = np.empty(size), np.empty(size), np.empty(size, np.int8), np.empty(size, np.bool_)
    columns_of(out, probability, stamp, serial, instant, row, key, rank, diff, first)
    return Changes(
        query=out["query"].astype(np.int64) if queries > 1 else np.zeros(size, np.int64),
        group=groups,
        row=row,
        instant=instant,
        stamp=stamp,
        serial=serial,
        key=key,
        diff=diff,
        first=first,
        alive=alive,
        rank=rank if held else None,
        probability=probability,
    )
