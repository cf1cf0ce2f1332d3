"""Decay against the oracle's 60 digits: scores to 1e-9 of the contributions, order where it is not closer than that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import examples
from skyband.errors import QueryError
from skyband.oracle import Oracle

Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def streams(draw: Draw) -> tuple[Any, list[list[dict[str, Any]]]]:
    """A query, and pushes whose contributions are powers of 2: what is close is equal, and equal scores are apart."""
    half_life = draw(st.sampled_from([1, 2, 3, 0.75, 1000]))
    by = draw(st.sampled_from(["sum(x)", "count(*)", "2*sum(x) + count(*)", "sum(x) - 3*count(*)"]))
    largest = draw(st.sampled_from([None, False]))
    query = sb.TopKGroups(draw(st.integers(1, 3)), by=by, window=sb.Ever(), decay=half_life, largest=largest, of="o")
    step = st.sampled_from([0, 1, 1, 2, 7, draw(st.sampled_from([50, 5000]))])
    row = st.tuples(step, st.integers(0, 3), st.sampled_from("uvw"), st.floats(0.1, 9.0))
    clock, rows = 0, []
    for number, (gap, late, o, x) in enumerate(draw(st.lists(row, min_size=1, max_size=25))):
        clock += gap
        rows.append({"t": max(0, clock - late), "o": o, "x": x + number / 7})
    cut = draw(st.integers(1, len(rows)))
    return query, [rows[begin : begin + cut] for begin in range(0, len(rows), cut)]


def close(got: list[dict[str, Any]], expected: list[dict[str, Any]], where: str) -> None:
    """The same rows, but for the last digits of scores."""
    assert [dict(row, score=None) for row in got] == [dict(row, score=None) for row in expected], where
    for one, other in zip(got, expected, strict=True):
        assert one["score"] == pytest.approx(other["score"], rel=1e-9, abs=1e-300), where


@examples(80)
@given(streams(), st.booleans())
def test_scores_fade_as_the_oracle_says(stream: Any, restores: bool) -> None:
    query, pushes = stream
    monitor, oracle = sb.Monitor(query, time="t"), Oracle(query, time="t")
    for place, rows in enumerate(pushes):
        close(monitor.push(rows).to_pylist(), oracle.push(rows), f"push {place}")
        to = oracle.clock + place
        close(monitor.advance(to).to_pylist(), oracle.advance(to), f"advance {place}")
        if restores:
            monitor = sb.Monitor.restore(monitor.snapshot(), trusted=False)
        close(monitor.answer().to_pylist(), oracle.answer(), f"answer {place}")
        monitor._loop.check()


def test_the_order_stays_for_ever_while_nothing_arrives() -> None:
    """Two objects whose scores both fade to nothing: the better one stays above, a million half-lives later."""
    query = sb.TopKGroups(2, by="sum(x)", window=sb.Ever(), decay=1, of="o")
    monitor = sb.Monitor(query, time="t")
    monitor.push([{"t": 0, "o": "low", "x": 1.0}, {"t": 0, "o": "high", "x": 1.5}])
    monitor.push([{"t": 0, "o": "low", "x": 0.25}])
    monitor.advance(10**6)
    assert monitor.answer().to_pydict()["id"] == ["high", "low"]
    assert monitor.answer().to_pydict()["score"] == [0.0, 0.0]
    monitor.push([{"t": 10**6, "o": "new", "x": 1e-300}])
    assert monitor.answer().to_pydict()["id"] == ["new", "high"]


def test_a_sum_of_many_is_compensated() -> None:
    """20,000 contributions that plain addition would round to nothing."""
    query = sb.TopKGroups(1, by="sum(x)", window=sb.Ever(), decay="1 week", of="o")
    monitor = sb.Monitor(query, time="t")
    size = 20_000
    times = pa.array([0] * (size + 1), pa.timestamp("s"))
    monitor.push(pa.table({"t": times, "o": ["a"] * (size + 1), "x": [1.0] + [2.0**-54] * size}))
    (score,) = monitor.answer().to_pydict()["score"]
    assert score == 1.0 + size * 2.0**-54


@pytest.mark.parametrize("cut", [1, 2])
def test_a_group_that_is_forgotten_leaves_with_its_score_of_that_moment(cut: int) -> None:
    """It is due at 5, one half-life after its only row; the row that shows it comes at 9."""
    query = sb.TopKGroups(1, by="sum(x)", window=sb.Ever(), decay=5, of="o", per="g")
    monitor = sb.Monitor(query, time="t", forget=5)
    rows = [{"t": 0, "o": "a", "x": 8.0, "g": 1}, {"t": 9, "o": "b", "x": 1.0, "g": 2}]
    changes = [row for begin in range(0, 2, cut) for row in monitor.push(rows[begin : begin + cut]).to_pylist()]
    assert [(row["time"], row["score"]) for row in changes if row["diff"] < 0] == [(5, 4.0)]


@pytest.mark.parametrize("decay", [10, "1 hour"])
def test_decay_without_a_time_column_is_refused_before_any_row(decay: Any) -> None:
    query = sb.TopKGroups(1, by="sum(x)", window=sb.Ever(), decay=decay)
    with pytest.raises(QueryError, match="name the time column"):
        sb.Monitor(query, id="id")
    with pytest.raises(QueryError, match="name the time column"):
        sb.Monitor([], id="id").add("q", query)
