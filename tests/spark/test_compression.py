"""Cells as Spark keeps them: compressed by bytes, and as older versions wrote them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engines.streams import same_rows
from skyband import Last, Monitor, TopK
from skyband.monitor import cells
from skyband.spark.compression import _BY_BYTES, _CODEC, _HEAD, _LARGE, _MAGIC, _SMALL, compressed, plain_bytes
from spark.shards import Shards, cut, many_rows, pushed


def cell_of(objects: int) -> cells.Cells:
    """Records of a score, a time and a number each, and a column of ids."""
    rng = np.random.default_rng(4)
    records = np.zeros(objects, [("score", "f8"), ("time", "i8"), ("number", "i8")])
    records["score"], records["time"] = rng.random(objects), 1_700_000_000_000_000 + rng.integers(0, 10**10, objects)
    records["number"] = rng.integers(0, 10**6, objects)
    bounds = np.array([0, objects])
    ids = pa.array(rng.integers(0, 10**6, objects))
    return cells.write([cells.array_stream(records, bounds), *cells.column_streams(ids, bounds)], 1)


@pytest.mark.parametrize("objects", [0, 10, 120, 300, 600, 4000])
def test_what_is_stored_comes_back(objects: int) -> None:
    (cell,) = stored = cell_of(objects)
    assert stored.widths == (24, 1, 8)
    assert plain_bytes(compressed(cell, stored.widths)) == plain_bytes(compressed(cell)) == cell
    assert (len(cell) < _SMALL) == (compressed(cell) == cell)


def test_large_cells_take_fewer_bytes() -> None:
    """The high bytes of times and numbers are equal, and lie apart in a record."""
    (cell,) = stored = cell_of(4000)
    assert len(cell) >= _LARGE
    assert len(compressed(cell, stored.widths)) < 0.9 * len(compressed(cell))


def test_cells_of_older_versions_are_read() -> None:
    (cell,) = cell_of(600)
    assert plain_bytes(_HEAD.pack(_MAGIC, len(cell)) + _CODEC.compress(cell, asbytes=True)) == cell


def test_a_shard_goes_on_from_large_cells() -> None:
    query, options = TopK(20, by="x", window=Last(span=900), per="g"), dict[str, Any](id="i", time="t")
    shards, monitor = Shards({"q": query}, options, 1), Monitor({"q": query}, **options)
    for number, partitions in enumerate(cut(many_rows(seed=3, size=3000, groups=20), 3)):
        same_rows(shards.trigger(partitions), pushed(monitor, partitions, ("t", "i")), f"trigger {number}")
    (held,) = shards.tester.handle.map_states["cells"].state.values()
    assert any(value[0].startswith(_BY_BYTES) for value in held.values())
