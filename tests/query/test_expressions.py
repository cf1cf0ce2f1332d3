"""Expressions: values by example, and random trees against a scalar evaluator."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from query.trees import (
    CELLS,
    COLUMNS,
    INF,
    NAN,
    Value,
    arithmetic,
    bits,
    one,
    operand,
    render,
    run,
    scalar,
    trees,
)
from skyband.query.expressions import Operand, parse

VALUES: list[tuple[str, Value]] = [  # with x = 3, y = 4, n = null, q = NaN, z = 0, p = true, s = "abc"
    ("x", 3.0),
    ("0.7*x + 0.3*y", 0.7 * 3 + 0.3 * 4),
    ("x - y - 1", -2.0),
    ("x - (y - 1)", 0.0),
    ("-x * y", -12.0),
    ("- -x", 3.0),
    ("+x", 3.0),
    ("x + y * 2", 11.0),
    ("(x + y) * 2", 14.0),
    ("x / y / 2", 0.375),
    ("-7 % x", -1.0),
    ("7 % -x", 1.0),
    ("x % 0", NAN),
    ("x / 0", INF),
    ("-x / z", -INF),
    ("z / 0", NAN),
    (".5 + 5.", 5.5),
    ("1e3 + 1.5E-1", 1000.15),
    ("abs(-x)", 3.0),
    ("sqrt(x*x + y*y)", 5.0),
    ("sqrt(-x)", NAN),
    ("power(x, 2) + pow(y, 2)", 25.0),
    ("power(z, -1)", INF),
    ("power(-z, -1)", -INF),
    ("power(-z, -2)", INF),
    ("power(-z, -1.5)", INF),
    ("power(-8, 1/3)", NAN),
    ("power(-10, 309)", -INF),
    ("power(10, 309)", INF),
    ("power(q, 0)", 1.0),
    ("exp(1)", math.e),
    ("exp(1000)", INF),
    ("exp(-1000)", 0.0),
    ("ln(x)", math.log(3)),
    ("ln(0)", -INF),
    ("ln(-1)", NAN),
    ("LEAST(x, Y2, 2) + GREATEST(x, 2)", 5.0),
    ("least(n, x)", 3.0),
    ("least(n, n)", None),
    ("least(q, x)", 3.0),
    ("greatest(q, x)", NAN),
    ("least(z, -z)", 0.0),
    ("least(-z, z)", -0.0),
    ("coalesce(n, x)", 3.0),
    ("coalesce(n, n)", None),
    ("coalesce(q, x)", NAN),
    ("x = 3", True),
    ("x == 3 and x != 4 and x <> 5", True),
    ("q = q", True),
    ("q > 1e308", True),
    ("q <= x", False),
    ("z = -z", True),
    ("n = n", None),
    ("n is null", True),
    ("n + 1 is null", True),
    ("x is not null", True),
    ("q is null", False),
    ("null is null", True),
    ("not n is null", False),
    ("n > 1 and x > 5", False),
    ("n > 1 and x < 5", None),
    ("n > 1 or x < 5", True),
    ("n > 1 or x > 5", None),
    ("not n > 1", None),
    ("!p", False),
    ("not x = 4 and p", True),
    ("p or p and not p", True),
    ("x between 1 and 3", True),
    ("x not between 1 and 3", False),
    ("x between n and 1", False),
    ("x between n and 3", None),
    ("x + 1 between y and y and p", True),
    ("x in (1, y - 1)", True),
    ("x in (1, null)", None),
    ("x not in (1, null)", None),
    ("x in (x, null)", True),
    ("x not in (1, 2)", True),
    ("s = 'abc'", True),
    ('s <> "abc"', False),
    ("s < 'abd' and s >= 'ab'", True),
    ("s in ('x', 'abc')", True),
    ("s between 'a' and 'b'", True),
    ("'\\uffff' < '\U0001f600'", True),
    (r"coalesce(null, 'it\'s')", "it's"),
    ("coalesce(null, s)", "abc"),
    ("case when x > 3 then 1 when p then 2 end", 2.0),
    ("case when n > 3 then 1 end", None),
    ("case when n > 3 then 1 else -1 end", -1.0),
    ("case x when 1 then 'a' when 3 then 'b' else 'c' end", "b"),
    ("case n when null then 1 else 2 end", 2.0),
    ("case q when q then 1 end", 1.0),
    ("case when p then null else 1 end", None),
    ("(x > 1) = p", True),
    ("p > (x > 5)", True),
    ("x = 3 is null", False),
    ("true and not false", True),
    ("null + 1", None),
    ("null and null", None),
    ("-null", None),
    ("null", None),
    ("x /* of flights */ + 1 -- ok", 4.0),
    ("`arr delay` + 1", 8.0),
    ("date + end - left", 1.0),
]


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_value(text: str, expected: Value) -> None:
    columns: dict[str, Value] = {"x": 3.0, "y": 4.0, "Y2": 2.0, "n": None, "q": NAN, "z": 0.0, "p": True}
    columns |= {"s": "abc", "arr delay": 7.0, "date": 1.0, "end": 1.0, "left": 1.0}
    assert bits(one(text, **columns)) == bits(expected)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_constants_fill_every_row(rows: int) -> None:
    assert run(parse("1 + 1"), {}, rows) == [2.0] * rows
    assert run(parse("null"), {}, rows) == [None] * rows
    column = {"x": operand([1.0] * rows, "number")}
    assert run(parse("x is null"), column, rows) == [False] * rows
    assert run(parse("exp(x) > ln(x)"), column, rows) == [True] * rows


def test_an_expression_is_a_value() -> None:
    first, again = parse("y + x*y"), parse("y + x*y")
    assert first == again
    assert hash(first) == hash(again)
    assert first != parse("y + x * y")
    assert repr(first) == "Expression('y + x*y')"
    assert first.columns == ("y", "x")
    row = {"x": operand([2.0], "number"), "y": operand([3.0], "number")}
    assert run(pickle.loads(pickle.dumps(first)), row, 1) == [9.0]  # noqa: S301


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x", None),
        ("x + 1", "number"),
        ("x > 1", "boolean"),
        ("case when x then 'a' end", "string"),
        ("null", None),
    ],
)
def test_the_kind_that_the_text_tells(text: str, kind: str | None) -> None:
    assert parse(text).kind == kind


def test_pairs_are_qualified() -> None:
    pair = parse("abs(a.x - b.`arr delay`) + a.end", members=("a", "b"))
    assert pair.columns == ("a.x", "b.arr delay", "a.end")
    row = {name: operand([value], "number") for name, value in zip(pair.columns, [1.0, 3.0, 4.0], strict=True)}
    assert run(pair, row, 1) == [6.0]


def test_sqlglot_is_loaded_only_when_needed() -> None:
    code = (
        "import sys; from skyband.query.expressions import parse, recognise; recognise(parse('delay'));"
        "assert 'sqlglot' not in sys.modules; parse('delay + 1'); assert 'sqlglot' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.data(), st.sampled_from(["number", "number", "boolean", "string"]), st.integers(0, 5))
@settings(max_examples=300, deadline=None)
def test_evaluates_as_a_scalar_would(data: st.DataObject, kind: str, rows: int) -> None:
    tree = data.draw(trees(kind))
    cells = {
        name: data.draw(st.lists(st.none() | CELLS[of], min_size=rows, max_size=rows)) for name, of in COLUMNS.items()
    }
    columns = {name: operand(values, COLUMNS[name]) for name, values in cells.items()}
    expected = [scalar(tree, {name: values[i] for name, values in cells.items()}) for i in range(rows)]
    got = run(parse(render(tree)), columns, rows)
    assert list(map(bits, got)) == list(map(bits, expected))


@pytest.mark.parametrize("op", ["exp", "ln", "sqrt", "power", "%"])
def test_many_random_numbers_have_the_bits_of_math(op: str) -> None:
    rng = np.random.default_rng(7)
    raw = rng.integers(-(2**63), 2**63 - 1, 20_000, endpoint=True).view(np.float64)
    a = np.concatenate([rng.uniform(-5, 5, 20_000), rng.uniform(-800, 800, 20_000), raw])
    b = np.concatenate([rng.uniform(-5, 5, 50_000), np.full(10_000, 2.0)])
    text = {"power": "power(a, b)", "%": "a % b"}.get(op, f"{op}(a)")
    got = parse(text).evaluate({"a": Operand(a), "b": Operand(b)}, len(a)).values
    expected = [arithmetic(op, u, v) for u, v in zip(a.tolist(), b.tolist(), strict=True)]
    assert list(map(bits, got.tolist())) == list(map(bits, expected))
