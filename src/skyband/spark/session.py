"""A SparkSession with what skyband needs, and a check of one that was made elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from skyband.errors import QueryError

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"

_SETTINGS = {
    _PROVIDER: _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",  # a trigger writes what it changed
    "spark.ui.showConsoleProgress": "false",
}


def session(master: str | None = None, **settings: Any) -> SparkSession:
    """A SparkSession with the RocksDB state store; settings are Spark's own, and come before skyband's.

    `session("local[2]", **{"spark.sql.shuffle.partitions": 4})`

    On a local master there are as many shuffle partitions as cores, unless something says a number: a trigger opens and
    commits a state store for each of them, and Spark's 200 make it many times as long.
    """
    builder = SparkSession.builder
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    spark = builder.getOrCreate()
    context = spark.sparkContext
    said = context.getConf().contains(_PARTITIONS) or spark.conf.get(_PARTITIONS) != "200"
    if _local(context) and not said:
        spark.conf.set(_PARTITIONS, context.defaultParallelism)
    return spark


def check(spark: SparkSession, *, streaming: bool) -> None:
    """Refuse a session that would fail when the first job runs; one that is merely slow is left alone."""
    if streaming:
        _check_provider(spark)
    context: SparkContext | None = getattr(spark, "sparkContext", None)  # which Spark Connect does not have
    if context is not None and _local(context) and not context.listFiles:  # which may bring skyband
        _check_workers(context.pythonExec)


def _local(context: SparkContext) -> bool:
    return (context.master or "").startswith("local")


def _check_provider(spark: SparkSession) -> None:
    provider = spark.conf.get(_PROVIDER, "") or ""
    if provider.rpartition(".")[2] != _ROCKSDB.rpartition(".")[2]:  # vendors have their own, by the same name
        raise QueryError(
            f"this SparkSession keeps streaming state in {provider or 'the default provider'}, which cannot run "
            f"skyband's operator. Set {_PROVIDER}={_ROCKSDB}, or use skyband.spark.session()."
        )


def _check_workers(python: str) -> None:
    wrong = _wrong_with(python)
    if wrong is not None:
        raise QueryError(
            f"Spark's Python workers run {python}, which {wrong}. They take PYSPARK_PYTHON as it is when the session "
            f"starts: set it to {sys.executable}, or import skyband.spark before that, which sets it where it is unset."
        )


@cache
def _wrong_with(python: str) -> str | None:
    """Why an interpreter of this machine cannot run skyband's workers; None: it can."""
    found = shutil.which(python)
    if found is None:
        return "is not there"
    if os.path.dirname(found) == os.path.dirname(sys.executable) and os.path.samefile(found, sys.executable):
        return None
    code = "import sys, skyband, pandas, pyarrow; print(*sys.version_info[:2], sep='.')"
    try:
        done = subprocess.run([found, "-c", code], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({error})"
    if done.returncode:
        output = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return f"cannot import what they need ({output[-1]})"
    here = ".".join(map(str, sys.version_info[:2]))
    return None if done.stdout.strip() == here else f"is Python {done.stdout.strip()}, and this is Python {here}"
