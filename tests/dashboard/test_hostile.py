"""The server stays up: bad values, files, lines, requests, listeners and connections are counted, and others go on."""

from __future__ import annotations

import gc
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import skyband as sb
from dashboard.browser import wait
from dashboard.served import LAST, LATE, Client, ask, ended, served, table
from skyband.dashboard import limits
from skyband.dashboard.boards import MonitorBoard
from skyband.dashboard.health import Health
from skyband.dashboard.intake import Intake
from skyband.dashboard.readers import Queued
from skyband.dashboard.root import Root, plain_name
from skyband.dashboard.spark_output import follow
from skyband.dashboard.values import encoded, listed
from skyband.dashboard.watch import Watch
from skyband.engines.adapter import Adapter
from skyband.errors import BatchError, QueryError, RunError, StateError
from skyband.monitor.monitor import Monitor


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[tuple[Client, Watch]]:
    with served(tmp_path) as both:
        yield both


def parts(client: Client) -> dict[str, Any]:
    """The failures of the server, by part; it answers, so it is up."""
    report = client.get("/api/health")
    assert report["status"] in ("ok", "stopped") and report["thread"]["alive"]
    found: dict[str, Any] = report["parts"]
    return found


def invalid_text(*values: bytes) -> Any:
    """A column of texts that Arrow takes as they are."""
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(values)))


# --- values

TIMES = pa.array([0, 2**62, None], pa.timestamp("us"))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (TIMES, ["1970-01-01 00:00:00", "<value out of range: 4611686018427387904>", None]),
        (pa.array([10**7, 0], pa.date32()), ["29349-01-26", "1970-01-01"]),
        (pa.array([7, None], pa.timestamp("us", "Mars/Base")), ["7", None]),
        (invalid_text(b"\xff", b"a"), ["\ufffd", "a"]),
        (pa.array([2**62], pa.duration("s")), ["4611686018427387904"]),
        (pa.array([float("nan"), 1.5]), ["nan", 1.5]),
    ],
)
def test_every_value_has_a_text(column: Any, expected: list[Any]) -> None:
    assert listed(column) == expected
    assert json.loads(encoded(listed(column))) == expected


def test_half_a_character_is_encoded() -> None:
    assert encoded({"a": "\ud800"}) == b'{"a":"?"}'


COLUMNS = {
    "a date past 9999": ("due", pa.array([0, 10**15, 2**61], pa.timestamp("us"))),
    "an unknown zone": ("due", pa.array([1, 2, 3], pa.timestamp("us", "Mars/Base"))),
    "days past 9999": ("due", pa.array([0, 10**7, 1], pa.date32())),
    "invalid UTF-8": ("origin", invalid_text(b"\xff\xfe", b"JFK", b"EWR")),
}


@pytest.mark.parametrize("case", COLUMNS)
@pytest.mark.parametrize("role", ["time", "keep", "per", "where", "id"])
def test_one_bad_column(fresh: tuple[Client, Watch], tmp_path: Path, case: str, role: str) -> None:
    """In whatever role: the server goes on, and another stream after it gives its answers."""
    client, _ = fresh
    name, column = COLUMNS[case]
    rows = {"flight": [1, 2, 3], "delay": [3.0, 2.0, 1.0], "origin": ["EWR", "JFK", "EWR"], "due": [1, 2, 3]} | {
        name: column
    }
    parquet.write_table(pa.table(rows), tmp_path / "bad.parquet")
    parquet.write_table(table(100), tmp_path / "good.parquet")
    body: dict[str, Any] = {"stream": "bad.parquet", "id": "flight", "rate": None, "paused": True}
    query = sb.TopK(2, by="delay", window=sb.Last(3))
    if role == "per":
        query = sb.TopK(2, by="delay", window=sb.Last(3), per=name)
    elif role == "where":
        query = sb.TopK(2, by="delay", window=sb.Last(3), where=f"{name} is not null")
    else:
        body[role] = [name] if role == "keep" else name
    client.send("PUT", "/api/stream", body)
    client.send("POST", "/api/queries", {"name": "q", "sql": query.to_sql()})
    with client.events("/api/events?watch=q") as events:
        client.send("PATCH", "/api/stream", {"paused": False})
        wait(lambda: (s := client.get("/api/state")["stream"]) is None or s["ended"] or s["error"])
        assert next(data for kind, data in events if kind == "frame")["head"]["queries"]
        client.send("GET", "/api/queries/q/answer")
    assert not parts(client).keys() & {"watch", "request", "frame"}
    client.send("PUT", "/api/stream", {"stream": "good.parquet", "id": "flight", "rate": None, "paused": True})
    ask(client, "last", LAST)
    client.send("PATCH", "/api/stream", {"paused": False})
    assert ended(client)["stream"]["arrivals"] == 100
    assert client.get("/api/queries/last/answer")["total"] == 4


