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

import math

import numpy as np

from skyband.engines.topk.kernels.prune import loosen, prune
from skyband.kernels.compile import kernel, part
from skyband.kernels.records import CAPPED, CHANGE, NEVER, RELAXED, SILENT, STRICT, VIEW, Records, make_room


@kernel
def sift_lanes(
    sieve: Records,  # the filters' objects
    sieves: Records,  # per group
    mesh: Records,  # the filters' caps, per group
    rule: Records,  # of the filters
    tally: Records,  # places of the filters in use
    waiting: Records,  # the buffers' objects, oldest first
    queues: Records,  # per group
    length: Records,  # places of the buffers in use
    arrivals: Records,
    visits: Records,
    K: int,
    most: int,  # objects of a buffer
    reach: int,  # how long one may wait
    serial: int,
    chosen: Records,  # room for twice the arrivals and all who wait
    slices: Records,  # the visits, with what is chosen
) -> tuple[Records, Records, int]:
    """Whom the filters let through, in order, those who have waited marked as silent; and how many these are."""
    n, block = 0, max(1, most // 8)
    for visit in range(len(visits)):
        g, low, end = visits[visit]["group"], visits[visit]["begin"], visits[visit]["end"]
        slices[visit]["begin"] = n
        while low < end:
            high = low + 1
            while high < end and high - low < block and arrivals[high]["now"] - arrivals[low]["now"] <= reach:
                high += 1
            room, last = most - (high - low), arrivals[high - 1]["now"] - reach - 1
            gone = leaving(waiting, queues, g, room, last)
            before = arrivals[low]["now"] - 1
            n = second_attempt(sieve, sieves, mesh, rule, waiting, queues, g, K, gone, reach, before, serial, chosen, n)
            if queues[g]["head"] + queues[g]["size"] + high - low > queues[g]["start"] + queues[g]["room"]:
                waiting = make_room(waiting, queues, g, length, high - low)
            for a in range(low, high):
                if arrivals[a]["stamp"] < arrivals[a]["now"]:  # late
                    chosen[n] = arrivals[a]
                    n += 1
                    continue
                i = queues[g]["head"] + queues[g]["size"]
                waiting[i]["key"] = arrivals[a]["key"]
                waiting[i]["stamp"] = arrivals[a]["stamp"]
                waiting[i]["serial"] = serial + arrivals[a]["row"]
                queues[g]["size"] += 1
                head, start = sieves[g]["head"], sieves[g]["start"]
                if head == start or head + sieves[g]["size"] == start + sieves[g]["room"]:
                    sieve = make_room(sieve, sieves, g, tally, 1)
                rank = put(
                    sieve, sieves, mesh, rule, K, g, arrivals[a]["key"], arrivals[a]["stamp"], waiting[i]["serial"]
                )
                if rank < K:
                    chosen[n] = arrivals[a]
                    n += 1
            low = high
        if visits[visit]["last"] > -NEVER:  # time goes on to there
            gone = leaving(waiting, queues, g, most, visits[visit]["last"] - reach - 1)
            n = second_attempt(sieve, sieves, mesh, rule, waiting, queues, g, K, gone, reach, NEVER, serial, chosen, n)
        slices[visit]["end"] = n
    return sieve, waiting, n


@part
def leaving(waiting: Records, queues: Records, g: int, room: int, last: int) -> int:
    """How many must leave the buffer: so many may stay, and only those with a stamp above `last`."""
    head, size = queues[g]["head"], queues[g]["size"]
    gone = int(max(0, size - room))
    while gone < size and waiting[head + gone]["stamp"] <= last:
        gone += 1
    return gone


@part
def second_attempt(
    sieve: Records,
    sieves: Records,
    mesh: Records,
    rule: Records,
    waiting: Records,
    queues: Records,
    g: int,
    K: int,
    gone: int,
    reach: int,
    before: int,  # the last step before they go
    serial: int,
    chosen: Records,
    n: int,
) -> int:
    """The oldest `gone` of the buffer leave: who of them is not dominated by K of the filter?"""
    if not gone:
        return n
    head = queues[g]["head"]
    forget(sieve, sieves, mesh, rule, K, g, waiting[head + gone - 1]["serial"])
    few = sieves[g]["size"] < K
    bar = -np.inf if few else sieve[sieves[g]["head"] + K - 1]["key"]
    for i in range(head, head + gone):
        if few or waiting[i]["key"] > bar:  # at an equal key the newer one ranks above
            chosen[n]["key"] = waiting[i]["key"]
            chosen[n]["stamp"] = waiting[i]["stamp"]
            chosen[n]["now"] = min(before, waiting[i]["stamp"] + reach)
            chosen[n]["row"] = waiting[i]["serial"] - serial - SILENT
            n += 1
    queues[g]["head"] += gone
    queues[g]["size"] -= gone
    return n


@part
def put(
    sieve: Records, sieves: Records, mesh: Records, rule: Records, K: int, g: int, key: float, stamp: int, serial: int
) -> int:
    """Put an arrival into the filter, unless its rank is poor; returns how many of the filter rank above it."""
    kind = rule[0]["kind"]
    if kind == CAPPED and key < mesh[g]["threshold"]:
        return NEVER
    head, size = sieves[g]["head"], sieves[g]["size"]
    p = int(size)
    while p > 0 and sieve[head + p - 1]["key"] <= key:
        p -= 1
    w = p if kind == STRICT else size
    for i in range(head + w, head + size):
        sieve[i]["dom"] += 1
        if sieve[i]["dom"] < K:
            if head + w < i:
                sieve[head + w] = sieve[i]
            w += 1
    if w - p <= p:
        for i in range(head + w, head + p, -1):
            sieve[i] = sieve[i - 1]
    else:
        head -= 1
        for i in range(head, head + p):
            sieve[i] = sieve[i + 1]
        sieves[g]["head"] = head
    sieve[head + p]["key"] = key
    sieve[head + p]["stamp"] = stamp
    sieve[head + p]["serial"] = serial
    sieve[head + p]["dom"] = 0
    sieve[head + p]["inside"] = sieve[head + p]["shown"] = 0
    sieve[head + p]["was"] = 0
    sieves[g]["size"] = w + 1
    if kind == RELAXED and w + 1 - K >= mesh[g]["limit"]:
        none, nobody, nothing = np.empty(0, VIEW), np.empty(0, np.bool_), np.empty(0, CHANGE)
        prune(sieve, sieves, none, 0, K, g, -NEVER, nobody, NEVER, nothing, np.empty(0, np.int64), nothing)
        mesh[g]["limit"] = math.ceil((1 + rule[0]["gamma"]) * max(0, sieves[g]["size"] - K))
    elif kind == CAPPED and w + 1 >= K + rule[0]["limit"]:  # Alg. 1, step 4
        sieves[g]["size"] = min(w + 1, K + rule[0]["limit"])
        mesh[g]["threshold"] = sieve[head + sieves[g]["size"] - 1]["key"]
    return p


@part
def forget(sieve: Records, sieves: Records, mesh: Records, rule: Records, K: int, g: int, last: int) -> None:
    """The buffer lets go of everyone up to this serial."""
    head, size = sieves[g]["head"], sieves[g]["size"]
    w = 0
    while w < size and sieve[head + w]["serial"] > last:
        w += 1
    if w == size:
        return
    for i in range(head + w + 1, head + size):
        if sieve[i]["serial"] > last:
            sieve[head + w] = sieve[i]
            w += 1
    sieves[g]["size"] = w
    if rule[0]["kind"] == CAPPED:
        for left in range(size - 1, w - 1, -1):
            loosen(sieve, head, left, K, g, rule, mesh)
