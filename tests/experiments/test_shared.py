"""The rebuilt algorithms of benchmarks/shared.py against the definition, slide by slide, with many equal scores."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import shared
from hypothesis import given, settings
from hypothesis import strategies as st

SCORES = st.lists(st.integers(0, 6), min_size=1, max_size=60)


def best(scores: np.ndarray, end: int, n: int, k: int) -> list[int]:
    """The numbers of the k best of the n before `end`; the newer first among equals."""
    valid = range(max(0, end - n), end)
    return sorted(valid, key=lambda number: (-scores[number], -number))[:k]


@settings(deadline=None)  # kernels are compiled
@given(SCORES, st.integers(1, 5), st.integers(1, 4), st.integers(1, 5))
def test_predictions_are_the_answers(listed: list[int], k: int, slide: int, windows: int) -> None:
    scores = np.array(listed, float)
    state = shared.new_predictions(k, windows)
    for begin in range(0, len(scores) - slide + 1, slide):
        answer, kept = shared.predict(state, k, scores[begin : begin + slide], begin)
        assert answer.tolist() == best(scores, begin + slide, slide * windows, k)
        assert kept <= k * windows


@settings(deadline=None)  # kernels are compiled
@given(SCORES, st.lists(st.tuples(st.integers(1, 5), st.integers(1, 25)), min_size=1, max_size=5), st.integers(1, 7))
def test_answers_of_all_queries_come_from_one_band(
    listed: list[int], queries: list[tuple[int, int]], slide: int
) -> None:
    scores = np.array(listed, float)
    ks, ns = (np.array(column) for column in zip(*queries, strict=True))
    last, held = np.full((len(ks), ks.max()), -1), np.zeros(len(ks), np.int64)
    state = shared.Band(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    marks, answers = np.full((2, len(scores)), -1), [set[int]() for _ in queries]
    for begin in range(0, len(scores), slide):
        end = min(begin + slide, len(scores))
        state = shared.band_of(state, scores[begin:end], begin, shared.reaches(ks, ns))
        for q, number, diff in shared.read_answers(state.numbers, ks, ns, end, last, held, marks).T.tolist():
            assert (number in answers[q]) == (diff < 0)
            answers[q] ^= {number}
        for q, (k, n) in enumerate(queries):
            assert last[q, : held[q]].tolist() == best(scores, end, n, k)
            assert answers[q] == set(best(scores, end, n, k))
        needed = {number for q, (k, n) in enumerate(queries) for number in best(scores, end, n, k)}
        assert needed <= set(state.numbers.tolist())


def test_a_band_holds_no_more_than_any_query_needs() -> None:
    """Of two queries, k = 1 over 100 and k = 10 over 10: an old object with one above it is not kept."""
    reach = shared.reaches(np.array([1, 10]), np.array([100, 10]))
    assert reach.tolist() == [100] + [10] * 9


@pytest.mark.parametrize("k", [1, 3])
def test_falling_scores_are_all_predicted(k: int) -> None:
    state = shared.new_predictions(k, 4)
    for begin in range(0, 40, 5):
        answer, kept = shared.predict(state, k, -np.arange(begin, begin + 5.0), begin)
        first = max(0, begin - 15)
        assert answer.tolist() == list(range(first, first + k))
    assert kept == 3 * k  # of each slide that stays
