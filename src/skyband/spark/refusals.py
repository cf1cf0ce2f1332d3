"""Refusals, before any job and with the reason: questions that a Monitor answers and Spark does not yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql.types import ArrayType, MapType, NumericType, StructType

from skyband.errors import QueryError
from skyband.query.kinds import Query, TopK
from skyband.query.options import Options


def check_for_spark(queries: Mapping[str, Query], options: Options, schema: StructType) -> None:
    """Raise a QueryError for orders of keys, ranks, sessions, sources and columns under other names."""
    for name, query in queries.items():
        if query.demands:
            raise QueryError(
                f"{name}: orders of keys, nulls=, ties=, with_ties=, offset=, distinct=, a k from a column, "
                "Session(...) and source= are for sb.Monitor, not for Spark yet. Rank by one number, or push the rows "
                "to a Monitor."
            )
        if query.per_columns != query.per_inputs:
            raise QueryError(
                f"{name}: on Spark `per` names columns as they are. Rename them before: {_renamed(query)}."
            )
        if isinstance(query, TopK) and isinstance(query.by, str) and query.by in schema.names:
            type_ = schema[query.by].dataType
            if not isinstance(type_, NumericType | ArrayType | MapType | StructType):  # those are no keys either
                raise QueryError(
                    f"{name}: by={query.by!r} is {type_.simpleString()}, and keys that are no numbers are for "
                    "sb.Monitor, not for Spark yet. Score by a number."
                )
    if any(shown != column for shown, column in options.roles.items() if shown not in ("id", "time")):
        raise QueryError("keep: on Spark columns are kept as they are called. Rename them with df.withColumnRenamed.")


def _renamed(query: Query) -> str:
    pairs: Iterable[tuple[str, str]] = zip(query.per_columns, query.per_inputs, strict=True)
    return ", ".join(f"df.withColumnRenamed({column!r}, {shown!r})" for shown, column in pairs if shown != column)
