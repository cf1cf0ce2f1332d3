"""Evaluation of a tree over NumPy columns: float64 in the order typed, SQL's nulls, Spark's NaN.

exp, ln and power call the C library through `math`, row by row. NumPy's own differ from it in the last bit
and by machine: of 10^6 uniform inputs in [-5, 5] (NumPy 2.4, AVX2) np.exp in 46,186, np.log in 809 of the
500,000 positive ones, np.power(x, 3) in 27,474, and np.power(x, 2) in 863 when its exponent is a scalar
(it is then x*x) but in 26,834 when it is an array. A score must be the same in every process, so it is the
scalar's: 63 to 86 ns a row against 1 to 63. np.sqrt and np.fmod showed no difference and are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import lru_cache, reduce
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.errors import BatchError
from skyband.query.expressions import functions, times
from skyband.query.expressions.tree import Kind, Node, Operand, kind_of
from skyband.query.expressions.words import PARTS

Array = NDArray[Any]

_KINDS: dict[str, Kind] = {"f": "number", "b": "boolean", "O": "string", "M": "time"}  # by NumPy's dtype.kind
_checked: dict[tuple[str, tuple[str, ...], tuple[Kind, ...]], Kind | None] = {}  # the kind of an expression's value


def evaluate(text: str, tree: Node, names: tuple[str, ...], columns: Mapping[str, Operand], rows: int) -> Operand:
    """Compute the value of `tree` for each row. A plain column is returned as the caller's own array."""
    kinds = tuple([_column_kind(text, name, columns) for name in names])
    known = text, names, kinds
    if text == "" or known not in _checked:  # a batch after another is of the same kinds
        if len(_checked) >= 4096:
            _checked.clear()
        kinds_by_name = dict(zip(names, kinds, strict=True))
        _checked[known] = kind_of(tree, kinds_by_name, lambda message: BatchError(f'"{text}": {message}.'))
    kind = _checked[known]
    with np.errstate(all="ignore"):
        result = _run(tree, columns)
    values = _full(_floats(result) if kind in ("number", None) else result.values, rows)
    valid = None if result.valid is None or result.valid.all() else _full(result.valid, rows)
    return Operand(values, valid, result.whole, result.zone)


def _column_kind(text: str, name: str, columns: Mapping[str, Operand]) -> Kind:
    if name not in columns:
        there = ", ".join(columns) or "none"
        raise BatchError(f'"{text}": there is no column "{name}". The columns are: {there}.')
    dtype = columns[name].values.dtype
    if dtype.kind not in _KINDS:
        raise BatchError(f'"{text}": column "{name}" is {dtype}, not numbers, booleans, strings or times.')
    return _KINDS[dtype.kind]


def _full(array: Array, rows: int) -> Array:
    """Constants are computed as arrays of one element, so that literals cost nothing per row."""
    shared = rows == 1 and not array.flags.writeable  # a literal itself
    return array if array.shape == (rows,) and not shared else np.broadcast_to(array, (rows,)).copy()


def _run(node: Node, columns: Mapping[str, Operand]) -> Operand:
    if node.op == "column":
        return columns[str(node.value)]
    if node.op == "literal":
        return _literal(node.value)
    args = [_run(arg, columns) for arg in node.args]
    if node.op in _BY_VALUE:
        return _BY_VALUE[node.op](node.value, args)
    return _OPERATIONS[node.op](args)


@lru_cache(maxsize=4096, typed=True)
def _literal(value: str | float | date | None) -> Operand:
    """A constant, made once; it cannot be written to, as all who read it share it."""
    made = _constant(value)
    for array in (made.values, made.valid):
        if array is not None:
            array.flags.writeable = False
    return made


def _constant(value: str | float | date | None) -> Operand:
    if value is None:  # bool, because np.where turns it into any other kind
        return Operand(np.zeros(1, bool), np.zeros(1, bool), whole=True)
    if isinstance(value, date):
        return _moment(value)
    whole = isinstance(value, float) and (True if value.is_integer() else None)
    return Operand(np.array([value], object if isinstance(value, str) else None), whole=whole)


