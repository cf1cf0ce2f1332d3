"""The front: the best objects of a group in one view, best first (haghani2009, section 3.1: k_max > k entries).

A front holds every object that ranks above its floor, so the k best of each query are its first k. When fewer are
left than a query asks for, it is filled again from all objects; when it has grown to twice its length, the worse half
leaves and the floor rises. Newer objects rank above equal ones.

Both stores (linked_store.py, sweep_store.py) have `objects` with the stamp and serial of the newest row, `scores` by
object and view, `fronts` by group and view, and `members`, the arena of the fronts: Numba compiles this for either.
Cost: O(log k) to find a place, O(k) to shift.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.incomplete.kernels.batches import MEMBERS_USED, NOWHERE, REFILLED, WRITTEN, Output
from skyband.kernels.compile import close, uncounted

SMALLEST = 4
FIELDS = [
    ("start", "i8"),
    ("capacity", "i8"),
    ("size", "i8"),
    ("changed", "i8"),  # the first place that has changed since answers were compared; NEVER: none
    ("score", "f8"),  # the floor
    ("stamp", "i8"),
    ("serial", "i8"),
]


@close
def above_floor(store: Any, f: int, o: int, i: int) -> Any:
    """Whether object o, with its score at place i, ranks above the floor of front f."""
    score, one, front = store.scores[i]["score"], store.objects[o], store.fronts[f]
    if not score >= front["score"]:
        return False
    if score > front["score"]:
        return True
    if one["stamp"] != front["stamp"]:
        return one["stamp"] > front["stamp"]
    return one["serial"] >= front["serial"]


@uncounted
def rank_in(store: Any, f: int, v: int, o: int) -> Any:
    """How many members of the front rank above object o in view v."""
    V, front, one = len(store.scores) // len(store.objects), store.fronts[f], store.objects[o]
    score = store.scores[o * V + v]["score"]
    low, high = front["start"], front["start"] + front["size"]
    while low < high:
        middle = (low + high) // 2
        other = store.objects[store.members[middle]]
        its = store.scores[store.members[middle] * V + v]["score"]
        if its != score:
            higher = its > score
        elif other["stamp"] != one["stamp"]:
            higher = other["stamp"] > one["stamp"]
        else:
            higher = other["serial"] > one["serial"]
        if higher:
            low = middle + 1
        else:
            high = middle
    return low - front["start"]


@uncounted
def remove(store: Any, f: int, v: int, o: int) -> None:
    """Take object o out of the front, where it stands by its score: before the score changes."""
    front, place = store.fronts[f], rank_in(store, f, v, o)
    start, size = front["start"], front["size"]
    for i in range(start + place, start + size - 1):
        store.members[i] = store.members[i + 1]
    front["size"] = size - 1
    front["changed"] = min(front["changed"], place)


@uncounted
def insert(store: Any, f: int, v: int, o: int) -> None:
    """Put object o into the front; one that is full moves to the end of the arena, to twice the capacity."""
    front, place = store.fronts[f], rank_in(store, f, v, o)
    if front["size"] == front["capacity"]:
        to, capacity = store.facts[MEMBERS_USED], max(SMALLEST, 2 * front["capacity"])
        for i in range(front["size"]):
            store.members[to + i] = store.members[front["start"] + i]
        front["start"], front["capacity"] = to, capacity
        store.facts[MEMBERS_USED] += capacity
    start, size = front["start"], front["size"]
    for i in range(start + size, start + place, -1):
        store.members[i] = store.members[i - 1]
    store.members[start + place] = o
    front["size"] = size + 1
    front["changed"] = min(front["changed"], place)


@uncounted
def raise_floor(store: Any, f: int, v: int, most: int) -> None:
    """Cut the front to its best; the last of them is the floor."""
    V, front = len(store.scores) // len(store.objects), store.fronts[f]
    o = store.members[front["start"] + most - 1]
    front["size"] = most
    front["score"] = store.scores[o * V + v]["score"]
    front["stamp"], front["serial"] = store.objects[o]["stamp"], store.objects[o]["serial"]


@uncounted
def clear(store: Any, f: int) -> None:
    """Empty the front, to be filled again: its floor is below every object."""
    front = store.fronts[f]
    store.facts[REFILLED] += 1
    front["size"] = front["changed"] = 0
    front["score"], front["stamp"], front["serial"] = -np.inf, NOWHERE, NOWHERE


@uncounted
def report(output: Output, facts: Any, q: int, diff: int, first: bool, score: float, stamp: int, serial: int) -> None:
    """Write one change: an object enters or leaves the answer of query q."""
    n = facts[WRITTEN]
    change = output.changes[n]
    output.changes[n] = output.step[0]
    change["key"], change["stamp"], change["serial"] = score, stamp, serial
    change["query"], change["diff"], change["first"] = q, diff, first
    facts[WRITTEN] = n + 1
