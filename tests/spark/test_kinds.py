"""Pairs, parts and probabilities by the mappers and the operators, against one Monitor; the last test in real Spark."""

from __future__ import annotations

import dataclasses
from collections import Counter
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
from engines.streams import Row, cells, examples
from skyband import Last, Monitor, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.datasets import appearances
from skyband.errors import QueryError, StateError
from skyband.query.kinds import Query
from skyband.query.options import Options, named
from skyband.spark.directory import refusals
from skyband.spark.pipeline import _check_order
from spark.frames import read, run, stream, write
from spark.kinds import (
    CASES,
    MAKERS,
    OPTIONS,
    ORDER,
    TYPES,
    Maker,
    apart,
    begin,
    menu,
    pairs,
    plainly,
    play,
    push,
    same,
    stream_of,
)
from spark.shards import Shards, without_numbers


def built(*kinds: str) -> list[Maker]:
    return [MAKERS[kind] for kind in kinds or MAKERS if menu(kind)]


@pytest.mark.parametrize(("kind", "algorithm"), CASES, ids=[f"{kind}-{name}" for kind, name in CASES])
@examples(12)
@given(data=st.data())
def test_as_one_monitor(kind: str, algorithm: str, data: st.DataObject) -> None:
    play(data.draw(stream_of([(MAKERS[kind], algorithm)])), data)


@examples(25)
@given(st.data())
def test_all_kinds_together(data: st.DataObject) -> None:
    play(data.draw(stream_of([(make, "auto") for make in (*built(), plainly)])), data)


@examples(40)
@given(st.data())
def test_pairs_by_blocks(data: st.DataObject) -> None:
    """All shards score the pairs of a question without `per`; beside them are others."""
    algorithm = data.draw(st.sampled_from(["auto", "TA", "BASIC"]))
    asked = [(pairs, algorithm), *((make, "auto") for make in (pairs, *built("TopKUncertain")))]
    stream = data.draw(stream_of(asked))
    queries = {**stream.queries, "q0": dataclasses.replace(stream.queries["q0"], per=None)}  # type: ignore[type-var]
    stream = dataclasses.replace(stream, queries=queries, shards=3)
    shards = play(stream, data, blocks=True)
    assert "q0" in shards.plan.blocked


@pytest.mark.parametrize("on", ["a.r <> b.r", "a.x <= b.y", "a.r = b.r or a.y is null"])
@examples(12)
@given(data=st.data())
def test_a_condition_on_pairs_by_blocks(on: str, data: st.DataObject) -> None:
    """Each shard tests the condition for its share of the pairs; `a` is the older, whichever shard has both."""
    algorithm = data.draw(st.sampled_from(["auto", "TA", "BASIC"]))
    stream = data.draw(stream_of([(pairs, algorithm)]))
    queries = {name: dataclasses.replace(query, per=None, on=on) for name, query in stream.queries.items()}  # type: ignore[type-var]
    shards = play(dataclasses.replace(stream, queries=queries, shards=3), data, blocks=True)
    assert shards.plan.blocked.keys() == queries.keys()


@examples(20)
@given(st.data())
def test_answers_of_the_groups_that_changed(data: st.DataObject) -> None:
    stream = data.draw(stream_of([(make, "auto") for make in built()], emit=("batch",)))
    shards, monitor = begin(stream, whole=True, blocks=data.draw(st.sampled_from([True, False])))
    per = dict.fromkeys(name for query in stream.queries.values() for name in query.per_columns)
    for number, trigger in enumerate(stream.triggers):
        found, changes = shards.trigger(trigger), cells(push(monitor, trigger))
        changed = {(row["query"], *(row[name] for name in per)) for row in changes}
        answers = [{"query": name, **row} for name in stream.queries for row in cells(monitor.answer(name))]
        expected = [row for row in answers if (row["query"], *(row.get(column) for column in per)) in changed]
        columns = shards._schema().names
        same(found, [{column: row.get(column) for column in columns} for row in expected], f"trigger {number}")


# -------------------------------------------------------------------------------- by example


