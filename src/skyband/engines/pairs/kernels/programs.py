"""Typed expressions over two objects, run by an interpreter: each operation is one loop over a chunk of pairs.

A program is a list of operations on registers of CHUNK numbers, which stay in the cache: about 0.2 ns for an operation
and a pair, no more memory than the registers. Every loop does one rounded operation, as NumPy does: the same bits. The
other members are read where they stand in the window; the arrival's numbers and constants are registers of one value.

Conditions are 1.0 and 0.0, strings are codes that only compare as equal or not. Nulls are known by a second register of
each, which is computed only if the window has ever had a null.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import kernel, uncounted

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CHUNK = 512  # pairs scored and compared at a time
ADD, SUB, MUL, DIV, NEGATIVE, ABS, SQRT, ABSDIFF, LEAST, GREATEST = range(10)
SQUARE, PLUS_ABSDIFF, PLUS_SQUARE = range(10, 13)  # (x - y)², z + |x - y|, z + (x - y)²: two or three at once
EQUAL, DIFFERENT, LESS, AT_MOST, AND, OR, NOT, IS_NULL, CHOOSE, COALESCE, COPY = range(13, 24)
CONSTANT, OLDER, NEWER = 0, 1, 2  # where a source comes from
STRICT, BY_VALUE = -2, -1  # no row says whether a source is null: NaN does for the score, or NaN is null


class Program(NamedTuple):
    """Sources are the first registers; the last operation has the result. No operations: there is no program."""

    code: NDArray[np.int16]  # a row for each operation: what, up to three registers, the register of the result
    member: NDArray[np.int8]  # of each register; results are as constants
    row: Ints  # in the window's data
    known: Ints  # the row that is 0 where it is null, or STRICT, or BY_VALUE
    values: Floats  # a row for each register
    valid: Bools
    own: Bools  # whether the arrival has a value
    nulls: NDArray[np.int8]  # one entry: 1 if there may be nulls


@uncounted
def prepare(program: Program, arrival: Floats, size: int) -> None:
    """Fill the registers of the arrival's own values, for runs of up to `size` pairs."""
    for source in range(len(program.member)):
        if program.member[source] == CONSTANT:
            continue
        value, known = arrival[program.row[source]], program.known[source]
        program.own[source] = (
            True if known == STRICT else value == value if known == BY_VALUE else arrival[known] != 0.0
        )
        for i in range(size):
            program.values[source, i] = value


@uncounted
def run(program: Program, data: Floats, low: int, size: int, turned: bool, result: Floats) -> None:
    """Compute a chunk of pairs with the objects from index `low` on; nulls are as the register of the result says.

    turned: these are the newer members, and the arrival is the older one.
    """
    code, member, rows, values = program.code, program.member, program.row, program.values
    others = NEWER if turned else OLDER
    if program.nulls[0]:
        _read_nulls(program, data, low, size, others)
    for step in range(len(code)):
        op, a, b, c = code[step, 0], code[step, 1], code[step, 2], code[step, 3]
        x = data[rows[a], low : low + size] if member[a] == others else values[a, :size]
        y = data[rows[b], low : low + size] if member[b] == others else values[b, :size]
        z = data[rows[c], low : low + size] if member[c] == others else values[c, :size]
        out = result[:size] if step == len(code) - 1 else values[code[step, 4], :size]
        if op == ADD:
            for i in range(size):
                out[i] = x[i] + y[i]
        elif op == SUB:
            for i in range(size):
                out[i] = x[i] - y[i]
        elif op == ABSDIFF:
            for i in range(size):
                out[i] = abs(x[i] - y[i])
        elif op == PLUS_ABSDIFF:
            for i in range(size):
                out[i] = z[i] + abs(x[i] - y[i])
        elif op == SQUARE:
            for i in range(size):
                out[i] = (x[i] - y[i]) * (x[i] - y[i])
        elif op == PLUS_SQUARE:
            for i in range(size):
                out[i] = z[i] + (x[i] - y[i]) * (x[i] - y[i])
        elif op == MUL:
            for i in range(size):
                out[i] = x[i] * y[i]
        elif op == DIV:
            for i in range(size):
                out[i] = x[i] / y[i]
        elif op == NEGATIVE:
            for i in range(size):
                out[i] = -x[i]
        elif op == ABS:
            for i in range(size):
                out[i] = abs(x[i])
        elif op == SQRT:
            for i in range(size):
                out[i] = math.sqrt(x[i])
        elif op == LEAST:  # NaN is the largest; of equal ones the first stays
            for i in range(size):
                out[i] = y[i] if y[i] < x[i] or (x[i] != x[i] and y[i] == y[i]) else x[i]
        elif op == GREATEST:
            for i in range(size):
                out[i] = y[i] if x[i] < y[i] or (y[i] != y[i] and x[i] == x[i]) else x[i]
        else:
            _decide(op, x, y, z, out, size)
        if program.nulls[0]:
            _find_nulls(program, step, x, y, z, out, size)


