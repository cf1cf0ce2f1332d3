"""Ranking of objects by several keys: ranks offset + 1 to offset + k of each group, kept right step by step.

Each group has its objects in a search tree, the best on the left, with the sizes of subtrees (a treap: the priorities
are a hash of the slot). An object that changes leaves the tree and comes back at its place. After a step the first and
the last member are found by their ranks; with ties the last is the last equal one. Who else enters or leaves is between
the old ends and the new ones, so only these are looked at.

A rank is a row of whole numbers that are compared one after the other, larger is better: the keys, then the age, by
which no two are equal. Words (`flags`) are codes that look up their place among all words (`labels`).

Cost: O(log objects) for an object that changes and for each change of an answer, whatever k is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.engines.groups.kernels.ranks import INSIDE, NOWHERE, OUTSIDE, _end_step, _note
from skyband.engines.groups.kernels.state import Events, Ints, Records
from skyband.kernels.compile import close, kernel, uncounted, uncounted_kernel

NODE = np.dtype([("left", "i4"), ("right", "i4"), ("parent", "i4"), ("size", "i4")], align=True)
#: of a group. first, last: of its answer; step: in which its ends were saved; row, instant: of its last event
ROOT = np.dtype(
    [
        ("row", "i8"),
        ("instant", "i8"),
        ("step", "i8"),
        ("root", "i4"),
        ("first", "i4"),
        ("last", "i4"),
        ("had", "i4"),  # whether it had an answer before the step
    ],
    align=True,
)


class Sorted(NamedTuple):
    """A ranking by keys."""

    ranks: Records
    heads: Records  # ROOT, by group
    slots: Records
    log: Ints  # how many objects were noted in a step, then which
    touched: Ints  # the same of groups
    nodes: Records
    keys: Ints  # by slot: its rank
    edges: Ints  # by group, two each: the ranks of the first and the last member before the step
    flags: Ints  # by column of keys: 0, or words of which the largest (1) or the smallest (-1) is best
    labels: Ints  # by code of a word
    rule: Ints  # k, offset, 1: with ties


@close
def compared(live: Sorted, a: Ints, i: Any, b: Ints, j: Any, width: Any) -> Any:
    """1 if rank i of a is above rank j of b, -1 if it is below, 0 if they are equal in so many columns."""
    for c in range(width):
        x, y = a[i, c], b[j, c]
        if x != y:
            if live.flags[c] != 0:
                x, y = live.flags[c] * live.labels[x], live.flags[c] * live.labels[y]
            return 1 if x > y else -1
    return 0


@close
def is_above(live: Sorted, a: Any, b: Any) -> Any:
    """Whether one object ranks above another."""
    return compared(live, live.keys, a, live.keys, b, live.keys.shape[1]) > 0


@close
def priority(s: Any) -> Any:
    """The priority of a slot in its tree."""
    mixed = np.uint64(s + 1) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)


# --- the tree


@uncounted
def rise(nodes: Records, head: Any, s: int) -> None:
    """Put a slot in the place of its parent, which becomes its child."""
    p = nodes[s]["parent"]
    above = nodes[p]["parent"]
    if nodes[p]["left"] == s:
        inner = nodes[s]["right"]
        nodes[p]["left"], nodes[s]["right"] = inner, p
    else:
        inner = nodes[s]["left"]
        nodes[p]["right"], nodes[s]["left"] = inner, p
    if inner >= 0:
        nodes[inner]["parent"] = p
    nodes[p]["parent"], nodes[s]["parent"] = s, above
    if above < 0:
        head["root"] = s
    elif nodes[above]["left"] == p:
        nodes[above]["left"] = s
    else:
        nodes[above]["right"] = s
    nodes[s]["size"] = nodes[p]["size"]
    nodes[p]["size"] = 1 + size_of(nodes, nodes[p]["left"]) + size_of(nodes, nodes[p]["right"])


@close
def size_of(nodes: Records, s: Any) -> Any:
    return nodes[s]["size"] if s >= 0 else 0


@uncounted
def insert(live: Sorted, head: Any, s: int) -> None:
    """Put a slot into the tree, at the place of its rank."""
    nodes, parent, at = live.nodes, -1, head["root"]
    better = True
    while at >= 0:
        nodes[at]["size"] += 1
        parent, better = at, is_above(live, s, at)
        at = nodes[at]["left"] if better else nodes[at]["right"]
    nodes[s]["left"] = nodes[s]["right"] = -1
    nodes[s]["parent"], nodes[s]["size"] = parent, 1
    if parent < 0:
        head["root"] = s
    elif better:
        nodes[parent]["left"] = s
    else:
        nodes[parent]["right"] = s
    while nodes[s]["parent"] >= 0 and priority(s) > priority(nodes[s]["parent"]):
        rise(nodes, head, s)


@uncounted
def remove(live: Sorted, head: Any, s: int) -> None:
    """Take a slot out of the tree."""
    nodes = live.nodes
    while nodes[s]["left"] >= 0 or nodes[s]["right"] >= 0:
        a, b = nodes[s]["left"], nodes[s]["right"]
        rise(nodes, head, a if b < 0 or (a >= 0 and priority(a) > priority(b)) else b)
    parent = nodes[s]["parent"]
    if parent < 0:
        head["root"] = -1
    elif nodes[parent]["left"] == s:
        nodes[parent]["left"] = -1
    else:
        nodes[parent]["right"] = -1
    while parent >= 0:
        nodes[parent]["size"] -= 1
        parent = nodes[parent]["parent"]


@uncounted
def ranked(nodes: Records, at: int, place: int) -> Any:
    """The slot with so many above it in the tree."""
    while True:
        before = size_of(nodes, nodes[at]["left"])
        if place == before:
            return np.int64(at)
        if place < before:
            at = nodes[at]["left"]
        else:
            place -= before + 1
            at = nodes[at]["right"]


@uncounted
def below(nodes: Records, s: Any) -> Any:
    """The next slot; -1: there is none."""
    if nodes[s]["right"] >= 0:
        s = nodes[s]["right"]
        while nodes[s]["left"] >= 0:
            s = nodes[s]["left"]
        return np.int64(s)
    while nodes[s]["parent"] >= 0 and nodes[nodes[s]["parent"]]["right"] == s:
        s = nodes[s]["parent"]
    return np.int64(nodes[s]["parent"])


@uncounted
def above(nodes: Records, s: Any) -> Any:
    """The slot before; -1: there is none."""
    if nodes[s]["left"] >= 0:
        s = nodes[s]["left"]
        while nodes[s]["right"] >= 0:
            s = nodes[s]["right"]
        return np.int64(s)
    while nodes[s]["parent"] >= 0 and nodes[nodes[s]["parent"]]["left"] == s:
        s = nodes[s]["parent"]
    return np.int64(nodes[s]["parent"])


@uncounted
def last_equal(live: Sorted, at: int, s: int) -> Any:
    """The last slot whose keys are those of this one."""
    found, width = np.int64(s), live.keys.shape[1] - 2
    while at >= 0:
        order = compared(live, live.keys, at, live.keys, s, width)
        if order == 0:
            found = np.int64(at)
        at = live.nodes[at]["left"] if order < 0 else live.nodes[at]["right"]
    return found


@uncounted
def next_to(live: Sorted, at: int, edge: int, best: bool) -> Any:
    """The best slot at or below an old end (best), or the worst one at or above it; -1: there is none."""
    found = np.int64(-1)
    while at >= 0:
        order = compared(live, live.keys, at, live.edges, edge, live.keys.shape[1])
        if best:
            if order <= 0:
                found = np.int64(at)
            at = live.nodes[at]["left"] if order <= 0 else live.nodes[at]["right"]
        else:
            if order >= 0:
                found = np.int64(at)
            at = live.nodes[at]["right"] if order >= 0 else live.nodes[at]["left"]
    return found


# --- steps


@uncounted
def set_ends(live: Sorted, head: Any) -> None:
    """Find the first and the last member of the answer, as objects are ranked now."""
    count, k, offset = size_of(live.nodes, head["root"]), live.rule[0], live.rule[1]
    head["first"] = head["last"] = -1
    if count > offset and k > 0:
        head["first"] = ranked(live.nodes, head["root"], offset)
        head["last"] = ranked(live.nodes, head["root"], min(offset + k, count) - 1)
        if live.rule[2]:
            head["last"] = last_equal(live, head["root"], head["last"])


@uncounted
def settle(live: Sorted, g: int, step: int) -> None:
    """Note who enters or leaves the answer of a group besides those that have changed themselves."""
    head, nodes, keys, edges, width = live.heads[g], live.nodes, live.keys, live.edges, live.keys.shape[1]
    set_ends(live, head)
    first, last, had = head["first"], head["last"], head["had"]
    if had:  # what is between the old first and the new one, and between the new last and the old one, leaves
        s = next_to(live, head["root"], 2 * g, True)
        while s >= 0 and compared(live, keys, s, edges, 2 * g + 1, width) >= 0:
            if first >= 0 and not is_above(live, s, first):
                break
            _note(live.ranks, s, step, live.log)
            s = below(nodes, s)
        s = next_to(live, head["root"], 2 * g + 1, False) if first >= 0 else np.int64(-1)
        while s >= 0 and compared(live, keys, s, edges, 2 * g, width) <= 0 and is_above(live, last, s):
            _note(live.ranks, s, step, live.log)
            s = above(nodes, s)
    s = np.int64(first)
    while s >= 0 and (not had or compared(live, keys, s, edges, 2 * g, width) > 0):
        _note(live.ranks, s, step, live.log)
        s = np.int64(-1) if s == last else below(nodes, s)
    s = np.int64(last) if had else np.int64(-1)
    while s >= 0 and compared(live, keys, s, edges, 2 * g + 1, width) < 0:
        _note(live.ranks, s, step, live.log)
        s = np.int64(-1) if s == first else above(nodes, s)


@close
def place_of(live: Sorted, s: Any) -> Any:
    """Where an object is, by the ends of its group's answer."""
    head = live.heads[live.slots[s]["group"]]
    if live.ranks[s]["place"] == NOWHERE:
        return NOWHERE
    if head["first"] < 0 or is_above(live, s, head["first"]) or is_above(live, head["last"], s):
        return OUTSIDE
    return INSIDE


