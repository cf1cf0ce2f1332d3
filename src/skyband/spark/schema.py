"""Checks of a plan against the DataFrame's schema, before any job runs, and the types of the output's columns."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    IntegralType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from skyband.errors import BatchError, QueryError
from skyband.query.expressions.tree import Kind
from skyband.query.kinds import Query, TopKGroups, TopKPairs
from skyband.query.windows import Last
from skyband.spark.mappers import Validator, sortable
from skyband.spark.plan import Plan
from skyband.spark.versions import arrow_type
from skyband.tables.changes import key_names, of_pair

_DAY = 86400 * 10**9
_WATERMARK = "spark.watermarkDelayMs"  # in a field's metadata: `withWatermark` was called with this column
_OURS: dict[str, DataType] = {
    "query": StringType(),
    "at": LongType(),
    "rank": LongType(),
    "score": DoubleType(),
    "probability": DoubleType(),
    "diff": ByteType(),
    "first": BooleanType(),
}


_KINDS: dict[type[DataType], Kind] = {NumericType: "number", BooleanType: "boolean", StringType: "string"}
_KINDS |= dict.fromkeys((TimestampType, TimestampNTZType, DateType), "time")


def check_schema(schema: StructType, plan: Plan, watermark: str | None) -> None:
    """Raise a QueryError for what the first trigger would fail at: missing columns, and types of the wrong kind."""
    wanted = plan.wanted(plan.queries)
    require_columns(schema, wanted)
    op, time = plan.options.op, plan.options.time
    if op is not None and not isinstance(schema[op].dataType, StringType):
        type_ = schema[op].dataType.simpleString()
        raise QueryError(f"the op column {op!r} is {type_}. It is a string: insert, update or delete.")
    unit = None if time is None else _unit_of(time, schema[time].dataType)
    _check_spans(plan, unit)
    stamps = time is not None and isinstance(schema[time].dataType, TimestampType | TimestampNTZType)
    if watermark is not None and not stamps:
        raise QueryError("watermark= needs a time column of type TIMESTAMP or TIMESTAMP_NTZ. Leave it out.")
    if watermark is not None:
        _check_watermarks(schema)
    table = sample(schema, wanted)
    for name in plan.order:
        if not sortable(table.schema.field(name).type):
            raise QueryError(
                f"the column {name!r} is {schema[name].dataType.simpleString()}, by which rows cannot be ordered. Name "
                "columns of numbers, strings or times that say in which order rows arrive: order=(...)."
            )
    check_rows(table, plan.queries, plan.monitor_options())


def require_columns(schema: StructType, names: tuple[str, ...]) -> None:
    """Raise a QueryError for a column that is not there; of a nested field, say how it becomes one."""
    for name in names:
        if name in schema.names:
            continue
        outer = name.partition(".")[0]
        nested = outer in schema.names and isinstance(schema[outer].dataType, StructType)
        hint = f' Take the field out first: df.withColumn("{name}", col("{name}")).' if nested else ""
        raise QueryError(f"the DataFrame has no column {name!r}. It has: {', '.join(schema.names)}.{hint}")


def sample(schema: StructType, names: tuple[str, ...]) -> pa.Table:
    """One row of nulls, in the types that workers will see."""
    columns = {}
    for name in names:
        type_ = schema[name].dataType
        try:
            columns[name] = pa.nulls(1, arrow_type(type_))
        except (PySparkException, TypeError) as error:
            raise QueryError(
                f"the column {name!r} is {type_.simpleString()}, which Spark does not give to Python. Convert it."
            ) from error
    return pa.table(columns)


def check_rows(table: pa.Table, queries: dict[str, Query], options: dict[str, Any]) -> None:
    """Validate rows as a mapper does; functions of the user's are left out: they are called with real rows only."""
    typed = {name: query for name, query in queries.items() if not callable(getattr(query, "by", None))}
    try:
        if typed:
            Validator(typed, options).examine(table)
    except BatchError as error:
        raise QueryError(str(error).replace("the batch", "the DataFrame")) from error


