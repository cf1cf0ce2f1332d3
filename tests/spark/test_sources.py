"""Questions over answers on Spark: a tree of them stands in one shard; without a JVM, and one stream with a restart."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

import skyband as sb
import skyband.spark as sbs
from engines.scene import Add, Drop, Push
from engines.streams import Row, cells, examples, same_rows
from skyband import Each, Last, Monitor, TopK, TopKGroups
from skyband.errors import QueryError, StateError
from skyband.query.options import Options
from skyband.spark.mappers import from_bytes, in_order, to_bytes
from skyband.spark.plan import Plan, roots_of
from skyband.spark.refusals import check_for_spark
from skyband.spark.schema import output_types
from skyband.spark.subscriptions import Source
from sources.scenes import scenes_over_answers
from spark.frames import read, run, write
from spark.frames import stream as files
from spark.kinds import same
from spark.shards import Shards, Sizes
from spark.test_groups import trades

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


class RawShards(Shards):
    """Shards whose packed output is read as it is: a DataFrame refuses ids and keys of several types."""

    def _unpacked(self, out: Any) -> list[Any]:
        return [from_bytes(blob) for blob in out["blob"] if blob is not None] if len(out) else []


def shown(rows: list[Row], timed: set[str]) -> list[Row]:
    """Rows as Spark reports them: `at` is unknown over time windows; and without columns that say nothing."""
    known = [{**row, "at": None} if row.get("query") in timed else row for row in rows]
    return [{name: row[name] for name in sorted(row) if row[name] is not None} for row in known]


def timed_trees(queries: dict[str, Any], options: dict[str, Any]) -> set[str]:
    plan = Plan(queries, Options(**options), ("i",), 1, ())
    return {name for name in queries if plan.timed(name)}


@examples(240)
@given(data=st.data(), whole=st.booleans())
def test_trees_as_one_monitor(data: st.DataObject, whole: bool) -> None:
    scene = data.draw(scenes_over_answers())
    options, queries = {**scene.options, **({"emit": "batch"} if whole else {})}, dict(scene.queries)
    assume(any(query.source for query in queries.values()))
    order = ("t", "j") if options["time"] else ("j",)
    monitor, count = Monitor(queries, **options), data.draw(st.integers(1, 4))
    columns = (*scene.table([]).column_names, "j")
    spark = RawShards(queries, options, count, order=order, columns=columns, sizes=Sizes(cell=300, slice=5))
    spark.whole = whole
    spark.restart()
    arrived = 0
    for number, event in enumerate(scene.events):
        before = roots_of({name: query.source for name, query in queries.items()})
        if isinstance(event, Add | Drop):
            changed = {name: query for name, query in queries.items() if name != event.name}
            changed |= {event.name: event.query} if isinstance(event, Add) else {}
            if {*roots_of({name: query.source for name, query in changed.items()})} & {*queries} != {*before} & {
                *changed
            }:
                continue  # a StateError, see below
            queries = changed
            monitor.add(event.name, event.query) if isinstance(event, Add) else monitor.drop(event.name)
            spark.restart(queries)
        if not isinstance(event, Push):
            continue
        table = scene.table(event.rows)
        table = table.append_column("j", pa.array(range(arrived, arrived + len(table)), pa.int64()))
        arrived += len(table)
        cut = data.draw(st.integers(0, len(table)))
        timed = timed_trees(queries, options)
        found = spark.trigger([table.slice(0, cut), table.slice(cut)])
        expected = monitor.push(in_order(table, order))
        if not whole:
            same_rows(shown(found, timed), shown(cells(expected), timed), f"trigger {number}")
        for name in queries:
            answer = monitor.answer(name)
            same_rows(spark.answer(name), cells(answer), f"trigger {number}, answer of {name}")
            if whole and (mine := [row for row in found if row["query"] == name]):
                per = queries[name].per_columns
                keys = {tuple(row[column] for column in per) for row in mine}
                there = [row for row in cells(answer) if tuple(row[column] for column in per) in keys]
                same_rows(shown(mine, timed), shown([{"query": name, **row} for row in there], timed), f"whole, {name}")
        if data.draw(st.booleans()):
            spark.restart()


ROWS = {"i": ["a", "b", "c", "d"], "t": [1, 2, 3, 4], "x": [4.0, 2.0, 3.0, 1.0], "g": [1, 1, 2, 2]}
SOURCE = TopK(1, by="x", window=Last(10), per="g")
OVER = TopK(1, by="score", largest=False, source="best")
OPTIONS: dict[str, Any] = {"id": "i", "time": "t"}


def test_a_tree_is_in_one_shard() -> None:
    """All rows of a source with `per` go to one shard; a query that stands alone is spread."""
    shards = Shards({"best": SOURCE, "worst": OVER, "alone": SOURCE}, OPTIONS, 4, columns=tuple(ROWS))
    assert shards.plan.roots == {"best": "best", "worst": "best"}
    changes = shards.trigger([pa.table(ROWS)])
    assert [(row["id"], row["diff"]) for row in changes if row["query"] == "worst"] == [("a", 1), ("a", -1), ("c", 1)]
    held = {(shard.number, one.root) for shard in shards.shards_now() for one in shard.facts}
    assert len({number for number, root in held if root}) == 1 and len(held) > 2


@pytest.mark.parametrize("before", [True, False])
def test_a_query_cannot_be_asked_over_from_now_on(before: bool) -> None:
    """Its groups would move to one shard, or away from there."""
    both = {"best": SOURCE, "worst": OVER}, {"best": SOURCE}
    one, other = both if before else both[::-1]
    shards = Shards(one, OPTIONS, 2, columns=tuple(ROWS))
    shards.trigger([pa.table(ROWS)])
    shards.restart(other)
    with pytest.raises(StateError, match="the rows of 'best' would move to other shards"):
        shards.trigger([pa.table(ROWS)])


def test_forget_beside_a_source_is_refused() -> None:
    with pytest.raises(QueryError, match="source= beside forget="):
        check_for_spark({"best": SOURCE, "worst": OVER}, 5)


def types_of(queries: dict[str, Any], **options: Any) -> dict[str, str]:
    schema = pa.table({**ROWS, "s": ["u"] * 4, "w": pa.nulls(4, pa.timestamp("us", "UTC"))}).schema
    plan = Plan(queries, Options(**OPTIONS, **options), ("i",), 1, tuple(schema.names))
    types, keys = output_types(from_arrow_schema(schema), plan)
    assert keys == sum(name.startswith("key_") for name in types)
    return {name: type_.simpleString() for name, type_ in types.items()}


def test_the_types_of_columns_of_questions_over_answers() -> None:
    asked = {
        "best": dataclasses.replace(SOURCE, by=lambda batch: batch["x"]),
        "worst": TopK(2, by=("score", "moment"), source="best", per={"of": "score"}),
        "per": TopKGroups(
            2, by="max(score)", of="id", source="worst", per={"moment of": "key_2"}, select={"n": "count(*)"}
        ),
    }
    found = types_of(asked, keep={"moment": "w"})
    wanted = {
        "g": "bigint",
        "of": "double",
        "id": "string",
        "moment": "timestamp",
        "n": "double",
        "time": "bigint",
        "moment of": "timestamp",
    }
    assert found | wanted | {"key_1": "double", "key_2": "timestamp"} == found


def test_one_type_for_each_column() -> None:
    ids = {"best": SOURCE, "per": TopKGroups(1, by="count(*)", of="g", source="best")}
    with pytest.raises(QueryError, match="id would be string and bigint for different queries"):
        types_of(ids)
    keys = {"best": dataclasses.replace(SOURCE, by=("x",)), "over": TopK(1, by=("id",), source="best")}
    with pytest.raises(QueryError, match="key_1 would be double and string"):
        types_of(keys)


def test_a_function_among_keys_and_names_of_columns() -> None:
    """`per` and `keep` under other names, for rows that go by the same column under two."""
    columns = (*ROWS, "s")
    table = pa.table({**ROWS, "s": ["u", "v", "u", "v"]})
    queries = {
        "a": TopK(1, by=("s", lambda batch: -batch["x"]), window=Last(2), per={"group": "g"}),
        "b": TopK(1, by="x", window=Last(span=3), per="g"),
    }
    options = {**OPTIONS, "keep": {"text": "s"}}
    shards, monitor = RawShards(queries, options, 3, columns=columns), Monitor(queries, **options)
    assert len(shards.plan.query_sets) == 2
    for part in (table, table.set_column(1, "t", pa.array([5, 6, 7, 8]))):
        same_rows(shown(shards.trigger([part]), {"b"}), shown(cells(monitor.push(part)), {"b"}), "names")
        shards.restart()
    for name in queries:
        same_rows(shards.answer(name), cells(monitor.answer(name)), name)


class Subscribed(RawShards):
    """Shards of queries that have the subscriptions of a static table."""

    table: Any = pa.table({"subscriber": ["p", "q"], "k": [1, 2]})

    def _plan(self, queries: Any) -> Plan:
        source = Source(("subscriber", "k"), (), None, repr(self.table.to_pydict()), to_bytes(self.table))
        return dataclasses.replace(super()._plan(queries), subscribed={"best": source})


def test_subscriptions_of_a_source() -> None:
    """All of a source's subscriptions go to its shard; what ends changes the answers over them."""
    queries = {"best": TopK(Each("k"), by="x", window=Last(10), per="g"), "worst": OVER}
    shards, monitor = Subscribed(queries, OPTIONS, 8, columns=tuple(ROWS)), Monitor(queries, **OPTIONS)
    monitor.subscribe("best", shards.table)
    changes = shards.trigger([pa.table(ROWS)])
    same_rows(shown(changes, set()), shown(cells(monitor.push(pa.table(ROWS))), set()), "static")
    assert any(row["query"] == "worst" for row in changes)
    shards.table = pa.table({"subscriber": ["p", "r"], "k": [1, 3]})
    shards.restart()
    expected = [monitor.unsubscribe("best", ["q"]), monitor.subscribe("best", shards.table.slice(1))]
    later = pa.table({**ROWS, "t": [5, 6, 7, 8]})
    expected.append(monitor.push(later))
    found = shards.trigger([later])
    rows = [row for table in expected if table is not None for row in cells(table)]
    same_rows(shown(found, set()), shown(rows, set()), "another table")
    assert any(row["diff"] < 0 for row in rows[:2]), "what ended has left the answer over it"
    same_rows(shards.answer("worst"), cells(monitor.answer("worst")), "worst")


