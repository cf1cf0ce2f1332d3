"""`skyband demo --spark`: a year of flights as a stream of files through local Spark.

    flights/*.parquet -> monitor -> changes/*.parquet -> the screen, the report

One file is one trigger. What is shown comes from the changes that Spark has committed. A Monitor in this process is
pushed the same flights behind it: it counts the objects kept, and its changes must equal Spark's, trigger by trigger.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from skyband.cli.demo import AIRPORTS, FRAME, Replay, Screen, demo_query, print_answers, shown_time
from skyband.cli.report import Facts, Sample, Size, page
from skyband.datasets import available, example
from skyband.errors import QueryError, SkybandError
from skyband.spark.java import require_java
from skyband.spark.pipeline import monitor
from skyband.spark.session import session

FILES = 30  # about twelve days each
STEP = timedelta(hours=6)  # of the year, between two pictures
SPANS = [timedelta(hours=h) for h in (3, 6, 12)] + [timedelta(days=d) for d in (1, 2, 4, 8, 16, 32)]
KEEP = ("carrier", "flight", "dest", "due")
_MARK = ".skyband-demo"


def play(*, rows: int | None = None, out: Path, files: int = FILES) -> bool:
    """Replay the first `rows` flights (None: all) through Spark, leave changes and report. False: interrupted."""
    require_java()
    folder = Folder(out)
    folder.clear()
    print("skyband demo: reading flights (the first time: compiling kernels, too) ...", file=sys.stderr)
    table = example("flights")
    table = numbered(table if rows is None else table.slice(0, rows))
    reference_replay(table.slice(0, 100)).push(100)  # compiles kernels, before Spark's workers load them
    counts = folder.write(table, files)
    print(f"skyband demo: starting Spark, which writes to {folder.log} ...", file=sys.stderr)
    watched = sys.stdout.isatty()
    following = Following(table, counts)
    finished = True
    try:
        with _local_spark(folder) as spark:
            follow(spark, folder, following, watched=watched)
    except KeyboardInterrupt:
        finished = False
    except PySparkException as error:
        why = str(error).strip().partition("\n")[0]
        raise SkybandError(f"Spark has failed: {why}. Its messages are in {folder.log}.") from error
    if not watched:
        print_answers(following)
    if finished:
        print("skyband demo: writing the report ...", file=sys.stderr)
        folder.report.write_text(page(facts(following, folder)), encoding="utf-8")
    talk = following.summary() + [f"changes: {folder.changes}"] + [f"report:  {folder.report}"] * finished
    print("skyband demo:", "\n  ".join(talk if finished else ["interrupted", *talk]), file=sys.stderr)
    return finished


# ---- files


@dataclass(frozen=True)
class Folder:
    """The files that the demo writes, and the only ones that it removes."""

    path: Path

    @property
    def flights(self) -> Path:
        return self.path / "flights"

    @property
    def changes(self) -> Path:
        return self.path / "changes"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def log(self) -> Path:
        return self.path / "spark.log"

    def clear(self) -> None:
        """Remove what an earlier demo has written here, and nothing else."""
        if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / _MARK).is_file():
            raise QueryError(f"--out {self.path}: the folder holds other things. Name a new or an empty one.")
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / _MARK).touch()
        for made in (self.flights, self.changes, self.checkpoint, self.report, self.log):
            if made.is_dir() and not made.is_symlink():
                shutil.rmtree(made)
            else:
                made.unlink(missing_ok=True)

    def write(self, table: Any, files: int) -> list[int]:
        """The table as files of equal time, in order; returns how many flights each holds."""
        self.flights.mkdir()
        due = table["due"].to_numpy()
        ends = due[0] + (due[-1] - due[0]) / files * np.arange(1, files)
        cuts = np.unique([0, *np.searchsorted(due, ends), len(due)])
        for number, (begin, end) in enumerate(pairwise(cuts)):
            path = self.flights / f"{number:03}.parquet"
            pq.write_table(table.slice(begin, end - begin), path)
            os.utime(path, (1_000_000 + number,) * 2)  # Spark takes files in the order of their times
        return np.diff(cuts).tolist()  # type: ignore[no-any-return]


def numbered(table: Any) -> Any:
    """The table with an id, and with time called `due`: `time` in a change is the time of the change."""
    ids = pa.array(np.arange(table.num_rows))
    return table.rename_columns({"time": "due"}).add_column(0, "flight_id", ids)


def reference_replay(table: Any, **options: Any) -> Replay:
    """A Monitor in this process, with the query that runs on Spark."""
    return Replay(table, id="flight_id", time="due", keep=KEEP, **options)


class ChangesReader:
    """Reads what the file sink has committed, trigger by trigger, from its log."""

    def __init__(self, changes: Path) -> None:
        self.changes = changes
        self.triggers = 0  # read
        self._seen: set[str] = set()

    def next(self) -> Any | None:
        """The changes of the next trigger, or None if it is not there yet."""
        for name in (f"{self.triggers}", f"{self.triggers}.compact"):  # which lists the files of all before it, too
            log = self.changes / "_spark_metadata" / name
            if log.is_file():
                break
        else:
            return None
        listed = [json.loads(line)["path"].rpartition("/")[2] for line in log.read_text().splitlines()[1:]]
        new = [file for file in listed if file not in self._seen]
        self._seen.update(new)
        self.triggers += 1
        return pa.concat_tables([pq.read_table(self.changes / file) for file in new]) if new else pa.table({})


# ---- Spark


@contextmanager
def _local_spark(folder: Folder) -> Iterator[SparkSession]:
    """A session whose JVM and workers write to a log, not to the screen."""
    kept = os.dup(2)
    try:
        with folder.log.open("ab") as log:
            os.dup2(log.fileno(), 2)
        settings: dict[str, Any] = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "WARN"}
        spark = session("local[2]", **settings)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    try:
        yield spark
    finally:
        spark.stop()


def start(spark: SparkSession, folder: Folder) -> StreamingQuery:
    """Flights in, changes out: each file is one trigger, and after the last it ends."""
    schema = spark.read.parquet(str(folder.flights)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder.flights))
    changes = monitor(stream, demo_query(), id="flight_id", time="due", keep=KEEP)
    writer = changes.writeStream.format("parquet").option("path", str(folder.changes))
    return writer.option("checkpointLocation", str(folder.checkpoint)).trigger(availableNow=True).start()


def follow(spark: SparkSession, folder: Folder, following: Following, *, watched: bool = False) -> None:
    """Start the query and follow it until Spark and the screen are at the end."""
    following.start = time.monotonic()
    query, reader = start(spark, folder), ChangesReader(folder.changes)
    try:
        if watched:
            from rich.console import Console
            from rich.live import Live

            screen = Screen(following)
            with Live(screen.draw(), console=Console(), auto_refresh=False) as live:
                for _ in _frames(query, following, reader):
                    for _ in range(max(1, following.ahead // 8)):  # the further behind Spark, the faster
                        following.step()
                    live.update(screen.draw(), refresh=True)
        else:
            for _ in _frames(query, following, reader):
                while following.ahead:
                    following.step()
        query.awaitTermination()  # raises the error, if there was one
    finally:
        query.stop()
    if not following.ended:
        raise SkybandError(f"Spark has ended after {following.done:,} of {following.total:,} flights: a bug.")


def _frames(query: StreamingQuery, following: Following, reader: ChangesReader) -> Iterator[None]:
    active = True
    while active or following.ahead:
        began = time.monotonic()
        active = query.isActive  # read before the log: what is committed later is read next time
        while (changes := reader.next()) is not None:
            following.take(changes)
        yield
        time.sleep(max(0.0, FRAME - (time.monotonic() - began)))


class Following:
    """Spark's changes, in steps of the year, compared with a Monitor's. The screen draws it."""

    def __init__(self, table: Any, counts: Sequence[int]) -> None:
        self.replay = reference_replay(table)
        self.counts = list(counts)  # flights of each file, so of each trigger
        self.total = self.replay.total
        self.changes = 0  # shown
        self.samples: list[Sample] = []
        self.seconds = 0.0  # from the start of the query to the last trigger
        self.start = time.monotonic()
        self._taken = 0  # triggers
        self._steps: deque[tuple[int, deque[dict[str, Any]], Counter[Any] | None]] = deque()
        self._pushed: Counter[Any] = Counter()  # the Monitor's changes since the trigger began
        self._flights: dict[int, dict[str, Any]] = {}  # those of an answer, by id
        self._held: dict[str, Counter[int]] = {airport: Counter() for airport in AIRPORTS}  # sums of diff, by id

    def take(self, changes: Any) -> None:
        """Take the changes of the next trigger, cut into steps."""
        self.seconds = time.monotonic() - self.start
        first, size = sum(self.counts[: self._taken]), self.counts[self._taken]
        self._taken += 1
        rows = changes.to_pylist()
        due = self.replay.table["due"].slice(first, size).to_numpy()
        width = np.timedelta64(STEP)
        ends = np.flatnonzero(np.diff((due - due[0].astype("datetime64[D]")) // width)) + 1
        parts = np.diff([0, *ends, size]).tolist()
        left = deque(sorted(rows, key=lambda row: (row["time"], row["diff"])))
        for part in parts[:-1]:
            self._steps.append((part, left, None))
        self._steps.append((parts[-1], left, Counter(map(_cells, rows))))

    @property
    def ahead(self) -> int:
        """Steps that Spark has reported and that were not shown yet."""
        return len(self._steps)

    @property
    def ended(self) -> bool:
        return self.replay.ended and not self._steps

    def step(self) -> None:
        """Show the next part of the year."""
        if not self._steps:
            return
        count, left, whole = self._steps.popleft()
        self._pushed.update(map(_cells, self.replay.push(count).to_pylist()))
        if whole is not None and self._pushed != whole:
            raise SkybandError(
                f"the changes of Spark up to {self.when} are not those of a Monitor in this process: a bug in "
                f"skyband. Only in Spark's: {whole - self._pushed}. Only in the Monitor's: {self._pushed - whole}."
            )
        while left and (whole is not None or left[0]["time"] <= self.replay.clock):
            self._apply(left.popleft())
        if whole is not None:
            self._pushed.clear()
        if self.replay.clock:
            answers = {airport: self.answer(airport) for airport in AIRPORTS}
            self.samples.append(Sample(self.replay.clock, answers, self.kept, self.in_window))

    def _apply(self, row: dict[str, Any]) -> None:
        """Add diff: a flight may enter and leave within a minute, and the rows of an instant have no order."""
        held, id = self._held[row["origin"]], row["id"]
        held[id] += row["diff"]
        if held[id]:
            shown = {name: row[name] for name in ("id", "score", "carrier", "flight", "dest")}
            self._flights[id] = {**shown, "time": row["due"]}
        else:
            del held[id], self._flights[id]
        self.changes += 1

    def answer(self, airport: str) -> list[dict[str, Any]]:
        """The answer from Spark's changes; of equal delays the newer flight is first."""
        rows = [self._flights[id] for id in self._held[airport]]
        rows.sort(key=lambda row: (row["score"], row["time"], row["id"]), reverse=True)
        return [{"rank": rank, **row} for rank, row in enumerate(rows, start=1)]

    @property
    def done(self) -> int:
        return self.replay.done

    @property
    def cancelled(self) -> int:
        return self.replay.cancelled

    @property
    def kept(self) -> int:
        return self.replay.kept

    @property
    def in_window(self) -> int:
        return self.replay.in_window

    @property
    def when(self) -> str:
        clock: datetime | None = self.replay.clock
        return shown_time(clock) if clock else "waiting for Spark ..."

    @property
    def pace(self) -> str:
        return f"Spark: file {self._taken} of {len(self.counts)}"

    def summary(self) -> list[str]:
        most, largest = (max((getattr(s, of) for s in self.samples), default=0) for of in ("kept", "in_window"))
        return [
            f"{self.done:,} flights through Spark in {self._taken} files and {self.seconds:.0f} s",
            f"{self.cancelled:,} of them rejected (cancelled, so no delay)",
            f"{self.changes:,} changes, each file's the same as a Monitor's in this process",
            f"at most {most:,} objects kept, of up to {largest:,} flights in the last 24 hours",
        ]


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value for name, value in row.items() if name != "at")  # which Spark does not number


# ---- the report


def facts(following: Following, folder: Folder) -> Facts:
    versions = f"Spark {pyspark.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores"
    return Facts(
        flights=following.done,
        cancelled=following.cancelled,
        changes=following.changes,
        files=len(following.counts),
        seconds=following.seconds,
        samples=following.samples,
        sizes=sizes(following.replay.table, following.counts),
        folder=folder.path.as_posix(),
        made=f"{datetime.now():%d %B %Y, %H:%M}, {versions}",
        real=available("flights"),
    )


def sizes(table: Any, counts: Sequence[int], spans: Sequence[timedelta] = tuple(SPANS)) -> list[Size]:
    """Objects kept for windows of several sizes: means over the ends of the files, once the window is full."""
    found = []
    for span in spans:
        replay, seen = reference_replay(table, span=span), []
        begin = table["due"][0].as_py()
        for count in counts:
            replay.push(count)
            if replay.clock and replay.clock - begin >= span:
                seen.append((replay.in_window, replay.kept))
        if seen:
            in_window, kept = np.mean(seen, axis=0)
            found.append(Size(span, float(in_window), float(kept)))
    return found
