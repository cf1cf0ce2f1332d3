"""A handful of real Spark queries in one session; what they compute is tested more closely in test_shards.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import skyband as sb
import skyband.spark as sbs
from engines.streams import Row, cells, net, same_rows
from skyband.errors import QueryError
from spark.frames import QUERIES, flights, read, run, stream, write
from spark.shards import pushed


def test_batch_equals_a_monitor(spark: SparkSession) -> None:
    table = flights()
    options: dict[str, Any] = {"id": "flight", "time": "time", "keep": ("late", "note")}
    changes = sbs.monitor(spark.createDataFrame(table).repartition(3), QUERIES, shards=3, **options)
    monitor = sb.Monitor(QUERIES, **options)
    expected = pushed(monitor, [table], ("time", "flight"))
    assert changes.columns == list(expected[0])
    same_rows(read(changes), expected, "batch")


def test_all_columns_can_be_kept(spark: SparkSession) -> None:
    table = flights(60)
    options: dict[str, Any] = {"id": "flight", "time": "time", "keep": "*"}
    changes = sbs.monitor(spark.createDataFrame(table), QUERIES, shards=2, **options)
    expected = pushed(sb.Monitor(QUERIES, **options), [table], ("time", "flight"))
    assert changes.columns == list(expected[0])
    same_rows(read(changes), expected, "all columns")


def test_orders_of_keys(spark: SparkSession, tmp_path: Path) -> None:
    """Several keys, one that is no number, ties, offsets and sessions: a stream in two runs, and the answers."""
    table = flights(120)
    keys, down = ("delay", "carrier"), (True, False)
    queries = {
        "two": sb.TopK(3, by=keys, largest=down, window=sb.Last("2 hours"), per="origin", nulls="last"),
        "next": sb.TopK(2, by="delay", window=sb.Last("3 hours"), offset=1, ties="oldest"),
        "quiet": sb.TopK(2, by="delay", window=sb.Session("20 minutes"), per="origin", with_ties=True),
    }
    options: dict[str, Any] = {"id": "flight", "time": "time"}
    monitor, expected = sb.Monitor(queries, **options), list[Row]()
    for number in range(2):
        piece = table.slice(60 * number, 60)
        write(tmp_path / "in", number, piece)
        expected += pushed(monitor, [piece], ("time", "flight"))
        rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
        changes = sbs.monitor(rows, queries, shards=2, **options)
        run(changes, tmp_path)
    same_rows(read(spark.read.schema(changes.schema).parquet(str(tmp_path / "out"))), expected, "two runs")
    assert changes.columns == list(expected[0]) and {"key_1", "key_2"} < set(changes.columns)
    by_name = sb.TopK(2, by="origin", window=sb.Last(50))
    whole = sb.Monitor(by_name, id="flight")
    whole.push(table)
    answer = read(sbs.answers(spark.createDataFrame(table), by_name, id="flight"))
    same_rows(answer, [{"query": "q0", **row} for row in cells(whole.answer())], "the last by name")


def test_stream_with_late_rows_and_net_changes(spark: SparkSession, tmp_path: Path) -> None:
    table = flights(300)
    shaken = table.take(pa.array(np.argsort(np.arange(300) + np.random.default_rng(1).integers(0, 60, 300))))
    options: dict[str, Any] = {"id": "flight", "time": "time", "emit": "batch"}
    monitor, expected = sb.Monitor(QUERIES, **options), list[Row]()
    for number in range(3):
        write(tmp_path / "in", number, shaken.slice(100 * number, 100))
        expected += pushed(monitor, [shaken.slice(100 * number, 100)], ("time", "flight"))
    schema = spark.read.parquet(str(tmp_path / "in")).schema
    run(sbs.monitor(stream(spark, tmp_path / "in", schema), QUERIES, shards=2, **options), tmp_path)
    found = read(spark.read.parquet(str(tmp_path / "out")))
    assert net(found) == net(expected)
    same_rows(found, expected, "net changes are rows of one trigger, so they are the same rows")


def test_twenty_points_nearest_to_which(spark: SparkSession, tmp_path: Path) -> None:
    """A family of queries in each shard: a batch, and a stream that is stopped and goes on."""
    rng = np.random.default_rng(9)
    queries = {
        f"q{i}": sb.TopK(3, by=sb.Nearest({"x": float(x), "y": float(y)}), window=sb.Last("10 minutes"))
        for i, (x, y) in enumerate(rng.integers(0, 100, (20, 2)))
    }
    start, seconds = datetime(2024, 5, 1, tzinfo=UTC), np.cumsum(rng.integers(0, 9, 900))
    table = pa.table(
        {
            "id": np.arange(900),
            "time": pa.array([start + timedelta(seconds=int(s)) for s in seconds], pa.timestamp("us", "UTC")),
            "x": rng.integers(0, 100, 900).astype(float),
            "y": pa.array(rng.random(900) * 100, mask=rng.random(900) < 0.02),
        }
    )
    options: dict[str, Any] = {"id": "id", "time": "time"}
    monitor, expected = sb.Monitor(queries, **options), list[Row]()
    in_order = ("time", "id")
    whole = pushed(sb.Monitor(queries, **options), [table], in_order)
    same_rows(read(sbs.monitor(spark.createDataFrame(table), queries, shards=2, **options)), whole, "batch")

    for number in range(3):
        write(tmp_path / "in", number, table.slice(300 * number, 300))
        expected += pushed(monitor, [table.slice(300 * number, 300)], in_order)
        if number > 0:  # two triggers, a stop, and one more
            schema = spark.read.parquet(str(tmp_path / "in")).schema
            run(sbs.monitor(stream(spark, tmp_path / "in", schema), queries, shards=2, **options), tmp_path)
    same_rows(read(spark.read.parquet(str(tmp_path / "out"))), expected, "stream")
    stored = sbs.state(str(tmp_path / "checkpoint")).collect()
    assert {row["shard"] for row in stored} == {0, 1}
    assert sorted(name for row in stored for name in row["queries"]) == sorted(queries)
    assert all(row["objects"] >= 3 * len(row["queries"]) for row in stored)


def test_orders_that_are_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """Inserts, updates and deletions by `op`; two triggers, a stop, and one more."""
    rng, size = np.random.default_rng(4), 600
    ops, shops = (
        np.array(words)[rng.integers(0, 4, size)] for words in (["insert", "update", "delete", "x"], [*"abcd"])
    )
    ops[:: size // 3] = "insert"
    table = pa.table(
        {
            "order": rng.integers(0, 60, size),
            "number": np.arange(size),
            "time": pa.array(np.arange(size) * 10**6, pa.timestamp("us", "UTC")),
            "kind": ops,
            "price": pa.array(rng.integers(0, 40, size).astype(float), mask=ops == "delete"),
            "shop": shops,
        }
    )
    queries = {
        "dearest": sb.TopK(3, by="price", window=sb.UntilDeleted(), per="shop"),
        "dear": sb.Above(30, by="price", window=sb.UntilDeleted()),
        "hot": sb.Above(35, by="price", window=sb.Last("2 minutes"), per="shop"),
    }
    options: dict[str, Any] = {"id": "order", "time": "time", "op": "kind", "keep": "number"}
    monitor, expected = sb.Monitor(queries, **options), list[Row]()
    for number in range(3):
        write(tmp_path / "in", number, table.slice(200 * number, 200))
        expected += pushed(monitor, [table.slice(200 * number, 200)], ("time", "order"))
        if number > 0:
            df = spark.read.parquet(str(tmp_path / "in"))
            asked = sbs.monitor(stream(spark, tmp_path / "in", df.schema), queries, shards=2, metrics="told", **options)
            progress = run(asked, tmp_path)
    same_rows(read(spark.read.parquet(str(tmp_path / "out"))), expected, "stream")
    told, figures = progress[-1]["observedMetrics"]["told"], monitor.stats()
    assert told["arrivals"] == figures["arrivals"]
    stored = sbs.state(str(tmp_path / "checkpoint")).collect()
    unknown = {name: query["rejected"]["unknown id"] for name, query in figures["queries"].items() if name != "hot"}
    counted = dict.fromkeys(unknown, 0)
    for row in stored:
        if row["queries"] != ["hot"]:
            counted[row["queries"][0]] += row["rejected"].get("unknown id", 0)
    assert counted == unknown and min(unknown.values()) > 0
    assert told["rejected"] == figures["rejected"]["op is unknown"] + max(unknown.values())
    refused = sbs.rejected(df, queries, id="order", time="time", op="kind").collect()
    assert [row["reason"] for row in refused] == ["op is unknown"] * figures["rejected"]["op is unknown"]


def test_what_is_kept_told_and_rejected(spark: SparkSession, tmp_path: Path) -> None:
    """`metrics`, `state` and `rejected` against a Monitor, after several triggers."""
    table = flights(500)
    queries = {**QUERIES, "hour": sb.TopK(2, by="delay", window=sb.Last("1 hour"), per="carrier")}
    options: dict[str, Any] = {"id": "flight", "time": "time"}
    monitor = sb.Monitor(queries, **options)
    for number in range(3):
        write(tmp_path / "in", number, table.slice(200 * number, 200))
        pushed(monitor, [table.slice(200 * number, 200)], ("time", "flight"))
    df = spark.read.parquet(str(tmp_path / "in"))
    changes = sbs.monitor(stream(spark, tmp_path / "in", df.schema), queries, shards=3, metrics="told", **options)
    progress = run(changes, tmp_path)

    kept = {row["queries"][0]: [0, 0, 0] for row in sbs.state(str(tmp_path / "checkpoint")).collect()}
    stored = sbs.state(str(tmp_path / "checkpoint")).collect()
    for row in stored:
        for i, name in enumerate(("groups", "objects", "cells")):
            kept[row["queries"][0]][i] += row[name]
        assert bool(row["bytes"]) >= bool(row["groups"])
        assert row["late"] == 0
    assert {tuple(row["queries"]) for row in stored} == {(name,) for name in queries}
    assert {row["queries"][0]: (row["per"], row["window"]) for row in stored} == {
        "day": ("origin", "time"),
        "all": ("", "count"),
        "two": ("origin, carrier", "count"),
        "hour": ("carrier", "time"),
    }
    groups = {"day": 4, "all": 1, "two": 8, "hour": len(set(monitor.answer("hour").column("carrier").to_pylist()))}
    figures = monitor.stats()
    for name, (held, objects, cells_) in kept.items():
        assert (held, objects) == (groups[name], figures["queries"][name]["objects"]), name
        assert 1 <= cells_ <= held
    assert {row["shard"] for row in stored if row["per"]} == {0, 1, 2}
    counted = [row["rejected"] for row in stored if row["rejected"]]
    assert counted == [figures["rejected"]] * len(counted) and counted

    told = [one["observedMetrics"]["told"] for one in progress if one["numInputRows"]]
    assert len(told) == 3
    assert told[-1]["groups"] == sum(groups.values())
    assert told[-1]["objects"] == sum(objects for _, objects, _ in kept.values())
    assert 0 < told[-1]["bytes"] <= sum(row["bytes"] for row in stored)
    assert (told[-1]["arrivals"], told[-1]["late"]) == (figures["arrivals"], 0)
    assert told[-1]["rejected"] == sum(figures["rejected"].values())
    assert [one["arrivals"] + one["rejected"] for one in told] == [200, 400, 500]

    refused = sbs.rejected(df, queries, time="time").collect()
    bad = [row["flight"] for row in table.to_pylist() if row["delay"] is None]
    assert sorted(row["flight"] for row in refused) == bad
    assert {(row["reason"], tuple(row["queries"])) for row in refused} == {("delay is null", tuple(queries))}


def test_the_watermark_moves_the_clock_of_a_quiet_stream(spark: SparkSession, tmp_path: Path) -> None:
    """The row at 12:30 is rejected, so no clock moves; Spark's watermark does, to 12:20, by the next trigger."""
    start = datetime(2024, 3, 9, 12, tzinfo=UTC)
    query = {"hour": sb.TopK(1, by="x", window=sb.Last("10 minutes"), per="g")}

    def piece(*rows: tuple[int, int, float | None, str]) -> Any:
        made = [{"i": i, "t": start + timedelta(minutes=m), "x": x, "g": g} for i, m, x, g in rows]
        types = {"i": pa.int64(), "t": pa.timestamp("us", "UTC"), "x": pa.float64(), "g": pa.string()}
        return pa.table({name: pa.array([row[name] for row in made], type_) for name, type_ in types.items()})

    write(tmp_path / "in", 0, piece((1, 0, 1.0, "a"), (2, 5, 1.0, "b"), (3, 5, 2.0, "c")))
    write(tmp_path / "in", 1, piece((4, 30, None, "a")))
    write(tmp_path / "in", 2, piece((5, 6, 0.5, "b"), (6, 6, 1.0, "d"), (7, 31, None, "a")))
    schema = spark.read.parquet(str(tmp_path / "in")).schema
    changes = sbs.monitor(
        stream(spark, tmp_path / "in", schema),
        query,
        id="i",
        time="t",
        shards=2,
        watermark="10 minutes",
        metrics="told",
    )
    progress = run(changes, tmp_path)
    found = [(row["id"], row["diff"], row["time"]) for row in read(spark.read.parquet(str(tmp_path / "out")))]
    left = {who: (when - start).total_seconds() / 60 for who, diff, when in found if diff < 0}
    assert {who: left[who] for who in (1, 2, 3)} == {1: 10, 2: 15, 3: 15}
    assert {who for who, diff, _ in found if diff > 0} - {5} == {1, 2, 3, 6}, "rows of a trigger come before its timers"
    told = [one["observedMetrics"]["told"] for one in progress if one["numInputRows"]]
    assert [(one["arrivals"], one["rejected"], one["groups"], one["objects"]) for one in told] == [
        (3, 0, 3, 3),
        (3, 1, 3, 3),
        (5, 2, 0, 0),  # timers fire in the trigger whose watermark has passed them
    ]
    silent = [one["observedMetrics"]["told"] for one in progress if not one["numInputRows"]]
    assert silent and {value for one in silent for value in one.values()} == {None}, "nothing goes back to 0"


