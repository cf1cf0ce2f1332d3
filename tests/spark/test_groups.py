"""Groups of rows by the mappers and the operator, against one Monitor; the last tests in real Spark.

tests/spark/test_kinds.py has them beside other kinds; here are the windows, ids and columns that only they have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import skyband as sb
import skyband.spark as sbs
from engines.streams import CLOCKWORKS, Clockwork, Row, cells, examples, same_rows
from groups.scenes import FEW, HARD, HAVING, OTHERS, PICKS, SELECT, SUMS, TYPES, _order, _rows, _window
from skyband import Ever, Last, Monitor, TopKGroups, UntilDeleted
from skyband.errors import StateError
from skyband.query.kinds import Query
from skyband.spark.mappers import in_order
from spark.frames import read, run, write
from spark.frames import stream as files
from spark.kinds import same
from spark.shard_streams import Draw, sizes
from spark.shards import Shards, Sizes, without_numbers

COLUMNS = {"n": pa.int64(), **TYPES, "op": pa.string()}
FADING = ("sum(x)", "count(*)", "2*sum(x) + count(*)", "sum(x) - 3*count(*)")
OPS = ("insert", "insert", "update", "delete", "DELETE", "upsert")


@dataclasses.dataclass(frozen=True)
class Stream:
    queries: dict[str, Query]
    more: list[Query]  # to be added at restarts
    options: dict[str, Any]
    order: tuple[str, ...]
    shards: int
    triggers: list[list[Any]]
    sizes: Sizes
    forget: Any

    def start(self, *, whole: bool = False) -> tuple[Shards, Monitor]:
        shards = Shards(
            *(self.queries, self.options, self.shards),
            order=self.order,
            whole=whole,
            sizes=self.sizes,
            columns=(*COLUMNS, "t"),
            forget=self.forget,
        )
        options = {**self.options, "emit": "batch"} if whole else self.options
        return shards, Monitor(self.queries, **options, forget=self.forget)

    def push(self, monitor: Monitor, trigger: Sequence[Any]) -> Any:
        return monitor.push(in_order(pa.concat_tables(trigger), self.order))


def asked(draw: Draw, sort: str, of: Any, clockwork: Clockwork) -> TopKGroups:
    decay = sort == "ever" and draw(st.integers(0, 2)) == 0
    tick = clockwork.tick
    more = {} if decay else {"having": draw(st.sampled_from(HAVING)), "select": draw(st.sampled_from(SELECT))}
    return TopKGroups(
        draw(st.integers(1, 4)),
        by=draw(st.sampled_from(FADING if decay else (*SUMS, *PICKS, *OTHERS))),
        window=_window(draw, sort, clockwork),
        of=of,
        largest=draw(st.sampled_from([None, None, False])),
        where=draw(st.sampled_from([None, None, "y > 0", "x >= 0 and z is not null"])),
        per=draw(st.sampled_from([None, "g", "g", ("g", "h")])),
        decay=None if not decay else 3 if tick is None else 3 * tick,
        **more,
    )


def picked(draw: Draw, of: Any) -> TopKGroups:
    """A query whose aggregates few rows of an object decide, or few that stand for all."""
    return TopKGroups(
        draw(st.integers(1, 3)),
        by=draw(st.sampled_from([*PICKS, *OTHERS[:3], *SUMS, *SUMS])),
        window=Ever(),
        of=of,
        having=draw(st.sampled_from([None, None, "max(x) > min(x)", "last(z) = 'm'", "first(y) > 0", "count(*) > 2"])),
        largest=draw(st.sampled_from([None, False])),
        where=draw(st.sampled_from([None, None, "y > 0"])),
        per=draw(st.sampled_from([None, "g"])),
        select=draw(
            st.sampled_from(
                [(), {"l": "last(z)", "f": "first(y > 1)", "m": "min(y)"}, {"s": "sum(y)", "n": "count(*)"}]
            )
        ),
    )


@st.composite
def streams(
    draw: Draw, *, emit: Sequence[str] = ("arrival", "batch"), forgets: bool = False, picks: bool = False
) -> Stream:
    """Queries of groups over every window, and rows cut into triggers and partitions; some are late."""
    clockwork = CLOCKWORKS[draw(st.sampled_from(["int64", "us", "date32"]))]
    of = draw(st.sampled_from([[None, "o"], ["v"], [("o", "v")]]))  # ids of one type
    named = [one for one in of if one is not None]
    ranked = _order(draw, of[0]) if draw(st.integers(0, 2)) == 0 else {}  # one for all: a column of keys has one type

    def one() -> TopKGroups:
        if picks:
            return picked(draw, draw(st.sampled_from(of)))
        sort = draw(st.sampled_from(["count", "time", "time", "session", "ever", "ever", "until deleted"]))
        query = asked(draw, sort, draw(st.sampled_from(named if sort == "until deleted" else of)), clockwork)
        return dataclasses.replace(query, **ranked) if query.decay is None else query

    queries: dict[str, Query] = {name: one() for name in ("p", "q", "r")[: draw(st.integers(1, 3))]}
    more: list[Query] = [] if forgets or picks else [one() for _ in range(draw(st.integers(0, 2)))]
    both: list[Any] = [*queries.values(), *more]
    timed = any(query.window.sort == "time" or query.decay is not None for query in both)
    stays = any(isinstance(query.window, UntilDeleted) for query in queries.values())
    late = draw(st.sampled_from(["accept", "accept", "drop"]))
    options: dict[str, Any] = {
        "id": "i",
        "time": "t" if timed or forgets or picks or draw(st.booleans()) else None,
        "op": "op" if stays and draw(st.integers(0, 3)) > 0 else None,
        "keep": draw(st.sampled_from([(), ("z",), ("x", "i")])),
        "emit": draw(st.sampled_from(emit)),
        "late": late,
    }
    triggers, clock, total, lateness = list[list[Any]](), 0, 0, 0 if forgets else draw(st.sampled_from([0, 0, 4]))
    numbers = draw(st.sampled_from([FEW, HARD]))
    for _ in range(draw(st.integers(1, 5))):
        made, clock = _rows(draw, draw(st.integers(0, 12)), clock, lateness, clockwork, numbers)
        parts: list[list[Row]] = [[], []]
        for row in made:
            total += 1
            op = draw(st.sampled_from(OPS)) if options["op"] else None
            parts[draw(st.integers(0, 1))].append({**row, "n": total, "op": op})
        triggers.append([table_of(part, clockwork.type) for part in parts])
    order = ("t", "n") if options["time"] else ("n",)
    forget = (3 if clockwork.tick is None else str(Last(3 * clockwork.tick).to_dict()["last"])) if forgets else None
    return Stream(queries, more, options, order, draw(st.sampled_from([1, 3])), triggers, draw(sizes()), forget)


def table_of(rows: list[Row], time: Any) -> Any:
    types = {**COLUMNS, "t": time}
    return pa.table({name: pa.array([row.get(name) for row in rows], type_) for name, type_ in types.items()})


def compare(shards: Shards, monitor: Monitor, where: str) -> None:
    for name in monitor.queries:
        same_rows(shards.answer(name), cells(monitor.answer(name)), f"{where}, answer of {name}")
    for one in shards.monitors():
        one._loop.check()


@examples(36)
@given(streams(), st.data())
def test_as_one_monitor(stream: Stream, data: st.DataObject) -> None:
    """Restarts in between, at which queries come and go."""
    shards, monitor = stream.start()
    waiting, renumbered = list(stream.more), False
    for number, trigger in enumerate(stream.triggers):
        expected = without_numbers(monitor, stream.push(monitor, trigger))
        found = shards.trigger(trigger)
        names = [name for name in shards._schema().names if not renumbered or name != "at"]
        found, expected = ([{name: row.get(name) for name in names} for row in rows] for rows in (found, expected))
        same_rows(found, expected, f"trigger {number}")
        compare(shards, monitor, f"trigger {number}")
        added = data.draw(st.integers(0, 1))
        if waiting and added:
            monitor.add(f"new {number}", waiting.pop())
            renumbered = True  # where the numbers of a new one begin depends on what shares its shard
        if len(monitor.queries) > 1 and data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(monitor.queries)))
            stays = [isinstance(query.window, UntilDeleted) for name, query in monitor.queries.items() if name != gone]
            if stream.options["op"] is None or any(stays):
                monitor.drop(gone)
        if data.draw(st.booleans()) or dict(monitor.queries) != shards.plan.queries:
            shards.restart(monitor.queries)


@examples(24)
@given(streams(emit=("batch",), picks=True), st.data())
def test_mappers_send_rows_that_decide(stream: Stream, data: st.DataObject) -> None:
    """Over Ever(), net changes, nothing but picked rows: what is left out changes no column of any change."""
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        expected = without_numbers(monitor, stream.push(monitor, trigger))
        same_rows(shards.trigger(trigger), expected, f"trigger {number}")
        compare(shards, monitor, f"trigger {number}")
        if data.draw(st.booleans()):
            shards.restart()


@examples(15)
@given(streams(emit=("arrival",), forgets=True), st.data())
def test_silent_groups_are_forgotten(stream: Stream, data: st.DataObject) -> None:
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        same_rows(shards.trigger(trigger), without_numbers(monitor, stream.push(monitor, trigger)), f"trigger {number}")
        compare(shards, monitor, f"trigger {number}")
        if data.draw(st.booleans()):
            shards.restart()


@examples(12)
@given(streams(emit=("batch",)))
def test_answers_of_the_groups_that_changed(stream: Stream) -> None:
    shards, monitor = stream.start(whole=True)
    per = dict.fromkeys(name for query in stream.queries.values() for name in query.per_columns)
    for number, trigger in enumerate(stream.triggers):
        found, changes = shards.trigger(trigger), cells(stream.push(monitor, trigger))
        changed = {(row["query"], *(row[name] for name in per)) for row in changes}
        answers = [{"query": name, **row} for name in stream.queries for row in cells(monitor.answer(name))]
        expected = [row for row in answers if (row["query"], *(row.get(column) for column in per)) in changed]
        columns = shards._schema().names
        same_rows(found, [{column: row.get(column) for column in columns} for row in expected], f"trigger {number}")


# -------------------------------------------------------------------------------- by example


def test_mappers_send_what_is_read() -> None:
    query = TopKGroups(
        1, by="sum(x)", window=Last(5), of=("o", "v"), having="count(distinct y) > 1", select={"z": "last(z)"}, per="g"
    )
    plan = Shards({"q": query}, {"id": "i"}, 1, columns=(*COLUMNS, "t")).plan
    assert set(plan.wanted({"q": query})) == {"i", "o", "v", "x", "y", "z", "g"}


def test_mappers_send_few_rows_of_a_leaderboard() -> None:
    """By net changes: the best, the newest and those that tie in time, for sums too; else all that pass `where`."""
    rng, size = np.random.default_rng(1), 1_000
    made: list[Row] = [
        {"n": n, "t": n, "i": f"p{p}", "x": float(x), "y": int(y)}
        for n, (p, x, y) in enumerate(zip(*rng.integers(0, [[20], [1000], [4]], (3, size)), strict=True))
    ]
    table = table_of(made, pa.int64())
    best = TopKGroups(3, by="max(x)", window=Ever(), where="y > 0")
    passed = sum(row["y"] > 0 for row in made)
    for query, emit, sent in (
        (best, "batch", 40),
        (best, "arrival", passed),
        (dataclasses.replace(best, by="sum(x)"), "batch", 20),
        (dataclasses.replace(best, by="avg(x) + max(x)", having="count(*) > 3"), "batch", 40),
        (dataclasses.replace(best, by="count(*)"), "batch", 20),
        (dataclasses.replace(best, by="sum(x)"), "arrival", passed),
        (dataclasses.replace(best, by="sum(x)", decay=100), "batch", passed),
        (dataclasses.replace(best, window=Last(span=500)), "batch", passed),
        (dataclasses.replace(best, window=Last(500)), "batch", size),
    ):
        options: dict[str, Any] = {"id": "i", "time": "t", "emit": emit, "keep": ("n",)}
        shards, monitor = Shards({"q": query}, options, 2, columns=(*COLUMNS, "t")), Monitor({"q": query}, **options)
        same_rows(shards.trigger([table]), without_numbers(monitor, monitor.push(table)), str(query))
        assert shards.sent <= sent and (sent in (20, 40) or shards.sent == sent), query


@pytest.mark.parametrize("by", ["count(*)", "sum(x)", "avg(x)", "sum(x) - sum(y) / count(*)"])
def test_partial_sums_are_exact(by: str) -> None:
    """Numbers of far exponents, whose sum needs several; some objects are beyond float64, others have one row."""
    rng, numbers = np.random.default_rng(2), [1e15, 0.1, -1e15, 0.2, 3.0, 1e-30, -0.1, 2.0**-1074]
    made: list[Row] = [
        {
            "n": n,
            "t": n // 2,
            "i": f"p{n % 7}",
            "x": float(rng.choice([1e308, -1e308] if n % 7 == 6 else numbers)),
            "y": 3,
        }
        for n in range(900)
    ]
    made += [{"n": 900, "t": 450, "i": "alone", "x": 7.0, "y": 1}]
    query: dict[str, Query] = {"q": TopKGroups(9, by=by, window=Ever())}
    options: dict[str, Any] = {"id": "i", "time": "t", "emit": "batch", "keep": ("n",)}
    shards = Shards(query, options, 1, order=("t", "n"), columns=(*COLUMNS, "t"))
    monitor = Monitor(query, **options)
    for begin in (0, 300, 600):
        trigger = [table_of(made[begin + part : begin + 301 : 2], pa.int64()) for part in (0, 1)]
        expected = monitor.push(in_order(pa.concat_tables(trigger), ("t", "n")))
        same_rows(shards.trigger(trigger), without_numbers(monitor, expected), f"from {begin}")
        same_rows(shards.answer("q"), cells(monitor.answer("q")), f"from {begin}, answer")
    assert shards.sent < 400  # 130 of them are of the object beyond float64


@pytest.mark.parametrize("by", ["max(x)", "-min(-x)", "first(x)", "last(x)", "count(distinct x)"])
def test_mappers_send_what_decides_ties_and_kept_columns(by: str) -> None:
    """The objects are equal in each aggregate; a has the newest row, which is no extreme, and each two best rows."""
    xs = {"a": [(0, 1.0), (1, 9.0), (2, 9.0), (6, 4.0)], "b": [(0, 1.0), (3, 9.0), (4, 9.0), (5, 4.0)]}
    made = sorted((t, i, x) for i, rows in xs.items() for t, x in rows)
    table = table_of([{"n": n, "t": t, "i": i, "x": x} for n, (t, i, x) in enumerate(made)], pa.int64())
    queries: dict[str, Query] = {"q": TopKGroups(1, by=by, window=Ever())}
    options: dict[str, Any] = {"id": "i", "time": "t", "emit": "batch", "keep": ("n",)}
    shards, monitor = Shards(queries, options, 1, columns=(*COLUMNS, "t")), Monitor(queries, **options)
    same_rows(shards.trigger([table]), without_numbers(monitor, monitor.push(table)), by)
    (row,) = shards.answer("q")
    assert row["id"] == "a" and shards.sent < len(made)


def test_a_changed_question_is_a_state_error() -> None:
    query = TopKGroups(2, by="sum(x)", window=Ever(), per="g", decay=3)
    rows = [{"n": 0, "t": 0, "i": "a", "x": 1.0, "g": 1}]
    for other in (dataclasses.replace(query, decay=4), dataclasses.replace(query, by="count(*)")):
        shards = Shards({"q": query}, {"id": "i", "time": "t"}, 2, columns=(*COLUMNS, "t"))
        shards.trigger([table_of(rows, pa.int64())])
        shards.restart({"q": other})
        with pytest.raises(StateError, match="'q' differs from the one in the checkpoint"):
            shards.trigger([table_of(rows, pa.int64())])


# ------------------------------------------------------------------------------- real Spark


def trades(size: int) -> Any:
    """Rows that arrive in order, with ties, equal times, nulls, and ids that come back and are deleted."""
    rng = np.random.default_rng(5)
    start, seconds = datetime(2024, 5, 1, tzinfo=UTC), np.cumsum(rng.integers(0, 9, size))
    return pa.table(
        {
            "n": np.arange(size),
            "id": pa.array([f"i{i}" for i in rng.integers(0, 60, size)]),
            "time": pa.array([start + timedelta(seconds=int(s)) for s in seconds], pa.timestamp("us", "UTC")),
            "symbol": pa.array([None if i == 9 else f"s{i}" for i in rng.integers(0, 10, size)]),
            "venue": pa.array(rng.integers(0, 3, size), pa.int32()),
            "qty": pa.array(rng.integers(1, 9, size), pa.int32()),
            "price": pa.array(np.round(rng.random(size) * 4, 1), mask=rng.random(size) < 0.05),
            "p": rng.integers(1, 9, size) / 8,
            "part": pa.array(np.array(["north", "south"])[rng.integers(0, 2, size)]),
            "value": rng.random(size),
            "op": pa.array(np.array(["insert", "update", "delete"])[rng.integers(0, 3, size)]),
        }
    )


def test_groups_in_spark_with_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """One trigger, a stop, and one more: every window of groups, and the other kinds over Ever()."""
    rows, ever = trades(200), sb.Ever()
    shown = {"trades": "count(*)", "where": "last(symbol)", "large": "max(qty) > 7"}
    queries = {
        "sum": sb.TopKGroups(3, by="sum(price * qty)", window=sb.Last("2 minutes"), of="symbol", select=shown),
        "mean": sb.TopKGroups(2, by="avg(price)", window=sb.Last(40), of="symbol", per="venue", having="count(*) > 1"),
        "best": sb.TopKGroups(3, by="max(price)", window=ever, per="venue"),
        "hot": sb.TopKGroups(3, by="sum(qty)", window=ever, of="symbol", per="venue", decay="1 minute"),
        "order": sb.TopKGroups(
            *(2, ("count(*)", "id")),
            sb.Session("20 seconds"),
            of="symbol",
            per="venue",
            largest=(True, False),
            offset=1,
        ),
        "there": sb.TopKGroups(3, by="count(distinct qty)", window=sb.UntilDeleted(), of="symbol"),
        "top": sb.TopK(3, by="price", window=ever, per="venue"),
        "above": sb.Above(3.5, by="price", window=ever),
        "parts": sb.TopKIncomplete(3, parts=["north", "south"], window=ever, repeat="max", per="venue"),
        "likely": sb.TopKUncertain(3, by="price", window=ever),
    }
    options: dict[str, Any] = {"id": "id", "time": "time", "keep": ("p",), "op": "op"}
    monitor, expected = Monitor(queries, **options), list[Row]()
    for number in range(2):
        write(tmp_path / "in", number, rows.slice(100 * number, 100))
        expected += without_numbers(monitor, monitor.push(rows.slice(100 * number, 100)))
        schema = spark.read.parquet(str(tmp_path / "in")).schema
        df = files(spark, tmp_path / "in", schema)
        changes = sbs.monitor(df, queries, order=("time", "n"), shards=2, **options)
        run(changes, tmp_path)
    assert changes.columns == list(expected[0])
    same(read(spark.read.parquet(str(tmp_path / "out"))), expected, "stream")


def test_groups_in_spark_with_partial_aggregates(spark: SparkSession) -> None:
    """A table in several partitions, whose mappers send rows that stand for others."""
    rows = trades(160)
    queries = {
        "sum": sb.TopKGroups(3, by="sum(price)", window=sb.Ever(), of="symbol", per="venue", select={"n": "count(*)"})
    }
    options: dict[str, Any] = {"id": "n", "time": "time", "keep": ("qty",), "emit": "batch"}
    monitor = Monitor(queries, **options)
    changes = sbs.monitor(spark.createDataFrame(rows).repartition(2), queries, shards=2, **options)
    same_rows(read(changes), without_numbers(monitor, monitor.push(rows)), "table")


def test_groups_in_spark_of_several_columns(spark: SparkSession) -> None:
    """A table as one trigger; its ids are structs."""
    rows = trades(120)
    queries = {
        "pairs": sb.TopKGroups(3, by="max(price)", window=sb.Last("3 minutes"), of=("symbol", "venue")),
        "ever": sb.TopKGroups(
            *(2, ("count(*)", "id", "id.venue"), sb.Ever()), of=("symbol", "venue"), largest=False, with_ties=True
        ),
    }
    options: dict[str, Any] = {"id": "n", "time": "time", "keep": ("qty",)}
    monitor = Monitor(queries, **options)
    changes = sbs.monitor(spark.createDataFrame(rows), queries, shards=2, **options)
    assert changes.schema["id"].dataType.simpleString() == "struct<symbol:string,venue:int>"
    same_rows(read(changes), without_numbers(monitor, monitor.push(rows)), "table")
