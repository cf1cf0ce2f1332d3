"""Questions about groups of rows in SQL: the list after SELECT, GROUP BY, HAVING, ORDER BY an aggregate.

    SELECT symbol, sum(qty), count(*) AS trades FROM s GROUP BY symbol ORDER BY sum(qty) DESC LIMIT 10 WINDOW EVER

ORDER BY takes an expression over aggregates, or the name or place of one in the list. What ORDER BY says is the score,
so in the list it is a column of its own only under a name (AS).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from skyband.errors import QueryError
from skyband.query.aggregates import Expressions, mentioned, read
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
        text = words.expression(check=checked)
        tree = None if mentioned(text) else parse(text).tree
        column = str(tree.value) if tree is not None and tree.op == "column" else None
    named = words.accept("AS") or not (words.word.text == "," or words.follows("FROM"))
    return Item(text, first, words.name(_EXAMPLE) if named else None, column)


def checked(text: str) -> None:
    """Refuse what is neither an expression over aggregates nor one over a row."""
    _ = parse(text) if mentioned(text) is None else _read(text)


def checked_condition(text: str) -> None:
    """Refuse what is no condition over aggregates."""
    read("count(*)", text)


def checked_score(text: str) -> None:
    """Refuse what is no number over aggregates."""
    if mentioned(text) is None:
        raise QueryError(
            f"groups rank by aggregates of their rows, and {text} has none. Write max({text}) or another. For the best "
            "rows of each value write PER in place of GROUP BY.",
            text,
            0,
        )
    read(text)


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


def ranked_by(text: str, items: list[Item], fail: Callable[[str], Any]) -> str:
    """The expression that ORDER BY means: as typed, or the item of that name or place."""
    if text.isdecimal():
        if not 1 <= int(text) <= len(items):
            fail(f"there is no item {text} after SELECT")
        found = items[int(text) - 1]
    else:
        named = next((item for item in items if item.alias == text), None)
        if named is None:
            return text
        found = named
    if found.column is not None:
        fail(f"{found.text} is no aggregate, and groups rank by aggregates of their rows")
    return found.text


def selected(words: Cursor, items: list[Item], by: str, columns: set[str]) -> dict[str, str]:
    """The items that come as columns of their own: all but the groups' columns, and the score without a name."""
    found: dict[str, str] = {}
    for item in items:
        if item.column is not None:
            if item.column not in columns:
                words.fail(
                    item.word, f"is neither an aggregate nor in GROUP BY. Write last({item.text}), or group by it"
                )
            if item.alias is not None:
                words.fail(item.word, "an answer calls it by its own name, or id. Leave AS out")
        elif item.alias is not None or not same(item.text, by):
            label = item.alias or item.text
            if label in found:
                words.fail(item.word, "is selected twice. Give one of them another name with AS")
            found[label] = item.text
    return found


def same(one: str, other: str) -> bool:
    """Whether two texts are one expression over aggregates."""
    a, b = _read(one), _read(other)
    return a.shown[""].tree == b.shown[""].tree and a.aggregates == b.aggregates


def list_text(columns: tuple[str, ...], by: str, select: dict[str, str]) -> str:
    """The list that `select_list` reads back."""
    listed = [name(column) for column in columns] + [expression(by)]
    for label, text in select.items():
        written = expression(text)
        plain = label == text == written and not same(text, by)
        listed.append(written if plain else f"{written} AS {name(label)}")
    return ", ".join(listed)
