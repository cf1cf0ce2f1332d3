"""`monitor` and `answers`: pack -> state by shard -> unpack, for batch and streaming DataFrames."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from skyband.changes import answer_names, change_names
from skyband.errors import QueryError
from skyband.monitor import Monitor
from skyband.options import Options, named
from skyband.query import Query, TopK
from skyband.spark.operator import TOLD, Operator
from skyband.spark.packing import PACKED, pack, unpack
from skyband.spark.plan import Plan
from skyband.spark.session import check
from skyband.windows import Last

_DAY = 86400 * 10**9
_OURS: dict[str, DataType] = {
    "query": StringType(),
    "at": LongType(),
    "rank": LongType(),
    "score": DoubleType(),
    "diff": ByteType(),
    "first": BooleanType(),
}


def monitor(
    df: DataFrame,
    queries: Query | Iterable[Query] | Mapping[str, Query],
    *,
    id: str,
    time: str | None = None,
    order: str | Iterable[str] | None = None,
    part: str = "part",
    value: str = "value",
    op: str | None = None,
    keep: str | Iterable[str] = (),
    emit: str = "arrival",
    late: str = "accept",
    invalid: str = "reject",
    watermark: str | None = None,
    shards: int | None = None,
    forget: str | None = None,
) -> DataFrame:
    """The changes of the answers, as a DataFrame in append mode; columns as those of `skyband.Monitor.push`.

    order: the columns that say in which order a trigger's rows arrive (default: time, then id). shards: how many
    pieces of state work side by side (default: Spark's parallelism); it is part of a checkpoint. `at` is null for
    time windows. The rest is as in `skyband.Monitor`.
    """
    plan = _plan(df, queries, Options(id, time, part, value, keep, emit, late, invalid), order, shards)
    _later(op=op, watermark=watermark, forget=forget)
    per = [name for query in plan.queries.values() for name in query.per_columns]
    return _run(df, plan, change_names(per, plan.options.kept, time is not None), whole=False)


def answers(
    df: DataFrame,
    queries: Query | Iterable[Query] | Mapping[str, Query],
    *,
    id: str,
    time: str | None = None,
    order: str | Iterable[str] | None = None,
    part: str = "part",
    value: str = "value",
    op: str | None = None,
    keep: str | Iterable[str] = (),
    emit: str = "arrival",
    late: str = "accept",
    invalid: str = "reject",
    watermark: str | None = None,
    shards: int | None = None,
    forget: str | None = None,
) -> DataFrame:
    """After each trigger the whole answers of the groups that changed: `query`, then the columns of an answer.

    A group whose answer has become empty has no rows; `monitor` shows its last leaving.
    """
    options = dataclasses.replace(Options(id, time, part, value, keep, emit, late, invalid), emit="batch")
    plan = _plan(df, queries, options, order, shards)
    _later(op=op, watermark=watermark, forget=forget)
    per = dict.fromkeys(name for query in plan.queries.values() for name in query.per_columns)
    return _run(df, plan, ["query", *answer_names(per, plan.options.kept, time is not None)], whole=True)


def _later(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise QueryError(f"{name}= is not built yet in this version of skyband.spark. Leave it out.")


def _plan(
    df: DataFrame,
    queries: Query | Iterable[Query] | Mapping[str, Query],
    options: Options,
    order: str | Iterable[str] | None,
    shards: int | None,
) -> Plan:
    spark = df.sparkSession
    if df.isStreaming:
        check(spark)
    checked = Monitor(named(queries), **dataclasses.asdict(options))  # says what is wrong before any job runs
    asked = {name: query for name, query in checked.queries.items() if isinstance(query, TopK)}
    if options.id is None:
        raise QueryError("skyband.spark needs id=: the column that labels objects, since rows have no number here.")
    ordered = (options.time, options.id) if order is None else (order,) if isinstance(order, str) else tuple(order)
    if options.late == "drop" and options.time is not None and ordered[:1] != (options.time,):
        raise QueryError(
            f'late="drop" needs an order that begins with the time column, order=({options.time!r}, ...): '
            "else a shard cannot know which of its rows other shards' rows have made late."
        )
    count = spark.sparkContext.defaultParallelism if shards is None else shards
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 10_000:
        raise QueryError(f"shards={shards!r} must be a whole number from 1 to 10,000.")
    plan = Plan(asked, options, tuple(name for name in ordered if name is not None), count, tuple(df.columns))
    missing = [name for name in plan.wanted(asked) if name not in df.columns]
    if missing:
        raise QueryError(f"the DataFrame has no column {missing[0]!r}. It has: {', '.join(df.columns)}.")
    if options.time is not None:
        unit = _unit_of(options.time, df.schema[options.time].dataType)
        for query in asked.values():
            if isinstance(query.window, Last):
                query.window.length(unit)
    return plan


def _unit_of(time: str, type_: DataType) -> int | None:
    """Nanoseconds of a unit of the time column; None: integers."""
    if isinstance(type_, TimestampType | TimestampNTZType):
        return 10**3
    if isinstance(type_, DateType):
        return _DAY
    if isinstance(type_, IntegralType):
        return None
    said = type_.simpleString()
    raise QueryError(f"the time column {time!r} is {said}. Time is a timestamp, a date or an integer.")


def _run(df: DataFrame, plan: Plan, names: list[str], *, whole: bool) -> DataFrame:
    schema = StructType([StructField(name, _type_of(name, df, plan.options)) for name in names])
    first: Callable[[Iterator[Any]], Iterator[Any]] = partial(pack, plan)
    last: Callable[[Iterator[Any]], Iterator[Any]] = partial(unpack, to_arrow_schema(schema, timezone="UTC"))
    plain = [col(_quoted(name)).alias(f"c{i}") for i, name in enumerate(plan.wanted(plan.queries))]
    packed = df.select(*plain).mapInArrow(first, PACKED)  # which looks columns up unquoted; `pack` names them again
    told = packed.groupBy("shard").transformWithStateInPandas(Operator(plan, whole=whole), TOLD, "append", "None")
    return told.mapInArrow(last, schema)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _type_of(name: str, df: DataFrame, options: Options) -> DataType:
    """The type of an output column."""
    if name in _OURS:
        return _OURS[name]
    source = {"id": options.id, "time": options.time}.get(name) or name
    return df.schema[source].dataType
