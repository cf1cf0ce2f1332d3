"""Scorings: how an object, or a pair of objects, gets its score. One file each, and one row in `SCORINGS`.

`base` is the protocol that everything else asks. A query's `by` is what the user gave (text, a value or a function);
`scoring_of` makes it a `Scoring`. Values only: nothing here is a machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from skyband.errors import QueryError
from skyband.query.each import Each, from_stored
from skyband.query.scoring.base import Floats, Scoring
from skyband.query.scoring.expression import Typed
from skyband.query.scoring.function import Function
from skyband.query.scoring.global_ import Global
from skyband.query.scoring.linear import Linear
from skyband.query.scoring.nearest import Nearest
from skyband.query.scoring.order import Order
from skyband.query.scoring.product import Product
from skyband.query.scoring.quadratic import Quadratic
from skyband.query.scoring.similar import Similar

By: TypeAlias = str | Scoring | Callable[..., Any]
Keys: TypeAlias = By | tuple[By, ...]

SCORINGS: dict[str, type[Scoring]] = {  # by the word under which values are stored
    "linear": Linear,
    "product": Product,
    "quadratic": Quadratic,
    "nearest": Nearest,
    "global": Global,
    "similar": Similar,
}
#: Other words for some of them in SQL.
SQL_WORDS: dict[str, type[Scoring]] = {"similarity": Similar, "distance": Similar}


def scoring_of(by: Keys) -> Scoring:
    """A query's `by` under the protocol: a value is one itself, text, functions and tuples get one around them."""
    if isinstance(by, Scoring):
        return by
    if isinstance(by, tuple):
        return Order(tuple(map(scoring_of, by)))
    return Typed(by) if isinstance(by, str) else Function(by)


def check_scoring(kind: str, by: object) -> Scoring:
    """The scoring of a query of objects; a QueryError says what it may be."""
    if not isinstance(by, str | Scoring) and not callable(by):
        able = ", ".join(f"sb.{scoring.__name__}" for scoring in SCORINGS.values() if scoring.scores_objects)
        raise QueryError(
            f"{kind}: {by!r} is no scoring. Use a column, an expression, {able}, or a function of a batch."
        )
    scoring = scoring_of(by)
    if not scoring.scores_objects:
        raise QueryError(f"{kind}: {type(by).__name__} scores pairs of objects. Use it with TopKPairs, or Linear here.")
    _ = scoring.columns  # a typed one is read here, and may be wrong
    return scoring


def check_pair_scoring(kind: str, by: object) -> Scoring:
    """The scoring of a query of pairs."""
    scoring = scoring_of(by) if isinstance(by, str | Scoring) or callable(by) else None
    if scoring is None or not scoring.scores_pairs:
        able = ", ".join(f"sb.{one.__name__}" for one in SCORINGS.values() if one.scores_pairs)
        raise QueryError(
            f"{kind}: {by!r} does not score a pair. Use an expression over a. and b., {able} such as "
            'sb.Global({"x": "absdiff"}), or a function of two batches.'
        )
    return scoring


def check_keys(kind: str, by: object) -> Keys:
    """The scoring of a query of objects, or a tuple of keys."""
    if not isinstance(by, tuple | list):
        check_scoring(kind, by)
        return by  # type: ignore[return-value]
    for key in by:
        check_scoring(kind, key)
    return tuple(by)


def by_to_dict(by: Keys) -> Any:
    """A scoring as JSON-ready data; a function is named, not stored."""
    return scoring_of(by).to_dict()


def by_from_dict(data: Any, call: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None = None) -> Keys:
    """The inverse of `by_to_dict`; `call` is the function itself where one was stored. Keys come in any order."""
    if isinstance(data, str):
        return data
    if isinstance(data, list | tuple):
        return tuple(by_from_dict(one, call) for one in data)  # type: ignore[misc]
    stored: dict[str, Any] = dict(data) if isinstance(data, Mapping) else {}
    word = next((key for key in stored if key in SCORINGS), None)
    if word is not None and stored.keys() - {word} <= SCORINGS[word].options.keys():
        make: Any = SCORINGS[word]
        value: Scoring = make(_given(stored.pop(word)), **{key: _option(one) for key, one in stored.items()})
        return value
    if stored.keys() == {"callable"}:
        known = call.get(stored["callable"]) if isinstance(call, Mapping) else call
        if known is not None:
            return known
        raise QueryError(
            f"this query scores by the Python function {stored['callable']!r}, which is never stored. "
            "Give the function itself, for example callables={'q0': my_function} by the query's name."
        )
    words = ", ".join(f'{{"{word}": {{...}}}}' for word in SCORINGS)
    raise QueryError(f"{data!r} is not a scoring. Use a column or expression, or one of {words}.")


def _given(terms: Any) -> Any:
    """Stored terms as they were given."""
    return {name: from_stored(one) for name, one in terms.items()} if isinstance(terms, Mapping) else terms


def _option(stored: Any) -> Any:
    """A stored option as it was given; what each subscription brings has its column in place of a number."""
    if isinstance(stored, Mapping) and stored.keys() == {"each"} and isinstance(stored["each"], str):
        return Each(stored["each"])
    return _given(stored)


__all__ = [
    "SCORINGS",
    "SQL_WORDS",
    "By",
    "Floats",
    "Function",
    "Global",
    "Keys",
    "Linear",
    "Nearest",
    "Order",
    "Product",
    "Quadratic",
    "Scoring",
    "Similar",
    "Typed",
    "by_from_dict",
    "by_to_dict",
    "check_keys",
    "check_pair_scoring",
    "check_scoring",
    "scoring_of",
]
