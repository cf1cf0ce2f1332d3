"""A query as a sentence of SQL: what `Query.to_sql` writes and `sb.sql` reads back. Works on any query value.

`query/sql/parser.py` has the grammar, `query/sql/text.py` the spelling of names, numbers and texts.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from skyband.query.scoring import By, scoring_of
from skyband.query.sql.text import expression, name, number, quoted, value
from skyband.query.windows import UntilDeleted, Window


def sentence(query: Any, stream: str = "stream") -> str:
    """The query in SQL, over a stream of that name, without what is as usual."""
    fields = dataclasses.fields(query)
    values = {field.name: getattr(query, field.name) for field in fields}
    take = values.pop
    source = name(stream)
    said = ["SELECT * FROM", f"{source} a, {source} b" if query.kind == "TopKPairs" else source]
    if (where := take("where", None)) is not None:
        said.append(f"WHERE {expression(where)}")
    if query.kind == "Above":
        said.append(f"ABOVE {number(take('threshold'))} BY {scoring_of(take('by')).to_sql()}")
    elif query.kind == "TopKIncomplete":
        said.append(f"PARTS ({', '.join(_part(part, *bounds) for part, bounds in take('parts'))})")
        said.append(f"COMBINE {scoring_of(take('combine')).to_sql()}")
        if (repeat := take("repeat")) is not None:
            said.append(f"REPEAT {repeat}")
    else:
        said.append(f"ORDER BY {scoring_of(take('by')).to_sql()} {'DESC' if query.descending else 'ASC'}")
        if values["largest"] == usual_direction(query.kind, query.by, query.descending):
            take("largest")
    if "k" in values:
        said.append(f"LIMIT {take('k')}")
    if per := take("per"):
        said.append(f"PER {', '.join(map(name, per))}")
    said.append(_window(take("window")))
    if query.kind == "TopKUncertain":
        said.append(f"WITH PROBABILITY {name(take('probability'))} SEMANTICS {quoted(take('semantics'))}")
        if (threshold := take("threshold")) is not None:
            said.append(f"THRESHOLD {number(threshold)}")
        if (group := take("group")) is not None:
            said.append(f"GROUP {name(group)}")
    if query.kind == "TopK" and values["algorithm"] == "PA":
        take("algorithm")
        said.append(f"APPROXIMATE {number(take('sigma'))}")
    elif (algorithm := take("algorithm")) != "auto":
        said.append(f"USING {algorithm if algorithm.isidentifier() else quoted(algorithm)}")
    usual = {field.name: field.default for field in fields}
    if rest := [f"{key} = {value(given)}" for key, given in values.items() if given != usual[key]]:
        said.append(f"OPTIONS ({', '.join(rest)})")
    return " ".join(said)


def usual_direction(kind: str, by: By, descending: bool) -> bool | None:
    """The argument `largest` of a query with this direction: None where it is the scoring's own."""
    if kind == "TopKPairs":
        return descending
    return None if descending != scoring_of(by).smallest_first else descending


def _part(part: str, low: float, high: float) -> str:
    return name(part) if (low, high) == (0, 1) else f"{name(part)} {number(low)} TO {number(high)}"


def _window(window: Window) -> str:
    if isinstance(window, UntilDeleted):
        return "UNTIL DELETED"
    if window.span is not None:
        return f"WINDOW SPAN {window.span}"
    if window.count is not None:
        return f"WINDOW {window.count} ROWS"
    return f"WINDOW {quoted(window.to_dict()['last'])}"
