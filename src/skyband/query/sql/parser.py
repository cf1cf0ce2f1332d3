"""A query from a sentence in SQL: `sql("SELECT * FROM ... ORDER BY ... LIMIT 10 WINDOW '24 hours'")`.

    SELECT * FROM stream [a, stream b]              two of one stream: pairs
    [WHERE condition]                               which objects can be an answer
    ORDER BY scoring [ASC | DESC] LIMIT k           or, for all above a threshold: ABOVE threshold BY scoring
    [PER column, ...]
    WINDOW n ROWS | WINDOW '24 hours' | WINDOW SPAN n | WINDOW :size | WINDOW EVER | UNTIL DELETED
    [WITH PROBABILITY column] [SEMANTICS 'u-topk'] [THRESHOLD p] [GROUP column]
    [PARTS (part, part low TO high, ...) COMBINE sum] [REPEAT last]      in place of ORDER BY
    [APPROXIMATE sigma] [USING algorithm] [OPTIONS (name = value, ...)]

:name, in place of a number, in a window and in expressions, is what each subscription brings.
Clauses after FROM come in any order. A scoring is an expression, or linear(x = 0.7, y = 0.3), product(...),
quadratic(...), nearest(x = 0.2, y = 0.9) [METRIC manhattan] [WEIGHTS (x = 1, y = 2)], and of pairs
global(x = absdiff, y = sum) [COMBINE product]: any word of `SCORINGS`.

Cost: linear in the text, some 0.1 ms a sentence, and 0.12 s once to load sqlglot.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from skyband.errors import QueryError
from skyband.query.kinds import Above, Query, TopK, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.query.scoring import SCORINGS, scoring_of
from skyband.query.sql.text import CLAUSES
from skyband.query.sql.tokens import Cursor, Word
from skyband.query.windows import Ever, Last, UntilDeleted

MAX_LENGTH = 100_000  # characters
_SHAPE = "SELECT * FROM stream ORDER BY delay DESC LIMIT 10 WINDOW '24 hours'"
_COMMON = {"FROM", "PER", "WINDOW", "UNTIL", "USING", "OPTIONS"}
_RANKED = _COMMON | {"WHERE", "ORDER", "LIMIT"}
_COMBINES = ("SUM", "MEAN", "MIN", "MAX")
_TAKES: dict[type[Query], set[str]] = {  # the clauses of a kind
    TopK: _RANKED | {"APPROXIMATE"},
    Above: _COMMON | {"WHERE", "ABOVE"},
    TopKPairs: _RANKED,
    TopKIncomplete: _COMMON | {"LIMIT", "PARTS", "COMBINE", "REPEAT"},
    TopKUncertain: _RANKED | {"WITH", "SEMANTICS", "THRESHOLD", "GROUP"},
}
_NEEDS = {  # what a kind cannot do without, and what to write
    "by": "ORDER BY is missing: what to rank by? Such as ORDER BY delay DESC",
    "k": "LIMIT is missing: how many? Such as LIMIT 10",
    "window": "WINDOW is missing: how long do objects count? Such as WINDOW 1000 ROWS or WINDOW '24 hours'",
}
_INSTEAD = {
    "GROUP BY": "For one answer per value write PER column.",
    "PARTITION": "For one answer per value write PER column.",
    "HAVING": "For all above a threshold write ABOVE threshold BY scoring.",
    "JOIN": "Pairs are FROM s a, s b.",
    "OVER": "Write ORDER BY, LIMIT, PER and WINDOW as clauses of their own.",
    ",": "Rank by one expression, such as 0.7*x + 0.3*y.",
    "TOP": "Write LIMIT 10.",
}


def sql(text: str) -> Query:
    """Return the query that a sentence in SQL asks; `query.to_sql()` gives the sentence back.

    Parameters
    ----------
    text : str
        SELECT * FROM a stream, then clauses in any order; docs/sql.md has them all.

    Examples
    --------
    >>> sql("SELECT * FROM flights WHERE distance > 500 ORDER BY delay DESC LIMIT 10 PER origin WINDOW '24 hours'")
    TopK(k=10, by='delay', window=Last('24 hours'), where='distance > 500', per=('origin',))
    >>> print(sql("SELECT * FROM s a, s b ORDER BY abs(a.x - b.x) LIMIT 3 WINDOW 1000 ROWS").to_sql("s"))
    SELECT * FROM s a, s b ORDER BY abs(a.x - b.x) ASC LIMIT 3 WINDOW 1000 ROWS

    """
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f"a question in SQL is a text such as: {_SHAPE}; got {text!r}.")
    if len(text) > MAX_LENGTH:
        raise QueryError(f"{len(text):,} characters are too long for a question; the limit is {MAX_LENGTH:,}.")
    return _Reader(text).query()


def is_sql(text: str) -> bool:
    """Whether a text begins as a sentence in SQL, rather than a path or JSON."""
    return re.match(r"\s*select\b", text, re.IGNORECASE) is not None


def culprit(kind: type[Query], values: Mapping[str, Any]) -> str | None:
    """Find the argument to blame: without its value the query would be valid."""
    by = "abs(a.x - b.x)" if kind is TopKPairs else "x"
    good = {"k": 1, "by": by, "window": Last(1), "threshold": 1.0, "parts": ["p"]}
    for key in values:
        tried = {name: value for name, value in values.items() if name != key}
        if key in good:
            tried[key] = good[key]
        try:
            kind(**tried)
        except (QueryError, TypeError):
            continue
        return key
    return None


class _Reader(Cursor):
    """One pass over the words: each clause stores its values, and the places where they stood."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.values: dict[str, Any] = {}
        self.said: dict[str, Word] = {}  # clauses
        self.places: dict[str, int] = {}  # of values
        self.pairs = False
        self.descending = False

    # --- the sentence

    def query(self) -> Query:
        self.begin()
        while self.word.kind != "end":
            word = self.next()
            clause = getattr(self, f"_{word.upper.lower()}", None) if word.upper in CLAUSES else None
            if clause is None:
                self.unknown(word)
            if word.upper in self.said:
                self.fail(word, "is said twice")
            self.said[word.upper] = word
            clause()
        return self.made(self.kind())

    def begin(self) -> None:
        self.expect("SELECT", _SHAPE)
        if not self.accept("*"):
            self.fail(
                self.word,
                "write SELECT *. Which columns come with an answer is said to the Monitor, keep=, not in the question",
            )
        self.said["FROM"] = self.word
        self.expect("FROM", _SHAPE)
        stream, word = self.name(_SHAPE), self.word
        if word.kind == "end" or word.upper in CLAUSES:
            return
        example = f"FROM {stream} a, {stream} b"
        if not self.accept("A"):
            self.fail(word, f"is unexpected after FROM {stream}. A pair of objects is {example}{self.near(word)}")
        self.expect(",", example)
        again = self.word
        if self.name(example) != stream:
            self.fail(again, f"pairs are of one stream, {example}")
        self.expect("B", example)
        self.pairs = True

    def unknown(self, word: Word) -> NoReturn:
        following = self.words[self.at].upper if self.at < len(self.words) else ""
        instead = _INSTEAD.get(f"{word.upper} {following}") or _INSTEAD.get(word.upper)
        hint = f". {instead[:-1]}" if instead else self.near(word)
        self.fail(word, f"no clause begins like this{hint}")

    def near(self, word: Word) -> str:
        clauses = [clause for clause in CLAUSES if clause not in ("SELECT", "FROM", "BY")]
        close = get_close_matches(word.upper, [*clauses, "DESC", "ASC"], 1, 0.7)
        return f". Did you mean {close[0]}?" if close else f". Clauses: {', '.join(clauses)}"

    def kind(self) -> type[Query]:
        marks = {TopKPairs: self.pairs and "FROM", Above: "ABOVE", TopKIncomplete: "PARTS", TopKUncertain: "WITH"}
        for kind, mark in marks.items():
            if mark in self.said:
                return kind
        for only, mark in (("SEMANTICS", "WITH PROBABILITY p"), ("COMBINE", "PARTS (...)")):
            if only in self.said:
                self.fail(self.said[only], f"goes with {mark}, which is missing")
        return TopK

    def made(self, kind: type[Query]) -> Query:
        for clause, word in self.said.items():
            if clause not in _TAKES[kind]:
                known = [one for one in CLAUSES if one in _TAKES[kind]]
                self.fail(word, f"does not go with {_ASKED[kind]}, which takes {', '.join(known)}")
        if "by" in self.values:
            self.direct(kind)
        combine = self.values.get("combine")
        if isinstance(combine, str) and combine not in self.values["parts"] and combine.upper() in _COMBINES:
            self.values["combine"] = combine.lower()
        fields = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
        for field, missing in _NEEDS.items():
            if field in fields and field not in self.values:
                self.fail(self.words[-1], missing)
        for field in self.values.keys() - fields:
            self.fail(self.places[field], f"{field} is no option of {kind.kind}. Options: {', '.join(_options(kind))}")
        try:
            return kind(**self.values)
        except QueryError as error:
            place = self.places.get(culprit(kind, self.values) or "", 0)
            raise QueryError(error.said, self.text, place) from None

    def direct(self, kind: type[Query]) -> None:
        """Set `largest` from ASC or DESC."""
        if kind is Above:
            return
        by = self.values["by"]
        said = self.values.setdefault("largest", kind.usual_direction(by, self.descending))
        means = said if said is not None else not scoring_of(by).smallest_first
        if means != self.descending:
            way = "DESC" if self.descending else "ASC"
            self.fail(self.places["largest"], f"this contradicts ORDER BY ... {way}, which says it already")

    # --- clauses

    def put(self, field: str, start: int, value: Any) -> None:
        self.places[field] = start
        self.values[field] = value

    def _where(self) -> None:
        self.put("where", self.word.start, self.expression())

    def _above(self) -> None:
        example = "ABOVE 60 BY delay"
        self.put("threshold", self.word.start, self.number_or_each(example))
        self.expect("BY", example)
        self.put("by", self.word.start, self.scoring())

    def _order(self) -> None:
        self.expect("BY", "ORDER BY delay DESC")
        self.put("by", self.word.start, self.scoring())
        self.descending = self.accept("DESC")
        if not self.descending:
            self.accept("ASC")

    def _limit(self) -> None:
        self.put("k", self.word.start, self.number_or_each("LIMIT 10"))

    def _per(self) -> None:
        start, names = self.word.start, [self.name("PER origin, carrier")]
        while self.accept(","):
            names.append(self.name("PER origin, carrier"))
        self.put("per", start, names)

    def _window(self) -> None:
        start = self.word.start
        example = "WINDOW 1000 ROWS, WINDOW '24 hours', WINDOW SPAN 300, WINDOW EVER or UNTIL DELETED"
        if self.accept("UNTIL"):
            self._until()
            return
        if self.accept("EVER"):
            self.put("window", start, Ever())
            return
        arguments: dict[str, Any] = {}
        if self.accept("SPAN"):
            arguments["span"] = self.number_or_each(example)
        elif self.word.text == ":" and self.word.kind == "symbol":
            arguments["size"] = self.number_or_each(example)
            if not self.accept("ROWS"):
                self.accept("ROW")
        elif self.word.kind == "string":
            arguments["size"] = self.next().text
        else:
            number, word = self.number(example), self.next()
            if word.kind != "word":
                self.fail(word, f"{number} of what? Write {example}")
            arguments["size"] = number if word.upper in ("ROWS", "ROW") else f"{number} {word.text}"
        try:
            self.put("window", start, Last(**arguments))
        except QueryError as error:
            raise QueryError(error.said, self.text, start) from None

    def _until(self) -> None:
        if "window" in self.values:
            self.fail(self.said["UNTIL"], "a window is said already")
        start = self.words[self.at - 1].start
        self.expect("DELETED", "UNTIL DELETED")
        self.put("window", start, UntilDeleted())

    def _with(self) -> None:
        self.expect("PROBABILITY", "WITH PROBABILITY p")
        self.put("probability", self.word.start, self.name("WITH PROBABILITY p"))

    def _semantics(self) -> None:
        self.put("semantics", self.word.start, self.choice("SEMANTICS 'u-topk'"))

    def _threshold(self) -> None:
        self.put("threshold", self.word.start, self.number_or_each("THRESHOLD 0.5"))

    def _group(self) -> None:
        if self.follows("BY"):
            self.unknown(self.words[self.at - 1])
        self.put("group", self.word.start, self.name("GROUP sensor"))

    def _parts(self) -> None:
        start, example = self.word.start, "PARTS (north, south 0 TO 5)"
        parts: dict[str, tuple[float, float]] = {}

        def part() -> None:
            word = self.next()
            if word.kind not in ("word", "name", "string"):
                self.fail(word, f"a part is expected here, as in {example}")
            if word.text in parts:
                self.fail(word, "is named twice")
            bounds = (0.0, 1.0)
            if self.word.text not in (",", ")"):
                low = self.number(example)
                self.expect("TO", example)
                bounds = (low, self.number(example))
            parts[word.text] = bounds

        self.listed(part, example)
        self.put("parts", start, parts)

    def _combine(self) -> None:
        self.put("combine", self.word.start, self.scoring())

    def _repeat(self) -> None:
        self.put("repeat", self.word.start, self.choice("REPEAT last").lower())

    def _approximate(self) -> None:
        if "USING" in self.said:
            self.fail(self.said["APPROXIMATE"], "is USING PA: say one of the two")
        self.put("sigma", self.word.start, self.number("APPROXIMATE 0.001"))
        self.put("algorithm", self.said["APPROXIMATE"].start, "PA")

    def _using(self) -> None:
        if "APPROXIMATE" in self.said:
            self.fail(self.said["USING"], "APPROXIMATE is USING PA: say one of the two")
        self.put("algorithm", self.word.start, self.choice("USING SMA or USING 'CPM/W'"))

    def _options(self) -> None:
        example = "OPTIONS (buffer = 2000)"

        def option() -> None:
            word, key = self.word, self.name(example)
            if key in self.values or key in _SAID:
                self.fail(word, f"is said {'by a clause of its own' if key in _SAID else 'twice'}")
            self.expect("=", example)
            self.put(key, word.start, self.value(example))

        self.listed(option, example)

    def scoring(self) -> Any:
        word = self.word
        found = SCORINGS.get(word.upper.lower())
        if found is None or not self.follows(word.upper, "("):
            return self.expression(("a", "b") if self.pairs else ())
        self.next()
        try:
            return found.from_sql(self)
        except QueryError as error:
            raise error if error.at is not None else QueryError(error.said, self.text, word.start) from None


def _options(kind: type[Query]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if field.name not in _SAID]  # type: ignore[arg-type]


_SAID = (  # arguments with a clause of their own
    *("k", "by", "window", "where", "per", "threshold", "parts", "combine", "repeat"),
    *("probability", "semantics", "group", "algorithm"),
)
_ASKED: dict[type[Query], str] = {
    TopK: "a top-k question (ORDER BY ... LIMIT)",
    Above: "ABOVE",
    TopKPairs: "pairs (FROM s a, s b)",
    TopKIncomplete: "PARTS",
    TopKUncertain: "WITH PROBABILITY",
}
