"""The compact sets of one group's window, in runs of one arena: what the kernels of jin2008's queues work on.

Tuples of a set stand in order of rank, sets in order of age. Parts that may need more memory return the queue with its
arrays; all others change it in place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.uncertain.kernels.prefix import EACH, ENOUGH, PASSED, PT, SHARE, new_walk, walk
from skyband.engines.uncertain.kernels.records import TUPLE, Arena, Ints, Records, Rules, Walk, grown, shift
from skyband.kernels.compile import close, part, uncounted

SET = np.dtype(
    [
        ("run", "i8"),  # of its tuples; CCSQ: of the tuple that it has and the next newer set has not, and the reverse
        ("between", "i8"),  # SCSQ: the run of Lambda, in no order
        ("stamp", "i8"),  # of its oldest tuple, where its suffix begins
        ("serial", "i8"),
    ],
    align=True,
)
FRESH, CURRENT, SPARE, OTHER, THIRD, RUNS = 0, 1, 2, 3, 4, 5  # D or B; C(S_W) of SCSQ; runs to work in; how many
# facts: sets stand from FIRST up to END; free runs, tuples that the buffer held when it could not be emptied, tuples
# that walks have passed, the largest stamp that has expired
FIRST, END, FREE, WAIT, WORK, LOW, FACTS = 0, 1, 2, 3, 4, 5, 6


class Stored(NamedTuple):
    """The synopsis of one group between two pushes."""

    lists: Arena  # runs of tuples
    sets: Records  # SET, oldest first
    free: Ints  # runs to use again
    facts: Ints


class Queue(NamedTuple):
    """The same within a push."""

    lists: Arena
    sets: Records
    free: Ints
    facts: Ints
    arrived: Records  # [the tuple that is to be inserted]
    walk: Walk
    rules: Rules


@part
def opened(stored: Stored, rules: Rules) -> Queue:
    return Queue(
        stored.lists, stored.sets, stored.free, stored.facts, np.zeros(1, TUPLE),
        new_walk(len(stored.lists.records), rules.k), rules,
    )  # fmt: skip


@part
def with_lists(queue: Queue, lists: Arena) -> Queue:
    """The queue with a larger arena, and walks that are long enough for any of its runs."""
    found = queue.walk
    if len(found.at) < len(lists.records):
        found = new_walk(len(lists.records), queue.rules.k)
    return Queue(lists, queue.sets, queue.free, queue.facts, queue.arrived, found, queue.rules)


@part
def with_room(queue: Queue, r: int, more: int) -> Queue:
    """So many free places on both sides of a run."""
    run = queue.lists.runs[r]
    before = run["head"] - run["start"]
    if before >= more and run["room"] - before - run["size"] >= more:
        return queue
    return with_lists(queue, grown(queue.lists, r, more))


@part
def emptied(queue: Queue, r: int, size: int) -> Queue:
    """An empty run with free places for so many tuples from its head on."""
    run = queue.lists.runs[r]
    run["head"], run["size"] = run["start"], 0
    if run["room"] < size:
        queue = with_lists(queue, grown(queue.lists, r, size))
    run = queue.lists.runs[r]
    run["head"] = run["start"] + (run["room"] - size) // 2
    return queue


@part
def copied(queue: Queue, to: int, source: int, size: int) -> Queue:
    """The first tuples of a run, in another one."""
    queue = emptied(queue, to, size)
    records, begin, head = queue.lists.records, queue.lists.runs[source]["head"], queue.lists.runs[to]["head"]
    for j in range(size):
        records[head + j] = records[begin + j]
    queue.lists.runs[to]["size"] = size
    return queue


@close
def is_newer(one: Records, other: Records) -> bool:
    """Of tuples, and of sets by their oldest tuple."""
    if one["stamp"] != other["stamp"]:
        return bool(one["stamp"] > other["stamp"])
    return bool(one["serial"] > other["serial"])


@close
def is_above(one: Records, other: Records) -> bool:
    """Does it rank above: the better key, of equal keys the newer one?"""
    if one["key"] != other["key"]:
        return bool(one["key"] > other["key"])
    return is_newer(one, other)


@close
def is_above_last(queue: Queue, one: Records, r: int) -> bool:
    """Does it rank above the lowest tuple of a run?"""
    run = queue.lists.runs[r]
    return is_above(one, queue.lists.records[run["head"] + run["size"] - 1])


@close
def place_of(lists: Arena, r: int, one: Records) -> int:
    """How many tuples of a run rank above this one."""
    head, low, high = lists.runs[r]["head"], 0, lists.runs[r]["size"]
    while low < high:
        middle = (low + high) // 2
        if is_above(lists.records[head + middle], one):
            low = middle + 1
        else:
            high = middle
    return low


@close
def has(lists: Arena, r: int, one: Records) -> bool:
    """Is the tuple in this run?"""
    at, run = place_of(lists, r, one), lists.runs[r]
    return bool(at < run["size"] and lists.records[run["head"] + at]["serial"] == one["serial"])


@close
def open_place(lists: Arena, r: int, at: int) -> int:
    """Make a place in a run that has free ones; returns where it is."""
    run, records = lists.runs[r], lists.records
    head, size = run["head"], run["size"]
    run["size"] = size + 1
    if 2 * at < size:
        run["head"] = head - 1
        shift(records, head, head - 1, at)
        return int(head - 1 + at)
    shift(records, head + at, head + at + 1, size - at)
    return int(head + at)


@close
def close_place(lists: Arena, r: int, at: int) -> None:
    """Remove a tuple."""
    run, records = lists.runs[r], lists.records
    head, size = run["head"], run["size"]
    run["size"] = size - 1
    if 2 * at < size:
        run["head"] = head + 1
        shift(records, head, head + 1, at)
    else:
        shift(records, head + at + 1, head + at, size - at - 1)


@part
def put(queue: Queue, r: int) -> Queue:
    """The arrived tuple takes its place by rank."""
    queue = with_room(queue, r, 1)
    at = open_place(queue.lists, r, place_of(queue.lists, r, queue.arrived[0]))
    queue.lists.records[at] = queue.arrived[0]
    return queue


@uncounted
def walk_run(queue: Queue, r: int, first: int, guess: int, share: int) -> int:
    """The tuples of a run that a walk passes until they are enough; 0: they are not."""
    run, rules, threshold = queue.lists.runs[r], queue.rules, queue.rules.queries[0]["threshold"]
    if run["size"] < (1 if rules.semantics == PT and threshold > 0 else rules.k):
        return 0
    walk(
        queue.lists.records, run["head"], run["size"], first, rules.k, rules.semantics, threshold, guess, share,
        queue.walk,
    )  # fmt: skip
    queue.facts[WORK] += queue.walk.result[PASSED]
    return int(queue.walk.result[PASSED]) if queue.walk.result[ENOUGH] else 0


@uncounted
def compact(queue: Queue, r: int) -> int:
    """The size of C(D) of the tuples of a run; 0: they admit none (Definition 3.1)."""
    size = admits(queue, r, -1)
    return shortest(queue, r, size - size // SHARE - 1) if size else 0


@uncounted
def admits(queue: Queue, r: int, first: int) -> int:
    """Do those with this mark or a larger one admit a compact set: tuples of the run that have it among them, or 0."""
    return walk_run(queue, r, first, 0, SHARE)


@uncounted
def shortest(queue: Queue, r: int, guess: int) -> int:
    """The size of C(D), probably not below `guess`: that is tested first, since a test takes longer than a step."""
    size = walk_run(queue, r, -1, guess, EACH)
    return walk_run(queue, r, -1, 0, EACH) if size and size <= max(guess, queue.rules.k) else size


@uncounted
def oldest_of(queue: Queue, r: int) -> int:
    """The place of the oldest tuple of a run."""
    run, records = queue.lists.runs[r], queue.lists.records
    found = run["head"]
    for j in range(run["head"] + 1, run["head"] + run["size"]):
        if is_newer(records[found], records[j]):
            found = j
    return int(found)


@uncounted
def set_begin(queue: Queue, i: int, r: int) -> None:
    """Where the suffix of a set begins: at the oldest tuple of this run."""
    oldest = queue.lists.records[oldest_of(queue, r)]
    queue.sets[i]["stamp"], queue.sets[i]["serial"] = oldest["stamp"], oldest["serial"]


@uncounted
def leave_newer(queue: Queue, r: int, than: Records) -> None:
    """Remove tuples that are not newer (line 6 of Algorithm 1)."""
    run, records = queue.lists.runs[r], queue.lists.records
    to = run["head"]
    for j in range(run["head"], run["head"] + run["size"]):
        if is_newer(records[j], than):
            records[to] = records[j]
            to += 1
    run["size"] = to - run["head"]


@uncounted
def leave_valid(queue: Queue, r: int, low: int) -> None:
    """Remove tuples with this stamp or an older one."""
    run, records = queue.lists.runs[r], queue.lists.records
    to = run["head"]
    for j in range(run["head"], run["head"] + run["size"]):
        if records[j]["stamp"] > low:
            records[to] = records[j]
            to += 1
    run["size"] = to - run["head"]


@uncounted
def older_sets(queue: Queue) -> int:
    """The sets before this index begin at older tuples than the arrived one."""
    facts, older = queue.facts, queue.facts[END]
    while older > facts[FIRST] and not is_newer(queue.arrived[0], queue.sets[older - 1]):
        older -= 1
    return int(older)


@uncounted
def oldest_valid(queue: Queue, low: int) -> int:
    """The index of the oldest set all of whose tuples are valid."""
    begin, end = queue.facts[FIRST], queue.facts[END]
    while begin < end:
        middle = (begin + end) // 2
        if queue.sets[middle]["stamp"] <= low:
            begin = middle + 1
        else:
            end = middle
    return int(begin)


@uncounted
def free_run(queue: Queue, r: int) -> None:
    queue.lists.runs[r]["size"] = 0
    queue.lists.runs[r]["head"] = queue.lists.runs[r]["start"]
    queue.free[queue.facts[FREE]] = r
    queue.facts[FREE] += 1


@uncounted
def free_set(queue: Queue, i: int) -> None:
    """Give back the runs of a set."""
    free_run(queue, queue.sets[i]["run"])
    free_run(queue, queue.sets[i]["between"])


@part
def with_set(queue: Queue, at: int, source: int, size: int) -> Queue:
    """A new set at this index: the first tuples of a run."""
    facts, sets = queue.facts, queue.sets
    if facts[END] == len(sets) or facts[FREE] < 2:
        queue = with_sets(queue)
        at -= facts[FIRST]
        facts[END] -= facts[FIRST]
        facts[FIRST] = 0
        sets = queue.sets
    for i in range(facts[END], at, -1):
        sets[i] = sets[i - 1]
    facts[END] += 1
    facts[FREE] -= 2
    sets[at]["run"], sets[at]["between"] = queue.free[facts[FREE]], queue.free[facts[FREE] + 1]
    queue = copied(queue, sets[at]["run"], source, size)
    set_begin(queue, at, sets[at]["run"])
    return queue


@part
def with_sets(queue: Queue) -> Queue:
    """Capacity for as many sets again, which stand from 0 on; new runs are free."""
    facts, lists, many = queue.facts, queue.lists, queue.facts[END] - queue.facts[FIRST]
    sets = np.zeros(2 * many + 8, SET)
    for i in range(many):
        sets[i] = queue.sets[facts[FIRST] + i]
    had = len(lists.runs)
    runs = np.zeros(RUNS + 2 * len(sets), lists.runs.dtype)
    free = np.zeros(len(runs), np.int64)
    if len(runs) <= had:  # all that are needed are there
        return Queue(lists, sets, queue.free, facts, queue.arrived, queue.walk, queue.rules)
    for r in range(had):
        runs[r] = lists.runs[r]
    for j in range(facts[FREE]):
        free[j] = queue.free[j]
    for r in range(had, len(runs)):
        free[facts[FREE]] = r
        facts[FREE] += 1
    return Queue(Arena(lists.records, runs, lists.used), sets, free, facts, queue.arrived, queue.walk, queue.rules)


@part
def ranked_in(queue: Queue, r: int) -> Queue:
    """Sort the tuples of a run by rank, each once (a merge sort from the bottom; THIRD is used)."""
    size = queue.lists.runs[r]["size"]
    queue = emptied(queue, THIRD, size)
    records, head, other = queue.lists.records, queue.lists.runs[r]["head"], queue.lists.runs[THIRD]["head"]
    source, to, width = head, other, 1
    while width < size:
        for begin in range(0, size, 2 * width):
            a, b = begin, min(begin + width, size)
            middle, end = b, min(begin + 2 * width, size)
            for j in range(begin, end):
                if b == end or (a < middle and not is_above(records[source + b], records[source + a])):
                    records[to + j] = records[source + a]
                    a += 1
                else:
                    records[to + j] = records[source + b]
                    b += 1
        source, to, width = to, source, 2 * width
    many = 0
    for j in range(size):
        if j == 0 or records[source + j]["serial"] != records[head + many - 1]["serial"]:
            records[head + many] = records[source + j]
            many += 1
    queue.lists.runs[r]["size"] = many
    return queue


@uncounted
def maintain(queue: Queue, r: int) -> None:
    """Leave C(D) of a compact set and one tuple more, which has one (Theorem 3.2)."""
    size = shortest(queue, r, queue.lists.runs[r]["size"] - 2)
    if size:  # else the last bits of floats have decided otherwise: nothing is lost
        queue.lists.runs[r]["size"] = size
