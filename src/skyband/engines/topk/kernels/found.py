"""Arrivals that are found for lanes: in a grid over a block, or in the segments of a history."""

from __future__ import annotations

from typing import NamedTuple

from skyband.engines.topk.kernels.state import Floats, Ints
from skyband.kernels.compile import uncounted


class Found(NamedTuple):
    """Scratch: the arrivals found for lanes; lane s has bounds[s]..bounds[s + 1], from the first lane on."""

    keys: Floats
    places: Ints  # in the stream, or in the history
    bounds: Ints


@uncounted
def next_good(keys: Floats, depth: float, i: int, end: int) -> int:
    """The next key of at least `depth`: 64 at a time, which compiles to a few instructions."""
    while i + 64 <= end:
        good = 0
        for j in range(i, i + 64):
            good += keys[j] >= depth
        if good:
            break
        i += 64
    while i < end and not keys[i] >= depth:  # NaN is no key
        i += 1
    return i


@uncounted
def sort_found(found: Found, begin: int, end: int) -> None:
    """Put what was found for a lane into the order of arrival: few, or nearly sorted ones (Shell's sort)."""
    keys, places = found.keys, found.places
    gap = 1
    while 3 * gap < end - begin:
        gap = 3 * gap + 1
    while gap:
        for i in range(begin + gap, end):
            key, place, j = keys[i], places[i], i
            while j - gap >= begin and places[j - gap] > place:
                keys[j], places[j] = keys[j - gap], places[j - gap]
                j -= gap
            keys[j], places[j] = key, place
        gap //= 3


@uncounted
def first_place(numbers: Ints, low: int, high: int, bound: int) -> int:
    """The place of the first of the rising numbers low..high that is at least `bound`; high: there is none."""
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low
