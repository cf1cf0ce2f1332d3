"""Subqueries that rank nothing, and row numbers by name: the same sentence in the words that the reader takes.

    SELECT * FROM (SELECT * FROM s WHERE y > 0) t ORDER BY x LIMIT 3
        SELECT * FROM s WHERE y > 0 ORDER BY x LIMIT 3
    SELECT * FROM (SELECT g, sum(x) AS n FROM s GROUP BY g) ORDER BY n LIMIT 3
        SELECT g, sum(x) AS n FROM s GROUP BY g ORDER BY n LIMIT 3
    SELECT * FROM (SELECT g, sum(x), rank() OVER (ORDER BY sum(x)) AS r FROM s GROUP BY g) WHERE r <= 3
        SELECT g, sum(x) FROM s GROUP BY g QUALIFY rank() OVER (ORDER BY sum(x)) <= 3
    SELECT a, rank() OVER (ORDER BY x) AS r FROM s QUALIFY r <= 3
        SELECT a FROM s QUALIFY rank() OVER (ORDER BY x) <= 3
    WHERE n > 1 AND n <= 5, of row numbers n
        WHERE n BETWEEN 2 AND 5

Cost: linear in the text for each pair of subqueries, of which there are at most 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from skyband.query.aggregates import mentioned
from skyband.query.sql.nested import NUMBERS, closing_of
from skyband.query.sql.text import CLAUSES
from skyband.query.sql.tokens import Cursor, Word

_MOST = 16  # subqueries; a sentence of more is taken as it is
_CUTS = ("FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "UNTIL")  # clauses of a subquery that ranks nothing


@dataclass(frozen=True)
class Item:
    """An item of a list after SELECT: its text, and its name."""

    text: str
    name: str
    written: str
    number: str | None = None  # of a row number: its call, without the name


def merged(text: str) -> str:
    """The sentence without subqueries that rank nothing."""
    text = _counted(text)
    if len(_selects(text)[1]) <= _MOST:
        for rule in (_without_subquery, _as_qualify, _inlined, _between):
            while (shorter := rule(text)) is not None:
                text = shorter
    return text


def _counted(text: str) -> str:
    """count(1) is count(*)."""
    words, found, end = Cursor(text).words, "", 0
    for word, bracket, number, closing in zip(words, words[1:], words[2:], words[3:], strict=False):
        if (word.upper, bracket.text, number.kind, closing.text) == ("COUNT", "(", "number", ")"):
            found, end = f"{found}{text[end : number.start]}*", number.end
    return found + text[end:]


class _Select:
    """A SELECT from its word on, up to the bracket that ends it, or the end."""

    def __init__(self, text: str, words: list[Word], at: int) -> None:
        self.text, self.words, self.at = text, words, at
        depth, self.end, self.clauses, self.commas = 0, len(words) - 1, dict[str, int](), list[int]()
        for place in range(at, len(words)):
            word = words[place]
            if word.text == ")" and depth == 0:
                self.end = place
                break
            depth += (word.text == "(") - (word.text == ")")
            if depth == 0 and word.kind == "word" and word.upper in CLAUSES:
                self.clauses.setdefault(word.upper, place)
            if depth == 0 and word.text == "," and "FROM" not in self.clauses:
                self.commas.append(place)

    def part(self, first: int, last: int) -> str:
        """The text of some words."""
        return self.text[self.words[first].start : self.words[last - 1].end] if first < last else ""

    def clause(self, name: str) -> str | None:
        """What a clause says, without its word."""
        if name not in self.clauses:
            return None
        begin = self.clauses[name] + 1 + (name in ("GROUP", "ORDER"))
        return self.part(begin, self.after(name))

    def after(self, name: str) -> int:
        """The place after a clause."""
        later = [place for word, place in self.clauses.items() if place > self.clauses[name] and word != "BY"]
        return min([*later, self.end])

    def items(self) -> list[Item] | None:
        """The list after SELECT; None: something in it is not an item with a name."""
        if "FROM" not in self.clauses:
            return None
        bounds = [self.at, *self.commas, self.clauses["FROM"]]
        found = [self._item(begin + 1, end) for begin, end in pairwise(bounds)]
        return None if None in found else [one for one in found if one is not None]

    def _item(self, begin: int, end: int) -> Item | None:
        words = self.words[begin:end]
        if not words:
            return None
        written, last = self.part(begin, end), words[-1]
        named = len(words) > 1 and last.kind in ("word", "name") and words[-2].text not in (".", "*", "+", "-", "/")
        stop = end - (1 + (words[-2].upper == "AS") if named else 0)
        text = self.part(begin, stop)
        number = text if words[0].upper in NUMBERS and len(words) > 1 and words[1].text == "(" else None
        return Item(text, last.text if named or len(words) == 1 else text, written, number)


def _selects(text: str) -> tuple[list[Word], list[int]]:
    """The words of a sentence, and where its subqueries begin, the innermost last."""
    words = Cursor(text).words
    return words, [
        i + 2
        for i in range(len(words) - 2)
        if words[i].upper == "FROM" and words[i + 1].text == "(" and words[i + 2].upper == "SELECT"
    ]


def _outer(text: str, words: list[Word], inner: int) -> _Select:
    """The SELECT around a subquery."""
    depth, place = 0, inner - 2
    while place > 0 and (depth or words[place].upper != "SELECT"):
        depth += (words[place].text == ")") - (words[place].text == "(")
        place -= 1
    return _Select(text, words, place)


def _alias(words: list[Word], after: int) -> tuple[str, int]:
    """The name that follows a bracket, and the place after it."""
    place = after + (words[after].upper == "AS")
    word = words[place]
    if word.kind in ("word", "name") and word.upper not in CLAUSES:
        return word.text, place + 1
    return "", after


def _without_subquery(text: str) -> str | None:
    """One subquery less; None: all that are left rank something."""
    words, places = _selects(text)
    for at in reversed(places):
        inner, outer = _Select(text, words, at), _outer(text, words, at)
        closing = closing_of(Cursor(text), at - 1)
        if not {*inner.clauses} <= {"SELECT", "BY", *_CUTS} or closing >= len(words) - 1 or "FROM" not in outer.clauses:
            continue
        made = _merge(text, inner, outer, closing)
        if made is not None:
            return made
    return None


def _merge(text: str, inner: _Select, outer: _Select, closing: int) -> str | None:
    words, items = inner.words, inner.items()
    stream = inner.clause("FROM") or ""
    if items is None or not stream or "(" in stream or "," in stream or any(item.number for item in items):
        return None
    alias, rest = _alias(words, closing + 1)
    if not any(word.text == alias and dot.text == "." for word, dot in pairwise(words)):
        alias = ""
    if alias and " " in stream:  # which has a name of its own
        return None
    conditions = [inner.clause("WHERE")]
    theirs = None
    if rest < len(words) and words[rest].upper == "WHERE":
        theirs, rest = outer.clause("WHERE"), outer.after("WHERE")
    grouped = inner.clause("GROUP")
    chosen = inner.part(inner.at + 1, inner.clauses["FROM"])
    if grouped is None:
        plain = chosen == "*" or all(item.written == item.name and not mentioned(item.text) for item in items)
        if "HAVING" in inner.clauses or not plain:
            return None
        head = text[outer.words[outer.at].start : words[inner.at - 1].start]
        conditions.append(theirs)
        body = f"{head}{stream} {alias}{_said('WHERE', conditions)}"
    else:
        listed = _listed(outer, items, chosen)
        if listed is None:
            return None
        having = [inner.clause("HAVING")]
        if theirs is not None:
            meant = _meant(theirs, items, alias)
            (having if mentioned(meant) else conditions).append(meant)
        where, having_ = _said("WHERE", conditions), _said("HAVING", having)
        body = f"SELECT {listed} FROM {stream} {alias}{where} GROUP BY {grouped}{having_}"  # noqa: S608
    window = next((f" {name} {inner.clause(name)}" for name in ("WINDOW", "UNTIL") if name in inner.clauses), "")
    tail = text[words[rest].start :].rstrip().removesuffix(";") if rest < len(words) else ""
    return f"{text[: outer.words[outer.at].start]}{body} {tail}{window}"


def _said(clause: str, conditions: list[str | None]) -> str:
    there = [one for one in conditions if one]
    return (
        "" if not there else f" {clause} {there[0] if len(there) == 1 else ' AND '.join(f'({one})' for one in there)}"
    )


def _listed(outer: _Select, items: list[Item], chosen: str) -> str | None:
    """The outer list in terms of the stream; None: it computes something."""
    wanted = outer.items()
    if wanted is None:
        return None
    known = {item.name: item for item in items}
    found = []
    for item in wanted:
        name = item.text.rpartition(".")[2]
        if name == "*":
            found.append(chosen)
        elif item.number is not None:
            found.append(item.written)
        elif name in known:
            own = known[name]
            shown = item.name if item.name != item.text else own.name
            found.append(own.text if shown == own.text else f"{own.text} AS {shown}")
        else:
            return None
    return ", ".join(found)


def _meant(condition: str, items: list[Item], alias: str) -> str:
    """A condition on named items, in terms of the stream."""
    known, found, end = {item.name: item for item in items}, "", 0
    words = Cursor(condition).words
    for place, word in enumerate(words[:-1]):
        if alias and word.text == alias and words[place + 1].text == ".":
            found, end = found + condition[end : word.start], words[place + 1].end
        elif word.kind in ("word", "name") and word.text in known and known[word.text].text != word.text:
            found, end = f"{found}{condition[end : word.start]}({known[word.text].text})", word.end
    return found + condition[end:]


def _as_qualify(text: str) -> str | None:
    """A condition on the row numbers of groups in a subquery, as QUALIFY; None: there is none."""
    words, places = _selects(text)
    for at in reversed(places):
        inner, outer = _Select(text, words, at), _outer(text, words, at)
        items = inner.items()
        if "GROUP" not in inner.clauses or items is None or not any(item.number for item in items):
            continue
        closing = closing_of(Cursor(text), at - 1)
        if closing >= len(words) - 1:
            continue
        _, rest = _alias(words, closing + 1)
        numbers = next(item for item in items if item.number)
        there = outer.clauses.get("WHERE") == rest
        condition = (outer.clause("WHERE") or "") if there else ""
        shown = outer.part(outer.at + 1, outer.clauses["FROM"])
        bound = [word.text for word in Cursor(condition).words[:-1]]
        one = len(bound) == 3 or (len(bound) == 5 and bound[1].upper() == "BETWEEN")
        if not one or numbers.name not in (bound[0], bound[2]) or not shown.rstrip().endswith("*"):
            continue
        listed = ", ".join(item.written for item in items if item is not numbers)
        call = " ".join(str(numbers.number) if word == numbers.name else word for word in bound)
        rest = outer.after("WHERE")
        body = inner.part(inner.clauses["FROM"], inner.end)
        return f"{text[: words[outer.at].start]}SELECT {listed} {body} QUALIFY {call} {text[words[rest].start :]}"
    return None


def _inlined(text: str) -> str | None:
    """QUALIFY with the row numbers themselves in place of their name after SELECT; None: it has no name."""
    words = Cursor(text).words
    select = _Select(text, words, 0)
    items = select.items() if words[0].upper == "SELECT" else None
    if items is None or "QUALIFY" not in select.clauses:
        return None
    numbers = next((item for item in items if item.number), None)
    if numbers is None:
        return None
    condition = select.clause("QUALIFY") or ""
    named = next((word for word in Cursor(condition).words if word.text == numbers.name), None)
    if named is None:
        return None
    listed = ", ".join(item.written for item in items if item is not numbers) or "*"
    call = f"{condition[: named.start]}{numbers.number}{condition[named.end :]}"
    body = select.part(select.clauses["FROM"], select.clauses["QUALIFY"])
    return f"SELECT {listed} {body} QUALIFY {call} {text[words[select.after('QUALIFY')].start :]}"


def _ends_of_over(words: list[Word]) -> list[int]:
    """The brackets that close OVER (...)."""
    opened, found = list[int](), []
    for i, word in enumerate(words):
        if word.text == "(":
            opened.append(i)
        elif word.text == ")" and opened and words[opened.pop() - 1].upper == "OVER" and i + 2 < len(words):
            found.append(i)
    return found


def _between(text: str) -> str | None:
    """N > 1 AND n <= 5 of row numbers n as one condition; None: there is none."""
    words = Cursor(text).words
    named = {words[i + 1 + (words[i + 1].upper == "AS")].text for i in _ends_of_over(words)}
    for i in range(len(words) - 6):
        name, low, first, and_, again, high, last = words[i : i + 7]
        signs = {low.text[:1], high.text[:1]}
        if not (name.text == again.text and name.text in named and and_.upper == "AND" and signs == {"<", ">"}):
            continue
        if words[i - 1].upper not in ("WHERE", "QUALIFY") or not first.text.isdecimal() or not last.text.isdecimal():
            continue
        bounds = {low.text: int(first.text), high.text: int(last.text)}
        begin = next(number + (sign == ">") for sign, number in bounds.items() if sign in (">", ">="))
        end = next(number - (sign == "<") for sign, number in bounds.items() if sign in ("<", "<="))
        return f"{text[: name.start]}{name.text} BETWEEN {begin} AND {end}{text[last.end :]}"
    return None
