"""Search for the new pairs of an arrival that K kept pairs do not dominate: by staircase, sorted lists or counting.

It only reads. A candidate is written to the scratch as the index of the other member and the key, the newest older
member first; a pair that is left out is dominated by K pairs. Cost: O(n) scores, with TA fewer.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.pairs.kernels.programs import CHUNK, Program, prepare, write_gathered
from skyband.engines.pairs.kernels.records import (
    ABSDIFF,
    BASE,
    BASIC,
    BLOCKS,
    END,
    FIRST_BLOCK,
    GIVEN,
    HEAD,
    PRODUCT,
    SCORED,
    SIZE,
    STAIRS,
    TA,
    TYPED,
    UNSAFE,
    Arrival,
    Blocks,
    Floats,
    Ints,
    Rules,
    Scoring,
    Scratch,
    State,
    Views,
    Window,
)
from skyband.engines.pairs.kernels.scores import combine, fill, has_nan, is_near, local_score, reaches, score_one, skip
from skyband.kernels.compile import uncounted

NEAREST = 64  # the newest objects: nearly always some of their pairs pass
FEW = 32  # scores that are not worth a test before they are compared one by one
GIVE_UP = 8  # TA scans a block once an eighth of it has been looked up


@uncounted
def find(state: State, rules: Rules, scratch: Scratch, arrival: Arrival) -> int:
    """Write the candidates among the new pairs of an arrival to the scratch; return their number (Alg. 3, lines 2-4).

    The scratch has capacity for the whole window.
    """
    facts, window, band, blocks, scoring = state.facts, state.window, state.band, state.blocks, rules.scoring
    values, unsafe, at = arrival.values, arrival.unsafe, arrival.at
    head, end, base = facts[HEAD], facts[END], facts[BASE]
    counting = unsafe or facts[UNSAFE] > base + head
    facts[SCORED] += end - head
    if scoring.form == TYPED:
        prepare(scoring.program, values, min(CHUNK, end - head))
    joining = len(rules.on.code) > 0 or len(arrival.joined) > 0
    if rules.algorithm == BASIC:
        return _count(state, rules, scratch, arrival, joining)
    found, right, stair, block = 0, end, facts[STAIRS], facts[BLOCKS] - 1
    data, stamps, buffer, sign = window.data, window.stamps, scratch.buffer, scoring.sign
    plain = counting or scoring.form == GIVEN
    others, keys, places, steps = scratch.other, scratch.key, band.stair_place, band.stair_key
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
                low = max(head, right - max(NEAREST, end - right))  # the older, the fewer pass
        if rules.algorithm == TA and right <= at and stair < facts[STAIRS]:
            while block >= facts[FIRST_BLOCK] and (
                blocks.end[block] > base + right or blocks.start[block] == blocks.end[block]
            ):
                block -= 1
            if block >= facts[FIRST_BLOCK] and blocks.end[block] < base + right:  # up to the next block
                low = max(low, blocks.end[block] - base)
            elif (
                block >= facts[FIRST_BLOCK]
                and blocks.start[block] >= base + head
                and blocks.sorted[block]
                and not unsafe
            ):
                low = blocks.start[block] - base
                found = _threshold(facts, window, scratch, blocks, scoring, values, low, right, steps[stair], found)
                right = low
                continue
        if scoring.form == GIVEN:
            for i in range(right - low):
                buffer[i] = arrival.given[arrival.begin + low + i]
        elif counting or right > at or stair == facts[STAIRS] or end - right < NEAREST:
            fill(buffer, right - low, scoring, data, low, values, right > at)
        else:
            right = skip(buffer, scoring, window, low, right, values, steps[stair])  # the lowest of their steps
            if right == low:
                continue
            low = max(low, right - CHUNK)
        holes = counting or (scoring.form == TYPED and has_nan(buffer, right - low))
        high = right
        while high > low:
            # steps of pairs that are strictly newer than the older member, which is the arrival itself if it is late
            while stair > 0 and places[stair - 1] >= base + min(high, at):
                stair -= 1
            free = stair == facts[STAIRS]
            bound = -np.inf if free else steps[stair]
            left = low if stair == 0 or high > at else max(low, places[stair - 1] - base)
            if not (holes or free):
                hits = high - left <= FEW
                if not hits:
                    run = buffer[left - low : high - low]
                    for i in range(high - left):
                        hits |= sign * run[i] > bound
                if hits:
                    for i in range(high - low - 1, left - low - 1, -1):  # without branches: they would be mispredicted
                        key = sign * buffer[i]
                        others[found], keys[found] = low + i, key
                        found += key > bound
            else:  # without a bound a pair with the key -inf is a candidate too
                for i in range(high - low - 1, left - low - 1, -1):
                    key = sign * buffer[i]
                    if key > bound or (free and key == key) or (joining and key != key):
                        others[found] = low + i
                        keys[found] = key
                        found += 1
                    elif key != key:
                        count_scoreless(state.views, arrival.now - min(arrival.stamp, stamps[low + i]))
            high = left
        right = low
    return found


@uncounted
def keep_joined(
    facts: Ints, window: Window, views: Views, on: Program, scratch: Scratch, arrival: Arrival, found: int
) -> int:
    """Of these candidates keep the pairs that satisfy the condition; count those without a score. Return their number.

    The condition is for a chunk of them at once, from data that is gathered, or was computed with the scores.
    """
    others, keys, kept, begin = scratch.other, scratch.key, 0, 0
    given = len(arrival.joined) > 0
    if not given and len(on.code) == 0:
        return found
    if not given:
        prepare(on, arrival.values, min(CHUNK, found))
    while begin < found:
        turned, size = others[begin] >= arrival.at, 0
        while begin + size < found and size < CHUNK and (others[begin + size] >= arrival.at) == turned:
            size += 1
        if not given:
            write_gathered(on, window.data, others, begin, size, turned, scratch.gathered, scratch.buffer)
        for i in range(begin, begin + size):
            if given:
                passes = arrival.joined[arrival.begin + others[i]]
            else:
                passes = scratch.buffer[i - begin] == 1.0
            if passes and keys[i] != keys[i]:
                count_scoreless(views, arrival.now - min(arrival.stamp, window.stamps[others[i]]))
            elif passes:
                others[kept], keys[kept] = others[i], keys[i]
                kept += 1
        begin += size
    return kept


@uncounted
def count_scoreless(views: Views, age: int) -> None:
    """Count a pair without a score for every query whose window is longer than this."""
    low, high = 0, len(views.length)
    while low < high:
        middle = (low + high) >> 1
        if views.length[middle] > age:
            high = middle
        else:
            low = middle + 1
    views.scoreless[low] += 1


@uncounted
def _count(state: State, rules: Rules, scratch: Scratch, arrival: Arrival, joining: bool) -> int:
    """BASIC: count the dominators of each new pair in the band (Alg. 3, line 4 without a staircase)."""
    facts, window, band, scoring, at = state.facts, state.window, state.band, rules.scoring, arrival.at
    found, given = 0, scoring.form == GIVEN
    for i in range(facts[END] - 1, facts[HEAD] - 1, -1):
        score = arrival.given[arrival.begin + i] if given else 0.0
        if scoring.form == TYPED:
            fill(scratch.buffer, 1, scoring, window.data, i, arrival.values, i >= at)
            score = scratch.buffer[0]
        elif not given:
            score = score_one(scoring, window.data, i, arrival.values)
        key = scoring.sign * score
        if key != key and not joining:
            count_scoreless(state.views, arrival.now - min(arrival.stamp, window.stamps[i]))
            continue
        place = facts[BASE] + min(i, at) - (i >= at)  # strictly newer than the older member: > i, or >= at
        dominators, j = 0, 0
        while key == key and j < facts[SIZE] and dominators < rules.K and band.key[j] >= key:
            dominators += band.pairs[band.slot[j]]["place"] > place
            j += 1
        if dominators < rules.K:
            scratch.other[found] = i
            scratch.key[found] = key
            found += 1
    return found


@uncounted
def _threshold(
    facts: Ints,
    window: Window,
    scratch: Scratch,
    blocks: Blocks,
    scoring: Scoring,
    values: Floats,
    begin: int,
    end: int,
    bound: float,
    found: int,
) -> int:
    """TA within a block (Alg. 5): read the sorted lists in turn until no unseen object can pass the bound."""
    d, first, size = len(scoring.local), found, end - begin
    if is_near(scoring):
        return _near(facts, scratch, blocks, scoring, values, begin, end, bound, found)
    left, right = scratch.left, scratch.right
    weighted = len(scoring.weights) > 0
    for j in range(d):
        closest = (scoring.sign * scoring.weights[j] if weighted else scoring.sign) < 0  # the smallest is best
        left[j], right[j] = begin, end - 1
        if scoring.form == PRODUCT and weighted and scoring.weights[j] < 0:
            return scan(window, scratch, scoring, values, begin, end, bound, found)  # no monotone product
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
            return scan(window, scratch, scoring, values, begin, end, bound, found)  # no monotone product
    seen = 0
    while True:
        total, best = 0.0, 0.0
        for j in range(d):  # Alg. 5, line 4
            low, high = left[j], right[j]
            closest = (scoring.sign * scoring.weights[j] if weighted else scoring.sign) < 0
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
            best = local_score(scoring, j, blocks.values[j, place], values[j])
            total = best if j == 0 else combine(scoring.form, total, best)
            at = begin + blocks.places[j, place]  # line 5
            key = scoring.sign * score_one(scoring, window.data, at, values)
            if key > bound:  # lines 6 and 7
                known = False
                for i in range(first, found):
                    known = known or scratch.other[i] == at
                if not known:
                    scratch.other[found] = at
                    scratch.key[found] = key
                    found += 1
            if place == low:
                left[j] += -1 if scoring.local[j] == ABSDIFF and closest else 1
            else:
                right[j] += 1 if scoring.local[j] == ABSDIFF and closest else -1
        seen += d
        if scoring.sign * total <= bound or seen >= d * size:  # lines 3 and 10: no unseen pair is better than `total`
            break
        if seen * GIVE_UP > size + 64 * d:
            found = scan(window, scratch, scoring, values, begin, end, bound, first)
            break
    facts[SCORED] += seen - size
    _sort_by_age(scratch, first, found)
    return found


@uncounted
def _near(
    facts: Ints,
    scratch: Scratch,
    blocks: Blocks,
    scoring: Scoring,
    values: Floats,
    begin: int,
    end: int,
    bound: float,
    found: int,
) -> int:
    """TA for a sum of distances, which is at least the first: read one list, its rows side by side, within that."""
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
        if reaches(scratch.buffer, size, scoring, blocks.values, start, values, bound):
            for i in range(size):
                if -scratch.buffer[i] > bound:
                    scratch.other[found] = begin + blocks.places[0, start + i]
                    scratch.key[found] = -scratch.buffer[i]
                    found += 1
        start += size
    _sort_by_age(scratch, first, found)
    return found


@uncounted
def _sort_by_age(scratch: Scratch, first: int, found: int) -> None:
    """Sort the candidates from `first` on, the newest first."""
    for i in range(first + 1, found):
        place, key, at = scratch.other[i], scratch.key[i], i
        while at > first and scratch.other[at - 1] < place:
            scratch.other[at], scratch.key[at] = scratch.other[at - 1], scratch.key[at - 1]
            at -= 1
        scratch.other[at], scratch.key[at] = place, key


@uncounted
def scan(
    window: Window, scratch: Scratch, scoring: Scoring, values: Floats, begin: int, end: int, bound: float, found: int
) -> int:
    """Add all pairs with the objects from `begin` to `end` that pass the bound (-inf: all), the newest first."""
    sign, buffer, free = scoring.sign, scratch.buffer, bound == -np.inf
    while end > begin:
        size = min(CHUNK, end - begin)
        low = end - size
        fill(buffer, size, scoring, window.data, low, values)
        for i in range(size - 1, -1, -1):
            key = sign * buffer[i]
            if key > bound or (free and key == bound):
                scratch.other[found] = low + i
                scratch.key[found] = key
                found += 1
        end = low
    return found
