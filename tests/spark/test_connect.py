"""A sample of these tests over Spark Connect; `make connect-test` runs more of them so."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SAMPLE = (
    "test_partitions.py::test_a_batch_has_as_many_as_the_session",
    "test_schema.py::test_types_that_are_fine",
    "test_schema.py::test_the_reason_of_a_failed_query",
)


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="all tests run so")
def test_a_sample_over_connect(java: None) -> None:
    if importlib.util.find_spec("grpc") is None and "CI" not in os.environ:
        pytest.skip('Spark Connect needs gRPC: pip install "skyband[connect]"; CI demands it')
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *(str(HERE / name) for name in SAMPLE)]
    env = {**os.environ, "SPARK_REMOTE": "local[2]"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:]
    assert "3 passed" in done.stdout


def test_a_user_of_connect_needs_no_py4j() -> None:
    code = """
import sys
sys.modules["py4j"] = None
import skyband.spark, skyband.spark.metrics
print([name for name in sys.modules if name.startswith("py4j")])
"""
    env = {**os.environ, "SPARK_SKIP_CONNECT_COMPAT_TESTS": "1"}  # by which PySpark takes itself for pyspark-client
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['py4j']", done.stderr
