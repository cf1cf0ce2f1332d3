"""Subscriptions through `skyband serve`: python -m benchmarks.followers --subscriptions 100000 --listeners 1000

A server of its own process on loopback, over a generator (points in the unit square, the 5 nearest of the last 40,000,
net changes). Subscriptions come as Arrow and then again as JSON (which replaces all). Then so many listeners, each of
another subscriber; after half of the time all are cut off and come back by their last event id. Each must have just the
changes that lead from its first answer to its last one, which the server is asked for. Prints figures, one a line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

SQL = "SELECT * FROM s ORDER BY nearest(x1 = :x, x2 = :y) LIMIT 5 WINDOW 40000 ROWS"
ARROW = "application/vnd.apache.arrow.stream"


class Server:
    """The process, and requests to it."""

    def __init__(self, subscriptions: int, listeners: int, port: int) -> None:
        command = [sys.executable, "-c", "from skyband.cli.app import app; app()", "serve", "--port", str(port)]
        command += ["--subscriptions", str(subscriptions), "--listeners", str(listeners), "--root", "benchmarks"]
        self.port, self.process = port, subprocess.Popen(command)
        while True:
            try:
                self.send("GET", "/api/health")
                return
            except OSError:
                if self.process.poll() is not None:
                    raise
                time.sleep(0.1)

    def send(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": kind})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        if response.status >= 400:
            raise SystemExit(text.decode())
        return json.loads(text) if text else None

    def used(self) -> tuple[float, float]:
        """Seconds of CPU, and megabytes."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), pages * 4096 / 1e6


class Follower:
    """One listener: it keeps its subscriber's answer up to date, by ids."""

    def __init__(self, port: int, subscriber: int) -> None:
        self.port, self.subscriber = port, subscriber
        self.members: list[int] = []
        self.last, self.events, self.changes, self.resets = "", 0, 0, 0

    async def follow(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        text = f"GET /api/queries/near/changes?subscriber={self.subscriber} HTTP/1.1\r\nHost: localhost\r\n"
        writer.write((text + (f"Last-Event-ID: {self.last}\r\n" if self.last else "") + "\r\n").encode())
        name = ""
        try:
            while line := await reader.readline():
                word, _, rest = line.decode().rstrip("\r\n").partition(": ")
                if word == "event":
                    name = rest
                elif word == "id":
                    self.last = rest
                elif word == "data":
                    self.take(name, json.loads(rest))
        finally:
            writer.transport.abort()

    def take(self, name: str, data: Any) -> None:
        self.events += name != "beat"
        self.resets += name == "reset"
        if name == "answer":
            self.members = [row[data["columns"].index("id")] for row in data["rows"]]
        for row in data if name == "changes" else ():
            self.changes += 1
            self.members.append(row["id"]) if row["diff"] > 0 else self.members.remove(row["id"])


async def listen(server: Server, followers: list[Follower], seconds: float) -> float:
    """Let all listen, be cut off, and come back; then until the stream is paused. Seconds until all had an answer."""
    begin, first = time.monotonic(), 0.0
    for half in range(2):
        tasks = [asyncio.ensure_future(one.follow()) for one in followers]
        while not all(one.events for one in followers):
            await asyncio.sleep(0.01)
        first = first or time.monotonic() - begin
        await asyncio.sleep(seconds / 2)
        if half:
            server.send("PATCH", "/api/stream", {"paused": True})
            await asyncio.sleep(5)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--listeners", type=int, default=1_000)
    parser.add_argument("--rate", type=float, default=1_000, help="rows a second")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--port", type=int, default=8719)
    given = parser.parse_args()
    server = Server(given.subscriptions, given.listeners, given.port)
    try:
        measure(server, given)
    finally:
        server.process.terminate()
        server.process.wait(20)


def measure(server: Server, given: argparse.Namespace) -> None:
    """Everything, in turn."""
    rng, size = np.random.default_rng(1), given.subscriptions
    server.send("PUT", "/api/stream", {"stream": "uniform", "id": "id", "emit": "batch", "paused": True})
    server.send("POST", "/api/queries", {"name": "near", "sql": SQL})
    table = pa.table({"subscriber": np.arange(size), "x": rng.random(size), "y": rng.random(size)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    for what, body, kind in (("Arrow", sink.getvalue().to_pybytes(), ARROW), ("JSON", table.to_pydict(), "")):
        begin = time.monotonic()
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        taken = server.send("POST", "/api/queries/near/subscriptions", data, kind or "application/json")
        print(
            f"{taken['subscriptions']:,} subscriptions by {what}: {time.monotonic() - begin:.2f} s, {len(data):,} bytes"
        )
    server.send("PATCH", "/api/stream", {"paused": False, "rate": given.rate})
    while server.send("GET", "/api/state")["stream"]["arrivals"] < 5 * given.rate:  # kernels are there, answers full
        time.sleep(0.5)
    chosen = rng.choice(size, given.listeners, replace=False).tolist()
    followers = [Follower(server.port, subscriber) for subscriber in chosen]
    before, (busy, _) = server.send("GET", "/api/state")["stream"]["arrivals"], server.used()
    begin = time.monotonic()
    first = asyncio.run(listen(server, followers, given.seconds))
    passed = time.monotonic() - begin
    cpu, megabytes = server.used()
    rows = server.send("GET", "/api/state")["stream"]["arrivals"] - before
    events, changes = (sum(getattr(one, name) for one in followers) for name in ("events", "changes"))
    print(f"{given.listeners:,} listeners: all had their first answer after {first:.2f} s")
    print(f"{rows / passed:,.0f} rows/s, {events / passed:,.0f} events/s with {changes / passed:,.0f} changes/s")
    print(f"{(cpu - busy) / passed:.0%} of a core, {megabytes:,.0f} MB")
    wrong = 0
    for one in followers:
        found = server.send("GET", f"/api/queries/near/answer?subscriber={one.subscriber}")
        wrong += sorted(one.members) != sorted(row[found["columns"].index("id")] for row in found["rows"])
    resets = sum(one.resets for one in followers)
    print(f"after all were cut off and came back: {wrong} wrong answers, {resets} had to begin anew")
    print("health:", server.send("GET", "/api/health")["parts"] or "no failures")
    if wrong:
        raise SystemExit("answers were wrong.")


if __name__ == "__main__":
    main()
