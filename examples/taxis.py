"""Riders and the nearest free taxis: one query, a subscription for each rider, each rider's own page.

Taxis drive about a town and report in turn, each once in a round: so the last 2,000 rows are where 2,000 taxis are now.
A rider subscribes with a place, the seats that are needed and how many taxis to show, and moves or leaves at any time.

    python examples/taxis.py                  then open the addresses that it prints; Ctrl-C stops
    python examples/taxis.py --riders 100000 --seconds 30

All is made up, and stays on this machine: `skyband serve` reads the reports from its stdin, and takes the riders by its
API, as any other program would send them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from http.client import HTTPConnection
from typing import Any

import numpy as np

TAXIS = 2_000
SQL = f"""SELECT * FROM taxis WHERE free AND seats >= :seats
          ORDER BY nearest(x = :x, y = :y) LIMIT :k WINDOW {TAXIS} ROWS"""  # noqa: S608 (no database)


def reports(seed: int = 1) -> Any:
    """A round of reports after the other, as lines of JSON."""
    rng = np.random.default_rng(seed)
    place, heading = rng.random((TAXIS, 2)), rng.normal(0, 0.002, (TAXIS, 2))
    free, seats = rng.random(TAXIS) < 0.6, rng.choice([4, 4, 4, 6, 8], TAXIS)
    while True:
        heading = 0.97 * heading + rng.normal(0, 0.0005, (TAXIS, 2))
        place = np.clip(place + heading, 0, 1)
        free ^= rng.random(TAXIS) < 0.01
        yield [
            {"taxi": f"T{n}", "x": round(x, 5), "y": round(y, 5), "free": bool(free[n]), "seats": int(seats[n])}
            for n, (x, y) in enumerate(place.tolist())
        ]


def riders(count: int, seed: int = 2) -> dict[str, list[Any]]:
    """Subscriptions, as columns."""
    rng = np.random.default_rng(seed)
    place = rng.random((count, 2)).round(4)
    return {
        "subscriber": [f"rider {n}" for n in range(count)],
        "k": rng.integers(3, 7, count).tolist(),
        "x": place[:, 0].tolist(),
        "y": place[:, 1].tolist(),
        "seats": rng.choice([1, 1, 1, 5], count).tolist(),
    }


def send(port: int, method: str, path: str, body: Any = None) -> Any:
    """Send JSON, and return the JSON that is answered."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
    found = json.load(connection.getresponse())
    connection.close()
    return found


def main() -> None:
    """Start the server, subscribe the riders, and let the taxis drive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--riders", type=int, default=1_000)
    parser.add_argument("--port", type=int, default=8710)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long it runs (until Ctrl-C)")
    given = parser.parse_args()
    command = [sys.executable, "-c", "from skyband.cli.app import app; app()", "serve", "-", "--id", "taxi"]
    command += ["--keep", "x", "--keep", "y", "--keep", "seats", "--emit", "batch", "--port", str(given.port)]
    command += ["--subscriptions", str(max(given.riders, 100_000)), "--query", f"riders={SQL}"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)  # noqa: S603 (our own program)
    try:
        drive(server, given.port, riders(given.riders), given.seconds)
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    finally:
        server.terminate()
        server.communicate(timeout=20)


def drive(server: subprocess.Popen[str], port: int, people: dict[str, list[Any]], seconds: float) -> None:
    """Report for so long; some riders walk meanwhile, which is to subscribe again from another place."""
    rounds, rng, stdin = reports(), np.random.default_rng(3), server.stdin
    assert stdin is not None
    stdin.write("".join(json.dumps(row) + "\n" for row in next(rounds)))
    stdin.flush()
    wait(server, port)
    print(send(port, "POST", "/api/queries/riders/subscriptions", people), flush=True)
    for n in range(min(3, len(people["subscriber"]))):
        where = f"x=x&y=y&px={people['x'][n]}&py={people['y'][n]}"
        print(f"http://127.0.0.1:{port}/follow?query=riders&subscriber=rider%20{n}&{where}", flush=True)
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        rows = next(rounds)
        for part in range(0, TAXIS, 200):
            stdin.write("".join(json.dumps(row) + "\n" for row in rows[part : part + 200]))
            stdin.flush()
            time.sleep(0.1)
        if len(people["subscriber"]) > 3:  # one of those that no address was printed for
            n = int(rng.integers(3, len(people["subscriber"])))
            moved = {name: [values[n]] for name, values in people.items()} | {"x": [float(rng.random())]}
            send(port, "POST", "/api/queries/riders/subscriptions", moved)


def wait(server: subprocess.Popen[str], port: int) -> None:
    """Until the server answers."""
    while server.poll() is None:
        try:
            send(port, "GET", "/api/health")
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start.")


if __name__ == "__main__":
    main()
