"""A query as a sentence of SQL: what `Query.to_sql` writes and `sb.sql` reads back. Works on any query value.

`query/sql/parser.py` has the grammar, `query/sql/text.py` the spelling of names, numbers and texts.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from skyband.query.scoring import scoring_of
from skyband.query.sql.text import expression, name, quoted, value
from skyband.query.windows import Ever, Session, UntilDeleted, Window


def sentence(query: Any, stream: str = "stream") -> str:
    """The query in SQL, over a stream of that name, without what is as usual."""
    fields = dataclasses.fields(query)
    values = {field.name: getattr(query, field.name) for field in fields}
    take = values.pop
    source = name(stream)
    said = [f"SELECT {query.listed_sql(values)} FROM", f"{source} a, {source} b" if query.of_pairs else source]
    if (where := take("where", None)) is not None:
        said.append(f"WHERE {expression(where)}")
    said += query.ranking_sql(values)
    if "k" in values:
        said.append(f"LIMIT {take('k')}")
    if per := take("per"):
        said.append(f"PER {', '.join(map(name, per))}")
    said.append(_window(take("window"), take("decay", None)))
    said += query.more_sql(values)
    if (algorithm := take("algorithm", "auto")) != "auto":
        said.append(f"USING {algorithm if algorithm.isidentifier() else quoted(algorithm)}")
    usual = {field.name: field.default for field in fields}
    if rest := [f"{key} = {value(given)}" for key, given in values.items() if given != usual[key]]:
        said.append(f"OPTIONS ({', '.join(rest)})")
    return " ".join(said)


def order_by(query: Any, values: dict[str, Any]) -> str:
    """The clause of kinds that rank by a scoring; takes what it says out of the values."""
    by = scoring_of(values.pop("by"))
    if values["largest"] == query.usual_direction(query.by, query.descending):
        values.pop("largest")
    return f"ORDER BY {by.to_sql()} {'DESC' if query.descending else 'ASC'}"


def _window(window: Window, decay: str | float | None) -> str:
    if isinstance(window, UntilDeleted):
        return "UNTIL DELETED"
    if isinstance(window, Session):
        return _window(window.silence, None).replace("WINDOW", "WINDOW SESSION", 1)
    if isinstance(window, Ever):
        return "WINDOW EVER" if decay is None else f"WINDOW EVER DECAY {value(decay)}"
    if window.span is not None:
        return f"WINDOW SPAN {window.span}"
    if window.count is not None:
        return f"WINDOW {window.count} ROWS"
    return f"WINDOW {quoted(window.to_dict()['last'])}"
