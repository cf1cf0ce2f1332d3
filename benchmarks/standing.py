"""Many standing questions: subscriptions of one query with `Each`, and plain queries of one form in one engine.

Contestants of subscriptions-goals. Answers of a sample are checked against the whole stream. Parameters: subscriptions
(or queries), k, n, fill, rows, batch, net (emit="batch"), churn (subscriptions that come and go before the clock
starts, the second half of `fill` after them; with `afresh` a Monitor begins with those that are left).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa

import skyband as sb
from benchmarks.contestants import Outcome, Ready
from benchmarks.workloads import Stream

SAMPLE = 50
RIDERS = sb.Nearest({"x1": sb.Each("x"), "x2": sb.Each("y")})
TURNS = 200  # subscriptions that come and go, one by one


def standing_push(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor with so many subscriptions."""
    half, people = p["fill"] // 2, _people(p)
    first = _people({**p, "churn": 0}) if p.get("churn") and not p.get("afresh") else people
    monitor = sb.Monitor({"riders": _query(p)}, emit="batch" if p.get("net") else "arrival")
    monitor.subscribe("riders", _table(first))
    _push(monitor, stream, 0, half, p["batch"])
    if first is not people:
        _churn(monitor, p)
    _push(monitor, stream, half, p["fill"], p["batch"])

    def answer() -> list[list[int]]:
        some = list(people)[:: max(1, len(people) // SAMPLE)]
        return [monitor.answer("riders", subscriber=one)["id"].to_pylist() for one in some]

    def check(stream: Stream, p: Mapping[str, Any], answer: list[list[int]]) -> bool:
        points = list(people.values())[:: max(1, len(people) // SAMPLE)]
        keys = [-((stream["x1"] - x) ** 2 + (stream["x2"] - y) ** 2) for x, y in points]
        return answer == [_best(key, p["n"], p["k"]) for key in keys]

    return _ready(monitor, stream, p, answer, check)


def registering(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """Subscriptions from an Arrow table, up to the end of a first push."""
    table = _table(_people(p))

    def work() -> Any:
        monitor = sb.Monitor({"riders": _query(p)})
        monitor.subscribe("riders", table)
        monitor.push({"x1": [0.5], "x2": [0.5]})
        return monitor

    def after(monitor: Any) -> Outcome:
        stats = monitor.stats()["queries"]["riders"]
        counters = {"rows": 1, "kept_each": stats["bytes"] / p["subscriptions"]}
        return Outcome(stats["subscriptions"], lambda stream, p, answer: bool(answer == p["subscriptions"]), counters)

    return Ready(work, after)


def one_more(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """One subscription that joins and leaves among others, again and again."""
    people = _people(p)
    monitor = sb.Monitor({"riders": _query(p)})
    monitor.subscribe("riders", _table(people))
    monitor.push({"x1": [0.5], "x2": [0.5]})
    new = [_table({len(people) + i: (0.5, 0.5)}) for i in range(TURNS)]

    def work() -> None:
        for one in new:
            monitor.subscribe("riders", one)
            monitor.unsubscribe("riders", one["subscriber"])

    def after(_: None) -> Outcome:
        left = monitor.stats()["queries"]["riders"]["subscriptions"]
        return Outcome(left, lambda stream, p, answer: bool(answer == p["subscriptions"]), {"rows": TURNS})

    return Ready(work, after)


def plain_push(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor with many plain queries: `sort` says which."""
    asked = SORTS[p["sort"]](p)
    queries = {f"q{i}": query for i, (query, _) in enumerate(asked)}
    monitor = sb.Monitor(queries, emit="batch" if p.get("net") else "arrival")
    _push(monitor, stream, 0, p["fill"], p["batch"])
    some = range(0, len(asked), max(1, len(asked) // SAMPLE))

    def answer() -> list[list[int]]:
        return [monitor.answer(f"q{i}")["id"].to_pylist() for i in some]

    def check(stream: Stream, p: Mapping[str, Any], answer: list[list[int]]) -> bool:
        return answer == [
            _best(asked[i][1](stream), cast(sb.Last, asked[i][0].window).length(None), asked[i][0].k) for i in some
        ]

    return _ready(monitor, stream, p, answer, check)


def linear_products(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A yardstick: the matrix product of all scores of the queries of sort `linear`, by BLAS."""
    weights, matrix = _weights(p), np.stack(list(stream.values())[:4])[:, p["fill"] :]

    def work() -> float:
        cuts = range(0, matrix.shape[1], p["batch"])
        return sum(float((weights @ matrix[:, low : low + p["batch"]])[0, 0]) for low in cuts)

    return Ready(work, lambda _: Outcome(None, lambda stream, p, answer: True, {"rows": p["rows"]}))


Asked = list[tuple[sb.TopK, Callable[[Stream], Any]]]  # queries, and the keys of their objects


def _uniform(p: Mapping[str, Any]) -> Asked:
    return [_near(x, y, 10, 40_000, False) for x, y in _points(p)]


def _mixed(p: Mapping[str, Any]) -> Asked:
    windows = (20_000, 40_000, 80_000)
    return [_near(x, y, 1 + i % 20, windows[i % 3], i % 2 == 1) for i, (x, y) in enumerate(_points(p))]


def _near(x: float, y: float, k: int, n: int, half: bool) -> tuple[sb.TopK, Callable[[Stream], Any]]:
    query = sb.TopK(k, by=sb.Nearest({"x1": x, "x2": y}), window=sb.Last(n), where="x3 < 0.5" if half else None)

    def key(stream: Stream) -> Any:
        far = (stream["x1"] - x) ** 2 + (stream["x2"] - y) ** 2
        return np.where(stream["x3"] < 0.5, -far, -np.inf) if half else -far

    return query, key


def _boxes(p: Mapping[str, Any]) -> Asked:
    found: Asked = []
    for a, b in _points(p):
        where = f"x1 between {0.95 * a} and {0.95 * a + 0.05} and x2 between {0.95 * b} and {0.95 * b + 0.05}"

        def key(stream: Stream, a: float = 0.95 * a, b: float = 0.95 * b) -> Any:
            inside = (stream["x1"] >= a) & (stream["x1"] <= a + 0.05) & (stream["x2"] >= b) & (stream["x2"] <= b + 0.05)
            return np.where(inside, stream["x3"], -np.inf)

        found.append((sb.TopK(10, by="x3", window=sb.Last(40_000), where=where), key))
    return found


def _linear(p: Mapping[str, Any]) -> Asked:
    found: Asked = []
    for i, row in enumerate(_weights(p)):
        k, n, half = (1, 5, 10, 20)[i % 4], (10_000, 40_000, 100_000)[i % 3], i % 2 == 1
        by = sb.Linear({f"x{j + 1}": weight for j, weight in enumerate(row.tolist())})

        def key(stream: Stream, row: Any = row, half: bool = half) -> Any:
            total = sum((weight * stream[f"x{j + 1}"] for j, weight in enumerate(row.tolist())), 0.0)
            return np.where(stream["x5"] < 0.5, total, -np.inf) if half else total

        found.append((sb.TopK(k, by=by, window=sb.Last(n), where="x5 < 0.5" if half else None), key))
    return found


SORTS: dict[str, Callable[[Mapping[str, Any]], Asked]] = {
    "uniform": _uniform,
    "mixed": _mixed,
    "boxes": _boxes,
    "linear": _linear,
}


def _weights(p: Mapping[str, Any]) -> Any:
    return np.random.default_rng(4).random((p["queries"], 4))


def _points(p: Mapping[str, Any]) -> list[list[float]]:
    points: list[list[float]] = np.random.default_rng(2).random((p["queries"], 2)).tolist()
    return points


def _query(p: Mapping[str, Any]) -> sb.TopK:
    return sb.TopK(p["k"], by=RIDERS, window=sb.Last(p["n"]))


def _people(p: Mapping[str, Any]) -> dict[int, tuple[float, float]]:
    """The points of subscribers, after those who came and went."""
    rng = np.random.default_rng(p["subscriptions"])
    points = rng.random((p["subscriptions"], 2)).tolist()
    people = {i: (x, y) for i, (x, y) in enumerate(points)}
    for gone, new, point in _moves(p):
        del people[gone]
        people[new] = point
    return people


def _moves(p: Mapping[str, Any]) -> list[tuple[int, int, tuple[float, float]]]:
    """Who leaves, and who joins, with a point; of three, one only changes its own."""
    rng, there, moves = np.random.default_rng(1), list(range(p["subscriptions"])), []
    for i in range(p.get("churn", 0)):
        place = int(rng.integers(len(there)))
        gone, new = there[place], there[place] if i % 3 == 0 else p["subscriptions"] + i
        there[place] = new
        moves.append((gone, new, (float(rng.random()), float(rng.random()))))
    return moves


def _churn(monitor: Any, p: Mapping[str, Any]) -> None:
    for gone, new, point in _moves(p):
        if gone != new:
            monitor.unsubscribe("riders", [gone])
        monitor.subscribe("riders", _table({new: point}))


def _table(people: Mapping[int, tuple[float, float]]) -> Any:
    points = np.array(list(people.values())).reshape(len(people), 2)
    return pa.table({"subscriber": np.array(list(people)), "x": points[:, 0], "y": points[:, 1]})


def _push(monitor: Any, stream: Stream, begin: int, end: int, batch: int) -> int:
    """Push these rows; returns how many changes they bring."""
    cuts = [*range(begin, end, batch), end]
    pieces = ({name: column[low:high] for name, column in stream.items()} for low, high in itertools.pairwise(cuts))
    return sum(monitor.push(pa.table(piece)).num_rows for piece in pieces)


def _ready(monitor: Any, stream: Stream, p: Mapping[str, Any], answer: Any, check: Any) -> Ready:
    def after(changes: int) -> Outcome:
        return Outcome(answer(), check, {"rows": p["rows"], "changes": changes})

    return Ready(lambda: _push(monitor, stream, p["fill"], p["fill"] + p["rows"], p["batch"]), after)


def _best(key: Any, n: int, k: int) -> list[int]:
    """The k best of the last n, best first, the newer first among equals."""
    first, key = max(0, len(key) - n), key[-n:]
    best = np.argsort(-key, kind="stable")[: 2 * k]
    best = best[np.lexsort((-best, -key[best]))]
    found: list[int] = (first + best[key[best] > -np.inf][:k]).tolist()
    return found