def table(*rows: Row) -> Any:
    """Rows, in order; what is not given is null."""
    types = {**TYPES, "t": pa.int64()}
    return pa.table(
        {k: pa.array([{"n": n, **row}.get(k) for n, row in enumerate(rows)], type_) for k, type_ in types.items()}
    )


def counted(shards: Shards) -> dict[str, int]:
    """As `metrics` has it."""
    totals = [shard.totals() for shard in shards.shards_now()]
    both = {name: sum(one[name] for one in totals) for name in ("arrivals", "late", "rejected", "refused")}
    refused = max(both.pop("refused"), *(one["refused_anywhere"] for one in totals))
    return {**both, "rejected": both["rejected"] + refused}


@pytest.mark.parametrize("per", ["g", None])
def test_rows_that_only_the_state_can_reject_are_counted(per: str | None) -> None:
    queries = {"sum": TopKIncomplete(2, parts=["north", "south"], window=Last(span=10), per=per)}
    shards = Shards(queries, {**OPTIONS, "time": "t"}, 3, order=ORDER, columns=(*TYPES, "t"))
    given = {"part": "north", "value": 0.5, "g": 1}
    first = table({"i": "a", "t": 0, **given}, {"i": "b", "t": 1, **given}, {"i": "a", "t": 2, **given})
    shards.trigger([first])
    assert counted(shards) == {"arrivals": 3, "late": 0, "rejected": 1}  # which of them arrive, mappers cannot tell
    told = shards.trigger([table({"i": "a", "t": 3, **given, "part": "up"}, {"i": "a", "t": 12, **given})])
    assert [(row["time"], row["id"], row["diff"]) for row in told] == [(10, "a", -1), (11, "b", -1), (12, "a", 1)]
    assert counted(shards) == {"arrivals": 4, "late": 0, "rejected": 2}
    (facts,) = [facts for shard in shards.shards_now() for facts, _ in shard.facts.values() if facts["serial"]]
    assert refusals(facts) == {"part: second row of the same part": 1}


@pytest.mark.parametrize("per", ["g", None])
def test_approximations_are_those_of_one_monitor(per: str | None) -> None:
    """With equal seeds, over triggers with a restart after each; another seed gives something else."""

    def asked(seed: int) -> dict[str, Query]:
        more: dict[str, dict[str, Any]] = {"APPROX": {}, "BUDGET": {"budget": 15}}
        parts, window = ["p1", "p2", "p3"], Last(150)
        return {
            name: TopKIncomplete(3, parts, window, per=per, algorithm=name, seed=seed, **more[name]) for name in more
        }

    options, differs = {**OPTIONS, "time": "t"}, set[str]()
    shards = Shards(asked(5), options, 2, order=ORDER, columns=(*TYPES, "t"))
    monitor, other = Monitor(asked(5), **options), Monitor(asked(6), **options)
    rows = [
        {"n": n, "t": n, "i": str(row["id"]), "g": row["id"] % 2, "part": row["part"], "value": row["value"]}
        for n, row in enumerate(appearances(600, seed=4, parts=3, window=30).to_pylist())
    ]
    for number in range(4):
        given = table(*rows[150 * number : 150 * number + 150])
        trigger = [given.slice(0, 70), given.slice(70)]
        expected = without_numbers(monitor, push(monitor, trigger))
        same(shards.trigger(trigger), expected, f"trigger {number}")
        for name in monitor.queries:
            same(shards.answer(name), cells(monitor.answer(name)), f"trigger {number}, answer of {name}")
        told, elsewhere = (
            {name: [row for row in changes if row["query"] == name] for name in monitor.queries}
            for changes in (expected, without_numbers(other, push(other, trigger)))
        )
        differs |= {name for name in told if told[name] != elsewhere[name]}
        shards.restart()
    assert differs >= ({"BUDGET"} if per else {"APPROX", "BUDGET"})  # groups are small: APPROX keeps all that matters


