"""The file that `skyband run` takes: read, checked as a whole, and returned as one value. No Spark here.

All mistakes are found before anything starts, and reported together, each with its key: `source.format`,
`queries.day.k`. Sources and sinks are rows of `sources.SOURCES` and `sinks.SINKS`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from skyband.errors import QueryError
from skyband.pipeline.queries import read_queries
from skyband.pipeline.run import read_run
from skyband.pipeline.sinks import check_sink, read_sink
from skyband.pipeline.sources import check_source, read_source
from skyband.pipeline.stream import read_stream
from skyband.pipeline.subscriptions import read_subscriptions
from skyband.pipeline.table import Table
from skyband.pipeline.values import NOW, Pipeline, Run, SinkSettings, SourceSettings, local

__all__ = [
    "NOW",
    "Pipeline",
    "Run",
    "SinkSettings",
    "SourceSettings",
    "local",
    "pipeline_of",
    "read_pipeline",
]


def read_pipeline(file: str | Path) -> Pipeline:
    """Read the pipeline of a TOML file; a QueryError lists every mistake in it."""
    path = Path(file)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise QueryError(f"{path}: {error.strerror}. Give the path of a pipeline's TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise QueryError(f"{path} is not TOML: {error}.") from None
    return pipeline_of(data, path.name)


def pipeline_of(data: Mapping[str, Any], name: str = "the pipeline") -> Pipeline:
    """The same from a mapping, such as TOML or JSON gives."""
    mistakes: list[str] = []
    top = Table("", data, mistakes)
    output = cast(Literal["changes", "answers"], top.one_of("output", ("changes", "answers"), "changes") or "changes")
    run = read_run(top.table("run"))
    source = read_source(top.table("source"))
    queries = read_queries(top.table("queries"))
    subscriptions = read_subscriptions(top.table("subscriptions"), queries)
    sink = read_sink(top.table("sink"), output)
    stream = read_stream(top.table("stream"), queries, source, sink)
    top.end()
    check_source(top, source, sink, run)
    check_sink(top, sink, queries, run)
    _check_folders(top, source, subscriptions, sink, run)
    if mistakes:
        count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        listed = [mistake.replace("\n", "\n    ") for mistake in mistakes]
        raise QueryError("\n  ".join([f"{name} has {count}:", *listed]))
    return Pipeline(name, source, queries, stream, output, sink, run, subscriptions)


def _check_folders(
    top: Table, source: SourceSettings, subscriptions: Mapping[str, SourceSettings], sink: SinkSettings, run: Run
) -> None:
    """No folder may lie in another one."""
    folders = {"run.checkpoint": run.checkpoint}
    folders |= dict(_paths("source", source.values)) | dict(_paths("sink", sink.values))
    for name, settings in subscriptions.items():
        folders |= dict(_paths(f"subscriptions.{name}", settings.values))
    places = {key: Path(path).resolve() for key, path in folders.items() if path is not None and local(path)}
    for key, place in places.items():
        for other, below in places.items():
            if key != other and ((below == place and key < other) or place in below.parents):
                top.mistake(other, f"{folders[other]!r} lies in {key}, {folders[key]!r}. Keep the folders apart.")


def _paths(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """The keys called `path`, in a table and in the tables inside it."""
    for key, value in values.items():
        if key == "path":
            yield f"{name}.{key}", value
        elif isinstance(value, Mapping) and key != "options":
            yield from _paths(f"{name}.{key}", value)
