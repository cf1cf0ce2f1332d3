"""The list after SELECT for rows, and what else a sentence says about which rows are meant.

SELECT id AS flight_id, x FROM flights AS f ORDER BY f.x DESC      names, places and qualifiers of columns
SELECT DISTINCT ON (id) *                                          of each id only the best row counts
SELECT DISTINCT ON (g) * FROM s ORDER BY g, x DESC                 the best row of each g: LIMIT 1 PER g
SELECT DISTINCT a, b FROM s ORDER BY a                             the values: GROUP BY a, b
ORDER BY x OFFSET 10                                               all but the first, with USING SORTED

The Monitor decides which columns an answer has; what stands after SELECT gives names to keys.
"""

from __future__ import annotations

from difflib import get_close_matches

from skyband.query.expressions import parse
from skyband.query.sql.clauses import INSTEAD
from skyband.query.sql.grouped import Item
from skyband.query.sql.order_clauses import OrderClauses
from skyband.query.sql.text import CLAUSES
from skyband.query.sql.tokens import GONE, Word

_ON = "SELECT DISTINCT ON (id) *"
_ALL = 2**31 - 1  # the largest k
_KEEPS_ALL = ("SORTED", "TMA")


class SelectItems(OrderClauses):
    """The part of the reader that reads them."""

    items: list[Item]
    grouped: bool
    said: dict[str, Word]
    places: dict[str, int]
    only_distinct: Word | None = None  # DISTINCT without ON
    each_of: list[str] | None = None  # the columns of DISTINCT ON, unless that is the id

    def expect(self, text: str, example: str) -> None:
        """Take this word; of what other dialects write here, say what to write instead."""
        before = self.words[self.at - 1] if self.at else self.word  # FILTER (...) reads as a name at first
        for word in (self.word, before) if text == "FROM" and not self.follows(text) else ():
            if word.upper in ("FILTER", "EXCLUDE", "EXCEPT", "REPLACE", "RENAME"):
                self.fail(word, f"is not taken here. {INSTEAD[word.upper][:-1]}")
        super().expect(text, example)

    # --- names

    def drop_qualifiers(self) -> None:
        """Take the name of the stream, or its alias, away from before columns: f.x is x. Pairs keep theirs."""
        names: set[str] = set()
        for place, word in enumerate(self.words):
            if word.upper != "FROM" and word.text != ")":
                continue
            place += 1 + (word.text == ")" and self.words[min(place + 1, len(self.words) - 1)].upper == "AS")
            named = self._names_at(place)
            if "," in named:
                return
            names |= {*named}
        kept: list[Word] = []
        for word in self.words:
            qualified = len(kept) > 1 and kept[-1].text == "." and kept[-2].kind in ("word", "name")
            column = word.kind in ("word", "name") or word.text == "*"
            if qualified and column and kept[-2].text in names and not self._dotted(kept):
                start, end = kept[-2].start, kept[-1].end
                self.bare = self.bare[:start] + GONE * (end - start) + self.bare[end:]
                del kept[-2:]
                word = Word("name" if word.upper in CLAUSES else word.kind, word.text, word.start, word.end)
            kept.append(word)
        self.words = kept

    def _dotted(self, kept: list[Word]) -> bool:
        """Whether what was read last is part of the stream's own name, FROM db.s."""
        return len(kept) > 2 and kept[-3].upper in ("FROM", ".")

    def _names_at(self, place: int) -> list[str]:
        """The name of a stream and its alias; with a comma after them: pairs."""
        found: list[str] = []
        for word in self.words[place : place + 6]:
            if word.text == "," and found:
                return [*found, ","]
            if word.upper in CLAUSES or word.kind not in ("word", "name"):
                if word.text != ".":
                    break
            elif word.upper != "AS":
                found.append(word.text)
        return found

    def stream(self, example: str) -> str:
        """Read the name of the stream, which may have dots, and its alias."""
        name = self.name(example)
        while self.accept("."):
            name = self.name(example)
        pair = self.follows("A") and self.words[min(self.at + 1, len(self.words) - 1)].text == ","
        typo = self.word.kind == "word" and get_close_matches(self.word.upper, CLAUSES, 1, 0.7)
        plain = self.word.kind in ("word", "name") and self.word.upper not in CLAUSES and not pair and not typo
        if self.accept("AS") or plain:
            alias = self.word
            if self.name(example) and alias.upper not in CLAUSES and self.follows(","):
                self.fail(alias, f"a pair of objects is FROM {name} a, {name} b")
        return name

    def meant(self, text: str, word: Word) -> str:
        """What ORDER BY says: as typed, or the item of that name or place."""
        if text.isdecimal():
            if not 1 <= int(text) <= len(self.items):
                self.fail(word, f"there is no item {text} after SELECT. Name the column")
            return self.items[int(text) - 1].text
        return next((item.text for item in self.items if item.alias == text), text)

    def check_items(self, grouped: bool) -> None:
        """Refuse a computed item that is no key: an answer has columns as they came."""
        by = self.values.get("by", ())
        keys = [key for key in (by if isinstance(by, tuple) else (by,)) if isinstance(key, str)]
        for item in [] if grouped else self.items:
            if item.column is None and not any(parse(item.text).tree == parse(key).tree for key in keys):
                self.fail(
                    item.word,
                    "an answer has columns as they came, besides the score and the keys. Rank by it, or compute it "
                    "before pushing",
                )

    def _per(self) -> None:
        self.put("per", self.word.start, self.several(self._named))

    def _named(self) -> str | tuple[str, str]:
        """A column, or a column AS another name."""
        column = self.name("PER origin, carrier")
        return (self.name("PER origin AS airport"), column) if self.accept("AS") else column

    # --- distinct

    def distinct(self) -> None:
        """Read what stands behind DISTINCT."""
        start = self.word.start
        if not self.accept("ON"):
            self.only_distinct = self.words[self.at - 1]
            return
        columns = self.listed(lambda: self.name(_ON), _ON)
        if [column.lower() for column in columns] == ["id"]:
            self.put("distinct", start, "best")
        else:
            self.each_of, self.places["per"] = columns, start

    def group_by_items(self) -> None:
        """DISTINCT a, b is GROUP BY a, b."""
        assert self.only_distinct is not None
        if not self.items or self.grouped or any(item.column is None or item.alias for item in self.items):
            self.fail(
                self.only_distinct,
                f"is of columns, SELECT DISTINCT a, b, or of ids, {_ON}. The best row of each value is "
                "SELECT DISTINCT ON (a) * ... ORDER BY a, x DESC, or LIMIT 1 PER a",
            )
        self.grouped = True
        self.put("of", self.only_distinct.start, [str(item.column) for item in self.items])

    def best_of_each(self) -> None:
        """DISTINCT ON (g) ... ORDER BY g, x is LIMIT 1 PER g, by x."""
        if self.each_of is None:
            return
        start = self.places.pop("per")
        for field in ("k", "offset", "per"):
            if field in self.values:
                self.fail(
                    self.places[field], "this is about the answers of DISTINCT ON, one for each value. Leave it out"
                )
        by = self.values.get("by", ())
        keys, ways = (list(by), list(self.ways)) if isinstance(by, tuple) else ([by], [self.descending])
        while keys and keys[0] in self.each_of:
            del keys[0], ways[0]
        self.put("per", start, self.each_of)
        self.put("k", start, 1)
        self.put("by", self.places.get("by", start), keys[0] if len(keys) == 1 else tuple(keys))
        self.descending, self.ways = len(keys) == 1 and ways[0], tuple(ways)

    # --- limits

    def without_limit(self) -> None:
        """OFFSET without LIMIT: all but the first, if the sentence says that the whole window may be kept."""
        if "offset" not in self.values or "k" in self.values:
            return
        if str(self.values.get("algorithm", "")).upper() not in _KEEPS_ALL:
            self.fail(
                self.places["offset"],
                "without LIMIT this asks for all objects but the first, so the whole window is kept, and every object "
                "of it is an answer. Add LIMIT; or say USING SORTED, which keeps the window",
            )
        self.values["k"], self.places["k"] = _ALL - int(self.values["offset"]), self.places["offset"]
        self.values["algorithm"] = "SORTED"
