"""[source]: where rows come from. `SOURCES` has one row per format; a new one is a row here and a class that reads."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from skyband.datasets import endless, generators
from skyband.datasets.streams import STREAMS
from skyband.errors import QueryError
from skyband.pipeline.formats import BROKERS, Format, Reader, options, read_format, whole
from skyband.pipeline.table import Table, near
from skyband.pipeline.values import NOW, Run, SinkSettings, SourceSettings, local

Columns = dict[str, str]  # name to type in Spark's SQL

INTEGERS = ("byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint")
TIMES = ("timestamp", "timestamp_ntz", "timestamp_ltz")
TYPES = (*INTEGERS, "float", "real", "double", "boolean", "string", "binary", "date", *TIMES)
# of a Kafka message: columns beside those of its JSON; `kafka_id` is "topic-partition-offset"
COORDINATES = {
    "kafka_timestamp": "timestamp",
    "kafka_topic": "string",
    "kafka_partition": "int",
    "kafka_offset": "bigint",
    "kafka_key": "string",
    "kafka_id": "string",
}


def _declared(table: Table, values: dict[str, Any]) -> Columns | None:
    return values["schema"]  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class SourceFormat(Format):
    """A row of `SOURCES`.

    columns: the columns of the rows, where they are known before the run (None: they are not). extra: columns that the
    source adds. stream: defaults of [stream]. check: finds mistakes between this source and the tables [sink] and
    [run].
    """

    columns: Callable[[Table, dict[str, Any]], Columns | None] = _declared
    extra: Mapping[str, str] = field(default_factory=dict)
    stream: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Table, SourceSettings, SinkSettings, Run], None] = lambda *_: None


def _folder(table: Table, key: str) -> str | None:
    path = table.text(key, needed="Name the folder that files come into.")
    if path is not None and local(path) and not re.search(r"[*?{\[]", path) and not Path(path).is_dir():
        table.mistake(key, f"there is no folder {path!r} here. Paths are relative to the current directory.")
    return path


def _schema(*, needed: bool) -> Reader:
    """Columns as a table `name = "type"`, or as a text `name type, name type`."""
    example = 'Write a table, such as schema = {flight = "bigint", time = "timestamp", delay = "double"}.'

    def read(table: Table, key: str) -> Columns | None:
        given = table.raw(key, needed=example if needed else "")
        if given is None:
            return None
        columns = _columns_of_text(given) if isinstance(given, str) else dict(table.table(key).data)
        for name, type_ in columns.items():
            word = type_.lower() if isinstance(type_, str) else ""
            nested = re.fullmatch(r"(decimal\s*(\(.*\))?|(array|map|struct)\s*<.*>)", word)
            if not name or (word not in TYPES and not nested):
                known = [*TYPES, "decimal(p, s)", "array<...>", "map<...>", "struct<...>"]
                table.mistake(f"{key}.{name}", f"{type_!r} is not a type. {near(word or '?', known, 'Types')}")
        return columns or None

    return read


def _columns_of_text(given: str) -> Columns:
    columns = {}
    for piece in re.split(r",(?![^<(]*[>)])", given):
        name, _, type_ = piece.strip().partition(" ")
        columns[name.strip("`").rstrip(":")] = type_.strip()
    return columns


def _kafka_schema(table: Table, key: str) -> Columns | None:
    columns: Columns | None = _schema(needed=True)(table, key)
    for name in (columns or {}).keys() & COORDINATES.keys():
        table.mistake(f"{key}.{name}", f"is what the message's own {name[6:]} is called. Rename the field.")
    return columns


def _kafka_options(table: Table, key: str) -> dict[str, str]:
    found: dict[str, str] = options(needed={BROKERS: '"localhost:9092"'})(table, key)
    if not found.keys() & {"subscribe", "subscribePattern", "assign"}:
        table.mistake(key, 'say which topics, such as subscribe = "flights".')
    return found


def _dead_letters(table: Table, key: str) -> dict[str, str | None] | None:
    """Where messages go that cannot be read: a topic or a folder."""
    inner = table.table(key)
    found = {"topic": inner.text("topic"), "path": inner.text("path")}
    inner.end()
    if inner.data and (found["topic"] is None) == (found["path"] is None):
        table.mistake(key, 'name a topic or a folder, such as dead_letters = { path = "out/malformed" }.')
    return found if inner.data else None


def _check_kafka(top: Table, source: SourceSettings, sink: SinkSettings, run: Run) -> None:
    letters = source.values["dead_letters"]
    if letters is None:
        return
    if run.checkpoint is None:
        top.mistake("run.checkpoint", "is missing: dead letters are kept once each. Name a folder for it.")
    topic = letters["topic"]
    if topic is not None and topic in source.values["options"].get("subscribe", "").split(","):
        top.mistake("source.dead_letters.topic", f"{topic!r} is what is read. Name another topic.")
    if topic is not None and topic == sink.values.get("topic"):
        top.mistake("source.dead_letters.topic", f"{topic!r} is sink.topic. Name another topic.")


def _check_rate(top: Table, source: SourceSettings, sink: SinkSettings, run: Run) -> None:
    if run.every == NOW:
        top.mistake("source.format", f"a rate never ends, so run.trigger cannot be {NOW!r}. Give an interval.")


def _check_synthetic(top: Table, source: SourceSettings, sink: SinkSettings, run: Run) -> None:
    if run.every == NOW and source.values["rows"] is None:
        top.mistake("source.rows", f"is missing: the stream never ends, and run.trigger is {NOW!r}. Say how many.")
    if run.every == NOW and source.values["rows_per_second"] is not None:
        top.mistake(
            "source.rows_per_second", f"means nothing with run.trigger = {NOW!r}, which reads all rows at once."
        )


def _synthetic_columns(table: Table, values: dict[str, Any]) -> Columns | None:
    """The columns of the dataset's first row; its arguments are checked on the way."""
    name, arguments = values["dataset"], values["options"]
    if name is None:
        return None
    taken = [word for word in inspect.signature(getattr(generators, name)).parameters if word not in ("rows", "seed")]
    unknown = [word for word in arguments if word not in taken]
    for word in unknown:
        hint = near(word, taken) if taken else "It has none."
        table.mistake(f"options.{word}", f"is not an option of {name}. {hint}")
    if unknown:
        return None
    try:
        rows = endless(name, 0, 1, seed=values["seed"] or 0, **arguments)
    except (QueryError, TypeError, ValueError) as error:
        table.mistake("options", str(error))
        return None
    return {column.name: _spark_type(column.type) for column in rows.schema}


