"""The adapter of a query with `Each`: it accepts and numbers rows while there is no subscription.

Subscriptions have adapters of their own, and number rows themselves. The query's own numbers are the largest of any
subscription that has left, so that they go on whoever comes and goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter, Columns
from skyband.engines.contract import NEVER, Answer, Arrivals, Changes, Engine, Spec
from skyband.engines.kinds import adapter_class
from skyband.engines.numbering import Start
from skyband.engines.numbers_at_rest import NumbersAtRest
from skyband.engines.specs import length_of
from skyband.errors import BatchError, QueryError
from skyband.query.expressions import parse, strict_columns
from skyband.query.kinds import Query
from skyband.query.options import Options
from skyband.query.scoring import Similar, scoring_of
from skyband.query.windows import Session, size_of
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated, reject_beyond
from skyband.tables.subscriptions import Subscriptions

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
FAR = 2**61  # the length of a window that no subscription has said yet
_LONG = np.timedelta64(1000 * 86400, "s")  # whatever the unit of time
_EXAMPLES: dict[str, Any] = {"k": 10, "offset": 1, "threshold": 0.0, "number": 0.5, "weight": 1.0, "size": 1000}
_MIXED = 6  # of so many literals every mixture of kinds is tried
_EXAMPLES |= {"span": 1000, "vector": (1.0,), "direction": (1.0,)}


def example_of(query: Query, sort: str | None = None) -> Query:
    """A plain query as a subscription could ask it, for what does not depend on its values.

    sort: of the sizes of windows that subscriptions bring, "duration" or else numbers of arrivals.
    """
    failed: QueryError | None = None
    for example in _examples_of(query, sort):
        if not isinstance(example, QueryError):
            return example
        failed = failed or example
    assert failed is not None
    raise failed


def _examples_of(query: Query, sort: str | None) -> Iterator[Query | QueryError]:
    """Such plain queries with numbers, strings and booleans for what expressions leave open, all of one kind first."""
    literals = list(dict.fromkeys(need.column for need in query.needs if need.role == "literal"))
    values = {need.column: _EXAMPLES[need.role] for need in query.needs if need.role != "literal"}
    if sort == "duration" or isinstance(query.window, Session):
        values |= {need.column: _LONG for need in query.needs if need.role == "size"}
    kinds = (0.5, "a", True)
    uniform = [(kind,) * len(literals) for kind in kinds]
    for tried in dict.fromkeys([*uniform, *product(kinds, repeat=min(len(literals), _MIXED))]):
        try:
            yield query.bind(dict.fromkeys(literals, 0.5) | dict(zip(literals, tried, strict=False)) | values)
        except QueryError as error:
            yield error


class UnsubscribedAdapter(Adapter):
    """The numbers of a query with `Each`, and which rows it accepts as long as nobody has subscribed."""

    def __init__(
        self,
        query: Query,
        groups: Groups,
        options: Options,
        start: Start,
        *,
        sort: str | None = None,
        subscriptions: Subscriptions | None = None,
    ) -> None:
        if subscriptions is not None:
            sort = subscriptions.sort
        example = example_of(query, sort)
        super().__init__(example, groups, options, start)
        self.subscribed = subscriptions is not None and subscriptions.count > 0  # then it takes no rows
        self._query, self._sort = query, sort
        self._set_validator(self._new_validator(query, example))
        self._open = size_of(query.window) is not None  # how long its window is, subscriptions say

    def _set_validator(self, validator: Adapter) -> None:
        self._validator = validator
        self.output.id_type = validator.output.id_type  # type: ignore[method-assign]
        self.output.shown_types = validator.output.shown_types  # type: ignore[method-assign]

    def _new_validator(self, query: Query, example: Query) -> Adapter:
        """An adapter of the query's kind that validates rows as far as that does not depend on a subscription."""
        none = Start(np.zeros(self.groups.total, np.int64), NumbersAtRest(1))
        validator = adapter_class(example, self.algorithm)(example, self.groups, self.options, none)
        validator.queries = {"": example}
        validator.scored = True
        own, more = getattr(query, "by", None), getattr(query, "where", None)
        self._own: tuple[str, ...] | None = None
        if own is not None and not query.of_pairs and query.kind != "TopKGroups" and _needs_of(own):
            validator.score = _score_of(own)  # type: ignore[method-assign,assignment]
        if more is not None and parse(more).each:
            validator.where, self._own = None, parse(more).columns
        return validator

    @property
    def shown_keys(self) -> Any:
        return self._validator.shown_keys

    def new_keys(self, validated: Validated) -> Any:
        """The types of the keys that subscriptions would report, of a batch that is not taken yet."""
        return self._validator.new_keys(validated)  # type: ignore[attr-defined]

    def seen_types(self) -> dict[str, Any]:
        return self._validator.seen_types()

    @property
    def validates(self) -> Query:
        """The plain query by which rows are validated."""
        found: Query = next(iter(self._validator.queries.values()))
        return found

    @property
    def example(self) -> Any:
        return next(iter(self.queries.values()))

    def validate(self, batch: Batch, cache: dict[Any, Scored], bad_times: dict[str, Bools | None]) -> Validated:
        self._validator.options = self.options
        try:
            validated = self._validator.validate(batch, cache, bad_times)
        except BatchError as error:
            validated = self._validate_otherwise(batch, cache, bad_times, error)
        if self._own is None:
            return validated
        scored = validated.scored
        for name in self._own:
            batch.operand(name)
        reject_beyond(scored, batch, self._own)
        return scored.validated(None)

    def _validate_otherwise(
        self, batch: Batch, cache: dict[Any, Scored], bad_times: dict[str, Bools | None], failed: BatchError
    ) -> Validated:
        """What the columns compare with may be strings or booleans: go on with an example that fits them."""
        for example in _examples_of(self._query, self._sort):
            if not isinstance(example, QueryError):
                validator = self._new_validator(self._query, example)
                with suppress(BatchError):
                    validated = validator.validate(batch, cache, bad_times)
                    self._set_validator(validator)
                    return validated
        raise failed

    def specs(self, unit: int | None) -> tuple[Spec, ...]:
        return (Spec(0, 1 if self._open else length_of(self.validates, unit)),)

    def lengths(self, unit: int | None) -> list[int]:
        return [FAR] if self._open and self.timed else super().lengths(unit)

    def start(self, unit: int | None) -> None:
        if self.engine is None:
            self.numbering.set_queries(self.specs(unit))
            self.numbering.lengths = self.lengths(unit)
            self.engine = cast("Engine", Nothing(self.groups))

    def timely(self, accepted: Bools, ages: Ints, unit: int | None) -> Bools:
        if self._open and self.timed and self.options.late == "accept":
            return accepted
        return super().timely(accepted, ages, unit)

    def take(self, push: Push, validated: Validated, codes: Ints) -> tuple[Columns, Bools, Bools]:
        numbered = self.number(push, validated, codes)
        arrived = self.numbering.take(push, numbered)
        return {}, arrived, numbered.too_late

    @property
    def is_fresh(self) -> bool:
        return False  # no plain query joins it, though its key may be the same: it would never be answered

    def can_serve(self, query: Any, unit: int | None) -> bool:
        return False  # it keeps nothing

    def can_lend(self, query: Any, unit: int | None) -> bool:
        return False

    def go_on(self, numbers: Start) -> None:
        """Number the next rows from here on."""
        self.numbering.widen()
        size = len(numbers.counts)
        counts = self.numbering.counts.copy()
        counts[:, :size] = np.maximum(counts[:, :size], numbers.counts)
        self.numbering.counts = counts
        self.numbering.at_rest.add(numbers.at_rest)

    def stats(self, name: str) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "objects": 0,
            "buffer": 0,
            "bytes": 0,
            "arrivals": int(self.numbering.arrivals.max()),
            "late": int(self.numbering.late.max()),
            "rejected": dict(self.rejected),
        }


