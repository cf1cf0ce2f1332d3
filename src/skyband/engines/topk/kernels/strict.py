"""The k-skybands of many groups, for up to 32 standing queries at once (pripuzic2015, section 4).

Each group keeps its skyband as one score-sorted run of records in a shared arena, best first, with free places
on both sides; insertions and removals shift the shorter side. A record carries its dominance counter: how many
kept objects rank above it and do not expire before it (Definition 3.8). It is dropped when the counter reaches K, the
largest k of the queries, or when it has left the largest window. A rule other than STRICT keeps no counters and
prunes after an arrival instead (kernels/prune.py).

A query sees its own k and window of that run through a view: its members carry the query's bit in `inside`, and
`edge` is one past the last of them. A query that is not full has `edge` at the run's end.

Cost of an arrival: O(b + log) where b objects rank below it, and each object is passed at most K times before it
is dropped: O(K) amortised. In random order about K records are touched, none of the n in the window. Cost of an
expiry: O(p) at rank p for p < K in count windows, so O(1) where scores fall; O(K) in time windows, since times may be
equal.

Ties: the newer ranks above; in count windows the later arrival, in time windows the later time, then the later
arrival. `stamp` is the arrival's number in its group or its time, so one comparison serves both.

Errata: Alg. 1-2 and 3-5 remove the expired object and add the arrival one after the other; then a candidate
could be promoted and displaced within one step. Here both are one step (`take_group`), as Definition 3.5 demands.
The time tree of the paper is not needed: the oldest object of a skyband is one of its K best (Lemma 4.8).
"""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.changes import begin_batch, drop, end_batch, enter, leave
from skyband.engines.topk.kernels.prune import cap, loosen, prune
from skyband.engines.topk.kernels.state import Report, Skybands, is_full, largest_k, with_capacity, with_places
from skyband.kernels.compile import close, kernel, uncounted
from skyband.kernels.records import BITS, CAPPED, NEVER, RELAXED, SILENT, STRICT, Records


@kernel
def take_skybands(skybands: Skybands, report: Report, arrivals: Records, visits: Records) -> tuple[Records, Records]:
    """Take the arrivals of each visited group; returns the arena and the changes, since both may have been replaced.

    Arrivals are sorted by group and in order within it; a visit has a group's slice of them and its last instant.
    """
    groups, queries, tally = skybands.groups, skybands.queries, skybands.tally
    K, Q = largest_k(queries), len(queries)
    for visit in range(len(visits)):
        g, a, end = visits[visit]["group"], visits[visit]["begin"], visits[visit]["end"]
        last, done = visits[visit]["last"], False
        report.step[0]["visit"] = visit
        begin_batch(skybands.objects, groups, g, report)
        while not done:
            most = most_changes(groups, g, K, Q)
            if tally[1] + most > len(report.changes):
                report = with_capacity(report, most)
            a = take_group(skybands, report, K, g, arrivals, a, end)
            if a < end and is_full(groups, g, 1):
                skybands = with_places(skybands, g, 1)
            done = a == end and finish_group(skybands, report, K, g, last)
    return skybands.objects, report.changes


@uncounted
def most_changes(groups: Records, g: int, K: int, Q: int) -> int:
    """The most changes that one step of a group can bring."""
    return int(2 * Q * min(K + 2, groups[g]["size"] + 2))


@uncounted
def finish_group(skybands: Skybands, report: Report, K: int, g: int, last: int) -> bool:
    """Time goes on to `last`, and a net batch is reported. False: the changes need more capacity first."""
    groups, queries = skybands.groups, skybands.queries
    if groups[g]["due"] <= last and not expire(skybands, report, K, g, last):
        return False
    if report.net and not report.more:
        if report.tally[1] + most_changes(groups, g, K, len(queries)) > len(report.changes):
            return False
        report.step[0]["instant"] = last
        report.step[0]["row"] = -1
        end_batch(skybands.objects, groups, g, len(queries), report)
    return True


