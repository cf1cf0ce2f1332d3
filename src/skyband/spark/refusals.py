"""Refusals, before any job and with the reason: questions that a Monitor answers and Spark does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from skyband.errors import QueryError
from skyband.query.kinds import Query
from skyband.query.options import Options


def check_for_spark(queries: Mapping[str, Query], options: Options) -> None:
    """Raise a QueryError for questions over answers and for columns under other names."""
    for name, query in queries.items():
        if query.source is not None:
            raise QueryError(
                f"{name}: source= is for sb.Monitor, not for Spark: a shard has the answers of its own groups only. "
                "Ask over the DataFrame of the answers, or push them to a Monitor."
            )
        if isinstance(by := getattr(query, "by", None), tuple) and any(map(callable, by)):
            raise QueryError(
                f"{name}: on Spark a function ranks alone, not as one of several keys, since its type is not known "
                "before rows come. Compute it as a column before."
            )
        if query.per_columns != query.per_inputs:
            raise QueryError(
                f"{name}: on Spark `per` names columns as they are. Rename them before: {_renamed(query)}."
            )
    if any(shown != column for shown, column in options.roles.items() if shown not in ("id", "time")):
        raise QueryError("keep: on Spark columns are kept as they are called. Rename them with df.withColumnRenamed.")


def _renamed(query: Query) -> str:
    pairs: Iterable[tuple[str, str]] = zip(query.per_columns, query.per_inputs, strict=True)
    return ", ".join(f"df.withColumnRenamed({column!r}, {shown!r})" for shown, column in pairs if shown != column)
