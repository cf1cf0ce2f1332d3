"""Entry points over a batch: rows arrive, expire and are deleted, step by step, and changed objects become events.

Time windows: rows expire by one clock, instant by instant, before the arrivals of that instant. Count windows: an
arrival and what it pushes out are one step. Cost: O(1) for a row that comes and again when it goes (chains.py says
what chains cost), however many rows its object has; a late row O(log late rows).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.groups.kernels.chains import note
from skyband.engines.groups.kernels.fetch import CACHED, FAR, fetch_ahead, fetch_object
from skyband.engines.groups.kernels.objects import (
    absorb,
    begin_row,
    begin_step,
    changed,
    enter,
    free_row,
    leave,
    write_event,
)
from skyband.engines.groups.kernels.quiet import may_be_quiet, take_quietly
from skyband.engines.groups.kernels.state import (
    BEFORE,
    COUNTED,
    DIRTY,
    DONE,
    EVENTS,
    FULL,
    LATE,
    MIDDLE,
    NEXT,
    OLDEST,
    OPEN,
    STEP,
    TAIL,
    TIMED,
    UNKNOWN,
    USED,
    Batch,
    Events,
    Live,
    State,
    Window,
)
from skyband.kernels.compile import close, uncounted, uncounted_kernel
from skyband.kernels.records import NEVER

PATIENCE, SHORT = 64, 8  # steps until quiet rows are tried again at the latest; fewer at once than this do not pay


@uncounted
def push_late(state: State, r: int) -> None:
    """Put a row into the heap of late ones, the earliest on top."""
    late, rows, place = state.late, state.rows, state.facts[LATE]
    state.facts[LATE] += 1
    while place > 0 and rows[late[(place - 1) >> 1]]["stamp"] > rows[r]["stamp"]:
        late[place] = late[(place - 1) >> 1]
        place = (place - 1) >> 1
    late[place] = r


@uncounted
def pop_late(state: State) -> Any:
    """Take the earliest row out of the heap."""
    late, rows = state.late, state.rows
    top = late[0]
    state.facts[LATE] -= 1
    size = state.facts[LATE]
    last, place = late[size], 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and rows[late[child + 1]]["stamp"] < rows[late[child]]["stamp"]:
            child += 1
        if rows[late[child]]["stamp"] >= rows[last]["stamp"]:
            break
        late[place] = late[child]
        place = child
    if size > 0:
        late[place] = last
    return top


@close
def next_stamp(state: State) -> Any:
    """The stamp of the row that expires first; NEVER: there is none."""
    stamp = NEVER
    if state.facts[OLDEST] >= 0:
        stamp = state.rows[state.facts[OLDEST]]["stamp"]
    if state.facts[LATE] > 0:
        stamp = min(stamp, state.rows[state.late[0]]["stamp"])
    return stamp


@close
def take_oldest(state: State, stamp: Any) -> Any:
    """Take a row with this stamp, the first that expires, out of the order."""
    r = state.facts[OLDEST]
    if r >= 0 and state.rows[r]["stamp"] == stamp:
        state.facts[OLDEST] = state.rows[r]["next"]
        return np.int64(r)
    return np.int64(pop_late(state))


@close
def put_in_order(state: State, r: Any, g: Any, mode: Any) -> None:
    """Put a row where it expires in its turn."""
    rows, facts = state.rows, state.facts
    if mode == COUNTED:
        group = state.groups[g]
        if group["oldest"] < 0:
            group["oldest"] = r
        else:
            rows[group["newest"]]["next"] = r
        group["newest"] = r
    elif facts[OLDEST] < 0:
        facts[OLDEST] = facts[TAIL] = r
    elif rows[facts[TAIL]]["stamp"] <= rows[r]["stamp"]:
        rows[facts[TAIL]]["next"] = r
        facts[TAIL] = r
    else:
        push_late(state, r)


@close
def expire(state: State, window: Window, batch: Batch, events: Events, live: Live, now: Any) -> Any:
    """Let rows go by time, one step for each instant up to now; returns whether all are gone, or why not."""
    facts, slots, rows = state.facts, state.slots, state.rows
    while True:
        stamp = next_stamp(state)
        if stamp == NEVER or stamp + window.length > now:
            facts[OPEN] = NEVER
            return DONE
        if facts[OPEN] != stamp:
            if facts[EVENTS] == len(events.slot) or not begin_step(state, live):
                return FULL
            facts[OPEN] = stamp
        elif facts[EVENTS] == len(events.slot):
            return MIDDLE
        r = take_oldest(state, stamp)
        s = rows[r]["slot"]
        if len(slots) > CACHED and r + FAR < facts[USED]:  # rows leave as they came, most often
            fetch_object(state, live, max(rows[r + FAR]["slot"], 0))
        g = slots[s]["group"]
        leave(state, window, batch, s, r)
        free_row(state, r, g)
        last = state.groups[g]["last"] - batch.serial
        changed(state, window, events, live, s, max(last, -1), stamp + window.length, True)


@uncounted_kernel
def take_windowed(state: State, window: Window, batch: Batch, events: Events, live: Live) -> Any:
    """Take arrivals of Last(n) or Last(t) from where the last call stopped; returns why it stops."""
    facts, groups, rows, slots = state.facts, state.groups, state.rows, state.slots
    timed, i, large = window.mode == TIMED, facts[NEXT], len(slots) > CACHED
    quiet, wait, pause = may_be_quiet(state, window, live), 0, 0
    while True:
        if quiet and live.log[0] == 0:
            wait -= 1
            if wait < 0:
                before, facts[NEXT] = facts[STEP], i
                take_quietly(state, window, batch, live)
                i = facts[NEXT]
                pause = 0 if facts[STEP] - before >= SHORT else min(2 * pause + 1, PATIENCE)
                wait = pause
        if timed:
            now = batch.now[i] if i < len(batch.rows) else batch.clock
            reason = expire(state, window, batch, events, live, now)
            if reason != DONE:
                facts[NEXT] = i
                return reason
        facts[NEXT] = i
        if i == len(batch.rows):
            return DONE if begin_step(state, live) else FULL
        if facts[EVENTS] + 2 > len(events.slot):
            return FULL
        now, g, s = batch.now[i], batch.groups[i], batch.slots[i]
        if large and i + FAR < len(batch.rows):
            fetch_ahead(state, batch, live, i)
        if timed and batch.stamps[i] <= now - window.length:  # too late for this window
            i += 1
            continue
        if not begin_step(state, live):
            return FULL
        groups[g]["last"] = batch.serial + batch.rows[i]
        groups[g]["now"] = now
        counts = len(batch.eligible) == 0 or batch.eligible[i]
        if counts:
            r = begin_row(state, batch, i)
            slots[s]["group"] = g
            put_in_order(state, r, g, window.mode)
            enter(state, window, batch, s, r)
        if not timed:
            oldest = groups[g]["oldest"]
            while oldest >= 0 and rows[oldest]["stamp"] <= now - window.length:
                other = rows[oldest]["slot"]
                groups[g]["oldest"] = rows[oldest]["next"]
                leave(state, window, batch, other, oldest)
                free_row(state, oldest, g)
                oldest = groups[g]["oldest"]
                if not counts or other != s:
                    changed(state, window, events, live, other, batch.rows[i], now, True)
        if counts:
            changed(state, window, events, live, s, batch.rows[i], now, False)
        i += 1


@close
def comes(batch: Batch, i: Any) -> Any:
    """Whether a row brings something, and does not delete an id."""
    return len(batch.deletes) == 0 or not batch.deletes[i]


@close
def counts(batch: Batch, i: Any) -> Any:
    """Whether a row comes to an object."""
    return comes(batch, i) and (len(batch.eligible) == 0 or batch.eligible[i])


@close
def take_in(state: State, window: Window, batch: Batch, i: Any) -> None:
    """Take an arrival or deletion of UntilDeleted() in; the row of its id until now is in `replaced`, or -1."""
    g, s, name = batch.groups[i], batch.slots[i], batch.ids[i]
    state.groups[g]["last"] = batch.serial + batch.rows[i]
    state.groups[g]["now"] = batch.now[i]
    batch.replaced[i] = state.places[name]
    state.places[name] = -1
    if comes(batch, i):
        r = begin_row(state, batch, i)
        state.places[name] = r
        if counts(batch, i):
            state.slots[s]["group"] = g
            enter(state, window, batch, s, r)
        else:  # one that fails `where` has no object, but its id is there
            state.rows[r]["slot"] = -2 - g
            note(window, batch, state.rows[r]["serial"], True)


@close
def let_go(state: State, window: Window, batch: Batch, i: Any) -> Any:
    """Let the row go whose place an arrival has taken; returns its object, or -1."""
    r, other = batch.replaced[i], np.int64(-1)
    if r >= 0:
        other = np.int64(state.rows[r]["slot"])
        if other >= 0:
            leave(state, window, batch, other, r)
        else:
            note(window, batch, state.rows[r]["serial"], False)
        free_row(state, r, batch.groups[i])
    elif not comes(batch, i):
        batch.deletes[i] = False  # it stays as it is where something was deleted
        state.facts[UNKNOWN] += 1
    return other


@uncounted_kernel
def take_keyed(state: State, window: Window, batch: Batch, events: Events, live: Live) -> Any:
    """Take arrivals and deletions of UntilDeleted(): a row goes when its id comes again or is deleted.

    Within one step all come before any goes: an object is gone only if the step leaves it without a row.
    """
    facts, i = state.facts, state.facts[NEXT]
    while i < len(batch.rows):
        facts[NEXT], end = i, i + 1
        if len(batch.joined) > 0:
            while batch.joined[end - 1]:
                end += 1
        writes = live.measure < 0 and not window.net  # events
        if writes and facts[EVENTS] + 2 * (end - i) > len(events.slot):
            return FULL if facts[EVENTS] > 0 else MIDDLE
        if not begin_step(state, live):
            return FULL
        for j in range(i, end):
            take_in(state, window, batch, j)
        for j in range(i, end):
            s, row, now, counted = batch.slots[j], batch.rows[j], batch.now[j], counts(batch, j)
            other = let_go(state, window, batch, j)
            if other >= 0 and not (counted and other == s):
                changed(state, window, events, live, other, row, now, True)  # the other's event may follow
            if counted:
                changed(state, window, events, live, s, row, now, end > i + 1)
        i = end
    facts[NEXT] = i
    return DONE if begin_step(state, live) else FULL


@uncounted_kernel
def take_endless(state: State, window: Window, batch: Batch, events: Events, live: Live) -> Any:
    """Take arrivals of Ever(): nothing leaves, so no row is kept."""
    facts, groups, i = state.facts, state.groups, state.facts[NEXT]
    while i < len(batch.rows):
        facts[NEXT] = i
        if facts[EVENTS] + 1 > len(events.slot) or not begin_step(state, live):
            return FULL
        g, s = batch.groups[i], batch.slots[i]
        groups[g]["last"] = batch.serial + batch.rows[i]
        groups[g]["now"] = batch.now[i]
        if len(batch.eligible) == 0 or batch.eligible[i]:
            state.slots[s]["group"] = g
            absorb(state, window, batch, s, i)
            changed(state, window, events, live, s, batch.rows[i], batch.now[i], False)
        i += 1
    facts[NEXT] = i
    return DONE if begin_step(state, live) else FULL


@uncounted_kernel
def read_slots(state: State, window: Window, slots: Any, events: Events, serial: int, clock: int) -> None:
    """Write down these objects as they are now, for a batch whose first row has this serial. Changes nothing.

    clock: after the batch; BEFORE: steps go by the numbers of groups.
    """
    for e in range(len(slots)):
        g = state.slots[slots[e]]["group"]
        last = max(state.groups[g]["last"] - serial, -1)
        instant = state.groups[g]["now"] if clock == BEFORE else clock
        write_event(state, window, events, e, slots[e], last, instant)


@uncounted_kernel
def close_batch(state: State) -> None:
    """End a batch: what has changed in it is known."""
    for i in range(state.facts[DIRTY]):
        slot = state.slots[state.dirty[i]]
        slot["dirty"] = slot["gone"] = 0
    state.facts[DIRTY] = 0
    state.facts[STEP] += 1
