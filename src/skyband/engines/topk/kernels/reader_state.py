"""The state of readers as their kernels see it: many queries of one scoring, and the runs that they read.

A run is the k-skyband of the largest k over the longest window. Of its answer a query knows the last member, how many
there are and a stamp below which none is: a member is an object down to the last one whose stamp is not below that.
Queries stand in the order of k/n, 32 to a page; a page knows the lowest key that would enter one of its answers, and
the first instant at which one of its members leaves. So an event visits only pages that it may touch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.state import Ints, Report
from skyband.kernels.compile import close, part, uncounted
from skyband.kernels.records import NEVER, OBJECT, Records, make_room, move_run, reserve

PAGE = 32  # queries
NOTHING = -(2**62)  # a stamp below all others
LOWEST = 2**52 - 1 - 2**63  # the level of the lowest key
READER = np.dtype([("k", "i8"), ("length", "i8"), ("place", "i8")], align=True)  # place: among the engine's queries
READING = np.dtype(
    [
        ("key", "f8"),  # of the last member; -inf: there are fewer than k
        ("stamp", "i8"),
        ("serial", "i8"),
        ("oldest", "i8"),  # no member is older
        ("held", "i8"),
    ],
    align=True,
)
SUMMARY = np.dtype([("floor", "i8"), ("due", "i8")], align=True)  # of a group, then of each page
READ_CHANGE = np.dtype(
    [
        ("key", "f8"),
        ("stamp", "i8"),
        ("serial", "i8"),
        ("instant", "i8"),
        ("row", "i8"),
        ("visit", "i4"),
        ("query", "i4"),
        ("diff", "i1"),
        ("first", "i1"),
    ],
    align=True,
)  # as CHANGE, for more queries


class Readers(NamedTuple):
    """Runs of all groups, and the queries that read them."""

    objects: Records  # the arena; `shown` is an object's row of marks, 0: none
    stamps: Ints  # of the objects, beside them: a processor compares many at once
    groups: Records
    readings: Records  # one per group and query, group by group
    floors: Ints  # beside them: the key that an arrival must reach, as a number (`level`)
    dues: Ints  # and when the oldest member leaves; NEVER: there is none
    pages: Records  # one per group and page, behind one of the whole group
    readers: Records
    marks: NDArray[np.uint8]  # bit q of a row: has been in an emitted answer of query q
    tally: Ints  # [places of the arena in use, changes written, rows of marks in use, short queries, copies in use]
    scratch: Scratch


class Scratch(NamedTuple):
    """What kernels need within a step or a visit."""

    arriving: Records  # one object: the arrival
    done: Ints  # per query: the last arrival that was offered to it
    short: Ints  # queries that lack a member in this step
    edges: Ints  # and one past the last member that each had
    touched: NDArray[np.bool_]  # queries whose net changes are to be found, by their places
    inner: Ints  # of each place, the query
    copies: Ints  # per group of a net batch: where its run as it was begins, and its size; two entries each
    picked: Ints  # objects that enter in one step


class Moves(NamedTuple):
    """A run before and after."""

    stamps: Ints  # of the objects before
    to: Ints  # where each of them is now; NEVER: it is gone
    came: Ints  # of the objects now, where each was; NEVER: it is new


@part
def new_moves(size: int) -> Moves:
    return Moves(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64))


@part
def with_room(state: Readers, g: int, more: int) -> Readers:
    """The state with at least `more` free places on both sides of one group's run."""
    objects, stamps = make_room(state.objects, state.groups, g, state.tally, more), state.stamps
    if len(stamps) == len(objects):
        copy_stamps(stamps, objects, state.groups, g)
    else:
        stamps = np.empty(len(objects), np.int64)
        for other in range(len(state.groups)):
            copy_stamps(stamps, objects, state.groups, other)
    return Readers(
        objects,
        stamps,
        state.groups,
        state.readings,
        state.floors,
        state.dues,
        state.pages,
        state.readers,
        state.marks,
        state.tally,
        state.scratch,
    )


@uncounted
def copy_stamps(stamps: Ints, objects: Records, groups: Records, g: int) -> None:
    for i in range(groups[g]["head"], groups[g]["head"] + groups[g]["size"]):
        stamps[i] = objects[i]["stamp"]


