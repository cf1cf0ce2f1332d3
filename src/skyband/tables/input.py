"""Tables in: whatever a user pushes, as NumPy arrays.

Anything with the Arrow C interface (pandas, polars, pyarrow, duckdb), what these read lazily, a dict of arrays, lists
or scalars, a list of dicts, an iterator of batches. Nothing is copied that Arrow can lend. Arrow validates each column
that is read (UTF-8, offsets, dictionaries): one pass over strings, a few microseconds for numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.errors import BatchError
from skyband.query.expressions import Operand
from skyband.tables.column_checks import check_kept, decoded, from_values, validate
from skyband.tables.columns import ARROW_ERRORS, as_arrow, bits_of, plain, valid_of
from skyband.tables.iso import instants
from skyband.tables.operands import EXACT, decimals_beyond, moments
from skyband.tables.vectors import Lists, Vectors, lists_of

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FAR = 2**62  # times stay below this in size, so that time + span cannot overflow
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86400 * 10**9
_NUMBERS_WANTED = "a number (integer, float or decimal)"


def to_table(batch: Any) -> Any:
    """Any batch as a pyarrow Table. What is read lazily is read to its end: it is one batch."""
    try:
        if isinstance(batch, pa.Table):
            return batch
        if isinstance(batch, pa.RecordBatch):
            return pa.Table.from_batches([batch])
        if isinstance(batch, Mapping):
            return _from_columns(batch)
        if isinstance(batch, list) and all(isinstance(row, Mapping) for row in batch):
            names = dict.fromkeys(name for row in batch for name in row)
            return pa.table({name: from_values([row.get(name) for row in batch]) for name in names})
    except (*ARROW_ERRORS, TypeError, ValueError, OverflowError) as error:
        raise BatchError(
            f"the batch cannot be read as a table: {error}. Give every column one type and the same number of rows."
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # of an object or generator that stands for a column, so of any type
        raise _unreadable(error) from error
    try:
        if type(batch).__name__ == "LazyFrame":
            batch = batch.collect()
        if hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__"):
            return pa.table(batch)
        if hasattr(batch, "to_table"):  # a dataset or scanner of pyarrow
            return to_table(batch.to_table())
        if isinstance(batch, Iterator):
            return pa.concat_tables(
                [to_table(piece) for piece in batch] or [pa.table({})], promote_options="permissive"
            )
    except (BatchError, MemoryError):
        raise
    except Exception as error:  # of the library or generator that is read, so of any type
        raise _unreadable(error) from error
    raise BatchError(
        f"a {type(batch).__name__} is no batch. Push a DataFrame (pandas, polars, pyarrow, duckdb), "
        "a dict of columns or scalars, a list of dicts, or an iterator of these."
    )


def _unreadable(error: Exception) -> BatchError:
    said = f"{type(error).__name__}: {error}"
    return BatchError(f"the batch cannot be read as a table: {said}. Nothing was pushed.")


_SCALARS = (str, bytes, int, float, Decimal, date, time, timedelta, UUID, Mapping, np.generic, pa.Scalar, type(None))


def _from_columns(columns: Mapping[Any, Any]) -> Any:
    """Columns by name; scalars are repeated for each row (of which there is one, if all are scalars)."""
    arrays, scalars = {}, {}
    for name, values in columns.items():
        arrays[name] = _array(values)
        if arrays[name] is None:
            scalar = isinstance(values, np.generic | np.ndarray)
            scalars[name] = _from_numpy(np.reshape(values, 1)) if scalar else from_values([values])
    if scalars:
        rows = next((len(array) for array in arrays.values() if array is not None), 1)
        arrays |= {name: pa.repeat(one[0], rows) for name, one in scalars.items()}
    return pa.table(arrays)


def _array(values: Any) -> Any:
    """A column as an Arrow array; None: it is a scalar."""
    if isinstance(values, np.ndarray):
        return _from_numpy(values) if values.ndim else None
    if isinstance(values, list | tuple):
        return from_values(values)
    if isinstance(values, _SCALARS):
        return None
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    return values if isinstance(values, pa.Array | pa.ChunkedArray) else from_values(values)


def _from_numpy(values: NDArray[Any]) -> Any:
    if values.ndim == 2 and values.shape[1] and values.dtype.kind in "iuf":  # vectors
        return pa.FixedSizeListArray.from_arrays(_from_numpy(values.reshape(-1)), values.shape[1])
    if values.ndim != 1:
        raise BatchError(
            f"a column must be one-dimensional, or two-dimensional with numbers (vectors); got an array of shape "
            f"{values.shape} of {values.dtype}."
        )
    if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] in _COARSE[values.dtype.kind]:
        values = values.astype(f"{values.dtype.kind}8[s]")
    if isinstance(values, np.ma.MaskedArray):
        return from_values(values.data, mask=np.ma.getmaskarray(values))
    return as_arrow(values) if values.dtype.kind in "iuf" and values.dtype.isnative else from_values(values)


_COARSE = {"M": ("Y", "M", "W", "h", "m"), "m": ("W", "D", "h", "m")}  # units that Arrow does not have


class Batch:
    """One pushed batch: its columns by name, converted once."""

    def __init__(self, table: Any, *, inside: bool = True) -> None:
        self.rows: int = table.num_rows
        try:
            self.names: list[str] = table.column_names
        except UnicodeDecodeError as error:
            raise BatchError(f"a column's name is not valid UTF-8 ({error}). Rename it.") from None
        if not inside and any(name.startswith("\0") for name in self.names):  # whoever writes rows may add columns
            self.names = [name for name in self.names if not name.startswith("\0")]
            table = table.select(self.names)
        self.table = table
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise BatchError(f"the batch has two columns called {twice!r}. Rename one.")
        self._arrays: dict[str, Any] = {}
        self._operands: dict[str, Operand] = {}
        self._beyond: dict[str, Bools] = {}
        self._no_instants: Bools | None = None  # strings in the time column that are none
        self.memo: dict[Any, Any] = {}  # results that several queries need

    def column(self, name: str) -> Any:
        """The column as it was given, validated."""
        if name not in self.names:
            names = ", ".join(map(repr, self.names)) or "none"
            raise BatchError(f"the batch has no column {name!r}. It has: {names}.")
        column = self.table.column(name)
        try:
            validate(column)
        except ARROW_ERRORS as error:
            raise BatchError(
                f"column {name!r} is damaged: {error}. Nothing was pushed; make the column anew."
            ) from None
        return column

    def array(self, name: str) -> Any:
        """The column as one Arrow array."""
        if name not in self._arrays:
            try:
                self._arrays[name] = plain(decoded(self.column(name)))
            except ARROW_ERRORS as error:
                raise BatchError(
                    f"column {name!r} cannot be read: {error}. Nothing was pushed; cast it first."
                ) from None
        return self._arrays[name]

    def parse_times(self, name: str, type_: Any | None) -> Bools | None:
        """Read a column of strings as instants from now on; returns which strings are none (None: no strings).

        type_: what the times of earlier batches were.
        """
        column = self.array(name)
        if is_string(column.type) and (type_ is None or pa.types.is_timestamp(type_)):
            self._arrays[name], self._no_instants = instants(column, type_)
        return self._no_instants

    def operand(self, name: str) -> Operand:
        """The column as numbers (float64), conditions (bool), strings (object) or times, for an expression."""
        if name not in self._operands:
            column = self.array(name)
            if is_number(column.type):
                self._operands[name] = self._numbers(name, column)
            elif pa.types.is_boolean(column.type):
                self._operands[name] = Operand(bits_of(column) != 0, valid_of(column))
            elif is_string(column.type):
                strings = column.cast(pa.large_string()).to_numpy(zero_copy_only=False)
                self._operands[name] = Operand(strings, valid_of(column))
            elif pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
                self._operands[name] = moments(column)
            else:
                raise BatchError(
                    f"column {name!r} holds {column.type}, which an expression cannot use. "
                    f"It takes {_NUMBERS_WANTED}, a boolean, a string, a timestamp or a date."
                )
        return self._operands[name]

    def numbers(self, name: str) -> Operand:
        """The column as float64, null slots NaN."""
        operand = self.operand(name)
        if operand.values.dtype != np.float64:
            raise BatchError(
                f"column {name!r} holds {self.array(name).type}, but a score needs {_NUMBERS_WANTED}. "
                "Convert the column, or score by another one."
            )
        return operand

    def extremes(self, name: str) -> tuple[float, float]:
        """The least and the largest of the column's numbers; NaN both, if one is null or NaN."""
        what = ("extremes", name)
        if what not in self.memo:
            values = self.numbers(name).values
            self.memo[what] = (float(values.min(initial=np.inf)), float(values.max(initial=-np.inf)))
        found: tuple[float, float] = self.memo[what]
        return found

    def vectors(self, name: str, d: int) -> Vectors:
        """The column as vectors with d components."""
        what = ("vectors", name, d)
        if what not in self.memo:
            self.memo[what] = self.lists(name).of_length(d)
        found: Vectors = self.memo[what]
        return found

    def lists(self, name: str) -> Lists:
        """The column as lists of floats."""
        what = ("lists", name)
        if what not in self.memo:
            self.memo[what] = lists_of(name, self.array(name))
        found: Lists = self.memo[what]
        return found

    def beyond(self, name: str) -> Bools | None:
        """Which integers and decimals of the column are beyond 2^53, where float64 is not exact; None: no row."""
        return self._beyond.get(name)

    def _numbers(self, name: str, column: Any) -> Operand:
        valid = valid_of(column)
        whole = True if pa.types.is_integer(column.type) else False if pa.types.is_float64(column.type) else None
        if pa.types.is_integer(column.type):
            bits = bits_of(column)
            unsigned = pa.types.is_unsigned_integer(column.type)
            numbers = bits.view(f"u{bits.itemsize}") if unsigned else bits
            values = numbers.astype(np.float64)
            if bits.itemsize == 8:
                beyond = numbers > np.uint64(EXACT) if unsigned else (numbers > EXACT) | (numbers < -EXACT)
                if valid is not None:
                    beyond &= valid
                if beyond.any():
                    self._beyond[name] = beyond
        else:
            filled = column.cast(pa.float64()) if column.type != pa.float64() else column
            values = bits_of(filled).view(np.float64)
            if pa.types.is_decimal(column.type) and column.type.precision - column.type.scale >= len(str(EXACT)):
                beyond = decimals_beyond(column, values)
                if beyond.any():
                    self._beyond[name] = beyond
        if valid is not None:
            values = np.where(valid, values, np.nan)
        return Operand(values, valid, whole)


