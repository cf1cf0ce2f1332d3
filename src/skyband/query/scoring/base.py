"""The protocol of a scoring: all that the rest of skyband asks of one.

A scoring names its columns and computes one float64 per row from float64 columns, element by element, terms in the
order given, with no fused or reordered arithmetic: a score is the same in every engine and on every machine. To add
one, write a subclass of `Scoring` in a file of its own and a row in `SCORINGS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from skyband.errors import QueryError
from skyband.query.each import Each, Need, bound, stored
from skyband.query.scoring.forms import KernelForm
from skyband.query.sql.text import scoring_text

if TYPE_CHECKING:
    from skyband.query.expressions import Operand
    from skyband.query.sql.tokens import Cursor

Floats: TypeAlias = NDArray[np.float64]
Columns: TypeAlias = Mapping[str, Floats]
Box: TypeAlias = Mapping[str, tuple[float, float]]  # column -> (low, high), ends included; one not named is unbounded
EVERYTHING = (-math.inf, math.inf)


class Vectors(Protocol):
    """Vectors of one length (`skyband.tables.vectors.Vectors`)."""

    @property
    def matrix(self) -> NDArray[Any]: ...

    @property
    def norms(self) -> Floats: ...

    @property
    def faults(self) -> dict[str, NDArray[np.bool_]]: ...

    def norm_faults(self, column: str) -> dict[str, NDArray[np.bool_]]: ...


class PairForm(NamedTuple):
    """The local functions of a score of pairs, and how they combine."""

    terms: tuple[tuple[str, str], ...]  # column, "absdiff" or "sum"
    combine: str  # "sum", "product", "max" or "euclidean", which is by the sum of squares
    weights: tuple[float, ...] = ()  # of the local functions; none: all are 1
    transforms: tuple[str | None, ...] = ()  # the expression in place of each column; none: the columns themselves


class Rows(Protocol):
    """The rows of a batch, as far as a scoring looks at them (`skyband.tables.input.Batch`)."""

    @property
    def rows(self) -> int: ...

    def numbers(self, name: str) -> Operand: ...

    def operand(self, name: str) -> Operand: ...

    def vectors(self, name: str, d: int) -> Vectors: ...


class Scoring:
    """A value that scores objects or pairs: frozen, equal by value, stored as plain data under its `word`.

    A subclass is a frozen dataclass made from one mapping by column, and by keyword from its `options`. It sets `word`
    and defines `columns`, `key` and `to_dict`. The defaults here fit all else: the largest is best, NumPy computes it,
    nothing bounds it, and SQL is `word(column = value, ...) OPTION value`.
    """

    word: ClassVar[str]  # in stored data, in SQL and in `explain`
    example: ClassVar[Any] = 0.7  # a value of the mapping; SQL reads a number or a word accordingly
    options: ClassVar[Mapping[str, Any]] = {}  # further arguments, each with an example
    scores_objects: ClassVar[bool] = True
    scores_pairs: ClassVar[bool] = False
    best_first_in_sql: ClassVar[bool] = False  # ORDER BY without ASC or DESC
    instead_of_above: ClassVar[str] = (
        'Type the distance as an expression, such as by="abs(x - 0.2)", if that is what you want.'
    )

    @property
    def smallest_first(self) -> bool:
        """Whether the smallest score is best, unless the query says otherwise."""
        return False

    @property
    def label(self) -> str:
        """Its name in messages."""
        return repr(self)

    @property
    def function(self) -> Callable[..., Any] | None:
        """The user's own function, where that is the scoring."""
        return None

    # --- values that subscriptions bring

    @property
    def needs(self) -> tuple[Need, ...]:
        """The columns of a table of subscriptions that it takes numbers from."""
        return ()

    def bind(self, values: Mapping[str, Any]) -> Any:
        """The scoring of a subscription with these values: what a query takes as `by`."""
        return self

    # --- scores

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads. Empty for a function, which may read any."""
        raise NotImplementedError

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Those of its columns that hold numbers."""
        return self.columns

    def faults(self, rows: Rows) -> Mapping[str, NDArray[np.bool_]]:
        """Why rows have no key, besides nulls and NaN in columns of numbers: the rows of each reason."""
        return {}

    def key(self, columns: Columns) -> Floats:
        """Compute what objects are ranked by, one float64 per row."""
        raise NotImplementedError

    def keys(self, rows: Rows) -> Floats:
        """Compute `key` for the rows of a batch; NaN where a row has none."""
        with np.errstate(all="ignore"):
            return self.key({name: rows.numbers(name).values for name in self.columns})

    def score(self, key: Floats) -> Floats:
        """Turn what objects are ranked by into what is reported."""
        return key

    def pair_key(self, older: Mapping[str, Any], newer: Mapping[str, Any]) -> Any:
        """Compute what pairs are ranked by and report, from the columns of their members."""
        raise NotImplementedError

    # --- how engines may compute it

    @property
    def plain(self) -> Scoring:
        """The same scoring, bit for bit, in the form that engines know best."""
        return self

    @property
    def form(self) -> KernelForm | None:
        """The form by which kernels compute and bound it; None: NumPy computes it, engines keep objects by score."""
        return None

    @property
    def pair_columns(self) -> tuple[str, ...]:
        """The columns that it reads of each member of a pair."""
        return self.columns

    @property
    def symmetric(self) -> bool:
        """Whether a pair keeps its score when its members are exchanged, as far as that is known beforehand."""
        return True

    @property
    def pair_form(self) -> PairForm | None:
        """The local functions by which kernels score pairs; None: NumPy scores them."""
        return None

    def bound(self, box: Box) -> tuple[float, float] | None:
        """The least and the largest key of objects in a box; None where that is not known."""
        return None

    @property
    def unbounded(self) -> str:
        """The reason why `bound` gives None."""
        return f"{self.word} does not bound its scores"

    def recognised(self) -> tuple[str, str]:
        """The form of the scoring for `explain`: one word, and a sentence without its full stop."""
        return self.word, f"{self!r} says its form itself"

    # --- stored data and SQL

    def to_dict(self) -> Any:
        """Plain data, ready for JSON: the word with its mapping, then the options that are not as usual."""
        raise NotImplementedError

    def to_sql(self) -> str:
        """The scoring in SQL, which `from_sql` reads back."""
        stored = self.to_dict()
        options = {key: stored[key] for key in self.options if key in stored}
        return scoring_text(self.word, stored[self.word], options)

    @classmethod
    def from_sql(cls, words: Cursor) -> Self:
        """Read the scoring at the cursor, which stands behind its word."""

        def value(like: Any, example: str) -> Any:
            if isinstance(like, Mapping):
                texts = all(isinstance(one, str) for one in like.values())
                read = words.choice if texts else words.number_or_each
                return words.terms(lambda: read(example), example)
            return words.choice(example).lower() if isinstance(like, str) else words.number_or_each(example)

        example = f"{cls.word}(x = {cls.example})"
        terms = words.terms(lambda: value(cls.example, example), example)
        options: dict[str, Any] = {}
        while option := next((name for name in cls.options if words.accept(name.upper())), None):
            like = cls.options[option]
            options[option] = value(like, f"{option.upper()} {'(x = 1)' if isinstance(like, Mapping) else like}")
        make: Any = cls
        return make(terms, **options)  # type: ignore[no-any-return]


