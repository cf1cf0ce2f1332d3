"""Spark's own ways to a top k per window, each answer checked: the first rows into files, then all of them timed."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from benchmarks import checks
from benchmarks.contestants import Outcome, Ready
from benchmarks.peers.answers import Answers, gathered
from benchmarks.spark import contestants, peers, streaming
from benchmarks.workloads import Stream


def windows(small: Stream, stream: Stream, p: Mapping[str, Any]) -> tuple[Answers, Ready]:
    """The answers over the small stream, and the same query over all rows, ready to run."""
    best = peers.hot_items if p.get("items") else peers.best_of_panes if p.get("panes") else peers.best_of_windows

    def query(df: DataFrame) -> DataFrame:
        return best(df, p["k"], p["window"], p["slide"])

    def observed(df: DataFrame) -> DataFrame:
        return query(df).observe(
            contestants.SUMS, F.count("*").alias("windows"), F.sum(F.size("best")).alias("objects")
        )

    def outcome_of(progress: list[Any], checkpoint: Path) -> Outcome:
        sums = streaming.observed(progress, contestants.SUMS)
        mark = max(one.eventTime["watermark"] for one in progress).rstrip("Z")

        def check(stream: Stream, p: Mapping[str, Any], answer: Any) -> bool:
            return checks.closes_windows(stream, p, np.datetime64(mark, "us"), answer)

        return Outcome(sums, check, {"windows": sums["windows"]})

    spark = streaming.session()
    spark.conf.set(streaming.PARTITIONS, "2")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows, files = len(small["id"]), p.get("files", 2)  # the watermark moves between files only
        streaming.write(folder / "rows", small, [rows * number // files for number in range(files + 1)])
        answers = query(streaming.read(folder / "rows", 1)).select(
            F.col("window.end").alias("end"), "key", F.explode("best.id").alias("id")
        )
        streaming.through(answers, folder / "checkpoint", folder / "answers")
        found = spark.read.schema(answers.schema).parquet(str(folder / "answers")).collect()
    given = gathered((_micros(row["end"]), row["key"], row["id"]) for row in found)
    return given, contestants.ready(stream, p, observed, outcome_of)


def _micros(time: datetime) -> int:
    return int(np.datetime64(time.astimezone(UTC).replace(tzinfo=None), "us").astype(np.int64))
