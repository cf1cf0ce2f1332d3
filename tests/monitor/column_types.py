"""One short column of every Arrow type: five values that differ, then a null."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

DAY = date(2024, 1, 1)
MOMENTS = [datetime(2024, 1, 1 + n) for n in range(5)]
SPANS = [timedelta(seconds=1 + n) for n in range(5)]
TEXTS = ["a", "b", "c d", "é", "5"]
NUMBERS = [1, 2, 3, 4, 5]
LISTS = [[1], [1, 2], [], [3], [None]]
STRUCTS = [{"a": n, "b": str(n)} for n in range(5)]


class Unregistered(pa.ExtensionType):  # type: ignore[misc]
    """A type of a program's own, which Arrow forgets when it writes the column down."""

    def __init__(self) -> None:
        super().__init__(pa.float64(), "tests.unregistered")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def _simple() -> dict[str, tuple[Any, Sequence[Any]]]:
    """Types that Python values make, and the values."""
    integers = [getattr(pa, f"{sign}int{width}")() for sign in ("", "u") for width in (8, 16, 32, 64)]
    decimals = [kind(6, 2) for kind in (pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256)]
    units = ("s", "ms", "us", "ns")
    found: list[tuple[Any, Sequence[Any]]] = [(type_, NUMBERS) for type_ in integers]
    found += [(pa.float16(), [np.float16(n) for n in NUMBERS]), (pa.float32(), NUMBERS), (pa.float64(), NUMBERS)]
    found += [(type_, [Decimal(n) / 4 for n in NUMBERS]) for type_ in decimals]
    found += [
        (pa.date32(), [DAY + timedelta(n) for n in range(5)]),
        (pa.date64(), [DAY + timedelta(n) for n in range(5)]),
    ]
    found += [(type_, [time(n) for n in range(5)]) for type_ in (pa.time32("s"), pa.time32("ms"))]
    found += [(type_, [time(n) for n in range(5)]) for type_ in (pa.time64("us"), pa.time64("ns"))]
    found += [(pa.timestamp(unit), MOMENTS) for unit in units]
    found += [(pa.timestamp(unit, "UTC"), MOMENTS) for unit in units]
    found += [(pa.timestamp("us", "Europe/Berlin"), MOMENTS), (pa.timestamp("us", "+02:00"), MOMENTS)]
    found += [(pa.duration(unit), SPANS) for unit in units]
    found += [(pa.month_day_nano_interval(), [(0, n, 0) for n in range(5)])]
    found += [(type_, TEXTS) for type_ in (pa.string(), pa.large_string(), pa.string_view())]
    found += [
        (type_, [text.encode() for text in TEXTS]) for type_ in (pa.binary(), pa.large_binary(), pa.binary_view())
    ]
    found += [(pa.binary(2), [b"%2d" % n for n in range(5)])]
    found += [(kind(pa.int64()), LISTS) for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)]
    found += [
        (pa.list_(pa.float32(), 2), [[n, n + 0.5] for n in range(5)]),
        (pa.list_(pa.list_(pa.string())), [[["a"]], [[]], [], [None], [["b"]]]),
    ]
    found += [(pa.struct([("a", pa.int64()), ("b", pa.string())]), STRUCTS)]
    found += [(pa.map_(pa.string(), pa.int64()), [[("a", n)] for n in range(5)])]
    return {str(type_): (type_, values) for type_, values in found}


def _made() -> dict[str, Any]:
    """Arrays of types that are made of others."""
    texts, numbers = pa.array([*TEXTS, None]), pa.array([*NUMBERS, None])
    ids = pa.array([UUID(int=n).bytes for n in range(5)] + [None], pa.binary(16))
    kinds = pa.array([0, 0, 1, 1, 0, 1], pa.int8())
    children = [numbers, texts]
    runs = pa.RunEndEncodedArray.from_arrays
    tensors = pa.array([[n, n + 1.0] for n in range(5)] + [None], pa.list_(pa.float64(), 2))
    return {
        "null": pa.nulls(6),
        "bool": pa.array([True, False, True, False, True, None]),
        "dictionary of strings": texts.dictionary_encode(),
        "dictionary of numbers": numbers.dictionary_encode(),
        "dictionary of 8-bit codes": pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 3, 4, None], pa.int8()), pa.array(TEXTS)
        ),
        "ordered dictionary": pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 3, 4, None]), pa.array(TEXTS), ordered=True
        ),
        "dictionary with nulls": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4, 5]), texts),
        "dictionary of times": pa.array([*MOMENTS, None], pa.timestamp("us")).dictionary_encode(),
        "run ends of strings": runs(pa.array([1, 2, 3, 4, 5, 6], pa.int32()), texts),
        "run ends of numbers": runs(pa.array([1, 2, 3, 4, 5, 6], pa.int16()), numbers),
        "run ends of a dictionary": runs(pa.array([1, 2, 3, 4, 5, 6], pa.int32()), texts.dictionary_encode()),
        "run ends of run ends": runs(
            pa.array([1, 2, 3, 4, 5, 6], pa.int32()), runs(pa.array([1, 2, 3, 4, 5, 6], pa.int32()), texts)
        ),
        "dictionary of run ends": pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 3, 4, None], pa.int8()), runs(pa.array([1, 2, 3, 4, 5, 6], pa.int32()), texts)
        ),
        "map of structs": pa.array(
            [[("a", {"b": n})] for n in range(5)] + [None], pa.map_(pa.string(), pa.struct([("b", pa.int64())]))
        ),
        "an unregistered extension": pa.ExtensionArray.from_storage(Unregistered(), numbers.cast(pa.float64())),
        "sparse union": pa.UnionArray.from_sparse(kinds, children),
        "dense union": pa.UnionArray.from_dense(kinds, pa.array([0, 1, 2, 3, 4, 5], pa.int32()), children),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), ids),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', "2", "[]", '"x"', "true", None])),
        "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 1, 0, 1, None], pa.int8())),
        "opaque": pa.ExtensionArray.from_storage(
            pa.opaque(pa.binary(), "thing", "maker"), pa.array([b"1", b"2", b"3", b"4", b"5", None])
        ),
        "tensor": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float64(), [2]), tensors),
    }


COLUMNS: dict[str, Any] = {
    name: pa.array([*values, None], type_) for name, (type_, values) in _simple().items()
} | _made()
