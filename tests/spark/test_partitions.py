"""The number of shards: by default Spark's shuffle partitions, and at a restart those of the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import skyband as sb
import skyband.spark as sbs
from engines.streams import Row, same_rows
from skyband.errors import QueryError, StateError
from skyband.spark.metrics import observed
from spark.frames import QUERIES, flights, read, run, stream, write
from spark.shards import pushed

Setting = Callable[[str, object], None]
PARTITIONS = "spark.sql.shuffle.partitions"
OPTIONS: dict[str, Any] = {"id": "flight", "time": "time"}


def test_the_same_program_goes_on_with_another_number_of_cores(
    spark: SparkSession, setting: Setting, tmp_path: Path
) -> None:
    table, monitor, expected = flights(90), sb.Monitor(QUERIES, **OPTIONS), list[Row]()
    for number, partitions in enumerate((2, 3, 1)):
        setting(PARTITIONS, partitions)
        piece = table.slice(30 * number, 30)
        write(tmp_path / "in", number, piece)
        expected += pushed(monitor, [piece], ("time", "flight"))
        rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
        changes = sbs.monitor(rows, QUERIES, metrics="any name", **OPTIONS)
        progress = run(changes, tmp_path)
        assert observed(progress[-1])["any name"]["arrivals"] == monitor.stats()["arrivals"]
    same_rows(read(spark.read.schema(changes.schema).parquet(str(tmp_path / "out"))), expected, "three runs")
    shards = {row["shard"] for row in sbs.state(str(tmp_path / "checkpoint")).collect()}
    assert shards == {0, 1}, "as many as the first run had partitions"


def test_a_number_that_is_given_holds(spark: SparkSession, setting: Setting, tmp_path: Path) -> None:
    """Also one that a checkpoint of version 0.1 took from the machine: the message names it."""
    write(tmp_path / "in", 0, flights(30))
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    run(sbs.monitor(rows, QUERIES, shards=3, **OPTIONS), tmp_path)
    write(tmp_path / "in", 1, flights(60).slice(30))
    with pytest.raises(Exception, match="shards=3") as failed:
        run(sbs.monitor(rows, QUERIES, **OPTIONS), tmp_path)
    assert sbs.reason(failed.value) == (
        "the checkpoint was written with shards=3, and groups cannot move. "
        "Run with shards=3, or start from a new checkpoint."
    )
    checkpoint = str(tmp_path / "checkpoint")
    changes = sbs.monitor(rows, QUERIES, checkpoint=checkpoint, **OPTIONS)
    run(changes, tmp_path)
    expected = pushed(sb.Monitor(QUERIES, **OPTIONS), [flights(30), flights(60).slice(30)], ("time", "flight"))
    same_rows(read(spark.read.schema(changes.schema).parquet(str(tmp_path / "out"))), expected, "two runs")


def test_a_batch_has_as_many_as_the_session(spark: SparkSession, setting: Setting) -> None:
    df = spark.sql("SELECT id, CAST(id % 7 AS DOUBLE) AS x, id % 5 AS g FROM range(40)")
    query = sb.TopK(2, by="x", window=sb.Last(5), per="g")
    expected = read(sbs.monitor(df, query, id="id", shards=1))
    for partitions in (1, 5):
        setting(PARTITIONS, partitions)
        same_rows(read(sbs.monitor(df, query, id="id")), expected, f"{partitions} partitions")


def test_a_checkpoint_is_checked_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, flights(30))
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    checkpoint = str(tmp_path / "checkpoint")
    assert sbs.check(checkpoint, QUERIES, **OPTIONS) == dict.fromkeys(QUERIES, "starts empty")
    run(sbs.monitor(rows, QUERIES, checkpoint=checkpoint, shards=2, **OPTIONS), tmp_path)
    other = {"day": QUERIES["day"], "new": QUERIES["all"]}
    fates = {"day": "resumes", "new": "starts empty", "all": "is discarded", "two": "is discarded"}
    assert sbs.check(checkpoint, other, **OPTIONS) == fates
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"shards": 3}, "shards=2, and groups cannot move"),
        ({"emit": "batch"}, "other options"),
        ({"order": "flight"}, "other options"),
    ]
    for options, says in wrong:
        with pytest.raises(StateError, match=says):
            sbs.check(checkpoint, QUERIES, **OPTIONS, **options)
        with pytest.raises(StateError, match=says):
            sbs.monitor(rows, QUERIES, checkpoint=checkpoint, **OPTIONS, **options)
    with pytest.raises(StateError, match="the query 'day' differs"):
        sbs.check(checkpoint, {"day": QUERIES["all"]}, **OPTIONS)
    with pytest.raises(QueryError, match=r"keep=.*Name those"):
        sbs.check(checkpoint, QUERIES, keep="*", **OPTIONS)
    with pytest.raises(QueryError, match="is for a stream"):
        sbs.monitor(spark.read.parquet(str(tmp_path / "in")), QUERIES, checkpoint=checkpoint, **OPTIONS)
