"""Columns of changes as runs: what is unpacked is what was packed, whatever repeats in it, in any slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skyband.spark.mappers import from_bytes, to_bytes, unpack
from skyband.spark.runs import with_runs, without_runs

SIZE = 20_000
RNG = np.random.default_rng(4)


def repeated(values: list[Any], type_: Any, each: int) -> Any:
    """A column of so many of the same value, one after another; the last run is shorter."""
    places = np.arange(SIZE) // each % len(values)
    return pa.array(values, type_).take(pa.array(places))


COLUMNS = {
    "query": repeated(["a", "b"], pa.string(), 9_000).dictionary_encode(),
    "subscriber": repeated([5, None, 7], pa.int64(), 18),
    "name": repeated(["x", None, "zz"], pa.string(), 18),
    "time": repeated([3, 4, None], pa.timestamp("us", "Europe/Paris"), 11),
    "day": repeated([1, 2], pa.date32(), 300),
    "price": repeated([1.5, float("nan"), None], pa.float64(), 50),
    "diff": repeated([1, -1], pa.int8(), 9),
    "first": repeated([True, False], pa.bool_(), 9),
    "id": pa.array(RNG.integers(0, 2**40, SIZE)),
    "score": pa.array(RNG.random(SIZE)),
    "none": pa.nulls(SIZE, pa.int64()),
    "lists": repeated([[1], [2, 3]], pa.list_(pa.int64()), 100),
    "late": pa.concat_arrays([pa.nulls(2_000, pa.int64()), pa.array(RNG.integers(0, 99, SIZE - 2_000))]),
}


def text_of(column: Any) -> list[str]:
    return [repr(value) for value in column.to_pylist()]


@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_unpacked_is_what_was_packed(name: str) -> None:
    table = pa.table({name: COLUMNS[name]})
    packed = with_runs(table)
    for begin in (0, 1, 4_999, 19_990):
        piece = from_bytes(to_bytes(packed.slice(begin, 7_001)))
        assert text_of(without_runs(piece.column(name))) == text_of(table.column(name).slice(begin, 7_001))


def test_what_repeats_takes_few_bytes_and_is_unpacked_by_the_last_mapper() -> None:
    table = pa.table({name: COLUMNS[name] for name in ("query", "subscriber", "diff", "first", "id", "score")})
    data = to_bytes(with_runs(table))
    assert len(data) < 0.65 * len(to_bytes(table)), "ids and scores are left, and little else"
    kinds = {name: pa.string() if name == "query" else column.type for name, column in COLUMNS.items()}
    schema = pa.schema([(name, kinds[name]) for name in table.column_names])
    batches = list(unpack(schema, iter([pa.RecordBatch.from_pydict({"blob": [data]})])))
    assert pa.Table.from_batches(batches).to_pylist() == table.to_pylist()
    assert with_runs(table.slice(0, 100)).schema == table.schema, "few rows are as they are"
    assert with_runs(pa.table({"id": COLUMNS["id"]})).schema.field("id").type == pa.int64(), "nothing repeats"
