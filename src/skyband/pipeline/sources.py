"""[source]: where rows come from, and what columns they have where that is known beforehand."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from skyband.datasets import endless, generators
from skyband.datasets.streams import STREAMS
from skyband.errors import QueryError
from skyband.pipeline.table import Table, near
from skyband.pipeline.values import COORDINATES, FILES, NOW, DeadLetters, Run, Source, local

BROKERS = "kafka.bootstrap.servers"
SOURCES = (*FILES, "rate", "synthetic", "kafka")
INTEGERS = ("byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint")
TIMES = ("timestamp", "timestamp_ntz", "timestamp_ltz")
TYPES = (*INTEGERS, "float", "real", "double", "boolean", "string", "binary", "date", *TIMES)


def read_source(table: Table, run: Run) -> Source:
    format_ = table.one_of("format", SOURCES, needed=f"Use one of {', '.join(SOURCES)}.")
    if format_ is None:
        return Source("none")  # its other keys depend on the format
    if format_ in FILES:
        source = _files(table, format_)
    elif format_ == "kafka":
        source = _kafka(table)
    elif format_ == "rate":
        source = Source(
            format_,
            columns={"timestamp": "timestamp", "value": "bigint"},
            options=table.settings("options"),
            rows_per_second=table.whole("rows_per_second", 1),
        )
        if run.every == NOW:
            table.mistake("format", f"a rate never ends, so run.trigger cannot be {NOW!r}. Give an interval.")
    else:
        source = _synthetic(table, run)
    elsewhere = {
        "path": "is for parquet, csv and json.",
        "schema": "is for parquet, csv, json and kafka; these rows have their own.",
        "files_per_trigger": "is for parquet, csv and json.",
        "rows_per_second": "is for rate and synthetic.",
        "dataset": "is for synthetic.",
        "seed": "is for synthetic.",
        "rows": "is for synthetic.",
        "rows_per_trigger": "is for synthetic.",
        "dead_letters": "is for kafka.",
    }
    table.end({key: f"{why} The format is {format_!r}." for key, why in elsewhere.items() if not table.asked(key)})
    return source


def _kafka(table: Table) -> Source:
    columns, options = _schema(table, needed=True), table.settings("options")
    if BROKERS not in options:
        table.mistake("options", f'{BROKERS!r} is missing, such as "localhost:9092".')
    if not options.keys() & {"subscribe", "subscribePattern", "assign"}:
        table.mistake("options", 'say which topics, such as subscribe = "flights".')
    for name in (columns or {}).keys() & COORDINATES.keys():
        table.mistake(f"schema.{name}", f"is what the message's own {name[6:]} is called. Rename the field.")
    letters = table.table("dead_letters")
    dead = DeadLetters(letters.text("topic"), letters.text("path"))
    letters.end()
    if letters.data and (dead.topic is None) == (dead.path is None):
        table.mistake("dead_letters", 'name a topic or a folder, such as dead_letters = { path = "out/malformed" }.')
    if dead.topic is not None and dead.topic in options.get("subscribe", "").split(","):
        table.mistake("dead_letters.topic", f"{dead.topic!r} is what is read. Name another topic.")
    known = None if columns is None else columns | COORDINATES
    return Source("kafka", columns=known, options=options, dead_letters=dead if letters.data else None)


def _files(table: Table, format_: str) -> Source:
    path = table.text("path", needed="Name the folder that files come into.")
    if path is not None and local(path) and not re.search(r"[*?{\[]", path) and not Path(path).is_dir():
        table.mistake("path", f"there is no folder {path!r} here. Paths are relative to the current directory.")
    return Source(
        format_,
        path=path,
        columns=_schema(table, needed=format_ != "parquet"),
        options=table.settings("options"),
        files_per_trigger=table.whole("files_per_trigger", 1),
    )


def _synthetic(table: Table, run: Run) -> Source:
    name = table.one_of("dataset", STREAMS, needed=f"Use one of {', '.join(STREAMS)}.")
    arguments = dict(table.table("options").data)
    source = Source(
        "synthetic",
        dataset=name,
        arguments=arguments,
        seed=table.whole("seed", 0) or 0,
        rows=table.whole("rows", 0),
        rows_per_trigger=table.whole("rows_per_trigger", 1),
        rows_per_second=table.whole("rows_per_second", 1),
    )
    if run.every == NOW and source.rows is None:
        table.mistake("rows", f"is missing: the stream never ends, and run.trigger is {NOW!r}. Say how many.")
    if run.every == NOW and source.rows_per_second is not None:
        table.mistake("rows_per_second", f"means nothing with run.trigger = {NOW!r}, which reads all rows at once.")
    if name is None:
        return source
    taken = [word for word in inspect.signature(getattr(generators, name)).parameters if word not in ("rows", "seed")]
    unknown = [word for word in arguments if word not in taken]
    for word in unknown:
        table.mistake(
            f"options.{word}", f"is not an option of {name}. {near(word, taken) if taken else 'It has none.'}"
        )
    if unknown:
        return source
    try:
        rows = endless(name, 0, 1, seed=source.seed, **arguments)
    except (QueryError, TypeError, ValueError) as error:
        table.mistake("options", str(error))
        return source
    return dataclasses.replace(source, columns={field.name: _spark_type(field.type) for field in rows.schema})


def _spark_type(type_: Any) -> str:
    if pa.types.is_timestamp(type_):
        return "timestamp_ntz" if type_.tz is None else "timestamp"
    return {"int64": "bigint", "double": "double", "string": "string"}[str(type_)]


def _schema(table: Table, *, needed: bool) -> dict[str, str] | None:
    """Columns as a table `name = "type"`, or as a text `name type, name type`."""
    example = 'Write a table, such as schema = {flight = "bigint", time = "timestamp", delay = "double"}.'
    given = table.raw("schema", needed=example if needed else "")
    if given is None:
        return None
    if isinstance(given, str):
        columns = {}
        for piece in re.split(r",(?![^<(]*[>)])", given):
            name, _, type_ = piece.strip().partition(" ")
            columns[name.strip("`").rstrip(":")] = type_.strip()
    else:
        columns = dict(table.table("schema").data)
    for name, type_ in columns.items():
        word = type_.lower() if isinstance(type_, str) else ""
        nested = re.fullmatch(r"(decimal\s*(\(.*\))?|(array|map|struct)\s*<.*>)", word)
        if not name or (word not in TYPES and not nested):
            known = [*TYPES, "decimal(p, s)", "array<...>", "map<...>", "struct<...>"]
            table.mistake(f"schema.{name}", f"{type_!r} is not a type. {near(word or '?', known, 'Types')}")
    return columns or None
