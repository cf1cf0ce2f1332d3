"""Checks of benchmark answers: a wrong answer must be noticed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import checks, tables, yardsticks
from benchmarks.workloads import WORKLOADS, Stream, query_points, sites, weights


def test_best_of_last_by_hand() -> None:
    #  key 0:  5 . 9 . 5     last 2: 9 5
    #  key 1:  . 1 . 1 .     the newer of equals first
    stream: Stream = {"key": np.array([0, 1, 0, 1, 0]), "score": np.array([5.0, 1, 9, 1, 5])}
    best = checks.best_of_last(stream, n=2, k=2)
    assert (best.group.tolist(), best.id.tolist(), best.score.tolist()) == ([0, 0, 1, 1], [1, 2, 1, 0], [9, 5, 1, 1])
    assert checks.is_topk(stream, {"n": 2, "k": 2}, best)
    assert not checks.is_topk(stream, {"n": 3, "k": 3}, best)


def test_changes_must_add_up() -> None:
    answer = checks.Answer(np.array([0]), np.array([2]), np.array([9.0]))
    changes = {"group": np.zeros(3, np.int64), "id": np.array([1, 1, 2]), "diff": np.array([1, -1, 1])}
    assert checks.adds_up(changes, answer)
    assert not checks.adds_up({**changes, "diff": np.array([1, 1, 1])}, answer)
    assert not checks.adds_up({**changes, "id": np.array([1, 1, 3])}, answer)


def test_orders_must_sort() -> None:
    column = np.array([2, 1, 1])
    for stable, order, right in ((True, [1, 2, 0], True), (True, [2, 1, 0], False), (False, [2, 1, 0], True),
                                 (False, [0, 1, 2], False), (False, [1, 1, 0], False)):  # fmt: skip
        assert checks.sorts(column, stable=stable)({}, {}, np.array(order)) is right


def test_nearest_must_be_the_nearest() -> None:
    #  x         0 1 2 3 4     last 4; the query stands at one of them; 1 and 3 are as far from 2: the newer first
    stream: Stream = {"x1": np.arange(5.0)}
    p = {"queries": 1, "n": 4, "k": 2}
    (point,) = sites(stream, p)[0]
    far = np.abs(stream["x1"] - point)
    best = sorted(range(1, 5), key=lambda row: (far[row], -row))[:2]
    right = checks.Answer(np.zeros(2, np.int64), np.array(best), far[best])
    assert checks.is_nearest(stream, p, right)
    assert checks.is_near(stream, p, right)
    assert checks.lacking(stream, p, right) == 0
    other = sorted(range(1, 5), key=lambda row: (far[row], -row))[1:3]
    near = replace(right, id=np.array(other), score=far[other])
    assert not checks.is_nearest(stream, p, near)
    assert checks.is_near(stream, p, near)
    assert checks.lacking(stream, p, near) == 1
    for wrong in (
        replace(near, score=near.score + 1),
        replace(near, id=near.id[::-1], score=near.score[::-1]),
        replace(near, id=np.zeros(2, np.int64), score=far[[0, 0]]),
    ):
        assert not checks.is_near(stream, p, wrong)


def test_an_object_has_some_rank() -> None:
    for l, n, s in ((35, 1000, 0), (35, 1000, 1), (35, 1000, 500), (35, 1000, 999), (1, 10, 4), (10, 10, 9)):  # noqa: E741
        chances = tables.rank_chances(l, n, s)
        assert chances.sum() == pytest.approx(1)
        assert chances[0] == 0
    # last of two; the other leaves: it is first if the next one is after it, in one of three orders
    assert tables.rank_chances(2, 2, 1).tolist() == pytest.approx([0, 1 / 3, 2 / 3])


@pytest.mark.parametrize("d", [2, 4])
def test_the_yardstick_computes_all_scores(d: int) -> None:
    data, points = np.random.default_rng(d).random((d, 700)), np.random.default_rng(9).random((5, d))
    far = ((data[:, None, :] - points.T[:, :, None]) ** 2).sum(axis=0)
    assert yardsticks.count_near(data, points, 0.1) == (far < 0.1).sum() > 0


def test_sums_of_changes_must_be_those_of_the_answers() -> None:
    #  row      0 1 2 3 4
    #  key a:   5 . 9 . 5     last 2: 9 5      last 3 minutes (from row 2 on): 9 5
    #  key b:   . 1 . 1 .     last 2: 1 1      last 3 minutes: 1
    stream: Stream = {
        "id": np.arange(10, 15),
        "key": np.array(["a", "b", "a", "b", "a"], object),
        "time": np.datetime64("2024-01-01", "us") + np.arange(5).astype("m8[m]").astype("m8[us]"),
        "score": np.array([5.0, 1, 9, 1, 5]),
    }
    assert checks.best_rows(stream, {"window": 2, "k": 2}).tolist() == [2, 4, 3, 1]
    assert checks.best_rows(stream, {"window": 2, "k": 1}).tolist() == [2, 3]
    assert checks.best_rows(stream, {"window": "3 minutes", "k": 2}).tolist() == [2, 4, 3]
    p = {"window": "3 minutes", "k": 1}
    assert checks.sums_to_best(stream, p, {"objects": 2, "ids": 12 + 13, "squares": 144 + 169})
    assert not checks.sums_to_best(stream, p, {"objects": 2, "ids": 11 + 14, "squares": 121 + 196})


def test_nearest_rows_by_hand() -> None:
    stream = WORKLOADS["timed_points"](300, 1, {"per_10_minutes": 100})
    p = {"queries": 3, "window": "10 minutes", "k": 2}
    point = query_points(p)[2]
    far = [(x - point[0]) ** 2 + (y - point[1]) ** 2 for x, y in zip(stream["x1"], stream["x2"], strict=True)]
    assert sorted(checks.nearest_rows(stream, p)[4:]) == sorted(sorted(range(200, 300), key=far.__getitem__)[:2])


def test_windows_that_close_by_hand() -> None:
    #  minutes  0 1 2 3 4 5    windows of 4 minutes that end at 2, 4, 6, 8: rows 0-1, 0-3, 2-5, 4-5
    stream: Stream = {
        "key": np.array([0, 0, 0, 0, 0, 1]),
        "time": np.datetime64("2024-01-01", "us") + np.arange(6).astype("m8[m]").astype("m8[us]"),
    }
    p = {"window": "4 minutes", "slide": "2 minutes", "k": 3}
    mark = np.datetime64("2024-01-01T00:06", "us")
    assert checks.closes_windows(stream, p, mark, {"windows": 3 + 1, "objects": 2 + 3 + 3 + 1})
    assert not checks.closes_windows(stream, p, mark, {"windows": 3, "objects": 8})
    assert checks.closes_windows(stream, p, mark - np.timedelta64(1, "us"), {"windows": 2, "objects": 5})


def test_preferences_must_be_the_best() -> None:
    #  x1        0 1 2 3 4 5     one query, weight w: the largest x1 is the best, in any form; of equals the newer
    stream: Stream = {"x1": np.array([0.0, 5, 2, 5, 4, 1])}
    p = {"queries": 1, "d": 1, "k": 2, "n": 5}
    ((weight,),) = weights(p).tolist()
    for form, score in (("linear", weight * 5), ("product", weight + 5), ("quadratic", weight * 25)):
        best = checks.Answer(np.zeros(2, np.int64), np.array([3, 1]), np.array([score, score]))
        assert checks.is_preferred(stream, p | {"form": form}, best, np.arange(1, 6))
        assert not checks.is_preferred(stream, p | {"form": form}, best, np.array([0, 2, 3]))
        for wrong in (replace(best, id=np.array([1, 3])), replace(best, score=best.score + 1)):
            assert not checks.is_preferred(stream, p | {"form": form}, wrong, np.arange(1, 6))


def test_the_first_weights_of_more_queries_are_the_same() -> None:
    few, more = (weights({"queries": queries, "d": 4}) for queries in (3, 9))
    assert (more[:3] == few).all()
