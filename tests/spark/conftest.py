"""One SparkSession for all tests of this folder. Tests that ask for it are skipped where there is no Java."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

import skyband.spark as sbs
from broker.server import broker, connector, require_kafka
from lakehouse.jars import lakehouse
from spark.forked import forking_python
from spark.quick import SETTINGS


@pytest.fixture(scope="session")
def java() -> None:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ and "CI" not in os.environ:
        pytest.skip("Spark needs Java 17 (Debian: openjdk-17-jre-headless); CI demands it")


@pytest.fixture(scope="session")
def python() -> Iterator[str]:
    """What Spark takes for PYSPARK_PYTHON."""
    with forking_python() as found:
        yield found


@pytest.fixture(scope="session")
def spark(java: None, python: str) -> Iterator[SparkSession]:
    """Two cores, and a task may fail once; in a zone whose clocks change within `frames.flights`."""
    jars = ",".join(brought["spark.jars"] for brought in (connector(), lakehouse()) if brought)
    brought = {**lakehouse(), **({"spark.jars": jars} if jars else {})}
    settings = {**SETTINGS, **brought, "spark.sql.session.timeZone": "America/New_York"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", python)
        remote = os.environ.get("SPARK_REMOTE")  # Spark Connect: `make connect-test`, and a sample in test_connect.py
        session = sbs.session(None if remote else "local[2,2]", remote=remote, **settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def address(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a Kafka broker."""
    require_kafka()
    with broker(tmp_path_factory.mktemp("broker")) as found:
        yield found


@pytest.fixture
def setting(spark: SparkSession) -> Iterator[Callable[[str, object], None]]:
    """Change a setting of the session (None: unset it) until the test is over."""
    before: dict[str, str | None] = {}

    def put(name: str, value: object) -> None:
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, str(value))

    def change(name: str, value: object) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        put(name, value)

    yield change
    for name, value in before.items():
        put(name, value)
