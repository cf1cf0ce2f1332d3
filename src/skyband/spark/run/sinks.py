"""The sinks of `skyband run`: each starts a streaming query, and reports afterwards what a batch wrote.

Parquet, json, memory and noop are Spark's own. Console and upsert take each batch on the driver (foreachBatch). The
rows of `skyband.pipeline.sinks.SINKS` name these classes; a new sink is a subclass of `Sink` and a row there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from skyband.errors import RunError
from skyband.pipeline import NOW, Pipeline, Run, local
from skyband.pipeline.sinks import SINKS
from skyband.query.validation import RESERVED
from skyband.spark.pipeline import answers, monitor
from skyband.spark.run.answer_file import AnswerFile, in_utc


class Sink:
    """A sink. This one, Spark's own by the name of the format, keeps nothing that could be read back."""

    to_stdout = False  # the rows of a batch are part of what `skyband run` prints; an earlier run's cannot be read

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.settings = pipeline.sink.values
        self.subscriptions: dict[str, DataFrame] = {}  # by query with `Each`
        self.checkpoint: str | None = None  # one that the run resumes: the queries are checked against it

    def output(self, rows: DataFrame) -> DataFrame:
        """The DataFrame to write, of the rows of the source: changes or answers."""
        make = answers if self.pipeline.output == "answers" else monitor
        return make(
            rows,
            self.pipeline.queries,
            **self.pipeline.stream,
            metrics="skyband",
            subscriptions=self.subscriptions,
            checkpoint=self.checkpoint,
        )

    def refuse_another_run(self) -> None:
        """Called when the checkpoint is new: raise a RunError if the sink holds what another run has written."""

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        """Start the streaming query that writes `out`."""
        return writer.format(self.pipeline.sink.format).start()

    def wrote(self, batch: int) -> pa.Table | None:
        """The rows that this batch wrote; None: not known."""
        return None

    def current(self) -> pa.Table | None:
        """The whole answer, if the sink itself holds it."""
        return None


class Console(Sink):
    """Keeps what each batch brought until it is printed."""

    to_stdout = True

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        self._held: dict[int, pa.Table] = {}

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        return writer.foreachBatch(self._hold).start()

    def _hold(self, rows: DataFrame, batch: int) -> None:
        self._held[batch] = in_utc(rows.toArrow())

    def wrote(self, batch: int) -> pa.Table | None:
        return self._held.pop(batch, None)


class Upsert(Sink):
    """The current answer as a folder of parquet."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        self.file = AnswerFile(self.settings["path"], pipeline.queries)

    def output(self, rows: DataFrame) -> DataFrame:
        """Changes with the object's own time (theirs is that of the step), and the columns that order objects."""
        queries, stream = self.pipeline.queries, self.pipeline.stream
        id_, time = stream["id"], stream.get("time")
        keep = list(stream.get("keep", ()))
        used = {*RESERVED, *keep, *(name for query in queries.values() for name in query.per_columns)}
        order = stream.get("order") or [name for name in (time, id_) if name is not None]
        keep += [name for name in order if name not in (time, id_) and name not in used]
        shown = {id_: "id"} | ({} if time is None else {time: "time"})
        self.file.order = [shown.get(name, name) for name in order if name in (id_, time, *keep)]
        if time is None:
            return monitor(rows, queries, **{**stream, "keep": keep}, metrics="skyband", checkpoint=self.checkpoint)
        own = "own time"
        while own in rows.columns:
            own += " "
        rows = rows.withColumn(own, col(_quoted(time)))
        kept = {**stream, "keep": [*keep, own]}
        out = monitor(rows, queries, **kept, metrics="skyband", checkpoint=self.checkpoint)
        names = [name for name in out.columns if name not in ("time", own)]
        names.insert(names.index("id") + 1, own)  # as in an answer; in changes `time` comes before `id`
        return out.select(*[col(_quoted(name)).alias("time" if name == own else name) for name in names])

    def refuse_another_run(self) -> None:
        if self.file.stamp() is not None:
            raise RunError(_another(self.pipeline))

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        return writer.foreachBatch(self._put).start()

    def _put(self, rows: DataFrame, batch: int) -> None:
        query = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        self.file.update(str(query), batch, rows.toArrow())

    def current(self) -> pa.Table | None:
        return self.file.read() if self.file.stamp() else None


class Files(Sink):
    """Spark's file sinks, which write each batch exactly once, by a log in the folder."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        self.path: str = self.settings["path"]
        self._known: set[str] = set()
        self._read: Callable[[list[str]], pa.Table] | None = None

    @property
    def _log(self) -> Path | None:
        return Path(self.path, "_spark_metadata") if local(self.path) else None

    def refuse_another_run(self) -> None:
        """Spark would take batch 0 for one that is written already, and silently drop it."""
        if self._log is not None and self._log.exists():
            raise RunError(_another(self.pipeline))

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        format_ = self.pipeline.sink.format
        reader = out.sparkSession.read.format(format_).schema(out.schema)
        self._read = lambda files: in_utc(reader.load(files).toArrow())
        return writer.format(format_).options(**self.settings["options"]).start(self.path)

    def wrote(self, batch: int) -> pa.Table | None:
        """What is new in the log: all that there is the first time after a restart, so that changes add up."""
        if self._log is None or self._read is None:
            return None
        entry = next((file for end in ("", ".compact") if (file := self._log / f"{batch}{end}").exists()), None)
        earlier = [] if self._known else [file for file in self._log.glob("[0-9]*") if _number(file) < batch]
        files = [name for file in [*earlier, entry] if file is not None for name in _added(file)]
        fresh = [name for name in dict.fromkeys(files) if name not in self._known]
        self._known.update(fresh)
        return self._read(fresh) if fresh else None


def _number(file: Path) -> int:
    return int(file.name.partition(".")[0])


def _added(entry: Path) -> list[str]:
    """The files that an entry of Spark's log adds."""
    lines = entry.read_text(encoding="utf-8").splitlines()[1:]  # the first is the version
    return [unquote(line["path"]) for line in map(json.loads, lines) if line["action"] == "add"]


class Memory(Sink):
    """A table of the session, which grows."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        self._table: Callable[[], pa.Table] | None = None
        self._seen = 0

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        name, spark = self.settings["name"], out.sparkSession
        self._table = lambda: in_utc(spark.table(name).toArrow())
        return writer.format("memory").queryName(name).start()

    def wrote(self, batch: int) -> pa.Table | None:
        assert self._table is not None
        table = self._table()
        fresh, self._seen = table.slice(self._seen), table.num_rows
        return fresh


def open_sink(pipeline: Pipeline) -> Sink:
    """The sink of a pipeline's [sink] table."""
    sink: Sink = SINKS[pipeline.sink.format].load()(pipeline)
    return sink


def with_trigger(writer: DataStreamWriter, run: Run) -> DataStreamWriter:
    """Set the trigger of [run]."""
    if run.every == NOW:
        return writer.trigger(availableNow=True)
    return writer if run.every is None else writer.trigger(processingTime=f"{run.every} milliseconds")


def _another(pipeline: Pipeline) -> str:
    return (
        f"sink.path: {pipeline.sink.values['path']} holds the output of another run, and the checkpoint "
        f"{pipeline.run.checkpoint} is new. Use that run's checkpoint, or another folder for the output."
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
