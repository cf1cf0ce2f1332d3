"""Expressions over one row, in plain Python: floats, strings, booleans, and None for null.

A null makes arithmetic and comparisons null; `and`, `or`, `not` follow SQL's three-valued logic; NaN compares
as in Spark; arithmetic on floats follows IEEE 754 where Python would raise (division by zero, overflow).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import sqlglot
from sqlglot import exp

from skyband.errors import BatchError
from skyband.oracle.functions import called, comparable
from skyband.oracle.objects import Row

Value: TypeAlias = Any  # float | str | bool | None, or a time
Lookup: TypeAlias = Callable[[str, str], Value]  # (member "a", "b" or "", column) -> value

LARGEST_INTEGER = 2**53  # beyond it float64 cannot hold every integer, so decimals are refused as well


def plain(value: Any) -> Value:
    """A value of a row as the evaluator sees it: every number a float."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return float(value)
    return value


def too_large(value: Any) -> bool:
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, Decimal):
        return value.copy_abs() > LARGEST_INTEGER  # abs() would round to the context's precision
    return isinstance(value, int) and abs(value) > LARGEST_INTEGER


def number(value: Any) -> float | None:
    """A number or null; anything else is not what the expression wanted."""
    value = plain(value)
    if value is None or isinstance(value, float):
        return value
    raise BatchError(f"{value!r} is no number. Use a column of numbers.")


def rounded_sum(values: Iterable[float]) -> float:
    """The correctly rounded sum of numbers, as `math.fsum`, which refuses some of those that end beyond float64."""
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@lru_cache(maxsize=1000)
def parse(text: str) -> exp.Expr:
    if text.isidentifier() and text.lower() not in ("null", "true", "false"):
        return exp.column(text)
    return sqlglot.parse_one(text, read="spark")


def holds(where: str | None, row: Row) -> bool:
    """Whether the object can be an answer: null is not true."""
    if where is None:
        return True
    return truth(evaluate(parse(where), lambda _, column: plain(row.get(column)))) is True


def evaluate(node: Any, lookup: Lookup) -> Value:
    """The value of an expression."""

    def value(child: Any) -> Value:
        return evaluate(child, lookup)

    match node:
        case exp.Column():
            return lookup(node.table, node.name)
        case exp.Literal():
            return node.this if node.is_string else float(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.Paren():
            return value(node.this)
        case exp.Neg():
            x = number(value(node.this))
            return None if x is None else -x
        case exp.And():
            return _and(truth(value(node.this)), truth(value(node.expression)))
        case exp.Or():
            return _or(truth(value(node.this)), truth(value(node.expression)))
        case exp.Not():
            return _not(truth(value(node.this)))
        case exp.Between():
            x = value(node.this)
            low, high = value(node.args["low"]), value(node.args["high"])
            return _and(_compare(exp.GTE, x, low), _compare(exp.LTE, x, high))
        case exp.In():
            x = value(node.this)
            found: bool | None = False
            for choice in node.expressions:
                found = _or(found, _compare(exp.EQ, x, value(choice)))
            return found
        case exp.Is():
            return value(node.this) is value(node.expression)  # null, true or false
        case exp.Case():
            for branch in node.args["ifs"]:
                condition = value(branch.this)
                if node.this is not None:  # case x when 1 then ...
                    condition = _compare(exp.EQ, value(node.this), condition)
                if truth(condition):
                    return value(branch.args["true"])
            return None if node.args.get("default") is None else value(node.args["default"])
        case exp.Coalesce():
            return next((x for x in map(value, [node.this, *node.expressions]) if x is not None), None)
        case exp.Least() | exp.Greatest():
            return _extreme(type(node), [value(child) for child in [node.this, *node.expressions]])
    if type(node) in _COMPARISONS:
        return _compare(type(node), value(node.this), value(node.expression))
    if type(node) in _FUNCTIONS:
        children = [node.this] if node.args.get("expression") is None else [node.this, node.expression]
        numbers = [number(value(child)) for child in children]
        return None if None in numbers else _FUNCTIONS[type(node)](*numbers)
    return called(node, value)


_COMPARISONS: dict[Any, Callable[[Any, Any], bool]] = {
    exp.EQ: lambda x, y: x == y,
    exp.NEQ: lambda x, y: x != y,
    exp.LT: lambda x, y: x < y,
    exp.LTE: lambda x, y: x <= y,
    exp.GT: lambda x, y: x > y,
    exp.GTE: lambda x, y: x >= y,
}


def _compare(kind: Any, x: Value, y: Value) -> bool | None:
    """As in Spark a NaN equals itself and is larger than any number."""
    if x is None or y is None:
        return None
    if isinstance(x, date) and isinstance(y, date):
        return _COMPARISONS[kind](*comparable(x, y))
    if type(x) is not type(y):
        raise BatchError(f"{x!r} and {y!r} cannot be compared. Compare numbers with numbers, text with text.")
    if isinstance(x, float):
        x, y = ((True, 0.0) if math.isnan(z) else (False, z) for z in (x, y))
    return _COMPARISONS[kind](x, y)


def truth(value: Value) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise BatchError(f"{value!r} is no condition. Compare it with something.")


def _and(x: bool | None, y: bool | None) -> bool | None:
    if x is False or y is False:
        return False
    return None if x is None or y is None else True


def _or(x: bool | None, y: bool | None) -> bool | None:
    return _not(_and(_not(x), _not(y)))


def _not(x: bool | None) -> bool | None:
    return None if x is None else not x


def _extreme(kind: Any, values: list[Value]) -> float | None:
    """least, greatest: nulls are skipped, NaN is the largest; of equals (0.0 and -0.0) the first."""
    numbers = [x for x in map(number, values) if x is not None]
    pick = min if kind is exp.Least else max
    return pick(numbers, key=lambda x: (math.isnan(x), 0.0 if math.isnan(x) else x), default=None)


def _divide(x: float, y: float) -> float:
    if y != 0:
        return x / y
    if x == 0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _remainder(x: float, y: float) -> float:
    """The sign is the dividend's."""
    return math.nan if y == 0 or math.isinf(x) else math.fmod(x, y)


def _power(x: float, y: float) -> float:
    odd = y % 2 == 1
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and odd else math.inf
    except ValueError:  # 0 to a negative power, or a negative number to a broken one
        if x == 0:
            return math.copysign(math.inf, x) if odd else math.inf
        return math.nan


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _ln(x: float) -> float:
    if x == 0:
        return -math.inf
    return math.nan if x < 0 else math.log(x)


def _sqrt(x: float) -> float:
    return math.nan if x < 0 else math.sqrt(x)


_FUNCTIONS: dict[Any, Callable[..., float]] = {
    exp.Add: lambda x, y: x + y,
    exp.Sub: lambda x, y: x - y,
    exp.Mul: lambda x, y: x * y,
    exp.Div: _divide,
    exp.Mod: _remainder,
    exp.Abs: abs,
    exp.Sqrt: _sqrt,
    exp.Pow: _power,
    exp.Exp: _exp,
    exp.Ln: _ln,
}
