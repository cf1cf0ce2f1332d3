"""Subscriptions through the API: each subscriber's own changes, for many listeners that are cut off and come back."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import skyband as sb
from dashboard.browser import wait
from dashboard.served import Client, parts, served
from skyband.dashboard import limits
from skyband.dashboard.watch import Watch

NEAR = "SELECT * FROM s WHERE free AND seats >= :seats ORDER BY nearest(x = :x, y = :y) LIMIT :k WINDOW 300 ROWS"
LISTENERS = 200
ARROW = "application/vnd.apache.arrow.stream"
PATH = "/api/queries/near/subscriptions"


def taxis(rows: int, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    columns = {"taxi": np.arange(rows), "x": rng.random(rows), "y": rng.random(rows), "free": rng.random(rows) < 0.8}
    return pa.table(columns | {"seats": rng.integers(1, 7, rows)})


def riders(count: int, seed: int = 2) -> Any:
    rng = np.random.default_rng(seed)
    columns = {"subscriber": [f"rider {n}" for n in range(count)], "k": rng.integers(1, 4, count)}
    return pa.table(columns | {"x": rng.random(count), "y": rng.random(count), "seats": rng.integers(1, 5, count)})


def arrow(table: Any, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


@pytest.fixture(scope="module")
def served_taxis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Watch]]:
    folder = tmp_path_factory.mktemp("taxis")
    parquet.write_table(taxis(6_000), folder / "taxis.parquet")
    with served(folder) as both:
        yield both


@pytest.fixture
def client(served_taxis: tuple[Client, Watch]) -> Client:
    """A stream that is paused, with a query with `Each` and nobody who subscribes to it."""
    client, _ = served_taxis
    client.send("PUT", "/api/stream", {"stream": "taxis.parquet", "id": "taxi", "paused": True})
    status, result = client.send("POST", "/api/queries", {"name": "near", "sql": NEAR})
    assert status == 201 and result["each"] == ["k", "x", "y", "seats"], result
    return client


class Followers:
    """Many listeners on one thread; each remembers its events and the id of the last one."""

    def __init__(self, port: int, names: list[str]) -> None:
        self.port = port
        self.events: dict[str, list[tuple[str, Any]]] = {name: [] for name in names}
        self.last: dict[str, str] = {}

    async def follow(self, name: str, until: asyncio.Event) -> None:
        """Read the events of a subscriber; the connection is cut when `until` is set, wherever it is."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)
        place = name.replace(" ", "%20")
        text = f"GET /api/queries/near/changes?subscriber={place} HTTP/1.1\r\nHost: localhost\r\n"
        text += f"Last-Event-ID: {self.last[name]}\r\n\r\n" if name in self.last else "\r\n"
        writer.write(text.encode())
        reading = asyncio.ensure_future(self._read(name, reader))
        await until.wait()
        reading.cancel()
        writer.transport.abort()

    async def _read(self, name: str, reader: asyncio.StreamReader) -> None:
        kind = id = ""
        while line := (await reader.readline()).decode().rstrip("\r\n") or not reader.at_eof():
            if line is True:
                continue
            word, _, rest = line.partition(": ")
            if word == "event":
                kind, id = rest, ""
            elif word == "id":
                id = rest
            elif word == "data":
                self.events[name].append((kind, json.loads(rest)))
                self.last[name] = id or self.last.get(name, "")

    def rows(self, name: str) -> list[Any]:
        """The changes so far."""
        return [row for kind, data in self.events[name] if kind == "changes" for row in data]


