"""Answers of readers, before and after: net changes of a batch, and other queries over the same runs."""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.changes import drop
from skyband.engines.topk.kernels.reader_state import (
    PAGE,
    Moves,
    Readers,
    edge_of,
    enters,
    lacks,
    level,
    new_moves,
    note,
    page_count,
    put,
    set_last,
    set_open,
    sum_group,
    sum_page,
    with_copy,
    with_more,
    with_rows,
)
from skyband.engines.topk.kernels.state import Ints, Report, largest_k
from skyband.kernels.compile import kernel, uncounted
from skyband.kernels.records import NEVER, Records
from skyband.kernels.routing import ChangeColumns


@uncounted
def report_net(state: Readers, report: Report, g: int, last: int, copies: Records, moves: Moves, since: int) -> bool:
    """Report how the answers of a group differ from those that it had when the batch began.

    False: the changes need more places first; answers that are done are not looked at again.
    """
    readings, readers, pages = state.readings, state.readers, state.pages
    touched, inner, Q, P = state.scratch.touched, state.scratch.inner, len(readers), page_count(len(readers))
    if state.tally[3] == 0:
        touch(state, g, last, since)
        find_moves(state, g, copies, moves)
        state.tally[3] = 1  # they are marked, and each mark goes when that query is done
    begin, size = state.scratch.copies[2 * g], state.scratch.copies[2 * g + 1]
    for place in range(Q):
        if touched[place]:
            q = inner[place]
            v = g * Q + q
            if lacks(state, report, readers[q]["k"]):
                return False
            edge, oldest = edge_of(copies, begin, size, readings, v), readings[v]["oldest"]
            move_answer(state, report, g, q, last - readers[q]["length"], copies, moves, edge, oldest)
            touched[place] = False
            pages[g * P + 1 + q // PAGE]["due"] = -NEVER  # to be summed up
    for b in range(P - 1):
        if pages[g * P + 1 + b]["due"] <= last:
            sum_page(state, g, b)
    state.tally[3] = 0
    return True


@uncounted
def touch(state: Readers, g: int, last: int, since: int) -> None:
    """Mark the queries whose answers may have changed: the best new object would enter, or a member has left."""
    objects, floors, readers, pages = state.objects, state.floors, state.readers, state.pages
    Q, P, best = len(readers), page_count(len(readers)), state.groups[g]["head"]
    end = best + state.groups[g]["size"]
    while best < end and objects[best]["serial"] < since:
        best += 1
    height = level(objects[best]["key"]) if best < end else -NEVER
    for b in range(P - 1):
        page = g * P + 1 + b
        if pages[page]["due"] > last and height < pages[page]["floor"]:
            continue
        for q in range(b * PAGE, min(Q, (b + 1) * PAGE)):
            v = g * Q + q
            state.scratch.touched[readers[q]["place"]] = height >= floors[v] or state.dues[v] <= last


@uncounted
def find_moves(state: Readers, g: int, copies: Records, moves: Moves) -> None:
    """Where the objects of a group's copy are now, and where those of its run were."""
    objects, head, size = state.objects, state.groups[g]["head"], state.groups[g]["size"]
    begin, known, i, j = state.scratch.copies[2 * g], state.scratch.copies[2 * g + 1], 0, 0
    while i < known or j < size:
        if i < known and j < size and copies[begin + i]["serial"] == objects[head + j]["serial"]:
            moves.to[i], moves.came[j], moves.stamps[i] = j, i, copies[begin + i]["stamp"]
            i, j = i + 1, j + 1
        elif j < size and (i == known or ranks_above(objects, head + j, copies, begin + i)):
            moves.came[j] = NEVER
            j += 1
        else:
            moves.to[i], moves.stamps[i] = NEVER, copies[begin + i]["stamp"]
            i += 1


@uncounted
def move_answer(
    state: Readers,
    report: Report,
    g: int,
    q: int,
    bound: int,
    copies: Records,
    moves: Moves,
    edge: int,
    oldest: int,
) -> None:
    """The answer of one query is that of the run now; report how it differs from the one before.

    That was: of the group's copy, the objects before the edge that are no older than `oldest`. Few branches, since
    which objects are valid in a short window cannot be guessed.
    """
    readings, readers, stamps, picked = state.readings, state.readers, state.stamps, state.scratch.picked
    head, place, k, begin = state.groups[g]["head"], readers[q]["place"], readers[q]["k"], state.scratch.copies[2 * g]
    v, size = g * len(readers) + q, state.groups[g]["size"]
    n, entered, first, last, behind = 0, 0, NEVER, np.int64(0), np.int64(size)
    for j in range(np.uint64(size)):  # an index that may be negative would be tested for it each time
        stamp = stamps[np.uint64(head) + j]
        valid = stamp > bound
        picked[np.uint64(entered)] = j
        entered += valid & ((moves.came[j] >= edge) | (stamp < oldest))
        n += valid
        first = min(first, stamp if valid else NEVER)
        last = np.int64(j) if valid else last
        if n == k:
            behind = np.int64(j) + 1
            break
    for i in range(np.uint64(edge)):
        gone = (moves.to[i] >= behind) | (moves.stamps[i] <= bound)
        if gone & (moves.stamps[i] >= oldest):
            put(report, copies, begin + np.int64(i), place, -1)
    for e in range(entered):
        enters(state, report, state.objects, head + picked[e], place)
    readings[v]["held"] = n
    readings[v]["oldest"] = first
    if n == k:
        set_last(readings, v, state.objects, head + last)
    else:
        set_open(readings, v)
    note(state, g, q)


@uncounted
def ranks_above(objects: Records, i: int, others: Records, j: int) -> bool:
    """Whether object i ranks above another one."""
    if objects[i]["key"] != others[j]["key"]:
        return bool(objects[i]["key"] > others[j]["key"])
    if objects[i]["stamp"] != others[j]["stamp"]:
        return bool(objects[i]["stamp"] > others[j]["stamp"])
    return bool(objects[i]["serial"] > others[j]["serial"])


@kernel
def refit_readers(
    state: Readers, report: Report, old: Records, old_count: int, predecessors: Ints, now: Ints
) -> tuple[Records, Records]:
    """Serve other queries from the same runs, cut down to what these need; returns marks and changes.

    The queries are the new ones, with no larger k or window than the old ones had; `old` has the readings of these.
    predecessors: of each new query, by its place, the old one in their order, or -1. now: per group.
    """
    objects, groups, readers = state.objects, state.groups, state.readers
    K, Q, longest, copies = largest_k(readers), len(readers), 0, objects[:0].copy()
    for q in range(Q):
        longest = max(longest, readers[q]["length"])
    report.step[0]["row"] = -1
    for g in range(len(groups)):
        report.step[0]["visit"] = g
        report.step[0]["instant"] = now[g]
        state.tally[4] = 0
        copies, moves = with_copy(copies, state, g), new_moves(groups[g]["size"])
        find_moves(state, g, copies, moves)
        for place in range(Q):
            q, one = state.scratch.inner[place], predecessors[place]
            report = with_more(report, 2 * K + 2 * groups[g]["size"] + 2)
            if state.tally[2] + K + 2 > len(state.marks):
                state = with_rows(state, K + 2)
            edge, oldest = 0, NEVER
            if one >= 0:
                v = g * old_count + one
                edge, oldest = edge_of(copies, 0, groups[g]["size"], old, v), old[v]["oldest"]
            move_answer(state, report, g, q, now[g] - readers[q]["length"], copies, moves, edge, oldest)
        head, w, eldest = groups[g]["head"], 0, NEVER
        for i in range(head, head + groups[g]["size"]):
            if objects[i]["dom"] >= K or objects[i]["stamp"] <= now[g] - longest:
                drop(objects, i, report)
                continue
            objects[head + w], state.stamps[head + w] = objects[i], state.stamps[i]
            eldest = min(eldest, objects[i]["stamp"])
            w += 1
        groups[g]["size"] = w
        groups[g]["oldest"] = eldest
        for b in range(page_count(Q) - 1):
            sum_page(state, g, b)
        sum_group(state, g, longest)
    state.tally[4] = 0
    return state.marks, report.changes


@kernel
def sum_all(state: Readers, longest: int) -> None:
    """Find every floor and instant anew."""
    for g in range(len(state.groups)):
        due = state.groups[g]["due"]
        for q in range(len(state.readers)):
            note(state, g, q)
        for b in range(page_count(len(state.readers)) - 1):
            sum_page(state, g, b)
        sum_group(state, g, longest)
        state.groups[g]["due"] = min(due, state.groups[g]["due"])


@kernel
def readings_fit(state: Readers) -> bool:
    """Whether every reading fits its run: kernels rely on it."""
    objects, readings, readers = state.objects, state.readings, state.readers
    Q = len(readers)
    for g in range(len(state.groups)):
        head, size = state.groups[g]["head"], state.groups[g]["size"]
        for q in range(Q):
            v, k = g * Q + q, readers[q]["k"]
            full = readings[v]["held"] == k
            edge = edge_of(objects, head, size, readings, v)
            count, oldest = 0, NEVER
            for i in range(head, head + edge):
                if objects[i]["stamp"] >= readings[v]["oldest"]:
                    count += 1
                    oldest = min(oldest, objects[i]["stamp"])
            if readings[v]["held"] < 0 or readings[v]["held"] > k or count != readings[v]["held"]:
                return False
            if full != (readings[v]["serial"] >= 0):
                return False
            if count == 0:
                continue
            if full:
                same = edge > 0 and objects[head + edge - 1]["serial"] == readings[v]["serial"]
                if not same or objects[head + edge - 1]["stamp"] < readings[v]["oldest"]:
                    return False
            elif readings[v]["key"] != -np.inf:
                return False
    return True


@kernel
def put_in_columns(
    changes: Records, order: Ints, groups: Ints, rows: Ints, columns: ChangeColumns, group_of: Ints
) -> None:
    """Write changes into columns, in this order (empty: as they are), and the group of each.

    groups: by visit. rows: of the only step of each visit; empty: changes have rows of their own. Rows and groups are
    written only if their columns have places.
    """
    query, row, instant, stamp, serial, key, diff, first = columns
    for i in range(len(changes)):
        j = order[i] if len(order) else i
        query[i] = changes[j]["query"]
        instant[i] = changes[j]["instant"]
        stamp[i] = changes[j]["stamp"]
        serial[i] = changes[j]["serial"]
        key[i] = changes[j]["key"]
        diff[i] = changes[j]["diff"]
        first[i] = changes[j]["first"] != 0
    for i in range(len(group_of)):
        j = order[i] if len(order) else i
        row[i] = rows[changes[j]["visit"]] if len(rows) else changes[j]["row"]
        group_of[i] = groups[changes[j]["visit"]]
