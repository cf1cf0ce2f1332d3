"""Rows that change no answer, which have a loop of their own (kernels/quiet.py): streams of hundreds of rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.oracle import Oracle

ROWS, PUSH = 240, 40
FAR = np.array([1e15, 0.1, -1e15, 0.2, 3.0, -0.1])


def stream(seed: int, far: bool) -> dict[str, Any]:
    """Rows in order but for one in sixteen; most instants have several."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(0, 2, ROWS)) + 20
    late = rng.integers(0, 16, ROWS) == 0 if seed % 2 else np.zeros(ROWS, np.bool_)
    numbers = rng.choice(FAR, ROWS) if far else rng.integers(-3, 9, ROWS).astype(float)
    return {
        "t": times - late * rng.integers(0, 12, ROWS),
        "o": rng.choice(7, ROWS, p=np.array([8, 6, 5, 4, 3, 2, 1]) / 29),
        "x": numbers,
        "g": rng.integers(0, 2, ROWS),
    }


def counted(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("by", ["count(*)", "sum(x)", "max(x)", "min(x)"])
@pytest.mark.parametrize("seed", range(6))
def test_changes_are_those_of_the_oracle(by: str, seed: int) -> None:
    data = stream(seed, far=seed in (1, 4))
    where, per, largest = (
        ("x > 0" if seed % 3 == 2 else None),
        ("g" if seed > 3 else None),
        (False if seed == 3 else None),
    )
    query = sb.TopKGroups(2, by=by, window=sb.Last(span=30), of="o", where=where, per=per, largest=largest)
    m, oracle = sb.Monitor(query, time="t", keep="x"), Oracle(query, time="t", keep="x")
    for begin in range(0, ROWS, PUSH):
        table = pa.table({name: column[begin : begin + PUSH] for name, column in data.items()})
        changes, expected = m.push(table).to_pylist(), oracle.push(table.to_pylist())
        assert counted(changes) == counted(expected)
        m._loop.check()
        if begin == 2 * PUSH:
            m = sb.Monitor.restore(m.snapshot())
    assert m.answer().to_pylist() == oracle.answer()


def test_an_object_leaves_with_its_score_from_before_a_step_that_began_quietly() -> None:
    m = sb.Monitor(sb.TopKGroups(1, by="sum(x)", window=sb.Last(span=10), of="o"), time="t")
    m.push({"t": [0, 0, 1, 2], "o": ["a", "a", "a", "b"], "x": [-1, 5, 1, 2]})
    changes = m.advance(10).to_pylist()  # -1 goes, and a has 6; then 5 goes
    assert [(c["id"], c["score"], c["diff"]) for c in changes] == [("a", 5.0, -1), ("b", 2.0, 1)]
