"""The Spark pipeline without a JVM over windows without end: the same as a Monitor, and what mappers leave out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import cells, examples, net, same_rows
from skyband import Ever, Last, Monitor, TopK
from spark.shard_streams import Stream, streams
from spark.shards import Shards, pushed, rows
from spark.test_shards import is_in_order


def endless(stream: Stream) -> Stream:
    """The same stream over windows without end."""
    queries: dict[str, Any] = {
        name: dataclasses.replace(query, window=Ever(), algorithm="auto")  # type: ignore[type-var]
        for name, query in stream.queries.items()
    }
    return dataclasses.replace(stream, queries=queries)


@pytest.mark.parametrize("above", [False, True])
@examples(40)
@given(data=st.data())
def test_streams(above: bool, data: st.DataObject) -> None:
    stream = endless(data.draw(streams(emit=("arrival", "batch"), lateness=(0, 0, 1, 4), above=above)))
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


@pytest.mark.parametrize("late", ["accept", "drop"])
def test_mappers_send_what_can_get_in(late: str) -> None:
    """Of a partition only rows with fewer than k better ones before them, and k objects are kept of each group."""
    rng, size, k = np.random.default_rng(3), 2_000, 3
    table = pa.table(
        {"i": np.arange(size), "t": np.arange(size), "x": rng.integers(0, 40, size) / 8, "g": rng.integers(0, 2, size)}
    )
    queries = {"q": TopK(k, by="x", window=Ever(), per="g")}
    options: dict[str, Any] = {"id": "i", "time": "t", "late": late}
    shards, monitor = Shards(queries, options, 2), Monitor(queries, **options)
    same_rows(shards.trigger([table]), pushed(monitor, [table], ("t", "i")), "all")
    assert shards.sent < 10 * 2 * k * (1 + np.log(size / k))
    assert sum(one.totals()["objects"] for one in shards.shards_now()) == 2 * k


def test_mappers_send_the_first_k_rows_though_each_is_worse() -> None:
    queries, options = {"q": TopK(3, by="x", window=Ever())}, dict[str, Any](id="i", time="t")
    shards, monitor = Shards(queries, options, 1), Monitor(queries, **options)
    table = rows(*((i, i, 9.0 - i, 1) for i in range(5)))
    same_rows(shards.trigger([table]), pushed(monitor, [table], ("t", "i")), "all")
    assert [row["id"] for row in shards.answer("q")] == [0, 1, 2]


def test_a_row_that_is_dropped_as_late_outranks_nothing() -> None:
    """Row 2 is better and earlier than row 3, but too late for late="drop"."""
    queries = {"q": TopK(1, by="x", window=Ever())}
    options: dict[str, Any] = {"id": "i", "time": "t", "late": "drop"}
    shards, monitor = Shards(queries, options, 1), Monitor(queries, **options)
    for trigger in (rows((1, 100, 1.0, 1)), rows((2, 90, 9.0, 1), (3, 101, 5.0, 1))):
        same_rows(shards.trigger([trigger]), pushed(monitor, [trigger], ("t", "i")), "trigger")
    assert [row["id"] for row in shards.answer("q")] == [3]


def test_silent_groups_are_forgotten() -> None:
    """A row that can never be an answer ends the silence too, so no row is left out then."""
    queries = {"ever": TopK(1, by="x", window=Ever(), per="g"), "time": TopK(1, by="x", window=Last(span=99), per="g")}
    options: dict[str, Any] = {"id": "i", "time": "t"}
    shards, monitor = Shards(queries, options, 2, forget=10), Monitor(queries, **options, forget=10)
    stream = [
        ((1, 0, 9.0, 1),),
        ((2, 8, 1.0, 1), (3, 9, 2.0, 2)),
        ((4, 17, 1.0, 2),),
        ((5, 18, 1.0, 1), (6, 19, 3.0, 2)),
    ]
    for number, trigger in enumerate(stream):
        table = rows(*trigger)
        same_rows(shards.trigger([table]), pushed(monitor, [table], ("t", "i")), f"trigger {number}")
    assert {(row["g"], row["id"]) for row in shards.answer("ever")} == {(1, 5), (2, 6)}