@uncounted
def take_group(skybands: Skybands, report: Report, K: int, g: int, arrivals: Records, begin: int, end: int) -> int:
    """Arrivals begin..end of one group, a step each. Returns where it stopped: at the end, or for want of places."""
    objects, groups, views, queries = skybands.objects, skybands.groups, skybands.views, skybands.queries
    caps, serial, joint, step = skybands.caps, report.serial, report.joint, report.step
    Q, kind = len(queries), skybands.rule[0]["kind"]
    shortest, longest = NEVER, 0
    for q in range(Q):
        shortest = min(shortest, queries[q]["length"])
        longest = max(longest, queries[q]["length"])
    for a in range(begin, end):
        key, stamp, now = arrivals[a]["key"], arrivals[a]["stamp"], arrivals[a]["now"]
        head, size = groups[g]["head"], groups[g]["size"]
        if head == groups[g]["start"] or head + size == groups[g]["start"] + groups[g]["room"]:
            return a
        if report.tally[1] + 2 * Q * min(K + 2, size + 2) > len(report.changes):
            return a
        silent = arrivals[a]["row"] < 0  # it has waited in a buffer
        own = serial + arrivals[a]["row"] + (SILENT if silent else 0)
        if groups[g]["due"] <= now:
            if not expire(skybands, report, K, g, now - (joint and not silent)):
                return a
            if joint and not silent:
                step[0]["row"] = arrivals[a]["row"]
                step[0]["instant"] = now
                for v in range(g * Q, g * Q + Q):
                    bound = now - queries[v - g * Q]["length"]
                    if views[v]["oldest"] <= bound:
                        depart(skybands, report, g, v - g * Q, bound)
                purge(skybands, report, K, g, now)
            head, size = groups[g]["head"], groups[g]["size"]
        step[0]["row"] = arrivals[a]["row"]
        step[0]["instant"] = now
        if kind == CAPPED and key < caps[g]["threshold"]:  # a poor rank (Alg. 1, line 2)
            for q in range(Q):
                if views[g * Q + q]["held"] < queries[q]["k"]:
                    promote(skybands, report, g, q, now - queries[q]["length"], -1)
            continue
        p = size  # its rank: below all that are better, above its ties
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
        if kind == STRICT and stamp <= groups[g]["newest"]:  # late, or of an equal time: it may be dominated already
            for i in range(head, head + p):
                dominators += objects[i]["stamp"] >= stamp
            if dominators >= K:
                continue

        fresh = np.uint32(0)  # the answers it enters
        behind = np.uint32(0)  # the queries whose edge moves behind it
        for q in range(Q):
            if views[g * Q + q]["held"] < queries[q]["k"] or p < views[g * Q + q]["edge"]:
                bound = now - queries[q]["length"]
                if offer(skybands, report, g, q, p, stamp, bound):
                    behind |= BITS[q]
                    if stamp > bound:
                        fresh |= BITS[q]

        w = p if kind == STRICT else size
        for i in range(head + w, head + size):  # those it dominates are dropped at K dominators (Theorem 3.7)
            if objects[i]["stamp"] <= stamp:
                objects[i]["dom"] += 1
                if objects[i]["dom"] >= K:
                    drop(objects, i, report)
                    for v in range(g * Q, g * Q + Q):
                        views[v]["edge"] -= w < views[v]["edge"]
                    continue
            if head + w < i:
                objects[head + w] = objects[i]
            w += 1

        head = insert(objects, head, p, w, key, stamp, own, dominators)
        if own >= serial:
            report.alive[own - serial] = True
        groups[g]["head"] = head
        groups[g]["size"] = w + 1
        groups[g]["newest"] = max(groups[g]["newest"], stamp)
        groups[g]["oldest"] = min(groups[g]["oldest"], stamp)
        groups[g]["due"] = min(groups[g]["due"], stamp + shortest)
        if behind:
            for q in range(Q):
                views[g * Q + q]["edge"] += (behind & BITS[q]) != 0
                if fresh & BITS[q]:
                    enter(objects, head + p, q, report)
        if kind == RELAXED and w + 1 - K >= caps[g]["limit"]:
            prune(skybands, report, K, g, now - longest)
        elif kind == CAPPED:
            cap(skybands, report, K, g)
    return end


@close
def insert(objects: Records, head: int, p: int, size: int, key: float, stamp: int, serial: int, dominators: int) -> int:
    """Put an object at rank p of a run of `size`, by a shift of the shorter side; returns the run's head."""
    if size - p <= p:
        for i in range(head + size, head + p, -1):
            objects[i] = objects[i - 1]
    else:
        head -= 1
        for i in range(head, head + p):
            objects[i] = objects[i + 1]
    objects[head + p]["key"] = key
    objects[head + p]["stamp"] = stamp
    objects[head + p]["serial"] = serial
    objects[head + p]["dom"] = dominators
    objects[head + p]["inside"] = objects[head + p]["shown"] = objects[head + p]["was"] = 0
    return head


@uncounted
def offer(skybands: Skybands, report: Report, g: int, q: int, p: int, stamp: int, bound: int) -> bool:
    """An arrival at rank p may be an answer of one query: free its place. False: a candidate above it took that."""
    objects, views, v = skybands.objects, skybands.views, g * len(skybands.queries) + q
    k, head = skybands.queries[q]["k"], skybands.groups[g]["head"]
    if views[v]["held"] < k:  # the place of a member that this step has pushed out, or a window not yet full
        promote(skybands, report, g, q, bound, p)
        if views[v]["held"] == k and p >= views[v]["edge"]:
            return False
    if stamp > bound:
        if views[v]["held"] == k:
            views[v]["edge"] -= 1
            views[v]["held"] -= 1
            leave(objects, head + views[v]["edge"], q, report)
        views[v]["held"] += 1
        views[v]["oldest"] = min(views[v]["oldest"], stamp)
        if views[v]["held"] == k:  # the edge stays one past the last member
            edge = views[v]["edge"]
            while edge > p and not objects[head + edge - 1]["inside"] & BITS[q]:
                edge -= 1
            views[v]["edge"] = edge
    return True


