"""Refusals, before any job and with the reason: questions that a Monitor answers and Spark does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from skyband.errors import QueryError
from skyband.query.expressions import Expression, parse, reads_wall_clock
from skyband.query.kinds import Query, TopKGroups, TopKPairs

_UTC = {"UTC", "Etc/UTC", "GMT", "Z", "+00:00"}


def check_for_spark(queries: Mapping[str, Query], forget: str | int | None = None) -> None:
    """Raise a QueryError for `forget` beside questions over answers."""
    for name, query in queries.items():
        if query.source is not None and forget is not None:
            raise QueryError(
                f"{name}: source= beside forget= is for sb.Monitor, not for Spark: groups are forgotten where the "
                "groups of a shard are kept apart, and those of a query over whose answers others ask are one piece. "
                "Ask in a call of its own without forget=."
            )


def check_zone(schema: StructType, queries: Mapping[str, Query], zone: str) -> None:
    """Raise a QueryError for expressions that read TIMESTAMP columns by the session's wall clock: shards have UTC's."""
    if zone in _UTC:
        return
    instants = {field.name for field in schema if isinstance(field.dataType, TimestampType)}
    zoneless = {field.name for field in schema if isinstance(field.dataType, TimestampNTZType | DateType)}
    for name, query in queries.items():
        for expression in _expressions(query):
            columns = {column.partition(".")[2] if expression.members else column for column in expression.columns}
            if columns & instants and (columns & zoneless or reads_wall_clock(expression)):
                which = ", ".join(sorted(columns & instants))
                raise QueryError(
                    f"{name}: {expression.text!r} depends on the session's time zone, {zone}, and skyband reads times "
                    f"in UTC on Spark. Compute it as a column before (df.withColumn), give literals an offset "
                    f"(timestamp '2013-01-01 06:30:00Z'), make {which} a TIMESTAMP_NTZ, or set "
                    "spark.sql.session.timeZone to UTC."
                )


def _expressions(query: Query) -> Iterator[Expression]:
    """The expressions of a query over columns of rows."""
    by = getattr(query, "by", None)
    members = ("a", "b") if isinstance(query, TopKPairs) else ()
    keys = by if isinstance(by, tuple) else (by,)
    if isinstance(query, TopKGroups):
        keys = tuple(one.argument for one in query.aggregates)
    for key in (*keys, getattr(query, "on", None)):
        if isinstance(key, str):
            yield parse(key, members=members)
    if (where := getattr(query, "where", None)) is not None:
        yield parse(where)
