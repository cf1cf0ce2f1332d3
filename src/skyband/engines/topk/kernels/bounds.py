"""Bounds of expressions over boxes, by interval arithmetic: what no value of an object in a box is beyond.

A program is a list of operations on registers, each of them an interval and a mark: `odd`, some object of the box may
have NaN or null there. An interval holds all other values; it is empty (low > high) where there are none. The final
one is of objects with a score, since the others are rejected.

Addition, subtraction, multiplication, division and square roots are rounded correctly, so they are monotone in float64
too: the ends, computed by the operation itself, are bounds. exp, ln and power are not monotone in their last bit, and
scores may have them from another library, so their ends are moved outward by far more than their error (`below`,
`above`). An operation costs some 5 ns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.topk.kernels.window_state import Programs, Queries, Records
from skyband.kernels.compile import kernel, uncounted

ADD, SUB, MUL, DIV, MOD, NEGATIVE, ABS, SQRT, SQUARE, POWER, EXP, LN = range(12)
LEAST, GREATEST, FLOOR, CEIL, ROUND, TRUNC, COPY, NUMBER = range(12, 20)  # NUMBER: any
EQUAL, LESS, AT_MOST, AND, OR, NOT, IS_NULL, CHOOSE, COALESCE, TRUTH = range(20, 30)  # TRUTH: any
BIGINT = 2.0**63
SLACK = 2.0**-44  # of exp, ln and power: 256 times the rounding error of a result
TINY = 5e-324


class Interval(NamedTuple):
    """The values over a box, and whether there may be NaN or null besides."""

    low: float
    high: float
    odd: bool


@uncounted
def nothing() -> Interval:
    return Interval(np.inf, -np.inf, True)


@uncounted
def below(x: float) -> float:
    """A number that is less than x by more than the error of a function of the C library."""
    if x == np.inf:
        return 1.7e308
    return x - abs(x) * SLACK - TINY if x > -1.7e308 else -np.inf


@uncounted
def above(x: float) -> float:
    return -below(-x)


@uncounted
def hull(x: Interval, y: Interval, odd: bool) -> Interval:
    """Either."""
    return Interval(min(x.low, y.low), max(x.high, y.high), odd)


@uncounted
def point(x: float) -> Interval:
    return Interval(x, x, False)


@uncounted
def of_four(a: float, b: float, c: float, d: float, odd: bool) -> Interval:
    """The interval of these numbers; NaN is none of them."""
    found = nothing()
    for x in (a, b, c, d):
        if x == x:
            found = hull(found, point(x), odd)
        odd |= x != x
    return Interval(found.low, found.high, odd)


@uncounted
def has(x: Interval, value: float) -> bool:
    return x.low <= value <= x.high


@uncounted
def is_endless(x: Interval) -> bool:
    return bool(x.low == -np.inf or x.high == np.inf)


@uncounted
def largest_size(x: Interval) -> float:
    return max(abs(x.low), abs(x.high))


@uncounted
def least_size(x: Interval) -> float:
    return 0.0 if has(x, 0.0) else min(abs(x.low), abs(x.high))


@uncounted
def add(x: Interval, y: Interval, odd: bool) -> Interval:
    low, high = x.low + y.low, x.high + y.high
    odd |= is_endless(x) and is_endless(y)
    return Interval(low if low == low else -np.inf, high if high == high else np.inf, odd)


@uncounted
def times(x: Interval, y: Interval, odd: bool) -> Interval:
    """Where an end gives 0 · inf, what is next to it gives 0."""
    odd |= (is_endless(x) and has(y, 0.0)) or (is_endless(y) and has(x, 0.0))
    found = nothing()
    for a in (x.low, x.high):
        for b in (y.low, y.high):
            found = hull(found, point(0.0 if a == 0 or b == 0 else a * b), odd)
    return found


@uncounted
def divide(x: Interval, y: Interval, odd: bool) -> Interval:
    if has(y, 0.0):  # of either sign
        return Interval(-np.inf, np.inf, True)
    found = of_four(x.low / y.low, x.low / y.high, x.high / y.low, x.high / y.high, odd)
    return hull(found, point(0.0), found.odd) if is_endless(y) else found  # by inf; the ends may all give NaN


@uncounted
def remainder(x: Interval, y: Interval, odd: bool) -> Interval:
    """It has the sign of x, and no larger size than x or y."""
    most = min(largest_size(x), largest_size(y))
    return Interval(-most if x.low < 0 else 0.0, most if x.high > 0 else 0.0, odd or has(y, 0.0) or is_endless(x))


@uncounted
def power_of_size(low: float, high: float, y: Interval) -> Interval:
    """The power of a number that is not negative: monotone in each, so that the corners have the extremes."""
    found = of_four(np.power(low, y.low), np.power(low, y.high), np.power(high, y.low), np.power(high, y.high), False)
    return Interval(max(below(found.low), 0.0), above(found.high), False)


@uncounted
def power(x: Interval, y: Interval, odd: bool) -> Interval:
    if has(x, 0.0) and y.low < 0:  # a pole, of either sign
        return Interval(-np.inf, np.inf, True)
    if x.low >= 0:
        found = power_of_size(x.low, x.high, y)
        return Interval(found.low, found.high, odd)
    fixed = y.low == y.high and abs(y.low) < np.inf
    if fixed and y.low != np.floor(y.low):  # of negative numbers there is none, but of an infinite one
        found = power_of_size(0.0, x.high, y) if x.high >= 0 else nothing()
        return hull(found, point(np.inf if y.low > 0 else 0.0), True) if x.low == -np.inf else hull(found, found, True)
    size = power_of_size(least_size(x), largest_size(x), y)
    if not fixed:
        return Interval(-size.high, size.high, True)
    if y.low % 2 == 0:
        return Interval(size.low, size.high, odd)
    if x.high < 0:
        return Interval(-size.high, -size.low, odd)
    return Interval(-above(np.power(abs(x.low), y.low)), above(np.power(x.high, y.low)), odd)  # across 0, rising


@uncounted
def whole(op: int, x: Interval) -> Interval:
    """Floor or ceiling: of NaN 0, and null beyond a bigint."""
    if x.low > x.high:
        return Interval(0.0, 0.0, True)
    low, high = (np.floor(x.low), np.floor(x.high)) if op == FLOOR else (np.ceil(x.low), np.ceil(x.high))
    odd = x.odd or low < -BIGINT or high >= BIGINT
    return hull(Interval(low, high, odd), point(0.0), odd) if x.odd else Interval(low, high, odd)


@uncounted
def near(x: float) -> float:
    """Half up, away from zero."""
    size = abs(x)
    base = np.floor(size) if size < BIGINT else size
    return np.copysign(base + (1.0 if size - base >= 0.5 else 0.0), x) if size < np.inf else x


@uncounted
def function_of(op: int, x: Interval, y: Interval) -> Interval:
    """A function of one number that has none of an empty interval; y: further facts."""
    if op == ABS:
        return Interval(least_size(x), largest_size(x), x.odd)
    if op == SQUARE:
        least, most = least_size(x), largest_size(x)
        return Interval(least * least, most * most, x.odd)
    if op == SQRT:
        if x.high < 0:
            return nothing()
        return Interval(np.sqrt(max(x.low, 0.0)), np.sqrt(x.high), x.odd or x.low < 0)
    if op == EXP:
        return Interval(max(below(np.exp(x.low)), 0.0), above(np.exp(x.high)), x.odd)
    if op == LN:
        if x.high < 0:
            return nothing()
        low = below(np.log(x.low)) if x.low > 0 else -np.inf
        return Interval(low, above(np.log(x.high)) if x.high > 0 else -np.inf, x.odd or x.low < 0)
    if op == ROUND:
        if y.low == 0:  # the place of the last digit
            return Interval(near(x.low), near(x.high), x.odd)
        return Interval(below(x.low - y.low), above(x.high + y.low), x.odd)
    if op == TRUNC:  # y: the end of the type
        odd = x.odd or x.low < -y.low or x.high >= y.low
        return Interval(
            np.ceil(x.low) if x.low < 0 else np.floor(x.low),
            np.ceil(x.high) if x.high < 0 else np.floor(x.high),
            odd,
        )
    return Interval(-x.high, -x.low, x.odd)  # NEGATIVE


@uncounted
def arithmetic(op: int, x: Interval, y: Interval) -> Interval:
    """Of numbers: without both there is none."""
    odd = x.odd or y.odd
    if x.low > x.high or y.low > y.high:
        found = nothing()
    elif op == ADD:
        found = add(x, y, odd)
    elif op == SUB:
        found = add(x, Interval(-y.high, -y.low, y.odd), odd)
    elif op == MUL:
        found = times(x, y, odd)
    elif op == DIV:
        found = divide(x, y, odd)
    elif op == MOD:
        found = remainder(x, y, odd)
    elif op == POWER:
        found = power(x, y, odd)
    else:
        found = function_of(op, x, y)
    if op == POWER and odd:  # NaN to the power of 0, and 1 to that of NaN, are 1
        found = hull(found, point(1.0), True)
    return found


@uncounted
def extreme(op: int, x: Interval, y: Interval) -> Interval:
    """The least or greatest: nulls are skipped, and NaN is the largest."""
    odd = x.odd or y.odd
    found = nothing()
    if x.low <= x.high and y.low <= y.high:
        if op == LEAST:
            found = Interval(min(x.low, y.low), min(x.high, y.high), odd)
        else:
            found = Interval(max(x.low, y.low), max(x.high, y.high), odd)
    if x.odd:
        found = hull(found, y, odd)
    if y.odd:
        found = hull(found, x, odd)
    return found


@uncounted
def truth(op: int, x: Interval, y: Interval) -> Interval:
    """Conditions: 0 and 1. NaN equals itself and is the largest; of nulls a result may be null."""
    low, high = 0.0, 1.0
    if op == IS_NULL:
        return Interval(0.0, 1.0 if x.odd else 0.0, False)
    if op == TRUTH or x.odd or y.odd:
        return Interval(0.0, 1.0, True)
    if op == EQUAL:
        if x.high < y.low or y.high < x.low:
            high = 0.0
        elif x.low == x.high == y.low == y.high:
            low = 1.0
    elif op == LESS:
        low, high = (1.0 if x.high < y.low else 0.0), (1.0 if x.low < y.high else 0.0)
    elif op == AT_MOST:
        low, high = (1.0 if x.high <= y.low else 0.0), (1.0 if x.low <= y.high else 0.0)
    elif op == AND:
        low, high = min(x.low, y.low), min(x.high, y.high)
    elif op == OR:
        low, high = max(x.low, y.low), max(x.high, y.high)
    else:
        low, high = 1.0 - x.high, 1.0 - x.low
    return Interval(low, high, False)


@uncounted
def one_step(op: int, x: Interval, y: Interval, z: Interval) -> Interval:
    """One operation."""
    if op in (LEAST, GREATEST):
        found = extreme(op, x, y)
    elif op in (FLOOR, CEIL):
        found = whole(op, x)
    elif op == COPY:
        found = x
    elif op == NUMBER:
        found = Interval(-np.inf, np.inf, True)
    elif op == CHOOSE:  # a condition that is null is not true
        if x.low == 1.0 and not x.odd:
            found = y
        elif x.high <= 0.0:
            found = z
        else:
            found = hull(y, z, y.odd or z.odd)
    elif op == COALESCE:
        found = hull(x, y, True) if x.odd else x
    elif op >= EQUAL:
        found = truth(op, x, y)
    else:
        found = arithmetic(op, x, y)
    return found


@uncounted
def run_bounds(programs: Programs, which: int) -> Interval:
    """The values over the box in the first registers of a program."""
    code, low, high, odd = programs.code[which], programs.low[which], programs.high[which], programs.odd[which]
    found = nothing()
    for step in range(programs.steps[which]):
        a, b, c, to = code[step, 1], code[step, 2], code[step, 3], code[step, 4]
        found = one_step(
            code[step, 0],
            Interval(low[a], high[a], odd[a]),
            Interval(low[b], high[b], odd[b]),
            Interval(low[c], high[c], odd[c]),
        )
        low[to], high[to], odd[to] = found.low, found.high, found.odd
    return found


@uncounted
def best_key(queries: Queries, s: int) -> float:
    """The largest key of objects of the box in the first registers; of none, there is none."""
    found = run_bounds(queries.programs, queries.specs[s]["column"])
    if found.low > found.high:
        return -np.inf
    return -found.low if queries.turned else found.high


@uncounted
def set_axis(queries: Queries, s: int, j: int, low: float, high: float) -> None:
    """Set one side of the box, within the query's own."""
    which = queries.specs[s]["column"]
    queries.programs.low[which, j] = max(low, queries.lows[s, j])
    queries.programs.high[which, j] = min(high, queries.highs[s, j])


@kernel
def bounds_alone(programs: Programs) -> tuple[float, float]:
    """The bound by a program that stands alone."""
    found = run_bounds(programs, 0)
    return found.low, found.high


@kernel
def keys_fit(queries: Queries, data: Records) -> bool:
    """Whether the keys of objects are those of their expressions, as far as bounds of single points say."""
    axes, programs = queries.points.shape[1], queries.programs
    fit = True
    for i in range(len(data)):
        for which in range(len(programs.steps)):
            for j in range(axes):
                programs.low[which, j] = programs.high[which, j] = data[i, j]
            found = run_bounds(programs, which)
            key = -data[i, axes + which] if queries.turned else data[i, axes + which]
            fit &= found.low <= key <= found.high
    return fit
