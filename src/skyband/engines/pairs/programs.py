"""Programs of typed expressions: a tree of operations becomes code for the interpreter (kernels/programs.py).

Equal parts of an expression are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skyband.engines.contract import Floats
from skyband.engines.pairs.fields import Field, is_strict
from skyband.engines.pairs.kernels import programs as kernels
from skyband.engines.pairs.kernels.programs import BY_VALUE, CHUNK, CONSTANT, NEWER, OLDER, STRICT, Program
from skyband.query.expressions import Node

_BINARY = {
    "+": kernels.ADD,
    "-": kernels.SUB,
    "*": kernels.MUL,
    "/": kernels.DIV,
    "=": kernels.EQUAL,
    "<>": kernels.DIFFERENT,
    "<": kernels.LESS,
    "<=": kernels.AT_MOST,
    "and": kernels.AND,
    "or": kernels.OR,
}
_TURNED = {">": kernels.LESS, ">=": kernels.AT_MOST}
_UNARY = {
    "negative": kernels.NEGATIVE,
    "abs": kernels.ABS,
    "sqrt": kernels.SQRT,
    "not": kernels.NOT,
    "is null": kernels.IS_NULL,
}
_MANY = {"least": kernels.LEAST, "greatest": kernels.GREATEST, "coalesce": kernels.COALESCE}


def note_nulls(programs: tuple[Program, ...], data: Floats) -> None:
    """Let programs know of nulls in data of new objects."""
    for program in programs:
        if len(program.code) and not program.nulls[0]:
            program.nulls[0] = kernels.has_nulls(program, data)


def no_program() -> Program:
    return _made([], [], {}, 1, nulls=False)


def program_of(
    tree: Node, rows: Mapping[Field, int], kinds: Mapping[str, str], code: Callable[[str], float]
) -> Program:
    """The program of an expression; rows: where the data has its fields; code: that of a string."""
    writer = _Writer(rows, kinds, code, is_strict(tree))
    result = writer.write(tree)
    if result < 0:  # a source alone
        writer.add(kernels.COPY, result)
    return writer.program()


class _Writer:
    """Writes one operation after another. Sources are counted down from -1, results up from 0, until all are known."""

    def __init__(
        self, rows: Mapping[Field, int], kinds: Mapping[str, str], code: Callable[[str], float], strict: bool
    ) -> None:
        self.rows, self.kinds, self.code, self.strict = rows, kinds, code, strict
        self.sources: list[tuple[int, int, int]] = []  # member, row, known
        self.constants: dict[int, Any] = {}  # by source; None: null
        self.steps: list[tuple[int, int, int, int]] = []
        self.written: dict[Node, int] = {}

    def write(self, node: Node) -> int:
        if node not in self.written:
            self.written[node] = self._write(node)
        return self.written[node]

    def _write(self, node: Node) -> int:
        op, args = node.op, node.args
        if op in ("column", "literal"):
            return self._source(node)
        if (short := self._difference(node)) is not None:
            return self.add(*short)
        if op == "+" and (short := self._difference(args[1])) is not None:
            code, x, y = short
            plus = kernels.PLUS_ABSDIFF if code == kernels.ABSDIFF else kernels.PLUS_SQUARE
            return self.add(plus, x, y, self.write(args[0]))
        if op in _BINARY:
            return self.add(_BINARY[op], *map(self.write, args))
        if op in _TURNED:
            return self.add(_TURNED[op], *map(self.write, reversed(args)))
        if op in _UNARY:
            return self.add(_UNARY[op], self.write(args[0]))
        if op in _MANY:
            return self._folded(_MANY[op], [self.write(arg) for arg in args])
        if op == "between":
            value, low, high = map(self.write, args)
            return self.add(kernels.AND, self.add(kernels.AT_MOST, low, value), self.add(kernels.AT_MOST, value, high))
        if op == "in":
            value, *others = map(self.write, args)
            return self._folded(kernels.OR, [self.add(kernels.EQUAL, value, other) for other in others])
        subject = self.write(args[0]) if op == "case of" else None
        branches = args if subject is None else args[1:]
        result = self.write(branches[-1])
        for i in range(len(branches) - 3, -1, -2):
            condition = self.write(branches[i])
            if subject is not None:
                condition = self.add(kernels.EQUAL, subject, condition)
            result = self.add(kernels.CHOOSE, condition, self.write(branches[i + 1]), result)
        return result

    def _difference(self, node: Node) -> tuple[int, int, int] | None:
        """|x - y| or (x - y)·(x - y), which is one operation."""
        square = node.op == "*" and node.args[0] == node.args[1]
        inner = node.args[0] if square or node.op == "abs" else node
        if inner is node or inner.op != "-":
            return None
        x, y = map(self.write, inner.args)
        return (kernels.SQUARE if square else kernels.ABSDIFF), x, y

    def _folded(self, op: int, registers: list[int]) -> int:
        first, *others = registers
        for other in others:
            first = self.add(op, first, other)
        return first

    def add(self, op: int, x: int, y: int | None = None, z: int | None = None) -> int:
        self.steps.append((op, x, x if y is None else y, x if z is None else z))
        return len(self.steps) - 1

    def _source(self, node: Node) -> int:
        if node.op == "literal":
            self.constants[len(self.sources)] = self.code(node.value) if isinstance(node.value, str) else node.value
            self.sources.append((CONSTANT, 0, STRICT))
        else:
            member, _, column = str(node.value).partition(".")
            kind = self.kinds[column]
            known = STRICT if self.strict else self.rows[Field(column, "there")] if kind == "number" else BY_VALUE
            self.sources.append((OLDER if member == "a" else NEWER, self.rows[Field(column, kind)], known))
        return -len(self.sources)

    def program(self) -> Program:
        """Give registers to results; one is free again after its last use, but not for the result of that operation."""
        first = len(self.sources)
        last: dict[int, int] = {}
        for step, (_, *registers) in enumerate(self.steps):
            last |= dict.fromkeys(registers, step)
        places: dict[int, int] = {-1 - source: source for source in range(first)}
        free: list[int] = []
        most, code = first, []
        for step, (op, *registers) in enumerate(self.steps):
            place = free.pop() if free else most
            most = max(most, place + 1)
            places[step] = place
            code.append([op, *(places[one] for one in registers), place])
            free += [places[one] for one in dict.fromkeys(registers) if one >= 0 and last[one] == step]
        return _made(code, self.sources, self.constants, most, nulls=None in self.constants.values())


def _made(
    code: list[list[int]],
    sources: list[tuple[int, int, int]],
    constants: dict[int, Any],
    registers: int,
    *,
    nulls: bool,
) -> Program:
    results = [(CONSTANT, 0, STRICT)] * (registers - len(sources))
    member, row, known = zip(*sources, *results, strict=True)
    values, valid = np.zeros((registers, CHUNK)), np.ones((registers, CHUNK), np.bool_)
    for source, constant in constants.items():
        values[source], valid[source] = 0.0 if constant is None else float(constant), constant is not None
    return Program(
        np.array(code, np.int16).reshape(-1, 5),
        np.array(member, np.int8),
        np.array(row, np.int64),
        np.array(known, np.int64),
        values,
        valid,
        np.ones(registers, np.bool_),
        np.array([nulls], np.int8),
    )
