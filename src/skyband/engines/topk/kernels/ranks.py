"""Sorted lists that are ranked anew at each step: offsets, ties, distinct ids, a k of each group, sessions, deletions.

Each group keeps what can still become an answer as one run of records, best first (the arena of kernels/records.py).
After each step the answer is read from the best end of the run and compared with the one before. An object is dropped
when K = offset + k others rank above it and do not expire before it:

- with ties only strictly better keys count, since equals of the k-th are answers too;
- of `distinct="best"` each id counts once, and one object of the same id is enough: while it is valid, so is a better
  one of that id. An id that has counted by an earlier object does not count again (`mark`);
- of `distinct="last"` a newer object of the id replaces it, and a dominator may be replaced by a worse one, so that
  none counts; nor does one where objects are deleted;
- in a session all leave together, so each better one counts.

Cost of an arrival: O(s) for a run of s objects.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.changes import begin_batch, drop, end_batch, enter, leave
from skyband.engines.topk.kernels.rank_records import BEST, DELETE, IDLE, INSERT, LATEST, UNKNOWN, Ints, Ranks
from skyband.engines.topk.kernels.state import Report, is_full, with_capacity
from skyband.kernels.compile import close, kernel, uncounted
from skyband.kernels.records import NEVER, Records, make_room

SHOWN = 2


@kernel
def take_ranks(ranks: Ranks, report: Report, arrivals: Records, visits: Records) -> tuple[Records, Records]:
    """Take the arrivals of each visited group; returns the arena and the changes, since both may have been replaced."""
    groups, tally = ranks.groups, ranks.tally
    for visit in range(len(visits)):
        g, last = visits[visit]["group"], visits[visit]["last"]
        report.step[0]["visit"] = visit
        begin_batch(ranks.objects, groups, g, report)
        for a in range(visits[visit]["begin"], visits[visit]["end"] + 1):
            if is_full(groups, g, 1):
                ranks = Ranks(make_room(ranks.objects, groups, g, tally, 1), groups, ranks.rule, tally)
            most = 4 * groups[g]["size"] + 8
            if tally[1] + most > len(report.changes):
                report = with_capacity(report, most)
            if a < visits[visit]["end"]:
                take_one(ranks, report, g, arrivals, a)
            else:
                expire(ranks, report, g, last)
                if report.net and not report.more:
                    report.step[0]["instant"] = last
                    report.step[0]["row"] = -1
                    end_batch(ranks.objects, groups, g, 1, report)
    return ranks.objects, report.changes


@kernel
def refit_ranks(ranks: Ranks, report: Report, now: Ints) -> Records:
    """Settle every group once more, by another rule; returns the changes."""
    for g in range(len(ranks.groups)):
        most = 4 * ranks.groups[g]["size"] + 8
        if ranks.tally[1] + most > len(report.changes):
            report = with_capacity(report, most)
        report.step[0]["visit"] = g
        report.step[0]["row"] = -1
        report.step[0]["instant"] = now[g]
        if ranks.rule[0]["length"] < NEVER:
            discard(ranks, report, g, now[g] - ranks.rule[0]["length"])
        settle(ranks, report, g)
    return report.changes


@uncounted
def take_one(ranks: Ranks, report: Report, g: int, arrivals: Records, a: int) -> None:
    """One arrival of a group: what expires before it, then its step."""
    groups, rule, step = ranks.groups, ranks.rule[0], report.step
    stamp, now, kind = arrivals[a]["stamp"], arrivals[a]["now"], arrivals[a]["kind"]
    expire(ranks, report, g, now)
    step[0]["row"] = arrivals[a]["row"]
    step[0]["instant"] = now
    if not rule["timed"] and rule["length"] < NEVER:
        discard(ranks, report, g, now - rule["length"])
    if rule["gap"]:
        in_session = groups[g]["last"] < NEVER
        groups[g]["begin"] = min(stamp, groups[g]["begin"]) if in_session else stamp
        groups[g]["last"] = max(stamp, groups[g]["last"]) if in_session else stamp
    if rule["limits"] and kind != DELETE and arrivals[a]["limit"] >= 0 and stamp >= groups[g]["newest"]:
        groups[g]["newest"] = stamp
        groups[g]["k"] = arrivals[a]["limit"]
    if rule["keyed"]:
        known = remove_named(ranks, report, g, arrivals[a]["name"])
        if kind == DELETE and not known:
            arrivals[a]["kind"] = UNKNOWN
        elif kind == DELETE and arrivals[a]["joined"] and arrivals[a + 1]["name"] == arrivals[a]["name"]:
            arrivals[a + 1]["shown"] = known == SHOWN  # it moves: it comes back in this step
    if kind == INSERT or (kind == IDLE and rule["keyed"]):
        insert(ranks, report, g, arrivals, a)
    set_due(groups, rule, g)
    if not arrivals[a]["joined"]:
        settle(ranks, report, g)


# --- what leaves


@uncounted
def expire(ranks: Ranks, report: Report, g: int, now: int) -> None:
    """Time goes on to `now`: objects of one instant leave in one step, a session as a whole."""
    groups, rule, step = ranks.groups, ranks.rule[0], report.step
    if not rule["timed"]:
        return
    if rule["gap"]:
        if groups[g]["last"] < NEVER and groups[g]["last"] + rule["gap"] <= now:
            step[0]["row"] = -1
            step[0]["instant"] = groups[g]["ended"] = groups[g]["last"] + rule["gap"]
            discard(ranks, report, g, NEVER)
            groups[g]["begin"] = groups[g]["last"] = groups[g]["due"] = NEVER
            settle(ranks, report, g)
        return
    while groups[g]["due"] <= now:
        step[0]["row"] = -1
        step[0]["instant"] = groups[g]["due"]
        discard(ranks, report, g, groups[g]["due"] - rule["length"])
        set_due(groups, rule, g)
        settle(ranks, report, g)


@close
def set_due(groups: Records, rule: Records, g: int) -> None:
    """When time takes something next, as far as the oldest stamp says."""
    groups[g]["due"] = NEVER
    if groups[g]["size"] and rule["timed"]:
        if rule["gap"]:
            groups[g]["due"] = groups[g]["last"] + rule["gap"]
        elif rule["length"] < NEVER:
            groups[g]["due"] = groups[g]["oldest"] + rule["length"]


@uncounted
def discard(ranks: Ranks, report: Report, g: int, bound: int) -> None:
    """Drop the objects with stamps up to a bound."""
    objects, groups, rule = ranks.objects, ranks.groups, ranks.rule[0]
    if groups[g]["oldest"] > bound or not groups[g]["size"]:
        return
    head, size, kept, oldest = groups[g]["head"], groups[g]["size"], 0, NEVER
    for i in range(head, head + size):
        if objects[i]["stamp"] <= bound:
            lose_one(objects, i, report)
        else:
            oldest = min(oldest, objects[i]["stamp"])
            objects[head + kept] = objects[i]
            kept += 1
    groups[g]["size"], groups[g]["oldest"] = kept, oldest
    if rule["distinct"] == BEST and kept < size:
        elect(objects, head, kept)


@uncounted
def elect(objects: Records, head: int, size: int) -> None:
    """Let the best object of each id count, among those that no better one of its id is above."""
    for i in range(head, head + size):
        if not objects[i]["counts"]:
            better = False
            for j in range(head, i):
                better |= objects[j]["name"] == objects[i]["name"]
            objects[i]["counts"] = not better


@uncounted
def remove_named(ranks: Ranks, report: Report, g: int, name: int) -> int:
    """Drop the object of an id; returns whether there was one (SHOWN: it has been in an emitted answer)."""
    objects, groups = ranks.objects, ranks.groups
    head, size = groups[g]["head"], groups[g]["size"]
    for i in range(head, head + size):
        if objects[i]["name"] == name:
            known = SHOWN if objects[i]["shown"] else 1
            lose_one(objects, i, report)
            for j in range(i, head + size - 1):
                objects[j] = objects[j + 1]
            groups[g]["size"] = size - 1
            return known
    return 0


@close
def lose_one(objects: Records, i: int, report: Report) -> None:
    """Object i is kept no longer; if it is in the answer, it leaves it in this step."""
    if objects[i]["inside"]:
        leave(objects, i, 0, report)
    drop(objects, i, report)


# --- what comes


@close
def is_above(objects: Records, i: int, key: float, stamp: int, oldest: int) -> bool:
    """Whether object i ranks above one with this key and stamp that arrives after it."""
    if objects[i]["key"] != key:
        return bool(objects[i]["key"] > key)
    if oldest:
        return bool(objects[i]["stamp"] <= stamp)
    return bool(objects[i]["stamp"] > stamp)


@uncounted
def insert(ranks: Ranks, report: Report, g: int, arrivals: Records, a: int) -> None:
    """Put an arrival at its place, and drop what it makes superfluous, perhaps itself."""
    objects, groups, rule = ranks.objects, ranks.groups, ranks.rule[0]
    key, stamp, name = arrivals[a]["key"], arrivals[a]["stamp"], arrivals[a]["name"]
    eligible = arrivals[a]["kind"] == INSERT
    if not eligible:
        key = -np.inf
    if rule["above"] and not rule["keyed"] and not key > rule["threshold"]:
        return
    if rule["distinct"] == LATEST and not rule["keyed"]:
        head = groups[g]["head"]
        for i in range(head, head + groups[g]["size"]):
            if objects[i]["name"] == name and objects[i]["stamp"] > stamp:
                return
        remove_named(ranks, report, g, name)
    head, size = groups[g]["head"], groups[g]["size"]
    low, high = head, head + size  # its place: below all that rank above it
    while low < high:
        middle = (low + high) // 2
        if is_above(objects, middle, key, stamp, rule["oldest"]):
            low = middle + 1
        else:
            high = middle
    place, dom, counts = low, 0, eligible
    pruned = not rule["keyed"] and not rule["above"] and rule["distinct"] != LATEST
    if pruned:
        dom, counts = standing(ranks, g, place, key, stamp, name)
        if dom >= rule["k"] + rule["offset"]:
            return
        dropped = press(ranks, report, g, place, key, stamp, name)
        size -= dropped
    if place - head < (size + 1) // 2:  # shift the shorter side
        for i in range(head, place):
            objects[i - 1] = objects[i]
        groups[g]["head"] = head - 1
        place -= 1
    else:
        for i in range(head + size, place, -1):
            objects[i] = objects[i - 1]
    groups[g]["size"] = size + 1
    groups[g]["edge"] += 1
    serial = report.serial + arrivals[a]["row"]
    objects[place]["key"], objects[place]["stamp"], objects[place]["serial"] = key, stamp, serial
    objects[place]["name"], objects[place]["dom"], objects[place]["counts"] = name, dom, counts
    objects[place]["inside"], objects[place]["shown"], objects[place]["was"] = 0, arrivals[a]["shown"], 0
    objects[place]["eligible"] = eligible
    report.alive[arrivals[a]["row"]] = True
    groups[g]["oldest"] = min(groups[g]["oldest"], stamp) if size else stamp
    if pruned and rule["distinct"] == BEST:
        for i in range(place + 1, groups[g]["head"] + groups[g]["size"]):
            if objects[i]["name"] == name:
                objects[i]["counts"] = 0


@uncounted
def standing(ranks: Ranks, g: int, place: int, key: float, stamp: int, name: int) -> tuple[int, int]:
    """How many objects dominate a new one at this place, and whether it counts for its id."""
    objects, rule, head = ranks.objects, ranks.rule[0], ranks.groups[g]["head"]
    K, together = rule["k"] + rule["offset"], rule["gap"] > 0 or rule["length"] == NEVER
    dom, counts = 0, 1
    for i in range(head, place):
        mine = rule["distinct"] == BEST and objects[i]["name"] == name
        if mine:
            counts = 0
        if not together and objects[i]["stamp"] < stamp:
            continue
        if mine:
            return K, 0
        if rule["ties"] and not objects[i]["key"] > key:
            continue
        again = False
        if rule["distinct"] == BEST:  # an id that has counted by a better object
            for j in range(head, i):
                again |= objects[j]["name"] == objects[i]["name"] and (together or objects[j]["stamp"] >= stamp)
        dom += not again
        if dom >= K:
            break
    return dom, counts


@uncounted
def press(ranks: Ranks, report: Report, g: int, place: int, key: float, stamp: int, name: int) -> int:
    """Count a new object for those below its place, and drop those that K dominate; returns how many."""
    objects, groups, rule = ranks.objects, ranks.groups, ranks.rule[0]
    K, together = rule["k"] + rule["offset"], rule["gap"] > 0 or rule["length"] == NEVER
    head, size = groups[g]["head"], groups[g]["size"]
    mark = -NEVER  # the largest stamp of another object of the same id that ranks above
    if rule["distinct"] == BEST:
        for i in range(head, place):
            if objects[i]["name"] == name:
                mark = max(mark, objects[i]["stamp"])
    kept = place
    for i in range(place, head + size):
        mine = rule["distinct"] == BEST and objects[i]["name"] == name
        gone = False
        if together or objects[i]["stamp"] <= stamp:
            if mine:
                gone = True
            elif not rule["ties"] or objects[i]["key"] < key:
                counted = mark > -NEVER and (together or mark >= objects[i]["stamp"])
                objects[i]["dom"] += not counted
                gone = objects[i]["dom"] >= K
        if mine:
            mark = max(mark, objects[i]["stamp"])
        if gone:
            lose_one(objects, i, report)
        else:
            objects[kept] = objects[i]
            kept += 1
    groups[g]["size"] = kept - head
    return int(head + size - kept)


# --- the answer


@uncounted
def settle(ranks: Ranks, report: Report, g: int) -> None:
    """Compare the answer with the one before: what leaves, then what enters."""
    objects, groups, rule = ranks.objects, ranks.groups, ranks.rule[0]
    head, size, edge = groups[g]["head"], groups[g]["size"], groups[g]["edge"]
    k = min(rule["k"], groups[g]["k"]) if rule["limits"] else rule["k"]
    last = 0
    for entering in (False, True):
        count, better, key, open_end = 0, 0, np.nan, True
        for i in range(head, head + size):
            if not open_end and (entering or i - head >= edge):
                break
            member = False
            if rule["above"]:
                member = objects[i]["eligible"] and objects[i]["key"] > rule["threshold"]
                open_end = objects[i]["key"] > rule["threshold"]
            elif objects[i]["counts"]:
                count += 1
                if rule["ties"]:
                    if objects[i]["key"] != key:
                        better, key = count - 1, objects[i]["key"]
                    member = better < k
                    open_end = better < k
                else:
                    member = rule["offset"] < count <= rule["offset"] + k
                    open_end = count < rule["offset"] + k
            if entering:
                if member and not objects[i]["inside"]:
                    enter(objects, i, 0, report)
            elif objects[i]["inside"] and not member:
                leave(objects, i, 0, report)
            if member:
                last = i - head + 1
    groups[g]["edge"] = last
