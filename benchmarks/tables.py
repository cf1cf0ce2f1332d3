"""Computed, not measured: the tables of pripuzic2015, and the probabilities behind its Figure 13."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.odds import candidates, first_convex_rank, table_v

SIZES = (10**3, 10**4, 10**5, 10**6)
KS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
SIGMA = 0.001

# as printed
TABLE_V = (
    (18, 21, 26, 32, 40, 56, 72, 91, 106),
    (22, 25, 30, 37, 46, 65, 86, 116, 172),
    (25, 28, 34, 41, 51, 72, 95, 128, 192),
    (28, 32, 38, 46, 56, 78, 103, 138, 207),
)
TABLE_X = (
    (4, 7, 12, 19, 33, 69, 125, 232, 539),
    (4, 7, 12, 19, 33, 69, 126, 236, 555),
    (4, 7, 12, 19, 33, 69, 126, 237, 557),
    (4, 7, 12, 19, 33, 69, 126, 237, 557),
)


def pripuzic2015() -> str:
    """Tables V and X, and the limits that keep what Table V promises."""
    limits = [[table_v(n, k, SIGMA) for k in KS] for n in SIZES]
    honest = [[candidates(n, k, SIGMA) for k in KS] for n in SIZES]
    ranks = [[first_convex_rank(n, k) for k in KS] for n in SIZES]
    parts = [
        "pripuzic2015, Tables V and X. Computed by `skyband.engines.topk.odds`, written by `benchmarks.plot`.",
        f"**Table V**: most candidates of a probabilistic k-skyband, σ = {SIGMA}, by the paper's rule. "
        + _against(limits, TABLE_V),
        _grid(limits),
        "**What PA keeps**: the fewest candidates for which the sum over all ranks left out stays below σ "
        f"(Lemma 4.6 needs this; Table V's rule keeps fewer in {_count(limits, honest)} of {_cells()} cells).",
        _grid(honest),
        "**Table X**: the first rank from which the chance to be in the top k grows and is convex. "
        + _against(ranks, TABLE_X),
        _grid(ranks),
    ]
    return "\n\n".join(parts) + "\n"


def rank_chances(l: int, n: int, s: int) -> NDArray[np.float64]:  # noqa: E741, the paper's name
    """p_rank(l, l', n, s) for l' = 0 ... n: an object of initial rank l has rank l' at step s (Lemma 4.3). O(s·l).

    l' = l - x + y: x of the s dropped were before it (Eq. 5), y of the s that arrived are (Eq. 6).
    """
    assert 1 <= l <= n and 0 <= s < n, "a rank in the window, before the object expires"
    drop = np.array([_drop(l, n, s, x) for x in range(min(s, l - 1) + 1)])
    arrival = np.array([_arrival(l, n, s, y) for y in range(s + 1)])
    chances = np.zeros(n + 1)
    together = np.convolve(drop[::-1], arrival)  # index: y - x + (len(drop) - 1)
    first = l - (len(drop) - 1)
    last = min(n, first + len(together) - 1)  # it cannot be below the last place
    chances[first : last + 1] = together[: last - first + 1]
    return chances


def _drop(l: int, n: int, d: int, x: int) -> float:  # noqa: E741
    """Eq. 5."""
    return _exp(_choose(l - 1, x) + _choose(n - l, d - x) - _choose(n - 1, d))


def _arrival(l: int, n: int, a: int, y: int) -> float:  # noqa: E741
    """Eq. 6."""
    return n / (n + a) * _exp(_choose(l - 1 + y, y) + _choose(n - l + a - y, a - y) - _choose(n + a - 1, a))


def _choose(of: int, some: int) -> float:
    """The logarithm of a binomial coefficient; -inf where it is 0."""
    if not 0 <= some <= of:
        return -math.inf
    return math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)


def _exp(log: float) -> float:
    return math.exp(log) if log > -math.inf else 0.0


def _grid(values: list[list[int]]) -> str:
    lines = [["n \\ k", *map(str, KS)], ["---:"] * (len(KS) + 1)]
    lines += [[f"10^{len(str(n)) - 1}", *map(str, row)] for n, row in zip(SIZES, values, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _against(values: list[list[int]], printed: tuple[tuple[int, ...], ...]) -> str:
    wrong = _count(values, [list(row) for row in printed])
    return f"Of the paper's {_cells()} cells, {_cells() - wrong} are the same."


def _count(these: list[list[int]], those: list[list[int]]) -> int:
    return int((np.array(these) != np.array(those)).sum())


def _cells() -> int:
    return len(SIZES) * len(KS)


TABLES: dict[str, Callable[[], str]] = {"pripuzic2015": pripuzic2015}
