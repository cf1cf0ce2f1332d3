"""A SparkSession with what skyband needs, and a check of one that somebody else made."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from skyband.errors import QueryError

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_SETTINGS = {
    _PROVIDER: _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",  # a trigger writes what it changed
    "spark.ui.showConsoleProgress": "false",
}


def session(master: str | None = None, **settings: Any) -> SparkSession:
    """A SparkSession with the RocksDB state store; settings are Spark's own.

    `session("local[2]", **{"spark.sql.shuffle.partitions": 4})`
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
    return builder.getOrCreate()


def check(spark: SparkSession) -> None:
    """Refuse a session whose settings break a streaming query."""
    provider = spark.conf.get(_PROVIDER, "")
    if provider != _ROCKSDB:
        raise QueryError(
            f"this SparkSession keeps streaming state in {provider or 'the default provider'}, which cannot run "
            f"skyband's operator. Set {_PROVIDER}={_ROCKSDB}, or use skyband.spark.session()."
        )
