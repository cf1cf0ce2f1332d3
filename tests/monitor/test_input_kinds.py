"""Every kind of batch and every column type that a Monitor takes gives the same changes."""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skyband as sb
from monitor.refusals import TOP, Row, brief

TIMES = [datetime(2024, 1, 1, 0, 0, second) for second in (0, 2, 2, 5, 9)]
COLUMNS: dict[str, list[Any]] = {
    "i": ["a", "b", None, "a", "e"],
    "t": TIMES,
    "x": [1.0, 3.0, 3.0, None, 2.0],
    "g": [1, 2, 1, 1, 2],
    "z": ["u", None, "v", "w", "u"],
}
TABLE = pa.table(
    {name: pa.array(values, pa.timestamp("us") if name == "t" else None) for name, values in COLUMNS.items()}
)
ROWS = TABLE.to_pylist()


def in_pandas() -> pd.DataFrame:
    return TABLE.to_pandas()


KINDS: dict[str, Callable[[], Any]] = {
    "pyarrow Table": lambda: TABLE,
    "chunked Table": lambda: pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)]),
    "RecordBatch": lambda: TABLE.to_batches()[0],
    "RecordBatchReader": lambda: TABLE.to_reader(),
    "pandas": in_pandas,
    "pandas, odd index": lambda: in_pandas().set_index(pd.Index([9, 9, 3, 1, 0])),
    "pandas categories": lambda: in_pandas().astype({"z": "category"}),
    "polars": lambda: pl.from_arrow(TABLE),
    "polars categories": lambda: pl.from_arrow(TABLE).with_columns(pl.col("z").cast(pl.Categorical)),  # type: ignore[union-attr]
    "duckdb": lambda: duckdb.from_arrow(TABLE),
    "dict of lists": lambda: COLUMNS,
    "dict of arrays": lambda: {name: TABLE[name] for name in TABLE.column_names},
    "dict of NumPy arrays": lambda: {
        **COLUMNS,
        "x": np.array([1.0, 3.0, 3.0, np.nan, 2.0]),
        "g": np.array(COLUMNS["g"], np.int32),
        "t": np.array(TIMES, "M8[us]"),
        "i": np.array(COLUMNS["i"], object),
    },
    "dict of Series": lambda: {name: in_pandas()[name] for name in COLUMNS},
    "list of dicts": lambda: ROWS,
    "list of dicts without nulls": lambda: [{k: v for k, v in row.items() if v is not None} for row in ROWS],
    "sliced": lambda: pa.concat_tables([TABLE, TABLE]).combine_chunks().slice(5, 5),
    "large strings": lambda: TABLE.set_column(4, "z", TABLE["z"].cast(pa.large_string())),
    "dictionary": lambda: TABLE.set_column(4, "z", TABLE["z"].dictionary_encode()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_input_give_the_same_changes(kind: str) -> None:
    def run(batch: Any) -> tuple[list[Row], list[Row], dict[str, int]]:
        query = sb.TopK(1, "x", sb.Last("4 seconds"), where="z is not null or g = 2", per="g")
        monitor = sb.Monitor(query, id="i", time="t", keep="z")
        changes = monitor.push(batch).to_pylist()
        return changes, monitor.answer().to_pylist(), monitor.stats()["rejected"]

    changes, answer, rejected = run(KINDS[kind]())
    expected, expected_answer, _ = run(TABLE)
    assert changes == expected
    assert answer == expected_answer
    assert len(changes) == 7  # g=1: +1 at 0, -1 +3 at 2, -3 at 6; g=2: +3 at 2, -3 at 6, +2 at 9
    assert sum(rejected.values()) == 1


@pytest.mark.parametrize(
    "type_",
    [
        pa.int8(),
        pa.uint16(),
        pa.int32(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(9, 2),
        pa.dictionary(pa.int8(), pa.int64()),
    ],
)
def test_every_type_of_number_is_a_score(type_: Any) -> None:
    values: list[Any] = [3, 1, None, 2]
    if pa.types.is_decimal(type_):
        values = [None if value is None else Decimal(value) for value in values]
    if pa.types.is_float16(type_):
        values = [None if value is None else np.float16(value) for value in values]
    column = pa.array(values).dictionary_encode() if pa.types.is_dictionary(type_) else pa.array(values, type_)
    monitor = sb.Monitor(TOP)
    assert brief(monitor.push(pa.table({"x": column}))) == ["+3", "+1", "-1", "+2"]
    assert monitor.stats()["rejected"] == {"x is null": 1}


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, None]),
        pa.array([1.5, math.nan, None]),
        pa.array([b"a", b"b", None]),
        pa.array([Decimal("1.50"), Decimal("2.25"), None]),
        pa.array([[1, 2], [], None]),
        pa.array([{"a": 1}, {"a": None}, None]),
        pa.array([date(2024, 1, 1), date(2024, 1, 2), None]),
        pa.array([datetime(2024, 1, 1, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC), None]),
        pa.array([timedelta(seconds=1), timedelta(days=-1), None]),
        pa.array([1, 2, None], pa.uint8()),
        pa.array(["a", "b", None]).dictionary_encode(),
        pa.array(["a", "b", None], pa.string_view()),
        pa.nulls(3),
    ],
    ids=lambda array: str(array.type),
)
def test_every_type_can_be_kept(values: Any) -> None:
    """What is kept comes back, from this push, from an earlier one, and from a snapshot."""
    monitor = sb.Monitor(sb.TopK(9, "x", sb.Last(3)), id="z", keep="w")
    table = pa.table({"x": [1.0, 2.0, 3.0], "z": values, "w": values})
    text = [repr(value) for value in values.to_pylist()]
    changes = monitor.push(table)
    assert [repr(value) for value in changes.column("w").to_pylist()] == text
    assert [repr(value) for value in changes.column("id").to_pylist()] == text
    restored = sb.Monitor.restore(monitor.snapshot())
    for one in (monitor, restored):
        assert [repr(value) for value in one.answer().column("w").to_pylist()] == text[::-1]
        left = one.push(table).filter(pa.compute.field("diff") == -1)
        assert [repr(value) for value in left.column("w").to_pylist()] == text
        assert [repr(value) for value in left.column("id").to_pylist()] == text


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, None]),
        pa.array([1.5, math.nan, None]),
        pa.array([0.0, 1.0, None], pa.float32()),
        pa.array([b"a", b"b", None]),
        pa.array(["a", "", None]),
        pa.array([Decimal("1.50"), Decimal("2.25"), None]),
        pa.array([date(2024, 1, 1), date(2024, 1, 2), None]),
        pa.array([datetime(2024, 1, 1), datetime(1900, 1, 1), None]),
        pa.array([2**64 - 1, 0, None], pa.uint64()),
        pa.array(["a", "b", None]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_every_type_can_be_a_group(values: Any) -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(9), per="g"))
    monitor.push(pa.table({"x": [1.0, 2.0, 3.0], "g": values}))
    monitor = sb.Monitor.restore(monitor.snapshot())
    changes = monitor.push(pa.table({"x": [4.0, 5.0, 0.0], "g": values}))
    assert brief(changes) == ["-1", "+4", "-2", "+5"]
    for key, score in zip(values.to_pylist(), [4.0, 5.0, 3.0], strict=True):
        assert monitor.answer(key=(key,)).column("score").to_pylist() == [score], key