def test_answers_of_a_batch(spark: SparkSession) -> None:
    table = flights()
    options: dict[str, Any] = {"id": "flight", "time": "time", "keep": ("late",)}
    found = sbs.answers(spark.createDataFrame(table), QUERIES, shards=3, **options)
    assert found.columns == ["query", "origin", "carrier", "rank", "id", "time", "score", "late"]
    monitor = sb.Monitor(QUERIES, **options)
    monitor.push(table)
    expected = []
    for name in QUERIES:
        empty = {"query": name, "origin": None, "carrier": None}
        expected += [{**empty, **row} for row in cells(monitor.answer(name))]
    same_rows(read(found), expected, "answers")


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE", "SMALLINT"])
def test_time_comes_back_as_it_went_in(spark: SparkSession, kind: str) -> None:
    """The session's zone is New York, on the night when its clocks change."""
    assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    instants = ["2024-03-10 01:30:00", "2024-03-10 03:30:00", "2024-03-10 04:10:00", "2024-03-12 00:00:00"]
    values = range(10, 50, 10) if kind == "SMALLINT" else instants
    listed = ", ".join(f"({i}, '{value}', {float(i)})" for i, value in enumerate(values))
    df = spark.sql(f"SELECT i, CAST(t AS {kind}) AS t, x FROM VALUES {listed} AS v(i, t, x)")  # noqa: S608
    window = sb.Last(span=15) if kind == "SMALLINT" else sb.Last("1 day" if kind == "DATE" else "2 hours")
    changes = sbs.monitor(df, sb.TopK(1, by="x", window=window), id="i", time="t", shards=2)
    assert changes.schema["time"].dataType == df.schema["t"].dataType
    entered = changes.where("diff > 0").selectExpr("id", "CAST(time AS STRING) AS time").collect()
    given = df.selectExpr("i", "CAST(t AS STRING) AS t").collect()
    assert sorted(map(tuple, entered)) == sorted(map(tuple, given))
    if kind.startswith("TIMESTAMP"):  # 01:30 to 03:30 is one hour on this night, two where there is no zone
        left = changes.where("diff < 0 AND id = 0").selectExpr("CAST(time AS STRING)").collect()
        assert left[0][0] == ("2024-03-10 03:30:00")


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    """Fails as soon as a job runs over it."""
    return spark.range(1).selectExpr(
        "id",
        "id AS t",
        "CAST(raise_error('a job ran') AS DOUBLE) AS x",
        "timestamp '2024-01-01 00:00:00' AS ts",
        "date '2024-01-01' AS day",
        "'a' AS g",
        "1.5D AS real",
    )


