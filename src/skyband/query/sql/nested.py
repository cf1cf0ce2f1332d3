"""Questions over the answer of another one in SQL: FROM (SELECT ...).

    SELECT * FROM (SELECT * FROM s ORDER BY x DESC LIMIT 10 WINDOW 1000 ROWS) AS top ORDER BY y DESC LIMIT 3
    SELECT * FROM (SELECT ... LIMIT 10 WINDOW 1000 ROWS) WHERE y > 3
    SELECT dest, count(*) FROM (SELECT ... LIMIT 100 WINDOW '1 hour') GROUP BY dest ORDER BY count(*) DESC LIMIT 1
    SELECT * FROM (SELECT *, row_number() OVER (ORDER BY x DESC) AS n FROM s) WHERE n <= 10 AND y > 3

A sentence is cut into two: the inner question, and the outer one over its answer, by the name that AS gives it. WINDOW
is the inner question's, wherever it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skyband.errors import QueryError
from skyband.query.kinds import Above, Query, TopK, TopKGroups
from skyband.query.sql.text import CLAUSES
from skyband.query.sql.tokens import Cursor
from skyband.query.windows import UntilDeleted

SOURCE = "source"  # the name of an inner question without one
_ALL = "SELECT * FROM "
NUMBERS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
_INNERMOST = ("WINDOW", "UNTIL", "USING", "OPTIONS", "APPROXIMATE")  # what may follow the form with row numbers


@dataclass(frozen=True)
class Nested:
    """A sentence in two."""

    inner: str
    start: int  # of the inner sentence in the whole
    outer: str
    name: str | None  # of the inner question
    cut: int  # up to here the outer sentence is as in the whole
    shift: int  # from there on by how much its places are behind

    def place(self, at: int) -> int:
        """A place of the outer sentence in the whole."""
        return at if at <= self.cut else max(at + self.shift, self.cut)


def queries_of(text: str, reader: Any) -> dict[str, Query]:
    """The queries of a sentence by name, sources first; reader: of one question."""
    parts = split(text)
    if parts is None:
        return {"q0": reader(text).query()}
    outer = reader(parts.outer)
    try:
        outer.read()
        window = _window(parts.outer, outer) if {"WINDOW", "UNTIL"} & outer.said.keys() else ""
    except QueryError as error:
        raise QueryError(error.said, text, None if error.at is None else parts.place(error.at)) from None
    try:
        queries = queries_of(parts.inner + window, reader)
    except QueryError as error:
        raise QueryError(error.said, text, None if error.at is None else max(error.at + parts.start, 0)) from None
    asked, name = queries.pop("q0"), parts.name or SOURCE
    while name in queries or name == "q0":
        name += "_"
    try:
        return queries | {name: asked, "q0": _over(outer, name, asked)}
    except QueryError as error:
        raise QueryError(error.said, text, None if error.at is None else parts.place(error.at)) from None


def _window(text: str, reader: Any) -> str:
    """The clause of the window, which is the inner question's."""
    word = reader.said.get("WINDOW") or reader.said["UNTIL"]
    following = [one.start for one in reader.said.values() if one.start > word.start]
    return " " + text[word.start : min(following, default=len(text))]


def _over(reader: Any, source: str, asked: Any) -> Query:
    """The outer query; without ORDER BY its members are all those of the answer, ranked as they are there."""
    values, kind = reader.values, reader.kind()
    if kind not in (TopK, Above, TopKGroups):
        reader.fail(reader.said["FROM"], "over the answer of another question ask for the best, or for groups")
    values |= {"window": UntilDeleted(), "source": source}
    most = getattr(asked, "most", getattr(asked, "k", None))
    if kind is TopKGroups and not asked.per_columns and most is not None:
        values.setdefault("k", most)  # there are no more groups than rows
    if kind is not TopK or "by" in values:
        made: Query = reader.made(kind)
        return made
    if isinstance(asked, Above) and "k" not in values:
        return Above(asked.threshold, by="score", **values)
    ranked: dict[str, Any] = {"by": "score", "largest": asked.descending, "nulls": "last"}
    if isinstance(asked, TopK):
        ranked |= {"ties": asked.ties, "with_ties": asked.with_ties}
    if isinstance(getattr(asked, "by", None), tuple):
        keys = tuple(f"key_{i + 1}" for i in range(len(asked.by)))
        ranked |= {"by": keys, "largest": asked.directions, "nulls": asked.nulls}
    if "k" not in values:
        ranked |= {"k": most, "per": asked.per_columns}
    return TopK(**{**ranked, **values})


def split(text: str) -> Nested | None:
    """The inner and the outer question of a sentence; None: it is one question."""
    words = Cursor(text)
    opening = next(
        (i for i, word in enumerate(words.words) if word.text == "(" and words.words[i - 1].upper == "FROM"), 0
    )
    if not opening or words.words[opening + 1].upper != "SELECT":
        return None
    words.at = closing = closing_of(words, opening)
    if closing >= len(words.words) - 1:
        words.fail(words.words[opening], "this bracket is not closed")
    words.next()
    begin, end = words.words[opening].start, words.words[closing].start
    named = words.accept("AS") or (words.word.kind in ("word", "name") and words.word.upper not in CLAUSES)
    name = words.name("FROM (SELECT ...) AS top") if named else None
    inner, start, rest = text[begin + 1 : end], begin + 1, words.word.start
    if _is_numbered(words, opening, closing):
        if (after := _past_numbers(words)) is None:
            return None
        whole = text[begin : words.words[after - 1].end]
        inner, start = f"{_ALL}{whole}", begin - len(_ALL)
        words.at, glue = after, ""
        if words.accept("AND"):
            glue = "WHERE "
        elif not _asks_more(words, text[:begin]):
            return None
        rest = words.word.start
        outer = f"{text[:begin]}`{name or SOURCE}` {glue}"
    else:
        outer = f"{text[:begin]}`{name or SOURCE}` "
    return Nested(inner, start, outer + text[rest:], name, begin, rest - len(outer))


def closing_of(words: Cursor, opening: int) -> int:
    """The bracket that closes another one; the end, if none does."""
    depth = 0
    for place in range(opening, len(words.words)):
        depth += (words.words[place].text == "(") - (words.words[place].text == ")")
        if depth == 0:
            return place
    return len(words.words) - 1


def _is_numbered(words: Cursor, opening: int, closing: int) -> bool:
    """Whether a subquery has row numbers in its list."""
    depth = 0
    for place in range(opening + 1, closing):
        word = words.words[place]
        if depth == 0 and word.upper == "FROM":
            return False
        if depth == 0 and word.upper in NUMBERS:
            return True
        depth += (word.text == "(") - (word.text == ")")
    return False


def _past_numbers(words: Cursor) -> int | None:
    """The place after the condition on row numbers, WHERE n <= 10; None: there is none here."""
    if not words.follows("WHERE"):
        return None
    place = words.at + 2
    between = words.words[place].upper == "BETWEEN" if place < len(words.words) else False
    after = place + (4 if between else 2)
    return after if after < len(words.words) else None


def _asks_more(words: Cursor, before: str) -> bool:
    """Whether there is an outer question: aggregates before FROM, or a clause that ranks or groups."""
    if "(" in before:
        return True
    depth = 0
    for word in words.words[words.at :]:
        if depth == 0 and word.upper in CLAUSES and word.upper not in (*_INNERMOST, "BY"):
            return True
        depth += (word.text == "(") - (word.text == ")")
    return False
