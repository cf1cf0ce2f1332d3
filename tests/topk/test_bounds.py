"""Bounds of expressions: no score of a row in a box is beyond them; and exact for what has each column once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from engines.streams import KILL
from skyband.engines.topk.bounds import bound_of
from skyband.query.expressions import Operand, number_columns, parse

INF = math.inf
TREES, BOXES, POINTS = (90, 6, 40) if KILL else (400, 12, 60)
UNARY = ("-{}", "abs({})", "sqrt({})", "exp({})", "ln({})", "floor({})", "ceil({})", "round({}, 1)", "round({})")
CASTS = ("cast({} as int)", "cast({} as bigint)", "cast({} as double)", "round({}, -1)", "{0} * {0}", "power({}, 2)")
BINARY = ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} % {}", "power({}, {})", "least({}, {})", "greatest({}, {})")
POWERS = ("power({}, 3)", "power({}, -1)", "power({}, -2)", "power({}, 0)", "power(2, {})", "power({}, 0.5)")
TRUTHS = ("{} < {}", "{} <= {}", "{} > {}", "{} >= {}", "{} = {}", "{} <> {}", "{} in ({}, 1)", "{} between {} and 2")
LITERALS = ("0", "1", "2", "0.5", "3", "10", "1e200", "null")


def number(rng: np.random.Generator, depth: int) -> str:
    """A random expression of numbers."""
    roll = rng.integers(0, 12)
    if depth == 0 or roll == 0:
        return str(rng.choice(["x", "y", "x", "y", *LITERALS[: 8 if rng.random() < 0.3 else 6]]))
    one, other = number(rng, depth - 1), number(rng, depth - 1)
    if roll < 6:
        return f"({str(rng.choice(BINARY)).format(one, other)})"
    if roll < 9:
        return f"({str(rng.choice(UNARY + CASTS + POWERS)).format(one)})"
    if roll == 9:
        return f"coalesce({one}, {other})"
    if roll == 10:
        return f"(case {one} when {other} then {number(rng, depth - 1)} else {other} end)"
    return f"(case when {truth(rng, depth - 1)} then {one} else {other} end)"


def truth(rng: np.random.Generator, depth: int) -> str:
    """A random condition."""
    roll = rng.integers(0, 7) if depth else 0
    one, other = number(rng, max(depth - 1, 0)), number(rng, max(depth - 1, 0))
    if roll == 1:
        return f"({truth(rng, depth - 1)} and {truth(rng, depth - 1)})"
    if roll == 2:
        return f"({truth(rng, depth - 1)} or {truth(rng, depth - 1)})"
    if roll == 3:
        return f"(not {truth(rng, depth - 1)})"
    if roll == 4:
        return f"({one} is null)"
    return f"({str(rng.choice(TRUTHS)).format(one, other)})"


def box_of(rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """A random box: around 0, of points, of whole numbers, small, or endless."""
    box = {}
    for name in ("x", "y"):
        ends = np.sort(rng.normal(size=2) * 10.0 ** rng.choice([-3, 0, 0, 0, 1, 2, 150]))
        shape = rng.integers(0, 9)
        if shape < 3:
            ends = np.round(ends)
        elif shape == 3:
            ends[1] = ends[0]
        elif shape == 4:
            ends = np.array([0.0, abs(ends[1])])
        elif shape == 5:
            ends[rng.integers(0, 2)] = 0.0
            ends.sort()
        elif shape == 6:
            side = int(rng.integers(0, 2))
            ends[side] = (-INF, INF)[side]
        box[name] = (float(ends[0]), float(ends[1]))
    return box


def points_of(box: dict[str, tuple[float, float]], rng: np.random.Generator) -> dict[str, Operand]:
    """Random rows of a box: its corners, inside, whole numbers, zeros of both signs."""
    columns = {}
    for name, (low, high) in box.items():
        start, end = max(low, -1e3 if high > -1e3 else 2 * high), min(high, 1e3 if low < 1e3 else 2 * low)
        inside = start + rng.random(POINTS) * (end - start)
        inside = np.where(rng.random(POINTS) < 0.3, np.round(inside), inside)
        inside = np.where(rng.random(POINTS) < 0.3, rng.choice([low, high, 0.0, -0.0], POINTS), inside)
        columns[name] = Operand(np.clip(inside, low, high))
    return columns


def scores(text: str, columns: dict[str, Operand]) -> Any:
    expression = parse(text)
    given = {name: columns[name] for name in expression.columns}
    result = expression.evaluate(given, POINTS)
    values = result.values.astype(float)
    known = np.ones(POINTS, bool) if result.valid is None else result.valid
    return values[known & ~np.isnan(values)]


@pytest.mark.parametrize("seed", range(4))
def test_no_score_is_beyond_its_bound(seed: int) -> None:
    rng, tight, several = np.random.default_rng(seed), 0, 0
    for _ in range(TREES):
        text = number(rng, 3)
        expression = parse(text)
        if not expression.columns:
            continue
        for _ in range(BOXES):
            box = box_of(rng)
            low, high = bound_of(expression, {name: box[name] for name in expression.columns})
            found = scores(text, points_of(box, rng))
            if len(found):
                assert low <= found.min(), (text, box, low, found.min())
                assert found.max() <= high, (text, box, high, found.max())
                several += 1
                tight += high - low < INF
    assert tight > several / 4, "a bound says something"


EXACT = {
    "x + y": (-3.0, 5.0),
    "x - y": (-5.0, 3.0),
    "x * y": (-6.0, 6.0),
    "2 * x - 3 * (y + 1)": (-16.0, 4.0),
    "x * x": (0.0, 4.0),
    "(x - 1) * (x - 1)": (0.0, 9.0),
    "abs(x) - y": (-3.0, 3.0),
    "-abs(y)": (-3.0, 0.0),
    "x / (y + 4)": (-2 / 3, 2 / 3),
    "sqrt(x + 2)": (0.0, 2.0),
    "sqrt(x)": (0.0, math.sqrt(2)),
    "least(x, y)": (-2.0, 2.0),
    "greatest(x, y)": (-1.0, 3.0),
    "greatest(x, y, 1)": (1.0, 3.0),
    "case when x < 5 then x else y end": (-2.0, 2.0),
    "case when x > 5 then x else y end": (-1.0, 3.0),
    "case when x > 0 then 10 else y end": (-1.0, 10.0),
    "case when x >= -2 and y <= 3 then 1 else 0 end": (1.0, 1.0),
    "case when not (x >= -2 or y > 5) then 1 else 0 end": (0.0, 0.0),
    "case when x between -2 and 2 then 1 end": (1.0, 1.0),
    "case when x in (7, 8) then 1 else 2 end": (2.0, 2.0),
    "case when x is null then 1 else 2 end": (2.0, 2.0),
    "case x when 9 then 1 when y then 2 else 3 end": (2.0, 3.0),
    "coalesce(x, y)": (-2.0, 2.0),
    "coalesce(null, y)": (-1.0, 3.0),
    "least(sqrt(-x - 3), y)": (-1.0, 3.0),
    "floor(x + 0.5)": (-2.0, 2.0),
    "ceil(x + 0.5)": (-1.0, 3.0),
    "round(x + 0.5)": (-2.0, 3.0),
    "cast(x as int)": (-2.0, 2.0),
    "least(sqrt(x), y)": (-1.0, 3.0),
    "power(sqrt(x - 3), 0)": (1.0, 1.0),
    "floor(sqrt(x) + 5)": (0.0, 6.0),
    "x % 3": (-2.0, 2.0),
    "x % 1": (-1.0, 1.0),
}


@pytest.mark.parametrize("text", EXACT)
def test_bounds_are_exact_where_each_column_stands_once(text: str) -> None:
    box = {"x": (-2.0, 2.0), "y": (-1.0, 3.0)}
    expression = parse(text)
    assert bound_of(expression, {name: box[name] for name in expression.columns}) == EXACT[text]


NEAR = {
    "exp(x)": (math.exp(-2), math.exp(2)),
    "ln(x + 3)": (0.0, math.log(5)),
    "power(x, 2)": (0.0, 4.0),
    "power(x, 3)": (-8.0, 8.0),
    "power(2, x)": (0.25, 4.0),
    "power(x, 0.5)": (0.0, math.sqrt(2)),
    "power(x - 3, -1)": (-1.0, -0.2),
    "power(x - 3, -2)": (0.04, 1.0),
    "round(x, 1)": (-2.1, 2.1),
    "power(y + 2, x)": (0.04, 25.0),
}


@pytest.mark.parametrize("text", NEAR)
def test_what_the_library_of_c_computes_is_bounded_a_little_outward(text: str) -> None:
    box = {"x": (-2.0, 2.0), "y": (-1.0, 3.0)}
    expression = parse(text)
    low, high = bound_of(expression, {name: box[name] for name in expression.columns})
    least, most = NEAR[text]
    assert low <= least
    assert high >= most
    assert (low, high) == pytest.approx((least, most), rel=1e-12, abs=1e-12)
    assert low != least or low == 0
    assert high != most


def test_a_number_by_an_infinite_one_is_zero() -> None:
    """All ends are inf / inf, which is NaN; but x = 0 has a score."""
    low, high = bound_of(parse("x * 1e308 * 10 / (y * 1e308 * 10)"), {"x": (-1.0, 1.0), "y": (1.0, 2.0)})
    assert low <= 0 <= high


def test_nothing_has_a_score() -> None:
    low, high = bound_of(parse("sqrt(x - 9) + ln(-x)"), {"x": (1.0, 2.0)})
    assert low > high


NUMBERS = {
    "x * y": True,
    "case when x > 3 then y + 1 else 0 end": True,
    "case x when 1 then y when 2 then 0 end": True,
    "case when x > y then 1 else 0 end": False,
    "case when carrier = 'AA' then x else y end": False,
    "case when flag then x else y end": False,
    "coalesce(x, y)": True,
    "hour(t) + x": False,
    "length(s) + x": False,
    "greatest(x, 0) + cast(z as double)": False,
    "x + case when y in (1, 2) then 1 else 0 end": True,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_columns_are_known_to_be_numbers_by_what_is_done_with_them(text: str) -> None:
    assert number_columns(parse(text)) == NUMBERS[text]