_HOUR, _SPAN, _COUNT, _ALIVE = (
    sb.TopK(1, by="x", window=w) for w in (sb.Last("1 hour"), sb.Last(span=5), sb.Last(5), sb.UntilDeleted())
)


@pytest.mark.parametrize(
    ("query", "options", "says"),
    [
        (sb.TopK(1, by="nosuch", window=sb.Last(5)), {}, "no column 'nosuch'. It has: id, t, x"),
        (sb.TopK(1, by="x", window=sb.Last(5), per="nosuch"), {}, "no column 'nosuch'"),
        (sb.TopK(1, by="x", window=sb.Last(5), where="nosuch > 1"), {}, "no column 'nosuch'"),
        (_COUNT, {"id": "nosuch"}, "no column 'nosuch'"),
        (_COUNT, {"time": "nosuch"}, "no column 'nosuch'"),
        (_HOUR, {"time": "nosuch"}, "no column 'nosuch'"),
        (_COUNT, {"keep": ("g", "nosuch")}, "no column 'nosuch'"),
        (_COUNT, {"order": "nosuch"}, "no column 'nosuch'"),
        (_COUNT, {"id": None}, "needs id="),
        (_HOUR, {}, "name the time column"),
        (_HOUR, {"time": "t"}, "integers, which have no unit"),
        (_HOUR, {"time": "day"}, "cannot be expressed"),
        (_SPAN, {"time": "ts"}, "Use a duration"),
        (_SPAN, {"time": "real"}, "is double"),
        (_COUNT, {"time": "real"}, "is double"),
        (_COUNT, {"keep": "score"}, "skyband writes itself"),
        (sb.TopK(1, by="x", window=sb.Last(5), per="g"), {"keep": "g"}, "in `per` and in `keep`"),
        (_COUNT, {"emit": "never"}, "emit='never'"),
        (_COUNT, {"late": "never"}, "late='never'"),
        (_COUNT, {"late": "drop", "time": "t", "order": "id"}, "begins with the time column"),
        (_COUNT, {"shards": 0}, "shards=0"),
        (_COUNT, {"shards": True}, "shards=True"),
        (_COUNT, {"shards": 2.0}, "shards=2.0"),
        (_COUNT, {"watermark": "1 hour"}, "watermark= needs a time column of type TIMESTAMP"),
        (_SPAN, {"watermark": "1 hour", "time": "t"}, "watermark= needs a time column of type TIMESTAMP"),
        (_COUNT, {"forget": "1 hour"}, "name the time column"),
        (_COUNT, {"forget": "1 hour", "time": "t"}, "forget='1 hour' must be a time span.*no unit"),
        (_COUNT, {"forget": 5, "time": "ts"}, "forget=5 must be a time span"),
        (_COUNT, {"forget": "soon", "time": "ts"}, "forget='soon' must be a time span"),
        (_COUNT, {"forget": 0, "time": "t"}, "forget=0 must be a time span"),
        (
            _COUNT,
            {"op": "g"},
            r"op='g' tells which rows delete an object, but no query is over UntilDeleted\(\).*Leave",
        ),
        (_ALIVE, {"op": "nosuch"}, "no column 'nosuch'"),
        (_ALIVE, {"op": "real"}, "the op column 'real' is double. It is a string: insert, update or delete."),
        (sb.TopK(1, by="x", window=sb.UntilDeleted(), algorithm="SMA"), {}, "a deletion could bring them back"),
        (5, {}, "takes a query"),
        ("x", {}, "is no query"),
        ([5], {}, "is no query"),
        ({"": _COUNT}, {}, "non-empty string"),
    ],
)
def test_bad_questions_are_refused_before_any_job(
    frame: DataFrame, query: Any, options: dict[str, Any], says: str
) -> None:
    for ask in (sbs.monitor, sbs.answers):
        with pytest.raises(QueryError, match=says):
            ask(frame, query, **{"id": "id", **options})


def test_a_name_with_a_dot(spark: SparkSession) -> None:
    df = spark.createDataFrame(pa.table({"a.b": [1, 2], "x": [1.0, 2.0], "g h": ["u", "v"]}))
    changes = sbs.monitor(df, sb.TopK(1, by="x", window=sb.Last(5), per="g h"), id="a.b", shards=1)
    assert sorted((row["g h"], row["id"]) for row in changes.collect()) == [("u", 1), ("v", 2)]
