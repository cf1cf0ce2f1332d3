"""BLOCK for many vectors: single-precision products say which arrivals a lane must look at, then the rule scores them.

A product S of an arrival a and a lane's vector, by BLAS, is off by at most `slack` (docs/engines/topk/similar.md has
the proof). In the units of S a lane's depth T is a bar, and an arrival with a key of T or more has

    S >= bar[lane] * weight[row] + offset[row] - slack[row]

so the others are left out. What is left is scored in float64, products in the order of the components and summed from
left to right, and goes into the lane's run as in kernels/slots.py.

Cost of a lane and block: one comparison an arrival, and d multiplications for the few that pass. Lanes whose depths
must fall are in kernels/vector_depths.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.kernels.depths import Scratch, lift
from skyband.engines.topk.kernels.found import Found
from skyband.engines.topk.kernels.lane_state import Lanes, fits, store_run, with_room
from skyband.engines.topk.kernels.replay import Block, new_merge, open_lane, take_block, take_lane
from skyband.engines.topk.kernels.segments import History, in_box
from skyband.engines.topk.kernels.slots import MANY, Plan, finish_lane, most_needed, pick_late
from skyband.engines.topk.kernels.state import Floats, Ints, Report, with_capacity
from skyband.kernels.compile import kernel, uncounted
from skyband.kernels.records import NEVER, Records
from skyband.query.scoring.forms import COSINE, DISTANCE

STRETCH = 128  # products that are compared at a time


class Vectors(NamedTuple):
    """The vectors of a history, in a ring."""

    matrix: NDArray[Any]  # one row each, float32 or float64
    norms: Floats  # by place in the history: roots of the sums of squares, by the contract's rule
    turned: int  # place p of the history is in row (p + turned) modulo the size of the ring


class Sides(NamedTuple):
    """What a chunk knows of its lanes besides their runs."""

    norms: Floats  # of the lanes' vectors, by the contract's rule
    slack: Floats  # of distances: what a lane's own norm adds to that of products
    bars: Floats  # their depths in the units of products; inf: not this time
    safe: Ints  # with stamps above this, k objects of the run are above the depth
    looked: Ints  # the size of the run when it was last looked at
    lengths: Ints  # of windows
    dues: Ints  # no window lets go of anything before this instant; -NEVER: look at the lane
    calm: NDArray[np.int8]  # 1: nothing has happened to the lane since its bar was set


class Products(NamedTuple):
    """Products of lanes from `first` on with rows of the history from `begin` on."""

    values: NDArray[np.float32]  # one row per lane
    weights: Floats  # per row of the history
    offsets: Floats
    slack: Floats
    floors: Floats  # offsets less slack
    first: int
    begin: int
    lane_of: Ints  # scratch


class Turn(NamedTuple):
    """A block's turn."""

    b: int  # which segment
    before: int  # the instant up to which everything is done


