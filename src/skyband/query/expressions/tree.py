"""The tree of an expression: small values, with one table of rules for their kinds.

The same walk, `kind_of`, checks kinds twice: on reading, when only literals have one, and per batch, when
columns do too. It costs one visit per node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from numpy.typing import NDArray

from skyband.query.expressions.words import PARTS

Kind = Literal["number", "boolean", "string", "time"]


@dataclass(frozen=True, eq=False)
class Operand:
    """A column of values: float64, bool, object (strings) or datetime64 (us: timestamps, D: dates).

    `valid` is False where null; None: no nulls. Null slots of `values` hold anything. What the values alone do not say:
    `whole`, whether numbers are integers for Spark (None: neither integers nor doubles, as decimals), and `zone`, that
    of timestamps which are instants; `values` are then UTC's.
    """

    values: NDArray[Any]
    valid: NDArray[Any] | None = None
    whole: bool | None = False
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: a key of RULES, or "column" (value: its name), "each" (the name of a value that subscriptions
    bring) or "literal" (value: None is NULL).

    "case" has arguments condition, result, ..., otherwise; "case of" has the compared value before them. The value of
    "like" is its pattern, of "round" the number of digits, of "timestampdiff" the unit.
    """

    op: str
    args: tuple[Node, ...] = ()
    value: str | float | date | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """The kind an operation takes (None: any, as long as it is one) and gives (None: what it takes).

    then: the kind of all arguments but the first, where it is another.
    """

    takes: Kind | None
    gives: Kind | None
    then: Kind | None = None


RULES: dict[str, Rule] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "negative"), Rule("number", "number")),
    **dict.fromkeys(("abs", "sqrt", "power", "exp", "ln", "least", "greatest"), Rule("number", "number")),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "between", "in"), Rule(None, "boolean")),
    **dict.fromkeys(("and", "or", "not"), Rule("boolean", "boolean")),
    "is null": Rule(None, "boolean"),
    "coalesce": Rule(None, None),
    **dict.fromkeys(("floor", "ceil", "round"), Rule("number", "number")),
    **dict.fromkeys(("double", "bigint", "int"), Rule(None, "number")),
    "string": Rule(None, "string"),
    "length": Rule("string", "number"),
    "like": Rule("string", "boolean"),
    **dict.fromkeys(("upper", "lower", "trim", "ltrim", "rtrim", "concat"), Rule("string", "string")),
    "substring": Rule("string", "string", then="number"),
    **dict.fromkeys((*PARTS, "exact second", "datediff", "timestampdiff"), Rule("time", "number")),
    "date": Rule("time", "time"),
}


def kind_of(node: Node, columns: Mapping[str, Kind], fail: Callable[[str], Exception]) -> Kind | None:
    """The kind of a node's result, None where unknown (NULL, a column not in `columns`).

    Raises `fail(message)` where an operation would mix kinds.
    """
    if node.op == "column":
        return columns.get(str(node.value))
    if node.op == "each":
        return None
    if node.op == "literal":
        return _literal_kind(node.value)
    kinds = [kind_of(arg, columns, fail) for arg in node.args]
    if node.op in ("case", "case of"):
        return _case_kind(node, kinds, fail)
    rule = RULES[node.op]
    first = len(kinds) if rule.then is None else 1
    common = _agree(node.op, rule.takes, node.args[:first], kinds[:first], fail)
    _agree(node.op, rule.then, node.args[first:], kinds[first:], fail)
    return rule.gives or common


def _literal_kind(value: str | float | date | None) -> Kind | None:
    if value is None:
        return None
    if isinstance(value, str):
        return "string"
    if isinstance(value, date):
        return "time"
    return "boolean" if isinstance(value, bool) else "number"


def _case_kind(node: Node, kinds: list[Kind | None], fail: Callable[[str], Exception]) -> Kind | None:
    start = 0 if node.op == "case" else 1
    when, then = slice(start, -1, 2), slice(start + 1, None, 2)
    if node.op == "case":
        _agree("when", "boolean", node.args[when], kinds[when], fail)
    else:
        _agree("case", None, (node.args[0], *node.args[when]), [kinds[0], *kinds[when]], fail)
    results = (*node.args[then], node.args[-1])
    return _agree("then", None, results, [*kinds[then], kinds[-1]], fail)


def _agree(
    op: str,
    takes: Kind | None,
    args: tuple[Node, ...],
    kinds: list[Kind | None],
    fail: Callable[[str], Exception],
) -> Kind | None:
    """The one kind of all arguments: `takes`, or else that of the first which has one."""
    first: Node | None = None
    for arg, kind in zip(args, kinds, strict=True):
        if kind is None or kind == takes:
            continue
        if takes is not None:
            needs = f"{takes}s" if first is None else f"one kind, and {_name(first)} is a {takes}"
            raise fail(f"{op} needs {needs}, but {_name(arg)} is a {kind}{_hint(op, takes, kind)}")
        takes, first = kind, arg
    return takes


def _hint(op: str, takes: Kind, kind: Kind) -> str:
    if op == "-" and kind == "time":
        return ". Write timestampdiff(second, start, end) or datediff(end, start)"
    if {takes, kind} == {"time", "string"}:
        return ". An instant is written timestamp '2013-01-01 06:30:00'"
    return ". Write cast(x as string)" if takes == "string" and kind == "number" else ""


def _name(node: Node) -> str:
    if node.op == "column":
        return f'column "{node.value}"'
    if node.op == "each":
        return f":{node.value}"
    if node.op == "literal":
        quoted = isinstance(node.value, str)
        return repr(node.value) if quoted or isinstance(node.value, float) else str(node.value).lower()
    return f"the result of {node.op}"
