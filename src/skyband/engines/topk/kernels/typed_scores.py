"""Scores of many typed expressions over the same rows: each operation is one loop over a chunk of rows.

The programs are those that bound the expressions (bounds.py), run on numbers in place of intervals. Operations that
float64 rounds correctly have the bits that NumPy gives. exp, ln and power have none but those of the C library, which
compiled code calls as Python does, number by number: that is tested once in each process (topk/bounds.py).
"""

from __future__ import annotations

import math

import numpy as np

from skyband.engines.topk.kernels.bounds import (
    ABS,
    ADD,
    COPY,
    DIV,
    EXP,
    GREATEST,
    LEAST,
    LN,
    MUL,
    NEGATIVE,
    POWER,
    SQRT,
    SQUARE,
    SUB,
)
from skyband.engines.topk.kernels.window_state import Programs, Records
from skyband.kernels.compile import uncounted, uncounted_kernel

EXACT = (ABS, ADD, COPY, DIV, GREATEST, LEAST, MUL, NEGATIVE, SQRT, SQUARE, SUB)
FUNCTIONS = (EXP, LN, POWER)
CHUNK = 256  # rows at a time; the registers of a program stay in the cache


@uncounted
def run_step(op: int, x: Records, y: Records, out: Records, size: int) -> None:
    """One operation."""
    if op == ADD:
        for i in range(size):
            out[i] = x[i] + y[i]
    elif op == SUB:
        for i in range(size):
            out[i] = x[i] - y[i]
    elif op == MUL:
        for i in range(size):
            out[i] = x[i] * y[i]
    elif op == SQUARE:
        for i in range(size):
            out[i] = x[i] * x[i]
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
    elif op == EXP:
        for i in range(size):
            out[i] = np.exp(x[i])
    elif op == LN:
        for i in range(size):
            out[i] = np.log(x[i])
    elif op == POWER:
        for i in range(size):
            out[i] = np.power(x[i], y[i])
    elif op == LEAST:  # NaN is the largest; of equal ones the first stays
        for i in range(size):
            out[i] = y[i] if y[i] < x[i] or (x[i] != x[i] and y[i] == y[i]) else x[i]
    elif op == GREATEST:
        for i in range(size):
            out[i] = y[i] if x[i] < y[i] or (y[i] != y[i] and x[i] == x[i]) else x[i]
    else:
        for i in range(size):
            out[i] = x[i]


@uncounted_kernel
def score_rows(programs: Programs, columns: Records, values: Records, scores: Records) -> bool:
    """Score rows by each program; returns whether all have a number. values: a register each, of CHUNK numbers."""
    axes, rows, numbers = len(columns), columns.shape[1], True
    for e in range(len(scores)):
        code, constants, steps = programs.code[e], programs.low[e], programs.steps[e]
        for r in range(axes, len(constants)):
            values[r, :] = constants[r]
        for begin in range(0, rows, CHUNK):
            size = min(CHUNK, rows - begin)
            for step in range(steps):
                a, b = code[step, 1], code[step, 2]
                x = columns[a, begin : begin + size] if a < axes else values[a, :size]
                y = columns[b, begin : begin + size] if b < axes else values[b, :size]
                last = step == steps - 1
                out = scores[e, begin : begin + size] if last else values[code[step, 4], :size]
                run_step(code[step, 0], x, y, out, size)
        broken = 0
        for i in range(rows):
            broken += np.isnan(scores[e, i])
        numbers &= broken == 0
    return numbers
