"""Space-Saving summaries of panes, and the k objects with the largest totals over them (engines/groups/sketch.py).

Each pane has at most c counters in a heap, the smallest first, and a table of their objects. A row of an object without
a counter takes over the smallest one when all are in use: its count goes on, and what it was is the new one's error
(Metwally et al. 2005, Space-Saving). count - error is what the object is known to have in the pane; an object's total
is the sum of that over the panes that are live; what it had in a counter that it has lost goes at the end of the pane.

Cost: O(log c) for a row, and one comparison with the k-th total; O(panes · c) at the end of a pane.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, kernel, part, uncounted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Records = NDArray[Any]
COUNTER = np.dtype([("code", "i8"), ("count", "f8"), ("error", "f8"), ("serial", "i8"), ("place", "i8")], align=True)
PANE = np.dtype([("start", "i8"), ("size", "i8"), ("weight", "f8")], align=True)  # size 0: not in use
OBJECT = np.dtype(
    [
        ("total", "f8"),  # what it is known to have
        ("stamp", "i8"),  # of its newest row
        ("serial", "i8"),
        ("panes", "i8"),  # in which it has a counter
        ("inside", "i8"),  # 1: in the answer
        ("was", "i8"),  # 1: was in it when this batch began
        ("shown", "i8"),  # 1: has been reported
    ],
    align=True,
)
MOVE = np.dtype(
    [
        ("key", "f8"),
        ("serial", "i8"),
        ("instant", "i8"),
        ("row", "i8"),
        ("slot", "i8"),
        ("diff", "i1"),
        ("first", "i1"),
    ],
    align=True,
)
#: Facts: how many are in the answer; changes written; the next pane's start; the last row; the next arrival; of the
#: answers at the ends of panes, how many were surely right, and how many there were.
MEMBERS, WRITTEN, NEXT, ROW, AT, SURE, LOOKED = range(7)
UNSET = -(2**62)
FREE = -1


class Summary(NamedTuple):
    """The panes of a window, and its objects by their codes."""

    counters: Records  # by pane
    heaps: Ints  # by pane: its counters, the smallest at the root
    tables: Ints  # by pane: counters by object, open addressing
    panes: Records
    objects: Records
    members: Ints  # the codes of the answer, in no order
    floor: Floats  # no member's total is below it
    facts: Ints
    length: int  # of the window
    width: int  # of a pane


class Rows(NamedTuple):
    """Arrivals in order, and the clock after them."""

    codes: Ints
    weights: Floats  # empty: 1 each
    stamps: Ints
    now: Ints
    rows: Ints
    eligible: NDArray[np.bool_]  # empty: all are
    serial: int  # of row 0
    clock: int
    net: bool


@kernel
def take_rows(summary: Summary, rows: Rows, moves: Records) -> bool:
    """Take arrivals, and move time on to the clock; False: there is no capacity for more changes."""
    facts, k = summary.facts, len(summary.members)
    for i in range(facts[AT], len(rows.codes)):
        if facts[NEXT] == UNSET:
            facts[NEXT] = start_of(rows.now[i], summary.width) + summary.width
        while facts[NEXT] <= rows.now[i]:
            if facts[WRITTEN] + 2 * k > len(moves):
                facts[AT] = i
                return False
            end_pane(summary, rows, moves)
            if facts[MEMBERS] == 0 and facts[NEXT] <= rows.now[i]:  # nothing is left: skip the silence
                facts[NEXT] = start_of(rows.now[i], summary.width) + summary.width
        if facts[WRITTEN] + 2 > len(moves):
            facts[AT] = i
            return False
        facts[ROW] = rows.rows[i]
        weight = rows.weights[i] if len(rows.weights) else 1.0
        counts = weight > 0 and (len(rows.eligible) == 0 or rows.eligible[i])
        if counts and count(summary, rows.codes[i], weight, rows.stamps[i], rows.serial + rows.rows[i]):
            challenge(summary, rows, moves, rows.codes[i], rows.now[i], rows.rows[i])
    facts[AT] = len(rows.codes)
    while facts[NEXT] <= rows.clock and facts[NEXT] > UNSET:
        if facts[WRITTEN] + 2 * k > len(moves):
            return False
        end_pane(summary, rows, moves)
        if facts[MEMBERS] == 0:
            facts[NEXT] = max(facts[NEXT], start_of(rows.clock, summary.width) + summary.width)
    return True


@close
def start_of(instant: int, width: int) -> int:
    """The start of the pane that an instant is in."""
    return instant // width * width


@uncounted
def count(summary: Summary, code: int, weight: float, stamp: int, serial: int) -> bool:
    """Count a row in the pane of its time; False: that has left already."""
    start, P = start_of(stamp, summary.width), len(summary.panes)
    if start + summary.width + summary.length <= summary.facts[NEXT] - summary.width:
        return False
    p = (start // summary.width) % P
    pane, objects = summary.panes[p], summary.objects
    if pane["size"] == 0:
        pane["start"] = start
        pane["weight"] = 0.0
    counters, heap, table = summary.counters[p], summary.heaps[p], summary.tables[p]
    place = find(table, counters, code)
    if table[place] == FREE:
        if pane["size"] < len(counters):
            at = pane["size"]
            pane["size"] += 1
            counters[at]["error"] = counters[at]["count"] = 0.0
            counters[at]["place"] = at
            heap[at] = at
        else:
            at = heap[0]
            victim = counters[at]["code"]
            objects[victim]["panes"] -= 1  # it keeps its total until the end of the pane
            clear(objects, victim)
            remove(table, counters, victim)
            place = find(table, counters, code)
            counters[at]["error"] = counters[at]["count"]
        table[place] = at
        counters[at]["code"] = code
        objects[code]["panes"] += 1
    at = table[place]
    counters[at]["count"] += weight
    counters[at]["serial"] = serial
    lift(counters, heap, counters[at]["place"])
    sink(counters, heap, counters[at]["place"], pane["size"])
    pane["weight"] += weight
    one = objects[code]
    begins = one["panes"] == 1 and one["total"] == 0 and not one["inside"] and not one["was"]
    if begins or stamp >= one["stamp"]:
        one["stamp"] = stamp
        one["serial"] = serial
    one["total"] += weight
    return True


@uncounted
def challenge(summary: Summary, rows: Rows, moves: Records, code: int, now: int, row: int) -> None:
    """An object whose total has risen may take the place of the worst of the answer."""
    objects, members, facts = summary.objects, summary.members, summary.facts
    if objects[code]["inside"]:
        return
    size = facts[MEMBERS]
    if size < len(members):
        members[size] = code
        facts[MEMBERS] += 1
        summary.floor[0] = min(summary.floor[0], objects[code]["total"]) if size else objects[code]["total"]
    elif objects[code]["total"] < summary.floor[0]:
        return
    else:
        worst = 0
        for j in range(1, size):
            if ranks_above(objects, members[worst], members[j]):
                worst = j
        summary.floor[0] = objects[members[worst]]["total"]
        if not ranks_above(objects, code, members[worst]):
            return
        move(summary, rows, moves, members[worst], objects[members[worst]]["total"], -1, now, row)
        members[worst] = code
    move(summary, rows, moves, code, objects[code]["total"], 1, now, row)


@close
def ranks_above(objects: Records, a: int, b: int) -> bool:
    """The larger total; of equal ones the object with the newer row."""
    one, other = objects[a], objects[b]
    if one["total"] != other["total"]:
        return bool(one["total"] > other["total"])
    if one["stamp"] != other["stamp"]:
        return bool(one["stamp"] > other["stamp"])
    return bool(one["serial"] > other["serial"])


@uncounted
def move(
    summary: Summary, rows: Rows, moves: Records, code: int, key: float, diff: int, instant: int, row: int
) -> None:
    """An object enters or leaves the answer."""
    one, facts = summary.objects[code], summary.facts
    one["inside"] = diff > 0
    if rows.net:
        return
    n = facts[WRITTEN]
    moves[n]["key"], moves[n]["serial"], moves[n]["instant"], moves[n]["row"] = key, one["serial"], instant, row
    moves[n]["slot"], moves[n]["diff"] = code, diff
    moves[n]["first"] = diff > 0 and not one["shown"]
    if diff > 0:
        one["shown"] = 1
    else:
        clear(summary.objects, code)
    facts[WRITTEN] = n + 1


@close
def clear(objects: Records, code: int) -> None:
    """Nothing is known any more of an object without a counter, unless it is in the answer, or was."""
    one = objects[code]
    if one["panes"] == 0 and not one["inside"] and not one["was"]:
        one["total"] = 0.0
        one["shown"] = 0


@part
def end_pane(summary: Summary, rows: Rows, moves: Records) -> None:
    """The step at the end of a pane: what is a whole window old leaves, totals are added up anew and ranked."""
    facts, objects, members = summary.facts, summary.objects, summary.members
    instant = facts[NEXT]
    facts[NEXT] = instant + summary.width
    last = np.empty(len(members))  # the totals that members had
    for j in range(facts[MEMBERS]):
        last[j] = objects[members[j]]["total"]
    add_up(summary, instant)
    size, k = 0, len(members)
    best = np.empty(k, np.int64)
    for code in range(len(objects)):
        if objects[code]["panes"] > 0:
            size = put_best(objects, best, size, code)
    for j in range(size):
        objects[best[j]]["inside"] += 2
    for j in range(facts[MEMBERS]):
        one = objects[members[j]]
        if one["inside"] == 1:
            move(summary, rows, moves, members[j], last[j], -1, instant, facts[ROW])
    for j in range(size):
        one = objects[best[j]]
        stays, one["inside"] = one["inside"] == 3, 1
        if not stays:
            move(summary, rows, moves, best[j], one["total"], 1, instant, facts[ROW])
        members[j] = best[j]
    facts[MEMBERS] = size
    summary.floor[0] = objects[best[0]]["total"] if size == k else -np.inf
    facts[LOOKED] += size
    facts[SURE] += surely(summary, instant, np.zeros(len(objects)), np.zeros(len(objects)))


@uncounted
def surely(summary: Summary, instant: int, more: Floats, less: Floats) -> int:
    """How many of the answer surely have at least as much in the window as any other object.

    An object has at most its counts, and the smallest count of a full pane where it has no counter. It has at least its
    total, less what is in panes of which something has expired. more, less: zeros for each object.
    """
    unseen, other, sure = 0.0, 0.0, 0
    for p in range(len(summary.panes)):
        pane, counters = summary.panes[p], summary.counters[p]
        if pane["size"] == 0:
            continue
        least = counters[summary.heaps[p][0]]["count"] if pane["size"] == len(counters) else 0.0
        unseen += least
        for j in range(pane["size"]):
            more[counters[j]["code"]] += counters[j]["count"] - least
            if pane["start"] + summary.length <= instant:
                less[counters[j]["code"]] += counters[j]["count"] - counters[j]["error"]
    other = unseen
    for code in range(len(summary.objects)):
        if summary.objects[code]["panes"] and not summary.objects[code]["inside"]:
            other = max(other, unseen + more[code])
    for j in range(summary.facts[MEMBERS]):
        one = summary.members[j]
        sure += summary.objects[one]["total"] - less[one] >= other
    return sure


@uncounted
def add_up(summary: Summary, instant: int) -> None:
    """Let panes go that ended a whole window ago; totals of the others, from the oldest to the newest."""
    objects, panes, P = summary.objects, summary.panes, len(summary.panes)
    for code in range(len(objects)):
        objects[code]["total"] = 0.0
        objects[code]["panes"] = 0
    newest = start_of(instant, summary.width) // summary.width
    for age in range(P - 1, -1, -1):
        p = (newest - age) % P
        pane = panes[p]
        if pane["size"] == 0:
            continue
        if pane["start"] + summary.width + summary.length <= instant:
            pane["size"] = 0
            for j in range(summary.tables.shape[1]):
                summary.tables[p, j] = FREE
            continue
        for j in range(pane["size"]):
            counter = summary.counters[p, j]
            objects[counter["code"]]["total"] += counter["count"] - counter["error"]
            objects[counter["code"]]["panes"] += 1
    for code in range(len(objects)):
        clear(objects, code)


@uncounted
def put_best(objects: Records, best: Ints, size: int, code: int) -> int:
    """Put an object among the len(best) best, a heap whose root is the worst; returns how many there are."""
    if size < len(best):
        i = size
        while i > 0 and ranks_above(objects, best[(i - 1) // 2], code):
            best[i] = best[(i - 1) // 2]
            i = (i - 1) // 2
        best[i] = code
        return size + 1
    if not ranks_above(objects, code, best[0]):
        return size
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and ranks_above(objects, best[child], best[child + 1]):
            child += 1
        if not ranks_above(objects, code, best[child]):
            break
        best[i] = best[child]
        i = child
    best[i] = code
    return size


# --- counters of a pane


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
    return (code * 0x9E3779B1 >> 7) & mask


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


@kernel
def index(summary: Summary) -> None:
    """Heaps and tables for the counters that there are."""
    for p in range(len(summary.panes)):
        counters, heap, table, size = summary.counters[p], summary.heaps[p], summary.tables[p], summary.panes[p]["size"]
        for j in range(len(table)):
            table[j] = FREE
        for j in range(size):
            heap[j] = j
            counters[j]["place"] = j
            lift(counters, heap, j)
            table[find(table, counters, counters[j]["code"])] = j
