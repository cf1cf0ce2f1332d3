"""SCSQ-Buffer of jin2008 (Algorithm 2): the newest tuples wait in a buffer, and change the segments at once.

The buffer B is the run FRESH, here in order of age. Lines are the paper's; engines/uncertain/scsq_buffer.py has its
errata.
"""

from __future__ import annotations

from skyband.engines.uncertain.kernels.queue import (
    CURRENT,
    END,
    FIRST,
    FRESH,
    OTHER,
    SPARE,
    WAIT,
    Queue,
    Stored,
    admits,
    compact,
    copied,
    emptied,
    has,
    is_above_last,
    is_newer,
    open_place,
    opened,
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
    TIME,
    Held,
    Returned,
    advance,
    report,
    returned,
)
from skyband.engines.uncertain.kernels.records import Batch, Rules, write_tuple
from skyband.engines.uncertain.kernels.scsq import (
    expire_scsq,
    insert_late,
    largest,
    leave_above,
    merged,
    ranking_scsq,
    renewed,
    with_run,
    with_tuple,
)
from skyband.kernels.compile import kernel, part, uncounted
from skyband.kernels.records import NEVER


@part
def insert_buffer(queue: Queue) -> Queue:
    """An arrival waits in the buffer, and changes C(S_W)."""
    facts, t = queue.facts, queue.arrived.copy()
    if facts[FIRST] < facts[END] and not is_newer(t[0], queue.sets[facts[END] - 1]):
        queue = merged(insert_late(queue))
    else:
        queue = with_room(queue, FRESH, 1)  # line 3
        run, records = queue.lists.runs[FRESH], queue.lists.records
        at = run["size"]
        while at and is_newer(records[run["head"] + at - 1], t[0]):
            at -= 1
        to = open_place(queue.lists, FRESH, at)
        records[to] = t[0]
        if run["size"] >= limit(queue):  # line 4
            queue = update(queue)
    queue.arrived[0] = t[0]
    return renewed(queue, True)


@uncounted
def limit(queue: Queue) -> int:
    """The size of a full buffer: k H, or twice the size at which it admitted no compact set."""
    return int(max(queue.rules.k * largest(queue), 2 * queue.facts[WAIT]))


@part
def update(queue: Queue) -> Queue:
    """Update the segments by the buffer, and build those of its own (lines 5 to 8)."""
    facts, size = queue.facts, queue.lists.runs[FRESH]["size"]
    queue = copied(queue, SPARE, FRESH, size)
    head = queue.lists.runs[SPARE]["head"]
    for j in range(size):
        queue.lists.records[head + j]["mark"] = j  # by age
    queue = ranked_in(queue, SPARE)
    low, high = 0, size + 1  # the newest `low` admit no compact set, the newest `high` do
    while high - low > 1:  # line 5
        middle = (low + high) // 2
        if middle <= size and admits(queue, SPARE, size - middle):
            high = middle
        else:
            low = middle
    if high > size:
        facts[WAIT] = size
        return queue
    facts[WAIT] = 0
    for i in range(facts[FIRST], facts[END]):  # line 7
        queue = change_at_once(queue, i)
    queue = build(queue, size - high)  # line 6
    leave_last(queue, high - 1)  # line 8: B_(i-1) stays
    return merged(queue)


@part
def change_at_once(queue: Queue, i: int) -> Queue:
    """All tuples of the buffer (SPARE, by rank) change the set of a segment; none enters twice."""
    r = queue.sets[i]["run"]
    waiting = queue.lists.runs[SPARE]["size"]
    queue = emptied(queue, OTHER, waiting)
    lists, records, run = queue.lists, queue.lists.records, queue.lists.runs[OTHER]
    head, many = lists.runs[SPARE]["head"], 0
    for j in range(head, head + waiting):
        if not is_above_last(queue, records[j], r):
            break
        if not has(lists, r, records[j]):
            records[run["head"] + many] = records[j]
            many += 1
    if many:
        run["size"] = many
        queue = ranked_in(with_run(queue, OTHER, r, -NEVER), OTHER)
        size = compact(queue, OTHER)
        if size:  # by Theorem 3.2 (else floats decided otherwise: the old set and more stay)
            queue = copied(queue, r, OTHER, size)
        set_begin(queue, i, r)
        leave_above(queue, i)
    return queue


