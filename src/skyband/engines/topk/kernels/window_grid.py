"""The grid over the valid objects of a window, with influence lists (mouratidis2006, sections 4.1 and 4.2).

A cell holds a list of its objects and a list of the queries whose influence region meets it. Cells are equal slabs of
the range that was seen when the grid was laid; what lies outside of it is in one more cell, which concerns every
query. Instead of the paper's corner, a query puts the slabs of each axis in order of the best term they allow: then
any scoring whose terms are separate (sums, products, distances) falls along every axis, whatever its signs, and cells
come in descending order of maxscore from a heap, each reached from one neighbour only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.preferences import best_term, join_terms, key_at
from skyband.kernels.compile import inlined, part
from skyband.kernels.records import move_run
from skyband.query.scoring.forms import PRODUCT

Records = NDArray[Any]

SLOT = np.dtype(
    [
        ("stamp", "i8"),  # number in the group, or time
        ("serial", "i8"),  # which arrival of the stream; -1: a free place
        ("next", "i4"),  # in its cell, or of the free places
        ("cell", "i4"),
    ],
    align=True,
)
CELL = np.dtype(
    [
        ("head", "i4"),  # its objects, oldest first
        ("tail", "i4"),
        ("start", "i4"),  # its place in the influence lists
        ("room", "i4"),
        ("size", "i4"),
    ],
    align=True,
)
LANE = np.dtype(
    [
        ("k", "i8"),
        ("view", "i8"),  # so many are looked for: k, or TSL's k_max
        ("above", "i8"),  # 1: all above the threshold
        ("threshold", "f8"),
        ("boxed", "i8"),  # 1: only objects of a box count
    ],
    align=True,
)
STATE = np.dtype(
    [
        ("key", "f8"),  # the floor: whoever ranks above it is in the run
        ("stamp", "i8"),
        ("serial", "i8"),
        ("reach", "f8"),  # the query is in the lists of all cells with at least this maxscore, and of no others
        ("listed", "i8"),  # how many cells that are
        ("misses", "i8"),  # objects looked at in vain since its lists were made
        ("wide", "i8"),  # 1 + its place among the queries that look at every object; 0: it has lists
        ("open", "i8"),  # where its answer at the beginning of the step is; -1: nothing has happened to it
        ("held", "i8"),  # how many that were
        ("view", "i8"),  # TSL's k_max by the dynamic rule
        ("spent", "i8"),  # work on its view since it was filled
    ],
    align=True,
)
GHOST = np.dtype([("serial", "i8"), ("was", "i8")])  # an object that was told, and its place
LIVE, HEAD, FREE, OUTSIDE, LIMIT, SIDE, USED, WIDE, TOUCHED, STALE, BEFORE, RECENT, SORTED = range(13)
VISITED, SCORED, REFILLS = 13, 14, 15  # work that is counted
FACTS = 16
NOWHERE = -(2**62)


class Asking(NamedTuple):
    """What is asked, of every group alike."""

    form: int
    turned: bool
    lanes: Records
    points: Records
    weights: Records
    lows: Records  # boxes
    highs: Records


class Window(NamedTuple):
    """The valid objects of one group, and what its queries know."""

    slots: Records
    data: Records
    order: Records  # places by age: a ring
    cells: Records
    edges: Records  # of slabs, by axis; then the scale
    state: Records
    wide: Records
    facts: Records


class Desk(NamedTuple):
    """Places to work in; nothing on it lasts longer than a step, but for answers that a net batch began with."""

    bounds: Records  # a heap of cells, by maxscore
    codes: Records
    slabs: Records  # of each axis, best first
    terms: Records
    many: Records
    best: Records
    touched: Records
    stale: Records
    before: Records


@part
def locate(edges: Records, side: int, outside: int, data: Records, i: int) -> int:
    """The cell of an object; the last one is outside."""
    cell = 0
    for j in range(data.shape[1]):
        x = data[i, j]
        if not edges[j, 0] <= x <= edges[j, side]:
            return outside
        c = min(max(int((x - edges[j, 0]) * edges[j, side + 1]), 0), side - 1)
        while x < edges[j, c]:
            c -= 1
        while c < side - 1 and x >= edges[j, c + 1]:
            c += 1
        cell = cell * side + c
    return cell


@part
def link(slots: Records, cells: Records, cell: int, i: int) -> None:
    """Put an object at the end of its cell's list."""
    slots[i]["cell"] = cell
    slots[i]["next"] = -1
    if cells[cell]["head"] < 0:
        cells[cell]["head"] = i
    else:
        slots[cells[cell]["tail"]]["next"] = i
    cells[cell]["tail"] = i


