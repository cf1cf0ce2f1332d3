"""NAIVE: for each object its K best pairs with older ones, all of them sorted (shen2012, section VI-B).

When an object expires its pairs go, and every object that had one of them looks for its next best among all that are
older than it. O(K n) pairs are moved with each arrival, and O(n log n) scores are computed again.
"""

from __future__ import annotations

from skyband.engines.pairs.kernels.band import crown, merge, sort_slots
from skyband.engines.pairs.kernels.records import (
    BAND_FULL,
    BASE,
    CHUNK,
    DESK_FULL,
    DONE,
    END,
    FREE,
    HEAD,
    LAST_ROW,
    NEED,
    OUT_FULL,
    SAVED,
    SCORED,
    SIZE,
    TOLDS,
    WINDOW_FULL,
    Band,
    Desk,
    Ints,
    Places,
    Records,
    Scoring,
    Stream,
    Views,
    Window,
)
from skyband.engines.pairs.kernels.scores import fill
from skyband.engines.pairs.kernels.search import count_scoreless
from skyband.engines.pairs.kernels.steps import differ, look, tell_before, touch
from skyband.kernels.compile import kernel, uncounted


@kernel
def take_naive(
    facts: Ints,
    window: Window,
    band: Band,
    views: Views,
    desk: Desk,
    lists: Places,  # by index of an object, K each: the slots of its pairs, -1: none
    scoring: Scoring,
    K: int,
    stream: Stream,
    begin: int,
    last: int,
    timed: bool,
    net: bool,
    saved: Records,
    out: Records,
) -> tuple[int, int]:
    """As `take_pairs`, for queries with one window."""
    length = views.length[-1]
    for i in range(begin, len(stream.stamps) + timed):
        end = i == len(stream.stamps)  # then only time goes on
        now = last if end else stream.now[i]
        comes = not end and (len(stream.eligible) == 0 or stream.eligible[i])
        while True:
            instant = now
            if timed:
                if facts[HEAD] == facts[END] or window.stamps[facts[HEAD]] + length > now:
                    break
                instant = window.stamps[facts[HEAD]] + length
            why = _has_room(facts, window, band, views, desk, K, saved, out)
            if why != DONE:
                return i, why
            if timed:  # a step of its own
                _before(facts, band, views, desk, net, saved)
                _leave(facts, window, band, views, desk, lists, scoring, K, instant)
                _after(facts, band, views, desk, net, instant, facts[LAST_ROW], 1, saved, out)
            else:
                break
        if end:
            break
        if timed and not comes:
            facts[LAST_ROW] = stream.rows[i]
            continue
        why = _has_room(facts, window, band, views, desk, K, saved, out)
        if why != DONE:
            return i, why
        _before(facts, band, views, desk, net, saved)
        if not timed:
            _leave(facts, window, band, views, desk, lists, scoring, K, now)
        if comes:
            _arrive(facts, window, band, views, desk, lists, scoring, K, stream, i)
        facts[LAST_ROW] = stream.rows[i]
        _after(facts, band, views, desk, net, now, stream.rows[i], 0, saved, out)
    return len(stream.stamps), DONE


@uncounted
def _has_room(
    facts: Ints, window: Window, band: Band, views: Views, desk: Desk, K: int, saved: Records, out: Records
) -> int:
    live = facts[END] - facts[HEAD] + 1
    if facts[END] == len(window.stamps):
        return WINDOW_FULL
    facts[NEED] = live * min(K, live)
    if facts[NEED] > len(band.key):
        return BAND_FULL
    if live > len(desk.other):
        return DESK_FULL
    facts[NEED] = 0
    for view in range(len(views.k)):
        facts[NEED] += 2 * min(views.k[view], live * live)
    room = min(len(desk.before), len(out) - facts[TOLDS], len(saved) - facts[SAVED])
    if facts[NEED] > room:
        return OUT_FULL
    return DONE


@uncounted
def _before(facts: Ints, band: Band, views: Views, desk: Desk, net: bool, saved: Records) -> None:
    size = 0
    for view in range(len(views.k)):
        if net:
            if not views.touched[view]:
                touch(facts, band, views, desk, view, saved)
        else:  # as records: slots change hands within the step
            more = tell_before(facts, band, views, view, desk.before, size)
            for i in range(size, size + more):
                saved[i] = band.slots[desk.before[i]]
                desk.before[i] = i
            size += more
            desk.ends[view] = size


