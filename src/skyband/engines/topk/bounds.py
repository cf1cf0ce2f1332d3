"""Programs that bound typed expressions over boxes of their columns: a tree becomes steps (kernels/bounds.py).

Every expression has one. What is not about numbers, such as the hour of a time, may be any number or truth. Equal
parts are computed once, and x*x is a square: else an interval for x would not know that it is the same x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

import numpy as np

from skyband.engines.contract import Floats, Scorings
from skyband.engines.topk.kernels import bounds as kernels
from skyband.engines.topk.kernels.typed_scores import CHUNK, EXACT, FUNCTIONS, score_rows
from skyband.engines.topk.kernels.window_state import Programs
from skyband.engines.topk.scorings import OverAxes
from skyband.query.expressions import Expression, Kind, Node, Operand, kind_of, parse, recognise
from skyband.query.kinds import Above, TopK
from skyband.query.scoring.forms import EXPRESSION

_OPERATIONS = {
    "+": kernels.ADD, "-": kernels.SUB, "*": kernels.MUL, "/": kernels.DIV, "%": kernels.MOD,
    "negative": kernels.NEGATIVE, "abs": kernels.ABS, "sqrt": kernels.SQRT, "power": kernels.POWER,
    "exp": kernels.EXP, "ln": kernels.LN, "floor": kernels.FLOOR, "ceil": kernels.CEIL,
    "=": kernels.EQUAL, "<": kernels.LESS, "<=": kernels.AT_MOST, "not": kernels.NOT, "is null": kernels.IS_NULL,
    "double": kernels.COPY,
}  # fmt: skip
_TURNED = {">": kernels.LESS, ">=": kernels.AT_MOST}
_MANY = {
    "least": kernels.LEAST, "greatest": kernels.GREATEST, "coalesce": kernels.COALESCE, "and": kernels.AND,
    "or": kernels.OR,
}  # fmt: skip
_TYPES = {"bigint": 2.0**63, "int": 2.0**31}
_NUMBERS = ("number", "boolean", None)  # kinds that an interval is of; None: NULL


def no_programs() -> Programs:
    """The programs of queries that need none."""
    return _made([], [])


def expressions_of(queries: list[TopK | Above], texts: list[str]) -> Scorings:
    """Expressions over the same columns, as the engine of their window sees them: their keys come with objects."""
    parsed, turned = [parse(text) for text in texts], not queries[0].descending
    axes = OverAxes(texts[0]).columns
    columns = np.array([texts.index(str(query.by)) for query in queries])
    ways = np.array([ways_of(one, axes, turned=turned) for one in parsed])[columns]

    def keys(which: int, data: Floats) -> Floats:
        found: Floats = data[len(axes) + columns[which]]
        return found

    return Scorings(
        EXPRESSION, turned, ways, np.empty((len(queries), 0)), keys, programs=programs_of(parsed, axes), columns=columns
    )


def programs_of(expressions: Sequence[Expression], axes: Sequence[str]) -> Programs:
    """The programs of expressions over these columns, all of numbers."""
    writers = [_Writer(expression.tree, axes) for expression in expressions]
    return _made([one.steps for one in writers], [one.registers for one in writers])


@lru_cache(maxsize=16)
def _exact_programs(texts: tuple[str, ...], axes: tuple[str, ...]) -> Programs | None:
    """The programs of expressions whose values kernels compute to the last bit; None: of some they do not."""
    programs = programs_of([parse(text) for text in texts], axes)
    used = programs.code[..., 0][np.arange(programs.code.shape[1]) < programs.steps[:, None]]
    exact = bool(np.isin(used, (*EXACT, *FUNCTIONS)).all()) and not programs.odd.any()
    return programs if exact and (has_same_functions() or not np.isin(used, FUNCTIONS).any()) else None


@cache
def has_same_functions() -> bool:
    """Whether compiled code and Python call one C library: the same bits of exp, ln and power.

    They do, unless Numba takes the functions of Intel's library, whose last bit differs in 2 of 1,000 numbers or more.
    """
    texts, size = ("exp(x)", "ln(x)", "power(x, y)"), 4096
    columns = {"x": np.linspace(0.01, 9, size), "y": np.linspace(-3, 3, size)[::-1].copy()}
    found = _score(programs_of([parse(text) for text in texts], ("x", "y")), list(columns.values()))
    operands = {name: Operand(column) for name, column in columns.items()}
    expected = [parse(text).evaluate(operands, size).values for text in texts]
    return found is not None and found.tobytes() == np.stack(expected).tobytes()


def scores_together(texts: tuple[str, ...], axes: tuple[str, ...], columns: Sequence[Floats]) -> Floats | None:
    """The scores of rows by expressions, a row of them for each, from columns without NaN or null.

    None: some row has no score by one of them, or kernels do not compute an expression to the last bit.
    """
    programs = _exact_programs(texts, axes)
    return None if programs is None else _score(programs, columns)


def _score(programs: Programs, columns: Sequence[Floats]) -> Floats | None:
    scores = np.empty((len(programs.steps), len(columns[0])))
    values = np.empty((programs.low.shape[1], CHUNK))
    return scores if score_rows(programs, np.stack(columns), values, scores) else None


def ways_of(expression: Expression, axes: Sequence[str], *, turned: bool) -> Floats:
    """Whether the key rises (1) or falls (-1) with each column, as far as that is known (else 0)."""
    ways = dict(recognise(expression).directions)
    return np.array([(-1.0 if turned else 1.0) * ways.get(name, 0) for name in axes])


def bound_of(expression: Expression, box: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """The least and the largest value over a box of columns; the first is larger where there is none."""
    programs = programs_of([expression], list(box))
    for j, ends in enumerate(box.values()):
        programs.low[0, j], programs.high[0, j] = ends
    found = kernels.bounds_alone(programs)
    return found[0], found[1]


class _Writer:
    """Writes one operation after another; registers are sides of the box, then constants, then results."""

    def __init__(self, tree: Node, axes: Sequence[str]) -> None:
        self.axes = list(axes)
        self.kinds: dict[str, Kind] = dict.fromkeys(axes, "number")
        self.registers: list[float | None] = [0.0] * len(axes)  # their constants
        self.steps: list[tuple[int, int, int, int, int]] = []
        self.written: dict[Node, int] = {}
        self.add(kernels.COPY, self.write(tree))

    def write(self, node: Node) -> int:
        if node not in self.written:
            self.written[node] = self._write(node)
        return self.written[node]

    def _write(self, node: Node) -> int:
        op, args = node.op, node.args
        if op == "column":
            return self.axes.index(str(node.value))
        if op == "literal":
            return self.constant(None if node.value is None else float(node.value))  # type: ignore[arg-type]
        if any(self._kind(arg) not in _NUMBERS for arg in args):
            return self._any(node)
        if op == "*" and args[0] == args[1]:
            return self.add(kernels.SQUARE, self.write(args[0]))
        if op == "<>":
            return self.add(kernels.NOT, self.add(kernels.EQUAL, *map(self.write, args)))
        if op in _OPERATIONS:
            return self.add(_OPERATIONS[op], *map(self.write, args))
        if op in _TURNED:
            return self.add(_TURNED[op], *map(self.write, reversed(args)))
        if op in _MANY:
            return self._folded(_MANY[op], [self.write(arg) for arg in args])
        if op == "between":
            value, low, high = map(self.write, args)
            return self.add(kernels.AND, self.add(kernels.AT_MOST, low, value), self.add(kernels.AT_MOST, value, high))
        if op == "in":
            value, *others = map(self.write, args)
            return self._folded(kernels.OR, [self.add(kernels.EQUAL, value, other) for other in others])
        if op == "round":
            digits = float(node.value or 0)  # type: ignore[arg-type]
            unit = 0.0 if digits == 0 else 10.0**-digits if digits > -308 else np.inf
            return self.add(kernels.ROUND, self.write(args[0]), self.constant(max(unit, 5e-324) if digits else 0.0))
        if op in _TYPES:
            return self.add(kernels.TRUNC, self.write(args[0]), self.constant(_TYPES[op]))
        return self._case(node) if op in ("case", "case of") else self._any(node)

    def _kind(self, node: Node) -> Kind | None:
        return kind_of(node, self.kinds, ValueError)

    def _any(self, node: Node) -> int:
        return self.add(kernels.TRUTH if self._kind(node) == "boolean" else kernels.NUMBER)

    def _case(self, node: Node) -> int:
        subject = self.write(node.args[0]) if node.op == "case of" else None
        branches = node.args if subject is None else node.args[1:]
        result = self.write(branches[-1])
        for i in range(len(branches) - 3, -1, -2):
            condition = self.write(branches[i])
            if subject is not None:
                condition = self.add(kernels.EQUAL, subject, condition)
            result = self.add(kernels.CHOOSE, condition, self.write(branches[i + 1]), result)
        return result

    def _folded(self, op: int, registers: list[int]) -> int:
        first, *others = registers
        for other in others:
            first = self.add(op, first, other)
        return first

    def constant(self, value: float | None) -> int:
        self.registers.append(value)
        return len(self.registers) - 1

    def add(self, op: int, x: int = 0, y: int | None = None, z: int | None = None) -> int:
        to = self.constant(0.0)
        self.steps.append((op, x, x if y is None else y, x if z is None else z, to))
        return to


def _made(steps: list[list[tuple[int, int, int, int, int]]], registers: list[list[float | None]]) -> Programs:
    many, most = max(map(len, steps), default=0), max(map(len, registers), default=0)
    code = np.zeros((len(steps), many, 5), np.int32)
    low, high = np.zeros((len(steps), most)), np.zeros((len(steps), most))
    odd = np.zeros((len(steps), most), np.bool_)
    for e, (own, constants) in enumerate(zip(steps, registers, strict=True)):
        code[e, : len(own)] = own
        nulls = np.array([one is None for one in constants])
        values = np.array([0.0 if one is None else one for one in constants])
        low[e, : len(values)], high[e, : len(values)] = (
            np.where(nulls, np.inf, values),
            np.where(nulls, -np.inf, values),
        )
        odd[e, : len(values)] = nulls
    return Programs(code, np.array([len(one) for one in steps], np.int64), low, high, odd)


def only(programs: Programs, which: Sequence[int]) -> Programs:
    """These of the programs, in this order."""
    chosen = np.array(which, np.int64)
    return Programs(*(np.ascontiguousarray(array[chosen]) for array in programs))
