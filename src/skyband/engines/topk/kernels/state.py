"""The state of skyband engines as their kernels see it: NamedTuples of arrays, and how their arrays grow.

One convention for arrays that grow: only an entry point replaces an array (`with_places`, `with_capacity`), and it
returns those that it may have replaced. An inner function never does: it is given enough, or it stops and returns how
far it came, and the entry point makes room and calls it again. So inner functions need no reference counts. Scratch
arrays are made once, of the largest size that they can need.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, part, uncounted
from skyband.kernels.records import Records, make_room, reserve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Skybands(NamedTuple):
    """The runs of all groups, and the queries that they serve. A filter of a buffer is one too, without queries."""

    objects: Records  # the arena
    groups: Records
    views: Records  # one per group and query, group by group
    queries: Records
    rule: Records  # what is pruned from a run
    caps: Records  # per group, unless the rule is strict
    tally: Ints  # [places of the arena in use, changes written]
    stamps: Ints  # scratch for the K newest stamps, where the rule is relaxed


class Report(NamedTuple):
    """Where the changes of a batch are written."""

    changes: Records
    tally: Ints  # that of the skybands
    step: Records  # one change with the instant, row and visit of the present step
    alive: Records  # per row of the batch: is it kept now
    serial: int  # of the batch's first row
    joint: bool  # count windows: an arrival and what it pushes out are one step
    net: bool  # report each group once, by its answers before and after
    more: bool  # net: the batch goes on, report later


class Stream(NamedTuple):
    """The arrivals of a batch with their attributes, for engines of a family."""

    data: Floats  # one row per attribute
    stamps: Ints
    now: Ints
    rows: Ints
    last: int  # the clock, or the number of the last arrival


@uncounted
def largest_k(queries: Records) -> int:
    """The K of a skyband: the largest k of its queries."""
    K = 0
    for q in range(len(queries)):
        K = max(K, queries[q]["k"])
    return K


@close
def is_full(groups: Records, g: int, more: int) -> bool:
    """Whether a group's run has fewer than `more` free places on one of its sides."""
    head, start = groups[g]["head"], groups[g]["start"]
    return bool(head - start < more or head + groups[g]["size"] + more > start + groups[g]["room"])


@part
def with_places(skybands: Skybands, g: int, more: int) -> Skybands:
    """The skybands with at least `more` free places on both sides of one group's run."""
    objects = make_room(skybands.objects, skybands.groups, g, skybands.tally, more)
    return Skybands(
        objects,
        skybands.groups,
        skybands.views,
        skybands.queries,
        skybands.rule,
        skybands.caps,
        skybands.tally,
        skybands.stamps,
    )


@part
def with_capacity(report: Report, more: int) -> Report:
    """The report with capacity for `more` changes."""
    return Report(
        reserve(report.changes, report.tally, more),
        report.tally,
        report.step,
        report.alive,
        report.serial,
        report.joint,
        report.net,
        report.more,
    )
