"""A scoring by the user's own Python function: of a batch, or of two batches for pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skyband.errors import QueryError
from skyband.query.scoring.base import Columns, Floats, Scoring


@dataclass(frozen=True, eq=False, repr=False)
class Function(Scoring):
    """Behind `by=my_function`. It is named in stored data, never stored, and equal only to itself."""

    call: Callable[..., Any]
    word = "callable"
    scores_pairs = True

    @property
    def function(self) -> Callable[..., Any]:
        return self.call

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def label(self) -> str:
        return str(getattr(self.call, "__qualname__", type(self.call).__qualname__))

    def key(self, columns: Columns) -> Floats:
        key: Floats = self.call(columns)
        return key

    def pair_key(self, older: Mapping[str, Any], newer: Mapping[str, Any]) -> Any:
        return self.call(older, newer)

    @property
    def unbounded(self) -> str:
        return f"what the Python function {self.label} computes is not known"

    def recognised(self) -> tuple[str, str]:
        return "function", "the form of a Python function is not known"

    def to_dict(self) -> dict[str, str]:
        return {"callable": self.label}

    def to_sql(self) -> str:
        raise QueryError(
            f"the Python function {self.label!r} is the scoring, which cannot be said in SQL. "
            "Write the scoring as an expression, such as 0.7*x + 0.3*y."
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and other.call is self.call

    def __hash__(self) -> int:
        return id(self.call)

    def __repr__(self) -> str:
        return repr(self.call)
