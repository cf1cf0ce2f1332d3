"""[subscriptions.NAME]: where the subscriptions of the query NAME come from, in the formats of [source] or a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from skyband.pipeline.formats import Format, read_format, text
from skyband.pipeline.sources import INTEGERS, SOURCES, SourceFormat
from skyband.pipeline.table import Table, near
from skyband.pipeline.values import SourceSettings
from skyband.query.kinds import Query

SUBSCRIBER, OP = "subscriber", "op"
_NUMBERS = (*INTEGERS, "float", "real", "double")


def _streaming(table: Table, key: str) -> bool:
    value = table.raw(key)
    if value is not None and not isinstance(value, bool):
        table.mistake(key, f"is true (its rows come and go) or false (a table, read at the start); got {value!r}.")
    return value is True


def _of_files(row: SourceFormat) -> SourceFormat:
    return replace(row, keys={**row.keys, "streaming": _streaming})


#: The formats that subscriptions may have. Messages of Kafka always stream; a rate and generators bring none.
FORMATS: dict[str, SourceFormat] = {
    **{name: _of_files(SOURCES[name]) for name in ("parquet", "csv", "json")},
    "kafka": replace(
        SOURCES["kafka"], keys={key: read for key, read in SOURCES["kafka"].keys.items() if key != "dead_letters"}
    ),
    "table": SourceFormat(
        runs="skyband.spark.run.sources:CatalogTable",
        keys={
            "name": text(needed='Name a table of Spark\'s catalog, such as name = "riders".'),
            "streaming": _streaming,
        },
        columns=lambda *_: None,
    ),
}
_ROWS: Mapping[str, Format] = FORMATS


def read_subscriptions(table: Table, queries: dict[str, Query]) -> dict[str, SourceSettings]:
    """Read [subscriptions], one table for each query with `Each`."""
    each = {name: query for name, query in queries.items() if query.each}
    for name, query in each.items():
        if name not in table.data:
            table.mistakes.append(
                f"queries.{name}: :{query.each[0]} is what subscriptions bring. Say where they come from: "
                f'[subscriptions.{name}] format = "parquet", path = "...", with the columns '
                f"{', '.join((SUBSCRIBER, *query.each))}."
            )
    found = {}
    for name in table.data:
        inner = table.table(name)
        if name in queries and name not in each:
            table.mistake(name, "nothing in this query is an Each (:column), so nobody can subscribe to it.")
        elif name not in queries:
            known = near(name, each, "Those with an Each are") if each else "No query has an Each (:column)."
            table.mistake(name, f"there is no query {name!r}. {known}")
        else:
            found[name] = _settings(inner, queries[name])
    return found


def _settings(table: Table, query: Query) -> SourceSettings:
    name, values = read_format(table, _ROWS)
    if name is None:
        return SourceSettings("none", None, {}, {})
    row = FORMATS[name]
    values.setdefault("streaming", name == "kafka")
    settings = SourceSettings(name, row.columns(table, values), dict(row.extra), values)
    if settings.columns is not None:
        _check_columns(table, query, settings.columns, streaming=values["streaming"])
    return settings


def _check_columns(table: Table, query: Query, columns: dict[str, str], *, streaming: bool) -> None:
    """Check that all columns are there, and that numbers are numbers."""
    for column in (SUBSCRIBER, *query.each):
        if column not in columns:
            what = "the ids of subscribers" if column == SUBSCRIBER else f"what the query writes as :{column}"
            table.mistake("schema", f"has no column {column!r}, {what}. {near(column, columns, 'It has')}")
    if OP in columns and not streaming:
        table.mistake("schema.op", "is for rows that come and go: write streaming = true, or leave it out.")
    for need in query.needs:
        type_ = columns.get(need.column, "").lower()
        wanted = INTEGERS if need.role in ("k", "span") else _NUMBERS if need.role not in ("size", "literal") else ()
        if type_ and wanted and type_ not in wanted and not type_.startswith("decimal"):
            words = "a whole number, such as int" if wanted is INTEGERS else "a number, such as double"
            table.mistake(f"schema.{need.column}", f"is {type_}, and {need.where} takes {words}.")
