"""Subscriptions of one query with `Each`, on Spark and in one Monitor: the k nearest of the last n, for very many.

Net changes (emit="batch") of the same files, each a trigger or a push. The answers of the first `SAMPLE` of them are
checked, by the sums of their changes. Parameters: subscriptions, k, n, fill, rows, file, shards; `each` (changes for a
row, where Spark alone has as many).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import skyband as sb
import skyband.spark as sbs
from benchmarks.contestants import Outcome, Ready
from benchmarks.spark import contestants, streaming
from benchmarks.workloads import Stream

SAMPLE = 200
CHUNK = 1 << 16  # rows of an Arrow batch, as those of skyband
CHANGES = "query string, subscriber long, at long, id long, score double, diff byte, first boolean"
ARROW = [("query", pa.string()), *((name, pa.int64()) for name in ("subscriber", "at", "id"))]
ARROW += [("score", pa.float64()), ("diff", pa.int8()), ("first", pa.bool_())]


def query_of(p: Mapping[str, Any]) -> sb.TopK:
    """The query that all subscribe to."""
    return sb.TopK(p["k"], by=sb.Nearest({"x1": sb.Each("px"), "x2": sb.Each("py")}), window=sb.Last(p["n"]))


def table_of(p: Mapping[str, Any]) -> Any:
    """The subscriptions."""
    rng, size = np.random.default_rng(11), p["subscriptions"]
    return pa.table({"subscriber": np.arange(size), "px": rng.random(size), "py": rng.random(size)})


def subscriptions_push(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """One Monitor; a push has the rows of a trigger."""
    stream = stream | {"id": np.arange(len(stream["x1"]))}
    monitor = sb.Monitor({"near": query_of(p)}, id="id", emit="batch")
    monitor.subscribe("near", table_of(p))
    cuts = [*range(0, p["fill"], p["file"]), *range(p["fill"], p["fill"] + p["rows"], p["file"]), len(stream["id"])]
    pieces = [
        pa.table({name: column[begin:end] for name, column in stream.items()})
        for begin, end in itertools.pairwise(cuts)
    ]
    filling = [piece for piece, cut in zip(pieces, cuts, strict=False) if cut < p["fill"]]
    before = [_sums(monitor.push(piece)) for piece in filling]

    def work() -> list[dict[str, int]]:
        return [_sums(monitor.push(piece)) for piece in pieces[len(filling) :]]

    def after(sums: list[dict[str, int]]) -> Outcome:
        total = {name: sum(one[name] for one in (*before, *sums)) for name in (before or sums)[0]}
        changes = total.pop("changes")
        return Outcome(total, sums_of_sample, {"rows": p["rows"], "changes": changes})

    return Ready(work, after)


def spark_subscriptions(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """The same on Spark, with a static table of subscriptions that is spread over the shards."""
    stream = stream | {"id": np.arange(len(stream["x1"]))}
    table = streaming.session().createDataFrame(table_of(p).to_pandas())

    def query(df: DataFrame) -> DataFrame:
        changes = sbs.monitor(
            df, {"near": query_of(p)}, id="id", emit="batch", shards=p["shards"], subscriptions={"near": table}
        )
        return _observed(changes)

    def outcome_of(progress: list[Any], checkpoint: Path) -> Outcome:
        sums = streaming.observed(progress, contestants.SUMS)
        changes = sums.pop("changes")
        return Outcome(sums, sums_of_sample, {"changes": changes})

    return contestants.ready(stream, p, query, outcome_of)


def spark_rows_alone(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """The ceiling of what Spark allows: as many rows of changes, which a mapper has ready, through the same sink."""
    stream = stream | {"id": np.arange(len(stream["x1"]))}

    def query(df: DataFrame) -> DataFrame:
        return _observed(df.repartition(p["shards"]).mapInArrow(partial(_rows_of_changes, p["each"]), CHANGES))

    def outcome_of(progress: list[Any], checkpoint: Path) -> Outcome:
        changes = streaming.observed(progress, contestants.SUMS)["changes"]
        return Outcome(changes, lambda s, p, seen: bool(seen == len(s["x1"]) * p["each"]), {"changes": changes})

    return contestants.ready(stream, p, query, outcome_of)


def _rows_of_changes(each: int, batches: Iterator[Any]) -> Iterator[Any]:
    """So many rows for each that comes."""
    rng = np.random.default_rng(1)
    numbers = [pa.array(rng.integers(0, 10**6, CHUNK)) for _ in range(3)]
    columns = [pa.array(["near"] * CHUNK), *numbers, pa.array(rng.random(CHUNK))]
    columns += [pa.array(np.ones(CHUNK, np.int8)), pa.array(np.ones(CHUNK, np.bool_))]
    chunk = pa.RecordBatch.from_arrays(columns, schema=pa.schema(ARROW))
    for batch in batches:
        left = batch.num_rows * each
        for begin in range(0, left, CHUNK):
            yield chunk.slice(0, min(CHUNK, left - begin))


def _observed(changes: DataFrame) -> DataFrame:
    """Changes, whose sums Spark reports."""
    mine = F.when(F.col("subscriber") < SAMPLE, F.col("diff").cast("long")).otherwise(0)
    sums = {"objects": mine, "ids": mine * F.col("id"), "squares": mine * F.col("id") * F.col("id")}
    named = [F.sum(value).alias(name) for name, value in sums.items()]
    return changes.observe(contestants.SUMS, F.count("*").alias("changes"), *named)


def _sums(changes: Any) -> dict[str, int]:
    mine = changes.filter(pc.less(changes["subscriber"], SAMPLE))
    diff, ids = mine["diff"].to_numpy().astype(np.int64), mine["id"].to_numpy()
    totals = {"objects": diff, "ids": diff * ids, "squares": diff * ids * ids}
    return {name: int(values.sum()) for name, values in totals.items()} | {"changes": changes.num_rows}


def sums_of_sample(stream: Stream, p: Mapping[str, Any], sums: Mapping[str, int]) -> bool:
    """Are the sums over all changes of a sample those of its answers after the last row?"""
    rows = np.arange(len(stream["x1"]))[-p["n"] :]
    table = table_of(p).slice(0, SAMPLE)
    points = zip(table["px"].to_numpy(), table["py"].to_numpy(), strict=True)
    far = [(stream["x1"][rows] - x) ** 2 + (stream["x2"][rows] - y) ** 2 for x, y in points]
    ids = np.concatenate([rows[np.argpartition(one, p["k"] - 1)[: p["k"]]] for one in far])
    return dict(sums) == {"objects": len(ids), "ids": int(ids.sum()), "squares": int((ids * ids).sum())}
