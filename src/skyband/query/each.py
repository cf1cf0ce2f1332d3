"""Each: a value that every subscription brings itself, from a column of its table.

A query with `Each` stands for one query per subscription. `Need` says which column a query needs, and what for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from skyband.errors import QueryError

#: What a value is used for; it decides which values are right.
Role: TypeAlias = Literal["k", "threshold", "number", "weight", "size", "span", "literal", "vector", "direction"]


@dataclass(frozen=True, repr=False)
class Each:
    """A value that each subscription brings: k, a number of a scoring, a threshold, or the size of a window.

    In expressions, `where` and SQL it is written `:column`.

    Parameters
    ----------
    column : str
        The column of the table of subscriptions that holds the value.

    Examples
    --------
    >>> from skyband import Last, Nearest, TopK
    >>> riders = TopK(Each("k"), by=Nearest({"x": Each("x"), "y": Each("y")}), window=Last(1000))
    >>> riders.each
    ('k', 'x', 'y')

    """

    column: str

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise QueryError(
                f'Each names a column of the table of subscriptions, such as Each("k"); got {self.column!r}.'
            )

    def __repr__(self) -> str:
        return f"Each({self.column!r})"

    def to_dict(self) -> dict[str, str]:
        """Return plain data, ready for JSON."""
        return {"each": self.column}


class Need(NamedTuple):
    """A column that a table of subscriptions must have, and what its values are for."""

    column: str
    role: Role
    where: str  # the argument that it stands in, for messages


def from_stored(value: Any) -> Any:
    """A stored value: an `Each` where its `to_dict` was stored, else itself."""
    if isinstance(value, Mapping) and value.keys() == {"each"}:
        return Each(value["each"])
    return value


def stored(value: Any) -> Any:
    """The inverse of `from_stored`."""
    return value.to_dict() if isinstance(value, Each) else value


def bound(value: Any, values: Mapping[str, Any]) -> Any:
    """The value that an `Each` stands for; anything else as it is."""
    return values[value.column] if isinstance(value, Each) else value
