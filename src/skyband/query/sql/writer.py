"""A query as a sentence of SQL: what `Query.to_sql` writes and `sb.sql` reads back. Works on any query value.

`query/sql/parser.py` has the grammar, `query/sql/text.py` the spelling of names, numbers and texts.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from skyband.query.scoring import Order, scoring_of
from skyband.query.sql.text import direction_text, each, expression, name, number, quoted, value
from skyband.query.windows import Ever, Last, Session, UntilDeleted, Window


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
        said += _limit(take("k"), take("k_max", None), take("offset", 0), take("with_ties", False))
    if per := take("per"):
        named = [name(one) if isinstance(one, str) else f"{name(one[1])} AS {name(one[0])}" for one in per]
        said.append(f"PER {', '.join(named)}")
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
    nulls = values.pop("nulls", "reject")
    if isinstance(by, Order):
        del values["largest"]
        if not by.parts:  # no key says where its nulls go
            values["nulls"] = query.nulls
        ways = zip(by.parts, query.directions, strict=True)
        keys = [part.to_sql() + direction_text(descending, nulls) for part, descending in ways]
        return f"ORDER BY ({', '.join(keys)})" if len(keys) < 2 else f"ORDER BY {', '.join(keys)}"
    if values["largest"] == query.usual_direction(query.by, query.descending):
        values.pop("largest")
    return f"ORDER BY {by.to_sql()}{direction_text(query.descending, nulls)}"


def _limit(k: Any, most: int | None, offset: int, with_ties: bool) -> list[str]:
    """How many: a number, a value of each subscription, or a column with its largest value."""
    if with_ties and not isinstance(k, str):
        return [f"FETCH FIRST {number(k)} ROWS WITH TIES"]
    limit = f"LIMIT {name(k)} MAX {most}" if isinstance(k, str) else f"LIMIT {number(k)}"
    return [limit, *([f"OFFSET {offset}"] if offset else []), *(["WITH TIES"] if with_ties else [])]


def _window(window: Window, decay: str | float | None) -> str:
    if isinstance(window, UntilDeleted):
        return "UNTIL DELETED"
    if isinstance(window, Session):
        return _window(window.silence, None).replace("WINDOW", "WINDOW SESSION", 1)
    if isinstance(window, Ever):
        return "WINDOW EVER" if decay is None else f"WINDOW EVER DECAY {value(decay)}"
    if isinstance(window, Last) and window.each is not None:
        return f"WINDOW {'SPAN ' if window.spans else ''}{each(window.each)}"
    if window.span is not None:
        return f"WINDOW SPAN {window.span}"
    if window.count is not None:
        return f"WINDOW {window.count} ROWS"
    return f"WINDOW {quoted(window.to_dict()['last'])}"