# --- requests

SURROGATE = b'{"name": "q", "sql": "SELECT * FROM s WHERE o = \'\\ud800\' ORDER BY x LIMIT 1 WINDOW 9 ROWS"}'


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        (
            "POST",
            "/api/queries",
            b'{"name": "q", "sql": "SELECT * FROM s WHERE o = \'\\ud800\' ORDER BY x LIMIT 1 WINDOW 9 ROWS"}',
        ),
        ("POST", "/api/queries", b'{"name": "\\ud800", "sql": "x"}'),
        ("PUT", "/api/stream", b'{"stream": "\\ud800"}'),
        ("PUT", "/api/stream", b'{"stream": "a\\u0000b.parquet"}'),
        ("PUT", "/api/stream", b'{"stream": "' + b"x" * 5000 + b'"}'),
        ("PATCH", "/api/stream", b'{"rate": NaN}'),
        ("PATCH", "/api/stream", b'{"rate": ' + b"9" * 5000 + b"}"),
        ("POST", "/api/check", b'{"query": ' + b'{"a":' * 200 + b"1" + b"}" * 201),
        ("POST", "/api/check", b'{"sql": "' + b"(" * 9000 + b'"}'),
        ("GET", "/api/queries/q/answer?rows=0000000000009999999", None),
        ("GET", "/api/queries/q/answer?rows=10001", None),
        ("GET", "/api/queries/q/answer?key=%22%5Cud800%22", None),
        ("GET", "/api/queries/q/answer?key=1e999", None),
    ],
)
def test_requests_that_are_refused(client: Client, method: str, path: str, body: bytes | None) -> None:
    client.send("PUT", "/api/stream", {"stream": "flights.parquet", "paused": True})
    ask(client, "q", LAST)
    status, result = client.send(method, path, body)
    assert status == 400, result
    error = result["error"]
    assert error["what"] == f"{method} {path.partition('?')[0]}" and error["why"] and error["instead"]
    assert error["message"].startswith(error["why"])
    assert "request" not in parts(client)


@pytest.mark.parametrize("host", ["[", "[::1", "::::", "a b"])
def test_hosts_that_are_none(client: Client, host: str) -> None:
    assert client.wrong("GET", "/nowhere", Host=host)[0] == 403
    assert client.wrong("POST", "/api/check", {}, Origin=f"http://{host}")[0] == 403


