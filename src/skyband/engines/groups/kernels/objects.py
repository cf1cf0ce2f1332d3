"""Rows come to objects and leave them: counts, sums, picked rows and distinct values are right after each."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.groups.kernels.chains import (
    add_by_age,
    add_monotone,
    add_to_heap,
    leave_by_age,
    leave_heap,
    leave_monotone,
    note,
    pick,
)
from skyband.engines.groups.kernels.ranks import apply, end_step
from skyband.engines.groups.kernels.state import (
    ALL,
    CHAIN,
    COUNT,
    DIRTY,
    DISTINCT,
    EVENTS,
    FADED,
    FIRST,
    FREE,
    HOT,
    KEYED,
    LAST,
    LEVEL,
    LIVE,
    MOST,
    MOST_HOT,
    NEWEST,
    OBJECTS,
    STEP,
    SUM,
    USED,
    WRITTEN,
    Batch,
    Event,
    Events,
    Live,
    State,
    Window,
)
from skyband.engines.groups.kernels.values import add_value, leave_value
from skyband.kernels.compile import close, uncounted
from skyband.kernels.sums import add, power_of_two, rounded


@close
def begin_row(state: State, batch: Batch, i: Any) -> Any:
    """A place for an arrival, filled with what it brings."""
    r = state.facts[FREE]
    if r < 0:
        r = state.facts[USED]
        state.facts[USED] = r + 1
    else:
        state.facts[FREE] = state.rows[r]["next"]
    row = state.rows[r]
    row["stamp"], row["serial"] = batch.stamps[i], batch.serial + batch.rows[i]
    row["slot"], row["next"] = batch.slots[i], -1
    for c in range(batch.values.shape[1]):
        state.values[r, c] = batch.values[i, c]
    state.facts[LIVE] += 1
    state.groups[batch.groups[i]]["rows"] += 1
    return r


@close
def free_row(state: State, r: Any, g: Any) -> None:
    state.rows[r]["slot"] = -1
    state.rows[r]["next"] = state.facts[FREE]
    state.facts[FREE] = r
    state.facts[LIVE] -= 1
    state.groups[g]["rows"] -= 1


@close
def enter(state: State, window: Window, batch: Batch, s: Any, r: Any) -> None:
    """A row comes to an object."""
    slot, row = state.slots[s], state.rows[r]
    stamp, serial = row["stamp"], row["serial"]
    newest = slot["count"] == 0 or stamp > slot["stamp"] or (stamp == slot["stamp"] and serial > slot["serial"])
    if window.keeps == ALL:
        note(window, batch, serial, True)
    elif newest and window.keeps == NEWEST:
        if slot["count"] > 0:
            note(window, batch, slot["serial"], False)
        note(window, batch, serial, True)
    if slot["count"] == 0:
        state.facts[OBJECTS] += 1
    slot["count"] += 1
    if newest:
        slot["stamp"], slot["serial"] = stamp, serial
    if window.ages >= 0:
        add_by_age(state, window.ages, s, r)
    for m in range(len(state.measures)):
        one = state.measures[m]
        function = one["function"]
        if function == SUM:
            add(state.words, s, one["first"], one["end"], one["lowest"], state.values[r, one["column"]])
        elif function == MOST:
            if window.mode == KEYED:
                add_to_heap(state, m, s, r)
            else:
                add_monotone(state, window, batch, m, s, r)
        elif function == FIRST:
            if state.ends[s, 2 * window.ages] == r:
                pick(state, m, s, r)
        elif function == LAST:
            if newest:
                pick(state, m, s, r)
        elif function == DISTINCT:
            add_value(state, m, s, state.values[r, one["column"]])


@close
def leave(state: State, window: Window, batch: Batch, s: Any, r: Any) -> None:
    """A row leaves an object: its oldest one, or over UntilDeleted() any."""
    slot = state.slots[s]
    slot["count"] -= 1
    if window.keeps == ALL or (window.keeps == NEWEST and slot["count"] == 0):
        note(window, batch, state.rows[r]["serial"], False)
    if window.ages >= 0:
        leave_by_age(state, window.ages, s, r)
    newest = -1
    if window.mode == KEYED and slot["count"] > 0:
        newest = state.ends[s, 2 * window.ages + 1]
        slot["stamp"], slot["serial"] = state.rows[newest]["stamp"], state.rows[newest]["serial"]
    if slot["count"] == 0:
        slot["gone"], slot["cold"] = 1, 0
        state.facts[OBJECTS] -= 1
    for m in range(len(state.measures)):
        one = state.measures[m]
        function = one["function"]
        if function == SUM:
            add(state.words, s, one["first"], one["end"], one["lowest"], -state.values[r, one["column"]])
        elif function == MOST:
            if window.mode == KEYED:
                leave_heap(state, m, s, r)
            else:
                leave_monotone(state, window, batch, m, s, r)
        elif function == FIRST:
            if slot["count"] > 0:
                pick(state, m, s, state.ends[s, 2 * window.ages])
        elif function == LAST:
            if newest >= 0:
                pick(state, m, s, newest)
        elif function == DISTINCT:
            leave_value(state, m, s, state.values[r, one["column"]])


@uncounted
def fade(state: State, place: int, s: int, mantissa: float, exponent: Any) -> None:
    """Add a contribution to an object's fading number: m * 2^e, and the error of its roundings in the next pick."""
    number, rest = state.picks[s, place], state.picks[s, place + 1]
    if mantissa == 0.0:
        return
    mine, error = number["value"], rest["value"]
    if mine == 0.0:
        number["stamp"] = exponent
    gap = exponent - number["stamp"]
    if gap > 0:
        shrink = power_of_two(-gap) if gap < 1000 else 0.0
        mine, error = mine * shrink, error * shrink
        number["stamp"] = exponent
    elif gap < 0:
        mantissa = mantissa * power_of_two(gap) if gap > -1000 else 0.0
    total = mine + mantissa
    back = total - mine
    error += (mine - (total - back)) + (mantissa - back)  # what the addition lost
    mine = total + error
    error = error - (mine - total)
    if mine == 0.0:
        number["value"], rest["value"] = 0.0, 0.0
        return
    if abs(mine) < 2.0**-900:  # nearly all has cancelled
        mine, error = mine * 2.0**600, error * 2.0**600
        number["stamp"] -= 600
    level = np.int64(np.float64(abs(mine)).view(np.uint64) >> np.uint64(52)) - 1022  # it is in [0.5, 1) then
    scale = power_of_two(-level)
    number["value"], rest["value"] = mine * scale, error * scale
    number["stamp"] += level


