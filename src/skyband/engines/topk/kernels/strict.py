"""The k-skybands of many groups, for up to 32 standing queries at once (pripuzic2015, section 4).

Each group keeps its skyband as one score-sorted run of records in a shared arena, best first, with free room
on both sides; insertions and removals shift the shorter side. A record carries its dominance counter: how many
kept objects rank above it and do not expire before it (Definition 3.8). It goes when the counter reaches K, the
largest k of the queries, or when the largest window lets go of it. A rule other than STRICT keeps no counters and
prunes after an arrival instead (kernels/prune.py).

A query sees its own k and window of that run through a view: its members carry the query's bit in `inside`, and
`edge` is one past the last of them. A query that is not full has `edge` at the run's end.

Cost of an arrival: O(b + log) where b objects rank below it, and each object is passed at most K times before it
is dropped: O(K) amortised. In random order about K records are touched, none of the n in the window.

Ties: the newer ranks above; in count windows the later arrival, in time windows the later time, then the later
arrival. `stamp` is the arrival's number in its group or its time, so one comparison serves both.

Errata: Alg. 1-2 and 3-5 remove the expired object and add the arrival one after the other; then a candidate
could be promoted and displaced within one step. Here both are one step (`arrive`), as Definition 3.5 demands.
The time tree of the paper is not needed: the oldest object of a skyband is one of its K best (Lemma 4.8).
"""

from __future__ import annotations

import math

import numpy as np

from skyband.engines.topk.kernels.changes import enter, leave, lose, write
from skyband.engines.topk.kernels.prune import cap, loosen, prune
from skyband.kernels.compile import kernel, part
from skyband.kernels.records import BITS, CAPPED, NEVER, RELAXED, SILENT, STRICT, Records, make_room, reserve


@kernel
def take_bands(
    objects: Records,  # the arena
    groups: Records,
    views: Records,  # one per group and query, group by group
    queries: Records,
    tally: Records,  # [places of the arena in use, changes written]
    arrivals: Records,  # sorted by group, in order within a group
    visits: Records,  # which groups, each with its slice of the arrivals and its last instant
    alive: Records,  # per row of the batch: is it kept now
    serial: int,  # of the batch's first row
    joint: bool,  # count windows: an arrival and what it pushes out are one step
    net: bool,  # report each group once, by its answers before and after
    more: bool,  # net: the batch goes on, report later
    out: Records,
    rule: Records,  # what is pruned
    caps: Records,  # per group, unless the rule is strict
) -> tuple[Records, Records]:
    """Take the arrivals of each visited group; returns the arena and the changes, since both may have moved."""
    step = np.zeros(1, out.dtype)
    K = 0
    for q in range(len(queries)):
        K = max(K, queries[q]["k"])
    for visit in range(len(visits)):
        g, a, end = visits[visit]["group"], visits[visit]["begin"], visits[visit]["end"]
        step[0]["visit"] = visit
        if net:
            if not groups[g]["open"]:
                remember(objects, groups, g)
            groups[g]["open"] = more
        while True:
            out = reserve(out, tally, len(queries) * 2 * min(K + 2, groups[g]["size"] + 2))
            a = take_group(
                objects,
                groups,
                views,
                queries,
                K,
                g,
                arrivals,
                a,
                end,
                alive,
                serial,
                joint,
                net,
                out,
                tally,
                step,
                rule,
                caps,
            )
            if a == end:
                break
            head, start = groups[g]["head"], groups[g]["start"]
            if head == start or head + groups[g]["size"] == start + groups[g]["room"]:
                objects = make_room(objects, groups, g, tally, 1)
        last = visits[visit]["last"]
        out = reserve(out, tally, len(queries) * 2 * min(K + 2, groups[g]["size"] + 2))
        while groups[g]["due"] <= last and not expire(
            objects, groups, views, queries, K, g, last, alive, serial, out, tally, step, net, rule, caps
        ):
            out = reserve(out, tally, len(queries) * 2 * min(K + 2, groups[g]["size"] + 2))
        if net and not more:
            step[0]["instant"] = last
            step[0]["row"] = -1
            out = reserve(out, tally, len(queries) * 2 * min(K + 2, groups[g]["size"] + 2))
            compare(objects, groups, g, len(queries), out, tally, step)
    return objects, out


