"""Semantic alerts: a stream of short news texts, a thousand standing interests, each reader's own page.

Texts are made up from the words of twenty topics, and read as vectors: words hashed into 512 numbers, the rarer a word
in the first texts the heavier, projected onto 64. That stands for a model: whatever returns floats does as well.

    python examples/alerts.py                  then open the addresses that it prints; Ctrl-C stops
    python examples/alerts.py --readers 10000 --seconds 30

All stays on this machine: `skyband serve` reads the texts from its stdin, and takes the interests by its API, as any
other program would send them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import zlib
from http.client import HTTPConnection
from typing import Any

import numpy as np
from numpy.typing import NDArray

WINDOW, HASHED, D = 5_000, 512, 64
SQL = f"SELECT * FROM news ORDER BY similarity(embedding, :vector) LIMIT 5 WINDOW {WINDOW} ROWS"  # noqa: S608
TOPICS = """
storm wind flood coast rain harbour
match goal league coach striker cup
bank rates loan inflation market bonds
chess opening gambit king title draw
rocket orbit launch moon crew probe
election vote senate ballot party poll
vaccine trial clinic virus patients dose
film actor festival director screen premiere
chip factory silicon export wafer price
train rail strike station tunnel delay
wheat harvest drought farm grain export
opera stage singer score premiere hall
court judge appeal ruling verdict law
oil pipeline barrel refinery gas field
reef coral whale ocean species fish
museum painting theft gallery auction art
bike race stage climb sprint team
school exam pupils teacher budget class
ferry island harbour ticket summer tour
robot arm factory sensor code lab
"""
WORDS = [topic.split() for topic in TOPICS.split("\n") if topic]
Matrix = NDArray[np.float64]


def texts(rng: np.random.Generator, count: int) -> list[str]:
    """News of one topic each, with a word of another one."""
    made = []
    for topic in rng.integers(len(WORDS), size=count).tolist():
        own = rng.permutation(WORDS[topic])[: int(rng.integers(3, 6))].tolist()
        made.append(" ".join([*own, str(rng.choice(WORDS[int(rng.integers(len(WORDS)))]))]))
    return made


class Embedding:
    """Texts as vectors: hashed words, weighted by how rare they are in the texts that it has seen first, projected."""

    def __init__(self, seen: list[str]) -> None:
        among = (self._hashed(seen) > 0).sum(axis=0)
        self.weights = np.log((1 + len(seen)) / (1 + among))
        self.onto = np.random.default_rng(0).choice([-1.0, 1.0], (HASHED, D)) / np.sqrt(D)

    def __call__(self, given: list[str]) -> Matrix:
        found: Matrix = (self._hashed(given) * self.weights) @ self.onto
        return found

    @staticmethod
    def _hashed(given: list[str]) -> Matrix:
        found = np.zeros((len(given), HASHED))
        for row, text in enumerate(given):
            for word in text.split():
                found[row, zlib.crc32(word.encode()) % HASHED] += 1
        return found


def readers(count: int, embed: Embedding) -> tuple[list[str], dict[str, list[Any]]]:
    """Interests, two or three words each, and the subscriptions as columns."""
    rng = np.random.default_rng(2)
    interests = [
        " ".join(rng.permutation(WORDS[int(rng.integers(len(WORDS)))])[: int(rng.integers(2, 4))].tolist())
        for _ in range(count)
    ]
    names = [f"{interest} ({n})" for n, interest in enumerate(interests)]
    return names, {"subscriber": names, "vector": embed(interests).round(5).tolist()}


def send(port: int, method: str, path: str, body: Any = None) -> Any:
    """Send JSON, and return the JSON that is answered."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
    found = json.load(connection.getresponse())
    connection.close()
    return found


def main() -> None:
    """Start the server, subscribe the readers, and let the news come."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readers", type=int, default=1_000)
    parser.add_argument("--port", type=int, default=8711)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long it runs (until Ctrl-C)")
    given = parser.parse_args()
    command = [sys.executable, "-c", "from skyband.cli.app import app; app()", "serve", "-", "--id", "doc"]
    command += ["--keep", "text", "--emit", "batch", "--port", str(given.port)]
    command += ["--subscriptions", str(max(given.readers, 100_000)), "--query", f"alerts={SQL}"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)  # noqa: S603 (our own program)
    try:
        publish(server, given.port, given.readers, given.seconds)
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    finally:
        server.terminate()
        server.communicate(timeout=20)


def publish(server: subprocess.Popen[str], port: int, count: int, seconds: float) -> None:
    """Send news for so long."""
    rng, stdin = np.random.default_rng(1), server.stdin
    assert stdin is not None
    seen, doc = texts(rng, 500), 0
    embed = Embedding(seen)
    while server.poll() is None:  # until it answers
        try:
            send(port, "GET", "/api/health")
            break
        except OSError:
            time.sleep(0.1)
    names, table = readers(count, embed)
    print(send(port, "POST", "/api/queries/alerts/subscriptions", table), flush=True)
    for name in names[:3]:
        print(f"http://127.0.0.1:{port}/follow?query=alerts&subscriber={name.replace(' ', '%20')}", flush=True)
    begin, news = time.monotonic(), seen
    while time.monotonic() - begin < seconds:
        for text, vector in zip(news, embed(news).round(5).tolist(), strict=True):
            stdin.write(json.dumps({"doc": f"N{doc}", "text": text, "embedding": vector}) + "\n")
            doc += 1
        stdin.flush()
        time.sleep(0.2)
        news = texts(rng, 50)


if __name__ == "__main__":
    main()
