"""`state` and `check`: what a checkpoint holds, and what a query would do with it, read without running anything."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from skyband.errors import QueryError, StateError
from skyband.monitor.archive import unpack
from skyband.monitor.loop import Loop
from skyband.monitor.sources import all_queries
from skyband.query.kinds import Query
from skyband.query.options import ALL, Options, named
from skyband.spark.directory import refusals
from skyband.spark.plan import Plan, compare
from skyband.spark.seed import SEED, carried, spread
from skyband.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import GroupedData

_NEW = "STDS_COMMITTED_BATCH_UNAVAILABLE"
_OPERATORS = 4  # stateful ones of a streaming query among which skyband's is looked for
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


def check(
    checkpoint: str,
    queries: Query | Iterable[Query] | Mapping[str, Query],
    *,
    id: str,
    order: str | Iterable[str] | None = None,
    shards: int | None = None,
    blocks: bool | None = None,
    start_from: bool = False,
    **options: Any,
) -> dict[str, str]:
    """What would become of each query if a stream were started from this checkpoint, by its name.

    "resumes", "starts empty", or "is discarded" (a query of the checkpoint that is not given). A StateError says what
    cannot be resumed, as the first trigger would. With `start_from`: "is carried over", "is carried over from 'name'",
    "starts empty: why" and "is discarded".

    Parameters
    ----------
    checkpoint : str
        The folder of the checkpoint; one where no trigger has ended is new, and every query starts empty.
    queries : Query, list of Query, or {name: Query}
        The queries.
    id : str
        The column that labels objects.
    order : str or list of str, optional
        The columns that order rows, as given to `monitor`.
    shards : int, optional
        The number of shards, as given to `monitor`.
    blocks : bool, optional
        Whether all shards score pairs together, as given to `monitor`.
    start_from : bool
        Say what `monitor(..., start_from=checkpoint)` would do, instead of a restart from this checkpoint.
    **options : Any
        The other arguments of `monitor`: time, part, value, op, keep, emit, late, invalid, forget.

    """
    settings = Options(id=id, **options)
    if settings.keep == (ALL,):
        raise QueryError('check(keep="*"): the columns are not known here. Name those that monitor keeps.')
    asked = all_queries(Loop.of(named(queries), **asdict(settings)).state)
    plan = Plan(
        asked,
        settings,
        order_of(settings, order),
        shards or 1,
        (),
        options.get("forget"),
        False,
        blocks,
        shards is None,
    )
    spark = SparkSession.getActiveSession() or session()
    stored = stored_plan(spark, checkpoint)
    if stored is not None:  # the types of columns are not known here
        plan = replace(plan, zone=stored["options"].get("zone"))
    if start_from:
        return carried(plan, _find_state(spark, checkpoint)[1]).fates()
    if stored is None:
        return dict.fromkeys(asked, "starts empty")
    resumed(plan, stored)
    fates = {name: "resumes" if name in stored["queries"] else "starts empty" for name in asked}
    return fates | {name: "is discarded" for name in stored["queries"] if name not in asked}


def order_of(options: Options, order: str | Iterable[str] | None) -> tuple[str, ...]:
    """The columns that order the rows of a trigger: by default the time, then the id."""
    named = (options.time, options.id) if order is None else (order,) if isinstance(order, str) else tuple(order)
    return tuple(name for name in named if name is not None)


def resumed(plan: Plan, stored: dict[str, Any]) -> Plan:
    """The plan with the checkpoint's number of shards, unless it fixes one; a StateError if it cannot resume."""
    plan = replace(plan, shards=stored["shards"], follows=False) if plan.follows else plan
    compare(stored, plan.fingerprint)
    return plan


def stored_plan(spark: SparkSession, path: str) -> dict[str, Any] | None:
    """The fingerprint of the plan that wrote a checkpoint; None: it has no trigger that ended, or no such operator."""
    heads = _find(spark, path)[1]
    if not heads:
        return None
    asked: dict[str, Any] = unpack(zlib.decompress(heads[0]))[0]["asked"]
    return asked


def _find(spark: SparkSession, path: str) -> tuple[int, list[bytes]]:
    """The stateful operator that is skyband's, and the heads of its shards; none: no trigger has ended."""
    for operator in range(_OPERATORS):
        try:
            heads = _heads(spark, path, operator, alone=True)
        except PySparkException as error:
            if error.getCondition() == _NEW:
                return 0, []
            continue  # an operator of the user's own, or none
        if heads:
            return operator, heads
    return 0, []


def start(spark: SparkSession, path: str, plan: Plan) -> tuple[Plan, GroupedData]:
    """A plan that begins with another checkpoint's state, and the pieces of that state by shard."""
    operator, heads = _find_state(spark, path)
    plan = replace(plan, carried=carried(plan, heads).old)
    reader = spark.read.format("statestore").option("operatorId", operator)
    heads_read = reader.option("stateVarName", "head").load(path)
    cells_read = reader.option("stateVarName", "cells").load(path)
    head = heads_read.select("key.shard", lit(-1).alias("family"), lit(-1).alias("cell"), "value.data")
    cells = cells_read.select("key.shard", "user_map_key.family", "user_map_key.cell", "user_map_value.data")
    slim = plan.slim

    def spread_shard(rows: pa.Table) -> pa.Table:  # Spark reads these types
        return spread(slim, rows)

    seeds = head.union(cells).groupBy("shard").applyInArrow(spread_shard, SEED)
    return plan, seeds.groupBy("shard")


def _find_state(spark: SparkSession, path: str) -> tuple[int, list[bytes]]:
    operator, heads = _find(spark, path)
    if not heads:
        raise StateError(f"start_from={path!r}: no trigger of a skyband query has ended there. Leave it out.")
    return operator, heads


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