# ------------------------------------------------------------------------------- real Spark

TREES = {
    "best": sb.TopK(3, by="price", window=sb.Last("2 minutes"), per={"at venue": "venue"}),
    "worst": sb.TopK(2, by="score", largest=False, source="best"),
    "often": sb.TopKGroups(2, by=("count(*)", "id"), of="id", source="best", select={"most": "max(score)"}),
    "steady": sb.Above(1, by="most", source="often"),
    "alone": sb.TopK(2, by="qty", window=sb.Last(20), per={"shop": "venue"}),
}
KEPT: dict[str, Any] = {"id": "id", "time": "time", "keep": {"name": "symbol"}}


def expected_of(monitor: Monitor, rows: Any) -> list[Row]:
    known = cells(monitor.push(rows))
    return [{**row, "at": row["at"] if row["query"] == "alone" else None} for row in known]


def test_trees_in_spark_with_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    rows, expected = trades(200), list[Row]()
    monitor = Monitor(TREES, **KEPT)
    for number in range(2):
        write(tmp_path / "in", number, rows.slice(100 * number, 100))
        expected += expected_of(monitor, rows.slice(100 * number, 100))
        df = files(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
        changes = sbs.monitor(df, TREES, order=("time", "n"), shards=2, **KEPT)
        run(changes, tmp_path)
    assert changes.columns == list(expected[0])
    same(read(spark.read.parquet(str(tmp_path / "out"))), expected, "stream")


def test_trees_in_spark_of_a_table(spark: SparkSession) -> None:
    rows = trades(120)
    monitor = Monitor(TREES, **KEPT)
    df = spark.createDataFrame(rows)
    same_rows(read(sbs.monitor(df, TREES, order=("time", "n"), shards=2, **KEPT)), expected_of(monitor, rows), "table")
    answers = read(sbs.answers(df, TREES, order=("time", "n"), shards=2, **KEPT))
    for name in TREES:
        mine = [row for row in answers if row["query"] == name]
        same_rows(
            shown(mine, set()), shown([{"query": name, **row} for row in cells(monitor.answer(name))], set()), name
        )