def test_alternatives_that_pass_one_and_pairs_without_a_score() -> None:
    queries = {
        "likely": TopKUncertain(2, by="x", window=Last(9), group="r"),
        "close": TopKPairs(1, by="abs(a.x - b.x)", window=Last(9), per="g"),
    }
    shards = Shards(queries, {**OPTIONS, "time": "t"}, 2, order=ORDER, columns=(*TYPES, "t"))
    xs = [(1.0, 0.75, "r"), (2.0, 0.5, "r"), (float("inf"), 0.5, "s"), (float("inf"), 0.5, "s")]
    rows = [{"i": str(n), "t": n, "x": x, "p": p, "r": r, "g": 1} for n, (x, p, r) in enumerate(xs)]
    shards.trigger([table(*rows)])
    reasons: Counter[str] = Counter()
    for shard in shards.shards_now():
        for facts, _ in shard.facts.values():
            reasons.update(refusals(facts))
    assert reasons == {"probabilities of a group pass 1": 1, "pair without a score": 1}


def test_questions_that_are_new_changed_or_gone() -> None:
    close = TopKPairs(2, by="abs(a.x - b.x)", window=Last(5))
    likely = TopKUncertain(2, by="x", window=Last(5), per="g")
    parted = TopKIncomplete(2, parts=["north"], window=Last(5), per="g", repeat="last")
    rng = np.random.default_rng(3)

    def trigger(begin: int) -> Any:
        rows = [
            {"n": n, "t": n, "i": "abc"[n % 3], "x": float(rng.integers(9)), "p": 0.5, "g": n % 2}
            for n in range(begin, begin + 6)
        ]
        return table(*[{**row, "part": "north", "value": 0.5} for row in rows])

    edits: list[tuple[str, dict[str, Query]]] = [("", {}), ("near", {"parted": parted}), ("likely", {"near": close})]
    for blocks in (True, False):
        options = {**OPTIONS, "time": "t"}
        queries: dict[str, Query] = {"close": close, "likely": likely, "near": close}
        shards = Shards(queries, options, 2, order=ORDER, columns=(*TYPES, "t"), blocks=blocks)
        monitor = Monitor(queries, **options)
        for number, (gone, come) in enumerate(edits):
            if gone:
                monitor.drop(gone)
            for name, query in come.items():
                monitor.add(name, query)
            shards.restart(monitor.queries)
            for more in (0, 6):
                rows = trigger(12 * number + more)
                same(shards.trigger([rows]), without_numbers(monitor, push(monitor, [rows])), f"{number}, {more}")
        shards.restart({"close": dataclasses.replace(close, k=1)})
        with pytest.raises(StateError, match="'close' differs"):
            shards.trigger([trigger(99)])


def test_silent_groups_are_forgotten() -> None:
    queries = {
        "close": TopKPairs(1, by="abs(a.x - b.x)", window=Last(5), per="g"),
        "ranks": TopKUncertain(2, by="x", window=Last(5), per="g", semantics="u-kranks"),
        "sum": TopKIncomplete(1, parts=["north"], window=Last(5), per="g", repeat="last"),
    }
    shards = Shards(queries, {**OPTIONS, "time": "t"}, 2, order=ORDER, columns=(*TYPES, "t"), forget=10)
    here = {"p": 0.5, "part": "north", "value": 0.5, "g": 1}
    shards.trigger([table({"i": "a", "t": 0, "x": 1.0, **here}, {"i": "b", "t": 1, "x": 2.0, **here})])
    told = shards.trigger([table({"i": "c", "t": 20, "x": 1.0, **here, "g": 2})])
    gone = [row for row in told if row["g"] == 1]
    assert {(row["query"], row["time"], row["diff"]) for row in gone} == {(name, 11, -1) for name in queries}
    assert [row["rank"] for row in gone if row["query"] == "ranks"] == [1, 2]
    assert sum(shard.totals()["groups"] for shard in shards.shards_now()) == 1


def test_orders_that_cannot_be() -> None:
    window = Last(span=5)
    for query in (
        TopKIncomplete(1, parts=["north"], window=window),
        TopKUncertain(1, by="x", window=window, group="r"),
    ):
        with pytest.raises(QueryError, match=r"needs an order that begins with the time column, order=\('t', ...\)"):
            _check_order(Options(None, "t", "part", "value", (), "arrival", "accept", "reject"), {"q": query})
    fine = [TopKIncomplete(1, parts=["north"], window=window, repeat="max"), TopKPairs(1, by=apart, window=window)]
    _check_order(Options(None, "t", "part", "value", (), "arrival", "accept", "reject"), named(fine))


