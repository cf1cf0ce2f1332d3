"""Clauses of TopKUncertain and TopKIncomplete: WITH PROBABILITY, SEMANTICS, THRESHOLD; PARTS, COMBINE, REPEAT."""

from __future__ import annotations

from typing import Any

from skyband.query.sql.tokens import Cursor


class KindClauses(Cursor):
    """The part of the reader that reads them; `put` and `scoring` are the reader's."""

    def put(self, field: str, start: int, value: Any) -> None:
        raise NotImplementedError

    def scoring(self) -> Any:
        raise NotImplementedError

    def _with(self) -> None:
        self.expect("PROBABILITY", "WITH PROBABILITY p")
        self.put("probability", self.word.start, self.name("WITH PROBABILITY p"))

    def _semantics(self) -> None:
        self.put("semantics", self.word.start, self.choice("SEMANTICS 'u-topk'"))

    def _threshold(self) -> None:
        self.put("threshold", self.word.start, self.number_or_each("THRESHOLD 0.5"))

    def _parts(self) -> None:
        start, example = self.word.start, "PARTS (north, south 0 TO 5)"
        parts: dict[str, tuple[float, float]] = {}

        def part() -> None:
            word = self.next()
            if word.kind not in ("word", "name", "string") and word.text != "*":
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
        if self.follows("ASC") or self.follows("DESC"):
            self.put("largest", self.word.start, self.next().upper == "DESC")

    def _repeat(self) -> None:
        self.put("repeat", self.word.start, self.choice("REPEAT last").lower())