@kernel
def settle_vectors(
    chunk: Lanes, report: Report, history: History, sides: Sides, plan: Plan, turn: Turn, deep: Ints
) -> tuple[Records, int]:
    """Before a block: lift lanes whose runs are too long, list those that must be deepened, and set bars.

    Returns the changes, and how many lanes are in `deep`.
    """
    lanes, block, net = chunk.lanes, history.segments[turn.b], report.net
    must = not net or block["begin"] == block["end"]
    n, left, horizon = 0, block["left"], plan.last if net else block["instant"]
    for s in range(len(lanes)):
        if sides.calm[s] and plan.fresh == 0 and max(left, horizon - sides.lengths[s]) < sides.safe[s]:
            continue
        K, size = lanes[s]["k"], lanes[s]["size"]
        sides.calm[s] = 0
        if K == 0 or lanes[s]["fresh"] != plan.fresh:
            sides.bars[s] = np.inf
            continue
        sides.calm[s] = plan.fresh == 0
        if lanes[s]["depth"] > -np.inf or size > lanes[s]["enough"]:
            bound = max(left, horizon - lanes[s]["length"])
            most = lanes[s]["enough"] + K // 8 + 4
            sides.looked[s] = min(sides.looked[s], size)
            if (size > most and size > sides.looked[s] + K // 8) or (must and sides.safe[s] <= bound):
                sides.looked[s] = size
                above = look(chunk, s, bound, sides)
                if above < K and lanes[s]["depth"] > -np.inf and must:
                    deep[n] = s
                    n += 1
                elif above > most:
                    if report.tally[1] + size > len(report.changes):
                        report = with_capacity(report, size)
                    lift(chunk, report, s, history, turn.b, lanes[s]["enough"], bound)
                    sides.safe[s], sides.looked[s] = -NEVER, lanes[s]["size"]
        sides.bars[s] = bar_of(chunk, s, sides)
    return report.changes, n


@uncounted
def look(chunk: Lanes, s: int, bound: int, sides: Sides) -> int:
    """How many objects of a run are above the depth and newer than `bound`; notes the k-th newest of those above it."""
    objects, lanes, depth = chunk.objects, chunk.lanes, chunk.lanes[s]["depth"]
    K, head = lanes[s]["k"], lanes[s]["head"]
    above, stop = 0, head
    while stop < head + lanes[s]["size"] and objects[stop]["key"] >= depth:
        above += objects[stop]["stamp"] > bound
        stop += 1
    sides.safe[s] = -NEVER
    if above >= K and K <= 64:  # the k-th newest is found by counting: runs are short
        for i in range(head, stop):
            stamp, newer = objects[i]["stamp"], 0
            if stamp > bound and stamp > sides.safe[s]:
                for j in range(head, stop):
                    newer += objects[j]["stamp"] >= stamp
                if newer >= K:
                    sides.safe[s] = stamp
    return above


@uncounted
def bar_of(chunk: Lanes, s: int, sides: Sides) -> float:
    """The depth of a lane in the units of products; -inf: everything passes."""
    form = chunk.scorings.form
    depth: float = chunk.lanes[s]["depth"]
    norm: float = sides.norms[s]
    slack: float = sides.slack[s]
    if depth == -np.inf or slack == np.inf:
        return -np.inf
    if form == COSINE:
        return depth
    if form == DISTANCE:  # the vectors are not scaled
        square = norm * norm
        return (depth + (square if chunk.scorings.turned else -square)) / 2 - slack
    return depth / norm


@uncounted
def key_of(chunk: Lanes, s: int, norm: float, vectors: Vectors, i: int) -> float:
    """The key of one object for one lane, by the contract's rule."""
    form, points = chunk.scorings.form, chunk.scorings.points[s]
    row = vectors.matrix[(i + vectors.turned) % len(vectors.matrix)]
    total = 0.0
    for j in range(len(points)):
        x = np.float64(row[j])
        if form == DISTANCE:
            away = x - points[j]
            term = away * away
        else:
            term = x * points[j]
        total = term if j == 0 else total + term
    if form == COSINE:
        total = total / (vectors.norms[i] * norm)
    return -total if chunk.scorings.turned else total


@uncounted
def score_found(
    chunk: Lanes, sides: Sides, vectors: Vectors, lane_of: Ints, places: Ints, found: Floats, n: int
) -> None:
    """The keys of n pairs of lane and object: four at a time, whose sums do not wait for each other."""
    form, points, matrix = chunk.scorings.form, chunk.scorings.points, vectors.matrix
    size, turned = len(matrix), vectors.turned
    for low in range(0, n - n % 4, 4):
        a, b = matrix[(places[low] + turned) % size], matrix[(places[low + 1] + turned) % size]
        c, e = matrix[(places[low + 2] + turned) % size], matrix[(places[low + 3] + turned) % size]
        p, q = points[lane_of[low]], points[lane_of[low + 1]]
        r, t = points[lane_of[low + 2]], points[lane_of[low + 3]]
        if form == DISTANCE:
            one, two, three, four = a[0] - p[0], b[0] - q[0], c[0] - r[0], e[0] - t[0]
            one, two, three, four = one * one, two * two, three * three, four * four
            for j in range(1, len(p)):
                u, v, w, x = a[j] - p[j], b[j] - q[j], c[j] - r[j], e[j] - t[j]
                one, two, three, four = one + u * u, two + v * v, three + w * w, four + x * x
        else:
            one, two, three, four = a[0] * p[0], b[0] * q[0], c[0] * r[0], e[0] * t[0]
            for j in range(1, len(p)):
                one += a[j] * p[j]
                two += b[j] * q[j]
                three += c[j] * r[j]
                four += e[j] * t[j]
        found[low], found[low + 1], found[low + 2], found[low + 3] = one, two, three, four
        for i in range(low, low + 4):
            if form == COSINE:
                found[i] = found[i] / (vectors.norms[places[i]] * sides.norms[lane_of[i]])
            if chunk.scorings.turned:
                found[i] = -found[i]
    for i in range(n - n % 4, n):
        found[i] = key_of(chunk, lane_of[i], sides.norms[lane_of[i]], vectors, places[i])


@uncounted
def find_similar(
    chunk: Lanes, sides: Sides, history: History, vectors: Vectors, products: Products, at: int, stop: int,
    scratch: Scratch,
) -> int:  # fmt: skip
    """The arrivals of a block that reach the depths of lanes at..stop, and lie in their boxes.

    Returns the lane before which it stops, since so many are found that they are to be taken first.
    """
    found, places, bounds, lane_of = scratch.found, scratch.places, scratch.bounds, products.lane_of
    values, weights, floors = products.values, products.weights, products.floors
    size, boxed, n, s = len(weights), chunk.lows.shape[1] > 0, 0, at
    while s < stop and n < MANY and s - at < len(bounds) - 1:
        bounds[s - at] = n
        bar = sides.bars[s]
        if bar < np.inf:
            row = values[s - products.first]
            for low in range(0, size, STRETCH):
                some, w, floor = row[low : low + STRETCH], weights[low : low + STRETCH], floors[low : low + STRETCH]
                hits = 0
                for i in range(len(some)):
                    hits += not some[i] < bar * w[i] + floor[i]
                if hits:
                    for i in range(len(some)):
                        places[n] = products.begin + low + i
                        lane_of[n] = s
                        n += not some[i] < bar * w[i] + floor[i]
        s += 1
    bounds[s - at] = n
    scratch.work[0] += n
    score_found(chunk, sides, vectors, lane_of, places, found, n)
    total = 0
    for lane in range(at, s):
        begin, end, depth = bounds[lane - at], bounds[lane - at + 1], chunk.lanes[lane]["depth"]
        bounds[lane - at] = total
        for i in range(begin, end):
            if found[i] >= depth and (not boxed or in_box(chunk, lane, history.data, places[i])):
                found[total] = found[i]
                places[total] = places[i]
                total += 1
    bounds[s - at] = total
    scratch.work[1] += total
    return s


@kernel
def take_vectors(
    chunk: Lanes, report: Report, history: History, sides: Sides, vectors: Vectors, products: Products, b: int,
    scratch: Scratch,
) -> tuple[Records, Records]:  # fmt: skip
    """Take a block into the lanes that products are of; returns the arena and the changes."""
    lanes, segments, tally = chunk.lanes, history.segments, report.tally
    merge, found = new_merge(64), Found(scratch.found, scratch.places, scratch.bounds)
    low, high, end = segments[b]["begin"], segments[b]["end"], segments[b]["instant"]
    block = Block(history.stamps, history.serials, low, high, end)
    at, stop = products.first, products.first + len(products.values)
    while at < stop:
        to = find_similar(chunk, sides, history, vectors, products, at, stop, scratch)
        more, longest = most_needed(lanes, found, at, to)
        if tally[1] + more > len(report.changes):
            report = with_capacity(report, more)
        if longest > len(merge.valid):
            merge = new_merge(2 * longest)
        if segments[b]["late"]:
            for s in range(at, to):
                n = pick_late(history, found, lanes, at, s, report.serial, scratch.picked)
                if n and not fits(lanes, s, n):
                    chunk = with_room(chunk, s, lanes[s]["size"] + 2 * n)
                if n:
                    open_lane(chunk.objects, lanes, s, report.net)
                    take_lane(chunk, report, s, scratch.picked, n)
        s = at
        while s < to:
            s, size = take_block(chunk, report, s, to, found, at, block, merge)
            if s < to:
                chunk = with_room(chunk, s, size)
                store_run(chunk.objects, lanes, s, merge.kept, size)
                s += 1
        for s in range(at, to):
            if found.bounds[s - at] < found.bounds[s - at + 1]:
                sides.calm[s] = 0
                sides.dues[s] = lanes[s]["due"]
        at = to
    return chunk.objects, report.changes


@kernel
def finish_lanes(chunk: Lanes, report: Report, sides: Sides, plan: Plan, picked: Records) -> Records:
    """Time goes on to the end of a batch; then net changes are reported. Returns the changes."""
    lanes = chunk.lanes
    for s in range(len(lanes)):
        if sides.dues[s] > plan.last and not report.net:
            continue
        due = lanes[s]["due"] <= plan.last or lanes[s]["open"]
        if lanes[s]["k"] and lanes[s]["fresh"] == plan.fresh and due:
            if report.tally[1] + 4 * (2 + lanes[s]["size"]) > len(report.changes):
                report = with_capacity(report, 4 * (2 + lanes[s]["size"]))
            finish_lane(chunk, report, s, plan.last, picked)
            sides.calm[s] = 0
        sides.dues[s] = lanes[s]["due"]
    return report.changes


@kernel
def score_vectors(
    chunk: Lanes, sides: Sides, s: int, vectors: Vectors, data: Floats, keys: Floats, inside: Records
) -> None:
    """The keys of objects for one lane, and whether they are in its box."""
    for i in range(len(keys)):
        keys[i] = key_of(chunk, s, sides.norms[s], vectors, i)
        inside[i] = in_box(chunk, s, data, i)