def test_mappers_send_what_is_read() -> None:
    def wanted(query: Query) -> set[str]:
        return set(Shards({"q": query}, OPTIONS, 1, columns=(*TYPES, "t")).plan.wanted({"q": query}))

    window = Last(5)
    assert wanted(TopKPairs(1, by="abs(a.x - b.x)", window=window, where="y > 0", per="g")) == {"i", "x", "y", "g"}
    assert wanted(TopKPairs(1, by=apart, window=window)) == {*TYPES, "t"}
    assert wanted(TopKIncomplete(1, parts=["north"], window=window)) == {"i", "part", "value"}
    assert wanted(TopKUncertain(1, by="x", window=window, group="r")) == {"i", "x", "p", "r"}


# ------------------------------------------------------------------------------- real Spark


def test_three_kinds_in_spark_with_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Two triggers, a stop, and one more: pairs by blocks, parts and probabilities, and a TopK beside them."""

    def gap(a: Any, b: Any) -> Any:  # here, so that it goes to the workers as it is
        return abs(a["x"] - b["x"])

    rng, size = np.random.default_rng(8), 240
    start, seconds = datetime(2024, 5, 1, tzinfo=UTC), np.cumsum(rng.integers(0, 9, size))
    rows = pa.table(
        {
            "n": np.arange(size),
            "id": pa.array([f"s{i}" for i in rng.integers(0, 30, size)]),
            "time": pa.array([start + timedelta(seconds=int(s)) for s in seconds], pa.timestamp("us", "UTC")),
            "x": pa.array(rng.random(size), mask=rng.random(size) < 0.05),
            "p": rng.integers(0, 9, size) / 8,
            "part": pa.array(np.array(["north", "south", "up"])[rng.integers(0, 3, size)]),
            "value": rng.random(size),
            "g": rng.integers(0, 3, size),
        }
    )
    queries = {
        "close": sb.TopKPairs(3, by="abs(a.x - b.x)", window=sb.Last(60)),
        "closer": sb.TopKPairs(3, by=gap, window=sb.Last("2 minutes"), per="g"),
        "sum": sb.TopKIncomplete(3, parts=["north", "south"], window=sb.Last("3 minutes")),
        "likely": sb.TopKUncertain(3, by="x", window=sb.Last("2 minutes"), per="g"),
        "ranks": sb.TopKUncertain(2, by="x", window=sb.Last(40), semantics="u-kranks"),
        "top": sb.TopK(2, by="x", window=sb.Last("2 minutes"), per="g"),
    }
    options: dict[str, Any] = {"id": "id", "time": "time", "keep": ("x",)}
    monitor, expected = Monitor(queries, **options), list[Row]()
    for number in range(3):
        write(tmp_path / "in", number, rows.slice(80 * number, 80))
        expected += without_numbers(monitor, monitor.push(rows.slice(80 * number, 80)))
        if number > 0:
            schema = spark.read.parquet(str(tmp_path / "in")).schema
            df = stream(spark, tmp_path / "in", schema)
            changes = sbs.monitor(df, queries, order=("time", "n"), shards=2, blocks=True, metrics="skyband", **options)
            progress = run(changes, tmp_path)
    assert changes.columns == list(expected[0])
    same(read(spark.read.parquet(str(tmp_path / "out"))), expected, "stream")
    told = progress[-1]["observedMetrics"]["skyband"]
    assert told["rejected"] > 0 and told["objects"] > 0
    refused = [row["rejected"] for row in sbs.state(str(tmp_path / "checkpoint")).collect()]
    stats = monitor.stats()["rejected"]
    again = "part: second row of the same part"
    assert max(one.get(again, 0) for one in refused) == stats[again]
    bad = sbs.rejected(spark.createDataFrame(rows), queries["sum"], id="id", time="time").collect()
    assert {row["reason"] for row in bad} == {"part: unknown part"} and {row["part"] for row in bad} == {"up"}
