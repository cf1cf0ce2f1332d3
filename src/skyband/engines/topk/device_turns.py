"""Turns of lanes on a device: what is done for one block of arrivals, whatever the device is.

A lane on a device is a standing query with a depth T and a run: every object of its window with a key of T or more
that may become an answer, in any order, in a fixed number of places. Before a block, lanes whose runs could lack an
answer within it get a smaller depth from the window's vectors (`settle`). Then hits are found, long runs are lifted,
and runs take their hits in order of arrival. A block after which some run would have no place is cut in two, down to
one arrival and one instant, where there always is.

This module knows no device: `Lanes` names what one must do, `torch_device.py` does it on a GPU. NumPy only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from skyband.errors import StateError
from skyband.query.scoring.forms import DISTANCE, DOT

Array = NDArray[Any]
FREE = -(2**63 - 1)  # the stamp of a free place
USUAL = (1e-100, 1e100)  # norms of vectors that are scaled to 1
TAME = (1e-15, 1e15)  # norms that float32 holds as they are
ROUNDED = 2.0**-8  # the most by which bfloat16 rounds, relatively
LARGEST = 3e38  # a bar in float32


class Rows(NamedTuple):
    """Arrivals for a window on a device, from number `begin` on."""

    begin: int
    matrix: Array
    norms: Array | None  # None: the device computes them
    stamps: Array
    serials: Array
    now: Array


class Moved(NamedTuple):
    """Runs of some lanes on their way between host and device: one row each."""

    depths: Array
    dues: Array
    keys: Array
    stamps: Array
    serials: Array
    flags: Array  # 1: in the answer, 2: has been shown


class Found(NamedTuple):
    """What enters and leaves: within a lane in order, a step's leaving before its entering."""

    lanes: Array
    keys: Array
    stamps: Array
    serials: Array
    instants: Array
    at: Array  # the serial of the step's arrival; -1: it has none of its own
    bits: Array  # 1: it enters; 2: it has been shown before

    @staticmethod
    def nothing() -> Found:
        none = np.empty(0, np.int64)
        return Found(none, np.empty(0), none, none, none, none, np.empty(0, np.int8))


class Lanes(Protocol):
    """What a device does."""

    room: int
    size: int
    columns: Any

    def lacking(self, left: int, last: int) -> Array: ...
    def near(self, places: Array, begin: int, end: int, left: int, last: int) -> tuple[Array, Array, Array]: ...
    def read_runs(self, places: Array) -> Moved: ...
    def write_runs(self, places: Array, runs: Moved) -> None: ...
    def find(self, low: int, high: int) -> bool: ...
    def crowded(self, before: int, left: int, last: int) -> bool: ...
    def replay(self, last: int, *, net: bool) -> Found: ...


class Numbers(NamedTuple):
    """What the host knows of lanes, and of the window's arrivals: arrival p is at place p - begin."""

    k: Array
    want: Array
    length: Array
    begin: int
    stamps: Array
    serials: Array
    now: Array


class Block(NamedTuple):
    """Arrivals low..high, handled from the instant `before` up to `last`; objects up to `left` may be forgotten."""

    low: int
    high: int
    before: int
    last: int
    left: int


def take_block(lanes: Lanes, known: Numbers, block: Block, *, net: bool) -> Iterator[Found]:
    """Let lanes take a block; yields what enters and leaves."""
    if (
        settle(lanes, known, block)
        and lanes.find(block.low, block.high)
        and not lanes.crowded(block.before, block.left, block.last)
    ):
        yield lanes.replay(block.last, net=net)
        return
    for half in halves(block, known):
        yield from take_block(lanes, known, half, net=net)


def halves(block: Block, known: Numbers) -> tuple[Block, Block]:
    """A block as two."""
    low, high, before, last, left = block
    if high - low > 1:
        middle = (low + high) // 2
        instant = int(known.now[middle - 1 - known.begin])
        return Block(low, middle, before, instant, left), Block(middle, high, instant, last, left)
    if last - before <= 1:
        raise StateError(
            "a device keeps too few places for the objects of one step. Leave device= out, or ask for fewer (k)."
        )
    middle = (before + last) // 2
    cut = high if high > low and int(known.now[low - known.begin]) <= middle else low
    return Block(low, cut, before, middle, left), Block(cut, high, middle, last, left)


def settle(lanes: Lanes, known: Numbers, block: Block) -> bool:
    """Smaller depths for lanes that could lack an answer within the block. False: one has no room for what it needs."""
    places, all_fit = lanes.lacking(block.left, block.last), True
    for low in range(0, len(places), 1 << 12):
        all_fit &= deepen(lanes, known, block, places[low : low + (1 << 12)])
    return all_fit