@part
def build(queue: Queue, rest: int) -> Queue:
    """Segments of the buffer's own tuples, but the newest; `rest` of them are older than the first one begins."""
    facts, H, built = queue.facts, largest(queue), 1
    passed = admits(queue, SPARE, rest)
    queue = emptied(queue, OTHER, passed)
    records, head, run = queue.lists.records, queue.lists.runs[SPARE]["head"], queue.lists.runs[OTHER]
    for j in range(head, head + passed):
        if records[j]["mark"] >= rest:
            records[run["head"] + run["size"]] = records[j]
            run["size"] += 1
    queue = with_set(queue, facts[END], OTHER, compact(queue, OTHER))
    for j in range(rest - 1, -1, -1):
        i = facts[END] - built
        t = queue.lists.records[queue.lists.runs[FRESH]["head"] + j]
        if is_above_last(queue, t, queue.sets[i]["run"]):
            queue = with_tuple(queue, queue.sets[i]["between"], t)
            if queue.lists.runs[queue.sets[i]["between"]]["size"] == H:
                queue = with_run(emptied(queue, OTHER, 0), OTHER, queue.sets[i]["run"], -NEVER)
                queue = ranked_in(with_run(queue, OTHER, queue.sets[i]["between"], -NEVER), OTHER)
                queue = with_set(queue, i, OTHER, max(compact(queue, OTHER), 1))
                built += 1
    return queue


@uncounted
def leave_last(queue: Queue, many: int) -> None:
    """Leave the newest tuples of the buffer."""
    run = queue.lists.runs[FRESH]
    run["head"] += run["size"] - many
    run["size"] = many


@part
def waiting(queue: Queue, held: Held, batch: Batch, rules: Rules, v: int) -> Queue:
    """Arrivals that touch no answer join the buffer, as many as there are up to one that does or fills it."""
    at, current = held.loop[0], queue.lists.runs[CURRENT]
    i, end = at["arrival"], batch.visits[v]["end"]
    if not at["started"] or at["stage"] != TIME or at["query"] or i == end or not current["size"]:
        return queue
    room = limit(queue) - 1 - queue.lists.runs[FRESH]["size"]
    if room <= 0:
        return queue
    floor, due = queue.lists.records[current["head"] + current["size"] - 1]["key"], NEVER
    for q in range(len(rules.queries)):
        floor = min(floor, held.views[q]["floor"])
        due = NEVER if rules.net else min(due, held.views[q]["due"])
    if batch.keys[i] >= floor or batch.now[i] >= due:
        return queue
    queue = with_room(queue, FRESH, room)
    write_waiting(queue, held, batch, min(i + room, end), floor, due)
    return queue


@uncounted
def write_waiting(queue: Queue, held: Held, batch: Batch, end: int, floor: float, due: int) -> None:
    """They are newer than all that wait; there are free places."""
    at, group, run, records = held.loop[0], held.group[0], queue.lists.runs[FRESH], queue.lists.records
    i, newest, to = at["arrival"], group["newest"], run["head"] + run["size"] - at["arrival"]
    while i < end and batch.keys[i] < floor and batch.now[i] < due and batch.stamps[i] >= newest:
        newest = batch.stamps[i]
        write_tuple(records, to + i, batch, i, 0)
        group["now"] = max(group["now"], batch.now[i])
        i += 1
    run["size"] += i - at["arrival"]
    group["newest"], at["arrival"] = newest, i


@kernel
def take_scsq_buffer(stored: Stored, held: Held, batch: Batch, rules: Rules, v: int) -> Returned:
    """The arrivals of a visit."""
    queue = opened(stored, rules)
    while True:
        queue = waiting(queue, held, batch, rules, v)
        op = advance(held, batch, rules, v, queue.arrived)
        if op == MORE:
            continue
        queue = expire_scsq(queue, held.loop[0]["low"], True)
        if op == DONE:
            return returned(queue, held)
        if op == ARRIVE:
            queue = insert_buffer(queue)
        elif op == READ:
            queue, r = ranking_scsq(queue, held.loop[0]["reading"])
            held = report(held, queue, r)
