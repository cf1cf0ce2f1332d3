"""The words of a sentence in SQL, and a cursor over them: its errors point at the word.

Words come from sqlglot's tokenizer in Spark's dialect, expressions go to `expressions.parse`; nothing is executed. An
expression ends at the first word that begins a clause, or follows an operand, which no name can in an expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from skyband.errors import QueryError
from skyband.query.each import Each
from skyband.query.expressions import parse
from skyband.query.sql.text import RESERVED

_INFIX = {"AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE"}
GONE = "\x1f"  # in place of characters that are no part of an expression
_BRANCHES = {"WHEN", "THEN", "ELSE"}


@dataclass(frozen=True)
class Word:
    """One word of the sentence. `kind`: "word", "name" (in backticks), "string", "number", "symbol", "end"."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        return "" if self.kind in ("name", "string") else self.text.upper()


def _words(text: str) -> list[Word]:
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import TokenError

    try:
        tokens = Dialect.get_or_raise("spark").tokenize(text)
    except TokenError:
        raise QueryError("a quote, a backtick or a comment is not closed.", text, _unclosed(text)) from None
    kinds = {"STRING": "string", "IDENTIFIER": "name", "NUMBER": "number"}
    words = []
    for token in tokens:
        kind = kinds.get(token.token_type.name)
        if kind is not None:
            words.append(Word(kind, token.text, token.start, token.end + 1))
            continue
        for match in re.finditer(r"\S+", text[token.start : token.end + 1]):  # ORDER BY is one token
            kind = "word" if match[0].isidentifier() else "symbol"
            words.append(Word(kind, match[0], token.start + match.start(), token.start + match.end()))
    while words and words[-1].text == ";":
        words.pop()
    return [*words, Word("end", "", len(text.rstrip()), len(text))]


