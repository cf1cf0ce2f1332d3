"""The clauses of orders: several keys, NULLS FIRST or LAST, LIMIT by a column, OFFSET,
FETCH FIRST ... WITH TIES, DISTINCT ON (id).
"""

from __future__ import annotations

from typing import Any

from skyband.query.scoring import Scoring
from skyband.query.sql.tokens import Cursor


class OrderClauses(Cursor):
    """The part of the reader that reads them; `values` and `put` are the reader's."""

    values: dict[str, Any]
    ways: tuple[bool, ...] = ()  # of the keys of an order: whether the largest is best
    descending = False

    def put(self, field: str, start: int, value: Any) -> None:
        raise NotImplementedError

    def scoring(self) -> Any:
        raise NotImplementedError

    def way(self, by: Any) -> bool:
        """Read DESC or ASC, and where nulls go; whether the largest is best."""
        descending = self.accept("DESC")
        if not descending and not self.accept("ASC") and isinstance(by, Scoring) and by.best_first_in_sql:
            descending = not by.smallest_first
        if self.accept("NULLS"):
            word = self.next()
            if word.upper not in ("FIRST", "LAST"):
                self.fail(word, "nulls come first or last, as in NULLS LAST")
            if self.values.get("nulls", word.upper.lower()) != word.upper.lower():
                self.fail(
                    word,
                    "nulls go one way for all keys of an order. Let a key before it say the other way, as in "
                    "ORDER BY x IS NULL DESC, x DESC, name NULLS LAST, where nulls of x come first",
                )
            self.put("nulls", word.start, word.upper.lower())
        return descending

    def keys(self, start: int, *, bracketed: bool) -> None:
        """Read an order of several keys, of which the first may have been read; in brackets also of one, or none."""
        keys: list[Any] = [] if bracketed else [self.values["by"]]
        ways = [] if bracketed else [self.descending]
        if bracketed:
            self.next()
        while not (bracketed and self.follows(")")) and (not keys or self.accept(",")):
            keys.append(self.scoring())
            ways.append(self.way(keys[-1]))
        if bracketed:
            self.expect(")", "ORDER BY (delay DESC)")
        self.put("by", start, tuple(keys))
        self.ways = tuple(ways)

    def is_order(self) -> bool:
        """Whether the bracket that opens here holds keys with directions, or nothing: it is no expression."""
        depth = 0
        for place in range(self.at, len(self.words)):
            depth += (self.words[place].text == "(") - (self.words[place].text == ")")
            if depth == 1 and self.words[place].upper in ("ASC", "DESC"):
                return True
            if depth <= 0:
                return place == self.at + 1
        return False

    def _offset(self) -> None:
        self.put("offset", self.word.start, self.number_or_each("OFFSET 10"))
        if not self.accept("ROWS"):
            self.accept("ROW")

    def _fetch(self) -> None:
        example = "FETCH FIRST 10 ROWS WITH TIES"
        if not self.accept("FIRST"):
            self.expect("NEXT", example)
        one = self.word.upper in ("ROW", "ROWS")
        self.put("k", self.word.start, 1 if one else self.number_or_each(example))
        if not self.accept("ROWS"):
            self.expect("ROW", example)
        if self.accept("WITH"):
            self.expect("TIES", example)
            self.put("with_ties", self.word.start, True)
        else:
            self.expect("ONLY", example)

    def _limit(self) -> None:
        example = "LIMIT 10, or LIMIT n MAX 100"
        if self.word.kind in ("word", "name") and self.words[self.at + 1].upper == "MAX":
            self.put("k", self.word.start, self.name(example))
            self.expect("MAX", example)
            self.put("k_max", self.word.start, self.number(example))
            if self.follows("WITH", "TIES"):
                self.put("with_ties", self.word.start, True)
                self.at += 2
            return
        self.put("k", self.word.start, self.number_or_each("LIMIT 10"))