def is_number(type_: Any) -> bool:
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_null(type_)
    )


def is_string(type_: Any) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def time_unit(type_: Any) -> int | None:
    """Nanoseconds of one unit of a time column; None for integers, which have no unit."""
    if pa.types.is_timestamp(type_):
        return _UNITS[type_.unit]
    if pa.types.is_date32(type_):
        return _DAY
    return None if pa.types.is_integer(type_) else 10**6  # date64 counts milliseconds


def is_time(type_: Any) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_) or pa.types.is_integer(type_))


def times(column: Any, reach: int) -> tuple[Ints, Bools | None, Bools | None]:
    """Times as int64; which are null, and which are so far out that time + reach does not fit (None: no row)."""
    valid = valid_of(column)
    bits = bits_of(column)
    if pa.types.is_unsigned_integer(column.type):
        bits = bits.view(f"u{bits.itemsize}")
    latest = min(FAR - 1, int(np.iinfo(bits.dtype).max) - reach)
    if valid is None and len(bits) and bits.max() <= latest and bits.min() > -FAR:
        return bits.astype(np.int64, copy=False), None, None
    far = bits > latest
    if bits.dtype == np.int64:
        far |= bits <= -FAR
    values = bits.astype(np.int64)
    if valid is not None:
        far &= valid
        values[~valid] = 0
    values[far] = 0
    return values, None if valid is None else ~valid, far if far.any() else None


