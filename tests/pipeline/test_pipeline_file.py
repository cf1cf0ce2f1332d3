"""The file of `skyband run`: what it means, and what is said about every mistake, before Spark is even imported."""

from __future__ import annotations

import copy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import skyband as sb
from skyband.pipeline import NOW, pipeline_of, read_pipeline

HERE = str(Path(__file__).parent)
GOOD = """
[source]
format = "synthetic"
dataset = "flights_like"
seed = 3
rows = 1000
options = { keys = 4 }

[queries.late]
k = 3
by = "delay"
window = "24 hours"
per = "origin"

[queries.near]
kind = "TopK"
k = 2
by = { metric = "manhattan", nearest = { delay = 10 } }
window = 500
largest = false
where = "delay > 0"

[stream]
id = "flight"
time = "time"
keep = "origin_"

[sink]
format = "parquet"
path = "out"
options = { compression = "zstd" }

[run]
checkpoint = "checkpoint"
trigger = "availableNow"
master = "local[2]"

[run.spark]
spark.sql.shuffle.partitions = 3
"spark.ui.enabled" = false
"""


def good(**changes: Any) -> dict[str, Any]:
    """The good file with `table__key=value` in place; None takes the key out."""
    data = tomllib.loads(GOOD.replace('keep = "origin_"\n', ""))
    for path, value in changes.items():
        *tables, key = path.split("__")
        inside = data
        for table in tables:
            inside = inside.setdefault(table, {})
        if value is None:
            del inside[key]
        else:
            inside[key] = copy.deepcopy(value)
    return data


def test_a_good_file(tmp_path: Path) -> None:
    file = tmp_path / "flights.toml"
    file.write_text(GOOD.replace('"origin_"', '["delay"]'))
    made = read_pipeline(file)
    assert made.name == "flights.toml"
    assert made.queries == {
        "late": sb.TopK(3, by="delay", window=sb.Last("24 hours"), per="origin"),
        "near": sb.TopK(
            2, by=sb.Nearest({"delay": 10}, metric="manhattan"), window=sb.Last(500), largest=False, where="delay > 0"
        ),
    }
    assert made.stream == {"id": "flight", "time": "time", "keep": ("delay",)}
    assert made.source.schema == "`flight` bigint, `origin` string, `time` timestamp_ntz, `delay` bigint"
    assert made.source.values == {
        "dataset": "flights_like",
        "options": {"keys": 4},
        "seed": 3,
        "rows": 1000,
        "rows_per_trigger": None,
        "rows_per_second": None,
    }
    assert made.sink.values == {"path": "out", "options": {"compression": "zstd"}}
    assert (made.run.every, made.run.master, made.output) == (NOW, "local[2]", "changes")
    assert made.run.spark == {"spark.sql.shuffle.partitions": "3", "spark.ui.enabled": "false"}


def test_scorings_windows_and_triggers() -> None:
    by = {"linear": {"delay": 0.5}}
    made = pipeline_of(good(queries__near__by=by, queries__near__largest=None, run__trigger="1.5 seconds"))
    assert made.queries["near"] == sb.TopK(2, by=sb.Linear({"delay": 0.5}), window=sb.Last(500), where="delay > 0")
    assert made.run.every == 1500
    assert pipeline_of(good(run__trigger=None)).run.every is None
    source = {"format": "csv", "path": HERE, "schema": "flight long, `time` int, delay: double, n array<map<int,int>>"}
    made = pipeline_of(
        good(source=source, queries__late__window={"span": 9}, queries__late__per=None, sink={"format": "noop"})
    )
    assert made.queries["late"].window == sb.Last(span=9)
    assert made.source.columns == {"flight": "long", "time": "int", "delay": "double", "n": "array<map<int,int>>"}


def test_objects_that_are_deleted() -> None:
    alarm = {"kind": "above", "threshold": 60, "by": "delay", "window": "until deleted", "per": "origin"}
    made = pipeline_of(good(queries__alarm=alarm, stream__op="origin"))
    assert made.queries["alarm"] == sb.Above(60, by="delay", window=sb.UntilDeleted(), per="origin")
    assert made.stream["op"] == "origin"


PAIRS = {"kind": "topkpairs", "k": 1, "by": "abs(a.delay - b.delay)", "window": 5, "where": "delay > 0"}


