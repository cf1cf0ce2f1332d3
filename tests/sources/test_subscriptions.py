"""Questions over the answers of all subscriptions of a query, against the oracle."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.comparison import cells, same_rows
from engines.scene import CLOCKWORKS
from engines.strategies import Draw
from orders.scenes import VALUES, rows_of
from skyband import Above, Each, Last, Monitor, TopK, TopKGroups, UntilDeleted
from skyband.oracle import Oracle
from sources.scenes import over_answers


@st.composite
def questions(draw: Draw) -> dict[str, Any]:
    """A query with Each, and three over its answers, two deep."""
    window = draw(st.sampled_from([Last(4), Last(span=3), Last(Each("size"))]))
    per = draw(st.sampled_from([None, "g"]))
    source: Any = TopK(Each("k"), by=draw(st.sampled_from(["y", "y * :w"])), window=window, per=per)
    if draw(st.booleans()):
        source = Above(Each("w"), by="y", window=window, per=per)
    who = draw(
        st.sampled_from(
            [
                TopKGroups(2, by="count(*)", of="subscriber", source="a"),
                TopK(2, by=("score", "s"), nulls="last", per={"who": "subscriber"}, source="a"),
            ]
        )
    )
    queries = {"a": source, "b": over_answers(draw, "a", source), "d": who}
    return queries | {"c": over_answers(draw, "b", queries["b"])}


def subscribers(draw: Draw) -> list[dict[str, Any]]:
    ids = draw(st.lists(st.sampled_from(["u", "v", "w"]), unique=True, min_size=1))
    return [
        {
            "subscriber": one,
            "k": draw(st.integers(1, 3)),
            "w": draw(st.sampled_from([-1.0, 0.5, 1.0])),
            "size": draw(st.integers(1, 5)),
        }
        for one in ids
    ]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_over_subscriptions_as_the_oracle(data: Any) -> None:
    queries = data.draw(questions())
    emit = data.draw(st.sampled_from(["arrival", "arrival", "batch"]))
    options: dict[str, Any] = {"id": "i", "time": "t", "keep": ("s", "m", "y"), "emit": emit}
    monitor, oracle, clock = Monitor(queries, **options), Oracle(queries, **options, keyed=("s", "d", "b", "w")), 0
    types = {name: type_ for name, (type_, _) in VALUES.items()}
    types |= {"t": pa.int64(), "i": pa.string(), "y": pa.int64(), "g": pa.int64(), "l": pa.int64()}
    for number in range(data.draw(st.integers(2, 7))):
        event = data.draw(st.sampled_from(["push", "push", "subscribe", "unsubscribe", "restore", "advance"]))
        told, expected = None, list[Any]()
        if event == "push":
            rows, clock = rows_of(data.draw, data.draw(st.integers(0, 8)), clock, 0, CLOCKWORKS["int64"])
            table = pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()})
            told, expected = monitor.push(table), oracle.push(rows)
        elif event == "subscribe" or not number:
            asked = subscribers(data.draw)
            told, expected = monitor.subscribe("a", asked), oracle.subscribe("a", asked)
        elif event == "unsubscribe":
            gone = data.draw(st.lists(st.sampled_from(["u", "v", "w"]), unique=True))
            told, expected = monitor.unsubscribe("a", gone), oracle.unsubscribe("a", gone)
        elif event == "restore":
            monitor = Monitor.restore(monitor.snapshot(), trusted=False)
        elif oracle.clock is not None:
            clock += 2
            told, expected = monitor.advance(oracle.clock + 2), oracle.advance(oracle.clock + 2)
        if told is not None:
            same_rows(cells(told), expected, f"event {number}, {event}")
        for name in queries:
            same_rows(cells(monitor.answer(name)), oracle.answer(name), f"event {number}, {event}, answer of {name}")


@pytest.mark.parametrize(
    ("source", "key"),
    [
        (TopK(Each("k"), by="x", window=Last(2), ties="oldest"), "score"),
        (TopK(Each("k"), by=("y", "x"), window=Last(2)), "key_2"),
        (TopKGroups(Each("k"), by=("count(*)", "id"), select={"high": "max(y)"}, window=Last(2)), "high"),
    ],
)
def test_over_an_order_that_nobody_has_subscribed_to_yet(source: Any, key: str) -> None:
    monitor = Monitor({"source": source, "asker": TopK(1, by=key, window=UntilDeleted(), source="source")}, id="id")
    rows = {"id": [1, 2], "x": [1.0, 2.0], "y": [1.0, 2.0]}
    assert monitor.push(rows).num_rows == 0
    monitor.subscribe("source", [{"subscriber": "ann", "k": 1}])
    monitor.push(rows)
    assert monitor.answer("asker")["id"].to_pylist() == [2]
