"""Lanes: the state of slots as their kernels see it, in chunks of some thousands.

A lane is one standing query: a record with its k, window and depth, and a run of objects in the chunk's arena. Arrays
grow as kernels/state.py says: only an entry point replaces one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.scores import LaneScorings
from skyband.engines.topk.kernels.state import Floats, Ints
from skyband.kernels.compile import close, part
from skyband.kernels.records import NEVER, Records, move_run

LANE = np.dtype(
    [
        ("start", "i8"),  # its place in the arena
        ("head", "i8"),  # its run of records, from head on
        ("room", "i4"),
        ("size", "i4"),
        ("k", "i8"),  # 0: the lane is free
        ("length", "i8"),  # of its window
        ("want", "i8"),  # so many of the history's objects are to be above its depth
        ("enough", "i8"),  # that many of them are in the run, the others are dominated
        ("depth", "f8"),  # down to this key the run has everything that counts
        ("seen", "f8"),  # the depth that its ranges of cells are for
        ("newest", "i8"),  # largest stamp ever kept
        ("due", "i8"),  # no window lets go of anything before this instant
        ("birth", "i8"),  # the serial of the first row that it sees
        ("slot", "i4"),
        ("counts", "i2"),  # numbers of its ranges of cells, or DENSE, STALE, WIDE
        ("open", "i1"),  # 1: within a batch of net changes
        ("fresh", "i1"),  # 1: it has no depth yet, and takes arrivals in small blocks, or it is LOOKING
    ],
    align=True,
)
LOOKING = 2  # a new lane finds in the history what is there, instead of taking it block by block
DENSE, STALE, WIDE = -1, -2, -3  # it looks at every arrival; ranges are to be found; they are too many to be kept


class Lanes(NamedTuple):
    """A chunk of lanes."""

    objects: Records  # the arena
    lanes: Records
    scorings: LaneScorings
    lows: Floats  # boxes, by lane and attribute; no columns: there are none
    highs: Floats
    ranges: NDArray[np.int32]  # cells that a lane sees, two numbers a range
    tally: Ints  # [places of the arena in use, changes written]


@close
def fits(lanes: Records, s: int, more: int) -> bool:
    """Whether a lane's run has `more` free places on both of its sides."""
    head, start = lanes[s]["head"], lanes[s]["start"]
    return bool(head - start >= more and head + lanes[s]["size"] + more <= start + lanes[s]["room"])


@part
def with_room(chunk: Lanes, s: int, need: int) -> Lanes:
    """The chunk with at least `need` places for one lane, its run in their middle."""
    objects = widen(chunk.objects, chunk.lanes, s, chunk.tally, need)
    return Lanes(objects, chunk.lanes, chunk.scorings, chunk.lows, chunk.highs, chunk.ranges, chunk.tally)


@part
def widen(objects: Records, lanes: Records, s: int, tally: Ints, need: int) -> Records:
    """Recentre a run, or move it to a place that is somewhat longer than it must be."""
    room, head, size = lanes[s]["room"], lanes[s]["head"], lanes[s]["size"]
    if need > room:
        room = need + need // 8 + 2
        if tally[0] + room > len(objects):
            objects = pack_lanes(objects, lanes, tally, room)
            head = lanes[s]["head"]
        lanes[s]["start"] = tally[0]
        lanes[s]["room"] = room
        tally[0] += room
    lanes[s]["head"] = lanes[s]["start"] + (room - size) // 2
    move_run(objects, head, objects, lanes[s]["head"], size)
    return objects


@part
def pack_lanes(objects: Records, lanes: Records, tally: Ints, room: int) -> Records:
    """Another arena, without places that moved runs have left behind, or that runs need no longer."""
    total = room
    for s in range(len(lanes)):
        total += lanes[s]["size"] + lanes[s]["size"] // 8 + 2
    arena = np.empty(total + total // 8 + 64, objects.dtype)
    tally[0] = 0
    for s in range(len(lanes)):
        size = lanes[s]["size"]
        move_run(objects, lanes[s]["head"], arena, tally[0] + 1, size)
        lanes[s]["start"] = tally[0]
        lanes[s]["head"] = tally[0] + 1
        lanes[s]["room"] = size + size // 8 + 2
        tally[0] += lanes[s]["room"]
    return arena


@close
def settle_run(objects: Records, lanes: Records, s: int) -> None:
    """What is known of a run whose members are its k best: when the oldest of them leaves."""
    oldest = NEVER
    head = lanes[s]["head"]
    for i in range(head, head + min(lanes[s]["k"], lanes[s]["size"])):
        oldest = min(oldest, objects[i]["stamp"])
    lanes[s]["due"] = oldest + lanes[s]["length"] if oldest < NEVER else NEVER


@close
def store_run(objects: Records, lanes: Records, s: int, kept: Records, size: int) -> None:
    """Write the records of a run into the middle of its place."""
    lanes[s]["head"] = lanes[s]["start"] + (lanes[s]["room"] - size) // 2
    lanes[s]["size"] = size
    move_run(kept, 0, objects, lanes[s]["head"], size)
    settle_run(objects, lanes, s)


@close
def store_some(objects: Records, lanes: Records, s: int, records: Records, chosen: Ints, size: int) -> None:
    """As `store_run`, of the records that are chosen."""
    head = lanes[s]["start"] + (lanes[s]["room"] - size) // 2
    lanes[s]["head"] = head
    lanes[s]["size"] = size
    for i in range(size):
        objects[head + i] = records[chosen[i]]
    settle_run(objects, lanes, s)
