# ruff: noqa: S608
"""WITH, and bounds of row numbers that stand before them: the same queries as in the forms that they stand for."""

from __future__ import annotations

import pytest

import skyband as sb
from skyband.errors import QueryError

_NUMBERED = "SELECT *, row_number() OVER (PARTITION BY g ORDER BY x DESC) AS n FROM s"


@pytest.mark.parametrize(
    ("turned", "k", "offset"),
    [("3 >= n", 3, 0), ("3 > n", 2, 0), ("1 = n", 1, 0), ("2 = n", 1, 1)],
)
def test_a_bound_may_stand_before_the_row_number(turned: str, k: int, offset: int) -> None:
    expected = sb.TopK(k, "x", sb.Ever(), per="g", offset=offset)
    assert sb.sql(f"SELECT * FROM ({_NUMBERED}) WHERE {turned}") == expected
    number = "row_number() OVER (PARTITION BY g ORDER BY x DESC)"
    assert sb.sql(f"SELECT * FROM s QUALIFY {turned.replace('n', number)}") == expected


@pytest.mark.parametrize(("turned", "offset"), [("3 < n", 3), ("3 <= n", 2)])
def test_a_bound_from_below(turned: str, offset: int) -> None:
    plain = f"SELECT * FROM s ORDER BY x DESC PER g OFFSET {offset} WINDOW EVER USING SORTED"
    assert sb.sql(f"SELECT * FROM ({_NUMBERED}) WHERE {turned} USING SORTED") == sb.sql(plain)


@pytest.mark.parametrize(
    ("named", "nested"),
    [
        (f"WITH r AS ({_NUMBERED}) SELECT * FROM r WHERE n <= 2", f"SELECT * FROM ({_NUMBERED}) AS r WHERE n <= 2"),
        (
            "WITH top AS (SELECT * FROM s ORDER BY x DESC LIMIT 9 WINDOW EVER) SELECT * FROM top ORDER BY y LIMIT 2",
            "SELECT * FROM (SELECT * FROM s ORDER BY x DESC LIMIT 9 WINDOW EVER) AS top ORDER BY y LIMIT 2",
        ),
        (
            "WITH a1 AS (SELECT * FROM s ORDER BY x LIMIT 9 WINDOW EVER), b1 AS (SELECT * FROM a1 ORDER BY y LIMIT 4) "
            "SELECT t.id, t.z FROM b1 AS t ORDER BY t.z LIMIT 2",
            "SELECT t.id, t.z FROM (SELECT * FROM (SELECT * FROM s ORDER BY x LIMIT 9 WINDOW EVER) AS a1 ORDER BY y "
            "LIMIT 4) AS t ORDER BY t.z LIMIT 2",
        ),
    ],
)
def test_with_is_a_subquery_that_is_named_first(named: str, nested: str) -> None:
    assert sb.sql(named) == sb.sql(nested)


def test_with_answers_as_the_subquery_does() -> None:
    rows = {"id": [1, 2, 3, 4], "x": [1.0, 4.0, 3.0, 2.0], "y": [5.0, 8.0, 7.0, 6.0]}
    asked = sb.sql("WITH t AS (SELECT * FROM s ORDER BY x DESC LIMIT 3 WINDOW EVER) SELECT * FROM t ORDER BY y LIMIT 2")
    monitor = sb.Monitor(asked, id="id", keep=["y"])
    monitor.push(rows)
    assert monitor.answer("q0").column("id").to_pylist() == [4, 3]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("WITH t AS (SELECT * FROM s ORDER BY x LIMIT 3 WINDOW EVER) SELECT * FROM s ORDER BY x LIMIT 1", "never used"),
        ("WITH t AS (SELECT * FROM s), t AS (SELECT * FROM s) SELECT * FROM t", "twice"),
        ("WITH t AS (SELECT * FROM s SELECT * FROM t", "not closed"),
        ("WITH t AS (SELECT * FROM s) FROM t", "a question is expected"),
        (f"SELECT * FROM ({_NUMBERED}) WHERE 3 <> n", "a bound of row numbers"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        sb.sql(text)
