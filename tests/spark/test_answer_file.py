"""The upsert sink's file, the reports and the messages of `skyband run`; no JVM."""

from __future__ import annotations

import dataclasses
import io
import json
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Row as SparkRow
from rich.console import Console

import skyband as sb
from engines.streams import cells, same_rows
from skyband.datasets import endless
from skyband.datasets.streams import STREAMS
from skyband.errors import QueryError, RunError
from skyband.pipeline import Pipeline, pipeline_of
from skyband.query.kinds import Query
from skyband.spark.failure import reason
from skyband.spark.java import require_java
from skyband.spark.run.answer_file import FILE, AnswerFile, answer_after, in_utc
from skyband.spark.run.sinks import Sink
from skyband.spark.run.view import Lines, Screen, Trigger

QUERIES: dict[str, Query] = {
    "time": sb.TopK(2, by="x", window=sb.Last(span=9), per="g"),
    "count": sb.TopK(3, by="x", window=sb.Last(12), per=("g", "h"), where="y > 0"),
    "all": sb.TopK(4, by=sb.Nearest({"x": 2.0}), window=sb.Last(20)),
}


def rows(seed: int, size: int = 120) -> Any:
    """In order, with many ties, equal times, idle groups, null and NaN groups."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(0, 3, size))
    groups = np.where(np.arange(size) % 40 < 20, rng.integers(0, 2, size), rng.integers(2, 4, size))
    return pa.table(
        {
            "i": np.arange(size),
            "t": times,
            "own": times,
            "x": rng.integers(0, 5, size).astype(float),
            "y": rng.integers(-1, 3, size),
            "g": pa.array([[None, float("nan"), 1.0, 2.0][code] for code in groups], pa.float64()),
            "h": pa.array([["a", None][code] for code in rng.integers(0, 2, size)], pa.string()),
            "note": pa.array([[int(i)] for i in range(size)], pa.list_(pa.int64())),
        }
    )


def shown(changes: Any) -> Any:
    """Changes as the sink gets them: `time` is the object's own, after `id`."""
    names = [name for name in changes.column_names if name not in ("time", "own")]
    place = names.index("id") + 1
    own = changes.select([*names[:place], "own", *names[place:]])
    return own.rename_columns(["time" if name == "own" else name for name in own.column_names])


def monitor(emit: Any) -> sb.Monitor:
    return sb.Monitor(QUERIES, id="i", time="t", keep=("own", "note"), emit=emit)


def same_answers(file: AnswerFile, standing: sb.Monitor, where: str) -> None:
    """The same rows in the same order within each group; ids stand for what cannot be compared (NaN)."""
    found = cells(file.read())
    for name, query in QUERIES.items():
        mine = [row for row in found if row["query"] == name]
        expected = cells(standing.answer(name))
        key = [*query.per_columns, "rank", "id", "time", "score", "note"]
        assert sorted(repr([row[column] for column in key]) for row in mine) == sorted(
            repr([row[column] for column in key]) for row in expected
        ), f"{where}, {name}"


@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_the_file_is_the_answer_after_every_batch(tmp_path: Path, emit: Any) -> None:
    emptied = 0
    for seed in range(6):
        file, standing = AnswerFile(tmp_path / f"{seed}", QUERIES, ["time", "id"]), monitor(emit)
        table = rows(seed)
        for batch, start in enumerate(range(0, 120, 15)):
            assert file.update("q", batch, shown(standing.push(table.slice(start, 15))))
            same_answers(file, standing, f"seed {seed}, batch {batch}")
        file.update("q", 8, shown(standing.advance(10_000)))
        same_answers(file, standing, f"seed {seed}, at the end")
        emptied += standing.answer("time").num_rows == 0
        assert os.listdir(file.path.parent) == [FILE]
    assert emptied == 6


def test_a_batch_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    file, standing = AnswerFile(tmp_path, QUERIES, ["time", "id"]), monitor("batch")
    for batch in range(3):
        assert file.update("q", batch, shown(standing.push(rows(1).slice(20 * batch, 20))))
    before = file.path.read_bytes(), file.path.stat().st_mtime_ns
    again = shown(monitor("batch").push(rows(2)))
    assert not AnswerFile(tmp_path, QUERIES, ["time", "id"]).update("q", 2, again)
    assert not file.update("q", 1, again)
    assert (file.path.read_bytes(), file.path.stat().st_mtime_ns) == before