@uncounted
def move_stamps(stamps: Ints, head: int, p: int, size: int) -> None:
    """Make a place at rank p, on the side on which `insert` makes it."""
    if size - p <= p:
        for i in range(head + size, head + p, -1):
            stamps[i] = stamps[i - 1]
    else:
        for i in range(head - 1, head - 1 + p):
            stamps[i] = stamps[i + 1]


@part
def with_rows(state: Readers, more: int) -> Readers:
    """The state with so many free rows of marks: those of objects that are gone are free."""
    objects, groups, arriving = state.objects, state.groups, state.scratch.arriving
    live = 1
    for g in range(len(groups)):
        for i in range(groups[g]["head"], groups[g]["head"] + groups[g]["size"]):
            live += objects[i]["shown"] > 0
    width = state.marks.shape[1]
    marks = np.zeros((2 * live + more + 64, width), np.uint8)
    row = 1
    for g in range(len(groups)):
        for i in range(groups[g]["head"], groups[g]["head"] + groups[g]["size"]):
            if objects[i]["shown"] > 0:
                move_marks(state.marks, objects[i]["shown"], marks, row)
                objects[i]["shown"] = row
                row += 1
    if arriving[0]["shown"] > 0:
        move_marks(state.marks, arriving[0]["shown"], marks, row)
        arriving[0]["shown"] = row
        row += 1
    state.tally[2] = row
    return Readers(
        objects,
        state.stamps,
        groups,
        state.readings,
        state.floors,
        state.dues,
        state.pages,
        state.readers,
        marks,
        state.tally,
        state.scratch,
    )


@close
def move_marks(source: NDArray[np.uint8], row: int, target: NDArray[np.uint8], to: int) -> None:
    for j in range(source.shape[1]):
        target[to, j] = source[row, j]


@part
def with_more(report: Report, more: int) -> Report:
    """The report with capacity for so many more changes."""
    changes = report.changes
    if report.tally[1] + more > len(changes):
        changes = reserve(changes, report.tally, more)
    return Report(
        changes, report.tally, report.step, report.alive, report.serial, report.joint, report.net, report.more
    )


@part
def with_copy(copies: Records, state: Readers, g: int) -> Records:
    """Remember a group's run as it is when a net batch begins."""
    groups, size, tally = state.groups, state.groups[g]["size"], state.tally
    if tally[4] + size > len(copies):
        larger = np.empty(2 * (tally[4] + size), OBJECT)
        move_run(copies, 0, larger, 0, tally[4])
        copies = larger
    move_run(state.objects, groups[g]["head"], copies, tally[4], size)
    state.scratch.copies[2 * g] = tally[4]
    state.scratch.copies[2 * g + 1] = size
    tally[4] += size
    return copies


@close
def lacks(state: Readers, report: Report, k: int) -> bool:
    """Whether there may be too few places for the changes of one query in one step."""
    return bool(report.tally[1] + 2 * k + 2 > len(report.changes) or state.tally[2] + k + 2 > len(state.marks))


@close
def enters(state: Readers, report: Report, objects: Records, i: int, place: int) -> None:
    """Object i enters the answer of the query with this place."""
    row, byte, bit = np.int64(objects[i]["shown"]), place >> 3, np.uint8(1 << (place & 7))
    if row == 0:
        row = state.tally[2]
        state.tally[2] = row + 1
        objects[i]["shown"] = row
    n = report.tally[1]
    put(report, objects, i, place, 1)
    report.changes[n]["first"] = (state.marks[row, byte] & bit) == 0
    state.marks[row, byte] |= bit


@close
def put(report: Report, objects: Records, i: int, place: int, diff: int) -> None:
    """Report that object i enters or leaves an answer in this step, not for the first time."""
    changes, n = report.changes, report.tally[1]
    changes[n]["key"] = objects[i]["key"]
    changes[n]["stamp"] = objects[i]["stamp"]
    changes[n]["serial"] = objects[i]["serial"]
    changes[n]["instant"] = report.step[0]["instant"]
    changes[n]["row"] = report.step[0]["row"]
    changes[n]["visit"] = report.step[0]["visit"]
    changes[n]["query"] = place
    changes[n]["diff"] = diff
    changes[n]["first"] = 0
    report.tally[1] = n + 1