@part
def take_group(
    objects: Records,
    groups: Records,
    views: Records,
    queries: Records,
    K: int,
    g: int,
    arrivals: Records,
    begin: int,
    end: int,
    alive: Records,
    serial: int,
    joint: bool,
    net: bool,
    out: Records,
    tally: Records,
    step: Records,
    rule: Records,
    caps: Records,
) -> int:
    """Arrivals begin..end of one group, a step each. Returns where it stopped: at the end, or for want of room.

    No array changes its place in here: counting references to moved arrays would cost more than the work.
    """
    Q, kind = len(queries), rule[0]["kind"]
    shortest, longest = NEVER, 0
    for q in range(Q):
        shortest = min(shortest, queries[q]["length"])
        longest = max(longest, queries[q]["length"])
    for a in range(begin, end):
        key, stamp, now = arrivals[a]["key"], arrivals[a]["stamp"], arrivals[a]["now"]
        head, size = groups[g]["head"], groups[g]["size"]
        if head == groups[g]["start"] or head + size == groups[g]["start"] + groups[g]["room"]:
            return a
        if tally[1] + 2 * Q * min(K + 2, size + 2) > len(out):
            return a
        silent = arrivals[a]["row"] < 0
        own = serial + arrivals[a]["row"] + (SILENT if silent else 0)
        if groups[g]["due"] <= now:
            if not expire(
                objects,
                groups,
                views,
                queries,
                K,
                g,
                now - (joint and not silent),
                alive,
                serial,
                out,
                tally,
                step,
                net,
                rule,
                caps,
            ):
                return a
            if joint and not silent:
                step[0]["row"] = arrivals[a]["row"]
                step[0]["instant"] = now
                for v in range(g * Q, g * Q + Q):
                    bound = now - queries[v - g * Q]["length"]
                    if views[v]["oldest"] <= bound:
                        depart(objects, groups, views, v, v - g * Q, g, bound, out, tally, step, net)
                purge(objects, groups, views, queries, K, g, now, alive, serial, out, tally, step, rule, caps)
            head, size = groups[g]["head"], groups[g]["size"]
        step[0]["row"] = arrivals[a]["row"]
        step[0]["instant"] = now
        if kind == CAPPED and key < caps[g]["threshold"]:  # a poor rank (Alg. 1, line 2)
            for v in range(g * Q, g * Q + Q):
                bound = now - queries[v - g * Q]["length"]
                promote(objects, groups, views, queries, v, v - g * Q, g, bound, -1, out, tally, step, net)
            continue
        p = size  # where it ranks: below all that are better, above its ties
        while p > 0 and (
            objects[head + p - 1]["key"] < key
            or (objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] <= stamp)
        ):
            p -= 1
        if silent:
            while p < size and objects[head + p]["key"] == key and objects[head + p]["stamp"] == stamp:
                if objects[head + p]["serial"] <= own:
                    break
                p += 1
            if p < size and objects[head + p]["serial"] == own:  # it is here already
                continue

        dominators = 0
        if kind == STRICT and stamp <= groups[g]["newest"]:  # late, or of an equal time: others may dominate it already
            for i in range(head, head + p):
                dominators += objects[i]["stamp"] >= stamp
            if dominators >= K:
                continue

        fresh = np.uint32(0)  # the answers it enters
        behind = np.uint32(0)  # the queries whose edge moves behind it
        for v in range(g * Q, g * Q + Q):
            if views[v]["held"] < queries[v - g * Q]["k"] or p < views[v]["edge"]:
                bound = now - queries[v - g * Q]["length"]
                if offer(objects, groups, views, queries, v, g, p, stamp, bound, out, tally, step, net):
                    behind |= BITS[v - g * Q]
                    if stamp > bound:
                        fresh |= BITS[v - g * Q]

        w = p if kind == STRICT else size
        for i in range(head + w, head + size):  # whom it dominates: they go when their counters reach K (Theorem 3.7)
            if objects[i]["stamp"] <= stamp:
                objects[i]["dom"] += 1
                if objects[i]["dom"] >= K:
                    if objects[i]["serial"] >= serial:
                        alive[objects[i]["serial"] - serial] = False
                    if objects[i]["was"]:
                        lose(objects, i, out, tally, step)
                    for v in range(g * Q, g * Q + Q):
                        views[v]["edge"] -= w < views[v]["edge"]
                    continue
            if head + w < i:
                objects[head + w] = objects[i]
            w += 1

        if w - p <= p:
            for i in range(head + w, head + p, -1):
                objects[i] = objects[i - 1]
        else:
            head -= 1
            for i in range(head, head + p):
                objects[i] = objects[i + 1]
            groups[g]["head"] = head
        place = head + p
        objects[place]["key"] = key
        objects[place]["stamp"] = stamp
        objects[place]["serial"] = own
        objects[place]["dom"] = dominators
        objects[place]["inside"] = 0
        objects[place]["shown"] = 0
        objects[place]["was"] = 0
        if own >= serial:
            alive[own - serial] = True
        groups[g]["size"] = w + 1
        groups[g]["newest"] = max(groups[g]["newest"], stamp)
        groups[g]["oldest"] = min(groups[g]["oldest"], stamp)
        groups[g]["due"] = min(groups[g]["due"], stamp + shortest)
        if behind:
            for q in range(Q):
                views[g * Q + q]["edge"] += (behind & BITS[q]) != 0
                if fresh & BITS[q]:
                    enter(objects, place, q, out, tally, step, net)
        if kind == RELAXED and groups[g]["size"] - K >= caps[g]["limit"]:
            prune(objects, groups, views, Q, K, g, now - longest, alive, serial, out, tally, step)
            caps[g]["limit"] = math.ceil((1 + rule[0]["gamma"]) * max(0, groups[g]["size"] - K))  # Alg. 3, line 17
        elif kind == CAPPED:
            cap(objects, groups, views, Q, K, g, alive, serial, out, tally, step, rule, caps)
    return end