@pytest.mark.parametrize("step", ["write_table", "fsync", "replace"])
def test_a_crash_at_any_step_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    file, standing = AnswerFile(tmp_path, QUERIES, ["time", "id"]), monitor("batch")
    file.update("q", 0, shown(standing.push(rows(1).slice(0, 50))))
    before = file.path.read_bytes()
    changes = shown(standing.push(rows(1).slice(50)))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"skyband.spark.run.answer_file.{'pq' if step == 'write_table' else 'os'}.{step}", killed)
        with pytest.raises(KeyboardInterrupt):
            file.update("q", 1, changes)
    assert file.stamp() == {"query": "q", "batch": 0}
    assert file.path.read_bytes() == before
    left = AnswerFile(tmp_path, QUERIES, ["time", "id"])
    assert left.update("q", 1, changes)
    same_answers(left, standing, "after the crash")
    assert os.listdir(tmp_path) == [FILE]


def test_another_run_a_gap_or_another_file_are_refused(tmp_path: Path) -> None:
    file = AnswerFile(tmp_path, QUERIES)
    changes = shown(monitor("batch").push(rows(1)))
    with pytest.raises(RunError, match=r"is gone, and batch 3 comes next.*new run.checkpoint"):
        file.update("q", 3, changes)
    file.update("q", 0, changes)
    with pytest.raises(RunError, match="ends at batch 0, and batch 2 comes next"):
        file.update("q", 2, changes)
    with pytest.raises(RunError, match="is the answer of another run"):
        file.update("r", 1, changes)
    pa.parquet.write_table(pa.table({"a": [1]}), file.path)
    with pytest.raises(RunError, match="was not written by skyband run"):
        file.update("q", 1, changes)
    file.path.write_bytes(b"nothing")
    with pytest.raises(RunError, match="cannot be read"):
        file.update("q", 1, changes)


# ---- reports


def pipeline(**sink: Any) -> Pipeline:
    return pipeline_of(
        {
            "source": {"format": "synthetic", "dataset": "flights_like", "options": {"keys": 9}},
            "queries": {
                "late": {"k": 10, "by": "delay", "window": "24 hours", "per": "origin"},
                "all": {"k": 3, "by": "delay", "window": 50},
            },
            "stream": {"id": "flight", "time": "time", "emit": "batch"},
            "sink": sink or {"format": "console"},
        }
    )


PROGRESS: dict[str, Any] = {
    "batchId": 4,
    "numInputRows": 1500,
    "durationMs": {"addBatch": 400, "triggerExecution": 500},
    "observedMetrics": {},
    "stateOperators": [{"memoryUsedBytes": 1200}, {"memoryUsedBytes": 34}],
}
METRICS = SparkRow(arrivals=9000, late=12, rejected=3, groups=9, objects=321, bytes=45_678)


class GivenSink(Sink):
    """A sink whose batches are given, and printed."""

    to_stdout = True

    def __init__(self, given: Pipeline, tables: dict[int, Any]) -> None:
        super().__init__(given)
        self.tables = tables

    def wrote(self, batch: int) -> Any:
        return self.tables.get(batch)


def test_triggers_are_read_from_progress() -> None:
    assert Trigger.of(PROGRESS) == Trigger(4, 1500, 3000.0, 500, {}, 1234)
    told = Trigger.of({**PROGRESS, "observedMetrics": {"skyband": METRICS}})
    assert told is not None
    assert told.metrics == METRICS.asDict()
    two = Trigger.of({**PROGRESS, "observedMetrics": {"any": METRICS, "other": METRICS, "mine": SparkRow(rows=1)}})
    assert two is not None
    assert two.metrics == {name: 2 * value for name, value in METRICS.asDict().items()}
    silent = SparkRow(**dict.fromkeys(METRICS.asDict()))
    for observed in ({"any": silent}, {"any": METRICS, "other": silent}):
        unknown = Trigger.of({**PROGRESS, "observedMetrics": observed})
        assert unknown is not None and unknown.metrics == {}
    assert Trigger.of({**PROGRESS, "durationMs": {"triggerExecution": 1}}) is None


