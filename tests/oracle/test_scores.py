"""Scores and conditions of the oracle, one row at a time."""

from __future__ import annotations

import math
from typing import Any

import pytest

from oracle.rows import ids
from skyband.oracle import Oracle
from skyband.query.kinds import TopK
from skyband.query.scoring import Linear, Nearest, Product, Quadratic
from skyband.query.windows import Last

Row = dict[str, Any]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (Linear({"x": 0.1, "y": 0.2, "z": 0.3}), ((0.1 * 3) + (0.2 * 4)) + 0.3 * 0.7),
        (Product({"x": 1, "y": 2}), 24),
        (Quadratic({"x": 1, "y": 2}), 9 + 2 * 16),
        (Nearest({"x": 0, "y": 0}), 5),
        (Nearest({"x": 0, "y": 0}, weights={"y": 2, "x": 0}), math.sqrt(32)),
        (Nearest({"x": 4, "y": 0}, metric="manhattan"), 5),
        (Nearest({"x": 4, "y": 0}, metric="chebyshev"), 4),
        (Nearest({"x": 4, "y": 0}, weights={"x": 9, "y": 1}, metric="chebyshev"), 9),
        (lambda batch: batch["x"] * 2 + batch["y"], 10),
        ("x", 3),
        ("0.1*x + 0.2*y + 0.3*z", ((0.1 * 3) + (0.2 * 4)) + 0.3 * 0.7),
        ("-x + y % 3 - 2 * (x - 1)", -3 + 1 - 4),
        ("x / zero", math.inf),
        ("-x / zero", -math.inf),
        ("abs(x - y) + sqrt(y) + power(x, 2) + exp(zero) + ln(1)", 1 + 2 + 9 + 1),
        ("least(x, nothing, y) + greatest(x, nothing, y)", 7),
        ("coalesce(nothing, x)", 3),
        ("case when x > y then 1 when name = 'n' then 2 else 3 end", 2),
        ("case x when 4 then 1 when 3 then 2 end", 2),
        ("power(zero, -1)", math.inf),
        ("exp(1000)", math.inf),
        ("ln(zero)", -math.inf),
        ("greatest(x, nan)", None),
        ("case when x > y then 1 end", None),
        ("zero / zero", None),
        ("sqrt(-x)", None),
        ("nothing + x", None),
        ("power(-x, 0.5)", None),
    ],
)
def test_scores(by: Any, expected: float | None) -> None:
    row = {"id": "A", "x": 3, "y": 4.0, "z": 0.7, "zero": 0, "nothing": None, "nan": math.nan, "name": "n"}
    o = Oracle(TopK(1, by=by, window=Last(1)), id="id")
    o.push([row])
    assert [r["score"] for r in o.answer()] == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("x = 3 and name = 'n'", True),
        ("x <> 3 or nothing > 1", False),
        ("x = 3 or nothing > 1", True),
        ("not (nothing > 1)", False),
        ("nothing is null and x is not null", True),
        ("x between 3 and 4", True),
        ("x not between 3 and 4", False),
        ("x in (1, 3)", True),
        ("x not in (1, nothing)", False),
        ("flag", True),
        ("not flag", False),
        ("nan = nan and nan > 1e308", True),  # as in Spark
        ("x < nan and not x > nan", True),
        ("name in ('m', 'n')", True),
    ],
)
def test_conditions(where: str, expected: bool) -> None:
    row = {"id": "A", "x": 3, "nothing": None, "nan": math.nan, "name": "n", "flag": True}
    o = Oracle(TopK(1, by="x", window=Last(1), where=where), id="id")
    o.push([row])
    assert bool(o.answer()) is expected


def test_nearest_ranks_by_the_sum_of_squares() -> None:
    a, b = 1.0, math.nextafter(1.0, 2.0)  # the squares differ, their roots may not
    o = Oracle(TopK(2, by=Nearest({"x": 0, "y": 0}), window=Last(2)), id="id")
    o.push([{"id": "far", "x": b, "y": a}, {"id": "near", "x": a, "y": a}])
    assert ids(o) == ["near", "far"]
