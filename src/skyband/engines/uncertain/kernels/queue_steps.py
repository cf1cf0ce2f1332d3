"""The steps of a visit, for engines of compact sets: what happens next, and how an answer that is read is reported.

`advance` goes from one step to the next and returns what an engine must do: insert the arrived tuple, or find the best
tuples of a query's window, from which `report` reads the answer. Everything that has left the longest window expires
before.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from skyband.engines.uncertain.kernels.changes import order_of, write
from skyband.engines.uncertain.kernels.prefix import EACH, ENOUGH, FOUND, PASSED, walk
from skyband.engines.uncertain.kernels.queue import WORK, Queue
from skyband.engines.uncertain.kernels.records import Batch, Ints, Records, Reported, Rules, Step, grown
from skyband.kernels.compile import part, uncounted
from skyband.kernels.records import NEVER, reserve

ARRIVE, READ, DONE, MORE, NEXT = 0, 1, 2, 3, 4  # what is to be done; MORE: nothing, and the next arrival can come
TIME, TOUCH, LAST, CLOSE = 0, 1, 2, 3  # stages: time goes on, an arrival is in, time after the last one, net changes
SHOWN = np.dtype(  # of one group for one query
    [
        ("low", "i8"),  # the largest stamp that has left its window
        ("floor", "f8"),  # worse keys do not touch the answer
        ("due", "i8"),  # no tuple that the answer was read from expires before this instant
        ("touched", "i8"),  # 1: the step may have changed it
    ],
    align=True,
)
STEPS = np.dtype(  # where the loop over steps is
    [
        ("started", "i8"),
        ("stage", "i8"),
        ("arrival", "i8"),  # the next one
        ("query", "i8"),  # the next one of this stage
        ("low", "i8"),  # the largest stamp that has left all windows
        ("reading", "i8"),  # the largest stamp that has left the window which is read
        ("of", "i8"),  # the query that is read, the instant and the row of its step
        ("instant", "i8"),
        ("row", "i8"),
    ],
    align=True,
)


class Held(NamedTuple):
    """The answers of one group."""

    group: Records  # [GROUP]
    views: Records  # SHOWN, by query
    reported: Reported  # its answers by query; whether a tuple enters for the first time is found out elsewhere
    loop: Records  # [STEPS]


Returned: TypeAlias = tuple[Records, Records, Records, Ints, Records, Records]


@part
def returned(queue: Queue, held: Held) -> Returned:
    """The arrays that may have grown, not in a NamedTuple (4 us each)."""
    reported = held.reported
    return (
        queue.lists.records, queue.lists.runs, queue.sets, queue.free, reported.answers.records, reported.changes,
    )  # fmt: skip


@uncounted
def advance(held: Held, batch: Batch, rules: Rules, v: int, arrived: Records) -> int:
    """Go on to what must be done next."""
    at, visit = held.loop[0], batch.visits[v]
    if not at["started"]:
        at["started"], at["stage"], at["arrival"], at["query"] = 1, TIME, visit["begin"], 0
    op = NEXT
    while op == NEXT:
        if at["stage"] == TIME or at["stage"] == LAST:
            if at["stage"] == TIME and at["arrival"] == visit["end"]:
                at["stage"], at["query"] = LAST, 0
            op = expire(held, batch, rules, v, arrived)
        elif at["stage"] == TOUCH:
            op = touch(held, batch, rules)
        else:
            op = close(held, rules, visit["last"])
    if op != MORE:
        at["low"] = NEVER
        for q in range(len(rules.queries)):
            at["low"] = min(at["low"], held.views[q]["low"])
    return op


@uncounted
def read_at(held: Held, q: int, instant: int, row: int) -> int:
    at = held.loop[0]
    at["of"], at["instant"], at["row"], at["reading"] = q, instant, row, held.views[q]["low"]
    return READ


@uncounted
def expire(held: Held, batch: Batch, rules: Rules, v: int, arrived: Records) -> int:
    """Time goes on to the next arrival, or to the end of the visit: each query lets go of what expires until then."""
    at, group, i, last = held.loop[0], held.group[0], held.loop[0]["arrival"], held.loop[0]["stage"] == LAST
    now = batch.visits[v]["last"] if last else batch.now[i]
    while at["query"] < len(rules.queries):
        q = at["query"]
        view, length = held.views[q], rules.queries[q]["length"]
        if not rules.net and view["due"] <= now:
            instant = view["due"]
            view["low"] = instant - length  # finite, since something is due
            if last or rules.timed or instant != now:
                return read_at(held, q, instant, -1)
            view["touched"] = 1  # count windows: one step with the arrival
        view["low"] = max(view["low"], now - length)
        at["query"] = q + 1
    group["now"] = max(group["now"], now)
    at["query"] = 0
    if last:
        at["stage"] = CLOSE
        return NEXT
    one = arrived[0]
    one["key"], one["p"], one["stamp"] = batch.keys[i], batch.probabilities[i], batch.stamps[i]
    one["serial"], one["mark"] = batch.serial + batch.rows[i], 0
    group["newest"] = max(group["newest"], one["stamp"])
    for q in range(len(rules.queries)):
        view = held.views[q]
        if one["stamp"] > view["low"] and one["key"] >= view["floor"]:
            view["touched"] = 1
    at["stage"] = TOUCH
    return ARRIVE


@uncounted
def touch(held: Held, batch: Batch, rules: Rules) -> int:
    """The next query whose answer the step may have changed is read again."""
    at = held.loop[0]
    i = at["arrival"]
    while at["query"] < len(rules.queries):
        q = at["query"]
        view = held.views[q]
        touched = view["touched"] and not rules.net
        view["touched"], at["query"] = 0, q + 1
        if touched:
            return read_at(held, q, batch.now[i], batch.rows[i])
    at["arrival"], at["stage"], at["query"] = i + 1, TIME, 0
    return MORE


@uncounted
def close(held: Held, rules: Rules, last: int) -> int:
    """Net changes are read at the end of a batch."""
    at, group = held.loop[0], held.group[0]
    if rules.net and not rules.more and at["query"] < len(rules.queries):
        at["query"] += 1
        return read_at(held, at["query"] - 1, last, -1)
    group["open"] = rules.net and rules.more
    at["started"] = 0
    return DONE


@part
def report(held: Held, queue: Queue, r: int) -> Held:
    """Read the answer from a run of the best tuples, and report how it differs from the last one."""
    at, rules, reported = held.loop[0], queue.rules, held.reported
    q, found = at["of"], queue.walk
    query, view, run = rules.queries[q], held.views[q], queue.lists.runs[r]
    head, records = run["head"], queue.lists.records
    walk(records, head, run["size"], -1, query["k"], rules.semantics, query["threshold"], 0, EACH, found)
    passed, many = found.result[PASSED], found.result[FOUND]
    queue.facts[WORK] += passed
    view["floor"] = records[head + passed - 1]["key"] if found.result[ENOUGH] else -np.inf
    view["due"] = NEVER
    for j in range(head, head + passed):
        view["due"] = min(view["due"], records[j]["stamp"] + query["length"])
    answers, changes = reported.answers, reported.changes
    changes = reserve(changes, reported.written, many + answers.runs[q]["size"])
    if many > answers.runs[q]["room"]:
        answers = grown(answers, q, many)
    reported = Reported(
        answers, reported.entered, reported.free, reported.slots, changes, reported.written
    )  # fmt: skip
    write_changes(reported, records, head, queue, Step(0, q, at["instant"], at["row"]))
    return Held(held.group, held.views, reported, held.loop)


@uncounted
def write_changes(reported: Reported, records: Records, head: int, queue: Queue, step: Step) -> None:
    """The tuples that leave, those that enter, and the new answer; there is capacity."""
    run, answers, found = reported.answers.runs[step.query], reported.answers.records, queue.walk
    old, was, n, semantics = run["size"], run["head"], found.result[FOUND], queue.rules.semantics
    at, j = 0, 0
    while at < old or j < n:
        order = 1
        if j == n:
            order = -1
        elif at < old:
            order = order_of(answers, was + at, records, head + found.at[j], found.rank[j], semantics)
        if order == -1 or order == 2:
            i = was + at
            write(reported, answers, i, answers[i]["p"], answers[i]["mark"], step, -1, False)
        if order != -1:
            found.chosen[j] = order != 0  # does it enter
            j += 1
        if order != 1:
            at += 1
    for j in range(n):
        if found.chosen[j]:
            write(reported, records, head + found.at[j], found.chance[j], found.rank[j], step, 1, False)
    run["head"], run["size"] = run["start"], n
    for j in range(n):
        to = answers[run["start"] + j]
        answers[run["start"] + j] = records[head + found.at[j]]
        to["p"], to["mark"] = found.chance[j], found.rank[j]
