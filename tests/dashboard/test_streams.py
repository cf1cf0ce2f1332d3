"""Where rows come from: folders, lines, topics, and the output of Spark pipelines."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import skyband as sb
from dashboard.browser import wait
from dashboard.served import LAST, Client, ask, ended, served, table
from skyband.dashboard.readers import Lines, Piece, Queued, Topic
from skyband.dashboard.spark_output import ChangesBoard, follow
from skyband.dashboard.values import plain
from skyband.errors import BatchError, QueryError
from skyband.spark.run.answer_file import AnswerFile


def test_a_folder_into_which_files_come(client: Client, root: Path) -> None:
    folder = root / "coming"
    folder.mkdir()
    parquet.write_table(table(10), folder / "b.parquet")
    (folder / "_half.parquet").write_text("being written")
    client.send("PUT", "/api/stream", {"stream": "coming", "id": "flight", "rate": None})
    ask(client, "last", LAST)
    parquet.write_table(table(20), folder / "a.parquet.tmp")
    wait(lambda: client.get("/api/state")["stream"]["rows"] == 10)
    (folder / "a.parquet.tmp").rename(folder / "c.parquet")
    state = wait(lambda: (s := client.get("/api/state"))["stream"]["rows"] == 30 and s)
    assert not state["stream"]["ended"] and state["stream"]["error"] is None
    shutil.rmtree(folder)


@pytest.mark.parametrize("csv", [False, True])
def test_stdin(root: Path, csv: bool) -> None:
    out, into = os.pipe()
    with (
        os.fdopen(out, "rb") as pipe,
        os.fdopen(into, "wb", buffering=0) as writer,
        served(root, pipe=pipe) as (client, _),
    ):
        assert client.get("/api/streams")[0] == {"name": "-", "kind": "stdin"}
        client.send("PUT", "/api/stream", {"stream": "-", "id": "i"})
        ask(client, "best", "SELECT * FROM s ORDER BY x DESC LIMIT 2 WINDOW 3 ROWS")
        lines = [f"{i},{x}" if csv else json.dumps({"i": i, "x": x}) for i, x in enumerate([5.5, 9.5, 1.5, 2.5, 3.0])]
        writer.write("\n".join((["i,x"] if csv else []) + lines[:3]).encode() + b"\n")
        wait(lambda: client.get("/api/state")["stream"]["rows"] == 3, 60)
        assert [row[1:] for row in client.get("/api/queries/best/answer")["rows"]] == [[1, 9.5], [0, 5.5]]
        writer.write("\n".join(lines[3:]).encode() + b"\n")
        writer.close()
        state = ended(client)
        assert state["stream"]["arrivals"] == 5
        assert [row[1:] for row in client.get("/api/queries/best/answer")["rows"]] == [[4, 3.0], [3, 2.5]]


class GivenLines(Queued):
    """Lines that are there from the beginning."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        super().__init__("lines")

    def _pieces(self) -> Iterator[Piece]:
        for number, line in enumerate(self.lines, 1):
            yield line.encode() + b"\n", [number]

    def all(self, rows: int) -> list[Any]:
        wait(lambda: self._queue.qsize() == len(self.lines) + 1)
        found: list[Any] = []
        while not self.ended:
            table = self.read(rows)
            found += table.to_pylist() if table is not None else []
        return found


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_lines_that_do_not_fit_are_counted(rows: int) -> None:
    """However they are cut; nulls first, whole numbers that become others, times with and without fractions."""
    lines = [
        '{"i": 1, "x": null, "t": "2013-07-01T06:30:00Z", "s": "a"}',
        '{"i": 2, "x": 3, "t": "2013-07-01T06:30:00.25Z", "s": "2013"}',
        '{"i": 3, "x": 4.5, "t": "2013-07-01T08:30:00+02:00", "s": null, "more": 1}',
        '{"i": 4, "x": "five", "t": null, "s": "b"}',
        "no JSON",
        "[1, 2]",
        "null",
        '{"i": ' * 9_000 + "1" + "}" * 9_000,
        '{"i": 5, "x": 6, "s": "c"}',
    ]
    stream = GivenLines(lines)
    got = stream.all(rows)
    assert [(row["i"], row["x"]) for row in got] == [(1, None), (2, 3.0), (3, 4.5), (5, 6.0)]
    assert [row["t"] and row["t"].isoformat() for row in got] == [
        "2013-07-01T06:30:00+00:00",
        "2013-07-01T06:30:00.250000+00:00",
        "2013-07-01T06:30:00+00:00",
        None,
    ]
    assert stream.rejected == {"not a line of JSON with the columns of the first": 5}
    assert stream.columns.names == ["i", "x", "t", "s"]


