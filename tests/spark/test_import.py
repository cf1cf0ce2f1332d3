"""pyspark is imported only by skyband.spark, which says what to install without it."""

from __future__ import annotations

import subprocess
import sys

import pytest


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_skyband_does_not_import_pyspark() -> None:
    code = "import sys, skyband; print([m for m in ('pyspark', 'pandas', 'py4j') if m in sys.modules])"
    assert python(code) == "[]"


def test_without_pyspark_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["pyspark"] = None
import skyband
try:
    import skyband.spark
except ImportError as error:
    print(error)
"""
    assert python(code) == 'skyband.spark needs PySpark: pip install "skyband[spark]"'


@pytest.mark.parametrize(("before", "after"), [(None, sys.executable), ("mine", "mine")])
def test_workers_get_the_interpreter_of_the_driver(before: str | None, after: str) -> None:
    set_it = (
        "os.environ.pop('PYSPARK_PYTHON', None)" if before is None else f"os.environ['PYSPARK_PYTHON'] = {before!r}"
    )
    assert python(f"import os; {set_it}; import skyband.spark; print(os.environ['PYSPARK_PYTHON'])") == after


def test_what_needs_a_later_pyspark_is_loaded_only_where_it_is_used() -> None:
    code = """
import sys
import pyspark.sql.datasource
sys.modules["pyspark.sql.streaming.datasource"] = None  # as in 4.1
import skyband.spark.metrics, skyband.spark.run.command
from skyband.errors import RunError
from skyband.pipeline.sources import SOURCES
try:
    SOURCES["synthetic"].load()
except RunError as error:
    print(error)
"""
    assert python(code).startswith("source.format = 'synthetic' needs PySpark 4.2 or later")
