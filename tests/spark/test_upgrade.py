"""Snapshots and checkpoints of every version that was released go on in this one."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skyband as sb
from engines.streams import cells, same_rows
from kinds import KINDS, stream
from spark.shards import changes_of
from upgrade.write import HERE, TRIGGER, put_rows, run, unpack

SNAPSHOTS = sorted(HERE.glob("*/*.snapshot"))
CHECKPOINTS = sorted(HERE.glob("*/*.checkpoint.zip"))


def named(file: Path) -> str:
    return f"{file.parent.name} {file.name.partition('.')[0]}"


def test_there_are_some() -> None:
    assert {file.name.partition(".")[0] for file in SNAPSHOTS} == {file.name.partition(".")[0] for file in CHECKPOINTS}
    assert SNAPSHOTS


@pytest.mark.parametrize("file", SNAPSHOTS, ids=named)
def test_a_snapshot_goes_on(file: Path) -> None:
    kind = KINDS[file.name.partition(".")[0]]
    old, new = sb.Monitor.restore(zlib.decompress(file.read_bytes())), kind.monitor()
    new.push(stream(2 * TRIGGER))
    rows = stream(TRIGGER, start=2 * TRIGGER)
    same_rows(cells(old.push(rows)), cells(new.push(rows)), "changes")
    for name in kind.queries:
        same_rows(cells(old.answer(name)), cells(new.answer(name)), f"answer of {name}")


@pytest.mark.parametrize("file", CHECKPOINTS, ids=named)
def test_a_checkpoint_goes_on(spark: SparkSession, file: Path, tmp_path: Path) -> None:
    kind = KINDS[file.name.partition(".")[0]]
    unpack(file, tmp_path / "checkpoint")
    for number in range(3):
        put_rows(tmp_path, number)
    (found,) = run(spark, tmp_path, kind)
    monitor = kind.monitor()
    for number in range(3):
        expected = changes_of(monitor, stream(TRIGGER, start=number * TRIGGER))
    same_rows(cells(found), expected, "the third trigger")
