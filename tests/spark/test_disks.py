"""A checkpoint on a disk that is full, or cannot be written: a clear error, and afterwards the run goes on, exactly."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import skyband as sb
from faults.ledger import compare
from skyband.errors import RunError
from skyband.pipeline import pipeline_of
from skyband.spark.failure import advice
from skyband.spark.run.command import run
from spark.frames import read
from spark.shards import pushed
from spark.test_run import OPTIONS, QUERIES, data, flights


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("to mount a small disk needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """The same disk, mounted over itself."""
    subprocess.run(["mount", "--bind", str(disk), str(disk)], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", str(disk)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(file: Path) -> None:
    with suppress(OSError), file.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(4096))


def test_a_full_disk_then_one_that_cannot_be_written(spark: SparkSession, disk: Path, tmp_path: Path) -> None:
    sink = {"format": "parquet", "path": str(tmp_path / "out")}
    assert run(pipeline_of(data(disk, sink, 1000)), spark=spark) == 0
    more = pipeline_of(data(disk, sink, 2500))
    filler = disk / "filler"
    fill(filler)
    with pytest.raises(RunError, match=r"No space left on device.*Free space .* the same command resumes"):
        run(more, spark=spark)
    filler.unlink()
    said = r"Read-only file system.*Make it writable.* the same command resumes"
    with read_only(disk), pytest.raises(RunError, match=said):
        run(more, spark=spark)
    assert run(more, spark=spark) == 0
    expected = pushed(sb.Monitor(QUERIES, **OPTIONS), [flights(2500)], ("time", "flight"))
    found = read(spark.read.parquet(str(tmp_path / "out")))
    compare("a full, then a read-only disk under a checkpoint on Spark", 2, found, expected)


def test_a_machine_too_busy_for_python() -> None:
    """What Spark itself says then is no help: seen with ten processes on two cores."""
    error = PySparkException("Timed out while waiting for the Python worker to connect back")
    assert advice(error).endswith("leave it more of the machine; then the same command resumes where it stopped.")
