"""Columns and arrays as cells, and back."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import examples
from skyband.errors import StateError
from skyband.monitor import cells

_TIMES = [datetime(1969, 7, 20), datetime(2024, 3, 31, 1, 30), datetime(2262, 1, 1)]
_ZONED = [one.replace(tzinfo=UTC) for one in _TIMES]
_TEXTS = ["", "a", "å" * 40, "a\0b", "null"]
_WORDS = [word.encode() for word in _TEXTS]
VALUES: dict[Any, list[Any]] = {
    **{kind: [0, 1, 127] for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    pa.int8(): [-128, 0, 127],
    pa.int16(): [-(2**15), 0, 5],
    pa.int32(): [-(2**31), 0, 5],
    pa.int64(): [-(2**63), 0, 2**63 - 1],
    pa.float16(): [0.5, math.inf, math.nan],
    pa.float32(): [0.5, -math.inf, math.nan, -0.0],
    pa.float64(): [0.1, math.inf, math.nan, -0.0, 5e-324],
    pa.bool_(): [True, False],
    pa.string(): _TEXTS,
    pa.large_string(): _TEXTS,
    pa.binary(): [*_WORDS, b"\xff\xfe"],
    pa.large_binary(): [*_WORDS, b"\xff\xfe"],
    pa.binary(3): [b"abc", b"\0\0\0"],
    pa.date32(): [date(1, 1, 1), date(2024, 2, 29)],
    pa.date64(): [date(1969, 1, 1), date(2024, 2, 29)],
    pa.time32("s"): [time(0), time(23, 59, 59)],
    pa.time64("us"): [time(0), time(23, 59, 59, 999999)],
    pa.duration("us"): [timedelta(0), timedelta(days=-3, microseconds=1)],
    pa.timestamp("s"): _TIMES,
    pa.timestamp("us"): _TIMES,
    pa.timestamp("ns"): _TIMES,
    pa.timestamp("us", "UTC"): _ZONED,
    pa.timestamp("ms", "Europe/Paris"): _ZONED,
    pa.decimal128(10, 2): [Decimal("0.00"), Decimal("-12345678.90")],
    pa.decimal128(38, 0): [Decimal(10**37), Decimal(-1)],
    pa.decimal256(50, 3): [Decimal("1.250"), Decimal(10**40)],
    pa.list_(pa.int64()): [[], [1], [2, None, 3]],
    pa.large_list(pa.string()): [[], ["a", None]],
    pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())}): [{"a": 1, "b": ["x"]}, {"a": None, "b": None}],
    pa.map_(pa.string(), pa.int64()): [[], [("k", 1)]],
    pa.null(): [],
}


@pytest.mark.parametrize("type_", VALUES, ids=str)
@examples(15)
@given(st.data())
def test_columns_come_back_from_any_cells(type_: Any, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from([None, *VALUES[type_]]), max_size=12))
    spare = data.draw(st.integers(0, 3))  # of a longer array, so that it begins somewhere in its buffers
    column = pa.array([*VALUES[type_], None, None, None][:spare] + values, type_).slice(spare if VALUES[type_] else 0)
    size = len(column)
    bounds = np.array([0, *sorted(data.draw(st.lists(st.integers(0, size), max_size=4))), size])
    streams = cells.column_streams(column, bounds)
    assert len(streams) == cells.column_width(type_)
    numbers = np.arange(2 * size).reshape(size, 2)
    stored = cells.write([*streams, cells.array_stream(numbers, bounds)], len(bounds) - 1)
    moved = [cells.by_bytes(cell, stored.widths) for cell in stored]
    assert [cells.by_bytes(cell, stored.widths, back=True) for cell in moved] == stored
    order = data.draw(st.permutations(range(len(stored))))
    read = cells.read([stored[i] for i in order], len(streams) + 1)
    back = cells.join_column(read[:-1], type_)
    back.validate(full=True)
    places = [place for i in order for place in range(bounds[i], bounds[i + 1])]
    assert back.type == type_
    assert repr(back.to_pylist()) == repr(column.take(pa.array(places, pa.int64())).to_pylist())
    assert cells.join_array(read[-1], np.int64).tolist() == numbers[places].reshape(-1).tolist()


def test_no_memory_gets_between_the_fields_of_records() -> None:
    """NumPy leaves what was in memory in the bytes that align a record: they are no part of a snapshot."""
    dtype = np.dtype([("a", "f8"), ("b", "i4")], align=True)
    records = np.full(6, -1, np.int64).view(dtype)
    records["a"], records["b"] = 0, 0
    assert records.tobytes() != bytes(48), "the fields are not all of it"
    (stream,) = [cells.array_stream(records, np.array([0, 1, 3]))]
    assert [bytes(part) for part in stream] == [bytes(16), bytes(32)]


def test_no_cells_are_empty_columns() -> None:
    for type_ in VALUES:
        streams = cells.read([], cells.column_width(type_))
        assert cells.join_column(streams, type_).equals(pa.nulls(0, type_))


@pytest.mark.parametrize(
    "damage", [lambda cell: cell[:-1], lambda cell: cell + b"\0", lambda cell: cell[:9], lambda _: b""]
)
def test_damaged_cells_are_a_state_error(damage: Any) -> None:
    (cell,) = cells.write(cells.column_streams(pa.array([1, 2]), np.array([0, 2])), 1)
    with pytest.raises(StateError):
        cells.read([damage(cell)], 2)
    with pytest.raises(StateError, match="another layout"):
        cells.read([cell], 3)
