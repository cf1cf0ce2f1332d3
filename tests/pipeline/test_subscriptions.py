"""[subscriptions.NAME] of the file of `skyband run`: what it means, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import skyband as sb
from pipeline.test_pipeline_file import good
from skyband.errors import QueryError
from skyband.pipeline import pipeline_of

NEAR = "SELECT * FROM f WHERE origin = :city ORDER BY nearest(delay = :delay) LIMIT :k WINDOW 500 ROWS"
COLUMNS = {"subscriber": "string", "k": "int", "delay": "double", "city": "string"}
HERE = str(Path(__file__).parent)
FILES = {"format": "csv", "path": HERE, "schema": COLUMNS}
KAFKA = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "riders"}


def file(settings: Any, query: Any = NEAR, **changes: Any) -> dict[str, Any]:
    return good(queries={"near": query, "all": {"k": 3, "by": "delay", "window": 500}}, **changes) | (
        {} if settings is None else {"subscriptions": {"near": settings}}
    )


@pytest.mark.parametrize(
    ("settings", "streaming"),
    [
        (FILES, False),
        (FILES | {"streaming": True, "schema": COLUMNS | {"op": "string"}}, True),
        ({"format": "kafka", "schema": COLUMNS | {"op": "string"}, "options": KAFKA}, True),
        ({"format": "table", "name": "riders"}, False),
        ({"format": "table", "name": "riders", "streaming": True}, True),
        ({"format": "parquet", "path": HERE}, False),
    ],
)
def test_every_format(settings: dict[str, Any], streaming: bool) -> None:
    pipeline = pipeline_of(file(settings))
    assert pipeline.queries["near"] == sb.sql(NEAR)
    found = pipeline.subscriptions["near"]
    assert (found.format, found.values["streaming"]) == (settings["format"], streaming)


def test_each_in_a_table() -> None:
    """As in `to_dict`: {each = "column"}."""
    each = {name: {"each": name} for name in ("k", "x", "n")}
    query = {"k": each["k"], "by": {"nearest": {"delay": each["x"]}}, "window": each["n"]}
    columns = {"subscriber": "bigint", "k": "int", "x": "float", "n": "bigint"}
    found = pipeline_of(file(FILES | {"schema": columns}, query)).queries["near"]
    assert found == sb.TopK(sb.Each("k"), sb.Nearest({"delay": sb.Each("x")}), sb.Last(sb.Each("n")), largest=None)
    query |= {"window": {"span": each["n"]}, "by": "delay"}
    with pytest.raises(QueryError, match=r"queries\.near\.window: .*span"):  # the column of this file is a timestamp
        pipeline_of(file(FILES | {"schema": columns}, query))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (None, "queries.near: :k is what subscriptions bring. Say where they come from: [subscriptions.near]"),
        ({}, "subscriptions.near.format: is missing. Use one of parquet, csv, json, kafka, table."),
        ({"format": "rate"}, "subscriptions.near.format: 'rate' is unknown. Use one of parquet"),
        ({"format": "table"}, "subscriptions.near.name: is missing."),
        (FILES | {"streaming": "yes"}, "subscriptions.near.streaming: is true (its rows come and go) or false"),
        (FILES | {"path": "nowhere"}, "subscriptions.near.path: there is no folder 'nowhere' here."),
        (FILES | {"schema": {"k": "int"}}, "subscriptions.near.schema: has no column 'subscriber', the ids of"),
        (FILES | {"schema": COLUMNS | {"k": "string"}}, "subscriptions.near.schema.k: is string, and k takes a whole"),
        (FILES | {"schema": COLUMNS | {"delay": "date"}}, "takes a number, such as double."),
        (FILES | {"schema": COLUMNS | {"op": "string"}}, "subscriptions.near.schema.op: is for rows that come and go"),
        (FILES | {"dead_letters": {"path": "x"}}, "subscriptions.near.dead_letters: is not a key of"),
        ({"format": "kafka", "schema": COLUMNS}, "subscriptions.near.options: 'kafka.bootstrap.servers' is missing"),
    ],
    ids=str,
)
def test_mistakes(settings: Any, says: str) -> None:
    with pytest.raises(QueryError) as told:
        pipeline_of(file(settings))
    assert says in str(told.value)


def test_names_folders_and_sinks() -> None:
    for changes, says in (
        ({"nera": FILES, "near": FILES}, "subscriptions.nera: there is no query 'nera'. Did you mean 'near'?"),
        ({"all": FILES, "near": FILES}, "subscriptions.all: nothing in this query is an Each"),
    ):
        with pytest.raises(QueryError) as told:
            pipeline_of(file(None) | {"subscriptions": changes})
        assert says in str(told.value)
    with pytest.raises(QueryError, match=r"lies in subscriptions\.near\.path"):
        pipeline_of(file(FILES, run__checkpoint=f"{HERE}/checkpoint"))
    with pytest.raises(QueryError, match=r"queries\.near: 'upsert' makes the answer out of changes"):
        pipeline_of(file(FILES, sink={"format": "upsert", "path": "out"}))
