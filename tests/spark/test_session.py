"""What a SparkSession must have, what may be as it likes, and what `skyband.spark.session` sets."""

from __future__ import annotations

import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

import skyband as sb
import skyband.spark as sbs
from engines.streams import Row, same_rows
from skyband.errors import QueryError
from skyband.spark.session import check
from spark.frames import QUERIES, flights, read, run, stream, write
from spark.shards import pushed

Setting = Callable[[str, object], None]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
ARROW, PANDAS, STATE = "spark.sql.execution.arrow.", "spark.sql.execution.pandas.", "spark.sql.streaming.stateStore."
ODD = {  # none of them by itself, either: each was tried
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "false",
    PARTITIONS: 3,
    f"{ARROW}maxRecordsPerBatch": 1,
    f"{ARROW}maxRecordsPerOutputBatch": 1,
    f"{ARROW}transformWithStateInPandas.maxRecordsPerBatch": 1,
    f"{ARROW}transformWithStateInPySpark.maxStateRecordsPerBatch": 1,
    f"{ARROW}useLargeVarTypes": "true",
    f"{ARROW}compression.codec": "zstd",
    f"{PANDAS}structHandlingMode": "dict",
    f"{PANDAS}convertToArrowArraySafely": "true",
    "spark.sql.execution.pyspark.binaryAsBytes": "false",
    "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName": "false",
    f"{STATE}encodingFormat": "avro",
    f"{STATE}checkpointFormatVersion": 2,
    f"{STATE}rowChecksum.enabled": "true",
    f"{STATE}rocksdb.changelogCheckpointing.enabled": "false",
    f"{STATE}minDeltasForSnapshot": 1,
}


def test_settings_that_change_nothing(spark: SparkSession, setting: Setting, tmp_path: Path) -> None:
    table = flights(60)
    options: dict[str, Any] = {"id": "flight", "time": "time", "keep": "note"}
    monitor, expected = sb.Monitor(QUERIES, **options), list[Row]()
    for number in range(2):
        piece = table.slice(30 * number, 30)
        write(tmp_path / "in", number, piece)
        expected += pushed(monitor, [piece], ("time", "flight"))
    schema = spark.read.parquet(str(tmp_path / "in")).schema
    for name, value in ODD.items():
        if name != f"{ARROW}maxRecordsPerOutputBatch" or pyspark.__version__ >= "4.3":  # 4.2 fails with it, in Arrow
            setting(name, value)
    changes = sbs.monitor(stream(spark, tmp_path / "in", schema), QUERIES, watermark="1 hour", metrics="m", **options)
    run(changes, tmp_path)
    same_rows(read(spark.read.schema(changes.schema).parquet(str(tmp_path / "out"))), expected, "odd settings")


def test_without_rocksdb_streams_are_refused_and_batches_are_not(
    spark: SparkSession, setting: Setting, tmp_path: Path
) -> None:
    write(tmp_path / "in", 0, flights(20))
    df = spark.read.parquet(str(tmp_path / "in"))
    other = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    setting(PROVIDER, other)
    with pytest.raises(QueryError, match=rf"{other}, which cannot run.*Set {PROVIDER}=.*RocksDB.*or use"):
        sbs.monitor(stream(spark, tmp_path / "in", df.schema), QUERIES, id="flight", time="time")
    sbs.monitor(df, QUERIES, id="flight", time="time")
    setting(PROVIDER, None)
    with pytest.raises(QueryError, match="RocksDB"):
        sbs.answers(stream(spark, tmp_path / "in", df.schema), QUERIES, id="flight", time="time")
    setting(PROVIDER, "com.vendor.RocksDBStateStoreProvider")
    check(spark, streaming=True)


def test_workers_that_cannot_run_skyband_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    venv.create(tmp_path / "bare", symlinks=True)
    wrong = {
        str(tmp_path / "bare" / "bin" / "python"): r"cannot import what they need \(ModuleNotFoundError: No module",
        "no-such-python": "is not there",
        script(tmp_path / "old", "echo 3.8"): r"is Python 3\.8, and this is Python 3\.",
        script(tmp_path / "dumb", "exit 3"): r"cannot import what they need \(exit code 3\)",
    }
    df = spark.createDataFrame(pa.table({"i": [1, 2], "x": [1.0, 2.0]}))
    query = sb.TopK(1, by="x", window=sb.Last(5))
    for python, says in wrong.items():
        monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
        with pytest.raises(QueryError, match=rf"workers run {python}, which {says}.*set it to {sys.executable}, or"):
            sbs.monitor(df, query, id="i")
        with pytest.raises(QueryError, match=says):
            sbs.rejected(df, query)
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for python in (sys.executable, script(tmp_path / "good", f"echo {here}")):
        monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
        check(spark, streaming=False)


def test_session_sets_partitions_only_where_nobody_has(spark: SparkSession, setting: Setting) -> None:
    assert spark.conf.get(PARTITIONS) == str(spark.sparkContext.defaultParallelism) == "2"
    assert spark.conf.get(f"{STATE}rocksdb.changelogCheckpointing.enabled") == "true"
    setting(PARTITIONS, 5)
    assert sbs.session().conf.get(PARTITIONS) == "5"
    assert sbs.session(None, **{PARTITIONS: "7"}).conf.get(PARTITIONS) == "7"
    setting(PARTITIONS, None)
    assert sbs.session().conf.get(PARTITIONS) == "2"
    setting(PROVIDER, spark.conf.get(PROVIDER))  # so that it is put back
    assert sbs.session(None, **{PROVIDER: "mine"}).conf.get(PROVIDER) == "mine"


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)
