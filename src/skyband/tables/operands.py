"""Arrow columns as expressions read them, where that takes care: times, and decimals beyond 2^53."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.query.expressions import Kind, Operand
from skyband.tables.columns import bits_of, valid_of

Bools = NDArray[np.bool_]

EXACT = 2**53  # integers up to here are float64 numbers
_NEAR = 16  # around it a decimal is compared exactly
_MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}
_FEW_DAYS = np.iinfo(np.int64).max // (24 * 60 * 60 * 10**6)


def kind_of_type(type_: Any) -> Kind | None:
    """What an expression takes a column of this type for; None: nothing, or it does not matter."""
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return "time"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "string"
    return "number" if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_) else None


def moments(column: Any) -> Operand:
    """Dates as days, timestamps as microseconds (finer digits are cut); what microseconds cannot hold is null."""
    valid, type_, bits = valid_of(column), column.type, bits_of(column).astype(np.int64)
    if pa.types.is_date(type_):
        days = bits if pa.types.is_date32(type_) else bits // (24 * 60 * 60 * 10**3)
        days, valid = _within(days, valid, _FEW_DAYS)
        return Operand(days.view("M8[D]"), valid)
    if type_.unit == "ns":
        return Operand((bits // 1000).view("M8[us]"), valid, zone=type_.tz)
    factor = _MICROSECONDS[type_.unit]
    bits, valid = _within(bits, valid, np.iinfo(np.int64).max // factor)
    return Operand((bits * factor).view("M8[us]"), valid, zone=type_.tz)


def _within(bits: NDArray[np.int64], valid: Bools | None, most: int) -> tuple[NDArray[np.int64], Bools | None]:
    far = (bits > most) | (bits < -most)
    if not far.any():
        return bits, valid
    return np.where(far, 0, bits), ~far if valid is None else valid & ~far


def decimals_beyond(column: Any, values: NDArray[np.float64]) -> Bools:
    """Which decimals are beyond 2^53; `values`: their float64, which hides it next to 2^53."""
    size = np.abs(values)
    beyond = size > EXACT
    for row in np.flatnonzero(np.abs(size - EXACT) <= _NEAR).tolist():
        exact = column[row].as_py()
        beyond[row] = exact is not None and exact.copy_abs() > EXACT  # abs() would round to the context's precision
    valid = valid_of(column)
    return beyond if valid is None else beyond & valid
