"""Answers read from sorted lists (ranks.py)."""

from __future__ import annotations

import numpy as np

from skyband.engines.topk.kernels.rank_records import BEST, Ints, Ranks
from skyband.kernels.compile import kernel
from skyband.kernels.records import NEVER


@kernel
def read_ranks(ranks: Ranks, chosen: Ints, now: Ints, out: Ints, rank: Ints, sizes: Ints) -> int:
    """The places and ranks of the answers of these groups, best first; returns how many."""
    objects, groups, rule = ranks.objects, ranks.groups, ranks.rule[0]
    n = 0
    for c in range(len(chosen)):
        g, begin = chosen[c], n
        head = groups[g]["head"]
        k = min(rule["k"], groups[g]["k"]) if rule["limits"] else rule["k"]
        count, better, key = 0, 0, np.nan
        for i in range(head, head + groups[g]["size"]):
            if not objects[i]["eligible"]:
                continue
            if rule["length"] < NEVER and not rule["gap"] and objects[i]["stamp"] <= now[g] - rule["length"]:
                continue
            if rule["distinct"] == BEST:
                seen = False
                for j in range(head, i):
                    valid = rule["length"] == NEVER or rule["gap"] or objects[j]["stamp"] > now[g] - rule["length"]
                    seen |= objects[j]["name"] == objects[i]["name"] and valid
                if seen:
                    continue
            if rule["above"]:
                if not objects[i]["key"] > rule["threshold"]:
                    break
                count += 1
                better = count - 1
            else:
                count += 1
                if not rule["ties"] or objects[i]["key"] != key:
                    better, key = count - 1, objects[i]["key"]
                if better >= rule["offset"] + k:
                    break
                if better < rule["offset"]:
                    continue
            out[n], rank[n] = i, better + 1
            n += 1
        sizes[c] = n - begin
    return n