def _moment(value: date) -> Operand:
    if not isinstance(value, datetime):
        return Operand(np.array([value], "M8[D]"))
    if value.tzinfo is None:
        return Operand(np.array([value], "M8[us]"))
    return Operand(np.array([value.astimezone(UTC).replace(tzinfo=None)], "M8[us]"), zone="UTC")


# --- numbers ------------------------------------------------------------------------------------------------


def _floats(operand: Operand) -> Array:
    return np.asarray(operand.values, np.float64)


def _numeric(function: Callable[..., Array]) -> Callable[[list[Operand]], Operand]:
    return lambda args: Operand(function(*map(_floats, args)), functions.valid_in_all(args))


def _of_type(function: Callable[..., Array]) -> Callable[[list[Operand]], Operand]:
    """Numbers of the type that their arguments have together, for Spark."""
    return lambda args: Operand(function(*map(_floats, args)), functions.valid_in_all(args), _whole(args))


def _whole(args: list[Operand]) -> bool | None:
    """Doubles if one is a double; else integers if all are."""
    kinds = {arg.whole for arg in args}
    return False if False in kinds else None if None in kinds else True


def _divide(args: list[Operand]) -> Operand:
    whole = None if _whole(args) is None else False
    return Operand(np.divide(*map(_floats, args)), functions.valid_in_all(args), whole)


def _by_row(exact: Callable[..., float], ieee: Callable[..., float]) -> Callable[..., Array]:
    """A function of `math` over arrays; `ieee` gives what `exact` gives, and a value where that raises."""

    def over(*arrays: Array) -> Array:
        try:
            return _each(exact, arrays)
        except (ValueError, OverflowError):
            return _each(ieee, arrays)

    return over


def _each(function: Callable[..., float], arrays: tuple[Array, ...]) -> Array:
    rows = np.broadcast(*arrays).size
    columns = [repeat(array.item(), rows) if array.size == 1 else array.tolist() for array in arrays]
    return np.fromiter(map(function, *columns), np.float64, rows)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _ln(x: float) -> float:
    if x > 0:
        return math.log(x)
    return -math.inf if x == 0 else math.nan


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except (ValueError, OverflowError):
        if x < 0 and y != math.floor(y):
            return math.nan
        # a pole (0 to a negative power) or an overflow; the sign of x shows through odd powers only
        return math.copysign(math.inf, x) if abs(math.fmod(y, 2.0)) == 1 else math.inf


# --- comparison: NaN equals itself and is larger than any number, as in Spark -------------------------------


def _comparable(a: Operand, b: Operand) -> tuple[Array, Array]:
    if object in (a.values.dtype, b.values.dtype):
        return _strings(a), _strings(b)
    if "M" in (a.values.dtype.kind, b.values.dtype.kind):
        a, b = times.aligned(a, b)
        return times.micros(a), times.micros(b)
    if a.values.dtype == b.values.dtype == bool:
        return a.values, b.values
    return _floats(a), _floats(b)


def _strings(operand: Operand) -> Array:
    """Null slots may hold what cannot be compared."""
    return np.where(_known(operand), operand.values, np.array("", object))


def _equal(a: Operand, b: Operand) -> Array:
    u, v = _comparable(a, b)
    same: Array = u == v
    return same | (np.isnan(u) & np.isnan(v)) if u.dtype == np.float64 else same


def _less(a: Operand, b: Operand) -> Array:
    u, v = _comparable(a, b)
    less: Array = u < v
    return less | (np.isnan(v) & ~np.isnan(u)) if u.dtype == np.float64 else less


def _compare(holds: Callable[[Operand, Operand], Array]) -> Callable[[list[Operand]], Operand]:
    return lambda args: Operand(holds(args[0], args[1]), functions.valid_in_all(args))


_eq = _compare(_equal)
_le = _compare(lambda a, b: ~_less(b, a))
_ge = _compare(lambda a, b: ~_less(a, b))


def _extreme(better: Callable[[Operand, Operand], Array]) -> Callable[[list[Operand]], Operand]:
    """Nulls are skipped; of equal values (0.0 and -0.0) the first stays."""

    def pick(best: Operand, other: Operand) -> Operand:
        take = _known(other) & (~_known(best) | better(other, best))
        return Operand(
            np.where(take, _floats(other), _floats(best)), _known(best) | _known(other), _whole([best, other])
        )

    return lambda args: reduce(pick, args)


