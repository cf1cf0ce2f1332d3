"""Orders in SQL: sentences that people write, and every query back from its own sentence."""

# ruff: noqa: S608
from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orders.scenes import scenes
from skyband import Ever, Last, Monitor, QueryError, Session, TopK, UntilDeleted, sql
from skyband.query.options import named

LONG_AGO = datetime(2024, 1, 1, tzinfo=UTC)
WINDOW, LAST = " WINDOW 100 ROWS", Last(100)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("ORDER BY x DESC, name LIMIT 3", TopK(3, by=("x", "name"), largest=(True, False), window=LAST)),
        ("ORDER BY x DESC NULLS LAST LIMIT 3", TopK(3, by="x", window=LAST, nulls="last")),
        ("ORDER BY x LIMIT 3 OFFSET 10 ROWS", TopK(3, by="x", largest=False, window=LAST, offset=10)),
        ("ORDER BY x DESC FETCH FIRST 3 ROWS WITH TIES", TopK(3, by="x", window=LAST, with_ties=True)),
        ("ORDER BY x DESC FETCH NEXT 3 ROWS ONLY", TopK(3, by="x", window=LAST)),
        (
            "ORDER BY x DESC LIMIT n MAX 9 PER g AS airport",
            TopK("n", by="x", window=LAST, k_max=9, per={"airport": "g"}),
        ),
    ],
)
def test_sentences(text: str, query: TopK) -> None:
    assert query == sql("SELECT * FROM s " + text + WINDOW)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (  # Flink's, Spark's and DuckDB's own top-n
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY category ORDER BY sales DESC) AS row_num "
            "FROM shop_sales) WHERE row_num <= 5",
            TopK(5, by="sales", window=Ever(), per="category"),
        ),
        (
            "SELECT id, a, n FROM (SELECT *, row_number() OVER (PARTITION BY a, b ORDER BY x DESC, name) n FROM s t "
            "WHERE y > 3) AS t WHERE n < 5 WINDOW '1 hour'",
            TopK(4, by=("x", "name"), largest=(True, False), window=Last("1 hour"), where="y > 3", per=("a", "b")),
        ),
        (
            "SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY g ORDER BY x DESC) <= 10 WINDOW 100 ROWS",
            TopK(10, by="x", window=LAST, per="g"),
        ),
        (
            "SELECT * FROM s WHERE y > 1 QUALIFY rank() OVER (ORDER BY x) <= 3",
            TopK(3, by="x", largest=False, window=Ever(), where="y > 1", with_ties=True),
        ),
        (
            "SELECT * FROM s QUALIFY row_number() OVER (ORDER BY x DESC) BETWEEN 11 AND 20 UNTIL DELETED",
            TopK(10, by="x", window=UntilDeleted(), offset=10),
        ),
        ("SELECT * FROM s QUALIFY row_number() OVER (ORDER BY x DESC) = 2", TopK(1, by="x", window=Ever(), offset=1)),
        (
            "SELECT a, b FROM s ORDER BY x DESC NULLS LAST, name LIMIT 10 OFFSET 10 WINDOW 100 ROWS",
            TopK(10, by=("x", "name"), largest=(True, False), nulls="last", window=LAST, offset=10),
        ),
        (
            "SELECT DISTINCT ON (id) * FROM s ORDER BY x DESC LIMIT 3 WINDOW 100 ROWS",
            TopK(3, by="x", window=LAST, distinct="best"),
        ),
    ],
)
def test_forms_of_others(text: str, query: TopK) -> None:
    assert sql(text) == query


def test_every_row_of_the_documentation_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    table = page.partition("## What people write elsewhere")[2].partition("## Groups of rows")[0]
    rows = [line.rpartition("| `")[2] for line in table.splitlines() if "| `SELECT" in line or "| `WITH" in line]
    assert len(rows) == 29
    for row in rows:
        queries = named(sql(row.partition("`")[0]))
        per = {name for query in queries.values() for name in query.per_columns}
        monitor = Monitor(queries, id="i", time="t", keep={"y", "g"} - per)
        columns = {"x": [1.0, 3.0], "y": [4.0, 5.0], "g": ["a", "b"], "name": ["an", "am"], "i": [1, 2]}
        monitor.push({**columns, "t": [LONG_AGO, LONG_AGO]})
        assert (len(monitor.answer("q0")) == 0) == ("HAVING" in row or "OFFSET" in row), row


