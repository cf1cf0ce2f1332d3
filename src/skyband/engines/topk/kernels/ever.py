"""Arrivals into windows without end: nothing expires, so ranks only fall, and one pass in order of arrival is enough.

`take_best`: each group keeps its K best as one run, best first. An arrival below the K-th is left out by one
comparison with the group's floor; any other is put in its place and the last goes. The answer of a query is the first k
of the run. In random order K·(1 + ln(n/K)) of n arrivals get in.

`take_above`: each group keeps what is above the lowest threshold, in order of arrival; nothing ever leaves.

Ties: the newer ranks above; in count windows the later arrival, in time windows the later time, then the later arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.changes import begin_batch, drop, end_batch, leave, write
from skyband.engines.topk.kernels.lookahead import put_best, skip_below
from skyband.engines.topk.kernels.state import Report, with_capacity
from skyband.engines.topk.kernels.strict import insert
from skyband.kernels.compile import close, kernel, part, uncounted
from skyband.kernels.records import BITS, Records, make_room

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Runs(NamedTuple):
    """The runs of all groups."""

    objects: Records  # the arena
    groups: Records
    floors: Floats  # per group: what is below it does not get in
    bounds: Floats  # per query: its k, or its threshold
    tally: Ints  # [places of the arena in use, changes written]


class Arriving(NamedTuple):
    """Arrivals in order; those that are not eligible are left out already."""

    keys: Floats
    stamps: Ints  # empty: first, first + 1, ...
    groups: Ints  # empty: all are of group 0
    rows: Ints  # empty: 0, 1, ...
    first: int


@kernel
def take_best(runs: Runs, report: Report, arriving: Arriving, K: int) -> tuple[Records, Records]:
    """Take arrivals, each into the K best of its group; returns the arena and the changes: both may be new ones."""
    keys, floors, Q = arriving.keys, runs.floors, len(runs.bounds)
    report = with_capacity(report, 4 * Q + 64)
    n, i, one = len(keys), 0, len(arriving.groups) == 0
    while i < n:
        if one:
            i = skip_below(keys, i, n, floors[0])
            if i == n:
                break
        g = 0 if one else arriving.groups[i]
        if keys[i] >= floors[g]:
            if is_at_end(runs.groups, g):
                runs = with_place(runs, g)
            if report.tally[1] + 2 * Q + 32 > len(report.changes):
                report = with_capacity(report, 2 * Q + 32)
            put(runs, report, arriving, i, g, K)
        i += 1
    return runs.objects, report.changes


@kernel
def take_above(runs: Runs, report: Report, arriving: Arriving) -> tuple[Records, Records]:
    """Take arrivals that are above the lowest threshold; returns the arena and the changes: both may be new ones."""
    keys, Q = arriving.keys, len(runs.bounds)
    report = with_capacity(report, Q + 64)
    lowest = runs.floors[0]
    for i in range(len(keys)):
        if not keys[i] > lowest:
            continue
        g = 0 if len(arriving.groups) == 0 else arriving.groups[i]
        if is_at_end(runs.groups, g):
            runs = with_place(runs, g)
        if report.tally[1] + Q > len(report.changes):
            report = with_capacity(report, Q)
        group, row = runs.groups[g], row_of(arriving, i)
        place, group["size"] = group["head"] + group["size"], group["size"] + 1
        set_object(runs.objects, place, keys[i], stamp_of(arriving, i), report.serial + row)
        report.alive[row] = True
        set_step(report, arriving, i, g)
        for q in range(Q):
            if keys[i] > runs.bounds[q]:
                runs.objects[place]["inside"] |= BITS[q]
                write(runs.objects, place, q, 1, report)
    return runs.objects, report.changes


@kernel
def end_batches(runs: Runs, report: Report, opened: Ints) -> Records:
    """Report the net changes of these groups; returns the changes, which may be in a new array."""
    Q = len(runs.bounds)
    for j in range(len(opened)):
        g = opened[j]
        report = with_capacity(report, 2 * Q * (runs.groups[g]["size"] + 1))
        report.step[0]["visit"] = g
        report.step[0]["row"] = -1
        end_batch(runs.objects, runs.groups, g, Q, report)
        runs.groups[g]["open"] = 0
    return report.changes


@uncounted
def put(runs: Runs, report: Report, arriving: Arriving, i: int, g: int, K: int) -> None:
    """Put arrival i into its group's run, unless K rank above it. A run that is full loses its last."""
    objects, groups, bounds = runs.objects, runs.groups, runs.bounds
    key, stamp, row = arriving.keys[i], stamp_of(arriving, i), row_of(arriving, i)
    head, size = groups[g]["head"], groups[g]["size"]
    low, high = 0, size  # its rank: below all that are better, above its ties unless they are of a later time
    while low < high:
        middle = (low + high) // 2
        other = objects[head + middle]
        if other["key"] > key or (other["key"] == key and other["stamp"] > stamp):
            low = middle + 1
        else:
            high = middle
    if low == K:
        return
    if report.net and not groups[g]["open"]:
        begin_batch(objects, groups, g, report)
        groups[g]["open"] = 1
    set_step(report, arriving, i, g)
    entered = np.uint32(0)
    for q in range(len(bounds)):
        if low < bounds[q]:
            entered |= BITS[q]
            if size >= bounds[q]:
                leave(objects, head + np.int64(bounds[q]) - 1, q, report)
            if not report.net:
                mark_change(report, key, stamp, row, q)
    if size == K:
        drop(objects, head + size - 1, report)
        size -= 1
    head = insert(objects, head, low, size, key, stamp, report.serial + row, 0)
    objects[head + low]["inside"] = entered
    objects[head + low]["shown"] = np.uint32(0) if report.net else entered
    report.alive[row] = True
    groups[g]["head"], groups[g]["size"] = head, size + 1
    if size + 1 == K:
        runs.floors[g] = objects[head + size]["key"]


