"""The K-skyband of pairs as three parallel arrays, best first: merge, prune with the staircase, read.

Reading is a walk over a priority search tree that is laid flat: the leaves are the pairs in order of rank, and over
every FAN of them stands the newest stamp of an older member (`crest`), so that a walk for a short window passes over
whole blocks that are out of it.
"""

from __future__ import annotations

from skyband.engines.pairs.kernels.records import (
    ADDED,
    BASE,
    BASIC,
    END,
    FAN,
    FREE,
    NEVER,
    PENDING,
    READ,
    SIZE,
    STAIRS,
    Band,
    Desk,
    Ints,
    Places,
    Records,
)
from skyband.kernels.compile import uncounted

SMALL = 64  # the K newest ordinals are kept in order
MANY = 256  # slots: sorted by a heap


@uncounted
def ranks_above(one: Records, i: int, other: Records, j: int) -> bool:
    """Of equal keys the pair whose older member is newer, then the one whose newer member is newer."""
    if one[i]["key"] != other[j]["key"]:
        return bool(one[i]["key"] > other[j]["key"])
    if one[i]["old"] != other[j]["old"]:
        return bool(one[i]["old"] > other[j]["old"])
    if one[i]["older"] != other[j]["older"]:
        return bool(one[i]["older"] > other[j]["older"])
    if one[i]["new"] != other[j]["new"]:
        return bool(one[i]["new"] > other[j]["new"])
    return bool(one[i]["newer"] > other[j]["newer"])