def test_two_hundred_listeners_some_of_whom_come_back(client: Client) -> None:
    """Each has got just the changes of its subscriber, each of them once and in order, whenever it was cut off."""
    people = riders(1_000)
    status, result = client.send("POST", PATH, arrow(people), Content_Type=ARROW)
    assert (status, result) == (200, {"taken": 1_000, "subscriptions": 1_000})
    names = people["subscriber"].to_pylist()[: 5 * LISTENERS : 5]
    followers = Followers(client.port, names)
    monitor = sb.Monitor({"near": sb.sql(NEAR)}, id="taxi")
    monitor.subscribe("near", people)
    expected = monitor.push(taxis(6_000)).to_pylist()
    wanted = {name: [row for row in expected if row["subscriber"] == name] for name in names}

    async def play() -> None:
        first, last = asyncio.Event(), asyncio.Event()
        early = [asyncio.ensure_future(followers.follow(name, first)) for name in names]
        await _until(lambda: all(followers.events.values()), "every listener begins with an answer")
        send = asyncio.get_running_loop().run_in_executor
        await send(None, lambda: client.send("PATCH", "/api/stream", {"paused": False, "rate": 4_000}))
        await _until(lambda: sum(map(len, followers.events.values())) > 3 * LISTENERS, "changes come")
        first.set()  # all are cut off, and every second comes back at once
        await asyncio.gather(*early)
        late = [asyncio.ensure_future(followers.follow(name, last)) for name in names[::2]]
        await _until(lambda: client.get("/api/state")["stream"]["ended"], "the stream ends")
        late += [asyncio.ensure_future(followers.follow(name, last)) for name in names[1::2]]
        whole = lambda: all(len(followers.rows(name)) >= len(wanted[name]) for name in names)  # noqa: E731
        await _until(whole, "all changes have come")
        last.set()
        await asyncio.gather(*late)

    asyncio.run(play())
    for name in names:
        kinds = [kind for kind, _ in followers.events[name] if kind != "beat"]
        assert kinds[0] == "answer" and set(kinds[1:]) == {"changes"}
        assert followers.rows(name) == wanted[name], name
    wait(lambda: client.get("/api/health")["listeners"]["subscribers"] == 0)
    assert not parts(client).keys() & {"delivery", "request", "watch", "listener"}
    answer = client.get("/api/queries/near/answer?subscriber=rider%200")
    assert [row[2] for row in answer["rows"]] == monitor.answer("near", subscriber="rider 0")["id"].to_pylist()


async def _until(holds: Any, what: str, seconds: float = 60) -> None:
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def first(client: Client, last: str | None, count: int, subscriber: str = "rider%200") -> list[Any]:
    """The first events of a listener that gives this id."""
    client.headers = {} if last is None else {"Last-Event-ID": last}
    try:
        with client.events(f"/api/queries/near/changes?subscriber={subscriber}") as events:
            return [next(events) for _ in range(count)]
    finally:
        client.headers = {}


def test_an_id_that_is_too_old(client: Client, served_taxis: tuple[Client, Watch]) -> None:
    """Or of another stream, or no id: that is said, and the whole answer follows."""
    watch = served_taxis[1]
    client.send("POST", PATH, riders(3).to_pylist())
    assert first(client, None, 1) == [
        ("answer", {"columns": ["subscriber", "rank", "id", "score"], "rows": [], "total": 0})
    ]
    for last in ("nonsense", "-", "\u0663-1", f"{watch.delivery.epoch}-99", f"{watch.delivery.epoch}-{'9' * 400}"):
        (reset, data), (answer, _) = first(client, last.encode("utf-8").decode("latin-1"), 2)
        assert (reset, answer) == ("reset", "answer") and "is no id of this stream" in data["why"]
    place = f"{watch.delivery.epoch}-{watch.delivery.number}"
    watch.delivery.settings = limits.Settings(resume=1_000)
    client.send("PATCH", "/api/stream", {"paused": False, "rate": None})
    wait(lambda: client.get("/api/state")["stream"]["ended"])
    (reset, data), (answer, rows) = first(client, place, 2)
    assert (reset, answer) == ("reset", "answer") and "no longer kept" in data["why"] and "--resume" in data["why"]
    assert rows == client.get("/api/queries/near/answer?subscriber=rider%200") and rows["total"]
    watch.delivery.settings = limits.Settings()


