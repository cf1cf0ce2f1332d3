"""Rows of one object that may be picked: chains by age, monotone ones for the largest, heaps where any row may leave.

A monotone chain holds the rows without a newer one that is as large: values fall from the oldest to the newest, and the
oldest is the largest of all. O(1) amortised for a row in order; a late row passes the newer ones first. Over
UntilDeleted() any row may leave, so the largest are in a pairing heap: O(log n) amortised.
"""

from __future__ import annotations

from typing import Any

from skyband.engines.groups.kernels.state import CHAIN, HOT, Batch, State, Window
from skyband.kernels.compile import close, uncounted


@close
def is_newer(state: State, a: Any, b: Any) -> Any:
    """Whether row a is newer than row b: the tie rule of rows."""
    if state.rows[a]["stamp"] != state.rows[b]["stamp"]:
        return state.rows[a]["stamp"] > state.rows[b]["stamp"]
    return state.rows[a]["serial"] > state.rows[b]["serial"]


@close
def note(window: Window, batch: Batch, serial: Any, kept: Any) -> None:
    """Note whether the columns of a row are to be kept, if it is one of this batch."""
    if serial >= batch.serial:
        batch.alive[serial - batch.serial] = kept


@uncounted
def add_by_age(state: State, chain: int, s: int, r: int) -> None:
    """Put a row at its place by age."""
    links, ends = state.links, state.ends
    newer, older = -1, ends[s, 2 * chain + 1]
    while older >= 0 and is_newer(state, older, r):
        newer, older = older, links[older, 2 * chain]
    _insert(links, ends, chain, s, r, older, newer)


@uncounted
def add_monotone(state: State, window: Window, batch: Batch, m: int, s: int, r: int) -> None:
    """Put a row into the chain of the largest, if no newer one is as large; older ones that are no larger go.

    Below the bound it waits, and its columns are kept.
    """
    links, ends = state.links, state.ends
    chain, column = state.measures[m]["chain"], state.measures[m]["column"]
    value, empty = state.values[r, column], ends[s, 2 * chain] < 0
    if value < state.bound[0]:
        if empty:
            state.slots[s]["cold"] = 1
        note(window, batch, state.rows[r]["serial"], True)
        return
    newer, older = -1, ends[s, 2 * chain + 1]
    while older >= 0 and is_newer(state, older, r):
        newer, older = older, links[older, 2 * chain]
    if newer >= 0 and state.values[newer, column] >= value:
        return
    decides = window.keeps == CHAIN and window.decides == state.measures[m]["first"]
    while older >= 0 and state.values[older, column] <= value:
        if decides:
            note(window, batch, state.rows[older]["serial"], False)
        older = links[older, 2 * chain]
    _insert(links, ends, chain, s, r, older, newer)
    if decides:
        note(window, batch, state.rows[r]["serial"], True)
    if older < 0:
        pick(state, m, s, r)
        if empty:
            state.slots[s]["cold"] = 0
            state.facts[HOT] += 1


@uncounted
def leave_monotone(state: State, window: Window, batch: Batch, m: int, s: int, r: int) -> None:
    """Take the oldest row of an object out of the chain of the largest, if it is there."""
    links, ends, chain = state.links, state.ends, state.measures[m]["chain"]
    if ends[s, 2 * chain] != r:
        return
    newer = links[r, 2 * chain + 1]
    ends[s, 2 * chain] = newer
    if window.keeps == CHAIN and window.decides == state.measures[m]["first"]:
        note(window, batch, state.rows[r]["serial"], False)
    if newer < 0:
        ends[s, 2 * chain + 1] = -1
        state.slots[s]["cold"] = state.slots[s]["count"] > 0  # others are below the bound
        state.facts[HOT] -= 1
    else:
        links[newer, 2 * chain] = -1
        pick(state, m, s, newer)


