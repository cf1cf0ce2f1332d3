"""SCSQ of jin2008 (4.3): segments, each a compact set C(S_l) and Lambda, what sets of older suffixes may need.

engines/uncertain/scsq.py has the errata.
"""

from __future__ import annotations

from skyband.engines.uncertain.kernels.csq import close_gap
from skyband.engines.uncertain.kernels.queue import (
    CURRENT,
    END,
    FIRST,
    FRESH,
    LOW,
    SPARE,
    Queue,
    Stored,
    compact,
    copied,
    emptied,
    free_set,
    has,
    is_above_last,
    is_newer,
    leave_newer,
    leave_valid,
    maintain,
    older_sets,
    opened,
    put,
    ranked_in,
    set_begin,
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
from skyband.engines.uncertain.kernels.records import Batch, Records, Rules
from skyband.kernels.compile import kernel, part, uncounted


@uncounted
def largest(queue: Queue) -> int:
    """H."""
    found, facts = 0, queue.facts
    for i in range(facts[FIRST], facts[END]):
        found = max(found, queue.lists.runs[queue.sets[i]["run"]]["size"])
    return found if found else queue.rules.k


@uncounted
def leave_above(queue: Queue, i: int) -> None:
    """What ranks below the lowest of its set leaves Lambda."""
    r, between = queue.sets[i]["run"], queue.sets[i]["between"]
    run, records = queue.lists.runs[between], queue.lists.records
    to = run["head"]
    for j in range(run["head"], run["head"] + run["size"]):
        if is_above_last(queue, records[j], r):
            records[to] = records[j]
            to += 1
    run["size"] = to - run["head"]


@part
def change(queue: Queue, end: int) -> Queue:
    """The arrived tuple changes the sets of segments before this index."""
    for i in range(queue.facts[FIRST], end):
        r = queue.sets[i]["run"]
        if is_above_last(queue, queue.arrived[0], r):
            queue = put(queue, r)
            maintain(queue, r)
            set_begin(queue, i, r)
            leave_above(queue, i)
    return queue


@part
def with_tuple(queue: Queue, r: int, one: Records) -> Queue:
    """One tuple more at the end of a run in no order."""
    queue.arrived[0] = one
    queue = with_room(queue, r, 1)
    run = queue.lists.runs[r]
    queue.lists.records[run["head"] + run["size"]] = queue.arrived[0]
    run["size"] += 1
    return queue


@part
def insert_late(queue: Queue) -> Queue:
    """A late tuple belongs to the suffixes that reach back to it."""
    older = older_sets(queue)
    if is_above_last(queue, queue.arrived[0], queue.sets[older]["run"]):
        queue = with_tuple(queue, queue.sets[older]["between"], queue.arrived[0])
    return change(queue, older)


@uncounted
def equal_sets(queue: Queue, i: int, j: int) -> bool:
    a, b, records = queue.lists.runs[queue.sets[i]["run"]], queue.lists.runs[queue.sets[j]["run"]], queue.lists.records
    if a["size"] != b["size"]:
        return False
    n = 0
    while n < a["size"] and records[a["head"] + n]["serial"] == records[b["head"] + n]["serial"]:
        n += 1
    return bool(n == a["size"])


@uncounted
def absorb(queue: Queue, i: int) -> None:
    """Lambda takes what it needs of the next older segment, which is removed; there are free places."""
    one, other, lists = queue.sets[i], queue.sets[i - 1], queue.lists
    records, run = lists.records, lists.runs[one["between"]]
    head, had = run["head"], run["size"]
    for r in (other["between"], other["run"]):
        begin, size = lists.runs[r]["head"], lists.runs[r]["size"]
        for j in range(begin, begin + size):
            if is_above_last(queue, records[j], one["run"]) and not has(lists, one["run"], records[j]):
                known = False
                for n in range(head, head + had):
                    known |= records[n]["serial"] == records[j]["serial"]
                if not known:
                    records[head + run["size"]] = records[j]
                    run["size"] += 1
    free_set(queue, i - 1)
    close_gap(queue, i - 1, i)


@part
def merged(queue: Queue) -> Queue:
    """Neighbours with equal sets become one segment, then those whose Lambdas have fewer than H tuples together (7)."""
    facts, H = queue.facts, largest(queue)
    for unequal in range(2):
        i = facts[END] - 1
        while i > facts[FIRST]:
            runs, one, other = queue.lists.runs, queue.sets[i], queue.sets[i - 1]
            between = runs[other["between"]]["size"]
            if unequal:
                joins = runs[one["between"]]["size"] + between < H
            else:
                joins = equal_sets(queue, i, i - 1)
            if joins:
                queue = with_room(queue, one["between"], between + runs[other["run"]]["size"])
                absorb(queue, i)
            else:
                i -= 1
    return queue


@part
def supplied(queue: Queue, buffered: bool) -> Queue:
    """C(S_W) from the oldest segment, and from what is newer than all if that waits or is all that there is."""
    facts = queue.facts
    queue = emptied(queue, SPARE, 0)
    if facts[FIRST] < facts[END]:
        oldest = queue.sets[facts[FIRST]]
        queue = with_run(queue, SPARE, oldest["run"], facts[LOW])
        queue = with_run(queue, SPARE, oldest["between"], facts[LOW])
    if buffered or facts[FIRST] == facts[END]:
        queue = with_run(queue, SPARE, FRESH, facts[LOW])
    queue = ranked_in(queue, SPARE)
    return copied(queue, CURRENT, SPARE, compact(queue, SPARE))


@part
def with_run(queue: Queue, to: int, r: int, low: int) -> Queue:
    """What is valid of a run, at the end of another one too."""
    size = queue.lists.runs[r]["size"]
    queue = with_room(queue, to, size)
    records, begin, run = queue.lists.records, queue.lists.runs[r]["head"], queue.lists.runs[to]
    for j in range(begin, begin + size):
        if records[j]["stamp"] > low:
            records[run["head"] + run["size"]] = records[j]
            run["size"] += 1
    return queue


@part
def renewed(queue: Queue, buffered: bool) -> Queue:
    """C(S_W) follows the arrived tuple."""
    facts = queue.facts
    if not queue.lists.runs[CURRENT]["size"]:
        return supplied(queue, buffered) if buffered or facts[FIRST] < facts[END] else queue
    if is_above_last(queue, queue.arrived[0], CURRENT):
        queue = put(queue, CURRENT)
        maintain(queue, CURRENT)
    return queue


@part
def insert_scsq(queue: Queue) -> Queue:
    """An arrival changes all segments, and may begin one."""
    facts = queue.facts
    t = queue.arrived.copy()
    if facts[FIRST] == facts[END] or is_newer(t[0], queue.sets[facts[END] - 1]):
        queue = change(put(queue, FRESH), facts[END])
        size = compact(queue, FRESH)
        while size:
            queue = with_set(queue, facts[END], FRESH, size)
            leave_newer(queue, FRESH, queue.sets[facts[END] - 1])
            size = compact(queue, FRESH)
    else:
        queue = insert_late(queue)
    queue = merged(queue)
    queue.arrived[0] = t[0]
    return renewed(queue, False)


@part
def expire_scsq(queue: Queue, low: int, buffered: bool) -> Queue:
    """Segments, tuples between and tuples newer than all expire; C(S_W) is built again if one of its tuples does."""
    facts, runs, records = queue.facts, queue.lists.runs, queue.lists.records
    if low <= facts[LOW]:
        return queue
    facts[LOW] = low
    while facts[FIRST] < facts[END] and queue.sets[facts[FIRST]]["stamp"] <= low:
        free_set(queue, facts[FIRST])
        facts[FIRST] += 1
    if facts[FIRST] < facts[END]:  # all that is newer than its set is valid
        leave_valid(queue, queue.sets[facts[FIRST]]["between"], low)
    else:
        leave_valid(queue, FRESH, low)
    head, valid = runs[CURRENT]["head"], True
    for j in range(head, head + runs[CURRENT]["size"]):
        valid &= records[j]["stamp"] > low
    return queue if valid else supplied(queue, buffered)


@part
def ranking_scsq(queue: Queue, low: int) -> tuple[Queue, int]:
    """C(S_W) if it is valid; for a shorter window, all that is."""
    facts, run, valid = queue.facts, queue.lists.runs[CURRENT], True
    for j in range(run["head"], run["head"] + run["size"]):
        valid &= queue.lists.records[j]["stamp"] > low
    if run["size"] and valid:
        return queue, CURRENT
    queue = with_run(emptied(queue, SPARE, 0), SPARE, FRESH, low)
    for i in range(facts[FIRST], facts[END]):
        queue = with_run(queue, SPARE, queue.sets[i]["run"], low)
        queue = with_run(queue, SPARE, queue.sets[i]["between"], low)
    return ranked_in(with_run(queue, SPARE, CURRENT, low), SPARE), SPARE


@kernel
def take_scsq(stored: Stored, held: Held, batch: Batch, rules: Rules, v: int) -> Returned:
    """The arrivals of a visit."""
    queue = opened(stored, rules)
    while True:
        op = advance(held, batch, rules, v, queue.arrived)
        if op == MORE:
            continue
        queue = expire_scsq(queue, held.loop[0]["low"], False)
        if op == DONE:
            return returned(queue, held)
        if op == ARRIVE:
            queue = insert_scsq(queue)
        elif op == READ:
            queue, r = ranking_scsq(queue, held.loop[0]["reading"])
            held = report(held, queue, r)
