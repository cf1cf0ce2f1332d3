"""Orders of keys and sessions in a pipeline file."""

from __future__ import annotations

import pytest

import skyband as sb
from pipeline.test_pipeline_file import good
from skyband.errors import QueryError
from skyband.pipeline import pipeline_of


def test_orders_of_keys_and_sessions() -> None:
    more = {"by": ["delay", "flight"], "largest": [True, False], "window": {"session": "30 minutes"}, "nulls": "last"}
    made = pipeline_of(good(**{f"queries__late__{name}": value for name, value in more.items()}))
    assert made.queries["late"] == sb.TopK(
        3, by=("delay", "flight"), largest=(True, False), window=sb.Session("30 minutes"), per="origin", nulls="last"
    )


_NESTED = (
    "SELECT * FROM (SELECT * FROM s ORDER BY delay DESC LIMIT 10 PER origin WINDOW EVER) AS {} ORDER BY score LIMIT 3"
)


def test_questions_over_answers() -> None:
    """In SQL the subquery is a query too, by its name; in a table `source` names it. Their columns are the answer's."""
    data = good(queries__few=_NESTED.format("top"), queries__more={"k": 2, "by": "score", "source": "top"})
    made = pipeline_of(data)
    assert list(made.queries)[-3:] == ["top", "few", "more"]
    assert made.queries["few"] == sb.TopK(3, "score", largest=False, source="top")
    assert made.queries["more"] == sb.TopK(2, "score", source="top")


def test_a_subquery_has_a_name_of_its_own() -> None:
    with pytest.raises(QueryError, match=r"queries.few: a query is called 'late' already.*with AS"):
        pipeline_of(good(queries__few=_NESTED.format("late")))
    with pytest.raises(QueryError, match=r"queries.few: .*reads 'gate' of the answers of 'late'"):
        pipeline_of(good(queries__few={"k": 2, "by": "gate", "source": "late"}))
