"""Pruning of RA and PA: what leaves a run after an arrival, with no counters (pripuzic2015, section 4)."""

from __future__ import annotations

import math

import numpy as np

from skyband.engines.topk.kernels.changes import drop
from skyband.engines.topk.kernels.lookahead import put_best
from skyband.engines.topk.kernels.state import Report, Skybands
from skyband.kernels.compile import uncounted


@uncounted
def prune(skybands: Skybands, report: Report, K: int, g: int, bound: int) -> None:
    """Alg. 4: from best to worst, keep the objects that are newer than one of the K newest above them.

    What has expired (a stamp up to `bound`) is dropped too. Then the limit is set anew.
    """
    objects, groups, views, Q = skybands.objects, skybands.groups, skybands.views, len(skybands.queries)
    recent, known = skybands.stamps, 0  # the dominator tree: a heap of the K newest so far, the oldest of them first
    head, w = groups[g]["head"], 0
    for i in range(groups[g]["size"]):
        stamp = objects[head + i]["stamp"]
        if stamp <= bound or (known == K and stamp <= recent[0]):
            drop(objects, head + i, report)
            for v in range(g * Q, g * Q + Q):
                views[v]["edge"] -= w < views[v]["edge"]
            continue
        known = put_best(recent, known, stamp)
        if w < i:
            objects[head + w] = objects[head + i]
        w += 1
    groups[g]["size"] = w
    skybands.caps[g]["limit"] = math.ceil((1 + skybands.rule[0]["gamma"]) * max(0, w - K))  # Alg. 3, line 17


@uncounted
def cap(skybands: Skybands, report: Report, K: int, g: int) -> None:
    """Alg. 1, step 4: at most limit + additional candidates stay; the worst of a full run is the threshold."""
    objects, groups, views, rule = skybands.objects, skybands.groups, skybands.views, skybands.rule
    most, Q = K + rule[0]["limit"] + rule[0]["additional"], len(skybands.queries)
    head, size = groups[g]["head"], groups[g]["size"]
    if size < most:
        return
    if size > most:
        size -= 1
        drop(objects, head + size, report)
        groups[g]["size"] = size
        for v in range(g * Q, g * Q + Q):
            views[v]["edge"] = min(views[v]["edge"], size)
    skybands.caps[g]["threshold"] = objects[head + size - 1]["key"]


@uncounted
def loosen(skybands: Skybands, K: int, g: int, head: int, size: int) -> None:
    """Alg. 2, lines 13-17: one candidate less. Below the floor every arrival is good; else the threshold falls."""
    objects, rule, caps = skybands.objects, skybands.rule, skybands.caps
    threshold = -np.inf
    if size - K >= rule[0]["floor"] and size > 1:
        last = objects[head + size - 1]["key"]
        threshold = caps[g]["threshold"] - rule[0]["growth"] * (objects[head + size - 2]["key"] - last)
    caps[g]["threshold"] = threshold if threshold == threshold else -np.inf  # there is no gap between infinite keys
