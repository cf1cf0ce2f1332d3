"""What is recognised in an expression: its form, its directions, its symmetry."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from query.trees import (
    FLOATS,
    Tree,
    bits,
    operand,
    render,
    run,
    scalar,
)
from skyband.query.expressions import Form, is_symmetric, parse, recognise

# --- forms --------------------------------------------------------------------------------------------------


def linear(constant: float = 0.0, **weights: float) -> Form:
    directions = tuple((name, 1 if w > 0 else -1) for name, w in weights.items())
    return Form("linear", tuple(weights.items()), constant, directions=directions)


def distance(metric: Any, centre: dict[str, float], weights: dict[str, float] | None = None) -> Form:
    found = weights or dict.fromkeys(centre, 1.0)
    return Form("distance", tuple(found.items()), centre=tuple(centre.items()), metric=metric)


FORMS = [
    ("x", Form("column", (("x", 1.0),), directions=(("x", 1),))),
    ("0.7*x + 0.3*y", linear(x=0.7, y=0.3)),
    ("x/2 - y*3 + 1", linear(1.0, x=0.5, y=-3.0)),
    ("-(x - y)", linear(-0.0, x=-1.0, y=1.0)),
    ("2*(x+y)", linear(x=2.0, y=2.0)),
    ("x + x", linear(x=2.0)),
    ("(3 - x)/-2", linear(-1.5, x=0.5)),
    ("sqrt(4)*x - power(2, 3)", linear(-8.0, x=2.0)),
    ("3*x - 2*x", Form("linear", (("x", 1.0),))),  # rounding may break the order: no direction
    ("x - x", Form("linear", (("x", 0.0),))),
    ("sqrt(power(x-0.2,2)+power(y-0.9,2))", distance("euclidean", {"x": 0.2, "y": 0.9})),
    ("sqrt((x-1)*(x-1) + 4*power(y,2))", distance("euclidean", {"x": 1.0, "y": 0.0}, {"x": 1.0, "y": 4.0})),
    ("(x-0.2)*(x-0.2)+(y+1)*(y+1)", distance("squared", {"x": 0.2, "y": -1.0})),
    ("2*(x-1)*(x-1) + power(y-3,2)/4", distance("squared", {"x": 1.0, "y": 3.0}, {"x": 2.0, "y": 0.25})),
    ("3*(x*x + y*y*2)", distance("squared", {"x": 0.0, "y": 0.0}, {"x": 3.0, "y": 6.0})),
    ("power((x - 6)/2, 2)", distance("squared", {"x": 6.0}, {"x": 0.25})),
    ("abs(x-1)+2*abs(y-3)", distance("manhattan", {"x": 1.0, "y": 3.0}, {"x": 1.0, "y": 2.0})),
    ("abs(4 - 2*x)", distance("manhattan", {"x": 2.0}, {"x": 2.0})),
    ("greatest(abs(x-1),abs(y-2))", distance("chebyshev", {"x": 1.0, "y": 2.0})),
    ("greatest(abs(x-1),abs(y-2)*3)", distance("chebyshev", {"x": 1.0, "y": 2.0}, {"x": 1.0, "y": 3.0})),
    ("exp(x) - y", Form("monotone", directions=(("x", 1), ("y", -1)))),
    ("least(x, 2*y, z/4)", Form("monotone", directions=(("x", 1), ("y", 1), ("z", 1)))),
    ("greatest(-x, exp(-y))", Form("monotone", directions=(("x", -1), ("y", -1)))),
    ("sqrt(x) + ln(y) - 3", Form("monotone", directions=(("x", 1), ("y", 1)))),
    ("power(x, 3) + power(y, 0.5)", Form("monotone", directions=(("x", 1), ("y", 1)))),
    ("power(2, x) + power(0.5, y)", Form("monotone", directions=(("x", 1), ("y", -1)))),
    ("-2*exp(x)/3", Form("monotone", directions=(("x", -1),))),
    ("exp(x) + y*z", Form("opaque", directions=(("x", 1),))),
    ("least(sqrt(x), y)", Form("opaque")),  # NaN is the largest: falls from y to 0 as x passes 0
    ("x*y", Form("opaque")),
    ("1/x", Form("opaque")),
    ("x % 2", Form("opaque")),
    ("0*exp(x)", Form("opaque")),
    ("power(x, -1)", Form("opaque")),
    ("abs(x) - abs(y)", Form("opaque")),  # weights must be positive
    ("abs(x) + abs(x - 1)", Form("opaque")),
    ("abs(x) + power(y, 2)", Form("opaque")),
    ("sqrt(x*x + y*y) + 1", Form("opaque")),
    ("abs(x - y)", Form("opaque")),
    ("x/0", Form("opaque")),
    ("x*1e308*1e308", Form("monotone", directions=(("x", 1),))),  # no float64 holds the weight
    ("coalesce(x, 0)", Form("opaque")),
    ("case when x > 1 then x else 1 end", Form("opaque")),
    ("x > 1", Form("opaque")),
    ("'a'", Form("opaque")),
    ("1 + 1", Form("opaque")),
    ("x + null", Form("monotone", directions=(("x", 1),))),
]


@pytest.mark.parametrize(("text", "form"), FORMS)
def test_form(text: str, form: Form) -> None:
    found = recognise(parse(text))
    assert found == form
    hash(found)


COEFFICIENTS = st.sampled_from([1.0, 2.0, 0.5, 3.0])


@st.composite
def arithmetic_trees(draw: st.DrawFn, depth: int = 4) -> Tree:
    """Trees that are often linear or monotone."""
    if not depth or draw(st.integers(0, 3)) == 0:
        leaf = ("column", draw(st.sampled_from("xy")))
        return draw(st.sampled_from([leaf, ("exp", leaf), ("literal", draw(COEFFICIENTS))]))
    sub = arithmetic_trees(depth - 1)
    op = draw(st.sampled_from(["+", "-", "*", "/", "negative", "least", "greatest", "sqrt", "ln", "power", "power2"]))
    if op in ("*", "/", "power"):
        return (op, draw(sub), ("literal", draw(COEFFICIENTS)))
    if op == "power2":
        return ("power", ("literal", draw(COEFFICIENTS)), draw(sub))
    return (op, draw(sub)) if op in ("negative", "sqrt", "ln") else (op, draw(sub), draw(sub))


GRID = [-3.0, -2.0, -0.5, 0.0, 0.5, 1.0, 2.5]


@given(arithmetic_trees())
@settings(max_examples=300, deadline=None)
def test_forms_tell_the_truth(tree: Tree) -> None:
    form = recognise(parse(render(tree)))
    table = {(x, y): scalar(tree, {"x": x, "y": y}) for x in GRID for y in GRID}
    if not all(abs(value) < 1e9 or math.isnan(value) for value in table.values()):
        return  # overflow is another matter
    if form.kind == "linear":
        for (x, y), value in table.items():
            weights = dict(form.weights)
            near = form.constant + weights.get("x", 0.0) * x + weights.get("y", 0.0) * y
            assert value == pytest.approx(near, rel=1e-9, abs=1e-6)
    for name, way in form.directions:
        for held in GRID:
            line = [table[(v, held) if name == "x" else (held, v)] for v in GRID]
            defined = [way * value for value in line if not math.isnan(value)]
            assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(defined))


# --- symmetry -----------------------------------------------------------------------------------------------

SYMMETRIC = [
    "abs(a.x - b.x)",
    "abs(a.x - b.x) + abs(a.y - b.y)",
    "sqrt(power(a.x - b.x, 2) + power(a.y - b.y, 2))",
    "(a.x - b.x)*(a.x - b.x)",
    "a.x + b.x",
    "a.x * b.x",
    "(a.x + a.y) * (b.x + b.y)",
    "abs((a.x - b.x) * (a.y - b.y))",
    "abs((a.x - b.x) / 2)",
    "abs(-(a.x - b.x))",
    "(a.x - b.x)*(b.x - a.x)",
    "power(a.x - b.x, -2)",
    "greatest(abs(a.x - b.x), abs(a.y - b.y))",
    "least(a.x, b.x)",
    "greatest(a.x, b.x, 3) / 2",
    "1 / least(exp(a.x), exp(b.x))",
    "a.x = b.x and a.s <> b.s",
    "a.x > b.x or b.x > a.x",
    "a.x >= b.x and a.x <= b.x",
    "case when a.s = b.s then 1 else abs(a.x - b.x) end",
    "1 + 1",
]
ASYMMETRIC = [
    "a.x - b.x",
    "a.x",
    "a.x / b.x",
    "a.x + b.y",
    "a.x < b.x",
    "power(a.x - b.x, 3)",
    "power(a.x - b.x, 0.5)",
    "abs(a.x - b.y)",
    "abs(2*a.x - b.x)",
    "a.x + b.x + a.y + b.y",  # ((ax + bx) + ay) + by rounds differently from ((bx + ax) + by) + ay
    "(a.x - b.x) * (a.y - b.y)",  # 0 * 3 is 0.0 but 0 * -3 is -0.0
    "1 / least(a.x, b.x)",  # least keeps the first of 0.0 and -0.0
    "power(least(a.x, b.x), -1)",
    "coalesce(a.x, b.x)",
    "case when a.x > 0 then a.x else b.x end",
]


@pytest.mark.parametrize("text", SYMMETRIC)
def test_symmetric(text: str) -> None:
    assert is_symmetric(parse(text, members=("a", "b")))


@pytest.mark.parametrize("text", ASYMMETRIC)
def test_not_provably_symmetric(text: str) -> None:
    assert not is_symmetric(parse(text, members=("a", "b")))


def test_symmetry_is_of_pairs() -> None:
    assert not is_symmetric(parse("x + y"))


def swapped(tree: Tree) -> Tree:
    if tree[0] == "column":
        return ("column", tree[1].translate(str.maketrans("ab", "ba")))
    return tree if tree[0] == "literal" else (tree[0], *map(swapped, tree[1:]))


@st.composite
def pair_trees(draw: st.DrawFn, depth: int = 3) -> Tree:
    """Trees that are often symmetric: u op (u with the members swapped)."""
    if not depth or draw(st.integers(0, 3)) == 0:
        leaf = ("column", draw(st.sampled_from(["a.x", "b.x", "a.y", "b.y"])))
        return leaf if draw(st.integers(0, 3)) else ("literal", draw(COEFFICIENTS))
    u = draw(pair_trees(depth - 1))
    v = draw(st.sampled_from([u, swapped(u), swapped(u), draw(pair_trees(depth - 1))]))
    op = draw(st.sampled_from(["+", "-", "-", "*", "/", "least", "greatest", "abs", "abs", "power", "negative"]))
    if op in ("abs", "negative"):
        return (op, u)
    return (op, u, ("literal", 2.0)) if op == "power" else (op, u, v)


@given(pair_trees(), st.lists(st.tuples(FLOATS, FLOATS, FLOATS, FLOATS), min_size=4, max_size=4))
@settings(max_examples=500, deadline=None)
def test_symmetric_means_the_same_bits(tree: Tree, rows: list[tuple[float, ...]]) -> None:
    expression = parse(render(tree), members=("a", "b"))
    if not is_symmetric(expression):
        return
    ax, ay, bx, by = (operand(list(column), "number") for column in zip(*rows, strict=True))
    one_way = run(expression, {"a.x": ax, "a.y": ay, "b.x": bx, "b.y": by}, len(rows))
    the_other = run(expression, {"a.x": bx, "a.y": by, "b.x": ax, "b.y": ay}, len(rows))
    if "least" in expression.text or "greatest" in expression.text:  # which may keep the other zero
        one_way, the_other = ([0.0 if value == 0 else value for value in got] for got in (one_way, the_other))
    assert list(map(bits, one_way)) == list(map(bits, the_other))