def key_types(schema: StructType, plan: Plan) -> dict[str, DataType]:
    """The columns of the reported keys of orders, of all queries together, with their types."""
    typed = {name: query for name, query in plan.queries.items() if not callable(getattr(query, "by", None))}
    lists = Validator(typed, plan.monitor_options()).keys(sample(schema, plan.wanted(plan.queries))) if typed else []
    found: dict[str, DataType] = {}
    for name, types in zip(key_names(max(map(len, lists), default=0)), zip_longest(*lists), strict=True):
        known = list(dict.fromkeys(type_ for type_ in types if type_ is not None))
        if len(known) > 1:
            raise QueryError(
                f"{name} would be {' and '.join(map(str, known))} for different queries, and a column of a "
                "DataFrame has one type. Ask them in calls of their own."
            )
        found[name] = from_arrow_type(known[0])
    return found


def _check_spans(plan: Plan, unit: int | None) -> None:
    """Check time spans against the unit of the time column."""
    if plan.options.time is not None:
        for query in plan.queries.values():
            if isinstance(query.window, Last) and query.window.each is None:
                query.window.length(unit)
            if isinstance(query, TopKGroups):
                query.half_life(unit)
    if plan.forget is None:
        return
    if plan.options.time is None:
        raise QueryError('forget= says how long a group may be silent: name the time column, time="...".')
    forget = plan.forget
    try:
        (Last(forget) if isinstance(forget, str) else Last(span=forget)).length(unit)
    except QueryError as error:
        raise QueryError(f"forget={forget!r} must be a time span, written as in Last(...). {error}") from error


def _check_watermarks(schema: StructType) -> None:
    marked = next((field.name for field in schema if _WATERMARK in (field.metadata or {})), None)
    if marked is not None:
        raise QueryError(
            f"watermark= beside withWatermark({marked!r}, ...) of the DataFrame: Spark refuses a second one. "
            "Leave one of them out; with the DataFrame's own, time moves with the rows only."
        )


def _unit_of(time: str, type_: DataType) -> int | None:
    """Nanoseconds of a unit of the time column; None: integers."""
    if isinstance(type_, TimestampType | TimestampNTZType):
        return 10**3
    if isinstance(type_, DateType):
        return _DAY
    if isinstance(type_, IntegralType):
        return None
    raise QueryError(f"the time column {time!r} is {type_.simpleString()}. Time is a timestamp, a date or an integer.")


def output_types(schema: StructType, plan: Plan) -> dict[str, DataType]:
    """The types of the output's columns."""
    roles, queries = plan.options.roles, plan.queries.values()
    sources = {name: name for query in queries for name in query.per_columns} | roles
    if any(isinstance(query, TopKPairs) for query in queries):
        sources |= {end: source for role, source in roles.items() for end in of_pair(role)}
    types = {name: schema[source].dataType for name, source in sources.items()} | _OURS
    for query in queries:
        if isinstance(query, TopKGroups):
            types |= _shown_types(schema, query)
            if query.of_columns:  # `check_schema` has found ids of one type
                types["id"] = _id_type(schema, query.of_columns)
    return types


def _id_type(schema: StructType, columns: tuple[str, ...]) -> DataType:
    """The type of the ids of groups: that of their column, or a struct of several."""
    fields = [StructField(column, schema[column].dataType) for column in columns]
    return fields[0].dataType if len(fields) == 1 else StructType(fields)


def _shown_types(schema: StructType, query: TopKGroups) -> dict[str, DataType]:
    """The types of the columns of `select`."""
    kinds: dict[str, Kind] = {}
    for field in schema:
        for types, kind in _KINDS.items():
            if isinstance(field.dataType, types):
                kinds[field.name] = kind
    shown = {"boolean": BooleanType(), "string": StringType()}
    return {name: shown.get(kind or "", DoubleType()) for name, kind in query.expressions.kinds(kinds).items()}