@uncounted
def begin(live: Sorted, g: int, step: int) -> None:
    """The first object of a group changes in a step: save the ends of its answer."""
    head = live.heads[g]
    if head["step"] == step:
        return
    head["step"], head["had"] = step, head["first"] >= 0
    live.touched[0] += 1
    live.touched[live.touched[0]] = g
    if head["had"]:
        for c in range(live.keys.shape[1]):
            live.edges[2 * g, c] = live.keys[head["first"], c]
            live.edges[2 * g + 1, c] = live.keys[head["last"], c]


@uncounted
def change(live: Sorted, events: Events, keys: Ints, answers: Records, e: int) -> None:
    """Rank the object of an event anew."""
    s, step = events.slot[e], events.step[e]
    g = live.slots[s]["group"]
    head, one = live.heads[g], live.ranks[s]
    begin(live, g, step)
    head["row"], head["instant"] = events.row[e], events.instant[e]
    _note(live.ranks, s, step, live.log)
    if one["saved"] != step:
        one["saved"], one["old_key"] = step, one["key"]
        one["old_decider"], one["old_event"] = one["decider"], one["event"]
    if events.gone[e]:
        one["shown"] = 0
    valid, moves = answers[e] and events.decider[e] >= 0, one["place"] == NOWHERE
    for c in range(keys.shape[1]):
        moves = moves or keys[e, c] != live.keys[s, c]
    if one["place"] != NOWHERE and (moves or not valid):
        remove(live, head, s)
    for c in range(keys.shape[1]):
        live.keys[s, c] = keys[e, c]
    one["key"], one["decider"], one["event"] = 0.0 if valid else np.nan, events.decider[e], e
    if not valid:
        one["place"] = NOWHERE
    elif moves:
        insert(live, head, s)
        one["place"] = OUTSIDE  # until the step ends


