"""Arrivals by group, and changes back in the order of the contract: by query, then by step across groups.

Kernels work group by group: a *visit* is one group's slice of the sorted arrivals of a batch.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Arrivals, Bools, Changes, Ints
from skyband.kernels.records import NEVER, VISIT
from skyband.kernels.routing import find_rows, reorder, stable_order

Records = NDArray[Any]


class Visited(Protocol):
    """What is read of an engine to find the groups that a batch visits."""

    timed: bool
    net: bool

    @property
    def due(self) -> Ints: ...

    @property
    def open(self) -> Any:
        """Per group: whether it is within a batch of net changes that goes on."""


class Grouped(Visited, Protocol):
    """And to put its changes in order."""

    queries: Any


def rebuild(engine: Any, groups: Ints) -> None:
    """Let an engine keep only these groups, in new arrays: O(1) for each of their objects."""
    engine.restore({name: array for name, (array, _) in engine.snapshot(groups).items()})


def slices_of(groups: Ints) -> Records:
    """Each group's slice of sorted arrivals."""
    single = len(groups) and groups[0] == groups[-1]
    starts = np.zeros(1, np.int64) if single else np.flatnonzero(np.diff(groups, prepend=-1))
    visits = np.zeros(len(starts), VISIT)
    visits["group"] = groups[starts]
    visits["begin"] = starts
    visits["end"] = np.append(starts[1:], len(groups)) if len(starts) else starts
    return visits


def visits_of(engine: Visited, groups: Ints, now: Ints, arrivals: Arrivals) -> Records:
    """The groups with arrivals, and those from which time takes something; in the order of their codes."""
    touched = slices_of(groups)
    touched["last"] = arrivals.clock if engine.timed else now[touched["end"] - 1]
    waiting = np.flatnonzero(engine.due <= arrivals.clock) if engine.timed else np.empty(0, np.int64)
    if engine.net and not arrivals.more:
        waiting = np.union1d(waiting, np.flatnonzero(engine.open))
    if not len(waiting):
        return touched
    visited = np.union1d(touched["group"], waiting)
    visits = np.zeros(len(visited), VISIT)
    visits["group"] = visited
    visits["last"] = arrivals.clock if engine.timed else -NEVER
    visits[np.searchsorted(visited, touched["group"])] = touched
    return visits


def visit_of_one(engine: Visited, size: int, arrivals: Arrivals) -> Records:
    """The visit of the only group, by `size` of its arrivals."""
    visit = np.zeros(1, VISIT)
    visit["end"] = size
    visit["last"] = arrivals.clock if engine.timed else arrivals.stamps_at(np.array([len(arrivals.keys) - 1]))
    return visit


def ordered_changes(
    engine: Grouped, out: Records, visits: Records, taken: Any, arrivals: Arrivals, alive: Bools
) -> Changes:
    """By query, then by step: what happens before row r goes to place 2r, the arrival itself to 2r + 1."""
    alone = out["row"] < 0
    if engine.net:
        out["instant"] = visits["last"][out["visit"]]
        ends = visits["end"][out["visit"]]
        out["row"] = np.where(ends > visits["begin"][out["visit"]], np.append(taken["row"], -1)[ends - 1], -1)
    else:
        find_rows(out, visits, np.ascontiguousarray(taken["now"]), np.ascontiguousarray(taken["row"]), not engine.timed)
    if len(visits) > 1 or len(engine.queries) > 1:
        out = by_step(engine, out, alone, arrivals, len(engine.queries))
    return changes_of(out, out["query"], visits["group"][out["visit"]], alive)


def ordered_changes_of_one(engine: Grouped, out: Records, visit: Records, arrivals: Arrivals, alive: Bools) -> Changes:
    """The same of the only group, none of whose arrivals is late."""
    alone = out["row"] < 0
    if engine.net:
        out["instant"] = visit["last"]
        out["row"] = arrivals.rows_at(np.array([len(arrivals.keys) - 1]))
    elif alone.any():
        instants = out["instant"][alone]
        if engine.timed:
            before = np.searchsorted(arrivals.now, instants) - 1
            out["row"][alone] = np.where(before < 0, -1, arrivals.rows_at(before))
        else:
            first = arrivals.first
            places = np.searchsorted(arrivals.now, instants) if first is None else instants - first
            out["row"][alone] = arrivals.rows_at(places)
    if len(engine.queries) > 1:
        out = by_step(engine, out, alone, arrivals, len(engine.queries))
    return changes_of(out, out["query"], np.zeros(len(out), np.int64), alive)


def by_step(engine: Visited, out: Records, alone: Bools, arrivals: Arrivals, queries: int) -> Records:
    """Changes by query, then by step across groups; alone: those of steps without an arrival."""
    order = np.arange(len(out))
    place = np.maximum(2 * out["row"] + 1, 0)  # -1: a group whose last arrival was in an earlier push
    if engine.timed:
        clocks = np.empty(0, np.int64) if arrivals.clocks is None else arrivals.clocks
        early = 2 * np.searchsorted(clocks, out["instant"], "left")
        place = np.full(len(out), 2 * arrivals.size) if engine.net else np.where(alone, early, place)
        order = np.argsort(out["instant"], kind="stable")
    order = order[stable_order(place[order], 2 * arrivals.size + 2)]
    if queries > 1:
        order = order[stable_order(out["query"][order].astype(np.int64), queries)]
    ordered: Records = reorder(out, order)
    return ordered


def changes_of(out: Records, queries: Records, groups: Ints, alive: Bools) -> Changes:
    """Changes as columns."""
    return Changes(
        query=queries,
        group=groups,
        row=out["row"],
        instant=out["instant"],
        stamp=out["stamp"],
        serial=out["serial"],
        key=out["key"],
        diff=out["diff"],
        first=out["first"].astype(np.bool_),
        alive=alive,
    )
