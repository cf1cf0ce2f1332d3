"""Keys of single objects, and the best key that an object of a box could have (mouratidis2006, section 3).

Objects are rows of attributes here, since these engines look at one object at a time. Terms are taken in the order
given, so a key has the same bits as in `skyband.query.scoring`. A bound goes through the same operations at the ends
of intervals: each of them is monotone in float64, so no key of a box is above its bound. O(d) each.
"""

from __future__ import annotations

from skyband.engines.topk.kernels.window_state import Queries, Records
from skyband.kernels.compile import inlined, uncounted
from skyband.query.scoring.forms import CHEBYSHEV, EUCLIDEAN, EXPRESSION, LINEAR, PRODUCT, QUADRATIC


@inlined
def key_at(queries: Queries, s: int, data: Records, i: int) -> float:
    """The key of object i for query s: larger is better; of an expression, it came with the object."""
    form, points, weights = queries.form, queries.points, queries.weights
    if form == EXPRESSION:
        return float(data[i, points.shape[1] + queries.specs[s]["column"]])
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
    return -key if queries.turned else key


@uncounted
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
    """Join terms as a key does."""
    if form == PRODUCT:
        return total * term
    return max(total, term) if form == CHEBYSHEV else total + term
