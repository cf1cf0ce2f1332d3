"""The server stays up: bad values and requests are counted or refused, and others go on."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import skyband as sb
from dashboard.browser import wait
from dashboard.served import LAST, LATE, Client, ask, ended, parts, table
from skyband.dashboard import limits
from skyband.dashboard.boards import MonitorBoard
from skyband.dashboard.values import encoded, listed, plain
from skyband.dashboard.watch import Watch
from skyband.errors import QueryError


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


@pytest.mark.parametrize(
    ("value", "result"),
    [(float("inf"), "inf"), (2**60, str(2**60)), (b"\x01", "01"), ([1, None], [1, None]), (True, True), (2.5, 2.5)],
)
def test_values_as_json(value: Any, result: Any) -> None:
    assert plain(value) == result


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


def test_late_is_as_before(client: Client) -> None:
    """After all this the module's own server gives the answers of a Monitor."""
    client.send("PUT", "/api/stream", {"stream": "flights.parquet", "id": "flight", "rate": None, "paused": True})
    ask(client, "late", LATE)
    client.send("PATCH", "/api/stream", {"paused": False})
    ended(client)
    monitor = sb.Monitor({"late": sb.sql(LATE)}, id="flight", time="due")
    monitor.push(table())
    assert client.get("/api/queries/late/answer")["total"] == monitor.answer("late").num_rows
