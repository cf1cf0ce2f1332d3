"""The sources of `skyband run` as streaming DataFrames; the one of our own is in synthetic.py.

The rows of `skyband.pipeline.sources.SOURCES` name these classes; a new source is a subclass of `Source` and a row
there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, count_if
from pyspark.sql.streaming.query import StreamingQuery

from skyband.errors import RunError
from skyband.pipeline import Pipeline
from skyband.pipeline.sources import SOURCES
from skyband.pipeline.subscriptions import FORMATS

MALFORMED = "skyband malformed"  # the name under which a source observes how many rows could not be read
CORRUPT = "skyband corrupt"  # the column for what Spark could not read
_NAME = "columnNameOfCorruptRecord"


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
