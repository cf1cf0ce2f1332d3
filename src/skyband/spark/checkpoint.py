"""`state`: the contents of a checkpoint, read without running anything."""

from __future__ import annotations

import zlib
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from skyband.monitor.archive import unpack
from skyband.spark.session import session
from skyband.spark.shard import refusals

_COLUMNS = (
    "shard int, per string, window string, queries array<string>, groups long, objects long, cells long, bytes long, "
    "late long, rejected map<string, long>"
)


def state(path: str, *, operator: int | None = None) -> DataFrame:
    """What a checkpoint keeps: a row for each shard and query set (the queries with one `per`, one kind of window).

    Columns: groups, objects: how many are kept; cells, bytes: the stored values that hold them (the first row of a
    shard includes its index); late: rows that were dropped as late, as far as they reached the shard; rejected: rows
    by reason, which shard 0 counts for all (what depends on earlier rows, such as unknown ids, is counted where it
    happens).

    Parameters
    ----------
    path : str
        The folder of the checkpoint.
    operator : int, optional
        The stateful operator of the streaming query, if it has several of its own; `monitor` has one, and a second
        without such rows where there are pairs by blocks.

    """
    spark = SparkSession.getActiveSession() or session()
    heads = _heads(spark, path, 0 if operator is None else operator, alone=operator is not None)
    rows = [row for head in heads for row in _rows(head)]
    return spark.createDataFrame(sorted(rows, key=lambda row: row[:3]), _COLUMNS)


def _heads(spark: SparkSession, path: str, operator: int, *, alone: bool) -> list[bytes]:
    reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", "head")
    try:
        return [bytes(data[0]) for data in reader.load(path).select("value.data").collect()]
    except PySparkException as error:
        if alone or "State variable head is not defined" not in str(error):
            raise
        return _heads(spark, path, operator + 1, alone=True)  # the first was the one that merges blocks


def _rows(head: bytes) -> list[tuple[Any, ...]]:
    facts, parts = unpack(zlib.decompress(head))
    rows = []
    for i, (_, per, timed, *_) in enumerate(facts["families"]):
        size = len(head) if i == 0 else 0
        groups, objects, held = (parts[f"{i}.{name}"] for name in ("groups", "objects", "bytes"))
        described = facts["described"][i]
        late = max((max(adapter["late"]) for adapter in described["homes"]), default=0)
        rows.append(
            (
                facts["shard"],
                ", ".join(per),
                "time" if timed else "count",
                described["order"],
                int(groups.sum()),
                int(objects.sum()),
                int((groups > 0).sum()),
                int(held.sum()) + size,
                late,
                facts["rejected"] | refusals(described),
            )
        )
    return rows
