"""Quiet rows: those that come and expire by time and change no answer, in a loop that does nothing else.

Most rows are quiet: an object inside stays above its own record in the heap, one outside does not rise above its own.
Where the score is one count, sum, min or max, that is seen from the object alone, before anything is written. Rows
of cold objects that are below the bound (kernels/bound.py) are only counted. The loop stops before the first other row
that is not quiet, or whose object comes or goes; `take_windowed` takes that one.

Cost: O(1) for a row when it comes and again when it goes; a row joins and leaves a chain of the largest once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.groups.kernels.chains import note
from skyband.engines.groups.kernels.fetch import CACHED, FAR, fetch_ahead, fetch_object, fetch_slot
from skyband.engines.groups.kernels.ranks import INSIDE, OUTSIDE, ranks_above
from skyband.engines.groups.kernels.state import (
    ALL,
    BEFORE,
    CHAIN,
    COUNT,
    FREE,
    LATE,
    LIVE,
    MOST,
    NEWEST,
    NEXT,
    OBJECTS,
    OLDEST,
    OPEN,
    STEP,
    SUM,
    TAIL,
    TIMED,
    USED,
    Batch,
    Live,
    State,
    Window,
)
from skyband.kernels.compile import close
from skyband.kernels.records import NEVER
from skyband.kernels.sums import add, rounded

WIDEST = 2  # words of a sum


@close
def may_be_quiet(state: State, window: Window, live: Live) -> Any:
    """Whether the rows of a batch can be taken quietly at all."""
    if window.mode != TIMED or live.measure < 0 or live.moves or len(state.measures) != 1:
        return False
    one = state.measures[0]
    function = one["function"]
    return function in (COUNT, MOST) or (function == SUM and one["end"] - one["first"] <= WIDEST)


@close
def _stays(one: Any, key: Any, stamp: Any, serial: Any) -> Any:
    """Whether an object with this rank needs no other place; one that is nowhere does."""
    inside, above = one["place"] == INSIDE, ranks_above(key, stamp, serial, one)
    return inside == above and (inside or one["place"] == OUTSIDE)


@close
def _key_with(state: State, live: Live, function: Any, words: Any, lowest: Any, s: Any, value: Any, one: Any) -> Any:
    """The key of an object of this rank with one value more; a sum has it then."""
    if function == SUM:
        add(state.words, s, 0, words, lowest, value)
        return live.sign * rounded(state.words, s, 0, words, lowest)
    if function == MOST:
        return live.sign * max(live.sign * one["key"], value)
    return live.sign * (state.slots[s]["count"] + 1.0)


@close
def _key_without(state: State, live: Live, function: Any, words: Any, lowest: Any, s: Any, r: Any, one: Any) -> Any:
    """The key of an object of this rank without its oldest row; a sum has not its value then."""
    if function == SUM:
        add(state.words, s, 0, words, lowest, -state.values[r, 0])
        return live.sign * rounded(state.words, s, 0, words, lowest)
    if function == MOST:
        chain = 2 * state.measures[0]["chain"]
        if state.ends[s, chain] == r:
            return live.sign * state.values[state.links[r, chain + 1], 0]
        return one["key"]
    return live.sign * (state.slots[s]["count"] - 1.0)


@close
def _is_last(state: State, s: Any, r: Any) -> Any:
    """Whether a row is the only one in the chain of its object."""
    chain = 2 * state.measures[0]["chain"]
    return state.ends[s, chain] == r and state.ends[s, chain + 1] == r


@close
def _pick(state: State, window: Window, s: Any, r: Any, one: Any) -> None:
    """A row decides an object of this rank from now on."""
    picked, row = state.picks[s, 0], state.rows[r]
    picked["value"], picked["stamp"], picked["serial"] = state.values[r, 0], row["stamp"], row["serial"]
    if window.decides >= 0:
        one["decider"] = row["serial"]


@close
def _join_chain(state: State, window: Window, batch: Batch, s: Any, r: Any, one: Any) -> None:
    """Put the newest row of an object at the end of its chain; those that are no larger go."""
    links, ends, values, chain = state.links, state.ends, state.values, 2 * state.measures[0]["chain"]
    older = ends[s, chain + 1]
    while older >= 0 and values[older, 0] <= values[r, 0]:
        if window.keeps == CHAIN:
            note(window, batch, state.rows[older]["serial"], False)
        older = links[older, chain]
    links[r, chain], links[r, chain + 1] = older, -1
    ends[s, chain + 1] = r
    if older < 0:
        ends[s, chain] = r
        _pick(state, window, s, r, one)
    else:
        links[older, chain + 1] = r
    if window.keeps == CHAIN:
        note(window, batch, state.rows[r]["serial"], True)


@close
def _leave_chain(state: State, window: Window, batch: Batch, s: Any, r: Any, one: Any) -> None:
    """Take the oldest row of an object out of its chain, if it is there; another one is."""
    links, chain = state.links, 2 * state.measures[0]["chain"]
    if state.ends[s, chain] == r:
        newer = links[r, chain + 1]
        state.ends[s, chain] = newer
        links[newer, chain] = -1
        _pick(state, window, s, newer, one)
        if window.keeps == CHAIN:
            note(window, batch, state.rows[r]["serial"], False)


@close
def take_quietly(state: State, window: Window, batch: Batch, live: Live) -> None:
    """Take quiet rows, from where the last call stopped, until one is not. All steps before are over."""
    facts, groups, rows, slots, ranks = state.facts, state.groups, state.rows, state.slots, live.ranks
    function, words, lowest = state.measures[0]["function"], state.measures[0]["end"], state.measures[0]["lowest"]
    keeps, i, n = window.keeps, facts[NEXT], len(batch.rows)
    oldest, tail, free, used, step = facts[OLDEST], facts[TAIL], facts[FREE], facts[USED], facts[STEP]
    came = went = 0
    bound = state.bound[0]  # of all but the largest it is below all numbers
    covers = bound > -np.inf
    last = rows[tail]["stamp"] if oldest >= 0 else BEFORE
    large = len(slots) > CACHED
    open_, quiet = NEVER, facts[LATE] == 0 and facts[OPEN] == NEVER
    while quiet:
        now = batch.now[i] if i < n else batch.clock
        while oldest >= 0 and rows[oldest]["stamp"] + window.length <= now:
            r = oldest
            if large and r + FAR < facts[USED]:  # rows leave as they came, most often
                if covers:
                    fetch_slot(state, max(rows[r + FAR]["slot"], 0))
                else:
                    fetch_object(state, live, max(rows[r + FAR]["slot"], 0))
            stamp, s, following = rows[r]["stamp"], rows[r]["slot"], rows[r]["next"]
            slot, one = slots[s], ranks[s]
            if slot["cold"] != 0:
                if open_ != stamp:
                    step += 1
                    open_ = stamp
                slot["count"] -= 1
                if slot["count"] == 0:
                    slot["cold"] = one["shown"] = 0
                    facts[OBJECTS] -= 1
                note(window, batch, rows[r]["serial"], False)
                groups[slot["group"]]["rows"] -= 1
                rows[r]["slot"], rows[r]["next"] = -1, free
                free, oldest = r, following
                went += 1
                continue
            if slot["count"] == 1 or (covers and _is_last(state, s, r)):  # the object goes, or is cold then
                quiet = False
                break
            key = _key_without(state, live, function, words, lowest, s, r, one)
            if not _stays(one, key, slot["stamp"], slot["serial"]):
                if function == SUM:
                    add(state.words, s, 0, words, lowest, state.values[r, 0])
                quiet = False
                break
            several = open_ == stamp or (following >= 0 and rows[following]["stamp"] == stamp)
            if open_ != stamp:
                step += 1
                open_ = stamp
            if several and one["saved"] != step:  # the rest of the step may need to know what it was before
                one["saved"], one["old_key"] = step, one["key"]
                one["old_decider"], one["old_event"] = one["decider"], one["event"]
            slot["count"] -= 1
            if function == MOST:
                _leave_chain(state, window, batch, s, r, one)
            if keeps == ALL:
                note(window, batch, rows[r]["serial"], False)
            one["key"] = key
            groups[slot["group"]]["rows"] -= 1
            rows[r]["slot"], rows[r]["next"] = -1, free
            free, oldest = r, following
            went += 1
        if not quiet:
            break
        open_ = NEVER
        if i == n:
            break
        stamp = batch.stamps[i]
        if stamp <= now - window.length or stamp < last:  # too late, or late
            break
        g, serial = batch.groups[i], batch.serial + batch.rows[i]
        if len(batch.eligible) == 0 or batch.eligible[i]:
            if large and i + FAR < n:
                if covers:
                    fetch_slot(state, batch.slots[i + FAR])
                else:
                    fetch_ahead(state, batch, live, i)
            s = batch.slots[i]
            slot, one = slots[s], ranks[s]
            value = 0.0
            if function != COUNT:
                value = batch.values[i, 0]
            cold = value < bound and (slot["cold"] != 0 or slot["count"] == 0)
            key = 0.0
            if not cold:
                if slot["count"] == 0 or slot["cold"] != 0:  # the object comes, or above the bound
                    break
                key = _key_with(state, live, function, words, lowest, s, value, one)
                if not _stays(one, key, stamp, serial):
                    if function == SUM:
                        add(state.words, s, 0, words, lowest, -value)
                    break
            r = free
            if r < 0:
                r = used
                used += 1
            else:
                free = rows[r]["next"]
            row = rows[r]
            row["stamp"], row["serial"], row["slot"], row["next"] = stamp, serial, s, -1
            if function != COUNT:
                state.values[r, 0] = value
            if oldest < 0:
                oldest = r
            else:
                rows[tail]["next"] = r
            tail, last = r, stamp
            if keeps == ALL:
                note(window, batch, serial, True)
            elif keeps == NEWEST:
                note(window, batch, slot["serial"], False)
                note(window, batch, serial, True)
            slot["count"] += 1
            slot["stamp"], slot["serial"] = stamp, serial
            if value < bound:
                note(window, batch, serial, True)
            elif function == MOST:
                _join_chain(state, window, batch, s, r, one)
            if not cold:
                one["key"], one["stamp"], one["serial"] = key, stamp, serial
                if window.decides < 0:
                    one["decider"] = serial
            elif slot["cold"] == 0:  # the object comes
                slot["cold"], slot["group"], one["key"] = 1, g, np.nan
                facts[OBJECTS] += 1
            groups[g]["rows"] += 1
            came += 1
        groups[g]["last"], groups[g]["now"] = serial, now
        step += 1
        i += 1
    facts[NEXT], facts[OLDEST], facts[TAIL], facts[FREE], facts[USED] = i, oldest, tail, free, used
    facts[STEP], facts[LIVE] = step, facts[LIVE] + came - went
    if open_ != NEVER:
        facts[OPEN] = open_
