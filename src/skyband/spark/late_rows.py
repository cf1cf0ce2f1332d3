"""`late`: the rows that `monitor` drops because they are too late, as a DataFrame.

Whether a row is late depends on the clock that earlier triggers have left. So this is a query with a state of its own,
the clock: mappers send every part of the state the largest time that they have seen, as those of `monitor` do, and each
row to one of the parts. All rows cross the shuffle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from skyband.errors import QueryError
from skyband.monitor.loop import Loop
from skyband.query.kinds import Query
from skyband.query.options import Options, named
from skyband.query.windows import Last, Session
from skyband.spark.mappers import PACKED, REPORT, Packer, Validator, from_bytes, in_zone, moment_of, to_bytes, unpack
from skyband.spark.plan import MOST_SHARDS, Plan
from skyband.spark.refusals import zone_of
from skyband.spark.schema import check_rows, require_columns, sample
from skyband.spark.session import check, partitions_of
from skyband.spark.task import running, spare_collector
from skyband.spark.versions import arrow_schema
from skyband.tables.columns import as_arrow, plain
from skyband.tables.input import time_unit, times

if TYPE_CHECKING:
    import pandas as pd

OUTPUT = StructType([StructField("blob", BinaryType())])
_WHO = "skyband who"  # of a row in the shuffle: a number for the queries that accept it


def late(
    df: DataFrame,
    queries: Query | Iterable[Query] | Mapping[str, Query],
    *,
    time: str,
    id: str | None = None,
    part: str = "part",
    value: str = "value",
    op: str | None = None,
    late: Literal["accept", "drop"] = "accept",
) -> DataFrame:
    """The rows that `monitor` drops because they are too late, with all their columns.

    Before these come `clock`, the stream's time when the row came, and `queries`, those that drop it. Rows that
    `monitor` rejects are not among them (`rejected` has those). What is late depends on how the stream is cut into
    triggers: give this query the same ones as that of `monitor`, by the same options of the source.

    Parameters
    ----------
    df : DataFrame
        The stream.
    queries : Query, list of Query, or {name: Query}
        The queries. Only those over time drop rows: with `late="accept"` over `Last("1 hour")`, `Last(span=...)`, with
        "drop" also over `Ever()`.
    time : str
        The column of times, by which `monitor` orders rows.
    id : str, optional
        The column that labels objects, for TopKIncomplete and queries over UntilDeleted().
    part, value : str
        For TopKIncomplete: the columns of the part and of its value.
    op : str, optional
        For queries over UntilDeleted(): the column of "insert", "update" and "delete".
    late : "accept" or "drop"
        As for `monitor`: whether only objects that are not valid any more are dropped, or all older than the clock.

    """
    check(df.sparkSession, streaming=True)
    options = Options(id=id, time=time, part=part, value=value, op=op, late=late)
    by_name = named(queries)
    Loop.of(by_name, **_plain(options))  # reports mistakes before any job runs
    by_name = {name: query for name, query in by_name.items() if query.source is None}
    _check(df, by_name, time)
    roles = [name for name in (id, time, op) if name is not None]
    require_columns(df.schema, tuple(roles))
    check_rows(sample(df.schema, tuple(df.columns)), by_name, _plain(options))
    zone = zone_of(df.schema, by_name, str(df.sparkSession.conf.get("spark.sql.session.timeZone")))
    shards = min(partitions_of(df.sparkSession), MOST_SHARDS)
    plan = Plan(by_name, options, (time,), shards, tuple(df.columns), follows=True, zone=zone)
    schema = StructType(
        [
            StructField("clock", df.schema[time].dataType),
            StructField("queries", ArrayType(StringType())),
            *df.schema.fields,
        ]
    )
    first: Callable[[Iterator[Any]], Iterator[Any]] = partial(send, plan)
    last: Callable[[Iterator[Any]], Iterator[Any]] = partial(unpack, arrow_schema(schema))
    names = [col("`" + name.replace("`", "``") + "`").alias(f"c{i}") for i, name in enumerate(df.columns)]
    sent = df.select(*names).mapInArrow(first, PACKED).groupBy("shard")
    return sent.transformWithStateInPandas(LateRows(plan), OUTPUT, "append", "None").mapInArrow(last, schema)


def _plain(options: Options) -> dict[str, Any]:
    return {name: value for name, value in options.stored.items() if name != "forget"}


def _check(df: DataFrame, queries: Mapping[str, Query], time: str) -> None:
    """Refuse what cannot be said of rows alone."""
    if not df.isStreaming:
        raise QueryError(
            "late() is for a stream: a table is one trigger, in which rows come in order, and none is late."
        )
    for name in ("clock", "queries"):
        if name in df.columns:
            raise QueryError(f"late() adds a column {name!r}, and the DataFrame has one. Rename that first.")
    for name, query in queries.items():
        if isinstance(query.window, Session):
            raise QueryError(
                f"{name}: whether a session has ended depends on the other rows of its group, which only the running "
                "query knows. Leave the query out."
            )
        if getattr(query.window, "each", None) is not None:
            raise QueryError(
                f"{name}: each subscription has a window of its own, and with it late rows of its own. Leave the "
                "query out."
            )


def send(plan: Plan, batches: Iterator[Any]) -> Iterator[Any]:
    """The mapper before the shuffle."""
    spare_collector()
    plan = running(plan)
    sender = Sender(plan)
    for batch in batches:
        yield from sender.send(in_zone(pa.Table.from_batches([batch]).rename_columns(list(plan.columns)), plan.zone))
    yield sender.report()


class Sender(Packer):
    """Sends rows with the queries that accept them, to one part of the state after another."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.validator = Validator(plan.over_rows, plan.monitor_options())
        self.turn = 0

    def send(self, rows: pa.Table) -> Iterator[Any]:
        """The message that these rows make."""
        examined = self.validator.examine(rows)
        self._count(rows, examined)
        names = [name for adapter in examined.standing for name in adapter.queries]
        each = zip(examined.standing, examined.validated, strict=True)
        accepted = np.stack([one.accepted for adapter, one in each for _ in adapter.queries], axis=1)
        wanted = np.flatnonzero(accepted.any(axis=1))
        if not len(wanted):
            return
        patterns, who = np.unique(accepted[wanted], axis=0, return_inverse=True)
        said = [[name for name, yes in zip(names, pattern, strict=True) if yes] for pattern in patterns]
        table = rows.take(as_arrow(wanted)).append_column(_WHO, pa.array(who.ravel(), pa.int32()))
        self.turn = (self.turn + 1) % self.plan.shards
        yield self._message(self.turn, 0, table.replace_schema_metadata({b"who": json.dumps(said).encode()}))


