"""Reports of a run: `Lines` writes JSON into a pipe, `Screen` draws at a terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc

from skyband.pipeline import Pipeline
from skyband.spark.run.answer_file import answer_after
from skyband.spark.run.sinks import Sink
from skyband.spark.run.sources import MALFORMED

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

METRICS = ("arrivals", "late", "rejected", "malformed", "groups", "objects", "bytes")
_FRAME = 0.25  # seconds between two pictures


@dataclass(frozen=True)
class Trigger:
    """One trigger that ran, out of Spark's progress."""

    batch: int
    rows: int
    rows_per_second: float
    milliseconds: int
    metrics: dict[str, int]  # empty where skyband's operator reports none
    state: int  # bytes that Spark's state store says it holds in memory

    @classmethod
    def of(cls, progress: Any) -> Self | None:
        """None: nothing ran, Spark only reports that it is idle."""
        if "addBatch" not in progress["durationMs"]:
            return None
        took = int(progress["durationMs"]["triggerExecution"])
        rows = int(progress["numInputRows"])
        seen = observed(progress)
        found = _added_up(seen)
        malformed = [row["malformed"] for name, row in seen.items() if name.startswith(MALFORMED)]
        if malformed:  # of the source, and of subscriptions
            found["malformed"] = sum(malformed)
        metrics = {name: int(found[name]) for name in METRICS if found.get(name) is not None}
        state = sum(int(part["memoryUsedBytes"]) for part in progress["stateOperators"])
        return cls(int(progress["batchId"]), rows, round(1000 * rows / max(took, 1), 1), took, metrics, state)


def observed(progress: Any) -> dict[str, Mapping[str, Any]]:
    """What `metrics=` and `DataFrame.observe` saw in a trigger (progress or its JSON), by name.

    Over Spark Connect a row comes as the JSON of one: its values, and apart from them its schema.
    """
    seen = (progress["observedMetrics"] or {}).items()
    rows = {name: row if isinstance(row, Mapping) else row.asDict() for name, row in seen}
    return {name: _named(row) if row.keys() == {"values", "schema"} else row for name, row in rows.items()}


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return dict(zip((field["name"] for field in row["schema"]["fields"]), row["values"], strict=True))


