"""Algorithm 1 of jin2008: all distinct compact sets of the suffixes of a window, each whole.

Lines are the paper's; engines/uncertain/csq.py has its errata.
"""

from __future__ import annotations

from skyband.engines.uncertain.kernels.queue import (
    END,
    FIRST,
    FRESH,
    LOW,
    SPARE,
    Queue,
    Stored,
    compact,
    copied,
    free_set,
    has,
    is_above_last,
    is_newer,
    leave_newer,
    leave_valid,
    maintain,
    older_sets,
    oldest_of,
    oldest_valid,
    opened,
    put,
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
from skyband.kernels.compile import kernel, part, uncounted


@part
def insert_csq(queue: Queue) -> Queue:
    """An arrival changes the sets of the suffixes that it belongs to."""
    facts, t, older = queue.facts, queue.arrived, older_sets(queue)
    if older == facts[END]:
        queue, appended = put(queue, FRESH), 0  # line 3
        size = compact(queue, FRESH)
        while size:  # line 4, until there is none
            queue = with_set(queue, facts[END], FRESH, size)  # line 5
            leave_newer(queue, FRESH, queue.sets[facts[END] - 1])  # line 6
            appended, size = appended + 1, compact(queue, FRESH)
        older = facts[END] - appended
    elif is_above_last(queue, t[0], queue.sets[older]["run"]):  # a late tuple may be the oldest of one more set
        newer = queue.sets[older]["run"]
        queue = put(copied(queue, SPARE, newer, queue.lists.runs[newer]["size"]), SPARE)
        maintain(queue, SPARE)
        if has(queue.lists, SPARE, t[0]):
            before = facts[FIRST]
            queue = with_set(queue, older, SPARE, queue.lists.runs[SPARE]["size"])
            older -= before - facts[FIRST]
    first = facts[FIRST]
    kept = i = older
    while i > first and is_above_last(queue, t[0], queue.sets[i - 1]["run"]):  # lines 7, 8; older ones end as high
        i -= 1
        run = queue.sets[i]["run"]
        queue = put(queue, run)
        maintain(queue, run)  # line 9
        oldest = queue.lists.records[oldest_of(queue, run)]
        if is_newer(oldest, queue.sets[i]):  # line 10: it has become the set before it
            free_set(queue, i)  # line 11
        else:
            kept -= 1
            change_places(queue, i, kept)
    close_gap(queue, i, kept)
    return queue


@uncounted
def change_places(queue: Queue, i: int, to: int) -> None:
    """A set moves up to this index."""
    if i != to:
        queue.sets[to] = queue.sets[i]


@uncounted
def close_gap(queue: Queue, begin: int, end: int) -> None:
    """Older sets close the gap that removed ones have left."""
    gap, facts = end - begin, queue.facts
    if gap:
        for i in range(begin - 1, facts[FIRST] - 1, -1):
            queue.sets[i + gap] = queue.sets[i]
        facts[FIRST] += gap


@part
def expire_queue(queue: Queue, low: int) -> Queue:
    """Lines 14 to 16, as a loop; and D expires."""
    facts = queue.facts
    while facts[FIRST] < facts[END] and queue.sets[facts[FIRST]]["stamp"] <= low:
        free_set(queue, facts[FIRST])
        facts[FIRST] += 1
    if facts[FIRST] == facts[END] and facts[LOW] < low:  # else D is newer than the oldest tuple of a set
        leave_valid(queue, FRESH, low)
    facts[LOW] = max(facts[LOW], low)
    return queue


@part
def ranking_csq(queue: Queue, low: int) -> tuple[Queue, int]:
    """The run of the oldest set that is valid, or of what is valid of D."""
    i = oldest_valid(queue, low)
    if i < queue.facts[END]:
        return queue, queue.sets[i]["run"]
    queue = copied(queue, SPARE, FRESH, queue.lists.runs[FRESH]["size"])
    leave_valid(queue, SPARE, low)
    return queue, SPARE


@kernel
def take_csq(stored: Stored, held: Held, batch: Batch, rules: Rules, v: int) -> Returned:
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
            queue = insert_csq(queue)
        elif op == READ:
            queue, r = ranking_csq(queue, held.loop[0]["reading"])
            held = report(held, queue, r)