def deepen(lanes: Lanes, known: Numbers, block: Block, places: Array) -> bool:
    """Smaller depths for these lanes, and the objects of the window that lie between."""
    which, arrivals, keys = lanes.near(places, known.begin, block.low, block.left, block.last)
    order = np.argsort(which, kind="stable")
    which, keys, here = which[order], keys[order], arrivals[order] - known.begin
    stamps, serials = known.stamps[here], known.serials[here]
    ends = np.searchsorted(which, np.arange(len(places) + 1))
    runs, all_fit, changed = lanes.read_runs(places), True, np.ones(len(places), np.bool_)
    for g, place in enumerate(places.tolist()):
        some, length, want = slice(ends[g], ends[g + 1]), int(known.length[place]), int(known.want[place])
        bound = max(block.left, block.last - length)
        lasting = np.sort(keys[some][stamps[some] > bound])[::-1]
        old = float(runs.depths[g])
        depth = min(old, float(lasting[want - 1])) if len(lasting) >= want else -np.inf
        new = (keys[some] >= depth) & (keys[some] < old) & (stamps[some] > block.before - length)
        there = (runs.stamps[g] > FREE) & (runs.stamps[g] > block.before - length)
        run = [
            np.concatenate([mine[g][there], found[some][new]])
            for mine, found in ((runs.keys, keys), (runs.stamps, stamps), (runs.serials, serials))
        ]
        run.append(np.concatenate([runs.flags[g][there], np.zeros(int(new.sum()), np.int8)]))
        if len(run[0]) > lanes.room:
            best = np.lexsort((-run[2], -run[1], -run[0]))
            best = best[undominated(run[1][best], int(known.k[place]))]
            run = [one[best] for one in run]
        if len(run[0]) > lanes.room:
            changed[g] = all_fit = False
            continue
        runs.depths[g] = depth
        fill(runs, g, run)
    lanes.write_runs(places[changed], Moved(*(one[changed] for one in runs)))
    return all_fit


def fill(runs: Moved, g: int, run: list[Array]) -> None:
    """Put a run into row g: keys, stamps, serials and flags of its objects."""
    size = len(run[0])
    runs.stamps[g], runs.flags[g] = FREE, 0
    for mine, found in zip((runs.keys, runs.stamps, runs.serials, runs.flags), run, strict=True):
        mine[g, :size] = found


def undominated(stamps: Array, k: int) -> Array:
    """Of objects that are best first, the places of those that fewer than k others dominate."""
    newest, kept = np.full(k, FREE), []  # the k largest stamps so far, rising
    for i, stamp in enumerate(stamps.tolist()):
        if newest[0] < stamp:
            kept.append(i)
            newest[0] = stamp
            newest.sort()
    return np.array(kept, np.int64)


def ring_stretches(low: int, high: int, size: int) -> Iterator[slice]:
    """Arrivals low..high as stretches of a ring."""
    while low < high:
        row = low % size
        many = min(high - low, size - row)
        yield slice(row, row + many)
        low += many


# --- bounds: docs/engines/topk/similar.md has the proofs


def distance_error(d: int) -> float:
    """What a product of vectors that are not scaled may be wrong by, in halves of the sum of their squares."""
    return ROUNDED * 2 * (1 + 2.0**-6) + (d + 64) * 2.0**-21


def bars_of(depths: Any, norms: Any, form: int, turned: bool, d: int) -> Any:
    """Depths in the units of products; arrays of NumPy or PyTorch. NaN: everything passes."""
    if form == DISTANCE:
        square = norms * norms
        bars = (depths + (square if turned else -square)) / 2 - distance_error(d) * square / 2
        bars[norms > TAME[1]] = float("nan")
    else:
        bars = depths / norms if form == DOT else depths + 0.0
        bars[(norms < USUAL[0]) | (norms > USUAL[1])] = float("nan")
    bars[bars > LARGEST] = LARGEST  # an infinite bar is that of a lane that takes nothing
    return bars


def scales_of(norms: Any, form: int) -> tuple[Any, Any]:
    """What rows are divided by before they are rounded, and which have a bound."""
    if form == DISTANCE:
        return norms * 0 + 1, norms <= TAME[1]
    low, high = TAME if form == DOT else USUAL
    tame = (norms >= low) & (norms <= high)
    scale = norms * 1.0
    scale[~tame] = 1.0
    return scale, tame


def terms_of(wrong: Any, norms: Any, lanes: float, d: int, form: int, turned: bool) -> tuple[Any, Any]:
    """Of rows: what is added to bars, and what products may be wrong by.

    wrong: the norms of what rounding has taken from rows; lanes: the largest of those of lanes.
    """
    if form == DISTANCE:
        half = norms * norms / 2
        return (half if turned else -half), distance_error(d) * half + d * 2.0**-125
    slack = wrong * (1 + 2.0**-20) + (lanes * (1 + 2.0**-7) + (d + 64) * 2.0**-21 + 2.0**-19)
    return norms * 0.0, slack


def sign_of(form: int, turned: bool) -> float:
    """What a lane's vector is multiplied by, so that larger products are better."""
    return -1.0 if turned != (form == DISTANCE) else 1.0


def unit_of(points: Array, norms: Array, form: int, turned: bool) -> Array:
    """Lanes' vectors as they are multiplied: scaled to norm 1, but for distances."""
    if form == DISTANCE:
        usual, scale = norms <= TAME[1], np.ones(len(norms))
    else:
        usual = (norms >= USUAL[0]) & (norms <= USUAL[1])
        scale = np.where(usual, norms, 1.0)
    found: Array = sign_of(form, turned) * np.where(usual[:, None], points, 0.0) / scale[:, None]
    return found


def room_for(k: int) -> int:
    """Places of a run: so many that what outlasts a step always has one."""
    room = 64
    while room < 3 * want_of(k) + 2 * k:
        room *= 2
    return room


def want_of(k: int) -> int:
    """How many objects are wanted above a depth (as `set_goals` in chunk.py)."""
    aim = k + int(np.ceil(5 * np.sqrt(k))) + 4
    return aim + aim // 4
