"""What RA and PA prune from a run after an arrival, instead of counting dominators (pripuzic2015, section 4)."""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.changes import lose
from skyband.engines.topk.kernels.lookahead import put_best
from skyband.kernels.compile import part
from skyband.kernels.records import Records


@part
def prune(
    objects: Records,
    groups: Records,
    views: Records,
    Q: int,
    K: int,
    g: int,
    bound: int,
    alive: Records,
    serial: int,
    out: Records,
    tally: Records,
    step: Records,
) -> None:
    """Alg. 4: from best to worst, keep whoever is newer than one of the K newest above it.

    What has expired (a stamp up to `bound`) goes too.
    """
    recent = np.empty(K, np.int64)  # the dominator tree: a heap of the K newest so far, the oldest of them first
    known = 0
    head, w = groups[g]["head"], 0
    size = groups[g]["size"]
    for i in range(size):
        stamp = objects[head + i]["stamp"]
        if stamp <= bound or (known == K and stamp <= recent[0]):
            drop(objects, head + i, alive, serial, out, tally, step)
            for v in range(g * Q, g * Q + Q):
                views[v]["edge"] -= w < views[v]["edge"]
            continue
        known = put_best(recent, known, stamp)
        if w < i:
            objects[head + w] = objects[head + i]
        w += 1
    groups[g]["size"] = w


@part
def cap(
    objects: Records,
    groups: Records,
    views: Records,
    Q: int,
    K: int,
    g: int,
    alive: Records,
    serial: int,
    out: Records,
    tally: Records,
    step: Records,
    rule: Records,
    caps: Records,
) -> None:
    """Alg. 1, step 4: at most limit + additional candidates stay; the worst of a full run is the threshold."""
    most = K + rule[0]["limit"] + rule[0]["additional"]
    head, size = groups[g]["head"], groups[g]["size"]
    if size < most:
        return
    if size > most:
        size -= 1
        drop(objects, head + size, alive, serial, out, tally, step)
        groups[g]["size"] = size
        for v in range(g * Q, g * Q + Q):
            views[v]["edge"] = min(views[v]["edge"], size)
    caps[g]["threshold"] = objects[head + size - 1]["key"]


@part
def loosen(objects: Records, head: int, size: int, K: int, g: int, rule: Records, caps: Records) -> None:
    """Alg. 2, lines 13-17: one candidate less. Below the floor every arrival is good; else the threshold falls."""
    threshold = -np.inf
    if size - K >= rule[0]["floor"] and size > 1:
        last = objects[head + size - 1]["key"]
        threshold = caps[g]["threshold"] - rule[0]["growth"] * (objects[head + size - 2]["key"] - last)
    caps[g]["threshold"] = threshold if threshold == threshold else -np.inf  # there is no gap between infinite keys


@part
def drop(objects: Records, i: int, alive: Records, serial: int, out: Records, tally: Records, step: Records) -> None:
    """Object i is kept no longer."""
    if objects[i]["serial"] >= serial:
        alive[objects[i]["serial"] - serial] = False
    if objects[i]["was"]:
        lose(objects, i, out, tally, step)