@uncounted
def end_step(live: Sorted, step: int) -> None:
    """Settle the groups that a step has touched; whoever has changed sides is noted then."""
    for i in range(1, live.touched[0] + 1):
        settle(live, live.touched[i], step)
    live.touched[0] = 0
    for i in range(1, live.log[0] + 1):
        live.ranks[live.log[i]]["place"] = place_of(live, live.log[i])


@kernel
def take_sorted(live: Sorted, events: Events, keys: Ints, answers: Records, out: Records) -> Any:
    """Rank objects anew, event by event; returns the changes, and how many there are. Steps are whole."""
    n = 0
    for e in range(len(keys)):
        change(live, events, keys, answers, e)
        if e + 1 == len(keys) or events.step[e + 1] != events.step[e]:
            end_step(live, events.step[e])
            if n + live.log[0] > len(out):
                more = np.empty(2 * (n + live.log[0]), out.dtype)
                more[:n] = out[:n]
                out = more
            n = _end_step(live.ranks, live.heads, live.slots, live.log, out, n)
    return out, n


@uncounted_kernel
def rebuild_sorted(live: Sorted) -> None:
    """Build the trees of all groups from the ranks of their objects, and let the answers be who is inside."""
    for g in range(len(live.heads)):
        live.heads[g]["root"] = live.heads[g]["first"] = live.heads[g]["last"] = live.heads[g]["step"] = -1
    for s in range(len(live.ranks)):
        one = live.ranks[s]
        valid = live.slots[s]["count"] > 0 and not np.isnan(one["key"])
        one["place"] = OUTSIDE if valid else NOWHERE
        if valid:
            insert(live, live.heads[live.slots[s]["group"]], s)
    for g in range(len(live.heads)):
        set_ends(live, live.heads[g])
    for s in range(len(live.ranks)):
        live.ranks[s]["place"] = place_of(live, s)


@uncounted_kernel
def sorted_members(live: Sorted, groups: Ints, found: Ints, owners: Ints) -> int:
    """The objects inside the answers of these groups, best first, and their groups; returns how many."""
    n = 0
    for i in range(len(groups)):
        s = np.int64(live.heads[groups[i]]["first"])
        while s >= 0:
            found[n], owners[n] = s, groups[i]
            n += 1
            s = np.int64(-1) if s == live.heads[groups[i]]["last"] else below(live.nodes, s)
    return n
