"""Sessions: the rows of a group stay until it has been silent for the gap, then all leave in one step.

Every row, whether it passes `where` or not, is in the order by which rows of Last(gap) would expire. One whose turn has
come joins the chain of its group, and the session ends with the last of them, which has the group's last time.

Cost: O(1) for a row that comes and again when its session ends; a late row O(log late rows).
"""

from __future__ import annotations

from typing import Any

from skyband.engines.groups.kernels.chains import note
from skyband.engines.groups.kernels.objects import begin_row, begin_step, changed, enter, free_row
from skyband.engines.groups.kernels.state import (
    DISTINCT,
    DONE,
    EVENTS,
    FULL,
    MIDDLE,
    NEXT,
    OBJECTS,
    OLDEST,
    OPEN,
    TIMED,
    Batch,
    Events,
    Live,
    State,
    Window,
)
from skyband.engines.groups.kernels.steps import next_stamp, put_in_order, take_oldest
from skyband.engines.groups.kernels.values import leave_value
from skyband.kernels.compile import close, uncounted_kernel
from skyband.kernels.records import NEVER


@close
def group_of(state: State, r: Any) -> Any:
    """The group of a row, which may have no object."""
    s = state.rows[r]["slot"]
    return state.slots[s]["group"] if s >= 0 else -2 - s


@close
def ends_next(state: State, stamp: Any) -> Any:
    """The group whose session ends with the next row of the order, which has this stamp; -1: none does."""
    r = state.facts[OLDEST]
    if r < 0 or state.rows[r]["stamp"] != stamp:
        r = state.late[0]
    g = group_of(state, r)
    return g if state.groups[g]["waiting"] == 1 else -1


@close
def end_session(state: State, window: Window, batch: Batch, events: Events, live: Live, g: Any, instant: Any) -> None:
    """All rows of a group leave."""
    rows, slots = state.rows, state.slots
    last = max(state.groups[g]["last"] - batch.serial, -1)
    r = state.groups[g]["oldest"]
    while r >= 0:
        following, s = rows[r]["next"], rows[r]["slot"]
        note(window, batch, rows[r]["serial"], False)
        if s >= 0:
            for m in range(len(state.measures)):
                if state.measures[m]["function"] == DISTINCT:
                    leave_value(state, m, s, state.values[r, state.measures[m]["column"]])
            slots[s]["count"] -= 1
            if slots[s]["count"] == 0:
                for i in range(state.ends.shape[1]):
                    state.ends[s, i] = -1
                for i in range(state.words.shape[1]):
                    state.words[s, i] = 0
                slots[s]["gone"] = 1
                state.facts[OBJECTS] -= 1
                changed(state, window, events, live, s, last, instant, True)
        free_row(state, r, g)
        r = following
    state.groups[g]["oldest"] = -1


@close
def end_sessions(state: State, window: Window, batch: Batch, events: Events, live: Live, now: Any) -> Any:
    """Let sessions end, one step for each instant up to now; returns whether all have, or why not."""
    facts, groups = state.facts, state.groups
    writes = live.measure < 0 and not window.net
    while True:
        stamp = next_stamp(state)
        if stamp == NEVER or stamp + window.length > now:
            facts[OPEN] = NEVER
            return DONE
        g = ends_next(state, stamp)
        if g >= 0:
            if writes and facts[EVENTS] + groups[g]["rows"] > len(events.slot):
                return FULL if facts[EVENTS] > 0 and facts[OPEN] != stamp else MIDDLE
            if facts[OPEN] != stamp:
                if not begin_step(state, live):
                    return FULL
                facts[OPEN] = stamp
        r = take_oldest(state, stamp)
        h = group_of(state, r)
        groups[h]["waiting"] -= 1
        state.rows[r]["next"] = groups[h]["oldest"]
        groups[h]["oldest"] = r
        if g >= 0:
            end_session(state, window, batch, events, live, g, stamp + window.length)


@uncounted_kernel
def take_sessions(state: State, window: Window, batch: Batch, events: Events, live: Live) -> Any:
    """Take arrivals of Session(gap) from where the last call stopped; returns why it stops."""
    facts, groups, i = state.facts, state.groups, state.facts[NEXT]
    while True:
        now = batch.now[i] if i < len(batch.rows) else batch.clock
        reason = end_sessions(state, window, batch, events, live, now)
        facts[NEXT] = i
        if reason != DONE:
            return reason
        if i == len(batch.rows):
            return DONE if begin_step(state, live) else FULL
        if facts[EVENTS] + 2 > len(events.slot) or not begin_step(state, live):
            return FULL
        g, s = batch.groups[i], batch.slots[i]
        groups[g]["last"] = batch.serial + batch.rows[i]
        groups[g]["now"] = now
        counts = len(batch.eligible) == 0 or batch.eligible[i]
        r = begin_row(state, batch, i)
        groups[g]["waiting"] += 1
        if counts:
            state.slots[s]["group"] = g
            enter(state, window, batch, s, r)
        else:
            state.rows[r]["slot"] = -2 - g
        put_in_order(state, r, g, TIMED)
        if counts:
            changed(state, window, events, live, s, batch.rows[i], now, False)
        i += 1
