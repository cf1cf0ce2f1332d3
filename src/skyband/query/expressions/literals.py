"""Values of subscriptions in a text: `:name`, and the literal in its place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from skyband.query.expressions.parser import EACH, joined_names


def bind(text: str, values: Mapping[str, Any]) -> str:
    """The text with values in place of each `:name`: numbers, strings and booleans, as literals."""
    pieces = _pieces(text)
    return "".join([piece if place % 2 == 0 else _literal(values[piece]) for place, piece in enumerate(pieces)])


def each_in(text: str) -> tuple[str, ...]:
    """The names of the values that subscriptions bring in a text."""
    return tuple(dict.fromkeys(_pieces(text)[1::2]))


@lru_cache(maxsize=256)
def _pieces(text: str) -> tuple[str, ...]:
    """The text between the values of subscriptions, and their names: text, name, text, ..."""
    from sqlglot.dialects.dialect import Dialect

    pieces, end = [], 0
    for token in joined_names(text, Dialect.get_or_raise("spark").tokenize(text)):
        if token.text.startswith(EACH):
            pieces += [text[end : token.start], token.text[1:]]
            end = token.end + 1
    return (*pieces, text[end:])


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"({value!r})" if value < 0 or str(value) == "-0.0" else repr(value)
