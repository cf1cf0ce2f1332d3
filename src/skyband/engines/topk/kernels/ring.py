"""The ring of recent arrivals that all lanes of a family share: what leaves it, what enters, and the blocks between."""

from __future__ import annotations

from typing import NamedTuple

from skyband.engines.topk.kernels.state import Floats, Ints, Stream
from skyband.kernels.compile import uncounted


class Ring(NamedTuple):
    """The most recent arrivals but for late ones, oldest first: one for all lanes."""

    data: Floats  # one row per attribute
    stamps: Ints
    serials: Ints
    span: Ints  # [where it begins, how many are in it]
    begun: Ints  # [the last instant that was handled, arrivals so far]
    most: int  # objects in it
    reach: int  # how long an object may wait in a buffer


@uncounted
def end_of_block(now: Ints, low: int, most: int, reach: int) -> int:
    """Where a block that begins at `low` ends: with so many arrivals at most, and no instants further apart."""
    high = low
    while high < len(now) and high - low < most and now[high] - now[low] <= reach:
        high += 1
    return high


@uncounted
def has_late(stream: Stream, low: int, high: int) -> bool:
    """Whether one of the arrivals low..high is late."""
    late = False
    for a in range(low, high):
        late |= stream.stamps[a] < stream.now[a]
    return late


@uncounted
def leaving(ring: Ring, coming: int, last: int) -> int:
    """How many objects must leave the ring for those that come, and since their stamps are `last` or before."""
    begin, size, gone = ring.span[0], ring.span[1], 0
    while gone < size and (size - gone + coming > ring.most or ring.stamps[begin + gone] <= last):
        gone += 1
    return gone


@uncounted
def shift_ring(ring: Ring, stream: Stream, low: int, high: int, gone: int, serial: int) -> None:
    """The oldest `gone` leave the ring, and arrivals low..high enter it, but for late ones."""
    data, stamps, serials, span = ring.data, ring.stamps, ring.serials, ring.span
    span[0] += gone
    span[1] -= gone
    if span[0] + span[1] + high - low > len(stamps):
        for i in range(span[1]):
            stamps[i] = stamps[span[0] + i]
            serials[i] = serials[span[0] + i]
        for j in range(data.shape[0]):
            for i in range(span[1]):
                data[j, i] = data[j, span[0] + i]
        span[0] = 0
    end = span[0] + span[1]
    for a in range(low, high):
        stamps[end] = stream.stamps[a]
        serials[end] = serial + stream.rows[a]
        end += stream.stamps[a] == stream.now[a]
    if end == span[0] + span[1] + high - low:  # none is late
        for j in range(data.shape[0]):
            column, fresh = data[j, end - (high - low) : end], stream.data[j, low:high]
            for i in range(len(fresh)):
                column[i] = fresh[i]
    else:
        i = span[0] + span[1]
        for a in range(low, high):
            for j in range(data.shape[0]):
                data[j, i] = stream.data[j, a]
            i += stream.stamps[a] == stream.now[a]
    span[1] = end - span[0]