def _spark_type(type_: Any) -> str:
    if pa.types.is_timestamp(type_):
        return "timestamp_ntz" if type_.tz is None else "timestamp"
    return {"int64": "bigint", "double": "double", "string": "string"}[str(type_)]


def _files(*, schema_needed: bool) -> SourceFormat:
    keys = {"path": _folder, "schema": _schema(needed=schema_needed), "options": options()}
    return SourceFormat(runs="skyband.spark.run.sources:Files", keys={**keys, "files_per_trigger": whole(1)})


SOURCES: dict[str, SourceFormat] = {
    "parquet": _files(schema_needed=False),
    "csv": _files(schema_needed=True),
    "json": _files(schema_needed=True),
    "rate": SourceFormat(
        runs="skyband.spark.run.sources:Rate",
        keys={"rows_per_second": whole(1), "options": options()},
        columns=lambda *_: {},
        extra={"timestamp": "timestamp", "value": "bigint"},
        check=_check_rate,
    ),
    "synthetic": SourceFormat(
        runs="skyband.spark.run.synthetic:Synthetic",
        keys={
            "dataset": lambda table, key: table.one_of(key, STREAMS, needed=f"Use one of {', '.join(STREAMS)}."),
            "options": lambda table, key: dict(table.table(key).data),
            "seed": whole(0),
            "rows": whole(0),
            "rows_per_trigger": whole(1),
            "rows_per_second": whole(1),
        },
        columns=_synthetic_columns,
        check=_check_synthetic,
    ),
    "kafka": SourceFormat(
        runs="skyband.spark.run.kafka:KafkaSource",
        keys={"schema": _kafka_schema, "options": _kafka_options, "dead_letters": _dead_letters},
        extra=COORDINATES,
        stream={"id": "kafka_id", "order": ("kafka_timestamp", "kafka_partition", "kafka_offset")},
        check=_check_kafka,
    ),
}


def read_source(table: Table) -> SourceSettings:
    """Read [source]."""
    name, values = read_format(table, SOURCES)
    if name is None:
        return SourceSettings("none", None, {}, {})
    row = SOURCES[name]
    return SourceSettings(name, row.columns(table, values), dict(row.extra), values)


def check_source(top: Table, source: SourceSettings, sink: SinkSettings, run: Run) -> None:
    """Check the source against the other tables."""
    if source.format in SOURCES:
        SOURCES[source.format].check(top, source, sink, run)
