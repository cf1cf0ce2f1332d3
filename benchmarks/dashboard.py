"""The cost of `skyband serve`: python -m benchmarks.dashboard --queries 100 --rate 2000 --seconds 15

A watch as the server has it, with one listener that looks at one query, over a generator. Prints frames and rows a
second, CPU, and memory at the beginning and at the end. `--rate 0`: as fast as can be.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import skyband as sb
from skyband.dashboard.watch import Watch


def megabytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rate", type=float, default=2000)
    parser.add_argument("--seconds", type=float, default=15)
    given = parser.parse_args()
    watch = Watch(Path())
    watch.start()
    queries = {
        f"q{n}": sb.TopK(5 + n % 7, by=f"{0.1 + n / 100}*x1 + {1 - n / 100}*x2", window=sb.Last(1000))
        for n in range(given.queries)
    }
    watch.call(watch.choose, {"stream": "uniform", "rate": given.rate or None}, queries)
    while watch.call(watch.look)["stream"]["arrivals"] < 10_000:  # kernels are there
        time.sleep(0.2)
    frames: list[int] = []
    watch.listen(lambda: frames.append(len(watch.frame.head)), ("q0", None))
    before, memory = watch.call(watch.look)["stream"]["arrivals"], megabytes()
    begin, busy = time.monotonic(), time.process_time()
    frames.clear()
    time.sleep(given.seconds)
    seen, passed = len(frames), time.monotonic() - begin
    cpu = (time.process_time() - busy) / passed
    after = watch.call(watch.look)["stream"]["arrivals"]
    watch.stop()
    print(
        f"{given.queries} queries: {seen / passed:.1f} frames/s of {sum(frames) / max(seen, 1) / 1e3:.0f} kB, "
        f"{(after - before) / passed:,.0f} rows/s, {cpu:.0%} of a core, "
        f"{memory:.0f} MB after {before:,} rows, {megabytes():.0f} MB after {after:,}"
    )


if __name__ == "__main__":
    main()