# --- logic: three values ------------------------------------------------------------------------------------


def _known(operand: Operand) -> Array:
    return np.ones(1, bool) if operand.valid is None else operand.valid


def _true(operand: Operand) -> Array:
    return operand.values if operand.valid is None else operand.values & operand.valid


def _and(args: list[Operand]) -> Operand:
    return _not([_or([_not([arg]) for arg in args])])


def _or(args: list[Operand]) -> Operand:
    true = reduce(np.logical_or, map(_true, args))
    valid = functions.valid_in_all(args)
    return Operand(true, None if valid is None else valid | true)


def _not(args: list[Operand]) -> Operand:
    return Operand(~args[0].values, args[0].valid)


def _between(args: list[Operand]) -> Operand:
    value, low, high = args
    return _and([_ge([value, low]), _le([value, high])])


def _in(args: list[Operand]) -> Operand:
    return _or([_eq([args[0], item]) for item in args[1:]])


def _is_null(args: list[Operand]) -> Operand:
    return Operand(np.broadcast_to(~_known(args[0]), args[0].values.shape).copy())


# --- choice -------------------------------------------------------------------------------------------------


def _choose(take: Array, a: Operand, b: Operand) -> Operand:
    if "M" in (a.values.dtype.kind, b.values.dtype.kind):
        a, b = times.alike(a, b)
    values = np.where(take, a.values, b.values)
    valid = None if a.valid is b.valid is None else np.where(take, _known(a), _known(b))
    return Operand(values, valid, _whole([a, b]), a.zone)


def _coalesce(args: list[Operand]) -> Operand:
    return reduce(lambda first, other: _choose(_known(first), first, other), args)


def _case(args: list[Operand]) -> Operand:
    result = args[-1]
    for i in range(len(args) - 3, -1, -2):
        result = _choose(_true(args[i]), args[i + 1], result)
    return result


def _case_of(args: list[Operand]) -> Operand:
    subject, branches = args[0], list(args[1:])
    branches[:-1:2] = [_eq([subject, value]) for value in branches[:-1:2]]
    return _case(branches)


_OPERATIONS: dict[str, Callable[[list[Operand]], Operand]] = {
    "+": _of_type(np.add),
    "-": _of_type(np.subtract),
    "*": _of_type(np.multiply),
    "/": _divide,
    "%": _of_type(np.fmod),
    "negative": _of_type(np.negative),
    "abs": _of_type(np.absolute),
    "sqrt": _numeric(np.sqrt),
    "power": _numeric(_by_row(math.pow, _power)),
    "exp": _numeric(_by_row(math.exp, _exp)),
    "ln": _numeric(_by_row(math.log, _ln)),
    "least": _extreme(_less),
    "greatest": _extreme(lambda a, b: _less(b, a)),
    "=": _eq,
    "<>": _compare(lambda a, b: ~_equal(a, b)),
    "<": _compare(_less),
    "<=": _le,
    ">": _compare(lambda a, b: _less(b, a)),
    ">=": _ge,
    "and": _and,
    "or": _or,
    "not": _not,
    "between": _between,
    "in": _in,
    "is null": _is_null,
    "coalesce": _coalesce,
    "case": _case,
    "case of": _case_of,
    "floor": functions.whole_number(np.floor),
    "ceil": functions.whole_number(np.ceil),
    "double": functions.to_double,
    "bigint": functions.to_integer(functions.BIGINT),
    "int": functions.to_integer(functions.INT),
    "string": functions.to_string,
    "length": functions.length,
    "upper": functions.upper,
    "lower": functions.lower,
    "trim": functions.trim,
    "ltrim": functions.ltrim,
    "rtrim": functions.rtrim,
    "substring": functions.substring,
    "concat": functions.concat,
    **{part: times.part(part) for part in (*PARTS, "exact second")},
    "date": times.day,
    "datediff": times.datediff,
}
_BY_VALUE: dict[str, Callable[[Any, list[Operand]], Operand]] = {  # what the text itself says besides
    "round": functions.rounded,
    "like": lambda pattern, args: functions.by_row(functions.like(pattern), args, np.bool_),
    "timestampdiff": times.difference,
}
