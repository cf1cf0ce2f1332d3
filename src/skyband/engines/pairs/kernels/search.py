"""Which new pairs of an arrival may last: by the staircase, by sorted lists within blocks of age, or by counting.

All of them read only. A candidate is written to the desk as the index of the other member and the key; who is passed
over is dominated by K pairs. Candidates come by the age of their older member, the newest first.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.pairs.kernels.records import (
    ABSDIFF,
    BASE,
    BASIC,
    BLOCKS,
    CHUNK,
    END,
    FIRST_BLOCK,
    GIVEN,
    HEAD,
    PRODUCT,
    SCORED,
    SIZE,
    STAIRS,
    SUM,
    TA,
    WILD,
    Band,
    Blocks,
    Desk,
    Floats,
    Ints,
    Scoring,
    Views,
    Window,
)
from skyband.engines.pairs.kernels.scores import fill, is_near, local_score, passed_over, reaches, score_one
from skyband.kernels.compile import uncounted

NEAREST = 64  # objects among whose pairs some last, nearly always
FEW = 32  # are not worth a look before they are counted
GIVE_UP = 8  # a block is scanned once an eighth of it has been looked up


@uncounted
def find(
    facts: Ints,
    window: Window,
    band: Band,
    views: Views,
    desk: Desk,
    blocks: Blocks,
    scoring: Scoring,
    values: Floats,
    given: Floats,
    start: int,
    wild: bool,
    algorithm: int,
    K: int,
    at: int,
    stamp: int,
    now: int,
) -> int:
    """Candidates among the pairs of an object that belongs before index `at`, on the desk; how many.

    wild: the object's own numbers, or given scores. The desk has room for the whole window.
    """
    head, end, base = facts[HEAD], facts[END], facts[BASE]
    counting = wild or facts[WILD] > base + head
    facts[SCORED] += end - head
    if algorithm == BASIC:
        return _count(facts, window, band, views, desk, scoring, values, given, start, K, at, stamp, now)
    found, right, stair, block = 0, end, facts[STAIRS], facts[BLOCKS] - 1
    data, stamps, buffer, sign = window.data, window.stamps, desk.buffer, scoring.sign
    plain = counting or scoring.form == GIVEN
    others, keys, places, steps = desk.other, desk.key, band.stair_place, band.stair_key
    while right > head:
        low = max(head, right - CHUNK)
        if right > at:
            low = max(low, at)
        else:
            while stair > 0 and places[stair - 1] >= base + right:
                stair -= 1
            if stair == facts[STAIRS]:  # up to the first step
                low = max(low, places[stair - 1] - base if stair else head)
            elif not plain:
                low = max(head, right - max(NEAREST, end - right))  # the older, the rarer
        if algorithm == TA and right <= at and stair < facts[STAIRS]:
            while block >= facts[FIRST_BLOCK] and (
                blocks.end[block] > base + right or blocks.start[block] == blocks.end[block]
            ):
                block -= 1
            if block >= facts[FIRST_BLOCK] and blocks.end[block] < base + right:  # up to the next block
                low = max(low, blocks.end[block] - base)
            elif (
                block >= facts[FIRST_BLOCK] and blocks.start[block] >= base + head and blocks.sorted[block] and not wild
            ):
                low = blocks.start[block] - base
                found = _threshold(facts, window, desk, blocks, scoring, values, low, right, steps[stair], found)
                right = low
                continue
        if scoring.form == GIVEN:
            for i in range(right - low):
                buffer[i] = given[start + low + i]
        elif counting or right > at or stair == facts[STAIRS] or end - right < NEAREST:
            fill(buffer, right - low, scoring, data, low, values)
        else:
            right = passed_over(buffer, scoring, window, low, right, values, steps[stair])  # the lowest of them all
            if right == low:
                continue
            low = max(low, right - CHUNK)
        high = right
        while high > low:
            # steps over pairs that are strictly newer than the older member; of those after a late one it is the older
            while stair > 0 and places[stair - 1] >= base + min(high, at):
                stair -= 1
            free = stair == facts[STAIRS]
            bound = -np.inf if free else steps[stair]
            left = low if stair == 0 or high > at else max(low, places[stair - 1] - base)
            if not (counting or free):
                hits = high - left <= FEW
                if not hits:
                    run = buffer[left - low : high - low]
                    for i in range(high - left):
                        hits |= sign * run[i] > bound
                if hits:
                    for i in range(high - low - 1, left - low - 1, -1):  # without branches, which could not be foreseen
                        key = sign * buffer[i]
                        others[found], keys[found] = low + i, key
                        found += key > bound
            else:  # without a bound a key of -inf may last
                for i in range(high - low - 1, left - low - 1, -1):
                    key = sign * buffer[i]
                    if key > bound or (free and key == key):
                        others[found] = low + i
                        keys[found] = key
                        found += 1
                    elif key != key:
                        count_scoreless(views, now - min(stamp, stamps[low + i]))
            high = left
        right = low
    return found


@uncounted
def count_scoreless(views: Views, age: int) -> None:
    """A pair without a score, for every query whose window is longer than this."""
    low, high = 0, len(views.length)
    while low < high:
        middle = (low + high) >> 1
        if views.length[middle] > age:
            high = middle
        else:
            low = middle + 1
    views.scoreless[low] += 1


@uncounted
def _count(
    facts: Ints,
    window: Window,
    band: Band,
    views: Views,
    desk: Desk,
    scoring: Scoring,
    values: Floats,
    given: Floats,
    start: int,
    K: int,
    at: int,
    stamp: int,
    now: int,
) -> int:
    """BASIC: count the dominators of each new pair in the band (Alg. 3, line 4 without a staircase)."""
    found = 0
    for i in range(facts[END] - 1, facts[HEAD] - 1, -1):
        score = given[start + i] if scoring.form == GIVEN else score_one(scoring, window.data, i, values)
        key = scoring.sign * score
        if key != key:
            count_scoreless(views, now - min(stamp, window.stamps[i]))
            continue
        place = facts[BASE] + min(i, at) - (i >= at)  # strictly newer than the older member: > i, or >= at
        dominators, j = 0, 0
        while j < facts[SIZE] and dominators < K and band.key[j] >= key:
            dominators += band.slots[band.slot[j]]["place"] > place
            j += 1
        if dominators < K:
            desk.other[found] = i
            desk.key[found] = key
            found += 1
    return found


@uncounted
def _threshold(
    facts: Ints,
    window: Window,
    desk: Desk,
    blocks: Blocks,
    scoring: Scoring,
    values: Floats,
    begin: int,
    end: int,
    bound: float,
    found: int,
) -> int:
    """TA within a block (Alg. 5): read the sorted lists in turn until no unseen object can pass the bound."""
    d, first, size = len(values), found, end - begin
    if is_near(scoring):
        return _near(facts, desk, blocks, scoring, values, begin, end, bound, found)
    left, right = desk.left, desk.right
    closest = scoring.sign < 0
    for j in range(d):
        left[j], right[j] = begin, end - 1
        if scoring.local[j] == ABSDIFF and closest:  # from the object's own value outwards
            low, high = begin, end
            while low < high:
                middle = (low + high) >> 1
                if blocks.values[j, middle] < values[j]:
                    low = middle + 1
                else:
                    high = middle
            left[j], right[j] = low - 1, low
        elif scoring.local[j] != ABSDIFF and scoring.form == PRODUCT and blocks.values[j, begin] + values[j] < 0.0:
            return _plain(window, desk, scoring, values, begin, end, bound, found)  # no monotone product
    looked = 0
    while True:
        total, best = 0.0, 0.0
        for j in range(d):
            low, high = left[j], right[j]
            if scoring.local[j] != ABSDIFF:
                place = low if closest else high
            elif closest:
                if low < begin:
                    place = high
                elif high == end:
                    place = low
                else:
                    place = low if values[j] - blocks.values[j, low] <= blocks.values[j, high] - values[j] else high
            else:
                place = low if values[j] - blocks.values[j, low] >= blocks.values[j, high] - values[j] else high
            best = local_score(scoring.local[j], blocks.values[j, place], values[j])
            total = best if j == 0 else total + best if scoring.form == SUM else total * best
            at = begin + blocks.places[j, place]
            key = scoring.sign * score_one(scoring, window.data, at, values)
            if key > bound:  # Alg. 5, line 6
                known = False
                for i in range(first, found):
                    known = known or desk.other[i] == at
                if not known:
                    desk.other[found] = at
                    desk.key[found] = key
                    found += 1
            if place == low:
                left[j] += -1 if scoring.local[j] == ABSDIFF and closest else 1
            else:
                right[j] += 1 if scoring.local[j] == ABSDIFF and closest else -1
        looked += d
        if scoring.sign * total <= bound or looked >= d * size:  # lines 3 and 10: the unseen are no better than this
            break
        if looked * GIVE_UP > size + 64 * d:
            found = _plain(window, desk, scoring, values, begin, end, bound, first)
            break
    facts[SCORED] += looked - size
    _by_age(desk, first, found)
    return found


@uncounted
def _near(
    facts: Ints,
    desk: Desk,
    blocks: Blocks,
    scoring: Scoring,
    values: Floats,
    begin: int,
    end: int,
    bound: float,
    found: int,
) -> int:
    """A sum of distances is at least the first: read one list, whose rows lie side by side, as far as that passes."""
    x, value, most, first = blocks.values[0], values[0], -bound, found
    low, high = begin, end
    while low < high:  # the first that is not too far below
        middle = (low + high) >> 1
        if value - x[middle] >= most:
            low = middle + 1
        else:
            high = middle
    start, high = low, end
    while low < high:  # the first that is too far above
        middle = (low + high) >> 1
        if x[middle] - value >= most:
            high = middle
        else:
            low = middle + 1
    facts[SCORED] += low - start - (end - begin)
    while start < low:
        size = min(CHUNK, low - start)
        if reaches(desk.buffer, size, scoring, blocks.values, start, values, bound):
            for i in range(size):
                if -desk.buffer[i] > bound:
                    desk.other[found] = begin + blocks.places[0, start + i]
                    desk.key[found] = -desk.buffer[i]
                    found += 1
        start += size
    _by_age(desk, first, found)
    return found


@uncounted
def _by_age(desk: Desk, first: int, found: int) -> None:
    """Candidates from here on, the newest first."""
    for i in range(first + 1, found):
        place, key, at = desk.other[i], desk.key[i], i
        while at > first and desk.other[at - 1] < place:
            desk.other[at], desk.key[at] = desk.other[at - 1], desk.key[at - 1]
            at -= 1
        desk.other[at], desk.key[at] = place, key


@uncounted
def _plain(
    window: Window, desk: Desk, scoring: Scoring, values: Floats, begin: int, end: int, bound: float, found: int
) -> int:
    """A block of tame numbers whose lists do not help."""
    sign, buffer = scoring.sign, desk.buffer
    while end > begin:
        size = min(CHUNK, end - begin)
        low = end - size
        fill(buffer, size, scoring, window.data, low, values)
        for i in range(size - 1, -1, -1):
            if sign * buffer[i] > bound:
                desk.other[found] = low + i
                desk.key[found] = sign * buffer[i]
                found += 1
        end = low
    return found
