"""`answer(key=)`, `answer(keys=)` and `answers()`: which groups, and which queries."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband.errors import QueryError

GROUPS: dict[str, list[Any]] = {
    "text": ["a", "b", None, "c"],
    "numbers": [1, 2, None, 3],
    "floats": [0.0, float("nan"), None, 2.5],
    "dates": [date(2024, 1, 1), date(2024, 1, 2), None, date(1969, 12, 31)],
    "flags": [True, False, None, True],
    "lists": [[1, 2], [1], None, [2, 1]],
}


def monitor(values: Any) -> sb.Monitor:
    made = sb.Monitor({"best": sb.TopK(1, "x", sb.Last(9), per="g"), "all": sb.TopK(2, "x", sb.Last(9))})
    made.push({"g": values, "x": [1.0, 2.0, 3.0, 4.0]})
    return made


@pytest.mark.parametrize("kind", GROUPS)
def test_one_group_and_several(kind: str) -> None:
    values = GROUPS[kind]
    m = monitor(values)
    every = {repr(row["g"]): row for row in m.answer("best").to_pylist()}
    for value in (value for value in values if value is not None):
        assert [repr(row["g"]) for row in m.answer("best", key=value).to_pylist()] == [repr(value)]
    found = m.answer("best", keys=[values[2], values[0], values[0]]).to_pylist()
    assert sorted(map(repr, found)) == sorted(repr(every[repr(one)]) for one in (values[0], None))
    assert m.answer("best", keys=values).num_rows == len({repr(value) for value in values})
    assert m.answer("best", keys=[]).num_rows == 0


def test_negative_zero_is_zero() -> None:
    m = monitor([-0.0, 1.0, 2.0, 3.0])
    assert m.answer("best", key=0.0).num_rows == m.answer("best", key=-0.0).num_rows == 1


def test_several_columns() -> None:
    m = sb.Monitor(sb.TopK(1, "x", sb.Last(9), per=("g", "h")))
    m.push({"g": ["a", "a", "b"], "h": [1, 2, 1], "x": [1.0, 2.0, 3.0]})
    found = m.answer(keys=[("a", 2), ("b", 1), ("b", 2)])
    assert [(row["g"], row["h"]) for row in found.to_pylist()] == [("a", 2), ("b", 1)]
    assert m.answer(key=("b", 2)).num_rows == 0


def test_a_list_is_no_key_and_a_key_is_no_list() -> None:
    m = monitor(["a", "b", "c", "d"])
    for bad in (["a"], {"g": "a"}, {"a"}):
        with pytest.raises(QueryError, match=r"is no string.*keys="):
            m.answer("best", key=bad)
    assert m.answer("best", key=7).num_rows == 0
    with pytest.raises(QueryError, match="list of them"):
        m.answer("best", keys="a")
    with pytest.raises(QueryError, match="one key, or a list"):
        m.answer("best", key="a", keys=["b"])
    with pytest.raises(QueryError, match="1 `per` columns"):
        m.answer("best", keys=[("a", "b")])
    assert m.answer("best", key="never seen").num_rows == 0


def test_all_queries_at_once() -> None:
    m = monitor(["a", "b", "c", "d"])
    found = m.answers()
    assert list(found) == ["best", "all"]
    assert all(table.equals(m.answer(name)) for name, table in found.items())
    assert found["best"].schema.field("g").type == pa.string()
