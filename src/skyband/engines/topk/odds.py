"""The number of candidates that PA needs, and the size of a skyband (pripuzic2015, sections 4.1 and 4.2, appendix).

All of it is for streams in random order. Put the n objects of a window and the n - 1 that will outlive the newest of
them in one random order, and let Z be how many of the window's come before the k-th of the later ones. The newest,
of rank l, is in the top k at its last step if Z >= l. So its chance is a tail of Z, and a sum of chances over ranks is
a second tail of the same terms: one walk from the small end gives both.

Cost: O(sqrt(k)·log(n/sigma)) for a limit, under 10 ms for n = 10^9 and k = 10^5; then it is remembered.

Errata: Eq. 8 (last form) and Eq. 9 divide by C(2n-2, l+l'-2). Footnote 4 misprints Eq. 13. Table V's rule breaks the
bound of Definition 4.5 for larger k. Definition 4.5 leaves rank l out by the sum over the ranks below it; Lemma 4.6
needs the sum with l in it, and that is what `candidates` keeps below sigma. Lemma 4.6 counts those ignored on arrival,
not candidates pushed out later: up to most of the misses, but all together are a tenth of its bound or less (measured).
Lemma 4.9's n' lacks the top k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

from skyband.engines.size import harmonic

_MARGIN = 1e-9  # sums are right to about 1e-11; a limit must not be too small because of that


def first_convex_rank(n: int, k: int) -> int:
    """The first rank for which Theorem 4.4 holds (Table X); n if there is none.

    >>> first_convex_rank(10**4, 100)
    126
    """
    return min(n, _above_l(n, k))


def chance_at_last(l: int, n: int, k: int) -> float:  # noqa: E741, the paper's name
    """p(E_last): an arrival of rank l is in the top k just before it expires (Eq. 8, summed over the top k).

    It is P(Y <= k-1) for Y ~ BetaBin(n-1, l, n-l+1), the same as P(Z >= l).
    """
    assert 1 <= l <= n and k >= 1, "a rank in the window"
    if k >= n:
        return 1.0
    if l > k:
        return _at_least(l, k, n, n - 1)
    return 1 - _at_least(k, l, n - 1, n)  # fewer than k later ones come before the l-th of the window


def p_practice(l: int, n: int, k: int) -> float:  # noqa: E741
    """Theorem 4.4: no smaller than the chance that an arrival of rank l is ever in the top k. It can exceed 1."""
    return n / 2 * chance_at_last(l, n, k)


@cache
def candidates(n: int, k: int, sigma: float) -> int:
    """The fewest candidates so that the p_practice of all ranks that are left out sum to less than sigma.

    Ranks up to L (Eq. 13) are never left out. This is what Lemma 4.6 needs of Definition 4.5.

    >>> candidates(10**4, 500, 0.001), table_v(10**4, 500, 0.001)
    (180, 172)
    """
    if k >= n:
        return 0
    least = _least_kept(n, k)
    bound = math.log(sigma) + math.log(2 / n) - _MARGIN
    for rank, _, beyond, unit in _inward(n, k, sigma):
        if rank <= least:
            break
        if beyond >= math.exp(bound - unit):  # leaving out this rank too is too much
            return rank - k
    return least - k


@cache
def table_v(n: int, k: int, sigma: float) -> int:
    """Table V: up to the first rank above L whose p_practice is below sigma/2. Too few for larger k.

    >>> table_v(10**6, 1, 0.001)
    28
    """
    if k >= n:
        return 0
    least = _least_kept(n, k)
    bound = math.log(sigma / 2) + math.log(2 / n)
    for rank, chance, _, unit in _inward(n, k, sigma):
        if rank <= least:
            break
        if chance >= math.exp(bound - unit):
            return rank - k
    return least - k


def misses(sigma: float, N: int, n: int) -> float:
    """Lemma 4.6: fewer objects than this are missed in N arrivals, on average."""
    return sigma * N / n


def false_ones(sigma: float, N: int, n: int) -> float:
    """Lemma 4.6: fewer objects than this are reported wrongly in N arrivals, on average."""
    return 1.5 * sigma * N / n


def strict_size(n: int, k: int) -> float:
    """Objects in a k-skyband, on average.

    >>> round(strict_size(1000, 10), 1)
    55.6
    """
    return k + k * (harmonic(n) - harmonic(k)) if n > k else float(n)


def relaxed_size(n: int, k: int, gamma: float) -> float:
    """Objects in a relaxed k-skyband, on average (Lemma 4.9): half of gamma more candidates than needed."""
    strict = strict_size(n, k)
    return strict + gamma / 2 * max(0.0, strict - k)


# --- the ranks that Theorem 4.4 does not cover


def _above_l(n: int, k: int) -> int:
    """The first rank above L (Eq. 13), in whole numbers; it may be more than n."""
    if k >= n:
        return n + 1
    # concave in k, and not negative for k = 1 and k = n - 1: a root exists
    square = 3 * (-8 * k * k * n + 4 * k * k + 8 * k * n * n + 4 * k * n - 4 * k - 5 * n * n - 2 * n + 3)
    return (3 * n - 4 * k + 2 * k * n + 3 + math.isqrt(square)) // (2 * n + 2) + 1


def _least_kept(n: int, k: int) -> int:
    """The last rank that is kept whatever sigma is."""
    return min(n, max(k, _above_l(n, k) - 1))


# --- Z: how many of A objects come before the r-th of B others in random order


def _inward(n: int, k: int, sigma: float) -> Iterator[tuple[int, float, float, float]]:
    """From a rank that hardly matters up to rank k + 1: rank, P(Z >= rank), its sum over this and all lower ranks.

    Both are in units of exp(the fourth).
    """
    # all that is beyond the start is less than n² times its first term
    enough = math.log(sigma) - 3 * math.log(n) - 40
    low, start = k, n
    while start - low > 1:  # unimodal, and not small at the mean, which is k
        middle = (low + start) // 2
        if _log_chance(middle, k, n, n - 1) < enough:
            start = middle
        else:
            low = middle
    unit = _log_chance(start, k, n, n - 1)
    term, chance, beyond = 1.0, 0.0, 0.0
    for rank in range(start, k, -1):
        chance += term
        beyond += chance
        yield rank, chance, beyond, unit
        term *= rank * (2 * n - rank - k) / ((rank + k - 1) * (n - rank + 1))


def _at_least(a: int, r: int, A: int, B: int) -> float:
    """P(Z >= a), for an a that is not below the mean."""
    terms, total = [1.0], 1.0
    for j in range(a, A):
        growth = (j + r) * (A - j) / ((j + 1) * (A + B - j - r))
        terms.append(terms[-1] * growth)
        total += terms[-1]
        if growth < 1 and terms[-1] < 1e-18 * total * (1 - growth):
            break
    return min(1.0, math.exp(_log_chance(a, r, A, B)) * sum(reversed(terms)))


def _log_chance(a: int, r: int, A: int, B: int) -> float:
    """The logarithm of P(Z = a): a of A and r - 1 of B come first, then one of B.

    Of logarithms of factorials near 10^10 only five digits would be left after the point. So the terms x·log(x) are
    taken together, as cells of a 2×2 table against what is expected of them; their distance is the same for all four.
    """
    drawn, left = a + r - 1, A + B - a - r + 1
    apart = (a * (B - r + 1) - (r - 1) * (A - a)) / (A + B)
    log = _beyond_powers(drawn) + _beyond_powers(left) + _beyond_powers(A) + _beyond_powers(B) - _beyond_powers(A + B)
    for cell, row, column, way in (
        (a, drawn, A, apart),
        (r - 1, drawn, B, -apart),
        (A - a, left, A, -apart),
        (B - r + 1, left, B, apart),
    ):
        expected = row * column / (A + B)
        if cell:
            part = way / expected  # -1, rounded, where a few are found of more than 2^53
            log -= cell * (math.log1p(part) if part > -1 else math.log(cell / expected)) - way
        else:
            log -= expected
        log -= _beyond_powers(cell)
    return log + math.log((B - r + 1) / left)


def _beyond_powers(x: int) -> float:
    """log(x!) - x·log(x) + x."""
    if x < 20:
        return math.lgamma(x + 1) - x * math.log(x) + x if x else 0.0
    return (
        math.log(2 * math.pi * x) / 2 + (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * x * x)) / (x * x)) / (x * x)) / x
    )
