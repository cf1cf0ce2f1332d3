"""WITH top AS (SELECT ...) SELECT ... FROM top: subqueries that are named first, put where they are used.

Cost: linear in the text for each of them.
"""

from __future__ import annotations

from skyband.query.sql.text import CLAUSES
from skyband.query.sql.tokens import Cursor

_EXAMPLE = "WITH top AS (SELECT ...) SELECT * FROM top"


def without_with(text: str) -> str:
    """The sentence with each named subquery in the place of its name."""
    words = Cursor(text)
    if not words.accept("WITH"):
        return text
    named: dict[str, str] = {}
    while True:
        word = words.word
        name = words.name(_EXAMPLE)
        if name in named:
            words.fail(word, "is named twice after WITH")
        words.expect("AS", _EXAMPLE)
        words.expect("(", _EXAMPLE)
        begin, depth = words.words[words.at - 1].end, 1
        while depth:
            if words.word.kind == "end":
                words.fail(word, "its bracket is not closed")
            closing = words.next()
            depth += (closing.text == "(") - (closing.text == ")")
        named[name] = _placed(text[begin : closing.start], named)
        if not words.accept(","):
            break
    rest = words.word
    if rest.upper != "SELECT":
        words.fail(rest, f"a question is expected here, as in {_EXAMPLE}")
    placed = _placed(text[rest.start :], named)
    used = placed + "".join(named.values())
    for name, inner in named.items():
        if f"({inner})" not in used:
            words.fail(0, f"{name} is named after WITH and never used. Leave it out")
    return placed


def _placed(text: str, named: dict[str, str]) -> str:
    """The text with subqueries in the place of their names after FROM."""
    words, pieces, end = Cursor(text).words, list[str](), 0
    for before, word, after in zip(words, words[1:], words[2:], strict=False):
        if before.upper == "FROM" and word.kind in ("word", "name") and word.text in named and after.text != ".":
            aliased = after.kind in ("word", "name") and (after.upper == "AS" or after.upper not in CLAUSES)
            pieces += [text[end : word.start], f"({named[word.text]})", "" if aliased else f" AS `{word.text}`"]
            end = word.end
    return "".join([*pieces, text[end:]])
