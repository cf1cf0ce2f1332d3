"""The bound of the largest: rows below it wait outside the chains, since no answer is as small.

While k objects have a row that is as large as the bound, no other one is an answer. The others are *cold*: of their
rows only the number and the newest are known, and all are kept in the order in which they expire. Where fewer than k
are left inside at the end of a step, the bound falls and all rows are read again; where many are above it, it rises.

Cost: a row that is below the bound, as its object is, reads and writes that object once when it comes and once when it
goes. Where the bound rises it reads the objects that are ranked, and all rows where it falls (engines/groups/bound.py
says how often).
"""

from __future__ import annotations

import numpy as np

from skyband.engines.groups.kernels.chains import add_monotone
from skyband.engines.groups.kernels.objects import decider_of, value_of
from skyband.engines.groups.kernels.ranks import NOWHERE, OUTSIDE, apply, meld, record_ahead
from skyband.engines.groups.kernels.state import HOT, STEP, Batch, Event, Floats, Ints, Live, Records, State, Window
from skyband.kernels.compile import uncounted_kernel


@uncounted_kernel
def members_of_heaps(live: Live, found: Ints) -> int:
    """The objects that are ranked, first those inside; returns how many."""
    n, begin = 0, 0
    for top in (live.heads[0]["inside"], live.heads[0]["outside"]):
        if top >= 0:
            found[n] = top
            n += 1
        while begin < n:
            s = live.ranks[found[begin]]["child"]
            while s >= 0:
                found[n] = s
                n += 1
                s = live.ranks[s]["sibling"]
            begin += 1
    return n


@uncounted_kernel
def raise_bound(state: State, live: Live, ranked: Ints, bound: float) -> None:
    """Take rows below a larger bound out of their chains. Objects without others are cold, and ranked no more.

    ranked: all that are. Those inside stay there.
    """
    ends, links, ranks, head = state.ends, state.links, live.ranks, live.heads[0]
    chain, column = 2 * state.measures[0]["chain"], state.measures[0]["column"]
    state.bound[0], head["outside"] = bound, -1
    for i in range(len(ranked)):
        s = ranked[i]
        slot, one = state.slots[s], ranks[s]
        newest = ends[s, chain + 1]
        while newest >= 0 and state.values[newest, column] < bound:
            newest = links[newest, chain]
        if newest >= 0:
            ends[s, chain + 1] = newest
            links[newest, chain + 1] = -1
        elif not np.isnan(one["key"]):
            ends[s, chain] = ends[s, chain + 1] = -1
            slot["cold"], one["key"] = 1, np.nan
            state.facts[HOT] -= 1
        if one["place"] == OUTSIDE:
            one["child"] = one["sibling"] = one["before"] = -1
            if np.isnan(one["key"]):
                one["place"] = NOWHERE
            else:
                record_ahead(one, ranks, head, live.k)
                head["outside"] = meld(ranks, head["outside"], s, True)


@uncounted_kernel
def lower_bound(state: State, window: Window, batch: Batch, order: Ints, bound: float) -> None:
    """Build all chains again with a smaller bound. order: the rows that are not below it, the oldest first."""
    chain = 2 * state.measures[0]["chain"]
    state.bound[0], state.facts[HOT] = bound, 0
    for s in range(len(state.slots)):
        slot = state.slots[s]
        slot["cold"] = slot["count"] > 0
        state.ends[s, chain] = state.ends[s, chain + 1] = -1
    for i in range(len(order)):
        add_monotone(state, window, batch, 0, int(state.rows[order[i]]["slot"]), order[i])


@uncounted_kernel
def rank_warm(state: State, window: Window, live: Live, order: Ints) -> None:
    """Rank the objects of these rows that were cold until now, in the present step."""
    for i in range(len(order)):
        s = int(state.rows[order[i]]["slot"])
        if np.isnan(live.ranks[s]["key"]):
            slot, head = state.slots[s], live.heads[state.slots[s]["group"]]
            key, decider = live.sign * value_of(state, live.measure, s), decider_of(state, window, s)
            event = Event(head["row"], head["instant"], False, True, 0)
            apply(live, s, key, slot["stamp"], slot["serial"], decider, state.facts[STEP], event)


@uncounted_kernel
def largest_of(rows: Records, values: Floats, used: int, largest: Floats) -> None:
    """By slot the largest value of its rows; slots without rows stay as they are."""
    for r in range(used):
        s = rows[r]["slot"]
        if s >= 0 and values[r, 0] > largest[s]:
            largest[s] = values[r, 0]


@uncounted_kernel
def mark_chains(rows: Records, values: Floats, column: int, order: Ints, largest: Floats, inside: Records) -> None:
    """Mark the rows without a newer one of their object that is as large. order: all, the newest first.

    largest: by slot, NaN.
    """
    for i in range(len(order)):
        r, s = order[i], rows[order[i]]["slot"]
        if s >= 0 and not (values[r, column] <= largest[s]):
            largest[s] = values[r, column]
            inside[r] = True