@close
def absorb(state: State, window: Window, batch: Batch, s: Any, i: Any) -> None:
    """A row comes to an object that keeps no rows, since none ever leaves."""
    slot = state.slots[s]
    stamp, serial = batch.stamps[i], batch.serial + batch.rows[i]
    newest = slot["count"] == 0 or stamp > slot["stamp"] or (stamp == slot["stamp"] and serial > slot["serial"])
    if newest and window.keeps == NEWEST:
        if slot["count"] > 0:
            note(window, batch, slot["serial"], False)
        note(window, batch, serial, True)
    if slot["count"] == 0:
        state.facts[OBJECTS] += 1
        state.facts[LIVE] += 1
        state.groups[batch.groups[i]]["rows"] += 1
    for m in range(len(state.measures)):
        one = state.measures[m]
        function = one["function"]
        if function == SUM:
            add(state.words, s, one["first"], one["end"], one["lowest"], batch.values[i, one["column"]])
        elif function == DISTINCT:
            add_value(state, m, s, batch.values[i, one["column"]])
        elif function == FADED:
            fade(state, one["first"], s, batch.values[i, one["column"]], np.int64(batch.values[i, one["column"] + 1]))
        elif function != COUNT and function != LEVEL:
            picked = state.picks[s, one["first"]]
            value = batch.values[i, one["column"]]
            newer = stamp > picked["stamp"] or (stamp == picked["stamp"] and serial > picked["serial"])
            takes = slot["count"] == 0
            if function == MOST:
                takes = takes or value > picked["value"] or (value == picked["value"] and newer)
            else:
                takes = takes or newer == (function == LAST)
            if takes:
                if window.keeps == CHAIN and window.decides == one["first"]:
                    if slot["count"] > 0:
                        note(window, batch, picked["serial"], False)
                    note(window, batch, serial, True)
                picked["value"], picked["stamp"], picked["serial"] = value, stamp, serial
    slot["count"] += np.int64(1) if len(batch.weights) == 0 else batch.weights[i]
    if newest:
        slot["stamp"], slot["serial"] = stamp, serial


