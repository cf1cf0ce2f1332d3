"""The records of skyband kernels, and the arena that holds the skybands of many groups.

A group's skyband is one run of records with free places on both sides. A run that is out of places moves to the
arena's end, to twice the room; an arena that is full is packed into a larger one. O(1) amortised per object.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import part

Records = NDArray[Any]

OBJECT = np.dtype(
    [
        ("key", "f8"),  # larger is better
        ("stamp", "i8"),  # number in the group, or time
        ("serial", "i8"),  # which arrival of the stream it is
        ("dom", "i4"),  # dominance counter
        ("inside", "u4"),  # bit q: in the answer of query q
        ("shown", "u4"),  # bit q: has been in an emitted answer of q
        ("was", "u4"),  # bit q: was in the answer when this batch began
    ],
    align=True,
)
GROUP = np.dtype(
    [
        ("start", "i8"),  # the group's place in the arena
        ("room", "i8"),
        ("head", "i8"),  # its run of records, from head on
        ("size", "i8"),
        ("newest", "i8"),  # largest stamp ever kept
        ("oldest", "i8"),  # no kept stamp is below this
        ("due", "i8"),  # no window lets go of anything before this instant
        ("open", "i8"),  # 1: within a batch that is to be reported later
    ],
    align=True,
)
VIEW = np.dtype([("edge", "i8"), ("held", "i8"), ("oldest", "i8")], align=True)
QUERY = np.dtype([("k", "i8"), ("length", "i8")], align=True)
ARRIVAL = np.dtype([("key", "f8"), ("stamp", "i8"), ("now", "i8"), ("row", "i8")], align=True)
VISIT = np.dtype([("group", "i8"), ("begin", "i8"), ("end", "i8"), ("last", "i8")], align=True)
CHANGE = np.dtype(
    [
        ("key", "f8"),
        ("stamp", "i8"),
        ("serial", "i8"),
        ("instant", "i8"),  # of the step: the number of its arrival, or a time
        ("row", "i8"),  # of the step's arrival; -1: it was not among the kernel's, or there was none
        ("visit", "i4"),
        ("query", "i2"),
        ("diff", "i1"),
        ("first", "i1"),
    ],
    align=True,
)
WAITING = np.dtype([("key", "f8"), ("stamp", "i8"), ("serial", "i8")], align=True)
RULE = np.dtype(
    [
        ("kind", "i8"),
        ("gamma", "f8"),  # RELAXED: how far candidates may outgrow those of the last pruning
        ("limit", "i8"),  # CAPPED: how many candidates promise no more than sigma misses
        ("additional", "i8"),  # CAPPED: and so many more
        ("floor", "i8"),  # CAPPED: with fewer candidates every arrival is good
        ("growth", "f8"),  # CAPPED: how far the threshold falls with each object that goes, in gaps
    ],
    align=True,
)
CAP = np.dtype([("limit", "i8"), ("threshold", "f8")], align=True)  # RELAXED: prune at this size; CAPPED: poor below it
STRICT, RELAXED, CAPPED = 0, 1, 2
NEVER = np.iinfo(np.int64).max
SILENT = 1 << 40  # taken from the row of an object that waited in a buffer: a candidate now, with no step of its own
SMALLEST = 8


BITS = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))


@part
def reserve(out: Records, tally: Records, more: int) -> Records:
    """Room for `more` changes."""
    if tally[1] + more <= len(out):
        return out
    larger = np.empty(2 * len(out) + more, out.dtype)
    move_run(out, 0, larger, 0, tally[1])  # a slice would take Numba 2 s to compile
    return larger


@part
def make_room(objects: Records, groups: Records, g: int, tally: Records, more: int) -> Records:
    """So many free places on both sides of the group's run: recentre it, or move it to a place of twice the size."""
    room, head, size = groups[g]["room"], groups[g]["head"], groups[g]["size"]
    if room >= SMALLEST and 4 * size <= 3 * room and size + 2 * more <= room:
        groups[g]["head"] = groups[g]["start"] + (room - size) // 2
        move_run(objects, head, objects, groups[g]["head"], size)
        return objects
    room = max(SMALLEST, 2 * room, size + 2 * more)
    if tally[0] + room > len(objects):
        objects = pack(objects, groups, tally, room)
        head = groups[g]["head"]
    groups[g]["start"] = tally[0]
    groups[g]["room"] = room
    groups[g]["head"] = tally[0] + (room - size) // 2
    tally[0] += room
    move_run(objects, head, objects, groups[g]["head"], size)
    return objects


@part
def pack(objects: Records, groups: Records, tally: Records, room: int) -> Records:
    """A larger arena without the places that moved groups have left behind."""
    total = room
    for g in range(len(groups)):
        total += groups[g]["room"]
    arena = np.empty(2 * total, objects.dtype)
    tally[0] = 0
    for g in range(len(groups)):
        to = tally[0] + groups[g]["head"] - groups[g]["start"]
        move_run(objects, groups[g]["head"], arena, to, groups[g]["size"])
        groups[g]["start"] = tally[0]
        groups[g]["head"] = to
        tally[0] += groups[g]["room"]
    return arena


@part
def move_run(source: Records, begin: int, target: Records, to: int, size: int) -> None:
    if begin < to:
        for i in range(size - 1, -1, -1):
            target[to + i] = source[begin + i]
    else:
        for i in range(size):
            target[to + i] = source[begin + i]