@uncounted
def expire(skybands: Skybands, report: Report, K: int, g: int, now: int) -> bool:
    """What leaves the windows up to `now`, each instant a step of its own. False: the changes need more capacity."""
    objects, groups, views, queries = skybands.objects, skybands.groups, skybands.views, skybands.queries
    Q, tally, most = len(queries), report.tally, len(report.changes)
    for v in range(g * Q, g * Q + Q):
        length, k = queries[v - g * Q]["length"], queries[v - g * Q]["k"]
        while views[v]["oldest"] <= now - length:
            if tally[1] + 2 * k > most and tally[1] + 2 * groups[g]["size"] > most:
                return False
            oldest = NEVER
            for i in range(groups[g]["head"], groups[g]["head"] + views[v]["edge"]):
                if objects[i]["inside"] & BITS[v - g * Q]:
                    oldest = min(oldest, objects[i]["stamp"])
            views[v]["oldest"] = oldest
            if oldest <= now - length:
                report.step[0]["instant"] = oldest + length
                report.step[0]["row"] = -1
                depart(skybands, report, g, v - g * Q, oldest)
                promote(skybands, report, g, v - g * Q, oldest, -1)
    purge(skybands, report, K, g, now)
    return True


@uncounted
def depart(skybands: Skybands, report: Report, g: int, q: int, bound: int) -> None:
    """Members with a stamp up to `bound` leave the answer."""
    objects, groups, views, v = skybands.objects, skybands.groups, skybands.views, g * len(skybands.queries) + q
    most = 1 if report.joint else NEVER  # a number is unique, and earlier ones have left: only one can leave
    left, oldest = 0, NEVER
    for i in range(groups[g]["head"], groups[g]["head"] + views[v]["edge"]):
        if objects[i]["inside"] & BITS[q]:
            if objects[i]["stamp"] <= bound:
                leave(objects, i, q, report)
                left += 1
            else:
                oldest = min(oldest, objects[i]["stamp"])
            if left == most and oldest == bound + 1:  # none can be older
                break
    views[v]["held"] -= left
    views[v]["oldest"] = oldest


@uncounted
def promote(skybands: Skybands, report: Report, g: int, q: int, bound: int, limit: int) -> None:
    """The best valid objects from the edge to `limit` (-1: to the end) fill free places (Alg. 5, lines 2-13)."""
    objects, groups, views, queries = skybands.objects, skybands.groups, skybands.views, skybands.queries
    v = g * len(queries) + q
    edge, end = views[v]["edge"], groups[g]["size"] if limit < 0 else limit
    while views[v]["held"] < queries[q]["k"] and edge < end:
        i = groups[g]["head"] + edge
        edge += 1
        if objects[i]["stamp"] > bound:
            enter(objects, i, q, report)
            views[v]["held"] += 1
            views[v]["oldest"] = min(views[v]["oldest"], objects[i]["stamp"])
            groups[g]["due"] = min(groups[g]["due"], objects[i]["stamp"] + queries[q]["length"])
    views[v]["edge"] = edge


@uncounted
def purge(skybands: Skybands, report: Report, K: int, g: int, now: int) -> None:
    """Drop what has left the largest window, and say when something leaves next."""
    groups, views, queries = skybands.groups, skybands.views, skybands.queries
    Q = len(queries)
    longest = 0
    for q in range(Q):
        longest = max(longest, queries[q]["length"])
    bound = now - longest
    if skybands.rule[0]["kind"] != STRICT or groups[g]["oldest"] <= bound:
        discard(skybands, report, K, g, bound)
    oldest = groups[g]["oldest"]
    due = oldest + longest if oldest < NEVER else NEVER
    for v in range(g * Q, g * Q + Q):
        if views[v]["oldest"] < NEVER:
            due = min(due, views[v]["oldest"] + queries[v - g * Q]["length"])
    groups[g]["due"] = due


@uncounted
def discard(skybands: Skybands, report: Report, K: int, g: int, bound: int) -> None:
    """Drop what has a stamp up to `bound`. It is among the first K: what ranks above it is no older.

    A relaxed run may hold more that has expired, further down: pruning drops it. A capped one is searched as a whole.
    """
    objects, groups, views, Q = skybands.objects, skybands.groups, skybands.views, len(skybands.queries)
    kind = skybands.rule[0]["kind"]
    head, size = groups[g]["head"], groups[g]["size"]
    alone = kind == STRICT and report.joint and groups[g]["oldest"] == bound  # numbers are unique
    p, most = 0, size if kind == CAPPED else min(K, size)
    while p < min(most, size):
        if objects[head + p]["stamp"] > bound:
            p += 1
            continue
        drop(objects, head + p, report)
        for i in range(head + p, head, -1):
            objects[i] = objects[i - 1]
        head += 1
        size -= 1
        for v in range(g * Q, g * Q + Q):
            views[v]["edge"] -= p < views[v]["edge"]
        if kind == CAPPED:
            loosen(skybands, K, g, head, size)
        if alone:
            break
    oldest = NEVER
    for i in range(head, head + min(most, size)):
        oldest = min(oldest, objects[i]["stamp"])
        if oldest == bound + 1:  # none can be older
            break
    groups[g]["oldest"] = oldest
    groups[g]["head"] = head
    groups[g]["size"] = size
