"""COMPACT: one compact set, of all that has arrived; and the tuples that the compact sets of all suffixes need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.engines.uncertain.kernels.queue import (
    CURRENT,
    WAIT,
    Queue,
    Stored,
    compact,
    is_above_last,
    opened,
    put,
)
from skyband.engines.uncertain.kernels.queue_steps import (
    ARRIVE,
    DONE,
    MORE,
    READ,
    TIME,
    Held,
    Returned,
    advance,
    report,
    returned,
)
from skyband.engines.uncertain.kernels.records import Batch, Records, Rules
from skyband.kernels.compile import kernel, part, uncounted

FULL = WAIT  # the fact that the tuples admit a compact set


@part
def insert_compact(queue: Queue) -> Queue:
    """A tuple below the set is dropped, and what it pushes below the set (Theorem 3.2)."""
    if queue.facts[FULL] and not is_above_last(queue, queue.arrived[0], CURRENT):
        return queue
    queue = put(queue, CURRENT)
    size = compact(queue, CURRENT)
    if size:
        queue.lists.runs[CURRENT]["size"], queue.facts[FULL] = size, 1
    return queue


@uncounted
def pass_over(queue: Queue, held: Held, batch: Batch, v: int) -> None:
    """Arrivals with a worse key than the lowest of the set touch nothing."""
    at, group, run = held.loop[0], held.group[0], queue.lists.runs[CURRENT]
    if queue.facts[FULL] and at["started"] and at["stage"] == TIME and at["query"] == 0:
        floor, end, i = queue.lists.records[run["head"] + run["size"] - 1]["key"], batch.visits[v]["end"], at["arrival"]
        while i < end and batch.keys[i] < floor:
            group["newest"], group["now"] = max(group["newest"], batch.stamps[i]), max(group["now"], batch.now[i])
            i += 1
        at["arrival"] = i


@kernel
def take_compact(stored: Stored, held: Held, batch: Batch, rules: Rules, v: int) -> Returned:
    """The arrivals of a visit; nothing expires."""
    queue = opened(stored, rules)
    while True:
        pass_over(queue, held, batch, v)
        op = advance(held, batch, rules, v, queue.arrived)
        if op == MORE:
            continue
        if op == DONE:
            return returned(queue, held)
        if op == ARRIVE:
            queue = insert_compact(queue)
        elif op == READ:
            held = report(held, queue, CURRENT)


@kernel
def find_needed(stored: Stored, tuples: Records, rules: Rules) -> NDArray[np.bool_]:
    """Which of these tuples, newest first, the compact set of some suffix has (dom.py); stored: an empty synopsis."""
    queue, found = opened(stored, rules), np.zeros(len(tuples), np.bool_)
    for i in range(len(tuples)):
        if not queue.facts[FULL] or is_above_last(queue, tuples[i], CURRENT):
            queue.arrived[0], found[i] = tuples[i], True
            queue.arrived[0]["mark"] = 0
            queue = insert_compact(queue)
    return found
