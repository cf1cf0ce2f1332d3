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
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import examples
from monitor.refusals import TOP, Row, brief, refused, scores
from skyband.errors import BatchError, QueryError
from skyband.tables.iso import instants

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
    "polars LazyFrame": lambda: pl.from_arrow(TABLE).lazy().filter(pl.col("g") > 0),  # type: ignore[union-attr]
    "dataset": lambda: ds.dataset(TABLE),
    "scanner": lambda: ds.dataset(TABLE).scanner(),
    "generator of batches": lambda: (TABLE.slice(start, 2) for start in (0, 2, 4)),
    "iterator of dicts": lambda: iter(ROWS),
    "iterator of readers": lambda: iter([TABLE.slice(0, 3).to_reader(), TABLE.slice(3).to_reader()]),
    "dict of masked arrays": lambda: {
        **COLUMNS,
        "x": np.ma.MaskedArray([1.0, 3.0, 3.0, 999.0, 2.0], [False, False, False, True, False]),
        "g": np.ma.MaskedArray(COLUMNS["g"], dtype=np.int32),
        "z": np.ma.MaskedArray(["u", "?", "v", "w", "u"], [False, True, False, False, False]),
    },
    "dict of coarse times": lambda: {**COLUMNS, "t": np.array(TIMES, "M8[s]").astype("M8[us]")},
    "run ends": lambda: TABLE.set_column(3, "g", pc.run_end_encode(TABLE["g"].combine_chunks())),
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
        pa.array([[math.nan], [1.5, math.nan], None]),
        pa.array([{"a": math.nan}, {"a": None}, None], pa.struct([("a", pa.float64())])),
        pa.array([[("u", 1)], [("u", 2)], None], pa.map_(pa.string(), pa.int64())),
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


def test_scalars_are_one_row_or_stand_for_every_row() -> None:
    monitor = sb.Monitor(sb.TopK(3, "x", sb.Last(9), per="g"), id="i", keep=("z", "v"))
    one = {"x": 1.5, "i": "abc", "g": None, "z": datetime(2024, 1, 1), "v": {"a": 1}}
    changes = monitor.push(one).to_pylist()
    assert [(row["id"], row["g"], row["score"], row["z"], row["v"]) for row in changes] == [
        ("abc", None, 1.5, datetime(2024, 1, 1), {"a": 1})
    ]
    some = {"x": np.array([2.0, 3.0]), "i": "abc", "g": "all", "z": np.datetime64("2024-01-02T03", "h"), "v": None}
    changes = monitor.push(some).to_pylist()
    assert [(row["id"], row["g"], row["score"], row["z"]) for row in changes] == [
        ("abc", "all", 2.0, datetime(2024, 1, 2, 3)),
        ("abc", "all", 3.0, datetime(2024, 1, 2, 3)),
    ]
    assert brief(monitor.push({**some, "x": np.float64(4)})) == ["+4"]
    assert brief(monitor.push({**some, "x": np.array(5)})) == ["-2", "+5"]
    assert monitor.push({**some, "x": []}).num_rows == 0


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_times_of_numpy_in_every_unit(unit: str) -> None:
    """As a column, in `advance` and in push(to=)."""
    times = np.array(["2020-01-02", "2022-01-06", "NaT"], f"M8[{unit}]")
    monitor = sb.Monitor(sb.TopK(9, "x", sb.Last(np.timedelta64(1000, "D"))), time="t")
    monitor.push({"x": [1.0, 2.0, 3.0], "t": times})
    assert scores(monitor) == [2.0, 1.0]
    assert monitor.stats()["rejected"] == {"time is null": 1}
    assert brief(monitor.advance(times[0] + np.timedelta64(1000, "D"))) == ["-1"]
    assert brief(monitor.push({}, to=times[1] + np.timedelta64(1000, "D"))) == ["-2"]
    with pytest.raises(BatchError, match="no time"):
        monitor.advance(np.datetime64("NaT", "s"))


def test_times_of_numpy_before_the_first_batch() -> None:
    monitor = sb.Monitor(sb.TopK(9, "x", sb.Last("1 day")), time="t")
    monitor.advance(np.datetime64("2024-01-01"))
    monitor.advance(np.datetime64("2024-01-02T00", "h"))
    with pytest.raises(BatchError, match="backwards"):
        monitor.advance(np.datetime64("2024-01-01"))
    monitor = sb.Monitor.restore(monitor.snapshot())
    monitor.push({"x": [1.0, 2.0], "t": np.array(["2024-01-01", "2024-01-02"], "M8[s]")})
    assert scores(monitor) == [2.0] and monitor.stats()["late"] == 1


ISO = {
    "2024-01-01": "2024-01-01 00:00:00",
    "2024-01-01T06": "2024-01-01 06:00:00",
    "2024-01-01T06:30": "2024-01-01 06:30:00",
    "2024-02-29 06:30:15": "2024-02-29 06:30:15",
    "2024-02-29T06:30:15.25": "2024-02-29 06:30:15.250000",
}
ZONED = {
    "2024-01-01T06Z": "2024-01-01 06:00:00+00:00",
    "2024-01-01T06:30+02": "2024-01-01 04:30:00+00:00",
    "2024-01-01T06:30:00+0230": "2024-01-01 04:00:00+00:00",
    "2024-01-01 06:30:00.000001-02:30": "2024-01-01 09:00:00.000001+00:00",
}
NO_INSTANTS = [
    "", "now", "5", "2024", "2024-1-1", "2024-13-01", "2024-00-01", "2024-02-30", "2023-02-29", "1900-02-29",
    "2024-01-01T24:00", "2024-01-01T06:60", "2024-01-01T06:30:60", "2024-01-01T06:30:00.1234567", "2024-01-01t06:30",
    "20240101", "2024-01-01T", "2024-01-01Z", "2024-01-01T06:30+24:00", "2024-01-01T06:30+2", " 2024-01-01",
    "2024-01-01 ", "٢٠٢٤-٠١-٠١", "2024-01-01T06:30\x00",
]  # fmt: skip
DICTIONARY = pa.dictionary(pa.int8(), pa.string())
NEARLY = r"\A20[0-9]{2}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}(:[0-9]{2}){0,2}(\.[0-9]{1,7})?Z?)?\Z"