@uncounted
def _after(
    facts: Ints,
    band: Band,
    views: Views,
    desk: Desk,
    net: bool,
    now: int,
    row: int,
    alone: int,
    saved: Records,
    out: Records,
) -> None:
    if net:
        return
    for view in range(len(views.k)):
        first, end = desk.ends[view - 1] if view else 0, desk.ends[view]
        size = look(facts, band, views, view, now, desk.after)
        for diff in (-1, 1):
            differ(facts, band, saved, desk.before, first, end, desk.after, size, view, diff, now, row, alone, out)


@uncounted
def _leave(
    facts: Ints,
    window: Window,
    band: Band,
    views: Views,
    desk: Desk,
    lists: Places,
    scoring: Scoring,
    K: int,
    now: int,
) -> None:
    """Objects expire with their pairs; who loses one looks for another."""
    low = now - views.length[-1]
    while facts[HEAD] < facts[END] and window.stamps[facts[HEAD]] <= low:
        facts[HEAD] += 1
    kept = 0
    for i in range(facts[SIZE]):
        slot = band.slot[i]
        if band.old[i] <= low:
            owner = band.slots[slot]["dom"] - facts[BASE]  # the newer member, whose pair it is
            if owner >= facts[HEAD]:
                at = 0
                while lists[owner, at] != slot:
                    at += 1
                lists[owner, at] = -2  # lost
            band.free[facts[FREE]] = slot
            facts[FREE] += 1
        else:
            band.key[kept], band.old[kept], band.slot[kept] = band.key[i], band.old[i], slot
            kept += 1
    if kept < facts[SIZE]:
        facts[SIZE] = kept
        crown(facts, band, 0)
    for owner in range(facts[HEAD], facts[END]):
        lost = False
        for at in range(K):
            lost = lost or lists[owner, at] == -2
        if lost:
            _refill(facts, window, band, views, desk, lists, scoring, K, owner, now, False)


@uncounted
def _refill(
    facts: Ints,
    window: Window,
    band: Band,
    views: Views,
    desk: Desk,
    lists: Places,
    scoring: Scoring,
    K: int,
    owner: int,
    now: int,
    counting: bool,
) -> None:
    """The K best pairs of an object with older ones; those that it has stay."""
    head, found, values = facts[HEAD], 0, window.data[:, owner]
    right = owner
    facts[SCORED] += owner - head
    while right > head:
        size = min(CHUNK, right - head)
        low = right - size
        fill(desk.buffer, size, scoring, window.data, low, values)
        for i in range(size - 1, -1, -1):  # the newer first: of equal keys it stays above
            key = scoring.sign * desk.buffer[i]
            if key != key:
                if counting:
                    count_scoreless(views, now - min(window.stamps[owner], window.stamps[low + i]))
                continue
            if found == K and not key > desk.key[K - 1]:
                continue
            at = found if found < K else K - 1
            while at > 0 and desk.key[at - 1] < key:
                desk.key[at], desk.other[at] = desk.key[at - 1], desk.other[at - 1]
                at -= 1
            desk.key[at], desk.other[at] = key, low + i
            found = min(K, found + 1)
        right = low
    fresh = 0
    for i in range(found):
        place, known = facts[BASE] + desk.other[i], False
        for at in range(K):
            if lists[owner, at] >= 0 and band.slots[lists[owner, at]]["place"] == place:
                known = True
        if not known:
            at = 0
            while lists[owner, at] >= 0:
                at += 1
            slot = _make(facts, window, band, desk.other[i], owner, desk.key[i])
            lists[owner, at] = slot
            desk.slot[fresh] = slot
            fresh += 1
    for at in range(K):
        if lists[owner, at] == -2:
            lists[owner, at] = -1
    sort_slots(band.slots, desk, fresh)
    merge(facts, band, desk.slot, fresh)


