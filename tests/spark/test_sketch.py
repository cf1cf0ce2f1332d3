"""SKETCH on Spark: the estimates of one Monitor, whatever triggers, partitions and restarts there are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import cells, examples, same_rows
from skyband import Last, Monitor, TopKGroups
from skyband.engines.groups.sketch import SKETCH
from skyband.spark.mappers import in_order
from spark.shards import Shards, Sizes, without_numbers

OPTIONS = {"id": "n", "time": "t", "keep": ("x",)}
ORDER = ("t", "n")


@pytest.fixture(autouse=True)
def _few_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that objects lose theirs."""
    monkeypatch.setattr(SKETCH, "panes", 6)
    monkeypatch.setattr(SKETCH, "counters", 5)


@examples(45)
@given(
    seed=st.integers(0, 10**6),
    by=st.sampled_from(["count(*)", "sum(x)"]),
    where=st.sampled_from([None, "x > 1"]),
    emit=st.sampled_from(["arrival", "batch"]),
    late=st.sampled_from([0, 0, 3]),
    shards=st.integers(1, 4),
)
def test_as_one_monitor(seed: int, by: str, where: str | None, emit: str, late: int, shards: int) -> None:
    rng = np.random.default_rng(seed)
    query = TopKGroups(3, by=by, window=Last(span=24), of="o", where=where, algorithm="SKETCH")
    options = {**OPTIONS, "emit": emit}
    spark = Shards({"q": query}, options, shards, order=ORDER, columns=("n", "t", "o", "x"), sizes=Sizes(slice=1 << 20))
    monitor, clock, total = Monitor({"q": query}, **options), 0, 0
    for number in range(4):
        size = int(rng.integers(0, 60))
        times = clock + np.cumsum(rng.integers(0, 3, size))
        clock = int(times[-1]) if size else clock
        table = pa.table(
            {
                "n": np.arange(total, total + size),
                "t": np.maximum(times - rng.integers(0, 1 + late, size), 0),
                "o": [f"o{i}" for i in rng.zipf(1.4, size) % 12],
                "x": pa.array(rng.integers(0, 5, size).astype(float), mask=rng.random(size) < 0.05),
            }
        )
        total += size
        cut = size // 3
        found = spark.trigger([table.slice(0, cut), table.slice(cut)])
        expected = without_numbers(monitor, monitor.push(in_order(table, ORDER)))
        same_rows(found, expected, f"trigger {number}")
        same_rows(spark.answer("q"), cells(monitor.answer("q")), f"trigger {number}, answer")
        if rng.random() < 0.5:
            spark.restart()
