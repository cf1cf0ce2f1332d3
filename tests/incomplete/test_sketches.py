"""Sketches against exact counts: their error, and that what has expired is forgotten."""

from __future__ import annotations

import numpy as np
import pytest

from skyband.engines.incomplete.sketches import Sketches


def _seen(sketches: Sketches, ids: np.ndarray, part: int, stamps: np.ndarray) -> None:
    sketches.observe(ids.astype(np.int64), np.full(len(ids), part), stamps.astype(np.int64))


@pytest.mark.parametrize("distinct", [10, 100, 300, 1000, 3000, 30_000])
def test_distinct_ids_are_counted_with_a_small_error(distinct: int) -> None:
    errors = []
    for seed in range(8):
        sketches = Sketches(1, 10**6, seed, repeats=False)
        ids = np.random.default_rng(seed).integers(0, distinct, 4 * distinct)
        _seen(sketches, ids, 0, np.arange(len(ids)))
        errors.append(sketches.distinct(1, len(ids)) / len(np.unique(ids)) - 1)
    assert np.sqrt(np.mean(np.square(errors))) < 0.12
    assert abs(np.mean(errors)) < 0.08


def test_what_has_expired_is_not_counted() -> None:
    sketches = Sketches(1, 1000, 0, repeats=True)
    _seen(sketches, np.arange(1000), 0, np.arange(1000))
    _seen(sketches, np.repeat(np.arange(5000, 5250), 4), 0, np.arange(5000, 6000))
    assert 210 < sketches.distinct(1, 5999) < 290
    assert 3.4 < sketches.repeats(5999)[0] < 4.6
    assert sketches.distinct(1, 10**6) == 0


def test_odds_are_those_of_the_streams() -> None:
    rng = np.random.default_rng(1)
    sketches = Sketches(3, 10**5, 3, repeats=False)
    a = np.arange(2000)
    b = np.concatenate([a[:1200], np.arange(5000, 5800)])  # 60 % of a come in b too
    c = rng.permutation(np.concatenate([b[:600], np.arange(9000, 9100)]))
    for part, ids in enumerate((a, b, c)):
        _seen(sketches, ids, part, np.arange(len(ids)))
    odds = sketches.odds(5000)
    assert abs(odds[0b001, 1] - 0.6) < 0.12
    assert abs(odds[0b011, 2] - 0.5) < 0.2
    assert abs(odds[0b100, 0] - 600 / 700) < 0.2
    many = Sketches(8, 10**5, 3, repeats=False)
    for part, ids in enumerate((a, b)):
        _seen(many, ids, part, np.arange(len(ids)))
    assert abs(many.odds(5000)[0, 1] - 0.6) < 0.12


@pytest.mark.parametrize("often", [1, 3, 10])
def test_repeats_are_estimated_from_the_self_join(often: int) -> None:
    """Zipf-free: every id comes equally often, so self-join / rows is that number."""
    found = []
    for seed in range(5):
        sketches = Sketches(2, 4000, seed, repeats=True)
        ids = np.random.default_rng(seed).permutation(np.repeat(np.arange(3000 // often), often))
        _seen(sketches, ids, 1, np.arange(len(ids)))
        found.append(sketches.repeats(len(ids))[1])
    assert abs(np.mean(found) / often - 1) < 0.25
