"""[stream]: the roles of columns, and whether queries and columns fit together."""

from __future__ import annotations

from typing import Any

from skyband.errors import QueryError
from skyband.monitor.monitor import Monitor
from skyband.pipeline.sinks import SINKS
from skyband.pipeline.sources import INTEGERS, SOURCES, TIMES
from skyband.pipeline.table import Table, near
from skyband.pipeline.values import SinkSettings, SourceSettings
from skyband.query.kinds import Query, TopKGroups, TopKIncomplete
from skyband.query.options import ALL, Options, check_op
from skyband.query.windows import Last

_DAY = 86400 * 10**9


def read_stream(table: Table, queries: dict[str, Query], source: SourceSettings, sink: SinkSettings) -> dict[str, Any]:
    """Read [stream]: the arguments of `skyband.spark.monitor` that are given, or have a default by source or sink."""
    defaults = dict(SOURCES[source.format].stream) if source.format in SOURCES else {}
    if sink.format in SINKS and SINKS[sink.format].emit is not None:
        defaults["emit"] = SINKS[sink.format].emit
    needed = "" if "id" in defaults else 'Name the column that labels objects, such as id = "flight".'
    given: dict[str, Any] = {
        "id": table.text("id", needed=needed),
        **{key: table.text(key) for key in ("time", "part", "value", "op")},
        **{key: table.names(key) for key in ("order", "keep")},
        "emit": table.one_of("emit", ("arrival", "batch")),
        "late": table.one_of("late", ("accept", "drop")),
        "invalid": table.one_of("invalid", ("reject", "raise")),
        **{key: table.text(key) for key in ("watermark", "forget")},
        "shards": table.whole("shards", 1),
    }
    table.end()
    stream = defaults | {key: value for key, value in given.items() if value is not None}
    for key in ("watermark", "forget"):
        if key in stream:
            table.milliseconds(key, stream[key])
    _check_columns(table, stream, queries, source)
    _check_queries(table, stream, queries)
    return stream


def _check_queries(table: Table, stream: dict[str, Any], queries: dict[str, Query]) -> None:
    """Report what a Monitor would refuse."""
    usual = {"id": None, "time": None, "part": "part", "value": "value", "keep": ()}
    usual |= {"emit": "arrival", "late": "accept", "invalid": "reject", "op": None}
    options = usual | {key: value for key, value in stream.items() if key in usual}
    try:
        Options(**options)
    except QueryError as error:
        table.mistake("keep", str(error).removeprefix("Monitor: "))
        return
    try:
        check_op(stream.get("op"), queries.values())
    except QueryError as error:
        table.mistake("op", str(error))
    for name, query in queries.items():
        if query.window.sort == "time" and "time" not in stream:
            table.mistake("time", f"is missing: the window of queries.{name}, {query.window!r}, is a time window.")
            continue
        try:
            Monitor(_with_sources(name, queries), **options)
        except QueryError as error:
            table.mistakes.append(f"queries.{name}: {error}")


def _with_sources(name: str, queries: dict[str, Query]) -> dict[str, Query]:
    """A query with those over whose answers it asks."""
    found, left = dict[str, Query](), [name]
    while left:
        one = left.pop()
        if one in queries and one not in found:
            found[one] = queries[one]
            left += [source] if (source := queries[one].source) is not None else []
    return found


def _check_columns(table: Table, stream: dict[str, Any], queries: dict[str, Query], source: SourceSettings) -> None:
    """Check that every named column exists and that time is a time, where the source's columns are known."""
    columns = source.columns
    if columns is None:
        return

    def look(key: str, name: str) -> None:
        if name not in columns:
            there = f" It has: {', '.join(columns)}." if near(name, columns).startswith("Did") else ""
            table.mistakes.append(f"{key}: the source has no column {name!r}. {near(name, columns, 'It has')}{there}")

    for key in ("id", "time", "op", "order", "keep"):
        for name in (stream[key],) if isinstance(stream.get(key), str) else stream.get(key, ()):
            if (key, name) != ("keep", ALL):
                look(f"stream.{key}", name)
    for name, query in queries.items():
        for key, named in query.reads.items() if query.source is None else ():
            for column in named:
                look(f"queries.{name}.{key}", column)
    if any(isinstance(query, TopKIncomplete) for query in queries.values()):
        for key in ("part", "value"):
            look(f"stream.{key}", stream.get(key, key))
    if (type_ := columns.get(stream.get("time", ""), "").lower()) == "":
        return
    if type_ not in (*INTEGERS, *TIMES, "date"):
        table.mistake("time", f"the column {stream['time']!r} is {type_}. Time is a timestamp, a date or an integer.")
        return
    unit = None if type_ in INTEGERS else _DAY if type_ == "date" else 10**3
    for name, query in queries.items():
        try:
            if isinstance(query.window, Last) and query.window.spans:
                Last(span=1).length(unit)
            elif isinstance(query.window, Last) and query.window.each is None:
                query.window.length(unit)
            if isinstance(query, TopKGroups):
                query.half_life(unit)
        except QueryError as error:
            key = "window" if isinstance(query.window, Last) else "decay"
            table.mistakes.append(f"queries.{name}.{key}: {error}")
