"""`python -m benchmarks.subscriptions`: subscriptions of one query with `Each`, through the Monitor itself.

A line of JSON for each case, in one process and by process time, so that ratios compare what ran side by side. Cases:
`register` (subscriptions from an Arrow table, and one that comes or goes among them), `change` (what a change costs
with emit="batch", over 400 of them), `churn` (after 10,000 came and went, over a Monitor that is built afresh),
`window` (what it costs to subscribe with `from_window=True`, over subscribing without).
"""

from __future__ import annotations

import argparse
import gc
import resource
import time
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from benchmarks.slots import K, N, plane, pushed, say

RIDERS = sb.TopK(K, by=sb.Nearest({"x": sb.Each("x"), "y": sb.Each("y")}), window=sb.Last(N))


def table(rng: np.random.Generator, size: int, first: int = 0) -> Any:
    """So many subscriptions, whose ids are numbers from `first` on."""
    return pa.table({"subscriber": np.arange(first, first + size), "x": rng.random(size), "y": rng.random(size)})


def subscribed(rng: np.random.Generator, size: int, **options: Any) -> sb.Monitor:
    monitor = sb.Monitor({"riders": RIDERS}, **options)
    monitor.subscribe("riders", table(rng, size))
    return monitor


def register(sizes: list[int], times: int) -> None:
    """Subscriptions from a table, up to the end of a first push; then one that joins and one that leaves."""
    for size in sizes:
        rng = np.random.default_rng(size)
        riders = table(rng, size)
        gc.collect()
        before, begin = resident(), time.process_time()
        monitor = sb.Monitor({"riders": RIDERS})
        monitor.subscribe("riders", riders)
        made = time.process_time() - begin
        monitor.push({"x": [0.5], "y": [0.5]})
        first, grown = time.process_time() - begin, resident() - before
        more = [table(rng, 1, size + i) for i in range(times)]
        begin = time.process_time()
        for one in more:
            monitor.subscribe("riders", one)
        joined = time.process_time() - begin
        gone, begin = rng.choice(size, times, replace=False).tolist(), time.process_time()
        for one in gone:
            monitor.unsubscribe("riders", [one])
        left = time.process_time() - begin
        say(
            "register",
            subscriptions=size,
            us_each=1e6 * made / size,
            us_with_first_push=1e6 * first / size,
            bytes_each=monitor.stats()["queries"]["riders"]["bytes"] / size,
            resident_bytes_each=grown / size,
            us_to_join_one=1e6 * joined / times,
            us_to_leave=1e6 * left / times,
        )


def resident() -> int:
    """The most memory so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def change(sizes: list[int], rows: int) -> None:
    """What a change costs when the window is full, over that of 400 subscriptions."""
    few = 0.0
    for size in sizes:
        rng = np.random.default_rng(size)
        columns, monitor = plane(rng), subscribed(rng, size, emit="batch")
        pushed(monitor, columns(N + 20_000), N + 20_000, 10_000)
        rows = min(rows, 30_000) if size >= 1_000_000 else rows
        spent, changes = pushed(monitor, columns(rows), rows, 10_000)
        each = 1e6 * spent / changes
        few = few or each
        stats = monitor.stats()["queries"]["riders"]
        say(
            "change",
            subscriptions=size,
            us_a_row=1e6 * spent / rows,
            us_a_change=each,
            over_fewest=each / few,
            bytes_each=stats["bytes"] / size,
            shared=stats["shared"],
            resident_gb=resident() / 1e9,
        )


def window(size: int, times: int) -> None:
    """Subscriptions that begin with their windows among so many, each by itself and all in one table."""
    rng = np.random.default_rng(3)
    columns, monitor = plane(rng), subscribed(rng, size)
    pushed(monitor, columns(2 * N), 2 * N, 10_000)
    costs = {}
    for from_window in (False, True):
        riders = table(rng, times, size + times * from_window)
        begin = time.process_time()
        monitor.subscribe("riders", riders, from_window=from_window)
        costs[from_window] = 1e6 * (time.process_time() - begin) / times
    one, begin = table(rng, 1, size + 3 * times), time.process_time()
    entered = monitor.subscribe("riders", one, from_window=True).num_rows
    say(
        "window",
        subscriptions=size,
        us_without=costs[False],
        us_from_window=costs[True],
        us_one_alone=1e6 * (time.process_time() - begin),
        entered=entered,
    )


def churn(size: int, rows: int, times: int) -> None:
    """A Monitor where many subscriptions came and went one by one, over one that is built afresh with those left."""
    rng = np.random.default_rng(1)
    columns, old = plane(rng), subscribed(rng, size)
    pushed(old, columns(2 * N), 2 * N, 10_000)
    there = {int(row["subscriber"]): row for row in table(np.random.default_rng(1), size).to_pylist()}
    for i in range(times):
        who = int(rng.choice(list(there)))
        del there[who]
        new = table(rng, 1, who if i % 3 == 0 else size + i)
        if i % 3:
            old.unsubscribe("riders", [who])
        old.subscribe("riders", new)
        there |= {row["subscriber"]: row for row in new.to_pylist()}
    fresh = sb.Monitor({"riders": RIDERS})
    fresh.subscribe("riders", list(there.values()))
    pushed(fresh, columns(2 * N), 2 * N, 10_000)
    for monitor in (old, fresh):
        pushed(monitor, columns(2 * N), 2 * N, 10_000)
    ratios = []
    for _ in range(3):
        batch = columns(rows)
        ratios.append(pushed(old, batch, rows, 10_000)[0] / pushed(fresh, batch, rows, 10_000)[0])
    counts = [monitor.stats()["queries"]["riders"]["subscriptions"] for monitor in (old, fresh)]
    say("churn", operations=times, subscriptions=counts[0], afresh=counts[1], over_fresh=float(np.median(ratios)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=["register", "change", "churn", "window"])
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000], help="of register")
    parser.add_argument("--standing", type=int, nargs="*", default=[400, 10_000, 100_000, 1_000_000], help="of change")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=10_000)
    given = parser.parse_args()
    subscribed(np.random.default_rng(0), 1_000).push({"x": [0.5], "y": [0.5]})  # kernels are loaded
    for case in given.cases:
        {
            "register": lambda: register(given.sizes, 200),
            "change": lambda: change(given.standing, given.rows),
            "churn": lambda: churn(400, given.rows, given.times),
            "window": lambda: window(10_000, 1_000),
        }[case]()


if __name__ == "__main__":
    main()