class LateRows(StatefulProcessor):
    """Keeps the clock, and lets rows pass that are too late by it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_collector()
        self.clock = handle.getValueState("clock", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        import pandas as pd  # as in operator.py

        kept = self.clock.get()
        before = None if kept is None else from_bytes(bytes(kept[0]))
        latest = before
        for frame in rows:
            for number, blob in zip(frame["family"], frame["blob"], strict=True):
                table = from_bytes(blob)
                if number == REPORT:
                    newer = table.num_rows and (latest is None or moment_of(table) > moment_of(latest))
                    latest = table if newer else latest
                elif before is not None and (found := late_among(table, before, self.plan)).num_rows:
                    yield pd.DataFrame({"blob": [to_bytes(found)]})
        if latest is not None and latest is not before:
            self.clock.update((to_bytes(latest),))

    def close(self) -> None:
        pass


def late_among(table: pa.Table, clock: pa.Table, plan: Plan) -> pa.Table:
    """The rows that are late by this clock, as they are reported."""
    time = plan.options.time
    ages = moment_of(clock) - times(plain(table.column(time)), 0)[0]
    limits = _limits(plan, time_unit(table.schema.field(time).type))
    patterns = json.loads(table.schema.metadata[b"who"])
    late = np.flatnonzero(ages >= min(limits.values(), default=np.inf))
    who = table.column(_WHO).to_numpy()
    dropping = [
        [name for name in patterns[pattern] if ages[row] >= limits.get(name, np.inf)]
        for row, pattern in zip(late.tolist(), who[late].tolist(), strict=True)
    ]
    some = np.array([bool(names) for names in dropping], np.bool_)
    found = table.drop_columns([_WHO]).take(as_arrow(late[some])).replace_schema_metadata(None)
    said = pa.array([names for names in dropping if names], pa.list_(pa.string()))
    at = plain(clock.column("clock")).take(pa.array([0] * found.num_rows, pa.int64()))
    return found.add_column(0, "queries", said).add_column(0, "clock", at)


def _limits(plan: Plan, unit: int | None) -> dict[str, int]:
    """By query: the age from which on it drops a row."""
    timed = {name: query for name, query in plan.queries.items() if plan.options.timed(query.window)}
    if plan.options.late == "drop":
        return dict.fromkeys(timed, 1)
    spans = {name: query.window for name, query in timed.items()}
    return {name: window.length(unit) for name, window in spans.items() if isinstance(window, Last)}
