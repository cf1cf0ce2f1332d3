"""Contestants on Spark, as those of ../contestants.py: they get ready, `work` is timed, `after` is not.

Every one is a streaming query over the same files: one file per trigger, availableNow, a noop sink, a checkpoint of
its own. Timed is all from start() to the end of the query: planning, each trigger, commits. Not timed: writing the
files; the same query over the first `warm` rows in two triggers, right before (class loading, Python workers and
their imports, compiled kernels); with `fill`, a first run of the query over those rows, which it then goes on from.
Parameters: k, window (of sb.Last) or span, emit, shards, keep, queries (that many Nearest instead of one TopK per
key), slide, rows, file (its rows), fill, fill_file, warm, partitions (of the shuffle).
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import skyband as sb
import skyband.spark as sbs
from benchmarks import checks, couples
from benchmarks.contestants import Outcome, Ready
from benchmarks.spark import peers, streaming, workers
from benchmarks.workloads import Stream, query_points

Query = Callable[[DataFrame], DataFrame]
Outcomes = Callable[[list[Any], Path], Outcome]  # of the progress of all triggers, and the checkpoint
SUMS = "sums"  # the name under which Spark observes them
OBJECT_BYTES = 40  # of an object that is kept, beside its `keep` columns


def spark_identity(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """The yardstick: mapInArrow that passes every batch on."""

    def outcome_of(progress: list[Any], checkpoint: Path) -> Outcome:
        return Outcome(
            sum(one.numInputRows for one in progress),
            lambda _s, _p, rows: bool(rows == p.get("fill", 0) + p["rows"]),
            {},
        )

    return ready(stream, p, peers.passed_on, outcome_of)


def spark_monitor(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """skyband: one TopK per key, `queries` global Nearest ones, or with `items` the keys with the most rows."""
    queries = _queries(p)

    def query(df: DataFrame) -> DataFrame:
        changes = sbs.monitor(
            df,
            queries,
            id="id",
            time="time" if "time" in stream else None,
            keep=p.get("keep", ()),
            emit=p.get("emit", "arrival"),
            shards=p.get("shards"),
        )
        columns = [
            F.count("*").alias("changes"),
            F.sum("diff").alias("objects"),
            F.sum(F.col("diff") * F.col("id")).alias("ids"),
            F.sum(F.col("diff") * (F.col("id") * F.col("id") % checks.PRIME)).alias("squares"),
        ]
        return changes.observe(SUMS, *columns)

    def outcome_of(progress: list[Any], checkpoint: Path) -> Outcome:
        sums = streaming.observed(progress, SUMS)
        counters = {"changes": sums.pop("changes")} | _kept(stream, p, checkpoint)
        return Outcome(sums, checks.sums_to_best, counters)

    return ready(stream, p, query, outcome_of)


def spark_pairs(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """One TopKPairs over the last n, by blocks on `shards`."""

    def query(df: DataFrame) -> DataFrame:
        changes = sbs.monitor(df, couples.pair_query(p), id="id", shards=p["shards"], blocks=True)
        diff, newer = F.col("diff").cast("long"), F.col("id_b")
        sums = {"pairs": diff, "older": diff * F.col("id_a"), "newer": diff * newer * newer, "changes": F.lit(1)}
        return changes.observe(SUMS, *[F.sum(value).alias(name) for name, value in sums.items()])

    def outcome_of(progress: list[Any], checkpoint: Path) -> Outcome:
        sums = streaming.observed(progress, SUMS)
        changes = sums.pop("changes")
        return Outcome(sums, couples.sums_to_best_pairs, {"changes": changes})

    return ready(stream | {"id": np.arange(len(stream["x0"]))}, p, query, outcome_of)


def spark_max_by(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """Spark's own: max_by(struct, score, k) over sliding windows, an answer for each window that has closed."""

    def query(df: DataFrame) -> DataFrame:
        sums = [F.count("*").alias("windows"), F.sum(F.size("best")).alias("objects")]
        return peers.sliding_max_by(df, p["k"], p["window"], p["slide"]).observe(SUMS, *sums)

    def outcome_of(progress: list[Any], checkpoint: Path) -> Outcome:
        sums = streaming.observed(progress, SUMS)
        mark = max(one.eventTime["watermark"] for one in progress).rstrip("Z")

        def check(stream: Stream, p: Mapping[str, Any], answer: Any) -> bool:
            return checks.closes_windows(stream, p, np.datetime64(mark, "us"), answer)

        return Outcome(sums, check, {"windows": sums["windows"]})

    return ready(stream, p, query, outcome_of)


