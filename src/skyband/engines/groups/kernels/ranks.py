"""Ranking of objects by their keys: the k best of each group, kept right event by event.

Each group has two pairing heaps over slots: of the objects inside the answer with the worst on top, and of the others
with the best on top. Heaps go by *recorded* ranks, and only changes towards the top are recorded at once: inside, a
record is at most as good as the object is; outside, at least as good. What surfaces with an old record is recorded anew
and sinks. Outside, records run ahead of their objects, but below all inside: most who rise need not move. So an event
that does not reach the boundary costs a comparison with its own record, and others O(log objects) amortised. An object
that is no answer any more stays where it is until it surfaces.

Changes are those of whole steps: who was inside before the step and is not after it, and the reverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.groups.kernels.state import BEFORE, Event, Events, Floats, Ints, Live, Records
from skyband.kernels.compile import close, uncounted, uncounted_kernel

RANK = np.dtype(  # zeros: nothing is known of it. Two cache lines: the first is what every event reads
    [
        ("key", "f8"),  # larger is better; NaN: it is no answer
        ("stamp", "i8"),  # of its newest row
        ("serial", "i8"),
        ("decider", "i8"),  # the row that decides its kept columns
        ("recorded", "f8"),  # its rank in the heap
        ("recorded_stamp", "i8"),
        ("recorded_serial", "i8"),
        ("event", "i4"),  # that brought its key; -1: none of this piece of a batch
        ("place", "i1"),
        ("was", "i1"),  # whether it was inside before the step in which it was noted
        ("shown", "i1"),  # whether it has been in an answer since it was without rows
        ("old_key", "f8"),  # before the step `saved`
        ("old_decider", "i8"),
        ("saved", "i8"),
        ("noted", "i8"),  # the step in which it was noted
        ("old_event", "i4"),
        ("child", "i4"),
        ("sibling", "i4"),
        ("before", "i4"),  # its parent or the sibling before it
        ("unused", "i8", 2),
    ],
    align=True,
)
HEAD = np.dtype(  # of a group; row, instant: of its last event
    [("size", "i8"), ("row", "i8"), ("instant", "i8"), ("inside", "i4"), ("outside", "i4")], align=True
)
CHANGE = np.dtype(
    [
        ("key", "f8"),
        ("decider", "i8"),
        ("instant", "i8"),
        ("row", "i8"),
        ("step", "i8"),
        ("slot", "i4"),
        ("event", "i4"),
        ("group", "i4"),
        ("diff", "i1"),
        ("first", "i1"),
    ],
    align=True,
)
NOWHERE, INSIDE, OUTSIDE = range(3)
AHEAD = 0.75  # of the way to the worst inside, which an object outside is recorded ahead


@close
def ranks_above(key: Any, stamp: Any, serial: Any, other: Any) -> Any:
    """Whether a rank is above a recorded one: the tie rule of objects."""
    if key != other["recorded"]:
        return key > other["recorded"]
    if stamp != other["recorded_stamp"]:
        return stamp > other["recorded_stamp"]
    return serial > other["recorded_serial"]


@close
def _is_above(ranks: Records, a: Any, b: Any) -> Any:
    return ranks_above(ranks[a]["recorded"], ranks[a]["recorded_stamp"], ranks[a]["recorded_serial"], ranks[b])


@close
def _record(one: Any) -> None:
    """Record the present rank; no answer is below all."""
    one["recorded"], one["recorded_stamp"], one["recorded_serial"] = one["key"], one["stamp"], one["serial"]
    if np.isnan(one["key"]):
        one["recorded"], one["recorded_stamp"] = -np.inf, BEFORE


@close
def record_ahead(one: Any, ranks: Records, head: Any, k: Any) -> None:
    """Record an object outside as better than it is, by most of the way to the worst inside: so far it may rise."""
    _record(one)
    if head["size"] == k:
        worst = ranks[head["inside"]]["recorded"]
        ahead = one["key"] + AHEAD * (worst - one["key"])
        if one["key"] < ahead < worst:
            one["recorded"] = ahead


@close
def _is_recorded(one: Any) -> Any:
    return (
        one["recorded"] == one["key"]
        and one["recorded_stamp"] == one["stamp"]
        and one["recorded_serial"] == one["serial"]
    )


@uncounted
def meld(ranks: Records, a: int, b: int, best: bool) -> int:
    """One heap of two; best: the best on top, else the worst."""
    if a < 0 or b < 0:
        return max(a, b)
    if _is_above(ranks, b, a) == best:
        a, b = b, a
    child = ranks[a]["child"]
    ranks[b]["sibling"], ranks[b]["before"] = child, a
    if child >= 0:
        ranks[child]["before"] = b
    ranks[a]["child"] = b
    return a


@uncounted
def _raised(ranks: Records, top: int, s: int, best: bool) -> int:
    """The heap after the record of a slot has moved towards the top."""
    if s == top:
        return top
    before, sibling = ranks[s]["before"], ranks[s]["sibling"]
    if ranks[before]["child"] == s:
        ranks[before]["child"] = sibling
    else:
        ranks[before]["sibling"] = sibling
    if sibling >= 0:
        ranks[sibling]["before"] = before
    ranks[s]["sibling"] = ranks[s]["before"] = -1
    return meld(ranks, top, s, best)


@uncounted
def _without_top(ranks: Records, top: int, best: bool) -> int:
    """The heap without its top: its children in pairs, then from the last pair to the first."""
    first, pairs = ranks[top]["child"], -1
    ranks[top]["child"] = -1
    while first >= 0:
        second, following = ranks[first]["sibling"], -1
        ranks[first]["sibling"] = ranks[first]["before"] = -1
        if second >= 0:
            following = ranks[second]["sibling"]
            ranks[second]["sibling"] = ranks[second]["before"] = -1
        pair = meld(ranks, first, second, best)
        ranks[pair]["sibling"] = pairs
        pairs, first = pair, following
    rest = -1
    while pairs >= 0:
        following = ranks[pairs]["sibling"]
        ranks[pairs]["sibling"] = -1
        rest = meld(ranks, rest, pairs, best)
        pairs = following
    return rest


@close
def _note(ranks: Records, s: Any, step: Any, log: Ints) -> None:
    """Note an object whose place is about to change in this step. log: how many, then which."""
    if ranks[s]["noted"] != step:
        ranks[s]["noted"] = step
        ranks[s]["was"] = ranks[s]["place"] == INSIDE
        log[0] += 1
        log[log[0]] = s


@uncounted
def _worst_inside(ranks: Records, head: Any, step: int, log: Ints) -> Any:
    """The worst object inside, as it is now; -1: there is none. What is no answer any more leaves."""
    while head["inside"] >= 0:
        s = head["inside"]
        if _is_recorded(ranks[s]):
            return s
        head["inside"] = _without_top(ranks, s, False)
        if np.isnan(ranks[s]["key"]):
            _note(ranks, s, step, log)
            ranks[s]["place"] = NOWHERE
            head["size"] -= 1
        else:
            _record(ranks[s])
            head["inside"] = meld(ranks, head["inside"], s, False)
    return -1


@uncounted
def _best_outside(ranks: Records, head: Any) -> Any:
    """The best object outside, as it is now; -1: there is none."""
    while head["outside"] >= 0:
        s = head["outside"]
        if _is_recorded(ranks[s]):
            return s
        head["outside"] = _without_top(ranks, s, True)
        if np.isnan(ranks[s]["key"]):
            ranks[s]["place"] = NOWHERE
        else:
            _record(ranks[s])
            head["outside"] = meld(ranks, head["outside"], s, True)
    return -1


@uncounted
def settle(ranks: Records, head: Any, k: int, step: Any, log: Ints) -> None:
    """Let objects change sides until the k best are inside."""
    while True:
        worst = _worst_inside(ranks, head, step, log)
        best = _best_outside(ranks, head)
        if best < 0:
            return
        if head["size"] == k:
            if not _is_above(ranks, best, worst):
                return
            _note(ranks, worst, step, log)
            head["inside"] = _without_top(ranks, worst, False)
            head["outside"] = _without_top(ranks, best, True)
            ranks[worst]["place"] = OUTSIDE
            head["outside"] = meld(ranks, head["outside"], worst, True)
        else:
            head["size"] += 1
            head["outside"] = _without_top(ranks, best, True)
        _note(ranks, best, step, log)
        ranks[best]["place"] = INSIDE
        head["inside"] = meld(ranks, head["inside"], best, False)


@uncounted
def _move_inside(ranks: Records, head: Any, s: int, k: int, step: int, log: Ints) -> None:
    """An object inside has another key."""
    one = ranks[s]
    valid = not np.isnan(one["key"])
    if not valid or not ranks_above(one["key"], one["stamp"], one["serial"], one):
        _record(one)
        head["inside"] = _raised(ranks, head["inside"], s, False)
    other = head["outside"]
    if not valid or (other >= 0 and not ranks_above(one["key"], one["stamp"], one["serial"], ranks[other])):
        settle(ranks, head, k, step, log)


@uncounted
def _move_outside(ranks: Records, head: Any, s: int, k: int, step: int, log: Ints) -> None:
    """An object that is not inside has another key, and is an answer if that is good enough."""
    one = ranks[s]
    if one["place"] == NOWHERE:
        one["place"] = OUTSIDE
        one["child"] = one["sibling"] = one["before"] = -1
        record_ahead(one, ranks, head, k)
        head["outside"] = meld(ranks, head["outside"], s, True)
    elif ranks_above(one["key"], one["stamp"], one["serial"], one):
        record_ahead(one, ranks, head, k)
        head["outside"] = _raised(ranks, head["outside"], s, True)
    if head["size"] < k or ranks_above(one["key"], one["stamp"], one["serial"], ranks[head["inside"]]):
        settle(ranks, head, k, step, log)


@uncounted
def _end_step(ranks: Records, heads: Records, slots: Records, log: Ints, out: Records, n: int, moves: bool) -> int:
    """Write down how a step has changed the answers, leaving before entering; returns how many changes there are."""
    step = ranks[log[1]]["noted"]
    for i in range(1, log[0] + 1):
        s = log[i]
        if ranks[s]["was"] and ranks[s]["place"] != INSIDE:
            old = ranks[s]["saved"] == step
            out[n]["key"] = ranks[s]["old_key"] if old else ranks[s]["key"]
            out[n]["decider"] = ranks[s]["old_decider"] if old else ranks[s]["decider"]
            out[n]["event"] = ranks[s]["old_event"] if old else ranks[s]["event"]
            out[n]["diff"], out[n]["first"] = -1, 0
            n = _write(heads, slots, s, step, out, n)
    for i in range(1, log[0] + 1):
        s = log[i]
        if ranks[s]["place"] != INSIDE:
            continue
        if not ranks[s]["was"]:
            out[n]["key"], out[n]["decider"] = ranks[s]["key"], ranks[s]["decider"]
            out[n]["event"] = ranks[s]["event"]
            out[n]["diff"], out[n]["first"] = 1, 1 - ranks[s]["shown"]
            n = _write(heads, slots, s, step, out, n)
        elif moves:
            out[n]["key"], out[n]["decider"] = ranks[s]["key"], ranks[s]["decider"]
            out[n]["event"] = ranks[s]["event"]
            out[n]["diff"], out[n]["first"] = 0, 0
            n = _write(heads, slots, s, step, out, n)
        ranks[s]["shown"] = 1
    log[0] = 0
    return n


@close
def _write(heads: Records, slots: Records, s: Any, step: Any, out: Records, n: Any) -> Any:
    g = slots[s]["group"]
    out[n]["slot"], out[n]["group"], out[n]["step"] = s, g, step
    out[n]["instant"], out[n]["row"] = heads[g]["instant"], heads[g]["row"]
    return n + 1


@close
def apply(live: Live, s: Any, key: Any, stamp: Any, serial: Any, decider: Any, step: Any, event: Any) -> None:
    """Rank an object anew, in a step; decider: the row that decides its kept columns, -1 if it has none."""
    ranks = live.ranks
    head, one = live.heads[live.slots[s]["group"]], ranks[s]
    if decider < 0:
        key = np.nan
    inside, better = one["place"] == INSIDE, ranks_above(key, stamp, serial, one)
    # all records inside are above all records outside (`settle` sees to it): its own is enough to compare with
    stays = better if inside else np.isnan(key) or (one["place"] == OUTSIDE and not better)
    if not stays or one["noted"] == step or event.several or event.gone or live.moves:
        head["row"], head["instant"] = event.row, event.instant
        if (inside or one["noted"] == step) and one["saved"] != step:
            one["saved"], one["old_key"] = step, one["key"]
            one["old_decider"], one["old_event"] = one["decider"], one["event"]
        if event.gone:
            one["shown"] = 0
        if inside and (event.gone or live.moves):
            _note(ranks, s, step, live.log)
    one["key"], one["stamp"], one["serial"], one["decider"] = key, stamp, serial, decider
    one["event"] = event.place
    if not stays:
        if inside:
            _move_inside(ranks, head, s, live.k, step, live.log)
        else:
            _move_outside(ranks, head, s, live.k, step, live.log)


@close
def end_step(live: Live, written: Any) -> Any:
    """Write down the changes of a step that is over; returns how many there are in all."""
    if live.log[0] > 0:
        return _end_step(live.ranks, live.heads, live.slots, live.log, live.out, written, live.moves)
    return written


@uncounted_kernel
def take_events(live: Live, events: Events, keys: Floats) -> Any:
    """Rank objects anew, event by event; returns how many changes there are. Steps are whole."""
    step, n = np.int64(-1), 0
    for e in range(len(keys)):
        if events.step[e] != step:
            n = end_step(live, n)
            step = events.step[e]
        event = Event(events.row[e], events.instant[e], events.gone[e], True, e)
        apply(live, events.slot[e], keys[e], events.stamp[e], events.serial[e], events.decider[e], step, event)
    return end_step(live, n)


@uncounted_kernel
def rebuild(ranks: Records, heads: Records, slots: Records, k: int, log: Ints) -> None:
    """Build the heaps of all groups from keys: who is inside stays there, and free places are filled."""
    for g in range(len(heads)):
        heads[g]["inside"] = heads[g]["outside"] = -1
        heads[g]["size"] = 0
    for s in range(len(ranks)):
        one = ranks[s]
        one["child"] = one["sibling"] = one["before"] = -1
        if slots[s]["count"] == 0 or np.isnan(one["key"]):
            one["place"] = NOWHERE
            continue
        _record(one)
        head = heads[slots[s]["group"]]
        if one["place"] == INSIDE:
            head["inside"] = meld(ranks, head["inside"], s, False)
            head["size"] += 1
        else:
            one["place"] = OUTSIDE
            head["outside"] = meld(ranks, head["outside"], s, True)
    for g in range(len(heads)):
        settle(ranks, heads[g], k, np.int64(-1), log)
        log[0] = 0


@uncounted_kernel
def members(ranks: Records, heads: Records, groups: Ints, found: Ints, owners: Ints) -> int:
    """The objects inside the answers of these groups, in any order, and their groups; returns how many."""
    n = 0
    for i in range(len(groups)):
        begin = n
        if heads[groups[i]]["inside"] >= 0:
            found[n] = heads[groups[i]]["inside"]
            n += 1
        while begin < n:
            s = ranks[found[begin]]["child"]
            owners[begin] = groups[i]
            while s >= 0:
                found[n] = s
                n += 1
                s = ranks[s]["sibling"]
            begin += 1
    return n