def _added_up(seen: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The metrics of `monitor`, whatever name they have; those of several monitors in one query are added up."""
    monitors = [one for one in seen.values() if set(METRICS) - {"malformed"} <= one.keys()]
    known = [one for one in monitors if None not in one.values()]  # null: a trigger without rows
    if not known or len(known) < len(monitors):
        return {}
    return {name: sum(int(one[name]) for one in known) for name in known[0]}


class Report(Protocol):
    """Shows every trigger; `rest` is called in between."""

    def trigger(self, trigger: Trigger) -> None: ...

    def rest(self) -> None: ...

    def say(self, state: str) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Lines:
    """One line of JSON per trigger, on stdout; with the sink console it holds the trigger's rows."""

    def __init__(self, pipeline: Pipeline, sink: Sink) -> None:
        self.pipeline, self.sink = pipeline, sink

    def trigger(self, trigger: Trigger) -> None:
        line: dict[str, Any] = {
            "batch": trigger.batch,
            "rows": trigger.rows,
            "rows_per_second": trigger.rows_per_second,
            "trigger_ms": trigger.milliseconds,
            **trigger.metrics,
        }
        if self.sink.to_stdout and (rows := self.sink.wrote(trigger.batch)) is not None:
            line[self.pipeline.output] = rows.to_pylist()
        print(json.dumps(line, default=str, ensure_ascii=False), flush=True)

    def rest(self) -> None:
        pass

    def say(self, state: str) -> None:
        print(f"skyband run: {state}", file=sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class Screen:
    """The live view: speed, state, and the answers as they are."""

    def __init__(self, pipeline: Pipeline, sink: Sink, *, resumed: bool, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self.pipeline, self.sink = pipeline, sink
        self.answers = Answers(pipeline, sink, whole=not resumed or not sink.to_stdout)
        self.console = console or Console(markup=False, highlight=False)
        self.live = Live(console=self.console, auto_refresh=False)
        self.last: Trigger | None = None
        self.rows = 0  # in this run
        self.state = "waiting for the first trigger (it takes some seconds)"
        self._drawn = 0.0

    def trigger(self, trigger: Trigger) -> None:
        self.last = trigger
        self.rows += trigger.rows
        self.state = "running, Ctrl-C stops" if self.state.startswith("waiting") else self.state
        self.answers.follow(trigger.batch)
        self.live.update(self.draw(), refresh=True)

    def rest(self) -> None:
        if time.monotonic() - self._drawn >= _FRAME:
            self._drawn = time.monotonic()
            self.live.update(self.draw(), refresh=True)

    def say(self, state: str) -> None:
        self.state = state
        self.live.update(self.draw(), refresh=True)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.say("ended")
        self.live.stop()

    def draw(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        source, sink = self.pipeline.source, self.pipeline.sink
        origin = source.values.get("path") or source.values.get("dataset") or source.format
        lines: list[RenderableType] = [
            Text.assemble((self.pipeline.name, "bold"), f": {origin} to {sink.format} {sink.values.get('path', '')}"),
            Text(self.state, "cyan"),
        ]
        if self.last is not None:
            lines += [self._speed(self.last), self._kept(self.last), "", *self._answers()]
        return Group(*lines)

    def _speed(self, last: Trigger) -> RenderableType:
        from rich.text import Text

        return Text.assemble(
            f"trigger {last.batch}: {last.rows:,} rows in {last.milliseconds:,} ms, ",
            (f"{last.rows_per_second:,.0f} rows/s", "bold green"),
            f"; {self.rows:,} rows so far",
        )

    def _kept(self, last: Trigger) -> RenderableType:
        from rich.text import Text

        if not last.metrics:
            return Text(f"state {_size(last.state)} in memory", "dim")
        counts = dict.fromkeys(METRICS, 0) | last.metrics
        unread = f", malformed in this trigger {counts['malformed']:,}" if "malformed" in last.metrics else ""
        kept = f"kept {counts['objects']:,} objects of {counts['groups']:,} groups, {_size(counts['bytes'])}"
        return Text(f"{kept}; late {counts['late']:,}, rejected {counts['rejected']:,}{unread}", "dim")

    def _answers(self) -> list[RenderableType]:
        """As many rows of each query as fit: of every group the best, the groups that changed last first."""
        from rich.text import Text

        if self.answers.table is None:
            return [Text("The answers are not shown: the sink does not report what it wrote.", "dim")]
        space = max(self.console.height - 7, 6) // len(self.pipeline.queries) - 2
        shown: list[RenderableType] = []
        for name, query in self.pipeline.queries.items():
            if query.each:
                shown.append(Text(f"{name}: {query!r}  (the answers of its subscribers are not shown)", "bold"))
                continue
            rows, left_out = self.answers.best(name, space)
            more = f"  and {left_out:,} rows more" if left_out else ""
            since = "" if self.answers.whole else "  (what has changed since the restart)"
            shown += [Text(f"{name}: {query!r}{more}{since}", "bold", no_wrap=True, overflow="ellipsis"), _drawn(rows)]
        return shown


class Answers:
    """The current answers of plain queries, computed from what the sink wrote. `whole`: since the very beginning."""

    def __init__(self, pipeline: Pipeline, sink: Sink, *, whole: bool) -> None:
        self.pipeline, self.sink, self.whole = pipeline, sink, whole
        self.queries = {name: query for name, query in pipeline.queries.items() if not query.each}
        self.table: Any = None
        self._recent: dict[str, list[tuple[Any, ...]]] = {}  # query -> its groups, the last to change first

    def follow(self, batch: int) -> None:
        rows = self.sink.wrote(batch)
        if rows is not None and "subscriber" in rows.column_names:
            rows = rows.filter(pc.is_null(rows.column("subscriber"))).drop_columns(["subscriber"])
        if (current := self.sink.current()) is not None:
            rows = current if self.table is None else None
            self.table = current
        elif rows is not None and self.pipeline.output == "changes":
            plain = rows.drop_columns(["time"]) if "time" in rows.column_names else rows
            self.table = answer_after(self.table, plain, self.queries)
        elif rows is not None:
            self.table = self._replaced(rows)
        if rows is not None:
            self._note(rows)

    def _replaced(self, rows: Any) -> Any:
        """Answers are whole, so those of a group replace its earlier ones."""
        if self.table is None:
            return rows
        kept = []
        for name, query in self.queries.items():
            per = list(query.per_columns)
            old, new = (t.filter(pc.equal(t.column("query"), name)) for t in (self.table, rows))
            if per:
                changed = set(_keys(new, per))
                old = old.filter(pa.array([key not in changed for key in _keys(old, per)], pa.bool_()))
            elif new.num_rows:
                old = old.slice(0, 0)
            kept += [new, old]
        return pa.concat_tables(kept)

    def _note(self, rows: Any) -> None:
        for name, query in self.queries.items():
            mine = rows.filter(pc.equal(rows.column("query"), name))
            changed = list(dict.fromkeys(_keys(mine, list(query.per_columns))))
            before = [key for key in self._recent.get(name, []) if key not in set(changed)]
            self._recent[name] = changed + before

    def best(self, name: str, space: int) -> tuple[Any, int]:
        """At most so many rows of a query's answer, and how many were left out."""
        query = self.queries[name]
        mine = self.table.filter(pc.equal(self.table.column("query"), name))
        per = list(query.per_columns)
        keys = _keys(mine, per)
        place = {key: i for i, key in enumerate(self._recent.get(name, []))}
        there = sorted(set(keys), key=lambda key: place.get(key, len(place)))[: max(space, 1)]
        deep = max(space // max(len(there), 1), 1)
        rank = mine.column("rank").to_pylist()
        wanted = {key: i for i, key in enumerate(there)}
        rows = [i for i, key in enumerate(keys) if key in wanted and rank[i] <= deep]
        rows.sort(key=lambda i: (wanted[keys[i]], rank[i]))
        others = [name for q in self.queries.values() for name in q.per_columns if name not in per]
        shown = mine.take(pa.array(rows, pa.int64())).drop_columns(["query", *dict.fromkeys(others)])
        return shown, mine.num_rows - shown.num_rows


def _keys(table: Any, per: list[str]) -> list[tuple[Any, ...]]:
    columns = [table.column(name).to_pylist() for name in per]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _drawn(rows: Any) -> Table:
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for field in rows.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        drawn.add_column(field.name, justify="right" if number else "left", no_wrap=True)
    for row in rows.to_pylist():
        drawn.add_row(*[_cell(value) for value in row.values()])
    return drawn


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,.6g}" if isinstance(value, float) else str(value)


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"
