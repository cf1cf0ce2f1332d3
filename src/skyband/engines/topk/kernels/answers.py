"""Read the answers of many groups from their skybands, and serve other queries from these."""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.changes import drop, end_batch
from skyband.engines.topk.kernels.state import Report, Skybands, largest_k, with_capacity
from skyband.engines.topk.kernels.strict import promote, purge
from skyband.kernels.compile import kernel
from skyband.kernels.records import BITS, Records


@kernel
def refit_skybands(skybands: Skybands, report: Report, predecessors: Records, now: Records) -> Records:
    """Serve other queries from the same skybands, cut down to what these need; returns how answers change.

    The queries are the new ones, with no larger k or window than the old ones had, and their views are empty.
    predecessors: per new query, the old one that it goes on from, or -1. now: per group.
    """
    objects, groups, queries, step = skybands.objects, skybands.groups, skybands.queries, report.step
    K, Q = largest_k(queries), len(queries)
    step[0]["row"] = -1
    for g in range(len(groups)):
        step[0]["visit"] = g
        step[0]["instant"] = now[g]
        report = with_capacity(report, 2 * Q * (groups[g]["size"] + 1))
        head, w = groups[g]["head"], 0
        for i in range(head, head + groups[g]["size"]):
            was = shown = np.uint32(0)
            for q in range(Q):
                if predecessors[q] < 0:  # it is new: nothing was reported under its name
                    continue
                if objects[i]["inside"] & BITS[predecessors[q]]:
                    was |= BITS[q]
                if objects[i]["shown"] & BITS[predecessors[q]]:
                    shown |= BITS[q]
            objects[i]["inside"] = 0
            objects[i]["shown"] = shown
            objects[i]["was"] = was
            if objects[i]["dom"] >= K:
                drop(objects, i, report)
                continue
            objects[head + w] = objects[i]
            w += 1
        groups[g]["size"] = w
        for q in range(Q):
            promote(skybands, report, g, q, now[g] - queries[q]["length"], -1)
        purge(skybands, report, K, g, now[g])
        end_batch(objects, groups, g, Q, report)
    return report.changes


@kernel
def read_answers(
    objects: Records, groups: Records, chosen: Records, now: Records, k: int, length: int, out: Records
) -> tuple[Records, Records]:
    """The k best of each chosen group with a stamp above now - length; `out` has places for all of them."""
    held = np.empty(len(chosen), np.int64)
    n = 0
    for j in range(len(chosen)):
        g = chosen[j]
        begin = n
        for i in range(groups[g]["head"], groups[g]["head"] + groups[g]["size"]):
            if n - begin == k:
                break
            if objects[i]["stamp"] > now[g] - length:
                out[n] = objects[i]
                n += 1
        held[j] = n - begin
    return out[:n], held
