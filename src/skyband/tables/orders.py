"""Orders: keys of any ordered type as labels, numbers that rank as the keys do.

A label is how many of the given rows rank below, by their keys: equal keys get equal labels. Keys are looked at one
after the other, each only where all earlier ones are equal. Numbers, times and booleans are compared as they are,
strings (by their UTF-8 bytes), bytes and decimals by Arrow's ranks. Labels are for one set of rows; nothing is kept.

Cost: a sort of the first key, and of each further one among rows that tie until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.errors import BatchError
from skyband.query.expressions import kind_of, parse
from skyband.query.scoring import Scoring, Typed
from skyband.tables.columns import as_arrow, bits_of, is_fixed, lent, valid_of
from skyband.tables.input import Batch, call, conform, is_number, is_string
from skyband.tables.operands import kind_of_type

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Way:
    """How one key ranks: the largest first or last, and where nulls go."""

    descending: bool  # the largest is best
    nulls_first: bool = False


def plain_column(key: Scoring) -> str | None:
    """The column that a key is; None: it is computed."""
    columns = key.columns
    return columns[0] if isinstance(key, Typed) and columns == (key.text.strip("`"),) else None


def key_array(batch: Batch, key: Scoring) -> Any:
    """A key of every row as an Arrow array, null where it is null or NaN."""
    name = plain_column(key)
    if name is not None:
        return without_nan(checked_key(name, batch.array(name)))
    if isinstance(key, Typed):
        operands = {column: batch.operand(column) for column in key.columns}
        result = parse(key.text).evaluate(operands, batch.rows)
        if result.values.dtype == object:
            null = None if result.valid is None else ~result.valid
            return pa.array(result.values, pa.string(), mask=null)
        if result.values.dtype.kind == "M":
            null = None if result.valid is None else ~result.valid
            days = np.datetime_data(result.values.dtype)[0] == "D"
            return pa.array(result.values, pa.date32() if days else pa.timestamp("us", result.zone), mask=null)
        values = as_arrow(result.values)
        if result.valid is not None:
            values = pc.if_else(as_arrow(result.valid), values, pa.scalar(None, values.type))
        return without_nan(values)
    return without_nan(as_arrow(key.keys(batch) if key.function is None else call(key.function, batch)))


def ranks_by_key(batch: Batch, by: Any) -> bool:
    """Whether a scoring that is typed is a key of this batch: strings, times, dates or booleans."""
    if not isinstance(by, str):
        return False
    key = Typed(by)
    if not set(key.columns) <= set(batch.names):
        return False
    name = plain_column(key)
    if name is not None:
        return not is_number(type_ := batch.array(name).type) and is_key(type_)
    expression = parse(by)
    kinds = {
        column: kind for column in expression.columns if (kind := kind_of_type(batch.array(column).type)) is not None
    }
    kind = kind_of(expression.tree, kinds, lambda message: BatchError(f'"{by}": {message}.'))
    return kind not in ("number", None)


def is_key(type_: Any) -> bool:
    """Whether values of a type have an order of their own."""
    binary = pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_)
    return bool(
        is_number(type_)
        or is_string(type_)
        or (pa.types.is_temporal(type_) and not pa.types.is_interval(type_))
        or pa.types.is_boolean(type_)
        or binary
    )


def checked_key(name: str, column: Any) -> Any:
    if not is_key(column.type):
        raise BatchError(
            f"column {name!r} holds {column.type}, which has no order. A key is a number, a string, a time, a date or "
            "a boolean; rank by one of its parts."
        )
    return column


def conform_key(name: str, column: Any, known: Any) -> Any:
    """The key in the type that it had in earlier batches: numbers become that sort of number where they can."""
    numbers = is_number(column.type) and is_number(known) and not pa.types.is_null(known)
    if not numbers or column.type == known:
        return conform(name, column, known)
    try:
        return column.cast(known)
    except pa.ArrowException as error:
        raise BatchError(
            f"the key {name!r} was {known} in earlier batches and is {column.type} now: {error}. Push one type "
            "throughout."
        ) from None


def without_nan(column: Any) -> Any:
    """The column with null for NaN."""
    if not pa.types.is_floating(column.type):
        return column
    whole = column.cast(pa.float64()) if column.type != pa.float64() else column
    if not np.isnan(bits_of(whole).view(np.float64)).any():
        return column
    return pc.if_else(pc.is_nan(whole), pa.scalar(None, column.type), column)


def as_score(column: Any) -> Any:
    """The first key as the reported score: a number as float64, else null."""
    if not is_number(column.type) or pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.float64())
    return column.cast(pa.float64(), safe=False)


def labels(keys: Sequence[Callable[[], Any]], ways: Sequence[Way], count: int, ages: Sequence[Ints] = ()) -> Floats:
    """The label of each of `count` rows: larger is better. keys: each is read when rows tie until then.

    ages: further keys, of which the smallest is best.
    """
    if len(keys) == 1 and not ages:
        only = keys[0]()
        values, null = _comparable(only, ways[0])
        if null is None and (values.dtype.kind == "f" or values.itemsize < 8 or not is_fixed(only.type)):
            return values.astype(np.float64)  # they are labels themselves
    label, rows = np.zeros(count, np.int64), np.arange(count)
    further: list[Any] = [*zip(keys, ways, strict=True), *((age, None) for age in ages)]
    for key, way in further:
        if not len(rows):
            break
        values, null = (~key, None) if way is None else _comparable(_only(key(), rows), way)
        rows = _refine(label, rows, values, null)
    return label.astype(np.float64)


def _only(column: Any, rows: Ints) -> Any:
    return column if len(rows) == len(column) else column.take(as_arrow(rows))


def _refine(label: Ints, rows: Ints, values: NDArray[Any], null: Any) -> Ints:
    """Tell rows of one label apart by one more key; returns those that are still alike."""
    one = len(rows) == len(label) and not label.any()  # all are alike
    mine = values if len(rows) == len(values) else values[rows]
    parts = [mine]
    if null is not None:
        parts.append(null if len(rows) == len(null) else null[rows])
    if not one:
        parts.append(label[rows])
    order = np.argsort(mine) if len(parts) == 1 else np.lexsort(parts)
    new = np.ones(len(order), np.bool_)  # where another key begins
    new[1:] = False
    old = new.copy()  # where another label begins
    for part in parts:
        there = part[order]
        new[1:] |= there[1:] != there[:-1]
    if not one:
        before = label[rows][order]
        old[1:] = before[1:] != before[:-1]
    places = np.arange(len(order))
    label[rows[order]] += np.maximum.accumulate(np.where(new, places, 0)) - np.maximum.accumulate(
        np.where(old, places, 0)
    )
    alone = new & np.append(new[1:], True)
    alike: Ints = rows[np.sort(order[~alone])]  # rising, so that all of them are the rows as they are
    return alike


def _comparable(column: Any, way: Way) -> tuple[NDArray[Any], Any]:
    """Numbers that rank as the keys do, larger is better, and which are null as a key before them (None: none)."""
    valid = valid_of(column)
    values = _numbers(column)
    if not way.descending:
        values = -values if values.dtype.kind == "f" else ~values
    if valid is None:
        return values, None
    values = np.where(valid, values, values.dtype.type(0))
    return values, ~valid if way.nulls_first else valid


def _numbers(column: Any) -> NDArray[Any]:
    """Numbers in the order of the column's values; null slots hold anything."""
    type_ = column.type
    if pa.types.is_null(type_):
        return np.zeros(len(column), np.int64)
    if pa.types.is_floating(type_):
        whole = column if type_ == pa.float64() else column.cast(pa.float64())
        numbers: NDArray[Any] = bits_of(whole).view(np.float64) + 0.0  # -0.0 is 0.0
        return numbers
    if is_fixed(type_) and not pa.types.is_decimal(type_):
        bits = bits_of(column)
        return bits.view(f"u{bits.itemsize}") if pa.types.is_unsigned_integer(type_) else bits
    if pa.types.is_decimal32(type_) or pa.types.is_decimal64(type_):
        column = column.cast(pa.decimal128(type_.precision, type_.scale))
    if pa.types.is_fixed_size_binary(type_) and not pa.types.is_decimal(type_):
        column = column.cast(pa.binary())
    encoded = column.dictionary_encode()
    ranks = pc.rank(encoded.dictionary, sort_keys="ascending").to_numpy().astype(np.int64)
    found: Ints = np.append(ranks, 0)[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return found


def coarse(column: Any, way: Way) -> Floats | None:
    """Floats that never rank two keys the wrong way round, though they may be equal; None: there are none quickly.

    Strings by their first bytes. With nulls there are none.
    """
    if column.null_count:
        return None
    if is_string(column.type):
        from skyband.kernels.strings import first_bytes

        wide = column.cast(pa.large_string())
        _, offsets, data = wide.buffers()
        if data is None or not len(data) or not len(wide):
            return None
        values = np.empty(len(wide))
        first_bytes(
            lent(np.frombuffer(offsets, np.int64, len(wide) + 1, wide.offset * 8)),
            lent(np.frombuffer(data, np.uint8)),
            values,
        )
    elif is_fixed(column.type) and not pa.types.is_decimal(column.type):
        values = _numbers(column).astype(np.float64)
    else:
        return None
    return values if way.descending else -values
