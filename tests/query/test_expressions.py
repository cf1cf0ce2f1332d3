"""Expressions: examples in tables; random trees against a scalar evaluator that shares no code with ours."""

from __future__ import annotations

import math
import pickle
import struct
import subprocess
import sys
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.errors import BatchError, QueryError
from skyband.query.expressions import Expression, Form, Operand, is_symmetric, parse, recognise

INF, NAN = math.inf, math.nan
Value = float | bool | str | None


def operand(values: list[Any], kind: str) -> Operand:
    """A column from Python values; None is null, and its slot holds rubbish."""
    dtype, rubbish = {"number": (float, NAN), "boolean": (bool, True), "string": (object, None)}[kind]
    filled = np.array([rubbish if value is None else value for value in values], dtype)
    known = np.array([value is not None for value in values], bool)
    return Operand(filled, None if known.all() else known)


def run(expression: Expression, columns: dict[str, Operand], rows: int) -> list[Value]:
    result = expression.evaluate(columns, rows)
    assert result.values.shape == (rows,)
    assert result.values.dtype in (np.float64, bool, object)
    if result.valid is None:
        return list(result.values.tolist())
    assert result.valid.shape == (rows,)
    return [value if ok else None for value, ok in zip(result.values.tolist(), result.valid, strict=True)]


