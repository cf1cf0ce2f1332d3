"""`monitor` and `answers`: pack -> state by shard -> unpack, for batch and streaming DataFrames."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, greatest, lit
from pyspark.sql.functions import max as largest
from pyspark.sql.functions import sum as total
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
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

from skyband.errors import QueryError
from skyband.monitor.loop import Loop
from skyband.query.kinds import Query, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.query.options import Options, check_op, named
from skyband.query.windows import Last
from skyband.spark.mappers import PACKED, pack, reject, unpack
from skyband.spark.merge import MERGED, Merger
from skyband.spark.operator import TOLD, TOLD_TO_MERGE, Operator
from skyband.spark.plan import Plan
from skyband.spark.session import check
from skyband.tables.changes import answer_names, change_names, of_pair

_DAY = 86400 * 10**9
_OURS: dict[str, DataType] = {
    "query": StringType(),
    "at": LongType(),
    "rank": LongType(),
    "score": DoubleType(),
    "probability": DoubleType(),
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
    forget: str | int | None = None,
    blocks: bool | None = None,
    metrics: str | None = None,
) -> DataFrame:
    """The changes of the answers, as a DataFrame in append mode; columns as those of `skyband.Monitor.push`.

    order: the columns that say in which order a trigger's rows arrive (default: time, then id). watermark: a delay, as
    "10 minutes", by which Spark's watermark follows the largest time of any row; it moves the clock on when only
    rejected rows come. shards: how many pieces of state work side by side (default: Spark's parallelism); it is part
    of a checkpoint. forget: how long a group of a count window may be silent before it is dropped. blocks: whether all
    shards score pairs together where there is no `per` (default: over 50,000 arrivals and more). metrics: a name under
    which the query's progress tells arrivals, late, rejected, groups, objects and bytes (`observedMetrics`).
    `at` is null for time windows. op: the column that tells, for queries over UntilDeleted(), whether a row is an
    "insert", an "update" or a "delete" of its id, in the row's own group. The rest is as in `skyband.Monitor`.
    """
    options = Options(id, time, part, value, keep, emit, late, invalid, op)
    plan = _plan(df, queries, options, order, shards, forget, watermark, blocks)
    names = change_names(plan.queries.values(), plan.options.kept, time is not None)
    return _run(df, plan, names, watermark, metrics, whole=False)


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
    forget: str | int | None = None,
    blocks: bool | None = None,
    metrics: str | None = None,
) -> DataFrame:
    """After each trigger the whole answers of the groups that changed: `query`, then the columns of an answer.

    A group whose answer has become empty has no rows; `monitor` shows its last leaving.
    """
    options = dataclasses.replace(Options(id, time, part, value, keep, emit, late, invalid, op), emit="batch")
    plan = _plan(df, queries, options, order, shards, forget, watermark, blocks)
    names = ["query", *answer_names(plan.queries.values(), plan.options.kept, time is not None)]
    return _run(df, plan, names, watermark, metrics, whole=True)


def rejected(
    df: DataFrame,
    queries: Query | Iterable[Query] | Mapping[str, Query],
    *,
    time: str | None = None,
    id: str | None = None,
    part: str = "part",
    value: str = "value",
    op: str | None = None,
) -> DataFrame:
    """The rows that `monitor` rejects, with all their columns, a `reason` and the `queries` that reject it.

    id, op: for queries over `UntilDeleted()`, and id, part, value for `TopKIncomplete`. What depends on earlier rows
    (unknown ids, second rows of a part, groups whose probabilities pass 1) only the running query knows.
    """
    check(df.sparkSession, streaming=False)
    asked = named(queries)
    roles: dict[str, Any] = {"time": time, "id": id, "part": part, "value": value, "op": op}
    Loop.of(asked, **roles)  # says what is wrong before any job runs
    for name in ("reason", "queries"):
        if name in df.columns:
            raise QueryError(f"rejected() adds a column {name!r}, and the DataFrame has one. Rename that first.")
    schema = StructType(
        [StructField("reason", StringType()), StructField("queries", ArrayType(StringType())), *df.schema.fields]
    )
    call: Callable[[Iterator[Any]], Iterator[Any]] = partial(reject, asked, roles, tuple(df.columns))
    plain = [col(_quoted(name)).alias(f"c{i}") for i, name in enumerate(df.columns)]
    return df.select(*plain).mapInArrow(call, schema)


def _plan(
    df: DataFrame,
    queries: Query | Iterable[Query] | Mapping[str, Query],
    options: Options,
    order: str | Iterable[str] | None,
    shards: int | None,
    forget: str | int | None,
    watermark: str | None,
    blocks: bool | None,
) -> Plan:
    spark = df.sparkSession
    check(spark, streaming=df.isStreaming)
    checked = Loop.of(named(queries), **dataclasses.asdict(options))  # says what is wrong before any job runs
    asked = checked.state.queries
    check_op(options.op, asked.values())
    if options.id is None:
        raise QueryError("skyband.spark needs id=: the column that labels objects, since rows have no number here.")
    ordered = (options.time, options.id) if order is None else (order,) if isinstance(order, str) else tuple(order)
    if options.time is not None and ordered[:1] != (options.time,):
        _check_order(options, asked)
    count = spark.sparkContext.defaultParallelism if shards is None else shards
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 10_000:
        raise QueryError(f"shards={shards!r} must be a whole number from 1 to 10,000.")
    watermarked = watermark is not None and df.isStreaming
    used = tuple(name for name in ordered if name is not None)
    if blocks is not None and not isinstance(blocks, bool):
        raise QueryError(f"blocks={blocks!r} must be True, False or None (where it pays).")
    plan = Plan(asked, options, used, count, tuple(df.columns), forget, watermarked, blocks)
    missing = [name for name in plan.wanted(asked) if name not in df.columns]
    if missing:
        raise QueryError(f"the DataFrame has no column {missing[0]!r}. It has: {', '.join(df.columns)}.")
    if options.op is not None and not isinstance(df.schema[options.op].dataType, StringType):
        said = df.schema[options.op].dataType.simpleString()
        raise QueryError(f"the op column {options.op!r} is {said}. It is a string: insert, update or delete.")
    unit = None
    if options.time is not None:
        unit = _unit_of(options.time, df.schema[options.time].dataType)
        for query in asked.values():
            if isinstance(query.window, Last):
                query.window.length(unit)
    if forget is not None:
        if options.time is None:
            raise QueryError('forget= tells how long a group may be silent: name the time column, time="...".')
        try:
            (Last(forget) if isinstance(forget, str) else Last(span=forget)).length(unit)
        except QueryError as error:
            raise QueryError(f"forget={forget!r} must be a time span, said as in Last(...). {error}") from error
    stamps = options.time is not None and isinstance(df.schema[options.time].dataType, TimestampType | TimestampNTZType)
    if watermark is not None and not stamps:
        raise QueryError("watermark= needs a time column of type TIMESTAMP or TIMESTAMP_NTZ. Leave it out.")
    return plan


def _check_order(options: Options, queries: Mapping[str, Query]) -> None:
    """Who cannot do with an order that does not begin with the time."""
    wanted = f"an order that begins with the time column, order=({options.time!r}, ...)"
    if options.late == "drop":
        raise QueryError(
            f'late="drop" needs {wanted}: '
            "else a shard cannot know which of its rows other shards' rows have made late."
        )
    for name, query in queries.items():
        once = isinstance(query, TopKIncomplete) and query.repeat is None
        grouped = isinstance(query, TopKUncertain) and query.group is not None
        if query.window.timed and (once or grouped):
            raise QueryError(
                f"{name}: {'repeat=None' if once else 'group='} needs {wanted}: else a shard cannot know which rows "
                "have left the window when the next one comes."
            )


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


def _run(
    df: DataFrame, plan: Plan, names: list[str], watermark: str | None, metrics: str | None, *, whole: bool
) -> DataFrame:
    types = _types(df, plan)
    schema = StructType([StructField(name, types[name]) for name in names])
    first: Callable[[Iterator[Any]], Iterator[Any]] = partial(pack, plan)
    last: Callable[[Iterator[Any]], Iterator[Any]] = partial(unpack, to_arrow_schema(schema, timezone="UTC"))
    plain = [col(_quoted(name)).alias(f"c{i}") for i, name in enumerate(plan.wanted(plan.queries))]
    packed = df.select(*plain).mapInArrow(first, PACKED)  # which looks columns up unquoted; `pack` names them again
    if plan.watermarked and watermark is not None:
        try:
            packed = packed.withWatermark("moment", watermark)
        except (PySparkException, TypeError) as error:
            raise QueryError(f'watermark={watermark!r} must be a delay that Spark reads, as "10 minutes".') from error
    mode = "EventTime" if plan.watermarked else "None"
    columns = TOLD_TO_MERGE if plan.blocked else TOLD
    told = packed.groupBy("shard").transformWithStateInPandas(Operator(plan, whole=whole), columns, "append", mode)
    if metrics is not None:
        told = told.observe(metrics, *[figure.alias(name) for name, figure in _figures().items()])
    if plan.blocked:
        merger = Merger(plan, whole=whole)
        told = told.select("merge", "blob").groupBy("merge").transformWithStateInPandas(merger, MERGED, "append", mode)
    return told.mapInArrow(last, schema)


def _figures() -> dict[str, Column]:
    """What is told of a trigger; a family without `per` counts late rows in each of its shards."""
    late, refused = (greatest(total(name), largest(f"{name}_anywhere")) for name in ("late", "refused"))
    figures = {name: total(name) for name in ("groups", "objects", "bytes")}
    figures = {"arrivals": total("arrivals") - late, "late": late, "rejected": total("rejected") + refused, **figures}
    return {name: coalesce(figure, lit(0)) for name, figure in figures.items()}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _types(df: DataFrame, plan: Plan) -> dict[str, DataType]:
    """Of the columns that may come out."""
    roles, asked = plan.options.roles, plan.queries.values()
    sources = {name: name for query in asked for name in query.per_columns} | roles
    if any(isinstance(query, TopKPairs) for query in asked):
        sources |= {end: source for role, source in roles.items() for end in of_pair(role)}
    return {name: df.schema[source].dataType for name, source in sources.items()} | _OURS
