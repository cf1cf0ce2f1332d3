"""Properties of an expression that an engine may exploit: its form, the directions of its columns, its symmetry.

A form is for choosing engines and for bounds that prune, never for computing scores: its coefficients are
rounded on their own, so they agree with the typed arithmetic only up to rounding. Cost: one walk of the tree
per form tried, at most (operations × depth) steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Literal

import numpy as np

from skyband.query.expressions.evaluation import evaluate
from skyband.query.expressions.parser import Expression
from skyband.query.expressions.tree import Node

Metric = Literal["euclidean", "squared", "manhattan", "chebyshev"]
Pairs = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Form:
    """The shape of an expression, w = weights, c = centre, by column:

    column      x                                    weights ((x, 1.0),)
    linear      constant + sum of w·x                weights, constant
    distance    euclidean  sqrt(sum of w·(x-c)²)     weights (positive), centre, metric
                squared    sum of w·(x-c)²
                manhattan  sum of w·|x-c|
                chebyshev  greatest w·|x-c|
    monotone    every column has a direction
    opaque      anything else

    `directions` holds +1 (rising) or -1 (falling) for each column in which the expression is monotone over
    all reals where it is defined; columns for which that is not proved are absent. It follows the operations
    as typed, each of which is monotone in float64 too (exp, ln and power up to the last bit).
    """

    kind: Literal["column", "linear", "distance", "monotone", "opaque"]
    weights: Pairs = ()
    constant: float = 0.0
    centre: Pairs = ()
    metric: Metric | None = None
    directions: tuple[tuple[str, int], ...] = ()


@lru_cache(maxsize=4096)  # each choice of an algorithm recognises its scoring again
def recognise(expression: Expression) -> Form:
    """The most specific form of `expression`."""
    tree = expression.tree
    found = _directions(tree).of
    directions = tuple((name, found[name]) for name in expression.columns if found.get(name))
    if tree.op == "column":
        return Form("column", ((expression.columns[0], 1.0),), directions=directions)
    affine = _affine(tree)
    if affine is not None and affine.weights:
        return Form("linear", tuple(affine.weights.items()), affine.constant, directions=directions)
    distance = _distance(tree)
    if distance is not None:
        metric, terms = distance
        weights = tuple((term.column, term.weight) for term in terms)
        centre = tuple((term.column, term.centre) for term in terms)
        return Form("distance", weights, centre=centre, metric=metric, directions=directions)
    everywhere = 0 < len(directions) == len(expression.columns)
    return Form("monotone" if everywhere else "opaque", directions=directions)


def _constant(node: Node) -> float | None:
    """The finite number that a tree without columns stands for; a subscription's value is not known."""
    if _varies(node):
        return None
    result = evaluate("", node, (), {}, 1)
    if result.valid is not None or result.values.dtype != np.float64:
        return None
    value = float(result.values[0])
    return value if isfinite(value) else None


def _varies(node: Node) -> bool:
    return node.op in ("column", "each") or any(_varies(arg) for arg in node.args)


# --- linear -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Affine:
    weights: dict[str, float]
    constant: float

    def plus(self, other: _Affine, sign: float) -> _Affine:
        weights = dict(self.weights)
        for name, weight in other.weights.items():
            weights[name] = weights.get(name, 0.0) + sign * weight
        return _Affine(weights, self.constant + sign * other.constant)

    def times(self, factor: float) -> _Affine:
        return _Affine({name: w * factor for name, w in self.weights.items()}, self.constant * factor)

    def finite(self) -> _Affine | None:
        return self if all(map(isfinite, (self.constant, *self.weights.values()))) else None


def _affine(node: Node) -> _Affine | None:
    """The weights of a tree of columns with + and -, * and / by a constant; None for anything else."""
    if node.op == "column":
        return _Affine({str(node.value): 1.0}, 0.0)
    if node.op not in ("+", "-", "*", "/", "negative"):
        value = _constant(node)
        return None if value is None else _Affine({}, value)
    parts = [_affine(arg) for arg in node.args]
    if parts[0] is None or parts[-1] is None:
        return None
    left, right = parts[0], parts[-1]
    match node.op:
        case "negative":
            return left.times(-1.0)
        case "+" | "-":
            return left.plus(right, 1.0 if node.op == "+" else -1.0).finite()
        case "*" if not left.weights or not right.weights:
            return (left.times(right.constant) if left.weights else right.times(left.constant)).finite()
        case "/" if not right.weights and right.constant != 0.0:
            return left.times(1.0 / right.constant).finite()
    return None


