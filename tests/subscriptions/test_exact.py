"""Subscriptions are plain queries: held against the oracle, and against a Monitor of plain queries."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.comparison import cells, same_rows
from engines.streams import examples
from skyband import TopK
from skyband.oracle import Oracle
from subscriptions.scenes import ASKED, Asked, Event, Push, Restore, Row, Subscribe, Unsubscribe, scenes

TYPES = {"i": pa.string(), "x": pa.float64(), "y": pa.float64(), "g": pa.string(), "city": pa.string(), "t": pa.int64()}
TYPES["p"] = pa.float64()
TYPES["e"] = pa.list_(pa.float64())
COUNTERS = {  # they take every row, so that numbers are the same in Monitors of plain queries
    "first": TopK(1, by="0", window=sb.Last(3)),
    "second": TopK(1, by="0", window=sb.Last(3), per="g"),
}


def table(rows: list[Row]) -> Any:
    return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in TYPES.items()})


def options(asked: Asked, emit: str) -> dict[str, Any]:
    return {"id": "i", "emit": emit, "keep": ["y"], **asked.options}


def same_steps(got: list[Row], expected: list[Row], where: str) -> None:
    """Equal as multisets, by query and then by subscriber; of each subscriber and group, step by step."""
    same_rows(got, expected, where)
    assert [row["query"] for row in got] == [row["query"] for row in expected], where
    runs = [one for one, _ in groupby(who(row)[:2] for row in got)]
    assert len(runs) == len(set(runs)), f"{where}: the changes of a subscriber come together"
    steps: list[dict[Any, list[Any]]] = [{}, {}]
    for found, rows in zip(steps, (got, expected), strict=True):
        for row in rows:
            found.setdefault(who(row), []).append((row["at"], row.get("time"), row["diff"]))
    assert steps[0] == steps[1], where


def who(row: Row) -> tuple[Any, ...]:
    return row["query"], row["subscriber"], row.get("g")


def play_against_oracle(asked: Asked, events: list[Event], emit: str, **more: Any) -> None:
    """Every change, every answer, after every event."""
    monitor = sb.Monitor(COUNTERS | {"each": asked.query}, **options(asked, emit), **more)
    oracle = Oracle(COUNTERS | {"each": asked.query}, **options(asked, emit), **more)
    for place, event in enumerate(events):
        where = f"event {place}: {event}"
        match event:
            case Push(rows):
                got, expected = cells(monitor.push(table(rows))), oracle.push(rows)
                same_steps(got, expected, where)
            case Subscribe(rows):
                assert monitor.subscribe("each", rows).num_rows == 0
                oracle.subscribe("each", rows)
            case Unsubscribe(ids):
                monitor.unsubscribe("each", ids)
                oracle.unsubscribe("each", ids)
            case Restore(trusted):
                monitor = sb.Monitor.restore(monitor.snapshot(), trusted=trusted)
        monitor._loop.check()
        same_rows(cells(monitor.answer("each")), oracle.answer("each"), where)
        for who in "ab":
            same_rows(cells(monitor.answer("each", subscriber=who)), oracle.answer("each", subscriber=who), where)
    stats = monitor.stats()
    assert stats["arrivals"] == oracle.arrivals and stats["late"] == oracle.late
    assert stats["rejected"].get("unknown subscriber", 0) == oracle.rejected["unknown subscriber"]


def play_against_plain(asked: Asked, events: list[Event], emit: str) -> None:
    """The same changes as of a Monitor to which each subscription is added as a plain query, when it subscribes."""
    monitor = sb.Monitor(COUNTERS | {"each": asked.query}, **options(asked, emit))
    others = sb.Monitor(COUNTERS, **options(asked, emit))
    for place, event in enumerate(events):
        where = f"event {place}: {event}"
        match event:
            case Push(rows):
                got, expected = cells(monitor.push(table(rows))), cells(others.push(table(rows)))
                named = [
                    {"query": row["query"] if row["query"] in COUNTERS else "each"}
                    | {"subscriber": None if row["query"] in COUNTERS else row["query"]}
                    | {name: row[name] for name in list(row)[1:]}
                    for row in expected
                ]
                wanted = list(got[0]) if got else []
                same_rows(got, [{name: row.get(name) for name in wanted} for row in named] if got else named, where)
            case Subscribe(rows):
                monitor.subscribe("each", rows)
                for row in rows:
                    if row["subscriber"] in others.queries:
                        others.drop(row["subscriber"])
                for row in rows:
                    others.add(row["subscriber"], asked.plain(row))
            case Unsubscribe(ids):
                monitor.unsubscribe("each", ids)
                for who in ids:
                    if who in others.queries:
                        others.drop(who)
            case Restore(trusted):
                monitor = sb.Monitor.restore(monitor.snapshot(), trusted=trusted)


@pytest.mark.parametrize("name", ASKED)
def test_oracle(name: str) -> None:
    @examples(15)
    @given(scene=scenes([name], wild=name not in ("pairs",)), emit=st.sampled_from(["arrival", "batch"]))
    def check(scene: tuple[str, list[Event]], emit: str) -> None:
        play_against_oracle(ASKED[name], scene[1], emit)

    check()


@pytest.mark.parametrize("name", ASKED)
def test_plain_queries(name: str) -> None:
    @examples(6)
    @given(scene=scenes([name], wild=True))
    def check(scene: tuple[str, list[Event]]) -> None:
        play_against_plain(ASKED[name], scene[1], "arrival")

    check()
