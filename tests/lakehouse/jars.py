"""The jars of Delta and Iceberg, of that which is built for the PySpark that runs the tests: `make lakehouse`."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark
import pytest

from broker.fetch import there

LOCK = Path(__file__).with_name("jars.lock")
JARS = Path(__file__).parents[2] / ".lakehouse"
VERSION = ".".join(pyspark.__version__.split(".")[:2])
FORMATS = {"4.2": "delta", "4.1": "iceberg"}  # by the newest Spark that each is built for
_SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",  # with a folder as `spark.sql.catalog.lake.warehouse`
    },
}


def lakehouse() -> dict[str, str]:
    """Spark's settings with which it has the format; empty where it has not been fetched, or none is built for it."""
    if VERSION not in FORMATS or not there(JARS, LOCK):
        return {}
    jars = ",".join(str(jar) for jar in sorted((JARS / VERSION).glob("*.jar")))
    return {"spark.jars": jars, **_SETTINGS[FORMATS[VERSION]]}


def require_lakehouse() -> str:
    """Skip with another PySpark; without the jars skip too, unless SKYBAND_LAKEHOUSE says that they must be there."""
    if VERSION not in FORMATS:
        pytest.skip("Delta is built for Spark 4.2, Iceberg for 4.1: `make spark-versions` runs this with both")
    if not there(JARS, LOCK):
        said = "the jars are not in .lakehouse: run `make lakehouse`, which needs a way to Maven Central"
        (pytest.fail if os.environ.get("SKYBAND_LAKEHOUSE") == "needed" else pytest.skip)(said)
    return FORMATS[VERSION]
