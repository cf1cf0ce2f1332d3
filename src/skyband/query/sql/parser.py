"""A query from a sentence in SQL: `sql("SELECT * FROM ... ORDER BY ... LIMIT 10 WINDOW '24 hours'")`.

    SELECT * FROM stream [a, stream b]              two of one stream: pairs; with [ON condition over a. and b.]
    SELECT column, aggregate [AS name], ... FROM    groups of rows, with GROUP BY column, ... [HAVING condition]
    SELECT ... QUALIFY row_number() OVER (...)      or FROM (SELECT *, row_number() OVER (...) AS n ...) WHERE n <= k
    SELECT ... FROM (SELECT ...) AS name            over the answer of another question (nested.py)
    WITH name AS (SELECT ...) SELECT ... FROM name  the same, named first (with_clause.py)
    [WHERE condition]                               which objects can be an answer
    ORDER BY scoring [ASC | DESC] LIMIT k           or, for all above a threshold: ABOVE threshold BY scoring
    [PER column, ...]
    WINDOW n ROWS | WINDOW '24 hours' | WINDOW SPAN n | WINDOW :size | WINDOW EVER [DECAY '1 hour'] | UNTIL DELETED
    [WITH PROBABILITY column] [SEMANTICS 'u-topk'] [THRESHOLD p] [GROUP column]
    [PARTS (part, part low TO high, ...) COMBINE sum] [REPEAT last]      in place of ORDER BY
    [APPROXIMATE sigma] [USING algorithm] [OPTIONS (name = value, ...)]

:name, in place of a number, in a window and in expressions, is what each subscription brings.
Clauses after FROM come in any order. A scoring is an expression, or linear(x = 0.7, y = 0.3), product(...),
quadratic(...), nearest(x = 0.2, y = 0.9) [METRIC manhattan] [WEIGHTS (x = 1, y = 2)], and of pairs
global(x = absdiff, y = sum) [COMBINE product]: any word of `SCORINGS`, or of SQL_WORDS: similarity(e, [1, 2]).

Cost: linear in the text, some 0.1 ms a sentence, and 0.12 s once to load sqlglot.
"""

from __future__ import annotations

import dataclasses
from difflib import get_close_matches
from functools import partial
from typing import Any, NoReturn

from skyband.errors import QueryError
from skyband.query.aggregates import mentioned
from skyband.query.expressions import parse
from skyband.query.kinds import Above, Query, TopK, TopKGroups, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.query.scoring import SCORINGS, SQL_WORDS, scoring_of
from skyband.query.sql.clauses import ASKED, COMBINES, INSTEAD, NEEDS, SAID, TAKES, culprit, options_of
from skyband.query.sql.grouped import (
    Item,
    checked_condition,
    checked_score,
    checked_where,
    is_grouped,
    keys_of,
    select_list,
    selected,
)
from skyband.query.sql.kind_clauses import KindClauses
from skyband.query.sql.nested import queries_of, split
from skyband.query.sql.row_numbers import RowNumbers
from skyband.query.sql.subqueries import merged
from skyband.query.sql.text import CLAUSES
from skyband.query.sql.tokens import Word
from skyband.query.sql.with_clause import without_with
from skyband.query.windows import Ever, Last, Session, UntilDeleted

MAX_LENGTH = 100_000  # characters
_SHAPE = "SELECT * FROM stream ORDER BY delay DESC LIMIT 10 WINDOW '24 hours'"