def test_listeners_learn_that_a_subscription_begins_anew_or_ends(client: Client) -> None:
    client.send("POST", PATH, riders(3).to_pylist())
    one = riders(1).to_pydict()
    with client.events("/api/queries/near/changes?subscriber=rider%200") as events:
        assert next(events)[0] == "answer"
        client.send("PATCH", "/api/stream", {"paused": False, "rate": 200})
        assert next(events)[0] == "changes"
        client.send("PATCH", "/api/stream", {"paused": True})
        client.send("POST", PATH, one)
        assert next(event for event in events if event[0] != "changes")[1]["rows"] == []
        assert client.send("DELETE", f"{PATH}/rider%200") == (200, {"ended": 1, "subscriptions": 2})
        assert next(events)[0] == "gone"
        assert client.send("POST", PATH, one) == (200, {"taken": 1, "subscriptions": 3})
        assert next(events)[0] == "answer"
        client.send("PUT", "/api/queries/near", {"sql": NEAR.replace("300", "200")})  # subscriptions stay
        assert next(events)[0] == "answer"
        body = {"stream": "taxis.parquet", "id": "taxi", "paused": True}
        client.send("PUT", "/api/stream?queries=keep", body)  # here too, and start empty
        assert next(events) == ("answer", {"columns": ["subscriber", "rank", "id", "score"], "rows": [], "total": 0})
        client.send("DELETE", "/api/queries/near")
        assert next(events)[0] == "gone"


@pytest.mark.parametrize("ids", ["text", "number"])
def test_a_table_in_every_format(client: Client, ids: str) -> None:
    people = riders(4)
    if ids == "number":
        people = people.set_column(0, "subscriber", pa.array([7, 8, 9, 10]))
    name = str(people["subscriber"][0])
    for number, (body, headers) in enumerate(
        [
            (people.to_pylist(), {}),
            (people.to_pydict(), {}),
            (arrow(people), {"Content_Type": ARROW}),
            (arrow(people.rename_columns(["who", *people.column_names[1:]])), {"Content_Type": ARROW}),
        ]
    ):
        path = PATH + ("?id=who" if number == 3 else "")
        assert client.send("POST", path, body, **headers) == (200, {"taken": 4, "subscriptions": 4})
        assert client.get("/api/queries")[0]["subscriptions"] == 4
        assert client.get(f"/api/queries/near/answer?subscriber={name.replace(' ', '%20')}")["total"] == 0
        gone: Any = people["subscriber"].to_pylist()
        given: dict[str, str] = {}
        if number == 1:
            gone = {"ids": [*gone, gone[0]]}
        elif number == 2:
            gone, given = arrow(people.select(["subscriber"])), {"Content_Type": ARROW}
        assert client.send("POST", "/api/queries/near/unsubscribe", gone, **given)[1]["ended"] == 4
    assert client.get("/api/queries/near/answer")["total"] == 0


