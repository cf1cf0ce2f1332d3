"""Connections: silent, slow and senseless clients cost little, and block no other."""

from __future__ import annotations

import gc
import socket
import time
from contextlib import suppress

import numpy as np
import pytest

from dashboard.browser import wait
from dashboard.served import Client, ask, parts
from skyband.dashboard import limits
from skyband.dashboard.watch import Watch

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
            most = max([most, *(one._size for one in watch.programs.all())])
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
    wait(lambda: client.get("/api/health")["listeners"] == {"pages": 0, "programs": 0, "subscribers": 0}, 20)
    gc.collect()
    assert client.send("HEAD", "/api/events")[0] == 200
    assert watch.report()["listeners"] == {"pages": 0, "programs": 0, "subscribers": 0}