_CLOSED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|/\*|.""", re.DOTALL)


def _unclosed(text: str) -> int:
    pieces = (match for match in _CLOSED.finditer(text) if match[0] in ("'", '"', "`", "/*"))
    return next((match.start() for match in pieces), 0)


class Cursor:
    """A place in a sentence, from which one word after the other is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = text  # what expressions are read from: without qualifiers of columns
        self.words = _words(text)
        self.at = 0

    @property
    def word(self) -> Word:
        return self.words[self.at]

    def next(self) -> Word:
        word = self.word
        self.at += word.kind != "end"
        return word

    def follows(self, *texts: str) -> bool:
        """Whether these words come next."""
        ahead = self.words[self.at : self.at + len(texts)]
        return [word.upper for word in ahead] == list(texts)

    def accept(self, text: str) -> bool:
        found = self.follows(text)
        self.at += found
        return found

    def expect(self, text: str, example: str) -> None:
        if not self.accept(text):
            self.fail(self.word, f"{text} is expected here, as in {example}")

    def fail(self, at: Word | int, message: str) -> NoReturn:
        start = at if isinstance(at, int) else at.start
        seen = f"{self.text[at.start : at.end]}: " if isinstance(at, Word) and at.kind != "end" else ""
        raise QueryError(f"{seen}{message}{'' if message.endswith('?') else '.'}", self.text, start)

    def name(self, example: str) -> str:
        word = self.next()
        if word.kind not in ("word", "name"):
            self.fail(word, f"a name is expected here, as in {example}")
        return word.text

    def number(self, example: str) -> float:
        sign = -1 if self.accept("-") else 1
        point = "." if self.accept(".") else ""  # .5 is two words
        word = self.next()
        if word.upper in ("INFINITY", "INF") and not point:
            return sign * float("inf")
        if word.kind != "number" or (point and not word.text[0].isdecimal()):
            self.fail(word, f"a number is expected here, as in {example}")
        try:
            return sign * (int(word.text) if word.text.isdecimal() and not point else float(point + word.text))
        except ValueError:
            self.fail(word, f"this is no number; one is expected here, as in {example}")

    def number_or_each(self, example: str) -> Any:
        """A number, or :name for what each subscription brings."""
        if not self.accept(":"):
            return self.number(example)
        if self.word.start != self.words[self.at - 1].end:
            self.fail(self.word, "a subscription's value is written without a space, as in :budget")
        return Each(self.name(":budget"))

    def listed(self, item: Callable[[], Any], example: str) -> list[Any]:
        """Items in brackets."""
        self.expect("(", example)
        found = self.several(item)
        self.expect(")", example)
        return found

    def several(self, item: Callable[[], Any]) -> list[Any]:
        """Items with commas between them, at least one."""
        found = [item()]
        while self.accept(","):
            found.append(item())
        return found

    def terms(self, value: Callable[[], Any], example: str) -> dict[str, Any]:
        """(name = value, ...)"""
        found: dict[str, Any] = {}

        def term() -> None:
            word = self.word
            name = self.name(example)
            if name in found:
                self.fail(word, "is named twice")
            self.expect("=", example)
            found[name] = value()

        self.listed(term, example)
        return found

    def expression(self, members: tuple[str, ...] = (), check: Callable[[str], object] | None = None) -> str:
        """The text up to the first word that follows an operand and is no part of an expression.

        check: raises a QueryError where the text is wrong; None: an expression over a row.
        """
        first = self.word
        if first.upper == "EXPRESSION" and self.words[self.at + 1].kind == "string":
            self.at += 2
            text, start = self.words[self.at - 1].text, None
        else:
            last = self.skim(first)
            text, start = self.bare[first.start : last.end].replace(GONE, ""), first.start
            if first is last and first.kind == "name" and first.text.isidentifier():
                text = first.text  # `order` is the column order
        try:
            _ = parse(text, members=members) if check is None else check(text)
        except QueryError as error:
            at = first.start if start is None or error.at is None else self.place(start, error.at)
            raise QueryError(error.said, self.text, at) from None
        return text

    def place(self, start: int, at: int) -> int:
        """Where a character of an expression stands in the sentence."""
        there = [place for place in range(start, len(self.bare)) if self.bare[place] != GONE]
        return there[at] if at < len(there) else len(self.text)

    def skim(self, first: Word) -> Word:
        depth, after, last = 0, False, None  # after: an operand has ended
        while (word := self.word).kind != "end":
            dotted = last is not None and last.text in (".", ":")
            ours = last is not None and self.continues(last, word)
            if depth == 0 and (word.text in (",", ")", ";") or (after and not ours and self.is_foreign(word))):
                break
            if word.upper in RESERVED and not dotted and not ours:
                why = "a bracket or a case is not closed before it" if after else "an operand is missing before it"
                self.fail(word, f"{why}; if it is a column, write `{word.text}`")
            opens = word.text == "(" or word.upper == "CASE"
            closes = word.text == ")" or word.upper == "END"
            depth += opens - closes
            operand = word.kind in ("name", "string", "number") or (
                word.kind == "word" and word.upper not in _INFIX | _BRANCHES | {"CASE"}
            )
            after = closes or dotted or (operand and not opens)
            last = self.next()
        if last is None:
            self.fail(first, "an expression is expected here, such as delay or 0.7*x + 0.3*y")
        return last

    def is_foreign(self, word: Word) -> bool:
        return word.kind in ("name", "string", "number") or (
            word.kind == "word" and word.upper not in _INFIX | _BRANCHES | {"END"}
        )

    def continues(self, last: Word, word: Word) -> bool:
        """Whether two words belong together that would else begin something new."""
        if word.kind == "string":
            return last.upper in ("DATE", "TIMESTAMP", "ESCAPE")
        if word.upper == "ESCAPE":
            return last.kind == "string"
        before = self.words[self.at - 3 : self.at - 1]  # extract(year from time)
        return word.upper == "FROM" and [one.upper for one in before] == ["EXTRACT", "("]

    def choice(self, example: str) -> str:
        word = self.next()
        if word.kind not in ("word", "string"):
            self.fail(word, f"one of a few words is expected here, as in {example}")
        return word.text

    def value(self, example: str) -> Any:
        if self.word.kind in ("word", "string"):
            word = self.next()
            return {"TRUE": True, "FALSE": False, "NULL": None}.get(word.upper, word.text)
        return self.number(example)
