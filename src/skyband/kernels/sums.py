"""Exact sums: fixed-point integers, W words of 64 bits over a scale 2^e that all objects share, rounded once.

Numbers are added and taken away without any error, so a sum depends on what is valid and not on what came and went:
it is the correctly rounded one (`math.fsum`), or an infinity beyond float64. One word is enough for integers of
everyday size, two for most floats, 34 for everything that float64 has.

Cost: one word: a multiplication and an addition; two: some 15 operations to add, 20 to round; in general O(W).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, uncounted, uncounted_kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LOWEST = -1074  # the exponent of float64's last bit
MOST_WORDS = 34
_MANTISSA = np.uint64((1 << 52) - 1)
_HIDDEN = np.uint64(1 << 52)


@close
def power_of_two(exponent: Any) -> Any:
    """2^exponent as float64, from -1074 on; an infinity from 1024 on."""
    if exponent > 1023:
        return np.inf
    if exponent < -1022:
        return np.uint64(np.uint64(1) << np.uint64(exponent + 1074)).view(np.float64)
    return np.uint64(np.uint64(exponent + 1023) << np.uint64(52)).view(np.float64)


@close
def add(words: Ints, s: Any, first: Any, last: Any, lowest: Any, value: Any) -> None:
    """Add a number to the sum in words[s, first:last], whose scale is 2^lowest."""
    if last - first == 1 and lowest >= -1000:
        words[s, first] += np.int64(value * power_of_two(-lowest))
        return
    if value == 0.0:  # which has no place among the words
        return
    bits = np.float64(value).view(np.uint64)
    exponent = np.int64((bits >> np.uint64(52)) & np.uint64(2047))
    mantissa = bits & _MANTISSA
    if exponent > 0:
        mantissa |= _HIDDEN
        exponent -= 1
    shift = exponent + LOWEST - lowest
    place, rest = first + (shift >> 6), np.uint64(shift & 63)
    low, high = mantissa << rest, np.uint64(0)
    if rest > np.uint64(0):
        high = mantissa >> (np.uint64(64) - rest)
    if value < 0:
        _subtract(words, s, place, last, low, high)
    else:
        _add(words, s, place, last, low, high)


@close
def _add(words: Ints, s: Any, place: Any, last: Any, low: Any, high: Any) -> None:
    total = np.uint64(words[s, place]) + low
    words[s, place] = np.int64(total)
    carry = np.uint64(total < low)
    if place + 1 < last:
        part = high + carry  # no overflow: the high part has at most 53 bits
        total = np.uint64(words[s, place + 1]) + part
        words[s, place + 1] = np.int64(total)
        if total < part:
            i = place + 2
            while i < last:
                words[s, i] += 1
                if words[s, i] != 0:
                    break
                i += 1


@close
def _subtract(words: Ints, s: Any, place: Any, last: Any, low: Any, high: Any) -> None:
    before = np.uint64(words[s, place])
    words[s, place] = np.int64(before - low)
    if place + 1 < last:
        part = high + np.uint64(before < low)
        before = np.uint64(words[s, place + 1])
        words[s, place + 1] = np.int64(before - part)
        if before < part:
            i = place + 2
            while i < last:
                words[s, i] -= 1
                if words[s, i] != -1:
                    break
                i += 1


@close
def rounded(words: Ints, s: Any, first: Any, last: Any, lowest: Any) -> Any:
    """The sum as float64, rounded to nearest, ties to even; an infinity beyond the largest number."""
    if last - first == 1:
        return np.float64(words[s, first]) * power_of_two(lowest)
    if last - first == 2:
        return _rounded_two(words[s, first + 1], words[s, first], lowest)
    return _rounded(words, s, first, last, lowest)


@close
def _rounded_two(high: Any, low: Any, lowest: Any) -> Any:
    """As `_rounded`, of two words."""
    below = np.uint64(low)
    sign = np.float64(1.0)
    if high < 0:
        sign = np.float64(-1.0)
        below = ~below + np.uint64(1)
        high = ~high + np.int64(below == np.uint64(0))
    if high == 0:
        return sign * np.float64(below) * power_of_two(lowest)
    # the leading 63 bits, or 62; whatever is below shows in the last of them, and float64 keeps 53
    length = np.int64(np.float64(high).view(np.uint64) >> np.uint64(52)) - 1022
    gap = np.uint64(63 - length if length < 63 else 0)
    leading = high
    if gap > np.uint64(0):
        leading = np.int64((np.uint64(high) << gap) | (below >> (np.uint64(64) - gap)))
    leading |= np.int64((below << gap) != np.uint64(0))
    return sign * np.float64(leading) * power_of_two(lowest + 64 - np.int64(gap))


@uncounted
def _rounded(words: Ints, s: int, first: int, last: int, lowest: int) -> Any:
    negative = words[s, last - 1] < 0
    least = first  # the lowest word that is not 0
    while least < last and words[s, least] == 0:
        least += 1
    if least == last:
        return 0.0
    top = last - 1
    empty = np.int64(-1 if negative else 0)
    while top > least and words[s, top] == empty:
        top -= 1
    word = _magnitude(words[s, top], negative, top == least)
    if word == np.uint64(0):  # cannot be: a magnitude below the sign's words is not 0
        return 0.0
    if top == first:
        size = np.float64(word) * power_of_two(lowest)
        return -size if negative else size
    # the leading 64 bits, or 63; whatever is below shows in the last of them, and float64 keeps 53
    length = np.int64(np.float64(word).view(np.uint64) >> np.uint64(52)) - 1022
    gap = np.uint64(64 - length if length < 64 else 0)
    below = np.uint64(0) if top == least else _magnitude(words[s, top - 1], negative, top - 1 == least)
    leading, rest = word, below
    if gap > np.uint64(0):
        leading = (word << gap) | (below >> (np.uint64(64) - gap))
        rest = below << gap
    if rest != np.uint64(0) or least < top - 1:
        leading |= np.uint64(1)
    size = np.float64(leading) * power_of_two(lowest + 64 * (top - first) - np.int64(gap))
    return -size if negative else size


@close
def _magnitude(word: Any, negative: Any, lowest: Any) -> Any:
    """One word of a number's size: of a negative one all bits turned, but one more from its lowest word."""
    if not negative:
        return np.uint64(word)
    return np.uint64(-word) if lowest else np.uint64(~word)


