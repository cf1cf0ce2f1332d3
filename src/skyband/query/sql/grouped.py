"""Questions about groups of rows in SQL: the list after SELECT, GROUP BY, HAVING, ORDER BY an aggregate.

    SELECT symbol, sum(qty), count(*) AS trades FROM s GROUP BY symbol ORDER BY sum(qty) DESC LIMIT 10 WINDOW EVER

ORDER BY takes expressions over aggregates, columns of GROUP BY, or names or places of these in the list. What ORDER BY
says is the score or a key, so in the list it is a column of its own only under a name (AS).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from skyband.errors import QueryError
from skyband.query.aggregates import ALLOWED, By, Expressions, id_key, mentioned, read
from skyband.query.expressions import parse
from skyband.query.sql.text import expression, name
from skyband.query.sql.tokens import Cursor, Word

_EXAMPLE = "SELECT symbol, sum(qty) AS total FROM s"


@dataclass(frozen=True)
class Item:
    """One item of the list after SELECT."""

    text: str
    word: Word  # its first
    alias: str | None
    column: str | None  # of a row, where it is just that: GROUP BY or PER must name it too


def select_list(words: Cursor) -> list[Item]:
    """Read the items up to FROM."""
    return words.several(lambda: _item(words))


def _item(words: Cursor) -> Item:
    first, following = words.word, words.words[min(words.at + 1, len(words.words) - 1)]
    column: str | None
    if first.kind == "name" and (following.text == "," or following.upper in ("FROM", "AS")):
        text = column = words.next().text  # `false` is a column
    else:
        text = words.expression(check=checked_in_groups if is_grouped(words, []) else checked)
        tree = None if mentioned(text) else parse(text).tree
        column = str(tree.value) if tree is not None and tree.op == "column" else None
    named = words.accept("AS") or not (words.word.text == "," or words.follows("FROM"))
    return Item(text, first, words.name(_EXAMPLE) if named else None, column)


def checked(text: str) -> None:
    """Refuse what is neither an expression over aggregates nor one over a row."""
    _ = parse(text) if mentioned(text) is None else _read(text)


def checked_in_groups(text: str) -> None:
    """The same in a sentence that groups rows."""
    try:
        checked(text)
    except QueryError as error:
        raise _with_aggregates(error, text) from None


def _with_aggregates(error: QueryError, text: str) -> QueryError:
    """The error; of a function that is unknown it names the aggregates too."""
    unknown = "is not allowed in an expression" in error.said
    return QueryError(f"{error.said} {ALLOWED}", text, error.at) if unknown else error


def checked_condition(text: str, items: list[Item]) -> None:
    """Refuse what is no condition over aggregates."""
    try:
        read("count(*)", text)
    except QueryError:
        for item in items:
            if item.alias is not None and (found := re.search(rf"\b{re.escape(item.alias)}\b", text)):
                said = f"HAVING knows no names of SELECT. Write {item.text} in place of {item.alias}."
                raise QueryError(said, text, found.start()) from None
        raise


def checked_score(text: str) -> None:
    """Refuse what is neither an expression over aggregates nor a name, which may be of a group's column or an item."""
    try:
        if _is_name(text):
            return
    except QueryError as error:
        raise _with_aggregates(error, text) from None
    if mentioned(text) is None and not text.isdecimal():
        raise QueryError(_no_aggregate(text), text, 0)
    _ = text.isdecimal() or read(text)


def _is_name(text: str) -> bool:
    return id_key(text) is not None or (mentioned(text) is None and parse(text).tree.op == "column")


def _no_aggregate(text: str) -> str:
    return (
        f"groups rank by aggregates of their rows, and {text} has none. Write max({text}) or another, or group by it. "
        "For the best rows of each value write PER in place of GROUP BY."
    )


def keys_of(by: Any, columns: tuple[str, ...], fail: Callable[[str], Any]) -> Any:
    """The keys as `by` has them: a column of GROUP BY is the object's id, or a part of it."""
    if isinstance(by, tuple):
        return tuple(keys_of(key, columns, fail) for key in by)
    if not isinstance(by, str) or not _is_name(by) or (id_key(by) is not None and "id" not in columns):
        return by
    (column,) = parse(by).columns
    if column not in columns:
        fail(_no_aggregate(by))
    return "id" if len(columns) == 1 else f"id.{column}"


def checked_where(text: str) -> None:
    """Refuse what is no condition on a row."""
    if (name := mentioned(text)) is not None:
        raise QueryError(f"WHERE is about single rows, and {name} is an aggregate of many. Write HAVING.", text, 0)
    parse(text)


def _read(text: str) -> Expressions:
    return read("count(*)", None, (("", text),))  # not as a score: an item may be a condition or a text


def is_grouped(words: Cursor, items: list[Item]) -> bool:
    """Whether the sentence groups rows: by its clauses, or an aggregate in its list."""
    uppers = [word.upper for word in words.words]
    return "HAVING" in uppers or ("GROUP", "BY") in pairwise(uppers) or any(mentioned(item.text) for item in items)


def selected(words: Cursor, items: list[Item], by: tuple[str, ...], columns: set[str]) -> dict[str, str]:
    """The items that come as columns of their own: all but the groups' columns, and the keys without a name."""
    found: dict[str, str] = {}
    for item in items:
        if item.column is not None:
            if item.column not in columns:
                words.fail(
                    item.word, f"is neither an aggregate nor in GROUP BY. Write last({item.text}), or group by it"
                )
            if item.alias is not None:
                words.fail(item.word, "an answer calls it by its own name, or id. Leave AS out")
        elif item.alias is not None or not any(same(item.text, key) for key in by if id_key(key) is None):
            label = item.alias or item.text
            if label in found:
                words.fail(item.word, "is selected twice. Give one of them another name with AS")
            found[label] = item.text
    return found


def same(one: str, other: str) -> bool:
    """Whether two texts are one expression over aggregates."""
    a, b = _read(one), _read(other)
    return a.shown[""].tree == b.shown[""].tree and a.aggregates == b.aggregates


def list_text(columns: tuple[str, ...], by: By, select: dict[str, str]) -> str:
    """The list that `select_list` reads back."""
    keys = [key for key in (by if isinstance(by, tuple) else (by,)) if id_key(key) is None]
    listed = [name(column) for column in columns] + [expression(key) for key in keys]
    if not listed:
        raise QueryError('SQL has no sentence for groups by the id column without an aggregate. Name it, of="...".')
    for label, text in select.items():
        written = expression(text)
        plain = label == text == written and not any(same(text, key) for key in keys)
        listed.append(written if plain else f"{written} AS {name(label)}")
    return ", ".join(listed)