@uncounted
def _make(facts: Ints, window: Window, band: Band, older: int, newer: int, key: float) -> int:
    facts[FREE] -= 1
    slot = band.free[facts[FREE]]
    one = band.slots[slot]
    one["key"], one["old"], one["older"] = key, window.stamps[older], window.serials[older]
    one["new"], one["newer"] = window.stamps[newer], window.serials[newer]
    one["place"], one["dom"] = facts[BASE] + older, facts[BASE] + newer
    for j in range(band.bits.shape[1]):
        band.bits[slot, j] = 0
    return int(slot)


@uncounted
def _arrive(
    facts: Ints,
    window: Window,
    band: Band,
    views: Views,
    desk: Desk,
    lists: Places,
    scoring: Scoring,
    K: int,
    stream: Stream,
    i: int,
) -> None:
    at, stamp = facts[END], stream.stamps[i]
    while at > facts[HEAD] and window.stamps[at - 1] > stamp:
        at -= 1
    for j in range(facts[END], at, -1):
        window.stamps[j], window.serials[j] = window.stamps[j - 1], window.serials[j - 1]
        for axis in range(len(window.data)):
            window.data[axis, j] = window.data[axis, j - 1]
        for place in range(K):
            lists[j, place] = lists[j - 1, place]
    if at < facts[END]:
        late = facts[BASE] + at
        for j in range(facts[SIZE]):
            one = band.slots[band.slot[j]]
            one["place"] += one["place"] >= late
            one["dom"] += one["dom"] >= late
    window.stamps[at], window.serials[at] = stamp, stream.serial + stream.rows[i]
    for axis in range(len(window.data)):
        window.data[axis, at] = stream.values[axis, i]
    facts[END] += 1
    for place in range(K):
        lists[at, place] = -1
    _refill(facts, window, band, views, desk, lists, scoring, K, at, stream.now[i], True)
    for newer in range(at + 1, facts[END]):  # a late one may be the older of those after it
        _offer(facts, window, band, views, desk, lists, scoring, K, at, newer, stream.now[i])


@uncounted
def _offer(
    facts: Ints,
    window: Window,
    band: Band,
    views: Views,
    desk: Desk,
    lists: Places,
    scoring: Scoring,
    K: int,
    older: int,
    newer: int,
    now: int,
) -> None:
    """One more pair for an object; the worst of its K goes."""
    fill(desk.buffer, 1, scoring, window.data, older, window.data[:, newer])
    key = scoring.sign * desk.buffer[0]
    if key != key:
        count_scoreless(views, now - window.stamps[older])
        return
    at, worst = -1, -1
    for place in range(K):
        slot = lists[newer, place]
        if slot < 0:
            at = place
        elif worst < 0 or _is_worse(band, slot, lists[newer, worst]):
            worst = place
    if at < 0:
        slot = lists[newer, worst]
        kept = band.slots[slot]
        if kept["key"] > key or (kept["key"] == key and kept["place"] > facts[BASE] + older):
            return
        at, place = worst, 0
        while band.slot[place] != slot:
            place += 1
        for j in range(place, facts[SIZE] - 1):
            band.key[j], band.old[j], band.slot[j] = band.key[j + 1], band.old[j + 1], band.slot[j + 1]
        facts[SIZE] -= 1
        band.free[facts[FREE]] = slot
        facts[FREE] += 1
        crown(facts, band, 0)
    lists[newer, at] = _make(facts, window, band, older, newer, key)
    desk.slot[0] = lists[newer, at]
    merge(facts, band, desk.slot, 1)


@uncounted
def _is_worse(band: Band, one: int, other: int) -> bool:
    if band.slots[one]["key"] != band.slots[other]["key"]:
        return bool(band.slots[one]["key"] < band.slots[other]["key"])
    return bool(band.slots[one]["place"] < band.slots[other]["place"])


@kernel
def fill_lists(
    facts: Ints, window: Window, band: Band, views: Views, desk: Desk, lists: Places, scoring: Scoring, K: int
) -> None:
    """The pairs of all objects that there are."""
    for owner in range(facts[HEAD], facts[END]):
        for at in range(K):
            lists[owner, at] = -1
        _refill(facts, window, band, views, desk, lists, scoring, K, owner, 0, False)
