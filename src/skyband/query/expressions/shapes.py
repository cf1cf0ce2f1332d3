"""Expressions that are, bit for bit, something simpler: a weighted sum as it would be computed, ranges of columns.

Unlike a `Form`, which is equal up to rounding, these may replace the expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from math import inf, isfinite, nextafter
from typing import Any, NamedTuple

from skyband.query.expressions.parser import Expression
from skyband.query.expressions.tree import RULES, Kind, Node, kind_of
from skyband.query.expressions.words import PARTS

Box = dict[str, tuple[float, float]]


def as_sum(expression: Expression) -> tuple[tuple[str, float], ...] | None:
    """The columns and weights of w·x + w·y + ..., typed in that order; None for anything else."""
    terms = _terms(expression.tree)
    if terms is None or len({name for name, _ in terms}) < len(terms):
        return None
    return tuple(terms)


def _terms(node: Node) -> list[tuple[str, float]] | None:
    if node.op in ("+", "-"):
        before, last = _terms(node.args[0]), _term(node.args[1])
        if before is None or last is None:
            return None
        return [*before, last if node.op == "+" else (last[0], -last[1])]
    term = _term(node)
    return None if term is None else [term]


def _term(node: Node) -> tuple[str, float] | None:
    if node.op == "column":
        return str(node.value), 1.0
    if node.op == "negative":
        inner = _term(node.args[0])
        return None if inner is None else (inner[0], -inner[1])
    if node.op == "*":
        for one, other in (node.args, node.args[::-1]):
            weight = _number(one)
            if weight is not None and other.op == "column":
                return str(other.value), weight
    return None


def _number(node: Node) -> float | None:
    if node.op == "negative":
        inner = _number(node.args[0])
        return None if inner is None else -inner
    value = node.value
    number = node.op == "literal" and isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and isfinite(value) else None  # type: ignore[arg-type]


def as_locals(expression: Expression) -> tuple[tuple[tuple[str, str], ...], str] | None:
    """The local functions of a score of pairs, |a.x - b.x| ("absdiff") or a.x + b.x ("sum"), and how they combine.

    Only what is typed as they are computed: one after another, all summed or all multiplied.
    """
    tree = expression.tree
    for op, combine in (("+", "sum"), ("*", "product")):
        terms: list[tuple[str, str]] = []
        node = tree
        while node.op == op and _local(node) is None and (last := _local(node.args[1])) is not None:
            terms.append(last)
            node = node.args[0]
        first = _local(node)
        if first is not None:
            return (first, *reversed(terms)), combine
    return None


def _local(node: Node) -> tuple[str, str] | None:
    inner = node.args[0] if node.op == "abs" else node
    if inner.op != ("-" if node.op == "abs" else "+") or any(arg.op != "column" for arg in inner.args):
        return None
    (one, x), (other, y) = (str(arg.value).split(".", 1) for arg in inner.args)
    return (x, "absdiff" if node.op == "abs" else "sum") if x == y and one != other else None


def ranges(expression: Expression) -> tuple[Box, bool]:
    """The ranges of columns that a condition demands (ends included), and whether that is all it demands."""
    parts = _conjuncts(expression.tree)
    return ranges_of(parts), all(_range(part) is not None for part in parts)


def ranges_of(parts: Iterable[Node]) -> Box:
    """The ranges of columns that these conditions demand together, as far as they demand ranges."""
    box: Box = {}
    for name, low, high in filter(None, map(_range, parts)):
        before = box.get(name, (-inf, inf))
        box[name] = (max(low, before[0]), min(high, before[1]))
    return box


def _conjuncts(node: Node) -> list[Node]:
    return [part for arg in node.args for part in _conjuncts(arg)] if node.op == "and" else [node]


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _range(node: Node) -> tuple[str, float, float] | None:
    if node.op == "between" and node.args[0].op == "column":
        low, high = _number(node.args[1]), _number(node.args[2])
        return None if low is None or high is None else (str(node.args[0].value), low, high)
    if node.op not in _TURNED:
        return None
    op, (left, right) = node.op, node.args
    if left.op != "column":
        op, left, right = _TURNED[op], right, left
    bound = _number(right)
    if left.op != "column" or bound is None:
        return None
    name = str(left.value)
    if op == "=":
        return name, bound, bound
    if op in (">", ">="):
        return name, bound if op == ">=" else nextafter(bound, inf), inf
    return name, -inf, bound if op == "<=" else nextafter(bound, -inf)


class Demand(NamedTuple):
    """What a condition demands of a column: compared with a number, or with the value of that name (`Each`)."""

    column: str
    op: str  # = < <= > >=
    bound: float | None
    each: str | None


def demands(expression: Expression) -> tuple[list[Demand], list[Node]] | None:
    """The demands of a condition that depend on a subscription's values, and its parts that do not.

    None: more depends on them than how columns compare with them.
    """
    found: list[Demand] = []
    rest: list[Node] = []
    for part in _conjuncts(expression.tree):
        if not _has_each(part):
            rest.append(part)
            continue
        pairs: list[tuple[Any, ...]] = [(part.op, *part.args)]
        if part.op == "between":
            value, low, high = part.args
            pairs = [(">=", value, low), ("<=", value, high)]
        for op, *sides in pairs:
            demand = _demand(op, *sides) if op in _TURNED and len(sides) == 2 else None
            if demand is None:
                return None
            found.append(demand)
    return found, rest


def _demand(op: str, left: Node, right: Node) -> Demand | None:
    if left.op != "column":
        op, left, right = _TURNED[op], right, left
    bound = _number(right)
    if left.op != "column" or (bound is None and right.op != "each"):
        return None
    return Demand(str(left.value), op, bound, None if right.op != "each" else str(right.value))


def _has_each(node: Node) -> bool:
    return node.op == "each" or any(_has_each(arg) for arg in node.args)


def columns_in(nodes: Iterable[Node]) -> tuple[str, ...]:
    """The columns that these parts of an expression read."""
    found, stack = [], list(nodes)
    while stack:
        node = stack.pop()
        if node.op == "column":
            found.append(str(node.value))
        stack.extend(node.args)
    return tuple(dict.fromkeys(found))


def member_columns(expression: Expression) -> tuple[str, ...]:
    """The columns that an expression over `a.` and `b.` reads of either member."""
    return tuple(dict.fromkeys(name.partition(".")[2] for name in expression.columns))


_WALL_CLOCK = frozenset({*PARTS, "exact second", "date", "datediff", "timestampdiff", "string"})


def reads_wall_clock(expression: Expression) -> bool:
    """Whether times with a zone may mean something else in another zone: parts, differences, literals without one."""
    stack = [expression.tree]
    while stack:
        node = stack.pop()
        zoneless = isinstance(node.value, date) and getattr(node.value, "tzinfo", None) is None
        if zoneless or node.op in _WALL_CLOCK:
            return True
        stack.extend(node.args)
    return False


_STRICT = frozenset(
    {"+", "-", "*", "/", "%", "negative", "abs", "sqrt", "exp", "ln"}
)  # not power: NaN to the power of 0 is 1


def strict_columns(expression: Expression) -> tuple[str, ...]:
    """The columns without whose value the expression has none, whatever subscriptions bring."""
    found: list[str] = []
    stack = [expression.tree]
    while stack:
        node = stack.pop()
        if node.op == "column":
            found.append(str(node.value))
        elif node.op in _STRICT:
            stack.extend(node.args)
    return tuple(dict.fromkeys(found))


def number_columns(expression: Expression) -> bool:
    """Whether all columns must hold numbers, by what is done with them."""
    found: dict[str, Kind] = {}

    def walk(node: Node, *, wanted: bool) -> None:
        if node.op == "column" and wanted:
            found[str(node.value)] = "number"
        if node.op in ("case", "case of"):
            start = 0 if node.op == "case" else 1
            for arg in (*node.args[start + 1 :: 2], node.args[-1]):
                walk(arg, wanted=wanted)
            compared = list(node.args[start:-1:2])
            if start:
                compared.append(node.args[0])
            for arg in compared:
                walk(arg, wanted=bool(start) and _is_number(compared, found))
        elif rule := RULES.get(node.op):
            first = len(node.args) if rule.then is None else 1
            same = _is_number(node.args[:first], found) or (wanted and rule.gives is None)
            for i, arg in enumerate(node.args):
                takes = rule.takes if i < first else rule.then
                walk(arg, wanted=takes == "number" or (takes is None and same))

    known = -1
    while known < len(found):  # another column is compared with one that has just been found
        known = len(found)
        walk(expression.tree, wanted=True)
    return found.keys() == {*expression.columns}


def _is_number(nodes: Sequence[Node], kinds: Mapping[str, Kind]) -> bool:
    """Whether one of these, which are of one kind, is a number."""
    return any(kind_of(node, kinds, ValueError) == "number" for node in nodes)
