"""A pipeline as values: source, queries, stream, sink, run."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from skyband.query.kinds import Query

FILES = ("parquet", "csv", "json")
NOW = "availableNow"
# of a Kafka message: columns beside those of its JSON; `kafka_id` is "topic-partition-offset"
COORDINATES = {
    "kafka_timestamp": "timestamp",
    "kafka_topic": "string",
    "kafka_partition": "int",
    "kafka_offset": "bigint",
    "kafka_key": "string",
    "kafka_id": "string",
}


@dataclass(frozen=True)
class DeadLetters:
    """Where messages go that cannot be read: one of the two."""

    topic: str | None
    path: str | None


@dataclass(frozen=True)
class Source:
    """Where rows come from. `columns`: name to type in Spark's SQL, where they are known beforehand."""

    format: str
    path: str | None = None
    columns: dict[str, str] | None = None
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    files_per_trigger: int | None = None
    dataset: str | None = None  # synthetic, as are all below
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    seed: int = 0
    rows: int | None = None
    rows_per_trigger: int | None = None
    rows_per_second: int | None = None  # rate, too
    dead_letters: DeadLetters | None = None  # kafka

    @property
    def schema(self) -> str | None:
        """The columns in Spark's DDL."""
        columns = self.payload
        if columns is None:
            return None
        return ", ".join(f"`{name.replace('`', '``')}` {type_}" for name, type_ in columns.items())

    @property
    def payload(self) -> dict[str, str] | None:
        """The columns that the source is asked for; Kafka's own come without."""
        if self.columns is None or self.format != "kafka":
            return self.columns
        return {name: type_ for name, type_ in self.columns.items() if name not in COORDINATES}


@dataclass(frozen=True)
class Sink:
    """Where the output goes."""

    format: str
    path: str | None
    options: dict[str, str]
    name: str | None
    topic: str | None = None  # kafka


@dataclass(frozen=True)
class Run:
    """How it runs. `every`: milliseconds between triggers, NOW, or None for one after the other."""

    checkpoint: str | None
    every: int | str | None
    master: str
    log: str | None
    spark: dict[str, str]


@dataclass(frozen=True)
class Pipeline:
    """A whole file. `stream`: what is said to `skyband.spark.monitor` beside the queries."""

    name: str
    source: Source
    queries: dict[str, Query]
    stream: dict[str, Any]
    output: str
    sink: Sink
    run: Run


def local(path: str) -> bool:
    """Whether a path is of this machine's files: it names no scheme."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", path) is None
