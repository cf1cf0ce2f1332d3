"""The score of an object from the values of its parts: a few forms, and a small stack machine for typed expressions.

float64 in the order given. The stack machine runs what `engines/incomplete/combine.py` writes: pairs of an operation
and its argument.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, uncounted, uncounted_kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SUM, MEAN, MIN, MAX, LINEAR, PROGRAM = range(6)
PART, NUMBER, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, EXP, LN, SQRT, POWER, LEAST, GREATEST = range(13)


class Combination(NamedTuple):
    """How the values of an object's parts make its score (haghani2009, section 1.1: f), and their bounds."""

    form: int
    lows: Floats  # by part: the value of one that is missing
    highs: Floats
    places: Ints  # LINEAR: the parts, in the order of the terms
    weights: Floats
    program: Any  # PROGRAM: operation and argument, one row each
    numbers: Floats
    stack: Floats
    turned: bool  # the smallest score is best: keys are scores with the other sign


@close
def combine(combination: Combination, values: Floats, at: int) -> Any:
    """The score of the values from `at` on, as a key: the largest is best."""
    score = combine_upwards(combination, values, at)
    return -score if combination.turned else score


@close
def combine_upwards(combination: Combination, values: Floats, at: int) -> Any:
    """The score itself."""
    d, form = len(combination.lows), combination.form
    total = values[at]
    if form <= MEAN:
        for p in range(1, d):
            total = total + values[at + p]
        return total / d if form == MEAN else total
    if form == MIN:
        for p in range(1, d):
            total = values[at + p] if values[at + p] < total else total
        return total
    if form == MAX:
        for p in range(1, d):
            total = values[at + p] if values[at + p] > total else total
        return total
    if form == LINEAR:
        total = combination.weights[0] * values[at + combination.places[0]]
        for t in range(1, len(combination.weights)):
            total = total + combination.weights[t] * values[at + combination.places[t]]
        return total
    return run_program(combination.program, combination.numbers, combination.stack, values, at)


@uncounted
def run_program(program: Any, numbers: Floats, stack: Floats, values: Floats, at: int) -> Any:
    top = -1
    for i in range(len(program)):
        op, arg = program[i, 0], program[i, 1]
        if op == PART:
            top += 1
            stack[top] = values[at + arg]
        elif op == NUMBER:
            top += 1
            stack[top] = numbers[arg]
        elif op == NEGATE:
            stack[top] = -stack[top]
        elif op == EXP:
            stack[top] = math.exp(stack[top])
        elif op == LN:
            stack[top] = np.log(stack[top])
        elif op == SQRT:
            stack[top] = np.sqrt(stack[top])
        else:
            top -= 1
            a, b = stack[top], stack[top + 1]
            if op == ADD:
                stack[top] = a + b
            elif op == SUBTRACT:
                stack[top] = a - b
            elif op == MULTIPLY:
                stack[top] = a * b
            elif op == DIVIDE:
                stack[top] = a / b
            elif op == POWER:
                stack[top] = a**b
            elif op == LEAST:  # NaN is the largest
                stack[top] = b if b < a or (a != a and b == b) else a
            else:
                stack[top] = b if b > a or (b != b and a == a) else a
    return stack[0]


@uncounted_kernel
def score_of(combination: Combination, values: Floats) -> Any:
    """The score of one object."""
    return combine(combination, values, 0)


@uncounted_kernel
def scores_of(combination: Combination, values: Floats, scores: Floats) -> None:
    """The scores of many objects."""
    for i in range(len(scores)):
        scores[i] = combine(combination, values, i * len(combination.lows))