@dataclass(frozen=True, init=False, repr=False)
class Weighted(Scoring):
    """One number per column; a subclass says how they combine."""

    terms: tuple[tuple[str, float], ...]  # or, of a query with subscriptions, `Each` in place of a number

    def __init__(self, weights: Mapping[str, float | Each]) -> None:
        object.__setattr__(self, "terms", checked_terms(type(self).__name__, weights))

    @property
    def weights(self) -> dict[str, float]:
        """The numbers by column."""
        return dict(self.terms)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers in the order of the columns."""
        return tuple(number for _, number in self.terms)

    @property
    def needs(self) -> tuple[Need, ...]:
        return needs_of(self.terms, "number", type(self).__name__)

    def bind(self, values: Mapping[str, Any]) -> Self:
        return type(self)({name: bound(number, values) for name, number in self.terms})

    def to_dict(self) -> dict[str, Any]:
        return {self.word: stored_terms(self.weights)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weights!r})"


# --- what scorings have in common


def needs_of(terms: Sequence[tuple[str, Any]], role: Any, what: str) -> tuple[Need, ...]:
    """What subscriptions must bring for these terms."""
    return tuple(Need(number.column, role, f"{what}: {name}") for name, number in terms if isinstance(number, Each))


def stored_terms(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Terms as plain data."""
    return {name: stored(number) for name, number in terms.items()}


def checked_terms(what: str, terms: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The mapping as pairs of column and finite number, in its order."""
    if not isinstance(terms, Mapping) or not terms:
        raise QueryError(f'{what} takes a mapping of column to number, such as {{"x": 0.7, "y": 0.3}}; got {terms!r}.')
    return tuple((checked_column(what, name), _number(f"{what}: {name}", number)) for name, number in terms.items())


def checked_column(what: str, name: object) -> str:
    if not isinstance(name, str) or not name:
        raise QueryError(f"{what}: a column is named by a non-empty string; got {name!r}.")
    return name


def _number(what: str, number: Any) -> float:
    if isinstance(number, Each):
        return number  # type: ignore[return-value]  # a query with it is never asked for scores
    if isinstance(number, bool | np.timedelta64) or not isinstance(number, int | float | np.integer | np.floating):
        raise QueryError(f"{what} must be a number; got {number!r}.")
    try:
        value = float(number)
    except OverflowError:  # an integer
        value = math.inf
    if not math.isfinite(value):
        raise QueryError(f"{what} must be finite; got {number!r}.")
    return value


Number = TypeVar("Number", float, Floats)


def total(parts: Sequence[Number]) -> Number:
    """The sum in the order given: np.sum would pair terms up, and sum() of Python 3.12 would compensate."""
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


def interval(ends: Sequence[tuple[float, float]], join: Callable[[Sequence[float]], float]) -> tuple[float, float]:
    """The bound of terms from their bounds, joined by a function that rises with each; NaN (inf - inf) is no bound."""
    low, high = (join([end[side] for end in ends]) for side in (0, 1))
    return (-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)


def scaled(factor: float, low: float, high: float) -> tuple[float, float]:
    """The bound of a factor times a number in an interval; 0 times infinity is 0 here."""
    ends = (factor * low, factor * high) if factor else (0.0, 0.0)
    return min(ends), max(ends)


def squared(low: float, high: float) -> tuple[float, float]:
    """The bound of the square of a number in an interval."""
    return low * low if low > 0 else high * high if high < 0 else 0.0, max(low * low, high * high)
