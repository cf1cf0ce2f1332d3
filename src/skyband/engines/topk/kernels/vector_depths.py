"""Depths of lanes that compare vectors (kernels/depths.py says when they fall): by products with the whole history.

Cost of a lane: one comparison with each object of the history, twice, and d multiplications for the few that pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.depths import Scratch, admit
from skyband.engines.topk.kernels.found import first_place
from skyband.engines.topk.kernels.lane_state import Lanes, store_run, with_room
from skyband.engines.topk.kernels.likeness import Products, Sides, Turn, Vectors, bar_of, key_of
from skyband.engines.topk.kernels.lookahead import put_best
from skyband.engines.topk.kernels.replay import new_merge
from skyband.engines.topk.kernels.segments import History, in_box
from skyband.engines.topk.kernels.state import Ints, Report, with_capacity
from skyband.kernels.compile import kernel, uncounted
from skyband.kernels.records import NEVER, Records


class Fall(NamedTuple):
    """Lanes whose depths fall, before a block."""

    lanes: Ints  # one for each row of the products
    last: int  # the clock, or the number of the last arrival
    turn: Turn


@kernel
def deepen_vectors(
    chunk: Lanes, report: Report, history: History, sides: Sides, vectors: Vectors, products: Products, fall: Fall,
    scratch: Scratch,
) -> tuple[Records, Records]:  # fmt: skip
    """Smaller depths for lanes, and the objects of the history that lie between; returns the arena and the changes.

    products: with the whole history.
    """
    lanes, tally, block, merge = chunk.lanes, report.tally, history.segments[fall.turn.b], new_merge(64)
    for g in range(len(fall.lanes)):
        s = fall.lanes[g]
        bound = max(block["left"], (fall.last if report.net else block["instant"]) - lanes[s]["length"])
        expired = (fall.last if report.net else fall.turn.before) - lanes[s]["length"]
        n = gather_deeper(chunk, history, sides, vectors, products, fall, g, bound, scratch)
        kept, old, depth = 0, lanes[s]["depth"], scratch.keys[0]
        for i in range(n):
            scratch.found[kept] = scratch.found[i]
            scratch.places[kept] = scratch.places[i]
            kept += depth <= scratch.found[i] < old and history.stamps[scratch.places[i]] > expired
        lanes[s]["depth"] = depth
        if lanes[s]["size"] + kept > len(merge.kept):
            merge = new_merge(2 * (lanes[s]["size"] + kept))
        if tally[1] + lanes[s]["size"] > len(report.changes):
            report = with_capacity(report, lanes[s]["size"])
        size = admit(chunk, report, s, history, kept, scratch, merge)
        if size > lanes[s]["room"]:
            chunk = with_room(chunk, s, size)
        store_run(chunk.objects, lanes, s, merge.kept, size)
        sides.safe[s], sides.looked[s], sides.dues[s] = -NEVER, size, lanes[s]["due"]
        sides.bars[s] = bar_of(chunk, s, sides)
    return chunk.objects, report.changes


@uncounted
def gather_deeper(
    chunk: Lanes, history: History, sides: Sides, vectors: Vectors, products: Products, fall: Fall, g: int, bound: int,
    scratch: Scratch,
) -> int:  # fmt: skip
    """The objects of the history above a lane's new depth, which goes to scratch.keys[0]; returns how many are found.

    The wanted number of objects have at least the bar L, by the lower ends of what their products say. Whatever has a
    larger key than the worst of these has a product whose upper end reaches L.
    """
    values, w, o, e = products.values[g], products.weights, products.offsets, products.slack
    s, found, places = fall.lanes[g], scratch.found, scratch.places
    want, block, begin = chunk.lanes[s]["want"], history.segments[fall.turn.b], products.begin
    boxed, high, stamps = chunk.lows.shape[1] > 0, block["begin"], history.stamps
    since = first_place(history.serials, history.segments[block["first"]]["begin"], high, chunk.lanes[s]["birth"])
    best, known, seen = scratch.best[:want], 0, 0
    scratch.work[2] += 1
    if want < len(scratch.best):
        for i in range(since, high):
            if stamps[i] > bound and (not boxed or in_box(chunk, s, history.data, i)):
                j = i - begin
                least = (values[j] - o[j] - e[j]) / w[j]
                seen += 1
                if least == least and (known < want or least > best[0]):
                    known = put_best(best, known, least)
    some = known == want and seen > 2 * want
    least, n = best[0] - 2 * sides.slack[s] if some else -np.inf, 0
    for i in range(since, high):
        j = i - begin
        if not (values[j] - o[j] + e[j]) / w[j] < least and (not boxed or in_box(chunk, s, history.data, i)):
            places[n] = i
            n += 1
    for i in range(n):
        found[i] = key_of(chunk, s, sides.norms[s], vectors, places[i])
    scratch.work[0] += n
    depth, known = -np.inf, 0
    for i in range(n if some else 0):
        if stamps[places[i]] > bound and (known < want or found[i] > best[0]):
            known = put_best(best, known, found[i])
            depth = best[0]
    scratch.keys[0] = depth if some and known == want else -np.inf
    return n
