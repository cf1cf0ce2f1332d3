"""A pipeline as values: source, queries, subscriptions, stream, sink, run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from skyband.query.kinds import Query

NOW = "availableNow"


@dataclass(frozen=True)
class SourceSettings:
    """[source]. `declared` and `extra`: columns, name to type in Spark's SQL; `values`: the other keys.

    `declared` is None where the columns are not known before the run; `extra` is what the source adds to them.
    """

    format: str
    declared: dict[str, str] | None
    extra: dict[str, str]
    values: dict[str, Any]

    @property
    def columns(self) -> dict[str, str] | None:
        """All columns of the rows, if they are known."""
        return None if self.declared is None else self.declared | self.extra

    @property
    def schema(self) -> str | None:
        """The declared columns in Spark's DDL."""
        if self.declared is None:
            return None
        return ", ".join(f"`{name.replace('`', '``')}` {type_}" for name, type_ in self.declared.items())


@dataclass(frozen=True)
class SinkSettings:
    """[sink]. `values`: the other keys of the table."""

    format: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """[run]. `every`: milliseconds between triggers, NOW, or None for one after the other."""

    checkpoint: str | None
    every: int | str | None
    master: str
    log: str | None
    spark: dict[str, str]


@dataclass(frozen=True)
class Pipeline:
    """A whole file. `stream`: the arguments of `skyband.spark.monitor` beside the queries."""

    name: str
    source: SourceSettings
    queries: dict[str, Query]
    stream: dict[str, Any]
    output: Literal["changes", "answers"]
    sink: SinkSettings
    run: Run
    subscriptions: dict[str, SourceSettings] = field(default_factory=dict)  # by query with `Each`


def local(path: str) -> bool:
    """Whether a path is on this machine's file system: it names no scheme."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", path) is None