def moment(to: Any) -> Any:
    """An instant given by a user; NumPy's become datetimes, or Arrow scalars where a datetime cannot hold them."""
    if not isinstance(to, np.datetime64):
        return to
    whole = to.astype("M8[us]")
    if np.isnat(to):
        return pa.scalar(None, pa.timestamp("s"))
    if whole.astype(to.dtype) != to or not isinstance(whole.item(), datetime):
        unit = np.datetime_data(to)[0]
        if unit in ("ps", "fs", "as"):
            raise BatchError(f"{to!r} is finer than a nanosecond. Give it in ns.")
        return pa.scalar(to.astype("M8[s]") if unit in (*_COARSE["M"], "D") else to)
    return whole.item()


def announce(to: Any, earlier: Any) -> bool:
    """Check an instant that is given before the type of the time column is known; returns whether it is not earlier."""
    try:
        given = from_values([to])
        if not is_time(given.type) or given.null_count:
            raise TypeError(f"a {'null' if given.null_count else given.type} is no time")
        if times(given, 0)[2] is not None:
            raise ValueError("it is out of range")
        return earlier is None or bool(to >= earlier)
    except (*ARROW_ERRORS, TypeError, ValueError, OverflowError) as error:
        raise BatchError(
            f"{to!r} is no instant to move to: {error}. Give a timestamp, a date or an integer, always of one kind."
        ) from error


def instant(to: Any, type_: Any) -> int:
    """An instant given by a user, in the units of the time column."""
    try:
        value = pa.array([to], to.type) if isinstance(to, pa.Scalar) else from_values([to])
        if pa.types.is_integer(value.type) != pa.types.is_integer(type_):
            raise TypeError(f"the time column holds {type_}")
        values, null, far = times(value.cast(type_), 0)
    except (*ARROW_ERRORS, TypeError, ValueError, OverflowError) as error:
        raise BatchError(f"{to!r} is no time of the time column ({type_}): {error}.") from error
    if null is not None or far is not None:
        raise BatchError(f"{to!r} is no time, or out of range.")
    return int(values[0])


def from_times(values: Ints, type_: Any) -> Any:
    """int64 times back as the column's own type."""
    whole = as_arrow(values)
    if pa.types.is_integer(type_):
        return whole.cast(type_)
    return whole.view(type_) if type_.bit_width == 64 else whole.cast(pa.int32()).view(type_)


def conform(name: str, column: Any, type_: Any | None) -> Any:
    """The column in the type it had in earlier batches; its values can be kept."""
    check_kept(name, column)
    if type_ is None or column.type == type_ or pa.types.is_null(type_):
        return column
    same_kind = (
        pa.types.is_null(column.type)
        or (pa.types.is_integer(type_) and pa.types.is_integer(column.type))
        or (pa.types.is_floating(type_) and pa.types.is_floating(column.type))
        or (is_string(type_) and is_string(column.type))
        or (pa.types.is_timestamp(type_) and pa.types.is_timestamp(column.type) and type_.tz == column.type.tz)
    )
    try:
        if same_kind:
            return column.cast(type_)
        why = "the types differ"
    except ARROW_ERRORS as error:
        why = str(error)
    raise BatchError(
        f"column {name!r} was {type_} in earlier batches and is {column.type} now: {why}. Push one type throughout."
    )