PIPES = {
    "JSON": (b'{"i": 1, "x": 2}\noops\n{"i": 2, "x": "a"}\n[1]\n\xff\n{"i": 3, "x": 4.5}\n{"i": 4}', [1, 3, 4], 4),
    "JSON after words": (b'starting up\n{"i": 1, "x": 2}\n\n{"i": 2, "x": 3}\n', [1, 2], 1),
    "CSV": (b'\n\ni,x,t\n1,2,2024-01-01T00:00:00\n2\nx,3,\n3,4.5,2024-01-01T00:00:00.5\n4,"\n5,,', [1, 3, 5], 3),
    "CSV as Windows writes it": (b"\xef\xbb\xbfi,x\r\n1,2\r\n1,2,3\r\n2,3\r\n", [1, 2], 1),
    "only a header": (b"i,x\n", [], 0),
    "words": (b"Oops, that\nis no data\n", [], 1),
    "nothing": (b"", [], 0),
    "blank": (b"\n \n\n", [], 0),
    "zeros": (bytes(10_000), [], 0),
    "a line without end": (b'{"i": 1}\n' + b"x" * 3_000_000 + b'\n{"i": 2}\n', [1, 2], 1),
}


@pytest.mark.parametrize("rows", [1, 2, 20_000])
@pytest.mark.parametrize("kind", PIPES)
def test_malformed_lines_of_a_pipe_are_counted_and_the_others_read(
    kind: str, rows: int, capsys: pytest.CaptureFixture[str]
) -> None:
    data, ids, malformed = PIPES[kind]
    out, into = os.pipe()

    def send() -> None:
        writer.write(data)
        writer.close()

    with os.fdopen(out, "rb") as pipe, os.fdopen(into, "wb") as writer:
        sender = threading.Thread(target=send)
        sender.start()
        lines, got = Lines(pipe), []  # type: tuple[Lines, list[Any]]
        while not lines.ended:
            table = lines.read(rows)
            got += table.to_pylist() if table is not None else []
        sender.join()
    assert [row["i"] for row in got if "i" in row] == ids
    assert lines.malformed.count == sum(lines.rejected.values()) == malformed
    assert capsys.readouterr().err.count("(rejected)") == min(malformed, 5) == len(lines.malformed.first)


def test_stdin_that_is_no_data(root: Path) -> None:
    out, into = os.pipe()
    pipe, writer = os.fdopen(out, "rb"), os.fdopen(into, "wb", buffering=0)
    with pipe, writer, served(root, pipe=pipe) as (client, _):
        client.send("PUT", "/api/stream", {"stream": "-", "time": "t"})
        ask(client, "best", "SELECT * FROM s ORDER BY x DESC LIMIT 2 WINDOW '1 hour'")
        writer.write(b'{"x": 1, "t": "2013-07-01T06:30:00"}\n{"x": \n')
        rejected = wait(lambda: client.get("/api/state")["stream"]["rejected"])
        assert rejected == {"not a line of JSON with the columns of the first": 1}
        writer.write(b'{"x": 2, "t": "2013-07-01T06:31:00.5"}\n')
        answer = wait(lambda: (a := client.get("/api/queries/best/answer"))["total"] == 2 and a)
        assert answer["rows"][0][1:] == [1, "2013-07-01 06:31:00.500000", 2.0]


def test_only_the_topic_of_the_command_line(client: Client) -> None:
    message = client.wrong("PUT", "/api/stream", {"stream": "kafka://127.0.0.1:9/flights"})[1]
    assert "named where the server is started" in message
    for wrong in ("kafka://127.0.0.1:9", "kafka:///flights", "kafka://127.0.0.1:9/a/b"):
        with pytest.raises(QueryError, match="names no topic"):
            Topic(wrong)


