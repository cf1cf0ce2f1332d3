"""The source of generated rows, `format = "synthetic"`: a seeded stream without end, as a data source of Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from skyband.datasets import endless
from skyband.errors import RunError
from skyband.spark.run.sources import Source
from skyband.spark.session import partitions_of

try:
    from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # before 4.2 a source in Python cannot say how many rows a trigger takes
    raise RunError(
        f"source.format = 'synthetic' needs PySpark 4.2 or later, and this is {pyspark.__version__}. "
        "Install a later one, or read files."
    ) from None

_CHUNK = 1 << 14  # rows of an Arrow batch
_MOST = 100_000  # rows of a trigger where nothing else limits it: the stream never ends


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