@uncounted
def leave_by_age(state: State, chain: int, s: int, r: int) -> None:
    """Take any row out of the chain by age."""
    links, ends = state.links, state.ends
    older, newer = links[r, 2 * chain], links[r, 2 * chain + 1]
    if older < 0:
        ends[s, 2 * chain] = newer
    else:
        links[older, 2 * chain + 1] = newer
    if newer < 0:
        ends[s, 2 * chain + 1] = older
    else:
        links[newer, 2 * chain] = older


@close
def _insert(links: Any, ends: Any, chain: Any, s: Any, r: Any, older: Any, newer: Any) -> None:
    links[r, 2 * chain], links[r, 2 * chain + 1] = older, newer
    if older < 0:
        ends[s, 2 * chain] = r
    else:
        links[older, 2 * chain + 1] = r
    if newer < 0:
        ends[s, 2 * chain + 1] = r
    else:
        links[newer, 2 * chain] = r


@close
def pick(state: State, m: Any, s: Any, r: Any) -> None:
    """Pick a row for an aggregate of an object."""
    one = state.picks[s, state.measures[m]["first"]]
    one["value"] = state.values[r, state.measures[m]["column"]]
    one["stamp"] = state.rows[r]["stamp"]
    one["serial"] = state.rows[r]["serial"]


# --- heaps of rows: links are child, sibling and the one before (parent or sibling), after the chain by age's two


@close
def _is_above(state: State, column: Any, a: Any, b: Any) -> Any:
    if state.values[a, column] != state.values[b, column]:
        return state.values[a, column] > state.values[b, column]
    return is_newer(state, a, b)


@uncounted
def _meld(state: State, base: int, column: int, a: int, b: int) -> int:
    """One heap of two."""
    if a < 0 or b < 0:
        return max(a, b)
    if _is_above(state, column, b, a):
        a, b = b, a
    links = state.links
    child = links[a, base]
    links[b, base + 1], links[b, base + 2] = child, a
    if child >= 0:
        links[child, base + 2] = b
    links[a, base] = b
    return a


@uncounted
def add_to_heap(state: State, m: int, s: int, r: int) -> None:
    """Put a row into the heap of the largest."""
    chain, column = state.measures[m]["chain"], state.measures[m]["column"]
    base = 3 * chain - 1  # the first chain, by age, has two links
    state.links[r, base] = state.links[r, base + 1] = state.links[r, base + 2] = -1
    state.ends[s, 2 * chain] = _meld(state, base, column, state.ends[s, 2 * chain], r)
    pick(state, m, s, state.ends[s, 2 * chain])


@uncounted
def leave_heap(state: State, m: int, s: int, r: int) -> None:
    """Take any row out of the heap of the largest."""
    chain, column, links = state.measures[m]["chain"], state.measures[m]["column"], state.links
    base = 3 * chain - 1
    rest = _merged(state, base, column, links[r, base])
    top = state.ends[s, 2 * chain]
    if top == r:
        top = rest
    else:
        before, sibling = links[r, base + 2], links[r, base + 1]
        if links[before, base] == r:
            links[before, base] = sibling
        else:
            links[before, base + 1] = sibling
        if sibling >= 0:
            links[sibling, base + 2] = before
        top = _meld(state, base, column, top, rest)
    state.ends[s, 2 * chain] = top
    if top >= 0:
        pick(state, m, s, top)


@uncounted
def _merged(state: State, base: int, column: int, first: int) -> int:
    """One heap of siblings: in pairs, then from the last pair to the first."""
    links, pairs = state.links, -1
    while first >= 0:
        second = links[first, base + 1]
        following = -1
        links[first, base + 1] = links[first, base + 2] = -1
        if second >= 0:
            following = links[second, base + 1]
            links[second, base + 1] = links[second, base + 2] = -1
        pair = _meld(state, base, column, first, second)
        links[pair, base + 1] = pairs
        pairs, first = pair, following
    top = -1
    while pairs >= 0:
        following = links[pairs, base + 1]
        links[pairs, base + 1] = -1
        top = _meld(state, base, column, top, pairs)
        pairs = following
    return top
