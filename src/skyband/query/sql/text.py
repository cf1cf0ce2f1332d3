"""The spelling of names, numbers, texts and scorings in SQL, and the words that have a meaning of their own."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from skyband.errors import QueryError
from skyband.query.each import Each, from_stored
from skyband.query.expressions import parse

#: Words that begin a clause; a column of that name is put in backticks.
CLAUSES = (
    *("SELECT", "FROM", "ON", "WHERE", "ABOVE", "BY", "ORDER", "PARTS", "COMBINE", "REPEAT", "LIMIT", "PER", "WINDOW"),
    *(
        "UNTIL",
        "WITH",
        "SEMANTICS",
        "THRESHOLD",
        "GROUP",
        "HAVING",
        "APPROXIMATE",
        "USING",
        "OPTIONS",
        "OFFSET",
        "FETCH",
        "QUALIFY",
    ),
)
#: Words that are no column in an expression, unless in backticks.
RESERVED = (*CLAUSES, "ASC", "DESC")
_INSIDE = (
    "AS",
    "METRIC",
    "WEIGHTS",
    "TRANSFORM",
    "ROWS",
    "SPAN",
    "DELETED",
    "PROBABILITY",
    "TO",
    "NULLS",
    "MAX",
    "SESSION",
    "TRUE",
    "FALSE",
    "NULL",
)


def is_sql(text: str) -> bool:
    """Whether a text begins as a sentence in SQL, rather than a path or JSON."""
    return re.match(r"\s*select\b", text, re.IGNORECASE) is not None


@lru_cache(maxsize=1024)
def _is_column(text: str) -> bool:
    """Whether an expression reads a word as a column, which it does not for `else`."""
    try:
        return tuple(parse(text).columns) == (text,)
    except QueryError:
        return False


def name(text: str) -> str:
    """A column or another name, in backticks where it must be."""
    plain = text.isascii() and text.isidentifier() and text.upper() not in (*RESERVED, *_INSIDE) and _is_column(text)
    return text if plain else "`" + text.replace("`", "``") + "`"


def each(value: Each) -> str:
    """The value that each subscription brings."""
    return f":{name(value.column)}"


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def number(value: Any) -> str:
    """A number, or the value that each subscription brings."""
    if isinstance(value, Each):
        return each(value)
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 and str(value) != "-0.0" else repr(value)


def value(of: Any) -> str:
    """The value of an option."""
    if of is None or isinstance(of, bool):
        return "null" if of is None else str(of).lower()
    return number(of) if isinstance(of, int | float) else quoted(str(of))


def expression(text: str) -> str:
    """As typed; in quotes where reading it back would lose something, or take a column for a clause."""
    if text.isidentifier():
        return name(text)
    bare = re.sub(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|\.\s*\w+""", "", text)
    reserved = any(word.upper() in RESERVED for word in re.findall(r"\w+", bare))
    whole = text == text.strip() and text.isprintable() and "--" not in text and "/*" not in text
    lone = text.startswith("`") and text[1:-1].isidentifier()  # read back without the backticks
    lone = lone or text.isdecimal()  # the place of an item after SELECT
    return text if whole and not reserved and not lone else f"EXPRESSION {quoted(text)}"


def direction_text(descending: bool, nulls: str) -> str:
    """What follows a key of an order: DESC NULLS LAST."""
    return (" DESC" if descending else " ASC") + {"first": " NULLS FIRST", "last": " NULLS LAST"}.get(nulls, "")


def scoring_text(word: str, terms: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """A scoring by its word: `nearest(x = 1) METRIC manhattan WEIGHTS (x = 2)`."""
    return " ".join([f"{word}{_terms(terms)}", *(f"{key.upper()} {_terms(options[key])}" for key in options)])


def _terms(given: Any) -> str:
    """Terms as they are stored, or one word or number."""
    if isinstance(given, Mapping):
        return f"({', '.join(f'{name(column)} = {_term(one)}' for column, one in given.items())})"
    return _term(given)


def _term(given: Any) -> str:
    if isinstance(given, str):
        return given if given.isidentifier() and given.isascii() else quoted(given)
    return number(from_stored(given))
