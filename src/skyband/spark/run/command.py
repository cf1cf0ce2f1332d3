"""`skyband run`: a pipeline file on Spark, from start to a clean stop.

Ctrl-C lets the running trigger end, then stops; a second one stops at once. Neither loses anything: what a trigger
had not finished comes again when the same file is run with the same checkpoint.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from skyband.errors import RunError, SkybandError
from skyband.pipeline import NOW, Pipeline, local
from skyband.query.validation import RESERVED
from skyband.spark.java import require_java
from skyband.spark.metrics import Counted, Exporter, Figures, place
from skyband.spark.pipeline import answers, monitor
from skyband.spark.run.kafka import KafkaSink, send_dead_letters
from skyband.spark.run.sinks import Spout, open_sink
from skyband.spark.run.sources import read
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
            with _quiet(log):
                made = _session(pipeline)
            try:
                return _run(pipeline, made, figures)
            finally:
                with suppress(Py4JError, ConnectionError):  # a signal to the whole group has ended Spark, too
                    made.stop()
    except KeyboardInterrupt:  # while Spark starts; once the query runs, signals are noted
        _talk("stopped before the first trigger.")
        return 128 + signal.SIGINT


def _run(pipeline: Pipeline, spark: SparkSession, figures: Figures | None) -> int:
    with tempfile.TemporaryDirectory(prefix="skyband-") as folder:
        checkpoint = pipeline.run.checkpoint or folder
        done = _last_batch(checkpoint)
        resumed = done is not None
        caught: list[int] = []
        try:
            out, order = _output(pipeline, read(spark, pipeline.source))
            sink = KafkaSink(pipeline) if pipeline.sink.format == "kafka" else open_sink(pipeline, order)
            if not resumed and local(checkpoint):
                sink.refuse_another_run()
            if done is not None and done >= 0:
                _talk(f"going on after batch {done} of the checkpoint {checkpoint}")
            with _signals(caught):
                query = sink.start(out, _writer(pipeline, out, checkpoint))
                letters = None
                try:
                    letters = send_dead_letters(spark, pipeline, checkpoint)
                    with _report(pipeline, sink, figures, resumed=resumed) as report:
                        told = _follow(query, letters, report, caught)
                    if letters is not None and not caught:
                        letters.awaitTermination()
                finally:
                    query.stop()
                    if letters is not None:
                        letters.stop()
        except (PySparkException, Py4JError, ConnectionError) as error:
            if caught and not isinstance(error, PySparkException):
                _talk("stopped, and Spark with it, by the same signal; the checkpoint holds all triggers that ended.")
                return 128 + caught[0]
            raise RunError(reason(error) + advice(error)) from None
        resumes = " Run the same file again to go on." if pipeline.run.checkpoint and caught else ""
        _talk(f"{'stopped' if caught else 'finished'} after {told} trigger{'' if told == 1 else 's'}.{resumes}")
        return 128 + caught[0] if caught else 0


def _output(pipeline: Pipeline, rows: DataFrame) -> tuple[DataFrame, list[str]]:
    """The changes or answers; and those of their columns that tell which of two objects came first."""
    stream = {**pipeline.stream, "metrics": "skyband"}
    if pipeline.sink.format != "upsert":
        ask = answers if pipeline.output == "answers" else monitor
        return ask(rows, pipeline.queries, **stream), []
    # changes carry the time of their step; the answer wants the object's own, and what it was ordered by
    id_, time = stream["id"], stream.get("time")
    keep = list(stream.get("keep", ()))
    used = {*RESERVED, *keep, *(name for query in pipeline.queries.values() for name in query.per_columns)}
    order = stream.get("order") or [name for name in (time, id_) if name is not None]
    extra = [name for name in order if name not in (time, id_) and name not in used]
    stream["keep"] = (*keep, *extra)
    shown = {id_: "id"} | ({} if time is None else {time: "time"})
    known = [shown.get(name, name) for name in order if name in (id_, time) or name in {*keep, *extra}]
    if time is None:
        return monitor(rows, pipeline.queries, **stream), known
    own = "own time"
    while own in rows.columns:
        own += " "
    stream["keep"] = (*stream["keep"], own)
    out = monitor(rows.withColumn(own, col(f"`{time.replace('`', '``')}`")), pipeline.queries, **stream)
    names = [own if name == "time" else name for name in _time_after_id(out.columns) if name != own]
    return out.select(
        *[col(f"`{name.replace('`', '``')}`").alias("time" if name == own else name) for name in names]
    ), known


def _time_after_id(columns: list[str]) -> list[str]:
    """As in an answer; in changes `time` comes before `id`."""
    rest = [name for name in columns if name != "time"]
    place = rest.index("id") + 1
    return [*rest[:place], "time", *rest[place:]]


def _writer(pipeline: Pipeline, out: DataFrame, checkpoint: str) -> DataStreamWriter:
    writer = out.writeStream.option("checkpointLocation", checkpoint).outputMode("append")
    if pipeline.run.every == NOW:
        return writer.trigger(availableNow=True)
    if pipeline.run.every is not None:
        return writer.trigger(processingTime=f"{pipeline.run.every} milliseconds")
    return writer


def _report(pipeline: Pipeline, sink: Spout, figures: Figures | None, *, resumed: bool) -> Report:
    seen: Report = Screen(pipeline, sink, resumed=resumed) if sys.stdout.isatty() else Lines(pipeline, sink)
    return seen if figures is None else Counted(seen, figures, pipeline.name)


def _follow(query: StreamingQuery, letters: StreamingQuery | None, report: Report, caught: list[int]) -> int:
    """Report trigger after trigger; the number of triggers when it is over."""
    seen, told, waiting = -1, 0, False
    while True:
        over = query.awaitTermination(_POLL)  # type: ignore[arg-type]  # takes fractions, too
        last = query.lastProgress
        fresh = []
        if last is not None and int(last["batchId"]) > seen:
            fresh = [one for one in map(Trigger.of, query.recentProgress) if one is not None and one.batch > seen]
        for trigger in fresh:
            report.trigger(trigger)
            seen, told = trigger.batch, told + 1
        if over:
            return told
        if letters is not None and letters.exception() is not None:
            letters.awaitTermination()  # raises it
        if caught:
            idle = not query.status["isTriggerActive"]
            if len(caught) > 1 or idle or (waiting and fresh):
                return told
            if not waiting:
                report.say("stopping after the running trigger; again: at once")
            waiting = True
        report.rest()


@contextmanager
def _signals(caught: list[int]) -> Iterator[None]:
    """Notes SIGINT and SIGTERM instead of dying of them (Spark's own handler would cancel the running trigger)."""

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
        settings["spark.ui.enabled"] = "false"  # no open port unless asked for
    spark = session(pipeline.run.master, **{**settings, **given})
    if "spark.sql.shuffle.partitions" not in given:  # Spark's 200 would be 200 tasks a trigger
        count = pipeline.stream.get("shards") or spark.sparkContext.defaultParallelism
        spark.conf.set("spark.sql.shuffle.partitions", count)
    return spark


@contextmanager
def _log(path: str | None) -> Iterator[Path]:
    """Where Spark's own talk goes: the file that is named, or one that stays only if the run fails."""
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
def _quiet(log: Path) -> Iterator[None]:
    """The JVM and its workers that start in here write to the log, not to our stdout and stderr."""
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


_ADVICE = {
    "No space left on device": "Make room on the disk of run.checkpoint, sink.path and Spark's local folders",
    "Read-only file system": "Make it writable again (a checkpoint cannot be moved: it names its own place)",
    "to connect back": "Python took longer than the ten seconds that Spark waits: leave it more of the machine",
    "Permission denied": "Let this user write to run.checkpoint and sink.path",
}


def advice(error: BaseException) -> str:
    """What to do, where a failure of the machine is behind it."""
    text = str(error)
    while (cause := getattr(error, "_cause", None)) is not None:
        error = cause
        text += str(error)
    found = next((told for sign, told in _ADVICE.items() if sign in text), None)
    return "" if found is None else f" {found}; then the same command goes on where it stopped."


def reason(error: BaseException, what: str = "the query failed") -> str:
    """Why something failed, in a line or two: our own error if there is one inside, else the innermost of all."""
    if isinstance(error, SkybandError):
        return str(error)
    told = [_plain(error)]
    while (cause := getattr(error, "_cause", None)) is not None:
        error = cause
        told.append(_plain(error))
    text = "\n".join(told)
    ours = re.findall(r"^skyband\.errors\.\w+: (.+(?:\n(?! *File |Traceback|\S+Error).+)*)", told[0], re.MULTILINE)
    if ours:
        return str(ours[-1]).strip()
    python = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception|Interrupt)(?:: .*)?)$", told[0], re.MULTILINE)
    if python and "Traceback" in text:
        return f"{what}: {python[-1].strip()}"
    last = next((one for one in reversed(told) if one), type(error).__name__)
    return f"{what}: " + "\n".join(last.rpartition("terminated with exception: ")[2].splitlines()[:6])


def _plain(error: BaseException) -> str:
    """A message without what only Spark's developers read."""
    text = re.split(r"\n(?:=== Streaming Query ===|JVM stacktrace:|\tat )", str(error))[0]
    text = re.sub(r"^An error occurred while calling .*\n: ", "", re.sub(r"\s*SQLSTATE: \w+", "", text))
    return re.sub(r"^(?:[a-z]\w*\.)+\w*(?:Exception|Error): ", "", text).strip()


def _talk(said: Any) -> None:
    print(f"skyband run: {said}", file=sys.stderr, flush=True)
