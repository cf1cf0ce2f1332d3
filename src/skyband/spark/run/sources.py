"""The sources of `skyband run` as streaming DataFrames, and one of our own: a seeded stream without end.

The rows of `skyband.pipeline.sources.SOURCES` name these classes; a new source is a subclass of `Source` and a row
there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.functions import col, count_if
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.streaming.query import StreamingQuery

from skyband.datasets import endless
from skyband.errors import RunError
from skyband.pipeline import Pipeline
from skyband.pipeline.sources import SOURCES
from skyband.pipeline.subscriptions import FORMATS
from skyband.spark.session import partitions_of

MALFORMED = "skyband malformed"  # the name under which a source observes how many rows could not be read
CORRUPT = "skyband corrupt"  # the column for what Spark could not read
_NAME = "columnNameOfCorruptRecord"
_CHUNK = 1 << 14  # rows of an Arrow batch
_MOST = 100_000  # rows of a trigger where nothing else limits it: the stream never ends


class Source:
    """A source: the stream of a [source] table."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.settings = pipeline.source.values
        self.key = "source"  # of the file, for messages
        self.static = False  # a table that is read at the start, not a stream
        self.observed = MALFORMED  # the name under which it observes how many rows could not be read

    def reader(self, spark: SparkSession) -> Any:
        """Of a stream, or of a table."""
        return spark.read if self.static else spark.readStream

    def read(self, spark: SparkSession) -> DataFrame:
        """The rows, as a streaming DataFrame."""
        raise NotImplementedError

    def good(self, rows: DataFrame, malformed: Column) -> DataFrame:
        """The rows that could be read; how many could not is observed. A static table is taken as a whole."""
        if not self.static:
            return rows.observe(self.observed, count_if(malformed).alias("malformed")).where(~malformed)
        if bad := rows.where(malformed).take(1):
            raise RunError(
                f"{self.key}: {bad[0][CORRUPT]!r:.200} cannot be read as a row. Correct it; nothing was taken."
            )
        return rows

    def start_dead_letters(self, spark: SparkSession, checkpoint: str) -> StreamingQuery | None:
        """Start the query that writes what could not be read somewhere else, if the file names a place for it."""
        return None


def open_source(pipeline: Pipeline) -> Source:
    """The source of a pipeline's [source] table."""
    source: Source = SOURCES[pipeline.source.format].load()(pipeline)
    return source


def open_subscriptions(pipeline: Pipeline, spark: SparkSession) -> dict[str, DataFrame]:
    """The DataFrames of a pipeline's [subscriptions] tables, by query."""
    frames = {}
    for name, settings in pipeline.subscriptions.items():
        source: Source = FORMATS[settings.format].load()(replace(pipeline, source=settings))
        source.key, source.static = f"subscriptions.{name}", not settings.values["streaming"]
        source.observed = f"{MALFORMED} {name}"
        frames[name] = source.read(spark)
    return frames


class CatalogTable(Source):
    """A table of Spark's catalog."""

    def read(self, spark: SparkSession) -> DataFrame:
        try:
            rows: DataFrame = self.reader(spark).table(self.settings["name"])
        except AnalysisException as error:
            raise RunError(f"{self.key}.name: {str(error).splitlines()[0]}") from None
        return rows


class Rate(Source):
    """Spark's rate: a row number and a timestamp, so many a second."""

    def read(self, spark: SparkSession) -> DataFrame:
        options = {"rowsPerSecond": str(self.settings["rows_per_second"] or 1), **self.settings["options"]}
        return spark.readStream.format("rate").options(**options).load()


class Files(Source):
    """Files that come into a folder."""

    def read(self, spark: SparkSession) -> DataFrame:
        format_, options = self.pipeline.source.format, dict(self.settings["options"])
        if format_ == "csv":
            # Spark would skip a header and take columns by their place; so that a wrong place is an error:
            options = {"header": "true", "enforceSchema": "false", **options}
        if self.settings["files_per_trigger"] is not None and not self.static:
            options["maxFilesPerTrigger"] = str(self.settings["files_per_trigger"])
        schema = self.pipeline.source.schema or self._schema_of_files(spark)
        counted = format_ != "parquet" and not {"mode", _NAME} & options.keys()  # else by the file's own choice
        if counted:
            schema, options[_NAME] = f"{schema}, `{CORRUPT}` string", CORRUPT
        rows: DataFrame = (
            self.reader(spark).format(format_).schema(schema).options(**options).load(self.settings["path"])
        )
        return self.good(rows, col(f"`{CORRUPT}`").isNotNull()).drop(CORRUPT) if counted else rows

    def _schema_of_files(self, spark: SparkSession) -> Any:
        path = self.settings["path"]
        try:
            return spark.read.options(**self.settings["options"]).parquet(path).schema
        except AnalysisException as error:
            raise RunError(
                f"{self.key}.path: {path} holds no parquet file yet to take the columns from. Write {self.key}.schema. "
                f"({str(error).splitlines()[0]})"
            ) from None


class Synthetic(Source):
    """A generator of `skyband.datasets`."""

    def read(self, spark: SparkSession) -> DataFrame:
        spark.dataSource.register(EndlessSource)
        given = {**self.settings, "parts": partitions_of(spark)}
        reader = spark.readStream.format(EndlessSource.name()).option("stream", json.dumps(given))
        return reader.schema(str(self.pipeline.source.schema)).load()


class EndlessSource(DataSource):
    """`skyband.datasets.endless` as a source of Spark. An offset is a row's number, so a replay gives the same rows."""

    @classmethod
    def name(cls) -> str:
        return "skyband"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return EndlessReader(**json.loads(self.options["stream"]))


class Rows(InputPartition):
    """The rows `start` to `stop`, for one task."""

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop


class EndlessReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Decides how far a trigger goes, and generates its rows. The arguments are the keys of [source]."""

    def __init__(
        self,
        *,
        dataset: str,
        options: dict[str, Any],
        seed: int | None,
        rows: int | None,
        rows_per_trigger: int | None,
        rows_per_second: int | None,
        parts: int,
    ) -> None:
        self.dataset, self.seed, self.options = dataset, seed or 0, options
        self.rows, self.rows_per_trigger, self.rows_per_second = rows, rows_per_trigger, rows_per_second
        self.parts = parts
        self._begun: tuple[float, int] | None = None  # the time of this run's first trigger, and its first row

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.rows_per_trigger or _MOST)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        at = start["row"]
        ends = [] if self.rows is None else [self.rows]
        if self.rows_per_second is not None:
            began, first = self._begun = self._begun or (time.monotonic(), at)
            ends.append(first + int((time.monotonic() - began + 1) * self.rows_per_second))
        if isinstance(limit, ReadMaxRows):
            ends.append(at + limit.max_rows)
        return {"row": max(at, min(ends))}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        assert self.rows is not None  # the file's check

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        first, last = start["row"], end["row"]
        size = max(-(-(last - first) // self.parts), _CHUNK)
        return [Rows(begin, min(begin + size, last)) for begin in range(first, last, size)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Rows)
        for begin in range(partition.start, partition.stop, _CHUNK):
            end = min(begin + _CHUNK, partition.stop)
            yield from endless(self.dataset, begin, end, seed=self.seed, **self.options).to_batches()