def _needs_of(by: Any) -> tuple[Any, ...]:
    return parse(by).each if isinstance(by, str) else scoring_of(by).needs


def _score_of(by: Any) -> Callable[[Batch, dict[Any, Scored]], Scored]:
    """What a validator finds of a scoring whose values subscriptions bring."""
    if isinstance(by, Similar):
        return lambda batch, cache: _vectors(batch, by)
    columns = parse(by).columns if isinstance(by, str) else by.columns
    strict = strict_columns(parse(by)) if isinstance(by, str) else columns
    return lambda batch, cache: _structural(batch, columns, strict)


def _vectors(batch: Batch, by: Similar) -> Scored:
    """The rows that no subscription's vector can be compared with."""
    scored = Scored(np.zeros(batch.rows))
    for reason, rows in batch.lists(by.column).unusable(directed=by.metric == "cosine").items():
        scored.reject(reason, rows)
    return scored


def _structural(batch: Batch, columns: tuple[str, ...], strict: tuple[str, ...]) -> Scored:
    """The rows that no subscription can score: a column without which there is no score is null or NaN."""
    scored = Scored(np.zeros(batch.rows))
    for name in columns:
        operand = batch.operand(name)
        if name in strict:
            if operand.valid is not None:
                scored.reject(f"{name} is null", ~operand.valid)
            if operand.values.dtype == np.float64:
                valid = True if operand.valid is None else operand.valid
                scored.reject(f"{name} is NaN", np.isnan(operand.values) & valid)
    reject_beyond(scored, batch, columns)
    return scored


class Nothing:
    """An engine that keeps nothing and answers nothing."""

    name = "NONE"
    buffer = nbytes = 0

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.held = np.empty(0, [("serial", np.int64)])

    def take(self, arrivals: Arrivals) -> Changes:
        raise NotImplementedError("no arrival gets here")

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
        none = np.empty(0, np.int64)
        return Answer(none, none, none, none, np.empty(0))

    def snapshot(self, groups: Ints) -> dict[str, tuple[NDArray[Any], Ints]]:
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]], *, trusted: bool = True) -> None: ...

    def keep_groups(self, groups: Ints) -> None: ...

    def reset_groups(self, groups: Ints) -> None: ...

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None: ...

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        none = np.empty(0, np.int64)
        return none, np.zeros(self.groups.total if groups is None else len(groups), np.int64)

    @property
    def kept(self) -> Ints:
        return np.zeros(self.groups.total, np.int64)

    def size_of(self, query: int) -> int:
        return 0

    @property
    def due(self) -> Ints:
        return np.full(self.groups.total, NEVER)
