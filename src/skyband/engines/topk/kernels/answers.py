"""What else can be done with the skybands of many groups: read answers, and serve other queries from them."""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.changes import lose
from skyband.engines.topk.kernels.strict import compare, promote, purge
from skyband.kernels.compile import kernel
from skyband.kernels.records import BITS, NEVER, Records, reserve


@kernel
def refit_bands(
    objects: Records,
    groups: Records,
    views: Records,  # of the new queries, empty
    queries: Records,  # the new ones: no larger k or window than the old ones had
    predecessors: Records,  # per new query: which old one it goes on from
    now: Records,  # per group
    tally: Records,
    out: Records,
    rule: Records,
    caps: Records,
) -> Records:
    """Serve other queries from the same skybands, cut down to what these need; returns how answers change."""
    step = np.zeros(1, out.dtype)
    step[0]["row"] = -1
    nobody = np.empty(0, np.bool_)
    K, Q = 0, len(queries)
    for q in range(Q):
        K = max(K, queries[q]["k"])
    for g in range(len(groups)):
        step[0]["visit"] = g
        step[0]["instant"] = now[g]
        out = reserve(out, tally, 2 * Q * (groups[g]["size"] + 1))
        head, w = groups[g]["head"], 0
        for i in range(head, head + groups[g]["size"]):
            was = shown = np.uint32(0)
            for q in range(Q):
                if objects[i]["inside"] & BITS[predecessors[q]]:
                    was |= BITS[q]
                if objects[i]["shown"] & BITS[predecessors[q]]:
                    shown |= BITS[q]
            objects[i]["inside"] = 0
            objects[i]["shown"] = shown
            objects[i]["was"] = was
            if objects[i]["dom"] >= K:
                lose(objects, i, out, tally, step)
                continue
            objects[head + w] = objects[i]
            w += 1
        groups[g]["size"] = w
        for q in range(Q):
            bound = now[g] - queries[q]["length"]
            promote(objects, groups, views, queries, g * Q + q, q, g, bound, -1, out, tally, step, True)
        purge(objects, groups, views, queries, K, g, now[g], nobody, NEVER, out, tally, step, rule, caps)
        compare(objects, groups, g, Q, out, tally, step)
    return out


@kernel
def read_bands(
    objects: Records, groups: Records, chosen: Records, now: Records, k: int, length: int, out: Records
) -> tuple[Records, Records]:
    """The k best of each chosen group with a stamp above now - length; `out` has room for k or the run's size each."""
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