@part
def offer(
    objects: Records,
    groups: Records,
    views: Records,
    queries: Records,
    v: int,
    g: int,
    p: int,
    stamp: int,
    bound: int,
    out: Records,
    tally: Records,
    step: Records,
    net: bool,
) -> bool:
    """An arrival at rank p may be an answer of one query: free its place. False: a candidate above it took that."""
    q = v - g * len(queries)
    k, head = queries[q]["k"], groups[g]["head"]
    if views[v]["held"] < k:  # the place of a member that this step has pushed out, or a window not yet full
        promote(objects, groups, views, queries, v, q, g, bound, p, out, tally, step, net)
        if views[v]["held"] == k and p >= views[v]["edge"]:
            return False
    if stamp > bound:
        if views[v]["held"] == k:
            views[v]["edge"] -= 1
            views[v]["held"] -= 1
            leave(objects, head + views[v]["edge"], q, out, tally, step, net)
        views[v]["held"] += 1
        views[v]["oldest"] = min(views[v]["oldest"], stamp)
        if views[v]["held"] == k:  # the edge stays one past the last member
            edge = views[v]["edge"]
            while edge > p and not objects[head + edge - 1]["inside"] & BITS[q]:
                edge -= 1
            views[v]["edge"] = edge
    return True


@part
def expire(
    objects: Records,
    groups: Records,
    views: Records,
    queries: Records,
    K: int,
    g: int,
    now: int,
    alive: Records,
    serial: int,
    out: Records,
    tally: Records,
    step: Records,
    net: bool,
    rule: Records,
    caps: Records,
) -> bool:
    """What the windows let go of up to `now`, each instant a step of its own. False: the changes want more room."""
    Q = len(queries)
    for v in range(g * Q, g * Q + Q):
        length, k = queries[v - g * Q]["length"], queries[v - g * Q]["k"]
        while views[v]["oldest"] <= now - length:
            if tally[1] + 2 * k > len(out) and tally[1] + 2 * groups[g]["size"] > len(out):
                return False
            oldest = NEVER
            for i in range(groups[g]["head"], groups[g]["head"] + views[v]["edge"]):
                if objects[i]["inside"] & BITS[v - g * Q]:
                    oldest = min(oldest, objects[i]["stamp"])
            views[v]["oldest"] = oldest
            if oldest <= now - length:
                step[0]["instant"] = oldest + length
                step[0]["row"] = -1
                depart(objects, groups, views, v, v - g * Q, g, oldest, out, tally, step, net)
                promote(objects, groups, views, queries, v, v - g * Q, g, oldest, -1, out, tally, step, net)
    purge(objects, groups, views, queries, K, g, now, alive, serial, out, tally, step, rule, caps)
    return True


