"""`skyband run`: a pipeline file on Spark, from start to a clean stop.

Ctrl-C lets the running trigger end, then stops; a second one stops at once. Neither loses anything: a
trigger that was not finished runs again when the same file is run with the same checkpoint.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from skyband.errors import RunError, StateError
from skyband.pipeline import Pipeline, local
from skyband.spark.failure import advice, reason
from skyband.spark.java import require_java
from skyband.spark.metrics import Counted, Exporter, Figures, place
from skyband.spark.run.sinks import Sink, open_sink, with_trigger
from skyband.spark.run.sources import open_source, open_subscriptions
from skyband.spark.run.view import Lines, Report, Screen, Trigger
from skyband.spark.session import session

_POLL = 0.1  # seconds


def run(pipeline: Pipeline, *, spark: SparkSession | None = None, metrics: str | None = None) -> int:
    """Run until the source ends (availableNow), a signal, or a failure. Returns the exit code: 0, or 128 + the signal.

    `spark`: a session to run in; left out, one is made by the file's [run] and stopped at the end. `metrics`: a port
    (or host:port) that serves the run's figures meanwhile.
    """
    if metrics is None:
        return _start(pipeline, spark, None)
    figures = Figures()
    host, port = place(metrics)
    with Exporter(figures, port, host) as exporter:
        _talk(f"metrics at http://{exporter.host}:{exporter.port}/metrics")
        return _start(pipeline, spark, figures)


def _start(pipeline: Pipeline, spark: SparkSession | None, figures: Figures | None) -> int:
    if spark is not None:
        return _run(pipeline, spark, figures)
    require_java()
    _talk(f"starting Spark ({pipeline.run.master}) ...")
    try:
        with _log(pipeline.run.log) as log:
            with _silenced(log):
                made = _session(pipeline)
            try:
                return _run(pipeline, made, figures)
            finally:
                with suppress(Py4JError, ConnectionError):  # a signal to the whole group has ended Spark, too
                    made.stop()
    except KeyboardInterrupt:  # while Spark starts; once the query runs, signals are recorded
        _talk("stopped before the first trigger.")
        return 128 + signal.SIGINT


def _run(pipeline: Pipeline, spark: SparkSession, figures: Figures | None) -> int:
    with tempfile.TemporaryDirectory(prefix="skyband-") as folder:
        checkpoint = pipeline.run.checkpoint or folder
        done = _last_batch(checkpoint)
        resumed = done is not None
        caught: list[int] = []
        try:
            source, sink = open_source(pipeline), open_sink(pipeline)
            sink.checkpoint = checkpoint if resumed else None
            sink.subscriptions = open_subscriptions(pipeline, spark)
            try:
                out = sink.output(source.read(spark))
            except StateError as error:  # of a checkpoint that another file has written
                raise RunError(str(error)) from None
            if not resumed and local(checkpoint):
                sink.refuse_another_run()
            if done is not None and done >= 0:
                _talk(f"resuming after batch {done} of the checkpoint {checkpoint}")
            with _signals(caught):
                writer = out.writeStream.option("checkpointLocation", checkpoint).outputMode("append")
                query = sink.start(out, with_trigger(writer, pipeline.run))
                letters = None
                try:
                    letters = source.start_dead_letters(spark, checkpoint)
                    with _report(pipeline, sink, figures, resumed=resumed) as report:
                        triggers = _follow(query, letters, report, caught)
                    if letters is not None and not caught:
                        letters.awaitTermination()
                finally:
                    query.stop()
                    if letters is not None:
                        letters.stop()
        except (PySparkException, Py4JError, ConnectionError) as error:
            if caught and not isinstance(error, PySparkException):
                _talk("the signal stopped Spark too; the checkpoint holds all triggers that ended.")
                return 128 + caught[0]
            raise RunError(reason(error) + advice(error)) from None
        resumes = " Run the same file again to resume." if pipeline.run.checkpoint and caught else ""
        _talk(f"{'stopped' if caught else 'finished'} after {triggers} trigger{'' if triggers == 1 else 's'}.{resumes}")
        return 128 + caught[0] if caught else 0


def _report(pipeline: Pipeline, sink: Sink, figures: Figures | None, *, resumed: bool) -> Report:
    seen: Report = Screen(pipeline, sink, resumed=resumed) if sys.stdout.isatty() else Lines(pipeline, sink)
    return seen if figures is None else Counted(seen, figures, pipeline.name)


def _follow(query: StreamingQuery, letters: StreamingQuery | None, report: Report, caught: list[int]) -> int:
    """Report trigger after trigger; the number of triggers when it is over."""
    seen, triggers, waiting = -1, 0, False
    while True:
        over = query.awaitTermination(_POLL)  # type: ignore[arg-type]  # takes fractions, too
        last = query.lastProgress
        fresh = []
        if last is not None and int(last["batchId"]) > seen:
            fresh = [one for one in map(Trigger.of, query.recentProgress) if one is not None and one.batch > seen]
        for trigger in fresh:
            report.trigger(trigger)
            seen, triggers = trigger.batch, triggers + 1
        if over:
            return triggers
        if letters is not None and letters.exception() is not None:
            letters.awaitTermination()  # raises it
        if caught:
            idle = not query.status["isTriggerActive"]
            if len(caught) > 1 or idle or (waiting and fresh):
                return triggers
            if not waiting:
                report.say("stopping after the running trigger; a second signal stops at once")
            waiting = True
        report.rest()


@contextmanager
def _signals(caught: list[int]) -> Iterator[None]:
    """Record SIGINT and SIGTERM instead of ending (Spark's own handler would cancel the running trigger)."""

    def note(number: int, frame: object) -> None:
        caught.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _session(pipeline: Pipeline) -> SparkSession:
    given = pipeline.run.spark
    settings = {"spark.app.name": f"skyband run {pipeline.name}"}
    if pipeline.run.master.startswith("local"):
        settings["spark.ui.enabled"] = "false"  # no open port by default
    spark = session(pipeline.run.master, **{**settings, **given})
    if "spark.sql.shuffle.partitions" not in given:  # Spark's 200 would be 200 tasks a trigger
        count = pipeline.stream.get("shards") or spark.sparkContext.defaultParallelism
        spark.conf.set("spark.sql.shuffle.partitions", count)
    return spark


@contextmanager
def _log(path: str | None) -> Iterator[Path]:
    """The file for Spark's own messages: the one that is named, or one that is kept only if the run fails."""
    if path is not None:
        yield Path(path)
        return
    handle, name = tempfile.mkstemp(prefix="skyband-run-", suffix=".log")
    os.close(handle)
    try:
        yield Path(name)
    except RunError:
        _talk(f"Spark's own log: {name}")
        raise
    except BaseException:
        os.unlink(name)
        raise
    os.unlink(name)


@contextmanager
def _silenced(log: Path) -> Iterator[None]:
    """Let the JVM and its workers that start in here write to the log, not to our stdout and stderr."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    with log.open("ab") as file:
        for number, _ in kept:
            os.dup2(file.fileno(), number)
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise RunError(reason(error, "Spark did not start")) from None
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


def _last_batch(checkpoint: str) -> int | None:
    """The last batch that a checkpoint has committed, -1 if none; None: it is new (or not of this machine)."""
    if not local(checkpoint) or not Path(checkpoint, "metadata").exists():
        return None
    commits = Path(checkpoint, "commits")
    return max((int(file.name) for file in commits.glob("[0-9]*")), default=-1)


def _talk(said: Any) -> None:
    print(f"skyband run: {said}", file=sys.stderr, flush=True)
