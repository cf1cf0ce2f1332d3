# ruff: noqa: E501, S608
"""Subqueries that rank nothing, and row numbers by name: the same queries as in the forms that they stand for."""

from __future__ import annotations

import random
import re
from contextlib import suppress

import pytest

import skyband as sb
from skyband.errors import QueryError, SkybandError
from skyband.query.sql.subqueries import merged

GROUPS = "SELECT g, h, sum(x) AS total FROM s WHERE y > 0 GROUP BY g, h"
NUMBER = "row_number() OVER (PARTITION BY g ORDER BY total DESC)"
BEST = "SELECT g, h, sum(x) AS total FROM s WHERE y > 0 GROUP BY g, h ORDER BY total DESC"
PAIRS = [
    (
        "SELECT * FROM (SELECT * FROM s WHERE y > 5) ORDER BY x LIMIT 3",
        "SELECT * FROM s WHERE y > 5 ORDER BY x LIMIT 3",
    ),
    (
        "SELECT * FROM (SELECT x, y FROM s WHERE y > 5) AS t WHERE t.z > 1 ORDER BY t.x LIMIT 3",
        "SELECT * FROM s WHERE (y > 5) AND (z > 1) ORDER BY x LIMIT 3",
    ),
    (
        "WITH a1 AS (SELECT * FROM s WHERE y > 5), b1 AS (SELECT * FROM a1 WHERE z > 1 OR z < 0) "
        "SELECT * FROM b1 ORDER BY x LIMIT 3",
        "SELECT * FROM s WHERE (y > 5) AND (z > 1 OR z < 0) ORDER BY x LIMIT 3",
    ),
    (
        "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY x) AS n FROM (SELECT * FROM s WHERE y > 5) t) WHERE n <= 3",
        "SELECT * FROM s WHERE y > 5 QUALIFY row_number() OVER (ORDER BY x) <= 3",
    ),
    (f"SELECT * FROM ({GROUPS}) ORDER BY total DESC LIMIT 3", f"{BEST} LIMIT 3"),
    (f"SELECT t.* FROM ({GROUPS}) AS t ORDER BY t.total DESC, t.g LIMIT 3", f"{BEST}, g LIMIT 3"),
    (f"WITH t AS ({GROUPS}) SELECT * FROM t ORDER BY total DESC LIMIT 3", f"{BEST} LIMIT 3"),
    (
        f"SELECT h, g, total AS sales FROM ({GROUPS} HAVING count(*) > 1) t WHERE t.total > 5 ORDER BY sales LIMIT 3",
        "SELECT h, g, sum(x) AS sales FROM s WHERE y > 0 GROUP BY g, h HAVING (count(*) > 1) AND ((sum(x)) > 5) "
        "ORDER BY sales LIMIT 3",
    ),
    (
        f"SELECT * FROM ({GROUPS}) WHERE g = 'a' ORDER BY total LIMIT 3",
        "SELECT g, h, sum(x) AS total FROM s WHERE (y > 0) AND (g = 'a') GROUP BY g, h ORDER BY total LIMIT 3",
    ),
    (f"SELECT * FROM ({GROUPS}) QUALIFY {NUMBER} <= 2", f"{BEST} LIMIT 2 PER g"),
    (f"SELECT * FROM (SELECT *, {NUMBER} AS n FROM ({GROUPS})) WHERE n <= 2", f"{BEST} LIMIT 2 PER g"),
    (f"SELECT * FROM (SELECT *, {NUMBER} n FROM ({GROUPS}) t) u WHERE 2 >= n", f"{BEST} LIMIT 2 PER g"),
    (
        f"SELECT * FROM (SELECT *, {NUMBER} AS n FROM ({GROUPS})) WHERE n BETWEEN 2 AND 4",
        f"{BEST} LIMIT 3 PER g OFFSET 1",
    ),
    (
        "SELECT g, sum(x) AS total, rank() OVER (ORDER BY sum(x) DESC) AS r FROM s GROUP BY 1 QUALIFY r <= 3",
        "SELECT g, sum(x) AS total FROM s GROUP BY g ORDER BY total DESC FETCH FIRST 3 ROWS WITH TIES",
    ),
    (
        "SELECT a, rank() OVER (PARTITION BY g ORDER BY x DESC) AS r, b FROM s QUALIFY r <= 3",
        "SELECT a, b FROM s QUALIFY rank() OVER (PARTITION BY g ORDER BY x DESC) <= 3",
    ),
    (
        "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY x) AS n FROM s) WHERE n > 1 AND n <= 5",
        "SELECT * FROM s ORDER BY x LIMIT 4 OFFSET 1",
    ),
    (
        "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY x) AS n FROM s) WHERE n < 6 AND n >= 2",
        "SELECT * FROM s ORDER BY x LIMIT 4 OFFSET 1",
    ),
    (
        "SELECT g, count(1) FROM s GROUP BY g ORDER BY 2 LIMIT 3",
        "SELECT g, count(*) FROM s GROUP BY g ORDER BY 2 LIMIT 3",
    ),
    ("SELECT t.* FROM s AS t ORDER BY t.x LIMIT 3", "SELECT * FROM s ORDER BY x LIMIT 3"),
    (
        "SELECT * FROM (SELECT * FROM s ORDER BY x DESC LIMIT 9) QUALIFY row_number() OVER (PARTITION BY g ORDER BY y) <= 2",
        "SELECT * FROM (SELECT * FROM s ORDER BY x DESC LIMIT 9) ORDER BY y LIMIT 2 PER g",
    ),
]