def test_progress_over_connect_is_read_too() -> None:
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in METRICS.asDict()]
    remote = SparkRow(values=list(METRICS), schema={"type": "struct", "fields": fields})  # as Spark 4.3 sends it
    trigger = Trigger.of({**PROGRESS, "observedMetrics": {"skyband": remote}})
    assert trigger is not None
    assert trigger.metrics == METRICS.asDict()


def test_a_line_of_json_a_trigger(capsys: pytest.CaptureFixture[str]) -> None:
    given = pipeline()
    lines = Lines(given, GivenSink(given, {4: pa.table({"id": [1], "score": [2.5]})}))
    for metrics in ({}, {"skyband": METRICS}):
        trigger = Trigger.of({**PROGRESS, "observedMetrics": metrics})
        assert trigger is not None
        lines.trigger(trigger)
    plain, full = map(json.loads, capsys.readouterr().out.splitlines())
    assert list(plain) == ["batch", "rows", "rows_per_second", "trigger_ms", "changes"]
    assert plain["changes"] == [{"id": 1, "score": 2.5}]
    assert full == {**plain, **METRICS.asDict()}


def test_the_answer_of_objects_that_are_replaced_and_deleted() -> None:
    alive = sb.UntilDeleted()
    queries = {"k": sb.TopK(3, by="x", window=alive, per="g"), "t": sb.Above(2, by="x", window=alive)}
    standing = sb.Monitor(queries, id="i", op="op", keep="n", emit="batch")
    rng, answer = np.random.default_rng(8), None
    for batch in range(12):
        table = pa.table(
            {
                "n": np.arange(20) + 20 * batch,
                "i": rng.integers(0, 15, 20),
                "g": rng.integers(0, 3, 20),
                "x": rng.integers(0, 6, 20).astype(float),
                "op": np.array(["insert", "update", "delete"])[rng.integers(0, 3, 20)],
            }
        )
        answer = answer_after(answer, in_utc(standing.push(table)), queries, ["n"])
        expected = [{"query": name, "g": None, **row} for name in queries for row in cells(standing.answer(name))]
        found = [{name: row[name] for name in expected[0]} for row in cells(answer)]
        same_rows(found, expected, f"batch {batch}")


@pytest.mark.parametrize("output", ["changes", "answers"])
def test_the_screen_fits_and_shows_the_answers(output: Literal["changes", "answers"]) -> None:
    given = dataclasses.replace(pipeline(), output=output)
    standing = sb.Monitor(given.queries, id="flight", time="time", emit="batch")
    table, tables = endless("flights_like", 0, 3000, keys=9), {}
    for batch in range(3):
        tables[batch] = standing.push(table.slice(1000 * batch, 1000))
        if output == "answers":
            each = [standing.answer(name) for name in given.queries]
            named = [t.add_column(0, "query", pa.array([n] * len(t))) for n, t in zip(given.queries, each, strict=True)]
            tables[batch] = pa.concat_tables(named, promote_options="default")
            wanted = ["query", "origin", "rank", "id", "time", "score"]
            tables[batch] = tables[batch].select(wanted)
    console = Console(width=80, height=24, file=io.StringIO(), force_terminal=False)
    screen = Screen(given, GivenSink(given, tables), resumed=False, console=console)
    for batch in range(3):
        trigger = Trigger.of({**PROGRESS, "batchId": batch, "observedMetrics": {"skyband": METRICS}})
        assert trigger is not None
        screen.trigger(trigger)
    with console.capture() as drawn:
        console.print(screen.draw())
    text = drawn.get()
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for word in (
        "trigger 2: 1,500 rows in 500 ms, 3,000 rows/s",
        "kept 321 objects of 9 groups",
        "late 12, rejected 3",
    ):
        assert word in text
    best = standing.answer("all").to_pylist()
    shown_ids = [line.split()[1] for line in lines[-3:]]
    assert shown_ids == [str(row["id"]) for row in best]


