"""Many queries of one scoring over one run: a batch, arrival by arrival or by what it changes as a whole.

The run is kept as in strict.py. A query (k, n) sees its first k objects with a stamp in its own window, since the
k-skyband of the largest k over the longest window holds those of all others (the newer ones above an object that was
dropped are in every window that it is in).

Reported at each arrival: one that ranks above the last member of an answer enters it, and that member leaves; a member
that leaves the window makes place for the next object down the run. Net changes (kernels/reader_answers.py): a query is
looked at only if the best new object would enter its answer or a member has left its window.

Cost of an arrival: that of strict.py for one query; a look at each page of 32 queries if it enters any answer; O(log)
and the run between the old and the new last member for each answer that it enters; O(edge) for each that a member
leaves by age.

As in strict.py, in count windows the arrival and what it pushes out are one step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.changes import drop
from skyband.engines.topk.kernels.reader_answers import report_net
from skyband.engines.topk.kernels.reader_state import (
    PAGE,
    Moves,
    Readers,
    edge_of,
    enters,
    lacks,
    level,
    move_stamps,
    new_moves,
    next_stamp,
    note,
    oldest_from,
    page_count,
    put,
    set_last,
    set_open,
    sum_group,
    sum_page,
    with_copy,
    with_more,
    with_room,
    with_rows,
)
from skyband.engines.topk.kernels.state import Ints, Report, is_full, largest_k
from skyband.engines.topk.kernels.strict import insert
from skyband.kernels.compile import kernel, uncounted
from skyband.kernels.records import NEVER, Records


@kernel
def take_readers(
    state: Readers, report: Report, copies: Records, arrivals: Records, visits: Records, since: int
) -> tuple[Records, Ints, NDArray[np.uint8], Records, Records]:
    """Take the arrivals of each visited group.

    Returns the arena, its stamps, marks, changes and copies, which may have been replaced.

    Arrivals are sorted by group and in order within it. since: the serial of the first row of a net batch.
    """
    groups, readers, copied = state.groups, state.readers, state.scratch.copies
    K, longest, moves = largest_k(readers), 0, new_moves(0)
    for q in range(len(readers)):
        longest = max(longest, readers[q]["length"])
    for visit in range(len(visits)):
        g, a, end, last = visits[visit]["group"], visits[visit]["begin"], visits[visit]["end"], visits[visit]["last"]
        report.step[0]["visit"] = visit
        if report.net:
            if not groups[g]["open"]:
                copies = with_copy(copies, state, g)
            groups[g]["open"] = report.more
        done = False
        while not done:
            a = take_run(state, report, K, longest, g, arrivals, a, end)
            if a < end:
                if is_full(groups, g, 1):
                    state = with_room(state, g, 1)
            else:
                size = max(groups[g]["size"], copied[2 * g + 1])
                moves = new_moves(2 * size) if report.net and len(moves.to) < size else moves
                done = finish(state, report, K, longest, g, last, copies, moves, since)
            if not done:
                report = with_more(report, 2 * K + 2)
                if state.tally[2] + K + 2 > len(state.marks):
                    state = with_rows(state, K + 2)
        if report.net and not report.more and state.tally[4] == copied[2 * g] + copied[2 * g + 1]:
            state.tally[4] = copied[2 * g]
    return state.objects, state.stamps, state.marks, report.changes, copies


@uncounted
def take_run(
    state: Readers, report: Report, K: int, longest: int, g: int, arrivals: Records, begin: int, end: int
) -> int:
    """Arrivals begin..end of one group, a step each. Returns where it stopped: at the end, or for want of places."""
    objects, stamps, groups = state.objects, state.stamps, state.groups
    step, arriving = report.step, state.scratch.arriving
    for a in range(begin, end):
        key, stamp, now = arrivals[a]["key"], arrivals[a]["stamp"], arrivals[a]["now"]
        own = report.serial + arrivals[a]["row"]
        if is_full(groups, g, 1):
            return a
        if not report.net and groups[g]["due"] <= now:
            if not expire(state, report, g, now - report.joint):
                return a
            if report.joint:
                step[0]["row"] = arrivals[a]["row"]
                step[0]["instant"] = now
                if not let_go(state, report, g, now):
                    return a
            sum_group(state, g, longest)
        if report.net or not report.joint:
            discard(state, report, K, g, now - longest)
        step[0]["row"] = arrivals[a]["row"]
        step[0]["instant"] = now
        head, size = groups[g]["head"], groups[g]["size"]
        p = size  # its rank: below all that are better, above its ties
        while p > 0 and (
            objects[head + p - 1]["key"] < key
            or (objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] <= stamp)
        ):
            p -= 1
        dominators = 0
        if stamp <= groups[g]["newest"]:  # late, or of an equal time: it may be dominated already
            for i in range(head, head + p):
                dominators += stamps[i] >= stamp
            if dominators >= K:
                continue
        if arriving[0]["serial"] != own:
            arriving[0]["key"] = key
            arriving[0]["stamp"] = stamp
            arriving[0]["serial"] = own
            arriving[0]["shown"] = 0
        if not report.net and not offer(state, report, longest, g, p, own, now):
            return a
        discard(state, report, K, g, now - longest)
        head, size = groups[g]["head"], groups[g]["size"]
        while p > 0 and (
            p > size
            or objects[head + p - 1]["key"] < key
            or (objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] <= stamp)
        ):
            p -= 1  # one above it has gone
        w = p
        for i in range(head + p, head + size):  # those it dominates are dropped at K dominators (Theorem 3.7)
            if stamps[i] <= stamp:
                objects[i]["dom"] += 1
                if objects[i]["dom"] >= K:
                    drop(objects, i, report)
                    continue
            if head + w < i:
                objects[head + w], stamps[head + w] = objects[i], stamps[i]
            w += 1
        move_stamps(stamps, head, p, w)
        head = insert(objects, head, p, w, key, stamp, own, dominators)
        stamps[head + p] = stamp
        objects[head + p]["shown"] = arriving[0]["shown"]
        arriving[0]["shown"] = 0
        report.alive[own - report.serial] = True
        groups[g]["head"] = head
        groups[g]["size"] = w + 1
        groups[g]["newest"] = max(groups[g]["newest"], stamp)
        groups[g]["oldest"] = min(groups[g]["oldest"], stamp)
        groups[g]["due"] = min(groups[g]["due"], stamp + longest)
    return end


@uncounted
def finish(
    state: Readers,
    report: Report,
    K: int,
    longest: int,
    g: int,
    last: int,
    copies: Records,
    moves: Moves,
    since: int,
) -> bool:
    """Time goes on to `last`, and a net batch is reported. False: the changes need more places first."""
    if report.net:
        discard(state, report, K, g, last - longest)
        if report.more:
            return True
        report.step[0]["instant"] = last
        report.step[0]["row"] = -1
        if not report_net(state, report, g, last, copies, moves, since):
            return False
    else:
        if not expire(state, report, g, last):
            return False
        discard(state, report, K, g, last - longest)
    sum_group(state, g, longest)
    return True


@uncounted
def offer(state: Readers, report: Report, longest: int, g: int, p: int, own: int, now: int) -> bool:
    """The arrival, at rank p, enters the answers that it can. False: the changes need more places first."""
    readings, floors, readers, pages = state.readings, state.floors, state.readers, state.pages
    arriving, done, short = state.scratch.arriving, state.scratch.done, state.scratch.short
    Q, P, key, stamp = len(readers), page_count(len(readers)), arriving[0]["key"], arriving[0]["stamp"]
    for s in range(state.tally[3]):
        q = short[s]
        if done[q] != own:
            if lacks(state, report, readers[q]["k"]):
                return False
            fill(state, report, g, q, state.scratch.edges[s], p, now - readers[q]["length"])
            done[q] = own
            sum_page(state, g, q // PAGE)
    waited, state.tally[3] = state.tally[3], 0
    height = level(key)
    if height < pages[g * P]["floor"]:
        if waited:
            sum_group(state, g, longest)
        return True
    for b in range(P - 1):
        if height < pages[g * P + 1 + b]["floor"]:
            continue
        for q in range(b * PAGE, min(Q, (b + 1) * PAGE)):
            v, bound = g * Q + q, now - readers[q]["length"]
            if height < floors[v] or stamp <= bound or done[q] == own:
                continue
            if height == floors[v] and stamp < readings[v]["stamp"]:
                continue
            if lacks(state, report, readers[q]["k"]):
                return False
            done[q] = own
            push_in(state, report, g, q, p, bound)
        sum_page(state, g, b)
    sum_group(state, g, longest)
    return True


@uncounted
def push_in(state: Readers, report: Report, g: int, q: int, p: int, bound: int) -> None:
    """The arrival, at rank p, enters one answer, and the last member of a full one leaves it."""
    objects, readings, arriving = state.objects, state.readings, state.scratch.arriving
    v, head, place = g * len(state.readers) + q, state.groups[g]["head"], state.readers[q]["place"]
    end = state.groups[g]["size"]
    if readings[v]["held"] == state.readers[q]["k"]:
        end = edge_of(objects, head, end, readings, v) - 1
        put(report, objects, head + end, place, -1)
    else:
        readings[v]["held"] += 1
    enters(state, report, arriving, 0, place)
    readings[v]["oldest"] = min(readings[v]["oldest"], arriving[0]["stamp"])
    if readings[v]["held"] == state.readers[q]["k"]:
        settle_last(state, g, v, p, end, bound)
    note(state, g, q)


@uncounted
def settle_last(state: Readers, g: int, v: int, p: int, end: int, bound: int) -> None:
    """The last member of a full answer: the lowest one of the run from rank p to `end`, else the arrival at p."""
    head, i = state.groups[g]["head"], end - 1
    while i >= p and state.stamps[head + i] <= bound:
        i -= 1
    if i >= p:
        set_last(state.readings, v, state.objects, head + i)
    else:
        set_last(state.readings, v, state.scratch.arriving, 0)


@uncounted
def fill(state: Readers, report: Report, g: int, q: int, edge: int, p: int, bound: int) -> None:
    """A full answer has lost one member in this step: the next object above rank p takes its place, or the arrival."""
    objects, readings, arriving = state.objects, state.readings, state.scratch.arriving
    v, head, place = g * len(state.readers) + q, state.groups[g]["head"], state.readers[q]["place"]
    i = edge
    while i < p and state.stamps[head + i] <= bound:
        i += 1
    readings[v]["held"] += 1
    if i < p:
        enters(state, report, objects, head + i, place)
        readings[v]["oldest"] = min(readings[v]["oldest"], objects[head + i]["stamp"])
        set_last(readings, v, objects, head + i)
    else:
        enters(state, report, arriving, 0, place)
        readings[v]["oldest"] = min(readings[v]["oldest"], arriving[0]["stamp"])
        settle_last(state, g, v, p, edge, bound)
    note(state, g, q)


@uncounted
def expire(state: Readers, report: Report, g: int, until: int) -> bool:
    """What leaves the windows up to `until`, each instant a step of its own. False: the changes need more places."""
    readings, readers, pages = state.readings, state.readers, state.pages
    Q, P = len(readers), page_count(len(readers))
    if pages[g * P]["due"] > until:
        return True
    for b in range(P - 1):
        if pages[g * P + 1 + b]["due"] > until:
            continue
        for q in range(b * PAGE, min(Q, (b + 1) * PAGE)):
            v, length = g * Q + q, readers[q]["length"]
            while state.dues[v] <= until:
                if lacks(state, report, readers[q]["k"]):
                    return False
                head, size = state.groups[g]["head"], state.groups[g]["size"]
                edge = edge_of(state.objects, head, size, readings, v)
                oldest = oldest_from(state.stamps, head, head + edge, readings[v]["oldest"])
                readings[v]["oldest"] = oldest
                note(state, g, q)
                if state.dues[v] <= until:
                    report.step[0]["instant"] = oldest + length
                    report.step[0]["row"] = -1
                    part_with(state, report, g, q, edge, oldest)
        sum_page(state, g, b)
    pages[g * P]["due"] = until + 1  # until it is summed up
    return True


@uncounted
def part_with(state: Readers, report: Report, g: int, q: int, edge: int, oldest: int) -> None:
    """The oldest members of one answer leave it, and the next objects down the run take their places."""
    objects, stamps, readings, head = state.objects, state.stamps, state.readings, state.groups[g]["head"]
    v, k, place = g * len(state.readers) + q, state.readers[q]["k"], state.readers[q]["place"]
    rest = oldest_from(stamps, head, head + edge, oldest + 1)
    i = next_stamp(stamps, head, head + edge, oldest)
    while i < head + edge:
        put(report, objects, i, place, -1)
        readings[v]["held"] -= 1
        i = head + edge if report.joint else next_stamp(stamps, i + 1, head + edge, oldest)  # numbers are unique
    i, end = head + edge, head + state.groups[g]["size"]
    while readings[v]["held"] < k and i < end:  # of one that was not full the edge is the run's end
        if stamps[i] > oldest:
            enters(state, report, objects, i, place)
            readings[v]["held"] += 1
            rest = min(rest, stamps[i])
            if readings[v]["held"] == k:
                set_last(readings, v, objects, i)
        i += 1
    readings[v]["oldest"] = rest
    if readings[v]["held"] < k:
        set_open(readings, v)
    note(state, g, q)


@uncounted
def let_go(state: Readers, report: Report, g: int, now: int) -> bool:
    """In count windows: members that the coming arrival pushes out leave. Full answers are short of one then.

    False: the changes need more places first.
    """
    readings, readers, pages, stamps = state.readings, state.readers, state.pages, state.stamps
    Q, P, head, size = len(readers), page_count(len(readers)), state.groups[g]["head"], state.groups[g]["size"]
    for b in range(P - 1):
        if pages[g * P + 1 + b]["due"] > now:
            continue
        for q in range(b * PAGE, min(Q, (b + 1) * PAGE)):
            v, bound = g * Q + q, now - readers[q]["length"]
            if state.dues[v] > now:
                continue
            if lacks(state, report, readers[q]["k"]):
                return False
            end = head + edge_of(state.objects, head, size, readings, v)
            i = next_stamp(stamps, head, end, bound)
            readings[v]["oldest"] = oldest_from(stamps, head, end, bound + 1)
            note(state, g, q)
            if i == end:  # it has left already
                continue
            put(report, state.objects, i, readers[q]["place"], -1)
            if readings[v]["held"] == readers[q]["k"]:
                state.scratch.short[state.tally[3]], state.scratch.edges[state.tally[3]] = q, end - head
                state.tally[3] += 1
            readings[v]["held"] -= 1
        sum_page(state, g, b)
    return True


@uncounted
def discard(state: Readers, report: Report, K: int, g: int, bound: int) -> None:
    """Drop what has left the longest window. It is among the first K: what ranks above it is no older."""
    objects, stamps, groups = state.objects, state.stamps, state.groups
    if groups[g]["oldest"] > bound:
        return
    head, size, p = groups[g]["head"], groups[g]["size"], 0
    while p < min(K, size):
        if stamps[head + p] > bound:
            p += 1
            continue
        drop(objects, head + p, report)
        for i in range(head + p, head, -1):
            objects[i], stamps[i] = objects[i - 1], stamps[i - 1]
        head += 1
        size -= 1
        if report.joint and groups[g]["oldest"] == bound:  # numbers are unique
            break
    groups[g]["oldest"] = oldest_from(stamps, head, head + min(K, size), -NEVER)
    groups[g]["head"] = head
    groups[g]["size"] = size
