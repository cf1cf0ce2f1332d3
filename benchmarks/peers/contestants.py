"""Contestants that are held against each other in `peers.toml`, as those of ../contestants.py.

Each answers the query over the first `check` rows before the clock starts: this loads classes and compiles code, and
what it answers there must be the oracle's, every window and key. Timed is the same query over `rows` rows.
Parameters: k, window (24 hours, or so many rows), slide, rows, check, batch (rows of a push), and those of Spark; with
`items` the question is another: the k keys with the most rows (peers-items.toml).
"""

from __future__ import annotations

import csv
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import skyband as sb
from benchmarks import checks
from benchmarks.contestants import Outcome, Ready
from benchmarks.peers import answers
from benchmarks.peers.answers import Answers
from benchmarks.peers.processes import Peer
from benchmarks.workloads import Stream

CORES = 2
CHECK_N = 20  # of a count window's check: the first rows fill no window of 1,000
FOREVER = np.datetime64("2262-01-01", "us")


def embedded(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """One process on one core: skyband's Monitor, pushed Arrow tables; every change of every arrival."""
    small = answers.first(stream, p["check"])
    q = _checked(p)
    at_ends = answers.monitored(small, q)
    as_oracle = at_ends == answers.expected(small, q)  # in their order, too
    lateness = answers.judged(at_ends, small, q)[1]
    monitor = sb.Monitor(answers.query(p), id="id", time="time")
    table = pa.table(stream)
    tables = [table.slice(begin, p["batch"]) for begin in range(0, table.num_rows, p["batch"])]

    def work() -> list[int]:
        return [monitor.push(one).num_rows for one in tables]

    def after(changes: list[int]) -> Outcome:
        given = {row["id"] for row in monitor.answer().to_pylist()}
        counters = {"rows": p["rows"], "changes": sum(changes), "checkpoint_bytes": len(monitor.snapshot())} | lateness

        def check(stream: Stream, p: Mapping[str, Any], given: set[int]) -> bool:
            return as_oracle and given == set(checks.best_ids(stream, p).tolist())

        return Outcome(given, check, counters)

    return Ready(work, after)


def flink(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """Flink's Window Top-N over HOP; for count windows its nested Top-N."""
    folder = Path(tempfile.mkdtemp())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # two readers, each with every second row: neither gets far ahead of the other, and no row is late
    _write_csv(folder / "rows", stream)
    _write_csv(folder / "warm", answers.first(stream, p["check"]))
    places = {name: str(folder / name) for name in ("rows", "warm", "answers", "checkpoints")}
    peer = Peer("flink", "flink.py", places | _sizes(p) | {"port": port}, folder / "log")
    given = answers.gathered(_read_csv(folder / "answers"))
    return _ready(peer, folder, stream, p, given, lambda said: {"checkpoint_bytes": said["state_bytes"]})


def duckdb_panes(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """DuckDB's two-level panes, in batch: all rows are there before it begins."""
    folder = Path(tempfile.mkdtemp())
    for name, some in (("rows", stream), ("warm", answers.first(stream, p["check"]))):
        pq.write_table(_numbers(some), folder / name)
    places = {name: str(folder / name) for name in ("rows", "warm", "answers")}
    peer = Peer("duckdb", "duck.py", places | _sizes(p), folder / "log")
    given = answers.gathered(_read_csv(folder / "answers"))

    def counters(said: Mapping[str, Any]) -> dict[str, float]:
        if "failed" in said:
            raise RuntimeError(
                f"DuckDB at slide {p['slide']}, {p['rows']:,} rows: {said['failed']}. Give it fewer rows."
            )
        whole = checks.closes_windows(stream, p, FOREVER, {name: said[name] for name in ("windows", "objects")})
        return {"windows": said["windows"], "whole": float(whole)}

    return _ready(peer, folder, stream, p, given, counters)


def spark_windows(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """Spark's max_by over sliding windows, or with `panes` over slides and then over these; per closed window."""
    from benchmarks.spark import answering  # loads Spark

    small = answers.first(stream, p["check"])
    given, ready = answering.windows(small, stream, p)
    right = answers.expected(small, p)
    only_late, lateness = answers.judged(given, small, p) if p.get("late") else (True, {})

    def after(progress: Any) -> Outcome:
        outcome = ready.after(progress)
        counters = outcome.counters | lateness | {"unanswered": answers.unanswered(given, right)}

        def check(stream: Stream, p: Mapping[str, Any], answer: Any) -> bool:
            if lateness:
                return only_late
            return answers.so_far(given, right) and outcome.check(stream, p, answer)

        return Outcome(outcome.answer, check, counters, outcome.triggers)

    return Ready(ready.work, after)


def _ready(
    peer: Peer,
    folder: Path,
    stream: Stream,
    p: Mapping[str, Any],
    given: Answers,
    counters: Callable[[Mapping[str, Any]], dict[str, float]],
) -> Ready:
    def after(said: dict[str, Any]) -> Outcome:
        peer.close()
        shutil.rmtree(folder)
        found = counters(said)
        is_right, lateness = answers.judged(given, answers.first(stream, p["check"]), _checked(p))

        def check(stream: Stream, p: Mapping[str, Any], given: Answers) -> bool:
            return is_right and found.get("whole", 1.0) == 1.0

        return Outcome(given, check, {"rows": p["rows"]} | found | lateness)

    return Ready(peer.go, after)


def _checked(p: Mapping[str, Any]) -> dict[str, Any]:
    """The question of the check: count windows are shorter there, so that they are full."""
    return dict(p) | ({"window": CHECK_N} if isinstance(p["window"], int) else {})


def _sizes(p: Mapping[str, Any]) -> dict[str, Any]:
    own = {"k": p["k"], "parallelism": CORES, "items": p.get("items", False)}
    if isinstance(p["window"], int):
        return own | {"n": p["window"], "check_n": CHECK_N}
    minute = answers.MICROS["minute"]
    return own | {"size": answers.micros(p["window"]) // minute, "slide": answers.micros(p["slide"]) // minute}


def _numbers(stream: Stream) -> pa.Table:
    """Times as milliseconds: no peer has to parse them."""
    ms = stream["time"].astype("M8[ms]").astype(np.int64)
    return pa.table({"id": stream["id"], "key": stream["key"], "ms": ms, "score": stream["score"]})


def _write_csv(folder: Path, stream: Stream) -> None:
    folder.mkdir()
    table = _numbers(stream)
    for reader in range(CORES):
        mine = table.take(np.arange(reader, table.num_rows, CORES))
        pa.csv.write_csv(mine, folder / f"{reader}.csv", pa.csv.WriteOptions(include_header=False))


def _read_csv(path: Path) -> Any:
    """Rows of (end, key, id); count windows have no end."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            yield _end(row.get("window_end", "0")), row["key"], int(row["id"])


def _end(said: str) -> int:
    """Microseconds: DuckDB writes milliseconds, Flink a date and time in UTC."""
    if said.isdigit():
        return int(said) * 1000
    return int(np.datetime64(datetime.fromisoformat(said), "us").astype(np.int64))
