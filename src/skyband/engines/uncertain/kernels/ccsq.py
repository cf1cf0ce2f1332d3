"""CCSQ of jin2008 (4.2): the queue of compact sets, each but the newest as its difference to the next newer one.

A difference is a run of TUPLE: the oldest tuple, which the next newer set has not; then those that only that one has.
Sets are restored one after the other, the newest first.
"""

from __future__ import annotations

from skyband.engines.uncertain.kernels.csq import change_places, close_gap, expire_queue
from skyband.engines.uncertain.kernels.queue import (
    END,
    FIRST,
    FRESH,
    OTHER,
    SPARE,
    THIRD,
    Queue,
    Stored,
    close_place,
    compact,
    copied,
    emptied,
    free_set,
    has,
    is_above,
    is_above_last,
    is_newer,
    leave_newer,
    leave_valid,
    maintain,
    older_sets,
    oldest_of,
    oldest_valid,
    open_place,
    opened,
    place_of,
    put,
    with_room,
    with_set,
)
from skyband.engines.uncertain.kernels.queue_steps import (
    ARRIVE,
    DONE,
    MORE,
    READ,
    Held,
    Returned,
    advance,
    report,
    returned,
)
from skyband.engines.uncertain.kernels.records import Batch, Rules
from skyband.kernels.compile import kernel, part


@part
def restored(queue: Queue, i: int, r: int) -> Queue:
    """The next older set in a run that has the set before it, or nothing before the newest."""
    run = queue.lists.runs[queue.sets[i]["run"]]
    if i == queue.facts[END] - 1:
        return copied(queue, r, queue.sets[i]["run"], run["size"])
    queue = with_room(queue, r, 1)
    lists, run = queue.lists, queue.lists.runs[queue.sets[i]["run"]]
    for j in range(run["head"] + 1, run["head"] + run["size"]):
        close_place(lists, r, place_of(lists, r, lists.records[j]))
    at = place_of(lists, r, lists.records[run["head"]])
    to = open_place(lists, r, at)
    lists.records[to] = lists.records[run["head"]]
    return queue


@part
def compressed(queue: Queue, to: int, newer: int, older: int) -> Queue:
    """The difference of the set in one run to the newer one in another."""
    queue = emptied(queue, to, 1 + queue.lists.runs[newer]["size"])
    lists, run = queue.lists, queue.lists.runs[to]
    records, a, b = lists.records, lists.runs[older], lists.runs[newer]
    i, j, n = a["head"], b["head"], 1
    i_end, j_end = i + a["size"], j + b["size"]
    while i < i_end or j < j_end:
        if i < i_end and j < j_end and records[i]["serial"] == records[j]["serial"]:
            i += 1
            j += 1
        elif j == j_end or (i < i_end and is_above(records[i], records[j])):
            records[run["head"]] = records[i]  # one, by Theorem 3.2
            i += 1
        else:
            records[run["head"] + n] = records[j]
            n += 1
            j += 1
    run["size"] = n
    return queue


@part
def append_ccsq(queue: Queue, size: int) -> Queue:
    """A newest set, the first tuples of D; what was the newest becomes a difference to it."""
    facts = queue.facts
    queue = with_set(queue, facts[END], FRESH, size)
    end = facts[END]
    if end - facts[FIRST] > 1:
        run = queue.sets[end - 2]["run"]
        queue = copied(queue, SPARE, run, queue.lists.runs[run]["size"])
        queue = compressed(queue, run, queue.sets[end - 1]["run"], SPARE)
    return queue


@part
def insert_late(queue: Queue, older: int) -> Queue:
    """A late tuple may be the oldest of one more set, between the newer one (SPARE) and the older."""
    size = queue.lists.runs[SPARE]["size"]
    queue = put(copied(queue, THIRD, SPARE, size), THIRD)
    maintain(queue, THIRD)
    if has(queue.lists, THIRD, queue.arrived[0]):
        before = queue.facts[FIRST]
        queue = with_set(queue, older, THIRD, queue.lists.runs[THIRD]["size"])
        run = queue.sets[older - before + queue.facts[FIRST]]["run"]
        queue = compressed(queue, run, SPARE, THIRD)
        queue = copied(queue, OTHER, THIRD, queue.lists.runs[THIRD]["size"])
    return queue


