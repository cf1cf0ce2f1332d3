"""Writes the folder of this version: `cd tests && python -m upgrade.write`. Never change one that was released.

A snapshot of each kind of query after 200 rows, `<kind>.snapshot`; and a checkpoint of Spark after two triggers of 100
rows, `<kind>.checkpoint.zip`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skyband.spark as sbs
from kinds import KINDS, Kind, stream
from spark.quick import SETTINGS

HERE = Path(__file__).parent
TRIGGER = 100
PLACE = b"/place-of-the-test"


def put_rows(folder: Path, number: int) -> None:
    """The rows of a trigger, as a file of `in`."""
    (folder / "in").mkdir(exist_ok=True)
    file = folder / "in" / f"{number}.parquet"
    pq.write_table(stream(TRIGGER, start=number * TRIGGER), file)
    os.utime(file, (1_700_000_000 + number,) * 2)


def run(spark: SparkSession, folder: Path, kind: Kind) -> list[Any]:
    """What is new in `in` through `checkpoint`; the changes of each trigger."""
    found: list[Any] = []

    def put(rows: DataFrame, batch: int) -> None:
        found.append(rows.toArrow())

    schema = spark.read.parquet(str(folder / "in")).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    changes = sbs.monitor(rows, dict(kind.queries), shards=2, order=kind.order, **kind.options)
    writer = changes.writeStream.foreachBatch(put).option("checkpointLocation", str(folder / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(240)
    return found


def write(names: list[str]) -> None:
    folder = HERE / version("skyband")
    folder.mkdir(exist_ok=True)
    spark = sbs.session("local[2]", **SETTINGS, **{"spark.sql.shuffle.partitions": "2"})
    for name in names:
        monitor = KINDS[name].monitor()
        monitor.push(stream(2 * TRIGGER))
        (folder / f"{name}.snapshot").write_bytes(zlib.compress(monitor.snapshot(), 9))
        with tempfile.TemporaryDirectory() as place:
            for number in range(2):
                put_rows(Path(place), number)
            run(spark, Path(place), KINDS[name])
            pack(Path(place, "checkpoint"), folder / f"{name}.checkpoint.zip")
    spark.stop()


def pack(checkpoint: Path, file: Path) -> None:
    """Without the place where it was, which Spark's logs of the source and of the state's schema name."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for one in sorted(checkpoint.rglob("*")):
            if one.is_file() and not one.name.endswith(".crc"):
                data = one.read_bytes().replace(bytes(checkpoint.parent), PLACE)
                archive.writestr(str(one.relative_to(checkpoint)), data)


def unpack(file: Path, checkpoint: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        archive.extractall(checkpoint)
    for one in [*checkpoint.glob("sources/**/*"), *checkpoint.glob("state/*/_metadata/**/*")]:
        if one.is_file():
            one.write_bytes(one.read_bytes().replace(PLACE, bytes(checkpoint.parent)))


if __name__ == "__main__":
    write(sys.argv[1:] or list(KINDS))
