"""The steps of windows of uncertain tuples: tuples expire and arrive, answers are read again, changes are reported.

An arrival below the level of the front, and an expiry below the prefix that an answer was read from, change nothing: a
comparison each. Otherwise the answer is read again (prefix.py) and compared with the reported one (changes.py). A tuple
that is more probable than all before it counts as one above the prefix, whose length depends on that.
Arrivals stay in the batch's own arrays until a block of them is full; then they join the window, swept if the engine
drops tuples (front.py).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from skyband.engines.uncertain.kernels.changes import more_slots, report
from skyband.engines.uncertain.kernels.exclusive import new_walk, walk_any
from skyband.engines.uncertain.kernels.front import append, cut, expired, is_full, let_go, put, settle, sweep
from skyband.engines.uncertain.kernels.prefix import ENOUGH, FOUND, PASSED, SHARE, VALID
from skyband.engines.uncertain.kernels.records import (
    LOOP,
    RUN,
    Arena,
    Batch,
    Ints,
    Kept,
    Records,
    Reported,
    Rules,
    Step,
    Work,
    grown,
    shift,
    write_tuple,
)
from skyband.kernels.compile import close, kernel, uncounted
from skyband.kernels.records import NEVER, reserve

Grown: TypeAlias = tuple[Records, Records, Records, NDArray[np.uint64], Ints, Records]
EXPIRE, ARRIVE, READ, CLOSE = 0, 1, 2, 3  # stages of a step; CLOSE: of a visit
MARGIN = 1 / 64  # by which the bound of probabilities is more than the one that passed it
# what a stage needs before it can go on: more capacity of an array, or a sweep
NOTHING, SWEEP, WINDOW, FRONT, ANSWERS, SLOTS, CHANGES, WALK = 0, 1, 2, 3, 4, 5, 6, 7


@close
def free_places(kept: Kept, g: int) -> int:
    """How many arrivals can join the window."""
    run = kept.window.runs[g]
    return int(run["start"] + run["room"] - run["head"] - run["size"])


@close
def join(kept: Kept, batch: Batch, work: Work, loop: Records, g: int) -> int:
    """The arrivals of the block join the window, all of them."""
    at = loop[0]
    if free_places(kept, g) < at["arrival"] - at["block"]:
        at["need"] = at["arrival"] - at["block"]
        return WINDOW
    append(kept, batch, g, at["block"], at["arrival"], work.slots, at["slotted"] != 0)
    at["block"], at["slotted"] = at["arrival"], 0
    return NOTHING


@close
def read_again(kept: Kept, reported: Reported, rules: Rules, work: Work, loop: Records, g: int) -> int:
    """Read the answer of a query from the front, and report its changes."""
    at, found, Q = loop[0], work.walk, len(rules.queries)
    q = at["reading"]
    a, query, group = g * Q + q, rules.queries[q], kept.groups[g]
    view, front = kept.views[a], kept.front.records
    head, size = kept.front.runs[g]["head"], kept.front.runs[g]["size"]
    if len(found.at) < size:
        at["need"] = 2 * size
        return WALK
    k, threshold = query["k"], query["threshold"]
    first, guess, found.most[0] = view["first"], view["guess"], kept.most[g]
    walk_any(found.rivals, False, front, head, size, first, k, rules.semantics, threshold, guess, SHARE, found)
    passed, many, enough = found.result[PASSED], found.result[FOUND], found.result[ENOUGH]
    if not enough and group["level"] != -np.inf:  # the front is used up
        soon = 4 * group["since"] < kept.window.runs[g]["size"]
        group["target"] = max(rules.least, group["target"] * 2 if soon else group["target"] // 2)
        return SWEEP
    view["guess"] = found.result[VALID] - 1 if enough else 0
    view["floor"] = front[head + passed - 1]["key"] if enough else -np.inf
    if rules.timed:
        oldest = NEVER - query["length"]
        for j in range(passed):
            if front[head + j]["mark"] >= view["first"]:
                oldest = min(oldest, front[head + j]["stamp"])
        view["due"] = oldest + query["length"]
    if not rules.net or at["stage"] == CLOSE:
        had = reported.answers.runs[a]["size"]
        at["need"] = many
        if reported.written[1] + many + had > len(reported.changes):
            at["need"] = many + had
            return CHANGES
        if many > reported.answers.runs[a]["room"]:
            return ANSWERS
        if reported.slots[0] - reported.slots[1] + many > len(reported.entered):
            return SLOTS
        step = Step(at["visit"], q, at["instant"], at["row"])
        slotted = report(kept, reported, found, work.slots, g, a, step, query["bit"], rules.semantics)
        at["slotted"] |= slotted
    at["reading"] = -1
    return NOTHING


@close
def expire(kept: Kept, reported: Reported, batch: Batch, rules: Rules, work: Work, loop: Records, g: int) -> int:
    """Each query lets go of what has expired, instant by instant; where that touches its prefix, it is read again.

    Returns the next stage.
    """
    at, group, run, Q = loop[0], kept.groups[g], kept.window.runs[g], len(rules.queries)
    visit, i, tuples, stamps = batch.visits[at["visit"]], at["arrival"], kept.window.records, batch.stamps
    now = batch.now[i] if i < visit["end"] else visit["last"]
    beyond = group["base"] + run["size"]  # the first position in the block
    old, new, end = run["head"] - group["base"], at["block"] - beyond, beyond + i - at["block"]
    q = at["query"]
    while q < Q:
        view, length = kept.views[g * Q + q], rules.queries[q]["length"]
        first = view["first"]
        if first == end:
            q += 1
            continue
        stamp = tuples[old + first]["stamp"] if first < beyond else stamps[new + first]
        if stamp + length > now:
            q += 1
            continue
        group["now"] = max(group["now"], stamp + length)
        hit, other = False, stamp
        while other == stamp:
            hit |= (tuples[old + first]["key"] if first < beyond else batch.keys[new + first]) >= view["floor"]
            first += 1
            if first == end:
                break
            other = tuples[old + first]["stamp"] if first < beyond else stamps[new + first]
        view["first"], view["low"] = first, stamp
        if hit and not rules.net:
            if not rules.timed and stamp + length == now and i < visit["end"]:
                work.affected[q] = True  # count windows: one step with the arrival
            else:
                at["query"], at["reading"], at["instant"], at["row"] = q, q, stamp + length, -1
                return EXPIRE
    group["now"] = max(group["now"], now)
    let_go(kept, reported, g, kept.views[g * Q + rules.widest]["first"])
    at["query"] = 0
    return ARRIVE if i < visit["end"] else CLOSE


@close
def arrive(kept: Kept, batch: Batch, rules: Rules, work: Work, loop: Records, g: int) -> int:
    """The next arrival takes its position, and its place in the front."""
    at, group, Q = loop[0], kept.groups[g], len(rules.queries)
    i = at["arrival"]
    key, stamp = batch.keys[i], batch.stamps[i]
    late = stamp < group["newest"]
    if free_places(kept, g) < i - at["block"] + late:
        at["need"] = i - at["block"] + 1
        return WINDOW
    if is_full(kept.front, g):
        return FRONT
    p = batch.probabilities[i]
    if p > kept.most[g]:  # a little more, so that rising probabilities seldom do it
        kept.most[g] = min(1.0, p + p * MARGIN)
        for q in range(Q):
            work.affected[q] = True
    if late:
        join(kept, batch, work, loop, g)
        insert_late(kept, batch, rules, work, g, i)
        at["block"] = i + 1
    else:
        group["newest"] = stamp
        pos = group["base"] + kept.window.runs[g]["size"] + i - at["block"]
        for q in range(Q):
            view = kept.views[g * Q + q]
            if rules.timed and stamp + rules.queries[q]["length"] <= batch.now[i]:  # outside of a shorter window
                view["first"], view["low"] = pos + 1, stamp
            else:
                work.affected[q] |= key >= view["floor"]
        if key >= group["level"]:
            write_tuple(work.fresh, 0, batch, i, pos)
            put(kept.front, g, work.fresh)
            if kept.front.runs[g]["size"] > 8 * group["target"] + 16 * rules.least:
                cut(kept.front, g, max(group["target"], 2 * kept.views[g * Q + rules.widest]["guess"]), group)
    group["since"] += 1
    at["arrival"] = i + 1
    return NOTHING


@uncounted
def insert_late(kept: Kept, batch: Batch, rules: Rules, work: Work, g: int, i: int) -> None:
    """A late arrival goes to its place by age, behind those of the same time; there are free places."""
    run, group, front, Q = kept.window.runs[g], kept.groups[g], kept.front, len(rules.queries)
    key, stamp = batch.keys[i], batch.stamps[i]
    behind = expired(kept.window, g, stamp)
    place = run["head"] + behind
    shift(kept.window.records, place, place + 1, run["size"] - behind)
    write_tuple(kept.window.records, place, batch, i, -1)
    run["size"] += 1
    pos = group["base"] + behind
    head = front.runs[g]["head"]
    for j in range(head, head + front.runs[g]["size"]):
        if front.records[j]["mark"] >= pos:
            front.records[j]["mark"] += 1
    for q in range(Q):
        view = kept.views[g * Q + q]
        if stamp > group["now"] - rules.queries[q]["length"]:
            work.affected[q] |= key >= view["floor"]
            view["first"] = min(view["first"], pos)
        else:
            view["first"] += 1
            view["low"] = max(view["low"], stamp)
    if key >= group["level"]:
        write_tuple(work.fresh, 0, batch, i, pos)
        put(front, g, work.fresh)


@close
def read(kept: Kept, batch: Batch, rules: Rules, work: Work, loop: Records, g: int) -> int:
    """The next query that the step has affected is read again; after the last one, arrivals without effect pass.

    Returns the next stage.
    """
    at, group, run, Q = loop[0], kept.groups[g], kept.window.runs[g], len(rules.queries)
    i, now, stamps, keys = at["arrival"], batch.now, batch.stamps, batch.keys
    for q in range(at["query"], Q):
        again = work.affected[q] and not rules.net
        work.affected[q] = False
        if again:
            at["query"], at["reading"], at["instant"], at["row"] = q + 1, q, now[i - 1], batch.rows[i - 1]
            return READ
    beyond, due = group["base"] + run["size"], NEVER
    old, new, end = run["head"] - group["base"], at["block"] - beyond, beyond + i - at["block"]
    for q in range(Q):
        first, length = kept.views[g * Q + q]["first"], rules.queries[q]["length"]
        if first == end:
            due = -NEVER
        else:
            stamp = kept.window.records[old + first]["stamp"] if first < beyond else stamps[new + first]
            due = min(due, stamp + length)
    to = min(batch.visits[at["visit"]]["end"], at["block"] + rules.block)
    level, newest, most, p = group["level"], group["newest"], kept.most[g], batch.probabilities
    while i < to and keys[i] < level and p[i] <= most and now[i] < due and stamps[i] >= newest:  # and none expires
        newest = stamps[i]
        i += 1
    group["newest"] = newest
    group["since"] += i - at["arrival"]
    at["arrival"], at["query"] = i, 0
    return EXPIRE


@close
def end_visit(kept: Kept, reported: Reported, batch: Batch, rules: Rules, work: Work, loop: Records, g: int) -> int:
    """Net changes are reported, the rest of the block joins the window, and the next visit can begin."""
    at, group, Q = loop[0], kept.groups[g], len(rules.queries)
    if rules.net and not rules.more and at["query"] < Q:
        at["reading"], at["instant"], at["row"] = at["query"], batch.visits[at["visit"]]["last"], -1
        at["query"] += 1
        return NOTHING
    waiting = at["arrival"] - at["block"]
    if rules.drops and kept.window.runs[g]["size"] + waiting > 4 * group["kept"] + rules.least:
        return SWEEP
    if waiting:
        return join(kept, batch, work, loop, g)
    let_go(kept, reported, g, kept.views[g * Q + rules.widest]["first"])
    group["open"] = rules.net and rules.more
    group["due"] = NEVER
    for q in range(Q):
        group["due"] = min(group["due"], kept.views[g * Q + q]["due"])
    at["visit"] += 1
    at["started"] = 0
    return NOTHING


@close
def is_too_long(kept: Kept, rules: Rules, waiting: int, g: int) -> bool:
    """Is the window with a full block to be swept?"""
    left = kept.groups[g]["kept"]
    return bool(kept.window.runs[g]["size"] + waiting > max(rules.least, min(16 * left, 2 * left + rules.block)))


@uncounted
def advance(kept: Kept, reported: Reported, batch: Batch, rules: Rules, work: Work, loop: Records) -> int:
    """Take steps until all are done (NOTHING is needed), or return what is needed first."""
    at, need = loop[0], NOTHING
    while need == NOTHING and at["visit"] < len(batch.visits):
        visit = batch.visits[at["visit"]]
        g = visit["group"]
        if not at["started"]:
            at["block"] = at["arrival"] = visit["begin"]
            at["started"], at["stage"], at["query"], at["reading"] = 1, EXPIRE, 0, -1
        waiting = at["arrival"] - at["block"]
        if waiting == rules.block:
            too_long = rules.drops and is_too_long(kept, rules, waiting, g)
            need = SWEEP if too_long else join(kept, batch, work, loop, g)
        elif at["reading"] >= 0:
            need = read_again(kept, reported, rules, work, loop, g)
        elif at["stage"] == CLOSE:
            need = end_visit(kept, reported, batch, rules, work, loop, g)
        else:  # one stage after the other, if nothing comes between
            stage = at["stage"]
            if stage == EXPIRE:
                stage = expire(kept, reported, batch, rules, work, loop, g)
            if stage == ARRIVE:
                need = arrive(kept, batch, rules, work, loop, g)
                stage = READ if need == NOTHING else ARRIVE
            if stage == READ:
                stage = read(kept, batch, rules, work, loop, g)
            at["stage"] = stage
    return need


@kernel
def take_groups(kept: Kept, reported: Reported, batch: Batch, rules: Rules) -> Grown:
    """Take a batch, group by group; returns the arrays that may have grown, not in a NamedTuple (4 us each)."""
    longest, Q = min(rules.block, len(batch.keys)), len(rules.queries)
    affected = np.zeros(Q, np.bool_)
    slots, staying = np.full(longest, -1, np.int64), np.empty(longest, np.int64)
    dtype = kept.window.records.dtype
    ranking, fresh = Arena(np.empty(0, dtype), np.zeros(1, RUN), np.zeros(1, np.int64)), np.empty(1, dtype)
    found = new_walk(64, rules.k, rules.semantics, batch.rivals)
    loop = np.zeros(1, LOOP)
    at = loop[0]
    window, front, answers, changes = kept.window, kept.front, reported.answers, reported.changes
    while True:
        work = Work(affected, slots, staying, ranking, fresh, found)
        need = advance(kept, reported, batch, rules, work, loop)
        if need == NOTHING:
            return window.records, front.records, answers.records, reported.entered, reported.free, changes
        g = batch.visits[at["visit"]]["group"]
        if need == SWEEP:
            most = window.runs[g]["size"] + at["arrival"] - at["block"]
            if len(ranking.records) < 2 * most + 2:  # `most` on both sides of the middle
                ranking = Arena(np.empty(2 * most + 2, dtype), ranking.runs, ranking.used)
            if rules.drops and len(found.at) < most:
                found = new_walk(most, rules.k, rules.semantics, batch.rivals)
            work = Work(affected, slots, staying, ranking, fresh, found)
            sweep(kept, reported, batch, rules, work, loop, g)
            if free_places(kept, g) < at["staying"]:
                window = grown(window, g, at["staying"])
            front.runs[g]["size"] = 0
            front = grown(front, g, ranking.runs[0]["size"] + 1)
            kept = Kept(window, front, kept.groups, kept.views, kept.most)
            settle(kept, batch, rules, work, loop, g)
        elif need == WINDOW:
            window = grown(window, g, at["need"])
        elif need == FRONT:
            front = grown(front, g, 1)
        elif need == ANSWERS:
            answers = grown(answers, g * Q + at["reading"], at["need"])
        elif need == SLOTS:
            reported = more_slots(reported, at["need"])
        elif need == CHANGES:
            changes = reserve(changes, reported.written, at["need"])
        else:
            found = new_walk(at["need"], rules.k, rules.semantics, batch.rivals)
        kept = Kept(window, front, kept.groups, kept.views, kept.most)
        reported = Reported(answers, reported.entered, reported.free, reported.slots, changes, reported.written)
