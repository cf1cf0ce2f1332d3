"""Order: several keys, of which the first decides first; also one key that is no number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skyband.query.scoring.base import Columns, Floats, Scoring


@dataclass(frozen=True, repr=False)
class Order(Scoring):
    """Behind `by=("delay", "carrier")`. Its keys have types of their own, so it gives no score."""

    parts: tuple[Scoring, ...]
    word = "order"

    @property
    def label(self) -> str:
        return ", ".join(part.label for part in self.parts) or "the tie rule"

    @property
    def function(self) -> Callable[..., Any] | None:
        return next((part.function for part in self.parts if part.function is not None), None)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.columns))

    def key(self, columns: Columns) -> Floats:
        raise NotImplementedError("the keys of an order are ranked, not computed (tables/orders.py)")

    @property
    def unbounded(self) -> str:
        return f"{self!r} is an order of keys, which has no score"

    def recognised(self) -> tuple[str, str]:
        return self.word, f"{self!r} is an order of keys: the first decides, the next among its equals"

    def to_dict(self) -> list[Any]:
        return [part.to_dict() for part in self.parts]

    def to_sql(self) -> str:
        return ", ".join(part.to_sql() for part in self.parts)

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.parts))}{',' * (len(self.parts) == 1)})"
