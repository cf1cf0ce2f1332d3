"""SQL at the command line: over files, and in `skyband explain`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

import skyband as sb
from skyband.cli.app import app


def run(*arguments: Any, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    return result.exit_code, result.stdout, result.stderr


def test_explain_takes_a_sentence(tmp_path: Path) -> None:
    text = "SELECT * FROM s ORDER BY x DESC LIMIT 10 WINDOW 1000 ROWS"
    file = tmp_path / "question.sql"
    file.write_text(text)
    code, said, _ = run("explain", text)
    assert code == 0 and "BLOCK" in said
    assert run("explain", file) == run("explain", "-", stdin=text) == run("explain", text)
    code, _, error = run("explain", text, "--k", 3)
    assert code == 2 and "leave out --k" in error
    code, _, error = run("explain", text.replace("LIMIT", "LIMITS"))
    assert code == 2 and error.endswith("^\n") and "Did you mean LIMIT?" in error


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flights")
    times = pa.array([0, 10, 20, 95, 100], pa.timestamp("s"))
    table = pa.table({"flight": list("ABCDE"), "due": times, "delay": [50, 90, 20, None, 30], "rank": [0] * 5})
    parquet.write_table(table, folder / "f.parquet")
    csv.write_csv(table, folder / "f.csv")
    lines = [json.dumps(row, default=str) for row in table.to_pylist()]
    (folder / "f.json").write_text("\n".join(lines))
    for name in ("f.csv", "f.json"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    return folder


@pytest.mark.parametrize("file", ["f.parquet", "f.csv", "f.json", "f.csv.gz", "f.json.gz"])
def test_over_files(flights: Path, file: str) -> None:
    code, out, err = run("sql", "SELECT * FROM f ORDER BY delay DESC LIMIT 2 WINDOW '91 seconds'", flights / file)
    assert code == 0 and "time: due" in err and "rejected: {'delay is null': 1}" in err
    lines = [line.split(",") for line in out.replace('"', "").splitlines()]
    assert lines[0] == ["rank", "id", "time", "score", "flight", "delay"]
    assert [line[3:5] for line in lines[1:]] == [["90", "B"], ["30", "E"]]


def test_over_files_with_columns_of_choice(flights: Path) -> None:
    both = [flights / "f.parquet", flights / "f.parquet"]
    question = "SELECT * FROM f ORDER BY delay DESC LIMIT 2 WINDOW 5 ROWS"
    code, out, _ = run("sql", question, *both, "--id", "flight", "--keep", "due", "--json")
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {"rank": 1, "id": "B", "score": 90.0, "due": "1970-01-01 00:00:10"},
        {"rank": 2, "id": "A", "score": 50.0, "due": "1970-01-01 00:00:00"},
    ]
    code, out, _ = run("sql", question, *both, "--id", "flight", "--keep", "due", "--changes")
    monitor = sb.Monitor(sb.sql(question), id="flight", keep="due")
    rows = sum(monitor.push(parquet.read_table(file)).num_rows for file in both)
    assert len(out.splitlines()) == rows + 1
    assert out.splitlines()[0].replace('"', "") == "query,at,id,score,diff,first,due"


def test_over_files_with_columns_after_select(flights: Path) -> None:
    question = "SELECT flight, rank FROM f ORDER BY delay DESC LIMIT 1 WINDOW 5 ROWS"
    code, out, _ = run("sql", question, flights / "f.parquet")
    assert (code, out.replace('"', "").splitlines()) == (0, ["rank,id,score,flight", "1,1,90,B"])
    code, _, err = run("sql", question.replace("rank", "dely"), flights / "f.parquet")
    assert code == 2 and "no column 'dely'" in err


@pytest.mark.parametrize(
    ("question", "file", "said"),
    [
        ("SELECT * FROM f ORDER BY delay DESC LIMIT 2 WINDOW 5 ROWS", "none.parquet", "there is no such file"),
        ("SELECT * FROM f ORDER BY delay DESC LIMIT 2 WINDOW 5 ROWS", "f.xls", "the ending says the format"),
        ("SELECT * FROM f ORDER BY delay DESC LIMIT 2 WINDOW 5 ROWS", "bad.parquet", "cannot be read as parquet"),
        ("SELECT * FROM f ORDER BY delay DESC LIMIT 2 WINDOW 5 ROWS", "null.json", "does not begin with a JSON object"),
        ("SELECT * FROM f ORDER BY delay DESC LIMIT 2 WINDOW SPAN 5", "f.parquet", "--time COLUMN"),
        ("SELECT * FROM f ORDER BY dely DESC LIMIT 2 WINDOW 5 ROWS", "f.parquet", "dely"),
        ("SELECT * FROM f ORDER BY delay LIMIT 2", "f.parquet", "WINDOW is missing"),
    ],
)
def test_what_a_file_cannot_answer(flights: Path, question: str, file: str, said: str) -> None:
    (flights / "bad.parquet").write_text("no parquet")
    (flights / "null.json").write_text("null\n")
    code, out, err = run("sql", question, flights / file)
    assert (code, out) == (2, "")
    assert said in err


def test_groups_over_files(tmp_path: Path) -> None:
    file = tmp_path / "trades.csv"
    file.write_text(
        "symbol,side,qty,t\na,buy,5,2026-01-01 00:00\nb,buy,7,2026-01-01 00:01\na,sell,4,2026-01-01 00:02\n"
    )
    question = "SELECT symbol, sum(qty), count(*) AS trades FROM f GROUP BY symbol ORDER BY 2 DESC LIMIT 2 "
    code, out, err = run("sql", question + "WINDOW 9 ROWS", file)
    assert code == 0
    assert out.replace('"', "").splitlines() == ["rank,id,score,trades", "1,a,9,2", "2,b,7,1"]
    code, out, err = run("sql", question.replace("BY symbol", "BY symbol, side") + "WINDOW '1 hour'", file)
    assert (code, "time: t" in err) == (0, True)
    assert out.replace('"', "").splitlines()[0] == "rank,id.symbol,id.side,time,score,trades"
    code, out, err = run("sql", question + "WINDOW 9 ROWS", file, "--json", "--keep", "side")
    assert json.loads(out.splitlines()[0]) == {"rank": 1, "id": "a", "score": 9.0, "side": "sell", "trades": 2.0}


def test_what_cannot_be_asked_over_files_is_said(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text("id,x,rank\nA,3,1\nB,5,2\n")
    code, _, err = run("sql", "SELECT * FROM f ORDER BY x DESC LIMIT :k WINDOW EVER", file)
    assert code == 2 and ":k stands for what each subscription brings" in err
    for question in (
        "SELECT * FROM f ORDER BY x LIMIT 1 UNTIL DELETED",
        "SELECT * FROM f PARTS (a) LIMIT 1 WINDOW EVER",
    ):
        code, _, err = run("sql", question, file)
        assert code == 2 and "--id COLUMN. Columns: id, x, rank." in err
    everything = "SELECT * FROM f ORDER BY x DESC LIMIT 1 WINDOW EVER"
    code, _, err = run("sql", everything, file)
    assert code == 0 and "not shown: id, rank" in err and "SELECT id AS my_id, or --id id)" in err
    assert "not shown: rank" in run("sql", everything, file, "--id", "id")[2]
    renamed = "SELECT id AS my_id, x FROM f ORDER BY x DESC LIMIT 1 WINDOW EVER"
    assert run("sql", renamed, file) == (0, '"rank","id","score","my_id","x"\n1,1,5,"B",5\n', "")
