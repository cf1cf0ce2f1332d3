"""The steps of one group: objects come and go, the band follows, and the answers of all queries are told.

A step finds its candidates, marks the queries whose answer may change (a pair of theirs expires, or a candidate reaches
their last one), merges, and tells how the answers of these have changed in one walk each. What needs more room than
there is stops before it changes anything, and goes on from there.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.pairs.kernels.band import count_dominators, flush, merge, prune, ranks_above, sort_slots, walk
from skyband.engines.pairs.kernels.records import (
    ADDED,
    BAND_FULL,
    BASE,
    BASIC,
    BLOCK_FULL,
    BLOCKS,
    DESK_FULL,
    DONE,
    END,
    FAN,
    FIRST_BLOCK,
    FOUND,
    FREE,
    GIVEN,
    HEAD,
    LAST_ROW,
    NEED,
    NEVER,
    OUT_FULL,
    PENDING,
    SAVED,
    SIZE,
    TA,
    TICK,
    TOLDS,
    WILD,
    WINDOW_FULL,
    Band,
    Blocks,
    Desk,
    Ints,
    Places,
    Records,
    Scoring,
    Stream,
    Views,
    Window,
)
from skyband.engines.pairs.kernels.scores import is_wild
from skyband.engines.pairs.kernels.search import find
from skyband.kernels.compile import kernel, uncounted

FEW = 32  # new pairs wait for each other to be put into the band


@kernel
def take_pairs(
    facts: Ints,
    window: Window,
    band: Band,
    views: Views,
    desk: Desk,
    blocks: Blocks,
    block_size: int,
    scoring: Scoring,
    algorithm: int,
    K: int,
    stream: Stream,
    begin: int,
    last: int,
    timed: bool,
    net: bool,
    saved: Records,
    out: Records,
) -> tuple[int, int]:
    """Take arrivals from `begin` on, then let time go on to `last`; returns how far it came and why it stopped."""
    longest = views.length[-1]
    for i in range(begin, len(stream.stamps)):
        now, stamp = stream.now[i], stream.stamps[i]
        if timed and not facts[FOUND] and not _expire(facts, band, views, desk, now, net, saved, out):
            return i, OUT_FULL
        comes = len(stream.eligible) == 0 or stream.eligible[i]
        if timed and not comes:
            facts[LAST_ROW] = stream.rows[i]
            continue
        while facts[HEAD] < facts[END] and window.stamps[facts[HEAD]] <= now - longest:
            facts[HEAD] += 1
        at, wild = facts[END], False
        if comes:
            if facts[END] == len(window.stamps):
                return i, WINDOW_FULL
            if algorithm == TA and not _has_open_block(facts, blocks, block_size):
                return i, BLOCK_FULL
            if facts[END] - facts[HEAD] + facts[PENDING] + 1 > len(desk.other):
                return i, DESK_FULL
            while at > facts[HEAD] and window.stamps[at - 1] > stamp:
                at -= 1
            values = stream.values[:, i]
            wild = stream.wild if scoring.form == GIVEN else is_wild(scoring, values)
            if not facts[FOUND] and len(stream.scored) and not stream.scored[i]:
                facts[FOUND] = 1
            if not facts[FOUND]:
                start = stream.begins[i] if scoring.form == GIVEN else 0
                facts[FOUND] = 1 + find(
                    facts,
                    window,
                    band,
                    views,
                    desk,
                    blocks,
                    scoring,
                    values,
                    stream.given,
                    start,
                    wild,
                    algorithm,
                    K,
                    at,
                    stamp,
                    now,
                )
        found = facts[FOUND] - 1 if comes else 0
        affected, pairs = _mark(facts, window, views, desk, found, at, stamp, now, timed)
        facts[NEED] = facts[SIZE] + facts[PENDING] + found
        if facts[NEED] > len(band.key):
            return i, BAND_FULL
        facts[NEED] = 2 * pairs + len(views.k)
        if (
            facts[NEED] > len(desk.before)
            or facts[NEED] > len(out) - facts[TOLDS]
            or (net and facts[NEED] > len(saved) - facts[SAVED])
        ):
            return i, OUT_FULL
        if net:
            for j in range(affected):
                touch(facts, band, views, desk, desk.affected[j], saved)
        facts[TICK] += 1
        if comes:
            _draft(facts, window, band, desk, found, at, stamp, stream.serial + stream.rows[i])
            _insert(facts, window, band, blocks, algorithm, at, stamp, stream.serial + stream.rows[i])
            for j in range(len(window.data)):
                window.data[j, at] = values[j]
                if len(window.rough):
                    window.rough[j, at] = values[j]
                    if abs(values[j]) > window.most[j]:
                        window.most[j] = abs(values[j])
            if wild and scoring.form != GIVEN:
                facts[WILD] = max(facts[WILD], facts[BASE] + at + 1)
            if algorithm == BASIC:
                sort_slots(band.slots, desk, found)
                merge(facts, band, desk.slot, found)
                count_dominators(facts, band, desk.slot, found)
                facts[ADDED] += found
            else:
                for j in range(found):
                    band.slot[facts[SIZE] + facts[PENDING] + j] = desk.slot[j]
                facts[PENDING] += found
        facts[FOUND] = 0
        facts[LAST_ROW] = stream.rows[i]
        if affected and not net:
            flush(facts, band, desk)
            for j in range(affected):
                tell_view(facts, band, views, desk, desk.affected[j], now, stream.rows[i], 0, out)
        if facts[ADDED] + facts[PENDING] > max(FEW, facts[SIZE] >> 1):
            flush(facts, band, desk)
            prune(facts, band, K, now - longest, algorithm)
    if timed and not _expire(facts, band, views, desk, last, net, saved, out):
        return len(stream.stamps), OUT_FULL
    return len(stream.stamps), DONE


@uncounted
def _mark(
    facts: Ints,
    window: Window,
    views: Views,
    desk: Desk,
    found: int,
    at: int,
    stamp: int,
    now: int,
    timed: bool,
) -> tuple[int, int]:
    """The queries whose answer may change, and how many pairs their answers can have."""
    affected, pairs, seen, best, size = 0, 0, 0, -np.inf, facts[SIZE] + found
    for view in range(len(views.k)):
        while seen < found:
            index = desk.other[seen]
            if now - (window.stamps[index] if index < at else stamp) >= views.length[view]:
                break
            best = max(best, desk.key[seen])
            seen += 1
        moved = (not timed and views.due[view] <= now) or (seen > 0 and best >= views.kth[view])
        if moved and not views.touched[view]:
            desk.affected[affected] = view
            affected += 1
            pairs += min(views.k[view], size)
    return affected, pairs


@uncounted
def tell_before(facts: Ints, band: Band, views: Views, view: int, out: Places, at: int) -> int:
    """The present answer of a query: older members that go at `due` are the oldest that it has."""
    if views.due[view] == NEVER:
        return 0
    return walk(facts, band, 0, 0, views.k[view], views.due[view] - views.length[view] - 1, out, at)


@uncounted
def touch(facts: Ints, band: Band, views: Views, desk: Desk, view: int, saved: Records) -> None:
    """Keep what the query has told, and look at it again when the batch ends."""
    views.at[view] = facts[SAVED]
    views.held[view] = tell_before(facts, band, views, view, desk.before, 0)
    for i in range(views.held[view]):
        saved[facts[SAVED]] = band.slots[desk.before[i]]
        facts[SAVED] += 1
    views.touched[view] = 1
    views.due[view] = NEVER
    views.kth[view] = np.inf


@uncounted
def _draft(facts: Ints, window: Window, band: Band, desk: Desk, found: int, at: int, stamp: int, serial: int) -> None:
    """Slots for the candidates. Places are those of after the insertion."""
    for i in range(found):
        facts[FREE] -= 1
        slot = band.free[facts[FREE]]
        index = desk.other[i]
        one = band.slots[slot]
        one["key"] = desk.key[i]
        if index < at:
            one["old"], one["older"], one["place"] = window.stamps[index], window.serials[index], facts[BASE] + index
            one["new"], one["newer"] = stamp, serial
        else:
            one["old"], one["older"], one["place"] = stamp, serial, facts[BASE] + at
            one["new"], one["newer"] = window.stamps[index], window.serials[index]
        one["dom"] = 0
        band.marks[slot] = facts[TICK]
        for j in range(band.bits.shape[1]):
            band.bits[slot, j] = 0
        desk.slot[i] = slot


@uncounted
def _insert(
    facts: Ints, window: Window, band: Band, blocks: Blocks, algorithm: int, at: int, stamp: int, serial: int
) -> None:
    """A place for the object; a late one moves those after it, and what is known by their ordinals.

    Steps of the staircase stay: each then holds for one object less, until it is built again.
    """
    end = facts[END]
    if at < end:
        for i in range(end, at, -1):
            window.stamps[i] = window.stamps[i - 1]
            window.serials[i] = window.serials[i - 1]
            for j in range(len(window.data)):
                window.data[j, i] = window.data[j, i - 1]
                if len(window.rough):
                    window.rough[j, i] = window.rough[j, i - 1]
                if algorithm == TA:
                    blocks.values[j, i] = blocks.values[j, i - 1]
                    blocks.places[j, i] = blocks.places[j, i - 1]
        late = facts[BASE] + at
        for i in range(facts[SIZE] + facts[PENDING]):
            one = band.slots[band.slot[i]]
            one["place"] += one["place"] >= late
        facts[WILD] += facts[WILD] > late
    window.stamps[at] = stamp
    window.serials[at] = serial
    facts[END] = end + 1
    if algorithm == TA:
        block = facts[BLOCKS] - 1
        while block > facts[FIRST_BLOCK] and blocks.start[block] > facts[BASE] + at:
            blocks.start[block] += 1
            blocks.end[block] += 1
            block -= 1
        blocks.end[block] += 1
        blocks.sorted[block] = 0


@uncounted
def _has_open_block(facts: Ints, blocks: Blocks, block_size: int) -> bool:
    while facts[FIRST_BLOCK] < facts[BLOCKS] - 1 and blocks.end[facts[FIRST_BLOCK]] <= facts[BASE] + facts[HEAD]:
        facts[FIRST_BLOCK] += 1
    if facts[FIRST_BLOCK] == facts[BLOCKS]:
        return False
    newest = facts[BLOCKS] - 1
    return bool(blocks.end[newest] - blocks.start[newest] < block_size)


@uncounted
def tell_view(
    facts: Ints, band: Band, views: Views, desk: Desk, view: int, now: int, row: int, alone: int, out: Records
) -> None:
    """How an answer differs from what it was, in one walk: before, it had no pairs of this step and others valid."""
    k, length, due, size, tick = views.k[view], views.length[view], views.due[view], facts[SIZE], facts[TICK]
    low, was = now - length, due - length - 1
    held, found, gone, come = k if due == NEVER else 0, 0, 0, 0
    oldest, last, least = NEVER, -np.inf, min(low, was)
    crest, marks = band.crest, band.marks
    for block in range((size + FAN - 1) // FAN):
        if crest[block] <= least:
            continue
        if held >= k and found >= k:
            break
        begin, end = block * FAN, min(size, (block + 1) * FAN)
        old, slots, keys = band.old[begin:end], band.slot[begin:end], band.key[begin:end]
        for i in range(end - begin):
            if old[i] <= least:
                continue
            slot = slots[i]
            before = held < k and old[i] > was and marks[slot] != tick
            after = found < k and old[i] > low
            held += before
            if after:
                oldest = min(oldest, old[i])
                found += 1
                if found == k:
                    last = keys[i]
            if before and not after:
                desk.before[gone] = slot
                gone += 1
            elif after and not before:
                desk.after[come] = slot
                come += 1
    for i in range(gone):
        _write(facts, band.slots, desk.before[i], view, -1, 0, now, row, alone, out)
    for i in range(come):
        _enter(facts, band, desk.after[i], view, now, row, alone, out)
    views.due[view] = oldest + length if found else NEVER
    views.kth[view] = last


@uncounted
def _enter(facts: Ints, band: Band, slot: int, view: int, instant: int, row: int, alone: int, out: Records) -> None:
    word, bit = view >> 6, np.uint64(1) << np.uint64(view & 63)
    new = band.bits[slot, word] & bit == 0
    band.bits[slot, word] |= bit
    _write(facts, band.slots, slot, view, 1, new, instant, row, alone, out)


@uncounted
def look(facts: Ints, band: Band, views: Views, view: int, now: int, out: Places) -> int:
    """The answer of a query as it is now, with its last key and the moment when it loses a pair."""
    k, low, size = views.k[view], now - views.length[view], facts[SIZE]
    found, oldest, last = 0, NEVER, -np.inf
    old, slot, crest = band.old, band.slot, band.crest
    for block in range((size + FAN - 1) // FAN):
        if crest[block] <= low:
            continue
        for i in range(block * FAN, min(size, (block + 1) * FAN)):
            if old[i] > low:
                out[found] = slot[i]
                oldest = min(oldest, old[i])
                found += 1
                if found == k:
                    last = band.key[i]
                    break
        if found == k:
            break
    views.due[view] = oldest + views.length[view] if found else NEVER
    views.kth[view] = last
    return found


@uncounted
def differ(
    facts: Ints,
    band: Band,
    was: Records,
    before: Places,
    first: int,
    end: int,
    after: Places,
    size: int,
    view: int,
    diff: int,
    instant: int,
    row: int,
    alone: int,
    out: Records,
) -> None:
    """Both answers are by rank: who is in the first only leaves (-1), who is in the second only enters (+1)."""
    i, j, slots = first, 0, band.slots
    while i < end or j < size:
        if i < end and j < size and _is_same(was, before[i], slots, after[j]):
            i += 1
            j += 1
        elif j == size or (i < end and ranks_above(was, before[i], slots, after[j])):
            if diff < 0:
                _write(facts, was, before[i], view, diff, 0, instant, row, alone, out)
            i += 1
        else:
            if diff > 0:
                _enter(facts, band, after[j], view, instant, row, alone, out)
            j += 1


@uncounted
def _is_same(one: Records, i: int, other: Records, j: int) -> bool:
    return bool(one[i]["newer"] == other[j]["newer"] and one[i]["older"] == other[j]["older"])


@uncounted
def _write(
    facts: Ints,
    slots: Records,
    slot: int,
    view: int,
    diff: int,
    new: int,
    instant: int,
    row: int,
    alone: int,
    out: Records,
) -> None:
    told = out[facts[TOLDS]]
    facts[TOLDS] += 1
    told["key"], told["old"], told["older"] = slots[slot]["key"], slots[slot]["old"], slots[slot]["older"]
    told["new"], told["newer"] = slots[slot]["new"], slots[slot]["newer"]
    told["instant"], told["row"], told["query"] = instant, row, view
    told["diff"], told["first"], told["alone"] = diff, new, alone


@uncounted
def _expire(
    facts: Ints, band: Band, views: Views, desk: Desk, to: int, net: bool, saved: Records, out: Records
) -> bool:
    """Time windows: each instant at which an answer loses pairs is a step of its own. False: no room."""
    for view in range(len(views.k)):
        while views.due[view] <= to:
            flush(facts, band, desk)
            facts[NEED] = 2 * min(views.k[view], facts[SIZE]) + len(views.k)
            if (
                facts[NEED] > len(desk.before)
                or facts[NEED] > len(out) - facts[TOLDS]
                or (net and facts[NEED] > len(saved) - facts[SAVED])
            ):
                return False
            if net:
                touch(facts, band, views, desk, view, saved)
                break
            facts[TICK] += 1  # nobody is new
            tell_view(facts, band, views, desk, view, views.due[view], facts[LAST_ROW], 1, out)
    return True


@kernel
def close_batch(
    facts: Ints,
    band: Band,
    views: Views,
    desk: Desk,
    saved: Records,
    order: Places,  # 0, 1, 2, ...
    now: int,
    instant: int,
    row: int,
    out: Records,
) -> None:
    """A net batch ends: what it has changed in all, for the queries that it touched."""
    for view in range(len(views.k)):
        if views.touched[view]:
            first, end = views.at[view], views.at[view] + views.held[view]
            size = look(facts, band, views, view, now, desk.after)
            for diff in (-1, 1):
                differ(facts, band, saved, order, first, end, desk.after, size, view, diff, instant, row, 0, out)
            views.touched[view] = 0
    facts[SAVED] = 0


@kernel
def flush_pairs(facts: Ints, band: Band, desk: Desk) -> None:
    flush(facts, band, desk)


@kernel
def prune_pairs(facts: Ints, band: Band, K: int, low: int, algorithm: int) -> None:
    prune(facts, band, K, low, algorithm)


@kernel
def look_again(facts: Ints, band: Band, views: Views, after: Places, now: int) -> None:
    """Other queries over the same band: where each of them stands."""
    for view in range(len(views.k)):
        look(facts, band, views, view, now, after)