ROW = {"subscriber": "ann", "k": 1, "x": 0.5, "y": 0.5, "seats": 1}
WRONG: list[tuple[str, str, Any, int, str]] = [
    ("POST", PATH, [ROW | {"k": 0}], 400, "'ann': column 'k' is 0"),
    ("POST", PATH, [ROW | {"k": 10_001}], 400, "k=10,001: this server takes up to 10,000"),
    ("POST", PATH, [ROW | {"k": "three"}], 400, "takes whole numbers"),
    ("POST", PATH, [ROW | {"x": None}], 400, "'x' is null"),
    ("POST", PATH, [ROW | {"x": 2**70}], 400, "Nothing was taken"),
    ("POST", PATH, [ROW, ROW], 400, "'ann' twice"),
    ("POST", PATH, [ROW, ROW | {"subscriber": 7}], 400, "'subscriber' of subscriber 7"),
    ("POST", PATH, [ROW | {"subscriber": None}], 400, "'subscriber' is null"),
    ("POST", PATH, [{"subscriber": "ann"}], 400, "no column 'k'"),
    ("POST", PATH, {"subscriber": ["ann"], "k": [1, 2]}, 400, "rows"),
    ("POST", PATH, [1], 400, "a table is a list of rows"),
    ("POST", PATH, {"subscriber": "ann"}, 400, "an object of columns"),
    ("POST", PATH, b"[{", 400, "not JSON"),
    ("POST", PATH, b'[{"subscriber": NaN}]', 400, "not JSON"),
    ("POST", PATH, b'[{"subscriber": "\\ud800"}]', 400, "half of a character"),
    ("POST", PATH, b"[" * 1_000_000, 400, "nest deeper"),
    ("POST", PATH, b" " * (2 * 2**20 + 1), 413, "--table 4"),
    ("POST", PATH, [ROW | {"subscriber": n} for n in range(2_001)], 400, "--subscriptions 2001"),
    ("POST", PATH + "?id=%00", [ROW], 400, "no column"),
    ("POST", "/api/queries/plain/subscriptions", [ROW], 400, "is a plain query"),
    ("POST", "/api/queries/none/subscriptions", [ROW], 404, "there is no query 'none'"),
    ("POST", "/api/queries/near/unsubscribe", {"id": 1}, 400, "a list of ids"),
    ("POST", "/api/queries/near/unsubscribe", [["ann"]], 400, "these are not"),
    ("DELETE", PATH + "/nobody", None, 404, "no subscriber 'nobody'"),
    ("GET", "/api/queries/near/changes?subscriber=nobody", None, 404, "no subscriber 'nobody'"),
    ("GET", "/api/queries/near/changes?subscriber=" + "x" * 2_000, None, 404, "no subscriber"),
    ("GET", "/api/queries/plain/changes?subscriber=ann", None, 400, "is a plain query"),
    ("GET", "/api/queries/near/answer?subscriber=%ff", None, 404, "no subscriber"),
    ("GET", "/api/queries/plain/answer?subscriber=ann", None, 400, "is a plain query"),
]


@pytest.fixture(scope="module")
def standing(served_taxis: tuple[Client, Watch]) -> Iterator[Client]:
    client, watch = served_taxis
    client.send("PUT", "/api/stream", {"stream": "taxis.parquet", "id": "taxi", "paused": True})
    client.send("POST", "/api/queries", {"name": "near", "sql": NEAR})
    client.send("POST", "/api/queries", {"name": "plain", "sql": "SELECT * FROM s ORDER BY x LIMIT 3 WINDOW 9 ROWS"})
    client.send("POST", PATH, [ROW | {"subscriber": "zoe"}])
    before, watch.settings = watch.settings, limits.Settings(subscriptions=2_000, table=2 * 2**20)
    yield client
    watch.settings = before


@pytest.mark.parametrize(("method", "path", "body", "status", "said"), WRONG)
def test_bad_requests(standing: Client, method: str, path: str, body: Any, status: int, said: str) -> None:
    """Each is refused with what to change; nothing of a table is taken."""
    got, result = standing.send(method, path, body)
    assert got == status and said in result["error"]["message"], result
    assert standing.get("/api/queries/near")["subscriptions"] == 1


def test_bad_arrow(standing: Client) -> None:
    people = riders(3)
    struct = pa.table({"subscriber": pa.array([{"a": 1}])})
    many = pa.table({f"c{n}": pa.array([1]) for n in range(3_000)})
    nulls = pa.Table.from_arrays([pa.nulls(10**7)], ["subscriber"])  # some bytes for any number of rows
    for data, said in (
        (arrow(people, compression="zstd"), "compressed"),
        (arrow(pa.table({"s": people["subscriber"].dictionary_encode()}), compression="lz4"), "compressed"),
        (arrow(struct), "struct"),
        (arrow(many), "Send fewer columns"),
        (arrow(nulls), "holds null"),
        (arrow(people)[:-50], "no stream of Arrow"),
        (b"", "no stream of Arrow"),
        (b"\xff" * 100, "no stream of Arrow"),
    ):
        status, message = standing.wrong("POST", PATH, data, Content_Type=ARROW)
        assert status == 400 and said in message, message
    rng, good = np.random.default_rng(1), arrow(people)
    for _ in range(200):
        changed = bytearray(good)
        for place in rng.integers(0, len(changed), 4):
            changed[place] = rng.integers(256)
        assert standing.send("POST", PATH, bytes(changed), Content_Type=ARROW)[0] in (200, 400)
    assert standing.wrong("POST", "/api/check", arrow(people), Content_Type=ARROW)[0] == 415
    assert not parts(standing).keys() & {"request", "watch", "delivery"}