@pytest.mark.parametrize("good", [ISO, ZONED], ids=["local", "zoned"])
@pytest.mark.parametrize(
    "type_", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_strings_are_times(good: dict[str, str], type_: Any) -> None:
    """Alone, or among strings that are none: these are rejected, and so are those of the other kind."""
    bad = [*NO_INSTANTS, *(ZONED if good is ISO else ISO)]
    for texts in ([*good], [*good, *bad, None], [None, *good]):
        monitor = sb.Monitor(sb.TopK(99, "x", sb.Last("400 days")), time="t")
        monitor.push({"x": [1.0] * len(texts), "t": pa.array(texts).cast(type_)})
        assert sorted(map(str, monitor.answer().column("time").to_pylist())) == sorted(good.values())
        assert monitor.answer().schema.field("time").type == pa.timestamp("us", None if good is ISO else "UTC")
        many = len(texts) > len(good) + 1
        expected = {"time is no instant": len(bad)} if many else {}
        assert monitor.stats()["rejected"] == expected | ({"time is null": 1} if None in texts else {})


def test_strings_and_times_in_turns() -> None:
    monitor = sb.Monitor(sb.TopK(99, "x", sb.Last("2 days")), time="t", keep="t2")
    batch = {"x": 1.0, "t2": 0}
    monitor.push({**batch, "t": ["bad", None]} | {"x": [1.0, 2.0]})
    monitor.push({**batch, "t": "2024-01-01"})
    monitor.push({**batch, "t": datetime(2024, 1, 2)})
    monitor.push({**batch, "t": pa.array(["2024-01-02T12", "bad"]), "x": [3.0, 4.0]})
    assert monitor.stats()["rejected"] == {"time is no instant": 2, "time is null": 1}
    assert [row["time"].isoformat() for row in monitor.answer().to_pylist()] == [
        "2024-01-02T12:00:00",
        "2024-01-02T00:00:00",
        "2024-01-01T00:00:00",
    ]
    assert brief(monitor.advance("2024-01-03")) == ["-1"]
    with pytest.raises(BatchError, match="was timestamp"):
        monitor.push({**batch, "t": 5})
    integers = sb.Monitor(sb.TopK(9, "x", sb.Last(span=9)), time="t")
    integers.push({"x": 1.0, "t": 5})
    with pytest.raises(BatchError, match="was int64 in earlier batches and is string now"):
        integers.push({"x": 1.0, "t": "2024-01-01"})


@examples(200)
@given(
    st.lists(
        st.from_regex(r"\A20[0-9]{2}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}(:[0-9]{2}){0,2}(\.[0-9]{1,7})?Z?)?\Z"), max_size=9
    )
)
def test_a_string_is_the_same_time_in_any_company(texts: list[str]) -> None:
    """Arrow reads a column of instants at once; where one is none, they are looked at one by one."""
    column = pa.array([*texts, "2024-01-01T00:00:00", "none"], pa.string())
    found, bad = instants(column, pa.timestamp("us"))
    for text, value, wrong in zip(texts, found.to_pylist(), bad.tolist(), strict=False):
        alone, badly = instants(pa.array([text]), pa.timestamp("us"))
        assert (alone.to_pylist(), badly.tolist()) == ([value], [wrong]), text


def test_all_columns_can_be_kept() -> None:
    query = sb.TopK(1, "x", sb.Last(2), per="g")
    batch = {"x": [1.0], "g": ["a"], "i": [7], "t": [1], "score": [5], "z": ["u"], "w": [[1, 2]]}
    monitor = sb.Monitor(query, id="i", time="t", keep="*")
    assert monitor.push({}).column_names[-1] == "first"
    monitor = sb.Monitor.restore(monitor.snapshot())
    with pytest.raises(BatchError, match="no column 'g'"):
        monitor.push({"x": [1.0], "i": [7], "t": [1], "odd": [1]})
    changes = monitor.push(batch)
    assert changes.column_names[-4:] == ["first", "x", "z", "w"]
    monitor = sb.Monitor.restore(monitor.snapshot())
    assert monitor.push({**batch, "x": [2.0], "more": [1]}).schema == changes.schema
    assert monitor.answer().to_pylist()[0]["w"] == [1, 2]
    with pytest.raises(BatchError, match="no column 'w'"):
        monitor.push({name: values for name, values in batch.items() if name != "w"})
    with pytest.raises(QueryError, match="stands alone"):
        sb.Monitor(query, keep=["x", "*"])
    both = sb.Monitor([sb.TopK(1, "x", sb.Last(2)), sb.TopKPairs(1, "abs(a.x - b.x)", sb.Last(2))], keep="*")
    refused(both, {"x": [1.0, 2.0], "x_a": [1, 2]}, BatchError, "'x_a'", "two columns")
    assert both.push({"x": [1.0, 2.0]}).column_names[-3:] == ["x", "x_a", "x_b"]
