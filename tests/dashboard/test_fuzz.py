"""The API against nonsense: no request ends in a 500, hangs, or ends a thread.

Requests go to the application itself, without sockets. `make test` sends 5,000, and SKYBAND_FUZZ=20 as in
`make faults` 100,000.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dashboard.asgi import send
from dashboard.served import table
from faults.ledger import note
from skyband.dashboard.app import make_app
from skyband.dashboard.watch import Watch

REQUESTS = 5_000 * int(os.environ.get("SKYBAND_FUZZ", "1"))
SEED = int(os.environ.get("SKYBAND_SEED", "1"))
SLOWEST = 120.0  # seconds; a kernel may be compiled, and a request that waits for it is answered with 503

# fmt: off
ODD: list[Any] = [None, True, False, 0, -1, 1, 3, 2**31, 2**53, 2**63, 2**70, 1.5, -0.0, 1e308, 1e999, float("nan")]
ODD += ["", "x", "TopK", "é", "\ud800", "\x00", "a\nb", "..", "/", "\\", "9" * 400, "x" * 300, "'", '"', "`x`", "😀"]
ODD += [[], {}, [1], [None], {"a": 1}, [[[[]]]], {"kind": "TopK"}, {"callable": "os.system"}, {"last": 2**60}]
NAMES = ["a", "b", "late", "by value", "é", "a/b", "..", "", "x" * 101, "\ud800", "%2e%2e", "a%00", "null", "🙂"]
WORDS = "SELECT * FROM s a , b ORDER BY x y delay origin DESC ASC LIMIT 3 0 -1 10001 99999999999999999999 WINDOW ROWS"
WORDS += " '1 hour' '100 years' ' ' PER WHERE ABOVE PARTS ( ) COMBINE sum REPEAT last WITH PROBABILITY p SEMANTICS +"
WORDS += " < > and or not between in is null case when then else end abs( sqrt( power( 1e308 0.5 NaN INFINITY ; -- /* é"
WORDS += ' APPROXIMATE 0.01 ALGORITHM SMA GROUP having union drop table `delay` "delay" a.x b.x UNTIL DELETED \'x\' :x'
SENTENCES = [
    "SELECT * FROM s ORDER BY delay DESC LIMIT 3 WINDOW 50 ROWS",
    "SELECT * FROM s ORDER BY delay LIMIT 3 PER origin WINDOW '10 minutes'",
    "SELECT * FROM s ORDER BY nearest(delay = :d) LIMIT :k WINDOW 50 ROWS",
    "SELECT * FROM s ABOVE :d BY delay WINDOW 50 ROWS",
    "SELECT * FROM s ABOVE 100 BY delay WINDOW 50 ROWS",
    "SELECT * FROM s a, s b ORDER BY abs(a.delay - b.delay) LIMIT 3 WINDOW 50 ROWS",
    "SELECT origin, sum(delay) AS n FROM s GROUP BY origin ORDER BY n DESC LIMIT 3 WINDOW 50 ROWS",
    "SELECT * FROM s ORDER BY origin, delay DESC NULLS LAST LIMIT 3 OFFSET 1 WINDOW 50 ROWS",
    "SELECT * FROM (SELECT * FROM s ORDER BY delay DESC LIMIT 9 WINDOW 50 ROWS) ORDER BY score LIMIT 2",
    "SELECT * FROM s WHERE origin = 'JFK' ORDER BY 0.5*delay + flight DESC LIMIT 2 WINDOW 30 ROWS",
]
QUERIES: list[dict[str, Any]] = [
    {"kind": "TopK", "k": 3, "by": "delay", "window": {"last": 50}},
    {"kind": "TopK", "k": 3, "by": {"linear": {"delay": 1.0}}, "window": {"last": "50 seconds"}, "per": ["origin"]},
    {"kind": "TopK", "k": 3, "by": {"nearest": {"delay": 1}}, "window": {"last": 50}, "algorithm": "SMA"},
    {"kind": "TopK", "k": 3, "by": "delay", "window": {"until": "deleted"}},
    {"kind": "Above", "threshold": 100.0, "by": "delay", "window": {"last": 50}},
    {"kind": "TopKPairs", "k": 3, "by": "abs(a.delay - b.delay)", "window": {"last": 20}},
    {"kind": "TopKIncomplete", "k": 3, "parts": {"n": [0, 1]}, "window": {"last": 20}, "repeat": "last"},
    {"kind": "TopKUncertain", "k": 3, "by": "delay", "window": {"last": 20}, "probability": "p"},
    {"kind": "TopKGroups", "k": 2, "by": "avg(delay)", "window": {"last": 9}, "of": "origin"},
    {"kind": "TopKGroups", "k": 2, "by": ["count(*)", "id"], "window": {"ever": True}, "of": "origin"},
    {"kind": "TopK", "k": 3, "by": ["origin", "delay"], "window": {"last": 50}, "nulls": "last", "with_ties": True},
    {"kind": "TopK", "k": 3, "by": "delay", "window": {"session": "50 seconds"}, "per": ["origin"]},
    {"kind": "TopK", "k": 2, "by": "score", "source": "late"},
    {"kind": "TopK", "k": {"each": "k"}, "by": {"nearest": {"delay": {"each": "d"}}}, "window": {"last": 50}},
]
OPTIONS = ["algorithm", "gamma", "sigma", "buffer", "cells", "view", "largest", "where", "per", "seed", "unknown"]
STREAMS = ["flights.parquet", "odd.parquet", "odd.csv", "odd.jsonl", "days", "uniform", "flights_like", "out"]
STREAMS += ["changes", "link.parquet", "../x.parquet", "/etc/passwd", "..%2Fx", "a\x00b", "C:\\x", "NUL", "con.csv"]
STREAMS += ["loop", "pipe.csv", "-", "kafka://h/t", "", ".", "x" * 5_000, "notes.txt", "nothing.parquet", "\ud800"]
STREAMS += ["empty.parquet", "days/"]
PATHS = ["/", "/docs", "/follow", "/openapi.json", "/static/app.js", "/api/health", "/api/state"]
PATHS += ["/api/streams", "/api/stream", "/api/check", "/api/queries", "/api/events", "/static/../app.py"]
ONE = "/subscriptions/1"
METHODS = ["GET", "GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", "X"]
PARAMETERS = [b"", b"rows=3", b"rows=0000000000009999999", b"rows=-1", b"rows=%00", b"rows=1e3", "rows=٣".encode()]
PARAMETERS += [b'key="JFK"', b"key=null", b"key=[1,2]", b"key={}", b'key="%5Cud800"', b"key=" + b"[" * 3000, b"key=NaN"]
PARAMETERS += [b"key=1e999", b"watch=a", b"watch=a&group=1", b"group=99999999999", b"watch=%ff&group=x"]
PARAMETERS += [b"%", b"&&&==", b"token=x", b"\xff\xfe", b"queries=keep", b"watch=" + b"x" * 9000, b"key=" + b"9" * 5000]
PARAMETERS += [b"subscriber=1", b"subscriber=1", b"subscriber=%ff", b"id=d"]
HEADERS = [(b"host", b"evil.example"), (b"host", b"["), (b"host", b""), (b"origin", b"http://["), (b"origin", b"null")]
HEADERS += [(b"content-type", b"text/plain"), (b"content-type", b"\xff"), (b"cookie", b"skyband_token=\xff; a=b; =")]
HEADERS += [(b"authorization", b"Bearer \xff"), (b"content-length", b"-1"), (b"x-forwarded-for", b"1.2.3.4")]
PIECES = [b"\xff", b"\x00", b"{", b'"', b"\\ud800", b"[" * 2000]
# fmt: on


def odd_root(root: Path) -> Path:
    """A folder with a good file, and with all that may lie about in one."""
    flights = table(300)
    parquet.write_table(flights.append_column("p", flights["delay"]), root / "flights.parquet")
    (root / "days").mkdir()
    parquet.write_table(table(50), root / "days" / "1.parquet")
    (root / "days" / "2.parquet").write_bytes(b"PAR1 no more")
    (root / "days" / "3.csv").write_text('a,b\n1,"2\n')
    ends = pa.py_buffer(np.array([0, 2, 3, 5], np.int32))
    text = pa.StringArray.from_buffers(3, ends, pa.py_buffer(b"\xff\xfea\xed\xa0"))
    odd = {"flight": text, "due": pa.array([0, 2**62, None], pa.timestamp("us")), "delay": [1.0, float("nan"), 1e308]}
    odd |= {"origin": text, "zone": pa.array([1, 2, 3], pa.timestamp("us", "Mars/Base")), "x": [2**63 - 1, 0, 1]}
    odd["p"] = [0.5, 1.0, 2.0]
    odd["day"] = pa.array([10**7, -(10**7), 0], pa.date32())
    parquet.write_table(pa.table(odd), root / "odd.parquet")
    parquet.write_table(pa.table({}), root / "empty.parquet")
    (root / "odd.csv").write_bytes(b"flight,delay\n1,2\n\xff,3\n4,5,6\n" + b"x" * 5000 + b"\n")
    (root / "odd.jsonl").write_bytes(b'{"delay": 1}\nnull\n[1]\n{"delay": "\\ud800"}\n{"delay": 1e999}\n' + b"[" * 9000)
    (root / "notes.txt").write_text("nothing")
    (root / "loop").symlink_to("loop")
    (root / "link.parquet").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe.csv")
    answer = {"query": ["a", "a"], "rank": [1, 2], "time": odd["due"].take(pa.array([1, 0])), "score": [2.0, 1.0]}
    (root / "out").mkdir()
    parquet.write_table(pa.table(answer | {"id": text.take(pa.array([0, 2]))}), root / "out" / "answer.parquet")
    log = root / "changes" / "_spark_metadata"
    log.mkdir(parents=True)
    (log / "0").write_text('v1\n[1]\nnull\n{"path": 1}\n{"path": "file:///x/..%2F..%2Fflights.parquet"}\n{"path"')
    return root


class Requests:
    """Random requests, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311

    def one(self) -> tuple[str, str, bytes, list[tuple[bytes, bytes]], bytes]:
        pick = self.random.choice
        path, method = pick(PATHS), pick(METHODS)
        query = pick(PARAMETERS) if self.random.random() < 0.4 else b""
        body: Any = None
        kind = self.random.random()
        if kind < 0.25:
            path, method, body = "/api/queries", "POST", {"name": pick(NAMES[:4] * 4 + NAMES), **self.query()}
        elif kind < 0.35:
            path, method, body = f"/api/queries/{pick(NAMES[:4] * 4 + NAMES)}", "PUT", self.query()
        elif kind < 0.45:
            path, method, body = "/api/check", "POST", self.query()
        elif kind < 0.55:
            path = f"/api/queries/{pick(NAMES[:4] * 4 + NAMES)}{pick(['', '', '/answer', '/changes', ONE])}"
            method = pick(["GET", "GET", "DELETE", "HEAD"])
        elif kind < 0.57:
            path = f"/api/queries/{pick(NAMES[:4])}{pick(['/subscriptions', '/subscriptions', '/unsubscribe'])}"
            method, body = "POST", self.subscriptions(pick(["rows", "columns", "ids"]))
        elif kind < 0.60:
            path, method, body = "/api/stream", "PUT", self.stream()
        elif kind < 0.65:
            path, method = "/api/stream", "PATCH"
            body = self.changed({"paused": pick([True, False]), "rate": pick([10, None])})
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        if self.random.random() < 0.1:
            header = pick(HEADERS)
            headers = [one for one in headers if one[0] != header[0]] + [header]
        return method, path, query, headers, self.encoded(body)

    def encoded(self, body: Any) -> bytes:
        made = b"" if body is None else json.dumps(body).encode()
        chance = self.random.random()
        if chance < 0.03:
            place = self.random.randrange(len(made) + 1)
            return made[:place] + self.random.choice(PIECES) + made[place:]
        if chance < 0.05:
            return made[: self.random.randrange(len(made) + 1)]
        if chance < 0.06:
            return self.random.randbytes(self.random.randrange(200))
        return made + (b" " * 70_000 if chance < 0.065 else b"")

    def query(self) -> dict[str, Any]:
        pick = self.random.choice
        if self.random.random() < 0.5:
            words = pick(SENTENCES).split(" ")
            for _ in range(pick([0, 0, 0, 1, 2, 5])):
                place = self.random.randrange(len(words) + 1)
                words[place : place + pick([0, 1])] = [pick(WORDS.split(" "))]
            return self.changed({"sql": " ".join(words)}, 0.1)
        return self.changed({"query": self.changed(dict(pick(QUERIES)), 0.4)}, 0.05)

    def subscriptions(self, form: str) -> Any:
        rows = [self.changed({"subscriber": n, "k": 1 + n, "d": 2.5 * n}, 0.1) for n in range(self.random.randrange(4))]
        if form == "columns":
            return {name: [row.get(name) for row in rows] for name in ("subscriber", "k", "d")}
        return rows if form == "rows" else [row.get("subscriber") for row in rows]

    def stream(self) -> dict[str, Any]:
        pick = self.random.choice
        given: dict[str, Any] = {"stream": pick(STREAMS[:9] * 2 + STREAMS), "rate": pick([None, 100, 1000])}
        given["keep"] = pick([[], ["origin"], ["zone", "day"]])
        if self.random.random() < 0.5:
            given |= {"id": "flight", "time": pick(["due", "zone", "day", None])}
        return self.changed(given, 0.2)

    def changed(self, given: dict[str, Any], chance: float = 0.3) -> dict[str, Any]:
        """The same with some values replaced, left out or added."""
        found = dict(given)
        while self.random.random() < chance:
            key = self.random.choice([*given, *given, *OPTIONS])
            if self.random.random() < 0.1:
                found.pop(key, None)
            else:
                found[key] = self.random.choice(ODD)
        return found


