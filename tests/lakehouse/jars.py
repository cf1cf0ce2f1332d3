"""Delta's jars for the version of PySpark that runs the tests, if there are any: `make delta` fetches them."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark
import pytest

from broker.fetch import there

LOCK = Path(__file__).with_name("jars.lock")
JARS = Path(__file__).parents[2] / ".delta"
FOR = "4.2"  # the newest Spark that Delta is built for


def delta() -> dict[str, str]:
    """Spark's settings with which it has Delta; empty where it has not been fetched, or is for another version."""
    if not (pyspark.__version__.startswith(FOR) and there(JARS, LOCK)):
        return {}
    return {
        "spark.jars": ",".join(str(jar) for jar in sorted((JARS / FOR).glob("*.jar"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def require_delta() -> None:
    """Skip with another PySpark; without the jars skip too, unless SKYBAND_DELTA says that they must be there."""
    if not pyspark.__version__.startswith(FOR):
        pytest.skip(f"Delta is built for Spark {FOR}: `make spark-versions` runs this with it")
    if not there(JARS, LOCK):
        said = "Delta's jars are not in .delta: run `make delta`, which needs a way to Maven Central"
        (pytest.fail if os.environ.get("SKYBAND_DELTA") == "needed" else pytest.skip)(said)
