"""[sink] and [run]: where the output goes, and how it runs."""

from __future__ import annotations

import re

from skyband.pipeline.sources import BROKERS
from skyband.pipeline.table import Table, near
from skyband.pipeline.values import NOW, Run, Sink, local

SINKS = ("console", "parquet", "json", "upsert", "kafka", "memory", "noop")


def read_sink(table: Table, output: str) -> Sink:
    format_ = table.one_of("format", SINKS, needed=f"Use one of {', '.join(SINKS)}.")
    path = name = topic = None
    options: dict[str, str] = {}
    if format_ in ("parquet", "json", "upsert"):
        path = table.text("path", needed="Name the folder to write.")
    if format_ in ("parquet", "json"):
        options = table.settings("options")
        for key in options.keys() & {"path", "checkpointLocation"}:
            table.mistake(f"options.{key}", f"say {'sink.path' if key == 'path' else 'run.checkpoint'} instead.")
    if format_ == "upsert":
        if output == "answers":
            table.mistake("format", "'upsert' makes the answer itself, out of changes. Leave out output = \"answers\".")
        if path is not None and not local(path):
            table.mistake("path", f"{path!r} is not a local folder, whose files can be replaced in one step. Use one.")
    if format_ == "kafka":
        topic, options = table.text("topic", needed="Name the topic to write."), table.settings("options")
        if BROKERS not in options:
            table.mistake("options", f'{BROKERS!r} is missing, such as "localhost:9092".')
        if "topic" in options:
            table.mistake("options.topic", "say sink.topic instead.")
        if output == "answers":
            table.mistake("format", "'kafka' takes changes: compacted, they are the answer. Leave out output.")
    if format_ == "memory":
        name = table.text("name", "skyband")
    if format_ is not None:
        elsewhere = {
            "path": "is for parquet, json and upsert.",
            "options": "is for parquet, json and kafka.",
            "topic": "is for kafka.",
            "name": "is for memory.",
        }
        table.end({key: f"{why} The format is {format_!r}." for key, why in elsewhere.items() if not table.asked(key)})
    return Sink(format_ or "none", path, options, name, topic)


def read_run(table: Table) -> Run:
    checkpoint = table.text("checkpoint")
    trigger = table.text("trigger")
    every: int | str | None = None
    if trigger is not None and re.sub(r"[\s_-]", "", trigger).lower() == NOW.lower():
        every = NOW
    elif trigger is not None and not trigger.strip()[:1].isdigit():
        hint = f"Did you mean {NOW!r}?" if near(trigger, [NOW]).startswith("Did") else ""
        table.mistake("trigger", f'{trigger!r} is unknown. {hint} Use {NOW!r} or an interval, such as "10 seconds".')
    elif trigger is not None:
        every = table.milliseconds("trigger", trigger)
    master = table.text("master") or "local[*]"
    if not re.fullmatch(r"local(\[([0-9]+|\*)(, *[0-9]+)?\])?|local-cluster\[.+\]|yarn|(spark|k8s)://.+", master):
        table.mistake(
            "master", f"{master!r} is unknown. Use local[*], local[2], spark://host:7077, yarn or k8s://host."
        )
    run = Run(checkpoint, every, master, table.text("log"), table.settings("spark"))
    for name in run.spark:
        if not name.startswith("spark."):
            table.mistake(f"spark.{name}", f"Spark's settings begin with 'spark.', such as spark.{name}.")
    if "spark.master" in run.spark:
        table.mistake("spark.spark.master", "say run.master instead.")
    table.end()
    return run