def test_why_a_query_failed() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_EXCEPTION] An exception was thrown from the "
        'Python worker: Traceback (most recent call last):\n  File "x.py", line 1, in f\n{}\n SQLSTATE: 38000 '
        "SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: 1\nValueError: not this"
    )
    ours = "skyband.errors.StateError: run with shards=3."
    assert reason(Exception(text.format(ours))) == "run with shards=3."
    both = f"ValueError: below\n\nThe above exception was the cause:\n\nTraceback:\n  File 1\n{ours}"
    assert reason(Exception(text.format(both))) == "run with shards=3."
    assert reason(Exception(text.format("ValueError: mine"))) == "the query failed: ValueError: mine"
    assert reason(Exception(text.format("pkg.mod.OddError: mine"))) == "the query failed: OddError: mine"
    plain = "terminated with exception: [PATH_NOT_FOUND] no such path. SQLSTATE: 42K03\nmore\n"
    outer, inner = Exception(plain), Exception("no such path: x\n\tat java.X\n")
    assert reason(outer) == "the query failed: [PATH_NOT_FOUND] no such path.\nmore"
    outer._cause = inner  # type: ignore[attr-defined]  # as PySpark's exceptions have it
    assert reason(outer) == "the query failed: no such path: x"
    assert reason(QueryError("as it is")) == "as it is"


# ---- Java


def java(folder: Path, said: str, code: int = 0) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit {code}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("said", "code", "why"),
    [
        ('openjdk version "17.0.9" 2023', 0, None),
        ('openjdk version "21" 2023', 0, None),
        ('java version "1.8.0_292"', 0, "is Java 8"),
        ('openjdk version "11.0.2"', 0, "is Java 11"),
        ("no Java runtime present", 1, "does not run"),
        (None, 0, "there is no java in JAVA_HOME"),
    ],
)
def test_java_is_there_or_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, code: int, why: str | None
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if said is not None:
        java(tmp_path, said, code)
    if why is None:
        require_java()
        return
    with pytest.raises(RunError, match=why) as told:
        require_java()
    for word in ("openjdk-17-jre-headless", "brew install openjdk@17", "winget install EclipseAdoptium.Temurin.17"):
        assert word in str(told.value)


def test_no_java_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="there is no java on the PATH"):
        require_java()


# ---- the synthetic stream


@pytest.mark.parametrize("name", STREAMS)
def test_any_stretch_of_a_stream_can_be_made_again(name: str) -> None:
    whole = endless(name, 0, 40_000, seed=5)
    assert whole.num_rows == 40_000
    for start, stop in [(0, 10), (15_990, 16_390), (32_000, 33_000), (39_999, 40_000), (7, 7)]:
        assert endless(name, start, stop, seed=5).equals(whole.slice(start, stop - start))
    assert not endless(name, 0, 10, seed=6).equals(whole.slice(0, 10))
    assert whole["time"].to_pylist() == sorted(whole["time"].to_pylist())


def test_rising_goes_on_rising_and_ids_are_row_numbers() -> None:
    table = endless("rising", 0, 50_000)
    assert (np.diff(table["score"].to_numpy()) > 0).all()
    assert table["id"].to_pylist() == list(range(50_000))
    assert endless("flights_like", 0, 50_000)["flight"].to_pylist() == list(range(50_000))
    with pytest.raises(QueryError, match="shuffled"):
        endless("shuffled", 0, 1)


def test_members_whose_scores_move() -> None:
    """What the live view shows of changes: the members are right, their numbers are those at which they came in."""
    queries: dict[str, Query] = {
        "sum": sb.TopKIncomplete(2, parts=["north", "south"], window=sb.Last(9), repeat="last"),
        "likely": sb.TopKUncertain(2, by="value", window=sb.Last(9), probability="p"),
        "ranks": sb.TopKUncertain(2, by="value", window=sb.Last(9), probability="p", semantics="u-kranks"),
        "close": sb.TopKPairs(2, by="abs(a.value - b.value)", window=sb.Last(9)),
    }
    standing, rng, answer = sb.Monitor(queries, id="i", emit="batch"), np.random.default_rng(2), None
    for batch in range(12):
        rows = {
            "i": rng.integers(0, 5, 4),
            "part": np.array(["north", "south"])[rng.integers(0, 2, 4)],
            "value": rng.random(4),
            "p": rng.integers(1, 4, 4) / 4,
        }
        answer = answer_after(answer, in_utc(standing.push(rows)), queries)
        for name in queries:
            mine = [row for row in cells(answer) if row["query"] == name]
            ids = ("id", "id_a", "id_b", *(["rank"] if name == "ranks" else []))
            expected = [tuple(row.get(column) for column in ids) for row in cells(standing.answer(name))]
            found = [tuple(row["held"] if column == "rank" else row[column] for column in ids) for row in mine]
            assert sorted(map(repr, found)) == sorted(map(repr, expected)), f"batch {batch}, {name}"
