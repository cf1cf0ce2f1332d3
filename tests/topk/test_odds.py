"""The chances of pripuzic2015: its tables cell by cell, exact fractions, and the bound that the limit must keep."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import examples
from skyband.engines.size import harmonic
from skyband.engines.topk import odds

K = (1, 2, 5, 10, 20, 50, 100, 200, 500)
TABLE_V = {  # sigma = 0.001
    10**3: (18, 21, 26, 32, 40, 56, 72, 91, 106),
    10**4: (22, 25, 30, 37, 46, 65, 86, 116, 172),
    10**5: (25, 28, 34, 41, 51, 72, 95, 128, 192),
    10**6: (28, 32, 38, 46, 56, 78, 103, 138, 207),
}
TABLE_X = {
    10**3: (4, 7, 12, 19, 33, 69, 125, 232, 539),
    10**4: (4, 7, 12, 19, 33, 69, 126, 236, 555),
    10**5: (4, 7, 12, 19, 33, 69, 126, 237, 557),
    10**6: (4, 7, 12, 19, 33, 69, 126, 237, 557),
}
HONEST_MORE = {  # what Definition 4.5 needs on top of Table V
    10**3: (0, 0, 0, 0, 1, 1, 2, 3, 3),
    10**4: (0, 0, 1, 0, 1, 1, 3, 4, 8),
    10**5: (0, 0, 0, 1, 1, 1, 2, 3, 8),
    10**6: (0, 0, 0, 0, 1, 1, 2, 3, 7),
}
CELLS = [(n, k, column) for n in TABLE_V for column, k in enumerate(K)]

windows = st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n + 2)))
long_windows = st.integers(2, 10**9).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, min(n - 1, 3000))))
sigmas = st.floats(1e-12, 1, exclude_max=True) | st.integers(-300, -1).map(lambda power: 10.0**power)


@cache
def exact_chance(l: int, n: int, k: int) -> Fraction:  # noqa: E741
    """Eq. 8 in its first form, summed over l' = 1..k."""
    ways = sum(math.comb(l + m - 2, m - 1) * math.comb(2 * n - l - m, n - m) for m in range(1, min(k, n) + 1))
    return Fraction(n * ways, (2 * n - 1) * math.comb(2 * n - 2, n - 1))


def exact_left_out(n: int, k: int, limit: int) -> Fraction:
    return Fraction(n, 2) * sum((exact_chance(rank, n, k) for rank in range(k + limit + 1, n + 1)), Fraction(0))


def left_out(n: int, k: int, limit: int) -> float:
    """The same in floats: from the first rank left out, as long as it matters."""
    chances: list[float] = []
    for rank in range(k + limit + 1, n + 1):
        chances.append(odds.p_practice(rank, n, k))
        if chances[-1] <= 1e-13 * chances[0]:
            break
    return math.fsum(chances)


def by_eq_13(l: int, n: int, k: int) -> bool:  # noqa: E741
    """Whether rank l is above L: the inequality of Lemma A.2 itself, before it was solved."""
    last = Fraction(1, 2 * n - 1)
    falls = Fraction((n - l) * (n - k), 2 * n - l - k) + Fraction((l - 1) * (k - 1), l + k - 2)
    return last - falls / (n - 1) ** 2 > last / (n - 1)


@pytest.mark.parametrize(("n", "k", "column"), CELLS)
def test_table_v(n: int, k: int, column: int) -> None:
    assert odds.table_v(n, k, 0.001) == TABLE_V[n][column]


@pytest.mark.parametrize(("n", "k", "column"), CELLS)
def test_table_x(n: int, k: int, column: int) -> None:
    assert odds.first_convex_rank(n, k) == TABLE_X[n][column]


@pytest.mark.parametrize(("n", "k", "column"), CELLS)
def test_the_honest_limit_is_table_v_and_a_little_more(n: int, k: int, column: int) -> None:
    limit = odds.candidates(n, k, 0.001)
    assert limit == TABLE_V[n][column] + HONEST_MORE[n][column]
    assert left_out(n, k, limit) < 0.001 <= left_out(n, k, limit - 1)


def test_table_v_breaks_the_bound_it_promises() -> None:
    assert (odds.candidates(10**4, 500, 0.001), odds.table_v(10**4, 500, 0.001)) == (180, 172)
    assert left_out(10**4, 500, 172) > 0.002


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 12, 25])
def test_chance_at_last_is_exact(n: int) -> None:
    for k in range(1, n + 2):
        for rank in range(1, n + 1):
            exact = exact_chance(rank, n, k)
            assert odds.chance_at_last(rank, n, k) == pytest.approx(float(exact), rel=1e-12)
            assert odds.p_practice(rank, n, k) == pytest.approx(float(exact * n / 2), rel=1e-12)


@pytest.mark.parametrize(("l", "n", "k"), [(60, 3000, 20), (700, 2000, 500), (2000, 2000, 1), (1990, 2000, 1980)])
def test_chance_at_last_is_exact_in_long_windows(l: int, n: int, k: int) -> None:  # noqa: E741
    assert odds.chance_at_last(l, n, k) == pytest.approx(float(exact_chance(l, n, k)), rel=1e-11)