@close
def mark_change(report: Report, key: float, stamp: int, row: int, q: int) -> None:
    """The arrival of this step enters the answer of query q: it never was in one."""
    changes, n = report.changes, report.tally[1]
    changes[n] = report.step[0]
    changes[n]["key"] = key
    changes[n]["stamp"] = stamp
    changes[n]["serial"] = report.serial + row
    changes[n]["query"] = q
    changes[n]["diff"] = changes[n]["first"] = 1
    report.tally[1] = n + 1


@close
def set_step(report: Report, arriving: Arriving, i: int, g: int) -> None:
    report.step[0]["visit"] = g
    report.step[0]["row"] = row_of(arriving, i)


@close
def row_of(arriving: Arriving, i: int) -> int:
    """The row of the batch that arrival i is."""
    return int(arriving.rows[i]) if len(arriving.rows) else i


@close
def stamp_of(arriving: Arriving, i: int) -> int:
    return int(arriving.stamps[i]) if len(arriving.stamps) else arriving.first + i


@close
def set_object(objects: Records, place: int, key: float, stamp: int, serial: int) -> None:
    objects[place]["key"] = key
    objects[place]["stamp"] = stamp
    objects[place]["serial"] = serial
    objects[place]["dom"] = objects[place]["inside"] = objects[place]["shown"] = objects[place]["was"] = 0


@close
def is_at_end(groups: Records, g: int) -> bool:
    """Whether the run has no free place on one of its sides."""
    head, start = groups[g]["head"], groups[g]["start"]
    return bool(head == start or head + groups[g]["size"] == start + groups[g]["room"])


@part
def with_place(runs: Runs, g: int) -> Runs:
    """The runs with a free place on both sides of one group's."""
    objects = make_room(runs.objects, runs.groups, g, runs.tally, 1)
    return Runs(objects, runs.groups, runs.floors, runs.bounds, runs.tally)


@kernel
def mark_outranked(arrivals: Records, visits: Records, K: int, outranked: NDArray[np.bool_]) -> None:
    """Mark the arrivals of each group's slice, in order, with K earlier ones in it above them: these never leave."""
    best = np.empty(K)
    for visit in range(len(visits)):
        size = 0
        for i in range(visits[visit]["begin"], visits[visit]["end"]):
            key = arrivals[i]["key"]
            outranked[i] = size == K and best[0] > key
            if not outranked[i]:
                size = put_best(best, size, key)
