"""Columns and random trees of expressions, and a scalar evaluator of them that shares no code with ours."""

from __future__ import annotations

import math
import struct
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from skyband.query.expressions import Expression, Operand, parse

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
            return math.copysign(INF, a) if abs(math.fmod(b, 2)) == 1 else INF
        return NAN