def test_the_answers_of_a_spark_pipeline(client: Client, root: Path) -> None:
    folder = root / "out"
    folder.mkdir()
    late = sb.TopK(2, by="delay", window=sb.Last(2), per="origin")
    monitor = sb.Monitor({"late": late}, id="flight", keep="due")  # the file has the objects' own times
    file = AnswerFile(folder, {"late": late}, ("time", "id"))

    def write(batch: int, delays: list[float]) -> None:
        due = pa.array([2 * batch, 2 * batch + 1][: len(delays)], pa.timestamp("us", "UTC"))
        rows = {"flight": [batch * 10 + n for n in range(len(delays))], "due": due, "origin": ["EWR"] * len(delays)}
        changes = monitor.push(rows | {"delay": delays})
        assert file.update("run", batch, changes.rename_columns({"due": "time"}))

    write(0, [9.0, 8.0])
    assert {"name": "out", "kind": "answers"} in client.get("/api/streams")
    status, result = client.send("PUT", "/api/stream", {"stream": "out"})
    assert status == 200 and result["stream"]["fixed"] and [one["name"] for one in result["queries"]] == ["late"]
    answer = client.get("/api/queries/late/answer")
    assert dict(zip(answer["columns"], answer["rows"][0], strict=True)) == {
        "origin": "EWR",
        "rank": 1,
        "id": 0,
        "time": "1970-01-01 00:00:00+00:00",
        "score": 9.0,
    }
    with client.events("/api/events?watch=late") as events:
        plane = next(events)[1]["detail"]["plane"]
        assert plane["points"] == [[-1, 9.0, 1], [0, 8.0, 2]] and plane["span"] == 1
        write(1, [9.5])
        seen = next(data for name, data in events if name == "frame" and 9.5 in data["detail"]["answer"]["rows"][0])
        assert [point[1] for point in seen["detail"]["plane"]["points"]] == [9.5, 8.0]
    assert "run in a Spark pipeline" in client.wrong("POST", "/api/queries", {"name": "x", "sql": LAST})[1]
    (folder / "answer.parquet").write_text("broken")
    assert "cannot be read" in wait(lambda: client.get("/api/state")["stream"]["error"])
    (folder / "answer.parquet").unlink()
    write(0, [7.0])  # a new run
    wait(lambda: client.get("/api/state")["stream"]["error"] is None)
    shutil.rmtree(folder)


def test_the_changes_of_a_spark_pipeline(tmp_path: Path) -> None:
    """Files count once Spark's log names them; every tenth log file holds all before it."""
    late = sb.TopK(3, by="delay", window=sb.Last(20), per="origin")
    monitor = sb.Monitor({"late": late}, id="flight", keep="due")
    out, logged = tmp_path / "changes", []  # type: tuple[Path, list[str]]
    (out / "_spark_metadata").mkdir(parents=True)
    rows = table(130)

    def trigger(batch: int) -> None:
        name = f"part-{batch}.parquet"
        parquet.write_table(monitor.push(rows.slice(10 * batch, 10)), out / name)
        logged.append(json.dumps({"path": f"file:///elsewhere/{name}", "action": "add"}))
        log = out / "_spark_metadata" / (f"{batch}.compact" if batch % 10 == 9 else str(batch))
        log.write_text("\n".join(["v1", *(logged if batch % 10 == 9 else logged[-1:])]))

    for batch in range(8):
        trigger(batch)
    board = follow(out)
    assert isinstance(board, ChangesBoard)
    for batch in range(8, 13):
        trigger(batch)
        parquet.write_table(rows, out / "part-of-no-batch.parquet")
        if batch != 9:  # two come together, the first of them within a compact file
            assert board.look() and not board.look()
            result, answer = board.answer("late", None, 99), monitor.answer("late")
            assert result["columns"] == ["origin", "rank", "id", "score", "due"]
            assert sorted(map(str, result["rows"])) == sorted(
                str([plain(v) for v in row.values()]) for row in answer.to_pylist()
            )
    again = follow(out)
    assert again is not None and again.answer("late", None, 99) == board.answer("late", None, 99)
    (out / "_spark_metadata" / "13").write_text("v2\n")
    with pytest.raises(BatchError, match="cannot be read"):
        board.look()
    assert follow(tmp_path) is None
