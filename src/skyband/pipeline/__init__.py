"""The file that `skyband run` takes: read, checked as a whole, and handed on as one value. No Spark here.

All mistakes are found before anything starts, and told together, each with its key: `source.format`, `queries.day.k`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skyband.errors import QueryError
from skyband.pipeline.places import read_run, read_sink
from skyband.pipeline.queries import read_queries
from skyband.pipeline.sources import read_source
from skyband.pipeline.stream import read_stream
from skyband.pipeline.table import Table
from skyband.pipeline.values import NOW, DeadLetters, Pipeline, Run, Sink, Source, local

__all__ = [
    "NOW",
    "DeadLetters",
    "Pipeline",
    "Run",
    "Sink",
    "Source",
    "local",
    "pipeline_of",
    "read_pipeline",
]


def read_pipeline(file: str | Path) -> Pipeline:
    """The pipeline of a TOML file, or a QueryError that tells every mistake in it."""
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
    output = top.one_of("output", ("changes", "answers"), "changes") or "changes"
    given_run = read_run(top.table("run"))
    source = read_source(top.table("source"), given_run)
    queries = read_queries(top.table("queries"))
    sink = read_sink(top.table("sink"), output)
    stream = read_stream(top.table("stream"), queries, source, sink)
    top.end()
    _together(top, source, sink, given_run)
    if mistakes:
        count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        told = [mistake.replace("\n", "\n    ") for mistake in mistakes]
        raise QueryError("\n  ".join([f"{name} has {count}:", *told]))
    return Pipeline(name, source, queries, stream, output, sink, given_run)


def _together(top: Table, source: Source, sink: Sink, run: Run) -> None:
    """What is wrong only between tables."""
    if sink.format in ("parquet", "json", "upsert", "kafka") and run.checkpoint is None:
        top.mistake(
            "run.checkpoint", f"is missing: the sink {sink.format} goes on where it stopped. Name a folder for it."
        )
    if sink.format == "memory" and run.checkpoint is not None:
        top.mistake("run.checkpoint", "the sink memory forgets, so nothing can resume. Leave it out.")
    dead = source.dead_letters
    if dead is not None and run.checkpoint is None:
        top.mistake("run.checkpoint", "is missing: dead letters are kept once each. Name a folder for it.")
    if dead is not None and dead.topic is not None and dead.topic == sink.topic:
        top.mistake("source.dead_letters.topic", f"{dead.topic!r} is sink.topic. Name another topic.")
    folders = {"source.path": source.path, "sink.path": sink.path, "run.checkpoint": run.checkpoint}
    folders["source.dead_letters.path"] = None if dead is None else dead.path
    places = {key: Path(path).resolve() for key, path in folders.items() if path is not None and local(path)}
    for key, place in places.items():
        for other, below in places.items():
            if key != other and ((below == place and key < other) or place in below.parents):
                top.mistake(other, f"{folders[other]!r} lies in {key}, {folders[key]!r}. Keep the folders apart.")
