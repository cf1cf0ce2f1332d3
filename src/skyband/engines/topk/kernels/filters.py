"""The buffer of recent arrivals and the filters that let few of them through (pripuzic2015, section 5).

A filter is a small skyband of the buffer's objects, best first: strict, relaxed or probabilistic. An object gets two
attempts to reach its group's run. It is let through when it arrives if fewer than K of the filter rank above it, and
when it leaves the buffer if fewer than K of the filter, all of them newer, do. In between it is no answer, as long as
the buffer spans less than half a window (Theorem 5.1): the K better ones of its arrival are still valid. Any subset of
the buffer can be the filter.

Errata and details: the buffer is left by blocks, a little before it must be, which lets more through and is safe. The
first attempt counts on objects that are at most `reach` older, and an object waits `reach` at most: 2·reach < length
serves count windows (reach = b - 1, so b <= (n + 1) / 2) and time windows alike. A probabilistic filter forgets
objects of the buffer, so the second attempt is made for every object that leaves, not only for those it holds. Late
arrivals do not wait.

Cost: a comparison for an arrival that a probabilistic filter ignores, and one when it leaves; a shift within the filter
for others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.prune import loosen, prune
from skyband.engines.topk.kernels.state import Ints, Report, Skybands, is_full, with_places
from skyband.engines.topk.kernels.strict import insert
from skyband.kernels.compile import close, kernel, part, uncounted
from skyband.kernels.records import CAPPED, NEVER, RELAXED, SILENT, STRICT, Records, make_room


class Buffers(NamedTuple):
    """The buffers of all groups, each a run with the oldest first."""

    objects: Records
    groups: Records
    tally: Ints  # places of the arena in use
    most: int  # objects in a buffer
    reach: int  # how long an object may wait


@kernel
def sift(
    filters: Skybands, buffers: Buffers, report: Report, arrivals: Records, visits: Records, chosen: Records, K: int
) -> tuple[Records, Records, int]:
    """Choose the arrivals that the filters let through, in order, marked as silent where they have waited.

    Each visit is changed to its slice of these. Returns the arenas of filters and buffers, and how many are chosen;
    `chosen` has places for twice the arrivals and all that wait.
    """
    waiting, queues, most, reach = buffers.objects, buffers.groups, buffers.most, buffers.reach
    serial, n, block = report.serial, 0, max(1, most // 8)
    silent = unreported(report)
    for visit in range(len(visits)):
        g, low, end = visits[visit]["group"], visits[visit]["begin"], visits[visit]["end"]
        visits[visit]["begin"] = n
        while low < end:
            high = low + 1
            while high < end and high - low < block and arrivals[high]["now"] - arrivals[low]["now"] <= reach:
                high += 1
            gone = leaving_buffer(waiting, queues, g, most - (high - low), arrivals[high - 1]["now"] - reach - 1)
            before = arrivals[low]["now"] - 1
            n = second_attempts(filters, waiting, queues, K, g, gone, reach, before, serial, chosen, n)
            if queues[g]["head"] + queues[g]["size"] + high - low > queues[g]["start"] + queues[g]["room"]:
                waiting = make_room(waiting, queues, g, buffers.tally, high - low)
            while low < high:
                if is_full(filters.groups, g, 1):
                    filters = with_places(filters, g, 1)
                low, n = first_attempts(filters, silent, waiting, queues, K, g, arrivals, low, high, serial, chosen, n)
        if visits[visit]["last"] > -NEVER:  # time goes on to there
            gone = leaving_buffer(waiting, queues, g, most, visits[visit]["last"] - reach - 1)
            n = second_attempts(filters, waiting, queues, K, g, gone, reach, NEVER, serial, chosen, n)
        visits[visit]["end"] = n
    return filters.objects, waiting, n


@part
def unreported(report: Report) -> Report:
    """A report for filters: their objects are no rows of the batch, so that nothing is written."""
    return Report(report.changes, report.tally, report.step, report.alive, NEVER, report.joint, report.net, report.more)


@uncounted
def leaving_buffer(waiting: Records, queues: Records, g: int, stay: int, last: int) -> int:
    """How many must leave the buffer: so many may stay, and only those with a stamp above `last`."""
    head, size = queues[g]["head"], queues[g]["size"]
    gone = int(max(0, size - stay))
    while gone < size and waiting[head + gone]["stamp"] <= last:
        gone += 1
    return gone


@uncounted
def second_attempts(
    filters: Skybands,
    waiting: Records,
    queues: Records,
    K: int,
    g: int,
    gone: int,
    reach: int,
    before: int,  # the last step before they leave
    serial: int,
    chosen: Records,
    n: int,
) -> int:
    """The oldest `gone` leave the buffer: choose those that are not dominated by K of the filter."""
    if not gone:
        return n
    head = queues[g]["head"]
    forget(filters, K, g, waiting[head + gone - 1]["serial"])
    bar = bar_of(filters, K, g)
    for i in range(head, head + gone):
        if waiting[i]["key"] > bar or bar == -np.inf:  # at an equal key the newer one ranks above
            chosen[n]["key"] = waiting[i]["key"]
            chosen[n]["stamp"] = waiting[i]["stamp"]
            chosen[n]["now"] = min(before, waiting[i]["stamp"] + reach)
            chosen[n]["row"] = waiting[i]["serial"] - serial - SILENT
            n += 1
    queues[g]["head"] += gone
    queues[g]["size"] -= gone
    return n


@uncounted
def first_attempts(
    filters: Skybands,
    silent: Report,
    waiting: Records,
    queues: Records,
    K: int,
    g: int,
    arrivals: Records,
    low: int,
    high: int,
    serial: int,
    chosen: Records,
    n: int,
) -> tuple[int, int]:
    """Arrivals low..high enter the buffer: choose those with fewer than K of the filter above them, and late ones.

    Returns where it stops, at the end or for want of places in the filter, and how many are chosen.
    """
    for a in range(low, high):
        if arrivals[a]["stamp"] < arrivals[a]["now"]:  # late
            chosen[n] = arrivals[a]
            n += 1
            continue
        if is_full(filters.groups, g, 1):
            return a, n
        i = queues[g]["head"] + queues[g]["size"]
        waiting[i]["key"] = arrivals[a]["key"]
        waiting[i]["stamp"] = arrivals[a]["stamp"]
        waiting[i]["serial"] = serial + arrivals[a]["row"]
        queues[g]["size"] += 1
        if put(filters, silent, K, g, arrivals[a]["key"], arrivals[a]["stamp"], waiting[i]["serial"]) < K:
            chosen[n] = arrivals[a]
            n += 1
    return high, n


@uncounted
def bar_of(filters: Skybands, K: int, g: int) -> float:
    """The key of the filter's K-th object; -inf: it has fewer."""
    if filters.groups[g]["size"] < K:
        return -np.inf
    key: float = filters.objects[filters.groups[g]["head"] + K - 1]["key"]
    return key


