"""The stateful operator: one shard, one Monitor, whose snapshot is the state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from skyband.errors import StateError
from skyband.monitor import Monitor
from skyband.query import TopK
from skyband.spark.packing import from_bytes, in_order, moment_of, to_bytes
from skyband.spark.plan import CONTROL, Plan

_STATE = StructType([StructField("fingerprint", StringType()), StructField("snapshot", BinaryType())])


class Operator(StatefulProcessor):
    """Takes a trigger's rows of its shard in `order`, then moves the clock to the stream's."""

    def __init__(self, plan: Plan, *, whole: bool) -> None:
        self.plan = plan
        self.whole = whole  # report answers, not changes

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("monitor", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        label = key[0]
        tables, clocks = [], []
        for frame in rows:
            clocks += [from_bytes(said) for said in frame["clock"].dropna()]
            tables += [from_bytes(blob) for blob in frame["blob"].dropna()]
        kept = self.state.get()
        stored = None if kept is None else json.loads(kept[0])
        if stored is not None:
            self._compare(stored)
        if label == CONTROL:
            self.state.update((json.dumps(self.plan.fingerprint()), b""))
            return
        monitor = self._monitor(label, None if kept is None else kept[1], stored)
        clock = max(clocks, key=moment_of).column("clock")[0] if clocks else None
        changes = monitor.push(in_order(pa.concat_tables(tables), self.plan.order) if tables else {}, to=clock)
        self.state.update((json.dumps(self.plan.fingerprint()), monitor.snapshot()))
        told = self._answers(monitor, changes) if self.whole else self._without_numbers(changes)
        if told.num_rows:
            yield pd.DataFrame({"blob": [to_bytes(told)]})

    def close(self) -> None:
        pass

    def _compare(self, stored: dict[str, Any]) -> None:
        """State goes on only with what it was made by; new and dropped queries are no change."""
        asked = self.plan.fingerprint()
        if stored["shards"] != asked["shards"]:
            raise StateError(
                f"the checkpoint was written with shards={stored['shards']}, and groups cannot move. "
                f"Run with shards={stored['shards']}, or start from a new checkpoint."
            )
        if stored["options"] != asked["options"]:
            raise StateError(
                f"the checkpoint was written with other options ({stored['options']}, now {asked['options']}). "
                "Run with those, or start from a new checkpoint."
            )
        for name, data in stored["queries"].items():
            if asked["queries"].get(name, data) != data:
                raise StateError(
                    f"the query {name!r} differs from the one in the checkpoint ({data}). "
                    "Give the new question a new name, or start from a new checkpoint."
                )

    def _monitor(self, label: str, snapshot: bytes | None, stored: dict[str, Any] | None) -> Monitor:
        """The shard's Monitor as the last trigger left it, with the queries of this run."""
        queries = self.plan.members(label)
        if snapshot is None or stored is None:
            return Monitor(queries, **self.plan.monitor_options())
        callables = {name: query.by for name, query in queries.items() if callable(query.by)}
        monitor = Monitor.restore(snapshot, callables)
        for name in monitor.queries.keys() - queries.keys():
            monitor.drop(name)
        for name in queries:
            if name not in monitor.queries:
                monitor.add(name, queries[name])
        return monitor

    def _without_numbers(self, changes: Any) -> Any:
        """`at` is null for time windows: on Spark not every row need reach its shard."""
        timed = pa.array([name for name, query in self.plan.queries.items() if query.window.timed], pa.string())
        place = changes.column_names.index("at")
        shown = pc.if_else(pc.is_in(changes.column("query").cast(pa.string()), timed), None, changes.column("at"))
        return changes.set_column(place, pa.field("at", pa.int64()), shown.cast(pa.int64()))

    def _answers(self, monitor: Monitor, changes: Any) -> Any:
        """The answers of the groups that changed, query by query."""
        tables = []
        for name, query in monitor.queries.items():
            if isinstance(query, TopK):
                mine = changes.filter(pc.equal(changes.column("query").cast(pa.string()), name))
                groups = mine.select(list(query.per_columns)).group_by(list(query.per_columns)).aggregate([])
                keys = [tuple(row.values()) for row in groups.to_pylist()] if query.per_columns else [None]
                tables += [_named(name, monitor.answer(name, key=key)) for key in keys if mine.num_rows]
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def _named(name: str, answer: Any) -> Any:
    return answer.add_column(0, "query", pa.array([name] * answer.num_rows, pa.string()))