@close
def set_last(readings: Records, v: int, objects: Records, i: int) -> None:
    """Object i is the last member of an answer that is full."""
    readings[v]["key"] = objects[i]["key"]
    readings[v]["stamp"] = objects[i]["stamp"]
    readings[v]["serial"] = objects[i]["serial"]


@close
def set_open(readings: Records, v: int) -> None:
    """An answer is not full: whatever is valid is a member."""
    readings[v]["key"] = -np.inf
    readings[v]["stamp"] = NOTHING
    readings[v]["serial"] = -1


@uncounted
def edge_of(objects: Records, head: int, size: int, readings: Records, v: int) -> int:
    """How many objects of a run rank as high as the last member of an answer, or higher; all, if it is not full."""
    key, stamp, serial = readings[v]["key"], readings[v]["stamp"], readings[v]["serial"]
    low, high = size if serial < 0 else 0, size
    while low < high:
        middle = (low + high) // 2
        one = objects[head + middle]
        if one["key"] > key or (
            one["key"] == key and (one["stamp"] > stamp or (one["stamp"] == stamp and one["serial"] >= serial))
        ):
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def oldest_from(stamps: Ints, begin: int, end: int, least: int) -> int:
    """The smallest stamp that is not below `least`; NEVER: there is none."""
    oldest = NEVER
    for i in range(np.uint64(begin), np.uint64(end)):  # an index that may be negative would be tested for it each time
        oldest = min(oldest, stamps[i] if stamps[i] >= least else NEVER)
    return oldest


@uncounted
def next_stamp(stamps: Ints, i: int, end: int, stamp: int) -> int:
    """The next object with this stamp: 64 at a time, which compiles to a few instructions."""
    while i + 64 <= end:
        found = 0
        for j in range(np.uint64(i), np.uint64(i + 64)):
            found += stamps[j] == stamp
        if found:
            break
        i += 64
    while i < end and stamps[i] != stamp:
        i += 1
    return i


@close
def level(key: float) -> int:
    """A key as an integer that ranks as it does: a processor finds the smallest of many at once."""
    bits = np.float64(key + 0.0).view(np.int64)  # the two zeros are one
    return int(bits ^ ((bits >> 63) & NEVER))


@close
def note(state: Readers, g: int, q: int) -> None:
    """A reading has changed."""
    v, oldest = g * len(state.readers) + q, state.readings[g * len(state.readers) + q]["oldest"]
    state.floors[v] = level(state.readings[v]["key"])
    state.dues[v] = oldest + state.readers[q]["length"] if oldest < NEVER else NEVER


@uncounted
def sum_page(state: Readers, g: int, b: int) -> None:
    """Find a page's floor and its next instant anew."""
    floors, dues, Q, floor, due = state.floors, state.dues, len(state.readers), NEVER, NEVER
    for v in range(np.uint64(g * Q + b * PAGE), np.uint64(g * Q + min(Q, (b + 1) * PAGE))):
        floor = min(floor, floors[v])
        due = min(due, dues[v])
    page = g * page_count(Q) + 1 + b
    state.pages[page]["floor"] = floor
    state.pages[page]["due"] = due


@uncounted
def sum_group(state: Readers, g: int, longest: int) -> None:
    """The same of a whole group, and when it must be visited."""
    pages, groups, P = state.pages, state.groups, page_count(len(state.readers))
    floor, due = NEVER, NEVER
    for page in range(g * P + 1, g * P + P):
        floor = min(floor, pages[page]["floor"])
        due = min(due, pages[page]["due"])
    pages[g * P]["floor"] = floor
    pages[g * P]["due"] = due
    if groups[g]["oldest"] < NEVER:
        due = min(due, groups[g]["oldest"] + longest)
    groups[g]["due"] = due


@close
def page_count(Q: int) -> int:
    """The summaries of a group: its own, and one of each page."""
    return 1 + (Q + PAGE - 1) // PAGE
