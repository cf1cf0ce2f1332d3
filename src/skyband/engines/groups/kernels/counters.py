"""Counters of one pane: a heap with the smallest at the root, and a table of their objects (open addressing)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, uncounted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Records = NDArray[Any]
FREE = -1
HASH = 0x9E3779B1


@close
def is_less(counters: Records, a: int, b: int) -> bool:
    """The smaller count; of equal ones that of the older row: no two counters are equal."""
    if counters[a]["count"] != counters[b]["count"]:
        return bool(counters[a]["count"] < counters[b]["count"])
    return bool(counters[a]["serial"] < counters[b]["serial"])


@uncounted
def lift(counters: Records, heap: Ints, at: int) -> None:
    """A counter that may be smaller than its parent goes up."""
    one = heap[at]
    while at > 0 and is_less(counters, one, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        counters[heap[at]]["place"] = at
        at = (at - 1) // 2
    heap[at] = one
    counters[one]["place"] = at


@uncounted
def sink(counters: Records, heap: Ints, at: int, size: int) -> None:
    """A counter that has grown goes down."""
    one = heap[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and is_less(counters, heap[child + 1], heap[child]):
            child += 1
        if not is_less(counters, heap[child], one):
            break
        heap[at] = heap[child]
        counters[heap[at]]["place"] = at
        at = child
    heap[at] = one
    counters[one]["place"] = at


@close
def home(code: int, mask: int) -> int:
    """The first place of an object in a table."""
    return (code * HASH >> 7) & mask


@uncounted
def find(table: Ints, counters: Records, code: int) -> int:
    """Where an object's counter is in a table, or belongs."""
    mask = len(table) - 1
    place = home(code, mask)
    while table[place] != FREE and counters[table[place]]["code"] != code:
        place = (place + 1) & mask
    return place


@uncounted
def remove(table: Ints, counters: Records, code: int) -> None:
    """Take an object out of a table; those behind it move up, so that they are found."""
    mask = len(table) - 1
    hole = find(table, counters, code)
    place = (hole + 1) & mask
    while table[place] != FREE:
        wanted = home(counters[table[place]]["code"], mask)
        if ((place - wanted) & mask) >= ((place - hole) & mask):
            table[hole] = table[place]
            hole = place
        place = (place + 1) & mask
    table[hole] = FREE