@pytest.mark.parametrize("part", range(4))
def test_no_request_ends_in_a_500(tmp_path: Path, part: int) -> None:
    watch = Watch(odd_root(tmp_path))
    watch.start()
    app, requests = make_app(watch), Requests(SEED * 4 + part)
    statuses: Counter[int] = Counter()

    async def run() -> None:
        for number in range(REQUESTS // 4):
            method, path, query, headers, body = requests.one()
            begin = time.monotonic()
            status, text = await asyncio.wait_for(send(app, method, path, query, headers, body), SLOWEST)
            statuses[status] += 1
            shown = (number, method, path[:200], query[:200], body[:500], status, text[:500])
            assert status in (200, 201, 204, 303, 400, 403, 404, 405, 413, 415) or b"busy" in text, shown
            if status >= 400 and method != "HEAD":
                error = json.loads(text)["error"]
                assert error["message"] and error["what"] and error["why"] and error["instead"], shown
            assert time.monotonic() - begin < SLOWEST, shown
        status, text = await send(app, "GET", "/api/health")
        report = json.loads(text)
        assert status == 200 and report["thread"]["alive"] and sum(report["listeners"].values()) == 0
        assert not report["parts"].keys() & {"watch", "request", "frame", "listener", "changes", "delivery"}, report

    try:
        asyncio.run(run())
        assert watch.call(watch.look) is not None
    finally:
        watch.stop()
    assert statuses.total() == REQUESTS // 4 and {200, 201, 400, 403, 404, 405, 415} <= statuses.keys(), statuses
    wrong = statuses[500]
    note(
        {"what": "requests to serve", "rounds": statuses.total(), "changes": 0, "lost": 0, "doubled": 0, "wrong": wrong}
    )
    print(f"{statuses.total():,} requests: {dict(sorted(statuses.items()))}")
