"""The steps of one group: an object arrives, others expire, the kept pairs and the answers follow (Alg. 3).

A step finds its candidates, marks the queries whose answer may change (a pair of theirs expires, or a candidate reaches
their last one), inserts, and reports the changes of these in one walk each. A step that needs more capacity than there
is stops before it changes anything, and goes on from there when it is called again.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.pairs.kernels.band import count_dominators, draft, flush, merge, prune, sort_slots
from skyband.engines.pairs.kernels.naive import keep_best, replace_expired
from skyband.engines.pairs.kernels.records import (
    ADDED,
    BAND_FULL,
    BASE,
    BASIC,
    BLOCK_FULL,
    BLOCKS,
    DONE,
    END,
    FIRST_BLOCK,
    FOUND,
    GIVEN,
    HEAD,
    LAST_ROW,
    NAIVE,
    NEED,
    OUT_FULL,
    PENDING,
    SCRATCH_FULL,
    SIZE,
    TA,
    TICK,
    UNSAFE,
    WINDOW_FULL,
    Arrival,
    Band,
    Blocks,
    Ints,
    Records,
    Rules,
    Scratch,
    State,
    Stream,
    Views,
    Window,
)
from skyband.engines.pairs.kernels.reports import expire, has_capacity, report_view, save_reported
from skyband.engines.pairs.kernels.scores import is_unsafe
from skyband.engines.pairs.kernels.search import find, keep_joined
from skyband.kernels.compile import kernel, uncounted

FEW = 32  # pending pairs


@kernel
def take_pairs(
    state: State, rules: Rules, scratch: Scratch, stream: Stream, begin: int, last: int, out: Records
) -> tuple[int, int]:
    """Take arrivals from `begin` on, then let time go on to `last`; return how far it came and why it stopped."""
    facts, window, band, views, saved = state.facts, state.window, state.band, state.views, state.saved
    scoring, algorithm, timed, net = rules.scoring, rules.algorithm, rules.timed, rules.net
    longest, often = views.length[-1], 4 if algorithm == NAIVE else 1  # NAIVE moves the band many times in a step
    for i in range(begin, len(stream.stamps)):
        now, stamp, row = stream.now[i], stream.stamps[i], stream.rows[i]
        if not facts[FOUND]:
            if algorithm == NAIVE:
                why = replace_expired(state, rules, scratch, now)
                if why != DONE:
                    return i, why
            if timed and not expire(facts, band, views, scratch, now, net, saved, out):
                return i, OUT_FULL
        enters = len(stream.eligible) == 0 or stream.eligible[i]
        if timed and not enters:
            facts[LAST_ROW] = row
            continue
        while facts[HEAD] < facts[END] and window.stamps[facts[HEAD]] <= now - longest:
            facts[HEAD] += 1
        at, found = facts[END], 0
        values, unsafe = stream.values[:, i], False
        if enters:
            if facts[END] == len(window.stamps):
                return i, WINDOW_FULL
            if algorithm == TA and not _has_open_block(facts, state.blocks, rules.block_size):
                return i, BLOCK_FULL
            if facts[END] - facts[HEAD] + facts[PENDING] + 1 > len(scratch.other):
                return i, SCRATCH_FULL
            while at > facts[HEAD] and window.stamps[at - 1] > stamp:
                at -= 1
            unsafe = stream.unsafe if scoring.form == GIVEN else is_unsafe(scoring, values)
        serial = stream.serial + row
        if enters and not facts[FOUND]:
            if len(stream.scored) == 0 or stream.scored[i]:
                start = stream.begins[i] if scoring.form == GIVEN else 0
                arrival = Arrival(values, stream.given, start, unsafe, stream.joined, at, stamp, serial, now)
                found = find(state, rules, scratch, arrival)
                found = keep_joined(facts, window, views, rules.on, scratch, arrival, found)
                if algorithm == NAIVE:
                    found = keep_best(facts, views, scratch, rules.K, found, at)
            facts[FOUND] = 1 + found
        if enters:
            found = facts[FOUND] - 1
        affected, pairs = _mark(facts, window, views, scratch, found, at, stamp, now, timed)
        facts[NEED] = facts[SIZE] + facts[PENDING] + found
        if facts[NEED] > len(band.key):
            return i, BAND_FULL
        if not has_capacity(facts, 2 * pairs + len(views.k), scratch, out, net, saved):
            return i, OUT_FULL
        if net:
            for j in range(affected):
                save_reported(facts, band, views, scratch, scratch.affected[j], saved)
        facts[TICK] += 1
        if enters:
            draft(facts, window, band, scratch, found, at, stamp, serial)
            _insert(state, algorithm, at, stamp, serial)
            for j in range(len(window.data)):
                window.data[j, at] = values[j]
                if j < len(window.most):
                    window.rough[j, at] = values[j]
                    if abs(values[j]) > window.most[j]:
                        window.most[j] = abs(values[j])
            if unsafe and scoring.form != GIVEN:
                facts[UNSAFE] = max(facts[UNSAFE], facts[BASE] + at + 1)
            if algorithm == BASIC:
                sort_slots(band.pairs, scratch, found)
                merge(facts, band, scratch.slot, found)
                count_dominators(facts, band, scratch.slot, found)
                facts[ADDED] += found
            else:
                for j in range(found):
                    band.slot[facts[SIZE] + facts[PENDING] + j] = scratch.slot[j]
                facts[PENDING] += found
        facts[FOUND] = 0
        facts[LAST_ROW] = row
        if affected and not net:
            flush(facts, band, scratch)
            for j in range(affected):
                report_view(facts, band, views, scratch, scratch.affected[j], now, row, 0, out)
        if facts[ADDED] + facts[PENDING] > max(FEW, facts[SIZE] >> often):
            flush(facts, band, scratch)
            prune(facts, band, rules.K, now - longest, algorithm)  # Alg. 3, line 6
    if timed:
        if algorithm == NAIVE:
            why = replace_expired(state, rules, scratch, last)
            if why != DONE:
                return len(stream.stamps), why
        if not expire(facts, band, views, scratch, last, net, saved, out):
            return len(stream.stamps), OUT_FULL
    return len(stream.stamps), DONE


@uncounted
def _mark(
    facts: Ints,
    window: Window,
    views: Views,
    scratch: Scratch,
    found: int,
    at: int,
    stamp: int,
    now: int,
    timed: bool,
) -> tuple[int, int]:
    """Mark the views whose answer may change; return their number and how many pairs their answers can have."""
    affected, pairs, seen, best, size = 0, 0, 0, -np.inf, facts[SIZE] + found
    for view in range(len(views.k)):
        while seen < found:
            index = scratch.other[seen]
            if now - (window.stamps[index] if index < at else stamp) >= views.length[view]:
                break
            best = max(best, scratch.key[seen])
            seen += 1
        moved = (not timed and views.due[view] <= now) or (seen > 0 and best >= views.kth[view])
        if moved and not views.touched[view]:
            scratch.affected[affected] = view
            affected += 1
            pairs += min(views.k[view], size)
    return affected, pairs


@uncounted
def _insert(state: State, algorithm: int, at: int, stamp: int, serial: int) -> None:
    """Insert the object at index `at`. A late one moves those after it, and what is known by their ordinals.

    Steps of the staircase stay: each then holds for one object less, until it is built again.
    """
    facts, window, band, blocks, end = state.facts, state.window, state.band, state.blocks, state.facts[END]
    if at < end:
        for i in range(end, at, -1):
            window.stamps[i] = window.stamps[i - 1]
            window.serials[i] = window.serials[i - 1]
            for j in range(len(window.data)):
                window.data[j, i] = window.data[j, i - 1]
                if j < len(window.most):
                    window.rough[j, i] = window.rough[j, i - 1]
                if algorithm == TA and j < len(blocks.values):
                    blocks.values[j, i] = blocks.values[j, i - 1]
                    blocks.places[j, i] = blocks.places[j, i - 1]
        late = facts[BASE] + at
        for i in range(facts[SIZE] + facts[PENDING]):
            one = band.pairs[band.slot[i]]
            one["place"] += one["place"] >= late
        for view in range(len(state.views.head)):
            state.views.head[view] += state.views.head[view] > late
        facts[UNSAFE] += facts[UNSAFE] > late
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


@kernel
def flush_pairs(facts: Ints, band: Band, scratch: Scratch) -> None:
    flush(facts, band, scratch)


@kernel
def prune_pairs(facts: Ints, band: Band, K: int, low: int, algorithm: int) -> None:
    prune(facts, band, K, low, algorithm)
