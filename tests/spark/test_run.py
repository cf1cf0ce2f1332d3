"""`skyband run` on real Spark: sinks, replays, restarts, failures; and the command itself in a pipe, with Ctrl-C."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from pyspark.sql import SparkSession

import skyband as sb
from engines.streams import cells, same_rows
from skyband.datasets import endless
from skyband.errors import QueryError, RunError
from skyband.pipeline import Pipeline, pipeline_of
from skyband.pipeline.formats import whole
from skyband.pipeline.sinks import SINKS, SinkFormat
from skyband.spark.run.answer_file import AnswerFile
from skyband.spark.run.command import run
from skyband.spark.run.sinks import Console
from spark.frames import read
from spark.quick import SETTINGS
from spark.shards import pushed

QUERIES = {
    "late": sb.TopK(3, by="delay", window=sb.Last("2 hours"), per="origin"),
    "all": sb.TopK(4, by="delay", window=sb.Last(500)),
}
OPTIONS: dict[str, Any] = {"id": "flight", "time": "time"}


def flights(rows: int) -> Any:
    return endless("flights_like", 0, rows, seed=5, keys=3, per_day=2000)


def data(folder: Path, sink: dict[str, Any], rows: int, **run_keys: Any) -> dict[str, Any]:
    """A file as TOML gives it: `rows` of a synthetic stream, 1000 a trigger."""
    return {
        "source": {
            "format": "synthetic",
            "dataset": "flights_like",
            "seed": 5,
            "rows": rows,
            "rows_per_trigger": 1000,
            "options": {"keys": 3, "per_day": 2000},
        },
        "queries": {
            "late": {"k": 3, "by": "delay", "window": "2 hours", "per": "origin"},
            "all": {"k": 4, "by": "delay", "window": 500},
        },
        "stream": {**OPTIONS, "shards": 2},
        "sink": sink,
        "run": {"checkpoint": str(folder / "checkpoint"), "trigger": "availableNow", "spark": SETTINGS, **run_keys},
    }


def pipeline(folder: Path, sink: dict[str, Any], rows: int) -> Pipeline:
    return pipeline_of(data(folder, sink, rows))


def lines(captured: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in captured.readouterr().out.splitlines()]


def test_upsert_is_the_answer_through_a_replay_and_a_restart(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = {"format": "upsert", "path": str(tmp_path / "answer")}

    def answers(rows: int) -> None:
        monitor = sb.Monitor(QUERIES, **OPTIONS)
        monitor.push(flights(rows))
        found = cells(pa.parquet.read_table(tmp_path / "answer"))
        wanted = [{"query": name, "origin": None, **row} for name in QUERIES for row in cells(monitor.answer(name))]
        same_rows(found, wanted, f"the answer of {rows} rows")

    assert run(pipeline(tmp_path, sink, 1500), spark=spark) == 0
    assert [(line["batch"], line["rows"]) for line in lines(capsys)] == [(0, 1000), (1, 500)]
    answers(1500)
    stamp = AnswerFile(tmp_path / "answer", {}).stamp()
    id_ = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    assert stamp == {"query": id_, "batch": 1}
    # a crash after the file was replaced, before Spark noted it: the same batch comes again, then a new one
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    assert run(pipeline(tmp_path, sink, 2000), spark=spark) == 0
    assert [(line["batch"], line["rows"]) for line in lines(capsys)] == [(1, 500), (2, 500)]
    answers(2000)
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(RunError, match=r"holds the output of another run, and the checkpoint .* is new"):
        run(pipeline(tmp_path, sink, 2000), spark=spark)


def test_files_in_and_out_and_a_changed_file(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    table = flights(900)
    pyarrow.csv.write_csv(table, tmp_path / "in" / "a.csv")
    made = data(tmp_path, {"format": "json", "path": str(tmp_path / "out")}, 0)
    schema = {"flight": "bigint", "origin": "string", "time": "timestamp_ntz", "delay": "bigint"}
    made["source"] = {"format": "csv", "path": str(tmp_path / "in"), "schema": schema}
    assert run(pipeline_of(made), spark=spark) == 0
    assert [line["rows"] for line in lines(capsys)] == [900]
    expected = pushed(sb.Monitor(QUERIES, **OPTIONS), [table], ("time", "flight"))
    types = "query string, origin string, at bigint, time timestamp_ntz, id bigint, score double, diff byte"
    out = spark.read.schema(f"{types}, first boolean").json(str(tmp_path / "out"))
    same_rows(read(out), expected, "csv to json")
    # a checkpoint goes on only with what it was made by
    pyarrow.csv.write_csv(table, tmp_path / "in" / "b.csv")
    made["stream"]["shards"] = 3
    with pytest.raises(RunError, match=r"^the checkpoint was written with shards=2.*new checkpoint\.$"):
        run(pipeline_of(made), spark=spark)
    # columns in another place are an error, not other numbers
    made["stream"]["shards"] = 2
    pyarrow.csv.write_csv(table.select(["flight", "origin", "delay", "time"]), tmp_path / "in" / "b.csv")
    with pytest.raises(RunError, match=r"CSV header does not conform to the schema"):
        run(pipeline_of(made), spark=spark)
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(RunError, match="holds the output of another run"):
        run(pipeline_of(made), spark=spark)


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_malformed_lines_of_files_are_counted_and_the_others_read(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    (tmp_path / "in").mkdir()
    table, path = flights(60), tmp_path / "in" / f"a.{format_}"
    if format_ == "csv":
        pyarrow.csv.write_csv(table, path)
        bad = ["1,EWR", "one,EWR,2013-01-01T00:00:00,5", "1,EWR,2013-01-01T00:00:00,late", "1,EWR,soon,5"]
    else:
        rows = [{**row, "time": row["time"].isoformat()} for row in table.to_pylist()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        bad = ["{", "null [", "[1", '{"flight": "one", "delay": 5}', '{"flight": 1, "time": "soon"}', "x" * 5]
    first, *good = path.read_text().splitlines()
    for place, line in enumerate(bad):
        good.insert(9 * place, line)
    path.write_text("\n".join([first, *good, ""]))
    made = data(tmp_path, {"format": "json", "path": str(tmp_path / "out")}, 0)
    schema = {"flight": "bigint", "origin": "string", "time": "timestamp_ntz", "delay": "bigint"}
    made["source"] = {"format": format_, "path": str(tmp_path / "in"), "schema": schema}
    assert run(pipeline_of(made), spark=spark) == 0
    (told,) = lines(capsys)
    assert (told["malformed"], told["arrivals"]) == (len(bad), 60)
    expected = pushed(sb.Monitor(QUERIES, **OPTIONS), [table], ("time", "flight"))
    types = "query string, origin string, at bigint, time timestamp_ntz, id bigint, score double, diff byte"
    out = spark.read.schema(f"{types}, first boolean").json(str(tmp_path / "out"))
    same_rows(read(out), expected, f"{format_} with malformed lines")


def test_console_answers_and_memory(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = data(tmp_path, {"format": "console"}, 700)
    made["output"] = "answers"
    del made["run"]["checkpoint"]
    assert run(pipeline_of(made), spark=spark) == 0
    told = lines(capsys)
    monitor = sb.Monitor(QUERIES, **OPTIONS)
    monitor.push(flights(700))
    last = [row for row in told[-1]["answers"] if row["query"] == "all"]
    assert [row["id"] for row in sorted(last, key=lambda row: row["rank"])] == monitor.answer("all")["id"].to_pylist()
    made = data(tmp_path, {"format": "memory", "name": "told"}, 700)
    del made["run"]["checkpoint"]
    assert run(pipeline_of(made), spark=spark) == 0
    same_rows(
        read(spark.table("told")), pushed(sb.Monitor(QUERIES, **OPTIONS), [flights(700)], ("time", "flight")), "memory"
    )


class Newest(Console):
    """A sink of this test: prints the last rows of each batch."""

    def wrote(self, batch: int) -> pa.Table | None:
        rows = super().wrote(batch)
        return None if rows is None else rows.slice(max(rows.num_rows - self.settings["rows"], 0))


def test_a_new_sink_is_a_class_and_a_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = SinkFormat(runs=f"{__name__}:Newest", keys={"rows": whole(1)}, checkpoint="refused", kinds=("TopK",))
    monkeypatch.setitem(SINKS, "newest", row)
    made = data(tmp_path, {"format": "newest", "rows": 2}, 700)
    with pytest.raises(QueryError, match=r"run\.checkpoint: the sink newest keeps nothing"):
        pipeline_of(made)
    del made["run"]["checkpoint"]
    assert run(pipeline_of(made), spark=spark) == 0
    expected = pushed(sb.Monitor(QUERIES, **OPTIONS), [flights(700)], ("time", "flight"))
    (line,) = lines(capsys)
    assert len(line["changes"]) == 2
    assert {row["id"] for row in line["changes"]} <= {row["id"] for row in expected}
    for sink, says in (
        ({"format": "newest", "rows": 0}, "sink.rows: is a whole number, at least 1; got 0."),
        ({"format": "noop", "rows": 2}, "sink.rows: is for newest. The format is 'noop'."),
        ({"format": "newset"}, "sink.format: 'newset' is unknown. Did you mean 'newest'?"),
    ):
        with pytest.raises(QueryError) as raised:
            pipeline_of({**made, "sink": sink})
        assert says in str(raised.value)


def test_a_row_that_fails_the_run_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pa.parquet.write_table(pa.table({"i": [1, 2], "x": [1.0, None]}), tmp_path / "in" / "a.parquet")
    made = data(tmp_path, {"format": "noop"}, 0)
    made["source"] = {"format": "parquet", "path": str(tmp_path / "in")}
    made["queries"] = {"q": {"k": 1, "by": "x", "window": 5}}
    made["stream"] = {"id": "i", "invalid": "raise"}
    with pytest.raises(RunError, match=r"^id 2: x is null\. Nothing was pushed; fix the row, or use invalid=.*$"):
        run(pipeline_of(made), spark=spark)
    made["stream"] = {"id": "j"}
    with pytest.raises(QueryError, match="no column 'j'"):  # only the files say which columns there are
        run(pipeline_of(made), spark=spark)


# ---- the command


def toml(made: dict[str, Any], prefix: str = "") -> str:
    """Enough TOML for these files."""
    text = "".join(
        f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in made.items() if type(value) is not dict
    )
    for key, value in made.items():
        if type(value) is dict:
            name = f"{prefix}{json.dumps(key)}"
            text += f"\n[{name}]\n{toml(value, name + '.')}"
    return text


def test_the_command_in_a_pipe_stops_cleanly_and_goes_on(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = data(tmp_path, {"format": "parquet", "path": str(tmp_path / "out")}, 100_000)
    made["source"]["rows_per_second"] = 2000
    del made["run"]["trigger"]
    made["run"]["master"] = "local[1]"  # each Python worker that this Spark starts is a second of a core, or five
    (tmp_path / "first.toml").write_text(toml(made))
    command = [sys.executable, "-c", "from skyband.cli import app; app()", "run"]
    told = []
    with subprocess.Popen([*command, "first.toml"], cwd=tmp_path, stdout=-1, stderr=-1, text=True) as first:
        assert first.stdout is not None and first.stderr is not None
        for line in first.stdout:
            told.append(json.loads(line))
            if len(told) == 1:
                first.send_signal(signal.SIGINT)
        said = first.stderr.read()
    assert first.returncode == 130, said
    assert [line["batch"] for line in told] == list(range(len(told)))
    assert f"stopped after {len(told)} triggers" in said
    assert "Run the same file again to resume." in said
    assert not [word for word in ("Traceback", "WARN", "Exception", "Streaming Transform") if word in said], said
    # what was planned and not finished comes again, once
    rows = sum(line["rows"] for line in told) + 1500
    assert run(pipeline(tmp_path, made["sink"], rows), spark=spark) == 0
    captured = capsys.readouterr()
    again = [json.loads(line) for line in captured.out.splitlines()]
    untold = again[0]["batch"] - told[-1]["batch"] - 1  # a trigger that ended as the signal came may have no line
    assert untold in (0, 1)
    assert (
        sum(line["rows"] for line in again) == 1500 if untold == 0 else 0 < sum(line["rows"] for line in again) < 1500
    )
    assert f"resuming after batch {again[0]['batch'] - 1} of the checkpoint" in captured.err
    expected = pushed(sb.Monitor(QUERIES, **OPTIONS), [flights(rows)], ("time", "flight"))
    same_rows(read(spark.read.parquet(str(tmp_path / "out"))), expected, "both runs")