@close
def put(filters: Skybands, silent: Report, K: int, g: int, key: float, stamp: int, serial: int) -> int:
    """Put an arrival into the filter, unless its rank is poor; returns how many of the filter rank above it."""
    objects, groups, rule, caps = filters.objects, filters.groups, filters.rule, filters.caps
    kind = rule[0]["kind"]
    if kind == CAPPED and key < caps[g]["threshold"]:
        return NEVER
    head, size = groups[g]["head"], groups[g]["size"]
    p = int(size)
    while p > 0 and objects[head + p - 1]["key"] <= key:
        p -= 1
    w = p if kind == STRICT else size
    for i in range(head + w, head + size):
        objects[i]["dom"] += 1
        if objects[i]["dom"] < K:
            if head + w < i:
                objects[head + w] = objects[i]
            w += 1
    head = insert(objects, head, p, w, key, stamp, serial, 0)
    groups[g]["head"] = head
    groups[g]["size"] = w + 1
    if kind == RELAXED and w + 1 - K >= caps[g]["limit"]:
        prune(filters, silent, K, g, -NEVER)
    elif kind == CAPPED and w + 1 >= K + rule[0]["limit"]:  # Alg. 1, step 4
        groups[g]["size"] = min(w + 1, K + rule[0]["limit"])
        caps[g]["threshold"] = objects[head + groups[g]["size"] - 1]["key"]
    return p


@uncounted
def forget(filters: Skybands, K: int, g: int, last: int) -> None:
    """Objects up to this serial leave the buffer, and so its filter."""
    objects, groups = filters.objects, filters.groups
    head, size = groups[g]["head"], groups[g]["size"]
    w = 0
    while w < size and objects[head + w]["serial"] > last:
        w += 1
    if w == size:
        return
    for i in range(head + w + 1, head + size):
        if objects[i]["serial"] > last:
            objects[head + w] = objects[i]
            w += 1
    groups[g]["size"] = w
    if filters.rule[0]["kind"] == CAPPED:
        for left in range(size - 1, w - 1, -1):
            loosen(filters, K, g, head, left)