@part
def insert_ccsq(queue: Queue) -> Queue:
    """Algorithm 1 over sets that are restored, changed and compressed again; lines 3 to 6 come last.

    (Only sets that the arrival has changed already differ from the newest one by a single tuple.)
    """
    facts, t, older = queue.facts, queue.arrived, older_sets(queue)
    for i in range(facts[END] - 1, older - 1, -1):
        queue = restored(queue, i, SPARE)
    if older < facts[END]:  # it is late
        queue = copied(queue, OTHER, SPARE, queue.lists.runs[SPARE]["size"])
        before, many = facts[FIRST], facts[END] - facts[FIRST]
        if is_above_last(queue, t[0], SPARE):
            queue = insert_late(queue, older)
        added = facts[END] - facts[FIRST] > many
        return change_older(queue, older + facts[FIRST] - before, added)
    queue = put(change_older(queue, older, False), FRESH)  # line 3
    size = compact(queue, FRESH)
    while size:  # line 4, until there is none
        queue = append_ccsq(queue, size)  # line 5
        leave_newer(queue, FRESH, queue.sets[facts[END] - 1])  # line 6
        size = compact(queue, FRESH)
    return queue


@part
def change_older(queue: Queue, older: int, changed: bool) -> Queue:
    """Lines 7 to 13, of sets before this index: SPARE has the next newer set as it was, OTHER as it is now.

    changed: is OTHER another set than it was?
    """
    facts, t, first = queue.facts, queue.arrived, queue.facts[FIRST]
    kept = i = older
    newest = older == facts[END]  # is there no newer set?
    while i > first:
        i -= 1
        queue = restored(queue, i, SPARE)
        run, source = queue.sets[i]["run"], SPARE
        reached = is_above_last(queue, t[0], SPARE)
        if reached:
            source, changed = THIRD, True
            queue = put(copied(queue, THIRD, SPARE, queue.lists.runs[SPARE]["size"]), THIRD)
            maintain(queue, THIRD)  # line 9
            if is_newer(queue.lists.records[oldest_of(queue, THIRD)], queue.sets[i]):  # line 10
                free_set(queue, i)  # line 11
                continue
        if newest and changed:
            queue = copied(queue, run, source, queue.lists.runs[source]["size"])
        elif changed:
            queue = compressed(queue, run, OTHER, source)
        if not reached:  # line 8; older sets end at least as high
            i += 1
            break
        queue = copied(queue, OTHER, source, queue.lists.runs[source]["size"])
        newest = False
        kept -= 1
        change_places(queue, i, kept)
    close_gap(queue, i, kept)
    return queue


@part
def ranking_ccsq(queue: Queue, low: int) -> tuple[Queue, int]:
    """The oldest set that is valid, restored, or what is valid of D."""
    oldest = oldest_valid(queue, low)
    if oldest == queue.facts[END]:
        queue = copied(queue, SPARE, FRESH, queue.lists.runs[FRESH]["size"])
        leave_valid(queue, SPARE, low)
    for i in range(queue.facts[END] - 1, oldest - 1, -1):
        queue = restored(queue, i, SPARE)
    return queue, SPARE


@kernel
def take_ccsq(stored: Stored, held: Held, batch: Batch, rules: Rules, v: int) -> Returned:
    """The arrivals of a visit."""
    queue = opened(stored, rules)
    while True:
        op = advance(held, batch, rules, v, queue.arrived)
        if op == MORE:
            continue
        queue = expire_queue(queue, held.loop[0]["low"])
        if op == DONE:
            return returned(queue, held)
        if op == ARRIVE:
            queue = insert_ccsq(queue)
        elif op == READ:
            queue, r = ranking_ccsq(queue, held.loop[0]["reading"])
            held = report(held, queue, r)