def bits(value: Value) -> object:
    """Equal for the same value, to the bit; every NaN is one value."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("<d", value)
    return value


def one(text: str, **columns: Value) -> Value:
    """The value of `text` in one row."""
    kinds = {float: "number", int: "number", bool: "boolean", str: "string", type(None): "number"}
    row = {name: operand([value], kinds[type(value)]) for name, value in columns.items()}
    return run(parse(text), row, 1)[0]


# --- examples -----------------------------------------------------------------------------------------------

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


# --- errors -------------------------------------------------------------------------------------------------

REFUSED = [  # text, what the message must say
    ("log(x)", r"log is not allowed.*Allowed: .*coalesce.*Did you mean ln\(x\)\?"),
    ("ceil(x)", "ceil is not allowed.*Allowed: "),
    ("squrt(x)", "squrt is not allowed.*Did you mean sqrt"),
    ("nvl(x, 1)", "nvl is not allowed.*coalesce"),
    ("sum(x)", "sum is not allowed"),
    ("count(*)", "count is not allowed"),
    ("row_number() over (order by x)", "row_number is not allowed"),
    ("abs(x) over ()", "over is not allowed"),
    ("cast(x as int)", "cast is not allowed"),
    ("x::int", ":: is not allowed"),
    ("10L", "10L is not allowed"),
    ("1_000", "1_000 is not allowed.*backticks"),
    ("x in (select y from t)", "select is not allowed"),
    ("exists(select 1)", "exists is not allowed"),
    ("select", "select is not allowed.*backticks"),
    ("x like 'a%'", "like is not allowed"),
    ("x not like 'a%'", "like is not allowed"),
    ("x <=> y", "<=> is not allowed"),
    ("x || y", r"\|\| is not allowed"),
    ("x div 2", "div is not allowed"),
    ("x ^ 2", r"\^ is not allowed"),
    ("x[0]", r"\[ is not allowed"),
    ("x; y", "; is not allowed"),
    ("*", r"\* is not allowed"),
    ("a.*", r"\* is not allowed"),
    ("x ** 2", r"\* is not allowed"),
    ("x y", "y is not allowed here"),
    ("'a' 'b'", "'b' is not allowed here"),
    ("date '2020-01-01'", "is not allowed here"),
    ("power(x,,2)", ", is not allowed here"),
    ("(x, y)", "tuple is not allowed"),
    ("x is true", "null only"),
    ("x in y", "list in brackets"),
    ("x in ()", "list in brackets"),
    ("least(x)", "at least two"),
    ("1 < x < 2", "needs brackets"),
    ("true = x > 1", "needs brackets"),
    ("x = not p", "needs brackets"),
    ("1e", "no number"),
    ("1e400", "no float64"),
    ("9007199254740993", "no float64"),
    ("'abc", "not closed"),
    ("`abc", "not closed"),
    ("", "is no expression"),
    (" \n", "is no expression"),
    ("-- x", "is no expression"),
    ("a.x", r"only pair scorings use a\. and b\."),
    ("t.a.x", "only pair scorings"),
    ("x + 'a'", r"\+ needs numbers, but 'a' is a string"),
    ("abs(x > 1)", "abs needs numbers, but the result of > is a boolean"),
    ("not 3", "not needs booleans, but 3.0 is a number"),
    ("x > 1 and 2", "and needs booleans"),
    ("true + 1", r"\+ needs numbers, but true is a boolean"),
    ("1 = 'a'", "= needs one kind, and 1.0 is a number, but 'a' is a string"),
    ("x in (1, 'a')", "in needs one kind"),
    ("least('a', 'b')", "least needs numbers"),
    ("case when 1 then 2 end", "when needs booleans"),
    ("case when x then 1 else 'a' end", "then needs one kind"),
    ("case x when 1 then 2 when 'a' then 3 end", "case needs one kind"),
]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_refused(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=f"(?s){says}") as caught:
        parse(text)
    assert text in str(caught.value) or repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("x +", 2),
        ("(x", 1),
        ("x)", 1),
        ("abs(x, y)", 8),
        ("abs()", 4),
        ("case when x then 1", 17),
        ("x = = y", 4),
    ],
)
def test_a_syntax_error_points_at_the_place(text: str, at: int) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value).splitlines()[1:] == [f"  {text}", "  " + " " * at + "^"]


def test_a_long_text_is_shown_around_the_place() -> None:
    with pytest.raises(QueryError) as caught:
        parse(" + ".join(["some_column"] * 20) + " + log(x)" + " + other_column" * 20)
    _, line, mark = str(caught.value).splitlines()
    assert line[mark.index("^") :].startswith("log(x)")
    assert len(line) <= 102


@pytest.mark.parametrize("text", ["x", "x + 1", "abs(a.x - y)", "c.x - a.x", "t.a.x", "`a.x`"])
def test_pairs_refuse_what_is_not_qualified(text: str) -> None:
    with pytest.raises(QueryError, match=r"of which object it is. Write a\.`?[a.]*[xy]`? or b\."):
        parse(text, members=("a", "b"))


@pytest.mark.parametrize("text", [None, 3, ["x"]])
def test_no_text(text: Any) -> None:
    with pytest.raises(QueryError, match="is no expression"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x + y", 'no column "y". The columns are: x, p, s, i'),
        ("x + s", r'\+ needs numbers, but column "s" is a string'),
        ("x + p", r'\+ needs numbers, but column "p" is a boolean'),
        ("s = x", '= needs one kind, and column "s" is a string, but column "x" is a number'),
        ("s > 1", '> needs one kind, and column "s" is a string, but 1.0 is a number'),
        ("not x", 'not needs booleans, but column "x" is a number'),
        ("coalesce(x, s)", "coalesce needs one kind"),
        ("i + 1", 'column "i" is int64'),
    ],
)
def test_a_batch_that_does_not_fit(text: str, says: str) -> None:
    columns = {"x": operand([1.0], "number"), "p": operand([True], "boolean"), "s": operand(["a"], "string")}
    columns["i"] = Operand(np.array([1]))
    with pytest.raises(BatchError, match=says):
        parse(text).evaluate(columns, 1)


HOSTILE = {
    "brackets": "(" * 3000 + "x" + ")" * 3000,
    "open": "(" * 9999,
    "functions": "abs(" * 2000 + "x" + ")" * 2000,
    "minus": "- " * 4000 + "x",
    "not": "not " * 2000 + "p",
    "sum": "+".join(["x"] * 4000),
    "and": " and ".join(["p"] * 1000),
    "cases": "case when p then " * 400 + "1" + " end" * 400,
    "simple cases": "case " * 400 + "x" + " when 1 then 2 end" * 400,
    "words": "case " * 1900,
    "long": "x + " * 3000 + "x",
    "quotes": "'" * 9999,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert len(str(caught.value)) < 800


def test_what_is_deep_but_allowed_runs() -> None:
    x = {"x": operand([1.0], "number")}
    assert run(parse("+".join(["x"] * 200)), x, 1) == [200.0]
    assert run(parse("(" * 30 + "x" + ")" * 30), x, 1) == [1.0]
    nested = parse("case " * 29 + "x" + " when 1 then 1 when 2 then 2 end" * 29)  # 2^29 if it were copied
    assert run(nested, x, 1) == [1.0]
    assert recognise(nested).kind == "opaque"


@given(st.text(alphabet="xa.`'\"()+-*/%=<>!, 01e\n\\;#@é", max_size=30) | st.text(max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        recognise(parse(text))
    except QueryError as error:
        assert str(error)  # noqa: PT017


WORDS = ["x", "y", "a.x", "null", "case", "when", "then", "else", "end", "and", "or", "not", "is", "in"]
WORDS += ["between", "(", ")", ",", "+", "-", "*", "/", "=", "<", "1", "'a'", "abs", "least"]


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), st.sampled_from([(), ("a", "b")]))
@settings(max_examples=500, deadline=None)
def test_any_words_are_read_or_refused(text: str, members: tuple[str, ...]) -> None:
    try:
        expression = parse(text, members=members)
    except QueryError:
        return
    recognise(expression)
    is_symmetric(expression)


# --- random trees against a scalar evaluator ----------------------------------------------------------------

Tree = tuple[Any, ...]  # (operation, argument trees...), ("column", name), ("literal", value)

COLUMNS = {"x": "number", "y": "number", "p": "boolean", "q": "boolean", "s": "string", "t": "string"}
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, NAN, INF, -INF, 5e-324, 710.0])
CELLS = {
    "number": FLOATS,
    "boolean": st.booleans(),
    "string": st.sampled_from(["", "a", "b", "é", "\uffff", "😀"]),
}
LITERALS = {
    "number": st.floats(0, 1e300) | st.sampled_from([0.0, 1.0, 2.0, 0.5, 3.0]),
    "boolean": st.booleans(),
    "string": CELLS["string"],
}


def node(op: str, *args: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.tuples(st.just(op), *args)


@cache
def trees(kind: str, depth: int = 3) -> st.SearchStrategy[Tree]:
    columns = st.sampled_from([("column", name) for name, of in COLUMNS.items() if of == kind])
    leaf = columns | st.tuples(st.just("literal"), st.none() | LITERALS[kind])
    if not depth:
        return leaf
    same, truth = trees(kind, depth - 1), trees("boolean", depth - 1)
    options = [node("coalesce", same, same), node("case", truth, same, same)]
    options += [node("case", truth, same, truth, same, same)]
    if kind == "number":
        options += [node(op, same, same) for op in ("+", "-", "*", "/", "%", "power", "least", "greatest")]
        options += [node(op, same) for op in ("negative", "abs", "sqrt", "exp", "ln")]
        options += [node("least", same, same, same)]
    if kind == "boolean":
        options += [node("and", truth, truth), node("or", truth, truth), node("not", truth)]
    for some in (trees(of, depth - 1) for of in LITERALS):
        options += [node("case of", some, some, same, some, same, same)]
        if kind == "boolean":
            options += [node(op, some, some) for op in ("=", "<>", "<", "<=", ">", ">=")]
            options += [
                node("between", some, some, some),
                node("in", some, some, some),
                node("is null", some),
            ]
    return leaf | st.one_of(options)


def render(tree: Tree) -> str:
    op, *args = tree
    if op == "column":
        return str(args[0])
    if op == "literal":
        value = args[0]
        return "null" if value is None else repr(value).lower() if isinstance(value, (bool, float)) else f"'{value}'"
    parts = [render(arg) for arg in args]
    if op == "negative":
        return f"(- {parts[0]})"
    if op == "not":
        return f"(not {parts[0]})"
    if op == "is null":
        return f"({parts[0]} is null)"
    if op == "between":
        return f"({parts[0]} between {parts[1]} and {parts[2]})"
    if op == "in":
        return f"({parts[0]} in ({', '.join(parts[1:])}))"
    if op in ("case", "case of"):
        subject = parts.pop(0) if op == "case of" else ""
        whens = " ".join(f"when {c} then {r}" for c, r in zip(parts[:-1:2], parts[1::2], strict=True))
        return f"(case {subject} {whens} else {parts[-1]} end)"
    if op.isalpha() and op not in ("and", "or"):
        return f"{op}({', '.join(parts)})"
    return f"({parts[0]} {op} {parts[1]})"


def scalar(tree: Tree, row: dict[str, Any]) -> Any:
    """One row, by the book: Python floats, `math`, None for null."""
    op, *rest = tree
    if op == "column":
        return row[rest[0]]
    if op == "literal":
        return rest[0]
    args = [scalar(arg, row) for arg in rest]
    if op == "is null":
        return args[0] is None
    if op == "coalesce":
        return next((arg for arg in args if arg is not None), None)
    if op in ("and", "or"):
        return _logic(op, args)
    if op == "case of":
        subject = args.pop(0)
        args[:-1:2] = [compare("=", subject, value) for value in args[:-1:2]]
    if op in ("case", "case of"):
        return next((r for c, r in zip(args[:-1:2], args[1::2], strict=True) if c is True), args[-1])
    if op == "in":
        return _logic("or", [compare("=", args[0], item) for item in args[1:]])
    if op == "between":
        return _logic("and", [compare(">=", args[0], args[1]), compare("<=", args[0], args[2])])
    if op in ("least", "greatest"):
        best = None
        for arg in args:
            if arg is not None and (best is None or compare("<" if op == "least" else ">", arg, best)):
                best = arg
        return best
    if None in args:
        return None
    if op == "not":
        return not args[0]
    return compare(op, *args) if op in ("=", "<>", "<", "<=", ">", ">=") else arithmetic(op, *args)


def _logic(op: str, args: list[bool | None]) -> bool | None:
    decisive = op == "or"
    if any(arg is decisive for arg in args):
        return decisive
    return None if None in args else not decisive


def compare(op: str, a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    if isinstance(a, float):  # NaN last, and equal to itself
        a, b = ((math.isnan(v), 0.0 if math.isnan(v) else v) for v in (a, b))
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]  # type: ignore[no-any-return]


def arithmetic(op: str, a: float, b: float = 0.0) -> float:
    if op in ("+", "-", "*"):
        return {"+": a + b, "-": a - b, "*": a * b}[op]
    if op in ("negative", "abs"):
        return -a if op == "negative" else abs(a)
    if op == "/":
        if b == 0:
            return NAN if a == 0 or math.isnan(a) else math.copysign(INF, a) * math.copysign(1.0, b)
        return a / b
    try:
        return (
            {"%": math.fmod, "power": math.pow}[op](a, b)
            if op in ("%", "power")
            else getattr(math, {"ln": "log"}.get(op, op))(a)
        )
    except OverflowError:
        odd = op == "power" and math.fmod(b, 2) != 0
        return -INF if odd and a < 0 else INF
    except ValueError:
        if op == "ln" and a == 0:
            return -INF
        if op == "power" and a == 0:
            return math.copysign(INF, a) if math.fmod(b, 2) != 0 else INF
        return NAN


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
