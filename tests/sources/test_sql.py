"""Questions over answers in SQL: FROM (SELECT ...)."""

# ruff: noqa: S608

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skyband import Above, Ever, Last, Monitor, TopK, TopKGroups, sql
from skyband.cli.sql import ask
from skyband.errors import QueryError

TOP = "SELECT * FROM s ORDER BY x DESC LIMIT 3 WINDOW 9 ROWS"
INNER = TopK(3, by="x", window=Last(9))
NUMBERED = "(SELECT *, row_number() OVER (PARTITION BY g ORDER BY x DESC) AS n FROM s)"
BEST: dict[str, Any] = {"by": "score", "largest": True, "nulls": "last"}

FORMS: dict[str, dict[str, Any]] = {
    f"SELECT * FROM ({TOP}) AS top ORDER BY y LIMIT 2": {
        "top": INNER,
        "q0": TopK(2, by="y", largest=False, source="top"),
    },
    f"SELECT * FROM ({TOP}) WHERE y > 3": {
        "source": INNER,
        "q0": TopK(3, **BEST, where="y > 3", source="source"),
    },
    f"SELECT * FROM ({TOP.replace(' WINDOW 9 ROWS', '')}) t LIMIT 1 WINDOW 9 ROWS": {
        "t": INNER,
        "q0": TopK(1, **BEST, source="t"),
    },
    f"SELECT * FROM ({TOP.replace('DESC', 'DESC, name')}) WHERE y > 3": {
        "source": TopK(3, by=("x", "name"), largest=(True, False), window=Last(9)),
        "q0": TopK(3, by=("key_1", "key_2"), largest=(True, False), where="y > 3", source="source"),
    },
    "SELECT * FROM (SELECT * FROM s ABOVE 3 BY x WINDOW EVER) WHERE y > 3": {
        "source": Above(3, by="x", window=Ever()),
        "q0": Above(3, by="score", where="y > 3", source="source"),
    },
    f"SELECT d, count(*) FROM ({TOP}) GROUP BY d ORDER BY count(*) DESC LIMIT 1": {
        "source": INNER,
        "q0": TopKGroups(1, by="count(*)", of="d", source="source"),
    },
    f"SELECT d, sum(y) AS n FROM ({TOP}) GROUP BY d ORDER BY n DESC": {
        "source": INNER,
        "q0": TopKGroups(3, by="sum(y)", of="d", select={"n": "sum(y)"}, source="source"),
    },
    f"SELECT * FROM {NUMBERED} WHERE n <= 3 AND y > 3": {
        "source": TopK(3, by="x", window=Ever(), per="g"),
        "q0": TopK(3, **BEST, where="y > 3", per="g", source="source"),
    },
    f"SELECT * FROM {NUMBERED} t WHERE n <= 3 ORDER BY y DESC LIMIT 2 WINDOW 9 ROWS": {
        "t": TopK(3, by="x", window=Last(9), per="g"),
        "q0": TopK(2, by="y", source="t"),
    },
    f"SELECT d, count(*) FROM {NUMBERED} WHERE n <= 3 GROUP BY d ORDER BY 2 DESC LIMIT 1": {
        "source": TopK(3, by="x", window=Ever(), per="g"),
        "q0": TopKGroups(1, by="count(*)", of="d", source="source"),
    },
    f"SELECT * FROM (SELECT * FROM ({TOP}) ORDER BY y LIMIT 2) ORDER BY z LIMIT 1": {
        "source": INNER,
        "source_": TopK(2, by="y", largest=False, source="source"),
        "q0": TopK(1, by="z", largest=False, source="source_"),
    },
}


@pytest.mark.parametrize("text", FORMS)
def test_forms(text: str) -> None:
    assert sql(text) == FORMS[text]
    assert list(sql(text)) == list(FORMS[text])
    Monitor(sql(text), id="i", keep=["y", "z", "d"])


@pytest.mark.parametrize(
    ("text", "why", "at"),
    [
        (f"SELECT * FROM ({TOP}) ORDER BY y LIMT 2", "LIMT: no clause begins", "LIMT"),
        (f"SELECT * FROM ({TOP.replace('3', '0')}) ORDER BY y LIMIT 2", "k must be at least 1", "0 WINDOW"),
        (f"SELECT * FROM ({TOP}) ORDER BY y LIMIT 0", "k must be at least 1", "0"),
        (f"SELECT * FROM ({TOP}) ORDER BY y LIMIT 2 WINDOW 5 ROWS", "is said twice", None),
        (f"SELECT * FROM ({TOP}) PARTS (a) LIMIT 2", "ask for the best", None),
        (f"SELECT * FROM ({TOP} ORDER BY y LIMIT 2", "bracket is not closed", "(SELECT"),
    ],
)
def test_errors_point_at_the_word(text: str, why: str, at: str | None) -> None:
    with pytest.raises(QueryError, match=why) as raised:
        sql(text)
    if at is not None:
        assert raised.value.at == text.rindex(at)


def test_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("i,x,d\n1,5,u\n2,9,v\n3,7,u\n4,1,v\n")
    top = "SELECT * FROM s ORDER BY x DESC LIMIT 3 WINDOW EVER"
    question = f"SELECT d, count(*) FROM ({top}) GROUP BY d ORDER BY 2 DESC LIMIT 1"
    (answer,) = ask(question, [path], id="i")
    assert answer.select(["id", "score"]).to_pylist() == [{"id": "u", "score": 2.0}]
    changes = [row for table in ask(question, [path], changes=True) for row in table.to_pylist()]
    assert {row["query"] for row in changes} == {"q0"}
