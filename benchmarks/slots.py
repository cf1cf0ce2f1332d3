"""`python -m benchmarks.slots`: many standing queries in one engine of slots, what a row and a change cost.

A line of JSON for each case, in one process and by process time, so that ratios compare what ran side by side. Cases:
`churn` (after 10,000 queries came and went, over a Monitor that is built afresh), `nearest` (400 to 10^6 slots, put
into the engine itself), `mixed` (k, windows and boxes differ), `boxes` (`where lat between .. and lon between ..`),
`linear` (2,000 mixed queries over the product of all scores), `register` (queries of a new Monitor).
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import skyband as sb
from skyband.engines.contract import Arrivals
from skyband.engines.topk.slot_columns import Shape, SlotColumns
from skyband.engines.topk.slots import Slots
from skyband.query.scoring.forms import EUCLIDEAN
from skyband.query.tuning import Tuning

N, K = 40_000, 9


def say(case: str, **figures: Any) -> None:
    rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}
    print(json.dumps({"case": case, **rounded}), flush=True)


def pushed(monitor: sb.Monitor, columns: dict[str, Any], rows: int, batch: int) -> tuple[float, int]:
    """Seconds of processor time that these rows take, and their changes."""
    begin, changes = time.process_time(), 0
    for low in range(0, rows, batch):
        changes += monitor.push({name: column[low : low + batch] for name, column in columns.items()}).num_rows
    return time.process_time() - begin, changes


def filled(queries: Any, columns: Callable[[int], dict[str, Any]], batch: int, rows: int, **options: Any) -> sb.Monitor:
    monitor = sb.Monitor(queries, **options)
    pushed(monitor, columns(rows), rows, batch)
    return monitor


def nearest(rng: np.random.Generator, **more: Any) -> sb.TopK:
    x, y = rng.random(2).tolist()
    return sb.TopK(**{"k": K, "by": sb.Nearest({"x": x, "y": y}), "window": sb.Last(N), **more})


def plane(rng: np.random.Generator) -> Callable[[int], dict[str, Any]]:
    return lambda rows: {"x": rng.random(rows), "y": rng.random(rows), "z": rng.random(rows)}


def churn(rows: int, times: int) -> None:
    """400 queries after many came and went, over 400 of a new Monitor."""
    rng = np.random.default_rng(1)
    columns, names = plane(rng), [f"q{i}" for i in range(400)]
    old = filled({name: nearest(rng) for name in names}, columns, 10_000, 2 * N)
    for i in range(times):
        place = int(rng.integers(0, 400))
        if i % 3 == 0:
            old.replace(names[place], nearest(rng))
        else:
            old.drop(names[place])
            names[place] = f"new{i}"
            old.add(names[place], nearest(rng))
    for monitor in (old, new := filled(old.queries, columns, 10_000, 2 * N)):
        pushed(monitor, columns(2 * N), 2 * N, 10_000)
    ratios = []
    for _ in range(3):
        fresh = columns(rows)
        ratios.append(pushed(old, fresh, rows, 10_000)[0] / pushed(new, fresh, rows, 10_000)[0])
    say("churn", operations=times, over_fresh=float(np.median(ratios)), engines=len(old._loop.state.standing()))


def million(sizes: list[int], rows: int) -> None:
    """Slots in the engine itself: what joining costs, and what a change costs with emit="batch"."""
    for m in sizes:
        rng = np.random.default_rng(m)
        none, begin = np.empty((m, 0)), time.process_time()
        engine = Slots((), Tuning(), timed=False, net=True, shape=Shape(EUCLIDEAN, True, 2, 2))
        columns = SlotColumns(rng.random((m, 2)), none, np.full(m, K), np.full(m, N), none, none)
        engine.join(columns, 0)
        joined, bytes_each, serial = time.process_time() - begin, engine.nbytes / m, 0

        def take(engine: Slots = engine, rng: np.random.Generator = rng) -> int:
            nonlocal serial
            numbers = np.arange(serial, serial + 10_000)
            arrivals = Arrivals(
                rows=np.arange(10_000),
                groups=np.zeros(10_000, np.int64),
                keys=np.empty(0),
                stamps=numbers,
                now=numbers,
                eligible=None,
                serial=serial,
                size=10_000,
                clock=0,
                clocks=None,
                total=1,
                attributes=(rng.random(10_000), rng.random(10_000)),
                wants_alive=False,
            )
            serial += 10_000
            return len(engine.take(arrivals).query)

        while serial < N + 20_000:
            take()
        begin, changes, before = time.process_time(), 0, serial
        while serial < before + rows:
            changes += take()
        spent = time.process_time() - begin
        one = time.process_time()
        for _ in range(200):
            engine.leave(engine.join(columns.take(slice(0, 1)), serial))
        one = (time.process_time() - one) / 400
        say(
            "nearest",
            slots=m,
            us_to_join=1e6 * joined / m,
            bytes_before_rows=bytes_each,
            bytes_with_rows=engine.nbytes / m,
            us_a_row=1e6 * spent / rows,
            us_a_change=1e6 * spent / changes,
            us_to_join_one=1e6 * one,
            resident_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        )


def mixed(rows: int) -> None:
    """K from 1 to 20, three windows, half of the queries with a range: time a change, over that of one k and window."""
    rng = np.random.default_rng(2)
    columns = plane(rng)
    same = filled([nearest(rng, k=10) for _ in range(400)], columns, 10_000, 3 * N, emit="batch")
    windows = [sb.Last(n) for n in (20_000, 40_000, 80_000)]
    other = filled(
        [nearest(rng, k=1 + i % 20, window=windows[i % 3], where="z < 0.5" if i % 2 else None) for i in range(400)],
        columns,
        10_000,
        3 * N,
        emit="batch",
    )
    costs = []
    for monitor in (same, other):
        spent, changes = pushed(monitor, columns(rows), rows, 10_000)
        costs.append((1e6 * spent / changes, 1e6 * spent / rows, changes))
    say(
        "mixed",
        uniform_us_a_change=costs[0][0],
        mixed_us_a_change=costs[1][0],
        ratio=costs[1][0] / costs[0][0],
        uniform_us_a_row=costs[0][1],
        mixed_us_a_row=costs[1][1],
        engines=len(other._loop.state.standing()),
    )


def boxes(rows: int) -> None:
    """400 boxes over two columns that are not scored."""
    rng = np.random.default_rng(3)
    queries = []
    for _ in range(400):
        a, b = (0.95 * rng.random(2)).tolist()
        where = f"lat between {a} and {a + 0.05} and lon between {b} and {b + 0.05}"
        queries.append(sb.TopK(10, by="pm", window=sb.Last(N), where=where))

    def columns(size: int) -> dict[str, Any]:
        return {"lat": rng.random(size), "lon": rng.random(size), "pm": rng.random(size)}

    monitor = filled(queries, columns, 10_000, 2 * N)
    spent, changes = pushed(monitor, columns(rows), rows, 10_000)
    algorithm = monitor.stats()["queries"]["q0"]["algorithm"]
    say(
        "boxes",
        us_a_row=1e6 * spent / rows,
        changes=changes,
        algorithm=algorithm,
        engines=len(monitor._loop.state.standing()),
    )


def linear(rows: int) -> None:
    """2,000 mixed linear queries over the product of all scores, by BLAS."""
    rng = np.random.default_rng(4)
    names, weights = ["a", "b", "c", "d"], rng.random((2_000, 4))
    queries = [
        sb.TopK(
            (1, 5, 10, 20)[i % 4],
            by=sb.Linear(dict(zip(names, row.tolist(), strict=True))),
            window=sb.Last((10_000, 40_000, 100_000)[i % 3]),
            where="e < 0.5" if i % 2 else None,
        )
        for i, row in enumerate(weights)
    ]

    def columns(size: int) -> dict[str, Any]:
        return {name: rng.random(size) for name in (*names, "e")}

    monitor = filled(queries, columns, 20_000, 100_000)
    fresh = columns(rows)
    spent, changes = pushed(monitor, fresh, rows, 20_000)
    matrix, begin = np.stack([fresh[name] for name in names]), time.process_time()
    for low in range(0, rows, 20_000):
        weights @ matrix[:, low : low + 20_000]
    product = time.process_time() - begin
    say(
        "linear",
        us_a_row=1e6 * spent / rows,
        product_us_a_row=1e6 * product / rows,
        ratio=spent / product,
        changes=changes,
    )


def register(sizes: list[int]) -> None:
    """Queries of a new Monitor, up to the end of its first push."""
    for size in sizes:
        rng = np.random.default_rng(size)
        queries = {f"q{i}": nearest(rng) for i in range(size)}
        begin = time.process_time()
        monitor = sb.Monitor(queries)
        made = time.process_time() - begin
        monitor.push({"x": [0.5], "y": [0.5]})
        say(
            "register",
            queries=size,
            us_each=1e6 * made / size,
            us_with_first_push=1e6 * (time.process_time() - begin) / size,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=["churn", "nearest", "mixed", "boxes", "linear", "register"])
    parser.add_argument("--slots", type=int, nargs="*", default=[400, 10_000, 100_000])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=10_000)
    given = parser.parse_args()
    register([400])  # kernels are loaded
    for case in given.cases:
        {
            "churn": lambda: churn(given.rows, given.times),
            "nearest": lambda: million(given.slots, given.rows),
            "mixed": lambda: mixed(given.rows),
            "boxes": lambda: boxes(given.rows),
            "linear": lambda: linear(2 * given.rows),
            "register": lambda: register([400, 4_000, 40_000]),
        }[case]()


if __name__ == "__main__":
    main()
