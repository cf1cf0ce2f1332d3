"""The sources of `skyband run` as streaming DataFrames, and a source of our own: a seeded stream without end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from skyband.datasets import endless
from skyband.errors import RunError
from skyband.pipeline import Source
from skyband.spark.run.kafka import read_kafka

_CHUNK = 1 << 14  # rows of an Arrow batch
_MOST = 100_000  # rows of a trigger where nothing else is said: the stream itself would never end


def read(spark: SparkSession, source: Source) -> DataFrame:
    """The stream of a [source] table."""
    if source.format == "synthetic":
        return _synthetic(spark, source)
    if source.format == "kafka":
        return read_kafka(spark, source)
    reader = spark.readStream.format(source.format)
    if source.format == "rate":
        return reader.options(**{"rowsPerSecond": str(source.rows_per_second or 1), **source.options}).load()
    options = dict(source.options)
    if source.format == "csv":
        # Spark would skip a header and take columns by their place; so that a wrong place is an error:
        options = {"header": "true", "enforceSchema": "false", **options}
    if source.files_per_trigger is not None:
        options["maxFilesPerTrigger"] = str(source.files_per_trigger)
    schema = source.schema if source.schema is not None else _schema_of_files(spark, source)
    return reader.schema(schema).options(**options).load(source.path)


def _schema_of_files(spark: SparkSession, source: Source) -> Any:
    try:
        return spark.read.options(**source.options).parquet(str(source.path)).schema
    except AnalysisException as error:
        raise RunError(
            f"source.path: {source.path} holds no parquet file yet to take the columns from. Write source.schema. "
            f"({str(error).splitlines()[0]})"
        ) from None


def _synthetic(spark: SparkSession, source: Source) -> DataFrame:
    spark.dataSource.register(Synthetic)
    told = {
        "dataset": source.dataset,
        "seed": source.seed,
        "arguments": source.arguments,
        "rows": source.rows,
        "rows_per_trigger": source.rows_per_trigger,
        "rows_per_second": source.rows_per_second,
        "parts": spark.sparkContext.defaultParallelism,
    }
    reader = spark.readStream.format(Synthetic.name()).option("stream", json.dumps(told))
    return reader.schema(str(source.schema)).load()


class Synthetic(DataSource):
    """`skyband.datasets.endless` as a source of Spark. An offset is a row's number, so a replay gives the same rows."""

    @classmethod
    def name(cls) -> str:
        return "skyband"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return Stretches(**json.loads(self.options["stream"]))


class Stretch(InputPartition):
    """Rows `start` to `stop`, for one task."""

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop


class Stretches(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Decides how far a trigger goes, and makes its rows."""

    def __init__(
        self,
        *,
        dataset: str,
        seed: int,
        arguments: dict[str, Any],
        rows: int | None,
        rows_per_trigger: int | None,
        rows_per_second: int | None,
        parts: int,
    ) -> None:
        self.dataset, self.seed, self.arguments = dataset, seed, arguments
        self.rows, self.rows_per_trigger, self.rows_per_second = rows, rows_per_trigger, rows_per_second
        self.parts = parts
        self._begun: tuple[float, int] | None = None  # when this run first asked, and the row it was at

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
        return [Stretch(begin, min(begin + size, last)) for begin in range(first, last, size)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Stretch)
        for begin in range(partition.start, partition.stop, _CHUNK):
            end = min(begin + _CHUNK, partition.stop)
            yield from endless(self.dataset, begin, end, seed=self.seed, **self.arguments).to_batches()
