"""The bound of the largest (engines/groups/bound.py): streams of many objects, of which few can be answers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.oracle import Oracle

ROWS, PUSH, SPAN = 240, 30, 40
OBJECTS = 24


def stream(seed: int) -> dict[str, Any]:
    """Rows of equal times now and then, some late; few scores, scores that fall for long, or infinite ones."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(0, 2, ROWS)) + 50
    late = rng.integers(0, 16, ROWS) == 0 if seed % 2 else np.zeros(ROWS, np.bool_)
    numbers = rng.integers(0, 12, ROWS).astype(float)
    if seed % 3 == 1:
        numbers += 12 * (ROWS - np.arange(ROWS)) // 60
    if seed % 3 == 2:
        numbers = np.where(rng.integers(0, 20, ROWS) == 0, rng.choice([-np.inf, np.inf], ROWS), numbers)
    return {
        "t": times - late * rng.integers(0, 30, ROWS),
        "o": rng.integers(0, OBJECTS, ROWS),
        "x": numbers,
        "g": np.where(np.arange(ROWS) < 5 * PUSH, 0, rng.integers(0, 2, ROWS)),
    }


def counted(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def bound_of(m: sb.Monitor) -> float:
    """Where the bound of the only query is."""
    (adapter,) = m._loop.state.standing()
    bound: float = adapter.engine.longest.store.bound[0]  # type: ignore[union-attr]
    return bound


def pushes(data: dict[str, Any]) -> list[Any]:
    return [pa.table({name: column[i : i + PUSH] for name, column in data.items()}) for i in range(0, ROWS, PUSH)]


@pytest.mark.parametrize(("by", "sign"), [("max(x)", 1), ("min(x)", -1)])
@pytest.mark.parametrize("seed", range(12))
def test_changes_are_those_of_the_oracle(by: str, sign: int, seed: int) -> None:
    data = stream(seed)
    data["x"] = sign * data["x"]
    where, per = ("o <> 3" if seed % 4 == 2 else None), ("g" if seed % 4 == 3 else None)
    query = sb.TopKGroups(2, by=by, window=sb.Last(span=SPAN), of="o", where=where, per=per, largest=sign > 0)
    m, oracle = sb.Monitor(query, time="t", keep="x"), Oracle(query, time="t", keep="x")
    bounds = []
    for n, table in enumerate(pushes(data)):
        changes, expected = m.push(table).to_pylist(), oracle.push(table.to_pylist())
        assert counted(changes) == counted(expected)
        m._loop.check()
        bounds.append(bound_of(m))
        if n % 3 == 2:
            m = sb.Monitor.restore(m.snapshot())
        assert m.answer().to_pylist() == oracle.answer()
    assert max(bounds) > -np.inf, "there was a bound"
    if per:
        assert bounds[-1] == -np.inf, "groups have none"
    changes, expected = m.advance(int(data["t"].max()) + SPAN).to_pylist(), oracle.advance(int(data["t"].max()) + SPAN)
    assert counted(changes) == counted(expected)


@pytest.mark.parametrize("seed", range(4))
def test_what_reads_all_objects_finds_them(seed: int) -> None:
    """Smaller ks and windows, numbers of objects, another query beside this one, and its end."""
    query = sb.TopKGroups(3, by="max(x)", window=sb.Last(span=SPAN), of="o")
    m, oracle = sb.Monitor({"a": query}, time="t", keep="x"), Oracle({"a": query}, time="t", keep="x")
    bounds, data = [], stream(seed)
    for n, table in enumerate(pushes(data)):
        assert counted(m.push(table).to_pylist()) == counted(oracle.push(table.to_pylist()))
        bounds.append(bound_of(m))
        assert m.answer("a", k=2).to_pylist() == oracle.answer("a", k=2)
        assert m.answer("a", window=sb.Last(span=9)).to_pylist() == oracle.answer("a", window=sb.Last(span=9))
        seen, clock = slice(0, (n + 1) * PUSH), m._loop.state.clock
        valid = data["o"][seen][data["t"][seen] > clock - SPAN]
        assert m.stats()["queries"]["a"]["objects"] == len(set(valid.tolist()))
        if n == 4:
            other = sb.TopKGroups(2, by="max(x)", window=sb.Last(span=SPAN), of="o")
            entered = m.add("b", other, from_window=True)
            assert entered is not None
            assert counted(entered.to_pylist()) == counted(oracle.add("b", other, donor="a"))
        if n == 6:
            m.drop("b")
            oracle.drop("b")
        m._loop.check()
    assert max(bounds[:5]) > -np.inf, "there was a bound before"
    assert bounds[5] == bounds[6] == -np.inf, "two queries have none"


def test_columns_of_rows_below_the_bound_are_kept_until_a_newer_row_is_as_large() -> None:
    m = sb.Monitor(sb.TopKGroups(1, by="max(x)", window=sb.Last(span=10), of="o"), time="t", keep="y")
    m.push({"t": [0] * 6, "o": list("abcdef"), "x": [9, 8, 7, 6, 5, 4], "y": list("ABCDEF")})
    m.push({"t": [1, 2, 3], "o": list("aaa"), "x": [3, 2, 2], "y": ["A3", "A1", "A2"]})
    assert bound_of(m) > 3
    serials, _ = m._loop.state.standing()[0].machine.serials()  # type: ignore[attr-defined]
    assert serials.tolist() == [0, 1, 2, 3, 4, 5, 6, 8], "but not of one that is as large as a newer one"
    assert m.advance(10).num_rows == 0, "it stays the best"
    assert [(row["id"], row["score"], row["y"]) for row in m.answer().to_pylist()] == [("a", 3.0, "A3")]


def test_an_object_that_was_gone_below_the_bound_enters_for_the_first_time_again() -> None:
    m = sb.Monitor(sb.TopKGroups(1, by="max(x)", window=sb.Last(span=10), of="o"), time="t")
    m.push({"t": [0] * 6, "o": list("abcdef"), "x": [4, 9, 8, 7, 6, 5]})  # a is the first to enter
    assert bound_of(m) > 4
    m.push({"t": [5] * 6, "o": list("bcdefg"), "x": [9, 8, 7, 6, 5, 5]})
    m.push({"t": [12, 13], "o": ["h", "a"], "x": [1, 1]})  # a has been gone since 10
    changes = m.push({"t": [14], "o": ["a"], "x": [10]}).to_pylist()
    assert [(c["id"], c["diff"], c["first"]) for c in changes] == [("b", -1, False), ("a", 1, True)]
