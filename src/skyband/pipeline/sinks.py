"""[sink]: where the output goes. `SINKS` has one row per format; a new sink is a row here and a class that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skyband.pipeline.formats import BROKERS, Format, options, read_format, text
from skyband.pipeline.table import Table
from skyband.pipeline.values import Run, SinkSettings, local
from skyband.query.kinds import Query

_RUN = "skyband.spark.run.sinks"


@dataclass(frozen=True, kw_only=True)
class SinkFormat(Format):
    """A row of `SINKS`.

    checkpoint: whether the sink needs run.checkpoint to resume, or cannot resume at all. no_answers: why it takes
    changes only, if so. kinds: the kinds of query whose changes it takes (empty: all). emit: the default of
    stream.emit.
    """

    checkpoint: Literal["needed", "optional", "refused"] = "optional"
    no_answers: str = ""
    kinds: tuple[str, ...] = ()
    emit: Literal["arrival", "batch"] | None = None


def _local_folder(table: Table, key: str) -> str | None:
    path = _folder(table, key)
    if path is not None and not local(path):
        table.mistake(key, f"{path!r} is not a local folder, whose files can be replaced in one step. Use one.")
    return path  # type: ignore[no-any-return]


_folder = text(needed="Name the folder to write.")
_file_options = options(instead={"path": "sink.path", "checkpointLocation": "run.checkpoint"})

SINKS: dict[str, SinkFormat] = {
    "console": SinkFormat(runs=f"{_RUN}:Console"),
    "parquet": SinkFormat(runs=f"{_RUN}:Files", keys={"path": _folder, "options": _file_options}, checkpoint="needed"),
    "json": SinkFormat(runs=f"{_RUN}:Files", keys={"path": _folder, "options": _file_options}, checkpoint="needed"),
    "upsert": SinkFormat(
        runs=f"{_RUN}:Upsert",
        keys={"path": _local_folder},
        checkpoint="needed",
        no_answers='makes the answer itself, out of changes. Leave out output = "answers".',
        kinds=("TopK", "Above"),
        emit="batch",
    ),
    "kafka": SinkFormat(
        runs="skyband.spark.run.kafka:KafkaSink",
        keys={
            "topic": text(needed="Name the topic to write."),
            "options": options(needed={BROKERS: '"localhost:9092"'}, instead={"topic": "sink.topic"}),
        },
        checkpoint="needed",
        no_answers="takes changes: compacted, they are the answer. Leave out output.",
    ),
    "memory": SinkFormat(runs=f"{_RUN}:Memory", keys={"name": text("skyband")}, checkpoint="refused"),
    "noop": SinkFormat(runs=f"{_RUN}:Sink"),
}


def read_sink(table: Table, output: str) -> SinkSettings:
    """Read [sink]; `output`: whether it gets changes or answers."""
    name, values = read_format(table, SINKS)
    if name is not None and output == "answers" and SINKS[name].no_answers:
        table.mistake("format", f"{name!r} {SINKS[name].no_answers}")
    return SinkSettings(name or "none", values)


def check_sink(top: Table, sink: SinkSettings, queries: dict[str, Query], run: Run) -> None:
    """Check the sink against the other tables."""
    row = SINKS.get(sink.format)
    if row is None:
        return
    if row.checkpoint == "needed" and run.checkpoint is None:
        top.mistake(
            "run.checkpoint", f"is missing: the sink {sink.format} resumes where it stopped. Name a folder for it."
        )
    if row.checkpoint == "refused" and run.checkpoint is not None:
        top.mistake("run.checkpoint", f"the sink {sink.format} keeps nothing, so it cannot resume. Leave it out.")
    for name, query in queries.items():
        if query.each and sink.format == "upsert":
            top.mistake(
                f"queries.{name}",
                "'upsert' makes the answer out of changes, and nothing is reported when somebody unsubscribes: those "
                'rows would stay. Use another sink.format, with output = "answers".',
            )
        if row.kinds and query.kind not in row.kinds:
            top.mistake(
                f"queries.{name}.kind",
                f"{sink.format!r} takes the changes of {' and '.join(row.kinds)}, and this is {query.kind}. "
                'Use another sink.format, with output = "answers".',
            )