# --- distance -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Term:
    """weight · (column - centre)², or weight · |column - centre|"""

    shape: Literal["square", "abs"]
    column: str
    weight: float
    centre: float


def _distance(node: Node) -> tuple[Metric, list[_Term]] | None:
    for metric, shape, parts in _metrics(node):
        terms = [_term(part, scale) for part, scale in parts]
        found = [term for term in terms if term is not None and term.shape == shape and term.weight > 0]
        if len(found) == len(terms) == len({term.column for term in found}):
            return metric, found
    return None


def _metrics(node: Node) -> Iterator[tuple[Metric, str, list[tuple[Node, float]]]]:
    if node.op == "sqrt":
        yield "euclidean", "square", _summands(node.args[0], 1.0)
    elif node.op == "greatest":
        yield "chebyshev", "abs", [(arg, 1.0) for arg in node.args]
    else:
        yield "squared", "square", _summands(node, 1.0)
        yield "manhattan", "abs", _summands(node, 1.0)


def _summands(node: Node, scale: float) -> list[tuple[Node, float]]:
    """The terms of a sum and the factor of each: 2*(u + v) is u, v by 2."""
    if node.op == "+":
        return _summands(node.args[0], scale) + _summands(node.args[1], scale)
    factor, rest = _factors(node)
    if len(rest) == 1 and rest[0].op == "+":
        return _summands(rest[0], scale * factor)
    return [(node, scale)]


def _factors(node: Node) -> tuple[float, list[Node]]:
    """The constant factor of a product, and its other factors."""
    value = _constant(node)
    if value is not None:
        return value, []
    if node.op == "*":
        (left, some), (right, others) = _factors(node.args[0]), _factors(node.args[1])
        return left * right, some + others
    divisor = _constant(node.args[1]) if node.op == "/" else None
    if divisor:
        factor, rest = _factors(node.args[0])
        return factor / divisor, rest
    return 1.0, [node]


def _term(node: Node, scale: float) -> _Term | None:
    factor, rest = _factors(node)
    if len(rest) == 2 and rest[0] == rest[1]:
        return _centred("square", rest[0], scale * factor)
    if len(rest) == 1 and rest[0].op == "power" and _constant(rest[0].args[1]) == 2.0:
        return _centred("square", rest[0].args[0], scale * factor)
    if len(rest) == 1 and rest[0].op == "abs":
        return _centred("abs", rest[0].args[0], scale * factor)
    return None


def _centred(shape: Literal["square", "abs"], inner: Node, weight: float) -> _Term | None:
    affine = _affine(inner)
    if affine is None or len(affine.weights) != 1:
        return None
    ((column, slope),) = affine.weights.items()
    if slope == 0.0:
        return None
    weight *= slope * slope if shape == "square" else abs(slope)
    centre = 0.0 - affine.constant / slope
    return _Term(shape, column, weight, centre) if isfinite(weight) and isfinite(centre) else None


# --- directions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Directions:
    of: dict[str, int]  # +1 rising, -1 falling, 0 not proved
    total: bool  # a number for all reals; else NaN somewhere, as sqrt of a negative

    def times(self, sign: int, *, total: bool = True) -> _Directions:
        return _Directions({name: sign * way for name, way in self.of.items()}, self.total and total)


def _merge(parts: list[_Directions]) -> _Directions:
    of: dict[str, int] = {}
    for part in parts:
        for name, way in part.of.items():
            of[name] = way if of.get(name, way) == way else 0
    return _Directions(of, all(part.total for part in parts))


def _directions(node: Node) -> _Directions:
    if node.op == "column":
        return _Directions({str(node.value): 1}, total=True)
    parts = [_directions(arg) for arg in node.args]
    match node.op:
        case "literal" | "each":
            return _Directions({}, node.value is not None)
        case "+":
            return _merge(parts)
        case "-":
            return _merge([parts[0], parts[1].times(-1)])
        case "negative":
            return parts[0].times(-1)
        case "exp":
            return parts[0]
        case "sqrt" | "ln":
            return parts[0].times(1, total=False)
        case "least" | "greatest" if all(part.total for part in parts):  # NaN is the largest, not undefined
            return _merge(parts)
        case "*":
            return _merge([parts[0].times(_sign(node.args[1])), parts[1].times(_sign(node.args[0]))])
        case "/":
            sign = _sign(node.args[1])
            return _merge([parts[0].times(sign, total=sign != 0), parts[1].times(0)])
        case "power":
            return _power_directions(node, parts)
    return _merge([part.times(0, total=False) for part in parts])


