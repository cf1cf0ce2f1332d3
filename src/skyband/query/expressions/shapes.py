"""Expressions that are, bit for bit, something simpler: a weighted sum as it would be computed, ranges of columns.

Unlike a `Form`, which is equal up to rounding, these may replace the expression.
"""

from __future__ import annotations

from math import inf, isfinite, nextafter

from skyband.query.expressions.parser import Expression
from skyband.query.expressions.tree import Node

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
    box: Box = {}
    whole = True
    for part in _conjuncts(expression.tree):
        found = _range(part)
        whole &= found is not None
        if found is not None:
            name, low, high = found
            before = box.get(name, (-inf, inf))
            box[name] = (max(low, before[0]), min(high, before[1]))
    return box, whole


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
