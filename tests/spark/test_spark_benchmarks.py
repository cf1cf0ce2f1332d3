"""Every contestant on Spark once, small: run, store, plot. What it measures is not tested here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import plot, run, store
from benchmarks.contestants import ON_SPARK
from benchmarks.experiment import load, names
from pyspark.sql import SparkSession

SLIDES = """
about = "small"
figure = "slides"

[[cells]]
name = "slides"
workload = "flights"
repeats = 1
warmups = 0
parameters = { window = "24 hours", k = 10, rows = 8_000, file = 4_000 }
contestants = [
    { call = "spark_monitor", as = "batch", emit = "batch" },
    "spark_identity",
    { call = "spark_max_by", slide = "6 hours" },
]
"""
STATE = """
about = "small"
figure = "state"

[[cells]]
name = "over n"
workload = "numbered_keys"
repeats = 1
warmups = 0
parameters = { n = 100, k = 10, keys = 2, rows = 1_000, file = 1_000 }
contestants = [{ call = "spark_monitor", as = "last n", window = "n", keep = ["seat"] }]

[[goals]]
says = "bytes"
cell = "over n"
measure = "bytes_over_objects"
of = "last n"
at_most = 2
"""
TRIGGERS = """
about = "small"
figure = "goals"

[[cells]]
name = "triggers"
workload = "timed_keys"
repeats = 1
warmups = 0
parameters = { keys = 50, per_day = 1_000, shards = 2, fill = 500, rows = 40, file = 40, fill_file = 500 }
contestants = [{ call = "spark_idle", as = "by group", by_group = true }]

[[goals]]
says = "trigger"
cell = "triggers"
measure = "trigger_ms"
of = "by group"
at_most = 1e9

[[cells]]
name = "pairs"
workload = "attributes"
repeats = 1
warmups = 0
parameters = { d = 2, K = 3, n = 100, fill = 100, fill_file = 100, rows = 100, file = 100, shards = 2 }
contestants = ["spark_pairs"]
"""


def test_every_contestant_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    files = {"slides": SLIDES, "state": STATE, "triggers": TRIGGERS}
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text)
    said = [*files, "--from", str(tmp_path), "--results", str(tmp_path)]
    assert run.main(said) == 0  # every answer was right
    rows = {name: {row.contestant: row for row in store.read(name, tmp_path)} for name in files}
    assert {row.call for some in rows.values() for row in some.values()} == set(ON_SPARK)
    for some in rows.values():
        for row in some.values():
            spent: list[dict[str, Any]] = [one for one in row.triggers[0] if one["rows"]]
            assert len(spent) == row.parameters["rows"] / row.parameters["file"]
            assert all(one["triggerExecution"] >= one["addBatch"] > 0 for one in spent)
    told = rows["state"]["last n"].counters
    (objects,), (size,) = told["objects"], told["bytes_over_objects"]
    assert 0 < objects <= rows["state"]["last n"].parameters["rows"]
    assert 1 < size < 50  # so small a state is mostly its index
    assert rows["slides"]["spark_max_by"].counters["windows"][0] > 229
    assert plot.main([*said, "--figures", str(tmp_path)]) == 0
    for name in files:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "| bytes | at most 2 |" in (tmp_path / "state.md").read_text()


def test_quick_is_small() -> None:
    """A quick run must not write files for minutes."""
    for name in names():
        for cell in load(name, quick=True).cells:
            for one in cell.entrants:
                if one.call in ON_SPARK:
                    assert one.parameters["rows"] + one.parameters.get("fill", 0) <= 5_000