def _sign(node: Node) -> int:
    """The sign of a constant; 0 for zero and for what is no constant."""
    value = _constant(node)
    return 0 if not value else 1 if value > 0 else -1


def _power_directions(node: Node, parts: list[_Directions]) -> _Directions:
    base, exponent = (_constant(arg) for arg in node.args)
    if exponent is not None and exponent > 0 and exponent % 2 == 1:
        return parts[0]
    if exponent is not None and exponent > 0 and exponent % 1:  # NaN below zero
        return parts[0].times(1, total=False)
    if base is not None and base > 0 and base != 1:
        return parts[1].times(1 if base > 1 else -1)
    return _merge([part.times(0, total=False) for part in parts])


# --- symmetry -----------------------------------------------------------------------------------------------

_COMMUTES = frozenset({"+", "*", "=", "<>", "and", "or"})
_EXTREMES = frozenset({"least", "greatest"})
_MIRRORED = {">": "<", ">=": "<="}


def is_symmetric(expression: Expression) -> bool:
    """Whether swapping the two members provably gives the same score for every pair of objects.

    The same bits, that is, but for the sign of a zero that least or greatest picks. Proved by a normal form:
    a+b is b+a and a*b is b*a (never reassociated, as that rounds differently), |u-v| is |v-u|, and likewise
    under even powers and in (u-v)*(u-v). What it cannot prove is False.
    """
    if len(expression.members) != 2:
        return False
    first, second = expression.members
    commutes = _COMMUTES if _magnifies_zero(expression.tree) else _COMMUTES | _EXTREMES
    as_typed, swapped = _NormalForm({}, commutes), _NormalForm({first: second, second: first}, commutes)
    return as_typed.exact(expression.tree) == swapped.exact(expression.tree)


@dataclass(frozen=True)
class _NormalForm:
    """Texts of trees, columns renamed by `swap`; equal texts mean equal values."""

    swap: dict[str, str]
    commutes: frozenset[str]

    def exact(self, node: Node) -> str:
        """Equal for trees with equal bits."""
        if node.op == "column":
            member, _, name = str(node.value).partition(".")
            return f"{self.swap.get(member, member)}.{name!r}"
        if node.op in ("literal", "each"):
            return f"{node.op[:1]}{node.value!r}"
        if node.op == "abs":
            return f"abs({self.size(node.args[0])})"
        if node.op == "power" and _is_even(node.args[1]):
            return f"power({self.size(node.args[0])}, {self.exact(node.args[1])})"
        if node.op == "*" and node.args[0] == node.args[1]:
            return f"square({self.size(node.args[0])})"
        args = [self.exact(arg) for arg in node.args]
        if node.op in _MIRRORED:
            return f"{_MIRRORED[node.op]}({', '.join(reversed(args))})"
        if node.op in self.commutes or (node.op in _EXTREMES and all(map(_is_positive, node.args))):
            args.sort()
        return f"{node.op}{'' if node.value is None else repr(node.value)}({', '.join(args)})"

    def size(self, node: Node) -> str:
        """Equal for trees whose absolute values have equal bits."""
        match node.op:
            case "negative" | "abs":
                return self.size(node.args[0])
            case "-" | "datediff" | "timestampdiff":
                return f"±{node.op}{node.value or ''}({', '.join(sorted([self.exact(arg) for arg in node.args]))})"
            case "*":
                return f"±*({', '.join(sorted([self.size(arg) for arg in node.args]))})"
            case "/":
                return f"±/({', '.join([self.size(arg) for arg in node.args])})"
        return self.exact(node)


def _magnifies_zero(node: Node) -> bool:
    """Whether 0.0 and -0.0 may give different numbers: 1/0.0 and 1/-0.0 do."""
    if node.op == "/" and _constant(node.args[1]) is None:
        return True
    if node.op == "power" and (_constant(node.args[1]) or -1.0) < 0:
        return True
    return any(_magnifies_zero(arg) for arg in node.args)


def _is_even(node: Node) -> bool:
    value = _constant(node)
    return value is not None and value % 2 == 0


def _is_positive(node: Node) -> bool:
    """Provably above zero, +0.0 or NaN; never -0.0."""
    if node.op in ("abs", "exp"):
        return True
    if node.op == "literal":
        return isinstance(node.value, float)
    if node.op == "power":
        return _is_even(node.args[1])
    if node.op == "*" and node.args[0] == node.args[1]:
        return True
    return node.op in ("+", "*", "least", "greatest") and all(_is_positive(arg) for arg in node.args)