@close
def decider_of(state: State, window: Window, s: Any) -> Any:
    """The row that decides the kept columns of an object; -1: it has none, or none above the bound."""
    if state.slots[s]["count"] == 0 or state.slots[s]["cold"] != 0:
        return np.int64(-1)
    if window.decides >= 0:
        return state.picks[s, window.decides]["serial"]
    return state.slots[s]["serial"]


@close
def value_of(state: State, m: Any, s: Any) -> Any:
    """The value of an aggregate of an object."""
    one = state.measures[m]
    function = one["function"]
    if function == SUM:
        return rounded(state.words, s, one["first"], one["end"], one["lowest"])
    if function == DISTINCT:
        return np.float64(state.distinct[s, one["first"]])
    if function == LEVEL:
        return np.float64(state.picks[s, one["first"]]["stamp"])
    if function >= MOST:
        return state.picks[s, one["first"]]["value"]
    return np.float64(state.slots[s]["count"])


@close
def write_event(state: State, window: Window, events: Events, e: Any, s: Any, row: Any, instant: Any) -> None:
    """Write down an object as it is now."""
    slot = state.slots[s]
    events.slot[e], events.step[e] = s, state.facts[STEP]
    events.row[e], events.instant[e] = row, instant
    events.stamp[e], events.serial[e] = slot["stamp"], slot["serial"]
    events.decider[e] = decider_of(state, window, s)
    events.gone[e] = slot["gone"] != 0
    for m in range(len(state.measures)):
        events.values[m, e] = value_of(state, m, s)


@close
def changed(
    state: State, window: Window, events: Events, live: Live, s: Any, row: Any, instant: Any, several: Any
) -> None:
    """An object has changed in the present step: rank it, write an event, or note it for the end of an open batch.

    several: whether it may change in this step once more.
    """
    slot = state.slots[s]
    if live.measure >= 0:
        key, gone = live.sign * value_of(state, live.measure, s), slot["gone"] != 0
        if gone:
            slot["gone"] = 0
        event = Event(row, instant, gone, several, 0)
        decider = decider_of(state, window, s)
        apply(live, s, key, slot["stamp"], slot["serial"], decider, state.facts[STEP], event)
    elif not window.net:
        e = state.facts[EVENTS]
        state.facts[EVENTS] = e + 1
        write_event(state, window, events, e, s, row, instant)
        slot["gone"] = 0
    elif slot["dirty"] == 0:
        slot["dirty"] = 1
        state.dirty[state.facts[DIRTY]] = s
        state.facts[DIRTY] += 1


@close
def is_short(state: State, live: Live) -> Any:
    """Whether cold objects may be answers, since fewer than k others are: then the bound has to fall."""
    return state.bound[0] > -np.inf and live.heads[0]["size"] < live.k


@close
def begin_step(state: State, live: Live) -> Any:
    """End the step before, and begin the next; returns whether there was room for the changes, and the bound fits."""
    if live.measure >= 0:
        if is_short(state, live) or state.facts[WRITTEN] + live.log[0] > len(live.out):
            return False
        state.facts[WRITTEN] = end_step(live, state.facts[WRITTEN])
        if state.facts[HOT] > state.facts[MOST_HOT]:
            return False
    state.facts[STEP] += 1
    return True
