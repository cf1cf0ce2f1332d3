"""From arrival to change: a row (or `batch` of them) comes, and what it changes in the k best of its window is known.

Contestants get `fill` rows first; then each step is timed by measure.py. Those that have no standing query ask again at
every step over the rows that are valid, and compare with what they found before: net changes of the step. All end with
the right answer, and their changes must be those of a Monitor. Parameters: k, window, rows, fill, batch.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

import skyband as sb
from benchmarks import checks
from benchmarks.contestants import Outcome, Ready
from benchmarks.peers import answers
from benchmarks.peers.frames import ABOVE, numbered
from benchmarks.peers.whole import WholeWindow
from benchmarks.workloads import Stream

POLL = 0.002  # seconds between looks at the commits of triggers
Net = tuple[int, int]  # id, +1 or -1


def push_steps(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor: every change of every arrival and expiry."""
    monitor = sb.Monitor(answers.query(p), id="id", time="time")
    table = pa.table(stream)
    monitor.push(table.slice(0, p["fill"]))

    def changes(begin: int, end: int) -> list[Net]:
        told = monitor.push(table.slice(begin, end - begin))
        return list(zip(told["id"].to_pylist(), told["diff"].to_pylist(), strict=True))

    return _ready(changes, stream, p, "arrival")


def whole_steps(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """The model of an incremental view (whole.py)."""
    view, rows = WholeWindow(p["k"], answers.micros(p["window"])), answers.rows_of(stream)
    view.push(rows[: p["fill"]])
    return _ready(lambda begin, end: [one[1:] for one in view.push(rows[begin:end])], stream, p, "arrival")


def polars_steps(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """The window as a Polars frame, its groups asked anew."""
    rows, size = pl.DataFrame(numbered(stream)), answers.micros(p["window"])
    window = rows[: p["fill"] - 1]

    def ask(begin: int, end: int) -> set[int]:
        nonlocal window
        came = rows[begin:end]
        window = pl.concat([window, came]).filter(pl.col("time") > came["time"][-1] - size)
        return set(window.group_by("key").agg(pl.col("number").top_k(p["k"]))["number"].explode().to_list())

    return _asked(ask, stream, p)


def pandas_steps(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """The window as a pandas frame, sorted and grouped anew."""
    rows, size = pd.DataFrame(numbered(stream)).astype({"key": "category"}), answers.micros(p["window"])
    window = rows.iloc[: p["fill"] - 1]

    def ask(begin: int, end: int) -> set[int]:
        nonlocal window
        came = rows.iloc[begin:end]
        window = pd.concat([window, came])
        window = window[window["time"] > came["time"].iloc[-1] - size]
        ranked = window.sort_values("number", ascending=False).groupby("key", sort=False, observed=True)
        return set(ranked.head(p["k"])["number"].tolist())

    return _asked(ask, stream, p)


def duckdb_steps(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """The window as a table of DuckDB: insert, delete, and ask anew; two threads."""
    duck = duckdb.connect(config={"threads": 2})
    rows, size = pa.table(numbered(stream)), answers.micros(p["window"])
    duck.register("first", rows.slice(0, p["fill"] - 1))
    duck.execute("CREATE TABLE rows AS SELECT * FROM first")
    best = f"SELECT unnest(max(number, {p['k']})) FROM rows GROUP BY key"  # noqa: S608

    def ask(begin: int, end: int) -> set[int]:
        duck.register("came", rows.slice(begin, end - begin))
        duck.execute("INSERT INTO rows SELECT * FROM came")
        duck.execute("DELETE FROM rows WHERE time <= (SELECT max(time) FROM came) - ?", [size])
        return {number for (number,) in duck.execute(best).fetchall()}

    return _asked(ask, stream, p)


def spark_steps(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A file comes into the folder that skyband's running query reads; the step ends with the trigger's commit."""
    import skyband.spark as sbs
    from benchmarks.spark import streaming  # loads Spark

    kept_open = ExitStack()
    folder = Path(kept_open.enter_context(tempfile.TemporaryDirectory()))
    streaming.session().conf.set(streaming.PARTITIONS, "2")
    streaming.write(folder / "rows", stream, [0, p["fill"]])
    changes = sbs.monitor(streaming.read(folder / "rows", 1), answers.query(p), id="id", time="time")
    sink = changes.writeStream.format("parquet").option("path", str(folder / "changes"))
    query = sink.option("checkpointLocation", str(folder / "checkpoint")).start()
    edges = [*range(p["fill"], p["fill"] + p["rows"] + 1, p["batch"])]

    def wait_for(trigger: int) -> None:
        while not (folder / "checkpoint" / "commits" / f"{trigger}").exists():
            if query.exception() is not None:
                raise RuntimeError(f"the query ended: {query.exception()}")
            time.sleep(POLL)

    wait_for(0)

    def work() -> Iterator[None]:
        for number, (begin, end) in enumerate(itertools.pairwise(edges), start=1):
            streaming.write(folder / "rows", stream, [begin, end])
            wait_for(number)
            yield

    def after(_: Any) -> Outcome:
        query.stop()
        told: Any = streaming.session().read.parquet(str(folder / "changes")).select("id", "diff").toPandas()
        kept_open.close()

        def check(stream: Stream, p: Mapping[str, Any], _: Any) -> bool:
            left = told.groupby("id")["diff"].sum()
            return set(left[left > 0].index) == set(checks.best_ids(stream, p).tolist())

        return Outcome(None, check, {"rows": p["rows"], "changes": len(told)})

    return Ready(work, after)


def _asked(ask: Callable[[int, int], set[int]], stream: Stream, p: Mapping[str, Any]) -> Ready:
    """What was found before and is not any more, and the other way round."""
    before = ask(p["fill"] - 1, p["fill"])  # with the last of the first rows

    def changes(begin: int, end: int) -> list[Net]:
        nonlocal before
        now = ask(begin, end)
        left, entered = before - now, now - before
        before = now
        return [(number % ABOVE, -1) for number in left] + [(number % ABOVE, 1) for number in entered]

    return _ready(changes, stream, p, "batch")


def _ready(changes: Callable[[int, int], list[Net]], stream: Stream, p: Mapping[str, Any], emit: Any) -> Ready:
    edges = [*range(p["fill"], p["fill"] + p["rows"] + 1, p["batch"])]

    def work() -> Iterator[list[Net]]:
        return (changes(begin, end) for begin, end in itertools.pairwise(edges))

    def after(found: list[list[Net]]) -> Outcome:
        def check(stream: Stream, p: Mapping[str, Any], found: list[list[Net]]) -> bool:
            monitor, table = sb.Monitor(answers.query(p), id="id", time="time", emit=emit), pa.table(stream)
            monitor.push(table.slice(0, p["fill"]))
            for begin, mine in zip(edges, found, strict=False):
                told = monitor.push(table.slice(begin, p["batch"]))
                if sorted(mine) != sorted(zip(told["id"].to_pylist(), told["diff"].to_pylist(), strict=True)):
                    return False
            return set(monitor.answer()["id"].to_pylist()) == set(checks.best_ids(stream, p).tolist())

        return Outcome(found, check, {"rows": p["rows"], "changes": sum(map(len, found))})

    return Ready(work, after)
