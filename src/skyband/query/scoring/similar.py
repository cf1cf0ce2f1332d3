"""Similar: how alike a column of vectors and one vector are.

Products are taken in the order of the components and summed from left to right in float64, so a score is the same in
every engine and on every machine: neither BLAS nor `np.sum`, which order terms as they like.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skyband.errors import QueryError
from skyband.query.each import Each, Need, bound, stored
from skyband.query.scoring.base import EVERYTHING, Box, Columns, Floats, Rows, Scoring, checked_column
from skyband.query.sql.text import name, number
from skyband.query.validation import is_word

if TYPE_CHECKING:
    from skyband.query.sql.tokens import Cursor

Likeness: TypeAlias = Literal["cosine", "dot", "euclidean"]
METRICS: tuple[Likeness, ...] = ("cosine", "dot", "euclidean")
_AT_ONCE = 1 << 18  # products that are kept at a time
_SHOWN = 8  # components in messages


@dataclass(frozen=True, init=False, repr=False)
class Similar(Scoring):
    """How alike the vectors of a column and one vector are.

    The column holds lists of float16, float32 or float64. A null, a vector of another length, and one with a null or
    infinite component or NaN is a rejected row; under cosine so is one of norm 0.

    Parameters
    ----------
    column : str
        The column of vectors: Arrow lists of any kind, lists, or a two-dimensional NumPy array.
    vector : sequence of float, or Each
        What they are compared with: finite numbers; not all 0 under cosine. `Each("vector")`: every subscription
        brings its own.
    metric : {"cosine", "dot", "euclidean"}, default "cosine"
        The dot product over both norms, the dot product (the largest is best), or the distance (the smallest is best;
        ranked by the sum of squares, and reported as its root).

    Examples
    --------
    >>> Similar("embedding", [0.6, 0.8])
    Similar('embedding', [0.6, 0.8])
    >>> Similar("embedding", [0.6, 0.8], metric="euclidean").smallest_first
    True

    """

    word = "similar"
    options: ClassVar[Mapping[str, Any]] = {"vector": (), "metric": "dot"}
    best_first_in_sql = True
    instead_of_above = 'Use metric="cosine" or metric="dot", of which the largest are best.'

    column: str
    packed: bytes | Each  # the components as float64: quickly compared and hashed, however many they are
    metric: Likeness

    def __init__(self, column: str, vector: Iterable[float] | Each, metric: Likeness = "cosine") -> None:
        if not is_word(metric, METRICS):
            raise QueryError(f"Similar: metric {metric!r} is unknown. Use one of {', '.join(METRICS)}.")
        object.__setattr__(self, "column", checked_column("Similar", column))
        object.__setattr__(self, "packed", vector if isinstance(vector, Each) else _components(vector).tobytes())
        object.__setattr__(self, "metric", metric)
        if metric == "cosine" and not isinstance(vector, Each) and self.norm == 0:
            raise QueryError(
                "Similar: the vector has norm 0, so no angle to it is defined. Give another one, or use "
                'metric="dot" or metric="euclidean".'
            )

    @property
    def smallest_first(self) -> bool:
        return self.metric == "euclidean"

    @property
    def vector(self) -> tuple[float, ...] | Each:
        """What vectors are compared with."""
        return self.packed if isinstance(self.packed, Each) else tuple(self.numbers.tolist())

    @property
    def numbers(self) -> Floats:
        """The components as an array."""
        assert not isinstance(self.packed, Each), "a query with Each is never asked for scores"
        return np.frombuffer(self.packed, np.float64)

    @cached_property
    def norm(self) -> float:
        """The root of the sum of squares."""
        return math.sqrt(float(squares(self.numbers[None, :])[0]))

    @property
    def needs(self) -> tuple[Need, ...]:
        each = self.packed
        return (Need(each.column, self.role, f"Similar: {self.column}"),) if isinstance(each, Each) else ()

    @property
    def role(self) -> Literal["vector", "direction"]:
        """What the values of subscriptions are for: under cosine a vector must have a direction."""
        return "direction" if self.metric == "cosine" else "vector"

    def bind(self, values: Mapping[str, Any]) -> Similar:
        given = bound(self.packed, values)
        vector = np.frombuffer(given, np.float64) if isinstance(given, bytes) else given  # as subscriptions keep it
        return Similar(self.column, vector, self.metric) if self.needs else self

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def number_columns(self) -> tuple[str, ...]:
        return ()

    def key(self, columns: Columns) -> Floats:
        raise NotImplementedError("the columns of vectors are no numbers: `keys` takes a batch")

    def keys(self, rows: Rows) -> Floats:
        found = rows.vectors(self.column, len(self.numbers))
        with np.errstate(all="ignore"):
            if self.metric == "euclidean":
                key = distances(found.matrix, self.numbers)
            else:
                key = dots(found.matrix, self.numbers)
            if self.metric == "cosine":
                key = key / (found.norms * self.norm)
        for bad in self.faults(rows).values():
            key[bad] = np.nan
        return key

    def faults(self, rows: Rows) -> Mapping[str, NDArray[np.bool_]]:
        found = rows.vectors(self.column, len(self.numbers))
        return found.faults | (found.norm_faults(self.column) if self.metric == "cosine" else {})

    def score(self, key: Floats) -> Floats:
        return np.sqrt(key) if self.metric == "euclidean" else key

    def bound(self, box: Box) -> tuple[float, float]:
        return (0.0, math.inf) if self.metric == "euclidean" else EVERYTHING

    @property
    def label(self) -> str:
        return f"Similar({self.column!r})"

    def recognised(self) -> tuple[str, str]:
        return self.word, f"{self!r} compares vectors"

    def to_dict(self) -> dict[str, Any]:
        given = stored(self.packed) if isinstance(self.packed, Each) else self.numbers.tolist()
        return {"similar": self.column, "vector": given} | ({} if self.metric == "cosine" else {"metric": self.metric})

    def to_sql(self) -> str:
        given = number(self.packed) if isinstance(self.packed, Each) else f"[{', '.join(map(number, self.vector))}]"  # type: ignore[arg-type]
        call = f"{'distance' if self.metric == 'euclidean' else 'similarity'}({name(self.column)}, {given})"
        return f"{call} METRIC dot" if self.metric == "dot" else call

    @classmethod
    def from_sql(cls, words: Cursor) -> Similar:
        metric = "euclidean" if words.words[words.at - 1].upper == "DISTANCE" else "cosine"
        example = "similarity(embedding, [0.1, 0.2]) or similarity(embedding, :vector)"
        words.expect("(", example)
        column = words.name(example)
        words.expect(",", example)
        vector: Any
        if words.accept("["):
            vector = words.several(lambda: words.number(example))
            words.expect("]", example)
        else:
            if not words.follows(":"):
                words.fail(words.word, f"a vector is expected here, as in {example}")
            vector = words.number_or_each(example)
        words.expect(")", example)
        if words.follows("METRIC") and metric == "euclidean":
            words.fail(words.word, "distance(...) is euclidean, the smallest first; write similarity(...) METRIC dot")
        if words.accept("METRIC"):
            metric = words.choice("METRIC dot").lower()
        return cls(column, vector, metric)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        metric = "" if self.metric == "cosine" else f", metric={self.metric!r}"
        if isinstance(self.packed, Each):
            return f"Similar({self.column!r}, {self.packed!r}{metric})"
        first = ", ".join(map(repr, self.numbers[:_SHOWN].tolist()))
        more = f", ... {len(self.numbers):,} components" if len(self.numbers) > _SHOWN else ""
        return f"Similar({self.column!r}, [{first}{more}]{metric})"


def _components(vector: Any) -> Floats:
    """A query's vector as float64; a QueryError says what is wrong with it."""
    if isinstance(vector, str | bytes | Mapping) or not isinstance(vector, Iterable):
        raise QueryError(f"Similar: a vector is a list of numbers, such as [0.1, 0.2]; got {vector!r}.")
    try:
        whole = hasattr(vector, "__array__")  # of Arrow, pandas, polars too
        given = np.asarray(vector if whole else list(vector))
    except ValueError:  # lists of different lengths
        given = np.empty((0, 0))
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iuf":
        raise QueryError(
            f"Similar: a vector is one list of numbers, at least one; got {_shape(vector, given)}. "
            'Many vectors stand as subscriptions: Similar(column, sb.Each("vector")).'
        )
    numbers = given.astype(np.float64) + 0.0  # -0.0 is 0.0
    if not np.isfinite(numbers).all():
        place = int(np.argmin(np.isfinite(numbers)))
        raise QueryError(
            f"Similar: component {place} of the vector is {numbers[place]}. Give finite numbers: with another one no "
            "score is a number."
        )
    return numbers