def test_every_kind() -> None:
    made = pipeline_of(
        good(
            queries__close=PAIRS,
            queries__likely={"kind": "TopKUncertain", "k": 2, "by": "delay", "window": 5, "probability": "delay"},
            queries__sum={
                "kind": "topkincomplete",
                "k": 2,
                "parts": {"a": [0, 9]},
                "window": "1 hour",
                "combine": "max",
            },
            queries__parts={
                "kind": "topkincomplete",
                "k": 2,
                "parts": "*",
                "window": 9,
                "where": "delay > 1",
                "largest": False,
            },
            queries__promised={
                "kind": "topkincomplete",
                "k": 2,
                "parts": {"a": [0, float("inf")]},
                "window": 9,
                "repeat": "sum",
                "at_most": 3,
            },
            queries__worst={
                "kind": "TopKGroups",
                "k": 3,
                "by": "sum(delay)",
                "window": "24 hours",
                "of": ["origin", "flight"],
                "having": "count(*) > 3",
                "select": {"flights": "count(*)"},
            },
            queries__fading={
                "kind": "topkgroups",
                "k": 3,
                "by": "sum(delay)",
                "window": "ever",
                "of": "origin",
                "decay": "1 hour",
            },
            queries__pages="SELECT origin, count(*) FROM f GROUP BY origin ORDER BY 2 DESC LIMIT 3 WINDOW 100 ROWS",
            stream__part="origin",
            stream__value="delay",
        )
    )
    worst: dict[str, Any] = {"of": ("origin", "flight"), "having": "count(*) > 3", "select": {"flights": "count(*)"}}
    assert made.queries["worst"] == sb.TopKGroups(3, by="sum(delay)", window=sb.Last("24 hours"), **worst)
    assert made.queries["fading"] == sb.TopKGroups(3, "sum(delay)", sb.Ever(), of="origin", decay="1 hour")
    assert made.queries["pages"] == sb.TopKGroups(3, by="count(*)", window=sb.Last(100), of="origin")
    assert made.queries["close"] == sb.TopKPairs(1, by="abs(a.delay - b.delay)", window=sb.Last(5), where="delay > 0")
    assert made.queries["likely"] == sb.TopKUncertain(2, by="delay", window=sb.Last(5), probability="delay")
    assert made.queries["parts"] == sb.TopKIncomplete(2, "*", sb.Last(9), where="delay > 1", largest=False)
    promised = sb.TopKIncomplete(2, {"a": (0, float("inf"))}, sb.Last(9), repeat="sum", at_most=3)
    assert made.queries["promised"] == promised
    assert made.queries["sum"] == sb.TopKIncomplete(2, parts={"a": (0, 9)}, window=sb.Last("1 hour"), combine="max")


def test_upsert_asks_for_net_changes_unless_told() -> None:
    sink = {"format": "upsert", "path": "out"}
    assert pipeline_of(good(sink=sink)).stream["emit"] == "batch"
    assert pipeline_of(good(sink=sink, stream__emit="arrival")).stream["emit"] == "arrival"


CSV = {
    "format": "csv",
    "path": ".",
    "schema": {"flight": "long", "time": "date", "delay": "double", "origin": "string"},
}
KAFKA = {"format": "kafka", "schema": CSV["schema"], "options": {"subscribe": "t", "kafka.bootstrap.servers": "h:1"}}


def test_kafka_orders_and_labels_by_the_coordinates_of_messages() -> None:
    source = {**KAFKA, "schema": {"t": "timestamp", "delay": "double", "origin": "string"}}
    made = pipeline_of(good(source=source, stream={"time": "t", "keep": "kafka_key"}, queries__near=None))
    assert made.stream["id"] == "kafka_id"
    assert made.stream["order"] == ("kafka_timestamp", "kafka_partition", "kafka_offset")
    assert made.source.schema == "`t` timestamp, `delay` double, `origin` string"
    made = pipeline_of(good(source=KAFKA, stream__order="flight", queries__late__window=9, queries__late__per=None))
    assert (made.stream["id"], made.stream["order"]) == ("flight", ("flight",))


def test_a_file_is_checked_without_spark(tmp_path: Path) -> None:
    file = tmp_path / "good.toml"
    file.write_text(GOOD.replace('keep = "origin_"', ""))
    code = (
        "import sys; from skyband.cli import app; app(sys.argv[1:], standalone_mode=False); "
        "print([m for m in ('pyspark', 'py4j') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, "run", "--check", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
    assert done.stderr == f"{file} is good.\n"


@pytest.mark.parametrize("file", sorted(Path(__file__).parents[2].glob("examples/*.toml")), ids=lambda path: path.name)
def test_examples_are_good(file: Path) -> None:
    assert read_pipeline(file).queries
