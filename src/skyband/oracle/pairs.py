"""TopKPairs: the k best pairs of valid objects of a group (shen2012, section 2).

A pair is valid while both members are. Of equal scores the pair whose older member is newer ranks higher,
then the one whose newer member is newer.
"""

from __future__ import annotations

import math
from itertools import combinations

from skyband.oracle.objects import Arrival, Member
from skyband.oracle.scores import joins, pair_key, score_of
from skyband.query.kinds import TopKPairs


def top_k_pairs(query: TopKPairs, valid: list[Arrival]) -> list[Member]:
    oldest_first = sorted((o for o in valid if o.eligible), key=lambda o: o.age)
    pairs = []
    for older, newer in combinations(oldest_first, 2):
        if not joins(query.on, older.row, newer.row):
            continue
        key = _key(query, older, newer)
        if key is not None:
            pairs.append(Member((older, newer), (older, newer), score_of(query.by, key), keys=(key,)))

    def rank(pair: Member) -> tuple[object, ...]:
        older, newer = pair.objects
        return (pair.keys[0] if query.descending else -pair.keys[0], older.age, newer.age)

    return sorted(pairs, key=rank, reverse=True)[: query.k]


def scoreless(query: TopKPairs, valid: list[Arrival], arrived: Arrival) -> int:
    """The number of new pairs of an arrival without a score: they are no answers, and are counted once."""
    others = [o for o in valid if o.eligible and o is not arrived] if arrived.eligible else []
    pairs = [sorted((o, arrived), key=lambda o: o.age) for o in others]
    return sum(joins(query.on, a.row, b.row) and _key(query, a, b) is None for a, b in pairs)


def _key(query: TopKPairs, older: Arrival, newer: Arrival) -> float | None:
    key = pair_key(query.by, older.row, newer.row)
    return None if key is None or math.isnan(key) else key