@part
def unlink(slots: Records, cells: Records, i: int) -> None:
    """Take an object out of its cell's list; the oldest is the first."""
    cell = slots[i]["cell"]
    before = -1
    at = cells[cell]["head"]
    while at != i:
        before, at = at, slots[at]["next"]
    if before < 0:
        cells[cell]["head"] = slots[i]["next"]
    else:
        slots[before]["next"] = slots[i]["next"]
    if cells[cell]["tail"] == i:
        cells[cell]["tail"] = before


# --- influence lists


@part
def enlist(window: Window, lists: Records, cell: int, s: int) -> Records:
    """Query s looks at the objects of this cell."""
    cells, facts = window.cells, window.facts
    size, room = cells[cell]["size"], cells[cell]["room"]
    if size == room:
        room = max(4, 2 * room)
        if facts[USED] + room > len(lists):
            lists = _packed(window, lists, room)
        start = facts[USED]
        for i in range(size):
            lists[start + i] = lists[cells[cell]["start"] + i]
        cells[cell]["start"] = start
        cells[cell]["room"] = room
        facts[USED] += room
    lists[cells[cell]["start"] + size] = s
    cells[cell]["size"] = size + 1
    return lists


@part
def _packed(window: Window, lists: Records, room: int) -> Records:
    """Larger lists, without the places that moved ones have left."""
    cells, total = window.cells, room
    for c in range(len(cells)):
        total += cells[c]["room"]
    larger = np.empty(total + total // 2, lists.dtype)
    used = 0
    for c in range(len(cells)):
        for i in range(cells[c]["size"]):
            larger[used + i] = lists[cells[c]["start"] + i]
        cells[c]["start"] = used
        used += cells[c]["room"]
    window.facts[USED] = used
    return larger


@part
def delist(window: Window, lists: Records, cell: int, s: int) -> None:
    cells = window.cells
    last = cells[cell]["start"] + cells[cell]["size"] - 1
    i = last
    while lists[i] != s:
        i -= 1
    lists[i] = lists[last]
    cells[cell]["size"] -= 1


@part
def widen(window: Window, s: int) -> None:
    """Query s looks at every object."""
    state, facts = window.state, window.facts
    window.wide[facts[WIDE]] = s
    facts[WIDE] += 1
    state[s]["wide"] = facts[WIDE]
    state[s]["reach"] = np.inf
    state[s]["listed"] = 0
    state[s]["misses"] = 0


@part
def narrow(window: Window, s: int) -> None:
    """It has lists again."""
    state, facts, place = window.state, window.facts, window.state[s]["wide"] - 1
    last = window.wide[facts[WIDE] - 1]
    window.wide[place] = last
    state[last]["wide"] = place + 1
    state[s]["wide"] = 0
    facts[WIDE] -= 1


# --- cells in order of maxscore


@part
def lay_slabs(asking: Asking, window: Window, desk: Desk, s: int) -> bool:
    """The slabs of each axis that meet the query's box, best first, with the best terms; False: none do."""
    form, turned, edges, side = asking.form, asking.turned, window.edges, window.facts[SIDE]
    d = asking.points.shape[1]
    signed = False
    for j in range(d):
        signed |= form == PRODUCT and asking.points[s, j] + edges[j, 0] < 0
    for j in range(d):
        low, high = asking.lows[s, j], asking.highs[s, j]
        first, last = 0, side - 1
        while first < side and edges[j, first + 1] < low:
            first += 1
        while last >= 0 and edges[j, last] > high:
            last -= 1
        if side == 0 or first > last:
            return False
        terms, slabs = desk.terms[j], desk.slabs[j]
        smaller = turned and not signed  # the better term is the smaller one
        best = first
        for c in range(first, last + 1):
            terms[c] = best_term(
                form,
                turned,
                asking.points[s, j],
                asking.weights[s, j],
                max(edges[j, c], low),
                min(edges[j, c + 1], high),
                signed,
            )
            if terms[c] < terms[best] if smaller else terms[c] > terms[best]:
                best = c
        inward = best == first or best == last  # terms fall from an end, or from both; else from a peak
        left, right = (first, last) if inward else (best, best + 1)
        for r in range(last - first + 1):
            if inward:
                take_left = terms[left] <= terms[right] if smaller else terms[left] >= terms[right]
            elif left < first or right > last:
                take_left = left >= first
            else:
                take_left = terms[left] <= terms[right] if smaller else terms[left] >= terms[right]
            if take_left:
                slabs[r] = left
                left += 1 if inward else -1
            else:
                slabs[r] = right
                right += -1 if inward else 1
        desk.many[j] = last - first + 1
    desk.many[d] = signed
    return True


@part
def open_cell(
    slabs: Records, terms: Records, many: Records, code: int, side: int, form: int, turned: bool
) -> tuple[int, float, int]:
    """From places in the order of slabs to the cell, its maxscore, and the last axis that is not at its best."""
    d = len(slabs)
    cell, bound, deepest, rest = 0, 0.0, 0, code
    base = 1
    for j in range(d - 1, -1, -1):
        r = rest % side
        rest //= side
        if r and deepest == 0:
            deepest = j
        cell += base * slabs[j, r]
        base *= side
    rest = cell
    for j in range(d):  # in order, since sums are rounded
        base //= side
        c = rest // base
        rest -= c * base
        bound = terms[j, c] if j == 0 else join_terms(form, bound, terms[j, c])
    return cell, -bound if turned and not many[d] else bound, deepest


@part
def push_cell(bounds: Records, codes: Records, size: int, bound: float, code: int) -> int:
    i = size
    while i and bounds[(i - 1) // 2] < bound:
        bounds[i], codes[i] = bounds[(i - 1) // 2], codes[(i - 1) // 2]
        i = (i - 1) // 2
    bounds[i], codes[i] = bound, code
    return size + 1


@part
def pop_cell(bounds: Records, codes: Records, size: int) -> int:
    """Take away the first."""
    size -= 1
    bound, code = bounds[size], codes[size]
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and bounds[child + 1] > bounds[child]:
            child += 1
        if bounds[child] <= bound:
            break
        bounds[i], codes[i] = bounds[child], codes[child]
        i = child
    bounds[i], codes[i] = bound, code
    return size


@part
def relist(asking: Asking, window: Window, desk: Desk, lists: Records, s: int, to: float, most: int) -> Records:
    """Query s in the lists of all cells with a maxscore of at least `to`; if they are more than `most`, in none."""
    state, slabs, terms, many = window.state, desk.slabs[: asking.points.shape[1]], desk.terms, desk.many
    form, turned, side, codes = asking.form, asking.turned, window.facts[SIDE], desk.codes
    was = state[s]["reach"]
    lowest = min(was, to)
    size, count = 0, 0
    if lay_slabs(asking, window, desk, s) and open_cell(slabs, terms, many, 0, side, form, turned)[1] >= lowest:
        codes[0], size = 0, 1
    while size:  # the order does not matter: the last is first
        size -= 1
        code = codes[size]
        cell, bound, deepest = open_cell(slabs, terms, many, code, side, form, turned)
        if bound >= to:
            count += 1
            if count > most:
                break
            if bound < was:
                lists = enlist(window, lists, cell, s)
        elif bound >= was:
            delist(window, lists, cell, s)
        base = 1
        for j in range(len(slabs) - 1, deepest - 1, -1):
            if (code // base) % side + 1 < many[j]:
                _, bound, _ = open_cell(slabs, terms, many, code + base, side, form, turned)
                if bound >= lowest:
                    codes[size] = code + base
                    size += 1
            base *= side
    if count > most:  # take it out again, wherever it is
        for c in range(len(window.cells)):
            for i in range(window.cells[c]["start"], window.cells[c]["start"] + window.cells[c]["size"]):
                if lists[i] == s:
                    delist(window, lists, c, s)
                    break
        if not state[s]["wide"]:
            widen(window, s)
    else:
        if state[s]["wide"]:
            narrow(window, s)
        state[s]["reach"] = to
        state[s]["listed"] = count
    state[s]["misses"] = 0
    return lists


# --- the computation module (Figure 6)


@inlined
def above(key: float, stamp: int, serial: int, key2: float, stamp2: int, serial2: int) -> bool:
    """Does the first rank above the second? Of equals the newer."""
    return key > key2 or (key == key2 and (stamp > stamp2 or (stamp == stamp2 and serial > serial2)))


@part
def insert(best: Records, size: int, room: int, key: float, stamp: int, serial: int, i: int) -> int:
    """An object that ranks above the last joins the best so far, which are in order of rank."""
    size = min(size, room - 1)
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if above(key, stamp, serial, best[middle]["key"], best[middle]["stamp"], best[middle]["serial"]):
            high = middle
        else:
            low = middle + 1
    move_run(best, low, best, low + 1, size - low)
    best[low]["key"] = key
    best[low]["stamp"] = stamp
    best[low]["serial"] = serial
    best[low]["dom"] = 0
    best[low]["inside"] = 0
    best[low]["shown"] = 0
    best[low]["was"] = i
    return size + 1


@inlined
def in_box(lows: Records, highs: Records, s: int, data: Records, i: int) -> bool:
    inside = True
    for j in range(data.shape[1]):
        inside &= lows[s, j] <= data[i, j] <= highs[s, j]
    return inside


@part
def search_grid(asking: Asking, window: Window, desk: Desk, s: int, room: int) -> int:
    """The best `room` objects of the window, from the cells that may hold one; returns how many there are."""
    slots, data, cells, best = window.slots, window.data, window.cells, desk.best
    points, weights, lows, highs = asking.points, asking.weights, asking.lows, asking.highs
    slabs, terms, many = desk.slabs[: points.shape[1]], desk.terms, desk.many
    bounds, codes = desk.bounds, desk.codes
    form, turned, side, boxed = asking.form, asking.turned, window.facts[SIDE], asking.lanes[s]["boxed"]
    found, size, cell, visited, scored = 0, 0, len(cells) - 1, 0, 0
    if lay_slabs(asking, window, desk, s):
        size = push_cell(bounds, codes, 0, open_cell(slabs, terms, many, 0, side, form, turned)[1], 0)
    while True:  # first those outside, then cell by cell
        i = cells[cell]["head"]
        while i >= 0:
            key = key_at(form, turned, points, weights, s, data, i)
            scored += 1
            if found < room or key >= best[found - 1]["key"]:
                stamp, serial = slots[i]["stamp"], slots[i]["serial"]
                last = best[max(found - 1, 0)]
                if (found < room or above(key, stamp, serial, last["key"], last["stamp"], last["serial"])) and (
                    not boxed or in_box(lows, highs, s, data, i)
                ):
                    found = insert(best, found, room, key, stamp, serial, i)
            i = slots[i]["next"]
        if size == 0 or (found == room and bounds[0] < best[found - 1]["key"]):
            break
        code = codes[0]
        size = pop_cell(bounds, codes, size)
        cell, _, deepest = open_cell(slabs, terms, many, code, side, form, turned)
        visited += 1
        floor = best[found - 1]["key"] if found == room else -np.inf
        base = 1
        for j in range(len(slabs) - 1, deepest - 1, -1):
            if (code // base) % side + 1 < many[j]:
                _, bound, _ = open_cell(slabs, terms, many, code + base, side, form, turned)
                if bound >= floor:
                    size = push_cell(bounds, codes, size, bound, code + base)
            base *= side
    window.facts[VISITED] += visited
    window.facts[SCORED] += scored
    return found
