"""The kept pairs as three parallel arrays, best first: insert and prune with the staircase (Alg. 4), read (Alg. 2).

The priority search tree (Alg. 1) is laid flat: its leaves are the pairs by rank, and each node stands for FAN of them
and has the newest stamp of an older member, so that reading a short window skips nodes that are out of it. Inserting m
pairs and pruning cost O(size of the band) each, at the speed of memory; reading k pairs looks at 10 k or so.
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
    READS,
    SIZE,
    STAIRS,
    TICK,
    Band,
    Ints,
    Places,
    Records,
    Scratch,
    Window,
)
from skyband.kernels.compile import uncounted

SMALL = 64  # up to this K the K newest ordinals are kept in order, beyond it in a heap
MANY = 256  # beyond this, slots are sorted by a heap


@uncounted
def ranks_above(one: Records, i: int, other: Records, j: int) -> bool:
    """Rank by key; of equal keys the pair whose older member is newer is above, then whose newer member is newer."""
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
def is_same(one: Records, i: int, other: Records, j: int) -> bool:
    return bool(one[i]["newer"] == other[j]["newer"] and one[i]["older"] == other[j]["older"])


@uncounted
def draft(
    facts: Ints, window: Window, band: Band, scratch: Scratch, found: int, at: int, stamp: int, serial: int
) -> None:
    """Give slots to the candidates of the object with this stamp and serial, which belongs before index `at`.

    Places are those after its insertion.
    """
    for i in range(found):
        facts[FREE] -= 1
        slot = band.free[facts[FREE]]
        index = scratch.other[i]
        one = band.pairs[slot]
        one["key"] = scratch.key[i]
        if index < at:
            one["old"], one["older"], one["place"] = window.stamps[index], window.serials[index], facts[BASE] + index
            one["new"], one["newer"] = stamp, serial
        else:
            one["old"], one["older"], one["place"] = stamp, serial, facts[BASE] + at
            one["new"], one["newer"] = window.stamps[index], window.serials[index]
        one["dom"] = 0
        band.tick[slot] = facts[TICK]
        for j in range(band.bits.shape[1]):
            band.bits[slot, j] = 0
        scratch.slot[i] = slot


@uncounted
def sort_slots(pairs: Records, scratch: Scratch, size: int) -> None:
    """Sort the slots in the scratch, best first: count those above each, without branches that would be mispredicted.

    Many are sorted by a heap.
    """
    chosen = scratch.slot
    if size > MANY:
        for start in range(size // 2 - 1, -1, -1):
            _sink(pairs, chosen, start, size)
        for end in range(size - 1, 0, -1):
            chosen[0], chosen[end] = chosen[end], chosen[0]
            _sink(pairs, chosen, 0, end)
        return
    keys, order = scratch.key[:size], scratch.other
    for i in range(size):
        keys[i] = pairs[chosen[i]]["key"]
        order[i] = -1
    for i in range(size):
        one, key, rank = chosen[i], keys[i], 0
        for j in range(size):
            rank += keys[j] > key
        while order[rank] >= 0:  # one with the same key
            if ranks_above(pairs, one, pairs, order[rank]):
                one, order[rank] = order[rank], one
            rank += 1
        order[rank] = one
    for i in range(size):
        chosen[i] = order[i]


@uncounted
def _sink(pairs: Records, chosen: Places, i: int, size: int) -> None:
    """Let slot `i` of a heap sink to its place; the worst is on top."""
    one = chosen[i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and ranks_above(pairs, chosen[child], pairs, chosen[child + 1]):
            child += 1
        if not ranks_above(pairs, one, pairs, chosen[child]):
            break
        chosen[i] = chosen[child]
        i = child
    chosen[i] = one


@uncounted
def flush(facts: Ints, band: Band, scratch: Scratch) -> None:
    """Put the pending pairs into the band."""
    size = facts[PENDING]
    if size == 0:
        return
    for i in range(size):
        scratch.slot[i] = band.slot[facts[SIZE] + i]
    facts[PENDING] = 0
    facts[ADDED] += size
    sort_slots(band.pairs, scratch, size)
    merge(facts, band, scratch.slot, size)


@uncounted
def merge(facts: Ints, band: Band, fresh: Places, size: int) -> None:
    """Insert sorted new slots into the band, from its end on: each pair moves once (Alg. 3, line 5)."""
    read, write = facts[SIZE] - 1, facts[SIZE] + size - 1
    facts[SIZE] += size
    for i in range(size - 1, -1, -1):
        one = fresh[i]
        key = band.pairs[one]["key"]
        while read >= 0 and (
            band.key[read] < key
            or (band.key[read] == key and not ranks_above(band.pairs, band.slot[read], band.pairs, one))
        ):
            band.key[write] = band.key[read]
            band.old[write] = band.old[read]
            band.slot[write] = band.slot[read]
            read -= 1
            write -= 1
        band.key[write] = key
        band.old[write] = band.pairs[one]["old"]
        band.slot[write] = one
        write -= 1
    update_nodes(facts, band, max(read + 1, 0))


@uncounted
def update_nodes(facts: Ints, band: Band, begin: int) -> None:
    """Update the nodes from this entry on (Alg. 1, line 2); lists read from the band (answers.py) are out of date."""
    size = facts[SIZE]
    facts[READS] = 0
    for node in range(begin // FAN, (size + FAN - 1) // FAN):
        newest = -NEVER
        for i in range(node * FAN, min(size, (node + 1) * FAN)):
            newest = max(newest, band.old[i])
        band.newest[node] = newest


@uncounted
def walk(facts: Ints, band: Band, begin: int, found: int, k: int, low: int, out: Places, at: int) -> int:
    """Write the slots of the k best pairs whose older member is newer than `low`, best first (Alg. 2).

    From rank `begin` on, when `found` have been found before it; returns how many there are in all.
    """
    size = facts[SIZE]
    for node in range(begin // FAN, (size + FAN - 1) // FAN):
        if band.newest[node] <= low:
            continue  # Alg. 2, lines 9 and 10
        for i in range(max(begin, node * FAN), min(size, (node + 1) * FAN)):
            if band.old[i] > low:
                out[at + found] = band.slot[i]
                found += 1
                if found == k:  # line 3
                    return found
    return found


@uncounted
def prune(facts: Ints, band: Band, K: int, low: int, algorithm: int) -> None:
    """Remove pairs that have expired or are dominated by K; build the staircase on the way (Alg. 4)."""
    size, held, kept, stairs, last = facts[SIZE], 0, 0, 0, -NEVER
    heap, top = band.heap, 0  # line 1: the K newest ordinals; `top`: the oldest of them
    for i in range(size):
        slot = band.slot[i]
        place = band.pairs[slot]["place"]
        if algorithm == BASIC:
            dominated = band.pairs[slot]["dom"] >= K
        else:
            dominated = algorithm < BASIC and held == K and heap[top] >= place  # line 10
        if dominated or band.old[i] <= low:
            band.free[facts[FREE]] = slot
            facts[FREE] += 1
            continue  # line 11
        band.key[kept] = band.key[i]
        band.old[kept] = band.old[i]
        band.slot[kept] = slot
        kept += 1  # lines 5 and 13
        if algorithm >= BASIC:
            continue
        if K <= SMALL and held < K:
            _first(heap, held, place)
            held += 1
        elif K <= SMALL:
            _shift(heap, top, K - top, K, place)
            top = K - top
        elif held < K:  # line 6
            _rise(heap, held, place)
            held += 1
        else:  # lines 14 and 15
            _replace(heap, held, place)
        if held == K and heap[top] > last:  # lines 8 and 16
            last = heap[top]
            band.stair_place[stairs] = last
            band.stair_key[stairs] = band.key[i]
            stairs += 1
    facts[SIZE] = kept
    facts[ADDED] = 0
    facts[STAIRS] = thin(band, stairs, facts[BASE] + facts[END])
    update_nodes(facts, band, 0)


@uncounted
def thin(band: Band, stairs: int, next_ordinal: int) -> int:
    """Keep only steps that are a fifth of their age apart: each holds alone, and fewer make longer runs to compare."""
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
    """Insert one of the first K ordinals, in order, the oldest first."""
    at = held
    while at > 0 and newest[at - 1] > place:
        newest[at] = newest[at - 1]
        at -= 1
    newest[at] = place


@uncounted
def _shift(newest: Ints, begin: int, to: int, K: int, place: int) -> None:
    """Insert an ordinal among K in order and remove the oldest; from one half to the other, by vector instructions."""
    here, later, there = newest[begin : begin + K - 1], newest[begin + 1 : begin + K], newest[to : to + K - 1]
    for i in range(K - 1):
        there[i] = min(later[i], max(here[i], place))
    newest[to + K - 1] = max(newest[begin + K - 1], place)


@uncounted
def _rise(heap: Ints, at: int, place: int) -> None:
    """Insert an ordinal into a heap of `at`, the oldest on top."""
    while at > 0 and heap[(at - 1) >> 1] > place:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = place


@uncounted
def _replace(heap: Ints, size: int, place: int) -> None:
    """Replace the oldest ordinal of a heap, unless this one is older."""
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
    """BASIC: set the counters of new pairs, and raise those of the pairs that they dominate."""
    pairs = band.pairs
    for i in range(size):
        pairs[fresh[i]]["dom"] = -1  # new: negative while it counts for itself, and not raised by others
    for i in range(size):
        one, above = fresh[i], True
        for j in range(facts[SIZE]):
            slot = band.slot[j]
            if slot == one:
                above = False
            elif above:
                pairs[one]["dom"] -= pairs[slot]["place"] >= pairs[one]["place"]
            elif pairs[slot]["dom"] >= 0:
                pairs[slot]["dom"] += pairs[slot]["place"] <= pairs[one]["place"]
    for i in range(size):
        pairs[fresh[i]]["dom"] = -1 - pairs[fresh[i]]["dom"]
