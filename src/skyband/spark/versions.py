"""Differences between the versions of PySpark that are supported, 4.1 to 4.3."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas import types
from pyspark.sql.types import DataType, StructType

# 4.1 has timestamp_utc=True in the place of timezone=, and it is the default there
_ZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(types.to_arrow_type).parameters else {}


def arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type of a column's values, with times in UTC."""
    return types.to_arrow_type(type_, **_ZONE)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows, with times in UTC."""
    return types.to_arrow_schema(schema, **_ZONE)


def start_state_stores(spark: SparkSession) -> None:
    """Let a batch query have state: Spark 4.1 and 4.2 make what coordinates state stores with the first use of streams.

    Without it a batch that comes before any stream of the application fails in its first task.
    """
    _ = spark.streams.active
