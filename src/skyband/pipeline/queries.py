"""[queries.NAME]: every key is an argument of the query's kind. Or [queries] NAME = "SELECT ...": the same in SQL."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from skyband.errors import QueryError
from skyband.pipeline.table import Table, near
from skyband.query.each import from_stored
from skyband.query.kinds import KINDS, Query
from skyband.query.scoring import by_from_dict
from skyband.query.sql.clauses import culprit
from skyband.query.sql.parser import sql
from skyband.query.windows import Ever, Last, Session, UntilDeleted, Window

_KINDS: dict[str, type[Query]] = {name.lower(): kind for name, kind in KINDS.items()}


def read_queries(table: Table) -> dict[str, Query]:
    """Read [queries]; a query with a mistake is left out."""
    queries = {}
    for name in table.data:
        found = _sql(table, name) if isinstance(table.data[name], str) else {name: _query(table.table(name))}
        for one, query in found.items():
            if one != name and (one in queries or one in table.data):
                table.mistake(name, f"a query is called {one!r} already. Give the subquery another name with AS.")
            elif query is not None:
                queries[one] = query
    if not table.data:
        table.mistakes.append('queries: name at least one, such as [queries.late] k = 10, by = "delay", window = 1000.')
    return queries


def _sql(table: Table, name: str) -> Mapping[str, Query]:
    """A query in SQL, in place of a table; one over answers comes with those that it asks over."""
    try:
        found = sql(str(table.raw(name)))
    except QueryError as error:
        table.mistake(name, str(error))
        return {}
    if not isinstance(found, dict):
        return {name: found}
    return {name if one == "q0" else one: query for one, query in found.items()}


def _query(table: Table) -> Query | None:
    before = len(table.mistakes)
    word = table.text("kind", "topk") or "topk"
    kind = _KINDS.get(word.lower())
    if kind is None:
        table.mistake("kind", f"{word!r} is unknown. {near(word, _KINDS)}")
        return None
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        wanted = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        value = table.raw(field.name, needed=_EXAMPLES.get(field.name, "It is needed.") if wanted else "")
        if value is None:
            continue
        try:
            values[field.name] = _READERS.get(field.name, from_stored)(value)
        except QueryError as error:
            table.mistake(field.name, str(error))
    table.end()
    if len(table.mistakes) > before:
        return None
    try:
        return kind(**values)
    except QueryError as error:
        key = culprit(kind, values)
        table.mistakes.append(f"{table.path(key) if key else table.name}: {error}")
        return None


_EXAMPLES = {
    "k": "How many? Such as k = 10.",
    "by": 'What to rank by: a column or an expression, such as by = "delay".',
    "window": 'How long objects count: window = 1000 arrivals, or window = "24 hours".',
    "threshold": "Such as threshold = 0.5.",
    "parts": 'Such as parts = ["north", "south"].',
}


def _window(value: Any) -> Window:
    if value == "until deleted":
        return UntilDeleted()
    if value == "ever":
        return Ever()
    if isinstance(value, Mapping) and value.keys() == {"span"}:
        return Last(span=from_stored(value["span"]))
    if isinstance(value, Mapping) and value.keys() == {"each"}:
        return Last(from_stored(value))
    if isinstance(value, Mapping) and value.keys() == {"session"}:
        silence = value["session"]
        return Session(span=silence) if isinstance(silence, int) else Session(silence)
    if not isinstance(value, int | str):
        raise QueryError(
            f'{value!r} is not a window. Use 1000 (arrivals), "24 hours", {{span = 300}} or {{session = "1 hour"}}.'
        )
    return Last(value)


def _by(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "callable" in value:
            raise QueryError(
                "a Python function cannot be written in a file. Write it as an expression, or run the pipeline "
                "from Python with skyband.spark.monitor."
            )
        return by_from_dict(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list) and not any(isinstance(key, list) for key in value):
        return tuple(map(_by, value))
    raise QueryError(
        f"{value!r} is no scoring. Use a column, an expression, a list of them, or a table such as "
        "{nearest = {x = 1}}."
    )


def _combine(value: Any) -> Any:
    return _by(value) if isinstance(value, Mapping) else value


_READERS = {"window": _window, "by": _by, "combine": _combine}
