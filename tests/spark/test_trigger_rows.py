"""A trigger's rows of a shard: in order, and never many of them unpacked at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import cells, examples, same_rows
from skyband import Last, Monitor, TopK
from skyband.spark.mappers import in_order, to_bytes
from skyband.spark.plan import hash_groups
from skyband.spark.trigger_rows import TriggerRows
from skyband.tables.columns import plain
from spark.shards import Shards, Sizes, pushed

_START = datetime(2024, 3, 31, tzinfo=UTC)
_KINDS: dict[str, Any] = {
    "integer": (pa.int64(), lambda i: i),
    "text": (pa.string(), lambda i: f"{i:05}"),
    "time": (pa.timestamp("us", "UTC"), lambda i: _START + timedelta(seconds=i)),
    "float": (pa.float64(), lambda i: (float(i), float("nan"), -0.0)[(i % 7 == 0) + (i % 21 == 0)]),
}


def trigger_rows_of(table: Any, parts: list[int], order: tuple[str, ...]) -> TriggerRows:
    """The rows in sorted pieces, as mappers send them."""
    rows = TriggerRows(order, ("g",))
    for part in sorted(set(parts)):
        mine = table.filter(pa.array([part == p for p in parts]))
        rows.add(to_bytes(in_order(mine, order)))
    return rows


@examples(120)
@given(
    st.data(), st.sampled_from(sorted(_KINDS)), st.sampled_from([1, 2, 5, 16, 100]), st.sampled_from([0, 2000, 1 << 26])
)
def test_slices_are_all_rows_in_order(data: st.DataObject, kind: str, slice_: int, memory: int) -> None:
    type_, value = _KINDS[kind]
    drawn = data.draw(
        st.lists(
            st.tuples(st.sampled_from([*range(20), *range(20), 99, None]), st.integers(0, 8)), min_size=1, max_size=60
        )
    )
    table = pa.table(
        {
            "o": pa.array([None if i is None else value(i) for i, _ in drawn], type_),
            "i": pa.array(range(len(drawn))),
            "g": pa.array([part % 3 for _, part in drawn]),
        }
    )
    with Sizes(slice=slice_, memory=memory).hold():
        rows = trigger_rows_of(table, [part for _, part in drawn], ("o", "i"))
        slices = list(rows.slices())
    assert rows.rows == table.num_rows
    assert pa.concat_tables(slices).column("i").to_pylist() == in_order(table, ("o", "i")).column("i").to_pylist()
    assert rows.hashes().tolist() == np.unique(hash_groups([plain(table.column("g"))])).tolist()
    equal = table.group_by("o").aggregate([([], "count_all")]).column("count_all").to_pylist()
    rest = table.filter(pa.compute.invert(pa.compute.is_finite(table.column("o")))) if kind == "float" else []
    most = slice_ * 17 // 16 + max([*equal, len(rest) + table.column("o").null_count])
    assert max(map(len, slices)) <= most


def test_an_empty_pile_has_no_slices() -> None:
    rows = TriggerRows(("t",), ("g",))
    assert list(rows.slices()) == []
    assert rows.hashes().tolist() == []


@pytest.mark.parametrize("pieces", [1, 3, 40, 700])
@pytest.mark.parametrize("spread", [True, False], ids=["all pieces of all times", "each piece of its own time"])
def test_no_more_than_a_slice_is_unpacked_at_once(pieces: int, spread: bool) -> None:
    size = 7000
    table = pa.table({"t": np.arange(size), "g": np.arange(size) % 5, "i": np.arange(size)})
    parts = (np.arange(size) % pieces if spread else np.arange(size) * pieces // size).tolist()
    with Sizes(slice=1600, memory=0).hold():
        slices = list(trigger_rows_of(table, parts, ("t", "i")).slices())
    assert pa.concat_tables(slices).equals(table)
    assert max(map(len, slices)) <= 1700
    assert len(slices) <= 6


def test_rows_ordered_by_nan_come_once() -> None:
    table = pa.table({"t": [-0.0, float("nan")], "i": [0, 1], "g": [0, 0]})
    with Sizes(slice=1, memory=0).hold():
        slices = list(trigger_rows_of(table, [0, 0], ("t", "i")).slices())
    assert [slice_.column("i").to_pylist() for slice_ in slices] == [[0], [1]]


def test_rows_of_one_time_stay_together() -> None:
    table = pa.table({"t": np.repeat([1, 2, 3], 100), "g": np.zeros(300, np.int64), "i": np.arange(300)})
    with Sizes(slice=10).hold():
        slices = list(trigger_rows_of(table, [i % 7 for i in range(300)], ("t", "i")).slices())
    assert [len(one) for one in slices] == [100, 100, 100]


def test_files_are_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = pa.table({"t": np.arange(300), "g": np.zeros(300, np.int64), "i": np.arange(300)})
    with Sizes(memory=0).hold():
        rows = trigger_rows_of(table, [0] * 300, ("t", "i"))
        assert list(tmp_path.iterdir())
        assert next(iter(rows.slices())).equals(table)
    del rows
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_a_first_trigger_of_many_rows(emit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch, or the backlog of a stream, is pushed a slice at a time, and the changes are the same."""
    unpacked: list[int] = []
    slices = TriggerRows.slices

    def counted(self: TriggerRows) -> Iterator[Any]:
        for rows in slices(self):
            unpacked.append(rows.num_rows)
            yield rows

    monkeypatch.setattr(TriggerRows, "slices", counted)
    rng = np.random.default_rng(2)
    size = 6000
    table = pa.table(
        {
            "i": np.arange(size),
            "t": np.cumsum(rng.integers(0, 3, size)),
            "x": rng.integers(0, 50, size).astype(float),
            "g": rng.integers(0, 40, size),
        }
    )
    queries = {
        "count": TopK(2, by="x", window=Last(9), per="g"),
        "time": TopK(2, by="x", window=Last(span=300), per="g"),
        "all": TopK(3, by="x", window=Last(100)),
    }
    options: dict[str, Any] = {"id": "i", "time": "t", "emit": emit}
    shards = Shards(queries, options, 3, sizes=Sizes(chunk=100, slice=320, memory=20_000, cell=500))
    monitor = Monitor(queries, **options)
    for part in (table.slice(0, 5000), table.slice(5000)):
        trigger = [part.slice(begin, 700) for begin in range(0, len(part), 700)]
        same_rows(shards.trigger(trigger), pushed(monitor, trigger, ("t", "i")), "changes")
    for name in queries:
        same_rows(shards.answer(name), cells(monitor.answer(name)), name)
    assert max(unpacked) <= 320 * 17 // 16 + 9
    assert len(unpacked) > 40
