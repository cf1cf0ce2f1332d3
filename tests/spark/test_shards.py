"""The Spark pipeline without a JVM against a Monitor: any stream, the clock, and where groups go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import cells, examples, net, same_rows
from skyband import Last, Monitor, TopK
from spark.shard_streams import Stream, streams
from spark.shards import CLOCKWORKS, Shards, Sizes, as_text, pushed, rows, shards_of, table_of, without_numbers

# ------------------------------------------------------------------- the same everywhere


@examples(120)
@given(streams())
def test_streams_in_order(stream: Stream) -> None:
    shards, monitor = stream.start()
    found = []
    for number, trigger in enumerate(stream.triggers):
        told = shards.trigger(trigger)
        same_rows(told, pushed(monitor, trigger, stream.order), f"trigger {number}")
        found += told
    whole = Monitor(stream.queries, **stream.options)
    same_rows(found, without_numbers(whole, whole.push(stream.table().sort_by("i"))), "all triggers")


@examples(80)
@given(streams(emit=("batch",)))
def test_net_changes_of_streams_in_order(stream: Stream) -> None:
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        same_rows(shards.trigger(trigger), pushed(monitor, trigger, stream.order), f"trigger {number}")
    for name in stream.queries:
        same_rows(shards.answer(name), cells(monitor.answer(name)), f"answer of {name}")


@examples(150)
@given(streams(emit=("arrival", "batch"), lateness=(1, 4, 12)))
def test_streams_with_late_rows(stream: Stream) -> None:
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        found, expected = shards.trigger(trigger), pushed(monitor, trigger, stream.order)
        assert net(found) == net(expected), f"trigger {number}"
        for name in stream.queries:
            same_rows(shards.answer(name), cells(monitor.answer(name)), f"trigger {number}, answer of {name}")


@examples(40)
@given(streams(emit=("arrival", "batch"), lateness=(0, 0, 4), above=True), st.data())
def test_all_above_a_threshold(stream: Stream, data: st.DataObject) -> None:
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        found, expected = shards.trigger(trigger), pushed(monitor, trigger, stream.order)
        assert net(found) == net(expected), f"trigger {number}"
        if is_in_order(stream, number):
            same_rows(found, expected, f"trigger {number}")
        for name in stream.queries:
            same_rows(shards.answer(name), cells(monitor.answer(name)), f"trigger {number}, answer of {name}")
        for one in shards.monitors():
            one._loop.check()
        if data.draw(st.booleans()):
            shards.restart()


def is_in_order(stream: Stream, number: int) -> bool:
    """Up to this trigger, and with no time missing."""
    so_far = pa.concat_tables([part for trigger in stream.triggers[: number + 1] for part in trigger])
    times = [time for time in so_far.sort_by("i").column("t").to_pylist() if time is not None]
    return times == sorted(times)


@examples(60)
@given(streams(emit=("arrival", "batch"), lateness=(0, 4)), st.data())
def test_a_restart_between_any_two_triggers_changes_nothing(stream: Stream, data: st.DataObject) -> None:
    (shards, _), (restarted, _) = stream.start(), stream.start()
    for number, trigger in enumerate(stream.triggers):
        if data.draw(st.booleans()):
            restarted.restart()
        same_rows(restarted.trigger(trigger), shards.trigger(trigger), f"trigger {number}")


@examples(80)
@given(streams(emit=("batch",), lateness=(0, 4)))
def test_answers_of_the_groups_that_changed(stream: Stream) -> None:
    shards, monitor = stream.start(whole=True)
    per = dict.fromkeys(name for query in stream.queries.values() for name in query.per_columns)
    for number, trigger in enumerate(stream.triggers):
        found, changes = shards.trigger(trigger), pushed(monitor, trigger, stream.order)
        changed = {(row["query"], *(row[name] for name in per)) for row in changes}
        expected = []
        for name in stream.queries:
            for row in cells(monitor.answer(name)):
                group = {column: row.get(column) for column in per}
                if (name, *group.values()) in changed:
                    expected.append({"query": name, **group, **row})
        same_rows(found, expected, f"trigger {number}")


@pytest.mark.parametrize("sizes", [Sizes(), Sizes(cell=300, slice=100, memory=5000)], ids=["as they are", "tiny"])
@pytest.mark.parametrize("shards", [1, 7])
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_five_hundred_groups(shards: int, emit: Any, sizes: Sizes) -> None:
    rng = np.random.default_rng(5)
    size = 4000
    table = pa.table(
        {
            "i": np.arange(size),
            "t": np.cumsum(rng.integers(0, 2, size)),
            "x": rng.integers(0, 9, size).astype(float),
            "g": pa.array(rng.integers(0, 500, size), mask=rng.random(size) < 0.01),
        }
    )
    queries = {
        "time": TopK(3, by="x", window=Last(span=700), per="g"),
        "count": TopK(2, by="x", window=Last(4), per="g"),
        "all": TopK(3, by="x", window=Last(span=50)),
    }
    options: dict[str, Any] = {"id": "i", "time": "t", "emit": emit}
    pipeline, monitor = Shards(queries, options, shards, sizes=sizes), Monitor(queries, **options)
    for begin in range(0, size, 800):
        trigger = [table.slice(begin, 500), table.slice(begin + 500, 300)]
        same_rows(pipeline.trigger(trigger), pushed(monitor, trigger, ("t", "i")), f"trigger at {begin}")
    for name in queries:
        same_rows(pipeline.answer(name), cells(monitor.answer(name)), name)
    if sizes.cell:
        cells_ = [len(directory) for shard in pipeline.shards_now() for directory in shard.directories.values()]
        assert sum(cells_) > 400


def test_rows_that_order_does_not_tell_apart_come_by_all_else_they_carry() -> None:
    made = [(1, 5, float(x % 3), None) for x in range(12)]
    query = {"q": TopK(2, by="x", window=Last(5))}
    outcomes = []
    for seed in range(5):
        mixed = np.random.default_rng(seed).permutation(len(made))
        shards = Shards(query, {"id": "i", "time": "t", "keep": "z"}, 1, seed=seed)
        parts = [rows(*[made[i] for i in mixed[:7]]), rows(*[made[i] for i in mixed[7:]])]
        outcomes.append(shards.trigger(parts))
    assert all(outcome == outcomes[0] for outcome in outcomes)


@pytest.mark.parametrize("late", ["accept"])
@examples(60)
@given(st.permutations(range(8)), st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=8, max_size=8), st.data())
def test_an_order_that_is_not_of_time(late: str, times: list[int], scores: list[float], data: st.DataObject) -> None:
    query = {"q": TopK(1, by="x", window=Last(span=3), per="g")}
    options: dict[str, Any] = {"id": "i", "time": "t", "late": late}
    shards, monitor = Shards(query, options, 7, order=("i",)), Monitor(query, **options)
    made = [(i, t, x, i % 2) for i, (t, x) in enumerate(zip(times, scores, strict=True))]
    where = data.draw(st.lists(st.integers(0, 1), min_size=8, max_size=8))
    trigger = [rows(*[row for row, part in zip(made, where, strict=True) if part == p]) for p in (0, 1)]
    assert net(shards.trigger(trigger)) == net(pushed(monitor, trigger, ("i",)))
    same_rows(shards.answer("q"), cells(monitor.answer("q")), "answer")


# --------------------------------------------------------------------------------- clock


@pytest.mark.parametrize("shards", [1, 7])
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_idle_groups_expire_with_the_clock_of_others(shards: int, emit: Any) -> None:
    pipeline = Shards(
        {"q": TopK(1, by="x", window=Last(span=10), per="g"), "all": TopK(1, by="x", window=Last(span=10))},
        {"id": "i", "time": "t", "emit": emit},
        shards,
    )
    entered = pipeline.trigger([rows(*[(g, g // 8, 1.0, g) for g in range(16)])])
    assert len([row for row in entered if row["query"] == "q" and row["diff"] > 0]) == 16
    # the clock is at 10 with a row of another group: who came at 0 leaves, who came at 1 stays
    left = [row for row in pipeline.trigger([rows((99, 10, 1.0, None))]) if row["query"] == "q" and row["diff"] < 0]
    assert as_text(left) == sorted(f"10 {g} -{g}" for g in range(8))
    left = [row for row in pipeline.trigger([rows((100, 30, 1.0, None))]) if row["query"] == "q" and row["diff"] < 0]
    when = 11 if emit == "arrival" else 30
    assert as_text(left) == sorted(
        [f"{when} {g} -{g}" for g in range(8, 16)] + [f"{20 if when == 11 else 30} None -99"]
    )


def test_the_clock_is_the_largest_time_of_all_chunks() -> None:
    shards = Shards(
        {"q": TopK(1, by="x", window=Last(span=10), per="g")}, {"id": "i", "time": "t"}, 7, sizes=Sizes(chunk=1)
    )
    shards.trigger([rows(*[(g, 0, 1.0, g) for g in range(16)])])
    left = shards.trigger([rows((20, 50, 1.0, 99), (21, 5, 1.0, 98))])
    assert len([row for row in left if row["diff"] < 0 and row["id"] < 20]) == 16
    assert [row["id"] for row in shards.answer("q")] == [20]


def test_a_row_that_every_query_rejects_moves_no_clock() -> None:
    queries = {"g": TopK(1, by="x", window=Last(span=10), per="g"), "y": TopK(1, by="y", window=Last(span=10))}
    shards = Shards(queries, {"id": "i", "time": "t"}, 7)
    assert len(shards.trigger([rows((1, 0, 1.0, 1))])) == 2
    assert shards.trigger([rows((2, 50, None, 1), y=None)]) == []
    # the second query takes this one, so it moves the clock of the first
    assert "10 1 -1" in as_text(shards.trigger([rows((3, 20, None, 1))]))


def test_a_shard_hears_of_the_clock_before_its_first_row() -> None:
    for clockwork in CLOCKWORKS.values():
        query = {"q": TopK(1, by="x", window=clockwork.window(10), per="g")}
        options: dict[str, Any] = {"id": "i", "time": "t", "late": "drop"}
        shards, monitor = Shards(query, options, 7), Monitor(query, **options)
        for step in ([(20, 0)], [(g, g) for g in range(1, 20)], [(21, g) for g in range(1, 20)]):
            made = [
                {"i": i, "t": clockwork.value(ticks), "x": 1.0, "y": 1, "z": "z", "g": g, "h": None}
                for i, (ticks, g) in enumerate(step)
            ]
            trigger = [table_of(made, clockwork)]
            same_rows(shards.trigger(trigger), pushed(monitor, trigger, ("t", "i")), f"{clockwork}, {step}")


@pytest.mark.parametrize("type_", [pa.timestamp("us", "UTC"), pa.timestamp("us")])
def test_a_time_that_python_cannot_hold(type_: Any) -> None:
    """Seconds read as milliseconds are in the year 50,000, which Spark takes, and datetime does not."""
    query = {"q": TopK(1, by="x", window=Last("1 hour"))}
    far = pa.array([0, 1_700_000_000_000 * 10**6], pa.int64()).cast(type_)
    table = pa.table({"i": [1, 2], "t": far, "x": [2.0, 1.0]})
    options: dict[str, Any] = {"id": "i", "time": "t"}
    shards = Shards(query, options, 1)
    monitor = Monitor(query, **options)
    assert monitor.push(table).num_rows == 3
    assert [told.num_rows for told in shards.tables([table])] == [3]
    (kept,) = shards.monitors()
    assert kept.answer().column("id").to_pylist() == [2]


# -------------------------------------------------------------------------------- shards


def test_equal_groups_go_to_one_shard() -> None:
    floats = pa.array([0.0, -0.0, float("nan"), np.frombuffer(b"\x01\0\0\0\0\0\xf8\x7f")[0], None, None])
    where = shards_of([floats], 1000).tolist()
    assert where[0] == where[1] and where[2] == where[3] and where[4] == where[5]
    words = ["a", "b", None, "a", None, "b"]
    coded = [None if word is None else word.encode() for word in words]
    for column in (pa.array(words), pa.array(coded), pa.array(words, pa.large_string())):
        where = shards_of([column], 1000).tolist()
        assert where[0] == where[3] and where[1] == where[5] and where[2] == where[4]
        assert shards_of([column.slice(3)], 1000).tolist() == where[3:]
    assert shards_of([pa.nulls(2, pa.string())], 9).tolist() == shards_of([pa.array([None, "x"])], 9).tolist()[:1] * 2


@pytest.mark.parametrize(
    "column",
    [
        pa.array(range(700)),
        pa.array(range(0, 7_000_000, 10_000)),
        pa.array([f"key {i}" for i in range(700)]),
        pa.array([datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=i) for i in range(700)]),
        pa.array([i / 8 for i in range(700)]),
    ],
    ids=lambda column: str(column.type),
)
def test_groups_spread_over_shards(column: Any) -> None:
    held = np.bincount(shards_of([column], 7), minlength=7)
    assert held.min() > 50
    assert held.max() < 170


def test_shards_are_the_same_on_every_machine() -> None:
    """Part of every checkpoint: these numbers may never change."""
    assert shards_of([pa.array([0, 1, 2, None])], 1000).tolist() == [0, 190, 397, 760]
    assert shards_of([pa.array([0, 1, 2, None]), pa.array(["a", "b", None, ""])], 1000).tolist() == [
        354,
        951,
        663,
        51,
    ]
