"""Files below the root: bad ones are counted, and nothing else is opened."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import skyband as sb
from dashboard.browser import wait
from dashboard.served import LAST, Client, ask, served, table
from skyband.dashboard.root import Root, plain_name
from skyband.dashboard.spark_output import follow
from skyband.dashboard.watch import Watch
from skyband.errors import QueryError

# --- files

LOG = ['{"path": "file:///x/part-0.parquet", "action": "add"}', "[1]", "null", "{", '{"path": 1}']
LOG += ['{"path": "..%2F..%2Fsecret.parquet"}', '{"path": "file:///x/%2e%2e%2fsecret.parquet"}', '{"path": "a%00b"}']


def test_a_bad_line_of_sparks_log(tmp_path: Path) -> None:
    """A line that names no file of the folder is counted; others are read."""
    monitor = sb.Monitor({"late": sb.TopK(3, by="delay", window=sb.Last(20))}, id="flight")
    changes = monitor.push(table(40))
    parquet.write_table(changes, tmp_path / "secret.parquet")
    out = tmp_path / "run" / "changes"
    (out / "_spark_metadata").mkdir(parents=True)
    parquet.write_table(changes, out / "part-0.parquet")
    (out / "_spark_metadata" / "0").write_text("\n".join(["v1", *LOG]))
    board = follow(out, Root(tmp_path))
    assert board is not None and board.answer("late", None, 9)["total"] == 3
    assert list(board.head()["rejected"].values()) == [len(LOG) - 1]
    with served(tmp_path) as (client, _):
        assert client.send("PUT", "/api/stream", {"stream": "run/changes"})[0] == 200
        assert client.get("/api/queries/late/answer")["total"] == 3
        assert sum(client.get("/api/state")["stream"]["rejected"].values()) == len(LOG) - 1


def test_a_bad_file_in_a_folder(fresh: tuple[Client, Watch], tmp_path: Path) -> None:
    client, _ = fresh
    folder = tmp_path / "in"
    folder.mkdir()
    parquet.write_table(table(10), folder / "1.parquet")
    (folder / "2.parquet").write_bytes(b"PAR1 and no more")
    parquet.write_table(table(20), folder / "3.parquet")
    os.mkfifo(folder / "4.csv")
    (folder / "5.parquet").symlink_to("/etc/passwd")
    client.send("PUT", "/api/stream", {"stream": "in", "id": "flight", "rate": None})
    ask(client, "last", LAST)
    state = wait(lambda: (s := client.get("/api/state")["stream"])["rows"] == 30 and len(s["rejected"]) == 2 and s)
    assert state["error"] is None and any(
        "2.parquet" in reason or "in cannot" in reason for reason in state["rejected"]
    )


BAD_NAMES = ["../x.parquet", "a/../../x", "/etc/passwd", "a\\b.csv", "..\\x", "C:x.csv", "c:/x.csv", "a\0b", "a\nb", ""]
BAD_NAMES += [
    "con",
    "NUL.csv",
    "a/aux.parquet",
    "com1",
    "lpt9.txt",
    "x.csv.",
    "x.csv ",
    "a\u202eb",
    "x" * 2000,
    "\ud800",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_are_refused(tmp_path: Path, name: str) -> None:
    assert not plain_name(name)
    with pytest.raises(QueryError, match="lies outside"):
        Root(tmp_path).find(name)


def test_the_root_holds(fresh: tuple[Client, Watch], tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """By links: a file, a folder, a file in a folder, an answer; encoded or not. A link to the inside is followed."""
    client, _ = fresh
    outside = tmp_path_factory.mktemp("outside")
    parquet.write_table(table(10), outside / "secret.parquet")
    answer = pa.table({"query": ["secret"], "rank": [1], "score": [1.0]})
    parquet.write_table(answer, outside / "answer.parquet")
    (tmp_path / "file.parquet").symlink_to(outside / "secret.parquet")
    (tmp_path / "folder").symlink_to(outside)
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "in.parquet").symlink_to(outside / "secret.parquet")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "answer.parquet").symlink_to(outside / "answer.parquet")
    parquet.write_table(table(10), tmp_path / "good.parquet")
    (tmp_path / "link.parquet").symlink_to("good.parquet")
    up = "../" + outside.name
    for name in ("file.parquet", "folder", "folder/secret.parquet", f"{up}/secret.parquet", f"..%2F{outside.name}"):
        assert client.send("PUT", "/api/stream", {"stream": name})[0] == 400, name
    assert client.send("PUT", "/api/stream", {"stream": "out"})[0] == 400
    client.send("PUT", "/api/stream", {"stream": "real", "rate": None})
    assert "outside" in wait(lambda: next(iter(client.get("/api/state")["stream"]["rejected"]), ""))
    names = {one["name"] for one in client.get("/api/streams")}
    assert "good.parquet" in names and not names & {"file.parquet", "folder", "real", "real/in.parquet"}
    assert client.send("PUT", "/api/stream", {"stream": "link.parquet"})[0] == 200
    assert client.get("/api/state")["stream"]["rows"] <= 10


def test_what_was_checked_is_opened(tmp_path: Path) -> None:
    """A file, or a folder on the way to it, that becomes a link after the check."""
    root = Root(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.csv").write_text("good")
    found = root.find("a/x.csv")
    with root.open(found) as file:
        assert file.read() == b"good"
    (tmp_path / "secret.csv").write_text("secret")
    found.unlink()
    found.symlink_to(tmp_path / "secret.csv")
    with pytest.raises(QueryError, match="cannot be opened"):
        root.open(found)
    found.unlink()
    (tmp_path / "a").rmdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.csv").write_text("secret")
    (tmp_path / "a").symlink_to("b")
    with pytest.raises(QueryError, match="cannot be opened"):
        root.open(found)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(QueryError, match="is no file"):
        root.open(root.find("pipe.csv"))