@uncounted_kernel
def reach(values: Floats, known: Ints) -> None:
    """Widen known = [lowest bit, highest bit] to what these numbers need, as exponents of 2. Zeros need nothing."""
    low, high = known[0], known[1]
    largest, fine = 0.0, low < 0
    for i in range(len(values)):
        size = abs(values[i])
        if size > largest:
            largest = size
        if size != np.floor(size):
            fine = True
    if largest > 0.0:
        known[1] = max(high, np.int64(np.float64(largest).view(np.uint64) >> np.uint64(52)) - 1023 + 1)
    if not fine and largest < 2.0**62:
        known[0] = min(low, 0)
        return
    for i in range(len(values)):
        bits = np.float64(values[i]).view(np.uint64)
        mantissa = bits & _MANTISSA
        exponent = np.int64((bits >> np.uint64(52)) & np.uint64(2047))
        if exponent > 0:
            mantissa |= _HIDDEN
            exponent -= 1
        if mantissa == np.uint64(0):
            continue
        exponent += LOWEST
        if exponent + 52 < low:  # no lower bit can be wanted than its own
            low = exponent
        elif exponent < low:
            lowest = mantissa & (~mantissa + np.uint64(1))
            bit = exponent + np.int64(np.float64(lowest).view(np.uint64) >> np.uint64(52)) - 1023
            if bit < low:
                low = bit
    known[0] = low


def fitted(words: int, lowest: int, high: int, values: Floats, most: int) -> tuple[int, int, int]:
    """The words, the lowest bit and the highest bit of any number, of sums that these numbers come to.

    words, lowest, high: as they are. most: numbers that a sum has at most, these among them.
    """
    known = np.array([lowest, high])
    reach(np.require(values, np.float64, ["C", "W"]), known)  # one type of arrays for the kernel
    low, high = known.tolist()
    room = most.bit_length() + 1
    if low < lowest or high + room > lowest + 64 * words:
        need = high - low + room + 4
        words = min(-(-need // 64), MOST_WORDS)
        lowest = 0 if low >= 0 else max(low - (64 * words - need) // 2, LOWEST)
        if high + room > lowest + 64 * words:
            words += 1
    return words, lowest, high


@uncounted_kernel
def rescale(old: Ints, first: int, last: int, new: Ints, to: int, end: int, shift: int) -> None:
    """Copy the sums in old[:, first:last] to new[:, to:end], `shift` bits higher. There is room for them."""
    whole, rest = shift >> 6, np.uint64(shift & 63)
    for s in range(len(old)):
        sign = np.int64(-1) if old[s, last - 1] < 0 else np.int64(0)
        for i in range(to, end):
            j = first + (i - to) - whole  # the old word whose lower bits come here
            word = sign if j >= last else (np.int64(0) if j < first else old[s, j])
            below = sign if j - 1 >= last else (np.int64(0) if j - 1 < first else old[s, j - 1])
            if rest > np.uint64(0):
                word = np.int64((np.uint64(word) << rest) | (np.uint64(below) >> (np.uint64(64) - rest)))
            new[s, i] = word
