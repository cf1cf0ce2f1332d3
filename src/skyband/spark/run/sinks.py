"""The sinks of `skyband run`: each starts a streaming query, and tells afterwards what a batch wrote.

Parquet, json, memory and noop are Spark's own. Console and upsert take each batch on the driver (foreachBatch).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from skyband.errors import RunError
from skyband.pipeline import Pipeline, local
from skyband.spark.run.answer_file import AnswerFile, in_utc


class Spout:
    """A sink. `wrote(batch)`: the rows of that batch as a table, or None where nobody can tell."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.sink = pipeline.sink

    def refuse_another_run(self) -> None:
        """Called when the checkpoint is new: say so if the folder holds what another one has written."""

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        return writer.format(self.sink.format).start()

    def wrote(self, batch: int) -> Any:
        return None

    def current(self) -> Any:
        """The whole answer, where the sink itself holds it."""
        return None


class Console(Spout):
    """Keeps what each batch brought until it is told."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        self._held: dict[int, Any] = {}

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        return writer.foreachBatch(self._hold).start()

    def _hold(self, rows: DataFrame, batch: int) -> None:
        self._held[batch] = in_utc(rows.toArrow())

    def wrote(self, batch: int) -> Any:
        return self._held.pop(batch, None)


class Upsert(Spout):
    """The current answer as a folder of parquet."""

    def __init__(self, pipeline: Pipeline, order: Sequence[str]) -> None:
        super().__init__(pipeline)
        self.file = AnswerFile(str(self.sink.path), pipeline.queries, order)

    def refuse_another_run(self) -> None:
        if self.file.stamp() is not None:
            raise RunError(_another(self.pipeline))

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        return writer.foreachBatch(self._put).start()

    def _put(self, rows: DataFrame, batch: int) -> None:
        query = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        self.file.update(str(query), batch, rows.toArrow())

    def current(self) -> Any:
        return self.file.read() if self.file.stamp() else None


class Files(Spout):
    """Spark's file sinks, which write each batch exactly once, by a log in the folder."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        self._known: set[str] = set()
        self._read: Callable[[list[str]], Any] | None = None

    @property
    def _log(self) -> Path | None:
        return Path(str(self.sink.path), "_spark_metadata") if local(str(self.sink.path)) else None

    def refuse_another_run(self) -> None:
        """Spark would take batch 0 for one that is written already, and silently drop it."""
        if self._log is not None and self._log.exists():
            raise RunError(_another(self.pipeline))

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        reader = out.sparkSession.read.format(self.sink.format).schema(out.schema)
        self._read = lambda files: in_utc(reader.load(files).toArrow())
        return writer.format(self.sink.format).options(**self.sink.options).start(self.sink.path)

    def wrote(self, batch: int) -> Any:
        """What is new in the log; the first time after a restart that is all there is, so changes add up."""
        if self._log is None or self._read is None:
            return None
        entry = next((file for end in ("", ".compact") if (file := self._log / f"{batch}{end}").exists()), None)
        earlier = [] if self._known else [file for file in self._log.glob("[0-9]*") if _number(file) < batch]
        files = [name for file in [*earlier, entry] if file is not None for name in _files(file)]
        fresh = [name for name in dict.fromkeys(files) if name not in self._known]
        self._known.update(fresh)
        return self._read(fresh) if fresh else None


def _number(file: Path) -> int:
    return int(file.name.partition(".")[0])


def _files(entry: Path) -> list[str]:
    lines = entry.read_text(encoding="utf-8").splitlines()[1:]  # the first is the version
    return [unquote(told["path"]) for told in map(json.loads, lines) if told["action"] == "add"]


class Memory(Spout):
    """A table of the session, which grows."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        self._table: Callable[[], Any] | None = None
        self._seen = 0

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        name = str(self.sink.name)
        spark = out.sparkSession
        self._table = lambda: in_utc(spark.table(name).toArrow())
        return writer.format("memory").queryName(name).start()

    def wrote(self, batch: int) -> Any:
        assert self._table is not None
        table = self._table()
        fresh, self._seen = table.slice(self._seen), table.num_rows
        return fresh


def open_sink(pipeline: Pipeline, order: Sequence[str]) -> Spout:
    """The sink of a [sink] table. `order`: the output's columns that say which of two objects came first."""
    if pipeline.sink.format == "upsert":
        return Upsert(pipeline, order)
    kinds: dict[str, type[Spout]] = {"console": Console, "parquet": Files, "json": Files, "memory": Memory}
    return kinds.get(pipeline.sink.format, Spout)(pipeline)


def _another(pipeline: Pipeline) -> str:
    return (
        f"sink.path: {pipeline.sink.path} holds the output of another run, and the checkpoint "
        f"{pipeline.run.checkpoint} is new. Use that run's checkpoint, or another folder for the output."
    )