@uncounted
def _decide(op: int, x: Floats, y: Floats, z: Floats, out: Floats, size: int) -> None:
    """Conditions and choices. NaN equals NaN and is larger than any other number."""
    if op == EQUAL:
        for i in range(size):
            out[i] = 1.0 if x[i] == y[i] or (x[i] != x[i] and y[i] != y[i]) else 0.0
    elif op == DIFFERENT:
        for i in range(size):
            out[i] = 0.0 if x[i] == y[i] or (x[i] != x[i] and y[i] != y[i]) else 1.0
    elif op == LESS:
        for i in range(size):
            out[i] = 1.0 if x[i] < y[i] or (y[i] != y[i] and x[i] == x[i]) else 0.0
    elif op == AT_MOST:
        for i in range(size):
            out[i] = 0.0 if y[i] < x[i] or (x[i] != x[i] and y[i] == y[i]) else 1.0
    elif op == AND:
        for i in range(size):
            out[i] = 1.0 if x[i] == 1.0 and y[i] == 1.0 else 0.0
    elif op == OR:
        for i in range(size):
            out[i] = 1.0 if x[i] == 1.0 or y[i] == 1.0 else 0.0
    elif op == NOT:
        for i in range(size):
            out[i] = 1.0 if x[i] == 0.0 else 0.0
    elif op == IS_NULL:
        for i in range(size):
            out[i] = 0.0
    elif op == CHOOSE:
        for i in range(size):
            out[i] = y[i] if x[i] == 1.0 else z[i]
    else:
        for i in range(size):
            out[i] = x[i]


@uncounted
def _read_nulls(program: Program, data: Floats, low: int, size: int, others: int) -> None:
    """Find which values of the members are null."""
    for source in range(len(program.member)):
        if program.known[source] != STRICT:
            valid, known = program.valid[source, :size], program.known[source]
            if program.member[source] != others:
                for i in range(size):
                    valid[i] = program.own[source]
            elif known == BY_VALUE:
                row = data[program.row[source], low : low + size]
                for i in range(size):
                    valid[i] = row[i] == row[i]
            else:
                row = data[known, low : low + size]
                for i in range(size):
                    valid[i] = row[i] != 0.0


@uncounted
def _find_nulls(program: Program, step: int, x: Floats, y: Floats, z: Floats, out: Floats, size: int) -> None:
    """Find which results are null, and compute those that depend on nulls."""
    code, known = program.code, program.valid
    op, p, q = code[step, 0], known[code[step, 1], :size], known[code[step, 2], :size]
    r, valid = known[code[step, 3], :size], known[code[step, 4], :size]
    if op in (LEAST, GREATEST):  # nulls are skipped
        for i in range(size):
            out[i] = out[i] if p[i] and q[i] else x[i] if p[i] else y[i]
            valid[i] = p[i] or q[i]
    elif op == AND:
        for i in range(size):
            out[i] = 1.0 if p[i] and q[i] and x[i] == 1.0 and y[i] == 1.0 else 0.0
            valid[i] = (p[i] and q[i]) or (p[i] and x[i] == 0.0) or (q[i] and y[i] == 0.0)
    elif op == OR:
        for i in range(size):
            out[i] = 1.0 if (p[i] and x[i] == 1.0) or (q[i] and y[i] == 1.0) else 0.0
            valid[i] = (p[i] and q[i]) or out[i] == 1.0
    elif op == IS_NULL:
        for i in range(size):
            out[i] = 0.0 if p[i] else 1.0
            valid[i] = True
    elif op == CHOOSE:  # a condition that is null is not true
        for i in range(size):
            out[i] = y[i] if p[i] and x[i] == 1.0 else z[i]
            valid[i] = q[i] if p[i] and x[i] == 1.0 else r[i]
    elif op == COALESCE:
        for i in range(size):
            out[i] = x[i] if p[i] else y[i]
            valid[i] = p[i] or q[i]
    else:
        for i in range(size):
            valid[i] = p[i] and q[i] and r[i]


@uncounted
def write_scores(program: Program, data: Floats, low: int, size: int, turned: bool, out: Floats) -> None:
    """Write the result of a chunk, NaN where it is null."""
    run(program, data, low, size, turned, out)
    if program.nulls[0]:
        valid = program.valid[program.code[-1, 4], :size]
        for i in range(size):
            out[i] = out[i] if valid[i] else np.nan


@uncounted
def write_gathered(
    program: Program, data: Floats, others: Ints, begin: int, size: int, turned: bool, gathered: Floats, out: Floats
) -> None:
    """Write the results for `size` of the objects at these indices; what is read of them is gathered first."""
    for source in range(len(program.member)):
        for row in (program.row[source], program.known[source]):
            if program.member[source] != CONSTANT and row >= 0:
                for i in range(size):
                    gathered[row, i] = data[row, others[begin + i]]
    write_scores(program, gathered, 0, size, turned, out)


@kernel
def has_nulls(program: Program, data: Floats) -> bool:
    """Test whether any of these objects has a null that the program must know."""
    found = False
    for source in range(len(program.member)):
        if program.member[source] == CONSTANT or program.known[source] == STRICT:
            continue
        if program.known[source] == BY_VALUE:
            row = data[program.row[source]]
            for i in range(len(row)):
                found |= row[i] != row[i]
        else:
            row = data[program.known[source]]
            for i in range(len(row)):
                found |= row[i] == 0.0
    return found


@kernel
def run_once(program: Program, older: Floats, newer: Floats) -> float:
    """Compute the result for one pair, whose members are a column each; NaN: null."""
    out = np.empty(1)
    prepare(program, newer[:, 0], 1)
    write_scores(program, older, 0, 1, False, out)
    return float(out[0])
