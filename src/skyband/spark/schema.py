"""Checks of a plan against the DataFrame's schema, before any job runs, and the types of the output's columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
from skyband.monitor.examination import examine
from skyband.monitor.loop import Loop
from skyband.monitor.over import no_rows
from skyband.query.expressions.tree import Kind
from skyband.query.kinds import Query, TopKGroups, TopKPairs
from skyband.query.windows import Last
from skyband.spark.mappers import Validator, sortable
from skyband.spark.plan import Plan
from skyband.spark.versions import arrow_type
from skyband.tables.changes import key_names, of_pair
from skyband.tables.input import Batch

_NUMBER = "0.5"  # what a function returns, as an expression
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
    typed = {name: _typed(query) for name, query in queries.items() if query.source is None}
    try:
        Validator(typed, options).examine(table)
    except BatchError as error:
        raise QueryError(str(error).replace("the batch", "the DataFrame")) from error


def key_types(schema: StructType, plan: Plan) -> dict[str, DataType]:
    """The columns of the reported keys of orders, of all queries over rows together, with their types."""
    typed = {name: _typed(query) for name, query in plan.over_rows.items()}
    lists = Validator(typed, plan.monitor_options()).keys(sample(schema, plan.wanted(plan.queries)))
    found: dict[str, DataType] = {}
    for types in lists:
        for name, type_ in zip(key_names(len(types)), types, strict=True):
            _add_type(found, name, from_arrow_type(type_))
    return found


def _add_type(found: dict[str, DataType], name: str, type_: DataType) -> None:
    """Note the type of a column of the output; a QueryError where another query gives it another one."""
    if (known := found.setdefault(name, type_)) != type_:
        raise QueryError(
            f"{name} would be {known.simpleString()} and {type_.simpleString()} for different queries, and a column "
            "of a DataFrame has one type. Ask them in calls of their own."
        )


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


def output_types(schema: StructType, plan: Plan, subscriber: DataType | None = None) -> tuple[dict[str, DataType], int]:
    """The types of the output's columns, and how many keys are reported; subscriber: of the ids of subscribers."""
    roles, queries = plan.options.roles, plan.over_rows.values()
    sources = {
        shown: name for query in queries for shown, name in zip(query.per_columns, query.per_inputs, strict=True)
    }
    sources |= roles
    if any(isinstance(query, TopKPairs) for query in queries):
        sources |= {end: source for role, source in roles.items() for end in of_pair(role)}
    types = {name: schema[source].dataType for name, source in sources.items()} | _OURS
    for query in queries:
        if isinstance(query, TopKGroups):
            types |= _shown_types(schema, query)
            if query.of_columns:  # `check_schema` has found ids of one type
                types["id"] = _id_type(schema, query.of_columns)
    if subscriber is not None:
        types["subscriber"] = subscriber
    types |= key_types(schema, plan)
    for columns in _types_over_answers(schema, plan, subscriber):
        for name, type_ in columns.items():
            same = name in types and arrow_type(types[name]) == type_
            _add_type(types, name, types[name] if same else from_arrow_type(type_))
    keys = 0
    while key_names(keys + 1)[-1] in types:
        keys += 1
    return types, keys


def _types_over_answers(schema: StructType, plan: Plan, subscriber: DataType | None) -> Iterator[dict[str, Any]]:
    """The columns of the answers of each question over answers, with their types in Arrow."""
    for root in dict.fromkeys(plan.roots.values()):
        mine = {name: _typed(query) for name, query in plan.queries.items() if plan.roots.get(name) == root}
        loop = Loop.of(mine, **plan.monitor_options())
        loop.state.subscriber_type = None if subscriber is None else arrow_type(subscriber)
        yield from _types_in(loop, Batch(sample(schema, plan.wanted(mine)).slice(0, 0)))


def _typed(query: Query) -> Query:
    """A query of the same types without functions of the user's, which are called with real rows only."""
    by: Any = getattr(query, "by", None)
    if isinstance(by, tuple):
        number: Any = tuple(_NUMBER if callable(key) else key for key in by)
    else:
        number = _NUMBER if callable(by) else by
    return query if number == by else replace(query, by=number)  # type: ignore[type-var]


def _types_in(loop: Loop, batch: Batch) -> Iterator[dict[str, Any]]:
    """The columns that these rows give to the questions over answers in a loop."""
    state = loop.state
    loop.queries.prepare([batch])
    examined = examine(state, batch)
    state.types = examined.types
    for adapter, one in zip(examined.standing, examined.validated, strict=True):
        keys = [] if one.scored.keys is None else adapter.new_keys(one)  # type: ignore[attr-defined]
        for name, query in adapter.queries.items():
            columns = state.answer_types(query, keys) | state.own_id_type(name)
            if state.source is not None:
                yield {column: type_ for column, type_ in columns.items() if column not in _OURS}
            if name in state.over:
                rows = {column: type_ for column, type_ in columns.items() if column != "rank"}
                yield from _types_in(state.over[name].loop, Batch(no_rows(rows)))


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
