"""A query as a sentence of SQL: what `Query.to_sql` says and `sb.sql` reads back. Works on any query value.

The one place that knows how names, numbers and texts are quoted; `query/sql/parser.py` has the grammar.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

from skyband.errors import QueryError
from skyband.query.scoring import Global, Linear, Nearest, Product, Quadratic
from skyband.query.windows import UntilDeleted, Window

#: Words that begin a clause; a column of that name is put in backticks.
CLAUSES = (
    *("SELECT", "FROM", "WHERE", "ABOVE", "BY", "ORDER", "PARTS", "COMBINE", "REPEAT", "LIMIT", "PER", "WINDOW"),
    *("UNTIL", "WITH", "SEMANTICS", "THRESHOLD", "GROUP", "APPROXIMATE", "USING", "OPTIONS"),
)
#: Words that are no column in an expression, unless in backticks.
RESERVED = (*CLAUSES, "ASC", "DESC")
_INSIDE = ("METRIC", "WEIGHTS", "ROWS", "SPAN", "DELETED", "PROBABILITY", "TO", "TRUE", "FALSE", "NULL")


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
        said.append(f"ABOVE {number(take('threshold'))} BY {_scoring(query, take('by'))}")
    elif query.kind == "TopKIncomplete":
        said.append(f"PARTS ({', '.join(_part(part, *bounds) for part, bounds in take('parts'))})")
        said.append(f"COMBINE {_combine(query, take('combine'))}")
        if (repeat := take("repeat")) is not None:
            said.append(f"REPEAT {repeat}")
    else:
        said.append(f"ORDER BY {_scoring(query, take('by'))} {'DESC' if query.descending else 'ASC'}")
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
    if rest := [f"{key} = {_value(value)}" for key, value in values.items() if value != usual[key]]:
        said.append(f"OPTIONS ({', '.join(rest)})")
    return " ".join(said)


def usual_direction(kind: str, by: Any, descending: bool) -> bool | None:
    """What `largest` is, of a query with this direction, unless something else is said."""
    if kind == "TopKPairs":
        return descending
    return None if descending != isinstance(by, Nearest) else descending


# --- words


def name(text: str) -> str:
    """A column or another name, in backticks where it must be."""
    plain = text.isascii() and text.isidentifier() and text.upper() not in (*RESERVED, *_INSIDE)
    return text if plain else "`" + text.replace("`", "``") + "`"


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def number(value: float) -> str:
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 and str(value) != "-0.0" else repr(value)


def expression(text: str) -> str:
    """As typed; in quotes where reading it back would lose something, or take a column for a clause."""
    if text.isidentifier():
        return name(text)
    bare = re.sub(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|\.\s*\w+""", "", text)
    reserved = any(word.upper() in RESERVED for word in re.findall(r"\w+", bare))
    whole = text == text.strip() and text.isprintable() and "--" not in text and "/*" not in text
    lone = text.startswith("`") and text[1:-1].isidentifier()  # read back without the backticks
    return text if whole and not reserved and not lone else f"EXPRESSION {quoted(text)}"


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return number(value) if isinstance(value, int | float) else quoted(str(value))


def _terms(terms: Any) -> str:
    return ", ".join(f"{name(column)} = {v if isinstance(v, str) else number(v)}" for column, v in terms)


def _scoring(query: Any, by: Any) -> str:
    if isinstance(by, str):
        return expression(by)
    if isinstance(by, Linear | Product | Quadratic):
        return f"{by.word}({_terms(by.terms)})"
    if isinstance(by, Global):
        return f"global({_terms(by.terms)}) COMBINE {by.combine}"
    if isinstance(by, Nearest):
        metric = "" if by.metric == "euclidean" else f" METRIC {by.metric}"
        weights = "" if by.weights is None else f" WEIGHTS ({_terms(by.weights.items())})"
        return f"nearest({_terms(by.terms)}){metric}{weights}"
    called = getattr(by, "__qualname__", type(by).__qualname__)
    raise QueryError(
        f"this {query.kind} scores by the Python function {called!r}, which cannot be said in SQL. "
        "Write the scoring as an expression, such as 0.7*x + 0.3*y."
    )


def _combine(query: Any, combine: Any) -> str:
    return expression(combine) if isinstance(combine, str) else _scoring(query, combine)


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
