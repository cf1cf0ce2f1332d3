"""Subscriptions on Spark: a stream equals a Monitor that subscribes and pushes trigger by trigger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
import skyband.spark as sbs
from engines.comparison import same_rows
from skyband.errors import QueryError, RunError
from skyband.pipeline import pipeline_of
from skyband.spark.run.command import run
from spark.frames import read, write

NEAR = sb.TopK(sb.Each("k"), by=sb.Nearest({"x": sb.Each("px"), "y": 1}), window=sb.Last(20), where="city = :city")
PER = sb.TopK(sb.Each("k"), by="x", window=sb.Last(span=9), per="city")
ROWS = "i long, t long, x double, y double, city string"
SUBS = "subscriber string, k int, px double, city string, t long, op string"


def rows(size: int, begin: int) -> Any:
    rng = np.random.default_rng(begin)
    return pa.table(
        {
            "i": np.arange(begin, begin + size),
            "t": np.arange(begin, begin + size) // 3,
            "x": rng.integers(0, 9, size).astype(float),
            "y": rng.integers(0, 9, size).astype(float),
            "city": pa.array([["Oslo", "Bergen"][i] for i in rng.integers(0, 2, size)]),
        }
    )


def people(names: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    size = len(names)
    return pa.table(
        {
            "subscriber": list(names),
            "k": pa.array(rng.integers(1, 4, size), pa.int32()),
            "px": rng.integers(0, 9, size).astype(float),
            "city": [["Oslo", "Bergen"][i] for i in rng.integers(0, 2, size)],
        }
    )


def with_op(table: Any, op: str | None, begin: int = 0) -> Any:
    size = table.num_rows
    table = table.append_column("t", pa.array(range(begin, begin + size), pa.int64()))
    return table.append_column("op", pa.array([op] * size, pa.string()))


def expected(query: sb.TopK, steps: list[tuple[str, Any]], **options: Any) -> list[Any]:
    """The changes of a Monitor, `at` null in time windows."""
    monitor, found = sb.Monitor({"near": query}, id="i", time="t", **options), []
    for what, table in steps:
        if what == "push":
            found += monitor.push(table).to_pylist()
        elif what == "subscribe":
            monitor.subscribe("near", table)
        else:
            monitor.unsubscribe("near", table)
    timed = isinstance(query.window, sb.Last) and query.window.timed
    return [row | ({"at": None} if timed else {}) for row in found]


def test_a_batch_with_static_tables(spark: Any) -> None:
    """One query whose subscriptions are spread over the shards, and one whose groups are."""
    table, subscribers = rows(60, 0), people("abcde", 1)
    queries = {"near": NEAR, "per": PER}
    given: dict[str, Any] = {
        "queries": queries,
        "subscriptions": dict.fromkeys(queries, spark.createDataFrame(subscribers.to_pandas())),
        "id": "i",
        "time": "t",
        "shards": 2,
    }
    frame = spark.createDataFrame(table.to_pandas(), ROWS)
    monitor = sb.Monitor(queries, id="i", time="t")
    for name in queries:
        monitor.subscribe(name, subscribers)
    wanted = [row | ({"at": None} if row["query"] == "per" else {}) for row in monitor.push(table).to_pylist()]
    same_rows(read(sbs.monitor(frame, **given)), wanted, "changes")
    found = read(sbs.answers(frame, **given))
    members = [{"query": name} | row for name in queries for row in monitor.answer(name).to_pylist()]
    same_rows(found, [{column: row.get(column) for column in found[0]} for row in members], "answers")


def test_vectors_in_columns_of_arrays(spark: Any) -> None:
    """`array<float>` columns, vectors as subscriptions over the shards, plain queries, and rows that are rejected."""
    rng = np.random.default_rng(8)
    vectors = rng.integers(-3, 4, (50, 3)).astype(np.float32).tolist()
    vectors[3], vectors[11], vectors[20] = None, [1.0], [0.0, 0.0, 0.0]
    table = pa.table({"i": range(50), "t": [i // 3 for i in range(50)], "e": pa.array(vectors, pa.list_(pa.float32()))})
    queries: dict[str, Any] = {"near": sb.TopK(2, sb.Similar("e", sb.Each("v")), sb.Last(20))}
    queries |= {f"p{i}": sb.TopK(2, sb.Similar("e", [1, i, 2], "euclidean"), sb.Last(span=5)) for i in range(4)}
    people = pa.table(
        {"subscriber": list("abcdef"), "v": pa.array(rng.normal(size=(6, 3)).tolist(), pa.list_(pa.float64()))}
    )
    given: dict[str, Any] = {
        "queries": queries,
        "subscriptions": {"near": spark.createDataFrame(people.to_pylist(), "subscriber string, v array<double>")},
    }
    given |= {"id": "i", "time": "t", "shards": 2}
    frame = spark.createDataFrame(table.to_pylist(), "i long, t long, e array<float>")
    monitor = sb.Monitor(queries, id="i", time="t")
    monitor.subscribe("near", people)
    wanted = monitor.push(table).to_pylist()
    assert monitor.stats()["queries"]["p0"]["rejected"] == {"e is null": 1, "e is no vector of length 3": 1}
    found = read(sbs.monitor(frame, **given))
    same_rows(found, [row | ({} if row["query"] == "near" else {"at": None}) for row in wanted], "changes")


def test_streams_of_rows_and_of_subscriptions(
    spark: Any, tmp_path: Path, setting: Callable[[str, object], None]
) -> None:
    """With as many shards as the checkpoint has, whatever the session says at the restart."""
    (tmp_path / "rows").mkdir()
    stream = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "rows"))
    (tmp_path / "people").mkdir()
    joining = spark.readStream.schema(SUBS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "people"))

    steps: list[tuple[str, Any]] = []
    for number in range(2):
        if number == 0:
            joined = with_op(people("abcd", 1), None)
            steps.append(("subscribe", people("abcd", 1)))
        else:
            again, gone = people("be", 2), people("ax", 3)
            joined = pa.concat_tables([with_op(again, "update"), with_op(gone, "delete")])
            steps += [("subscribe", again), ("unsubscribe", ["a", "x"])]
        write(tmp_path / "people", number, joined)
        write(tmp_path / "rows", number, rows(20, 20 * number))
        steps.append(("push", rows(20, 20 * number)))

        def follow() -> None:
            changes = sbs.monitor(
                stream, {"near": NEAR}, id="i", time="t", order=("t", "i"), subscriptions={"near": joining}
            )
            target = changes.writeStream.format("parquet").option("path", str(tmp_path / "out"))
            query = target.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
            query.awaitTermination()

        setting("spark.sql.shuffle.partitions", 2 + number)
        follow()  # a restart for each trigger
    found = read(spark.read.parquet(str(tmp_path / "out")))
    same_rows(found, expected(NEAR, steps), "changes")


def test_a_restart_with_another_static_table(spark: Any, tmp_path: Path) -> None:
    """Tables of some megabytes: Spark starts no stateful operator that brings as much with it."""
    elsewhere = [f"nobody {i}" for i in range(20_000)]
    many = {"subscriber": elsewhere, "k": pa.array([1] * 20_000, pa.int32()), "px": [0.0] * 20_000}
    idle = pa.table(many | {"city": ["x" * 100] * 20_000})
    first, second = people("abc", 1), people("abd", 1)  # c is gone, d is new
    second = second.set_column(1, "k", pa.array([first["k"][0].as_py(), 7, 2], pa.int32()))  # b has changed
    (tmp_path / "rows").mkdir()
    stream = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "rows"))
    for number, table in enumerate((first, second)):
        write(tmp_path / "rows", number, rows(20, 20 * number))
        static = spark.createDataFrame(pa.concat_tables([table, idle]))
        changes = sbs.monitor(stream, {"near": NEAR}, id="i", time="t", shards=2, subscriptions={"near": static})
        target = changes.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        target.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    changed = second.slice(1)
    steps = [("subscribe", first), ("push", rows(20, 0))]
    steps += [("unsubscribe", ["c"]), ("subscribe", changed), ("push", rows(20, 20))]
    same_rows(read(spark.read.parquet(str(tmp_path / "out"))), expected(NEAR, steps), "changes")


def test_mistakes_are_found_before_any_job(spark: Any) -> None:
    frame = spark.createDataFrame(rows(3, 0).to_pandas(), ROWS)
    bad = people("ab", 1)
    for given, said in (
        (None, "give its subscriptions"),
        ({"other": frame}, "no query of that name"),
        ({"near": frame}, "no column 'subscriber'"),
        ({"near": spark.createDataFrame(bad.set_column(1, "k", pa.array([1, 0])).to_pandas())}, "'b'.*'k' is 0"),
    ):
        with pytest.raises(QueryError, match=said):
            sbs.monitor(frame, {"near": NEAR}, id="i", time="t", subscriptions=given)


def test_a_pipeline_file(spark: Any, tmp_path: Path) -> None:
    """A table that is read at the start and a stream that comes and goes, in one file of `skyband run`."""
    (tmp_path / "rows").mkdir()
    (tmp_path / "people").mkdir()
    write(tmp_path / "rows", 0, rows(60, 0))
    subscribers = people("abcde", 1)
    subscribers.to_pandas().to_csv(tmp_path / "people" / "1.csv", index=False)
    moving = pa.concat_tables([with_op(people("fg", 2), "insert"), with_op(people("f", 3), "delete", 9)])
    write(tmp_path / "moving", 0, moving)
    columns = {"subscriber": "string", "k": "int", "px": "double", "city": "string"}
    said = {
        "source": {"format": "parquet", "path": str(tmp_path / "rows")},
        "queries": {
            "near": NEAR.to_sql(),
            "other": NEAR.to_sql(),
            "plain": "SELECT * FROM s ORDER BY x LIMIT 2 WINDOW 9 ROWS",
        },
        "subscriptions": {
            "near": {"format": "csv", "path": str(tmp_path / "people"), "schema": columns},
            "other": {"format": "parquet", "path": str(tmp_path / "moving"), "streaming": True},
        },
        "stream": {"id": "i", "time": "t", "shards": 2},
        "sink": {"format": "memory", "name": "followed"},
        "run": {"trigger": "availableNow"},
    }
    assert run(pipeline_of(said), spark=spark) == 0
    queries = {"near": NEAR, "other": NEAR, "plain": sb.sql(said["queries"]["plain"])}  # type: ignore[index]
    monitor = sb.Monitor(queries, id="i", time="t")
    monitor.subscribe("near", subscribers)
    monitor.subscribe("other", people("fg", 2).slice(1))
    same_rows(read(spark.table("followed")), monitor.push(rows(60, 0)).to_pylist(), "changes")
    (tmp_path / "people" / "1.csv").write_text("subscriber,k,px,city\na,one,1.0,Oslo\n")
    with pytest.raises(
        RunError, match=r"subscriptions\.near: 'a,one,1\.0,Oslo' cannot be read as a row"
    ):  # a table is right as a whole
        run(pipeline_of(said), spark=spark)
    said["subscriptions"]["near"] = {"format": "table", "name": "no_such_table"}  # type: ignore[index]
    with pytest.raises(RunError, match=r"subscriptions\.near\.name: .*no_such_table"):
        run(pipeline_of(said), spark=spark)
