"""Reads of slots besides their answers: the serials of kept objects, scores of one lane, rows of steps."""

from __future__ import annotations

from skyband.engines.topk.kernels.found import first_place
from skyband.engines.topk.kernels.lane_state import Lanes
from skyband.engines.topk.kernels.scores import keys_of
from skyband.engines.topk.kernels.segments import in_box
from skyband.engines.topk.kernels.state import Floats, Ints
from skyband.kernels.compile import kernel
from skyband.kernels.records import NEVER, Records


@kernel
def bounds_of_serials(objects: Records, lanes: Records) -> tuple[int, int]:
    """The smallest serial of the runs, and one past the largest; NEVER and 0: there are none."""
    low, high = NEVER, 0
    for s in range(len(lanes)):
        for i in range(lanes[s]["head"], lanes[s]["head"] + lanes[s]["size"]):
            low, high = min(low, objects[i]["serial"]), max(high, objects[i]["serial"] + 1)
    return low, high


@kernel
def mark_kept(objects: Records, lanes: Records, first: int, marks: Records) -> None:
    """Mark the objects of the runs, by their serials from `first` on."""
    for s in range(len(lanes)):
        for i in range(lanes[s]["head"], lanes[s]["head"] + lanes[s]["size"]):
            place = objects[i]["serial"] - first
            if 0 <= place < len(marks):
                marks[place] = True


@kernel
def find_steps(changes: Records, now: Ints, rows: Ints) -> None:
    """Steps of time without an arrival find the last arrival before their instant, or -1."""
    for i in range(len(changes)):
        if changes[i]["row"] < 0:
            place = first_place(now, 0, len(now), changes[i]["instant"])
            changes[i]["row"] = rows[place - 1] if place else -1


@kernel
def fill_rows(changes: Records, rows: Ints, begin: int) -> None:
    """Steps of count windows that are not their arrival's own find its row: numbers rise by one from `begin` on."""
    for i in range(len(changes)):
        if changes[i]["row"] < 0:
            changes[i]["row"] = rows[changes[i]["instant"] - begin]


@kernel
def keep_skyband(objects: Records, k: int) -> int:
    """Keep the objects, best first, that fewer than k others dominate; returns how many these are."""
    size = 0
    for j in range(len(objects)):
        stamp, dom, i = objects[j]["stamp"], 0, 0
        while i < size and dom < k:
            dom += objects[i]["stamp"] >= stamp
            i += 1
        if dom < k:
            objects[size] = objects[j]
            objects[size]["dom"] = dom
            size += 1
    return size


@kernel
def score_lane(chunk: Lanes, s: int, data: Floats, keys: Floats, inside: Records) -> None:
    """The keys of objects for one lane, and whether they are in its box."""
    keys_of(chunk.scorings, s, data, 0, data.shape[1], keys)
    for i in range(data.shape[1]):
        inside[i] = in_box(chunk, s, data, i)
