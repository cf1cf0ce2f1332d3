"""A server in this process, on loopback and a free port; and a client that knows JSON and server-sent events."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from dashboard.browser import wait
from skyband.dashboard.server import make_server
from skyband.dashboard.watch import Watch


class Client:
    def __init__(self, port: int, headers: dict[str, str] | None = None) -> None:
        self.port, self.headers = port, headers or {}

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """The status and the body."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=70)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            given = {"Content-Type": "application/json"} | given
        connection.request(method, path, data, given)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        kind = response.getheader("content-type", "")
        return response.status, json.loads(text) if "json" in kind else text

    def get(self, path: str, **headers: str) -> Any:
        status, result = self.send("GET", path, **headers)
        assert status == 200, result
        return result

    def wrong(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        """The status and the message of an error."""
        status, result = self.send(method, path, body, **headers)
        assert status >= 400, result
        return status, result["error"]["message"]

    @contextmanager
    def events(self, path: str) -> Iterator[Iterator[tuple[str, Any]]]:
        """Events as (name, data), until the block ends."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", path, headers=self.headers)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        try:
            yield _events(response)
        finally:
            connection.close()
            response.close()


def _events(response: HTTPResponse) -> Iterator[tuple[str, Any]]:
    name = ""
    while line := response.readline().decode().rstrip("\n"):
        if line.startswith("event: "):
            name = line[7:]
        if line.startswith("data: "):
            yield name, json.loads(line[6:])
        if line.startswith(("data: ", "retry: ")):
            response.readline()  # the empty line


@contextmanager
def served(
    root: Path, token: str | None = None, pipe: BinaryIO | None = None, port: int = 0
) -> Iterator[tuple[Client, Watch]]:
    """A running server over the files of a folder."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    watch = Watch(root, pipe)
    watch.start()
    server = make_server(watch, token)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        wait(lambda: server.started)
        yield Client(listening.getsockname()[1]), watch
    finally:
        server.should_exit = True
        thread.join(20)
        watch.stop()
        listening.close()


# --- a stream of flights

ROWS = 5_000
LATE = "SELECT * FROM f ORDER BY delay DESC LIMIT 3 PER origin WINDOW '10 minutes'"
LAST = "SELECT * FROM f ORDER BY delay LIMIT 4 WINDOW 500 ROWS"


def table(rows: int = ROWS, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "flight": np.arange(rows),
            "due": pa.array(np.arange(rows), pa.timestamp("s")),
            "origin": rng.choice(["EWR", "JFK", "LGA"], rows),
            "delay": rng.integers(-10, 300, rows).astype(float),
        }
    )


def watch_file(client: Client, **more: Any) -> None:
    body = {"stream": "flights.parquet", "id": "flight", "keep": ["due"], "rate": None, **more}
    status, result = client.send("PUT", "/api/stream", body)
    assert status == 200, result


def ask(client: Client, name: str, sentence: str) -> Any:
    status, result = client.send("POST", "/api/queries", {"name": name, "sql": sentence})
    assert status == 201, result
    return result


def ended(client: Client) -> Any:
    return wait(lambda: (s := client.get("/api/state"))["stream"]["ended"] and s, 60)


def parts(client: Client) -> dict[str, Any]:
    """The failures of the server, by part; it answers, so it is up."""
    report = client.get("/api/health")
    assert report["status"] in ("ok", "stopped") and report["thread"]["alive"]
    found: dict[str, Any] = report["parts"]
    return found
