"""Orders in SQL: sentences that people write, and every query back from its own sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orders.scenes import scenes
from skyband import Last, QueryError, Session, TopK, sql

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
    assert sql("SELECT * FROM s " + text + WINDOW)  # noqa: S608 == query


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
        sql("SELECT * FROM s " + text + WINDOW)  # noqa: S608


@pytest.mark.parametrize("window", ["count", "time", "session", "until deleted"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_every_query_comes_back_from_sql_and_data(window: str, data: Any) -> None:
    for query in data.draw(scenes(ranks=True, window=window)).queries.values():
        assert sql(query.to_sql()) == query
        assert type(query).from_dict(query.to_dict()) == query
