"""The valid alternatives of each name: a row that would bring their probabilities above 1 is rejected.

A ring has a line for each row with a name, in order of arrival, each linked to the one before it with the same hash of
group and name. For each hash the valid probabilities are added up, as whole numbers, so that what expires is taken away
without an error; only where they would pass 1 are the lines looked at, and only near 1 is their sum taken exactly (the
correctly rounded one, `math.fsum`). Rows are validated before it is certain that they are taken: all can be undone.

A line is let go once all before it have expired, so those of a group or time that lags behind are counted for longer;
that makes lookups more frequent and changes no result.

Cost: 40 bytes a row with a name and 16 for its hash, at most four times as many as are valid or come at once; O(1) a
row, and a look at every line of its hash when their sum passes 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, uncounted, uncounted_kernel
from skyband.kernels.hashes import slot_of
from skyband.kernels.prefetch import prefetch

Records = NDArray[Any]
Floats = NDArray[np.float64]
LINE = np.dtype(
    [
        ("name", "i8"),
        ("p", "f8"),
        ("stamp", "i8"),
        ("group", "i4"),
        ("older", "i4"),  # the position of the line before it with the same hash
        ("slot", "i8"),  # of its hash
    ],
    align=True,
)
SLOT = np.dtype([("units", "i8"), ("last", "i8")], align=True)  # the sum of its lines, and the position of the last one
BEGIN, END, NEXT = range(3)  # positions of the first line and behind the last; and the next row to be validated
ONE = 2.0**40  # units of a probability; of a line less than one is lost, and the sum of 2^23 fits into 64 bits
MOST = 1 + 1e-12  # what probabilities of alternatives may add up to
ERROR = 4e-16  # of one addition, where the sum is near 1, and more
AHEAD = 16  # rows and lines whose memory is fetched before it is used
PARTIALS = 64  # numbers whose bits do not overlap: float64 has room for 40


class Ring(NamedTuple):
    lines: Records  # by position, from the beginning again at the end
    slots: Records  # by hash
    facts: Records


class Rows(NamedTuple):
    """A batch that is to be validated."""

    names: Records
    named: Records  # by row: whether it has a name; others only move the window
    probabilities: Floats
    groups: Records
    rows: Records  # those to be validated, in order
    times: Records  # empty: count windows
    clocks: Records
    counts: Records  # count windows: the next number of each group; goes on
    rejected: Records  # by row
    partials: Floats  # working memory
    ahead: Records  # working memory: the slots of the rows that come next


@uncounted
def add_partial(partials: Floats, n: int, value: float) -> int:
    """Add a number to a sum that is kept as numbers whose bits do not overlap, the smallest first (Shewchuk 1997)."""
    kept = 0
    for j in range(n):
        large, small = value, partials[j]
        if abs(large) < abs(small):
            large, small = small, large
        value = large + small
        rest = small - (value - large)
        if rest != 0.0:
            partials[kept] = rest
            kept += 1
    partials[kept] = value
    return kept + 1


@uncounted
def rounded(partials: Floats, n: int) -> Any:
    """Their sum, rounded to nearest, ties to even."""
    n -= 1
    high, low = partials[n], 0.0
    while n > 0 and low == 0.0:
        n -= 1
        before = high
        high = before + partials[n]
        low = partials[n] - (high - before)
    if n > 0 and ((low < 0 and partials[n - 1] < 0) or (low > 0 and partials[n - 1] > 0)):
        twice = 2 * low
        other = high + twice
        if twice == other - high:  # half way, as it seemed
            high = other
    return high


@uncounted
def exact_sum(ring: Ring, slot: int, name: int, group: int, gone: int, partials: Floats) -> Any:
    """The sum of partials[0] and the probabilities of the valid alternatives, correctly rounded."""
    n, mask, place = 1, len(ring.lines) - 1, ring.slots[slot]["last"]
    while place >= ring.facts[BEGIN]:
        line = ring.lines[place & mask]
        if line["group"] == group and line["name"] == name and line["stamp"] > gone:
            n = add_partial(partials, n, line["p"])
        place = line["older"]
    return rounded(partials, n)


@uncounted
def total_of(ring: Ring, slot: int, name: int, group: int, gone: int, p: float, partials: Floats) -> Any:
    """The sum of p and the probabilities of the valid alternatives."""
    total, many, mask, place = p, 1, len(ring.lines) - 1, ring.slots[slot]["last"]
    while place >= ring.facts[BEGIN]:
        line = ring.lines[place & mask]
        if line["group"] == group and line["name"] == name and line["stamp"] > gone:
            total += line["p"]
            many += 1
        place = line["older"]
    if abs(total - MOST) > many * ERROR:
        return total
    partials[0] = p
    return exact_sum(ring, slot, name, group, gone, partials)


@close
def units_of(p: float) -> Any:
    return np.int64(p * ONE)


@close
def append(ring: Ring, at: int, name: int, group: int, stamp: int, p: float) -> None:
    """One line more in this slot; there is a place."""
    end, slot = ring.facts[END], ring.slots[at]
    line = ring.lines[end & (len(ring.lines) - 1)]
    line["name"], line["p"], line["stamp"], line["group"], line["older"] = name, p, stamp, group, slot["last"]
    line["slot"] = at
    slot["last"] = end
    slot["units"] += units_of(p)
    ring.facts[END] = end + 1


@close
def let_go(ring: Ring, bound: int, counts: Records, length: int, timed: bool) -> None:
    """The oldest lines go as long as they have expired. bound: of time windows."""
    mask, begin = len(ring.lines) - 1, ring.facts[BEGIN]
    while begin < ring.facts[END]:
        line = ring.lines[begin & mask]
        if line["stamp"] > (bound if timed else counts[line["group"]] - 1 - length):
            break
        prefetch(ring.slots, ring.lines[(begin + AHEAD) & mask]["slot"] & mask, 0)
        ring.slots[line["slot"]]["units"] -= units_of(line["p"])
        begin += 1
    ring.facts[BEGIN] = begin


@close
def look_ahead(ring: Ring, batch: Rows, j: int) -> None:
    """Fetch the slot of a row that comes later."""
    r = batch.rows[j]
    slot = slot_of(batch.names[r], batch.groups[r], len(ring.slots) - 1)
    batch.ahead[j % AHEAD] = slot
    prefetch(ring.slots, slot, 0)


@uncounted_kernel
def validate_alternatives(ring: Ring, batch: Rows, length: int, limit: int, first: int) -> Any:
    """Reject rows if the valid alternatives would pass 1 with them; returns False when the ring is full.

    limit: time windows; rows as late as this are not validated. first: the lines from this one on are kept, to be
    undone. The next call goes on from `facts[NEXT]`.
    """
    facts, timed, counts, ahead = ring.facts, len(batch.times) > 0, batch.counts, batch.ahead
    for j in range(facts[NEXT], min(facts[NEXT] + AHEAD, len(batch.rows))):
        look_ahead(ring, batch, j)
    for j in range(facts[NEXT], len(batch.rows)):
        if facts[END] - first == len(ring.lines):
            facts[NEXT] = j
            return False
        r, slot = batch.rows[j], ahead[j % AHEAD]
        g = batch.groups[r]
        if j + AHEAD < len(batch.rows):
            look_ahead(ring, batch, j + AHEAD)
        if timed:
            now, stamp = max(batch.clocks[r], batch.times[r]), batch.times[r]
            if now - stamp >= limit:
                continue
        else:
            now = stamp = counts[g]
        if batch.named[r]:
            name, p = batch.names[r], batch.probabilities[r]
            let_go(ring, batch.clocks[r] - length if timed else 0, counts, length, timed)  # rejected, it moves no clock
            if ring.slots[slot]["units"] + units_of(p) >= ONE - len(ring.lines) and (
                total_of(ring, slot, name, g, now - length, p, batch.partials) > MOST
            ):
                batch.rejected[r] = True
                continue
            append(ring, slot, name, g, stamp, p)
        if not timed:
            counts[g] += 1
    facts[NEXT] = len(batch.rows)
    return True


@uncounted_kernel
def undo(ring: Ring, begin: int, end: int) -> None:
    """The ring as it was when its lines were those from `begin` to `end`."""
    facts, mask = ring.facts, len(ring.lines) - 1
    for place in range(facts[END] - 1, end - 1, -1):
        line = ring.lines[place & mask]
        slot = ring.slots[line["slot"]]
        slot["last"] = line["older"]
        if place >= facts[BEGIN]:
            slot["units"] -= units_of(line["p"])
    for place in range(begin, min(end, facts[BEGIN])):
        line = ring.lines[place & mask]
        ring.slots[line["slot"]]["units"] += units_of(line["p"])
    facts[BEGIN], facts[END] = begin, end


@uncounted_kernel
def copy_lines(lines: Records, ring: Ring) -> None:
    """Append these lines to a ring that has places for them."""
    for i in range(len(lines)):
        one = lines[i]
        slot = slot_of(one["name"], one["group"], len(ring.slots) - 1)
        append(ring, slot, one["name"], one["group"], one["stamp"], one["p"])