@part
def depart(
    objects: Records,
    groups: Records,
    views: Records,
    v: int,
    q: int,
    g: int,
    bound: int,
    out: Records,
    tally: Records,
    step: Records,
    net: bool,
) -> None:
    """Members with a stamp up to `bound` leave the answer."""
    oldest = NEVER
    for i in range(groups[g]["head"], groups[g]["head"] + views[v]["edge"]):
        if objects[i]["inside"] & BITS[q]:
            if objects[i]["stamp"] <= bound:
                leave(objects, i, q, out, tally, step, net)
                views[v]["held"] -= 1
            else:
                oldest = min(oldest, objects[i]["stamp"])
    views[v]["oldest"] = oldest


@part
def promote(
    objects: Records,
    groups: Records,
    views: Records,
    queries: Records,
    v: int,
    q: int,
    g: int,
    bound: int,
    limit: int,
    out: Records,
    tally: Records,
    step: Records,
    net: bool,
) -> None:
    """The best valid objects from the edge to `limit` (-1: to the end) fill free places (Alg. 5, lines 2-13)."""
    edge, end = views[v]["edge"], groups[g]["size"] if limit < 0 else limit
    while views[v]["held"] < queries[q]["k"] and edge < end:
        i = groups[g]["head"] + edge
        edge += 1
        if objects[i]["stamp"] > bound:
            enter(objects, i, q, out, tally, step, net)
            views[v]["held"] += 1
            views[v]["oldest"] = min(views[v]["oldest"], objects[i]["stamp"])
            groups[g]["due"] = min(groups[g]["due"], objects[i]["stamp"] + queries[q]["length"])
    views[v]["edge"] = edge


@part
def purge(
    objects: Records,
    groups: Records,
    views: Records,
    queries: Records,
    K: int,
    g: int,
    now: int,
    alive: Records,
    serial: int,
    out: Records,
    tally: Records,
    step: Records,
    rule: Records,
    caps: Records,
) -> None:
    """What the largest window lets go of is dropped. It is among the first K: whoever ranks above it is no older.

    A relaxed run may hold more that has expired, further down: pruning drops it. A capped one is searched as a whole.
    """
    Q = len(queries)
    longest = 0
    for q in range(Q):
        longest = max(longest, queries[q]["length"])
    bound = now - longest
    head, size = groups[g]["head"], groups[g]["size"]
    p, most = 0, size if rule[0]["kind"] == CAPPED else min(K, size)
    while p < min(most, size):
        if objects[head + p]["stamp"] > bound:
            p += 1
            continue
        if objects[head + p]["serial"] >= serial:
            alive[objects[head + p]["serial"] - serial] = False
        if objects[head + p]["was"]:
            lose(objects, head + p, out, tally, step)
        for i in range(head + p, head, -1):
            objects[i] = objects[i - 1]
        head += 1
        size -= 1
        for v in range(g * Q, g * Q + Q):
            views[v]["edge"] -= p < views[v]["edge"]
        if rule[0]["kind"] == CAPPED:
            loosen(objects, head, size, K, g, rule, caps)
    oldest = NEVER
    for i in range(head, head + min(most, size)):
        oldest = min(oldest, objects[i]["stamp"])
    groups[g]["oldest"] = oldest
    groups[g]["head"] = head
    groups[g]["size"] = size
    due = oldest + longest if oldest < NEVER else NEVER
    for v in range(g * Q, g * Q + Q):
        if views[v]["oldest"] < NEVER:
            due = min(due, views[v]["oldest"] + queries[v - g * Q]["length"])
    groups[g]["due"] = due


@part
def remember(objects: Records, groups: Records, g: int) -> None:
    for i in range(groups[g]["head"], groups[g]["head"] + groups[g]["size"]):
        objects[i]["was"] = objects[i]["inside"]


@part
def compare(objects: Records, groups: Records, g: int, Q: int, out: Records, tally: Records, step: Records) -> None:
    """Report a net batch: who has left since it began, then who has entered."""
    for diff in (-1, 1):
        for i in range(groups[g]["head"], groups[g]["head"] + groups[g]["size"]):
            before, after = objects[i]["was"], objects[i]["inside"]
            moved = before & ~after if diff < 0 else after & ~before
            if moved:
                for q in range(Q):
                    if moved & BITS[q]:
                        write(objects, i, q, diff, out, tally, step)
    for i in range(groups[g]["head"], groups[g]["head"] + groups[g]["size"]):
        objects[i]["was"] = 0