@uncounted
def sort_slots(slots: Records, desk: Desk, size: int) -> None:
    """The slots on the desk, best first: each counts who is above it, without branches, which could not be foreseen.

    Very many are sorted by a heap.
    """
    chosen = desk.slot
    if size > MANY:
        for start in range(size // 2 - 1, -1, -1):
            _sink(slots, chosen, start, size)
        for end in range(size - 1, 0, -1):
            chosen[0], chosen[end] = chosen[end], chosen[0]
            _sink(slots, chosen, 0, end)
        return
    keys, order = desk.key[:size], desk.other
    for i in range(size):
        keys[i] = slots[chosen[i]]["key"]
        order[i] = -1
    for i in range(size):
        one, key, rank = chosen[i], keys[i], 0
        for j in range(size):
            rank += keys[j] > key
        while order[rank] >= 0:  # one with the same key
            if ranks_above(slots, one, slots, order[rank]):
                one, order[rank] = order[rank], one
            rank += 1
        order[rank] = one
    for i in range(size):
        chosen[i] = order[i]


@uncounted
def _sink(slots: Records, chosen: Places, i: int, size: int) -> None:
    """The worst on top."""
    one = chosen[i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and ranks_above(slots, chosen[child], slots, chosen[child + 1]):
            child += 1
        if not ranks_above(slots, one, slots, chosen[child]):
            break
        chosen[i] = chosen[child]
        i = child
    chosen[i] = one


@uncounted
def flush(facts: Ints, band: Band, desk: Desk) -> None:
    """Pairs that wait behind the band take their places."""
    size = facts[PENDING]
    if size == 0:
        return
    for i in range(size):
        desk.slot[i] = band.slot[facts[SIZE] + i]
    facts[PENDING] = 0
    facts[ADDED] += size
    sort_slots(band.slots, desk, size)
    merge(facts, band, desk.slot, size)


@uncounted
def merge(facts: Ints, band: Band, fresh: Places, size: int) -> None:
    """Put sorted new slots into the band, from its end; no pair moves twice."""
    read, write = facts[SIZE] - 1, facts[SIZE] + size - 1
    facts[SIZE] += size
    for i in range(size - 1, -1, -1):
        one = fresh[i]
        key = band.slots[one]["key"]
        while read >= 0 and (
            band.key[read] < key
            or (band.key[read] == key and not ranks_above(band.slots, band.slot[read], band.slots, one))
        ):
            band.key[write] = band.key[read]
            band.old[write] = band.old[read]
            band.slot[write] = band.slot[read]
            read -= 1
            write -= 1
        band.key[write] = key
        band.old[write] = band.slots[one]["old"]
        band.slot[write] = one
        write -= 1
    crown(facts, band, max(read + 1, 0))


@uncounted
def crown(facts: Ints, band: Band, begin: int) -> None:
    """The crests from this entry on; lists of the band (pair_reading.py) are out of date."""
    size = facts[SIZE]
    facts[READ] = 0
    for block in range(begin // FAN, (size + FAN - 1) // FAN):
        newest = -NEVER
        for i in range(block * FAN, min(size, (block + 1) * FAN)):
            newest = max(newest, band.old[i])
        band.crest[block] = newest


@uncounted
def walk(facts: Ints, band: Band, begin: int, found: int, k: int, low: int, out: Places, at: int) -> int:
    """The slots of the k best pairs whose older member is newer than `low`, best first (Alg. 2); how many there are.

    From rank `begin` on, when so many have been found before it.
    """
    size = facts[SIZE]
    for block in range(begin // FAN, (size + FAN - 1) // FAN):
        if band.crest[block] <= low:
            continue  # Alg. 2, lines 9 and 10
        for i in range(max(begin, block * FAN), min(size, (block + 1) * FAN)):
            if band.old[i] > low:
                out[at + found] = band.slot[i]
                found += 1
                if found == k:
                    return found
    return found


@uncounted
def prune(facts: Ints, band: Band, K: int, low: int, algorithm: int) -> None:
    """Who has expired or is dominated by K pairs goes; the staircase is built on the way (Alg. 4)."""
    size, held, kept, stairs, last = facts[SIZE], 0, 0, 0, -NEVER
    heap, top = band.heap, 0  # of the K newest ordinals; which of them is the oldest
    for i in range(size):
        slot = band.slot[i]
        place = band.slots[slot]["place"]
        if algorithm == BASIC:
            dominated = band.slots[slot]["dom"] >= K
        else:
            dominated = algorithm < BASIC and held == K and heap[top] >= place  # Alg. 4, line 10
        if dominated or band.old[i] <= low:
            band.free[facts[FREE]] = slot
            facts[FREE] += 1
            continue
        band.key[kept] = band.key[i]
        band.old[kept] = band.old[i]
        band.slot[kept] = slot
        kept += 1
        if algorithm >= BASIC:
            continue
        if K <= SMALL and held < K:
            _first(heap, held, place)
            held += 1
        elif K <= SMALL:
            _shift(heap, top, K - top, K, place)
            top = K - top
        elif held < K:  # Alg. 4, line 6
            _rise(heap, held, place)
            held += 1
        else:  # lines 14, 15
            _replace(heap, held, place)
        if held == K and heap[top] > last:  # lines 8, 16
            last = heap[top]
            band.stair_place[stairs] = last
            band.stair_key[stairs] = band.key[i]
            stairs += 1
    facts[SIZE] = kept
    facts[ADDED] = 0
    facts[STAIRS] = thin(band, stairs, facts[BASE] + facts[END])
    crown(facts, band, 0)


@uncounted
def thin(band: Band, stairs: int, next_ordinal: int) -> int:
    """Only steps that are a fifth of their age apart: any of them hold, and fewer make longer runs to compare."""
    kept, age = stairs, 0
    for i in range(stairs - 1, -1, -1):
        mine = next_ordinal - band.stair_place[i]
        if mine - age > age >> 2:
            kept -= 1
            band.stair_place[kept] = band.stair_place[i]
            band.stair_key[kept] = band.stair_key[i]
            age = mine
    for i in range(kept, stairs):
        band.stair_place[i - kept] = band.stair_place[i]
        band.stair_key[i - kept] = band.stair_key[i]
    return stairs - kept


@uncounted
def _first(newest: Ints, held: int, place: int) -> None:
    """One of the first K ordinals, in order, the oldest first."""
    at = held
    while at > 0 and newest[at - 1] > place:
        newest[at] = newest[at - 1]
        at -= 1
    newest[at] = place


@uncounted
def _shift(newest: Ints, begin: int, to: int, K: int, place: int) -> None:
    """The oldest of K ordinals in order goes, this one comes; from one half to the other, in vector instructions."""
    here, later, there = newest[begin : begin + K - 1], newest[begin + 1 : begin + K], newest[to : to + K - 1]
    for i in range(K - 1):
        there[i] = min(later[i], max(here[i], place))
    newest[to + K - 1] = max(newest[begin + K - 1], place)


@uncounted
def _rise(heap: Ints, at: int, place: int) -> None:
    while at > 0 and heap[(at - 1) >> 1] > place:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = place


@uncounted
def _replace(heap: Ints, size: int, place: int) -> None:
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= place:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = place


@uncounted
def count_dominators(facts: Ints, band: Band, fresh: Places, size: int) -> None:
    """BASIC: the counters of new pairs, and of those that they dominate."""
    slots = band.slots
    for i in range(size):
        slots[fresh[i]]["dom"] = -1  # new: it counts for itself, and is no more to be raised
    for i in range(size):
        one, above = fresh[i], True
        for j in range(facts[SIZE]):
            slot = band.slot[j]
            if slot == one:
                above = False
            elif above:
                slots[one]["dom"] -= slots[slot]["place"] >= slots[one]["place"]
            elif slots[slot]["dom"] >= 0:
                slots[slot]["dom"] += slots[slot]["place"] <= slots[one]["place"]
    for i in range(size):
        slots[fresh[i]]["dom"] = -1 - slots[fresh[i]]["dom"]