def test_limits_are_settings(
    client: Client, served_taxis: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = served_taxis[1]
    monkeypatch.setattr(watch.delivery, "settings", limits.Settings(listeners=1))
    board = watch.board()
    monkeypatch.setattr(board.subscribed, "settings", limits.Settings(subscriptions=3))  # type: ignore[union-attr]
    assert client.send("POST", PATH, riders(3).to_pylist())[0] == 200
    assert client.send("POST", PATH, riders(3).to_pylist())[0] == 200  # the same again: no more than before
    assert "--subscriptions 4" in client.wrong("POST", PATH, [ROW])[1]
    with client.events("/api/queries/near/changes?subscriber=rider%200"):
        assert "--listeners 2" in client.wrong("GET", "/api/queries/near/changes?subscriber=rider%201")[1]
    monkeypatch.setattr(limits, "ALONE", 2)
    client.send(
        "POST", "/api/queries", {"name": "wide", "sql": "SELECT * FROM s ORDER BY x LIMIT :k PER seats WINDOW 9 ROWS"}
    )
    monkeypatch.setattr(board.subscribed, "settings", limits.Settings())  # type: ignore[union-attr]
    message = client.wrong("POST", "/api/queries/wide/subscriptions", riders(3).to_pylist())[1]
    assert "each is a plain query" in message
    monkeypatch.setattr(limits, "ASKED", 2)
    assert "subscriber=" in client.wrong("GET", "/api/queries/near/answer")[1]
    with client.events("/api/events?watch=near") as events:  # the page shows the first ones
        assert next(data for kind, data in events if kind == "frame")["detail"]["answer"]["total"] == 0


def test_a_monitor_that_is_lost_keeps_its_subscriptions(
    client: Client, served_taxis: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state without a snapshot starts empty: the subscriptions stand, and listeners begin with the empty answer."""
    watch = served_taxis[1]
    monkeypatch.setattr(limits, "SNAPSHOT_BYTES", -1)
    client.send("POST", "/api/queries", {"name": "long", "sql": "SELECT * FROM s ORDER BY x LIMIT 2 WINDOW :n ROWS"})
    client.send("POST", PATH, riders(3).to_pylist())
    client.send("POST", "/api/queries/long/subscriptions", {"subscriber": ["a", "b"], "n": [5, 9]})
    with client.events("/api/queries/near/changes?subscriber=rider%200") as events:
        assert next(events)[0] == "answer"

        def fail() -> None:
            watch.board().intake._snapshot = None  # type: ignore[union-attr]
            watch.board().intake._restore(ZeroDivisionError("no such luck"))  # type: ignore[union-attr]
            watch._publish([])

        watch.call(fail)
        assert next(events)[0] == "answer"
        client.send("PATCH", "/api/stream", {"paused": False, "rate": 500})
        assert next(events)[0] == "changes"
    assert [one["subscriptions"] for one in client.get("/api/queries")] == [3, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_system_with_few_files(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import resource

    from skyband.dashboard.start import allow_files

    given: list[Any] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1_000))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: given.append(limits))
    allow_files(200)
    allow_files(900)
    assert given == [(900, 1_000)] and not capsys.readouterr().err
    allow_files(1_600)
    assert given[1:] == [(1_000, 1_000)] and "1,600. Raise it" in capsys.readouterr().err


def test_the_folder_is_not_needed(tmp_path: Path) -> None:
    """Without a stream nobody can subscribe, and the error says so."""
    with served(tmp_path) as (client, _):
        assert "no stream is chosen" in client.wrong("POST", PATH, [ROW])[1]
