"""The top-n form of Flink, Spark and DuckDB: row numbers over an order, and a condition on them.

    SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY g ORDER BY x DESC) <= 10
    SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY x DESC) AS n FROM s WHERE y > 0) WHERE n <= 10

`rank()` in place of `row_number()` lets ties in. As in SQL it is over all rows that ever came, unless WINDOW follows.
"""

from __future__ import annotations

from typing import Any

from skyband.query.sql.nested import NUMBERS
from skyband.query.sql.select_items import SelectItems
from skyband.query.sql.tokens import Word
from skyband.query.windows import Ever

_OVER = "row_number() OVER (PARTITION BY g ORDER BY x DESC)"
_INNER = f"FROM (SELECT *, {_OVER} AS n FROM s) WHERE n <= 10"  # noqa: S608

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}  # a sign, seen from the other side


class RowNumbers(SelectItems):
    """The part of the reader that reads them."""

    said: dict[str, Word]
    numbered: str | None = None  # what the subquery calls its row numbers
    dense: Word | None = None

    def _order(self) -> None:
        raise NotImplementedError

    def _where(self) -> None:
        raise NotImplementedError

    def _qualify(self) -> None:
        turned = self._turned()
        self.row_numbers()
        self._up_to(turned)

    def row_numbers(self) -> None:
        """Read row_number() OVER (...): what to rank by, and per what."""
        word = self.next()
        if word.upper not in NUMBERS:
            self.fail(word, f"a row number is expected here, as in {_OVER} <= 10")
        for text in ("(", ")", "OVER"):
            self.expect(text, _OVER)
        if self.word.kind in ("word", "name"):
            self.fail(self.word, f"a window is written where it is used, without a name: {_OVER}")
        self.expect("(", _OVER)
        if self.accept("PARTITION"):
            self.expect("BY", _OVER)
            self.put("per", self.word.start, self.several(lambda: self.name(_OVER)))
        self.said["ORDER"] = self.word
        self.expect("ORDER", _OVER)
        self._order()
        self.expect(")", _OVER)
        if word.upper != "ROW_NUMBER":
            self.put("with_ties", word.start, True)
        self.dense = word if word.upper == "DENSE_RANK" else None
        self.put("window", word.start, Ever())

    def subquery(self) -> None:
        """Read (SELECT *, row_number() OVER (...) AS n FROM s [WHERE ...]) and the condition on n."""
        self.expect("SELECT", _INNER)
        while True:
            if self.word.upper in NUMBERS and self.words[self.at + 1].text == "(":
                if self.numbered is not None:
                    self.fail(self.word, "row numbers are there already; ask one question at a time")
                self.row_numbers()
                self.accept("AS")
                self.numbered = self.name(_INNER)
            elif not self.accept("*"):
                self.name(_INNER)
            if not self.accept(","):
                break
        if self.numbered is None:
            self.fail(
                self.word,
                f"row numbers are missing, as in {_INNER}",
            )
        self.expect("FROM", _INNER)
        if self.word.text == "(":
            self.fail(self.word, "one subquery at a time: rows come from a stream by its name")
        self.name(_INNER)
        if self.word.kind in ("word", "name") and self.word.upper != "WHERE":
            self.name(_INNER)
        if self.follows("WHERE"):
            self.said["WHERE"] = self.next()
            self._where()
        self.expect(")", _INNER)
        if self.accept("AS") or not self.follows("WHERE"):
            self.name(_INNER)
        self.expect("WHERE", _INNER)
        turned = self._turned()
        word = self.word
        if self.name(_INNER) != self.numbered:
            self.fail(word, f"the condition on a subquery is about its row numbers, {self.numbered} <= 10")
        self._up_to(turned)

    def _turned(self) -> tuple[str, Any] | None:
        """Read a bound before what it bounds, 10 >= n: as n <= 10."""
        if self.word.kind != "number":
            return None
        number, sign = self.number("10 >= n"), self.next()
        if sign.text not in _TURNED:
            self.fail(sign, "a bound of row numbers is n <= 10, or 10 >= n")
        return _TURNED[sign.text], number

    def _up_to(self, turned: tuple[str, Any] | None) -> None:
        """Read <= n, < n, = 1, BETWEEN m AND n, or > m, unless the bound stood before."""
        start, example = self.word.start, "<= 10, or BETWEEN 11 AND 20"
        if turned is None:
            self._read_bounds(start, example)
        else:
            self._bound(start, *turned)
        if self.dense is not None and (self.values.get("k"), self.values.get("offset", 0)) != (1, 0):
            self.fail(
                self.dense,
                "counts different keys, not rows: the answer has no bound. Write rank(), which lets ties in, or "
                "row_number(); dense_rank() = 1 is rank() = 1",
            )

    def _read_bounds(self, start: int, example: str) -> None:
        if self.accept("BETWEEN"):
            first = self.number(example)
            self.expect("AND", example)
            last = self.number(example)
            self.put("offset", start, first - 1)
            self.put("k", start, last - first + 1)
            return
        sign = self.word.text
        if sign not in _TURNED:
            self.expect("<=", example)
        self.next()
        self._bound(start, sign, self.number(example))

    def _bound(self, start: int, sign: str, number: Any) -> None:
        """Row numbers from the first, or up to the last, as a sign says."""
        if sign in ("<", "<="):
            self.put("k", start, number - (sign == "<"))
        elif sign in (">", ">="):
            self.put("offset", start, number - (sign == ">="))
        else:
            self.put("k", start, 1)
            if number != 1:
                self.put("offset", start, number - 1)
