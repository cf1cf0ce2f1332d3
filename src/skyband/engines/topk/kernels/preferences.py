"""What one object is worth to one query, and what the best object of a box could be worth (mouratidis2006, section 3).

Objects are rows of attributes here, since engines of a grid look at one at a time. Terms are taken in the order given,
so a key is the same bits as in `skyband.scoring`. A bound goes through the same operations at the ends of intervals:
each of them is monotone in float64, so no key of a box is above its bound.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from skyband.kernels.compile import inlined, part
from skyband.query.scoring.forms import CHEBYSHEV, EUCLIDEAN, LINEAR, PRODUCT, QUADRATIC

Records = NDArray[Any]


@inlined
def key_at(form: int, turned: bool, points: Records, weights: Records, s: int, data: Records, i: int) -> float:
    """The key of object i for scoring s: larger is better."""
    key = 0.0
    for j in range(points.shape[1]):
        x, at = data[i, j], points[s, j]
        if form == LINEAR:
            x = at * x
        elif form == PRODUCT:
            x = at + x
        elif form == QUADRATIC:
            x = at * (x * x)
        else:
            x = x - at
            x = weights[s, j] * (x * x if form == EUCLIDEAN else abs(x))
        if j == 0:
            key = x
        elif form == PRODUCT:
            key = key * x
        elif form == CHEBYSHEV:
            key = max(key, x)
        else:
            key = key + x
    return -key if turned else key


@part
def best_term(form: int, turned: bool, at: float, weight: float, low: float, high: float, signed: bool) -> float:
    """The term of one attribute between low and high that makes the key largest.

    signed: some factor of a product may be below zero, so that only sizes can be compared.
    """
    if form == LINEAR:
        return at * (high if (at > 0) != turned else low)
    if form == PRODUCT:
        below, above = at + low, at + high
        return max(abs(below), abs(above)) if signed else (below if turned else above)
    if form == QUADRATIC:
        least = 0.0 if low <= 0 <= high else min(low * low, high * high)
        return at * (max(low * low, high * high) if (at > 0) != turned else least)
    below, above = low - at, high - at
    if turned:  # the nearest point of the interval
        away = below if below > 0 else (above if above < 0 else 0.0)
    else:
        away = max(abs(below), abs(above))
    return weight * (away * away if form == EUCLIDEAN else abs(away))


@inlined
def join_terms(form: int, total: float, term: float) -> float:
    """As terms are joined in a key."""
    if form == PRODUCT:
        return total * term
    return max(total, term) if form == CHEBYSHEV else total + term