def spark_idle(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A stateful operator that does nothing: by shard, or with `by_group` called once for each group with rows."""
    by_group = p.get("by_group", False)

    def query(df: DataFrame) -> DataFrame:
        return peers.idle_by_group(df) if by_group else peers.idle_by_shard(df, p["shards"])

    def outcome_of(progress: list[Any], checkpoint: Path) -> Outcome:
        calls = [one.stateOperators[0].numRowsUpdated for one in progress if one.numInputRows]

        def check(stream: Stream, p: Mapping[str, Any], calls: list[int]) -> bool:
            sent = _cuts(p, 0, p["fill"]) + _cuts(p, p["fill"], p["fill"] + p["rows"])[1:]
            files = [stream["key"][begin:end] for begin, end in itertools.pairwise(sent)]
            return calls == [len(np.unique(file)) if by_group else p["shards"] for file in files]

        return Outcome(calls, check, {})

    return ready(stream, p, query, outcome_of)


def ready(stream: Stream, p: Mapping[str, Any], query: Query, outcome_of: Outcomes) -> Ready:
    spark = streaming.session()
    spark.conf.set(streaming.PARTITIONS, str(p.get("partitions", 2)))
    fill, end = p.get("fill", 0), len(stream["id"])
    before: list[Any] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if p.get("warm"):
            streaming.write(folder / "warm", stream, [0, p["warm"] // 2, p["warm"]])
            streaming.through(query(streaming.read(folder / "warm", 1)), folder / "warm-checkpoint")
        if fill:
            streaming.write(folder / "rows", stream, _cuts(p, 0, fill))
            before = streaming.through(query(streaming.read(folder / "rows", 1)), folder / "checkpoint")
        streaming.write(folder / "rows", stream, _cuts(p, fill, end))
        df = query(streaming.read(folder / "rows", p.get("together", 1)))
        kept_open = stack.pop_all()
    shuffled = streaming.shuffled()
    watched: dict[str, float] = {}

    def after(progress: list[Any]) -> Outcome:
        with kept_open:
            outcome = outcome_of(before + progress, folder / "checkpoint")
            sizes = {
                "checkpoint_bytes": streaming.checkpoint_bytes(folder / "checkpoint"),
                "shuffle_bytes": streaming.shuffled() - shuffled,
            }
        triggers = streaming.triggers(progress)
        spent = [one["triggerExecution"] for one in triggers if one["rows"]]
        slowest = float(np.percentile(spent[1:] or spent, 99))  # the first is planned
        counters = {"rows": p["rows"], "trigger_ms": statistics.median(spent), "trigger_ms_99": slowest}
        counters |= sizes | watched | outcome.counters
        if len(every := [one["triggerExecution"] for one in streaming.triggers(before) if one["rows"]] + spent) > 3:
            counters["last_over_third"] = every[-1] / every[2]
        return Outcome(outcome.answer, outcome.check, counters, triggers)

    def work() -> list[Any]:
        with workers.watching(watched) if p.get("watched") else nullcontext():
            return streaming.through(df, folder / "checkpoint")

    return Ready(work, after)


def _cuts(p: Mapping[str, Any], begin: int, end: int) -> list[int]:
    """Where files begin, and where the last one ends."""
    size = p["file"] if begin or "fill_file" not in p else p["fill_file"]
    return [*range(begin, end, size), end]


def _queries(p: Mapping[str, Any]) -> sb.TopK | sb.TopKGroups | list[sb.TopK]:
    window = sb.Last(span=p["span"]) if "span" in p else sb.Last(p["window"])
    if p.get("items"):
        return sb.TopKGroups(p["k"], by="count(*)", window=window, of="key")
    if "queries" not in p:
        return sb.TopK(p["k"], by="score", window=window, per="key")
    points = [{"x1": float(x), "x2": float(y)} for x, y in query_points(p)]
    return [sb.TopK(p["k"], by=sb.Nearest(point), window=window) for point in points]


def _kept(stream: Stream, p: Mapping[str, Any], checkpoint: Path) -> dict[str, float]:
    """What the checkpoint holds: objects, value bytes, and these over what the objects are worth."""
    parts = sbs.state(str(checkpoint)).collect()
    groups, objects, size = (sum(part[name] for part in parts) for name in ("groups", "objects", "bytes"))
    row_bytes = OBJECT_BYTES + sum(stream[name].dtype.itemsize for name in p.get("keep", ()))
    n = p.get("n", 0)
    curve = {"objects_over_curve": objects / groups / (p["k"] * (1 + np.log(n / p["k"])))} if n else {}
    return {
        "groups": groups,
        "objects": objects,
        "state_bytes": size,
        "bytes_over_objects": size / (objects * row_bytes),
    } | curve
