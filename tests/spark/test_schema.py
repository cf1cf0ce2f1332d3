"""Types that a query cannot use are refused when it is planned, with an error that names the column."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import skyband as sb
import skyband.spark as sbs
from skyband.errors import QueryError
from spark.frames import flights, stream, write

ONE: dict[str, Any] = {"k": 1, "window": sb.Last(5)}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    """Fails as soon as a job runs over it."""
    return spark.range(1).selectExpr(
        "id",
        "CAST(raise_error('a job ran') AS DOUBLE) AS x",
        "'a' AS word",
        "true AS flag",
        "array(1) AS list",
        "map('a', 1) AS map",
        "named_struct('y', 1.5D, 'z', 'a') AS nested",
        "timestamp '2024-01-01 00:00:00' AS ts",
        "CAST(NULL AS VOID) AS nothing",
        "interval 1 day AS gap",
    )


@pytest.mark.parametrize(
    ("query", "options", "says"),
    [
        (sb.TopK(by=("x", "map"), **ONE), {}, "column 'map' holds map.*which has no order"),
        (sb.TopK(by=("x", abs, "map"), **ONE), {}, "column 'map' holds map.*which has no order"),
        (sb.TopK(by="x", per={"p": "wort"}, **ONE), {}, "no column 'wort'"),
        (sb.TopK(by="x + word", **ONE), {}, '"x \\+ word": \\+ needs numbers, but column "word" is a string'),
        (sb.TopK(by="list", **ONE), {}, "column 'list' holds list.*cannot use"),
        (sb.TopK(by=sb.Linear({"x": 1, "map": 2}), **ONE), {}, "column 'map' holds map"),
        (sb.TopK(by=sb.Nearest({"x": 1, "word": 2}), **ONE), {}, "column 'word' holds string"),
        (sb.TopK(by="x", where="list > 1", **ONE), {}, "column 'list' holds list"),
        (sb.TopK(by="x", where="x + 1", **ONE), {}, "where='x \\+ 1' is not a condition"),
        (sb.Above(1, by="word", window=sb.Last(5)), {}, "column 'word' holds string"),
        (sb.TopKPairs(by="abs(a.word - b.word)", **ONE), {}, "word"),
        (sb.TopKIncomplete(1, ["a"], sb.Last(5)), {"part": "word", "value": "flag"}, "column 'flag' holds bool"),
        (sb.TopKUncertain(by="x", probability="word", **ONE), {}, "column 'word' holds string"),
        (sb.TopK(by="x", **ONE), {"id": "list"}, "the column 'list' is array<int>, by which rows.*order="),
        (sb.TopK(by="x", **ONE), {"id": "map"}, "the column 'map' is map<string,int>, by which"),
        (sb.TopK(by="x", **ONE), {"order": ("ts", "nested")}, "the column 'nested' is struct<.*, by which"),
        (sb.TopK(by="x", **ONE), {"order": "nothing"}, "the column 'nothing' is void, by which"),
        (sb.TopK(by="`nested.y`", **ONE), {}, r"no column 'nested.y'.*withColumn\(\"nested.y\", col\(\"nested.y\"\)\)"),
        (sb.TopK(by="x", per="nested.z", **ONE), {}, r"no column 'nested.z'.*Take the field out first"),
    ],
)
def test_types_are_checked_before_any_job(frame: DataFrame, query: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(QueryError, match=says):
        sbs.monitor(frame, query, **{"id": "id", **options})
    if set(options) <= {"part", "value"}:
        with pytest.raises(QueryError, match=says.partition("withColumn")[0].partition("Take")[0]):
            sbs.rejected(frame, query, id="id", **options)


def test_types_that_are_fine(spark: SparkSession) -> None:
    """Also a scoring function, which is called with real rows only; and what is kept may have any type."""
    calls = []

    def score(batch: Any) -> Any:
        calls.append(len(batch["x"]))
        return batch["x"]

    df = spark.sql(
        "SELECT * FROM VALUES (array(1), 1, 2.0D, map('a', 1), interval 1 day, struct(1 AS y)), "
        "(array(2), 2, 1.0D, map('b', 2), interval 2 days, struct(2 AS y)) AS v(tags, n, x, m, gap, nested)"
    )
    query = sb.TopK(1, by=score, window=sb.Last(5), per="nested")
    changes = sbs.monitor(df, query, id="tags", order="n", keep=("m", "gap"), shards=2)
    assert calls == []
    found = {(row["nested"]["y"], tuple(row["id"]), row["score"], tuple(row["m"])) for row in changes.collect()}
    assert found == {(1, (1,), 2.0, ("a",)), (2, (2,), 1.0, ("b",))}


def test_decimals_beyond_2_53_are_rejected(spark: SparkSession) -> None:
    values = [Decimal("9007199254740993.0"), Decimal("9007199254740992.0")]
    df = spark.createDataFrame(pa.table({"i": [1, 2], "x": pa.array(values, pa.decimal128(30, 1))}))
    query = sb.TopK(2, by="x", window=sb.Last(5))
    assert [row["id"] for row in sbs.monitor(df, query, id="i").collect()] == [2]
    assert [(row["i"], row["reason"]) for row in sbs.rejected(df, query).collect()] == [(1, "x is beyond 2^53")]


def test_a_schema_that_is_said(spark: SparkSession, tmp_path: Path) -> None:
    """Spark need not look at the DataFrame: the same changes, and the same refusals."""
    write(tmp_path / "in", 0, flights(40))
    whole = spark.read.parquet(str(tmp_path / "in"))
    schema = StructType([whole.schema[name] for name in ("flight", "time", "delay")])
    query = sb.TopK(1, by="delay", window=sb.Last("1 hour"))
    options: dict[str, Any] = {"id": "flight", "time": "time", "shards": 2}
    said = sbs.monitor(whole, query, schema=schema, streaming=False, **options)
    expected = sorted(map(str, sbs.monitor(whole, query, **options).collect()))
    assert sorted(map(str, said.collect())) == expected != []
    with pytest.raises(QueryError, match=r"no column 'origin'\. It has: flight, time, delay"):
        sbs.monitor(whole, sb.TopK(1, by="delay", window=sb.Last(5), per="origin"), schema=schema, **options)
    with pytest.raises(QueryError, match=r"schema='flight long' must be a StructType.*StructType\(\).add"):
        sbs.monitor(whole, query, schema="flight long", **options)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="streaming=1 must be True, False or None"):
        sbs.monitor(whole, query, streaming=1, **options)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="start_from= is for a stream"):
        sbs.monitor(whole, query, schema=schema, streaming=False, start_from="old", **options)


def test_a_watermark_beside_another_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, flights(20))
    df = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    query = sb.TopK(1, by="delay", window=sb.Last("1 hour"))
    marked = df.withWatermark("time", "1 day")
    sbs.monitor(marked, query, id="flight", time="time")
    with pytest.raises(
        QueryError, match=r"watermark= beside withWatermark\('time', ...\).*refuses a second one.*Leave one"
    ):
        sbs.monitor(marked, query, id="flight", time="time", watermark="1 hour")


def test_the_reason_of_a_failed_query(spark: SparkSession) -> None:
    df = spark.createDataFrame(pa.table({"i": [1], "x": pa.array([None], pa.float64())}))
    changes = sbs.monitor(df, sb.TopK(1, by="x", window=sb.Last(5)), id="i", invalid="raise")
    with pytest.raises(Exception, match="x is null") as failed:
        changes.collect()
    assert sbs.reason(failed.value) == ('id 1: x is null. Nothing was pushed; fix the row, or use invalid="reject".')