@pytest.mark.parametrize(("written", "plain"), PAIRS, ids=range(len(PAIRS)))
def test_the_same_query(written: str, plain: str) -> None:
    assert sb.sql(f"{written} WINDOW '5 minutes'") == sb.sql(f"{plain} WINDOW '5 minutes'")


def test_the_window_may_stand_in_the_subquery() -> None:
    inner = sb.sql("SELECT * FROM (SELECT * FROM s WHERE y > 5 WINDOW 100 ROWS) t ORDER BY x LIMIT 3;")
    assert inner == sb.TopK(3, "x", sb.Last(100), largest=False, where="y > 5")


def test_conditions_on_other_columns_stay_as_they_are() -> None:
    """Only row numbers are whole: 1.5 is between 1 and 2."""
    for text in (
        "SELECT * FROM s WHERE n > 1 AND n < 5 ORDER BY n LIMIT 3 WINDOW EVER",
        "SELECT * FROM (SELECT *, abs(x) AS n FROM s ORDER BY abs(x) LIMIT 9 WINDOW EVER) WHERE n > 1 AND n < 5",
    ):
        assert merged(text) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT max(total) FROM (SELECT g, sum(x) AS total FROM s GROUP BY g) LIMIT 3", "ORDER BY is missing"),
        ("SELECT * FROM (SELECT a AS b FROM s) ORDER BY b LIMIT 3", "ORDER BY is missing"),
        (
            f"SELECT * FROM ({GROUPS}) QUALIFY row_number() OVER (PARTITION BY z ORDER BY total) <= 2",
            "z is no column of",
        ),
        ("SELECT g, sum(x) FROM s GROUP BY 2 ORDER BY 2 LIMIT 3", "there is no column at this place"),
        ("SELECT g, sum(x) FROM s GROUP BY 3 ORDER BY 2 LIMIT 3", "there is no column at this place"),
        ("SELECT a FROM s ORDER BY x NULLS FIRST, y NULLS LAST LIMIT 3", "x IS NULL DESC, x DESC, name NULLS LAST"),
    ],
)
def test_refused(text: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        sb.sql(f"{text} WINDOW EVER")


def test_nulls_of_each_key_their_own_way() -> None:
    """What the error says to write: nulls of x first, those of name last."""
    query = sb.sql("SELECT * FROM s ORDER BY x IS NULL DESC, x DESC, name NULLS LAST LIMIT 4 WINDOW EVER")
    monitor = sb.Monitor(query, id="i")
    monitor.push({"i": [1, 2, 3, 4], "x": [1.0, None, 2.0, 2.0], "name": ["a", "b", None, "c"]})
    assert monitor.answer().column("id").to_pylist() == [2, 4, 3, 1]


def test_damaged_sentences_are_query_errors() -> None:
    dice = random.Random(7)  # noqa: S311
    for written, _ in PAIRS:
        words = re.findall(r"\w+|[^\w\s]|\s+", f"{written} WINDOW EVER")
        for _ in range(8):
            damaged = list(words)
            for _ in range(dice.randint(1, 3)):
                damaged[dice.randrange(len(damaged))] = dice.choice(["", "(", ")", ",", " FROM ", " AS ", "1", "`a`"])
            with suppress(SkybandError):
                sb.sql("".join(damaged) + " ")