def _shape(vector: Any, given: NDArray[Any]) -> str:
    if given.ndim == 1 and not len(given):
        return "none"
    if given.ndim > 1:
        return f"shape {given.shape}"
    odd = [one for one in given.tolist() if isinstance(one, bool | complex) or not isinstance(one, int | float)]
    return f"{odd[0]!r} as a component" if odd else "an integer beyond 64 bits"


# --- sums from left to right: `np.add.accumulate` has every partial sum, so it cannot reorder terms


def dots(matrix: NDArray[Any], vector: Floats) -> Floats:
    """The dot product of each row and a vector."""
    return _summed(matrix, lambda rows: np.multiply(rows, vector, dtype=np.float64))


def squares(matrix: NDArray[Any]) -> Floats:
    """The sum of squares of each row."""
    return _summed(matrix, lambda rows: np.multiply(rows, rows, dtype=np.float64))


def distances(matrix: NDArray[Any], vector: Floats) -> Floats:
    """The sum of squared differences of each row and a vector."""

    def terms(rows: NDArray[Any]) -> Floats:
        away: Floats = np.subtract(rows, vector, dtype=np.float64)
        return away * away

    return _summed(matrix, terms)


def _summed(matrix: NDArray[Any], terms: Any) -> Floats:
    """The sums of the terms of each row, some rows at a time."""
    sums = np.empty(len(matrix))
    step = max(1, _AT_ONCE // matrix.shape[1])
    for low in range(0, len(matrix), step):
        products = terms(matrix[low : low + step])
        np.add.accumulate(products, axis=1, out=products)
        sums[low : low + step] = products[:, -1]
    return sums