def test_sessions() -> None:
    text = "SELECT * FROM s ORDER BY x DESC LIMIT 3 WINDOW SESSION '30 minutes'"
    assert sql(text) == TopK(3, by="x", window=Session("30 minutes"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ORDER BY x DESC OFFSET 10", "whole window"),
        ("ORDER BY x DESC NULLS LAST, y NULLS FIRST LIMIT 3", "one way"),
        ("ORDER BY x DESC NULLS MIDDLE LIMIT 3", "first or last"),
    ],
)
def test_refused(text: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        sql("SELECT * FROM s " + text + WINDOW)


MEANT = [  # what people write, and a plainer sentence
    ("SELECT f.id AS flight_id, f.x FROM flights AS f ORDER BY f.x DESC LIMIT 3", "ORDER BY x DESC LIMIT 3"),
    ("SELECT * FROM db.s WHERE s.y > 1 ORDER BY s.x + s.y LIMIT 3", "WHERE y > 1 ORDER BY x + y LIMIT 3"),
    ("SELECT x + y AS z, name FROM s ORDER BY z DESC, 2 LIMIT 3", "ORDER BY x + y DESC, name LIMIT 3"),
    ("SELECT DISTINCT ON (g) * FROM s ORDER BY g, x DESC", "ORDER BY x DESC LIMIT 1 PER g"),
    ("SELECT DISTINCT ON (g, h) * FROM s ORDER BY g, h DESC, x DESC, y", "ORDER BY x DESC, y LIMIT 1 PER g, h"),
    ("SELECT DISTINCT ON (g) * FROM s ORDER BY g", "ORDER BY () LIMIT 1 PER g"),
    ("SELECT DISTINCT a, b FROM s ORDER BY b DESC, a LIMIT 3", "GROUP BY a, b ORDER BY b DESC, a LIMIT 3"),
    ("SELECT DISTINCT a FROM s ORDER BY 1 LIMIT 3 OFFSET 3", "GROUP BY a ORDER BY a LIMIT 3 OFFSET 3"),
    ("SELECT * FROM s ORDER BY x FETCH FIRST ROW ONLY", "ORDER BY x LIMIT 1"),
    ("SELECT * FROM s QUALIFY dense_rank() OVER (ORDER BY x) = 1", "QUALIFY rank() OVER (ORDER BY x) = 1"),
    ("SELECT * FROM s ORDER BY x OFFSET 3 USING TMA", "ORDER BY x LIMIT 2147483644 OFFSET 3 USING SORTED"),
    ("SELECT * FROM s QUALIFY row_number() OVER (ORDER BY x) > 3 USING SORTED", "ORDER BY x OFFSET 3 USING SORTED"),
    ("SELECT * FROM s QUALIFY row_number() OVER (ORDER BY x) >= 4 USING SORTED", "ORDER BY x OFFSET 3 USING SORTED"),
]


@pytest.mark.parametrize(("text", "plain"), MEANT)
def test_what_people_write(text: str, plain: str) -> None:
    assert sql(text + WINDOW) == sql("SELECT * FROM s " + plain + WINDOW)


def test_offset_without_limit_is_all_but_the_first() -> None:
    monitor = Monitor(sql("SELECT * FROM s ORDER BY x DESC OFFSET 2 WINDOW 5 ROWS USING SORTED"))
    monitor.push({"x": [3.0, 9.0, 5.0, 1.0, 7.0, 4.0]})
    answer = monitor.answer()
    assert answer["score"].to_pylist() == [5.0, 4.0, 1.0]
    assert answer["rank"].to_pylist() == [3, 4, 5]


NUMBERED = "(SELECT *, row_number() OVER (ORDER BY x) AS n FROM s)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"SELECT * FROM {NUMBERED} WHERE y <= 2", "about its row numbers, n"),
        (f"SELECT * FROM {NUMBERED} WHERE n > 2", "USING SORTED"),
        (f"SELECT * FROM {NUMBERED.replace('row_number', 'dense_rank')} WHERE n <= 2", "different keys"),
        (f"SELECT * FROM {NUMBERED.replace('FROM s', f'FROM {NUMBERED}')} WHERE n <= 2", "one subquery"),
        ("SELECT * FROM (SELECT * FROM s ORDER BY x LIMIT 3) ORDER BY y LIMIT 2", "WINDOW is missing"),
        ("SELECT g, count(*) FROM (SELECT * FROM s) GROUP BY g ORDER BY 2 LIMIT 1", "WINDOW is missing"),
        ("SELECT * FROM s QUALIFY row_number() OVER (ORDER BY x) <= 2 LIMIT 3", "k is said already"),
        ("SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY g ORDER BY x) <= 2 PER h", "per is said already"),
        ("SELECT * FROM s QUALIFY row_number() OVER (ORDER BY x) <= 2 ORDER BY y", "said twice"),
        ("SELECT * FROM s QUALIFY x <= 2", "a row number is expected"),
        ("SELECT * FROM s ORDER BY x LIMIT 3 UNTIL DELETED WINDOW 5 ROWS", "a window is said already"),
        ("SELECT DISTINCT * FROM s ORDER BY x LIMIT 3 WINDOW 5 ROWS", "DISTINCT ON"),
        ("SELECT DISTINCT upper(a) FROM s ORDER BY x LIMIT 3 WINDOW 5 ROWS", "DISTINCT ON"),
        ("SELECT DISTINCT ON (a) * FROM s ORDER BY x LIMIT 3 WINDOW 5 ROWS", "answers of DISTINCT ON"),
        ("SELECT * FROM s ORDER BY x LIMIT 0 WINDOW 5 ROWS", "at least 1"),
        ("SELECT * FROM s ORDER BY x LIMIT 3000000000 WINDOW 5 ROWS", "below 2\\^31"),
        ("SELECT * FROM s LIMIT 3 WINDOW 5 ROWS", "by arrival"),
        ("SELECT TOP 5 * FROM s ORDER BY x", "LIMIT 10"),
        ("SELECT *, x + y AS z FROM s ORDER BY z LIMIT 3 WINDOW EVER", "nothing stands beside"),
        ("SELECT * FROM s UNION ALL SELECT * FROM s ORDER BY x LIMIT 3", "one stream"),
        ("SELECT * FROM s UNION SELECT * FROM s ORDER BY x LIMIT 3", "one stream"),
        ("SELECT * FROM s a JOIN t b ON a.i = b.i ORDER BY x LIMIT 3", "before rows are pushed"),
        ("SELECT * FROM s#time(5 min) ORDER BY x LIMIT 3", "WINDOW '5 minutes'"),
        ("SELECT * FROM s.win:length(100) ORDER BY x LIMIT 3", "WINDOW 1000 ROWS"),
        ("SELECT * FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(t), INTERVAL '10' MINUTES)) ORDER BY x LIMIT 3", "row by row"),
        ("SELECT * FROM s WHERE name ILIKE 'a%' ORDER BY x LIMIT 3", "lower"),
        ("SELECT * FROM s ORDER BY g COLLATE NOCASE LIMIT 3", "UTF-8"),
        ("SELECT * FROM s ORDER BY x LIMIT 3 EMIT CHANGES", "every change"),
        ("SELECT * FROM s ORDER BY x::double LIMIT 3 WINDOW EVER", "cast"),
        ("SELECT g, TOPK(x, 3) FROM s GROUP BY g", "LIMIT 3 PER g"),
        ("SELECT g, sum(x) AS n FROM s GROUP BY g HAVING n > 2 ORDER BY n LIMIT 3", "Write sum\\(x\\) in place of n"),
        ("SELECT g, count(*) FILTER (WHERE x > 1) FROM s GROUP BY g", "case when x > 1"),
        ("SELECT * EXCLUDE (x) FROM s ORDER BY x LIMIT 3", "keep="),
        ("SELECT * FROM s ORDER BY x LIMIT 10% WINDOW EVER", "Say how many"),
        ("SELECT * FROM s QUALIFY row_number() OVER w <= 3 WINDOW 5 ROWS", "without a name"),
    ],
)
def test_forms_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        sql(text)


@pytest.mark.parametrize("window", ["count", "time", "session", "until deleted"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_every_query_comes_back_from_sql_and_data(window: str, data: Any) -> None:
    for query in data.draw(scenes(ranks=True, window=window)).queries.values():
        assert sql(query.to_sql()) == query
        assert type(query).from_dict(query.to_dict()) == query