def sql(text: str) -> Any:
    """Return the query that a sentence in SQL asks; `query.to_sql()` gives the sentence back.

    A sentence over the answer of another question, FROM (SELECT ...) AS top, is two queries, for `Monitor` to take
    together: {"top": the inner one, "q0": the outer one}. Without AS the inner one is called "source".

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
    queries = queries_of(merged(without_with(text)), _Reader)
    return queries if len(queries) > 1 else queries["q0"]


def columns_after_select(text: str) -> list[tuple[str, str]]:
    """The columns of a row that a sentence names after SELECT, each under its name there; none: all of them."""
    text = merged(without_with(text))
    parts = split(text)
    reader = _Reader(text if parts is None else parts.outer)
    reader.begin()
    items = [] if reader.grouped else reader.items
    return [(item.alias or item.column, item.column) for item in items if item.column not in (None, reader.numbered)]


class _Reader(KindClauses, RowNumbers):
    """One pass over the words: each clause stores its values, and the places where they stood."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.drop_qualifiers()
        self.values: dict[str, Any] = {}
        self.said: dict[str, Word] = {}  # clauses
        self.places: dict[str, int] = {}  # of values
        self.pairs = False
        self.items: list[Item] = []  # the list after SELECT; empty: *
        self.grouped = False
        self.descending = False

    # --- the sentence

    def query(self) -> Query:
        self.read()
        return self.made(self.kind())

    def read(self) -> None:
        """Read all clauses."""
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

    def begin(self) -> None:
        self.expect("SELECT", _SHAPE)
        if self.accept("DISTINCT"):
            self.distinct()
        if self.follows("TOP") and self.words[min(self.at + 1, len(self.words) - 1)].kind == "number":
            self.unknown(self.word)
        if not self.accept("*"):
            self.items = select_list(self)
        elif self.follows(","):
            self.fail(
                self.word, "nothing stands beside *. Rank by an expression, such as ORDER BY x + y; it is the score"
            )
        self.grouped = is_grouped(self, self.items)
        if self.only_distinct is not None:
            self.group_by_items()
        self.said["FROM"] = self.word
        self.expect("FROM", _SHAPE)
        if self.accept("("):
            self.subquery()
            return
        stream, word = self.stream(_SHAPE), self.word
        if word.kind == "end" or word.upper in CLAUSES:
            return
        example = f"FROM {stream} a, {stream} b"
        if not self.accept("A"):
            instead = INSTEAD.get(word.upper) or INSTEAD.get(stream.upper())
            hint = instead[:-1] if instead else f"A pair of objects is {example}{self.near(word)}"
            self.fail(word, f"is unexpected after FROM {stream}. {hint}")
        self.expect(",", example)
        again = self.word
        if self.name(example) != stream:
            self.fail(again, f"pairs are of one stream, {example}")
        self.expect("B", example)
        self.pairs = True

    def unknown(self, word: Word) -> NoReturn:
        following = self.words[self.at].upper if self.at < len(self.words) else ""
        instead = INSTEAD.get(f"{word.upper} {following}") or INSTEAD.get(word.upper)
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
        if self.grouped:
            return TopKGroups
        for only, mark in (("SEMANTICS", "WITH PROBABILITY p"), ("COMBINE", "PARTS (...)")):
            if only in self.said:
                self.fail(self.said[only], f"goes with {mark}, which is missing")
        return TopK

    def made(self, kind: type[Query]) -> Query:
        for clause, word in self.said.items():
            if clause not in TAKES[kind]:
                known = [one for one in (*CLAUSES, "GROUP BY") if one in TAKES[kind]]
                self.fail(word, f"does not go with {ASKED[kind]}, which takes {', '.join(known)}")
        self.best_of_each()
        if (
            "QUALIFY" in self.said
            and kind is TopKGroups
            and (other := {*self.values.get("per", ())} - {*self.values.get("of", ())})
        ):
            self.fail(self.places["per"], f"{min(other)} is no column of GROUP BY, and row numbers here are of groups")
        if "by" in self.values:
            self.direct(kind)
        if kind is TopKGroups:
            self.set_keys()
            self.select()
        combine = self.values.get("combine")
        if isinstance(combine, str) and combine not in self.values["parts"] and combine.upper() in COMBINES:
            self.values["combine"] = combine.lower()
        fields = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
        self.check_items(kind is TopKGroups)
        self.without_limit()
        for field, missing in NEEDS.items():
            if field in fields and field not in self.values:
                self.fail(self.words[-1], missing)
        for field in self.values.keys() - fields:
            self.fail(
                self.places[field], f"{field} is no option of {kind.kind}. Options: {', '.join(options_of(kind))}"
            )
        try:
            return kind(**self.values)
        except QueryError as error:
            place = self.places.get(culprit(kind, self.values) or "", 0)
            raise QueryError(error.said, self.text, place) from None

    def set_keys(self) -> None:
        """Set `by` of groups: their own columns are their ids."""
        if "by" in self.values:
            columns, fail = tuple(self.values.get("of", ())), lambda why: self.fail(self.places["by"], why)
            self.values["by"] = keys_of(self.values["by"], columns, fail)

    def select(self) -> None:
        """Set `select` from the list after SELECT."""
        by = self.values.get("by")
        keys = by if isinstance(by, tuple) else (by,)
        if self.items and all(isinstance(key, str) for key in keys):
            columns = {*self.values.get("of", ()), *self.values.get("per", ())}
            if found := selected(self, self.items, keys, columns):
                self.put("select", self.items[0].word.start, found)

    def direct(self, kind: type[Query]) -> None:
        """Set `largest` from ASC or DESC."""
        if kind is Above:
            return
        by = self.values["by"]
        if isinstance(by, tuple):
            self.values.setdefault("largest", self.ways)
            return
        said = self.values.setdefault("largest", kind.usual_direction(by, self.descending))
        means = said if said is not None else kind is TopKGroups or not scoring_of(by).smallest_first
        if means != self.descending:
            way = "DESC" if self.descending else "ASC"
            self.fail(self.places["largest"], f"this contradicts ORDER BY ... {way}, which says it already")

    # --- clauses

    def put(self, field: str, start: int, value: Any) -> None:
        if field in self.values and field not in ("by", "nulls", "window"):  # which are put anew, by their own clauses
            self.fail(start, f"{field} is said already")
        self.places[field] = start
        self.values[field] = value

    def _where(self) -> None:
        self.put("where", self.word.start, self.expression(check=checked_where))

    def _on(self) -> None:
        self.put("on", self.word.start, self.expression(("a", "b")))

    def _above(self) -> None:
        example = "ABOVE 60 BY delay"
        self.put("threshold", self.word.start, self.number_or_each(example))
        self.expect("BY", example)
        self.put("by", self.word.start, self.scoring())

    def _order(self) -> None:
        self.expect("BY", "ORDER BY delay DESC")
        start = self.word.start
        if self.follows("(") and self.is_order():
            self.keys(start, bracketed=True)
            return
        self.put("by", start, self.scoring())
        self.descending = self.way(self.values["by"])
        if self.follows(",") and not self.pairs:
            self.keys(start, bracketed=False)

    def names(self, example: str) -> list[str]:
        return self.several(lambda: self.name(example))

    def _window(self) -> None:
        start = self.word.start
        example = "WINDOW 1000 ROWS, WINDOW '24 hours', WINDOW SPAN 300, WINDOW EVER or UNTIL DELETED"
        if "UNTIL" in self.said:
            self.fail(self.said["WINDOW"], "a window is said already")
        if self.accept("UNTIL"):
            self._until()
            return
        if self.accept("EVER"):
            self.put("window", start, Ever())
            if self.accept("DECAY"):
                self.put("decay", self.word.start, self.value("WINDOW EVER DECAY '1 hour'"))
            return
        arguments: dict[str, Any] = {}
        session = self.accept("SESSION")
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
            size, span = arguments.get("size"), arguments.get("span")
            self.put("window", start, Session(size, span=span) if session else Last(size, span=span))
        except QueryError as error:
            raise QueryError(error.said, self.text, start) from None

    def _until(self) -> None:
        if self.said.keys() >= {"WINDOW", "UNTIL"}:
            self.fail(self.said["UNTIL"], "a window is said already")
        start = self.words[self.at - 1].start
        self.expect("DELETED", "UNTIL DELETED")
        self.put("window", start, UntilDeleted())

    def _group(self) -> None:
        if self.accept("BY"):
            if "GROUP BY" in self.said:
                self.fail(self.said["GROUP"], "is said twice")
            self.said["GROUP BY"] = self.said.pop("GROUP")
            self.put("of", self.word.start, self.several(self._grouping))
            return
        self.put("group", self.word.start, self.name("GROUP sensor"))

    def _grouping(self) -> str:
        """A column of GROUP BY, by its name or its place after SELECT."""
        if self.word.kind != "number":
            return self.name("GROUP BY symbol, venue")
        word = self.next()
        item = (
            self.items[int(word.text) - 1] if word.text.isdecimal() and 0 < int(word.text) <= len(self.items) else None
        )
        if item is None or item.column is None:
            self.fail(word, "there is no column at this place after SELECT. Name it: GROUP BY symbol, venue")
        return str(item.column)

    def _having(self) -> None:
        self.put("having", self.word.start, self.expression(check=partial(checked_condition, items=self.items)))

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
            if key in self.values or key in SAID:
                self.fail(word, f"is said {'by a clause of its own' if key in SAID else 'twice'}")
            self.expect("=", example)
            self.put(key, word.start, self.value(example))

        self.listed(option, example)

    def ranking(self, text: str) -> None:
        """Check an expression to rank by; one over aggregates groups rows, by their ids without GROUP BY."""
        if self.pairs or not (self.grouped or mentioned(text)):
            parse(text, members=("a", "b") if self.pairs else ())
            return
        self.grouped = True
        if not any(item.alias == text for item in self.items):
            checked_score(text)

    def scoring(self) -> Any:
        word = self.word
        found = (SCORINGS | SQL_WORDS).get(word.upper.lower())
        if found is None or not self.follows(word.upper, "("):
            text = self.expression(check=self.ranking)
            return text if self.pairs or word.upper == "EXPRESSION" else self.meant(text, word)
        self.next()
        try:
            return found.from_sql(self)
        except QueryError as error:
            raise error if error.at is not None else QueryError(error.said, self.text, word.start) from None