def test_huge_windows_keep_their_digits() -> None:
    n, k, rank = 10**9, 3, 40  # the product of the factors, one by one
    exact = sum(
        Fraction(math.comb(rank - 1 + y, y) * math.perm(n, rank) * math.perm(n - 1, y), math.perm(2 * n - 1, rank + y))
        for y in range(k)
    )
    assert odds.chance_at_last(rank, n, k) == pytest.approx(float(exact), rel=1e-12)


@examples(200)
@given(windows, st.data())
def test_chances_fall_with_the_rank_and_rise_with_k(window: tuple[int, int], data: st.DataObject) -> None:
    n, k = window
    rank = data.draw(st.integers(1, n))
    chance = odds.chance_at_last(rank, n, k)
    assert 0 < chance <= 1
    assert chance <= odds.chance_at_last(rank, n, k + 1) * (1 + 1e-12)
    if rank < n:
        assert odds.chance_at_last(rank + 1, n, k) <= chance * (1 + 1e-12)


@examples(300)
@given(windows, sigmas)
def test_the_limit_is_the_least_that_keeps_the_bound(window: tuple[int, int], sigma: float) -> None:
    n, k = window
    limit = odds.candidates(n, k, sigma)
    assert 0 <= limit <= max(0, n - k)
    assert exact_left_out(n, k, limit) < sigma
    assert all(by_eq_13(rank, n, k) for rank in range(k + limit + 1, n + 1))
    if limit:
        assert exact_left_out(n, k, limit - 1) >= sigma or not by_eq_13(k + limit, n, k)


@examples(60)
@given(long_windows, sigmas)
def test_the_limit_keeps_the_bound_in_long_windows(window: tuple[int, int], sigma: float) -> None:
    n, k = window
    limit = odds.candidates(n, k, sigma)
    assert left_out(n, k, limit) < sigma
    if limit:
        assert left_out(n, k, limit - 1) >= sigma * (1 - 1e-8) or not by_eq_13(k + limit, n, k)


@examples(200)
@given(long_windows, sigmas, sigmas)
def test_limits_fall_as_sigma_rises(window: tuple[int, int], one: float, other: float) -> None:
    few, many = max(one, other), min(one, other)
    for limit in (odds.candidates, odds.table_v):
        assert limit(*window, few) <= limit(*window, many)


@examples(200)
@given(windows)
def test_the_first_convex_rank_solves_lemma_a2(window: tuple[int, int]) -> None:
    n, k = window
    rank = odds.first_convex_rank(n, k)
    if k >= n:
        assert rank == n
        return
    assert 1 < rank <= n
    assert rank == n or by_eq_13(rank, n, k)
    assert rank <= k + 1 or not by_eq_13(rank - 1, n, k)


@pytest.mark.parametrize("sigma", [1e-300, 0.001, 0.999])
def test_a_window_that_fits_into_the_top_k_has_no_candidates(sigma: float) -> None:
    for n, k in ((1, 1), (1, 10), (5, 5), (5, 6)):
        assert odds.candidates(n, k, sigma) == odds.table_v(n, k, sigma) == 0
    assert odds.candidates(6, 5, sigma) == 1


@pytest.mark.parametrize("k", [1, 10**3, 10**5])
def test_limits_of_huge_windows_are_quick(k: int) -> None:
    begin = perf_counter()
    assert odds.table_v(10**9, k, 1.25e-3) <= odds.candidates(10**9, k, 1.25e-3) < 4000
    assert perf_counter() - begin < 1  # some 10 ms; the machine may be busy


def test_errors_of_lemma_4_6() -> None:
    assert odds.misses(0.001, 10**6, 40_000) == pytest.approx(0.025)  # section 8.1 has 0.25
    assert odds.false_ones(0.001, 10**6, 40_000) == pytest.approx(0.0375)


def test_sizes() -> None:
    assert odds.strict_size(4, 10) == odds.relaxed_size(4, 10, 0.5) == 4
    assert odds.strict_size(10, 10) == 10
    strict = 10 + 10 * float(sum(Fraction(1, i) for i in range(11, 1001)))
    assert odds.strict_size(1000, 10) == pytest.approx(strict, rel=1e-9)
    assert odds.relaxed_size(1000, 10, 0.4) == pytest.approx(1.2 * strict - 0.2 * 10, rel=1e-9)
    assert odds.relaxed_size(1000, 10, 0) == odds.strict_size(1000, 10)


@pytest.mark.parametrize("n", [1, 2, 99, 100, 101, 5000])
def test_harmonic(n: int) -> None:
    assert harmonic(n) == pytest.approx(math.fsum(1 / i for i in range(1, n + 1)), rel=1e-10)


def test_strict_size_is_that_of_skybands_in_random_order() -> None:
    n, k = 1000, 10
    scores = np.random.default_rng(7).random((400, n))
    best = np.sort(scores[:, :k], axis=1)  # column 0 is the newest: who is among the k best so far is in the skyband
    sizes = np.full(len(scores), float(k))
    for column in range(k, n):
        enters = scores[:, column] > best[:, 0]
        sizes += enters
        best[enters, 0] = scores[enters, column]
        best[enters] = np.sort(best[enters], axis=1)
    assert sizes.mean() == pytest.approx(odds.strict_size(n, k), abs=4 * sizes.std() / len(sizes) ** 0.5)
    assert sizes.mean() == pytest.approx(55.8, abs=1)
