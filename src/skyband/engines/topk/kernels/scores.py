"""Keys of many scorings of one family from the attributes of objects: what `query/scoring.py` computes, in blocks.

Terms are taken in the order given, with no fused or reordered arithmetic, so a key is the same bits as there. A key is
larger for the better object: the score, or its negative where the smallest is best.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from skyband.kernels.compile import uncounted
from skyband.query.scoring.forms import CHEBYSHEV, EUCLIDEAN, LINEAR, PRODUCT, QUADRATIC

Records = NDArray[Any]


class LaneScorings(NamedTuple):
    """The scorings of a family, one per lane."""

    form: int
    turned: bool  # the smallest score is best
    points: Records  # one row each: weights of a linear form, or the point of a distance
    weights: Records  # of a distance; no columns: none


@uncounted
def keys_of(scorings: LaneScorings, s: int, data: Records, low: int, high: int, keys: Records) -> None:
    """The keys of objects low..high for scoring s."""
    form, turned, points, weights = scorings
    for j in range(points.shape[1]):
        at, column, fresh = points[s, j], data[j, low:high], j == 0
        weight = weights[s, j] if weights.shape[1] else 1.0
        if form == LINEAR:
            for i in range(len(column)):
                keys[i] = at * column[i] if fresh else keys[i] + at * column[i]
        elif form == QUADRATIC:
            for i in range(len(column)):
                square = at * (column[i] * column[i])
                keys[i] = square if fresh else keys[i] + square
        elif form == PRODUCT:
            for i in range(len(column)):
                keys[i] = at + column[i] if fresh else keys[i] * (at + column[i])
        elif form == EUCLIDEAN and weights.shape[1] == 0:
            for i in range(len(column)):
                away = column[i] - at
                keys[i] = away * away if fresh else keys[i] + away * away
        else:
            for i in range(len(column)):
                away = column[i] - at
                away = weight * (away * away if form == EUCLIDEAN else abs(away))
                if fresh:
                    keys[i] = away
                else:
                    keys[i] = max(keys[i], away) if form == CHEBYSHEV else keys[i] + away
    if turned:
        for i in range(high - low):
            keys[i] = -keys[i]


@uncounted
def key_of(scorings: LaneScorings, s: int, data: Records, i: int) -> float:
    """The key of one object."""
    form, turned, points, weights = scorings
    key = 0.0
    weighted = weights.shape[1] > 0
    for j in range(points.shape[1]):
        x = data[j, i]
        if form == LINEAR:
            x = points[s, j] * x
        elif form == QUADRATIC:
            x = points[s, j] * (x * x)
        elif form == PRODUCT:
            x = points[s, j] + x
        else:
            x = x - points[s, j]
            x = x * x if form == EUCLIDEAN else abs(x)
            if weighted:
                x = weights[s, j] * x
        if j == 0:
            key = x
        elif form == CHEBYSHEV:
            key = max(key, x)
        elif form == PRODUCT:
            key = key * x
        else:
            key = key + x
    return -key if turned else key


@uncounted
def best_term(scorings: LaneScorings, s: int, j: int, low: float, high: float) -> float:
    """The term of dimension j that makes the key largest, for attributes from low to high; no product has one."""
    form, turned, points, weights = scorings
    at = points[s, j]
    if form == LINEAR:
        return 0.0 if at == 0 else at * (high if (at > 0) != turned else low)
    if form == QUADRATIC:
        least = 0.0 if low <= 0 <= high else min(low * low, high * high)
        return 0.0 if at == 0 else at * (max(low * low, high * high) if (at > 0) != turned else least)
    below, above = low - at, high - at
    if turned:  # the nearest point of the interval
        away = below if below > 0 else (above if above < 0 else 0.0)
    else:
        away = max(abs(below), abs(above))
    away = away * away if form == EUCLIDEAN else abs(away)
    if weights.shape[1]:
        away = weights[s, j] * away if weights[s, j] > 0 else 0.0
    return away


@uncounted
def join_terms(form: int, total: float, term: float) -> float:
    """A sum, but for the metric that takes the largest."""
    return max(total, term) if form == CHEBYSHEV else total + term