def test_a_bug_is_counted_and_reported(fresh: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    client, watch = fresh

    def fail() -> None:
        raise ZeroDivisionError("no such luck")

    monkeypatch.setattr(watch, "look", fail)
    status, result = client.send("GET", "/api/state")
    assert status == 500 and "ZeroDivisionError" in result["error"]["why"]
    monkeypatch.undo()
    assert client.get("/api/state")["stream"] is None
    assert parts(client)["request"]["failures"] == 1


LIMITED = [
    ("SELECT * FROM s ORDER BY delay LIMIT 10001 WINDOW 50 ROWS", "k up to 10,000"),
    ("SELECT * FROM s a, s b ORDER BY abs(a.delay - b.delay) LIMIT 1001 WINDOW 50 ROWS", "k up to 1,000"),
    ("SELECT * FROM s a, s b ORDER BY abs(a.delay - b.delay) LIMIT 3 WINDOW 20001 ROWS", "up to 20,000"),
    ("SELECT * FROM s ORDER BY delay LIMIT 3 WINDOW 1152921504606846976 ROWS", "up to 100,000,000"),
    ("SELECT * FROM s ORDER BY delay LIMIT 3 WINDOW '36501 days'", "36,500 days"),
    ("SELECT * FROM s ORDER BY delay LIMIT 3 WINDOW 90000000 ROWS USING SMA", "bytes in each group"),
    (sb.TopK(3, by="delay", window=sb.Last(9), algorithm="SASF", buffer=10**9).to_sql(), "buffer up to 1,000,000"),
]


@pytest.mark.parametrize(("sentence", "said"), LIMITED)
def test_work_limits(client: Client, sentence: str, said: str) -> None:
    """Refused before anything is built, with what to change; also where it is only explained."""
    client.send("PUT", "/api/stream", {"stream": "flights.parquet", "paused": True})
    begin = time.monotonic()
    for path, body in (("/api/queries", {"name": "q", "sql": sentence}), ("/api/check", {"sql": sentence})):
        status, result = client.send("POST", path, body)
        assert status == 400 and said in result["error"]["why"], result
        assert "Use" in result["error"]["instead"] or "Ask" in result["error"]["instead"]
    assert time.monotonic() - begin < 10


def test_all_sql_together(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.send("PUT", "/api/stream", {"stream": "flights.parquet", "paused": True})
    monkeypatch.setattr(limits, "SQL", 100)
    ask(client, "q", LAST)
    assert "characters of SQL together" in client.wrong("POST", "/api/queries", {"name": "r", "sql": LAST})[1]


# --- rows, and a Monitor that breaks

QUERY = sb.TopK(3, by="x", window=sb.Last(50))


class Poisoned(Monitor):
    """Breaks at x = 13, for ever, as a Monitor after a commit that failed."""

    broken = False

    def push(self, batch: Any, **options: Any) -> Any:
        if not self.broken and 13.0 in batch["x"].to_pylist():
            super().push(batch.slice(0, batch.num_rows // 2))  # half of it is in
            self.broken = True
        if self.broken:
            raise StateError("this Monitor is broken. Restore it.")
        return super().push(batch, **options)


def test_a_broken_monitor_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is that of a Monitor which never saw the row that breaks it."""
    monkeypatch.setattr("skyband.dashboard.intake.Monitor", Poisoned)
    health = Health()
    intake = Intake(Poisoned({"q": QUERY}), health)
    values = np.random.default_rng(1).permutation(600) + 0.5
    values[321] = 13.0
    for start in range(0, 600, 100):
        intake.push(pa.table({"x": values[start : start + 100]}))
        if start == 100:
            intake.change(lambda monitor: monitor.add("late", sb.TopK(2, by="-x", window=sb.Last(20))))
    expected = sb.Monitor({"q": QUERY})
    expected.push({"x": values[:200]})
    expected.add("late", sb.TopK(2, by="-x", window=sb.Last(20)))
    expected.push({"x": np.delete(values[200:], 121)})
    for name in ("q", "late"):
        assert intake.monitor.answer(name).equals(expected.answer(name))
    assert intake.rejected.total() == 1 and intake.lost == 0
    report = health.report()["parts"]
    assert report["monitor"]["restarts"] >= 1 and "is broken" in report["monitor"]["last_reason"]
    assert report["rows"]["failures"] == 1


@pytest.mark.parametrize("where", ["push", "replace"])
def test_a_commit_that_fails(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Out of memory in the middle of a commit: the Monitor is broken, and the next thing is asked of a restored one."""
    rows = table(300)
    intake = Intake(sb.Monitor({"q": sb.TopK(3, by="delay", window=sb.Last(50))}, id="flight"), Health())
    intake.push(rows.slice(0, 100))
    failures = [1]

    def fail(real: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            if failures[0]:
                failures[0] -= 1
                raise MemoryError("no memory")
            return real(*given, **named)

        return call

    other = sb.TopK(2, by="delay", window=sb.Last(40), where="delay < 100")
    if where == "push":
        monkeypatch.setattr(Adapter, "take", fail(Adapter.take))
        intake.push(rows.slice(100, 200))
    else:
        monkeypatch.setattr(Adapter, "leave", fail(Adapter.leave))
        with pytest.raises(RunError, match="Everything is as before"):
            intake.change(lambda monitor: monitor.replace("q", other))
        intake.push(rows.slice(100, 200))
    expected = sb.Monitor({"q": sb.TopK(3, by="delay", window=sb.Last(50))}, id="flight")
    expected.push(rows)
    assert intake.monitor.answer("q").equals(expected.answer("q"))
    assert intake.rejected.total() == 0 and intake.lost == 0
    assert intake.health.report()["parts"]["monitor"]["restarts"] == 1


def test_changes_come_once_when_a_row_is_left_out() -> None:
    class Strict(Monitor):
        def push(self, batch: Any, **options: Any) -> Any:
            if 13.0 in batch["x"].to_pylist():
                raise BatchError("row 3 is bad. Leave it out.")
            return super().push(batch, **options)

    intake, expected = Intake(Strict({"q": QUERY}), Health()), sb.Monitor({"q": QUERY})
    values = [1.0, 13.0, 5.0, 2.0, 13.0, 13.0, 9.0, 4.0]
    found = [row for changes in intake.push(pa.table({"x": values})) for row in changes.to_pylist()]
    assert found == expected.push({"x": [value for value in values if value != 13.0]}).to_pylist()
    assert intake.rejected == {"row 3 is bad. Leave it out.": 3}


def test_too_many_bad_rows_are_rejected_together(monkeypatch: pytest.MonkeyPatch) -> None:
    class Strict(Monitor):
        pushes = 0

        def push(self, batch: Any, **options: Any) -> Any:
            Strict.pushes += 1
            if batch.num_rows:
                raise BatchError("all are bad. Leave them out.")
            return super().push(batch, **options)

    intake = Intake(Strict({"q": QUERY}), Health())
    assert intake.push(pa.table({"x": np.arange(20_000.0)})) == [] and Strict.pushes < 400
    assert intake.rejected.total() == 20_000


def test_without_a_snapshot_it_starts_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unsaved(Monitor):
        def snapshot(self) -> bytes:
            raise MemoryError

        def push(self, batch: Any, **options: Any) -> Any:
            if 13.0 in batch["x"].to_pylist():
                raise MemoryError
            return super().push(batch, **options)

    intake, health = Intake(Unsaved({"q": QUERY}), health := Health()), health
    intake.push(pa.table({"x": [1.0, 2.0]}))
    intake.push(pa.table({"x": [13.0]}))
    intake.push(pa.table({"x": [3.0]}))
    assert intake.monitor.answer("q")["score"].to_pylist() == [3.0] and intake.lost == 2
    assert health.report()["parts"]["snapshot"]["failures"] >= 2


def test_a_large_state_has_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SNAPSHOT_BYTES", 100)
    board = MonitorBoard(sb.Monitor({"q": QUERY}))
    for start in range(0, 60, 20):
        board.intake._due = 0.0
        board.push(pa.table({"x": np.arange(start, start + 20.0)}), set())
    assert board.intake._snapshot is None
    monkeypatch.setattr(board.monitor, "push", lambda rows: 1 / 0)
    board.push(pa.table({"x": [1.0, 2.0]}), set())
    assert board.answer("q", None, 9)["rows"] == [[1, 1, 2.0], [2, 0, 1.0]]
    assert board.head()["rejected"] == {"lost when the Monitor was restored": 60}


# --- the supervisor


def test_the_supervisor_starts_the_loop_again(fresh: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    client, watch = fresh
    step, left = watch._step, [3]

    def fail() -> bool:
        left[0] -= 1
        if left[0] >= 0:
            raise SystemExit("a library ends the thread")
        return step()

    monkeypatch.setattr(watch, "_step", fail)
    wait(lambda: left[0] < 0, 20)
    assert client.get("/api/state") == {"stream": None, "queries": []}
    found = parts(client)["watch"]
    assert found["restarts"] == found["failures"] == 3 and "a library ends the thread" in found["last_reason"]


def test_health_does_not_wait(fresh: tuple[Client, Watch]) -> None:
    """While the thread is busy with something long, and says for how long."""
    client, watch = fresh
    future = watch.submit(time.sleep, 3)
    time.sleep(0.5)
    begin = time.monotonic()
    report = client.get("/api/health")
    assert time.monotonic() - begin < 2 and report["thread"]["busy_s"] > 0.3 and not future.done()
    future.result(20)


def test_a_listener_that_fails(fresh: tuple[Client, Watch]) -> None:
    client, watch = fresh
    handle = watch.listen(lambda: 1 / 0)  # type: ignore[arg-type]
    with client.events("/api/events") as events:
        assert next(events)[0] == "frame"
    watch.leave(handle)
    assert parts(client)["listener"]["failures"] >= 1


def test_a_reader_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a Kafka topic, which knows where it is; a pipe cannot."""
    monkeypatch.setattr("skyband.dashboard.readers._PAUSE", 0.01)

    class Unsteady(Queued):
        attempts, place = 2, 0

        def _pieces(self) -> Iterator[Any]:
            while self.place < 6:
                self.place += 1
                if self.place % 2:
                    raise OSError(f"no broker at {self.place}")
                yield b'{"x": %d}\n' % self.place, [self.place]

    health = Health()
    stream = Unsteady("unsteady")
    stream.failed = lambda error: health.restarted("reader", error)
    found: list[Any] = []
    while not stream.ended:
        rows = stream.read(10)
        found += rows["x"].to_pylist() if rows is not None else []
    assert found == [2, 4, 6]
    Unsteady.attempts = 0
    broken = Unsteady("broken")
    with pytest.raises(RunError, match="no broker at 1"):
        wait(lambda: broken.read(1), 10)


def test_queries_that_keep_too_much(fresh: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing more is read, until one is dropped."""
    client, _ = fresh
    monkeypatch.setattr(limits, "STATE", 1_000_000)
    client.send("PUT", "/api/stream", {"stream": "uniform", "rate": 50_000, "paused": True})
    ask(client, "all", "SELECT * FROM s ABOVE -1 BY x1 WINDOW 500000 ROWS")
    ask(client, "few", "SELECT * FROM s ORDER BY x1 LIMIT 2 WINDOW 100 ROWS")
    client.send("PATCH", "/api/stream", {"paused": False})
    assert "'all' keeps most" in wait(lambda: client.get("/api/state")["stream"]["error"])
    client.send("DELETE", "/api/queries/all")
    rows = client.get("/api/state")["stream"]["rows"]
    wait(lambda: client.get("/api/state")["stream"]["rows"] > rows)
    time.sleep(1.5)
    assert client.get("/api/state")["stream"]["error"] is None


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


# --- connections


def connected(client: Client, text: bytes = b"") -> socket.socket:
    one = socket.create_connection(("127.0.0.1", client.port), timeout=20)
    if text:
        one.sendall(text)
    return one


def closed(one: socket.socket) -> bool:
    """Whether the server has closed a connection; what it has sent is read."""
    one.setblocking(False)
    try:
        while one.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def test_silent_connections_block_no_request(fresh: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    """1,100 of them, of three kinds, and a page all the while."""
    client, _ = fresh
    with client.events("/api/events") as events:
        begun = [b"", b"GET /api/state HTTP/1.1\r\nHost: localh", b"POST /api/check HTTP/1.1\r\nHost: localhost\r\n"]
        begun[2] += b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        silent = [connected(client, begun[n % 3]) for n in range(1_100)]
        begin = time.monotonic()
        assert client.get("/api/state") == {"stream": None, "queries": []}
        assert time.monotonic() - begin < 5
        assert next(events)[0] in ("frame", "beat")
        monkeypatch.setattr(limits, "HEADERS_IN", 0.3)
        monkeypatch.setattr(limits, "BODY_IN", 0.3)
        wait(lambda: all(closed(one) for one in silent), 30)
        assert next(events)[0] in ("frame", "beat")
        assert client.get("/api/health")["listeners"]["pages"] == 1
    for one in silent:
        one.close()


def test_bytes_that_are_no_requests(fresh: tuple[Client, Watch]) -> None:
    """Random bytes, and requests with random bytes in them, on 300 connections."""
    client, _ = fresh
    good = b"POST /api/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    good += b"Content-Length: 2\r\n\r\n{}"
    rng = np.random.default_rng(1)
    for number in range(300):
        text = bytearray(good * 3 if number % 3 else rng.bytes(200))
        for place in rng.integers(0, len(text), number % 7):
            text[place] = rng.integers(256)
        with connected(client, bytes(text)) as one, suppress(OSError):
            one.settimeout(0.02)
            while one.recv(65_536):
                pass
    assert client.get("/api/state") == {"stream": None, "queries": []}
    assert not parts(client).keys() & {"request", "watch"}


@pytest.mark.parametrize("path", ["/api/queries/q/changes", "/api/events?watch=q"])
def test_a_listener_that_does_not_read(fresh: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """It costs bounded memory and is dropped; others go on."""
    client, watch = fresh
    monkeypatch.setattr(limits, "READ_IN", 1.0)
    client.send("PUT", "/api/stream", {"stream": "uniform", "rate": None, "paused": True})
    ask(client, "q", "SELECT * FROM s ORDER BY x1 DESC LIMIT 50 WINDOW 100 ROWS")
    deaf = connected(client)
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    wait(lambda: sum(client.get("/api/health")["listeners"].values()) == 1)
    client.send("PATCH", "/api/stream", {"paused": False})
    most = 0

    def gone() -> bool:
        nonlocal most
        with watch._lock:
            most = max([most, *(one._size for one in watch._subscribers)])
        return bool(sum(client.get("/api/health")["listeners"].values()) == 0)

    wait(gone, 60)
    deaf.close()
    assert most < limits.WAITING + 500_000
    assert parts(client)["connection"]["last_reason"] == "a client does not read"
    with client.events("/api/queries/q/changes") as events:
        assert next(data for name, data in events if name == "changes")


def test_a_slow_listener_learns_what_it_missed(fresh: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = fresh
    monkeypatch.setattr(limits, "WAITING", 50_000)
    client.send("PUT", "/api/stream", {"stream": "uniform", "rate": None, "paused": True})
    ask(client, "q", "SELECT * FROM s ORDER BY x1 DESC LIMIT 50 WINDOW 100 ROWS")
    with client.events("/api/queries/q/changes") as events:
        client.send("PATCH", "/api/stream", {"paused": False})
        time.sleep(2)
        client.send("PATCH", "/api/stream", {"paused": True})
        assert next(data for name, data in events if name == "missed")["rows"] > 0


def test_listeners_leave_nothing_behind(fresh: tuple[Client, Watch]) -> None:
    client, watch = fresh
    client.send("PUT", "/api/stream", {"stream": "uniform", "paused": True})
    ask(client, "q", "SELECT * FROM s ORDER BY x1 LIMIT 2 WINDOW 9 ROWS")
    for _ in range(limits.CLIENTS + 10):
        for path in ("/api/events", "/api/queries/q/changes"):
            one = connected(client, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            one.close()
    wait(lambda: client.get("/api/health")["listeners"] == {"pages": 0, "programs": 0}, 20)
    gc.collect()
    assert client.send("HEAD", "/api/events")[0] == 200
    assert watch.report()["listeners"] == {"pages": 0, "programs": 0}


def test_a_page_with_long_texts(tmp_path: Path) -> None:
    """Cut on the page, whole in the API up to a limit of bytes."""
    monitor = sb.Monitor({}, id="i", keep="s")
    board = MonitorBoard(monitor, ["i", "s", "x"])
    board.add("q", sb.TopK(5, by="x", window=sb.Last(9)))
    board.push(pa.table({"i": [1, 2], "s": ["y" * 100_000, "z"], "x": [1.0, 2.0]}), set())
    shown = board.detail("q", None)["answer"]["rows"]
    assert [len(row[-1]) for row in shown] == [1, limits.CELL + 2]
    assert [len(row[-1]) for row in board.answer("q", None, 10)["rows"]] == [1, 100_000]
    board.push(pa.table({"i": [3], "s": ["w" * 9_000_000], "x": [3.0]}), set())
    with pytest.raises(QueryError, match="Ask for fewer"):
        board.answer("q", None, 10)


def test_late_is_as_before(client: Client) -> None:
    """After all this the module's own server gives the answers of a Monitor."""
    client.send("PUT", "/api/stream", {"stream": "flights.parquet", "id": "flight", "rate": None, "paused": True})
    ask(client, "late", LATE)
    client.send("PATCH", "/api/stream", {"paused": False})
    ended(client)
    monitor = sb.Monitor({"late": sb.sql(LATE)}, id="flight", time="due")
    monitor.push(table())
    assert client.get("/api/queries/late/answer")["total"] == monitor.answer("late").num_rows
