"""`skyband demo --spark`: a slice of the year through real Spark, its parts without, and what it says without Java."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import skyband as sb
from cli.test_gallery import ON_SPARK, draw
from skyband import datasets
from skyband.cli import spark_demo as demo
from skyband.cli.app import app
from skyband.cli.demo import AIRPORTS
from skyband.errors import QueryError, SkybandError
from skyband.spark.java import require_java


def year(rows: int = 3000) -> Any:
    return demo.numbered(datasets.flights().slice(0, rows))


def rows_of(changes: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in changes.drop_columns("at").to_pylist())


def test_spark_changes_are_those_of_a_monitor(
    spark: SparkSession,
    setting: Callable[[str, object], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    setting("spark.sql.streaming.fileSink.log.compactInterval", 2)  # so that it is compacted within the test

    @contextmanager
    def ours(folder: demo.Folder) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(demo, "_local_spark", ours)
    out = tmp_path / "deep" / "demo"
    assert demo.play(rows=3000, out=out, files=3)

    table = datasets.flights().slice(0, 3000)
    table = table.append_column("due", table["time"]).append_column("flight_id", pa.array(range(3000)))
    query = sb.TopK(10, by="dep_delay", window=sb.Last("24 hours"), per="origin")
    monitor = sb.Monitor(query, id="flight_id", time="time", keep=("carrier", "flight", "dest", "due"))
    expected = monitor.push(table)
    changes = pq.read_table(out / "changes")
    assert changes.column_names == expected.column_names
    assert rows_of(changes) == rows_of(expected)
    assert (out / "changes" / "_spark_metadata" / "1.compact").is_file()

    told = capsys.readouterr()
    lines = [line.split("\t") for line in told.out.splitlines()]
    assert lines[0] == ["origin", "rank", "dep_delay", "carrier", "flight", "dest", "time"]
    answers = [
        [airport, str(row["rank"]), f"{row['score']:.0f}", row["carrier"], str(row["flight"]), row["dest"]]
        for airport in AIRPORTS
        for row in monitor.answer(key=airport).to_pylist()
    ]
    assert [line[:6] for line in lines[1:]] == answers
    assert "3,000 flights through Spark in 3 files" in told.err
    assert f"{expected.num_rows:,} changes" in told.err
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f"<dd>{expected.num_rows:,}</dd>" in page


def test_the_example_runs_and_draws(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SparkSession, "stop", lambda self: None)  # it ends its session, which here is that of all tests
    draw(ON_SPARK, tmp_path, monkeypatch, capsys)


# ---- without Spark


def followed(table: Any, files: int = 3) -> Iterator[demo.Following]:
    """As if Spark had told the changes of a Monitor; after each step."""
    counts = [table.num_rows // files] * (files - 1)
    counts.append(table.num_rows - sum(counts))
    following, monitor = demo.Following(table, counts), demo.reference_replay(table)
    for count in counts:
        following.take(monitor.push(count))
        while following.ahead:
            following.step()
            yield following


def test_each_step_shows_the_answers_of_its_moment() -> None:
    steps = 0
    for following in followed(year()):
        steps += 1
        for airport in AIRPORTS:
            shown = [(row["rank"], row["id"], row["score"], row["time"]) for row in following.answer(airport)]
            expected = following.replay.answer(airport)
            assert shown == [(row["rank"], row["id"], row["score"], row["time"]) for row in expected], following.when
    assert following.ended
    assert (following.done, following.changes) == (3000, following.replay.changes)
    assert len(following.samples) == steps > 12  # four a day, but at night
    assert following.samples[-1].kept == following.replay.kept


def test_a_wrong_change_is_noticed() -> None:
    table = year(900)
    right = demo.reference_replay(table).push(900)
    row = right.num_rows // 2
    for wrong in (right.slice(1), pa.concat_tables([right, right.slice(row, 1)])):
        following = demo.Following(table, [900])
        following.take(wrong)
        while following.ahead > 1:
            following.step()
        with pytest.raises(SkybandError, match="not those of a Monitor"):
            following.step()  # the last of the file


def test_files_hold_the_stream_in_order(tmp_path: Path) -> None:
    table = year(5000)
    folder = demo.Folder(tmp_path / "demo")
    folder.clear()
    counts = folder.write(table, 7)
    files = sorted(folder.flights.iterdir(), key=lambda path: path.stat().st_mtime)
    assert [pq.read_metadata(file).num_rows for file in files] == counts
    assert len(counts) == 7
    assert pa.concat_tables(map(pq.read_table, files)).equals(table)
    spans = [due[-1].as_py() - due[0].as_py() for due in (pq.read_table(file)["due"] for file in files)]
    assert max(spans) < 2 * min(spans)


def test_it_starts_afresh_and_removes_only_its_own(tmp_path: Path) -> None:
    folder = demo.Folder(tmp_path / "demo")
    folder.clear()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in (folder.path / "mine.txt", folder.report, elsewhere / "precious"):
        path.write_text("x")
    folder.checkpoint.mkdir()
    (folder.checkpoint / "offsets").touch()
    folder.changes.symlink_to(elsewhere)
    folder.clear()
    assert sorted(path.name for path in folder.path.iterdir()) == [".skyband-demo", "mine.txt"]
    assert (elsewhere / "precious").is_file()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("theirs")
    with pytest.raises(QueryError, match=r"holds other things\. Name a new or an empty one"):
        demo.Folder(tmp_path).clear()
    assert (tmp_path / "report.html").read_text() == "theirs"


def test_interrupted_it_still_tells_and_leaves_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(folder: demo.Folder) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_local_spark", interrupted)
    monkeypatch.setattr(demo, "require_java", lambda: None)
    result = CliRunner().invoke(app, ["demo", "--spark", "--rows", "200", "--out", str(tmp_path / "demo")])
    assert result.exit_code == 130
    assert "skyband demo: interrupted" in result.stderr
    assert result.stdout.splitlines() == ["origin\trank\tdep_delay\tcarrier\tflight\tdest\ttime"]
    assert not (tmp_path / "demo" / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--spark", "--fast"], "at Spark's speed"),
        (["--spark", "--seconds", "9"], "at Spark's speed"),
        (["--out", "x"], "add --spark"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["demo", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_without_pyspark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("skyband.spark", "skyband.cli.spark_demo"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = CliRunner().invoke(app, ["demo", "--spark"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'pip install "skyband[spark]"' in result.stderr


# ---- Java


def fake_java(folder: Path, says: str, code: int = 0) -> None:
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    java.chmod(0o755)


@pytest.mark.parametrize("home", [False, True])
def test_without_java_the_error_names_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: bool) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home:  # Spark trusts it, whatever is on the PATH
        fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
        monkeypatch.setenv("PATH", str(tmp_path / "path"))
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    result = CliRunner().invoke(app, ["demo", "--spark", "--out", str(tmp_path / "demo")])
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.search(r"^skyband: Spark needs Java 17 or later, and there is no java", result.stderr)
    for package in (
        "openjdk-17-jre-headless",
        "brew install openjdk@17",
        "winget install EclipseAdoptium.Temurin.17.JRE",
    ):
        assert package in result.stderr
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("says", "code", "wrong"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 0, None),
        ('java version "21" 2023-09-19 LTS', 0, None),
        ('openjdk version "11.0.20" 2023-07-18', 0, "is Java 11"),
        ('java version "1.8.0_381"', 0, "is Java 8"),
        ("Unable to locate a Java Runtime.", 1, "does not run"),
    ],
)
def test_the_version_of_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int, wrong: str | None
) -> None:
    fake_java(tmp_path / "jdk" / "bin", says, code)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    if wrong is None:
        require_java()
    else:
        with pytest.raises(SkybandError, match=wrong):
            require_java()
