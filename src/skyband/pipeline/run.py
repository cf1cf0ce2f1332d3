"""[run]: the trigger, the checkpoint, and the settings of Spark."""

from __future__ import annotations

import re

from skyband.pipeline.table import Table, near
from skyband.pipeline.values import NOW, Run

_MASTER = r"local(\[([0-9]+|\*)(, *[0-9]+)?\])?|local-cluster\[.+\]|yarn|(spark|k8s)://.+"


def read_run(table: Table) -> Run:
    """Read [run]."""
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
    if not re.fullmatch(_MASTER, master):
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
